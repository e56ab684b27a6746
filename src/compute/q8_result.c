/* SPDX-License-Identifier: Apache-2.0 */
#include "compute/q8_result.h"

#include <string.h>

static int32_t times(int32_t a, int32_t b) /* wraps */
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
static int32_t plus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static int32_t minus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

/* Zero points and scales of output channel o of matrix m: one, one per channel, or all. */
static int64_t param_at(int64_t n, int64_t oc, int64_t m, int64_t o)
{
    return n == 1 ? 0 : n == oc ? o : m * oc + o;
}
int32_t sn_q8_w_zero(const sn_q8_call *c, int64_t m, int64_t o)
{
    const sn_byte_zeros *z = &c->a->w_zero;
    const int64_t at = param_at(z->n, c->p->d.conv.oc, m, o);
    return (z->data ? sn_byte_at(z->type, z->data, at) : 0) - c->w_shift;
}
int32_t sn_q8_x_zero(const sn_q8_call *c, int64_t row)
{
    const sn_byte_zeros *z = &c->a->x_zero;
    return (z->data ? sn_byte_at(z->type, z->data, z->n == 1 ? 0 : row % z->n) : 0) - c->x_shift;
}
static float w_scale_at(const sn_q8_call *c, int64_t m, int64_t o)
{
    return c->a->w_scale[param_at(c->a->w_scales, c->p->d.conv.oc, m, o)];
}

/* Numbers of each column that all rows share, of group (or matrix) g. */
static void prepare_group(const sn_q8_call *c, int64_t g)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const sn_q8_weights *w = &p->w;
    const int64_t first = g * w->blocks * w->block, columns = w->blocks * w->block;
    const int64_t o = p->d.product ? 0 : g * w->out, m = p->d.product ? g : 0;
    const int32_t x_zero = a->x_zero.n <= 1 ? sn_q8_x_zero(c, 0) : 0;
    const int32_t terms = (int32_t)(w->group_in * w->taps);
    int32_t *start = c->start + first;
    float *factor = c->factor + first;
    memset(start, 0, (size_t)columns * sizeof *start);
    memset(factor, 0, (size_t)columns * sizeof *factor);
    for (int64_t l = 0; l < w->out && !p->empty; l++)
        start[l] = minus(0, times(x_zero, c->column_sums[first + l]));
    for (int64_t l = 0; l < w->out && c->w_zeros; l++)
        start[l] = plus(start[l], times(x_zero, times(terms, sn_q8_w_zero(c, m, o + l))));
    if (a->bias && !a->bias_row)
        for (int64_t l = 0; l < w->out; l++)
            start[l] = plus(start[l], a->bias[(o + l) * a->bias_column]);
    if (!a->w_scale)
        return;
    const bool one_scale = a->x_scales <= 1, bytes = p->d.y_type != SONDE_DTYPE_F32;
    for (int64_t l = 0; l < w->out; l++) {
        const float scale = w_scale_at(c, m, o + l);
        const float both = one_scale ? scale * a->x_scale[0] : scale;
        factor[l] = sn_held_scale(one_scale && bytes ? both / a->y_scale : both);
    }
}

/* Does any zero point of the weights count? */
static bool w_zeros_count(const sn_q8_call *c)
{
    const sn_byte_zeros *z = &c->a->w_zero;
    for (int64_t i = 0; i < (z->data ? z->n : 1); i++)
        if ((z->data ? sn_byte_at(z->type, z->data, i) : 0) != c->w_shift)
            return true;
    return false;
}

