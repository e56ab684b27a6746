/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger and QLinearConv: convolutions of bytes (compute/integer_conv.h), whose zero points
 * and scales are inputs. */
#include "compute/integer_conv.h"
#include "ops/shared/checks.h"
#include "ops/shared/window.h"

/* Where each operator has its inputs; 0 behind x: absent. */
typedef struct conv_ports {
    uint32_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} conv_ports;

typedef struct conv_params {
    sn_window window;
    int64_t groups;
    conv_ports at;
    bool quantized;
} conv_params;

static sonde_status prepare(sn_prep *p)
{
    conv_params *r = p->params;
    SN_TRY(sn_window_prepare(p, &r->window));
    return sn_window_groups(p, &r->groups);
}

static sonde_status prepare_integer(sn_prep *p)
{
    conv_params *r = p->params;
    r->at = (conv_ports){.w = 1, .x_zero = 2, .w_zero = 3};
    return prepare(p);
}

static sonde_status prepare_quantized(sn_prep *p)
{
    conv_params *r = p->params;
    r->quantized = true;
    r->at = (conv_ports){.x_scale = 1,
                         .x_zero = 2,
                         .w = 3,
                         .w_scale = 4,
                         .w_zero = 5,
                         .y_scale = 6,
                         .y_zero = 7,
                         .bias = 8};
    return prepare(p);
}

/* ------------------------------------------------------------------ infer */
/* A parameter of one element, or of `channels` when that is not 1. */
static sonde_status check_param(sn_infer *c, uint32_t i, sn_dim channels)
{
    int64_t n;
    if (i == 0 || !sn_infer_has(c, i) || !sn_type_count(&c->in[i]->type, &n) || n == 1 ||
        !sn_dim_known(channels) || n == channels)
        return SONDE_OK;
    return sn_infer_fail(c, "input %u has %lld elements, expected 1%s", i, (long long)n,
                         channels == 1 ? "" : " or one per output channel");
}

