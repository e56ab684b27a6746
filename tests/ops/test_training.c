/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and optimiser steps, by hand. */
#include "ops/one_node.h"

static bool near(const sn_slot *s, size_t i, double want)
{
    const double got = (double)((const float *)s->t.data)[i];
    if (fabs(got - want) <= 1e-5 * (1 + fabs(want)))
        return true;
    fprintf(stderr, "element %zu: got %g, expected %g\n", i, got, want);
    return false;
}

static void nll(one_node *c, const char *reduction, bool weights)
{
    node_begin(c, "NegativeLogLikelihoodLoss", 13, 3, 1);
    node_text(c, "reduction", reduction);
    node_f32(c, 0, SHAPE(2, 3, 2), 1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2);
    node_i64(c, 1, SHAPE(2, 2), 2, 1, 0, 2);
    if (weights)
        node_f32(c, 2, SHAPE(3), 0.2f, 0.3f, 0.1f);
    node_run(c);
}

TEST(the_loss_picks_the_labels_and_weighs_them)
{
    one_node c;
    nll(&c, "none", false);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2)));
    static const double want[] = {-3, -2, 0, -2};
    for (size_t i = 0; i < 4; i++)
        CHECK(near(&c.out[0], i, want[i]));
    node_end(&c);
    nll(&c, "sum", true);
    NODE_OK(&c);
    CHECK(near(&c.out[0], 0, -1.1));
    node_end(&c);
    nll(&c, "mean", true);
    NODE_OK(&c);
    CHECK(near(&c.out[0], 0, -1.1 / 0.7));
    node_end(&c);
}

TEST(a_label_outside_of_the_classes_is_refused_unless_it_is_the_ignored_one)
{
    for (int ignored = 0; ignored < 2; ignored++) {
        one_node c;
        node_begin(&c, "SoftmaxCrossEntropyLoss", 13, 2, 2);
        if (ignored)
            node_int(&c, "ignore_index", 9);
        node_f32(&c, 0, SHAPE(2, 2), 0, 0, 3, 3);
        node_i64(&c, 1, SHAPE(2), 1, 9);
        CHECK_EQ(node_run(&c), ignored ? SONDE_OK : SONDE_RUNTIME);
        if (ignored) {
            CHECK(near(&c.out[0], 0, log(2)));
            for (size_t i = 0; i < 4; i++)
                CHECK(near(&c.out[1], i, -log(2)));
        }
        node_end(&c);
    }
}

static void optimizer(one_node *c, const char *name, uint32_t n_in, uint32_t n_out, int64_t t)
{
    node_begin(c, name, 1, n_in, n_out);
    c->n->domain = "ai.onnx.preview.training";
    node_float(c, "norm_coefficient", 0.5f);
    node_f32(c, 0, SCALAR, 0.1f);
    node_i64(c, 1, SCALAR, t);
    node_f32(c, 2, SHAPE(1), 2); /* x; with the penalty the gradient becomes 0.5 · 2 + 3 = 4 */
    node_f32(c, 3, SHAPE(1), 3);
    node_f32(c, 4, SHAPE(1), 9); /* state */
}

TEST(adagrad_adds_up_squares)
{
    one_node c;
    optimizer(&c, "Adagrad", 5, 2, 2);
    node_float(&c, "decay_factor", 0.5f);
    node_float(&c, "epsilon", 0);
    node_run(&c);
    NODE_OK(&c);
    CHECK(near(&c.out[0], 0, 2 - 0.05 * 4 / 5));
    CHECK(near(&c.out[1], 0, 25));
    node_end(&c);
}

TEST(momentum_counts_the_first_gradient_fully)
{
    for (int nesterov = 0; nesterov < 2; nesterov++)
        for (int64_t t = 0; t < 2; t++) {
            one_node c;
            optimizer(&c, "Momentum", 5, 2, t);
            node_text(&c, "mode", nesterov ? "nesterov" : "standard");
            node_float(&c, "alpha", 0.5f);
            node_float(&c, "beta", 0.25f);
            node_run(&c);
            NODE_OK(&c);
            const double v = 0.5 * 9 + (t ? 0.25 : 1) * 4;
            CHECK(near(&c.out[1], 0, v));
            CHECK(near(&c.out[0], 0, 2 - 0.1 * (nesterov ? 4 + 0.5 * v : v)));
            node_end(&c);
        }
}

TEST(adam_corrects_its_rate_by_the_count)
{
    one_node c;
    optimizer(&c, "Adam", 6, 3, 2);
    node_f32(&c, 5, SHAPE(1), 4);
    node_float(&c, "alpha", 0.5f);
    node_float(&c, "beta", 0.5f);
    node_float(&c, "epsilon", 0);
    node_float(&c, "norm_coefficient_post", 0.1f);
    node_run(&c);
    NODE_OK(&c);
    const double v = 0.5 * 9 + 0.5 * 4, h = 0.5 * 4 + 0.5 * 16, rate = 0.1 * sqrt(0.75) / 0.75;
    CHECK(near(&c.out[0], 0, 0.9 * (2 - rate * v / sqrt(h))));
    CHECK(near(&c.out[1], 0, v));
    CHECK(near(&c.out[2], 0, h));
    node_end(&c);
}

TEST(tensors_that_do_not_come_in_whole_groups_are_refused)
{
    one_node c;
    optimizer(&c, "Adam", 5, 1, 0);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST_MAIN()