/* ------------------------------------------------------------------ a run */
void sn_q8_prepare(sn_q8_call *c, const sn_q8_plan *p, const sn_q8_args *a, const uint8_t *weights)
{
    const float lowest = p->d.y_type == SONDE_DTYPE_I8 ? -128.0f : 0.0f;
    const bool all = a->lo == 0 && a->hi == 0;
    *c = (sn_q8_call){.p = p,
                      .a = a,
                      .weights = weights + p->w.sums_bytes,
                      .column_sums = (const int32_t *)(const void *)weights,
                      .start = sn_piece_at(a->workspace, p->start),
                      .factor = sn_piece_at(a->workspace, p->factor),
                      .w_shift = p->d.w_type == SONDE_DTYPE_U8 ? 128 : 0,
                      .lo = all ? lowest : (float)a->lo,
                      .hi = all ? lowest + 255.0f : (float)a->hi};
    if (p->flips)
        c->x_shift = p->d.x_type == SONDE_DTYPE_U8 ? 128 : -128;
    c->w_zeros = !p->empty && w_zeros_count(c);
    c->row_numbers = a->x_zero.n > 1 || a->bias_row || c->w_zeros;
    const bool plain = !c->row_numbers && a->x_scales <= 1;
    c->plain_bytes = plain && !p->empty && sn_is_byte(p->d.y_type);
    c->plain_floats = plain && p->d.y_type == SONDE_DTYPE_F32;
    c->outside = (uint8_t)(sn_q8_x_zero(c, 0) + c->x_shift);
    for (int64_t g = 0; g < p->w.groups; g++)
        prepare_group(c, g);
}

bool sn_q8_cancelled(sn_q8_call *c)
{
    if (!c->a->cancel || !atomic_load_explicit(c->a->cancel, memory_order_relaxed))
        return false;
    atomic_store_explicit(&c->cancelled, true, memory_order_relaxed);
    return true;
}

int64_t sn_q8_matrix_of(const sn_q8_desc *d, const int64_t *steps, int64_t batch)
{
    return sn_batch_at(d->batch, steps, d->batch_rank, batch);
}

/* ------------------------------------------------------------------ sums */
int64_t sn_q8_row_sum(const sn_q8_call *c, const sn_q8_sums *s, int64_t r, int64_t o)
{
    enum { PIECE = 1 << 20 }; /* int32 holds its sum */
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    const int64_t first = s->x_at + (p->depthwise ? o : o / w->group_out * w->group_in);
    const int64_t n = w->group_in * (s->along + 1);
    int64_t sum = 0;
    for (int64_t k = 0; k < w->taps / (s->along + 1); k++) {
        const uint8_t *x = s->taps[k * s->taps_step + r] + first;
        for (int64_t from = 0; from < n; from += PIECE) {
            const int64_t to = sn_min(from + PIECE, n);
            int32_t part = 0;
            for (int64_t i = from; i < to; i++)
                part += sn_byte_at(p->d.x_type, x, i) - c->x_shift;
            sum += part;
        }
    }
    return sum;
}

/* What the zero points and biases of single rows change in the sums of row r. */
static void correct_row(const sn_q8_call *c, const sn_q8_sums *s, int64_t r, int32_t *sums)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const sn_q8_weights *w = &p->w;
    const int64_t terms = p->empty ? 0 : w->group_in * w->taps;
    const int64_t row = s->image * p->out_pixels + s->row + r;
    const int64_t x_row =
        sn_q8_matrix_of(&p->d, p->d.x_batch, s->image) * p->out_pixels + s->row + r;
    const bool own_zero = a->x_zero.n > 1;
    int64_t summed = -1;
    int32_t x_sum = 0; /* modulo 2^32, as all of this is */
    for (int64_t l = 0; l < s->n && !p->empty; l++) {
        const int64_t column = s->first + l;
        const int64_t o = p->d.product ? column : s->group * w->out + column;
        const int64_t m = p->d.product ? s->group : 0;
        const int64_t of = p->depthwise ? l : column / w->group_out;
        const int32_t w_zero = sn_q8_w_zero(c, m, o);
        if (w_zero) {
            if (of != summed)
                x_sum = (int32_t)(uint32_t)sn_q8_row_sum(c, s, r, p->depthwise ? l : column);
            summed = of;
            sums[l] = minus(sums[l], times(w_zero, x_sum));
        }
        if (own_zero) {
            const int64_t at = s->group * w->blocks * w->block + column;
            const int32_t of_w = minus(c->column_sums[at], times((int32_t)terms, w_zero));
            sums[l] = minus(sums[l], times(sn_q8_x_zero(c, x_row), of_w));
        }
    }
    if (a->bias && a->bias_row)
        for (int64_t l = 0; l < s->n; l++)
            sums[l] = plus(sums[l], a->bias[row * a->bias_row + (s->first + l) * a->bias_column]);
}

