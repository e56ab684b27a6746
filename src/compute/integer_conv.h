/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of bytes: they become f32 with their zero points taken off, the f32 convolution runs
 * over as many channels as stay exact, and partial sums meet in int32 (see bytes.h). Kernels with
 * more taps than that take plain integer loops. The result is int32, or bytes again. */
#ifndef SN_COMPUTE_INTEGER_CONV_H
#define SN_COMPUTE_INTEGER_CONV_H

#include <stdatomic.h>

#include "compute/bytes.h"
#include "compute/conv.h"

typedef struct sn_integer_conv_plan {
    sn_conv_desc d;                                                 /* the whole convolution */
    sonde_dtype x_type, w_type;                                     /* bytes */
    bool quantized;                                                 /* the result is bytes */
    int64_t in_channels, out_channels, in_pixels, out_pixels, taps; /* channels of one group */
    int64_t chunk, chunks;   /* channels whose sums are exact; 0: plain loops */
    sn_conv_plan plan, last; /* one image, one group, a chunk of channels */
    bool depthwise;          /* groups of one input channel, two-dimensional */
    uint32_t cpu_flags;
    /* Workspace a run needs, in elements; -1: more than can be counted. */
    int64_t w_floats, x_floats, sums_floats, acc_ints;
    size_t core_bytes;
    uint64_t flops;
    const char *name;
} sn_integer_conv_plan;

typedef struct sn_integer_conv_args {
    const void *x, *w;
    int32_t x_zero;
    sn_byte_zeros w_zero; /* one, or one per output channel */
    int32_t *y;           /* int32 result; quantized: NULL */
    /* What turns sums into bytes: y = saturate(round((sum + bias) · x_scale · w_scale / y_scale) +
     * y_zero). */
    void *y_bytes;
    sonde_dtype y_type;
    const int32_t *bias; /* per output channel, or NULL */
    const float *w_scale;
    int64_t w_scales; /* 1, or one per output channel */
    float x_scale, y_scale;
    int32_t y_zero;
    /* workspace, as the plan says; acc is for quantized results */
    float *w_f32, *x_f32, *sums;
    int32_t *acc;
    void *core;
    const _Atomic int *cancel; /* not 0: stop; may be NULL */
} sn_integer_conv_args;

/* `d` says n, c, oc, groups and the spatial arrays. Check the sizes in the plan before it runs. */
sonde_status sn_integer_conv_plan_make(sn_integer_conv_plan *p, const sn_conv_desc *d,
                                       sonde_dtype x, sonde_dtype w, bool quantized,
                                       uint32_t cpu_flags, size_t l2_bytes, int threads,
                                       sonde_error *err);
/* False: it was cancelled. The result has elements. */
bool sn_integer_conv_run(const sn_integer_conv_plan *p, const sn_integer_conv_args *a,
                         sn_pool *pool);

#endif
