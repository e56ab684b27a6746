/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and averages of bytes whose channels lie side by side, a vector of channels at a time.
 * Besides what bytes_quantize.tmpl.h needs, the file that includes this has vb_sums, two vectors of
 * 16-bit sums of VB_BYTES bytes, with vb_sums_add and vb_sums_wide (into QUAD vectors of 32-bit
 * integers). The last vector of a row may overlap the one before it: its channels are computed
 * twice, to the same end. */
#include "kernels/bytes_quantize.tmpl.h"

enum {
    SUMS_RUN = 256, /* rows whose sums fit 16 bits: 255 * 257 is 2^16 - 1 */
    SUMS_WIDE = 4   /* vectors at a time: enough sums to wait for none */
};
_Static_assert((int)QUAD_BYTES == (int)VB_BYTES, "bytes of a vector become QUAD vectors");

/* y = s, or y += s. */
SN_INLINE void sums_to(int32_t *y, const vb_sums *s, bool more)
{
    sn_vi v[QUAD];
    vb_sums_wide(v, s);
    SN_UNROLL for (int k = 0; k < QUAD; k++)
    {
        int32_t *to = y + k * SN_VL;
        vi_store(to, more ? vi_add(v[k], vi_load(to)) : v[k]);
    }
}

SN_INLINE void sum_columns(int32_t *y, const uint8_t *x, ptrdiff_t x_row, size_t rows, uint8_t flip,
                           const int vectors)
{
    for (size_t r = 0; r < rows; r += SUMS_RUN) {
        const size_t run = rows - r < SUMS_RUN ? rows - r : SUMS_RUN;
        vb_sums s[SUMS_WIDE] = {0};
        for (size_t k = 0; k < run; k++, x += x_row)
            SN_UNROLL for (int v = 0; v < vectors; v++)
                vb_sums_add(&s[v], vb_xor(vb_load(x + v * VB_BYTES), flip));
        SN_UNROLL for (int v = 0; v < vectors; v++) sums_to(y + v * VB_BYTES, &s[v], r > 0);
    }
}

void SN_ISA(sn_u8_sums)(int32_t *y, const uint8_t *x, ptrdiff_t x_row, size_t rows, size_t n,
                        uint8_t flip)
{
    if (n < VB_BYTES) {
        sn_u8_sums_ref(y, x, x_row, rows, n, flip);
        return;
    }
    size_t i = 0;
    for (; i + SUMS_WIDE * VB_BYTES <= n; i += SUMS_WIDE * VB_BYTES)
        sum_columns(y + i, x + i, x_row, rows, flip, SUMS_WIDE);
    for (; i + VB_BYTES <= n; i += VB_BYTES)
        sum_columns(y + i, x + i, x_row, rows, flip, 1);
    if (i < n)
        sum_columns(y + n - VB_BYTES, x + n - VB_BYTES, x_row, rows, flip, 1);
}

/* Averages. The rule sums numbers that were rounded, each by itself. Sums of bytes are cheaper;
 * they lead to the same result, unless it lies so close to the middle between two steps that
 * rounding decides. */
typedef struct average {
    const sn_q8_average *t;
    operand x;
    result y;
    divisor d;
    sn_v mean_scale; /* y's steps of a sum of bytes */
    sn_v sure;       /* how far from a whole step it may be and still be right */
    sn_v zeros;      /* what the zero points of all taps sum up to */
    bool by_sums;
} average;

SN_INLINE average average_of(const sn_q8_average *t)
{
    const size_t taps = t->taps[0] * t->taps[1] * t->taps[2];
    const int32_t x_zero = t->x_zero + (t->is_signed ? 128 : 0);
    average a = {.t = t,
                 .x = byte_operand(t->x_scale, t->x_zero, t->is_signed),
                 .y = result_of(t->y_zero, t->is_signed),
                 .d = divisor_of(t->y_scale, is_tame(t->x_scale), 255.0f * t->x_scale),
                 .zeros = v_set1((float)((int32_t)(taps <= SUMS_RUN ? taps : 0) * x_zero))};
    /* The rule rounds twice for every tap and three times behind them, sums of bytes are rounded
     * three times: each by 2^-24 of at most 255 times `ratio` steps; and adding the zero point
     * rounds by 2^-24 of that and 255. */
    const float scale = t->x_scale / (t->count * t->y_scale), ratio = scale * (float)taps;
    a.mean_scale = v_set1(scale);
    a.sure = v_set1(0.5f - (0x1p-16f * (2.0f * (float)taps + 8.0f) * ratio + 0x1p-15f));
    a.by_sums = a.d.tame && t->count > 0 && taps > 0 && taps <= SUMS_RUN && ratio < 16.0f;
    return a;
}

