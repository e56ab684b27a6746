/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a direct convolution, cut into kernel calls. A pixel near the end of a row misses taps,
 * and pixels go together if they read the same ones: with a large dilation these are long runs.
 * Long kernels give each pixel others. Then a row is copied, with zeros at both ends, and a few
 * neighbours go together with all taps that one of them needs; the zeros are no more than such
 * neighbours can reach, however long the kernel is. */
#include "compute/conv_runs.h"

#include <string.h>

enum { LEAST = 3 }; /* pixels: fewer take as long, waiting for weights */

static void taps_at(const sn_conv_plan *p, int64_t o, int64_t *first, int64_t *end)
{
    const sn_conv_desc *d = &p->d;
    sn_conv_taps(o, d->stride[2], d->pad[2], d->dilation[2], d->kernel[2], d->in[2], first, end);
}

sn_conv_run_of sn_conv_next_run(const sn_conv_plan *p, int64_t from, int64_t to)
{
    sn_conv_run_of r = {.from = from, .to = from + 1};
    int64_t first, end;
    taps_at(p, from, &r.first, &r.end);
    if (p->together) { /* both ends of the taps fall from pixel to pixel, or stay */
        r.to = sn_min(from + p->together, to);
        taps_at(p, r.to - 1, &r.first, &end);
        return r;
    }
    for (; r.to < to; r.to++) {
        taps_at(p, r.to, &first, &end);
        if (first != r.first || end != r.end)
            break;
    }
    return r;
}

/* The widest stretch of a row of which only the first and the last pixel miss taps. */
static void widest_run(sn_conv_plan *p)
{
    const int64_t k = p->d.kernel[2], cols = p->cols;
    int64_t a = 0, b = cols, first, end, first_a, end_b;
    p->run_from = p->run_first = 0;
    p->run_to = cols;
    p->run_end = k;
    if (p->flat)
        return;
    for (; a < cols; a++) {
        taps_at(p, a, &first, &end);
        if (first == 0)
            break;
    }
    a = sn_max(a - 1, 0);
    for (; b > 0; b--) {
        taps_at(p, b - 1, &first, &end);
        if (end == k)
            break;
    }
    b = sn_min(b + 1, cols);
    if (b - a < 2) {
        p->run_from = p->run_to = 0;
        return;
    }
    taps_at(p, a, &first_a, &end);
    if (end < k) { /* the first pixel misses taps on both sides */
        a++;
        first_a = 0;
    }
    taps_at(p, b - 1, &first, &end_b);
    if (first > 0) {
        b--;
        end_b = k;
    }
    if (b - a < 2 || first_a > end_b)
        a = b = 0;
    p->run_from = a;
    p->run_to = b;
    p->run_first = first_a;
    p->run_end = end_b;
}

/* Pixels times taps of a part of a row, each call with at least LEAST pixels. */
static double work(const sn_conv_plan *p, int64_t from, int64_t to)
{
    double sum = 0;
    for (sn_conv_run_of r = {.to = from}; r.to < to;) {
        r = sn_conv_next_run(p, r.to, to);
        sum += (double)sn_max(r.to - r.from, LEAST) * (double)(r.end - r.first);
    }
    return sum;
}

void sn_conv_plan_rows(sn_conv_plan *p)
{
    const sn_conv_desc *d = &p->d;
    p->together = p->margin[0] = p->margin[1] = 0;
    p->line = d->in[2];
    widest_run(p);
    if (p->flat || d->kernel[1] < 1)
        return;
    const double run = (double)(p->run_to - p->run_from) * (double)d->kernel[2];
    const double cut = work(p, 0, p->run_from) + run + work(p, p->run_to, p->cols);
    const int64_t most = p->k->f32_conv_geometry.pixels[p->chunk_blocks - 1];
    p->together = sn_ceil_div(p->cols, sn_max(sn_ceil_div(p->cols, most), 1));
    /* The copy is read once for all output channels and rows of taps. */
    const double copy =
        (double)(d->in[2] * d->stride[1]) / (double)(d->kernel[0] * d->kernel[1] * p->b.out_blocks);
    if (p->together < 2 || work(p, 0, p->cols) + copy > 0.9 * cut) {
        p->together = 0;
        return;
    }
    const int64_t reach = (p->together - 1) * d->stride[2];
    const int64_t behind = (p->cols - 1) * d->stride[2] - d->pad[2] +
                           (d->kernel[2] - 1) * d->dilation[2] - (d->in[2] - 1);
    p->margin[0] = sn_min(reach, sn_max(d->pad[2], 0));
    p->margin[1] = sn_min(reach, sn_max(behind, 0));
    p->line = d->in[2] + p->margin[0] + p->margin[1];
    p->run_from = p->run_to = 0;
}

/* ------------------------------------------------------------------ the copy */
/* Channels that lie side by side in a pixel of x. */
static int64_t unit_of(const sn_conv_plan *p)
{
    return p->d.in_block ? (int64_t)p->d.in_block : 1;
}

static int64_t rows_of(const sn_conv_plan *p)
{
    const sn_conv_desc *d = &p->d;
    return sn_count(d->n, sn_ceil_div(d->c, unit_of(p)), d->in[0], d->in[1]);
}

int64_t sn_conv_margins_floats(const sn_conv_plan *p)
{
    return p->together ? sn_count(rows_of(p), p->line, unit_of(p), 1) : 0;
}

typedef struct margins_call {
    const sn_conv_plan *p;
    const float *x;
    float *lines;
    int64_t rows, unit;
} margins_call;

enum { TASK_ROWS = 16 };

static void copy_task(void *arg, size_t task, int worker)
{
    const margins_call *c = arg;
    const sn_conv_plan *p = c->p;
    const size_t pixel = (size_t)c->unit * sizeof(float);
    const int64_t from = (int64_t)task * TASK_ROWS, to = sn_min(from + TASK_ROWS, c->rows);
    (void)worker;
    for (int64_t i = from; i < to; i++) {
        float *y = c->lines + i * p->line * c->unit;
        memset(y, 0, (size_t)p->margin[0] * pixel);
        y += p->margin[0] * c->unit;
        memcpy(y, c->x + i * p->d.in[2] * c->unit, (size_t)p->d.in[2] * pixel);
        memset(y + p->d.in[2] * c->unit, 0, (size_t)p->margin[1] * pixel);
    }
}

const float *sn_conv_margins(const sn_conv_call *c, sn_pool *pool)
{
    margins_call call = {.p = c->p,
                         .x = c->x,
                         .lines = sn_piece_at(c->workspace, c->p->lines_of_x),
                         .rows = rows_of(c->p),
                         .unit = unit_of(c->p)};
    sn_pool_run(pool, (size_t)sn_ceil_div(call.rows, TASK_ROWS), copy_task, &call);
    return call.lines + c->p->margin[0] * call.unit;
}
