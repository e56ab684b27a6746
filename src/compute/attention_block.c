/* SPDX-License-Identifier: Apache-2.0 */
/* A run of queries against its keys, a block of keys at a time: scores, their exponentials, their
 * mix of values. Each row carries the largest score seen and the sum of exponentials relative to
 * it; a larger score later on scales down what is there. Rows are divided by their sums at the end.
 */
#include "compute/attention_tiles.h"

#include <math.h>
#include <string.h>

#include "compute/attention_rows.h"
#include "compute/split.h"
#include "compute/tiles.h"

/* Asks for rows that are read next: they lie too far apart for a core to guess. */
static void fetch_rows(const float *x, ptrdiff_t row, int64_t from, int64_t to, int64_t n)
{
    for (int64_t r = from; r < to; r++)
        for (int64_t i = 0; i < n; i += 16)
            __builtin_prefetch(x + r * row + i);
}

/* Queries or keys, of length 1 if that is asked for. */
static void stage_rows(const sn_attention_plan *p, const sn_attention_rows *x, int64_t b, int64_t h,
                       int64_t first, int64_t n, float *dst)
{
    if (p->d.unit)
        sn_attention_stage_unit(p->kernels, x, b, h, first, n, p->d.least, dst);
    else
        sn_attention_stage(x, b, h, first, n, dst);
}

