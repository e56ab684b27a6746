/* SPDX-License-Identifier: Apache-2.0 */
/* The blocked layout: where reorders go, how many there are, and that results stay the same. */
#include "passes/interpret.h"

static sn_node *conv(sn_graph *g, const char *out, const char *in, int64_t oc, int64_t ic)
{
    return conv_node(g, out, in, oc, ic, 3, NULL);
}

TEST(a_chain_of_convolutions_has_reorders_at_its_ends_only)
{
    sn_model *m = image_model(0, 32, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 32, 32);
    node(g, "Relu", "b", "a");
    conv(g, "c", "b", 32, 32);
    node(g, "Add", "d", "c b");
    node(g, "Tanh", "e", "d");
    conv(g, "y", "e", 32, 32);
    outputs(g, "y");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 2);
    CHECK_STR(p->first->op_type, "Reorder");
    CHECK_EQ(p->first->n_origins, 1);
    CHECK_STR(p->last->op_type, "Reorder");
    CHECK_STR(p->outputs.data[0]->name, "y");
    CHECK(sn_form_is_native(p->outputs.data[0]->fact.form));
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(one_reorder_serves_all_readers)
{
    sn_model *m = image_model(0, 16, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 16, 16);
    conv(g, "b", "x", 16, 16);
    const_f32(g, "row", 0, DIMS(5));
    node(g, "Add", "c", "a row"); /* along the width: plain */
    node(g, "Mul", "d", "a row");
    conv(g, "e", "a", 16, 16);
    outputs(g, "b c d e");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 4); /* x, a, and the outputs b and e */
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(an_output_that_is_read_on_keeps_its_name)
{
    sn_model *m = image_model(0, 16, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 16, 16);
    conv(g, "y", "a", 16, 16);
    node(g, "Neg", "z", "a");
    outputs(g, "a y z");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_STR(p->outputs.data[0]->name, "a");
    CHECK(sn_form_is_native(p->outputs.data[0]->fact.form));
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(elementwise_nodes_far_from_convolutions_stay_plain)
{
    sn_model *m = image_model(0, 16, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    node(g, "Relu", "a", "x");
    node(g, "Neg", "b", "a");
    node(g, "Add", "y", "a b");
    conv(g, "c", "x", 16, 16);
    sn_node *sm = node(g, "Softmax", "s", "c");
    attr_int(g, sm, "axis", 1);
    node(g, "Relu", "z", "s");
    outputs(g, "y z");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 2); /* into and out of the convolution */
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(free_dims_are_no_obstacle)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    int64_t dims[] = {sn_dim_symbol(sn_graph_symbol(g, "N")), 20, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    typed_input(g, "x", SONDE_DTYPE_F32, 4, dims);
    conv(g, "a", "x", 20, 20);
    node(g, "Sigmoid", "b", "a");
    conv(g, "y", "b", 20, 20);
    outputs(g, "y");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 2);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(a_gate_per_channel_keeps_the_blocks)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 20, 6, 5));
    conv(g, "a", "x", 20, 20);
    node(g, "GlobalAveragePool", "s", "a");
    const_f32(g, "wf", 0, DIMS(20, 20, 1, 1));
    node(g, "Conv", "f", "s wf");
    node(g, "Sigmoid", "gate", "f");
    node(g, "Mul", "b", "a gate"); /* [N, C, H, W] by [N, C, 1, 1] */
    scalar_f32(g, "k", 0.75f);
    node(g, "Mul", "c", "b k");
    const_f32(g, "k3", 0, DIMS(20, 1, 1));
    node(g, "Relu", "c2", "c");
    node(g, "Add", "d", "k3 c2"); /* a constant per channel, put into blocks */
    const_f32(g, "k4", 2, DIMS(1, 20, 6, 5));
    node(g, "Div", "e", "d k4");
    conv(g, "y", "e", 20, 20);
    outputs(g, "y");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 3); /* the ends, and the pooled pixel */
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(parts_of_whole_blocks_are_joined_and_cut_in_blocks)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 16, 6, 5));
    conv(g, "a", "x", 16, 16);
    conv(g, "b", "x", 32, 16);
    conv(g, "c", "x", 20, 16);
    sn_node *join = node(g, "Concat", "j", "a b c"); /* the last part may end inside a block */
    attr_int(g, join, "axis", 1);
    node(g, "Relu", "r", "j");
    sn_node *cut = node(g, "Split", "h k", "r");
    attr_int(g, cut, "axis", -3);
    attr_ints(g, cut, "split", DIMS(48, 20));
    cut->opset = 11;
    conv(g, "y", "h", 16, 48);
    conv(g, "z", "k", 16, 20);
    outputs(g, "y z");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 3); /* one input, two outputs */
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(a_part_that_is_an_output_is_reordered_behind_the_cut)
{
    sn_model *m = image_model(0, 32, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 64, 32);
    sn_node *cut = node(g, "Split", "h k", "a");
    attr_int(g, cut, "axis", 1);
    attr_int(g, cut, "num_outputs", 2);
    cut->opset = 18;
    conv(g, "y", "h", 16, 32);
    conv(g, "z", "k", 16, 32);
    outputs(g, "k y z");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 4);
    CHECK_STR(p->outputs.data[0]->name, "k");
    CHECK(sn_form_is_native(p->outputs.data[0]->fact.form));
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(images_are_resized_in_blocks)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    for (int k = 0; k < 3; k++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 20, 6, 5));
        conv(g, "a", "x", 20, 20);
        sn_value *by = const_f32(g, "scales", 0, DIMS(4));
        float *f = by->fact.data->data;
        f[0] = f[1] = 1.0f;
        f[2] = 2.0f;
        f[3] = 1.5f;
        node(g, "Resize", "b", "a _ scales");
        attr_text(g, g->last, "mode", modes[k]);
        conv(g, "y", "b", 20, 20);
        outputs(g, "y");
        CHECK_OK(finish(m, "blocked-layout", &p));
        CHECK_EQ(count_ops(p, "Reorder"), 2);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

