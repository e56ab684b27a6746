/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of bytes in one channel of a plain tensor, or with channels last: rows of a window are
 * joined whole, a vector at a time, then the columns of each window. */
#include <string.h>

#include "compute/conv.h"
#include "compute/pooling.h"
#include "compute/split.h"

enum { STRIP = 2048 }; /* bytes of joined rows, on the stack */

/* The window's rows of output row (o0, o1), columns from … from+n-1 of the input, of `unit` bytes
 * each, joined; false: it has none inside the image. */
static bool join_rows(const sn_pooling_plan *p, const uint8_t *x, int64_t unit, int64_t o0,
                      int64_t o1, int64_t from, int64_t n, uint8_t flip, uint8_t *joined)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t o[2] = {o0, o1};
    int64_t first[2], end[2];
    bool any = false;
    for (int i = 0; i < 2; i++)
        sn_conv_taps(o[i], d->stride[i], d->pad[i], d->dilation[i], d->kernel[i], d->in[i],
                     &first[i], &end[i]);
    for (int64_t k0 = first[0]; k0 < end[0]; k0++)
        for (int64_t k1 = first[1]; k1 < end[1]; k1++) {
            const int64_t i0 = o0 * d->stride[0] - d->pad[0] + k0 * d->dilation[0];
            const int64_t i1 = o1 * d->stride[1] - d->pad[1] + k1 * d->dilation[1];
            const uint8_t *row = x + ((i0 * d->in[1] + i1) * d->in[2] + from) * unit;
            if (any)
                p->k->u8_max(joined, row, (size_t)(n * unit), flip);
            else
                memcpy(joined, row, (size_t)(n * unit));
            any = true;
        }
    return any;
}

/* Output columns from … to-1 of a row. */
static void pool_strip(const sn_pooling_plan *p, const uint8_t *x, uint8_t *y, int64_t o0,
                       int64_t o1, int64_t from, int64_t to, uint8_t flip)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t stride = d->stride[2], dilation = d->dilation[2];
    const int64_t lo = sn_max(from * stride - d->pad[2], 0);
    const int64_t hi =
        sn_min((to - 1) * stride - d->pad[2] + (d->kernel[2] - 1) * dilation + 1, d->in[2]);
    uint8_t joined[STRIP];
    if (hi <= lo || !join_rows(p, x, 1, o0, o1, lo, hi - lo, flip, joined)) {
        memset(y + from, flip, (size_t)(to - from)); /* the lowest number */
        return;
    }
    for (int64_t o = from; o < to; o++) {
        int64_t first, end;
        sn_conv_taps(o, stride, d->pad[2], dilation, d->kernel[2], d->in[2], &first, &end);
        const int64_t at = o * stride - d->pad[2] - lo; /* of tap 0, which may lie outside */
        uint8_t best = 0; /* no number of either type is smaller, flipped */
        for (int64_t k = first; k < end; k++) {
            const uint8_t v = joined[at + k * dilation] ^ flip;
            best = v > best ? v : best;
        }
        y[o] = best ^ flip;
    }
}

bool sn_pooling_bytes(const sn_pooling_plan *p, int64_t plane, const void *x, void *y)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t reach = (d->kernel[2] - 1) * d->dilation[2] + 1;
    if (d->kind != SN_POOL_MAX || (d->dtype != SONDE_DTYPE_U8 && d->dtype != SONDE_DTYPE_I8) ||
        reach > STRIP || d->stride[2] > STRIP)
        return false;
    const int64_t columns = (STRIP - reach) / d->stride[2] + 1;
    const uint8_t flip = d->dtype == SONDE_DTYPE_I8 ? 0x80 : 0;
    const uint8_t *from = (const uint8_t *)x + plane * d->in[0] * d->in[1] * d->in[2];
    uint8_t *to = (uint8_t *)y + plane * d->out[0] * d->out[1] * d->out[2];
    for (int64_t o0 = 0; o0 < d->out[0]; o0++)
        for (int64_t o1 = 0; o1 < d->out[1]; o1++, to += d->out[2])
            for (int64_t o = 0; o < d->out[2]; o += columns)
                pool_strip(p, from, to, o0, o1, o, sn_min(o + columns, d->out[2]), flip);
    return true;
}

