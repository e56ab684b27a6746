/* SPDX-License-Identifier: Apache-2.0 */
/* Driving pooling. Blocked: an item is the rows of one channel block; all pixels of a row whose
 * windows lie between the left and the right border go in one kernel call. Plain: an item is one
 * channel. */
#include "compute/pooling.h"

#include <string.h>

#include "compute/conv.h"
#include "compute/split.h"

enum { TASK_READS = 25000 }; /* elements; fewer are not worth a task */

bool sn_pooling_takes(sn_pooling_kind kind, sonde_dtype dtype)
{
    switch (dtype) {
    case SONDE_DTYPE_F32:
    case SONDE_DTYPE_F64:
        return true;
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_I32:
    case SONDE_DTYPE_I64:
        return kind == SN_POOL_MAX;
    default:
        return false;
    }
}

void sn_pooling_inner(const sn_pooling_desc *d, int64_t *from, int64_t *to)
{
    const int64_t last = d->in[2] + d->pad[2] - (d->kernel[2] - 1) * d->dilation[2] - 1;
    *from = sn_min(sn_ceil_div(d->pad[2], d->stride[2]), d->out[2]);
    *to = last < 0 ? 0 : sn_min(last / d->stride[2] + 1, d->out[2]);
}

void sn_pooling_plan_make(sn_pooling_plan *p, const sn_pooling_desc *d, uint32_t cpu_flags,
                          int threads)
{
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->k = sn_kernels_get(cpu_flags);
    p->items = (size_t)(d->n * (d->last    ? d->out[0] * d->out[1]
                                : d->block ? sn_ceil_div(d->c, d->block)
                                           : d->c));
    int64_t reads = d->kernel[0] * d->kernel[1] * d->kernel[2];
    for (int i = 0; i < 3; i++)
        reads = reads > INT64_MAX / sn_max(d->out[i], 1) ? INT64_MAX : reads * d->out[i];
    p->whole = true;
    for (int i = 0; i < 3; i++)
        p->whole = p->whole && d->in[i] > 0 && d->kernel[i] == d->in[i] && d->out[i] == 1 &&
                   d->dilation[i] == 1 && d->pad[i] == 0 && d->pad_end[i] == 0;
    sn_pooling_inner(d, &p->inner_from, &p->inner_to);
    const int64_t per_task = sn_max(TASK_READS / sn_max(reads, 1), 1); /* items */
    p->tasks = (size_t)sn_min(sn_ceil_div((int64_t)p->items, per_task),
                              (int64_t)(threads > 0 ? threads : 1) * 8);
    p->threads = threads > 0 ? threads : 1;
    if (d->block && (d->x_bf16 || d->y_bf16)) {
        const int64_t floats =
            sn_count(d->in[1] * d->in[2] + d->out[1] * d->out[2], d->block, sizeof(float), 1);
        p->planes = sn_carve_each(&p->workspace, (size_t)p->threads,
                                  floats < 0 ? SIZE_MAX : (size_t)floats);
    }
    p->name = d->block == 0            ? "pool_plain"
              : d->kind == SN_POOL_MAX ? p->k->f32_maxpool_name
                                       : p->k->f32_avgpool_name;
}

typedef struct pool_call {
    const sn_pooling_plan *p;
    const uint8_t *x;
    uint8_t *y;
    int64_t *indices;
    void *workspace;
} pool_call;

int64_t sn_pooling_padded_taps(const sn_pooling_desc *d, int axis, int64_t o)
{
    const int64_t at = o * d->stride[axis] - d->pad[axis];
    const int64_t room = d->in[axis] + d->pad_end[axis] - at;
    return sn_min(d->kernel[axis], sn_ceil_div(room, d->dilation[axis]));
}

static void call_kernel(const sn_pooling_plan *p, const sn_f32_pool *t)
{
    if (p->d.kind == SN_POOL_MAX)
        p->k->f32_maxpool(t);
    else
        p->k->f32_avgpool(t);
}

