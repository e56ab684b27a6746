/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its matrix products, in plain C. */
#include <math.h>

#include "kernels/kernels.h"

static void exp_row(float *s, const float *bias, const float *more, size_t n, float scale,
                    float *max, float *sum, float *factor)
{
    float top = *max;
    for (size_t i = 0; i < n; i++) {
        s[i] = s[i] * scale + (bias ? bias[i] : 0.0f);
        s[i] += more ? more[i] : 0.0f;
        top = s[i] > top ? s[i] : top;
    }
    *factor = *max == -INFINITY ? 0.0f : expf(*max - top);
    double total = (double)*sum * (double)*factor;
    for (size_t i = 0; i < n; i++) {
        s[i] = s[i] == -INFINITY ? 0.0f : expf(s[i] - top);
        total += (double)s[i];
    }
    *sum = (float)total;
    *max = top;
}

void sn_f32_exp_rows_ref(const sn_f32_exp_rows *e)
{
    for (size_t r = 0; r < e->rows; r++) {
        const ptrdiff_t at = (ptrdiff_t)r;
        exp_row(e->s + at * e->s_row, e->bias ? e->bias + at * e->bias_row : NULL,
                e->more ? e->more + at * e->more_row : NULL, e->n, e->scale, &e->max[r], &e->sum[r],
                &e->factor[r]);
    }
}

void sn_f32_scale_rows_ref(float *y, ptrdiff_t y_row, size_t rows, size_t n, const float *by)
{
    for (size_t r = 0; r < rows; r++, y += y_row)
        for (size_t i = 0; i < n; i++)
            y[i] *= by[r];
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
