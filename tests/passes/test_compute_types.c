/* SPDX-License-Identifier: Apache-2.0 */
/* Values of 16-bit models become f32 between steps that compute in f32: where conversions go, what
 * stays in the type of the file, and that nothing leaks when memory runs out. (That results stay
 * the same is in tests/python/test_package_half.py.) */
#include "passes/interpret.h"

/* A constant in f16. */
static sn_value *const_f16(sn_graph *g, const char *name, int rank, const int64_t *dims)
{
    sn_value *v = const_f32(g, name, 0, rank, dims);
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    if (!v || !t) {
        build_note(SONDE_OUT_OF_MEMORY);
        return NULL;
    }
    *t = *v->fact.data;
    const int64_t n = sn_tensor_count(t);
    uint16_t *half = SN_NEW_N(g->arena, uint16_t, n + 1);
    for (int64_t i = 0; half && i < n; i++)
        half[i] = sn_f32_to_f16(((const float *)t->data)[i]);
    t->dtype = SONDE_DTYPE_F16;
    t->data = half;
    t->bytes = (size_t)n * sizeof *half;
    build_note(half ? sn_value_set_constant(g, v, t, &err) : SONDE_OUT_OF_MEMORY);
    return v;
}

static sn_value *named(const sn_graph *g, const char *name)
{
    for (size_t i = 0; i < g->values.n; i++)
        if (g->values.data[i] && strcmp(g->values.data[i]->name, name) == 0)
            return g->values.data[i];
    return NULL;
}

static sn_dtype dtype_of(const sn_graph *g, const char *name)
{
    const sn_value *v = named(g, name);
    return v ? v->fact.type.dtype : SONDE_DTYPE_UNDEFINED;
}

/* x ► Conv ► Relu ► Reshape ► MatMul ► y, with weights and a bias. */
static sonde_status chain(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    sn_graph *g = (*m)->graph;
    typed_input(g, "x", SONDE_DTYPE_F16, DIMS(1, 16, 4, 4));
    const_f16(g, "w", DIMS(16, 16, 1, 1));
    const_f16(g, "b", DIMS(16));
    node(g, "Conv", "c", "x w b");
    node(g, "Relu", "r", "c");
    const_i64(g, "shape", 2, (int64_t[]){16, 16});
    node(g, "Reshape", "s", "r shape");
    const_f16(g, "v", DIMS(16, 8));
    node(g, "MatMul", "y", "s v");
    outputs(g, "y");
    return build_status ? build_status : finish(*m, "compute-types", p);
}

TEST(values_between_steps_are_f32_and_weights_stay)
{
    sn_model *m;
    sn_graph *p;
    CHECK_OK(chain(0, &m, &p));
    CHECK_EQ(count_ops(p, "Cast"), 2);
    CHECK_STR(p->first->op_type, "Cast");
    CHECK_STR(p->last->op_type, "Cast");
    CHECK_STR(p->last->shown_type, "[Convert]");
    CHECK_EQ(dtype_of(p, "x"), SONDE_DTYPE_F16);
    CHECK_EQ(dtype_of(p, "y"), SONDE_DTYPE_F16);
    CHECK_STR(p->outputs.data[0]->name, "y");
    CHECK(dtype_of(p, "c") == SONDE_DTYPE_F32 && dtype_of(p, "s") == SONDE_DTYPE_F32);
    const sn_node *conv = named(p, "c")->producer;
    CHECK(conv->narrow_weights);
    CHECK_EQ(conv->in[1].value->fact.type.dtype, SONDE_DTYPE_F16); /* as in the file */
    CHECK_EQ(conv->in[2].value->fact.type.dtype, SONDE_DTYPE_F32); /* converted once */
    end_pass_model(m, p);
}

TEST(a_refused_allocation_is_reported)
{
    check_failing_allocations(chain);
}

TEST(what_rounds_or_compares_keeps_the_type_of_the_file)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4));
    typed_input(g, "z", SONDE_DTYPE_F16, DIMS(4));
    sn_attr to = {.name = "to", .kind = SN_ATTR_INT, .n = 1, .i = SONDE_DTYPE_F16};
    build_note(sn_node_set_attr(g, node(g, "Cast", "n", "x"), &to, &err));
    node(g, "Add", "a", "n z");
    node(g, "Less", "l", "a z"); /* a rounded, as the file says */
    node(g, "Neg", "y", "a");
    outputs(g, "l y");
    CHECK_OK(finish(m, "compute-types", &p));
    CHECK_EQ(dtype_of(p, "n"), SONDE_DTYPE_F16);
    CHECK_EQ(dtype_of(p, "a"), SONDE_DTYPE_F32);
    const sn_node *less = named(p, "l")->producer;
    CHECK(less->in[0].value->fact.type.dtype == SONDE_DTYPE_F16);
    CHECK(less->in[1].value == named(p, "z"));
    CHECK_EQ(count_ops(p, "Cast"), 5); /* the file's; n, z, a, and the output y */
    end_pass_model(m, p);
}

TEST(elements_that_only_move_follow_their_neighbours)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F16, DIMS(2, 3));
    const_f16(g, "table", DIMS(10, 3));
    const_i64(g, "rows", 2, (int64_t[]){1, 4});
    node(g, "Transpose", "t", "x"); /* from and to the type of the file: no reason to convert */
    node(g, "Relu", "r", "x");
    node(g, "Concat", "c", "r r");
    build_note(sn_node_set_attr(g, named(g, "c")->producer,
                                &(sn_attr){.name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = 0},
                                &err));
    node(g, "Exp", "e", "c");
    node(g, "Gather", "k", "table rows"); /* not the table, but what is picked of it */
    node(g, "Add", "s", "k r");
    outputs(g, "t e s");
    CHECK_OK(finish(m, "compute-types", &p));
    CHECK_EQ(dtype_of(p, "t"), SONDE_DTYPE_F16);
    CHECK(named(p, "t")->producer->in[0].value == named(p, "x"));
    CHECK_EQ(dtype_of(p, "c"), SONDE_DTYPE_F32);
    CHECK_EQ(dtype_of(p, "k"), SONDE_DTYPE_F16);
    CHECK_EQ(dtype_of(p, "table"), SONDE_DTYPE_F16);
    CHECK_EQ(count_ops(p, "Cast"), 4); /* x, k, and the outputs e and s */
    end_pass_model(m, p);
}

TEST_MAIN()
