/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and averages of bytes whose channels lie side by side, a vector of channels at a time.
 * Behind bytes.tmpl.h, whose vocabulary it uses; besides that the file that includes this has
 * vb_sums, two vectors of 16-bit sums of VB_BYTES bytes, with vb_sums_add and vb_sums_to (into
 * VB_BYTES numbers of 32 bits, or added to them), and doubles: vd, half an sn_v of them. The last
 * vector of a row may overlap the one before it: its channels are computed twice, to the same end.
 */

enum {
    SUMS_RUN = 256, /* rows whose sums fit 16 bits: 255 * 257 is 2^16 - 1 */
    SUMS_WIDE = 4   /* vectors at a time: enough sums to wait for none */
};

SN_INLINE void sum_columns(int32_t *y, const uint8_t *x, ptrdiff_t x_row, size_t rows, uint8_t flip,
                           const int vectors)
{
    for (size_t r = 0; r < rows; r += SUMS_RUN) {
        const size_t run = rows - r < SUMS_RUN ? rows - r : SUMS_RUN;
        vb_sums s[SUMS_WIDE] = {0};
        for (size_t k = 0; k < run; k++, x += x_row)
            SN_UNROLL for (int v = 0; v < vectors; v++)
                vb_sums_add(&s[v], vb_xor(vb_load(x + v * VB_BYTES), flip));
        SN_UNROLL for (int v = 0; v < vectors; v++) vb_sums_to(y + v * VB_BYTES, &s[v], r > 0);
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

/* SN_VL channels from x on. */
SN_INLINE void average_one(const sn_q8_average *t, const uint8_t *x, uint8_t *y)
{
    const sn_vi flip = vi_set1(t->flip), zero = vi_set1(t->x_zero);
    const sn_v scale = v_set1(t->x_scale);
    vd low = vd_set1(0.0), high = low;
    for (size_t i = 0; i < t->taps[0]; i++)
        for (size_t j = 0; j < t->taps[1]; j++) {
            const uint8_t *row = x + (ptrdiff_t)i * t->step[0] + (ptrdiff_t)j * t->step[1];
            for (size_t k = 0; k < t->taps[2]; k++, row += t->step[2]) {
                const sn_vi byte = vi_xor(vi_load_u8(row), flip);
                const sn_v v = v_mul(v_from_vi(vi_sub(byte, zero)), scale);
                low = vd_add(low, vd_low(v));
                high = vd_add(high, vd_high(v));
            }
        }
    const vd count = vd_set1(t->count);
    const sn_v mean = t->count > 0 ? v_from_vd(vd_div(low, count), vd_div(high, count)) : v_zero();
    const sn_v v = v_div(mean, v_set1(t->y_scale));
    const byte_limits l = limits_of(t->y_zero, 0.0f, 255.0f);
    vi_store_u8(y, vi_xor(to_bytes(v_select(v_nan(v), v_zero(), v), &l), flip));
}

void SN_ISA(sn_q8_average)(const sn_q8_average *t)
{
    if (t->n < SN_VL) {
        sn_q8_average_ref(t);
        return;
    }
    size_t c = 0;
    for (; c + SN_VL <= t->n; c += SN_VL)
        average_one(t, t->x + c, t->y + c);
    if (c < t->n)
        average_one(t, t->x + t->n - SN_VL, t->y + t->n - SN_VL);
}
