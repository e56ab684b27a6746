/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose: the transposed convolution of compute/conv_transpose.h, in f32 or f64; in bf16
 * where that is asked for and its weights are constant. f32 images in blocks of channels go by
 * compute/conv_phases.h. sonde.FusedConvTranspose has what follows it (residual, activation). */
#include "compute/conv_transpose.h"
#include "compute/conv_phases.h"
#include "compute/split.h"
#include "ops/shared/activation.h"
#include "ops/shared/checks.h"
#include "ops/shared/converted.h"
#include "ops/shared/window.h"

enum { X, W, B, Z };

typedef struct transpose_params {
    sn_window window;
    int64_t groups;
    const int64_t *output_padding, *output_shape; /* NULL: absent */
    sn_act act;                                   /* FusedConvTranspose */
} transpose_params;

static sonde_status prepare_list(sn_prep *p, sn_window *w, const char *name, const int64_t **out)
{
    size_t n;
    SN_TRY(sn_prep_ints(p, name, out, &n));
    if (n == 0) {
        *out = NULL;
        return SONDE_OK;
    }
    if (w->n != 0 && n != w->n)
        return sn_prep_fail(p, "attribute '%s' has %zu entries, expected %zu", name, n, w->n);
    w->n = n;
    for (size_t i = 0; i < n; i++)
        if ((*out)[i] < 0 || (*out)[i] > INT32_MAX)
            return sn_prep_fail(p, "attribute '%s' contains %lld, which is invalid", name,
                                (long long)(*out)[i]);
    return SONDE_OK;
}

static sonde_status prepare(sn_prep *p)
{
    transpose_params *r = p->params;
    SN_TRY(sn_window_prepare(p, &r->window));
    SN_TRY(prepare_list(p, &r->window, "output_padding", &r->output_padding));
    SN_TRY(prepare_list(p, &r->window, "output_shape", &r->output_shape));
    return sn_window_groups(p, &r->groups);
}

static sonde_status prepare_fused(sn_prep *p)
{
    transpose_params *r = p->params;
    SN_TRY(prepare(p));
    return sn_prep_act(p, "activation", "activation_params", &r->act);
}

/* False: no output is left, or sizes overflow. */
static bool axis_of(const transpose_params *r, int i, int64_t in, int64_t kernel, sn_axis_window *a)
{
    const sn_window *w = &r->window;
    const bool same = w->auto_pad == SN_PAD_SAME_UPPER || w->auto_pad == SN_PAD_SAME_LOWER;
    *a = (sn_axis_window){.in = in,
                          .kernel = kernel,
                          .stride = w->strides ? w->strides[i] : 1,
                          .dilation = w->dilations ? w->dilations[i] : 1};
    if (in < 0 || in > INT32_MAX || kernel < 1 || kernel > INT32_MAX)
        return false;
    const int64_t extra = r->output_padding ? r->output_padding[i] : 0;
    const int64_t full = a->stride * (in - 1) + extra + (kernel - 1) * a->dilation + 1;
    if (r->output_shape || same) {
        a->out = r->output_shape ? r->output_shape[i] : in * a->stride;
        const int64_t total = sn_max(full - a->out, 0);
        a->pad = w->auto_pad == SN_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        a->pad_end = total - a->pad;
        return true;
    }
    if (w->auto_pad == SN_PAD_NOTSET && w->pads) {
        a->pad = w->pads[i];
        a->pad_end = w->pads[(size_t)i + w->n];
    }
    a->out = full - a->pad - a->pad_end;
    return a->out >= 0;
}

