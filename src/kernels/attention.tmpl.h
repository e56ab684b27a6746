/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its two matrix products, in the vector vocabulary: scores scaled,
 * biased and their maximum found, then their exponentials and the sum of these. The exponentials
 * are of numbers that are at most 0 and are worth less the further below they lie, so that a plain
 * power of two is enough: the error is measured against 1, the largest of a row. */
#include "kernels/kernels.h"

/* e^x for x <= 0, to 3e-7; below the normal numbers it is 0. */
SN_INLINE sn_v v_exp_negative(sn_v x)
{
    const sn_v t = v_mul(x, v_set1(1.44269504f));
    const sn_v kept = v_at_least(t, v_set1(-126.0f)); /* the exponent below stays one */
    const sn_v n = v_round(kept), f = v_sub(kept, n);
    sn_v p = v_set1(1.3276404e-3f);
    p = v_fma(p, f, v_set1(9.675541e-3f));
    p = v_fma(p, f, v_set1(5.5507135e-2f));
    p = v_fma(p, f, v_set1(2.4022120e-1f));
    p = v_fma(p, f, v_set1(6.9314694e-1f));
    p = v_fma(p, f, v_set1(1.0f));
    p = v_cast(vi_add(vi_cast(p), vi_shl(vi_from_v(n), 23)));
    return v_select(v_lt(t, v_set1(-126.0f)), v_zero(), p);
}

float SN_ISA(sn_f32_scores)(float *s, const float *bias, size_t n, float scale)
{
    const sn_v by = v_set1(scale), lowest = v_set1(-__builtin_inff());
    sn_v m0 = lowest, m1 = lowest;
    size_t i = 0;
    for (; i + 2 * SN_VL <= n; i += 2 * SN_VL) {
        sn_v a = v_load(s + i), b = v_load(s + i + SN_VL);
        if (bias) {
            a = v_fma(a, by, v_load(bias + i));
            b = v_fma(b, by, v_load(bias + i + SN_VL));
        } else {
            a = v_mul(a, by);
            b = v_mul(b, by);
        }
        v_store(s + i, a);
        v_store(s + i + SN_VL, b);
        m0 = v_at_least(a, m0);
        m1 = v_at_least(b, m1);
    }
    for (; i + SN_VL <= n; i += SN_VL) {
        const sn_v a = v_fma(v_load(s + i), by, bias ? v_load(bias + i) : v_set1(-0.0f));
        v_store(s + i, a);
        m0 = v_at_least(a, m0);
    }
    float top = v_hmax(v_at_least(m0, m1));
    if (i < n) {
        const size_t rest = n - i;
        const sn_v add = bias ? v_load_n(bias + i, rest) : v_set1(-0.0f);
        v_store_n(s + i, v_fma(v_load_n(s + i, rest), by, add), rest);
        for (; i < n; i++)
            top = top > s[i] ? top : s[i];
    }
    return top;
}

float SN_ISA(sn_f32_exp_sum)(float *s, size_t n, float max)
{
    const sn_v m = v_set1(max);
    sn_v s0 = v_zero(), s1 = v_zero();
    size_t i = 0;
    for (; i + 2 * SN_VL <= n; i += 2 * SN_VL) {
        const sn_v a = v_exp_negative(v_sub(v_load(s + i), m));
        const sn_v b = v_exp_negative(v_sub(v_load(s + i + SN_VL), m));
        v_store(s + i, a);
        v_store(s + i + SN_VL, b);
        s0 = v_add(s0, a);
        s1 = v_add(s1, b);
    }
    for (; i + SN_VL <= n; i += SN_VL) {
        const sn_v a = v_exp_negative(v_sub(v_load(s + i), m));
        v_store(s + i, a);
        s0 = v_add(s0, a);
    }
    if (i < n) {
        v_store_n(s + i, v_exp_negative(v_sub(v_load_n(s + i, n - i), m)), n - i);
        s1 = v_add(s1, v_load_n(s + i, n - i));
    }
    return v_sum(v_add(s0, s1));
}

/* Four rows at a time: each element of x is loaded once for all of them. */
void SN_ISA(sn_f32_dots)(float *y, const float *x, const float *rows, size_t n, size_t size,
                         size_t stride)
{
    size_t j = 0;
    for (; j < n; j += 4) {
        const size_t count = n - j < 4 ? n - j : 4;
        const float *row[4];
        sn_v acc[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
        for (size_t r = 0; r < 4; r++)
            row[r] = rows + (j + (r < count ? r : 0)) * stride;
        size_t i = 0;
        for (; i + SN_VL <= size; i += SN_VL) {
            const sn_v v = v_load(x + i);
            SN_UNROLL for (int r = 0; r < 4; r++) acc[r] = v_fma(v, v_load(row[r] + i), acc[r]);
        }
        if (i < size) {
            const sn_v v = v_load_n(x + i, size - i);
            SN_UNROLL for (int r = 0; r < 4; r++) acc[r] =
                v_fma(v, v_load_n(row[r] + i, size - i), acc[r]);
        }
        for (size_t r = 0; r < count; r++)
            y[j + r] = v_sum(acc[r]);
    }
}