static sonde_status infer(sn_infer *c)
{
    static const sn_dtype bytes[] = {SONDE_DTYPE_U8, SONDE_DTYPE_I8}, f32[] = {SONDE_DTYPE_F32},
                          i32[] = {SONDE_DTYPE_I32};
    const conv_params *r = c->params;
    const conv_ports *at = &r->at;
    const sn_type *x = &c->in[at->x]->type, *w = &c->in[at->w]->type;
    sn_dtype dtype = SONDE_DTYPE_I32;
    SN_TRY(sn_check_dtype(c, at->x, bytes, 2));
    SN_TRY(sn_check_dtype(c, at->w, bytes, 2));
    if (sn_infer_has(c, at->x_zero))
        SN_TRY(sn_check_same_dtype(c, at->x_zero, at->x));
    if (sn_infer_has(c, at->w_zero))
        SN_TRY(sn_check_same_dtype(c, at->w_zero, at->w));
    if (r->quantized) {
        dtype = c->in[at->y_zero]->type.dtype;
        SN_TRY(sn_check_dtype(c, at->y_zero, bytes, 2));
        SN_TRY(sn_check_dtype(c, at->x_scale, f32, 1));
        SN_TRY(sn_check_dtype(c, at->w_scale, f32, 1));
        SN_TRY(sn_check_dtype(c, at->y_scale, f32, 1));
        SN_TRY(sn_check_dtype(c, at->bias, i32, 1));
    }
    if (x->rank < 0 || w->rank < 0)
        return sn_infer_tensor(c, 0, dtype, NULL, -1);
    const int rank = x->rank;
    if (rank < 3 || rank > 5 || w->rank != rank)
        return sn_infer_fail(c,
                             "input and weight have ranks %d and %d; they must be equal and 3 to 5",
                             rank, (int)w->rank);
    SN_TRY(sn_window_check(c, &r->window, rank - 2));
    sn_dim want[5], dims[5];
    if ((sn_dim_known(x->dims[1]) && x->dims[1] % r->groups != 0) ||
        (sn_dim_known(w->dims[0]) && w->dims[0] % r->groups != 0))
        return sn_infer_fail(c, "the channels are not divisible by %lld groups",
                             (long long)r->groups);
    want[0] = w->dims[0];
    want[1] = sn_dim_known(x->dims[1]) ? x->dims[1] / r->groups : SN_DIM_UNKNOWN;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 0; i < rank - 2; i++) {
        want[i + 2] = r->window.kernel ? r->window.kernel[i] : SN_DIM_UNKNOWN;
        SN_TRY(sn_window_dim(c, &r->window, i, x->dims[i + 2], w->dims[i + 2], &dims[i + 2]));
    }
    SN_TRY(sn_check_dims(c, at->w, want, rank));
    SN_TRY(check_param(c, at->x_scale, 1));
    SN_TRY(check_param(c, at->x_zero, 1));
    SN_TRY(check_param(c, at->w_scale, w->dims[0]));
    SN_TRY(check_param(c, at->w_zero, w->dims[0]));
    SN_TRY(check_param(c, at->y_scale, 1));
    SN_TRY(check_param(c, at->y_zero, 1));
    if (at->bias)
        SN_TRY(sn_check_dims(c, at->bias, dims + 1, 1));
    return sn_infer_bounded(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind, run */
typedef struct conv_bound {
    sn_integer_conv_plan plan;
    sn_piece w, x, sums, acc, core;
} conv_bound;

static sonde_status bind(sn_bind *b)
{
    const conv_params *r = b->params;
    const sn_type *x = &b->in[r->at.x]->type, *w = &b->in[r->at.w]->type;
    conv_bound *k = SN_NEW(b->arena, conv_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_byte(x->dtype) || !sn_is_byte(w->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "only 8-bit integers are supported");
    sn_conv_desc d = {.n = x->dims[0], .c = x->dims[1], .oc = w->dims[0], .groups = r->groups};
    if (!sn_window_conv(&r->window, x->dims + 2, x->rank - 2, w->dims + 2, &d))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    sn_integer_conv_plan *p = &k->plan;
    SN_TRY(sn_integer_conv_plan_make(p, &d, x->dtype, w->dtype, r->quantized, b->cpu_flags,
                                     b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->w = sn_carve(&b->workspace, p->w_floats, sizeof(float));
    k->x = sn_carve(&b->workspace, p->x_floats, sizeof(float));
    k->sums = sn_carve(&b->workspace, p->sums_floats, sizeof(float));
    k->acc = sn_carve(&b->workspace, p->acc_ints, sizeof(int32_t));
    k->core = sn_carve_bytes(&b->workspace, p->core_bytes);
    b->bound = k;
    b->kernel = p->name;
    b->flops = p->flops;
    return SONDE_OK;
}

static float float_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return *(const float *)sn_in(s, f, i)->data;
}

static sn_byte_zeros zeros_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    if (i == 0 || !sn_has(s, i))
        return (sn_byte_zeros){0};
    const sn_tensor *t = sn_in(s, f, i);
    return (sn_byte_zeros){t->dtype, t->data, sn_tensor_count(t)};
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const conv_params *r = s->params;
    const conv_ports *at = &r->at;
    const conv_bound *k = s->bound;
    sn_tensor *y = sn_out(s, f, 0);
    const sn_byte_zeros x_zero = zeros_in(s, f, at->x_zero);
    sn_integer_conv_args a = {.x = sn_in(s, f, at->x)->data,
                              .w = sn_in(s, f, at->w)->data,
                              .x_zero = sn_byte_zero(&x_zero, 0),
                              .w_zero = zeros_in(s, f, at->w_zero),
                              .w_f32 = sn_piece_ptr(f, k->w),
                              .x_f32 = sn_piece_ptr(f, k->x),
                              .sums = sn_piece_ptr(f, k->sums),
                              .acc = sn_piece_ptr(f, k->acc),
                              .core = sn_piece_ptr(f, k->core),
                              .cancel = f->cancel};
    if (r->quantized) {
        const sn_byte_zeros y_zero = zeros_in(s, f, at->y_zero);
        a.y_bytes = y->data;
        a.y_type = y->dtype;
        a.bias = sn_has(s, at->bias) ? sn_in(s, f, at->bias)->data : NULL;
        a.w_scale = sn_in(s, f, at->w_scale)->data;
        a.w_scales = sn_tensor_count(sn_in(s, f, at->w_scale));
        a.x_scale = float_in(s, f, at->x_scale);
        a.y_scale = float_in(s, f, at->y_scale);
        a.y_zero = sn_byte_zero(&y_zero, 0);
    } else {
        a.y = y->data;
    }
    if (sn_tensor_count(y) == 0 || sn_integer_conv_run(&k->plan, &a, f->pool))
        return SONDE_OK;
    return sn_fail_cancelled(f);
}

#define INTEGER_CONV(NAME, MIN_IN, MAX_IN, PREPARE)                                                \
    {                                                                                              \
        .name = NAME, .domain = "", .since = 10, .min_in = MIN_IN, .max_in = MAX_IN, .min_out = 1, \
        .max_out = 1, .params_size = sizeof(conv_params), .prepare = PREPARE, .infer = infer,      \
        .bind = bind, .run = run, .types = "i8 u8"                                                 \
    }
const sn_op sn_op_conv_integer[] = {INTEGER_CONV("ConvInteger", 2, 4, prepare_integer),
                                    {.name = NULL}};
const sn_op sn_op_qlinear_conv[] = {INTEGER_CONV("QLinearConv", 8, 9, prepare_quantized),
                                    {.name = NULL}};
