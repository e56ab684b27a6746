/* SPDX-License-Identifier: Apache-2.0 */
/* Every small float is described by mantissa width, bias and its largest finite code; one encoder
 * and one decoder serve them all, so rounding is written once. */
#include "base/small_float.h"

#include <string.h>

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

/* A finite, non-negative f32 (as bits) to the code of a format with `mant` mantissa bits and
 * `bias`, rounded to nearest even. Denormals come out right; codes past the format's largest finite
 * one simply keep counting, so the caller compares and clamps. */
static uint32_t encode(uint32_t abs_bits, int mant, int bias)
{
    if (abs_bits == 0)
        return 0;
    int exp = (int)(abs_bits >> 23);
    uint32_t sig = abs_bits & 0x7FFFFF;
    if (exp == 0)
        exp = 1; /* f32 denormal: no hidden bit */
    else
        sig |= 0x800000;
    int field = exp - 127 + bias;
    int shift = 23 - mant + (field <= 0 ? 1 - field : 0);
    if (shift > 25)
        return 0;
    uint32_t q = sig >> shift;
    uint32_t rest = sig & (((uint32_t)1 << shift) - 1), half = (uint32_t)1 << (shift - 1);
    q += rest > half || (rest == half && (q & 1));
    /* q still holds the hidden bit of a normal number: the carry into the exponent is the sum. */
    return field > 0 ? ((uint32_t)(field - 1) << mant) + q : q;
}

/* A finite code (sign already off) to f32; every format here fits exactly. */
static float decode(uint32_t code, int mant, int bias)
{
    uint32_t field = code >> mant, frac = code & (((uint32_t)1 << mant) - 1);
    if (field)
        return float_of(((field + (uint32_t)(127 - bias)) << 23) | (frac << (23 - mant)));
    float unit = float_of((uint32_t)(127 + 1 - bias - mant) << 23); /* one denormal step */
    return (float)frac * unit;
}

float sn_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, code = h & 0x7FFF;
    if (code >= 0x7C00)
        return float_of(sign | 0x7F800000 | ((code & 0x3FF) << 13));
    return float_of(sign | bits_of(decode(code, 10, 15)));
}

uint16_t sn_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), a = u & 0x7FFFFFFF, sign = (u >> 16) & 0x8000;
    if (a > 0x7F800000) /* quiet NaN, top payload bits kept */
        return (uint16_t)(sign | 0x7E00 | ((a >> 13) & 0x3FF));
    uint32_t code = a == 0x7F800000 ? 0x7C00 : encode(a, 10, 15);
    return (uint16_t)(sign | (code > 0x7C00 ? 0x7C00 : code));
}

float sn_bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t sn_f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)((u >> 16) | 0x40);
    return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

typedef struct f8_format {
    uint8_t mant, bias, sign_bit, max, inf, nan; /* inf 0: none; nan 0: none */
    bool fnuz;                                   /* one NaN (the code of -0), no -0 */
} f8_format;

static const f8_format *f8_of(sonde_dtype t)
{
    static const f8_format e4m3fn = {3, 7, 0x80, 0x7E, 0, 0x7F, false};
    static const f8_format e4m3fnuz = {3, 8, 0x80, 0x7F, 0, 0x80, true};
    static const f8_format e5m2 = {2, 15, 0x80, 0x7B, 0x7C, 0x7E, false};
    static const f8_format e5m2fnuz = {2, 16, 0x80, 0x7F, 0, 0x80, true};
    static const f8_format e2m1 = {1, 1, 0x08, 0x07, 0, 0, false};
    switch (t) {
    case SONDE_DTYPE_F8E4M3FN:
        return &e4m3fn;
    case SONDE_DTYPE_F8E4M3FNUZ:
        return &e4m3fnuz;
    case SONDE_DTYPE_F8E5M2:
        return &e5m2;
    case SONDE_DTYPE_F8E5M2FNUZ:
        return &e5m2fnuz;
    default:
        return &e2m1;
    }
}

float sn_f8_to_f32(sonde_dtype t, uint8_t v)
{
    if (t == SONDE_DTYPE_F8E8M0) { /* 2^(v-127); v = 0 is an f32 denormal */
        if (v == 0xFF)
            return float_of(0x7FC00000);
        return float_of(v ? (uint32_t)v << 23 : 0x00400000);
    }
    const f8_format *f = f8_of(t);
    uint32_t sign = (v & f->sign_bit) ? 0x80000000 : 0;
    uint32_t code = v & (uint32_t)(f->sign_bit - 1);
    if (f->fnuz && v == f->nan)
        return float_of(0x7FC00000);
    if (code > f->max)
        return float_of(sign | (code == f->inf ? 0x7F800000 : 0x7FC00000));
    return float_of(sign | bits_of(decode(code, f->mant, f->bias)));
}

uint8_t sn_f32_to_f8(sonde_dtype t, float value, bool saturate)
{
    if (t == SONDE_DTYPE_F8E8M0)
        return sn_f32_to_e8m0(value, SN_E8M0_UP, saturate);
    const f8_format *f = f8_of(t);
    uint32_t u = bits_of(value), a = u & 0x7FFFFFFF;
    uint32_t sign = (u >> 31) ? f->sign_bit : 0;
    if (t == SONDE_DTYPE_F4E2M1) {
        saturate = true; /* nothing else to become */
        if (a > 0x7F800000)
            return (uint8_t)(sign ^ 0x08);
    }
    if (a > 0x7F800000)
        return (uint8_t)(f->fnuz ? f->nan : (sign | f->nan));
    uint32_t code = a == 0x7F800000 ? UINT32_MAX : encode(a, f->mant, f->bias);
    if (code > f->max) {
        if (saturate)
            code = f->max;
        else if (f->fnuz)
            return f->nan;
        else
            code = f->inf ? f->inf : f->nan;
    }
    if (code == 0 && f->fnuz)
        return 0;
    return (uint8_t)(sign | code);
}

uint8_t sn_f32_to_e8m0(float value, sn_e8m0_round round, bool saturate)
{
    uint32_t a = bits_of(value) & 0x7FFFFFFF; /* negative numbers: unspecified, magnitude taken */
    if (a > 0x7F800000)
        return 0xFF;
    if (a == 0x7F800000)
        return saturate ? 0xFE : 0xFF;
    if (a < 0x00400000) /* below 2^-127 */
        return saturate ? 0 : 0xFF;
    uint32_t exp = a >> 23, frac = a & 0x7FFFFF;
    if (exp == 0)
        frac = (frac - 0x00400000) << 1; /* [2^-127, 2^-126): code 0 and the way to code 1 */
    if (round == SN_E8M0_UP)
        exp += frac != 0;
    else if (round == SN_E8M0_NEAREST)
        exp += frac >= 0x400000;
    if (exp > 0xFE)
        return saturate ? 0xFE : 0xFF;
    return (uint8_t)exp;
}
