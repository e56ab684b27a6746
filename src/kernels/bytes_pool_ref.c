/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and averages of bytes, one at a time. */
#include <math.h>

#include "kernels/kernels.h"

void sn_u8_sums_ref(int32_t *y, const uint8_t *x, ptrdiff_t x_row, size_t rows, size_t n,
                    uint8_t flip)
{
    for (size_t i = 0; i < n; i++)
        y[i] = 0;
    for (size_t r = 0; r < rows; r++, x += x_row)
        for (size_t i = 0; i < n; i++)
            y[i] += x[i] ^ flip;
}

/* The sum of one channel. */
static float sum_of(const sn_q8_average *t, const uint8_t *x)
{
    float sum = 0;
    for (size_t i = 0; i < t->taps[0]; i++)
        for (size_t j = 0; j < t->taps[1]; j++)
            for (size_t k = 0; k < t->taps[2]; k++) {
                const uint8_t v = x[(ptrdiff_t)i * t->step[0] + (ptrdiff_t)j * t->step[1] +
                                    (ptrdiff_t)k * t->step[2]];
                const int32_t own = t->is_signed ? (int32_t)(int8_t)v : (int32_t)v;
                sum += (float)(own - t->x_zero) * t->x_scale;
            }
    return sum;
}

void sn_q8_average_ref(const sn_q8_average *t)
{
    const float lo = t->is_signed ? -128.0f : 0.0f;
    for (size_t i = 0; i < t->pixels * t->n; i++) {
        const uint8_t *x = t->x + (ptrdiff_t)(i / t->n) * t->x_pixel + (ptrdiff_t)(i % t->n);
        const float mean = t->count > 0 ? sum_of(t, x) / t->count : 0.0f;
        float v = rintf(mean / t->y_scale + t->y_zero);
        v = isnan(v) ? t->y_zero : v;
        v = v > lo ? v : lo;
        v = v < lo + 255.0f ? v : lo + 255.0f;
        t->y[i] = (uint8_t)(int32_t)v;
    }
}
