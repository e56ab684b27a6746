/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and f32, one at a time. */
#include <string.h>

#include "kernels/kernels.h"

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float f16_load(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) /* inf, NaN: quiet */
        return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 |
                        (magnitude > 0x7c00u ? 0x400000u : 0));
    /* Shifted into place the exponent is 112 too small; multiplying also normalises subnormals. */
    float f = float_of(magnitude << 13) * 0x1p112f;
    return float_of(bits_of(f) | sign);
}

static uint16_t f16_store(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
    if (a >= 0x47800000u) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) { /* subnormal: the addition rounds to nearest even at the right place */
        float t = float_of(a) + 0.5f;
        return (uint16_t)(sign | (bits_of(t) - 0x3f000000u));
    }
    uint32_t r = a - 0x38000000u;
    return (uint16_t)(sign | (r + 0xfffu + (r >> 13 & 1u)) >> 13);
}

static uint16_t bf16_store(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

void sn_f16_load_ref(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = f16_load(x[i]);
}

void sn_f16_store_ref(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = f16_store(x[i]);
}

void sn_bf16_load_ref(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = float_of((uint32_t)x[i] << 16);
}

void sn_bf16_store_ref(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = bf16_store(x[i]);
}
