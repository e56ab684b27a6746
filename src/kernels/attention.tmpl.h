/* SPDX-License-Identifier: Apache-2.0 */
/* What attention needs between its two matrix products, in the vector vocabulary: exponentials of
 * scores relative to the largest of their row. They are of numbers that are at most 0 and are worth
 * less the further below they lie, so that a plain power of two is enough: the error is measured
 * against 1, the largest of a row. */
#include "kernels/kernels.h"

/* e^x for x <= 0, to 3e-7; below the normal numbers it is 0. */
SN_INLINE sn_v v_exp_negative(sn_v x)
{
    const sn_v t = v_mul(x, v_set1(1.44269504f));
    const sn_v whole = v_set1(12582912.0f); /* has no fraction bits: adding it rounds */
    const sn_v n = v_sub(v_add(t, whole), whole), f = v_sub(t, n);
    sn_v p = v_set1(1.3276404e-3f);
    p = v_fma(p, f, v_set1(9.675541e-3f));
    p = v_fma(p, f, v_set1(5.5507135e-2f));
    p = v_fma(p, f, v_set1(2.4022120e-1f));
    p = v_fma(p, f, v_set1(6.9314694e-1f));
    p = v_fma(p, f, v_set1(1.0f));
    p = v_cast(vi_add(vi_cast(p), vi_shl(vi_from_v(n), 23)));
    return v_select(v_lt(t, v_set1(-126.0f)), v_zero(), p);
}

/* Vectors in step: what a core needs to be busy through their chains, as far as registers allow. */
enum { EXP_ROWS = SN_REGS / 8 };
#define EACH SN_UNROLL for (size_t r = 0; r < count; r++)

/* Scores of one vector of each row, to which `terms` tensors are added; `lanes` of them are there,
 * or all when it is SN_VL. */
SN_INLINE void load_scores(sn_v *t, const sn_f32_exp_rows *e, size_t row, size_t i,
                           const size_t count, size_t lanes, const int terms)
{
    const ptrdiff_t first = (ptrdiff_t)row;
    const float *s = e->s + first * e->s_row + i, *b = e->bias, *more = e->more;
    EACH t[r] = lanes == SN_VL ? v_load(s + (ptrdiff_t)r * e->s_row)
                               : v_load_n(s + (ptrdiff_t)r * e->s_row, lanes);
    if (terms == 0) {
        EACH t[r] = v_mul(t[r], v_set1(e->scale));
        return;
    }
    EACH
    {
        const float *at = b + (first + (ptrdiff_t)r) * e->bias_row + i;
        const sn_v add = lanes == SN_VL ? v_load(at) : v_load_n(at, lanes);
        t[r] = v_fma(t[r], v_set1(e->scale), add);
    }
    if (terms == 1)
        return;
    EACH
    {
        const float *at = more + (first + (ptrdiff_t)r) * e->more_row + i;
        t[r] = v_add(t[r], lanes == SN_VL ? v_load(at) : v_load_n(at, lanes));
    }
}

/* `count` rows from `row` on, side by side. */
SN_INLINE void exp_rows(const sn_f32_exp_rows *e, size_t row, const size_t count, const int terms)
{
    /* From 16 - rest on: all bits set in `rest` lanes, none in the others. */
    static const int32_t edge[32] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1};
    const size_t whole = e->n / SN_VL * SN_VL, rest = e->n - whole;
    const sn_vi in = vi_load(edge + 16 - rest);
    sn_v t[EXP_ROWS], m[EXP_ROWS], top[EXP_ROWS];
    EACH m[r] = v_set1(-__builtin_inff());
    for (size_t i = 0; i < whole; i += SN_VL) {
        load_scores(t, e, row, i, count, SN_VL, terms);
        EACH m[r] = v_at_least(t[r], m[r]);
    }
    if (rest > 0) {
        load_scores(t, e, row, whole, count, rest, terms);
        EACH m[r] = v_select(vi_eq(in, vi_set1(-1)), v_at_least(t[r], m[r]), m[r]);
    }
    EACH
    {
        const float largest = v_hmax(m[r]), before = e->max[row + r];
        const float max = largest > before ? largest : before;
        float lanes[SN_VL];
        v_store(lanes, v_exp_negative(v_set1(before - max)));
        e->factor[row + r] = before == -__builtin_inff() ? 0.0f : lanes[0];
        e->max[row + r] = max;
        top[r] = v_set1(max == -__builtin_inff() ? 0.0f : max);
        m[r] = v_zero();
    }
    for (size_t i = 0; i < whole; i += SN_VL) {
        load_scores(t, e, row, i, count, SN_VL, terms);
        EACH t[r] = v_exp_negative(v_sub(t[r], top[r]));
        EACH v_store(e->s + (ptrdiff_t)(row + r) * e->s_row + i, t[r]);
        EACH m[r] = v_add(m[r], t[r]);
    }
    if (rest > 0) {
        load_scores(t, e, row, whole, count, rest, terms);
        EACH t[r] = v_exp_negative(v_sub(t[r], top[r]));
        EACH v_store_n(e->s + (ptrdiff_t)(row + r) * e->s_row + whole, t[r], rest);
        EACH m[r] = v_add(m[r], v_and(t[r], v_cast(in)));
    }
    EACH e->sum[row + r] = e->sum[row + r] * e->factor[row + r] + v_sum(m[r]);
}
#undef EACH

SN_INLINE void all_rows(const sn_f32_exp_rows *e, const int terms)
{
    size_t r = 0;
    for (; r + EXP_ROWS <= e->rows; r += EXP_ROWS)
        exp_rows(e, r, EXP_ROWS, terms);
    for (; r < e->rows; r++)
        exp_rows(e, r, 1, terms);
}

void SN_ISA(sn_f32_exp_rows)(const sn_f32_exp_rows *e)
{
    if (!e->bias)
        all_rows(e, 0);
    else if (!e->more)
        all_rows(e, 1);
    else
        all_rows(e, 2);
}

void SN_ISA(sn_f32_scale_rows)(float *y, ptrdiff_t y_row, size_t rows, size_t n, const float *by)
{
    for (size_t r = 0; r < rows; r++, y += y_row) {
        const sn_v v = v_bcast(by + r);
        size_t i = 0;
        for (; i + SN_VL <= n; i += SN_VL)
            v_store(y + i, v_mul(v_load(y + i), v));
        if (i < n)
            v_store_n(y + i, v_mul(v_load_n(y + i, n - i), v), n - i);
    }
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
