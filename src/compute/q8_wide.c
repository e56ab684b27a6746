/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes that int32 may not hold: of very many products, or with a bias close to its ends,
 * which quantisers give channels whose weights are next to nothing. Kernels sum modulo 2^32. From
 * that the sum of up to SN_Q8_PART products follows, once what is known in 64 bits, zero points and
 * biases, is taken off; of more products the drivers add up the parts. Results are stored as if
 * int32 held all sums, then those are put right that it may not hold. */
#include "compute/q8_result.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ which calls */
/* How far a byte may be from the zero points. */
static int64_t reach_of(const sn_byte_zeros *z, sonde_dtype type)
{
    const int32_t low = type == SONDE_DTYPE_I8 ? -128 : 0, high = low + 255;
    int64_t reach = 0;
    for (int64_t i = 0; i < (z->data ? z->n : 1); i++) {
        const int32_t zero = z->data ? sn_byte_at(z->type, z->data, i) : 0;
        reach = sn_max(reach, sn_max(zero - low, high - zero));
    }
    return reach;
}

/* The largest bias; rows that have none of their own have the same. */
static int64_t largest_bias(const sn_q8_call *c)
{
    const sn_q8_args *a = c->a;
    const sn_q8_desc *d = &c->p->d;
    const int64_t rows = a->bias_row ? sn_max(d->conv.n, 0) * c->p->out_pixels : 1;
    const int64_t columns = a->bias_column ? d->conv.oc : 1;
    int32_t low = 0, high = 0;
    for (int64_t r = 0; a->bias && r < rows; r++) {
        const int32_t *bias = a->bias + r * a->bias_row;
        for (int64_t o = 0; o < columns; o++) {
            low = bias[o] < low ? bias[o] : low;
            high = bias[o] > high ? bias[o] : high;
        }
    }
    return sn_max(high, -(int64_t)low);
}

/* The weights of every column, which are signed, block by block. */
static void sum_weights(sn_q8_call *c)
{
    const sn_q8_weights *w = &c->p->w;
    int64_t *sums = sn_piece_at(c->a->workspace, c->p->wide_sums);
    const int64_t vector = (int64_t)w->block * w->kr;
    const int8_t *from = (const int8_t *)c->weights;
    c->wide_sums = sums;
    for (int64_t b = 0; b < w->groups * w->blocks; b++, sums += w->block) {
        memset(sums, 0, w->block * sizeof *sums);
        for (int64_t i = 0; i < w->block_bytes; i += vector, from += vector)
            for (int64_t k = 0; k < vector; k++)
                sums[k / w->kr] += from[k];
    }
}

void sn_q8_wide_prepare(sn_q8_call *c)
{
    const sn_q8_plan *p = c->p;
    if (p->d.y_type == SONDE_DTYPE_I32 || p->d.wraps)
        return;
    const int64_t terms = p->empty ? 0 : p->w.group_in * p->w.taps, bias = largest_bias(c);
    const int64_t quick = INT32_MAX / (255 * 255);
    if (terms <= quick && bias <= INT32_MAX - terms * 255 * 255)
        return; /* whatever the zero points are */
    const double each =
        (double)(reach_of(&c->a->x_zero, p->d.x_type) * reach_of(&c->a->w_zero, p->d.w_type));
    const double room = (double)INT32_MAX - (double)terms * each;
    c->wide = (double)bias > room;
    /* Where only biases are too large, other columns are right as they are. */
    const bool columns = room >= 0 && !p->parted && (c->plain_bytes || c->plain_floats);
    c->unsure = columns ? (int64_t)room : -1;
    if (c->wide && p->parted && terms > SN_Q8_SUM_PART)
        sum_weights(c);
}

/* ------------------------------------------------------------------ sums */
void sn_q8_wide_join(int64_t *wide, const int32_t *sums, const int32_t *start, int64_t sums_row,
                     int64_t rows, int64_t n, bool first)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t l = 0; l < n; l++) {
            const int64_t at = r * sums_row + l;
            const int32_t part = (int32_t)((uint32_t)sums[at] - (uint32_t)start[l]);
            wide[at] = (first ? 0 : wide[at]) + part;
        }
}

