/* SPDX-License-Identifier: Apache-2.0 */
/* Plain matrix products, a row of the result at a time; see gemm_plain.h. */
#include "compute/gemm_plain.h"

typedef struct plain_call {
    const sn_gemm_desc *d;
    const void *a, *b, *c, *z;
    void *y;
} plain_call;

/* alpha and beta act on doubles when they are not 1, as integers have no halves otherwise; what
 * comes out is cast as Cast does: truncated, saturated, NaN becomes 0. */
static double scaled_double(float by, double v)
{
    return (double)by * v;
}
#define SCALED(T, MIN, MAX)                                                                        \
    static T scaled_##T(float by, T v)                                                             \
    {                                                                                              \
        const double x = (double)by * (double)v;                                                   \
        return x != x ? 0 : x <= (double)(MIN) ? (MIN) : x >= (double)(MAX) ? (MAX) : (T)x;        \
    }
SCALED(int32_t, INT32_MIN, INT32_MAX)
SCALED(uint32_t, 0, UINT32_MAX)
SCALED(int64_t, INT64_MIN, INT64_MAX)
SCALED(uint64_t, 0, UINT64_MAX)

/* Row r of batch i. ACC is wide enough to wrap like T does. */
#define PLAIN_ROW(T, ACC)                                                                          \
    static void row_##T(void *arg, size_t task, int worker)                                        \
    {                                                                                              \
        const plain_call *call = arg;                                                              \
        const sn_gemm_desc *d = call->d;                                                           \
        const int64_t batch = (int64_t)task / d->m, r = (int64_t)task % d->m;                      \
        int64_t ia = 0, ib = 0, rest = batch;                                                      \
        (void)worker;                                                                              \
        for (int i = d->batch_rank - 1; i >= 0; i--) {                                             \
            ia += rest % d->batch[i] * d->a_batch[i];                                              \
            ib += rest % d->batch[i] * d->b_batch[i];                                              \
            rest /= d->batch[i];                                                                   \
        }                                                                                          \
        const T *a = (const T *)call->a + ia * d->m * d->k;                                        \
        const T *b = (const T *)call->b + ib * d->n * d->k;                                        \
        const T *c = call->c, *z = call->z;                                                        \
        T *y = (T *)call->y + (int64_t)task * d->n;                                                \
        for (int64_t j = 0; j < d->n; j++) {                                                       \
            ACC sum = 0;                                                                           \
            for (int64_t k = 0; k < d->k; k++)                                                     \
                sum += (ACC)a[d->trans_a ? k * d->m + r : r * d->k + k] *                          \
                       (ACC)b[d->trans_b ? j * d->k + k : k * d->n + j];                           \
            T v = d->alpha == 1.0f ? (T)sum : scaled_##T(d->alpha, (T)sum);                        \
            if (c) {                                                                               \
                const T add = c[r * d->c_m + j * d->c_n];                                          \
                v = (T)((ACC)v + (ACC)(d->beta == 1.0f ? add : scaled_##T(d->beta, add)));         \
            }                                                                                      \
            if (z)                                                                                 \
                v = (T)((ACC)v + (ACC)z[(int64_t)task * d->n + j]);                                \
            y[j] = v;                                                                              \
        }                                                                                          \
    }
PLAIN_ROW(double, double)
PLAIN_ROW(int32_t, uint32_t)
PLAIN_ROW(uint32_t, uint32_t)
PLAIN_ROW(int64_t, uint64_t)
PLAIN_ROW(uint64_t, uint64_t)

static sn_task_fn plain_row(sonde_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_F64:
        return row_double;
    case SONDE_DTYPE_I32:
        return row_int32_t;
    case SONDE_DTYPE_U32:
        return row_uint32_t;
    case SONDE_DTYPE_I64:
        return row_int64_t;
    case SONDE_DTYPE_U64:
        return row_uint64_t;
    default:
        return NULL;
    }
}

bool sn_gemm_plain_takes(sonde_dtype t)
{
    return plain_row(t) != NULL;
}

void sn_gemm_plain_run(const sn_gemm_desc *d, int64_t batches, sonde_dtype t, const void *a,
                       const void *b, const void *c, const void *z, void *y, sn_pool *pool)
{
    plain_call call = {d, a, b, c, z, y};
    sn_pool_run(pool, (size_t)(batches * d->m), plain_row(t), &call);
}
