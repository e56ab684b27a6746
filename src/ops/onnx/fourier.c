/* SPDX-License-Identifier: Apache-2.0 */
/* DFT and STFT. Tables are made when a shape is bound; compute/fourier.h runs the lines. */
#include <string.h>

#include "compute/fourier.h"
#include "ops/shared/checks.h"
#include "ops/shared/data_movement.h"

typedef struct fourier_params {
    bool inverse, onesided;
    bool axis_input; /* DFT 20 takes its axis as an input */
    int64_t axis;
} fourier_params;

static sonde_status prepare_flags(sn_prep *p, int64_t onesided_default)
{
    fourier_params *r = p->params;
    int64_t inverse, onesided;
    SN_TRY(sn_prep_int(p, "inverse", 0, &inverse));
    SN_TRY(sn_prep_int(p, "onesided", onesided_default, &onesided));
    r->inverse = inverse != 0;
    r->onesided = onesided != 0;
    return SONDE_OK;
}

static sonde_status prepare_dft_17(sn_prep *p)
{
    fourier_params *r = p->params;
    SN_TRY(prepare_flags(p, 0));
    return sn_prep_int(p, "axis", 1, &r->axis);
}

static sonde_status prepare_dft_20(sn_prep *p)
{
    fourier_params *r = p->params;
    r->axis_input = true;
    r->axis = -2;
    return prepare_flags(p, 0);
}

static sonde_status prepare_stft(sn_prep *p)
{
    return prepare_flags(p, 1);
}

/* ------------------------------------------------------------------ shared */
static sonde_status check_complex(sn_infer *c, sn_dim last)
{
    if (sn_dim_known(last) && last != 1 && last != 2)
        return sn_infer_fail(c, "the last dimension is %lld, expected 1 (real) or 2 (complex)",
                             (long long)last);
    return SONDE_OK;
}

/* Complex lines are computed in their own type. Real ones are computed in double, which keeps what
 * is true of their spectra: imaginary parts that are 0, and small numbers beside large ones, which
 * logarithms are taken of. */
static bool in_single(sn_dtype dtype, int64_t in_parts)
{
    return dtype != SONDE_DTYPE_F64 && in_parts == 2;
}

