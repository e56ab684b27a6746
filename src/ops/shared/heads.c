/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of attention tensors; see heads.h. Work is split over batch times head. */
#include "ops/shared/heads.h"

#include <string.h>

#include "compute/codec.h"
#include "compute/eltwise.h"

sn_heads sn_heads_bhsd(sn_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
                       int64_t size)
{
    return (sn_heads){.dtype = t,
                      .data = data,
                      .batch = batch,
                      .heads = heads,
                      .len = len,
                      .size = size,
                      .stride = {heads * len * size, len * size, size}};
}

sn_heads sn_heads_bshd(sn_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
                       int64_t size, int64_t row, int64_t first)
{
    return (sn_heads){.dtype = t,
                      .data = data ? (uint8_t *)data + (size_t)first * sn_dtype_bytes(t) : NULL,
                      .batch = batch,
                      .heads = heads,
                      .len = len,
                      .size = size,
                      .stride = {len * row, size, row}};
}

sn_heads sn_heads_of(const sn_tensor *t, int64_t heads)
{
    const int64_t *d = t->dims;
    if (t->rank == 4)
        return sn_heads_bhsd(t->dtype, t->data, d[0], d[1], d[2], d[3]);
    return sn_heads_bshd(t->dtype, t->data, d[0], heads, d[1], heads > 0 ? d[2] / heads : 0, d[2],
                         0);
}

typedef struct heads_job {
    const sn_heads *dst, *src;
    const int64_t *at;
    const float *bias;
    const sn_rotary *r;
} heads_job;

static uint8_t *row_at(const sn_heads *h, int64_t b, int64_t head, int64_t s)
{
    return (uint8_t *)h->data + (b * h->stride[0] + head * h->stride[1] + s * h->stride[2]) *
                                    (ptrdiff_t)sn_dtype_bytes(h->dtype);
}

static void convert_row(sn_dtype to, void *dst, sn_dtype from, const void *src, size_t n)
{
    float tmp[256];
    const uint8_t *x = src;
    uint8_t *y = dst;
    if (to == from) {
        memcpy(dst, src, n * sn_dtype_bytes(to));
    } else if (to == SONDE_DTYPE_F32) {
        sn_load_f32(0, from, dst, src, n);
    } else {
        for (size_t i = 0; i < n; i += 256) {
            const size_t part = n - i < 256 ? n - i : 256;
            sn_load_f32(0, from, tmp, x + i * sn_dtype_bytes(from), part);
            sn_store_f32(0, to, y + i * sn_dtype_bytes(to), tmp, part, (sn_rounding){0});
        }
    }
}

static void copy_range(void *arg, size_t lo, size_t hi)
{
    const heads_job *j = arg;
    const sn_heads *d = j->dst, *x = j->src;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / x->heads, h = (int64_t)i % x->heads;
        const int64_t at = j->at ? j->at[b] : 0;
        for (int64_t s = at < 0 ? -at : 0; s < x->len && at + s < d->len; s++)
            convert_row(d->dtype, row_at(d, b, h, at + s), x->dtype, row_at(x, b, h, s),
                        (size_t)x->size);
    }
}

static size_t work(const sn_heads *x)
{
    return (size_t)(x->len * x->size) + 1;
}

void sn_heads_copy(const sn_heads *dst, const sn_heads *src, const int64_t *at, sn_pool *pool)
{
    heads_job j = {.dst = dst, .src = src, .at = at};
    sn_parallel_range(pool, (size_t)(src->batch * src->heads), work(src), copy_range, &j);
}

static void add_range(void *arg, size_t lo, size_t hi)
{
    const heads_job *j = arg;
    const sn_heads *d = j->dst;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / d->heads, h = (int64_t)i % d->heads;
        for (int64_t s = 0; s < d->len; s++) {
            float *y = (float *)(void *)row_at(d, b, h, s);
            for (int64_t c = 0; c < d->size; c++)
                y[c] += j->bias[h * d->size + c];
        }
    }
}

