/* SPDX-License-Identifier: Apache-2.0 */
/* Between tokens and images: views, layouts, and functions behind them. */
#include "passes/interpret.h"

enum { H = 6, W = 5, C = 32 };

/* tokens [batch, H·W, C] ► image "<out>" [batch, C, H, W]. */
static void image_of(sn_graph *g, const char *out, const char *tokens, const char *shape)
{
    char t[40], ins[80];
    snprintf(t, sizeof t, "t_%s", out);
    snprintf(ins, sizeof ins, "%s %s", t, shape);
    attr_ints(g, node(g, "Transpose", t, tokens), "perm", DIMS(0, 2, 1));
    node(g, "Reshape", out, ins);
}

static void tokens_of(sn_graph *g, const char *out, const char *image, const char *shape)
{
    char r[40], ins[80];
    snprintf(r, sizeof r, "r_%s", out);
    snprintf(ins, sizeof ins, "%s %s", image, shape);
    node(g, "Reshape", r, ins);
    attr_ints(g, node(g, "Transpose", out, r), "perm", DIMS(0, 2, 1));
}

/* Tokens, a product, a depthwise convolution of them as an image, a function, another product. */
static void hybrid(sn_graph *g, int64_t batch, bool open_batch, bool behind)
{
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(open_batch ? SN_DIM_UNKNOWN : batch, H * W, C));
    const_f32(g, "w", 0, DIMS(C, C));
    const_f32(g, "v", 0, DIMS(C, C));
    const_f32(g, "k", 0, DIMS(C, 1, 3, 3));
    const_i64(g, "image", DIMS(open_batch ? 0 : batch, C, H, W));
    const_i64(g, "tokens", DIMS(open_batch ? 0 : batch, C, H * W));
    node(g, "MatMul", "a", "x w");
    image_of(g, "b", "a", "image");
    sn_node *conv = node(g, "Conv", "c", "b k");
    attr_ints(g, conv, "pads", DIMS(1, 1, 1, 1));
    attr_int(g, conv, "group", C);
    if (!behind)
        node(g, "Gelu", "f", "c")->opset = 20;
    tokens_of(g, behind ? "e" : "d", behind ? "c" : "f", "tokens");
    if (behind)
        node(g, "Gelu", "d", "e")->opset = 20;
    node(g, "MatMul", "y", "d v");
    outputs(g, "y");
}

TEST(tokens_become_an_image_and_back_without_a_reorder)
{
    for (int form = 0; form < 4; form++) {
        sn_model *m = pass_model(0);
        sn_graph *p = NULL;
        hybrid(m->graph, form & 1 ? 2 : 1, false, form & 2);
        CHECK_OK(finish(m, NULL, &p));
        CHECK_EQ(count_ops(p, "Reorder"), 0);
        CHECK_EQ(count_ops(p, "Transpose"), 2);
        CHECK_EQ(count_ops(p, "Gelu"), 0); /* the convolution's */
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(a_batch_that_is_open_changes_nothing)
{
    sn_model *m = pass_model(0);
    sn_graph *p = NULL;
    hybrid(m->graph, 1, true, true);
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(count_ops(p, "Gelu"), 0);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

/* As exporters write layer normalisation of channels: [n, c, h, w] ► [n, h, w, c] and back. */
TEST(a_transpose_makes_and_takes_images_in_blocks)
{
    for (int64_t channels = 16; channels <= 48; channels += 12) {
        sn_model *m = image_model(0, channels, H, W);
        sn_graph *g = m->graph, *p = NULL;
        const_f32(g, "s", 1, DIMS(channels));
        const_f32(g, "b", 0, DIMS(channels));
        conv_node(g, "a", "x", channels, channels, 3, NULL);
        attr_ints(g, node(g, "Transpose", "l", "a"), "perm", DIMS(0, 2, 3, 1));
        node(g, "LayerNormalization", "n", "l s b")->opset = 17;
        attr_ints(g, node(g, "Transpose", "c", "n"), "perm", DIMS(0, 3, 1, 2));
        node(g, "Add", "d", "c a");
        conv_node(g, "y", "d", channels, channels, 3, NULL);
        outputs(g, "y");
        CHECK_OK(finish(m, "blocked-layout", &p));
        if (count_ops(p, "Reorder")) /* convolutions of these channels are in blocks here */
            CHECK_EQ(count_ops(p, "Reorder"), 2);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(views_that_others_read_and_other_views_stay)
{
    for (int form = 0; form < 2; form++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, H * W, C));
        const_i64(g, "image", DIMS(2, H, C, W)); /* the channels are taken apart */
        const_i64(g, "good", DIMS(2, C, H, W));
        attr_ints(g, node(g, "Transpose", "t", "x"), "perm", DIMS(0, 2, 1));
        node(g, "Reshape", "y", form ? "t image" : "t good");
        outputs(g, form ? "y" : "y t");
        CHECK_OK(finish(m, "image-views", &p));
        CHECK_STR(p->first->op_type, "Transpose");
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return build_status;
    sn_graph *g = (*m)->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, H * W, C));
    const_f32(g, "k", 0, DIMS(C, C, 1, 1));
    const_i64(g, "image", DIMS(1, C, H, W));
    const_i64(g, "tokens", DIMS(1, C, H * W));
    image_of(g, "a", "x", "image");
    node(g, "Conv", "b", "a k");
    tokens_of(g, "c", "b", "tokens");
    node(g, "Relu", "y", "c");
    outputs(g, "y");
    if (build_status != SONDE_OK)
        return build_status;
    return finish(*m, NULL, p);
}

TEST(every_failing_allocation_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