/* A convolution of a line, an image or a volume, all windows of one pixel. */
static void pointwise(sn_graph *g, const char *out, const char *in, int64_t oc, int64_t ic,
                      int rank)
{
    char w[80], ins[200];
    snprintf(w, sizeof w, "w_%s", out);
    const_f32(g, w, 0, rank, (int64_t[]){oc, ic, 1, 1, 1});
    snprintf(ins, sizeof ins, "%s %s", in, w);
    node(g, "Conv", out, ins);
}

TEST(parts_that_end_inside_a_block_are_joined_and_cut_in_blocks)
{
    static const int64_t sizes[][2] = {{20, 32}, {17, 47}, {40, 17}, {16, 23}};
    for (int rank = 3; rank <= 5; rank++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int64_t a = sizes[i][0], b = sizes[i][1];
            sn_model *m = pass_model(0);
            sn_graph *g = m->graph, *p = NULL;
            typed_input(g, "x", SONDE_DTYPE_F32, rank, (int64_t[]){2, 16, 3, 4, 5});
            pointwise(g, "a", "x", a, 16, rank);
            pointwise(g, "b", "x", b, 16, rank);
            sn_node *join = node(g, "Concat", "j", "a b");
            attr_int(g, join, "axis", 1 - rank);
            sn_node *cut = node(g, "Split", "h k", "j");
            attr_int(g, cut, "axis", 1);
            attr_ints(g, cut, "split", DIMS(b, a));
            cut->opset = 11;
            pointwise(g, "y", "h", 16, b, rank);
            pointwise(g, "z", "k", 16, a, rank);
            outputs(g, "y z");
            CHECK_OK(finish(m, "blocked-layout", &p));
            CHECK_EQ(count_ops(p, "Reorder"), 3); /* x, y, z */
            check_same(m, p, 1e-4);
            end_pass_model(m, p);
        }
}