void sn_heads_add(const sn_heads *dst, const float *bias, sn_pool *pool)
{
    heads_job j = {.dst = dst, .bias = bias};
    sn_parallel_range(pool, (size_t)(dst->batch * dst->heads), work(dst), add_range, &j);
}

static void rotate_row(float *x, const float *cosine, const float *sine, int64_t half,
                       bool interleaved)
{
    const int64_t step = interleaved ? 2 : 1, other = interleaved ? 1 : half;
    for (int64_t c = 0; c < half; c++) {
        const float re = x[c * step], im = x[c * step + other];
        x[c * step] = cosine[c] * re - sine[c] * im;
        x[c * step + other] = sine[c] * re + cosine[c] * im;
    }
}

static void rotate_range(void *arg, size_t lo, size_t hi)
{
    const heads_job *j = arg;
    const sn_heads *d = j->dst;
    const sn_rotary *r = j->r;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / d->heads, h = (int64_t)i % d->heads;
        for (int64_t s = 0; s < d->len; s++) {
            const int64_t first = r->start ? r->start[b] : 0;
            const int64_t at = r->ids ? r->ids[b * r->id_batch + s * r->id_len] : s;
            int64_t row;
            if (!sn_i64_add(at, first, &row) || row < 0 || row >= r->rows)
                continue;
            const ptrdiff_t entry = (b * r->table_batch + row) * r->half;
            float *x = (float *)(void *)row_at(d, b, h, s);
            rotate_row(x, r->cos + entry, r->sin + entry, r->half, r->interleaved);
        }
    }
}

void sn_heads_rotate(const sn_heads *x, const sn_rotary *r, sn_pool *pool)
{
    heads_job j = {.dst = x, .r = r};
    sn_parallel_range(pool, (size_t)(x->batch * x->heads), 2 * work(x), rotate_range, &j);
}

sn_dtype sn_attn_compute_type(sn_dtype t)
{
    if (t == SONDE_DTYPE_F64)
        return t;
    return t == SONDE_DTYPE_F32 || sn_is_half(t) ? SONDE_DTYPE_F32 : SONDE_DTYPE_UNDEFINED;
}

const float *sn_as_f32(const sn_tensor *t, void *room)
{
    if (t->dtype == SONDE_DTYPE_F32)
        return t->data;
    sn_load_f32(0, t->dtype, room, t->data, (size_t)sn_tensor_count(t));
    return room;
}

bool sn_attn_mask_strides(const sn_dim *dims, int rank, int64_t batch, int64_t heads, int64_t q_len,
                          int64_t total, bool shorter, sn_attention_mask *m)
{
    const int64_t full[4] = {batch, heads, q_len, total};
    ptrdiff_t step = 1;
    if (rank < 1 || rank > 4)
        return false;
    m->len = total;
    for (int i = 3; i >= 0; i--) {
        const int at = i - (4 - rank);
        const int64_t n = at >= 0 ? dims[at] : 1;
        const bool cut = i == 3 && shorter && n < total && n != 1;
        if (n != 1 && n != full[i] && !cut)
            return false;
        if (cut)
            m->len = n;
        m->stride[i] = n == 1 ? 0 : step;
        step *= n;
    }
    return true;
}

void sn_attn_desc(sn_attention_desc *d, const sn_heads *q, const sn_heads *k, const sn_heads *v,
                  const sn_heads *y)
{
    d->dtype = q->dtype;
    d->batch = q->batch;
    d->heads = q->heads;
    d->kv_heads = k->heads;
    d->q_len = q->len;
    d->kv_len = k->len;
    d->head = q->size;
    d->v_head = v->size;
    for (int i = 0; i < 3; i++) {
        d->q[i] = q->stride[i];
        d->k[i] = k->stride[i];
        d->v[i] = v->stride[i];
        d->y[i] = y->stride[i];
    }
}
