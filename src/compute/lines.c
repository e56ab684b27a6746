/* SPDX-License-Identifier: Apache-2.0 */
#include "compute/lines.h"

#include <string.h>

#include "compute/conv.h"

enum { DEPTH, HEIGHT, WIDTH };

static int64_t reach(const sn_conv_desc *d, int i) /* from the first tap to the last */
{
    return (d->kernel[i] - 1) * d->dilation[i];
}

bool sn_lines_flat(const sn_conv_desc *d)
{
    for (int i = 0; i < 3; i++)
        if (d->kernel[i] != 1 || d->stride[i] != 1 || d->pad[i] != 0 || d->in[i] != d->out[i])
            return false;
    return true;
}

static void take_dims(sn_lines *l, const sn_conv_desc *d)
{
    for (int i = 0; i < 3; i++) {
        l->in[i] = d->in[i];
        l->out[i] = d->out[i];
        l->kernel[i] = d->kernel[i];
        l->stride[i] = d->stride[i];
        l->dilation[i] = d->dilation[i];
        l->pad[i] = d->pad[i];
    }
    l->flat = sn_lines_flat(d);
    if (!l->flat)
        return;
    /* One column, and as many lines as there are rows. */
    l->in[HEIGHT] = l->out[HEIGHT] = sn_count(d->out[0], d->out[1], d->out[2], 1);
    l->in[DEPTH] = l->out[DEPTH] = l->in[WIDTH] = l->out[WIDTH] = 1;
}

/* Are all pixels that results read inside of the image? */
static bool stays_inside(const sn_lines *l)
{
    for (int i = 0; i < 3; i++) {
        const int64_t last = (l->out[i] - 1) * l->stride[i] + (l->kernel[i] - 1) * l->dilation[i];
        if (l->pad[i] != 0 || last >= l->in[i])
            return false;
    }
    return true;
}

/* The copy of parts with so many lines and columns; false: sizes overflow. */
static bool size_part(sn_lines *l, int64_t lines, int64_t columns, const sn_lines_request *r)
{
    const int64_t sx = l->stride[WIDTH], limit = INT64_MAX / 4;
    l->lines = lines;
    l->columns = columns;
    const int64_t pixels = (columns - 1) * sx + reach(r->conv, WIDTH) + 1;
    l->across = l->in_place ? l->in[WIDTH] / sx : sn_ceil_div(pixels, sx);
    l->width = l->across * sx;
    l->high = lines + reach(r->conv, HEIGHT) / l->stride[HEIGHT];
    const int64_t rows = sn_count(lines - 1, l->across, 1, 1);
    if (rows < 0 || rows > limit || columns > limit)
        return false;
    const int64_t multiple = sn_ceil_div(rows + columns, r->row_multiple) * r->row_multiple;
    const int64_t copied = sn_count(l->kernel[DEPTH] * l->phases, l->high, l->width, l->pixel);
    const int64_t read = sn_count(multiple, l->row, 1, 1);
    if (copied < 0 || copied > limit || read < 0 || read > limit)
        return false;
    l->read = read - l->row + r->run_end;
    for (int64_t k = 0, most = 0; k < l->runs; k++) {
        const int64_t at = sn_lines_run_at(l, k);
        l->read += sn_max(at - most, 0);
        most = sn_max(most, at);
    }
    l->bytes = sn_max(copied, l->read);
    return true;
}

bool sn_lines_merge(int64_t groups, int64_t kernel_x, int64_t dilation_x)
{
    return groups == 1 && (dilation_x == 1 || kernel_x == 1);
}

bool sn_lines_plan(sn_lines *l, const sn_lines_request *r)
{
    const sn_conv_desc *d = r->conv;
    *l = (sn_lines){.x_pixel = r->x_pixel, .pixel = r->x_pixel};
    take_dims(l, d);
    l->merged = r->merged;
    if (r->converted || (l->merged && d->kernel[WIDTH] > 1))
        l->pixel = r->channels_bytes; /* pixels of a run have no gaps */
    l->row = l->stride[WIDTH] * l->pixel;
    l->runs = sn_count(l->kernel[DEPTH], l->kernel[HEIGHT], l->merged ? 1 : l->kernel[WIDTH], 1);
    l->phases = sn_min(l->stride[HEIGHT], reach(d, HEIGHT) + 1);
    l->in_place = !r->converted && stays_inside(l) && l->stride[HEIGHT] == 1 &&
                  l->kernel[DEPTH] == 1 && l->in[WIDTH] % l->stride[WIDTH] == 0 &&
                  l->pixel == l->x_pixel;
    const int64_t line = sn_count(l->kernel[DEPTH], l->out[WIDTH], l->row, l->stride[HEIGHT]);
    if (line < 0 || l->runs < 0)
        return false;
    int64_t lines = 1, columns = l->out[WIDTH];
    if (line > r->budget)
        columns = sn_min(columns, sn_max(columns / sn_ceil_div(line, r->budget), 64));
    else
        lines = sn_min(sn_max(r->budget / sn_max(line, 1), 1), l->out[HEIGHT]);
    /* Smaller ones for more threads, as long as each has a few tiles of rows. */
    const int64_t others = l->out[DEPTH] * sn_ceil_div(l->out[WIDTH], columns);
    const int64_t few = sn_max(4 * r->row_multiple / columns, 1);
    if (sn_ceil_div(l->out[HEIGHT], lines) * others < r->want)
        lines = sn_min(lines, sn_max(l->out[HEIGHT] * others / r->want, few));
    lines = sn_ceil_div(l->out[HEIGHT], sn_ceil_div(l->out[HEIGHT], lines));
    l->parts[DEPTH] = l->out[DEPTH];
    l->parts[HEIGHT] = sn_ceil_div(l->out[HEIGHT], lines);
    l->parts[WIDTH] = sn_ceil_div(l->out[WIDTH], columns);
    return size_part(l, lines, columns, r);
}

