/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors, one at a time. */
#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"

void sn_u8_load_ref(float *y, const uint8_t *x, size_t n, int32_t zero)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((int32_t)x[i] - zero);
}

void sn_i8_load_ref(float *y, const uint8_t *x, size_t n, int32_t zero)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((int32_t)(int8_t)x[i] - zero);
}

void sn_q8_store_ref(uint8_t *y, const float *x, size_t n, float bias, float scale, float zero,
                     float lo)
{
    for (size_t i = 0; i < n; i++) {
        float v = rintf((x[i] + bias) * scale) + zero;
        v = v > lo ? v : lo; /* NaN too */
        v = v < lo + 255.0f ? v : lo + 255.0f;
        y[i] = (uint8_t)(int32_t)v;
    }
}

void sn_f32_quantize_ref(uint8_t *y, const float *x, size_t n, float scale, float zero, float lo,
                         float hi)
{
    for (size_t i = 0; i < n; i++) {
        float v = rintf(x[i] / scale);
        v = isnan(v) ? zero : v + zero;
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        y[i] = (uint8_t)(int32_t)v;
    }
}

/* To a byte, flipped. */
static inline uint8_t step_of(float v, float scale, float zero, uint8_t flip)
{
    v = rintf(v / scale) + zero;
    v = v > 0.0f ? v : 0.0f; /* NaN too */
    v = v < 255.0f ? v : 255.0f;
    return (uint8_t)((uint8_t)(int32_t)v ^ flip);
}

static inline void pair(const sn_q8_binary_args *t, bool add)
{
    for (size_t i = 0; i < t->n; i++) {
        const int32_t ia = t->a[t->mode == SN_BINARY_SV ? 0 : i] ^ t->flip;
        const int32_t ib = t->b[t->mode == SN_BINARY_VS ? 0 : i] ^ t->flip;
        const float a = (float)(ia - t->a_zero) * t->a_scale;
        const float b = (float)(ib - t->b_zero) * t->b_scale;
        t->y[i] = step_of(add ? a + b : a * b, t->y_scale, t->y_zero, t->flip);
    }
}

void sn_q8_add_ref(const sn_q8_binary_args *t)
{
    pair(t, true);
}

void sn_q8_mul_ref(const sn_q8_binary_args *t)
{
    pair(t, false);
}

static inline void repeat(const sn_q8_repeat *t, bool add)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i++) {
            const ptrdiff_t at = (ptrdiff_t)r * t->row + (ptrdiff_t)i;
            const float a = (float)((t->a[at] ^ t->flip) - t->a_zero) * t->a_scale;
            t->y[at] = step_of(add ? a + t->b[i] : a * t->b[i], t->y_scale, t->y_zero, t->flip);
        }
}

void sn_q8_add_repeat_ref(const sn_q8_repeat *t)
{
    repeat(t, true);
}

void sn_q8_mul_repeat_ref(const sn_q8_repeat *t)
{
    repeat(t, false);
}

void sn_u8_table_ref(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table)
{
    for (size_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

void sn_u8_max_ref(uint8_t *y, const uint8_t *x, size_t n, uint8_t flip)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)(x[i] ^ flip) > (uint8_t)(y[i] ^ flip) ? x[i] : y[i];
}

void sn_u8_turn_ref(uint8_t *y, ptrdiff_t y_row, const uint8_t *x, ptrdiff_t x_row, size_t rows,
                    size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < rows; r++)
            y[(ptrdiff_t)c * y_row + (ptrdiff_t)r] = x[(ptrdiff_t)r * x_row + (ptrdiff_t)c];
}

void sn_f32_axpy_ref(float *y, const float *x, size_t n, size_t stride, float a)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i * stride];
}
