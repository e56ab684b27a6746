/* SPDX-License-Identifier: Apache-2.0 */
/* Rows added to rows that repeat: what a residual or a bias is before a softmax or a normalisation.
 */
#ifndef SN_COMPUTE_ROW_SUM_H
#define SN_COMPUTE_ROW_SUM_H

#include "base/pool.h"
#include "sonde/types.h"

/* y[r] = a[r] + b[r / repeat % b_rows] + c, rows of n elements. */
typedef struct sn_row_sum {
    sonde_dtype dtype; /* F32 or F64 */
    int64_t rows, n;
    int64_t repeat, b_rows; /* at least 1 where there are rows */
} sn_row_sum;
/* c may be NULL. */
void sn_row_sum_run(const sn_row_sum *s, void *y, const void *a, const void *b, const void *c,
                    sn_pool *pool);

#endif