static sonde_status infer(sn_infer *c)
{
    const transpose_params *r = c->params;
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    for (uint32_t i = X; i <= Z; i++) {
        SN_TRY(sn_check_float(c, i));
        SN_TRY(sn_check_same_dtype(c, i, X));
    }
    if (x->rank < 0 && w->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    const int rank = x->rank >= 0 ? x->rank : w->rank;
    if (rank < 3 || rank > SN_MAX_RANK || (w->rank >= 0 && w->rank != rank))
        return sn_infer_fail(
            c, "input and weight have ranks %d and %d; they must be equal and at least 3",
            (int)x->rank, (int)w->rank);
    SN_TRY(sn_window_check(c, &r->window, rank - 2));
    sn_dim dims[SN_MAX_RANK];
    dims[0] = x->rank >= 0 ? x->dims[0] : SN_DIM_UNKNOWN;
    dims[1] = w->rank >= 0 ? sn_dim_mul(w->dims[1], r->groups) : SN_DIM_UNKNOWN;
    if (x->rank >= 0 && w->rank >= 0 && sn_dim_known(x->dims[1]) && sn_dim_known(w->dims[0]) &&
        (x->dims[1] != w->dims[0] || x->dims[1] % r->groups != 0))
        return sn_infer_fail(
            c, "%lld input channels do not match a weight with %lld channels and %lld groups",
            (long long)x->dims[1], (long long)w->dims[0], (long long)r->groups);
    for (int i = 0; i < rank - 2; i++) {
        const sn_dim in = x->rank >= 0 ? x->dims[i + 2] : SN_DIM_UNKNOWN;
        const sn_dim kernel = w->rank >= 0       ? w->dims[i + 2]
                              : r->window.kernel ? r->window.kernel[i]
                                                 : SN_DIM_UNKNOWN;
        sn_axis_window a;
        if (r->window.kernel && sn_dim_known(kernel) && kernel != r->window.kernel[i])
            return sn_infer_fail(c,
                                 "kernel_shape is %lld but the weight has %lld in spatial dim %d",
                                 (long long)r->window.kernel[i], (long long)kernel, i);
        dims[i + 2] = r->output_shape ? r->output_shape[i] : SN_DIM_UNKNOWN;
        if (!sn_dim_known(in) || !sn_dim_known(kernel))
            continue;
        if (!axis_of(r, i, in, kernel, &a))
            return sn_infer_fail(c, "the pads leave no elements in spatial dim %d", i);
        dims[i + 2] = a.out;
    }
    sn_dim bias[1] = {dims[1]};
    SN_TRY(sn_check_dims(c, B, bias, 1));
    SN_TRY(sn_check_dims(c, Z, dims, rank));
    return sn_infer_bounded(c, 0, x->dtype, dims, rank);
}

/* ------------------------------------------------------------------ pack, bind, run */
static sonde_status pack(sn_pack_request *r)
{
    const transpose_params *p = r->params;
    const sn_fact *w = r->n_in > W ? r->in[W] : NULL;
    if (!w || !w->data || !sn_type_is_concrete(&w->type))
        return SONDE_OK;
    if (r->in_block != 0) {
        r->pack[W] = (uint8_t)sn_conv_phases_pack_id(w->type.dtype, w->type.dims, w->type.rank,
                                                     p->groups, r->cpu_flags);
        r->pack_arg[W] = p->groups;
        return SONDE_OK;
    }
    if (!sn_pack_by_tiles(r, W, -1)) {
        if (w->type.dtype == SONDE_DTYPE_F32) {
            r->pack[W] = (uint8_t)sn_gemm_pack_id(SONDE_DTYPE_F32, r->cpu_flags);
            r->pack_arg[W] = -p->groups;
        }
        return SONDE_OK;
    }
    r->pack[W] = (uint8_t)sn_conv_transpose_pack_id(sn_pack_dtype(r, W), w->type.dims, w->type.rank,
                                                    p->groups, r->cpu_flags);
    r->pack_arg[W] = p->groups;
    return SONDE_OK;
}

static const sn_op_signature blocked = {.in = {[X] = SN_PORT_SAME, [Z] = SN_PORT_SAME},
                                        .out = SN_PORT_SAME,
                                        .native_cost = SN_COST_NEVER};

/* Few channels would leave most of a block empty. */
static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    const transpose_params *p = params;
    const sn_value *x = node->in[X].value, *w = node->in[W].value;
    if (!x || !w || x->fact.type.dtype != SONDE_DTYPE_F32 || !w->fact.data ||
        w->fact.type.dtype != SONDE_DTYPE_F32 || !sn_type_is_concrete(&w->fact.type))
        return NULL;
    const int64_t *d = w->fact.type.dims;
    const int rank = w->fact.type.rank;
    return rank >= 3 && d[0] >= block && 2 * d[1] * p->groups >= block &&
                   sn_conv_phases_fit(d, rank, p->groups, p->window.strides, p->window.dilations,
                                      (unsigned)block)
               ? &blocked
               : NULL;
}

