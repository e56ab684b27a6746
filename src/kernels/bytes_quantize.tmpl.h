/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising, and sums and products of quantised numbers: what divides by the scale of the result.
 * Besides what bytes.tmpl.h needs, the file that includes this has vi_store_steps, which adds a
 * zero point to QUAD vectors of integers, cuts them to bytes and stores those, xored with `flip`.
 */
#include "kernels/bytes.tmpl.h"

enum { QUAD = 4, QUAD_BYTES = QUAD * SN_VL };

/* Divisions by the same number, each in five multiplications: q is a / s to a unit in the last
 * place after the first correction, and the second one rounds it as a division does (Markstein: r
 * is 1 / s correctly rounded, and the remainders are exact). That needs numbers far from overflow
 * and underflow: s lies within 2^±30, and quotients above 2^30 do not occur. A quotient that
 * underflows on the way is still below 1/2. */
typedef struct divisor {
    sn_v s, r;
    bool tame;
} divisor;

SN_INLINE bool is_tame(float scale)
{
    return scale >= 0x1p-30f && scale <= 0x1p30f;
}

/* `most`: the largest number that is divided. */
SN_INLINE divisor divisor_of(float s, bool tame, float most)
{
    tame = tame && is_tame(s) && most / s < 0x1p30f;
    return (divisor){v_set1(s), v_set1(1.0f / s), tame};
}

SN_INLINE sn_v quotient(sn_v a, const divisor *d)
{
    sn_v q = v_mul(a, d->r);
    q = v_fma(v_fnma(q, d->s, a), d->r, q);
    return v_fma(v_fnma(q, d->s, a), d->r, q);
}

/* ------------------------------------------------------------------ f32 to bytes */
/* Cutting numbers before they are divided is cutting the result: at the limits, which are integers
 * times s, the rounded quotient is the integer. */
SN_INLINE sn_vi steps_of(sn_v x, const divisor *d, sn_v lo, sn_v hi)
{
    x = v_select(v_nan(x), v_zero(), x);
    return vi_from_v(quotient(v_at_most(v_at_least(x, lo), hi), d));
}

SN_INLINE void quantize_tame(uint8_t *y, const float *x, size_t n, const divisor *d, sn_v lo,
                             sn_v hi, int32_t zero, uint8_t flip)
{
    sn_vi v[QUAD];
    size_t i = 0;
    for (; i + QUAD_BYTES <= n; i += QUAD_BYTES) {
        SN_UNROLL for (int k = 0; k < QUAD; k++) v[k] =
            steps_of(v_load(x + i + k * SN_VL), d, lo, hi);
        vi_store_steps(y + i, v, zero, flip);
    }
    if (i == n)
        return;
    float part[QUAD_BYTES] = {0};
    uint8_t made[QUAD_BYTES];
    memcpy(part, x + i, (n - i) * sizeof *x);
    SN_UNROLL for (int k = 0; k < QUAD; k++) v[k] = steps_of(v_load(part + k * SN_VL), d, lo, hi);
    vi_store_steps(made, v, zero, flip);
    memcpy(y + i, made, n - i);
}

void SN_ISA(sn_f32_quantize)(uint8_t *y, const float *x, size_t n, float scale, float zero,
                             float lo, float hi)
{
    const divisor d = divisor_of(scale, true, 0.0f);
    if (d.tame) {
        const uint8_t flip = lo < 0.0f ? 0x80 : 0; /* signed bytes are stored as larger ones */
        quantize_tame(y, x, n, &d, v_set1((lo - zero) * scale), v_set1((hi - zero) * scale),
                      (int32_t)zero + flip, flip);
        return;
    }
    const byte_limits l = limits_of(zero, lo, hi);
    for (size_t i = 0; i < n; i += SN_VL) {
        const size_t m = n - i < SN_VL ? n - i : SN_VL;
        const sn_v v = v_div(m < SN_VL ? v_load_n(x + i, m) : v_load(x + i), d.s);
        uint8_t rest[SN_VL];
        vi_store_u8(m < SN_VL ? rest : y + i, to_bytes(v_select(v_nan(v), v_zero(), v), &l));
        if (m < SN_VL)
            memcpy(y + i, rest, m);
    }
}

/* ------------------------------------------------------------------ two operands */
/* A byte becomes a float as the last bits of 2^23, from which that and the zero point are
 * subtracted, exactly. */
typedef struct operand {
    sn_vi bits; /* of 2^23, and the flip */
    sn_v zero, scale;
} operand;

SN_INLINE operand operand_of(float scale, int32_t zero, uint8_t flip)
{
    return (operand){vi_xor(vi_cast(v_set1(0x1p23f)), vi_set1(flip)), v_set1(0x1p23f + (float)zero),
                     v_set1(scale)};
}

SN_INLINE sn_v numbers(const uint8_t *p, const operand *o)
{
    return v_mul(v_sub(v_cast(vi_xor(vi_load_u8(p), o->bits)), o->zero), o->scale);
}

typedef struct result {
    divisor d;
    sn_v lo, hi; /* where d is not tame */
    int32_t zero;
    uint8_t flip;
} result;

SN_INLINE result result_of(float a_scale, float b_scale, float y_scale, float zero, uint8_t flip,
                           const bool add)
{
    const bool tame = is_tame(a_scale) && is_tame(b_scale);
    const float most = 255.0f * (add ? a_scale + b_scale : 255.0f * a_scale * b_scale);
    return (result){divisor_of(y_scale, tame, most), v_set1(0.0f - zero), v_set1(255.0f - zero),
                    (int32_t)zero, flip};
}

