/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger and QLinearConv: convolutions of bytes (compute/q8.h), whose zero points and scales
 * are inputs. sonde.ConvIntegerToFloat scales the sums to f32 and adds a bias; its inputs are those
 * of MatMulIntegerToFloat. sonde.QLinearConvAdd is a QLinearConv, and a QLinearAdd of its result
 * and other bytes, with all that both round; `second`: its result is the second operand. */
#include "compute/channels_last.h"
#include "compute/q8.h"
#include "compute/quantized.h"
#include "ops/shared/checks.h"
#include "ops/shared/layouts.h"
#include "ops/shared/sparse_weights.h"
#include "ops/shared/window.h"
#include "ops/shared/zero_points.h"

/* Where each operator has its inputs; 0 behind x: absent. */
typedef struct conv_ports {
    uint32_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
    uint32_t z, z_scale, sum_scale; /* a zero point behind each scale */
} conv_ports;

typedef struct conv_params {
    sn_window window;
    int64_t groups;
    conv_ports at;
    enum { SUMS, BYTES, FLOATS } result;
    int64_t second;
    int64_t wraps; /* it was a ConvInteger, whose sums are modulo 2^32 */
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
    r->result = BYTES;
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

static sonde_status prepare_add(sn_prep *p)
{
    conv_params *r = p->params;
    SN_TRY(prepare_quantized(p));
    r->at.z = 9;
    r->at.z_scale = 10;
    r->at.sum_scale = 12;
    return sn_prep_int(p, "second", 0, &r->second);
}

static sonde_status prepare_to_float(sn_prep *p)
{
    conv_params *r = p->params;
    r->result = FLOATS;
    r->at = (conv_ports){.w = 1, .x_scale = 2, .w_scale = 3, .x_zero = 4, .w_zero = 5, .bias = 6};
    SN_TRY(sn_prep_int(p, "wraps", 0, &r->wraps));
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
    if (r->result != SUMS) {
        SN_TRY(sn_check_dtype(c, at->x_scale, f32, 1));
        SN_TRY(sn_check_dtype(c, at->w_scale, f32, 1));
        SN_TRY(sn_check_dtype(c, at->bias, r->result == FLOATS ? f32 : i32, 1));
        dtype = SONDE_DTYPE_F32;
    }
    if (r->result == BYTES) {
        dtype = c->in[at->y_zero]->type.dtype;
        SN_TRY(sn_check_dtype(c, at->y_zero, bytes, 2));
        SN_TRY(sn_check_dtype(c, at->y_scale, f32, 1));
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
    if (at->z) {
        SN_TRY(sn_check_dtype(c, at->z, &dtype, 1));
        SN_TRY(sn_check_dims(c, at->z, dims, rank));
        SN_TRY(check_param(c, at->z_scale, 1));
        SN_TRY(check_param(c, at->sum_scale, 1));
    }
    if (at->bias)
        SN_TRY(sn_check_dims(c, at->bias, dims + 1, 1));
    return sn_infer_bounded(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ layout */
/* Channels last, as its kernels read and write them; results that are no bytes are plain. */
static const sn_op_signature *in_last(const sn_node *node, const void *params)
{
    static const sn_op_signature quantized = {
        .in = {SN_PORT_SAME}, .out = SN_PORT_SAME, .native_cost = SN_COST_NEVER};
    static const sn_op_signature adds = {.in = {[0] = SN_PORT_SAME, [9] = SN_PORT_SAME},
                                         .out = SN_PORT_SAME,
                                         .native_cost = SN_COST_NEVER};
    static const sn_op_signature wide = {.in = {SN_PORT_ANY}};
    const conv_params *r = params;
    if (!sn_value_is_byte_image(node->in[r->at.x].value))
        return NULL;
    return r->result != BYTES ? &wide : r->at.z ? &adds : &quantized;
}

/* ------------------------------------------------------------------ pack, bind, run */
/* Pixels of the image; -1: not known. */
static int64_t pixels_of(const sn_type *x)
{
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++)
        if (i != 1)
            n = sn_dim_known(x->dims[i]) ? sn_count(n, x->dims[i], 1, 1) : -1;
    return x->rank > 2 ? n : -1;
}

static sonde_status pack(sn_pack_request *q)
{
    const conv_params *r = q->params;
    const sn_type *w = &q->in[r->at.w]->type;
    bool pixel = r->groups == 1 && w->rank > 2 && sn_window_is_pixel(&r->window);
    for (int i = 2; i < w->rank; i++)
        pixel = pixel && w->dims[i] == 1;
    if (pixel && sn_weights_pack_sparse_bytes(q, r->at.w, SN_SPARSE_FILTERS,
                                              pixels_of(&q->in[r->at.x]->type)))
        return SONDE_OK;
    const int last = w->rank - 3; /* axis of the window */
    const int64_t across = last >= 0 ? w->dims[last + 2] : 1;
    const int64_t arg =
        sn_q8_conv_pack_arg(r->groups, across, sn_window_dilation(&r->window, last));
    if (sn_is_byte(w->dtype))
        q->pack[r->at.w] =
            (uint8_t)sn_q8_conv_pack_id(w->dtype, w->dims, w->rank, arg, q->cpu_flags);
    q->pack_arg[r->at.w] = arg;
    return SONDE_OK;
}

typedef struct conv_bound {
    sn_q8_plan plan;
    sn_channels_last x, y;
    sn_piece x_last, y_last, core;
    bool turns_x, turns_y; /* they lie plain: channels come last, and go back, on the way */
    sn_bcast whole;        /* then z is added behind that */
} conv_bound;

/* Room for a plain tensor with its channels last; with one channel or pixel it lies so already. */
static bool turns(sn_bind *b, const sn_fact *v, const sn_channels_last *g, sn_piece *room)
{
    if (sn_layout_is_last(v->form.layout) || g->c == 1 || g->pixels == 1)
        return false;
    *room = sn_carve(&b->workspace, sn_count(g->n, g->pixels, g->pitch, 1), g->elem);
    return true;
}

static sonde_status bind(sn_bind *b)
{
    const conv_params *r = b->params;
    const sn_type *x = &b->in[r->at.x]->type, *w = &b->in[r->at.w]->type;
    conv_bound *k = SN_NEW(b->arena, conv_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_byte(x->dtype) || !sn_is_byte(w->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "only 8-bit integers are supported");
    sn_q8_desc d = {.x_type = x->dtype,
                    .w_type = w->dtype,
                    .y_type = b->out[0].type.dtype,
                    .wraps = r->wraps != 0};
    sn_weights_describe(b->in[r->at.w], &d);
    d.conv =
        (sn_conv_desc){.n = x->dims[0], .c = x->dims[1], .oc = w->dims[0], .groups = r->groups};
    if (!sn_window_conv(&r->window, x->dims + 2, x->rank - 2, w->dims + 2, &d.conv))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    d.x_pitch = d.conv.c;
    d.y_pitch = d.conv.oc;
    sn_q8_plan *p = &k->plan;
    SN_TRY(sn_q8_plan_make(p, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->x = (sn_channels_last){d.conv.n, d.conv.c, p->in_pixels, d.x_pitch, 1};
    k->y =
        (sn_channels_last){d.conv.n, d.conv.oc, p->out_pixels, d.y_pitch, sn_dtype_bytes(d.y_type)};
    k->turns_x = turns(b, b->in[r->at.x], &k->x, &k->x_last);
    k->turns_y = turns(b, &b->out[0], &k->y, &k->y_last);
    if (r->at.z && !sn_layout_same(b->in[r->at.z]->form.layout, b->out[0].form.layout))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "what is added does not lie as the result does");
    if (r->at.z) {
        const int64_t *dims[2] = {b->out[0].type.dims, b->out[0].type.dims};
        const int ranks[2] = {b->out[0].type.rank, b->out[0].type.rank};
        sn_bcast_plan(&k->whole, dims[0], ranks[0], 2, dims, ranks);
    }
    k->core = sn_carve_inner(&b->workspace, &p->workspace);
    b->bound = k;
    b->kernel = p->name;
    b->flops = p->flops;
    b->arithmetic = p->arithmetic;
    return SONDE_OK;
}

static float float_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return *(const float *)sn_in(s, f, i)->data;
}

/* A scale, and the zero point behind it. */
static sn_qparam qparam_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    const sn_byte_zeros zero = sn_zeros_in(s, f, i + 1);
    return (sn_qparam){float_in(s, f, i), sn_byte_zero(&zero, 0)};
}

/* Both operands plain; y is the one that was computed. */
static void add_plain(const sn_step *s, sn_frame *f, sn_tensor *y)
{
    const conv_params *r = s->params;
    const conv_bound *k = s->bound;
    const void *z = sn_in(s, f, r->at.z)->data;
    const sn_qparam of_y = qparam_in(s, f, r->at.y_scale), of_z = qparam_in(s, f, r->at.z_scale);
    const sn_q8_binary t = {.bcast = &k->whole,
                            .dtype = y->dtype,
                            .a = r->second ? of_z : of_y,
                            .b = r->second ? of_y : of_z,
                            .y = qparam_in(s, f, r->at.sum_scale),
                            .add = true};
    sn_q8_binary_run(k->plan.cpu_flags, &t, y->data, r->second ? z : y->data,
                     r->second ? y->data : z, f->pool);
}

static sn_requantize_sum sum_of(const sn_step *s, const sn_frame *f, sn_dtype dtype)
{
    const conv_params *r = s->params;
    sn_requantize_sum sum =
        sn_q8_sum_with(dtype, qparam_in(s, f, r->at.y_scale), qparam_in(s, f, r->at.z_scale),
                       qparam_in(s, f, r->at.sum_scale), r->second != 0);
    sum.z = sn_in(s, f, r->at.z)->data;
    return sum;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const conv_params *r = s->params;
    const conv_ports *at = &r->at;
    const conv_bound *k = s->bound;
    const uint32_t flags = k->plan.cpu_flags;
    sn_tensor *y = sn_out(s, f, 0);
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    sn_q8_args a = {.x = sn_in(s, f, at->x)->data,
                    .w = sn_in(s, f, at->w)->data,
                    .y = k->turns_y ? sn_piece_ptr(f, k->y_last) : y->data,
                    .x_zero = sn_zeros_in(s, f, at->x_zero),
                    .w_zero = sn_zeros_in(s, f, at->w_zero),
                    .workspace = sn_piece_ptr(f, k->core),
                    .cancel = f->cancel};
    if (r->result != SUMS) {
        a.x_scale = sn_in(s, f, at->x_scale)->data;
        a.x_scales = 1;
        a.w_scale = sn_in(s, f, at->w_scale)->data;
        a.w_scales = sn_tensor_count(sn_in(s, f, at->w_scale));
    }
    const void *bias =
        r->result != SUMS && sn_has(s, at->bias) ? sn_in(s, f, at->bias)->data : NULL;
    if (r->result == FLOATS)
        a.addend = bias;
    if (r->result == BYTES) {
        const sn_byte_zeros y_zero = sn_zeros_in(s, f, at->y_zero);
        a.bias = bias;
        a.bias_column = 1;
        a.y_scale = float_in(s, f, at->y_scale);
        a.y_zero = sn_byte_zero(&y_zero, 0);
    }
    sn_requantize_sum sum;
    if (at->z && !k->turns_y) {
        sum = sum_of(s, f, y->dtype);
        a.sum = &sum;
    }
    if (k->turns_x) {
        sn_channels_to_last(&k->x, flags, a.x, sn_piece_ptr(f, k->x_last), f->pool);
        a.x = sn_piece_ptr(f, k->x_last);
    }
    if (!sn_q8_run(&k->plan, &a, f->pool))
        return sn_fail_cancelled(f);
    if (k->turns_y)
        sn_channels_from_last(&k->y, flags, a.y, y->data, f->pool);
    if (k->turns_y && at->z)
        add_plain(s, f, y);
    return SONDE_OK;
}

#define INTEGER_CONV(NAME, DOMAIN, SINCE, MIN_IN, MAX_IN, PREPARE)                                 \
    {                                                                                              \
        .name = NAME, .domain = DOMAIN, .since = SINCE, .min_in = MIN_IN, .max_in = MAX_IN,        \
        .min_out = 1, .max_out = 1, .params_size = sizeof(conv_params), .prepare = PREPARE,        \
        .infer = infer, .pack = pack, .bind = bind, .run = run, .in_last = in_last,                \
        .types = "i8 u8", .flags = SN_OP_TILES                                                     \
    }
const sn_op sn_op_conv_integer[] = {INTEGER_CONV("ConvInteger", "", 10, 2, 4, prepare_integer),
                                    {.name = NULL}};
const sn_op sn_op_qlinear_conv[] = {INTEGER_CONV("QLinearConv", "", 10, 8, 9, prepare_quantized),
                                    {.name = NULL}};
const sn_op sn_op_qlinear_conv_add[] = {
    INTEGER_CONV("QLinearConvAdd", "sonde", 1, 13, 14, prepare_add), {.name = NULL}};
const sn_op sn_op_conv_integer_to_float[] = {
    INTEGER_CONV("ConvIntegerToFloat", "sonde", 1, 4, 7, prepare_to_float), {.name = NULL}};
