/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over one row, in plain C: reductions, softmax, normalisations. Sums are kept in double.
 */
#include <math.h>

#include "kernels/kernels.h"

float sn_f32_sum_ref(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    return (float)sum;
}

float sn_f32_sumsq_ref(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return (float)sum;
}

float sn_f32_rowmax_ref(const float *x, size_t n)
{
    float m = -INFINITY;
    for (size_t i = 0; i < n; i++)
        m = isnan(m) || m > x[i] ? m : x[i];
    return m;
}

float sn_f32_rowmin_ref(const float *x, size_t n)
{
    float m = INFINITY;
    for (size_t i = 0; i < n; i++)
        m = isnan(m) || m < x[i] ? m : x[i];
    return m;
}

float sn_f32_rowabs_ref(const float *x, size_t n)
{
    float m = 0;
    for (size_t i = 0; i < n; i++)
        m = isfinite(x[i]) && fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

void sn_f32_softmax_ref(float *y, const float *x, size_t n)
{
    float m = sn_f32_rowmax_ref(x, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)exp((double)(x[i] - m));
        sum += (double)y[i];
    }
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)y[i] / sum);
}

static void scale_row(float *y, const float *x, const float *scale, const float *bias, size_t n,
                      double mean, double inv)
{
    for (size_t i = 0; i < n; i++) {
        double v = ((double)x[i] - mean) * inv;
        v *= scale ? (double)scale[i] : 1.0;
        v += bias ? (double)bias[i] : 0.0;
        y[i] = (float)v;
    }
}

void sn_f32_layernorm_ref(float *y, const float *x, const float *scale, const float *bias, size_t n,
                          float epsilon, float *stats)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    double inv = 1.0 / sqrt(squares / (double)n + (double)epsilon);
    scale_row(y, x, scale, bias, n, mean, inv);
    if (stats) {
        stats[0] = (float)mean;
        stats[1] = (float)inv;
    }
}

void sn_f32_rmsnorm_ref(float *y, const float *x, const float *scale, const float *bias, size_t n,
                        float epsilon, float *stats)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    double inv = 1.0 / sqrt(squares / (double)n + (double)epsilon);
    scale_row(y, x, scale, bias, n, 0.0, inv);
    if (stats) {
        stats[0] = 0.0f;
        stats[1] = (float)inv;
    }
}
