/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising, and sums and products of quantised numbers: what makes bytes of a scale.
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

SN_INLINE sn_v integers(const uint8_t *p, const operand *o)
{
    return v_sub(v_cast(vi_xor(vi_load_u8(p), o->bits)), o->zero);
}

SN_INLINE sn_v numbers(const uint8_t *p, const operand *o)
{
    return v_mul(integers(p, o), o->scale);
}

/* What a sum is made of besides a · a_scale, and a product besides a. */
SN_INLINE sn_v second(const uint8_t *p, const operand *b, sn_v offset, const bool add)
{
    return add ? v_fma(integers(p, b), b->scale, offset) : integers(p, b);
}

/* Signed bytes are flipped to unsigned ones, 128 larger, as are their zero points. */
SN_INLINE operand byte_operand(float scale, int32_t zero, bool is_signed)
{
    return operand_of(scale, zero + (is_signed ? 128 : 0), is_signed ? 0x80 : 0);
}

/* Where steps of a pair go. */
typedef struct result {
    sn_v offset, lo, hi;
    int32_t zero;
    uint8_t flip;
} result;

SN_INLINE result result_of(float offset, bool is_signed)
{
    const float lo = is_signed ? -128.0f : 0.0f;
    return (result){v_set1(offset), v_set1(lo), v_set1(lo + 255.0f), is_signed ? 128 : 0,
                    is_signed ? 0x80 : 0};
}

SN_INLINE sn_vi pair_steps(const uint8_t *p, const operand *a, sn_v b, const result *r,
                           const bool add)
{
    const sn_v x = integers(p, a);
    const sn_v f = add ? v_fma(x, a->scale, b) : v_add(v_mul(v_mul(x, b), a->scale), r->offset);
    return vi_from_v(v_at_most(v_number_least(f, r->lo), r->hi));
}

/* QUAD_BYTES of them. Where b is one number, that is `one`, and the pointer is not used. */
SN_INLINE void pair_quad(uint8_t *y, const uint8_t *a, const uint8_t *b, const operand *oa,
                         const operand *ob, sn_v one, const result *r, const int mode,
                         const bool add)
{
    sn_vi v[QUAD];
    SN_UNROLL for (int k = 0; k < QUAD; k++)
    {
        const sn_v vb = mode == SN_BINARY_VS ? one : second(b + k * SN_VL, ob, r->offset, add);
        v[k] = pair_steps(a + k * SN_VL, oa, vb, r, add);
    }
    vi_store_steps(y, v, r->zero, r->flip);
}

/* SN_VL of them. */
SN_INLINE void pair_vector(uint8_t *y, const uint8_t *a, const uint8_t *b, const operand *oa,
                           const operand *ob, sn_v one, const result *r, const int mode,
                           const bool add)
{
    const sn_v vb = mode == SN_BINARY_VS ? one : second(b, ob, r->offset, add);
    vi_store_u8(y, pair_steps(a, oa, vb, r, add));
}

SN_INLINE void pair_mode(const sn_q8_binary_args *t, const int mode, const bool add)
{
    const operand oa = byte_operand(t->a_scale, t->a_zero, t->is_signed);
    const operand ob = byte_operand(t->b_scale, t->b_zero, t->is_signed);
    const result r = result_of(t->offset, t->is_signed);
    uint8_t a[SN_VL], b[SN_VL], y[SN_VL];
    sn_v one = v_zero();
    size_t i = 0;
    if (mode == SN_BINARY_VS && t->n > 0) {
        memset(b, *t->b, SN_VL);
        one = second(b, &ob, r.offset, add);
    }
    for (; i + QUAD_BYTES <= t->n; i += QUAD_BYTES)
        pair_quad(t->y + i, t->a + i, t->b + (mode == SN_BINARY_VS ? 0 : i), &oa, &ob, one, &r,
                  mode, add);
    for (; i + SN_VL <= t->n; i += SN_VL)
        pair_vector(t->y + i, t->a + i, t->b + (mode == SN_BINARY_VS ? 0 : i), &oa, &ob, one, &r,
                    mode, add);
    const size_t rest = t->n - i;
    if (rest == 0)
        return;
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    memcpy(a, t->a + i, rest);
    if (mode != SN_BINARY_VS)
        memcpy(b, t->b + i, rest);
    pair_vector(y, a, b, &oa, &ob, one, &r, mode, add);
    memcpy(t->y + i, y, rest);
}

SN_INLINE void pair(const sn_q8_binary_args *t, const bool add)
{
    if (t->mode == SN_BINARY_VV)
        pair_mode(t, SN_BINARY_VV, add);
    else
        pair_mode(t, SN_BINARY_VS, add);
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
                           const result *r, const bool add)
{
    sn_vi v[QUAD];
    SN_UNROLL for (int k = 0; k < QUAD; k++) v[k] =
        pair_steps(a + k * SN_VL, oa, v_load(b + k * SN_VL), r, add);
    vi_store_steps(y, v, r->zero, r->flip);
}

SN_INLINE void repeat(const sn_q8_repeat *t, const bool add)
{
    const operand oa = byte_operand(t->a_scale, t->a_zero, t->is_signed);
    const result r = result_of(t->offset, t->is_signed);
    const size_t n = t->n / QUAD_BYTES * QUAD_BYTES, rest = t->n - n;
    float last[QUAD_BYTES] = {0};
    uint8_t a[QUAD_BYTES] = {0}, y[QUAD_BYTES];
    memcpy(last, t->b + n, rest * sizeof *t->b);
    for (size_t k = 0; k < t->rows; k++) {
        const uint8_t *from = t->a + (ptrdiff_t)k * t->row;
        uint8_t *to = t->y + (ptrdiff_t)k * t->row;
        for (size_t i = 0; i < n; i += QUAD_BYTES)
            repeat_quad(to + i, from + i, t->b + i, &oa, &r, add);
        if (rest == 0)
            continue;
        memcpy(a, from + n, rest);
        repeat_quad(y, a, last, &oa, &r, add);
        memcpy(to + n, y, rest);
    }
}

void SN_ISA(sn_q8_add_repeat)(const sn_q8_repeat *t)
{
    repeat(t, true);
}

void SN_ISA(sn_q8_mul_repeat)(const sn_q8_repeat *t)
{
    repeat(t, false);
}
