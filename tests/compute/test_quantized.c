/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized bytes: rows through a table. The rest is tested with the operators
 * (tests/ops/test_contrib.c). */
#include "compute/quantized.h"

#include <string.h>

#include "test.h"

TEST(rows_go_through_the_table_and_what_lies_between_stays)
{
    uint8_t table[256], x[6] = {0, 1, 2, 3, 254, 255}, y[9];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(255 - i);
    memset(y, 77, sizeof y);
    sn_q8_table_rows_run(table, y + 1, 3, x, 3, 2);
    const uint8_t want[9] = {77, 255, 254, 77, 253, 252, 77, 1, 0};
    CHECK(memcmp(y, want, sizeof y) == 0);
}

TEST_MAIN()
