/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of a tensor. Nearest picks elements of any type through one index table per axis. Linear
 * and cubic are separable: one pass per resized axis, in f32; other numbers are converted before
 * and after. resize_axis.h says what the tables hold. */
#ifndef SN_COMPUTE_RESIZE_H
#define SN_COMPUTE_RESIZE_H

#include "base/pool.h"
#include "compute/resize_axis.h"

#define SN_RESIZE_RANK 16
typedef struct sn_resize {
    sn_resize_how how;
    sonde_dtype dtype;
    int rank;
    sn_resize_axis axes[SN_RESIZE_RANK];
    /* Images whose axis 1 is in blocks of so many channels and stays as it is; with channels last
     * (nearest only) the block is all of them; 0: plain. */
    int64_t block;
    float outside; /* TF_CROP_AND_RESIZE: what stands outside of the region */
    uint32_t cpu_flags;
} sn_resize;

typedef struct sn_resize_scratch {
    /* Nearest: an int64_t per output position of every axis. Else: an int32_t and a weight per
     * output position and tap (sn_resize_taps). */
    void *index[SN_RESIZE_RANK];
    float *weight[SN_RESIZE_RANK];
    /* Not for nearest: as many elements as the largest tensor on the way, padding lanes included.
     */
    float *buffers[2];
} sn_resize_scratch;

/* Is this axis worked on in a linear or cubic resize? */
bool sn_resize_changes(const sn_resize *r, int axis);
/* x and y do not overlap; no dim of y is 0. */
void sn_resize_run(const sn_resize *r, void *y, const void *x, const sn_resize_scratch *s,
                   sn_pool *pool);

#endif
