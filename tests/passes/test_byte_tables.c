/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one byte become tables with the same results; what is none stays. */
#include "passes/interpret.h"

static sn_dtype byte = SONDE_DTYPE_U8;

/* A constant of one byte, rank 0. */
static void const_byte(sn_graph *g, const char *name, sn_dtype dtype, int v)
{
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    uint8_t *data = SN_NEW_N(g->arena, uint8_t, 1);
    if (!t || !data) {
        build_note(SONDE_OUT_OF_MEMORY);
        return;
    }
    *data = (uint8_t)v;
    *t = (sn_tensor){.dtype = dtype, .data = data, .bytes = 1};
    sn_value *made = value(g, name);
    if (made)
        build_note(sn_value_set_constant(g, made, t, &err));
}

/* An input "x" of bytes, scales and zero points of x, of what lies between, and of y. */
static sn_model *begin(size_t fail_at)
{
    static const int64_t dims[] = {2, 3, 40, 8};
    sn_model *m = pass_model(fail_at);
    if (!m)
        return NULL;
    sn_graph *g = m->graph;
    const sn_opset ms = {"com.microsoft", 1};
    if (!sn_vec_push(&m->opsets, &build_alloc.a, ms))
        build_note(SONDE_OUT_OF_MEMORY);
    typed_input(g, "x", byte, 4, dims);
    scalar_f32(g, "xs", 0.0371f);
    scalar_f32(g, "ms", 0.0039f);
    scalar_f32(g, "ys", 0.0242f);
    const_byte(g, "xz", byte, byte == SONDE_DTYPE_U8 ? 131 : 3);
    const_byte(g, "mz", byte, byte == SONDE_DTYPE_U8 ? 0 : -128);
    const_byte(g, "yz", byte, byte == SONDE_DTYPE_U8 ? 12 : -116);
    scalar_f32(g, "half", 0.5f);
    scalar_f32(g, "one", 1);
    scalar_f32(g, "two", 2);
    scalar_f32(g, "three", 3);
    scalar_f32(g, "zero", 0);
    scalar_f32(g, "six", 6);
    scalar_f32(g, "root2", 1.41421356f);
    return m;
}

/* An operator of com.microsoft. */
static sn_node *contrib(sn_graph *g, const char *type, const char *out, const char *ins)
{
    sn_node *n = node(g, type, out, ins);
    if (n)
        n->domain = "com.microsoft";
    return n;
}

static void silu(sn_graph *g)
{
    contrib(g, "QLinearSigmoid", "s", "x xs xz ms mz");
    contrib(g, "QLinearMul", "y", "x xs xz s ms mz ys yz");
}

static void silu_swapped(sn_graph *g)
{
    contrib(g, "QLinearSigmoid", "s", "x xs xz ms mz");
    contrib(g, "QLinearMul", "y", "s ms mz x xs xz ys yz");
}

static void sigmoid(sn_graph *g)
{
    contrib(g, "QLinearSigmoid", "y", "x xs xz ms mz");
}

static void leaky_relu(sn_graph *g)
{
    attr_float(g, contrib(g, "QLinearLeakyRelu", "y", "x xs xz ys yz"), "alpha", 0.2f);
}

static void square(sn_graph *g)
{
    contrib(g, "QLinearMul", "y", "x xs xz x xs xz ys yz");
}

static void both_branches(sn_graph *g)
{
    contrib(g, "QLinearSigmoid", "s", "x xs xz ms mz");
    contrib(g, "QLinearLeakyRelu", "l", "x xs xz ys yz");
    contrib(g, "QLinearAdd", "y", "s ms mz l ys yz xs xz");
}

static void one_after_the_other(sn_graph *g)
{
    contrib(g, "QLinearLeakyRelu", "l", "x xs xz ys yz");
    contrib(g, "QLinearSigmoid", "s", "l ys yz ms mz");
    contrib(g, "QLinearMul", "m", "l ys yz s ms mz ys yz");
    contrib(g, "QLinearLeakyRelu", "y", "m ys yz xs xz");
}

