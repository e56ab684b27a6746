/* SPDX-License-Identifier: Apache-2.0 */
/* A run of queries against its keys, a block of keys at a time: scores, their exponentials, their
 * mix of values. Each row carries the largest score seen and the sum of exponentials relative to
 * it; a larger score later on scales down what is there. Rows are divided by their sums at the end.
 */
#include "compute/attention_block.h"

#include <math.h>
#include <string.h>

#include "compute/split.h"

void sn_attention_pack(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                       int64_t kv, float *dst)
{
    const sn_attention_desc *d = &p->d;
    const int64_t block = p->block;
    const float *k = (const float *)a->k + b * d->k[0] + kv * d->k[1];
    const float *v = (const float *)a->v + b * d->v[0] + kv * d->v[1];
    float *values = dst + p->pack_k;
    /* Keys become lanes: the change of layout that blocks channels. */
    for (int64_t t = 0; t < d->kv_len; t += block, dst += d->head * block)
        p->kernels->f32_block(dst, k + t * d->k[2], (size_t)d->head,
                              (unsigned)sn_min(block, d->kv_len - t), p->block, (size_t)d->k[2]);
    for (int64_t t = 0; t < d->kv_len && p->v_row > 0; t++, values += p->v_row) {
        memcpy(values, v + t * d->v[2], sizeof(float) * (size_t)d->v_head);
        memset(values + d->v_head, 0, sizeof(float) * (size_t)(p->v_row - d->v_head));
    }
}

/* Where a product's right-hand matrix lies: column block q begins at w + q * panel, its rows are
 * `row` apart. */
typedef struct right_side {
    const float *w;
    ptrdiff_t panel, row;
} right_side;

/* y[rows][cols] = x[rows][k] · w, plus y itself when `add` is set; x_row and y_row are row strides.
 * `whole_blocks`: y has room for whole blocks. */
static void product(const sn_attention_plan *p, const float *x, ptrdiff_t x_row, right_side w,
                    int64_t k, float *y, ptrdiff_t y_row, int64_t rows, int64_t cols,
                    bool whole_blocks, bool add)
{
    const int64_t block = p->block, panels = sn_ceil_div(cols, block);
    const int64_t most = rows <= 7 ? 4 : 2;
    for (int64_t at = 0; at < panels; at += most) {
        const int64_t n = sn_min(most, panels - at);
        const bool last = at + n == panels;
        const sn_f32_tile t = {
            .x = x,
            .w = w.w + at * w.panel,
            .y = y + at * block,
            .z = add ? y + at * block : NULL,
            .pixels = (size_t)rows,
            .blocks = (unsigned)n,
            .lanes = last && !whole_blocks ? (unsigned)(cols % block) : 0,
            .block = p->block,
            .ic_blocks = 1,
            .ic = (size_t)k,
            .ic_last = (size_t)k,
            .kh = 1,
            .kw = 1,
            .last_kw = 1,
            .x_pixel = x_row,
            .x_ic = 1,
            .w_q = w.panel,
            .w_ic = w.row,
            .y_pixel = y_row,
            .y_q = block,
            .z_pixel = y_row,
            .z_q = block,
            .lo = -INFINITY,
            .hi = INFINITY,
        };
        p->kernels->f32_gemm(&t);
    }
}

/* ------------------------------------------------------------------ one row of scores */
static const void *mask_row(const sn_attention_mask *m, size_t elem, int64_t b, int64_t h,
                            int64_t i, int64_t j)
{
    const ptrdiff_t at = b * m->stride[0] + h * m->stride[1] + i * m->stride[2] + j * m->stride[3];
    return (const uint8_t *)m->data + at * (ptrdiff_t)elem;
}

/* Scores of keys j … j + n - 1 hidden where the mask says so. */
static void hide(const sn_attention_plan *p, const sn_attention_args *a, const uint8_t *keep,
                 float *s, int64_t n)
{
    const float filter = (float)a->filter;
    const ptrdiff_t step = a->keep.stride[3];
    const bool adds = p->d.hide == SN_ATTENTION_ADD_FILTER, hidden = a->hidden != 0;
    for (int64_t j = 0; j < n; j++)
        s[j] = (keep[j * step] != 0) == hidden ? (adds ? s[j] + filter : filter) : s[j];
}

