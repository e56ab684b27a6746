/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any set of axes, index of the largest or smallest element, running sums. */
#ifndef SN_COMPUTE_REDUCE_H
#define SN_COMPUTE_REDUCE_H

#include "base/pool.h"
#include "kernels/kernels.h"

typedef enum sn_reduce {
    SN_REDUCE_SUM,
    SN_REDUCE_MEAN,
    SN_REDUCE_MAX,
    SN_REDUCE_MIN,
    SN_REDUCE_PROD,
    SN_REDUCE_L1,
    SN_REDUCE_SUM_SQUARE,
    /* floats only: */
    SN_REDUCE_L2,
    SN_REDUCE_LOG_SUM,
    SN_REDUCE_LOG_SUM_EXP
} sn_reduce;

#define SN_REDUCE_RANK 16
/* Kept and reduced dims, unit dims dropped, neighbours of one kind joined. */
typedef struct sn_reduce_plan {
    sn_reduce op;
    sonde_dtype dtype;
    const sn_kernels *kernels;
    uint32_t cpu_flags;
    int n_keep, n_red;
    int64_t keep[SN_REDUCE_RANK], red[SN_REDUCE_RANK];
    ptrdiff_t keep_stride[SN_REDUCE_RANK], red_stride[SN_REDUCE_RANK]; /* elements of the input */
    int64_t out_count, red_count;
    bool rows; /* the innermost dim is reduced: an output element is a sum of contiguous rows */
} sn_reduce_plan;

/* Native integers, bool (MAX, MIN), f32, f64, and 16-bit floats (through f32). False: not defined.
 */
bool sn_reduce_supported(sn_reduce op, sonde_dtype t);
void sn_reduce_make(sn_reduce_plan *p, sn_reduce op, sonde_dtype t, const int64_t *dims, int rank,
                    const bool *reduced, uint32_t cpu_flags);
/* An empty reduction gives the neutral element: 0, 1, or the type's limits; a mean of nothing NaN.
 */
void sn_reduce_run(const sn_reduce_plan *p, void *y, const void *x, sn_pool *pool);

/* Index of the largest (or smallest) along the middle of [outer][n][inner]. A NaN counts as the
 * extreme one. Native types; 16-bit floats are converted by the caller. */
typedef struct sn_arg_plan {
    sonde_dtype dtype;
    bool min, last; /* the smallest; the last of equal ones */
    int64_t outer, n, inner;
} sn_arg_plan;
bool sn_arg_supported(sonde_dtype t);
void sn_arg_run(const sn_arg_plan *p, int64_t *y, const void *x, sn_pool *pool);

/* Running sums or products along the middle of [outer][n][inner]; i32, i64, u32, u64, f32, f64. */
typedef struct sn_cum_plan {
    sonde_dtype dtype;
    uint32_t cpu_flags;
    bool product, exclusive, reverse;
    int64_t outer, n, inner;
} sn_cum_plan;
bool sn_cum_supported(sonde_dtype t);
void sn_cum_run(const sn_cum_plan *p, void *y, const void *x, sn_pool *pool);

#endif
