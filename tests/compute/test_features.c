/* SPDX-License-Identifier: Apache-2.0 */
/* Features: columns picked by index. The rest is tested with the operators (tests/ops/test_ml.c).
 */
#include "compute/features.h"

#include <string.h>

#include "test.h"

TEST(features_are_picked_from_every_row)
{
    const int32_t x[6] = {1, 2, 3, 4, 5, 6};
    const int64_t index[4] = {2, 0, 2, 1};
    const int32_t want[8] = {3, 1, 3, 2, 6, 4, 6, 5};
    int32_t y[8];
    int64_t bad = -1;
    CHECK(sn_features_pick(y, x, sizeof *x, 2, 3, index, 4, &bad));
    CHECK(memcmp(y, want, sizeof y) == 0);
}

TEST(a_feature_outside_is_refused_before_anything_is_written)
{
    const uint8_t x[3] = {1, 2, 3};
    uint8_t y[2] = {9, 9};
    int64_t bad = 0;
    CHECK(!sn_features_pick(y, x, 1, 1, 3, (int64_t[]){0, 3}, 2, &bad));
    CHECK_EQ(bad, 3);
    CHECK(!sn_features_pick(y, x, 1, 1, 3, (int64_t[]){0, -1}, 2, &bad));
    CHECK_EQ(bad, -1);
    CHECK(y[0] == 9 && y[1] == 9);
}

TEST_MAIN()
