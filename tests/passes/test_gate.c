/* SPDX-License-Identifier: Apache-2.0 */
/* Gates per channel that go into the weights of the convolution behind them. */
#include "passes/interpret.h"

static sn_node *conv(sn_graph *g, const char *out, const char *in, int64_t oc, int64_t ic,
                     const char *bias)
{
    if (*bias)
        const_f32(g, bias, 1, DIMS(oc));
    return conv_node(g, out, in, oc, ic, 1, *bias ? bias : NULL);
}

/* An image, its squeeze and excite, and a convolution from c to oc channels with a residual. */
static sn_model *gated_model(int64_t images, int64_t c, int64_t oc, int64_t size, bool first)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(images, 16, size, size));
    conv(g, "a", "x", c, 16, "ba");
    node(g, "GlobalAveragePool", "s", "a");
    conv(g, "f", "s", 8, c, "");
    node(g, "Relu", "r", "f");
    conv(g, "e", "r", c, 8, "be");
    node(g, "Sigmoid", "gate", "e");
    node(g, "Mul", "m", first ? "gate a" : "a gate");
    conv(g, "p", "m", oc, c, images > 1 ? "bp" : "");
    conv(g, "z", "x", oc, 16, "");
    node(g, "Add", "y", "p z");
    return m;
}

TEST(a_gate_goes_into_the_weights)
{
    static const int64_t shapes[][4] = {/* images, channels, out, size */
                                        {1, 32, 24, 9},
                                        {2, 20, 10, 7},
                                        {3, 37, 16, 12}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int blocked = 0; blocked < 2; blocked++) {
            const char *const names[] = {"fuse-conv", "squeeze-excite",
                                         blocked ? "blocked-layout" : NULL, NULL};
            const int64_t *s = shapes[i];
            sn_model *m = gated_model(s[0], s[1], s[2], s[3], i % 2);
            outputs(m->graph, "y");
            sn_graph *p = with_passes(m, names);
            if (!p)
                return;
            CHECK_EQ(count_ops(p, "GatedConv"), 1);
            CHECK_EQ(count_ops(p, "Mul"), 0);
            check_same(m, p, 1e-4);
            end_pass_model(m, p);
        }
    }
}

TEST(a_gated_image_that_others_read_stays)
{
    static const char *const names[] = {"fuse-conv", "squeeze-excite", NULL};
    sn_model *m = gated_model(1, 32, 24, 9, false);
    outputs(m->graph, "y m");
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "GatedConv"), 0);
    end_pass_model(m, p);
}

TEST(more_weights_than_pixels_are_left_alone)
{
    static const char *const names[] = {"fuse-conv", "squeeze-excite", NULL};
    sn_model *m = gated_model(1, 32, 60, 9, false);
    outputs(m->graph, "y");
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "GatedConv"), 0);
    end_pass_model(m, p);
}

TEST(a_product_of_two_images_is_no_gate)
{
    static const char *const names[] = {"squeeze-excite", NULL};
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, 16, 9, 9));
    typed_input(g, "one", SONDE_DTYPE_F32, DIMS(1, 1, 1, 1));
    node(g, "Sigmoid", "s", "x");
    node(g, "Mul", "a", "x s");
    conv(g, "b", "a", 16, 16, "");
    node(g, "Mul", "c", "b one");
    conv(g, "y", "c", 16, 16, "");
    outputs(g, "y");
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "GatedConv"), 0);
    end_pass_model(m, p);
}

TEST_MAIN()
