/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, and sonde.FusedConv: a convolution with what follows it (residual, activation). f32 goes to
 * the driver in compute/conv.h, 16-bit floats through f32 in the workspace, f64 through plain
 * loops. */
#include <string.h>

#include "compute/conv_images.h"
#include "ops/shared/activation.h"
#include "ops/shared/conv_weights.h"
#include "ops/shared/converted.h"
#include "ops/shared/sparse_weights.h"
#include "ops/shared/tuned_plan.h"
#include "ops/shared/window.h"

typedef struct conv_params {
    sn_window window;
    int64_t groups;
    sn_act act;       /* FusedConv */
    int64_t winograd; /* FusedConv: not 0 when it may go Winograd's way */
} conv_params;

enum { X, W, B, Z };

static sonde_status prepare(sn_prep *p)
{
    conv_params *c = p->params;
    SN_TRY(sn_window_prepare(p, &c->window));
    return sn_window_groups(p, &c->groups);
}

static sonde_status prepare_fused(sn_prep *p)
{
    conv_params *c = p->params;
    SN_TRY(prepare(p));
    SN_TRY(sn_prep_act(p, "activation", "activation_params", &c->act));
    return sn_prep_int(p, "winograd", 0, &c->winograd);
}

/* ------------------------------------------------------------------ infer */
static sonde_status check_weights(sn_infer *c, const sn_type *x, const sn_type *w)
{
    const conv_params *p = c->params;
    if (w->rank < 3)
        return sn_infer_fail(c, "the weight has rank %d, expected at least 3", (int)w->rank);
    if (x->rank >= 0 && x->rank != w->rank)
        return sn_infer_fail(c, "the input has rank %d, the weight %d", (int)x->rank, (int)w->rank);
    if (sn_dim_known(w->dims[0]) && w->dims[0] % p->groups != 0)
        return sn_infer_fail(c, "%lld output channels are not divisible by %lld groups",
                             (long long)w->dims[0], (long long)p->groups);
    if (x->rank > 0 && sn_dim_known(x->dims[1]) && sn_dim_known(w->dims[1])) {
        int64_t expected;
        if (!sn_i64_mul(w->dims[1], p->groups, &expected) || expected != x->dims[1])
            return sn_infer_fail(c,
                                 "the input has %lld channels, but the weight expects %lld × %lld "
                                 "(channels × groups)",
                                 (long long)x->dims[1], (long long)w->dims[1],
                                 (long long)p->groups);
    }
    for (int i = 0; p->window.kernel && i < w->rank - 2; i++)
        if (sn_dim_known(w->dims[i + 2]) && w->dims[i + 2] != p->window.kernel[i])
            return sn_infer_fail(c,
                                 "kernel_shape is %lld but the weight has %lld in spatial dim %d",
                                 (long long)p->window.kernel[i], (long long)w->dims[i + 2], i);
    return SONDE_OK;
}

