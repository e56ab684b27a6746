/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and relatives. A contiguous axis goes row by row through the kernel; another axis is
 * worked on in strips of columns, so that exponentials still come from the vector kernel. */
#include "compute/softmax.h"

#include <math.h>

#include "compute/eltwise.h"

enum { STRIP = 256 };

typedef struct job {
    const sn_softmax_plan *p;
    void *y;
    const void *x;
} job;

/* ------------------------------------------------------------------ f32, contiguous axis */
static void log_softmax_row(const sn_kernels *k, float *y, const float *x, size_t n)
{
    float m = k->f32_rowmax(x, n), tmp[STRIP];
    double sum = 0;
    for (size_t i = 0; i < n; i += STRIP) {
        size_t c = n - i < STRIP ? n - i : STRIP;
        k->f32_sub(tmp, x + i, &m, c, SN_BINARY_VS);
        k->f32_exp(tmp, tmp, c, NULL);
        sum += (double)k->f32_sum(tmp, c);
    }
    /* Maximum and logarithm are taken off one by one: their sum would lose digits. */
    float rest = (float)log(sum);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - m) - rest;
}

static void hardmax_row(float *y, const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best] || (isnan(x[i]) && !isnan(x[best])))
            best = i;
    for (size_t i = 0; i < n; i++)
        y[i] = 0.0f;
    y[best] = 1.0f;
}

static void row_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_softmax_plan *p = j->p;
    size_t n = (size_t)p->n;
    for (size_t r = lo; r < hi; r++) {
        float *y = (float *)j->y + r * n;
        const float *x = (const float *)j->x + r * n;
        if (p->kind == SN_SOFTMAX)
            p->kernels->f32_softmax(y, x, n);
        else if (p->kind == SN_LOG_SOFTMAX)
            log_softmax_row(p->kernels, y, x, n);
        else
            hardmax_row(y, x, n);
    }
}

/* ------------------------------------------------------------------ f32, strips of columns */
static void hardmax_strip(const sn_softmax_plan *p, float *y, const float *x, size_t width)
{
    const size_t n = (size_t)p->n, step = (size_t)p->inner;
    size_t best[STRIP] = {0};
    for (size_t r = 1; r < n; r++) {
        for (size_t i = 0; i < width; i++) {
            const float v = x[r * step + i], m = x[best[i] * step + i];
            if (v > m || (isnan(v) && !isnan(m)))
                best[i] = r;
        }
    }
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < width; i++)
            y[r * step + i] = best[i] == r;
}

/* a[i] of the first `width` columns is repeated for `rows` of them. */
static void repeat(float *a, size_t width, size_t rows)
{
    for (size_t i = width; i < rows * width; i++)
        a[i] = a[i - width];
}

/* Rows that lie one behind the other, those of all columns, go several at a time: a vector of them
 * has every column several times. What is summed up for each of them is one number in the end. */