int64_t sn_lines_parts(const sn_lines *l)
{
    return l->parts[DEPTH] * l->parts[HEIGHT] * l->parts[WIDTH];
}

sn_lines_part sn_lines_part_of(const sn_lines *l, int64_t index)
{
    sn_lines_part p = {.x = index % l->parts[WIDTH] * l->columns};
    index /= l->parts[WIDTH];
    p.y = index % l->parts[HEIGHT] * l->lines;
    p.z = index / l->parts[HEIGHT];
    p.lines = sn_min(l->lines, l->out[HEIGHT] - p.y);
    p.columns = sn_min(l->columns, l->out[WIDTH] - p.x);
    p.rows = (p.lines - 1) * l->across + p.columns;
    return p;
}

int64_t sn_lines_run_at(const sn_lines *l, int64_t run)
{
    const int64_t kx = l->merged ? 0 : run % l->kernel[WIDTH];
    const int64_t rest = l->merged ? run : run / l->kernel[WIDTH];
    const int64_t ky = rest % l->kernel[HEIGHT] * l->dilation[HEIGHT];
    const int64_t slice = rest / l->kernel[HEIGHT];
    const int64_t phase = ky % l->stride[HEIGHT], line = ky / l->stride[HEIGHT];
    return (((slice * l->phases + phase) * l->high + line) * l->width + kx * l->dilation[WIDTH]) *
           l->pixel;
}

static void copy_pixels(const sn_lines *l, uint8_t *to, const sn_lines_image *image, int64_t at,
                        int64_t n)
{
    const uint8_t *from = image->pixels + at * l->x_pixel;
    if (image->convert)
        image->convert(image->arg, to, from, n);
    else if (l->pixel == l->x_pixel)
        memcpy(to, from, (size_t)(n * l->pixel));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * l->pixel, from + i * l->x_pixel, (size_t)l->pixel);
}

/* The line whose pixels are `line` and those behind it, from its pixel x on, to `width` pixels. */
static void copy_line(const sn_lines *l, uint8_t *to, const sn_lines_image *image, int64_t line,
                      int64_t x)
{
    const int64_t before = sn_min(sn_max(-x, 0), l->width);
    const int64_t there = sn_max(sn_min(l->in[WIDTH] - sn_max(x, 0), l->width - before), 0);
    const int64_t behind = l->width - before - there;
    memset(to, image->outside, (size_t)(before * l->pixel));
    if (there > 0)
        copy_pixels(l, to + before * l->pixel, image, line + sn_max(x, 0), there);
    memset(to + (before + there) * l->pixel, image->outside, (size_t)(behind * l->pixel));
}

static void copy_part(const sn_lines *l, const sn_lines_part *part, const sn_lines_image *image,
                      uint8_t *copy)
{
    const int64_t line = l->width * l->pixel, x = part->x * l->stride[WIDTH] - l->pad[WIDTH];
    const int64_t high = part->lines + (l->high - l->lines);
    if (l->flat) { /* lines of one pixel, all there */
        copy_pixels(l, copy, image, part->y, part->lines);
        return;
    }
    for (int64_t slice = 0; slice < l->kernel[DEPTH]; slice++) {
        const int64_t z = part->z * l->stride[DEPTH] - l->pad[DEPTH] + slice * l->dilation[DEPTH];
        for (int64_t phase = 0; phase < l->phases; phase++)
            for (int64_t i = 0; i < high; i++) {
                const int64_t y = (part->y + i) * l->stride[HEIGHT] + phase - l->pad[HEIGHT];
                uint8_t *to = copy + ((slice * l->phases + phase) * l->high + i) * line;
                if (z < 0 || z >= l->in[DEPTH] || y < 0 || y >= l->in[HEIGHT])
                    memset(to, image->outside, (size_t)line);
                else
                    copy_line(l, to, image, (z * l->in[HEIGHT] + y) * l->in[WIDTH], x);
            }
    }
}

const uint8_t *sn_lines_prepare(const sn_lines *l, const sn_lines_part *part,
                                const sn_lines_image *image, uint8_t *copy)
{
    if (l->in_place) {
        const int64_t line = part->z * l->stride[DEPTH] * l->in[HEIGHT] + part->y;
        const int64_t at = (line * l->in[WIDTH] + part->x * l->stride[WIDTH]) * l->pixel;
        if (l->read <= image->left - at)
            return image->pixels + at;
    }
    copy_part(l, part, image, copy);
    return copy;
}

int64_t sn_lines_results(const sn_lines *l, const sn_lines_part *part, int64_t v, int64_t n,
                         int64_t *at)
{
    const int64_t y = v / l->across, x = v % l->across;
    if (x >= part->columns) {
        *at = l->across - x;
        return 0;
    }
    *at = ((part->z * l->out[HEIGHT] + part->y + y) * l->out[WIDTH]) + part->x + x;
    if (l->across == l->out[WIDTH]) /* lines follow each other */
        return sn_min(n, part->rows - v);
    return sn_min(n, part->columns - x);
}
