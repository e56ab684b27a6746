/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows; see row_sum.h. */
#include "compute/row_sum.h"

#include "compute/parallel.h"

typedef struct sum_job {
    const sn_row_sum *s;
    void *y;
    const void *a, *b, *c;
} sum_job;

#define SUM_ROWS(T, NAME)                                                                          \
    static void NAME(void *arg, size_t lo, size_t hi)                                              \
    {                                                                                              \
        const sum_job *j = arg;                                                                    \
        const int64_t n = j->s->n;                                                                 \
        for (int64_t r = (int64_t)lo; r < (int64_t)hi; r++) {                                      \
            const T *a = (const T *)j->a + r * n, *c = j->c;                                       \
            const T *b = (const T *)j->b + r / j->s->repeat % j->s->b_rows * n;                    \
            T *y = (T *)j->y + r * n;                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = a[i] + b[i];                                                                \
            for (int64_t i = 0; c && i < n; i++)                                                   \
                y[i] += c[i];                                                                      \
        }                                                                                          \
    }
SUM_ROWS(float, sum_rows_f32)
SUM_ROWS(double, sum_rows_f64)

void sn_row_sum_run(const sn_row_sum *s, void *y, const void *a, const void *b, const void *c,
                    sn_pool *pool)
{
    sum_job j = {s, y, a, b, c};
    if (s->rows > 0)
        sn_parallel_range(pool, (size_t)s->rows, (size_t)s->n,
                          s->dtype == SONDE_DTYPE_F64 ? sum_rows_f64 : sum_rows_f32, &j);
}
