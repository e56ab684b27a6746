/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of convolutions of one value: one convolution where their windows fit into one another. */
#include "passes/interpret.h"

/* A square window of k pixels; `groups` of as many outputs as inputs. */
static sn_node *branch(sn_graph *g, const char *out, int64_t channels, int64_t groups, int64_t k,
                       int64_t stride, bool bias)
{
    char b[80];
    snprintf(b, sizeof b, "b_%s", out);
    if (bias)
        const_f32(g, b, 0, DIMS(channels));
    sn_node *n = conv_node(g, out, "x", channels, channels / groups, k, bias ? b : NULL);
    attr_int(g, n, "group", groups);
    attr_ints(g, n, "strides", DIMS(stride, stride));
    return n;
}

static void normalise(sn_graph *g, const char *out, int64_t channels)
{
    const_f32(g, "scale", 1, DIMS(channels));
    const_f32(g, "shift", 0, DIMS(channels));
    const_f32(g, "mean", 0, DIMS(channels));
    const_f32(g, "var", 1.5f, DIMS(channels));
    node(g, "BatchNormalization", out, "x scale shift mean var");
}

static sonde_status three_branches(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = image_model(fail_at, 4, 6, 5);
    if (!*m)
        return SONDE_OUT_OF_MEMORY;
    sn_graph *g = (*m)->graph;
    branch(g, "a", 4, 1, 1, 1, true);
    branch(g, "b", 4, 1, 3, 1, false);
    normalise(g, "c", 4);
    node(g, "Add", "ab", "a b");
    node(g, "Add", "y", "c ab");
    outputs(g, "y");
    return build_status ? build_status : finish(*m, "parallel-convs", p);
}

TEST(branches_of_three_kinds_become_one_convolution)
{
    sn_model *m;
    sn_graph *p;
    CHECK_OK(three_branches(0, &m, &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_EQ(p->first->n_origins, 5);
    CHECK_STR(p->outputs.data[0]->name, "y");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(refused_allocations_are_reported)
{
    check_failing_allocations(three_branches);
}

TEST(groups_strides_and_sizes_are_kept)
{
    static const struct {
        int64_t channels, groups, large, small, stride;
    } cases[] = {{6, 6, 3, 1, 1}, {6, 6, 7, 3, 2}, {6, 2, 5, 3, 1}, {4, 1, 7, 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int turned = 0; turned < 2; turned++) {
            sn_model *m = image_model(0, cases[i].channels, 9, 7);
            sn_graph *g = m->graph, *p = NULL;
            branch(g, "a", cases[i].channels, cases[i].groups, cases[i].large, cases[i].stride,
                   turned);
            branch(g, "b", cases[i].channels, cases[i].groups, cases[i].small, cases[i].stride,
                   true);
            node(g, "Add", "y", turned ? "b a" : "a b");
            outputs(g, "y");
            CHECK_OK(finish(m, "parallel-convs", &p));
            CHECK_EQ(p->n_live_nodes, 1);
            CHECK_EQ(p->first->in[1].value->fact.data->dims[2], cases[i].large);
            check_same(m, p, 1e-4);
            end_pass_model(m, p);
        }
}

TEST(normalisation_joins_a_depthwise_convolution)
{
    sn_model *m = image_model(0, 6, 9, 7);
    sn_graph *g = m->graph, *p = NULL;
    branch(g, "a", 6, 6, 3, 1, false);
    normalise(g, "b", 6);
    node(g, "Add", "y", "b a");
    outputs(g, "y");
    CHECK_OK(finish(m, "parallel-convs", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(a_line_of_samples_joins_too)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 11));
    const_f32(g, "w5", 0, DIMS(4, 3, 5));
    const_f32(g, "w3", 0, DIMS(4, 3, 3));
    sn_node *a = node(g, "Conv", "a", "x w5"), *b = node(g, "Conv", "b", "x w3");
    attr_ints(g, a, "pads", DIMS(4, 4));
    attr_ints(g, a, "dilations", DIMS(2));
    attr_ints(g, b, "pads", DIMS(2, 2));
    attr_ints(g, b, "dilations", DIMS(2));
    node(g, "Add", "y", "a b");
    outputs(g, "y");
    CHECK_OK(finish(m, "parallel-convs", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(what_does_not_fit_stays)
{
    enum { READ_TWICE, OTHER_STRIDE, OTHER_VALUE, OTHER_DILATION, STRIDED_NORM, CASES };
    for (int i = 0; i < CASES; i++) {
        sn_model *m = image_model(0, 4, 6, 6);
        sn_graph *g = m->graph, *p = NULL;
        branch(g, "a", 4, 1, 3, i == STRIDED_NORM ? 2 : 1, true);
        if (i == STRIDED_NORM) {
            normalise(g, "n", 4);
            node(g, "MaxPool", "b", "n");
            attr_ints(g, g->last, "kernel_shape", DIMS(2, 2));
            attr_ints(g, g->last, "strides", DIMS(2, 2));
        } else {
            sn_node *b = branch(g, "b", 4, 1, 3, 1, true);
            if (i == OTHER_VALUE) {
                node(g, "Neg", "z", "x");
                sn_node_set_input(b, 0, g->last->out[0]);
                sn_node_move(g, b, NULL);
            }
            if (i == OTHER_DILATION) {
                attr_ints(g, b, "dilations", DIMS(2, 2));
                attr_ints(g, b, "pads", DIMS(2, 2, 2, 2));
            }
            if (i == OTHER_STRIDE) {
                attr_ints(g, b, "dilations", DIMS(1, 1));
                attr_ints(g, b, "strides", DIMS(2, 2));
                attr_ints(g, b, "pads", DIMS(4, 4, 4, 4)); /* the same size, other pixels */
            }
        }
        node(g, "Add", "y", "a b");
        outputs(g, i == READ_TWICE ? "y a" : "y");
        const uint32_t before = g->n_live_nodes;
        CHECK_OK(finish(m, "parallel-convs", &p));
        CHECK_MSG(p->n_live_nodes == before, "case %d", i);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST_MAIN()
