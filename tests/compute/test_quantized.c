/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized bytes: rows through a table. The rest is tested with the operators
 * (tests/ops/test_contrib.c). */
#include "compute/quantized.h"

#include <string.h>

#include "levels.h"
#include "test.h"

TEST(rows_go_through_the_table_and_what_lies_between_stays)
{
    uint8_t table[256], x[6] = {0, 1, 2, 3, 254, 255}, y[9];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(255 - i);
    memset(y, 77, sizeof y);
    sn_q8_table_rows_run(0, table, y + 1, 3, x, 3, 2, NULL);
    const uint8_t want[9] = {77, 255, 254, 77, 253, 252, 77, 1, 0};
    CHECK(memcmp(y, want, sizeof y) == 0);
}

TEST(a_table_is_the_same_at_every_level_and_in_place)
{
    enum { N = 5000 };
    uint8_t table[256], x[N], y[N];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 7 + 3);
    for (const level *l = levels(); l->name; l++) {
        for (int i = 0; i < N; i++)
            x[i] = (uint8_t)test_rand();
        sn_q8_table_run(l->flags, table, y, x, N, NULL);
        for (int i = 0; i < N; i++)
            CHECK_MSG(y[i] == (uint8_t)(x[i] * 7 + 3), "%s: %d at %d", l->name, x[i], i);
        sn_q8_table_run(l->flags, table, x, x, N, NULL);
        CHECK_MSG(memcmp(x, y, N) == 0, "%s: in place", l->name);
    }
}

TEST(rows_of_a_table_that_changes_nothing_are_copied)
{
    uint8_t table[256], x[6] = {9, 1, 2, 3, 254, 255}, y[9];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)i;
    memset(y, 77, sizeof y);
    sn_q8_table_rows_run(0, table, y + 1, 3, x, 3, 2, NULL);
    const uint8_t want[9] = {77, 9, 1, 77, 2, 3, 77, 254, 255};
    CHECK(memcmp(y, want, sizeof y) == 0);
}

TEST_MAIN()
