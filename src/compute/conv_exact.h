/* SPDX-License-Identifier: Apache-2.0 */
/* The slow way of a convolution on blocked tensors, for pixels near numbers that are not finite
 * (docs/architecture.md). */
#ifndef SN_COMPUTE_CONV_EXACT_H
#define SN_COMPUTE_CONV_EXACT_H

#include "compute/conv.h"

/* Where a block of output channels of a group, which may be several merged ones, finds its input
 * and weights. */
typedef struct sn_conv_window {
    const float *x;                  /* the first block of channels of the group */
    int64_t x_block, x_slice, x_row; /* from one to the next; pixels are a block apart */
    int64_t w_at, w_block;           /* the first weight; weights of a block of input channels */
    int64_t w_first, w_tap[3];       /* of these the first one, and from tap to tap */
    int64_t first, lanes;            /* the block's first channel, of the group; real ones */
    int64_t channels;                /* input channels that there are */
    float *room;                     /* as sn_conv_wide */
} sn_conv_window;

/* Are groups of the plan merged, with zeros between them? */
bool sn_conv_merges(const sn_conv_plan *p);
/* Sums of the pixel at `at` of a block of channels: depth, row and column of what p->d speaks of.
 */
void sn_conv_exact(const sn_conv_call *c, const sn_conv_window *v, const int64_t *at, float *sums);
/* A pixel's sums, with bias and z (NULL: none), between the plan's limits. y may be z. */
void sn_conv_exact_store(const sn_conv_plan *p, const float *sums, const float *bias,
                         const float *z, float *y);

/* Output pixels from … to-1 of the direct way, of a few blocks of channels. */
typedef struct sn_conv_part {
    int64_t group, block, blocks; /* the first block, of the group */
    int64_t from, to, out_pixels; /* of a plane of y */
    const float *x, *bias, *z;    /* x: as in a window, z: as y, or NULL */
    float *y;
    float *room;
} sn_conv_part;
/* Are all pixels of x finite that the part reads? Merged groups only. */
bool sn_conv_part_is_finite(const sn_conv_plan *p, const sn_conv_part *part);
void sn_conv_part_exact(const sn_conv_call *c, const sn_conv_part *part);

#endif
