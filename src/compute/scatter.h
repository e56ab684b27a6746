/* SPDX-License-Identifier: Apache-2.0 */
/* Elements or rows of a tensor replaced, or combined with new ones, at places given by index;
 * gather.h says what the indices mean. All indices are looked at before the result is touched;
 * should they change afterwards, nothing outside of it is written. */
#ifndef SN_COMPUTE_SCATTER_H
#define SN_COMPUTE_SCATTER_H

#include "compute/gather.h"

/* How a new element meets the old one. */
typedef enum sn_scatter {
    SN_SCATTER_REPLACE,
    SN_SCATTER_ADD,
    SN_SCATTER_MUL,
    SN_SCATTER_MIN, /* min and max keep a NaN of either side */
    SN_SCATTER_MAX,
    SN_SCATTER_COUNT
} sn_scatter;
/* REPLACE is for every type; the others for native numbers, 16-bit floats and bool (or, and). */
bool sn_scatter_supported(sn_scatter how, sonde_dtype t);

/* y = x of `count` elements with the updates applied in order; y may be x. Sizes of elements are
 * those of `dtype`. False: an index is outside, y is as it was. */
typedef struct sn_scatter_data {
    sn_scatter how;
    sonde_dtype dtype;
    int64_t count;
    void *y;
    const void *x, *updates;
    sn_elems index;
    uint32_t cpu_flags;
} sn_scatter_data;
bool sn_scatter_elements_run(const sn_indexed_axis *g, const sn_scatter_data *d, sn_bad_index *bad,
                             sn_pool *pool);
bool sn_scatter_nd_run(const sn_indexed_rows *g, const sn_scatter_data *d, sn_bad_index *bad,
                       sn_pool *pool);

/* Rows of `len` positions written into rows of `max`, from a position on and round the end. Batch
 * entry b has `rows_per_batch` rows, which begin at first[b]; first NULL: at 0. len <= max, a
 * negative first counts as 0. */
typedef struct sn_scatter_positions {
    int64_t batches, rows_per_batch, max, len;
    size_t position_bytes;
} sn_scatter_positions;
void sn_scatter_positions_run(const sn_scatter_positions *p, void *y, const void *updates,
                              const int64_t *first);

#endif
