/* SPDX-License-Identifier: Apache-2.0 */
/* Adding columns into an image: what Col2Im is and what a transposed convolution ends with. */
#ifndef SN_COMPUTE_FOLD_H
#define SN_COMPUTE_FOLD_H

#include "base/pool.h"
#include "sonde/types.h"

#define SN_FOLD_MAX_RANK 16

/* Spatial dims, outermost first. Position g of axis a with tap k lands on g*stride + k*dilation -
 * pad of the image; what falls outside is dropped. */
typedef struct sn_fold {
    sonde_dtype dtype; /* a native integer, f16, bf16, f32, f64, c64, c128, or bool (or) */
    int rank;          /* at least 1 */
    int64_t image[SN_FOLD_MAX_RANK], kernel[SN_FOLD_MAX_RANK], grid[SN_FOLD_MAX_RANK];
    int64_t stride[SN_FOLD_MAX_RANK], dilation[SN_FOLD_MAX_RANK], pad[SN_FOLD_MAX_RANK];
} sn_fold;

bool sn_fold_takes(sonde_dtype dtype);
/* One channel: y[image] += columns[kernel…][grid…]. Both dense; products of dims do not overflow.
 */
void sn_fold_add(const sn_fold *f, const void *columns, void *y);
/* The same in f32 for each of `channels` that lie side by side, and for `count` positions of the
 * grid from `first` on: y[channel][image] += columns[position][channel][kernel…], a position
 * `width` floats behind the one before it. */
void sn_fold_add_positions(const sn_fold *f, const float *columns, int64_t width, int64_t first,
                           int64_t count, int64_t channels, float *y);
/* sn_fold_add for each of `channels`, into images that are set to zero first. */
void sn_fold_run(const sn_fold *f, int64_t channels, const void *columns, void *y, sn_pool *pool);

#endif
