/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv: the deformable convolution of compute/deform_conv.h, in f32. */
#include <string.h>

#include "compute/deform_conv.h"
#include "ops/shared/checks.h"
#include "ops/shared/converted.h"
#include "ops/shared/window.h"

enum { X, W, OFFSET, B, MASK, N_IN };

typedef struct deform_params {
    sn_window window;
    int64_t groups, offset_groups;
} deform_params;

static sonde_status prepare(sn_prep *p)
{
    deform_params *r = p->params;
    r->window.may_miss = true;
    SN_TRY(sn_window_prepare(p, &r->window));
    SN_TRY(sn_prep_int(p, "group", 1, &r->groups));
    SN_TRY(sn_prep_int(p, "offset_group", 1, &r->offset_groups));
    if (r->groups < 1 || r->groups > INT32_MAX || r->offset_groups < 1 ||
        r->offset_groups > INT32_MAX)
        return sn_prep_fail(p, "attributes 'group' and 'offset_group' must be positive");
    return SONDE_OK;
}

static sonde_status infer(sn_infer *c)
{
    const deform_params *r = c->params;
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    for (uint32_t i = 0; i < N_IN; i++) {
        SN_TRY(sn_check_float(c, i));
        SN_TRY(sn_check_same_dtype(c, i, X));
    }
    if (x->rank < 0 || w->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    const int rank = x->rank, spatial = rank - 2;
    if (rank < 3 || w->rank != rank)
        return sn_infer_fail(
            c, "input and weight have ranks %d and %d; they must be equal and at least 3", rank,
            (int)w->rank);
    if (spatial > SN_DEFORM_MAX_SPATIAL)
        return sn_infer_fail(c, "%d spatial dims are not supported", spatial);
    SN_TRY(sn_window_check(c, &r->window, spatial));
    if (sn_dim_known(x->dims[1]) &&
        (x->dims[1] % r->groups != 0 || x->dims[1] % r->offset_groups != 0))
        return sn_infer_fail(c, "%lld channels are not divisible by the number of groups",
                             (long long)x->dims[1]);
    if (sn_dim_known(w->dims[0]) && w->dims[0] % r->groups != 0)
        return sn_infer_fail(c, "%lld output channels are not divisible by the number of groups",
                             (long long)w->dims[0]);
    sn_dim want[SN_MAX_RANK], dims[SN_MAX_RANK], taps = 1;
    want[0] = w->dims[0];
    want[1] = sn_dim_known(x->dims[1]) ? x->dims[1] / r->groups : SN_DIM_UNKNOWN;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 0; i < spatial; i++) {
        want[i + 2] = r->window.kernel ? r->window.kernel[i] : SN_DIM_UNKNOWN;
        taps = sn_dim_mul(taps, w->dims[i + 2]);
        SN_TRY(sn_window_dim(c, &r->window, i, x->dims[i + 2], w->dims[i + 2], &dims[i + 2]));
    }
    SN_TRY(sn_check_dims(c, W, want, rank));
    sn_dim bias[1] = {dims[1]};
    SN_TRY(sn_check_dims(c, B, bias, 1));
    memcpy(want, dims, sizeof want);
    want[1] = sn_dim_mul(taps, r->offset_groups);
    SN_TRY(sn_check_dims(c, MASK, want, rank));
    want[1] = sn_dim_mul(want[1], spatial);
    SN_TRY(sn_check_dims(c, OFFSET, want, rank));
    return sn_infer_bounded(c, 0, x->dtype, dims, rank);
}

typedef struct deform_bound {
    sn_deform_conv_plan plan;
    sn_piece in[N_IN], y, panels;
} deform_bound;

static sonde_status describe(sn_bind *b, sn_deform_conv_desc *d)
{
    const deform_params *r = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    *d = (sn_deform_conv_desc){.spatial = x->rank - 2,
                               .n = x->dims[0],
                               .groups = r->groups,
                               .offset_groups = r->offset_groups,
                               .in_channels = x->dims[1] / r->groups,
                               .out_channels = w->dims[0] / r->groups,
                               .bias = b->n_in > B && b->in[B]};
    for (int i = 0; i < d->spatial; i++) {
        sn_axis_window a;
        if (!sn_window_axis(&r->window, i, x->dims[i + 2], w->dims[i + 2], &a))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit spatial dim %d",
                                i);
        d->in[i] = a.in;
        d->out[i] = a.out;
        d->kernel[i] = a.kernel;
        d->stride[i] = a.stride;
        d->dilation[i] = a.dilation;
        d->pad[i] = a.pad;
    }
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    deform_bound *k = SN_NEW(b->arena, deform_bound);
    sn_deform_conv_desc d;
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_common_float(b->in[X]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(b->in[X]->type.dtype));
    SN_TRY(describe(b, &d));
    SN_TRY(sn_deform_conv_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads,
                                    b->err));
    k->panels = sn_carve(&b->workspace, k->plan.panel_floats, sizeof(float));
    for (uint32_t i = 0; i < b->n_in && i < N_IN; i++)
        k->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    b->bound = k;
    b->kernel = "f32_deform_conv_gemm";
    b->flops = k->plan.flops;
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const deform_bound *k = s->bound;
    const float *in[N_IN];
    for (uint32_t i = 0; i < N_IN; i++)
        in[i] = sn_converted_in(s, f, i, SONDE_DTYPE_F32, k->in[i]);
    const sn_deform_conv_args a = {.x = in[X],
                                   .w = in[W],
                                   .offset = in[OFFSET],
                                   .bias = in[B],
                                   .mask = in[MASK],
                                   .y = sn_converted_out(s, f, 0, SONDE_DTYPE_F32, k->y),
                                   .panels = sn_piece_ptr(f, k->panels),
                                   .cancel = f->cancel};
    if (!sn_deform_conv_run(&k->plan, &a, f->pool))
        return sn_fail_cancelled(f);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, k->y);
    return SONDE_OK;
}

const sn_op sn_op_deform_conv[] = {{.name = "DeformConv",
                                    .domain = "",
                                    .since = 19,
                                    .min_in = 3,
                                    .max_in = 5,
                                    .min_out = 1,
                                    .max_out = 1,
                                    .params_size = sizeof(deform_params),
                                    .prepare = prepare,
                                    .infer = infer,
                                    .bind = bind,
                                    .run = run,
                                    .types = SN_COMMON_FLOATS},
                                   {.name = NULL}};