/* One block of channels: x and y are its own. */
static void blocked_plane(const sn_pooling_plan *p, const float *x, float *y)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t block = d->block;
    sn_f32_pool t = {.block = d->block,
                     .x_pixel = d->stride[2] * block,
                     .x_kh = d->dilation[1] * d->in[2] * block,
                     .x_kw = d->dilation[2] * block};
    if (p->whole) { /* one window, all rows of which are one */
        t.x = x;
        t.y = y;
        t.pixels = t.kh = 1;
        t.kw = (size_t)(d->in[1] * d->in[2]);
        t.scale = 1.0f / (float)t.kw;
        call_kernel(p, &t);
        return;
    }
    for (int64_t row = 0; row < d->out[1]; row++) {
        int64_t i0, i1;
        sn_conv_taps(row, d->stride[1], d->pad[1], d->dilation[1], d->kernel[1], d->in[1], &i0,
                     &i1);
        const int64_t top = row * d->stride[1] - d->pad[1] + i0 * d->dilation[1];
        for (int64_t col = 0, n; col < d->out[2]; col += n) {
            int64_t j0 = 0, j1 = d->kernel[2], counted = j1;
            n = 1;
            if (col == p->inner_from && p->inner_to > col) {
                n = p->inner_to - col;
            } else {
                sn_conv_taps(col, d->stride[2], d->pad[2], d->dilation[2], d->kernel[2], d->in[2],
                             &j0, &j1);
                counted = sn_pooling_padded_taps(d, 2, col);
            }
            float *to = y + (row * d->out[2] + col) * block;
            const int64_t taps = (i1 - i0) * (j1 - j0);
            if (taps <= 0) { /* a window in the padding: nothing to take */
                memset(to, 0, (size_t)(n * block) * sizeof(float));
                continue;
            }
            t.x =
                x + (top * d->in[2] + col * d->stride[2] - d->pad[2] + j0 * d->dilation[2]) * block;
            t.y = to;
            t.pixels = (size_t)n;
            t.kh = (size_t)(i1 - i0);
            t.kw = (size_t)(j1 - j0);
            t.scale =
                1.0f / (float)(d->include_pad ? sn_pooling_padded_taps(d, 1, row) * counted : taps);
            call_kernel(p, &t);
        }
    }
}

/* The same of the whole tensor's block `plane`, through f32 where it is bf16 in memory. */
static void blocked_item(const pool_call *c, int64_t plane, int worker)
{
    const sn_pooling_plan *p = c->p;
    const sn_pooling_desc *d = &p->d;
    const int64_t in = d->in[1] * d->in[2] * d->block, out = d->out[1] * d->out[2] * d->block;
    const float *x = (const float *)(const void *)c->x + plane * in;
    float *y = (float *)(void *)c->y + plane * out;
    if (!d->x_bf16 && !d->y_bf16) {
        blocked_plane(p, x, y);
        return;
    }
    float *wide = sn_pieces_at(c->workspace, p->planes, (size_t)worker), *result = wide + in;
    if (d->x_bf16)
        p->k->bf16_load(wide, (const uint16_t *)(const void *)c->x + plane * in, (size_t)in);
    blocked_plane(p, d->x_bf16 ? wide : x, d->y_bf16 ? result : y);
    if (d->y_bf16)
        p->k->bf16_store((uint16_t *)(void *)c->y + plane * out, result, (size_t)out);
}

static void pool_task(void *arg, size_t task, int worker)
{
    const pool_call *c = arg;
    const sn_pooling_plan *p = c->p;
    for (size_t i = sn_split(p->items, p->tasks, task); i < sn_split(p->items, p->tasks, task + 1);
         i++) {
        const float *x = (const float *)(const void *)c->x;
        float *y = (float *)(void *)c->y;
        if (p->d.last)
            sn_pooling_last(p, (int64_t)i, c->x, c->y);
        else if (p->d.block)
            blocked_item(c, (int64_t)i, worker);
        else if (c->indices || (!sn_pooling_bytes(p, (int64_t)i, c->x, c->y) &&
                                !sn_pooling_rows(p, (int64_t)i, x, y)))
            sn_pooling_plane(&p->d, (int64_t)i, c->x, c->y, c->indices);
    }
}

void sn_pooling_run(const sn_pooling_plan *p, const void *x, void *y, int64_t *indices,
                    void *workspace, sn_pool *pool)
{
    pool_call c = {p, x, y, indices, workspace};
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* workspace is planned per worker */
    if (p->tasks > 0)
        sn_pool_run(pool, p->tasks, pool_task, &c);
}