typedef struct phases_bound {
    sn_conv_phases plan;
    sn_piece core;
    sn_packing packing; /* of weights that come as they are in the file; no format: they do not */
    sn_piece packed;
} phases_bound;

static const void *packed_weights(const phases_bound *k, const sn_tensor *w, sn_frame *f)
{
    const sn_pack_format *format = k->packing.format;
    if (!format)
        return w->data;
    sn_packing packing = k->packing;
    packing.dims = w->dims;
    void *packed = sn_piece_ptr(f, k->packed);
    for (size_t unit = 0; unit < format->units(&packing); unit++)
        format->pack(&packing, packed, w->data, unit);
    return packed;
}

static const float *data_or_null(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) ? sn_in(s, f, i)->data : NULL;
}

static sonde_status run_phases(const sn_step *s, sn_frame *f)
{
    const phases_bound *k = s->bound;
    sn_conv_phases_run(&k->plan, sn_in(s, f, X)->data, packed_weights(k, sn_in(s, f, W), f),
                       data_or_null(s, f, B), data_or_null(s, f, Z), sn_out(s, f, 0)->data,
                       sn_piece_ptr(f, k->core), f->pool);
    return SONDE_OK;
}

static sonde_status bind_phases(sn_bind *b)
{
    const transpose_params *r = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    phases_bound *k = SN_NEW(b->arena, phases_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    sn_conv_phases_desc d = {.n = x->dims[0],
                             .c = x->dims[1],
                             .oc = w->dims[1] * r->groups,
                             .groups = r->groups,
                             .act = r->act};
    for (int i = 0; i < 3; i++) {
        const int at = i - (5 - x->rank); /* axis of the model */
        sn_axis_window a = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
        if (at >= 0 && !axis_of(r, at, x->dims[at + 2], w->dims[at + 2], &a))
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "the pads leave no elements in spatial dim %d", at);
        d.in[i] = a.in;
        d.out[i] = a.out;
        d.kernel[i] = a.kernel;
        d.stride[i] = a.stride;
        d.dilation[i] = a.dilation;
        d.pad[i] = a.pad;
    }
    const size_t n = sn_conv_phases_count(&d);
    sn_conv_plan *plans = SN_NEW_N(b->arena, sn_conv_plan, n);
    if (!plans)
        return sn_fail_memory(b->err, n * sizeof *plans);
    SN_TRY(sn_conv_phases_make(&k->plan, &d, plans, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads,
                               b->err));
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    if (!b->in[W]->pack) {
        size_t bytes;
        k->packing = (sn_packing){sn_pack_get(sn_conv_phases_pack_id(w->dtype, w->dims, w->rank,
                                                                     r->groups, b->cpu_flags)),
                                  w->dims, w->rank, r->groups, b->cpu_flags};
        if (!k->packing.format || !k->packing.format->bytes(&k->packing, &bytes))
            return sn_bind_fail(b, SONDE_LIMIT, "the weights are too large");
        k->packed = sn_carve_bytes(&b->workspace, bytes);
    }
    b->bound = k;
    b->run = run_phases;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    return SONDE_OK;
}

typedef struct transpose_bound {
    sn_conv_transpose_plan plan;
    sn_piece in[4], y; /* in the type it computes in */
    sn_piece weights, panels, columns, products;
} transpose_bound;

