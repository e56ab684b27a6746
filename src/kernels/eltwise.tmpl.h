/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise f32 kernels in the vector vocabulary. Polynomials are minimax fits (relative error
 * below 1e-8 unless said otherwise); each function keeps NaN and the limits at the infinities. */
#include <math.h>

#include "kernels/kernels.h"

/* e^x for -104 <= x <= 89: x = n ln2 + r, |r| <= ln2/2, polynomial in r. About 1 ulp, subnormal
 * results too. A number that large has no fraction bits: adding it rounds. */
SN_INLINE sn_v v_exp_inside(sn_v x)
{
    const sn_v whole = v_set1(12582912.0f);
    sn_v n = v_sub(v_fma(x, v_set1(1.44269504f), whole), whole);
    sn_v r =
        v_fnma(n, v_set1(0.693145752f), x); /* ln2 in two parts: the first has trailing zeros */
    r = v_fnma(n, v_set1(1.42860677e-6f), r);
    sn_v p = v_set1(1.38131424e-3f);
    p = v_fma(p, r, v_set1(8.36941879e-3f));
    p = v_fma(p, r, v_set1(4.16684560e-2f));
    p = v_fma(p, r, v_set1(1.66665152e-1f));
    p = v_fma(p, r, v_set1(4.99999940e-1f));
    return v_scale_by_2(v_add(v_fma(v_mul(r, r), p, r), v_set1(1.0f)), n);
}

SN_INLINE sn_v v_exp(sn_v x)
{
    return v_exp_inside(v_at_most(v_at_least(x, v_set1(-104.0f)), v_set1(89.0f)));
}

/* e^x - 1, exact about 0: the 1 is taken from the power of two, not from the sum. */
SN_INLINE sn_v v_expm1(sn_v x)
{
    const sn_v whole = v_set1(12582912.0f), one = v_set1(1.0f);
    sn_v a = v_at_most(v_at_least(x, v_set1(-104.0f)), v_set1(40.0f));
    sn_v n = v_sub(v_fma(a, v_set1(1.44269504f), whole), whole);
    sn_v r = v_fnma(n, v_set1(0.693145752f), a);
    r = v_fnma(n, v_set1(1.42860677e-6f), r);
    sn_v p = v_set1(1.38131424e-3f);
    p = v_fma(p, r, v_set1(8.36941879e-3f));
    p = v_fma(p, r, v_set1(4.16684560e-2f));
    p = v_fma(p, r, v_set1(1.66665152e-1f));
    p = v_fma(p, r, v_set1(4.99999940e-1f));
    sn_v power = v_scale_by_2(one, n);
    sn_v y = v_fma(power, v_fma(v_mul(r, r), p, r), v_sub(power, one));
    return v_select(v_gt(x, v_set1(40.0f)), v_exp(x), y);
}

/* log((1 + s) / (1 - s)) for |s| <= 1/3, without the first 2 s: an odd series. */
SN_INLINE sn_v v_log_rest(sn_v s)
{
    sn_v t = v_mul(s, s), p = v_set1(2.17995540e-1f);
    p = v_fma(p, t, v_set1(1.71456940e-1f));
    p = v_fma(p, t, v_set1(2.23017400e-1f));
    p = v_fma(p, t, v_set1(2.85683840e-1f));
    p = v_fma(p, t, v_set1(4.00000530e-1f));
    p = v_fma(p, t, v_set1(6.66666660e-1f));
    return v_mul(v_mul(s, t), p);
}

/* log(1 + z) for 0 <= z <= 1. */
SN_INLINE sn_v v_log1p_inside(sn_v z)
{
    sn_v s = v_div(z, v_add(z, v_set1(2.0f)));
    return v_add(v_add(s, s), v_log_rest(s));
}

/* x = m 2^e with m between the roots of 1/2 and of 2; subnormal numbers are made larger first. */
SN_INLINE sn_v v_log(sn_v x)
{
    const sn_vm tiny = v_lt(x, v_set1(1.17549435e-38f));
    sn_vi bits = vi_cast(v_select(tiny, v_mul(x, v_set1(8388608.0f)), x));
    sn_vi e = vi_sar(vi_sub(bits, vi_set1(0x3F3504F3)), 23);
    sn_v m = v_cast(vi_sub(bits, vi_shl(e, 23)));
    sn_v n = v_sub(v_from_vi(e), v_select(tiny, v_set1(23.0f), v_zero()));
    sn_v f = v_sub(m, v_set1(1.0f)), s = v_div(f, v_add(f, v_set1(2.0f)));
    /* 2 s = f - f s, and f is exact */
    sn_v y = v_add(f, v_sub(v_fma(n, v_set1(3.19461850e-5f), v_log_rest(s)), v_mul(f, s)));
    y = v_fma(n, v_set1(0.693115234f), y);
    y = v_select(v_lt(x, v_set1(INFINITY)), y, x); /* infinity and NaN */
    y = v_select(v_eq(x, v_zero()), v_set1(-INFINITY), y);
    return v_select(v_lt(x, v_zero()), v_set1(NAN), y);
}

