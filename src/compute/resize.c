/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing, row by row of the result, in a few tasks per thread. */
#include "compute/resize.h"

#include <string.h>

#include "compute/eltwise.h"

/* ------------------------------------------------------------------ nearest */
/* The input offset of an output row, or -1. */
static int64_t row_source(const sn_pick *p, int64_t row)
{
    int64_t offset = 0;
    for (int i = p->rank - 2; i >= 0; i--) {
        int64_t from = p->maps[i][row % p->out[i]];
        row /= p->out[i];
        if (from < 0)
            return -1;
        offset += from * p->strides[i];
    }
    return offset;
}

#define PICK(bytes)                                                                                \
    for (size_t k = 0; k < n; k++)                                                                 \
        memcpy(y + k * (bytes), x + (size_t)map[k] * (bytes), bytes);

/* One row without gaps; the usual sizes (an element, a pixel of a blocked image) without a call. */
static void pick_row(uint8_t *y, const uint8_t *x, const int64_t *map, size_t n, size_t bytes)
{
    switch (bytes) {
    case 1:
        PICK(1)
        break;
    case 2:
        PICK(2)
        break;
    case 4:
        PICK(4)
        break;
    case 32:
        PICK(32)
        break;
    case 64:
        PICK(64)
        break;
    default:
        PICK(bytes)
    }
}

static void pick_rows(void *arg, size_t lo, size_t hi)
{
    const sn_pick *p = arg;
    const size_t n = (size_t)p->out[p->rank - 1], bytes = p->elem_bytes, row_bytes = n * bytes;
    const int64_t *map = p->maps[p->rank - 1];
    int64_t last = -2;
    for (size_t r = lo; r < hi; r++) {
        uint8_t *y = (uint8_t *)p->y + r * row_bytes;
        const int64_t from = row_source(p, (int64_t)r);
        if (r > lo && from == last) { /* repeated rows are copies of the one above */
            memcpy(y, y - row_bytes, row_bytes);
            continue;
        }
        last = from;
        const uint8_t *x = (const uint8_t *)p->x + (size_t)(from < 0 ? 0 : from) * bytes;
        if (!p->gaps) {
            pick_row(y, x, map, n, bytes);
            continue;
        }
        for (size_t k = 0; k < n; k++)
            memcpy(y + k * bytes, from < 0 || map[k] < 0 ? p->outside : x + (size_t)map[k] * bytes,
                   bytes);
    }
}

void sn_pick_run(const sn_pick *p, sn_pool *pool)
{
    size_t rows = 1;
    for (int i = 0; i < p->rank - 1; i++)
        rows *= (size_t)p->out[i];
    sn_pick copy = *p;
    sn_parallel_range(pool, rows, (size_t)p->out[p->rank - 1] * p->elem_bytes / 4 + 1, pick_rows,
                      &copy);
}

/* ------------------------------------------------------------------ linear, cubic */
/* Rows [lo, hi) of outer × out. */
static void mix_rows(void *arg, size_t lo, size_t hi)
{
    const sn_mix *m = arg;
    sn_f32_mix_fn *mix = sn_kernels_get(m->cpu_flags)->f32_mix;
    const size_t out = (size_t)m->out, taps = (size_t)m->taps, inner = (size_t)m->inner;
    for (size_t r = lo, n; r < hi; r += n) {
        const size_t o = r % out;
        const int32_t *index = m->index + o * taps;
        const float *weight = m->weight + o * taps;
        const float *src = m->src + r / out * (size_t)m->in * inner;
        float *dst = m->dst + r * inner;
        n = m->gaps ? 1 : out - o < hi - r ? out - o : hi - r;
        if (m->gaps && index[0] < 0) {
            for (size_t k = 0; k < inner; k++)
                dst[k] = m->outside;
        } else if (inner > 1) {
            mix(dst, src, n, inner, index, weight, taps);
        } else {
            for (size_t k = 0; k < n; k++) {
                float sum = 0;
                for (size_t t = 0; t < taps; t++)
                    sum += weight[k * taps + t] * src[index[k * taps + t]];
                dst[k] = sum;
            }
        }
    }
}

void sn_mix_run(const sn_mix *m, sn_pool *pool)
{
    sn_mix copy = *m;
    sn_parallel_range(pool, (size_t)(m->outer * m->out), (size_t)(m->inner * m->taps), mix_rows,
                      &copy);
}
