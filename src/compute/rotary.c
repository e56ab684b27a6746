/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding; heads of all batches run side by side. */
#include "compute/rotary.h"

#include "base/alloc.h"
#include "compute/parallel.h"

/* ------------------------------------------------------------------ by position */
typedef struct rotate_job {
    const sn_heads *x;
    const sn_rotary *r;
} rotate_job;

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
    const rotate_job *j = arg;
    const sn_heads *d = j->x;
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
            float *x = sn_heads_row(d, b, h, s);
            rotate_row(x, r->cos + entry, r->sin + entry, r->half, r->interleaved);
        }
    }
}

void sn_heads_rotate(const sn_heads *x, const sn_rotary *r, sn_pool *pool)
{
    rotate_job j = {x, r};
    sn_parallel_range(pool, (size_t)(x->batch * x->heads), 2 * ((size_t)(x->len * x->size) + 1),
                      rotate_range, &j);
}

/* ------------------------------------------------------------------ by whole rows */
typedef struct turn_call {
    const sn_turn *t;
    const float *x, *cos, *sin;
    float *y;
} turn_call;

static void turn_halves(float *y, const float *x, const float *cosine, const float *sine,
                        int64_t half)
{
    for (int64_t c = 0; c < half; c++)
        y[c] = x[c] * cosine[c] - x[c + half] * sine[c];
    for (int64_t c = half; c < 2 * half; c++)
        y[c] = x[c] * cosine[c] + x[c - half] * sine[c];
}

static void turn_pairs(float *y, const float *x, const float *cosine, const float *sine,
                       int64_t size)
{
    for (int64_t c = 0; c < size; c += 2) {
        y[c] = x[c] * cosine[c] - x[c + 1] * sine[c];
        y[c + 1] = x[c + 1] * cosine[c + 1] + x[c] * sine[c + 1];
    }
}

/* Heads lo … hi - 1 of all batches. */
static void turn_heads(void *arg, size_t lo, size_t hi)
{
    const turn_call *c = arg;
    const sn_turn *t = c->t;
    const int64_t size = t->size;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / t->heads, h = (int64_t)i % t->heads;
        float *y = c->y + (int64_t)i * t->len * size;
        for (int64_t s = 0; s < t->len; s++, y += size) {
            const float *x = c->x + b * t->x[0] + h * t->x[1] + s * t->x[2];
            const float *cosine = c->cos + b * t->cos[0] + h * t->cos[1] + s * t->cos[2];
            const float *sine = c->sin + b * t->sin[0] + h * t->sin[1] + s * t->sin[2];
            if (t->interleaved)
                turn_pairs(y, x, cosine, sine, size);
            else
                turn_halves(y, x, cosine, sine, size / 2);
        }
    }
}

void sn_turn_run(const sn_turn *t, float *y, const float *x, const float *cosine, const float *sine,
                 sn_pool *pool)
{
    turn_call c = {t, x, cosine, sine, y};
    sn_parallel_range(pool, (size_t)(t->batch * t->heads), (size_t)(t->len * t->size) + 1,
                      turn_heads, &c);
}