static void requantised(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "QuantizeLinear", "y", "d ys yz");
}

static void hard_swish(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "HardSwish", "h", "d");
    node(g, "QuantizeLinear", "y", "h ys yz");
}

static void hard_swish_written_out(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Add", "a", "d three");
    node(g, "Clip", "c", "a zero six");
    node(g, "Mul", "p", "d c");
    node(g, "Div", "h", "p six");
    node(g, "QuantizeLinear", "y", "h ys yz");
}

static void gelu(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Div", "u", "d root2");
    node(g, "Erf", "e", "u");
    node(g, "Add", "e1", "e one");
    node(g, "Mul", "de", "d e1");
    node(g, "Mul", "h", "half de");
    node(g, "QuantizeLinear", "y", "h ys yz");
}

static void many_functions(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Tanh", "a", "d");
    node(g, "Exp", "b", "a");
    node(g, "Pow", "c", "b two");
    node(g, "Sqrt", "e", "c");
    node(g, "Sub", "f", "e one");
    node(g, "Neg", "h", "f");
    node(g, "Min", "i", "h one d");
    node(g, "Max", "j", "i zero");
    node(g, "Round", "k", "j");
    node(g, "Softplus", "l", "k");
    node(g, "Elu", "o", "l");
    node(g, "LeakyRelu", "p", "o");
    node(g, "HardSigmoid", "q", "p");
    node(g, "Sum", "r", "q d a half");
    node(g, "QuantizeLinear", "y", "r ys yz");
}

static void chosen(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Less", "l", "d half");
    node(g, "Sigmoid", "s", "d");
    node(g, "Where", "w", "l s d");
    node(g, "QuantizeLinear", "y", "w ys yz");
}

/* Two functions with a QuantizeLinear and a DequantizeLinear between them. */
static void notations_between(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Sigmoid", "s", "d");
    node(g, "QuantizeLinear", "q", "s ms mz");
    node(g, "DequantizeLinear", "dq", "q ms mz");
    node(g, "Mul", "h", "d dq");
    node(g, "QuantizeLinear", "y", "h ys yz");
}

static const sn_node *only_node(const sn_graph *p)
{
    return p->n_live_nodes == 1 ? p->first : NULL;
}

static const struct {
    const char *name;
    void (*spell)(sn_graph *);
    uint32_t nodes;
    const char *type, *post_op;
} functions[] = {
    {"silu", silu, 2, "QLinearSigmoid", "QLinearMul"},
    {"silu, swapped", silu_swapped, 2, "QLinearSigmoid", "QLinearMul"},
    {"sigmoid", sigmoid, 1, "QLinearSigmoid", ""},
    {"leaky relu", leaky_relu, 1, "QLinearLeakyRelu", ""},
    {"square", square, 1, "QLinearMul", ""},
    {"both branches", both_branches, 3, "QLinearSigmoid", "QLinearLeakyRelu+QLinearAdd"},
    {"one after the other", one_after_the_other, 4, "QLinearLeakyRelu",
     "QLinearSigmoid+QLinearMul+QLinearLeakyRelu"},
    {"requantised", requantised, 2, "QuantizeLinear", ""},
    {"hard swish", hard_swish, 3, "HardSwish", "QuantizeLinear"},
    {"hard swish, written out", hard_swish_written_out, 6, "Add", "Clip+Mul+Div+QuantizeLinear"},
    {"gelu", gelu, 7, "Div", "Erf+Add+Mul+Mul+QuantizeLinear"},
    {"many functions", many_functions, 16, "Tanh", "Exp+Pow+Sqrt+Sub+Neg+…"},
    {"chosen", chosen, 5, "Less", "Sigmoid+Where+QuantizeLinear"},
    {"notations between", notations_between, 6, "Sigmoid",
     "QuantizeLinear+DequantizeLinear+Mul+QuantizeLinear"},
};

