/* SPDX-License-Identifier: Apache-2.0 */
/* Elements kept, reversed or marked by their position. Elements are opaque bytes; results do not
 * overlap their inputs unless it is said. */
#ifndef SN_COMPUTE_BY_POSITION_H
#define SN_COMPUTE_BY_POSITION_H

#include "base/pool.h"
#include "compute/element.h"

/* The upper or lower triangle of matrices, the rest zero bytes. `diagonal` is the last one kept:
 * 0 the main one, positive ones above it. */
typedef struct sn_triangle {
    int64_t matrices, rows, columns, diagonal;
    bool upper;
    size_t elem_bytes;
} sn_triangle;
/* y may be x. */
void sn_triangle_run(const sn_triangle *t, void *y, const void *x, sn_pool *pool);

/* Rows of [batches][times], or of [times][batches], reversed over time as far as a sequence goes.
 */
typedef struct sn_reverse {
    int64_t batches, times;
    bool time_first;
    size_t row_bytes;
} sn_reverse;
/* `lengths`: an integer per batch. False: *bad is not from 0 to `times`, and y is not complete. */
bool sn_reverse_run(const sn_reverse *r, void *y, const void *x, sn_elems lengths, int64_t *bad);

/* y [outer][depth][inner], all *off, but *on where the middle is the index of [outer][inner];
 * negative indices count from the end, those outside mark nothing. */
typedef struct sn_one_hot {
    int64_t count; /* of the indices: outer × inner */
    int64_t depth, inner;
    size_t elem_bytes;
} sn_one_hot;
void sn_one_hot_run(const sn_one_hot *h, void *y, sn_elems index, const void *off, const void *on,
                    sn_pool *pool);

#endif