static sonde_status describe(sn_bind *b, sn_conv_transpose_desc *d)
{
    const transpose_params *r = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    const sn_pack_format *f = sn_pack_get(b->in[W]->pack);
    *d = (sn_conv_transpose_desc){.n = x->dims[0],
                                  .groups = r->groups,
                                  .in_channels = x->dims[1] / r->groups,
                                  .out_channels = w->dims[1],
                                  .act = r->act,
                                  .tiles = f && f->arrangement == SN_WEIGHTS_FOLD_ROWS,
                                  .packed = f && f->arrangement == SN_WEIGHTS_PANELS};
    d->fold.dtype = x->dtype == SONDE_DTYPE_F64 ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32;
    d->fold.rank = x->rank - 2;
    for (int i = 0; i < x->rank - 2; i++) {
        sn_axis_window a;
        if (!axis_of(r, i, x->dims[i + 2], w->dims[i + 2], &a))
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "the pads leave no elements in spatial dim %d", i);
        d->fold.image[i] = a.out;
        d->fold.grid[i] = a.in;
        d->fold.kernel[i] = a.kernel;
        d->fold.stride[i] = a.stride;
        d->fold.dilation[i] = a.dilation;
        d->fold.pad[i] = a.pad;
    }
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    b->overwrites = 1 << Z;
    if (sn_fact_block(b->in[X]) != 0)
        return bind_phases(b);
    transpose_bound *k = SN_NEW(b->arena, transpose_bound);
    const sn_dtype dtype = b->in[X]->type.dtype;
    sn_conv_transpose_desc d;
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_common_float(dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported", sn_dtype_name(dtype));
    SN_TRY(describe(b, &d));
    sn_conv_transpose_plan *p = &k->plan;
    SN_TRY(
        sn_conv_transpose_plan_make(p, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->weights = sn_carve(&b->workspace, p->weight_floats, sizeof(float));
    k->panels = sn_carve(&b->workspace, p->panel_bytes, 1);
    for (uint32_t i = X; i <= Z && i < b->n_in; i++)
        k->in[i] = sn_converted_carve(&b->workspace, b->in[i], d.fold.dtype);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], d.fold.dtype);
    k->products = sn_carve(&b->workspace, sn_count(p->workers, p->product_bytes, 1, 1), 1);
    k->columns = sn_carve(&b->workspace, sn_count(p->workers, p->columns_bytes, 1, 1), 1);
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    b->bound = k;
    b->kernel = p->name;
    b->flops = p->flops;
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const transpose_bound *k = s->bound;
    const sn_dtype compute = k->plan.d.fold.dtype;
    const sn_conv_transpose_args a = {.x = sn_converted_in(s, f, X, compute, k->in[X]),
                                      .w = sn_converted_in(s, f, W, compute, k->in[W]),
                                      .bias = sn_converted_in(s, f, B, compute, k->in[B]),
                                      .z = sn_converted_in(s, f, Z, compute, k->in[Z]),
                                      .y = sn_converted_out(s, f, 0, compute, k->y),
                                      .weights = sn_piece_ptr(f, k->weights),
                                      .panels = sn_piece_ptr(f, k->panels),
                                      .columns = sn_piece_ptr(f, k->columns),
                                      .products = sn_piece_ptr(f, k->products),
                                      .cancel = f->cancel};
    if (!sn_conv_transpose_run(&k->plan, &a, f->pool))
        return sn_fail_cancelled(f);
    sn_converted_done(s, f, 0, compute, k->y);
    return SONDE_OK;
}

const sn_op sn_op_conv_transpose[] = {{.name = "ConvTranspose",
                                       .domain = "",
                                       .since = 1,
                                       .min_in = 2,
                                       .max_in = 3,
                                       .min_out = 1,
                                       .max_out = 1,
                                       .params_size = sizeof(transpose_params),
                                       .prepare = prepare,
                                       .infer = infer,
                                       .pack = pack,
                                       .bind = bind,
                                       .run = run,
                                       .half = SN_HALF_IN_F32,
                                       .flags = SN_OP_PLAIN_TILES,
                                       .in_blocks = in_blocks,
                                       .types = SN_COMMON_FLOATS},
                                      {.name = NULL}};

const sn_op sn_op_fused_conv_transpose[] = {{.name = "FusedConvTranspose",
                                             .domain = "sonde",
                                             .since = 1,
                                             .min_in = 2,
                                             .max_in = 4,
                                             .min_out = 1,
                                             .max_out = 1,
                                             .params_size = sizeof(transpose_params),
                                             .prepare = prepare_fused,
                                             .infer = infer,
                                             .pack = pack,
                                             .bind = bind,
                                             .run = run,
                                             .flags = SN_OP_PLAIN_TILES,
                                             .in_blocks = in_blocks,
                                             .types = "f32"},
                                            {.name = NULL}};
