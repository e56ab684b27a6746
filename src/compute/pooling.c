/* SPDX-License-Identifier: Apache-2.0 */
/* Driving pooling. Blocked: an item is the rows of one channel block; all pixels of a row whose
 * windows lie between the left and the right border go in one kernel call. Plain: an item is one
 * channel. */
#include "compute/pooling.h"

#include <float.h>
#include <math.h>

#include <string.h>

#include "compute/conv.h"
#include "compute/halves.h"
#include "compute/split.h"

enum {
    TASK_READS = 25000,    /* elements; fewer are not worth a task */
    BAND_BYTES = 32 << 10, /* of f32 that stand for halves: they stay in the first-level cache */
};

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

/* Lines of x that `rows` rows of y read at most. */
static int64_t lines_of(const sn_pooling_desc *d, int64_t rows)
{
    const int64_t window = (d->kernel[1] - 1) * d->dilation[1] + 1;
    return sn_min(d->in[1], sn_max(rows - 1, 0) * d->stride[1] + window);
}

/* Blocked images that are bf16 or f16 in memory go through f32 by bands of rows. */
static void plan_bands(sn_pooling_plan *p)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t line = d->in[2] * d->block, result = d->out[2] * d->block;
    const int64_t room = BAND_BYTES / (int64_t)sizeof(float) - lines_of(d, 1) * line - result;
    const int64_t more = sn_max(d->stride[1] * line + result, 1); /* for one more row */
    p->band = sn_max(sn_min(1 + sn_max(room, 0) / more, d->out[1]), 1);
    p->band_lines = lines_of(d, p->band);
    if (p->whole && d->x_half)
        p->band_lines = sn_min(p->band_lines, sn_max(BAND_BYTES / 4 / sn_max(line, 1), 1));
    const int64_t bytes =
        sn_count(p->band_lines * d->in[2] + p->band * d->out[2], d->block, sizeof(float), 1);
    p->bands =
        sn_carve_each(&p->workspace, (size_t)p->threads, bytes < 0 ? SIZE_MAX : (size_t)bytes);
}

/* Maxima of 16-bit floats need no f32, if there is a kernel for them: every window has a pixel
 * inside, and results are of the type. */
static bool joins_halves(const sn_pooling_plan *p)
{
    const sn_pooling_desc *d = &p->d;
    bool inside = true;
    for (int i = 1; i < 3; i++) {
        const int64_t reach = (d->kernel[i] - 1) * d->dilation[i];
        inside = inside && d->in[i] > 0 && d->out[i] > 0 && d->dilation[i] == 1 &&
                 d->pad[i] <= reach && (d->out[i] - 1) * d->stride[i] - d->pad[i] < d->in[i];
    }
    return inside && d->kind == SN_POOL_MAX && d->block == p->k->half_maxpool_geometry.block &&
           d->x_half && d->x_half == d->y_half && p->k->half_maxpool != sn_half_maxpool_ref;
}

static void plan_line(sn_pooling_plan *p)
{
    const sn_pooling_desc *d = &p->d;
    const size_t pixels =
        sn_half_pool_line((size_t)d->pad[2], (size_t)d->in[2], (size_t)d->out[2],
                          (size_t)d->stride[2], (size_t)d->kernel[2], (size_t)d->dilation[2]);
    const int64_t bytes = sn_count((int64_t)pixels, d->block, sizeof(int16_t), 1);
    p->bands =
        sn_carve_each(&p->workspace, (size_t)p->threads, bytes < 0 ? SIZE_MAX : (size_t)bytes);
}

/* A row of each slice of x, before those are joined that a result reads. */
static void plan_slices(sn_pooling_plan *p)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t bytes = sn_count(d->in[0], d->out[2], d->block, sizeof(float));
    p->bands =
        sn_carve_each(&p->workspace, (size_t)p->threads, bytes < 0 ? SIZE_MAX : (size_t)bytes);
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
    p->halves = joins_halves(p);
    if (p->halves)
        plan_line(p);
    else if (d->block && (d->x_half || d->y_half))
        plan_bands(p);
    else if (d->block && d->kernel[0] > 1 && !p->whole)
        plan_slices(p);
    p->name = d->block == 0            ? "pool_plain"
              : p->halves              ? p->k->half_maxpool_name
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

/* Pixels whose windows have nothing but padding in them. Lanes behind the last channel are 0. */
static void fill_empty(const sn_pooling_plan *p, int64_t plane, float *y, int64_t pixels)
{
    const int64_t block = p->d.block, blocks = sn_ceil_div(p->d.c, block);
    const int64_t lanes = sn_min(block, p->d.c - plane % blocks * block);
    memset(y, 0, (size_t)(pixels * block) * sizeof(float));
    for (int64_t i = 0; p->d.kind == SN_POOL_MAX && i < pixels; i++)
        for (int64_t l = 0; l < lanes; l++)
            y[i * block + l] = -FLT_MAX;
}

