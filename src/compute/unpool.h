/* SPDX-License-Identifier: Apache-2.0 */
/* The way back from a maximum pooling: every maximum goes to the element it came from, the others
 * are zero. Elements are opaque bytes. */
#ifndef SN_COMPUTE_UNPOOL_H
#define SN_COMPUTE_UNPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indices count the elements of a tensor of dims `pooled`, `total` of them. The result's dims `out`
 * are at least as large; what is new lies at the end of each axis. */
enum { SN_UNPOOL_RANK = 16 };
typedef struct sn_unpool {
    size_t elem_bytes;
    int rank;
    int64_t pooled[SN_UNPOOL_RANK], out[SN_UNPOOL_RANK];
    int64_t total;
} sn_unpool;
/* False: *bad, one of the n indices, is outside, and y is not complete. */
bool sn_unpool_run(const sn_unpool *u, void *y, size_t y_bytes, const void *x, const int64_t *index,
                   int64_t n, int64_t *bad);

#endif
