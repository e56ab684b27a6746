/* SPDX-License-Identifier: Apache-2.0 */
/* Two reductions and two functions with broadcasting. The variance is taken of centred numbers, so
 * that it does not cancel. */
#include "compute/mean_variance.h"

#include <math.h>

void sn_mean_variance_make(sn_mean_variance *m, sonde_dtype t, const int64_t *dims, int rank,
                           const bool *reduced, uint32_t cpu_flags)
{
    int64_t kept[SN_REDUCE_RANK];
    for (int i = 0; i < rank; i++)
        kept[i] = reduced[i] ? 1 : dims[i];
    m->dtype = t;
    sn_reduce_make(&m->mean, SN_REDUCE_MEAN, t, dims, rank, reduced, cpu_flags);
    sn_reduce_make(&m->squares, SN_REDUCE_SUM_SQUARE, t, dims, rank, reduced, cpu_flags);
    const int64_t *both[2] = {dims, kept};
    const int ranks[2] = {rank, rank};
    sn_bcast_plan(&m->bcast, dims, rank, 2, both, ranks);
    sn_binary_get(&m->sub, SN_BINARY_SUB, t, cpu_flags);
    sn_binary_get(&m->div, SN_BINARY_DIV, t, cpu_flags);
    m->stats = m->mean.out_count;
}

void sn_mean_variance_run(const sn_mean_variance *m, void *y, const void *x, void *scratch,
                          sn_pool *pool)
{
    const double n = (double)m->mean.red_count;
    sn_reduce_run(&m->mean, scratch, x, pool);
    sn_binary_run(&m->sub, &m->bcast, y, x, scratch, NULL, pool);
    sn_reduce_run(&m->squares, scratch, y, pool);
    if (m->dtype == SONDE_DTYPE_F64) {
        double *stat = scratch;
        for (int64_t i = 0; i < m->stats; i++)
            stat[i] = sqrt(stat[i] / n) + 1e-9;
    } else {
        float *stat = scratch;
        for (int64_t i = 0; i < m->stats; i++)
            stat[i] = (float)(sqrt((double)stat[i] / n) + 1e-9);
    }
    sn_binary_run(&m->div, &m->bcast, y, y, scratch, NULL, pool);
}