/* ------------------------------------------------------------------ channels last */
/* Output columns from … to-1 of a row; `row` has been joined, from column `first_column` on. */
static void join_columns(const sn_pooling_plan *p, const uint8_t *row, int64_t first_column,
                         uint8_t *to, int64_t from, int64_t end_column, uint8_t flip)
{
    const sn_pooling_desc *d = &p->d;
    for (int64_t o = from, n; o < end_column; o += n, to += n * d->c) {
        int64_t first, end;
        sn_conv_taps(o, d->stride[2], d->pad[2], d->dilation[2], d->kernel[2], d->in[2], &first,
                     &end);
        /* Neighbours that read neighbours, all of their taps inside, are one row of bytes. */
        n = d->stride[2] == 1 && o >= p->inner_from ? sn_min(p->inner_to, end_column) - o : 1;
        n = sn_max(n, 1);
        const size_t bytes = (size_t)(n * d->c);
        for (int64_t k = first; k < end; k++) {
            const int64_t column = o * d->stride[2] - d->pad[2] + k * d->dilation[2];
            const uint8_t *pixel = row + (column - first_column) * d->c;
            if (k > first)
                p->k->u8_max(to, pixel, bytes, flip);
            else
                memcpy(to, pixel, bytes);
        }
        if (first >= end)
            memset(to, flip, bytes);
    }
}

/* Some channels of an output row whose windows are too wide to be joined: pixel by pixel. */
static void last_by_taps(const sn_pooling_plan *p, const uint8_t *from, uint8_t *to, int64_t o0,
                         int64_t o1, uint8_t flip)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t o[2] = {o0, o1}, in_row = d->in[2] * d->c;
    const size_t c = (size_t)d->c;
    int64_t first[3], end[3];
    for (int i = 0; i < 2; i++)
        sn_conv_taps(o[i], d->stride[i], d->pad[i], d->dilation[i], d->kernel[i], d->in[i],
                     &first[i], &end[i]);
    for (int64_t o2 = 0; o2 < d->out[2]; o2++, to += c) {
        bool any = false;
        sn_conv_taps(o2, d->stride[2], d->pad[2], d->dilation[2], d->kernel[2], d->in[2], &first[2],
                     &end[2]);
        for (int64_t k0 = first[0]; k0 < end[0]; k0++)
            for (int64_t k1 = first[1]; k1 < end[1]; k1++)
                for (int64_t k2 = first[2]; k2 < end[2]; k2++) {
                    const int64_t i0 = o[0] * d->stride[0] - d->pad[0] + k0 * d->dilation[0];
                    const int64_t i1 = o[1] * d->stride[1] - d->pad[1] + k1 * d->dilation[1];
                    const int64_t i2 = o2 * d->stride[2] - d->pad[2] + k2 * d->dilation[2];
                    const uint8_t *pixel = from + (i0 * d->in[1] + i1) * in_row + i2 * d->c;
                    if (any)
                        p->k->u8_max(to, pixel, c, flip);
                    else
                        memcpy(to, pixel, c);
                    any = true;
                }
        if (!any)
            memset(to, flip, c);
    }
}

void sn_pooling_last(const sn_pooling_plan *p, int64_t row, const void *x, void *y)
{
    enum { LINE = 8192 }; /* bytes of joined rows, on the stack */
    const sn_pooling_desc *d = &p->d;
    const uint8_t flip = d->dtype == SONDE_DTYPE_I8 ? 0x80 : 0;
    const int64_t image = row / (d->out[0] * d->out[1]), in_row = d->in[2] * d->c;
    const int64_t o0 = row / d->out[1] % d->out[0], o1 = row % d->out[1];
    const uint8_t *from = (const uint8_t *)x + image * d->in[0] * d->in[1] * in_row;
    uint8_t *to = (uint8_t *)y + row * d->out[2] * d->c;
    const int64_t reach = (d->kernel[2] - 1) * d->dilation[2] + 1, fit = LINE / sn_max(d->c, 1);
    if (reach > fit) {
        last_by_taps(p, from, to, o0, o1, flip);
        return;
    }
    const int64_t columns = (fit - reach) / d->stride[2] + 1;
    uint8_t joined[LINE];
    for (int64_t o = 0, end; o < d->out[2]; o = end) {
        end = sn_min(o + columns, d->out[2]);
        const int64_t lo = sn_max(o * d->stride[2] - d->pad[2], 0);
        const int64_t hi = sn_min((end - 1) * d->stride[2] - d->pad[2] + reach, d->in[2]);
        if (hi > lo && join_rows(p, from, d->c, o0, o1, lo, hi - lo, flip, joined))
            join_columns(p, joined, lo, to + o * d->c, o, end, flip);
        else
            memset(to + o * d->c, flip, (size_t)((end - o) * d->c));
    }
}
