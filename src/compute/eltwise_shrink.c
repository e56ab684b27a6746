/* SPDX-License-Identifier: Apache-2.0 */
/* Shrinking: numbers near zero become zero, the others move towards it by a bias. */
#include "compute/element.h"
#include "compute/eltwise.h"

typedef struct job {
    sonde_dtype dtype;
    void *y;
    const void *x;
    double bias, lambda;
} job;

static void shrink_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const double v = sn_elem_f64(j->dtype, j->x, i);
        sn_elem_set_f64(j->dtype, j->y, i,
                        v < -j->lambda  ? v + j->bias
                        : v > j->lambda ? v - j->bias
                                        : 0.0);
    }
}

void sn_shrink_run(sonde_dtype t, void *y, const void *x, size_t n, double bias, double lambda,
                   sn_pool *pool)
{
    job j = {t, y, x, bias, lambda};
    sn_parallel_range(pool, n, 8, shrink_range, &j);
}