SN_INLINE sn_v v_softplus(sn_v x)
{
    sn_v z = v_exp(v_or(x, v_set1(-0.0f))); /* of -|x| */
    return v_add(v_log1p_inside(z), v_at_least(x, v_zero()));
}

/* x tanh(log(1 + e^x)): with z = e^x that is x (z² + 2 z) / (z² + 2 z + 2), for x > 0 divided by
 * z².
 */
SN_INLINE sn_v v_mish(sn_v x)
{
    const sn_v one = v_set1(1.0f), two = v_set1(2.0f);
    sn_v z = v_exp(v_or(x, v_set1(-0.0f))), zz = v_mul(z, z);
    const sn_vm below = v_lt(x, v_zero());
    sn_v top = v_fma(two, z, v_select(below, zz, one));
    sn_v bottom = v_add(top, v_select(below, two, v_add(zz, zz)));
    return v_mul(x, v_div(top, bottom));
}

SN_INLINE sn_v v_star_relu(sn_v x, sn_v scale, sn_v shift)
{
    const sn_v r = v_at_least(x, v_zero());
    return v_add(v_mul(v_mul(r, r), scale), shift);
}

/* 1 / (1 + e^-x) from z = e^-|x| <= 1: no overflow, exact tails. */
SN_INLINE sn_v v_sigmoid(sn_v x)
{
    sn_v z = v_exp_inside(v_at_least(v_or(x, v_set1(-0.0f)), v_set1(-104.0f)));
    sn_v top = v_select(v_lt(x, v_zero()), z, v_set1(1.0f));
    return v_quotient(top, v_add(z, v_set1(1.0f)));
}

SN_INLINE sn_v v_with_sign_of(sn_v magnitude, sn_v x)
{
    return v_or(v_abs(magnitude), v_and(x, v_set1(-0.0f)));
}

/* Odd polynomial below 0.65, 1 - 2 / (e^2|x| + 1) above; from 10 on that is 1. */
SN_INLINE sn_v v_tanh(sn_v x)
{
    sn_v a = v_at_most(v_abs(x), v_set1(10.0f)), t = v_mul(x, x);
    sn_v p = v_set1(2.06466205e-3f);
    p = v_fma(p, t, v_set1(-8.09196476e-3f));
    p = v_fma(p, t, v_set1(2.16663443e-2f));
    p = v_fma(p, t, v_set1(-5.39405644e-2f));
    p = v_fma(p, t, v_set1(1.33331582e-1f));
    p = v_fma(p, t, v_set1(-3.33333284e-1f));
    sn_v small = v_fma(v_mul(p, t), x, x);
    sn_v e = v_exp(v_add(a, a));
    sn_v big = v_sub(v_set1(1.0f), v_quotient(v_set1(2.0f), v_add(e, v_set1(1.0f))));
    sn_v r = v_select(v_lt(a, v_set1(0.65f)), small, v_with_sign_of(big, x));
    return v_select(v_nan(x), x, r);
}

/* erfc(a) for a >= 0: e^(-a^2) P((a - 3) / (a + 3)) / (a + 3). */
SN_INLINE sn_v v_erfc_tail(sn_v a)
{
    sn_v q = v_quotient(v_set1(1.0f), v_add(a, v_set1(3.0f)));
    sn_v u = v_mul(v_sub(a, v_set1(3.0f)), q);
    sn_v p = v_set1(-3.25335510e-4f);
    p = v_fma(p, u, v_set1(-4.83179378e-4f));
    p = v_fma(p, u, v_set1(3.08032939e-3f));
    p = v_fma(p, u, v_set1(-1.22642890e-3f));
    p = v_fma(p, u, v_set1(-2.68398263e-2f));
    p = v_fma(p, u, v_set1(1.19529068e-1f));
    p = v_fma(p, u, v_set1(-3.10466021e-1f));
    p = v_fma(p, u, v_set1(5.90228319e-1f));
    p = v_fma(p, u, v_set1(-8.83394480e-1f));
    p = v_fma(p, u, v_set1(1.07400692f));
    return v_mul(v_exp_inside(v_neg(v_mul(a, a))), v_mul(p, q));
}

