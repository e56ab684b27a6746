/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of bytes and float8; see integer_gemm.h. */
#include "compute/integer_gemm.h"

#include <math.h>
#include <string.h>

#include "compute/parallel.h"
#include "compute/small_floats.h"
#include "compute/split.h"

sonde_status sn_integer_gemm_plan_make(sn_integer_gemm_plan *p, const sn_gemm_desc *d,
                                       int64_t a_count, sonde_dtype a, sonde_dtype b,
                                       bool quantized, uint32_t cpu_flags, size_t l2_bytes,
                                       int threads, sonde_error *err)
{
    sn_gemm_desc part = *d;
    *p = (sn_integer_gemm_plan){.a_type = a,
                                .b_type = b,
                                .quantized = quantized,
                                .exact = sn_is_byte(a) && sn_is_byte(b),
                                .m = d->m,
                                .n = d->n,
                                .k = d->k,
                                .a_count = a_count,
                                .b_count = d->b_count,
                                .batches = 1,
                                .piece = sn_max(sn_min(SN_EXACT_TERMS, d->k), 1),
                                .cpu_flags = cpu_flags};
    for (int i = 0; i < d->batch_rank; i++)
        p->batches = sn_count(p->batches, d->batch[i], 1, 1);
    p->pieces = sn_ceil_div(p->k, p->piece);
    part.b_count = sn_max(p->b_count, 1);
    part.k = p->piece;
    SN_TRY(sn_gemm_plan_make(&p->plan, &part, cpu_flags, l2_bytes, threads, err));
    part.k = p->pieces == 0 ? 0 : p->k - (p->pieces - 1) * p->piece;
    SN_TRY(sn_gemm_plan_make(&p->last, &part, cpu_flags, l2_bytes, threads, err));
    p->a_floats = sn_count(p->m, p->piece, p->a_count, 1);
    p->b_floats = sn_count(p->n, p->piece, p->b_count, 1);
    p->y_floats = sn_count(p->m, p->n, p->batches, 1);
    p->wide = p->exact && quantized && p->k > INT32_MAX / (255 * 255);
    p->acc_ints = quantized ? sn_count(p->y_floats, p->wide ? 2 : 1, 1, 1) : 0;
    p->name = p->exact ? "u8_gemm_exact_f32" : "f8_gemm_f32";
    p->flops = 2 * (uint64_t)p->y_floats * (uint64_t)p->k;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ operands in f32 */
typedef struct widen_job {
    const sn_integer_gemm_plan *p;
    const sn_integer_gemm_args *a;
    int64_t first, n; /* piece of the inner dimension */
} widen_job;

/* The same number for all when there is one; else i. */
static float number_at(const sn_gemm_numbers *z, int64_t i)
{
    return z->data ? z->data[i] : 0.0f;
}

/* Rows of a, cut to the piece: a_f32[row][n]. */
static void widen_a(void *arg, size_t lo, size_t hi)
{
    const widen_job *j = arg;
    const sn_integer_gemm_plan *p = j->p;
    const sn_gemm_numbers *zeros = &j->a->a_zero;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const float zero = zeros->data ? zeros->data[i % zeros->n] : 0.0f;
        const uint8_t *src = (const uint8_t *)j->a->a + i * p->k + j->first;
        float *dst = j->a->a_f32 + i * j->n;
        if (sn_is_byte(p->a_type)) {
            sn_bytes_to_f32(p->cpu_flags, p->a_type, dst, src, j->n, (int32_t)zero);
            continue;
        }
        sn_load_f32(p->cpu_flags, p->a_type, dst, src, (size_t)j->n);
        for (int64_t k = 0; k < j->n; k++)
            dst[k] -= zero;
    }
}

/* Rows first … first+n-1 of every matrix of b: b_f32[matrix][n][columns]. */
static void widen_b(void *arg, size_t lo, size_t hi)
{
    const widen_job *j = arg;
    const sn_integer_gemm_plan *p = j->p;
    const sn_gemm_numbers *zeros = &j->a->b_zero;
    const bool one = !zeros->data || zeros->n == 1;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const int64_t matrix = i / j->n, at = j->first + i % j->n;
        const uint8_t *src = (const uint8_t *)j->a->b + (matrix * p->k + at) * p->n;
        float *dst = j->a->b_f32 + i * p->n;
        if (sn_is_byte(p->b_type) && one) {
            sn_bytes_to_f32(p->cpu_flags, p->b_type, dst, src, p->n, (int32_t)number_at(zeros, 0));
            continue;
        }
        if (sn_is_byte(p->b_type))
            sn_bytes_to_f32(p->cpu_flags, p->b_type, dst, src, p->n, 0);
        else
            sn_load_f32(p->cpu_flags, p->b_type, dst, src, (size_t)p->n);
        const int64_t base = zeros->n == p->n ? 0 : matrix * p->n;
        for (int64_t k = 0; k < p->n; k++)
            dst[k] -= number_at(zeros, one ? 0 : base + k);
    }
}

