/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a transposed convolution and goes into it. */
#include "passes/interpret.h"

typedef struct transposed_case {
    int64_t in, out, groups;
    bool bias, residual;
    const char *act;
} transposed_case;

static sn_model *transposed_model(const transposed_case *c)
{
    sn_model *m = image_model(0, c->in, 4, 5);
    sn_graph *g = m->graph;
    const_f32(g, "w", 0, DIMS(c->in, c->out / c->groups, 4, 4));
    const_f32(g, "b", 0, DIMS(c->out));
    sn_node *n = node(g, "ConvTranspose", "t", c->bias ? "x w b" : "x w");
    attr_ints(g, n, "strides", DIMS(2, 2));
    attr_ints(g, n, "pads", DIMS(1, 1, 1, 1));
    attr_int(g, n, "group", c->groups);
    if (c->residual) {
        typed_input(g, "z", SONDE_DTYPE_F32, DIMS(1, c->out, 8, 10));
        node(g, "Add", "s", "z t");
    }
    node(g, c->act, "y", c->residual ? "s" : "t");
    outputs(g, "y");
    return m;
}

static void goes_in(const transposed_case *c, bool blocked)
{
    const char *const names[] = {"fuse-conv", blocked ? "blocked-layout" : NULL, NULL};
    char post[40];
    sn_model *m = transposed_model(c);
    sn_graph *p = with_passes(m, names);
    if (!p)
        return;
    CHECK_EQ(count_ops(p, "FusedConvTranspose"), 1);
    CHECK_EQ(count_ops(p, c->act), 0);
    CHECK_EQ(count_ops(p, "Add"), 0);
    snprintf(post, sizeof post, "%s%s", c->residual ? "Add+" : "", c->act);
    for (const sn_node *n = p->first; n; n = n->next)
        if (strcmp(n->op_type, "FusedConvTranspose") == 0)
            CHECK_STR(n->post_op, post);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(residuals_and_activations_go_into_transposed_convolutions)
{
    static const char *const acts[] = {"Relu", "Tanh", "Sigmoid", "LeakyRelu"};
    static const int64_t sizes[][3] = {
        {3, 4, 1}, {32, 48, 1}, {32, 20, 1}, {32, 32, 2}, {20, 3, 1}};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 5; k++)
            for (int form = 0; form < 8; form++) {
                const transposed_case c = {.in = sizes[k][0],
                                           .out = sizes[k][1],
                                           .groups = sizes[k][2],
                                           .bias = form & 1,
                                           .residual = form & 2,
                                           .act = acts[i]};
                goes_in(&c, form & 4);
            }
}

TEST(constants_per_channel_go_into_the_weights_of_transposed_convolutions)
{
    sn_model *m = image_model(0, 6, 4, 5);
    sn_graph *g = m->graph, *p = NULL;
    const_f32(g, "w", 0, DIMS(6, 4, 3, 3));
    const_f32(g, "k", 1, DIMS(4, 1, 1));
    node(g, "ConvTranspose", "t", "x w");
    node(g, "Mul", "s", "t k");
    node(g, "Add", "y", "s k");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-conv", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_STR(p->first->post_op, "Mul+Add");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST_MAIN()
