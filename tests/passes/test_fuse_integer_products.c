/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes whose sums are scaled behind them: which nodes become one, with the same
 * bits. */
#include "passes/interpret.h"

static const char *const PASS = "fuse-integer-products";
enum { K = 40, N = 24 };

static void const_bytes(sn_graph *g, const char *name, sn_dtype dtype, int rank,
                        const int64_t *dims)
{
    int64_t n = 1;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    uint8_t *data = sn_dims_count(dims, rank, &n) ? SN_NEW_N(g->arena, uint8_t, n) : NULL;
    if (!t || !data) {
        build_note(SONDE_OUT_OF_MEMORY);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        data[i] = (uint8_t)test_rand();
    *t = (sn_tensor){.dtype = dtype, .rank = rank, .data = data, .bytes = (size_t)n};
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    sn_value *v = value(g, name);
    if (v)
        build_note(sn_value_set_constant(g, v, t, &err));
}

/* What a quantiser writes in front: bytes "q" of "x" with scale "qs" and zero point "qz"; weights
 * "w" with "ws" and "wz" (per column: "wsn" and "wzn"), and a bias "b". */
static sn_model *begin(size_t fail_at)
{
    sn_model *m = pass_model(fail_at);
    if (!m)
        return NULL;
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 7, K));
    node(g, "DynamicQuantizeLinear", "q qs qz", "x");
    const_bytes(g, "w", SONDE_DTYPE_I8, DIMS(K, N));
    const_bytes(g, "wz", SONDE_DTYPE_I8, 0, NULL);
    const_bytes(g, "wzn", SONDE_DTYPE_I8, DIMS(N));
    scalar_f32(g, "ws", 0.0137f);
    const_f32(g, "wsn", 2, DIMS(N));
    const_f32(g, "b", 0, DIMS(N));
    return m;
}

static void cast(sn_graph *g, const char *out, const char *in)
{
    attr_int(g, node(g, "Cast", out, in), "to", 1);
}

static void as_the_quantiser_writes_it(sn_graph *g)
{
    node(g, "Mul", "s", "qs ws");
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "m", "f s");
    node(g, "Add", "y", "b m");
}

static void the_other_way_round(sn_graph *g)
{
    node(g, "MatMulInteger", "i", "q w qz wz");
    node(g, "Mul", "s", "ws qs");
    cast(g, "f", "i");
    node(g, "Mul", "m", "s f");
    node(g, "Add", "y", "m b");
}

static void scales_of_columns(sn_graph *g)
{
    node(g, "Mul", "s", "qs wsn");
    node(g, "MatMulInteger", "i", "q w qz wzn");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f s");
}

static void one_constant_scale(sn_graph *g)
{
    node(g, "MatMulInteger", "i", "q w qz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f ws");
}

static void constant_scales_of_columns(sn_graph *g)
{
    const_f32(g, "scales", 0, DIMS(1, 1, N));
    const_f32(g, "bias", 0, DIMS(1, N));
    node(g, "MatMulInteger", "i", "q w qz");
    cast(g, "f", "i");
    node(g, "Mul", "m", "scales f");
    node(g, "Add", "y", "m bias");
}

static void no_zero_points(sn_graph *g)
{
    node(g, "Mul", "s", "qs ws");
    node(g, "MatMulInteger", "i", "q w");
    cast(g, "f", "i");
    node(g, "Mul", "m", "f s");
    node(g, "Add", "y", "m b");
}

static void zero_point_of_the_weights_alone(sn_graph *g)
{
    node(g, "Mul", "s", "qs ws");
    node(g, "MatMulInteger", "i", "q w _ wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f s");
}

static void a_scale_from_elsewhere(sn_graph *g)
{
    node(g, "Sqrt", "s", "qs");
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "m", "f s");
    node(g, "Add", "y", "m b");
}