/* The steps of f(a, b), without the zero point. NaN gives the smallest. */
SN_INLINE sn_vi pair_steps(sn_v a, sn_v b, const result *r, const bool add, const bool tame)
{
    const sn_v f = add ? v_add(a, b) : v_mul(a, b);
    return vi_from_v(tame ? quotient(f, &r->d)
                          : v_at_most(v_number_least(v_div(f, r->d.s), r->lo), r->hi));
}

/* QUAD_BYTES of them. What is one number for all is in `one`, the other pointer is not used. */
SN_INLINE void pair_quad(uint8_t *y, const uint8_t *a, const uint8_t *b, const operand *oa,
                         const operand *ob, sn_v one, const result *r, const int mode,
                         const bool add, const bool tame)
{
    sn_vi v[QUAD];
    SN_UNROLL for (int k = 0; k < QUAD; k++)
    {
        const sn_v va = mode == SN_BINARY_SV ? one : numbers(a + k * SN_VL, oa);
        const sn_v vb = mode == SN_BINARY_VS ? one : numbers(b + k * SN_VL, ob);
        v[k] = pair_steps(va, vb, r, add, tame);
    }
    vi_store_steps(y, v, r->zero, r->flip);
}

SN_INLINE void pair_mode(const sn_q8_binary_args *t, const result *r, const int mode,
                         const bool add, const bool tame)
{
    const operand oa = operand_of(t->a_scale, t->a_zero, t->flip);
    const operand ob = operand_of(t->b_scale, t->b_zero, t->flip);
    uint8_t a[QUAD_BYTES], b[QUAD_BYTES], y[QUAD_BYTES];
    sn_v one = v_zero();
    size_t i = 0;
    if (mode != SN_BINARY_VV && t->n > 0) {
        memset(a, mode == SN_BINARY_SV ? *t->a : *t->b, SN_VL);
        one = numbers(a, mode == SN_BINARY_SV ? &oa : &ob);
    }
    for (; i + QUAD_BYTES <= t->n; i += QUAD_BYTES)
        pair_quad(t->y + i, t->a + (mode == SN_BINARY_SV ? 0 : i),
                  t->b + (mode == SN_BINARY_VS ? 0 : i), &oa, &ob, one, r, mode, add, tame);
    const size_t rest = t->n - i;
    if (rest == 0)
        return;
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    if (mode != SN_BINARY_SV)
        memcpy(a, t->a + i, rest);
    if (mode != SN_BINARY_VS)
        memcpy(b, t->b + i, rest);
    pair_quad(y, a, b, &oa, &ob, one, r, mode, add, tame);
    memcpy(t->y + i, y, rest);
}

SN_INLINE void pair(const sn_q8_binary_args *t, const bool add)
{
    const result r = result_of(t->a_scale, t->b_scale, t->y_scale, t->y_zero, t->flip, add);
    if (!r.d.tame)
        pair_mode(t, &r, t->mode, add, false);
    else if (t->mode == SN_BINARY_VV)
        pair_mode(t, &r, SN_BINARY_VV, add, true);
    else if (t->mode == SN_BINARY_VS)
        pair_mode(t, &r, SN_BINARY_VS, add, true);
    else
        pair_mode(t, &r, SN_BINARY_SV, add, true);
}

void SN_ISA(sn_q8_add)(const sn_q8_binary_args *t)
{
    pair(t, true);
}

void SN_ISA(sn_q8_mul)(const sn_q8_binary_args *t)
{
    pair(t, false);
}

/* ------------------------------------------------------------------ a row that repeats */
SN_INLINE void repeat_quad(uint8_t *y, const uint8_t *a, const float *b, const operand *oa,
                           const result *r, const bool add, const bool tame)
{
    sn_vi v[QUAD];
    SN_UNROLL for (int k = 0; k < QUAD; k++) v[k] =
        pair_steps(numbers(a + k * SN_VL, oa), v_load(b + k * SN_VL), r, add, tame);
    vi_store_steps(y, v, r->zero, r->flip);
}

SN_INLINE void repeat_rows(const sn_q8_repeat *t, const result *r, const bool add, const bool tame)
{
    const operand oa = operand_of(t->a_scale, t->a_zero, t->flip);
    const size_t n = t->n / QUAD_BYTES * QUAD_BYTES, rest = t->n - n;
    float last[QUAD_BYTES] = {0};
    uint8_t a[QUAD_BYTES] = {0}, y[QUAD_BYTES];
    memcpy(last, t->b + n, rest * sizeof *t->b);
    for (size_t k = 0; k < t->rows; k++) {
        const uint8_t *from = t->a + (ptrdiff_t)k * t->row;
        uint8_t *to = t->y + (ptrdiff_t)k * t->row;
        for (size_t i = 0; i < n; i += QUAD_BYTES)
            repeat_quad(to + i, from + i, t->b + i, &oa, r, add, tame);
        if (rest == 0)
            continue;
        memcpy(a, from + n, rest);
        repeat_quad(y, a, last, &oa, r, add, tame);
        memcpy(to + n, y, rest);
    }
}

SN_INLINE void repeat(const sn_q8_repeat *t, const bool add)
{
    const result r = result_of(t->a_scale, t->b_scale, t->y_scale, t->y_zero, t->flip, add);
    if (r.d.tame)
        repeat_rows(t, &r, add, true);
    else
        repeat_rows(t, &r, add, false);
}

void SN_ISA(sn_q8_add_repeat)(const sn_q8_repeat *t)
{
    repeat(t, true);
}

void SN_ISA(sn_q8_mul_repeat)(const sn_q8_repeat *t)
{
    repeat(t, false);
}
