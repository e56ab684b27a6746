/* SPDX-License-Identifier: Apache-2.0 */
/* The k largest or smallest along the middle of [outer][n][inner], best first; of equal elements
 * the one with the lower index comes first. A NaN counts as the largest. */
#ifndef SN_COMPUTE_TOPK_H
#define SN_COMPUTE_TOPK_H

#include "base/pool.h"

typedef struct sn_topk {
    sonde_dtype dtype; /* one that is ordered, see element.h */
    bool largest;      /* else the smallest */
    int64_t outer, n, inner;
    int64_t k; /* at most n */
} sn_topk;

/* Bytes of scratch for heaps of k items in this many threads; false: too much. */
bool sn_topk_scratch(int64_t k, int threads, size_t *bytes);
/* values and indices are [outer][k][inner]; either may be NULL. `threads`: as many as the scratch
 * was made for; in a larger pool one thread does it all. */
void sn_topk_run(const sn_topk *p, void *values, int64_t *indices, const void *x, void *scratch,
                 int threads, sn_pool *pool);

#endif
