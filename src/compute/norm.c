/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations. Rows go through the f32 row kernels; f64 is plain C with the same formulas. */
#include "compute/norm.h"

#include <math.h>

#include "compute/eltwise.h"

enum { CHUNK = 128 };

typedef struct job {
    const sn_norm_plan *p;
    void *y;
    const void *x, *scale, *bias;
    float *mean, *inv;
} job;

static void norm_row_f64(const sn_norm_plan *p, double *y, const double *x, const double *scale,
                         const double *bias, double *stats)
{
    double n = (double)p->n, mean = 0, squares = 0;
    for (int64_t i = 0; i < p->n && !p->rms; i++)
        mean += x[i];
    mean /= n;
    for (int64_t i = 0; i < p->n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    double inv = 1.0 / sqrt(squares / n + p->epsilon);
    for (int64_t i = 0; i < p->n; i++)
        y[i] = (x[i] - mean) * inv * (scale ? scale[i] : 1.0) + (bias ? bias[i] : 0.0);
    stats[0] = mean;
    stats[1] = inv;
}

/* Each piece of a row by its own scale and bias. */
static void scale_pieces(const job *j, size_t row, void *y)
{
    const sn_norm_plan *p = j->p;
    size_t pieces = (size_t)p->pieces, n = (size_t)p->n / pieces;
    size_t first = row % (size_t)p->scale_rows * pieces;
    for (size_t g = 0; g < pieces; g++) {
        if (p->dtype == SONDE_DTYPE_F64) {
            double *v = (double *)y + g * n, s = ((const double *)j->scale)[first + g];
            double b = ((const double *)j->bias)[first + g];
            for (size_t i = 0; i < n; i++)
                v[i] = v[i] * s + b;
            continue;
        }
        float *v = (float *)y + g * n;
        p->kernels->f32_mul(v, v, (const float *)j->scale + first + g, n, SN_BINARY_VS);
        p->kernels->f32_add(v, v, (const float *)j->bias + first + g, n, SN_BINARY_VS);
    }
}

static void norm_range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    const sn_norm_plan *p = j->p;
    size_t n = (size_t)p->n;
    const void *scale = p->group ? NULL : j->scale, *bias = p->group ? NULL : j->bias;
    sn_f32_norm_fn *kernel = p->rms ? p->kernels->f32_rmsnorm : p->kernels->f32_layernorm;
    for (size_t r = lo; r < hi; r++) {
        float stats[2];
        void *y;
        if (p->dtype == SONDE_DTYPE_F64) {
            double wide[2];
            y = (double *)j->y + r * n;
            norm_row_f64(p, y, (const double *)j->x + r * n, scale, bias, wide);
            stats[0] = (float)wide[0];
            stats[1] = (float)wide[1];
        } else {
            y = (float *)j->y + r * n;
            kernel(y, (const float *)j->x + r * n, scale, bias, n, (float)p->epsilon, stats);
        }
        if (p->group)
            scale_pieces(j, r, y);
        if (j->mean)
            j->mean[r] = stats[0];
        if (j->inv)
            j->inv[r] = stats[1];
    }
}

void sn_norm_choose_kernels(sn_norm_plan *p, uint32_t cpu_flags)
{
    p->kernels = sn_kernels_get(cpu_flags);
    p->name = p->dtype == SONDE_DTYPE_F64 ? "f64_norm"
              : p->rms                    ? p->kernels->f32_rmsnorm_name
                                          : p->kernels->f32_layernorm_name;
}

void sn_norm_run(const sn_norm_plan *p, void *y, const void *x, const void *scale, const void *bias,
                 float *mean, float *inv, sn_pool *pool)
{
    job j = {p, y, x, scale, bias, mean, inv};
    for (int64_t r = 0; p->n == 0 && r < p->rows; r++) { /* the mean of nothing is NaN */
        if (mean)
            mean[r] = NAN;
        if (inv)
            inv[r] = NAN;
    }
    if (p->n > 0)
        sn_parallel_range(pool, (size_t)p->rows, (size_t)p->n * 4, norm_range, &j);
}