/* SN_VL channels from x on, by the rule. */
SN_INLINE void average_one(const average *a, const uint8_t *x, uint8_t *y)
{
    const sn_q8_average *t = a->t;
    sn_v sum = v_zero();
    for (size_t i = 0; i < t->taps[0]; i++)
        for (size_t j = 0; j < t->taps[1]; j++) {
            const uint8_t *row = x + (ptrdiff_t)i * t->step[0] + (ptrdiff_t)j * t->step[1];
            for (size_t k = 0; k < t->taps[2]; k++, row += t->step[2])
                sum = v_add(sum, numbers(row, &a->x));
        }
    const sn_v mean = t->count > 0 ? v_div(sum, v_set1(t->count)) : v_zero();
    sn_v v = v_add(v_div(mean, a->d.s), a->y.offset);
    v = v_select(v_nan(v), a->y.offset, v);
    const sn_vi steps = vi_from_v(v_at_most(v_number_least(v, a->y.lo), a->y.hi));
    vi_store_u8(y, vi_xor(vi_add(steps, vi_set1(a->y.zero)), vi_set1(a->y.flip)));
}

/* VB_BYTES channels, by sums of bytes; false: the rule has to be asked. */
SN_INLINE bool average_sums(const average *a, const uint8_t *x, uint8_t *y)
{
    const sn_q8_average *t = a->t;
    vb_sums s = {0};
    for (size_t i = 0; i < t->taps[0]; i++)
        for (size_t j = 0; j < t->taps[1]; j++) {
            const uint8_t *row = x + (ptrdiff_t)i * t->step[0] + (ptrdiff_t)j * t->step[1];
            for (size_t k = 0; k < t->taps[2]; k++, row += t->step[2])
                vb_sums_add(&s, vb_xor(vb_load(row), a->y.flip));
        }
    sn_vi steps[QUAD];
    vb_sums_wide(steps, &s);
    sn_v off = v_zero();
    SN_UNROLL for (int k = 0; k < QUAD; k++)
    {
        const sn_v sum = v_sub(v_from_vi(steps[k]), a->zeros);
        const sn_v v = v_mul(sum, a->mean_scale);
        steps[k] = vi_from_v(v);
        off = v_at_least(v_abs(v_sub(v, v_from_vi(steps[k]))), off);
    }
    if (v_hmax(v_sub(off, a->sure)) >= 0.0f)
        return false;
    vi_store_steps(y, steps, (int32_t)t->y_zero + a->y.zero, a->y.flip);
    return true;
}

SN_INLINE void average_quad(const average *a, const uint8_t *x, uint8_t *y)
{
    if (a->by_sums && average_sums(a, x, y))
        return;
    for (int k = 0; k < QUAD; k++)
        average_one(a, x + k * SN_VL, y + k * SN_VL);
}

SN_INLINE void average_pixel(const average *a, const uint8_t *x, uint8_t *y, size_t n)
{
    size_t c = 0;
    for (; c + QUAD_BYTES <= n; c += QUAD_BYTES)
        average_quad(a, x + c, y + c);
    if (c < n && n >= QUAD_BYTES) {
        average_quad(a, x + n - QUAD_BYTES, y + n - QUAD_BYTES);
        return;
    }
    for (; c + SN_VL <= n; c += SN_VL)
        average_one(a, x + c, y + c);
    if (c < n)
        average_one(a, x + n - SN_VL, y + n - SN_VL);
}

void SN_ISA(sn_q8_average)(const sn_q8_average *t)
{
    if (t->n < SN_VL) {
        sn_q8_average_ref(t);
        return;
    }
    const average a = average_of(t);
    for (size_t p = 0; p < t->pixels; p++)
        average_pixel(&a, t->x + (ptrdiff_t)p * t->x_pixel, t->y + p * t->n, t->n);
}
