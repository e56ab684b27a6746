/* SPDX-License-Identifier: Apache-2.0 */
/* ImageScaler: a scale for all, a bias per channel. */
#include "ops/op_test.h"

static void scaler(size_t n_bias)
{
    static const float bias[] = {1, -1, 0.5f};
    op_begin("ImageScaler", 1);
    op_float("scale", 2);
    sn_attr *a = op_attr("bias", SN_ATTR_FLOATS);
    a->n = n_bias;
    a->floats = bias;
    op_f32("2 2 1 2", 1, 2, 3, 4, 5, 6, 7, 8);
}

TEST(every_channel_gets_its_bias_in_every_image)
{
    scaler(2);
    CHECK_OK(op_run(1));
    CHECK(op_has_shape(0, "2 2 1 2"));
    static const float want[] = {3, 5, 5, 7, 11, 13, 13, 15};
    CHECK_EQ(op_differs(0, want, 8, 0), -1);
    op_end();
}

TEST(biases_that_do_not_fit_the_channels_are_refused)
{
    scaler(3);
    CHECK(op_run(1) != SONDE_OK);
    CHECK_HAS(err.message, "3 biases for 2 channels");
    op_end();
}

TEST_MAIN()
