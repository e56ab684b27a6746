/* SPDX-License-Identifier: Apache-2.0 */
/* What works along one axis of [outer][n][inner]: the index of the extreme element, running sums
 * and products. Inner elements are walked side by side in chunks, so memory is read in order. */
#include <math.h>
#include <string.h>

#include "compute/parallel.h"
#include "compute/reduce.h"
#include "compute/small_floats.h"

enum { CHUNK = 256, ROW = 8 /* elements side by side that are worth a kernel */ };

/* X(DTYPE, type, is the number a NaN) */
#define INT_NAN(x) false
#define ARG_LIST(X)                                                                                \
    X(F32, float, isnan)                                                                           \
    X(F64, double, isnan)                                                                          \
    X(I8, int8_t, INT_NAN)                                                                         \
    X(I16, int16_t, INT_NAN)                                                                       \
    X(I32, int32_t, INT_NAN)                                                                       \
    X(I64, int64_t, INT_NAN)                                                                       \
    X(U8, uint8_t, INT_NAN)                                                                        \
    X(U16, uint16_t, INT_NAN)                                                                      \
    X(U32, uint32_t, INT_NAN)                                                                      \
    X(U64, uint64_t, INT_NAN)

/* The extreme of `n` rows of `width` elements, rows `inner` apart. */
#define ARG(D, T, NAN_OF)                                                                          \
    static void arg_##D(const sn_arg_plan *p, int64_t *y, const T *x, size_t width)                \
    {                                                                                              \
        T best[CHUNK];                                                                             \
        for (size_t i = 0; i < width; i++) {                                                       \
            best[i] = x[i];                                                                        \
            y[i] = 0;                                                                              \
        }                                                                                          \
        for (int64_t k = 1; k < p->n; k++) {                                                       \
            const T *row = x + k * p->inner;                                                       \
            for (size_t i = 0; i < width; i++) {                                                   \
                bool better = p->min ? row[i] < best[i] : row[i] > best[i];                        \
                better = better || (p->last && row[i] == best[i]);                                 \
                if (NAN_OF(row[i]) ? !NAN_OF(best[i]) : (better && !NAN_OF(best[i]))) {            \
                    best[i] = row[i];                                                              \
                    y[i] = k;                                                                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
ARG_LIST(ARG)

typedef struct axis_job {
    const sn_arg_plan *arg;
    const sn_cum_plan *cum;
    uint8_t *y;
    const uint8_t *x;
    size_t bytes; /* of an element */
} axis_job;

/* Unit k is chunk k of [outer][inner]; its first element and width. */
static size_t unit_width(int64_t n, int64_t inner, size_t k, size_t *x_at, size_t *y_at)
{
    size_t chunks = ((size_t)inner + CHUNK - 1) / CHUNK;
    size_t o = k / chunks, first = k % chunks * CHUNK;
    *x_at = o * (size_t)n * (size_t)inner + first;
    *y_at = o * (size_t)inner + first;
    return (size_t)inner - first < CHUNK ? (size_t)inner - first : CHUNK;
}

static size_t unit_count(int64_t outer, int64_t inner)
{
    return (size_t)outer * (((size_t)inner + CHUNK - 1) / CHUNK);
}

static void arg_range(void *arg, size_t lo, size_t hi)
{
    const axis_job *j = arg;
    const sn_arg_plan *p = j->arg;
    for (size_t k = lo; k < hi; k++) {
        size_t x_at, y_at, width = unit_width(p->n, p->inner, k, &x_at, &y_at);
        int64_t *y = (int64_t *)(void *)j->y + y_at;
        const void *x = j->x + x_at * j->bytes;
        switch (p->dtype) {
#define CASE(D, T, unused)                                                                         \
    case SONDE_DTYPE_##D:                                                                          \
        arg_##D(p, y, x, width);                                                                   \
        break;
            ARG_LIST(CASE)
#undef CASE
        default:
            break;
        }
    }
}

bool sn_arg_supported(sonde_dtype t)
{
    switch (t) {
#define CASE(D, T, unused)                                                                         \
    case SONDE_DTYPE_##D:                                                                          \
        return true;
        ARG_LIST(CASE)
#undef CASE
    default:
        return false;
    }
}

void sn_arg_run(const sn_arg_plan *p, int64_t *y, const void *x, sn_pool *pool)
{
    axis_job j = {.arg = p, .y = (uint8_t *)y, .x = x, .bytes = sn_dtype_bytes(p->dtype)};
    if (p->n == 0)
        return;
    size_t width = p->inner < CHUNK ? (size_t)p->inner : CHUNK;
    sn_parallel_range(pool, unit_count(p->outer, p->inner), (size_t)p->n * width, arg_range, &j);
}

/* ------------------------------------------------------------------ running sums */
/* X(DTYPE, type, type whose arithmetic wraps) */
#define CUM_LIST(X)                                                                                \
    X(F32, float, float)                                                                           \
    X(F64, double, double)                                                                         \
    X(I32, int32_t, uint32_t)                                                                      \
    X(I64, int64_t, uint64_t)                                                                      \
    X(U32, uint32_t, uint32_t)                                                                     \
    X(U64, uint64_t, uint64_t)

#define CUM(D, T, W)                                                                               \
    static void cum_##D(const sn_cum_plan *p, T *y, const T *x, size_t width)                      \
    {                                                                                              \
        W total[CHUNK];                                                                            \
        for (size_t i = 0; i < width; i++)                                                         \
            total[i] = p->product ? 1 : 0;                                                         \
        for (int64_t k = 0; k < p->n; k++) {                                                       \
            int64_t at = (p->reverse ? p->n - 1 - k : k) * p->inner;                               \
            for (size_t i = 0; i < width; i++) {                                                   \
                W v = (W)x[at + (int64_t)i], before = total[i];                                    \
                total[i] = p->product ? before * v : before + v;                                   \
                y[at + (int64_t)i] = (T)(p->exclusive ? before : total[i]);                        \
            }                                                                                      \
        }                                                                                          \
    }
CUM_LIST(CUM)

/* Running sums of rows of f32, each from the one before; y may be x. */
static void sum_rows(const sn_cum_plan *p, float *y, const float *x, size_t width)
{
    const sn_kernels *k = sn_kernels_get(p->cpu_flags);
    float held[2][CHUNK] = {{0}};
    const float *before = held[0];
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t at = (p->reverse ? p->n - 1 - i : i) * p->inner;
        if (p->exclusive) {
            float *sum = held[(i + 1) % 2];
            k->f32_add(sum, held[i % 2], x + at, width, SN_BINARY_VV);
            memcpy(y + at, held[i % 2], width * sizeof *y);
            continue;
        }
        k->f32_add(y + at, before, x + at, width, SN_BINARY_VV);
        before = y + at;
    }
}

static void cum_range(void *arg, size_t lo, size_t hi)
{
    const axis_job *j = arg;
    const sn_cum_plan *p = j->cum;
    const bool rows = p->dtype == SONDE_DTYPE_F32 && !p->product && p->inner >= ROW;
    for (size_t k = lo; k < hi; k++) {
        size_t at, unused, width = unit_width(p->n, p->inner, k, &at, &unused);
        void *y = j->y + at * j->bytes;
        const void *x = j->x + at * j->bytes;
        if (rows) {
            sum_rows(p, y, x, width);
            continue;
        }
        switch (p->dtype) {
#define CASE(D, T, W)                                                                              \
    case SONDE_DTYPE_##D:                                                                          \
        cum_##D(p, y, x, width);                                                                   \
        break;
            CUM_LIST(CASE)
#undef CASE
        default:
            break;
        }
    }
}

bool sn_cum_supported(sonde_dtype t)
{
    switch (t) {
#define CASE(D, T, W)                                                                              \
    case SONDE_DTYPE_##D:                                                                          \
        return true;
        CUM_LIST(CASE)
#undef CASE
    default:
        return false;
    }
}

void sn_cum_run(const sn_cum_plan *p, void *y, const void *x, sn_pool *pool)
{
    axis_job j = {.cum = p, .y = y, .x = x, .bytes = sn_dtype_bytes(p->dtype)};
    size_t width = p->inner < CHUNK ? (size_t)p->inner : CHUNK;
    sn_parallel_range(pool, unit_count(p->outer, p->inner), (size_t)p->n * width, cum_range, &j);
}
