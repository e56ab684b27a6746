/* SPDX-License-Identifier: Apache-2.0 */
/* ImageScaler: a scale for all, a bias per channel. */
#include "ops/one_node.h"

static void scaler(one_node *c, size_t n_bias)
{
    static const float bias[] = {1, -1, 0.5f};
    node_begin(c, "ImageScaler", 1, 1, 1);
    node_float(c, "scale", 2);
    node_attr(c, (sn_attr){.name = "bias", .kind = SN_ATTR_FLOATS, .n = n_bias, .floats = bias});
    node_f32(c, 0, SHAPE(2, 2, 1, 2), 1, 2, 3, 4, 5, 6, 7, 8);
}

TEST(every_channel_gets_its_bias_in_every_image)
{
    one_node c;
    scaler(&c, 2);
    NODE_CHECK(&c, node_run(&c));
    CHECK(has_shape(&c.out[0], SHAPE(2, 2, 1, 2)));
    static const float want[] = {3, 5, 5, 7, 11, 13, 13, 15};
    CHECK_EQ(first_difference(&c.out[0], want, 8, 0), -1);
    node_end(&c);
}

TEST(biases_that_do_not_fit_the_channels_are_refused)
{
    one_node c;
    scaler(&c, 3);
    CHECK(node_run(&c) != SONDE_OK);
    CHECK_HAS(c.err.message, "3 biases for 2 channels");
    node_end(&c);
}

TEST_MAIN()
