/* SPDX-License-Identifier: Apache-2.0 */
/* A depthwise convolution over time that sees only the past, and hands the last inputs on as the
 * state of the next call. */
#ifndef SN_COMPUTE_CAUSAL_CONV_H
#define SN_COMPUTE_CAUSAL_CONV_H

#include "base/pool.h"
#include "sonde/types.h"

typedef struct sn_causal_conv_desc {
    int64_t batch, channels, len, taps; /* taps at least 1 */
    bool silu;                          /* the activation x · sigmoid(x) follows */
} sn_causal_conv_desc;

typedef struct sn_causal_conv_args {
    const float *x;    /* [batch][channels][len] */
    const float *w;    /* [channels][taps] */
    const float *bias; /* [channels], or NULL */
    const float *past; /* [batch][channels][taps - 1]; NULL: zeros */
    float *rows;       /* scratch of sn_causal_conv_scratch floats */
    sonde_dtype dtype; /* of the results: F32, F16 or BF16 */
    void *y;           /* like x */
    void *present;     /* like past, or NULL */
} sn_causal_conv_args;

/* Floats; -1: more than can be counted. */
int64_t sn_causal_conv_scratch(const sn_causal_conv_desc *d);
void sn_causal_conv_run(const sn_causal_conv_desc *d, const sn_causal_conv_args *a, sn_pool *pool);

#endif