SN_INLINE sn_v v_erf(sn_v x)
{
    sn_v a = v_at_most(v_abs(x), v_set1(10.0f)), t = v_mul(a, a);
    sn_v p = v_set1(7.85385782e-5f);
    p = v_fma(p, t, v_set1(-8.01019254e-4f));
    p = v_fma(p, t, v_set1(5.18832775e-3f));
    p = v_fma(p, t, v_set1(-2.68538110e-2f));
    p = v_fma(p, t, v_set1(1.12835854e-1f));
    p = v_fma(p, t, v_set1(-3.76126260e-1f));
    p = v_fma(p, t, v_set1(1.12837911f));
    sn_v big = v_sub(v_set1(1.0f), v_erfc_tail(a));
    sn_v r = v_select(v_lt(a, v_set1(1.0f)), v_mul(p, x), v_with_sign_of(big, x));
    return v_select(v_nan(x), x, r);
}

/* x Φ(x) for `count` vectors in step: the chain of one is long, and a core looks ahead no further
 * than a few of them one after the other. 1 - Φ(a) is P(a)^8 below `end` and 0 from there on: its
 * eighth root is nearly straight, so that P is short, and the power keeps the sign right. The error
 * is at most 2.4e-7 max(1, |x|) and 6e-7 |x|: what the formula with erf in f32 has. */
enum { GELU_WIDE = 4 };
#define EACH SN_UNROLL for (size_t k = 0; k < count; k++)
SN_INLINE void v_times_phi(float *y, const float *px, size_t count, const float *c, size_t degree,
                           float end)
{
    sn_v a[GELU_WIDE], p[GELU_WIDE];
    EACH a[k] = v_abs(v_load(px + k * SN_VL));
    EACH p[k] = v_set1(c[0]);
    SN_UNROLL for (size_t i = 1; i <= degree; i++) EACH p[k] = v_fma(p[k], a[k], v_set1(c[i]));
    SN_UNROLL for (int i = 0; i < 3; i++) EACH p[k] = v_mul(p[k], p[k]);
    EACH
    {
        const sn_v x = v_load(px + k * SN_VL);
        const sn_v tail = v_select(v_lt(a[k], v_set1(end)), p[k], v_zero());
        const sn_v phi = v_select(v_lt(x, v_zero()), tail, v_sub(v_set1(1.0f), tail));
        v_store(y + k * SN_VL, v_mul(x, phi));
    }
}
#undef EACH

/* sin x, or with quarter = 1 cos x, for |x| < SINE_END: x = n π/2 + r, where n tells which of the
 * two polynomials of r it is, and its sign. π/2 in three parts, of which n times the first two have
 * no rounding. */
#define SINE_END 6000.0f
SN_INLINE sn_v v_sine(sn_v x, int quarter)
{
    const sn_v whole = v_set1(12582912.0f);
    sn_v n = v_sub(v_fma(x, v_set1(0.636619772f), whole), whole);
    sn_v r = v_fnma(n, v_set1(1.5703125f), x);
    r = v_fnma(n, v_set1(4.83751297e-4f), r);
    r = v_fnma(n, v_set1(7.54979013e-8f), r);
    sn_v t = v_mul(r, r), s = v_set1(2.71680991e-6f), c = v_set1(-2.71962999e-7f);
    s = v_fma(s, t, v_set1(-1.98391761e-4f));
    s = v_fma(s, t, v_set1(8.33332889e-3f));
    s = v_fma(s, t, v_set1(-1.66666666e-1f));
    s = v_fma(v_mul(s, t), r, r);
    c = v_fma(c, t, v_set1(2.47993503e-5f));
    c = v_fma(c, t, v_set1(-1.38888831e-3f));
    c = v_fma(c, t, v_set1(4.16666666e-2f));
    c = v_fma(v_mul(c, t), t, v_fnma(t, v_set1(0.5f), v_set1(1.0f)));
    sn_vi turns = vi_add(vi_from_v(n), vi_set1(quarter)), odd = vi_and(turns, vi_set1(1));
    sn_v y = v_select(vi_eq(odd, vi_set1(0)), s, c);
    y = v_xor(y, v_cast(vi_shl(vi_and(turns, vi_set1(2)), 30)));
    /* The polynomial loses the sign of zero. */
    return quarter ? y : v_select(v_eq(x, v_zero()), x, y);
}