static void strip(const sn_softmax_plan *p, float *y, const float *x, size_t width)
{
    const sn_kernels *k = p->kernels;
    const size_t n = (size_t)p->n, step = (size_t)p->inner, most = STRIP / width;
    const size_t rows = width < step || n < most ? 1 : most, lanes = rows * width;
    const size_t whole = n / rows * rows;
    float m[STRIP], sum[STRIP], tmp[STRIP];
    for (size_t i = 0; i < lanes; i++) {
        m[i] = x[i];
        sum[i] = 0.0f;
    }
    for (size_t r = rows; r < whole; r += rows)
        k->f32_max(m, m, x + r * step, lanes, SN_BINARY_VV);
    for (size_t r = 1; r < rows; r++)
        k->f32_max(m, m, m + r * width, width, SN_BINARY_VV);
    for (size_t r = whole; r < n; r++)
        k->f32_max(m, m, x + r * step, width, SN_BINARY_VV);
    repeat(m, width, rows);
    const bool kept = p->kind == SN_SOFTMAX;
    for (size_t r = 0; r < n; r += r < whole ? rows : 1) {
        const size_t count = r < whole ? lanes : width;
        float *e = kept ? y + r * step : tmp;
        k->f32_sub(e, x + r * step, m, count, SN_BINARY_VV);
        k->f32_exp(e, e, count, NULL);
        k->f32_add(sum, sum, e, count, SN_BINARY_VV);
    }
    for (size_t r = 1; r < rows; r++)
        k->f32_add(sum, sum, sum + r * width, width, SN_BINARY_VV);
    if (!kept) {
        for (size_t i = 0; i < width; i++)
            sum[i] = (float)log((double)sum[i]);
    }
    repeat(sum, width, rows);
    for (size_t r = 0; r < n; r += r < whole ? rows : 1) {
        const size_t count = r < whole ? lanes : width;
        float *row = y + r * step;
        if (kept) {
            k->f32_div(row, row, sum, count, SN_BINARY_VV);
            continue;
        }
        k->f32_sub(tmp, x + r * step, m, count, SN_BINARY_VV);
        k->f32_sub(row, tmp, sum, count, SN_BINARY_VV);
    }
}

static void strip_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_softmax_plan *p = j->p;
    size_t inner = (size_t)p->inner, strips = (inner + STRIP - 1) / STRIP;
    for (size_t u = lo; u < hi; u++) {
        size_t first = u % strips * STRIP, at = u / strips * (size_t)p->n * inner + first;
        (p->kind == SN_HARDMAX ? hardmax_strip
                               : strip)(p, (float *)j->y + at, (const float *)j->x + at,
                                        inner - first < STRIP ? inner - first : STRIP);
    }
}

/* ------------------------------------------------------------------ f64 */
static void f64_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_softmax_plan *p = j->p;
    size_t n = (size_t)p->n, inner = (size_t)p->inner;
    for (size_t u = lo; u < hi; u++) {
        size_t at = u / inner * n * inner + u % inner;
        double *y = (double *)j->y + at;
        const double *x = (const double *)j->x + at;
        double m = x[0], sum = 0;
        size_t best = 0;
        for (size_t r = 1; r < n; r++) {
            double v = x[r * inner];
            if (v > m || (isnan(v) && !isnan(m))) {
                m = v;
                best = r;
            }
        }
        for (size_t r = 0; r < n; r++)
            sum += exp(x[r * inner] - m);
        for (size_t r = 0; r < n; r++) {
            double v = x[r * inner] - m;
            y[r * inner] = p->kind == SN_SOFTMAX       ? exp(v) / sum
                           : p->kind == SN_LOG_SOFTMAX ? v - log(sum)
                                                       : (double)(r == best);
        }
    }
}

void sn_softmax_choose_kernels(sn_softmax_plan *p, uint32_t cpu_flags)
{
    p->kernels = sn_kernels_get(cpu_flags);
    p->name = p->dtype == SONDE_DTYPE_F64              ? "f64_softmax"
              : p->inner == 1 && p->kind == SN_SOFTMAX ? p->kernels->f32_softmax_name
                                                       : "f32_softmax_strips";
}

void sn_softmax_run(const sn_softmax_plan *p, void *y, const void *x, sn_pool *pool)
{
    job j = {p, y, x};
    size_t outer = (size_t)p->outer, n = (size_t)p->n, inner = (size_t)p->inner;
    if (outer == 0 || n == 0 || inner == 0)
        return;
    if (p->dtype == SONDE_DTYPE_F64)
        sn_parallel_range(pool, outer * inner, n * 16, f64_range, &j);
    else if (inner == 1)
        sn_parallel_range(pool, outer, n * 8, row_range, &j);
    else
        sn_parallel_range(pool, outer * ((inner + STRIP - 1) / STRIP),
                          n * 8 * (inner < STRIP ? inner : STRIP), strip_range, &j);
}