static sonde_status infer(sn_infer *c)
{
    const conv_params *p = c->params;
    if (!sn_infer_has(c, X) || !sn_infer_has(c, W))
        return sn_infer_fail(c, "input and weight are required");
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    const sn_dtype dtype = x->dtype ? x->dtype : w->dtype;
    const int rank = x->rank >= 0 ? x->rank : w->rank;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->type.dtype && dtype && c->in[i]->type.dtype != dtype &&
            !(i == W && sn_weights_fit(c->node, w->dtype, dtype)))
            return sn_infer_fail(c, "input %u is %s, expected %s", i,
                                 sn_dtype_name(c->in[i]->type.dtype), sn_dtype_name(dtype));
    if (rank < 0)
        return sn_infer_tensor(c, 0, dtype, NULL, -1);
    if (rank < 3)
        return sn_infer_fail(c, "the input has rank %d, expected at least 3", rank);
    SN_TRY(sn_window_check(c, &p->window, rank - 2));
    sn_dim dims[SN_MAX_RANK];
    if (w->rank >= 0)
        SN_TRY(check_weights(c, x, w));
    dims[0] = x->rank > 0 ? x->dims[0] : SN_DIM_UNKNOWN;
    dims[1] = w->rank > 0 ? w->dims[0] : SN_DIM_UNKNOWN;
    for (int i = 0; i < rank - 2; i++) {
        const sn_dim kernel = w->rank > 0        ? w->dims[i + 2]
                              : p->window.kernel ? p->window.kernel[i]
                                                 : SN_DIM_UNKNOWN;
        SN_TRY(sn_window_dim(c, &p->window, i, x->rank > 0 ? x->dims[i + 2] : SN_DIM_UNKNOWN,
                             kernel, &dims[i + 2]));
    }
    if (sn_infer_has(c, B)) {
        const sn_type *b = &c->in[B]->type;
        if (b->rank >= 0 && (b->rank != 1 || (sn_dim_known(b->dims[0]) && sn_dim_known(dims[1]) &&
                                              b->dims[0] != dims[1])))
            return sn_infer_fail(c, "the bias must have one element per output channel");
    }
    if (sn_infer_has(c, Z)) {
        const sn_type *z = &c->in[Z]->type;
        bool same = z->rank < 0 || z->rank == rank;
        for (int i = 0; same && i < z->rank; i++)
            same = !sn_dim_known(z->dims[i]) || !sn_dim_known(dims[i]) || z->dims[i] == dims[i];
        if (!same)
            return sn_infer_fail(c, "the residual must have the output's shape");
    }
    return sn_infer_tensor(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ pack, layout */
/* What sparse weights meet. */
static sn_conv_sparse_case sparse_case(const sn_pack_request *r)
{
    const conv_params *p = r->params;
    const sn_type *y = &r->node->out[0]->fact.type;
    const int rank = r->in[W]->type.rank, first = 5 - rank; /* of the axes that a model has */
    sn_conv_sparse_case c = {.plain = r->in_block == 0 && r->out_block == 0,
                             .winograd = p->winograd != 0};
    for (int i = 0; i < 3; i++) {
        const bool known = i < first || (y->rank == rank && sn_dim_known(y->dims[i + rank - 3]));
        c.out[i] = !known ? -1 : i < first ? 1 : y->dims[i + rank - 3];
        c.stride[i] = i < first ? 1 : sn_window_stride(&p->window, i - first);
        c.dilation[i] = i < first ? 1 : sn_window_dilation(&p->window, i - first);
    }
    return c;
}

static sonde_status pack(sn_pack_request *r)
{
    const conv_params *p = r->params;
    const sn_fact *w = r->n_in > W ? r->in[W] : NULL;
    const int last = w ? w->type.rank - 3 : -1; /* of the spatial axes */
    if (p->groups == 1 && w && w->data && w->type.rank >= 3 && w->type.rank <= 5 &&
        sn_weights_pack_sparse_filters(r, W, sparse_case(r)))
        return SONDE_OK;
    sn_conv_weights_pack(r, W, p->groups, sn_window_dilation(&p->window, last));
    return SONDE_OK;
}

static const sn_op_signature blocked = {.in = {[X] = SN_PORT_SAME, [Z] = SN_PORT_SAME},
                                        .out = SN_PORT_SAME,
                                        .native_cost = SN_COST_NEVER};
/* A first layer: few channels are read where they lie. */
static const sn_op_signature first_layer = {
    .in = {[Z] = SN_PORT_SAME}, .out = SN_PORT_SAME, .native_cost = SN_COST_NEVER};

static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    const conv_params *p = params;
    const sn_value *x = node->in[X].value, *w = node->in[W].value;
    if (!x || !w || x->fact.type.dtype != SONDE_DTYPE_F32 || !w->fact.data ||
        !sn_type_is_concrete(&w->fact.type))
        return NULL;
    const int64_t *d = w->fact.type.dims;
    const int rank = w->fact.type.rank;
    const int64_t channels = rank > 1 ? d[1] * p->groups : 0;
    if (channels >= block || p->groups > 1)
        return sn_conv_can_block(d, rank, p->groups, (unsigned)block, false) ? &blocked : NULL;
    return sn_conv_can_block(d, rank, p->groups, (unsigned)block, true) ? &first_layer : NULL;
}

static uint32_t in_half(const sn_node *n, const void *params, sn_dtype half, uint32_t cpu_flags)
{
    const conv_params *p = params;
    return sn_conv_in_half(n, X, W, Z, p->groups, half, cpu_flags);
}

/* ------------------------------------------------------------------ bind, run */
typedef struct conv_bound {
    sn_conv_plan plan;
    sn_piece in[4], y; /* f32 copies of 16-bit floats */
    sn_piece core;
} conv_bound;

static const void *data_or_null(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) ? sn_in(s, f, i)->data : NULL;
}

static sonde_status run_f32(const sn_step *s, sn_frame *f)
{
    const conv_bound *b = s->bound;
    sn_conv_run(&b->plan, sn_in(s, f, X)->data, sn_in(s, f, W)->data, data_or_null(s, f, B),
                data_or_null(s, f, Z), sn_out(s, f, 0)->data, sn_piece_ptr(f, b->core), f->pool);
    return SONDE_OK;
}

/* f16 and bf16: through copies in f32. */
static sonde_status run_half(const sn_step *s, sn_frame *f)
{
    const conv_bound *b = s->bound;
    const float *in[4];
    for (uint32_t i = 0; i < 4; i++)
        in[i] = sn_converted_in(s, f, i, SONDE_DTYPE_F32, b->in[i]);
    sn_conv_run(&b->plan, in[X], in[W], in[B], in[Z],
                sn_converted_out(s, f, 0, SONDE_DTYPE_F32, b->y), sn_piece_ptr(f, b->core),
                f->pool);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, b->y);
    return SONDE_OK;
}

