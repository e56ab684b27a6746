/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its logarithm, and the one-hot of the maximum, along the middle of [outer][n][inner]. */
#ifndef SN_COMPUTE_SOFTMAX_H
#define SN_COMPUTE_SOFTMAX_H

#include "base/pool.h"
#include "kernels/kernels.h"

typedef enum sn_softmax_kind { SN_SOFTMAX, SN_LOG_SOFTMAX, SN_HARDMAX } sn_softmax_kind;

typedef struct sn_softmax_plan {
    sn_softmax_kind kind;
    sonde_dtype dtype; /* f32 or f64 */
    int64_t outer, n, inner;
    /* chosen */
    const sn_kernels *kernels;
    const char *name;
} sn_softmax_plan;
/* Picks the kernels for a CPU, once everything above is set. */
void sn_softmax_choose_kernels(sn_softmax_plan *p, uint32_t cpu_flags);

/* y may be x. */
void sn_softmax_run(const sn_softmax_plan *p, void *y, const void *x, sn_pool *pool);

#endif
