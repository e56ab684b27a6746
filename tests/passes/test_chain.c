/* SPDX-License-Identifier: Apache-2.0 */
/* Widening and depthwise convolutions that become one node: which do, which do not, and that the
 * numbers stay. */
#include "passes/interpret.h"

typedef struct shape {
    int64_t images, channels, wide, size, kernel, stride;
    bool bias, act, silu;
} shape;

static const shape usual = {1, 16, 72, 70, 3, 1, true, true, false};

static sn_node *conv(sn_graph *g, const char *out, const char *in, int64_t oc, int64_t ic,
                     int64_t k, int64_t stride, bool bias)
{
    char b[80];
    snprintf(b, sizeof b, "b_%s", out);
    if (bias)
        const_f32(g, b, 1, DIMS(oc));
    sn_node *n = conv_node(g, out, in, oc, ic, k, bias ? b : NULL);
    attr_ints(g, n, "strides", DIMS(stride, stride));
    return n;
}

static const char *act(sn_graph *g, const shape *s, const char *out, const char *in)
{
    char gate[80], pair[160];
    if (!s->act)
        return in;
    if (!s->silu) {
        node(g, "Relu", out, in);
        return out;
    }
    snprintf(gate, sizeof gate, "%s_gate", out);
    snprintf(pair, sizeof pair, "%s %s", in, gate);
    node(g, "Sigmoid", gate, in);
    node(g, "Mul", out, pair);
    return out;
}

static sn_model *chain_model(const shape *s)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(s->images, s->channels, s->size, s->size));
    conv(g, "a", "x", s->wide, s->channels, 1, 1, s->bias);
    sn_node *n = conv(g, "c", act(g, s, "b", "a"), s->wide, 1, s->kernel, s->stride, s->bias);
    attr_int(g, n, "group", s->wide);
    outputs(g, act(g, s, "d", "c"));
    return m;
}

TEST(widening_and_depthwise_convolution_become_one_node)
{
    static const shape shapes[] = {{1, 16, 72, 70, 3, 1, true, true, false},
                                   {1, 24, 64, 70, 3, 2, true, true, true},
                                   {2, 10, 60, 70, 5, 2, false, true, true},
                                   {3, 16, 96, 56, 7, 1, true, false, false},
                                   {1, 8, 20, 130, 3, 2, false, false, true}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int blocked = 0; blocked < 2; blocked++) {
            const char *const names[] = {"fuse-conv", "depthwise-chain",
                                         blocked ? "blocked-layout" : NULL, NULL};
            sn_model *m = chain_model(&shapes[i]);
            sn_graph *p = with_passes(m, names);
            if (!p)
                return;
            CHECK_EQ(count_ops(p, "ConvDepthwise"), 1);
            CHECK_EQ(p->n_live_nodes, blocked ? 3 : 1); /* with a reorder at both ends */
            CHECK_EQ(count_ops(p, "Reorder"), blocked ? 2 : 0);
            check_same(m, p, 1e-4);
            end_pass_model(m, p);
        }
    }
}

TEST(a_chain_shows_the_first_convolution_and_all_origins)
{
    static const char *const names[] = {"fuse-conv", "depthwise-chain", NULL};
    sn_model *m = chain_model(&usual);
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_STR(p->first->post_op, "Relu+Conv+Relu");
    CHECK_STR(m->origins.list.data[p->first->anchor].name, "n_a");
    CHECK_EQ(p->first->n_origins, 4);
    end_pass_model(m, p);
}

TEST(what_lies_between_must_be_large_and_read_once)
{
    static const char *const names[] = {"fuse-conv", "depthwise-chain", NULL};
    shape small = usual;
    small.size = 30;
    sn_model *m = chain_model(&small);
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "ConvDepthwise"), 0);
    end_pass_model(m, p);

    m = chain_model(&usual);
    outputs(m->graph, "b");
    p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "ConvDepthwise"), 0);
    end_pass_model(m, p);
}

TEST(other_convolutions_stay)
{
    static const char *const names[] = {"fuse-conv", "depthwise-chain", NULL};
    for (int k = 0; k < 4; k++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, 16, 140, 140));
        if (k == 0) { /* not pointwise */
            conv(g, "a", "x", 64, 16, 3, 1, true);
        } else if (k == 1) { /* strided */
            conv(g, "a", "x", 64, 16, 1, 2, true);
        } else if (k == 2) { /* padded */
            sn_node *n = conv(g, "a", "x", 64, 16, 1, 1, true);
            attr_ints(g, n, "pads", DIMS(1, 1, 1, 1));
        } else {
            conv(g, "a", "x", 64, 16, 1, 1, true);
        }
        sn_node *n = conv(g, "y", "a", 64, k == 3 ? 2 : 1, 3, 1, true);
        attr_int(g, n, "group", k == 3 ? 32 : 64); /* k 3: groups of two */
        outputs(g, "y");
        sn_graph *p = with_passes(m, names);
        if (!p)
            return;
        CHECK_EQ(count_ops(p, "ConvDepthwise"), 0);
        end_pass_model(m, p);
    }
}

TEST_MAIN()