static sonde_status run_f64(const sn_step *s, sn_frame *f)
{
    const conv_bound *b = s->bound;
    sn_conv_f64_run(&b->plan.d, sn_in(s, f, X)->data, sn_in(s, f, W)->data, data_or_null(s, f, B),
                    data_or_null(s, f, Z), sn_out(s, f, 0)->data, f->pool);
    return SONDE_OK;
}

static sonde_status describe(sn_bind *b, sn_conv_desc *d)
{
    const conv_params *p = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    if (x->rank > 5)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "convolution of %d spatial dims is not supported",
                            (int)x->rank - 2);
    int64_t blocks = 0;
    const unsigned sparse = sn_weights_sparse(b->in[W], &blocks);
    *d = (sn_conv_desc){.n = x->dims[0],
                        .c = x->dims[1],
                        .oc = w->dims[0],
                        .groups = p->groups,
                        .in_block = sn_fact_block(b->in[X]),
                        .out_block = sn_fact_block(&b->out[0]),
                        .residual = b->n_in > Z && b->in[Z],
                        .packed = b->in[W]->pack != 0,
                        .w_dtype = sn_packed_dtype(b->in[W]),
                        .tiles = sn_conv_weights_in_tiles(b->in[W]),
                        .sparse = sparse,
                        .entries = blocks,
                        .winograd = p->winograd != 0 ? SN_CONV_FREE : 0,
                        .act = p->act};
    if (!sn_window_conv(&p->window, x->dims + 2, x->rank - 2, w->dims + 2, d))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const sn_dtype dtype = b->in[X]->type.dtype;
    conv_bound *c = SN_NEW(b->arena, conv_bound);
    sn_conv_desc d;
    if (!c)
        return sn_fail_memory(b->err, sizeof *c);
    SN_TRY(describe(b, &d));
    b->overwrites = 1 << Z;
    const bool stored = sn_conv_stored(b, X, W, Z, &d);
    if (!stored)
        d.x_half = d.z_half = d.y_half = 0; /* through copies in f32 */
    d.images = sn_conv_images_pay(&d) && sn_bind_may_halve(b);
    if (dtype == SONDE_DTYPE_F64) {
        float lo, hi;
        if (!sn_act_limits(&d.act, &lo, &hi))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "this activation is fused for f32 only");
        c->plan.d = d;
        b->run = run_f64;
        b->kernel = "f64_conv_ref";
        b->bound = c;
        return SONDE_OK;
    }
    if (dtype != SONDE_DTYPE_F32 && !sn_is_half(dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "convolution of %s is not supported",
                            sn_dtype_name(dtype));
    SN_TRY(sn_conv_plan_tuned(b, &d, &c->plan));
    b->kernel = c->plan.name;
    b->flops = c->plan.flops;
    b->arithmetic = c->plan.arithmetic;
    b->run = sn_is_half(dtype) || !stored ? run_half : run_f32;
    for (uint32_t i = 0; i < b->n_in && i < 4; i++) {
        if (!stored || b->in[i] == NULL || b->in[i]->form.dtype == 0)
            c->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
        if (i == W && !b->in[W]->pack && sn_is_half(b->in[W]->type.dtype))
            b->run = run_half;
    }
    if (!stored || b->out[0].form.dtype == 0)
        c->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    c->core = sn_carve_inner(&b->workspace, &c->plan.workspace);
    b->bound = c;
    return SONDE_OK;
}

#define CONV(from, to)                                                                             \
    {                                                                                              \
        .name = "Conv", .domain = "", .since = from, .until = to, .min_in = 2, .max_in = 3,        \
        .min_out = 1, .max_out = 1, .params_size = sizeof(conv_params), .prepare = prepare,        \
        .infer = infer, .pack = pack, .bind = bind, .run = run_f32, .half = SN_HALF_IN_F32,        \
        .narrow_in = 1 << W, .in_blocks = in_blocks, .in_half = in_half,                           \
        .types = "f32 f64 f16 bf16"                                                                \
    }

const sn_op sn_op_conv[] = {CONV(1, 10), CONV(11, 21), CONV(22, 0), {.name = NULL}};

const sn_op sn_op_fused_conv[] = {{.name = "FusedConv",
                                   .domain = "sonde",
                                   .since = 1,
                                   .min_in = 2,
                                   .max_in = 4,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .params_size = sizeof(conv_params),
                                   .prepare = prepare_fused,
                                   .infer = infer,
                                   .pack = pack,
                                   .bind = bind,
                                   .run = run_f32,
                                   .in_blocks = in_blocks,
                                   .in_half = in_half,
                                   .types = "f32 f64 f16 bf16"},
                                  {.name = NULL}};