TEST(images_are_sliced_in_blocks)
{
    static const struct {
        int64_t axis, start, end, step;
    } cases[] = {{1, 0, 20, 1}, {1, 5, 38, 1},  {1, 16, 32, 1},  {-3, -19, 1000, 1},
                 {2, 1, 5, 1},  {3, 0, 100, 2}, {-1, -1, -6, -2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 16, 6, 5));
        pointwise(g, "a", "x", 40, 16, 4);
        const_i64(g, "starts", 1, &cases[i].start);
        const_i64(g, "ends", 1, &cases[i].end);
        const_i64(g, "axes", 1, &cases[i].axis);
        const_i64(g, "steps", 1, &cases[i].step);
        node(g, "Slice", "b", "a starts ends axes steps");
        const int64_t left[] = {20, 33, 16, 19, 40, 40, 40};
        pointwise(g, "y", "b", 16, left[i], 4);
        outputs(g, "y");
        CHECK_OK(finish(m, "blocked-layout", &p));
        CHECK_MSG(count_ops(p, "Reorder") == 2, "case %zu", i);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(all_passes_together_compute_the_same)
{
    for (int block = 8; block <= 16; block += 8) {
        sn_model *m = image_model(0, 3, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        if (block == 8) {
            pass_cpu_flags &= ~(uint32_t)SN_CPU_AVX512;
            build_ctx.cpu.flags = pass_cpu_flags;
        }
        conv(g, "a", "x", 24, 3); /* first layer */
        const_f32(g, "scale", 1, DIMS(24));
        const_f32(g, "var", 1.5f, DIMS(24));
        node(g, "BatchNormalization", "b", "a scale scale scale var");
        node(g, "Relu", "c", "b");
        sn_node *pool = node(g, "MaxPool", "d", "c");
        attr_ints(g, pool, "kernel_shape", DIMS(2, 2));
        attr_ints(g, pool, "strides", DIMS(2, 2));
        conv(g, "e", "d", 24, 24);
        node(g, "BatchNormalization", "f", "e scale scale scale var");
        node(g, "Add", "h", "f d");
        node(g, "Relu", "i", "h");
        node(g, "GlobalAveragePool", "j", "i");
        sn_node *fl = node(g, "Flatten", "k", "j");
        attr_int(g, fl, "axis", 1);
        const_f32(g, "fc", 0, DIMS(10, 24));
        const_f32(g, "fb", 0, DIMS(10));
        sn_node *gemm = node(g, "Gemm", "l", "k fc fb");
        attr_int(g, gemm, "transB", 1);
        node(g, "Softmax", "y", "l");
        outputs(g, "y");
        CHECK_OK(finish(m, NULL, &p));
        CHECK_EQ(count_ops(p, "BatchNormalization") + count_ops(p, "Relu") + count_ops(p, "Add"),
                 0);
        CHECK_EQ(count_ops(p, "FusedConv"), 2);
        CHECK(count_ops(p, "Reorder") <= 1);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

/* Everything from building to the last pass, with the k-th allocation refused. */
static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return build_status;
    sn_graph *g = (*m)->graph;
    if (!typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, 16, 4, 4)) || !conv(g, "a", "x", 16, 16) ||
        !const_f32(g, "scale", 1, DIMS(16)))
        return SONDE_OUT_OF_MEMORY;
    node(g, "BatchNormalization", "b", "a scale scale scale scale");
    node(g, "Relu", "c", "b");
    node(g, "Neg", "k", "scale");
    node(g, "Identity", "id", "c");
    if (!conv(g, "d", "id", 16, 16))
        return SONDE_OUT_OF_MEMORY;
    node(g, "Add", "e", "d c");
    outputs(g, "e k");
    if (build_status != SONDE_OK)
        return build_status;
    return finish(*m, NULL, p);
}

TEST(every_failing_allocation_in_a_pass_is_reported)
{
    check_failing_allocations(whole);
}

TEST(the_residual_of_a_fused_convolution_from_a_file_lies_like_its_output)
{
    sn_model *m = image_model(0, 16, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "z", SONDE_DTYPE_F32, DIMS(1, 16, 6, 5));
    conv(g, "a", "x", 16, 16);
    const_f32(g, "w", 0, DIMS(16, 16, 1, 1));
    const_f32(g, "bias", 0, DIMS(16));
    sn_node *n = node(g, "FusedConv", "y", "a w bias z");
    n->domain = "com.microsoft";
    n->opset = 1;
    outputs(g, "y");
    CHECK_OK(finish(m, "blocked-layout", &p));
    CHECK_EQ(count_ops(p, "Reorder"), 3); /* x, z and y */
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST_MAIN()