static void multiply(const sn_integer_gemm_plan *p, const sn_integer_gemm_args *a, void *acc,
                     sn_pool *pool)
{
    const int64_t cells = p->batches * p->m * p->n;
    for (int64_t part = 0; part < p->pieces; part++) {
        widen_job j = {.p = p, .a = a, .first = part * p->piece};
        j.n = sn_min(p->piece, p->k - j.first);
        sn_parallel_range(pool, (size_t)(p->a_count * p->m), (size_t)j.n, widen_a, &j);
        sn_parallel_range(pool, (size_t)(p->b_count * j.n), (size_t)p->n, widen_b, &j);
        sn_gemm_run(part + 1 < p->pieces ? &p->plan : &p->last, a->a_f32, a->b_f32, NULL, NULL,
                    a->y_f32, a->core, pool);
        if (p->wide) {
            double *sum = acc;
            for (int64_t i = 0; i < cells; i++)
                sum[i] = (part == 0 ? 0.0 : sum[i]) + (double)a->y_f32[i];
            continue;
        }
        if (p->exact) {
            sn_exact_join(acc, a->y_f32, cells, part == 0);
            continue;
        }
        float *sum = acc;
        for (int64_t i = 0; i < cells; i++)
            sum[i] = part == 0 ? a->y_f32[i] : sum[i] + a->y_f32[i];
    }
    if (p->pieces == 0)
        memset(acc, 0, (size_t)cells * sizeof(int32_t));
}

/* ------------------------------------------------------------------ the result's type */
/* A whole number as a byte; NaN becomes 0. */
static uint8_t saturated(sonde_dtype t, float v)
{
    const float lo = t == SONDE_DTYPE_U8 ? 0.0f : -128.0f, hi = lo + 255.0f;
    return (uint8_t)(int32_t)(isnan(v) ? 0.0f : v <= lo ? lo : v >= hi ? hi : v);
}

static void store(const sn_integer_gemm_plan *p, const sn_integer_gemm_args *a, const void *acc,
                  int64_t i, float scale)
{
    uint8_t *y = (uint8_t *)a->y + i;
    if (sn_is_byte(a->y_type) && p->exact && !p->wide) {
        sn_requantize(p->cpu_flags, a->y_type, y, (const int32_t *)acc + i, 1, scale,
                      (int32_t)a->y_zero);
        return;
    }
    const float sum = p->wide    ? (float)((const double *)acc)[i]
                      : p->exact ? (float)((const int32_t *)acc)[i]
                                 : ((const float *)acc)[i];
    const float v = sum * scale + a->y_zero;
    if (sn_is_byte(a->y_type))
        *y = saturated(a->y_type, rintf(v));
    else
        sn_store_f32(p->cpu_flags, a->y_type, y, &v, 1, (sn_rounding){.saturate = true});
}

static void quantize(const sn_integer_gemm_plan *p, const sn_integer_gemm_args *a, const void *acc)
{
    const sn_gemm_desc *d = &p->plan.d;
    for (int64_t row = 0; row < p->batches * p->m; row++) {
        int64_t ia = 0, ib = 0, rest = row / p->m;
        for (int i = d->batch_rank - 1; i >= 0; i--) {
            ia += rest % d->batch[i] * d->a_batch[i];
            ib += rest % d->batch[i] * d->b_batch[i];
            rest /= d->batch[i];
        }
        const float a_scale = a->a_scale.data[(ia * p->m + row % p->m) % a->a_scale.n];
        if (a->b_scale.n == 1 && sn_is_byte(a->y_type) && p->exact && !p->wide) {
            const float scale = sn_held_scale(a_scale * a->b_scale.data[0] / a->y_scale);
            sn_requantize(p->cpu_flags, a->y_type, (uint8_t *)a->y + row * p->n,
                          (const int32_t *)acc + row * p->n, p->n, scale, (int32_t)a->y_zero);
            continue;
        }
        for (int64_t col = 0; col < p->n; col++) {
            const float b_scale = a->b_scale.data[(ib * p->n + col) % a->b_scale.n];
            const float scale = sn_held_scale(a_scale * b_scale / a->y_scale);
            store(p, a, acc, row * p->n + col, scale);
        }
    }
}

void sn_integer_gemm_run(const sn_integer_gemm_plan *p, const sn_integer_gemm_args *a,
                         sn_pool *pool)
{
    void *acc = p->quantized ? a->acc : a->y;
    multiply(p, a, acc, pool);
    if (p->quantized)
        quantize(p, a, acc);
}
