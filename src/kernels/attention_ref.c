/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its matrix products, in plain C. */
#include <math.h>

#include "kernels/kernels.h"

float sn_f32_scores_ref(float *s, const float *bias, size_t n, float scale)
{
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        s[i] = s[i] * scale + (bias ? bias[i] : -0.0f);
        max = max > s[i] ? max : s[i];
    }
    return max;
}

float sn_f32_exp_sum_ref(float *s, size_t n, float max)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        s[i] = expf(s[i] - max);
        sum += (double)s[i];
    }
    return (float)sum;
}

void sn_f32_dots_ref(float *y, const float *x, const float *rows, size_t n, size_t size,
                     size_t stride)
{
    for (size_t j = 0; j < n; j++) {
        double sum = 0;
        for (size_t i = 0; i < size; i++)
            sum += (double)x[i] * (double)rows[j * stride + i];
        y[j] = (float)sum;
    }
}