/* Rows from … to-1 of one slice of block of channels `plane`, which begin at y; line `first` of x
 * is at x. */
static void blocked_rows(const sn_pooling_plan *p, int64_t plane, const float *x, int64_t first,
                         float *y, int64_t from, int64_t to)
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
        t.kw = (size_t)(d->in[0] * d->in[1] * d->in[2]);
        t.scale = 1.0f / (float)t.kw;
        call_kernel(p, &t);
        return;
    }
    for (int64_t row = from; row < to; row++) {
        int64_t i0, i1;
        sn_conv_taps(row, d->stride[1], d->pad[1], d->dilation[1], d->kernel[1], d->in[1], &i0,
                     &i1);
        const int64_t top = row * d->stride[1] - d->pad[1] + i0 * d->dilation[1] - first;
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
            float *result = y + ((row - from) * d->out[2] + col) * block;
            const int64_t taps = (i1 - i0) * (j1 - j0);
            if (taps <= 0) {
                fill_empty(p, plane, result, n);
                continue;
            }
            t.x =
                x + (top * d->in[2] + col * d->stride[2] - d->pad[2] + j0 * d->dilation[2]) * block;
            t.y = result;
            t.pixels = (size_t)n;
            t.kh = (size_t)(i1 - i0);
            t.kw = (size_t)(j1 - j0);
            const int64_t all = d->include_pad ? sn_pooling_padded_taps(d, 1, row) * counted : taps;
            t.scale = 1.0f / (float)all;
            call_kernel(p, &t);
        }
    }
}

/* One row of each slice of the result. Rows of the slices of x are pooled first, each once; then
 * those that a result reads are joined. Averages of slices have equal weights, as their windows do
 * not differ, and the division by their number is left to the end. */
static void blocked_slices(const sn_pooling_plan *p, int64_t plane, const float *x, float *y,
                           int64_t row, float *rows)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t line = d->out[2] * d->block, area = d->in[1] * d->in[2] * d->block;
    sn_f32_pool t = {.pixels = (size_t)d->out[2],
                     .kw = 1,
                     .block = d->block,
                     .x_pixel = d->block,
                     .x_kh = d->dilation[0] * line};
    int64_t done = 0; /* slices of x */
    for (int64_t slice = 0; slice < d->out[0]; slice++, y += d->out[1] * line) {
        int64_t i0, i1;
        sn_conv_taps(slice, d->stride[0], d->pad[0], d->dilation[0], d->kernel[0], d->in[0], &i0,
                     &i1);
        if (i0 == i1) {
            fill_empty(p, plane, y, d->out[2]);
            continue;
        }
        const int64_t first = slice * d->stride[0] - d->pad[0] + i0 * d->dilation[0];
        const int64_t last = first + (i1 - i0 - 1) * d->dilation[0];
        /* Slices between those that results read are left out. Behind a window that begins in the
         * padding, another may begin before its first tap. */
        for (done = i0 ? done : sn_max(done, first); done <= last; done++)
            blocked_rows(p, plane, x + done * area, 0, rows + done * line, row, row + 1);
        t.x = rows + first * line;
        t.y = y;
        t.kh = (size_t)(i1 - i0);
        t.scale = 1.0f / (float)(d->include_pad ? sn_pooling_padded_taps(d, 0, slice) : i1 - i0);
        call_kernel(p, &t);
    }
}

/* All rows of a volume of one block of channels. */
static void blocked_volume(const sn_pooling_plan *p, int64_t plane, const float *x, float *y,
                           float *rows)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t line = d->out[2] * d->block, area = d->in[1] * d->in[2] * d->block;
    for (int64_t row = 0; d->kernel[0] > 1 && row < d->out[1]; row++)
        blocked_slices(p, plane, x, y + row * line, row, rows);
    for (int64_t i = 0; d->kernel[0] == 1 && i < d->out[0]; i++) {
        const int64_t from = i * d->stride[0] - d->pad[0];
        float *result = y + i * d->out[1] * line;
        if (from < 0 || from >= d->in[0])
            fill_empty(p, plane, result, d->out[1] * d->out[2]);
        else
            blocked_rows(p, plane, x + from * area, 0, result, 0, d->out[1]);
    }
}

