/* SPDX-License-Identifier: Apache-2.0 */
/* Linear quantisation in both directions: per tensor, per axis and blocked are one geometry. Work
 * is split into rows of `inner` elements, each of one channel. */
#include <math.h>
#include <string.h>

#include "compute/cast.h"
#include "compute/eltwise.h"

enum { CHUNK = 512 };

typedef struct quant_job {
    const sn_kernels *k;
    const sn_quant_shape *q;
    sonde_dtype type; /* of the quantised side */
    void *y;
    const void *x;
    const float *scale;
    const int32_t *zero;
    bool saturate;
} quant_job;

typedef struct limits {
    int32_t lo, hi;
    unsigned bytes; /* 0: a small float */
} limits;

static limits limits_of(sonde_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_U8:
        return (limits){0, 255, 1};
    case SONDE_DTYPE_I8:
        return (limits){-128, 127, 1};
    case SONDE_DTYPE_U16:
        return (limits){0, 65535, 2};
    case SONDE_DTYPE_I16:
        return (limits){-32768, 32767, 2};
    case SONDE_DTYPE_U4:
        return (limits){0, 15, 1};
    case SONDE_DTYPE_I4:
        return (limits){-8, 7, 1};
    case SONDE_DTYPE_U2:
        return (limits){0, 3, 1};
    case SONDE_DTYPE_I2:
        return (limits){-2, 1, 1};
    case SONDE_DTYPE_I32:
        return (limits){INT32_MIN, INT32_MAX, 4};
    default:
        return (limits){0, 0, 0};
    }
}

/* Where the scales of row (o, c) begin; *step is 1 when each element has its own. */
static size_t scale_index(const sn_quant_shape *q, size_t row, size_t *step)
{
    size_t c = row % (size_t)q->channels, o = row / (size_t)q->channels;
    size_t k = q->channel_blocks > 1 || q->channels > 1 ? c / (size_t)q->block : 0;
    if (k >= (size_t)q->channel_blocks)
        k = (size_t)q->channel_blocks - 1;
    *step = q->scale_inner > 1;
    return ((q->scale_outer ? o * (size_t)q->channel_blocks : 0) + k) * (size_t)q->scale_inner;
}

static int32_t quantize(float x, float scale, int32_t zero, const limits *l)
{
    float r = nearbyintf(x / scale);
    if (isnan(r))
        return zero; /* any result will do: it must only not be undefined */
    double v = (double)r + (double)zero;
    return v < (double)l->lo ? l->lo : v > (double)l->hi ? l->hi : (int32_t)v;
}

static void quantize_rows(void *arg, size_t lo, size_t hi)
{
    const quant_job *j = arg;
    const sn_quant_shape *q = j->q;
    size_t inner = (size_t)q->inner;
    limits l = limits_of(j->type);
    for (size_t row = lo; row < hi; row++) {
        size_t step, s = scale_index(q, row, &step);
        const float *x = (const float *)j->x + row * inner, *scale = j->scale + s;
        const int32_t *zero = j->zero ? j->zero + s : NULL;
        if (l.bytes == 0) {
            float tmp[CHUNK];
            for (size_t i = 0; i < inner; i += CHUNK) {
                size_t n = inner - i < CHUNK ? inner - i : CHUNK;
                for (size_t k = 0; k < n; k++)
                    tmp[k] = x[i + k] / scale[(i + k) * step] + 0.0f; /* no -0 */
                sn_store_f32(0, j->type, (uint8_t *)j->y + row * inner + i, tmp, n,
                             (sn_rounding){.saturate = j->saturate});
            }
            continue;
        }
        if (step == 0 && (j->type == SONDE_DTYPE_U8 || j->type == SONDE_DTYPE_I8)) {
            j->k->f32_quantize((uint8_t *)j->y + row * inner, x, inner, *scale,
                               zero ? (float)*zero : 0.0f, (float)l.lo, (float)l.hi);
            continue;
        }
        for (size_t i = 0; i < inner; i++) {
            int32_t v = quantize(x[i], scale[i * step], zero ? zero[i * step] : 0, &l);
            if (l.bytes == 1)
                ((uint8_t *)j->y)[row * inner + i] = (uint8_t)v;
            else
                ((uint16_t *)j->y)[row * inner + i] = (uint16_t)v;
        }
    }
}

void sn_quantize_run(uint32_t cpu_flags, const sn_quant_shape *q, sonde_dtype to, void *y,
                     const float *x, const float *scale, const int32_t *zero, bool saturate,
                     sn_pool *pool)
{
    quant_job j = {sn_kernels_get(cpu_flags), q, to, y, x, scale, zero, saturate};
    sn_parallel_range(pool, (size_t)(q->outer * q->channels), 4 * (size_t)q->inner, quantize_rows,
                      &j);
}

/* ------------------------------------------------------------------ scale from the data */
/* Pieces that stay in the first-level cache between the two ways through them; at most PARTS parts
 * of whole pieces, so that threads have a place each for what they found. */
enum { PIECE = 4096, PARTS = 64 };

typedef struct dynamic_job {
    const sn_kernels *k;
    const float *x;
    uint8_t *y;
    size_t n, part; /* elements of all, and of a part */
    float lo[PARTS], hi[PARTS];
    float step, zero;
} dynamic_job;