void sn_attention_pack(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                       int64_t kv, float *dst, float *staging)
{
    const sn_attention_desc *d = &p->d;
    const int64_t block = p->block;
    const float *k = (const float *)a->k + b * d->k[0] + kv * d->k[1];
    const float *v = (const float *)a->v + b * d->v[0] + kv * d->v[1];
    float *values = dst + p->pack_k;
    bool copies = p->v_row > 0;
    if (sn_attention_stages_keys(d)) {
        const sn_attention_rows keys = {a->k, p->source.k, a->kv_rows, d->kv_len, d->head};
        const sn_attention_rows mixed = {a->v, p->source.v, a->kv_rows, d->kv_len, d->v_head};
        /* Values without a gap between rows are brought together right where they are read. */
        copies = p->tiles || p->v_row != d->v_head;
        float *to = copies ? staging + d->kv_len * d->head : values;
        k = staging;
        v = to;
        stage_rows(p, &keys, b, kv, 0, d->kv_len, staging);
        sn_attention_stage(&mixed, b, kv, 0, d->kv_len, to);
    }
    if (p->tiles) {
        sn_attention_tiles_pack(p, k, v, dst);
        return;
    }
    for (int64_t t = 0; t < d->kv_len; t += block, dst += d->head * block) {
        const int64_t n = sn_min(block, d->kv_len - t);
        if (copies)
            fetch_rows(v, d->v[2], t, t + n, d->v_head);
        /* Keys become lanes: the change of layout that blocks channels. */
        p->kernels->f32_block(dst, k + t * d->k[2], (size_t)d->head, (unsigned)n, p->block,
                              (size_t)d->k[2]);
        fetch_rows(k, d->k[2], t + n, sn_min(t + n + block, d->kv_len), d->head);
        for (int64_t r = t; r < t + n && copies; r++, values += p->v_row) {
            sn_attention_copy(values, v + r * d->v[2], d->v_head);
            memset(values + d->v_head, 0, sizeof(float) * (size_t)(p->v_row - d->v_head));
        }
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
    /* Four blocks in step load fewest where there are registers for them; else few rows only. */
    const bool four = rows <= 7 || p->kernels->f32_gemm_geometry.pixels[3] >= 4;
    const int64_t most = four ? 4 : 2, groups = sn_ceil_div(panels, most);
    for (int64_t at = 0, n, left = groups; left > 0; at += n, left--) {
        n = sn_ceil_div(panels - at, left);
        const bool last = left == 1;
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
static const void *mask_row(const sn_attention_desc *d, const sn_attention_mask *m, size_t elem,
                            int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!m->data)
        return NULL;
    const ptrdiff_t at = sn_attention_mask_at(d, m, b, h, i, j);
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

/* What is left to be done to a row of products when its exponentials are taken. */
typedef struct row_rest {
    const float *bias, *more;
    float scale;
} row_rest;

/* What is added over the keys can be added then: there is nothing, or it is contiguous. */
static bool bias_is_plain(const sn_attention_args *a)
{
    return (!a->bias.data || a->bias.stride[3] == 1) && (!a->more.data || a->more.stride[3] == 1);
}

static void add_bias(float *s, const float *bias, ptrdiff_t step, int64_t n)
{
    for (int64_t t = 0; t < n && bias; t++)
        s[t] += bias[t * step];
}

/* Products of query i with keys j … j + n - 1 (all below the masks' ends) ► scores, as far as the
 * exponentials need it. */
static row_rest finish_scores(const sn_attention_plan *p, const sn_attention_args *a, float *s,
                              int64_t b, int64_t h, int64_t i, int64_t j, int64_t n)
{
    const sn_attention_desc *d = &p->d;
    const sn_kernels *k = p->kernels;
    const float scale = (float)d->scale * (a->scales ? a->scales[h] : 1.0f);
    const float cap = (float)d->softcap;
    const float *bias = mask_row(d, &a->bias, sizeof(float), b, h, i, j);
    const float *more = mask_row(d, &a->more, sizeof(float), b, h, i, j);
    const uint8_t *keep = mask_row(d, &a->keep, 1, b, h, i, j);
    if (!keep && !(cap > 0) && bias_is_plain(a))
        return (row_rest){bias, more, scale};
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
    add_bias(s, bias, a->bias.stride[3], n);
    add_bias(s, more, a->more.stride[3], n);
    if (keep && !first)
        hide(p, a, keep, s, n);
    return (row_rest){NULL, NULL, 1.0f};
}

typedef struct row_state {
    float *max, *sum; /* of the piece's rows */
    float *factor;    /* what earlier exponentials of the row are to be multiplied by */
} row_state;

static void take_exponentials(const sn_attention_plan *p, row_state st, float *s, row_rest rest,
                              const sn_attention_args *a, int64_t first, int64_t rows, int64_t n)
{
    const sn_f32_exp_rows e = {
        .s = s,
        .bias = rest.bias,
        .more = rest.more,
        .s_row = p->keys,
        .bias_row = a->bias.stride[2],
        .more_row = a->more.stride[2],
        .rows = (size_t)rows,
        .n = (size_t)n,
        .scale = rest.scale,
        .max = st.max + first,
        .sum = st.sum + first,
        .factor = st.factor + first,
    };
    p->kernels->f32_exp_rows(&e);
}

/* Keys among at … at + n - 1 that query i sees. */
static int64_t seen_keys(const sn_attention_plan *p, const sn_attention_args *a,
                         const sn_attention_piece *q, int64_t r, int64_t at, int64_t n, int64_t *lo)
{
    int64_t hi;
    sn_attention_range(&p->d, a, q->batch, q->first + r, lo, &hi);
    if (a->bias.data)
        hi = sn_min(hi, a->bias.len);
    if (a->keep.data)
        hi = sn_min(hi, a->keep.len);
    *lo = sn_max(*lo, at);
    return sn_max(sn_min(hi, at + n) - *lo, 0);
}

/* Products of row r with keys at … at + n - 1 ► exponentials, 0 for keys it does not see. */
static void take_row(const sn_attention_plan *p, const sn_attention_args *a,
                     const sn_attention_piece *q, row_state st, float *s, int64_t r, int64_t at,
                     int64_t n)
{
    int64_t lo;
    const int64_t seen = seen_keys(p, a, q, r, at, n, &lo), skip = seen > 0 ? lo - at : n;
    st.factor[r] = 1.0f;
    memset(s, 0, sizeof(float) * (size_t)skip);
    if (seen == 0)
        return;
    s += skip;
    const row_rest rest = finish_scores(p, a, s, q->batch, q->head, q->first + r, lo, seen);
    take_exponentials(p, st, s, rest, a, r, 1, seen);
    memset(s + seen, 0, sizeof(float) * (size_t)(n - skip - seen));
}

/* The same for all rows: at once where each sees all of these keys and nothing is to be done to it
 * before. */
static void take_rows(const sn_attention_plan *p, const sn_attention_args *a,
                      const sn_attention_piece *q, row_state st, float *s, int64_t at, int64_t n)
{
    int64_t lo;
    if (p->d.left < 0 && p->d.right < 0 && !a->keep.data && !(p->d.softcap > 0) &&
        bias_is_plain(a) && seen_keys(p, a, q, 0, at, n, &lo) == n) {
        const row_rest rest = finish_scores(p, a, s, q->batch, q->head, q->first, at, n);
        take_exponentials(p, st, s, rest, a, 0, q->rows, n);
        return;
    }
    for (int64_t r = 0; r < q->rows; r++)
        take_row(p, a, q, st, s + r * p->keys, r, at, n);
}

/* ------------------------------------------------------------------ the piece */
static float *staged_queries(const sn_attention_plan *p, const sn_attention_piece *q)
{
    const sn_attention_desc *d = &p->d;
    return q->staging + (sn_attention_stages_keys(d) ? d->kv_len * (d->head + d->v_head) : 0);
}

/* Where results go until they are written to the rows of a list. */
static float *staged_results(const sn_attention_plan *p, const sn_attention_piece *q)
{
    const int64_t queries = sn_attention_stages_queries(&p->d) ? p->rows * p->d.head : 0;
    return staged_queries(p, q) + queries;
}

static void stage_queries(const sn_attention_plan *p, const sn_attention_args *a,
                          const sn_attention_piece *q)
{
    const sn_attention_desc *d = &p->d;
    const sn_attention_rows x = {a->q, p->source.q, a->q_rows, d->q_len, d->head};
    stage_rows(p, &x, q->batch, q->head, q->first, q->rows, staged_queries(p, q));
}

enum { FETCH_QUERIES, FETCH_KEYS, FETCH_VALUES };

/* While this piece is computed, rows of the next one come nearer. */
static void fetch_next(const sn_attention_plan *p, const sn_attention_args *a,
                       const sn_attention_piece *q, int what)
{
    const sn_attention_desc *d = &p->d;
    if (q->next < 0 || !sn_attention_stages_queries(d) || !sn_attention_stages_keys(d))
        return;
    const int64_t b = q->next / d->heads, h = q->next % d->heads, kv = h / (d->heads / d->kv_heads);
    const sn_attention_rows queries = {a->q, p->source.q, a->q_rows, d->q_len, d->head};
    const sn_attention_rows keys = {a->k, p->source.k, a->kv_rows, d->kv_len, d->head};
    const sn_attention_rows values = {a->v, p->source.v, a->kv_rows, d->kv_len, d->v_head};
    if (what == FETCH_QUERIES)
        sn_attention_fetch(&queries, b, h, 0, d->q_len);
    else
        sn_attention_fetch(what == FETCH_KEYS ? &keys : &values, b, kv, 0, d->kv_len);
}

static const float *queries_of(const sn_attention_plan *p, const sn_attention_args *a,
                               const sn_attention_piece *q)
{
    const ptrdiff_t *stride = p->d.q;
    if (sn_attention_stages_queries(&p->d))
        return staged_queries(p, q);
    return (const float *)a->q + q->batch * stride[0] + q->head * stride[1] + q->first * stride[2];
}

/* Products of all rows with keys at … at + n - 1, rows p->keys apart. */
static void raw_scores(const sn_attention_plan *p, const sn_attention_args *a,
                       const sn_attention_piece *q, float *s, int64_t at, int64_t n)
{
    const sn_attention_desc *d = &p->d;
    const float *x = queries_of(p, a, q);
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

/* Where row r of the result goes; NULL: nowhere. */
static float *result_row(const sn_attention_plan *p, const sn_attention_args *a,
                         const sn_attention_piece *q, float *y, int64_t r)
{
    if (!p->d.y_listed)
        return y + r * p->d.y[2];
    const int32_t row = a->y_rows[q->batch * p->d.q_len + q->first + r];
    return row < 0 ? NULL : (float *)a->y + q->head * p->source.y[1] + row * p->source.y[2];
}

/* Divides by the sums. A row without keys is zero; one with nothing but masked keys, whose sum is
 * 0, is NaN as the formula has it, or zero as some models want it. */
static void finish_rows(const sn_attention_plan *p, const sn_attention_args *a,
                        const sn_attention_piece *q, row_state st, float *y)
{
    const sn_attention_desc *d = &p->d;
    for (int64_t r = 0; r < q->rows; r++)
        st.factor[r] = st.sum[r] == 0 ? NAN : 1.0f / st.sum[r];
    if (!d->y_listed)
        p->kernels->f32_scale_rows(y, d->y[2], (size_t)q->rows, (size_t)d->v_head, st.factor);
    for (int64_t r = 0; r < q->rows; r++) {
        int64_t lo, hi;
        float *to = result_row(p, a, q, y, r);
        if (!to)
            continue;
        if (d->y_listed)
            p->kernels->f32_mul(to, y + r * d->y[2], &st.factor[r], (size_t)d->v_head,
                                SN_BINARY_VS);
        if (st.sum[r] > 0 && !a->sink)
            continue;
        sn_attention_range(d, a, q->batch, q->first + r, &lo, &hi);
        if (lo == hi || (d->masked_is_zero && st.sum[r] == 0) ||
            (d->nan_is_zero && !(st.sum[r] > 0)))
            memset(to, 0, sizeof(float) * (size_t)d->v_head);
    }
}

void sn_attention_piece_run(const sn_attention_plan *p, const sn_attention_args *a,
                            const sn_attention_piece *q, float *scratch)
{
    const sn_attention_desc *d = &p->d;
    float *s = scratch;
    const int64_t room = sn_ceil_div(q->rows, SN_ROWS_TILE) * SN_ROWS_TILE; /* whole tiles */
    float *rows = s + (p->tiles ? room : q->rows) * p->keys;
    const row_state st = {rows, rows + q->rows, rows + 2 * q->rows};
    float *y = (float *)a->y + q->batch * d->y[0] + q->head * d->y[1] + q->first * d->y[2];
    if (d->y_listed)
        y = staged_results(p, q);
    if (sn_attention_stages_queries(d)) {
        stage_queries(p, a, q);
        fetch_next(p, a, q, FETCH_QUERIES);
    }
    const float *sink = a->sink ? (const float *)a->sink + q->head : NULL;
    for (int64_t r = 0; r < q->rows; r++) {
        st.max[r] = sink ? *sink : -INFINITY;
        st.sum[r] = sink ? 1.0f : 0.0f;
    }
    /* The range grows with the query: the first and the last row bound the others. */
    int64_t from, to, ignored;
    sn_attention_range(d, a, q->batch, q->first, &from, &ignored);
    sn_attention_range(d, a, q->batch, q->first + q->rows - 1, &ignored, &to);
    const int64_t step = p->tiles ? SN_STEP_HALVES : p->block;
    from = from / step * step;
    sn_attention_tiles t = {0};
    if (p->tiles)
        t = sn_attention_tiles_begin(p, queries_of(p, a, q), q->rows, rows + 3 * room);
    for (int64_t at = from; at < to; at += p->keys) {
        const int64_t n = sn_min(p->keys, to - at);
        if (p->tiles)
            sn_attention_tiles_scores(p, &t, q->pack, s, q->rows, at, n);
        else
            raw_scores(p, a, q, s, at, n);
        if (at == from)
            fetch_next(p, a, q, FETCH_KEYS);
        take_rows(p, a, q, st, s, at, n);
        if (at == from)
            fetch_next(p, a, q, FETCH_VALUES);
        if (at > from)
            p->kernels->f32_scale_rows(y, d->y[2], (size_t)q->rows, (size_t)d->v_head, st.factor);
        if (p->tiles)
            sn_attention_tiles_mix(p, &t, q->pack, s, y, q->rows, at, n, at > from);
        else
            mix_values(p, a, q, s, y, at, n, at > from);
    }
    finish_rows(p, a, q, st, y);
}
