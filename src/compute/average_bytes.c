/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of bytes; see average_bytes.h. A unit of a whole image is a part of its pixels, whose
 * sums are joined at the end; one of windows is a row of the result. */
#include "compute/average_bytes.h"

#include <string.h>

#include "compute/bytes.h"
#include "compute/conv.h"
#include "compute/parallel.h"
#include "compute/split.h"

enum {
    PART_BYTES = 1 << 16, /* of a part: a second-level cache holds a few */
    WIDE = 256            /* channels that keep a kernel busy; fewer are joined over pixels */
};

void sn_average_bytes_plan(sn_average_bytes *p, const sn_pooling_desc *d, uint32_t cpu_flags)
{
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->k = sn_kernels_get(cpu_flags);
    p->pixels = d->in[0] * d->in[1] * d->in[2];
    p->whole = p->pixels > 0 && p->pixels <= SN_SUMS_ROWS && d->c > 0;
    for (int i = 0; i < 3; i++)
        p->whole = p->whole && d->kernel[i] == d->in[i] && d->out[i] == 1 && d->dilation[i] == 1 &&
                   d->pad[i] == 0 && d->pad_end[i] == 0;
    sn_pooling_inner(d, &p->inner_from, &p->inner_to);
    if (!p->whole)
        return;
    p->part = sn_min(sn_max(PART_BYTES / d->c, 1), p->pixels);
    p->parts = sn_ceil_div(p->pixels, p->part);
    p->sums = d->n * p->parts * d->c;
}

typedef struct average_call {
    const sn_average_bytes *p;
    sn_q8_average args; /* of a window: what all have in common */
    const uint8_t *x;
    uint8_t *y;
    int32_t *sums; /* [n][parts][c] */
} average_call;

/* ------------------------------------------------------------------ a whole image */
/* Sums of `pixels` pixels. Where a pixel has few channels, as many as fit are summed as one. */
static void sum_pixels(const average_call *a, int32_t *sums, const uint8_t *x, int64_t pixels)
{
    const sn_kernels *k = a->p->k;
    const int64_t c = a->p->d.c, joined = sn_max(WIDE / c, 1), rows = pixels / joined;
    const uint8_t flip = a->args.is_signed ? 0x80 : 0; /* signed bytes are summed 128 larger */
    if (joined == 1 || rows == 0) {
        k->u8_sums(sums, x, c, (size_t)pixels, (size_t)c, flip);
        return;
    }
    int32_t wide[WIDE], rest[WIDE] = {0};
    k->u8_sums(wide, x, joined * c, (size_t)rows, (size_t)(joined * c), flip);
    if (rows * joined < pixels)
        k->u8_sums(rest, x + rows * joined * c, c, (size_t)(pixels - rows * joined), (size_t)c,
                   flip);
    for (int64_t i = 0; i < c; i++) {
        sums[i] = rest[i];
        for (int64_t j = 0; j < joined; j++)
            sums[i] += wide[j * c + i];
    }
}

static void sum_parts(void *arg, size_t lo, size_t hi)
{
    const average_call *a = arg;
    const sn_average_bytes *p = a->p;
    for (int64_t u = (int64_t)lo; u < (int64_t)hi; u++) {
        const int64_t image = u / p->parts, from = u % p->parts * p->part;
        sum_pixels(a, a->sums + u * p->d.c, a->x + (image * p->pixels + from) * p->d.c,
                   sn_min(p->part, p->pixels - from));
    }
}