/* A vector with an angle that is too large, or none, goes number by number. */
SN_INLINE void sine_vector(float *y, const float *px, size_t n, int quarter)
{
    sn_v x = n < SN_VL ? v_load_n(px, n) : v_load(px);
    sn_v far = v_select(v_lt(v_abs(x), v_set1(SINE_END)), v_zero(), v_set1(1.0f));
    if (v_hmax(far) > 0.0f) {
        for (size_t i = 0; i < n; i++)
            y[i] = quarter ? cosf(px[i]) : sinf(px[i]);
    } else if (n < SN_VL) {
        v_store_n(y, v_sine(x, quarter), n);
    } else {
        v_store(y, v_sine(x, quarter));
    }
}

SN_INLINE sn_v v_limit(sn_v x, sn_v lo, sn_v hi)
{
    return v_at_most(v_at_least(x, lo), hi);
}

/* ------------------------------------------------------------------ loops */
#define UNARY(name, n_params, expr)                                                                \
    void SN_ISA(sn_f32_##name)(float *y, const float *px, size_t n, const float *params)           \
    {                                                                                              \
        const sn_v p0 = v_set1((n_params) > 0 ? params[0] : 0.0f);                                 \
        const sn_v p1 = v_set1((n_params) > 1 ? params[1] : 0.0f);                                 \
        size_t i = 0;                                                                              \
        (void)p0;                                                                                  \
        (void)p1;                                                                                  \
        for (; i + SN_VL <= n; i += SN_VL) {                                                       \
            sn_v x = v_load(px + i);                                                               \
            v_store(y + i, (expr));                                                                \
        }                                                                                          \
        if (i < n) {                                                                               \
            sn_v x = v_load_n(px + i, n - i);                                                      \
            v_store_n(y + i, (expr), n - i);                                                       \
        }                                                                                          \
    }
UNARY(relu, 0, v_at_least(x, v_zero()))
UNARY(clip, 2, v_limit(x, p0, p1))
UNARY(leaky_relu, 1, v_select(v_lt(x, v_zero()), v_mul(x, p0), x))
UNARY(elu, 1, v_select(v_lt(x, v_zero()), v_mul(p0, v_expm1(x)), x))
UNARY(selu, 2, v_mul(p0, v_select(v_le(x, v_zero()), v_mul(p1, v_expm1(x)), x)))
UNARY(celu, 1, v_select(v_lt(x, v_zero()), v_mul(p0, v_expm1(v_div(x, p0))), x))
UNARY(softplus, 0, v_softplus(x))
UNARY(softsign, 0, v_div(x, v_add(v_set1(1.0f), v_abs(x))))
UNARY(mish, 0, v_mish(x))
UNARY(star_relu, 2, v_star_relu(x, p0, p1))
UNARY(exp, 0, v_exp(x))
UNARY(log, 0, v_log(x))
UNARY(sigmoid, 0, v_sigmoid(x))
UNARY(tanh, 0, v_tanh(x))
UNARY(erf, 0, v_erf(x))
#define SINE(name, quarter)                                                                        \
    void SN_ISA(sn_f32_##name)(float *y, const float *px, size_t n, const float *params)           \
    {                                                                                              \
        (void)params;                                                                              \
        for (size_t i = 0; i < n; i += SN_VL)                                                      \
            sine_vector(y + i, px + i, n - i < SN_VL ? n - i : SN_VL, quarter);                    \
    }
SINE(sin, 0)
SINE(cos, 1)
#undef SINE
#define TIMES_PHI(name, end, ...)                                                                  \
    void SN_ISA(sn_f32_##name)(float *y, const float *px, size_t n, const float *params)           \
    {                                                                                              \
        static const float c[] = {__VA_ARGS__};                                                    \
        const size_t degree = sizeof c / sizeof c[0] - 1;                                          \
        size_t i = 0;                                                                              \
        (void)params;                                                                              \
        for (; i + GELU_WIDE * SN_VL <= n; i += GELU_WIDE * SN_VL)                                 \
            v_times_phi(y + i, px + i, GELU_WIDE, c, degree, end);                                 \
        for (; i + SN_VL <= n; i += SN_VL)                                                         \
            v_times_phi(y + i, px + i, 1, c, degree, end);                                         \
        if (i < n) {                                                                               \
            float rest[SN_VL];                                                                     \
            v_store(rest, v_load_n(px + i, n - i));                                                \
            v_times_phi(rest, rest, 1, c, degree, end);                                            \
            v_store_n(y + i, v_load(rest), n - i);                                                 \
        }                                                                                          \
    }
TIMES_PHI(gelu, 6.2f, -3.05304055e-7f, 7.61035374e-6f, -6.09733962e-5f, 3.62582249e-5f,
          1.50154304e-3f, -6.69987563e-4f, -3.19285385e-2f, -9.14574897e-2f, 9.17004033e-1f)
/* Φ(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
TIMES_PHI(gelu_tanh, 5.2f, 1.25619119e-7f, -1.71626302e-6f, 5.07336449e-6f, 2.96091639e-5f,
          -2.13636642e-4f, 2.78457423e-4f, 1.30894137e-3f, -4.68609882e-4f, -3.19599806e-2f,
          -9.14545813e-2f, 9.17003992e-1f)
UNARY(swish, 1, v_mul(x, v_sigmoid(v_mul(x, p0))))
UNARY(hard_sigmoid, 2, v_limit(v_add(v_mul(x, p0), p1), v_zero(), v_set1(1.0f)))
UNARY(hard_swish, 0,
      v_mul(x, v_limit(v_add(v_mul(x, v_set1(1.0f / 6.0f)), v_set1(0.5f)), v_zero(), v_set1(1.0f))))
UNARY(sqrt, 0, v_sqrt(x))
UNARY(reciprocal, 0, v_div(v_set1(1.0f), x))
UNARY(floor, 0, v_floor(x))
UNARY(ceil, 0, v_ceil(x))
UNARY(round, 0, v_round(x))
UNARY(abs, 0, v_abs(x))
UNARY(neg, 0, v_neg(x))

void SN_ISA(sn_f32_add_clip)(float *y, const float *x, const float *z, size_t n, float lo, float hi)
{
    const sn_v low = v_set1(lo), high = v_set1(hi);
    size_t i = 0;
    for (; z && i + SN_VL <= n; i += SN_VL)
        v_store(y + i, v_limit(v_add(v_load(x + i), v_load(z + i)), low, high));
    for (; i + SN_VL <= n; i += SN_VL)
        v_store(y + i, v_limit(v_load(x + i), low, high));
    if (i < n) {
        sn_v sum = v_load_n(x + i, n - i);
        if (z)
            sum = v_add(sum, v_load_n(z + i, n - i));
        v_store_n(y + i, v_limit(sum, low, high), n - i);
    }
}

/* One loop per mode: the scalar operand stays in a register. */
#define BINARY_LOOP(load_a, load_b, load_a_n, load_b_n, expr)                                      \
    for (; i + SN_VL <= n; i += SN_VL) {                                                           \
        sn_v a = load_a, b = load_b;                                                               \
        v_store(y + i, (expr));                                                                    \
    }                                                                                              \
    if (i < n) {                                                                                   \
        sn_v a = load_a_n, b = load_b_n;                                                           \
        v_store_n(y + i, (expr), n - i);                                                           \
    }
#define BINARY(name, expr)                                                                         \
    void SN_ISA(sn_f32_##name)(float *y, const float *pa, const float *pb, size_t n, int mode)     \
    {                                                                                              \
        size_t i = 0;                                                                              \
        if (n == 0)                                                                                \
            return;                                                                                \
        const sn_v sa = v_bcast(pa), sb = v_bcast(pb);                                             \
        if (mode == SN_BINARY_VV) {                                                                \
            BINARY_LOOP(v_load(pa + i), v_load(pb + i), v_load_n(pa + i, n - i),                   \
                        v_load_n(pb + i, n - i), expr)                                             \
        } else if (mode == SN_BINARY_SV) {                                                         \
            BINARY_LOOP(sa, v_load(pb + i), sa, v_load_n(pb + i, n - i), expr)                     \
        } else {                                                                                   \
            BINARY_LOOP(v_load(pa + i), sb, v_load_n(pa + i, n - i), sb, expr)                     \
        }                                                                                          \
    }
BINARY(add, v_add(a, b))
BINARY(sub, v_sub(a, b))
BINARY(mul, v_mul(a, b))
BINARY(div, v_div(a, b))
BINARY(min, v_select(v_nan(a), a, v_at_most(b, a)))
BINARY(max, v_select(v_nan(a), a, v_at_least(b, a)))
#undef UNARY
#undef TIMES_PHI
#undef BINARY
#undef BINARY_LOOP