/* bias over keys: one number for all of them when its stride is 0. Returns the largest score. */
static float add_bias(const sn_attention_plan *p, const float *bias, ptrdiff_t step, float *s,
                      int64_t n, float scale)
{
    if (!bias || step == 1)
        return p->kernels->f32_scores(s, bias, (size_t)n, scale);
    for (int64_t j = 0; j < n; j++)
        s[j] = s[j] * scale + bias[j * step];
    return p->kernels->f32_scores(s, NULL, (size_t)n, 1.0f);
}

/* Raw products of query i with keys j … j + n - 1 (all below the masks' ends) ► scores; returns the
 * largest. */
static float finish_scores(const sn_attention_plan *p, const sn_attention_args *a, float *s,
                           int64_t b, int64_t h, int64_t i, int64_t j, int64_t n)
{
    const sn_attention_desc *d = &p->d;
    const sn_kernels *k = p->kernels;
    const float scale = (float)d->scale, cap = (float)d->softcap;
    const float *bias = a->bias.data ? mask_row(&a->bias, sizeof(float), b, h, i, j) : NULL;
    const uint8_t *keep = a->keep.data ? mask_row(&a->keep, 1, b, h, i, j) : NULL;
    if (!keep && !(cap > 0))
        return add_bias(p, bias, a->bias.stride[3], s, n, scale);
    k->f32_mul(s, s, &scale, (size_t)n, SN_BINARY_VS);
    if (cap > 0) {
        const float inv = 1.0f / cap;
        k->f32_mul(s, s, &inv, (size_t)n, SN_BINARY_VS);
        k->f32_tanh(s, s, (size_t)n, NULL);
        k->f32_mul(s, s, &cap, (size_t)n, SN_BINARY_VS);
    }
    const bool first = keep && d->hide == SN_ATTENTION_FILL_FIRST;
    if (first)
        hide(p, a, keep, s, n);
    const float top = add_bias(p, bias, a->bias.stride[3], s, n, 1.0f);
    if (!keep || first)
        return top;
    hide(p, a, keep, s, n);
    return k->f32_rowmax(s, (size_t)n);
}

typedef struct row_state {
    float *max, *sum; /* of the piece's rows */
} row_state;

/* Raw products of row r with keys at … at + n - 1 ► exponentials, 0 for keys it does not see.
 * Returns what the row's earlier exponentials are to be multiplied by. */
static float take_row(const sn_attention_plan *p, const sn_attention_args *a,
                      const sn_attention_piece *q, row_state st, float *s, int64_t r, int64_t at,
                      int64_t n)
{
    int64_t lo, hi;
    sn_attention_range(&p->d, a, q->batch, q->first + r, &lo, &hi);
    if (a->bias.data)
        hi = sn_min(hi, a->bias.len);
    if (a->keep.data)
        hi = sn_min(hi, a->keep.len);
    lo = sn_max(lo, at);
    hi = sn_min(hi, at + n);
    const int64_t seen = sn_max(hi - lo, 0);
    float top = -INFINITY, factor = 1.0f;
    if (seen > 0)
        top = finish_scores(p, a, s + lo - at, q->batch, q->head, q->first + r, lo, seen);
    if (top == -INFINITY && st.max[r] == -INFINITY) {
        /* Nothing to see yet, unless a NaN hides among the masked. */
        if (seen > 0 && isnan(p->kernels->f32_sum(s + lo - at, (size_t)seen)))
            st.sum[r] = NAN;
        memset(s, 0, sizeof(float) * (size_t)n);
        return factor;
    }
    if (seen > 0) {
        const float max = top > st.max[r] || isnan(top) ? top : st.max[r];
        factor = expf(st.max[r] - max);
        st.sum[r] = st.sum[r] * factor + p->kernels->f32_exp_sum(s + lo - at, (size_t)seen, max);
        st.max[r] = max;
        memset(s, 0, sizeof(float) * (size_t)(lo - at));
        memset(s + hi - at, 0, sizeof(float) * (size_t)(at + n - hi));
    } else {
        memset(s, 0, sizeof(float) * (size_t)n);
    }
    return factor;
}

/* ------------------------------------------------------------------ the piece */
static void scale_row(const sn_attention_plan *p, float *y, float by)
{
    p->kernels->f32_mul(y, y, &by, (size_t)p->d.v_head, SN_BINARY_VS);
}