/* The sums of an image's parts to bytes. */
static void finish_image(const average_call *a, int64_t image, sn_qparam qx, sn_qparam qy)
{
    const sn_average_bytes *p = a->p;
    const int64_t c = p->d.c;
    /* What the zero points sum up to, and what signed bytes are larger by. */
    const int32_t zeros = (int32_t)p->pixels * (qx.zero + (a->args.is_signed ? 128 : 0));
    const int32_t *sums = a->sums + image * p->parts * c;
    const float lo = p->d.dtype == SONDE_DTYPE_I8 ? -128.0f : 0.0f;
    float scale[WIDE];
    for (int i = 0; i < WIDE; i++)
        scale[i] = sn_held_scale(qx.scale / (qy.scale * (float)p->pixels));
    for (int64_t from = 0; from < c; from += WIDE) {
        const size_t n = (size_t)sn_min(c - from, WIDE);
        int32_t all[WIDE];
        for (size_t i = 0; i < n; i++) {
            all[i] = -zeros;
            for (int64_t part = 0; part < p->parts; part++)
                all[i] += sums[part * c + from + (int64_t)i];
        }
        const sn_requantize_args t = {.x = all,
                                      .scale = scale,
                                      .y = a->y + image * c + from,
                                      .rows = 1,
                                      .n = n,
                                      .zero = (float)qy.zero,
                                      .lo = lo,
                                      .hi = lo + 255.0f};
        p->k->i32_requantize(&t);
    }
}

/* ------------------------------------------------------------------ windows */
static void average_rows(void *arg, size_t lo, size_t hi)
{
    const average_call *a = arg;
    const sn_pooling_desc *d = &a->p->d;
    const int64_t pixel[3] = {d->in[1] * d->in[2], d->in[2], 1}; /* pixels a dim moves by */
    sn_q8_average t = a->args;
    t.x_pixel = d->stride[2] * d->c;
    for (int i = 0; i < 3; i++)
        t.step[i] = d->dilation[i] * pixel[i] * d->c;
    for (int64_t row = (int64_t)lo; row < (int64_t)hi; row++) {
        int64_t o[3] = {row / d->out[1] % d->out[0], row % d->out[1], 0};
        const int64_t image = row / (d->out[0] * d->out[1]);
        t.y = a->y + row * d->out[2] * d->c;
        for (int64_t n; o[2] < d->out[2]; o[2] += n, t.y += n * d->c) {
            int64_t at = image * a->p->pixels, count = 1, padded = 1;
            for (int i = 0; i < 3; i++) {
                int64_t first, end;
                sn_conv_taps(o[i], d->stride[i], d->pad[i], d->dilation[i], d->kernel[i], d->in[i],
                             &first, &end);
                t.taps[i] = (size_t)sn_max(end - first, 0);
                count *= (int64_t)t.taps[i];
                padded *= sn_pooling_padded_taps(d, i, o[i]);
                at += t.taps[i]
                          ? (o[i] * d->stride[i] - d->pad[i] + first * d->dilation[i]) * pixel[i]
                          : 0;
            }
            /* Between the borders, all that are left have the same taps. */
            n = o[2] == a->p->inner_from ? sn_max(a->p->inner_to - o[2], 1) : 1;
            t.x = a->x + (count ? at * d->c : 0);
            t.pixels = (size_t)n;
            t.count = (float)(d->include_pad ? padded : count);
            a->p->k->q8_average(&t);
        }
    }
}

void sn_average_bytes_run(const sn_average_bytes *p, sn_qparam qx, sn_qparam qy, const void *x,
                          void *y, int32_t *sums, sn_pool *pool)
{
    const sn_pooling_desc *d = &p->d;
    average_call a = {.p = p,
                      .args = {.n = (size_t)d->c,
                               .x_scale = qx.scale,
                               .y_scale = qy.scale,
                               .x_zero = qx.zero,
                               .y_zero = (float)qy.zero,
                               .is_signed = d->dtype == SONDE_DTYPE_I8},
                      .x = x,
                      .y = y,
                      .sums = sums};
    if (p->whole) {
        sn_parallel_range(pool, (size_t)(d->n * p->parts), (size_t)(p->part * d->c / 16), sum_parts,
                          &a);
        for (int64_t image = 0; image < d->n; image++)
            finish_image(&a, image, qx, qy);
        return;
    }
    int64_t reads = d->out[2] * d->c;
    for (int i = 0; i < 3; i++)
        reads = reads > INT32_MAX / sn_max(d->kernel[i], 1) ? INT32_MAX : reads * d->kernel[i];
    sn_parallel_range(pool, (size_t)(d->n * d->out[0] * d->out[1]), (size_t)reads, average_rows,
                      &a);
}
