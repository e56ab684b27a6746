/* SPDX-License-Identifier: Apache-2.0 */
/* Elements or rows picked by index; scatter.h has the way back. Elements are opaque bytes. Indices
 * are integers, i32 or i64 where rows are picked; negative ones count from the end of their axis.
 */
#ifndef SN_COMPUTE_GATHER_H
#define SN_COMPUTE_GATHER_H

#include "base/pool.h"
#include "compute/element.h"

#define SN_INDEXED_RANK 16

/* An index that is outside its axis. */
typedef struct sn_bad_index {
    int64_t index, dim;
} sn_bad_index;
enum { SN_INDEX_LINE = 256 };
/* Indices first … first + n - 1 (at most SN_INDEX_LINE), those below zero counted from the end. One
 * that is outside becomes 0 and is reported. */
bool sn_index_line(sn_elems index, int64_t first, int64_t n, int64_t dim, int64_t *out,
                   sn_bad_index *bad);
/* Are all of n indices inside an axis of `dim` entries? */
bool sn_indices_inside(sn_elems index, int64_t n, int64_t dim, sn_bad_index *bad);

/* y[outer][n_index][row] = x[outer][dim][row] at these indices. */
typedef struct sn_gather_rows {
    int64_t outer, dim, n_index;
    int64_t row_bytes;
} sn_gather_rows;
/* The caller has looked at the indices. Should they have changed since, no row outside is read. */
void sn_gather_rows_run(const sn_gather_rows *g, void *y, const void *x, sn_elems index,
                        sn_pool *pool);

/* One index per element of a tensor of these dims: it replaces the coordinate of one axis. */
typedef struct sn_indexed_axis {
    size_t elem_bytes;
    int rank;
    int64_t dims[SN_INDEXED_RANK];      /* of the indices */
    ptrdiff_t strides[SN_INDEXED_RANK]; /* of what is indexed, in elements; 0 along the axis */
    int64_t dim;                        /* the axis of what is indexed: its entries and stride */
    ptrdiff_t step;
    int64_t count; /* of the indices */
} sn_indexed_axis;
/* y is dense. False: an index is outside, and y is not complete. */
bool sn_gather_elements_run(const sn_indexed_axis *g, void *y, const void *x, sn_elems index,
                            sn_bad_index *bad);

/* Tuples of `depth` indices into the leading axes: each names a row. With batches, tuple t belongs
 * to batch t / per_batch, whose axes begin batch_elems elements after the one before. */
typedef struct sn_indexed_rows {
    size_t elem_bytes;
    int depth;
    int64_t dims[SN_INDEXED_RANK]; /* of the indexed axes, and their strides in elements */
    ptrdiff_t strides[SN_INDEXED_RANK];
    int64_t tuples, per_batch, batch_elems;
    int64_t row; /* elements */
} sn_indexed_rows;
/* y is dense. False: an index is outside, and y is not complete. */
bool sn_gather_nd_run(const sn_indexed_rows *g, void *y, const void *x, sn_elems index,
                      sn_bad_index *bad);

/* Steps a row-major position over `rank` dims and returns the new offset in a tensor of those
 * strides; wraps to the start after the last. */
static inline ptrdiff_t sn_next_offset(int64_t *at, const int64_t *dims, const ptrdiff_t *strides,
                                       int rank, ptrdiff_t offset)
{
    for (int k = rank - 1; k >= 0; k--) {
        offset += strides[k];
        if (++at[k] < dims[k])
            return offset;
        at[k] = 0;
        offset -= (ptrdiff_t)dims[k] * strides[k];
    }
    return offset;
}

#endif
