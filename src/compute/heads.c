/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of attention tensors; see heads.h. Work is split over batch times head. */
#include "compute/heads.h"

#include <string.h>

#include "compute/parallel.h"
#include "compute/small_floats.h"

sn_heads sn_heads_bhsd(sonde_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
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

sn_heads sn_heads_bshd(sonde_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
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

typedef struct heads_job {
    const sn_heads *dst, *src;
    const int64_t *at;
    const float *bias;
} heads_job;

static void convert_row(sonde_dtype to, void *dst, sonde_dtype from, const void *src, size_t n)
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
            convert_row(d->dtype, sn_heads_row(d, b, h, at + s), x->dtype, sn_heads_row(x, b, h, s),
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
            float *y = sn_heads_row(d, b, h, s);
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

void sn_heads_clear(const sn_heads *dst, const int64_t *at, int64_t skip)
{
    for (int64_t b = 0; b < dst->batch; b++)
        for (int64_t h = 0; h < dst->heads; h++)
            memset(sn_heads_row(dst, b, h, at[b] + skip), 0,
                   sizeof(float) * (size_t)((dst->len - at[b] - skip) * dst->size));
}
