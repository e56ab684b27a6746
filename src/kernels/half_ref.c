/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and f32, one at a time. */
#include "base/codec.h"
#include "kernels/kernels.h"

void sn_f16_load_ref(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f16_to_f32(x[i]);
}

void sn_f16_store_ref(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f32_to_f16(x[i]);
}

void sn_bf16_load_ref(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_bf16_to_f32(x[i]);
}

void sn_bf16_store_ref(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f32_to_bf16(x[i]);
}

void sn_bf16_pairs_ref(uint16_t *y, const float *a, const float *b, size_t n, size_t step,
                       const float *gate)
{
    for (size_t i = 0; i < n; i++, a += step, b = b ? b + step : NULL)
        for (size_t l = 0; l < SN_PAIR_BLOCK; l++) {
            const float low = gate ? a[l] * gate[l] : a[l];
            const float high = !b ? 0.0f : gate ? b[l] * gate[SN_PAIR_BLOCK + l] : b[l];
            y[i * 2 * SN_PAIR_BLOCK + l] = sn_f32_to_bf16(low);
            y[(i * 2 + 1) * SN_PAIR_BLOCK + l] = sn_f32_to_bf16(high);
        }
}

void sn_bf16_zip_ref(uint16_t *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[2 * i] = sn_f32_to_bf16(a[i]);
        y[2 * i + 1] = b ? sn_f32_to_bf16(b[i]) : 0;
    }
}
