/* SPDX-License-Identifier: Apache-2.0 */
/* Unpooling: where maxima go, in a result as large as the pooled tensor or larger. */
#include "compute/unpool.h"

#include <string.h>

#include "test.h"

TEST(maxima_go_back_to_where_they_came_from)
{
    const sn_unpool u = {.elem_bytes = sizeof(float),
                         .rank = 4,
                         .pooled = {1, 1, 4, 4},
                         .out = {1, 1, 4, 4},
                         .total = 16};
    const float x[4] = {5, 6, 7, 8};
    const int64_t index[4] = {0, 3, 9, 15};
    float y[16];
    int64_t bad = -1;
    CHECK(sn_unpool_run(&u, y, sizeof y, x, index, 4, &bad));
    for (int i = 0; i < 16; i++)
        CHECK_EQ((int)y[i], i == 0 ? 5 : i == 3 ? 6 : i == 9 ? 7 : i == 15 ? 8 : 0);
}

TEST(a_larger_result_keeps_coordinates_not_positions)
{
    for (size_t bytes = 1; bytes <= 8; bytes *= 2) {
        const sn_unpool u = {
            .elem_bytes = bytes, .rank = 3, .pooled = {2, 2, 3}, .out = {2, 3, 5}, .total = 12};
        uint8_t x[12 * 8], y[30 * 8], want[30 * 8] = {0};
        int64_t index[12], bad = -1;
        for (int i = 0; i < 12; i++) {
            index[i] = 11 - i; /* element 11 - i of [2][2][3] */
            const int a = (11 - i) / 6, b = (11 - i) / 3 % 2, c = (11 - i) % 3;
            memset(x + (size_t)i * bytes, i + 1, bytes);
            memset(want + (size_t)((a * 3 + b) * 5 + c) * bytes, i + 1, bytes);
        }
        CHECK(sn_unpool_run(&u, y, 30 * bytes, x, index, 12, &bad));
        CHECK_MSG(memcmp(y, want, 30 * bytes) == 0, "elements of %zu bytes", bytes);
    }
}

TEST(an_index_outside_is_refused)
{
    const sn_unpool u = {.elem_bytes = 1, .rank = 2, .pooled = {2, 2}, .out = {2, 2}, .total = 4};
    uint8_t y[4];
    int64_t bad = 0;
    CHECK(!sn_unpool_run(&u, y, 4, "ab", (int64_t[]){3, 4}, 2, &bad));
    CHECK_EQ(bad, 4);
    CHECK(!sn_unpool_run(&u, y, 4, "ab", (int64_t[]){-1, 0}, 2, &bad));
    CHECK_EQ(bad, -1);
}

TEST_MAIN()