TEST(functions_of_one_byte_become_one_table_of_the_same_results)
{
    for (size_t i = 0; i < 2 * sizeof functions / sizeof *functions; i++) {
        byte = i % 2 ? SONDE_DTYPE_I8 : SONDE_DTYPE_U8;
        const char *name = functions[i / 2].name;
        sn_model *m = begin(0);
        sn_graph *p = NULL;
        functions[i / 2].spell(m->graph);
        outputs(m->graph, "y");
        CHECK_OK(finish(m, "byte-tables", &p));
        const sn_node *t = only_node(p);
        CHECK_MSG(t && strcmp(t->op_type, "ByteTable") == 0, "%s", name);
        if (t) {
            CHECK_MSG(t->n_origins == functions[i / 2].nodes, "%s: %u", name, t->n_origins);
            CHECK_STR(t->shown_type, functions[i / 2].type);
            CHECK_STR(t->post_op, functions[i / 2].post_op);
            CHECK_EQ(t->out[0]->fact.type.dtype, byte);
        }
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
    byte = SONDE_DTYPE_U8;
}

TEST(the_result_may_be_of_the_other_type)
{
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    const_byte(g, "iz", SONDE_DTYPE_I8, -7);
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Gelu", "h", "d")->opset = 20;
    node(g, "QuantizeLinear", "y", "h ys iz");
    outputs(g, "y");
    m->opsets.data[0].version = 20;
    CHECK_OK(finish(m, "byte-tables", &p));
    CHECK(only_node(p) && strcmp(p->first->op_type, "ByteTable") == 0);
    CHECK_EQ(p->outputs.data[0]->fact.type.dtype, SONDE_DTYPE_I8);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

/* ------------------------------------------------------------------ what is none */
static void two_operands(sn_graph *g)
{
    typed_input(g, "z", byte, DIMS(2, 3, 40, 8));
    contrib(g, "QLinearAdd", "y", "x xs xz z xs xz ys yz");
}

static void scales_of_channels(sn_graph *g)
{
    const_f32(g, "scales", 2, DIMS(3));
    node(g, "DequantizeLinear", "d", "x scales _");
    node(g, "Tanh", "t", "d");
    node(g, "QuantizeLinear", "y", "t ys yz");
}

static void factors_of_channels(sn_graph *g)
{
    const_f32(g, "factors", 2, DIMS(3, 1, 1));
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Mul", "t", "d factors");
    node(g, "QuantizeLinear", "y", "t ys yz");
}

static void more_dims(sn_graph *g)
{
    const_f32(g, "factor", 2, DIMS(1, 1, 1, 1, 1));
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Mul", "t", "d factor");
    node(g, "QuantizeLinear", "y", "t ys yz");
}

static void read_outside(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Tanh", "t", "d");
    node(g, "QuantizeLinear", "y", "t ys yz");
    node(g, "ReduceMax", "r", "d");
    outputs(g, "r");
}

static void an_output_inside(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Tanh", "t", "d");
    node(g, "QuantizeLinear", "y", "t ys yz");
    outputs(g, "t");
}

static void neighbours(sn_graph *g)
{
    node(g, "DequantizeLinear", "d", "x xs xz");
    node(g, "Softmax", "t", "d");
    node(g, "QuantizeLinear", "y", "t ys yz");
}

static void scale_that_is_an_input(sn_graph *g)
{
    typed_input(g, "scale", SONDE_DTYPE_F32, 0, NULL);
    node(g, "DequantizeLinear", "d", "x scale xz");
    node(g, "Tanh", "t", "d");
    node(g, "QuantizeLinear", "y", "t ys yz");
}

static void integers_alone(sn_graph *g)
{
    node(g, "Max", "y", "x yz");
}

static void floats(sn_graph *g)
{
    typed_input(g, "z", SONDE_DTYPE_F32, DIMS(4));
    node(g, "QuantizeLinear", "y", "z ys yz");
}

/* The zero point is of another type: the run says so. */
static void nonsense(sn_graph *g)
{
    const_byte(g, "iz", SONDE_DTYPE_I8, -7);
    contrib(g, "QLinearSigmoid", "y", "x xs xz ms iz");
}

TEST(what_is_no_function_of_one_byte_stays)
{
    static void (*const cases[])(sn_graph *) = {
        two_operands,     scales_of_channels, factors_of_channels,    more_dims,      read_outside,
        an_output_inside, neighbours,         scale_that_is_an_input, integers_alone, floats,
        nonsense};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = begin(0);
        sn_graph *p = NULL;
        cases[i](m->graph);
        outputs(m->graph, "y");
        CHECK_OK(finish(m, "byte-tables", &p));
        CHECK_MSG(count_ops(p, "ByteTable") == 0, "case %zu", i);
        if (cases[i] != nonsense)
            check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

/* ------------------------------------------------------------------ several tables */
TEST(bytes_that_others_read_end_a_table)
{
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    contrib(g, "QLinearSigmoid", "s", "x xs xz ms mz");
    contrib(g, "QLinearMul", "a", "x xs xz s ms mz ys yz");
    contrib(g, "QLinearLeakyRelu", "b", "a ys yz xs xz");
    contrib(g, "QLinearSigmoid", "y", "b xs xz ms mz");
    outputs(g, "a y");
    CHECK_OK(finish(m, "byte-tables", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    CHECK_EQ(count_ops(p, "ByteTable"), 2);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(operands_of_a_sum_have_a_table_each)
{
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "z", byte, DIMS(1, 3, 1, 1));
    contrib(g, "QLinearSigmoid", "s", "x xs xz ms mz");
    contrib(g, "QLinearSigmoid", "t", "z xs xz ms mz");
    contrib(g, "QLinearAdd", "a", "s ms mz t ms mz ms mz");
    contrib(g, "QLinearLeakyRelu", "y", "a ms mz ys yz");
    outputs(g, "y");
    CHECK_OK(finish(m, "byte-tables", &p));
    CHECK_EQ(p->n_live_nodes, 4);
    CHECK_EQ(count_ops(p, "ByteTable"), 3);
    CHECK_EQ(count_ops(p, "QLinearAdd"), 1);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(long_chains_become_a_few_tables)
{
    enum { LINKS = 150 };
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    char from[16] = "x", to[16], ins[64];
    for (int i = 0; i < LINKS; i++) {
        snprintf(to, sizeof to, "v%d", i);
        snprintf(ins, sizeof ins, "%s xs xz xs xz", from);
        contrib(g, "QLinearLeakyRelu", to, ins);
        memcpy(from, to, sizeof from);
    }
    outputs(g, to);
    CHECK_OK(finish(m, "byte-tables", &p));
    CHECK_EQ(count_ops(p, "ByteTable"), p->n_live_nodes);
    CHECK(p->n_live_nodes < 5);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(quantised_models_get_tables_behind_fuse_qdq)
{
    static const char *const passes[] = {"fold-constants", "common-subexpressions", "fuse-qdq",
                                         "byte-tables", NULL};
    sn_model *m = begin(0);
    sn_graph *g = m->graph;
    notations_between(g);
    outputs(g, "y");
    sn_graph *p = with_passes(m, passes);
    const sn_node *t = p ? only_node(p) : NULL;
    CHECK(t != NULL);
    if (t) {
        CHECK_EQ(t->n_origins, 6);
        CHECK_STR(t->shown_type, "Sigmoid");
        CHECK_STR(t->post_op, "QuantizeLinear+Mul+QuantizeLinear");
    }
    end_pass_model(m, p);
}

static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = begin(fail_at);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    hard_swish_written_out((*m)->graph);
    contrib((*m)->graph, "QLinearSigmoid", "z", "y ys yz ms mz");
    outputs((*m)->graph, "y z");
    return build_status ? build_status : finish(*m, "byte-tables", p);
}

TEST(every_failing_allocation_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