/* Products of all rows with keys at … at + n - 1, rows p->keys apart. */
static void raw_scores(const sn_attention_plan *p, const sn_attention_args *a,
                       const sn_attention_piece *q, float *s, int64_t at, int64_t n)
{
    const sn_attention_desc *d = &p->d;
    const float *x =
        (const float *)a->q + q->batch * d->q[0] + q->head * d->q[1] + q->first * d->q[2];
    if (p->packed) {
        const int64_t block = p->block;
        const right_side w = {q->pack + at * d->head, d->head * block, block};
        product(p, x, d->q[2], w, d->head, s, p->keys, q->rows, n, true, false);
        return;
    }
    const int64_t kv = q->head / (d->heads / d->kv_heads);
    const float *k = (const float *)a->k + q->batch * d->k[0] + kv * d->k[1] + at * d->k[2];
    for (int64_t r = 0; r < q->rows; r++)
        p->kernels->f32_dots(s + r * p->keys, x + r * d->q[2], k, (size_t)n, (size_t)d->head,
                             (size_t)d->k[2]);
}

/* y (+)= exponentials · values. */
static void mix_values(const sn_attention_plan *p, const sn_attention_args *a,
                       const sn_attention_piece *q, const float *s, float *y, int64_t at, int64_t n,
                       bool add)
{
    const sn_attention_desc *d = &p->d;
    const int64_t kv = q->head / (d->heads / d->kv_heads);
    const float *v = (const float *)a->v + q->batch * d->v[0] + kv * d->v[1] + at * d->v[2];
    right_side w = {v, p->block, d->v[2]};
    if (p->v_row > 0)
        w = (right_side){q->pack + p->pack_k + at * p->v_row, p->block, p->v_row};
    if (p->v_row > 0 || d->v_head % p->block == 0) {
        product(p, s, p->keys, w, n, y, d->y[2], q->rows, d->v_head, false, add);
        return;
    }
    for (int64_t r = 0; r < q->rows; r++) {
        if (!add)
            memset(y + r * d->y[2], 0, sizeof(float) * (size_t)d->v_head);
        for (int64_t j = 0; j < n; j++)
            p->kernels->f32_axpy(y + r * d->y[2], v + j * d->v[2], (size_t)d->v_head, 1,
                                 s[r * p->keys + j]);
    }
}

/* Divides by the sums. A row without keys is zero; one with nothing but masked keys is NaN as the
 * formula has it, or zero as some models want it. */
static void finish_rows(const sn_attention_plan *p, const sn_attention_args *a,
                        const sn_attention_piece *q, row_state st, float *y)
{
    const sn_attention_desc *d = &p->d;
    for (int64_t r = 0; r < q->rows; r++, y += d->y[2]) {
        int64_t lo, hi;
        sn_attention_range(d, a, q->batch, q->first + r, &lo, &hi);
        if (lo == hi || (d->nan_is_zero && !(st.sum[r] > 0)))
            memset(y, 0, sizeof(float) * (size_t)d->v_head);
        else
            scale_row(p, y, st.sum[r] == 0 ? NAN : 1.0f / st.sum[r]);
    }
}

void sn_attention_piece_run(const sn_attention_plan *p, const sn_attention_args *a,
                            const sn_attention_piece *q, float *scratch)
{
    const sn_attention_desc *d = &p->d;
    float *s = scratch;
    const row_state st = {s + q->rows * p->keys, s + q->rows * (p->keys + 1)};
    float *y = (float *)a->y + q->batch * d->y[0] + q->head * d->y[1] + q->first * d->y[2];
    const float *sink = a->sink ? (const float *)a->sink + q->head : NULL;
    for (int64_t r = 0; r < q->rows; r++) {
        st.max[r] = sink ? *sink : -INFINITY;
        st.sum[r] = sink ? 1.0f : 0.0f;
    }
    /* The range grows with the query: the first and the last row bound the others. */
    int64_t from, to, ignored;
    sn_attention_range(d, a, q->batch, q->first, &from, &ignored);
    sn_attention_range(d, a, q->batch, q->first + q->rows - 1, &ignored, &to);
    from = from / p->block * p->block;
    for (int64_t at = from; at < to; at += p->keys) {
        const int64_t n = sn_min(p->keys, to - at);
        raw_scores(p, a, q, s, at, n);
        for (int64_t r = 0; r < q->rows; r++) {
            const float factor = take_row(p, a, q, st, s + r * p->keys, r, at, n);
            if (at > from && factor != 1.0f)
                scale_row(p, y + r * d->y[2], factor);
        }
        mix_values(p, a, q, s, y, at, n, at > from);
    }
    finish_rows(p, a, q, st, y);
}