/* Is the bias of all rows so small that int32 held the sum? */
static bool is_sure(const sn_q8_call *c, int64_t o)
{
    const int64_t bias = c->a->bias ? c->a->bias[o * c->a->bias_column] : 0;
    return bias <= c->unsure && -bias <= c->unsure;
}

static int64_t bias_at(const sn_q8_args *a, int64_t row, int64_t o)
{
    return a->bias ? a->bias[row * a->bias_row + o * a->bias_column] : 0;
}

/* One result by the rule of q8.h. */
static void store(const sn_q8_call *c, int64_t at, int64_t o, int64_t sum, float factor)
{
    const sn_q8_args *a = c->a;
    const sonde_dtype type = c->p->d.y_type;
    const float scaled = (float)sum * factor;
    if (type == SONDE_DTYPE_F32) {
        ((float *)a->y)[at] = a->addend ? scaled + a->addend[o] : scaled;
        return;
    }
    float v = rintf(scaled) + (float)a->y_zero;
    v = v > c->lo ? v : c->lo; /* NaN too */
    v = v < c->hi ? v : c->hi;
    uint8_t *y = (uint8_t *)a->y + at, own = (uint8_t)(int32_t)v;
    *y = own;
    if (!a->sum)
        return;
    const uint8_t z = a->sum->z[at];
    const sn_q8_binary_args t = {.a = a->sum->second ? &z : &own,
                                 .b = a->sum->second ? &own : &z,
                                 .y = y,
                                 .n = 1,
                                 .a_scale = a->sum->a_scale,
                                 .b_scale = a->sum->b_scale,
                                 .offset = a->sum->offset,
                                 .mode = SN_BINARY_VV,
                                 .is_signed = a->sum->is_signed};
    c->p->k->q8_add(&t);
}

static void finish_row(const sn_q8_call *c, const sn_q8_sums *s, int64_t r)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    const int64_t terms = p->empty ? 0 : w->group_in * w->taps;
    const int64_t row = s->image * p->out_pixels + s->row + r;
    const int64_t x_row =
        sn_q8_matrix_of(&p->d, p->d.x_batch, s->image) * p->out_pixels + s->row + r;
    const int64_t x_zero = p->empty ? 0 : sn_q8_x_zero(c, x_row);
    const int32_t *sums = s->sums + r * s->sums_row;
    const float *factor = sn_q8_row_factors(c, s, r);
    int64_t summed = -1, x_sum = 0;
    for (int64_t l = 0; l < s->n; l++) {
        const int64_t column = s->first + l;
        const int64_t o = p->d.product ? column : s->group * w->out + column;
        const int64_t at = s->group * w->blocks * w->block + column;
        if (is_sure(c, o))
            continue;
        const int64_t w_zero = p->empty ? 0 : sn_q8_w_zero(c, p->d.product ? s->group : 0, o);
        const int64_t of = p->depthwise ? l : column / w->group_out;
        if (w_zero && of != summed) {
            x_sum = sn_q8_row_sum(c, s, r, p->depthwise ? l : column);
            summed = of;
        }
        const int64_t w_sum = p->empty ? 0 : c->wide_sums ? c->wide_sums[at] : c->column_sums[at];
        const int64_t more = bias_at(c->a, row, o) - x_zero * (w_sum - terms * w_zero) -
                             (w_zero ? w_zero * x_sum : 0);
        const int64_t products = s->wide ? s->wide[r * s->sums_row + l]
                                         : (int32_t)((uint32_t)sums[l] - (uint32_t)(uint64_t)more);
        store(c, row * p->d.y_pitch + o, o, products + more, factor[l]);
    }
}

void sn_q8_finish(const sn_q8_call *c, const sn_q8_sums *s)
{
    sn_q8_store_sums(c, s);
    for (int64_t r = 0; c->wide && r < s->rows; r++)
        finish_row(c, s, r);
}