/* As the kernels do: a NaN wins. */
static float smaller(float a, float b)
{
    return isnan(a) || a < b ? a : b;
}
static float larger(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}

static void find_range(void *arg, size_t first, size_t last)
{
    dynamic_job *j = arg;
    for (size_t p = first; p < last; p++) {
        const size_t from = p * j->part, to = from + j->part < j->n ? from + j->part : j->n;
        j->lo[p] = INFINITY;
        j->hi[p] = -INFINITY;
        for (size_t i = from; i < to; i += PIECE) {
            const size_t n = to - i < PIECE ? to - i : PIECE;
            j->lo[p] = smaller(j->lo[p], j->k->f32_rowmin(j->x + i, n));
            j->hi[p] = larger(j->hi[p], j->k->f32_rowmax(j->x + i, n));
        }
    }
}

static void quantize_parts(void *arg, size_t first, size_t last)
{
    const dynamic_job *j = arg;
    const size_t from = first * j->part, to = last * j->part < j->n ? last * j->part : j->n;
    j->k->f32_quantize(j->y + from, j->x + from, to - from, j->step, j->zero, 0.0f, 255.0f);
}

void sn_quantize_dynamic_run(uint32_t cpu_flags, uint8_t *y, const float *x, size_t n, float *scale,
                             uint8_t *zero, sn_pool *pool)
{
    dynamic_job j = {.k = sn_kernels_get(cpu_flags), .x = x, .y = y, .n = n};
    j.part = (n / PARTS / PIECE + 1) * PIECE;
    const size_t parts = n / j.part + (n % j.part > 0);
    sn_parallel_range(pool, parts, 2 * j.part, find_range, &j);
    float lo = INFINITY, hi = -INFINITY;
    for (size_t p = 0; p < parts; p++) {
        lo = smaller(lo, j.lo[p]);
        hi = larger(hi, j.hi[p]);
    }
    /* The range always includes zero, so that zero is exact. */
    lo = fminf(0.0f, lo);
    hi = fmaxf(0.0f, hi);
    j.step = (hi - lo) / 255.0f;
    j.zero = j.step > 0.0f ? nearbyintf(fminf(fmaxf(-lo / j.step, 0.0f), 255.0f)) : 0.0f;
    if (!(j.step > 0.0f))
        j.step = 1.0f;
    sn_parallel_range(pool, parts, 4 * j.part, quantize_parts, &j);
    *scale = hi == lo ? 0.0f : j.step;
    *zero = (uint8_t)j.zero;
}

/* ------------------------------------------------------------------ back */
static void dequantize_bytes(const quant_job *j, float *y, const uint8_t *x, size_t n, float scale,
                             int32_t zero)
{
    for (size_t i = 0; i < n; i += CHUNK) { /* both steps while it is in the cache */
        const size_t m = n - i < CHUNK ? n - i : CHUNK;
        (j->type == SONDE_DTYPE_U8 ? j->k->u8_load : j->k->i8_load)(y + i, x + i, m, zero);
        j->k->f32_mul(y + i, y + i, &scale, m, SN_BINARY_VS);
    }
}

static void dequantize_rows(void *arg, size_t lo, size_t hi)
{
    const quant_job *j = arg;
    const sn_quant_shape *q = j->q;
    size_t inner = (size_t)q->inner;
    limits l = limits_of(j->type);
    size_t bytes = l.bytes ? l.bytes : 1;
    for (size_t row = lo; row < hi; row++) {
        size_t step, s = scale_index(q, row, &step);
        const uint8_t *x = (const uint8_t *)j->x + row * inner * bytes;
        float *y = (float *)j->y + row * inner;
        const float *scale = j->scale + s;
        const int32_t *zero = j->zero ? j->zero + s : NULL;
        if (step == 0 && (j->type == SONDE_DTYPE_U8 || j->type == SONDE_DTYPE_I8)) {
            dequantize_bytes(j, y, x, inner, *scale, zero ? *zero : 0);
            continue;
        }
        if (l.bytes == 0)
            sn_load_f32(0, j->type, y, x, inner);
        else if (!zero)
            sn_cast_run(0, SONDE_DTYPE_F32, y, j->type, x, inner, (sn_rounding){0}, NULL);
        if (l.bytes == 0 || !zero) {
            for (size_t i = 0; i < inner; i++)
                y[i] *= scale[i * step];
            continue;
        }
        int32_t tmp[CHUNK];
        for (size_t i = 0; i < inner; i += CHUNK) {
            size_t n = inner - i < CHUNK ? inner - i : CHUNK;
            sn_cast_run(0, SONDE_DTYPE_I32, tmp, j->type, x + i * bytes, n, (sn_rounding){0}, NULL);
            for (size_t k = 0; k < n; k++)
                y[i + k] = (float)((int64_t)tmp[k] - zero[(i + k) * step]) * scale[(i + k) * step];
        }
    }
}

void sn_dequantize_run(uint32_t cpu_flags, const sn_quant_shape *q, float *y, sonde_dtype from,
                       const void *x, const float *scale, const int32_t *zero, sn_pool *pool)
{
    quant_job j = {sn_kernels_get(cpu_flags), q, from, y, x, scale, zero, false};
    sn_parallel_range(pool, (size_t)(q->outer * q->channels), 2 * (size_t)q->inner, dequantize_rows,
                      &j);
}
