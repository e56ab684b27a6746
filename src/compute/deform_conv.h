/* SPDX-License-Identifier: Apache-2.0 */
/* Deformable convolution in f32: every tap reads at a position of its own, between elements by
 * linear interpolation; outside of the input lies zero. Samples are gathered straight into the
 * panels the matrix product reads, then one product per image and group. */
#ifndef SN_COMPUTE_DEFORM_CONV_H
#define SN_COMPUTE_DEFORM_CONV_H

#include <stdatomic.h>

#include "compute/gemm.h"

enum { SN_DEFORM_MAX_SPATIAL = 3 };

typedef struct sn_deform_conv_desc {
    int spatial;                                                 /* 1 to 3 */
    int64_t n, groups, offset_groups, in_channels, out_channels; /* channels of one group */
    int64_t in[SN_DEFORM_MAX_SPATIAL], out[SN_DEFORM_MAX_SPATIAL], kernel[SN_DEFORM_MAX_SPATIAL];
    int64_t stride[SN_DEFORM_MAX_SPATIAL], dilation[SN_DEFORM_MAX_SPATIAL],
        pad[SN_DEFORM_MAX_SPATIAL];
    bool bias;
} sn_deform_conv_desc;

typedef struct sn_deform_conv_plan {
    sn_deform_conv_desc d;
    int64_t in_pixels, out_pixels, taps;
    sn_gemm_plan gemm;
    int64_t panel_floats; /* workspace; -1: more than can be counted */
    uint64_t flops;
} sn_deform_conv_plan;

typedef struct sn_deform_conv_args {
    const float *x;            /* [n][groups][in_channels][in] */
    const float *w;            /* [groups][out_channels][in_channels][taps] */
    const float *offset;       /* [n][offset_groups][taps][spatial][out] */
    const float *bias;         /* [groups][out_channels], or NULL */
    const float *mask;         /* [n][offset_groups][taps][out], or NULL: 1 */
    float *y;                  /* [n][groups][out_channels][out] */
    float *panels;             /* workspace */
    const _Atomic int *cancel; /* not 0: stop; may be NULL */
} sn_deform_conv_args;

/* Check panel_floats before the plan runs. */
sonde_status sn_deform_conv_plan_make(sn_deform_conv_plan *p, const sn_deform_conv_desc *d,
                                      uint32_t cpu_flags, size_t l2_bytes, int threads,
                                      sonde_error *err);
/* False: it was cancelled. */
bool sn_deform_conv_run(const sn_deform_conv_plan *p, const sn_deform_conv_args *a, sn_pool *pool);

#endif
