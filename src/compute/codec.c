/* SPDX-License-Identifier: Apache-2.0 */
/* Small float types. Those of 16 bits have kernels; every float8 and float4 format is one row of a
 * table: exponent bits, mantissa bits, bias, and what the top codes mean. */
#include "compute/codec.h"

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

/* ------------------------------------------------------------------ 8 and 4 bits */
typedef struct mini {
    int man, bias;
    uint8_t max;        /* code of the largest finite number, sign excluded */
    uint8_t nan;        /* code of NaN; 0: none */
    uint8_t inf;        /* code of infinity, sign excluded; 0: none */
    uint8_t sign;       /* sign bit */
    bool unsigned_zero; /* FNUZ: no -0, the code of -0 is NaN */
} mini;

static const mini *mini_of(sonde_dtype t)
{
    static const mini e4m3fn = {3, 7, 0x7e, 0x7f, 0, 0x80, false};
    static const mini e4m3fnuz = {3, 8, 0x7f, 0x80, 0, 0x80, true};
    static const mini e5m2 = {2, 15, 0x7b, 0x7e, 0x7c, 0x80, false};
    static const mini e5m2fnuz = {2, 16, 0x7f, 0x80, 0, 0x80, true};
    static const mini e2m1 = {1, 1, 0x7, 0, 0, 0x8, false};
    switch (t) {
    case SONDE_DTYPE_F8E4M3FN:
        return &e4m3fn;
    case SONDE_DTYPE_F8E4M3FNUZ:
        return &e4m3fnuz;
    case SONDE_DTYPE_F8E5M2:
        return &e5m2;
    case SONDE_DTYPE_F8E5M2FNUZ:
        return &e5m2fnuz;
    case SONDE_DTYPE_F4E2M1:
        return &e2m1;
    default:
        return NULL;
    }
}

static float mini_load(const mini *m, uint8_t code)
{
    uint8_t magnitude = (uint8_t)(code & (m->sign - 1));
    bool negative = (code & m->sign) != 0;
    if (m->unsigned_zero && code == m->nan)
        return NAN;
    if (!m->unsigned_zero && m->inf && magnitude == m->inf)
        return negative ? -INFINITY : INFINITY;
    if (!m->unsigned_zero && magnitude > m->max)
        return NAN;
    int e = magnitude >> m->man, f = magnitude & ((1 << m->man) - 1);
    float v = e ? ldexpf((float)((1 << m->man) + f), e - m->bias - m->man)
                : ldexpf((float)f, 1 - m->bias - m->man);
    return negative ? -v : v;
}

static uint8_t mini_store(const mini *m, float f, bool saturate)
{
    uint8_t sign = signbit(f) ? m->sign : 0;
    if (isnan(f)) /* float4 has no NaN: -0 stands for it */
        return m->nan ? (uint8_t)(m->unsigned_zero ? m->nan : (m->nan | sign)) : m->sign;
    float a = fabsf(f);
    uint8_t code;
    if (isinf(a)) {
        code = (uint8_t)(m->max + 1); /* beyond */
    } else if (a == 0.0f) {
        code = 0;
    } else {
        int e = ilogbf(a);
        int low = 1 - m->bias;
        if (e < low)
            e = low;
        /* a in units of the last place of its binade; a carry moves into the exponent by itself. */
        double units = nearbyint(ldexp((double)a, m->man - e));
        int64_t c = ((int64_t)(e - low) << m->man) + (int64_t)units;
        code = c > m->max ? (uint8_t)(m->max + 1) : (uint8_t)c;
    }
    if (code > m->max) {
        if (saturate || !m->nan)
            code = m->max;
        else if (m->inf)
            code = m->inf;
        else
            return m->unsigned_zero ? m->nan : (uint8_t)(m->nan | sign);
    }
    if (code == 0 && m->unsigned_zero)
        return 0;
    return (uint8_t)(code | sign);
}

/* float8e8m0 is a power of two, 2^(code - 127); 0xff is NaN. */
static float e8m0_load(uint8_t code)
{
    return code == 0xff ? NAN : ldexpf(1.0f, (int)code - 127);
}

static uint8_t e8m0_store(float f, sn_rounding how)
{
    if (isnan(f))
        return 0xff;
    float a = fabsf(f);
    if (isinf(a))
        return how.saturate ? 0xfe : 0xff;
    int e = a == 0.0f ? -127 : ilogbf(a);
    if (e < -127)
        e = -127;
    double low = ldexp(1.0, e);
    if (how.e8m0 == 0 && (double)a > low)
        e++;
    else if (how.e8m0 == 2 && (double)a >= 1.5 * low)
        e++;
    if (e > 127)
        return how.saturate ? 0xfe : 0xff;
    return (uint8_t)(e + 127);
}

/* ------------------------------------------------------------------ arrays */
void sn_load_f32(uint32_t cpu_flags, sonde_dtype t, float *dst, const void *src, size_t n)
{
    const uint8_t *b = src;
    const mini *m = mini_of(t);
    switch (t) {
    case SONDE_DTYPE_F32:
        memcpy(dst, src, n * sizeof(float));
        return;
    case SONDE_DTYPE_F16:
        sn_kernels_get(cpu_flags)->f16_load(dst, src, n);
        return;
    case SONDE_DTYPE_BF16:
        sn_kernels_get(cpu_flags)->bf16_load(dst, src, n);
        return;
    case SONDE_DTYPE_F8E8M0:
        for (size_t i = 0; i < n; i++)
            dst[i] = e8m0_load(b[i]);
        return;
    default:
        for (size_t i = 0; m && i < n; i++)
            dst[i] = mini_load(m, b[i]);
    }
}

void sn_store_f32(uint32_t cpu_flags, sonde_dtype t, void *dst, const float *src, size_t n,
                  sn_rounding how)
{
    uint8_t *b = dst;
    const mini *m = mini_of(t);
    switch (t) {
    case SONDE_DTYPE_F32:
        memcpy(dst, src, n * sizeof(float));
        return;
    case SONDE_DTYPE_F16:
        sn_kernels_get(cpu_flags)->f16_store(dst, src, n);
        return;
    case SONDE_DTYPE_BF16:
        sn_kernels_get(cpu_flags)->bf16_store(dst, src, n);
        return;
    case SONDE_DTYPE_F8E8M0:
        for (size_t i = 0; i < n; i++)
            b[i] = e8m0_store(src[i], how);
        return;
    default:
        for (size_t i = 0; m && i < n; i++)
            b[i] = mini_store(m, src[i], how.saturate);
    }
}
