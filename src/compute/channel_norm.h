/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of each pixel of an image over its channels: LayerNormalization or RMSNormalization
 * of [n, h, w, channels], for images that lie as [n, channels, h, w], plain or in blocks. f32. */
#ifndef SN_COMPUTE_CHANNEL_NORM_H
#define SN_COMPUTE_CHANNEL_NORM_H

#include "base/pool.h"
#include "base/workspace.h"
#include "kernels/kernels.h"

typedef struct sn_channel_norm {
    int64_t images, channels, pixels;
    int64_t block; /* of the layout; 0: plain */
    bool rms;      /* no mean is taken off */
    float epsilon;
    int threads;
    /* chosen */
    const sn_kernels *kernels;
    const char *name;
    int64_t pitch; /* floats from pixel to pixel in the workspace */
    sn_pieces rows;
    sn_workspace workspace; /* of a run */
} sn_channel_norm;
/* Picks the kernels for a CPU, once everything above is set. */
void sn_channel_norm_plan(sn_channel_norm *p, uint32_t cpu_flags);

/* scale and bias have an element per channel; bias may be NULL. y may be x. */
void sn_channel_norm_run(const sn_channel_norm *p, float *y, const float *x, const float *scale,
                         const float *bias, void *workspace, sn_pool *pool);

#endif
