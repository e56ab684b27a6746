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

static inline float integer(uint8_t x, int32_t zero, bool is_signed)
{
    return (float)((is_signed ? (int32_t)(int8_t)x : (int32_t)x) - zero);
}

static inline uint8_t step_of(float v, bool is_signed)
{
    const float lo = is_signed ? -128.0f : 0.0f;
    v = rintf(v);
    v = v > lo ? v : lo; /* NaN too */
    v = v < lo + 255.0f ? v : lo + 255.0f;
    return (uint8_t)(int32_t)v;
}

void sn_q8_add_ref(const sn_q8_binary_args *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const float a = integer(t->a[i], t->a_zero, t->is_signed);
        const float b = integer(t->b[t->mode == SN_BINARY_VS ? 0 : i], t->b_zero, t->is_signed);
        t->y[i] = step_of(fmaf(a, t->a_scale, fmaf(b, t->b_scale, t->offset)), t->is_signed);
    }
}

void sn_q8_mul_ref(const sn_q8_binary_args *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const float a = integer(t->a[i], t->a_zero, t->is_signed);
        const float b = integer(t->b[t->mode == SN_BINARY_VS ? 0 : i], t->b_zero, t->is_signed);
        t->y[i] = step_of(a * b * t->a_scale + t->offset, t->is_signed);
    }
}

void sn_q8_add_repeat_ref(const sn_q8_repeat *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i++) {
            const ptrdiff_t at = (ptrdiff_t)r * t->row + (ptrdiff_t)i;
            const float a = integer(t->a[at], t->a_zero, t->is_signed);
            t->y[at] = step_of(fmaf(a, t->a_scale, t->b[i]), t->is_signed);
        }
}

void sn_q8_mul_repeat_ref(const sn_q8_repeat *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i++) {
            const ptrdiff_t at = (ptrdiff_t)r * t->row + (ptrdiff_t)i;
            const float a = integer(t->a[at], t->a_zero, t->is_signed);
            t->y[at] = step_of(a * t->b[i] * t->a_scale + t->offset, t->is_signed);
        }
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