/* ------------------------------------------------------------------ unit length */
typedef struct lp_job {
    const sn_lpnorm_plan *p;
    void *y;
    const void *x;
} lp_job;

#define LP_COLUMN(name, T)                                                                         \
    static void name(const sn_lpnorm_plan *p, T *y, const T *x)                                    \
    {                                                                                              \
        double sum = 0;                                                                            \
        for (int64_t k = 0; k < p->n; k++) {                                                       \
            double v = (double)x[k * p->inner];                                                    \
            sum += p->p == 1 ? fabs(v) : v * v;                                                    \
        }                                                                                          \
        double norm = p->p == 1 ? sum : sqrt(sum);                                                 \
        for (int64_t k = 0; k < p->n; k++)                                                         \
            y[k * p->inner] = norm == 0.0 ? (T)0 : (T)((double)x[k * p->inner] / norm);            \
    }
LP_COLUMN(lp_f32, float)
LP_COLUMN(lp_f64, double)

static void lp_range(void *arg, size_t lo, size_t hi)
{
    const lp_job *j = arg;
    const sn_lpnorm_plan *p = j->p;
    size_t inner = (size_t)p->inner;
    for (size_t u = lo; u < hi; u++) {
        size_t at = u / inner * (size_t)p->n * inner + u % inner;
        if (p->dtype == SONDE_DTYPE_F64)
            lp_f64(p, (double *)j->y + at, (const double *)j->x + at);
        else
            lp_f32(p, (float *)j->y + at, (const float *)j->x + at);
    }
}

void sn_lpnorm_run(const sn_lpnorm_plan *p, void *y, const void *x, sn_pool *pool)
{
    lp_job j = {p, y, x};
    if (p->n > 0)
        sn_parallel_range(pool, (size_t)(p->outer * p->inner), (size_t)p->n * 4, lp_range, &j);
}

/* ------------------------------------------------------------------ local response */
typedef struct lrn_job {
    const sn_lrn_plan *p;
    float *y;
    const float *x;
} lrn_job;

/* v^-beta; the usual beta is 3/4. */
static float inverse_power(float v, float beta)
{
    if (beta == 0.75f) {
        float root = sqrtf(v);
        return 1.0f / (root * sqrtf(root));
    }
    return powf(v, -beta);
}

static void lrn_range(void *arg, size_t lo, size_t hi)
{
    const lrn_job *j = arg;
    const sn_lrn_plan *p = j->p;
    int64_t before = (p->size - 1) / 2, after = p->size - 1 - before;
    for (size_t u = lo; u < hi; u++) {
        int64_t c = (int64_t)u % p->channels;
        int64_t first = c < before ? 0 : c - before;
        int64_t last = c + after < p->channels ? c + after : p->channels - 1;
        const float *x = j->x + (int64_t)u * p->inner;
        float *y = j->y + (int64_t)u * p->inner;
        for (int64_t i = 0; i < p->inner; i += CHUNK) {
            int64_t n = p->inner - i < CHUNK ? p->inner - i : CHUNK;
            float sum[CHUNK] = {0};
            for (int64_t k = first; k <= last; k++) {
                const float *row = x + (k - c) * p->inner + i;
                for (int64_t e = 0; e < n; e++)
                    sum[e] += row[e] * row[e];
            }
            float scale = p->alpha / (float)p->size;
            for (int64_t e = 0; e < n; e++)
                y[i + e] = x[i + e] * inverse_power(p->bias + scale * sum[e], p->beta);
        }
    }
}

void sn_lrn_run(const sn_lrn_plan *p, float *y, const float *x, sn_pool *pool)
{
    lrn_job j = {p, y, x};
    sn_parallel_range(pool, (size_t)(p->batch * p->channels), (size_t)(p->inner * (p->size + 8)),
                      lrn_range, &j);
}
