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
static double sum_of(const sn_q8_average *t, const uint8_t *x)
{
    double sum = 0;
    for (size_t i = 0; i < t->taps[0]; i++)
        for (size_t j = 0; j < t->taps[1]; j++)
            for (size_t k = 0; k < t->taps[2]; k++) {
                const uint8_t v = x[(ptrdiff_t)i * t->step[0] + (ptrdiff_t)j * t->step[1] +
                                    (ptrdiff_t)k * t->step[2]];
                sum += (double)((float)((int32_t)(v ^ t->flip) - t->x_zero) * t->x_scale);
            }
    return sum;
}

void sn_q8_average_ref(const sn_q8_average *t)
{
    for (size_t i = 0; i < t->pixels * t->n; i++) {
        const uint8_t *x = t->x + (ptrdiff_t)(i / t->n) * t->x_pixel + (ptrdiff_t)(i % t->n);
        const float mean = t->count > 0 ? (float)(sum_of(t, x) / t->count) : 0.0f;
        float v = rintf(mean / t->y_scale);
        v = isnan(v) ? t->y_zero : v + t->y_zero;
        v = v > 0.0f ? v : 0.0f;
        v = v < 255.0f ? v : 255.0f;
        t->y[i] = (uint8_t)((uint8_t)(int32_t)v ^ t->flip);
    }
}
