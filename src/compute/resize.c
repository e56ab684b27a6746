/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing, row by row of the result, in a few tasks per thread. Passes of weighted sums begin with
 * the last axis, so that the later ones run over long rows. */
#include "compute/resize.h"

#include <string.h>

#include "compute/copy.h"
#include "compute/element.h"
#include "compute/eltwise.h"
#include "compute/small_floats.h"

/* What the loops see of a blocked image: axis 1 has whole blocks, a pixel has `block` elements. */
static int64_t planes_of(const sn_resize *r, int axis, int64_t dim)
{
    return axis == 1 && r->block ? (dim + r->block - 1) / r->block : dim;
}

/* ------------------------------------------------------------------ nearest */
typedef struct pick {
    void *y;
    const void *x;
    int rank; /* at least 1 */
    int64_t out[SN_RESIZE_RANK];
    const int64_t *maps[SN_RESIZE_RANK]; /* input position per output position; -1: outside */
    ptrdiff_t strides[SN_RESIZE_RANK];   /* of x, in elements */
    size_t elem_bytes;
    bool gaps; /* maps may say outside, where `outside` is put */
    /* An element, written as one; with gaps they have at most 16 bytes. */
    _Alignas(16) uint8_t outside[16];
} pick;

/* The input offset of an output row, or -1. */
static int64_t row_source(const pick *p, int64_t row)
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

/* One row without gaps; the usual sizes (an element, a pixel of an image in blocks or with channels
 * last) without a call. */
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
    case 128:
        PICK(128)
        break;
    case 256:
        PICK(256)
        break;
    default:
        PICK(bytes)
    }
}

static void pick_rows(void *arg, size_t lo, size_t hi)
{
    const pick *p = arg;
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

static void run_nearest(const sn_resize *r, void *y, const void *x, const sn_resize_scratch *s,
                        sn_pool *pool)
{
    const int last = r->rank - 1;
    size_t rows = 1;
    int64_t dims[SN_RESIZE_RANK];
    pick p = {.y = y,
              .x = x,
              .rank = r->rank,
              .elem_bytes = sn_dtype_bytes(r->dtype) * (size_t)(r->block ? r->block : 1),
              .gaps = r->how.coords == SN_COORDS_TF_CROP_AND_RESIZE};
    if (r->rank == 0) {
        memcpy(y, x, p.elem_bytes);
        return;
    }
    if (p.gaps && r->dtype != SONDE_DTYPE_STRING)
        sn_elem_set_f64(r->dtype, p.outside, 0, (double)r->outside);
    for (int i = 0; i <= last; i++) {
        sn_resize_nearest(&r->how, &r->axes[i], s->index[i]);
        p.maps[i] = s->index[i];
        dims[i] = planes_of(r, i, r->axes[i].in);
        p.out[i] = planes_of(r, i, r->axes[i].out);
        rows *= i < last ? (size_t)p.out[i] : 1;
    }
    sn_dense_strides(dims, r->rank, p.strides);
    sn_parallel_range(pool, rows, (size_t)p.out[last] * p.elem_bytes / 4 + 1, pick_rows, &p);
}

/* ------------------------------------------------------------------ linear, cubic */
/* [outer][in][inner] ► [outer][out][inner]: rows are sums of `taps` weighted rows. */
typedef struct mix {
    const float *src;
    float *dst;
    int64_t outer, in, out, inner, taps;
    const int32_t *index; /* out × taps; the first of an output is -1 outside */
    const float *weight;
    bool gaps; /* some are outside, where `outside` is put */
    float outside;
    sn_f32_mix_fn *kernel;
} mix;

/* Rows [lo, hi) of outer × out. */
static void mix_rows(void *arg, size_t lo, size_t hi)
{
    const mix *m = arg;
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
            m->kernel(dst, src, n, inner, index, weight, taps);
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

bool sn_resize_changes(const sn_resize *r, int axis)
{
    const sn_resize_axis *a = &r->axes[axis];
    return a->in != a->out || a->scale != 1 || r->how.coords == SN_COORDS_TF_CROP_AND_RESIZE;
}

/* One pass: the axes behind it have their new sizes in `dims` already. */
static void mix_axis(const sn_resize *r, int axis, const int64_t *dims, float *dst,
                     const float *src, const sn_resize_scratch *s, sn_pool *pool)
{
    const sn_resize_axis *a = &r->axes[axis];
    mix m = {.src = src,
             .dst = dst,
             .outer = 1,
             .in = a->in,
             .out = a->out,
             .inner = r->block ? r->block : 1,
             .taps = sn_resize_taps(&r->how, a->scale),
             .index = s->index[axis],
             .weight = s->weight[axis],
             .gaps = r->how.coords == SN_COORDS_TF_CROP_AND_RESIZE,
             .outside = r->outside,
             .kernel = sn_kernels_get(r->cpu_flags)->f32_mix};
    for (int k = 0; k < r->rank; k++)
        *(k < axis ? &m.outer : &m.inner) *= k == axis ? 1 : dims[k];
    sn_resize_weights(&r->how, a, m.taps, s->index[axis], s->weight[axis]);
    sn_parallel_range(pool, (size_t)(m.outer * m.out), (size_t)(m.inner * m.taps), mix_rows, &m);
}

static void run_mixes(const sn_resize *r, void *y, const void *x, const sn_resize_scratch *s,
                      sn_pool *pool)
{
    const bool direct = r->dtype == SONDE_DTYPE_F32;
    const float *src = x;
    int64_t dims[SN_RESIZE_RANK], n_in = 1, n_out = 1;
    int next = 0, todo = 0;
    for (int i = 0; i < r->rank; i++) {
        dims[i] = planes_of(r, i, r->axes[i].in);
        n_in *= r->axes[i].in;
        n_out *= r->axes[i].out;
        todo += sn_resize_changes(r, i);
    }
    if (!direct) {
        for (int64_t i = 0; i < n_in; i++)
            s->buffers[0][i] = (float)sn_elem_f64(r->dtype, x, i);
        src = s->buffers[next++];
    }
    for (int i = r->rank - 1; i >= 0; i--) {
        if (!sn_resize_changes(r, i))
            continue;
        float *dst = --todo == 0 && direct ? y : s->buffers[next];
        mix_axis(r, i, dims, dst, src, s, pool);
        dims[i] = r->axes[i].out;
        src = dst;
        next = 1 - next;
    }
    if (direct && src == x) { /* no axis changes */
        int64_t n = r->block ? r->block : 1;
        for (int i = 0; i < r->rank; i++)
            n *= dims[i];
        sn_copy_bytes(y, x, (size_t)n * sizeof(float), pool);
    }
    for (int64_t i = 0; i < n_out && !direct; i++)
        sn_elem_set_f64(r->dtype, y, i, (double)src[i]);
}

void sn_resize_run(const sn_resize *r, void *y, const void *x, const sn_resize_scratch *s,
                   sn_pool *pool)
{
    if (r->how.mode == SN_RESIZE_NEAREST)
        run_nearest(r, y, x, s, pool);
    else
        run_mixes(r, y, x, s, pool);
}