TEST(scaled_products_become_one_node_with_the_same_bits)
{
    static const struct {
        void (*build)(sn_graph *);
        uint32_t live; /* nodes that are left */
        const char *shown;
    } cases[] = {{as_the_quantiser_writes_it, 2, "Cast+Mul+Add"},
                 {the_other_way_round, 2, "Cast+Mul+Add"},
                 {scales_of_columns, 2, "Cast+Mul"},
                 {one_constant_scale, 2, "Cast+Mul"},
                 {constant_scales_of_columns, 2, "Cast+Mul+Add"},
                 {no_zero_points, 2, "Cast+Mul+Add"},
                 {zero_point_of_the_weights_alone, 2, "Cast+Mul"},
                 {a_scale_from_elsewhere, 3, "Cast+Mul+Add"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = begin(0);
        sn_graph *p = NULL;
        cases[i].build(m->graph);
        outputs(m->graph, "y");
        CHECK_OK(finish(m, PASS, &p));
        CHECK_MSG(count_ops(p, "MatMulIntegerToFloat") == 1, "case %zu", i);
        CHECK_EQ(p->n_live_nodes, cases[i].live);
        CHECK_STR(p->last->shown_type, "MatMulInteger");
        CHECK_STR(p->last->post_op, cases[i].shown);
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

TEST(projections_side_by_side_are_all_found)
{
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    node(g, "Mul", "s", "qs ws");
    node(g, "Mul", "s2", "qs wsn");
    node(g, "MatMulInteger", "i", "q w qz wz");
    node(g, "MatMulInteger", "i2", "q w qz wzn");
    cast(g, "f", "i");
    cast(g, "f2", "i2");
    node(g, "Mul", "m", "f s");
    node(g, "Mul", "m2", "f2 s2");
    node(g, "Add", "y", "m b");
    node(g, "Add", "y2", "m2 b");
    outputs(g, "y y2");
    CHECK_OK(finish(m, PASS, &p));
    CHECK_EQ(count_ops(p, "MatMulIntegerToFloat"), 2);
    CHECK_EQ(p->n_live_nodes, 3);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_scale_that_others_read_stays)
{
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    node(g, "Mul", "s", "qs ws");
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f s");
    node(g, "Neg", "z", "s");
    outputs(g, "y z");
    CHECK_OK(finish(m, PASS, &p));
    CHECK_EQ(count_ops(p, "MatMulIntegerToFloat"), 1);
    CHECK_EQ(count_ops(p, "Mul"), 1);
    CHECK_EQ(p->n_live_nodes, 4);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(an_addend_that_is_no_bias_stays)
{
    sn_model *m = begin(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "r", SONDE_DTYPE_F32, DIMS(2, 7, N));
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "m", "f ws");
    node(g, "Add", "y", "m r");
    outputs(g, "y");
    CHECK_OK(finish(m, PASS, &p));
    CHECK_EQ(count_ops(p, "MatMulIntegerToFloat"), 1);
    CHECK_EQ(count_ops(p, "Add"), 1);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

/* As fuse-qdq leaves it. */
static void to_float(sn_model *m, const char *out, const char *in)
{
    const sn_opset ms = {"com.microsoft", 1};
    if (!sn_vec_push(&m->opsets, m->ctx->alloc, ms))
        build_note(SONDE_OUT_OF_MEMORY);
    sn_node *n = node(m->graph, "MatMulIntegerToFloat", out, in);
    if (n)
        n->domain = "com.microsoft";
}

TEST(a_product_that_makes_floats_takes_the_bias_behind_it)
{
    static const char *const inputs[] = {"q w qs ws", "q w qs ws qz wz", "q w qs wsn qz wzn"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        sn_model *m = begin(0);
        sn_graph *p = NULL;
        to_float(m, "m", inputs[i]);
        node(m->graph, "Add", "y", "b m");
        outputs(m->graph, "y");
        CHECK_OK(finish(m, PASS, &p));
        CHECK_EQ(count_ops(p, "Add"), 0);
        CHECK_STR(p->last->post_op, "Add");
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

TEST(a_product_that_has_a_bias_takes_no_other)
{
    sn_model *m = begin(0);
    sn_graph *p = NULL;
    to_float(m, "m", "q w qs ws qz wz b");
    node(m->graph, "Add", "y", "m b");
    outputs(m->graph, "y");
    CHECK_OK(finish(m, PASS, &p));
    CHECK_EQ(count_ops(p, "Add"), 1);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

/* ------------------------------------------------------------------ what is none */
static void sums_that_others_read(sn_graph *g)
{
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f ws");
    outputs(g, "i");
}

static void floats_that_others_read(sn_graph *g)
{
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f ws");
    outputs(g, "f");
}

static void another_type(sn_graph *g)
{
    node(g, "MatMulInteger", "i", "q w qz wz");
    attr_int(g, node(g, "Cast", "y", "i"), "to", 11);
}

static void scales_of_rows(sn_graph *g)
{
    const_f32(g, "rows", 2, DIMS(7, 1));
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f rows");
}

static void zero_points_of_rows(sn_graph *g)
{
    const_bytes(g, "zeros", SONDE_DTYPE_U8, DIMS(7));
    node(g, "MatMulInteger", "i", "q w zeros wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f ws");
}

static void scale_of_more_dims(sn_graph *g)
{
    const_f32(g, "scale", 2, DIMS(1, 1, 1, 1));
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f scale");
}

static void a_square(sn_graph *g)
{
    node(g, "MatMulInteger", "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f f");
}

static void a_vector(sn_graph *g)
{
    const_bytes(g, "v", SONDE_DTYPE_I8, DIMS(K));
    node(g, "MatMulInteger", "i", "q v qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f ws");
}

TEST(what_is_no_scaled_product_stays)
{
    static void (*const cases[])(sn_graph *) = {
        sums_that_others_read, floats_that_others_read, another_type, scales_of_rows,
        zero_points_of_rows,   scale_of_more_dims,      a_square,     a_vector};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = begin(0);
        sn_graph *p = NULL;
        cases[i](m->graph);
        outputs(m->graph, "y");
        CHECK_OK(finish(m, PASS, &p));
        CHECK_MSG(count_ops(p, "MatMulIntegerToFloat") == 0, "case %zu", i);
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

/* ------------------------------------------------------------------ convolutions */
static sn_model *begin_image(int rank)
{
    static const int64_t x[] = {2, 6, 9, 8}, w[] = {10, 3, 3, 3}, c[] = {10, 1, 1};
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, rank, x);
    node(g, "DynamicQuantizeLinear", "q qs qz", "x");
    const_bytes(g, "w", SONDE_DTYPE_I8, rank, w);
    const_bytes(g, "wz", SONDE_DTYPE_I8, 0, NULL);
    const_bytes(g, "wzn", SONDE_DTYPE_I8, DIMS(10));
    scalar_f32(g, "ws", 0.0137f);
    const_f32(g, "wsn", 2, rank - 1, c);
    const_f32(g, "b", 0, rank - 1, c);
    const_f32(g, "b1", 0, DIMS(1, 10, 1, 1));
    return m;
}

static void conv(sn_graph *g, const char *out, const char *in)
{
    sn_node *n = node(g, "ConvInteger", out, in);
    attr_int(g, n, "group", 2);
    attr_ints(g, n, "strides", DIMS(2, 1));
    attr_ints(g, n, "pads", DIMS(1, 0, 1, 2));
}

TEST(scaled_convolutions_become_one_node_with_the_same_bits)
{
    static const struct {
        const char *in, *scales, *add;
        uint32_t live;
    } cases[] = {{"q w qz wz", "qs ws", "b m", 2},
                 {"q w qz wzn", "wsn qs", "m b1", 2},
                 {"q w", "qs ws", NULL, 2},
                 {"q w _ wz", "qs ws", "b1 m", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = begin_image(4);
        sn_graph *g = m->graph, *p = NULL;
        node(g, "Mul", "s", cases[i].scales);
        conv(g, "i", cases[i].in);
        cast(g, "f", "i");
        node(g, "Mul", "m", "f s");
        if (cases[i].add)
            node(g, "Add", "y", cases[i].add);
        outputs(g, cases[i].add ? "y" : "m");
        CHECK_OK(finish(m, PASS, &p));
        CHECK_EQ(count_ops(p, "ConvIntegerToFloat"), 1);
        CHECK_EQ(p->n_live_nodes, cases[i].live);
        CHECK_STR(p->last->shown_type, "ConvInteger");
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

TEST(convolutions_of_lines_are_found)
{
    sn_model *m = begin_image(3);
    sn_graph *g = m->graph, *p = NULL;
    node(g, "Mul", "s", "qs wsn");
    attr_int(g, node(g, "ConvInteger", "i", "q w qz wzn"), "group", 2);
    cast(g, "f", "i");
    node(g, "Mul", "m", "f s");
    node(g, "Add", "y", "m b");
    outputs(g, "y");
    CHECK_OK(finish(m, PASS, &p));
    CHECK_EQ(count_ops(p, "ConvIntegerToFloat"), 1);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(numbers_along_another_axis_than_the_channels_stay)
{
    sn_model *m = begin_image(4);
    sn_graph *g = m->graph, *p = NULL;
    const_f32(g, "lines", 2, DIMS(5, 1));
    conv(g, "i", "q w qz wz");
    cast(g, "f", "i");
    node(g, "Mul", "y", "f lines");
    outputs(g, "y");
    CHECK_OK(finish(m, PASS, &p));
    CHECK_EQ(count_ops(p, "ConvIntegerToFloat"), 0);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

/* ------------------------------------------------------------------ memory */
static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = begin(fail_at);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    constant_scales_of_columns((*m)->graph);
    outputs((*m)->graph, "y");
    return build_status ? build_status : finish(*m, PASS, p);
}

TEST(every_failing_allocation_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
