/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16, 8 and 4 bits, one at a time, to and from f32. This is the only place that knows
 * their bits: the 16-bit kernels of every instruction set are tested against it, and compute, graph
 * and operators convert single elements with it.
 *
 * Rules as in ONNX's Cast: to nearest, ties to even; `saturate` decides what becomes of numbers
 * beyond the largest finite one. The way to f32 is exact. Results do not depend on whether the
 * processor flushes denormals. */
#ifndef SN_BASE_CODEC_H
#define SN_BASE_CODEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sonde/types.h"

#define SN_F32_INF UINT32_C(0x7F800000)
#define SN_F32_NAN UINT32_C(0x7FC00000)

static inline uint32_t sn_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float sn_f32_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ------------------------------------------------------------------ 16 bits */
/* NaNs keep their sign and their top bits and come out quiet, as processors convert them. */
static inline float sn_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7FFFu;
    if (a >= 0x7C00)
        return sn_f32_of_bits(sign | SN_F32_INF | (a & 0x3FF) << 13 |
                              (a > 0x7C00 ? UINT32_C(0x400000) : 0));
    if (a >= 0x0400) /* the exponent is biased by 15, in f32 by 127 */
        return sn_f32_of_bits(sign | ((a << 13) + (UINT32_C(112) << 23)));
    return sn_f32_of_bits(sign | sn_f32_bits((float)a * 0x1p-24f));
}

static inline uint16_t sn_f32_to_f16(float f)
{
    const uint32_t u = sn_f32_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7FFFFFFFu;
    if (a > SN_F32_INF)
        return (uint16_t)(sign | 0x7E00u | (a >> 13 & 0x3FFu));
    if (a >= 0x47800000u) /* 65536 and more */
        return (uint16_t)(sign | 0x7C00u);
    if (a < 0x38800000u) { /* denormal: the addition rounds to nearest even at the right place */
        const float t = sn_f32_of_bits(a) + 0.5f;
        return (uint16_t)(sign | (sn_f32_bits(t) - 0x3F000000u));
    }
    const uint32_t r = a - 0x38000000u;
    return (uint16_t)(sign | (r + 0xFFFu + (r >> 13 & 1u)) >> 13); /* may carry into infinity */
}

static inline float sn_bf16_to_f32(uint16_t h)
{
    return sn_f32_of_bits((uint32_t)h << 16);
}

static inline uint16_t sn_f32_to_bf16(float f)
{
    const uint32_t u = sn_f32_bits(f);
    if ((u & 0x7FFFFFFFu) > SN_F32_INF)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
}

/* ------------------------------------------------------------------ 8 and 4 bits */
/* A format: how many mantissa bits, the bias of the exponent, and what the top codes mean. */
typedef struct sn_f8_format {
    uint8_t mantissa, bias;
    uint8_t sign; /* bit of the sign */
    uint8_t max;  /* code of the largest finite number, without the sign */
    uint8_t inf;  /* code of infinity, without the sign; 0: none */
    uint8_t nan;  /* code of NaN; 0: none */
    bool fnuz;    /* there is no -0, and its code is the only NaN */
} sn_f8_format;

