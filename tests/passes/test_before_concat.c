/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations and activations behind convolutions whose channels are joined. */
#include "passes/interpret.h"

static void normalise(sn_graph *g, const char *out, const char *in, int64_t channels)
{
    char ins[80];
    snprintf(ins, sizeof ins, "%s scale shift mean var", in);
    const_f32(g, "scale", 1, DIMS(channels));
    const_f32(g, "shift", 0, DIMS(channels));
    const_f32(g, "mean", 0, DIMS(channels));
    const_f32(g, "var", 1.5f, DIMS(channels));
    node(g, "BatchNormalization", out, ins);
}

/* Parts of 4, 3 and 5 channels, joined. */
static void joined(sn_graph *g, int64_t axis)
{
    conv_node(g, "a", "x", 4, 3, 3, NULL);
    conv_node(g, "b", "x", 3, 3, 1, NULL);
    conv_node(g, "c", "x", 5, 3, 5, NULL);
    sn_node *join = node(g, "Concat", "j", "a b c");
    attr_int(g, join, "axis", axis);
}

static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = image_model(fail_at, 3, 6, 5);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    sn_graph *g = (*m)->graph;
    joined(g, 1);
    normalise(g, "n", "j", 12);
    sn_node *last = node(g, "LeakyRelu", "y", "n");
    attr_float(g, last, "alpha", 0.3f);
    outputs(g, "y");
    return build_status ? build_status : finish(*m, "before-concat", p);
}

TEST(each_convolution_has_its_own)
{
    sn_model *m;
    sn_graph *p;
    CHECK_OK(whole(0, &m, &p));
    CHECK_EQ(p->n_live_nodes, 10);
    CHECK_STR(p->outputs.data[0]->producer->op_type, "Concat");
    CHECK_STR(p->outputs.data[0]->name, "y");
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST(refused_allocations_are_reported)
{
    check_failing_allocations(whole);
}

TEST(other_axes_and_readers_are_left_alone)
{
    enum { OTHER_AXIS, READ_TWICE, PART_IS_OUTPUT, NO_CONVOLUTION, CASES };
    for (int i = 0; i < CASES; i++) {
        sn_model *m = image_model(0, 3, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        if (i == OTHER_AXIS) {
            conv_node(g, "a", "x", 4, 3, 3, NULL);
            conv_node(g, "b", "x", 4, 3, 1, NULL);
            attr_int(g, node(g, "Concat", "j", "a b"), "axis", 2);
        } else if (i == NO_CONVOLUTION) {
            conv_node(g, "a", "x", 4, 3, 3, NULL);
            attr_int(g, node(g, "Concat", "j", "a x"), "axis", -3);
        } else {
            joined(g, -3);
        }
        node(g, "Relu", "y", "j");
        outputs(g, i == READ_TWICE ? "y j" : i == PART_IS_OUTPUT ? "y b" : "y");
        const uint32_t before = g->n_live_nodes;
        CHECK_OK(finish(m, "before-concat", &p));
        CHECK_MSG(p->n_live_nodes == before, "case %d", i);
        end_pass_model(m, p);
    }
}

TEST_MAIN()
