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
