/* SPDX-License-Identifier: Apache-2.0 */
/* Mean 0 and variance 1 over any set of axes: (x - mean) / (standard deviation + 1e-9). f32 and
 * f64.
 */
#ifndef SN_COMPUTE_MEAN_VARIANCE_H
#define SN_COMPUTE_MEAN_VARIANCE_H

#include "compute/eltwise.h"
#include "compute/reduce.h"

typedef struct sn_mean_variance {
    sonde_dtype dtype;
    sn_reduce_plan mean, squares;
    sn_bcast bcast; /* the tensor against one number per kept element */
    sn_elt sub, div;
    int64_t stats; /* kept elements: what the scratch of a run has room for */
} sn_mean_variance;

void sn_mean_variance_make(sn_mean_variance *m, sonde_dtype t, const int64_t *dims, int rank,
                           const bool *reduced, uint32_t cpu_flags);
/* y may be x. */
void sn_mean_variance_run(const sn_mean_variance *m, void *y, const void *x, void *scratch,
                          sn_pool *pool);

#endif
