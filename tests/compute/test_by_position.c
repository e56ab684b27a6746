/* SPDX-License-Identifier: Apache-2.0 */
/* Triangles, reversed sequences and one-hot rows against saying it of each element. */
#include "compute/by_position.h"

#include "levels.h"

TEST(triangles_of_every_shape_and_diagonal)
{
    for (int trial = 0; trial < 200; trial++) {
        const sn_triangle t = {.matrices = test_between(1, 3),
                               .rows = test_between(1, 6),
                               .columns = test_between(1, 6),
                               .diagonal = test_between(-9, 9),
                               .upper = trial % 2,
                               .elem_bytes = 2};
        uint16_t x[108], y[108];
        for (int i = 0; i < 108; i++)
            x[i] = y[i] = (uint16_t)(i + 1);
        const bool in_place = trial % 3 == 0;
        sn_triangle_run(&t, y, in_place ? y : x, NULL);
        for (int64_t i = 0; i < t.matrices * t.rows * t.columns; i++) {
            const int64_t row = i / t.columns % t.rows, column = i % t.columns;
            const bool kept = t.upper ? column - row >= t.diagonal : column - row <= t.diagonal;
            CHECK_MSG(y[i] == (kept ? x[i] : 0), "trial %d, element %lld", trial, (long long)i);
        }
    }
}

TEST(sequences_are_reversed_as_far_as_they_go)
{
    for (int time_first = 0; time_first < 2; time_first++) {
        const sn_reverse r = {.batches = 3, .times = 4, .time_first = time_first, .row_bytes = 3};
        const int32_t lengths[3] = {4, 0, 3};
        uint8_t x[36], y[36];
        int64_t bad = 0;
        for (int i = 0; i < 36; i++)
            x[i] = (uint8_t)i;
        CHECK(sn_reverse_run(&r, y, x, (sn_elems){SONDE_DTYPE_I32, (void *)(uintptr_t)lengths},
                             &bad));
        for (int64_t b = 0; b < 3; b++)
            for (int64_t t = 0; t < 4; t++) {
                const int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
                const int64_t to_row = time_first ? t * 3 + b : b * 4 + t,
                              from_row = time_first ? from * 3 + b : b * 4 + from;
                CHECK(memcmp(y + to_row * 3, x + from_row * 3, 3) == 0);
            }
        const int32_t wrong[3] = {4, 5, 3};
        CHECK(
            !sn_reverse_run(&r, y, x, (sn_elems){SONDE_DTYPE_I32, (void *)(uintptr_t)wrong}, &bad));
        CHECK_EQ(bad, 5);
    }
}

TEST(one_hot_rows_are_on_at_the_index_alone)
{
    const sn_one_hot h = {.count = 6, .depth = 4, .inner = 3, .elem_bytes = 4};
    const int64_t index[6] = {0, 3, -1, -4, 4, -5};
    const float off = -1, on = 2;
    float y[24];
    sn_one_hot_run(&h, y, (sn_elems){SONDE_DTYPE_I64, (void *)(uintptr_t)index}, &off, &on, NULL);
    for (int64_t i = 0; i < 6; i++)
        for (int64_t d = 0; d < 4; d++) {
            const bool hit = index[i] == d || index[i] + 4 == d;
            CHECK_MSG(y[(i / 3 * 4 + d) * 3 + i % 3] == (hit ? on : off), "index %lld, depth %lld",
                      (long long)i, (long long)d);
        }
    const sn_one_hot none = {.count = 0, .depth = 4, .inner = 1, .elem_bytes = 4};
    sn_one_hot_run(&none, NULL, (sn_elems){SONDE_DTYPE_I64, NULL}, &off, &on, NULL);
}

TEST_MAIN()