/* Tables of the transform and scratch of the tasks, both for `lines` lines of `length`. */
static sonde_status bind_fft(sn_bind *b, bool single, sn_fourier_work *w, int64_t length,
                             int64_t lines, sn_piece *tasks)
{
    if (!sn_fft_plan(&w->fft, length, single))
        return sn_bind_fail(b, SONDE_LIMIT, "a transform of length %lld is invalid",
                            (long long)length);
    const size_t scratch_bytes = w->fft.workspace.bytes;
    double *table = SN_NEW_N(b->arena, double, w->fft.table_elems);
    void *scratch = sn_arena_alloc(b->arena, scratch_bytes, SN_ALIGN);
    if (!table || !scratch)
        return sn_fail_memory(b->err, w->fft.table_elems * sizeof *table + scratch_bytes);
    sn_fft_make(&w->fft, table, scratch);
    sn_fourier_share(w, lines, b->threads);
    *tasks = sn_carve_inner(&b->workspace, &w->workspace);
    b->kernel = w->fft.padded   ? "f64_fft_bluestein"
                : w->fft.single ? "f32_fft_stockham"
                                : "f64_fft_stockham";
    b->arithmetic = w->fft.single && !w->fft.padded ? SN_ARITH_F32 : SN_ARITH_F64;
    uint64_t bits = 1;
    while (((uint64_t)1 << bits) < (uint64_t)length)
        bits++;
    b->flops = 5 * (uint64_t)lines * (uint64_t)length * bits;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ DFT */
static sonde_status infer_dft(sn_infer *c)
{
    const fourier_params *r = c->params;
    const sn_type *x = &c->in[0]->type;
    const bool has_length = sn_infer_has(c, 1), has_axis = sn_infer_has(c, 2);
    sn_dim length, axis;
    int a;
    SN_TRY(sn_check_float(c, 0));
    SN_TRY(sn_check_integer(c, 1, &length));
    SN_TRY(sn_check_integer(c, 2, &axis));
    if (!has_axis)
        axis = r->axis;
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (x->rank < 2 || x->rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is needed", (int)x->rank);
    const int last = x->rank - 1;
    const bool to_real = r->inverse && r->onesided;
    sn_dim dims[SN_MAX_RANK];
    SN_TRY(check_complex(c, x->dims[last]));
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[last] = to_real ? 1 : 2;
    if (!sn_dim_known(axis)) {
        for (int i = 0; i < last; i++)
            dims[i] = SN_DIM_UNKNOWN;
        return sn_infer_tensor(c, 0, x->dtype, dims, x->rank);
    }
    SN_TRY(sn_infer_axis(c, axis, x->rank, false, &a));
    if (a == last)
        return sn_infer_fail(c, "the last axis holds complex numbers and cannot be transformed");
    if (!has_length) {
        length = dims[a];
        if (to_real)
            length = sn_dim_known(length) ? 2 * (length - 1) : SN_DIM_UNKNOWN;
    }
    if (sn_dim_known(length) && length < 1)
        return sn_infer_fail(c, "a transform of length %lld is invalid", (long long)length);
    dims[a] = length;
    if (r->onesided && !r->inverse)
        dims[a] = sn_dim_known(length) ? length / 2 + 1 : SN_DIM_UNKNOWN;
    return sn_infer_bounded(c, 0, x->dtype, dims, x->rank);
}

/* Both scalars are known whenever this step can be bound: the output's shape followed from them. */
static bool known_scalar(const sn_fact *f, int64_t *v)
{
    if (f->ints && f->n_ints == 1 && sn_dim_known(f->ints[0])) {
        *v = f->ints[0];
        return true;
    }
    if (!f->data || sn_tensor_count(f->data) != 1)
        return false;
    *v = sn_tensor_int(f->data, 0);
    return true;
}

typedef struct dft_bound {
    sn_dft plan;
    sn_piece tasks;
} dft_bound;

static sonde_status bind_dft(sn_bind *b)
{
    const fourier_params *r = b->params;
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    int64_t axis = r->axis, length = 0;
    const bool to_real = r->inverse && r->onesided, has_length = b->n_in > 1 && b->in[1];
    int a;
    dft_bound *bound = SN_NEW(b->arena, dft_bound);
    if (!bound)
        return sn_fail_memory(b->err, sizeof *bound);
    sn_dft *k = &bound->plan;
    if (!sn_is_common_float(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(x->dtype));
    if ((b->n_in > 2 && b->in[2] && !known_scalar(b->in[2], &axis)) ||
        (has_length && !known_scalar(b->in[1], &length)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the axis or the length is not known");
    if (!sn_axis_index(axis, x->rank, &a) || a == x->rank - 1)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "axis %lld is outside the signal",
                            (long long)axis);
    k->in = x->dims[a];
    k->out = y->dims[a];
    if (!has_length)
        length = to_real ? 2 * (k->in - 1) : k->in;
    k->dtype = x->dtype;
    k->inverse = r->inverse;
    k->onesided = r->onesided;
    k->in_parts = x->dims[x->rank - 1];
    k->out_parts = y->dims[x->rank - 1];
    int64_t outer, lines;
    if (!sn_dims_count(x->dims, a, &outer) ||
        !sn_dims_count(x->dims + a + 1, x->rank - 2 - a, &k->inner) ||
        !sn_i64_mul(outer, k->inner, &lines))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    b->bound = bound;
    return bind_fft(b, in_single(k->dtype, k->in_parts), &k->work, length, lines, &bound->tasks);
}

static sonde_status run_dft(const sn_step *s, sn_frame *f)
{
    const dft_bound *k = s->bound;
    sn_dft_run(&k->plan, sn_out(s, f, 0)->data, sn_in(s, f, 0)->data, sn_piece_ptr(f, k->tasks),
               f->pool);
    return SONDE_OK;
}

#define DFT(SINCE, UNTIL, MAX_IN, PREPARE)                                                         \
    {                                                                                              \
        .name = "DFT", .domain = "", .since = SINCE, .until = UNTIL, .min_in = 1,                  \
        .max_in = MAX_IN, .min_out = 1, .max_out = 1, .params_size = sizeof(fourier_params),       \
        .prepare = PREPARE, .infer = infer_dft, .bind = bind_dft, .run = run_dft,                  \
        .types = SN_COMMON_FLOATS                                                                  \
    }
const sn_op sn_op_dft[] = {
    DFT(17, 19, 2, prepare_dft_17), DFT(20, 0, 3, prepare_dft_20), {.name = NULL}};

/* ------------------------------------------------------------------ STFT */
enum { SIGNAL, STEP, WINDOW, LENGTH };

/* A real signal may come as [batch][length], which the standard does not say but ONNX Runtime takes
 * and exporters write. */
static sonde_status infer_stft(sn_infer *c)
{
    const fourier_params *r = c->params;
    const bool has_length = sn_infer_has(c, LENGTH);
    sn_dim step, length, frames = SN_DIM_UNKNOWN;
    SN_TRY(sn_check_float(c, SIGNAL));
    SN_TRY(sn_check_same_dtype(c, WINDOW, SIGNAL));
    SN_TRY(sn_check_integer(c, STEP, &step));
    SN_TRY(sn_check_integer(c, LENGTH, &length));
    sn_dim dims[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN}, window[1] = {SN_DIM_UNKNOWN};
    const bool flat = c->in[SIGNAL]->type.rank == 2;
    if (flat)
        dims[2] = 1;
    SN_TRY(sn_check_dims(c, SIGNAL, dims, flat ? 2 : 3));
    SN_TRY(sn_check_dims(c, WINDOW, window, 1));
    SN_TRY(check_complex(c, dims[2]));
    if (!has_length)
        length = sn_infer_has(c, WINDOW) ? window[0] : dims[1];
    if (sn_dim_known(length) && sn_dim_known(window[0]) && window[0] > length)
        return sn_infer_fail(c, "a window of %lld does not fit frames of %lld",
                             (long long)window[0], (long long)length);
    if ((sn_dim_known(step) && step < 1) || (sn_dim_known(length) && length < 1))
        return sn_infer_fail(c, "frame_step and frame_length must be positive");
    if (sn_dim_known(step) && sn_dim_known(length) && sn_dim_known(dims[1])) {
        if (dims[1] < length)
            return sn_infer_fail(c, "a frame of %lld is longer than the signal of %lld",
                                 (long long)length, (long long)dims[1]);
        frames = 1 + (dims[1] - length) / step;
    }
    const sn_dim half = sn_dim_known(length) ? length / 2 + 1 : SN_DIM_UNKNOWN;
    const sn_dim out[4] = {dims[0], frames, r->onesided ? half : length, 2};
    return sn_infer_bounded(c, 0, c->in[SIGNAL]->type.dtype, out, 4);
}

typedef struct stft_bound {
    sn_stft plan;
    sn_piece tasks;
} stft_bound;

static sonde_status bind_stft(sn_bind *b)
{
    const sn_type *x = &b->in[SIGNAL]->type;
    stft_bound *bound = SN_NEW(b->arena, stft_bound);
    if (!bound)
        return sn_fail_memory(b->err, sizeof *bound);
    sn_stft *k = &bound->plan;
    const bool has_window = b->n_in > WINDOW && b->in[WINDOW],
               has_length = b->n_in > LENGTH && b->in[LENGTH];
    k->signal = x->dims[1];
    k->in_parts = x->rank == 2 ? 1 : x->dims[2];
    k->frames = b->out[0].type.dims[1];
    k->out = b->out[0].type.dims[2];
    k->window = has_window ? b->in[WINDOW]->type.dims[0] : -1;
    k->dtype = x->dtype;
    int64_t length = has_window ? k->window : k->signal, lines;
    if (!sn_is_common_float(x->dtype) || !known_scalar(b->in[STEP], &k->step) ||
        (has_length && !known_scalar(b->in[LENGTH], &length)) || k->step < 1 || k->window > length)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "frame_step or frame_length is not known");
    if (!sn_i64_mul(x->dims[0], k->frames, &lines))
        return sn_bind_fail(b, SONDE_LIMIT, "the signal is too long");
    b->bound = bound;
    return bind_fft(b, in_single(k->dtype, k->in_parts), &k->work, length, lines, &bound->tasks);
}

static sonde_status run_stft(const sn_step *s, sn_frame *f)
{
    const stft_bound *k = s->bound;
    sn_stft_run(&k->plan, sn_out(s, f, 0)->data, sn_in(s, f, SIGNAL)->data,
                sn_has(s, WINDOW) ? sn_in(s, f, WINDOW)->data : NULL, sn_piece_ptr(f, k->tasks),
                f->pool);
    return SONDE_OK;
}

const sn_op sn_op_stft[] = {{.name = "STFT",
                             .domain = "",
                             .since = 17,
                             .min_in = 2,
                             .max_in = 4,
                             .min_out = 1,
                             .max_out = 1,
                             .params_size = sizeof(fourier_params),
                             .prepare = prepare_stft,
                             .infer = infer_stft,
                             .bind = bind_stft,
                             .run = run_stft,
                             .types = SN_COMMON_FLOATS},
                            {.name = NULL}};
