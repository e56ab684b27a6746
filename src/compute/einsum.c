/* SPDX-License-Identifier: Apache-2.0 */
/* Each output element is one walk over the summed axes, the last of which is the inner loop. */
#include "compute/einsum.h"

#include <string.h>

#include "compute/element.h"

typedef struct job {
    const sn_einsum *e;
    void *dst;
    const void *const *src;
    int64_t per_task;
} job;

/* The innermost sum: n terms at these offsets and strides. Acc is wide enough not to lose digits.
 */
#define DEFINE_DOT(NAME, T, ACC)                                                                   \
    static void dot_##NAME(const job *j, const ptrdiff_t *at, const ptrdiff_t *step, int64_t n,    \
                           void *sum)                                                              \
    {                                                                                              \
        ACC total = 0;                                                                             \
        const T *a = (const T *)j->src[0] + at[0];                                                 \
        if (j->e->n == 1) {                                                                        \
            for (int64_t i = 0; i < n; i++)                                                        \
                total += (ACC)a[i * step[0]];                                                      \
        } else if (j->e->n == 2) {                                                                 \
            const T *b = (const T *)j->src[1] + at[1];                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                total += (ACC)a[i * step[0]] * (ACC)b[i * step[1]];                                \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ACC product = 1;                                                                   \
                for (uint32_t k = 0; k < j->e->n; k++)                                             \
                    product *= (ACC)((const T *)j->src[k])[at[k] + i * step[k]];                   \
                total += product;                                                                  \
            }                                                                                      \
        }                                                                                          \
        *(ACC *)sum += total;                                                                      \
    }
DEFINE_DOT(F32, float, double)
DEFINE_DOT(F64, double, double)
DEFINE_DOT(I32, int32_t, uint64_t)
DEFINE_DOT(I64, int64_t, uint64_t)

/* Every other type, one element at a time through its codec. */
static void dot_any(const job *j, const ptrdiff_t *at, const ptrdiff_t *step, int64_t n, void *sum)
{
    for (int64_t i = 0; i < n; i++) {
        double product = 1;
        for (uint32_t k = 0; k < j->e->n; k++)
            product *= sn_elem_f64(j->e->dtype, j->src[k], at[k] + i * step[k]);
        *(double *)sum += product;
    }
}

static void store_sum(const sn_einsum *e, void *dst, int64_t o, const void *sum)
{
    uint64_t whole = *(const uint64_t *)sum;
    if (e->dtype == SONDE_DTYPE_I64)
        ((int64_t *)dst)[o] = (int64_t)whole;
    else if (e->dtype == SONDE_DTYPE_I32)
        ((int32_t *)dst)[o] = (int32_t)(uint32_t)whole;
    else
        sn_elem_set_f64(e->dtype, dst, o, *(const double *)sum);
}

static void sum_terms(const job *j, const ptrdiff_t *base, void *sum)
{
    const sn_einsum *e = j->e;
    ptrdiff_t at[SN_EINSUM_OPERANDS], step[SN_EINSUM_OPERANDS];
    int64_t index[SN_EINSUM_SUMS] = {0}, inner = e->sum_rank ? e->sum_dims[e->sum_rank - 1] : 1;
    memcpy(at, base, sizeof at);
    for (uint32_t k = 0; k < e->n; k++)
        step[k] = e->sum_rank ? e->sum_strides[k][e->sum_rank - 1] : 0;
    for (int64_t t = 0; t < e->sum_count / inner; t++) {
        switch (e->dtype) {
        case SONDE_DTYPE_F32:
            dot_F32(j, at, step, inner, sum);
            break;
        case SONDE_DTYPE_F64:
            dot_F64(j, at, step, inner, sum);
            break;
        case SONDE_DTYPE_I32:
            dot_I32(j, at, step, inner, sum);
            break;
        case SONDE_DTYPE_I64:
            dot_I64(j, at, step, inner, sum);
            break;
        default:
            dot_any(j, at, step, inner, sum);
            break;
        }
        int d = e->sum_rank - 2;
        for (; d >= 0; d--) {
            bool wrap = ++index[d] == e->sum_dims[d];
            for (uint32_t k = 0; k < e->n; k++)
                at[k] += e->sum_strides[k][d] * (wrap ? 1 - (ptrdiff_t)e->sum_dims[d] : 1);
            if (!wrap)
                break;
            index[d] = 0;
        }
    }
}

static void einsum_task(void *arg, size_t task, int worker)
{
    (void)worker;
    const job *j = arg;
    const sn_einsum *e = j->e;
    int64_t lo = (int64_t)task * j->per_task, hi = lo + j->per_task;
    for (int64_t o = lo; o < hi && o < e->out_count; o++) {
        ptrdiff_t at[SN_EINSUM_OPERANDS] = {0};
        int64_t rest = o;
        for (int d = e->out_rank - 1; d >= 0; d--) {
            int64_t i = rest % e->out_dims[d];
            rest /= e->out_dims[d];
            for (uint32_t k = 0; k < e->n; k++)
                at[k] += (ptrdiff_t)i * e->out_strides[k][d];
        }
        union {
            double real;
            uint64_t whole;
        } sum = {0};
        if (e->sum_count > 0)
            sum_terms(j, at, &sum);
        store_sum(e, j->dst, o, &sum);
    }
}

void sn_einsum_run(const sn_einsum *e, void *y, const void *const *x, sn_pool *pool)
{
    job j = {.e = e, .dst = y, .src = x};
    if (e->out_count == 0)
        return;
    const int64_t threads = sn_pool_threads(pool);
    const int64_t tasks = threads > 1 && e->out_count > 64 ? threads * 8 : 1;
    j.per_task = (e->out_count + tasks - 1) / tasks;
    sn_pool_run(pool, (size_t)((e->out_count + j.per_task - 1) / j.per_task), einsum_task, &j);
}
