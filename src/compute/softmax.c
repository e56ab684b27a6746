/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and relatives. A contiguous axis goes row by row through the kernel; another axis is
 * worked on in strips of columns, so that exponentials still come from the vector kernel. */
#include "compute/softmax.h"

#include <math.h>

#include "compute/eltwise.h"

enum { STRIP = 64 };

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
static void strip(const sn_softmax_plan *p, float *y, const float *x, size_t width)
{
    const sn_kernels *k = p->kernels;
    size_t n = (size_t)p->n, step = (size_t)p->inner;
    float m[STRIP], sum[STRIP], tmp[STRIP];
    int64_t best[STRIP];
    for (size_t i = 0; i < width; i++) {
        m[i] = x[i];
        best[i] = 0;
        sum[i] = 0.0f;
    }
    for (size_t r = 1; r < n; r++) {
        for (size_t i = 0; i < width; i++) {
            float v = x[r * step + i];
            if (v > m[i] || (isnan(v) && !isnan(m[i]))) {
                m[i] = v;
                best[i] = (int64_t)r;
            }
        }
    }
    for (size_t r = 0; r < n && p->kind == SN_HARDMAX; r++)
        for (size_t i = 0; i < width; i++)
            y[r * step + i] = best[i] == (int64_t)r;
    if (p->kind == SN_HARDMAX)
        return;
    for (size_t r = 0; r < n; r++) {
        k->f32_sub(tmp, x + r * step, m, width, SN_BINARY_VV);
        k->f32_exp(tmp, tmp, width, NULL);
        k->f32_add(sum, sum, tmp, width, SN_BINARY_VV);
        if (p->kind == SN_SOFTMAX)
            for (size_t i = 0; i < width; i++)
                y[r * step + i] = tmp[i];
    }
    for (size_t i = 0; i < width; i++)
        sum[i] = p->kind == SN_SOFTMAX ? sum[i] : (float)log((double)sum[i]);
    for (size_t r = 0; r < n; r++) {
        float *row = y + r * step;
        if (p->kind == SN_SOFTMAX)
            k->f32_div(row, row, sum, width, SN_BINARY_VV);
        else
            for (size_t i = 0; i < width; i++)
                row[i] = (x[r * step + i] - m[i]) - sum[i];
    }
}

static void strip_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_softmax_plan *p = j->p;
    size_t inner = (size_t)p->inner, strips = (inner + STRIP - 1) / STRIP;
    for (size_t u = lo; u < hi; u++) {
        size_t first = u % strips * STRIP, at = u / strips * (size_t)p->n * inner + first;
        strip(p, (float *)j->y + at, (const float *)j->x + at,
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