/* A global pool of a block of channels that is bf16 or f16 in memory, a piece at a time. */
static void whole_plane(const sn_pooling_plan *p, const uint16_t *x, float *wide, float *y)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t pixels = d->in[1] * d->in[2], most = p->band_lines * d->in[2];
    const bool max = d->kind == SN_POOL_MAX;
    float part[16]; /* blocks have so many lanes, or fewer */
    sn_f32_pool t = {
        .x = wide, .block = d->block, .x_kw = d->block, .pixels = 1, .kh = 1, .scale = 1.0f};
    for (int64_t at = 0, n; at < pixels; at += n) {
        n = sn_min(most, pixels - at);
        sn_halves_load(p->k, d->x_half, wide, x + at * d->block, (size_t)(n * d->block));
        t.kw = (size_t)n;
        t.y = at ? part : y;
        call_kernel(p, &t);
        for (unsigned l = 0; at && l < d->block; l++)
            y[l] = !max ? y[l] + part[l] : isnan(part[l]) || part[l] > y[l] ? part[l] : y[l];
    }
    for (unsigned l = 0; !max && l < d->block; l++)
        y[l] = y[l] / (float)pixels;
}

/* All rows of a block of channels. */
static void halves_plane(const sn_pooling_plan *p, const uint16_t *x, uint16_t *y, int16_t *line)
{
    const sn_pooling_desc *d = &p->d;
    sn_half_pool t = {.line = line,
                      .in = (size_t)d->in[2],
                      .before = (size_t)d->pad[2],
                      .pixels = (size_t)d->out[2],
                      .kw = (size_t)d->kernel[2],
                      .stride = (size_t)d->stride[2],
                      .step = (size_t)d->dilation[2],
                      .x_row = d->dilation[1] * d->in[2] * d->block,
                      .block = d->block,
                      .nans = d->x_half == SONDE_DTYPE_F16 ? SN_F16_NANS : SN_BF16_NANS};
    for (int64_t row = 0; row < d->out[1]; row++) {
        int64_t i0, i1;
        sn_conv_taps(row, d->stride[1], d->pad[1], d->dilation[1], d->kernel[1], d->in[1], &i0,
                     &i1);
        const int64_t top = row * d->stride[1] - d->pad[1] + i0 * d->dilation[1];
        t.x = x + top * d->in[2] * d->block;
        t.y = y + row * d->out[2] * d->block;
        t.rows = (size_t)(i1 - i0);
        p->k->half_maxpool(&t);
    }
}

/* Block of channels `plane` of the whole tensor, through f32 where it is bf16 or f16 in memory. */
static void blocked_item(const pool_call *c, int64_t plane, int worker)
{
    const sn_pooling_plan *p = c->p;
    const sn_pooling_desc *d = &p->d;
    const int64_t line = d->in[2] * d->block, result = d->out[2] * d->block;
    const int64_t in = plane * d->in[0] * d->in[1] * line;
    const int64_t out = plane * d->out[0] * d->out[1] * result;
    const float *x = (const float *)(const void *)c->x + (d->x_half ? 0 : in);
    float *y = (float *)(void *)c->y + (d->y_half ? 0 : out);
    if (!d->x_half && !d->y_half) {
        if (p->whole || d->in[0] * d->out[0] * d->kernel[0] == 1)
            blocked_rows(p, plane, x, 0, y, 0, d->out[1]);
        else
            blocked_volume(p, plane, x, y,
                           d->kernel[0] > 1 ? sn_pieces_at(c->workspace, p->bands, (size_t)worker)
                                            : NULL);
        return;
    }
    const uint16_t *x_halves = (const uint16_t *)(const void *)c->x + (d->x_half ? in : 0);
    uint16_t *y_halves = (uint16_t *)(void *)c->y + (d->y_half ? out : 0);
    if (p->halves) {
        halves_plane(p, x_halves, y_halves, sn_pieces_at(c->workspace, p->bands, (size_t)worker));
        return;
    }
    float *wide = sn_pieces_at(c->workspace, p->bands, (size_t)worker);
    float *sums = wide + p->band_lines * line;
    if (p->whole && d->x_half) {
        whole_plane(p, x_halves, wide, d->y_half ? sums : y);
        if (d->y_half)
            sn_halves_store(p->k, d->y_half, y_halves, sums, (size_t)result);
        return;
    }
    for (int64_t from = 0, to; from < d->out[1]; from = to) {
        to = sn_min(from + p->band, d->out[1]);
        const int64_t top = from * d->stride[1] - d->pad[1];
        const int64_t first = sn_min(sn_max(top, 0), d->in[1]);
        const int64_t n = sn_max(sn_min(lines_of(d, to - from), d->in[1] - first), 0);
        if (d->x_half)
            sn_halves_load(p->k, d->x_half, wide, x_halves + first * line, (size_t)(n * line));
        blocked_rows(p, plane, d->x_half ? wide : x, d->x_half ? first : 0,
                     d->y_half ? sums : y + from * result, from, to);
        if (d->y_half)
            sn_halves_store(p->k, d->y_half, y_halves + from * result, sums,
                            (size_t)((to - from) * result));
    }
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
