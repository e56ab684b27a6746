/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes a row at a time; see qgemm.h. */
#include "compute/qgemm.h"

#include <string.h>

#include "compute/parallel.h"

typedef struct row_job {
    const sn_qgemm_desc *d;
    const sn_qgemm_args *a;
} row_job;

/* One function for each way B lies and is signed. Sums wrap as 32 bits do. */
#define SUM_COLUMNS(name, T)                                                                       \
    static void name(const row_job *j, int64_t lo, int64_t hi)                                     \
    {                                                                                              \
        const sn_qgemm_desc *k = j->d;                                                             \
        const T *b = j->a->b;                                                                      \
        uint32_t *acc = (uint32_t *)j->a->sums;                                                    \
        if (k->turn_b) {                                                                           \
            for (int64_t n = lo; n < hi; n++) {                                                    \
                const int32_t zero = sn_byte_zero(&j->a->b_zero, n);                               \
                uint32_t sum = 0;                                                                  \
                for (int64_t i = 0; i < k->k; i++)                                                 \
                    sum += (uint32_t)(j->a->a_row[i] * ((int32_t)b[n * k->k + i] - zero));         \
                acc[n] = sum;                                                                      \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        memset(acc + lo, 0, (size_t)(hi - lo) * sizeof *acc);                                      \
        for (int64_t i = 0; i < k->k; i++)                                                         \
            for (int64_t n = lo; n < hi; n++)                                                      \
                acc[n] += (uint32_t)(j->a->a_row[i] *                                              \
                                     ((int32_t)b[i * k->n + n] - sn_byte_zero(&j->a->b_zero, n))); \
    }
SUM_COLUMNS(sum_u8, uint8_t)
SUM_COLUMNS(sum_i8, int8_t)

static void sum_range(void *arg, size_t lo, size_t hi)
{
    const row_job *j = arg;
    (j->d->b_type == SONDE_DTYPE_U8 ? sum_u8 : sum_i8)(j, (int64_t)lo, (int64_t)hi);
}

static void finish_row(const sn_qgemm_desc *d, const sn_qgemm_args *a, int64_t row,
                       uint32_t cpu_flags)
{
    for (int64_t n = 0; n < d->n; n++) {
        int32_t sum = a->sums[n];
        if (a->c)
            sum = (int32_t)((uint32_t)sum + (uint32_t)a->c[row * d->c_row + n * d->c_column]);
        const float factor = a->a_scale * a->b_scale[a->b_scales == 1 ? 0 : n];
        if (d->y_type == SONDE_DTYPE_F32)
            ((float *)a->y)[row * d->n + n] = (float)sum * factor;
        else
            sn_requantize(cpu_flags, d->y_type, (uint8_t *)a->y + row * d->n + n, &sum, 1,
                          factor / a->y_scale, a->y_zero);
    }
}

bool sn_qgemm_run(const sn_qgemm_desc *d, const sn_qgemm_args *a, uint32_t cpu_flags, sn_pool *pool)
{
    row_job j = {d, a};
    for (int64_t row = 0; row < d->m; row++) {
        for (int64_t i = 0; i < d->k; i++)
            a->a_row[i] = sn_byte_at(d->a_type, a->a, d->turn_a ? i * d->m + row : row * d->k + i) -
                          a->a_zero;
        sn_parallel_range(pool, (size_t)d->n, (size_t)d->k, sum_range, &j);
        finish_row(d, a, row, cpu_flags);
        if (a->cancel && atomic_load_explicit(a->cancel, memory_order_relaxed))
            return false;
    }
    return true;
}