/* Rows of sums, x_row apart, to bytes from element `at` of the result on: channels o … o+n-1. */
static void store_bytes(const sn_q8_call *c, int64_t at, int64_t o, const int32_t *sums,
                        int64_t x_row, const float *factor, int64_t rows, int64_t n)
{
    const sn_q8_desc *d = &c->p->d;
    sn_requantize_args t = {.x = sums,
                            .scale = factor,
                            .y = (uint8_t *)c->a->y + at,
                            .rows = (size_t)rows,
                            .n = (size_t)n,
                            .x_row = x_row,
                            .y_row = d->y_pitch,
                            .zero = (float)c->a->y_zero,
                            .lo = c->lo,
                            .hi = c->hi};
    sn_requantize_sum sum;
    if (c->a->sum) {
        sum = *c->a->sum;
        sum.z += at;
        t.sum = &sum;
    }
    c->p->k->i32_requantize(&t);
    const int64_t padding = d->y_pitch - d->conv.oc;
    for (int64_t r = 0; padding > 0 && o + n == d->conv.oc && r < rows; r++)
        memset(t.y + r * d->y_pitch + n, 0, (size_t)padding);
}

/* The same to f32. */
static void store_floats(const sn_q8_call *c, int64_t at, int64_t o, const int32_t *sums,
                         int64_t x_row, const float *factor, int64_t rows, int64_t n)
{
    const sn_i32_scale_args t = {.x = sums,
                                 .scale = factor,
                                 .addend = c->a->addend ? c->a->addend + o : NULL,
                                 .y = (float *)c->a->y + at,
                                 .rows = (size_t)rows,
                                 .n = (size_t)n,
                                 .x_row = x_row,
                                 .y_row = c->p->d.y_pitch};
    c->p->k->i32_scale(&t);
}

const float *sn_q8_row_factors(const sn_q8_call *c, const sn_q8_sums *s, int64_t r)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const float *factor = c->factor + s->group * p->w.blocks * p->w.block + s->first;
    if (a->x_scales <= 1)
        return factor;
    const int64_t row = sn_q8_matrix_of(&p->d, p->d.x_batch, s->image) * p->out_pixels + s->row + r;
    for (int64_t l = 0; l < s->n; l++) {
        const float both = a->x_scale[row % a->x_scales] * factor[l];
        s->factors[l] = sn_held_scale(p->d.y_type != SONDE_DTYPE_F32 ? both / a->y_scale : both);
    }
    return s->factors;
}

static void store_row(const sn_q8_call *c, const sn_q8_sums *s, int64_t r, int64_t o,
                      const int32_t *sums)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_args *a = c->a;
    const int64_t at = (s->image * p->out_pixels + s->row + r) * p->d.y_pitch + o;
    const float *factor = sn_q8_row_factors(c, s, r);
    if (p->d.y_type == SONDE_DTYPE_I32) {
        memcpy((int32_t *)a->y + at, sums, (size_t)s->n * sizeof *sums);
    } else if (p->d.y_type == SONDE_DTYPE_F32) {
        store_floats(c, at, o, sums, 0, factor, 1, s->n);
    } else {
        store_bytes(c, at, o, sums, 0, factor, 1, s->n);
    }
}

void sn_q8_store_sums(const sn_q8_call *c, const sn_q8_sums *s)
{
    const sn_q8_plan *p = c->p;
    const int64_t o = p->d.product ? s->first : s->group * p->w.out + s->first;
    if (c->plain_bytes || c->plain_floats) {
        const float *factor = c->factor + s->group * p->w.blocks * p->w.block + s->first;
        const int64_t row = s->image * p->out_pixels + s->row;
        (c->plain_bytes ? store_bytes : store_floats)(c, row * p->d.y_pitch + o, o, s->sums,
                                                      s->sums_row, factor, s->rows, s->n);
    }
    for (int64_t r = 0; r < s->rows && !c->plain_bytes && !c->plain_floats; r++) {
        int32_t *sums = s->sums + r * s->sums_row;
        if (c->row_numbers)
            correct_row(c, s, r, sums);
        store_row(c, s, r, o, sums);
    }
}