/* NULL: not one of them. F8E8M0 has no format of this kind, see below. */
static inline const sn_f8_format *sn_f8_format_of(sonde_dtype t)
{
    static const sn_f8_format e4m3fn = {3, 7, 0x80, 0x7E, 0, 0x7F, false};
    static const sn_f8_format e4m3fnuz = {3, 8, 0x80, 0x7F, 0, 0x80, true};
    static const sn_f8_format e5m2 = {2, 15, 0x80, 0x7B, 0x7C, 0x7E, false};
    static const sn_f8_format e5m2fnuz = {2, 16, 0x80, 0x7F, 0, 0x80, true};
    static const sn_f8_format e2m1 = {1, 1, 0x08, 0x07, 0, 0, false};
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

/* The code, sign excluded, of a finite f32 given as its bits without the sign. Numbers past the
 * largest one simply count on, so the caller compares. */
static inline uint32_t sn_f8_magnitude(const sn_f8_format *f, uint32_t a)
{
    if (a < 0x00800000u) /* f32's own denormals are far below every format */
        return 0;
    const int field = (int)(a >> 23) - 127 + f->bias;
    const uint32_t sig = (a & 0x7FFFFF) | 0x800000;
    const int shift = 23 - f->mantissa + (field <= 0 ? 1 - field : 0);
    if (shift > 25)
        return 0;
    const uint32_t rest = sig & (((uint32_t)1 << shift) - 1), half = (uint32_t)1 << (shift - 1);
    uint32_t q = sig >> shift;
    q += rest > half || (rest == half && (q & 1));
    /* q still has the leading bit of a normal number: a carry into the exponent is just the sum. */
    return field > 0 ? ((uint32_t)(field - 1) << f->mantissa) + q : q;
}

static inline float sn_f8_decode(const sn_f8_format *f, uint8_t v)
{
    const uint32_t sign = v & f->sign ? UINT32_C(0x80000000) : 0;
    const uint32_t code = v & (uint32_t)(f->sign - 1);
    if (f->fnuz && v == f->nan)
        return sn_f32_of_bits(SN_F32_NAN);
    if (code > f->max)
        return sn_f32_of_bits(sign | (code == f->inf ? SN_F32_INF : SN_F32_NAN));
    const uint32_t field = code >> f->mantissa, frac = code & ((UINT32_C(1) << f->mantissa) - 1);
    if (field)
        return sn_f32_of_bits(sign | (field + 127u - f->bias) << 23 | frac << (23 - f->mantissa));
    const float unit = sn_f32_of_bits((uint32_t)(127 + 1 - f->bias - f->mantissa) << 23);
    return sn_f32_of_bits(sign | sn_f32_bits((float)frac * unit));
}

static inline uint8_t sn_f8_encode(const sn_f8_format *f, float value, bool saturate)
{
    const uint32_t u = sn_f32_bits(value), a = u & 0x7FFFFFFFu;
    const uint8_t sign = u >> 31 ? f->sign : 0;
    if (a > SN_F32_INF) /* float4 has no NaN: -0 stands for it */
        return !f->nan ? f->sign : f->fnuz ? f->nan : (uint8_t)(sign | f->nan);
    uint32_t code = a == SN_F32_INF ? UINT32_MAX : sn_f8_magnitude(f, a);
    if (code > f->max) {
        if (saturate || !f->nan)
            code = f->max;
        else if (f->fnuz)
            return f->nan;
        else
            code = f->inf ? f->inf : f->nan;
    }
    return f->fnuz && code == 0 ? 0 : (uint8_t)(sign | code);
}

/* float8e8m0 is a power of two, 2^(code - 127); 0xFF is NaN. */
static inline float sn_e8m0_to_f32(uint8_t v)
{
    if (v == 0xFF)
        return sn_f32_of_bits(SN_F32_NAN);
    return sn_f32_of_bits(v ? (uint32_t)v << 23 : UINT32_C(0x00400000));
}

/* Cast's round_mode; NEAREST: ties go up. The sign is dropped; what is smaller than 2^-127 becomes
 * that, what is larger than 2^127 the largest power or, without `saturate`, NaN. */
typedef enum sn_e8m0_round { SN_E8M0_UP, SN_E8M0_DOWN, SN_E8M0_NEAREST } sn_e8m0_round;
static inline uint8_t sn_f32_to_e8m0(float value, sn_e8m0_round round, bool saturate)
{
    const uint32_t a = sn_f32_bits(value) & 0x7FFFFFFFu;
    if (a > SN_F32_INF)
        return 0xFF;
    uint32_t exp = a >> 23, frac = a & 0x7FFFFF;
    if (exp == 0) /* [2^-127, 2^-126) is code 0 and the way to code 1; zero and less is code 0 */
        frac = a < 0x00400000 ? 0 : (frac - 0x00400000) << 1;
    exp += round == SN_E8M0_UP ? frac != 0 : round == SN_E8M0_NEAREST && frac >= 0x400000;
    return (uint8_t)(exp <= 0xFE ? exp : saturate ? 0xFE : 0xFF);
}

/* Every F8* type and F4E2M1; F8E8M0 is rounded up, Cast's default. Other types give 0. */
static inline float sn_f8_to_f32(sonde_dtype t, uint8_t v)
{
    const sn_f8_format *f = sn_f8_format_of(t);
    return f ? sn_f8_decode(f, v) : t == SONDE_DTYPE_F8E8M0 ? sn_e8m0_to_f32(v) : 0.0f;
}

static inline uint8_t sn_f32_to_f8(sonde_dtype t, float value, bool saturate)
{
    const sn_f8_format *f = sn_f8_format_of(t);
    return f ? sn_f8_encode(f, value, saturate)
             : (t == SONDE_DTYPE_F8E8M0 ? sn_f32_to_e8m0(value, SN_E8M0_UP, saturate) : 0);
}

#endif
