/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations: rows to mean 0 and variance 1 (or to unit mean square), vectors to unit length,
 * responses across channels. Element types f32 and f64. */
#ifndef SN_COMPUTE_NORM_H
#define SN_COMPUTE_NORM_H

#include "base/pool.h"
#include "kernels/kernels.h"

/* [rows][n]: each row is normalised. scale and bias have n elements (may be NULL), or, when `group`
 * is set, belong to pieces of a row: piece g of row r has the single scale[(r % scale_rows) *
 * pieces + g] (instance and group normalisation). mean and inv, where not NULL, get one f32 per
 * row. */
typedef struct sn_norm_plan {
    sonde_dtype dtype;
    bool rms;   /* no mean is taken off */
    bool group; /* scale and bias per piece, see above */
    int64_t rows, n;
    int64_t pieces, scale_rows;
    double epsilon;
    /* chosen */
    const sn_kernels *kernels;
    const char *name;
} sn_norm_plan;
/* Picks the kernels for a CPU, once everything above is set. */
void sn_norm_choose_kernels(sn_norm_plan *p, uint32_t cpu_flags);
void sn_norm_run(const sn_norm_plan *p, void *y, const void *x, const void *scale, const void *bias,
                 float *mean, float *inv, sn_pool *pool);

/* x / |x|_p along the middle of [outer][n][inner], p 1 or 2; a zero vector stays zero. */
typedef struct sn_lpnorm_plan {
    sonde_dtype dtype;
    int p;
    int64_t outer, n, inner;
} sn_lpnorm_plan;
void sn_lpnorm_run(const sn_lpnorm_plan *p, void *y, const void *x, sn_pool *pool);

/* Local response over [batch][channels][inner]: x / (bias + alpha / size * sum of squares over
 * `size` channels around)^beta. f32. y does not overlap x. */
typedef struct sn_lrn_plan {
    int64_t batch, channels, inner, size;
    float alpha, beta, bias;
} sn_lrn_plan;
void sn_lrn_run(const sn_lrn_plan *p, float *y, const float *x, sn_pool *pool);

#endif
