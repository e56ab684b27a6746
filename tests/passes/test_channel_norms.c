/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations over the channels of an image: which ones lose the Transposes around them. */
#include "passes/interpret.h"

enum { CHANNELS = 20 };

/* Conv ► Transpose ► norm ► Transpose ► Relu, or without the Conv. */
static sn_model *norm_model(const char *type, bool conv, bool bias, int64_t axis)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, CHANNELS, 6, 5));
    const_f32(g, "scale", 0, DIMS(CHANNELS));
    const_f32(g, "bias", 0, DIMS(CHANNELS));
    if (conv)
        conv_node(g, "a", "x", CHANNELS, CHANNELS, 3, NULL);
    attr_ints(g, node(g, "Transpose", "t", conv ? "a" : "x"), "perm", DIMS(0, 2, 3, 1));
    sn_node *n = node(g, type, "n", bias ? "t scale bias" : "t scale");
    n->opset = bias ? 17 : 23;
    attr_int(g, n, "axis", axis);
    attr_ints(g, node(g, "Transpose", "u", "n"), "perm", DIMS(0, 3, 1, 2));
    node(g, "Relu", "y", "u");
    outputs(g, "y");
    return m;
}

TEST(a_norm_beside_a_convolution_takes_the_image_as_it_lies)
{
    for (int form = 0; form < 4; form++) {
        const char *const names[] = {"channel-norms", form & 2 ? "blocked-layout" : NULL, NULL};
        sn_model *m = norm_model(form & 1 ? "RMSNormalization" : "LayerNormalization", true,
                                 !(form & 1), form & 1 ? 3 : -1);
        sn_graph *p = with_passes(m, names);
        if (!p)
            return;
        CHECK_EQ(count_ops(p, "ChannelNorm"), 1);
        CHECK_EQ(count_ops(p, "Transpose"), 0);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(norms_elsewhere_and_those_that_others_read_stay)
{
    for (int form = 0; form < 2; form++) {
        sn_model *m = norm_model("LayerNormalization", form == 1, true, -1);
        sn_graph *g = m->graph, *p = NULL;
        if (form == 1) {
            node(g, "Relu", "z", "n");
            outputs(g, "z");
        }
        CHECK_OK(finish(m, "channel-norms", &p));
        CHECK_EQ(count_ops(p, "ChannelNorm"), 0);
        CHECK_EQ(count_ops(p, "Transpose"), 2);
        end_pass_model(m, p);
    }
}

TEST_MAIN()
