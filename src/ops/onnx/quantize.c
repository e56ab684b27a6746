/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. Scales and zero points are small:
 * they are brought to f32 and int32 in the workspace, the drivers know nothing else. Images of
 * bytes may have their channels last; f32 beside them is plain. */
#include "compute/quantize_last.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"
#include "ops/shared/layouts.h"

typedef struct quant_params {
    int64_t axis, block_size;
    sn_dtype output; /* UNDEFINED: not said */
    bool saturate;
    bool dequantize;
} quant_params;

typedef struct quant_bound {
    sn_quant_shape shape;
    sn_channels_last last; /* of the bytes */
    size_t n, n_scales;
    sn_piece x, scale, zero, y; /* in f32, int32 */
} quant_bound;

static sonde_status prepare_quant(sn_prep *p)
{
    quant_params *q = p->params;
    int64_t saturate, output;
    q->dequantize = p->node->op_type[0] == 'D';
    SN_TRY(sn_prep_int(p, "axis", 1, &q->axis));
    SN_TRY(sn_prep_int(p, "block_size", 0, &q->block_size));
    SN_TRY(sn_prep_int(p, "saturate", 1, &saturate));
    SN_TRY(sn_prep_int(p, "output_dtype", 0, &output));
    q->saturate = saturate != 0;
    if (output != 0 && !sn_dtype_valid(output))
        return sn_prep_fail(
            p, "attribute 'output_dtype' is %s, which is not a dtype that this version supports",
            sn_dtype_number_text(output, (char[40]){0}));
    q->output = (sn_dtype)output;
    if (q->block_size < 0)
        return sn_prep_fail(p, "attribute 'block_size' is negative");
    return SONDE_OK;
}

static sonde_status infer_quantize(sn_infer *c)
{
    const quant_params *q = c->params;
    const sn_type *x = &c->in[0]->type;
    sn_dtype t = sn_infer_has(c, 2) ? c->in[2]->type.dtype : q->output ? q->output : SONDE_DTYPE_U8;
    if (sn_infer_has(c, 2) && q->output && t != SONDE_DTYPE_UNDEFINED && t != q->output)
        return sn_infer_fail(c,
                             "attribute 'output_dtype' differs from the dtype of the zero point");
    return sn_infer_tensor(c, 0, t, x->dims, x->rank);
}

static sonde_status infer_dequantize(sn_infer *c)
{
    const quant_params *q = c->params;
    const sn_type *x = &c->in[0]->type, *scale = &c->in[1]->type;
    return sn_infer_tensor(c, 0, q->output ? q->output : scale->dtype, x->dims, x->rank);
}

/* How the scale lies against the data. */
static sonde_status make_shape(sn_bind *b, sn_quant_shape *s, size_t *n_scales)
{
    const quant_params *q = b->params;
    const sn_type *x = &b->in[0]->type, *scale = &b->in[1]->type;
    int64_t n = 1;
    sn_type_count(scale, &n);
    *n_scales = (size_t)n;
    *s = (sn_quant_shape){
        .outer = 1, .channels = 1, .inner = 1, .block = 1, .channel_blocks = 1, .scale_inner = 1};
    if (n == 1 && scale->rank <= 1) { /* rows of a few thousand elements, to share among threads */
        sn_type_count(x, &s->inner);
        if (x->rank > 1 && x->dims[0] > 0) {
            s->outer = x->dims[0];
            s->inner /= s->outer;
        }
        return SONDE_OK;
    }
    int64_t axis = q->axis < 0 ? q->axis + x->rank : q->axis;
    if (axis < 0 || axis >= x->rank)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "axis %lld is outside a tensor of rank %d",
                            (long long)q->axis, x->rank);
    int a = (int)axis;
    s->outer = sn_dims_product(x->dims, 0, a);
    s->channels = x->dims[a];
    s->inner = sn_dims_product(x->dims, a + 1, x->rank);
    if (scale->rank <= 1 && (x->rank != 1 || q->block_size == 0)) {
        s->channel_blocks = n;
        if (n != s->channels)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "%lld scales for %lld channels",
                                (long long)n, (long long)s->channels);
        return SONDE_OK;
    }
    s->channel_blocks = scale->rank == x->rank ? scale->dims[a] : 0;
    bool fits = scale->rank == x->rank;
    for (int i = 0; i < x->rank && fits; i++)
        fits = i == a || scale->dims[i] == x->dims[i];
    s->block = q->block_size > 0 ? q->block_size
               : fits && s->channel_blocks > 0
                   ? (s->channels + s->channel_blocks - 1) / s->channel_blocks
                   : 0;
    const int64_t blocks = s->block > 0 && s->channels > 0 ? (s->channels - 1) / s->block + 1 : 0;
    if (!fits || s->block == 0 || blocks != s->channel_blocks)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the shape of the scale does not match blocks of %lld along axis %d",
                            (long long)q->block_size, a);
    s->scale_inner = s->inner;
    s->scale_outer = true;
    return SONDE_OK;
}

static bool is_quantised(sn_dtype t, bool dequantize)
{
    switch (t) {
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_I16:
    case SONDE_DTYPE_U16:
    case SONDE_DTYPE_I4:
    case SONDE_DTYPE_U4:
    case SONDE_DTYPE_I2:
    case SONDE_DTYPE_U2:
    case SONDE_DTYPE_F8E4M3FN:
    case SONDE_DTYPE_F8E4M3FNUZ:
    case SONDE_DTYPE_F8E5M2:
    case SONDE_DTYPE_F8E5M2FNUZ:
    case SONDE_DTYPE_F4E2M1:
        return true;
    case SONDE_DTYPE_I32:
        return dequantize;
    default:
        return false;
    }
}

static bool is_real(sn_dtype t)
{
    return t == SONDE_DTYPE_F32 || sn_is_half(t) || t == SONDE_DTYPE_I32;
}

/* ------------------------------------------------------------------ channels last */
/* f32 with one scale for all. */
static bool may_be_last(const sn_node *node, const sn_value *bytes, const sn_value *numbers)
{
    const sn_value *scale = node->n_in > 1 ? node->in[1].value : NULL;
    int64_t n = 0;
    return bytes && numbers && scale && sn_value_is_byte_image(bytes) &&
           numbers->fact.type.dtype == SONDE_DTYPE_F32 &&
           scale->fact.type.dtype == SONDE_DTYPE_F32 && scale->fact.type.rank >= 0 &&
           scale->fact.type.rank <= 1 && sn_type_count(&scale->fact.type, &n) && n == 1;
}

static const sn_op_signature *in_last_quantize(const sn_node *node, const void *params)
{
    static const sn_op_signature out = {.out = SN_PORT_SAME};
    (void)params;
    return may_be_last(node, node->out[0], node->in[0].value) ? &out : NULL;
}

static const sn_op_signature *in_last_dequantize(const sn_node *node, const void *params)
{
    static const sn_op_signature in = {.in = {SN_PORT_ANY}};
    (void)params;
    return may_be_last(node, node->in[0].value, node->out[0]) ? &in : NULL;
}

static sonde_status run_last(const sn_step *s, sn_frame *f)
{
    const quant_params *p = s->params;
    const quant_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    const sn_dtype t = p->dequantize ? x->dtype : y->dtype;
    sn_qparam q = {*(const float *)sn_in(s, f, 1)->data, 0};
    if (sn_has(s, 2))
        q.zero = sn_byte_at(t, sn_in(s, f, 2)->data, 0);
    if (p->dequantize)
        sn_dequantize_from_last(&k->last, f->ctx->cpu.flags, t, q, x->data, y->data, f->pool);
    else
        sn_quantize_to_last(&k->last, f->ctx->cpu.flags, t, q, x->data, y->data, f->pool);
    return SONDE_OK;
}

static sonde_status bind_last(sn_bind *b, quant_bound *k)
{
    const quant_params *q = b->params;
    const sn_type *x = &b->in[0]->type;
    const sn_dtype bytes = q->dequantize ? x->dtype : b->out[0].type.dtype;
    const sn_dtype numbers = q->dequantize ? b->out[0].type.dtype : x->dtype;
    if (!sn_is_byte(bytes) || numbers != SONDE_DTYPE_F32 || k->n_scales != 1 || x->rank < 2 ||
        b->in[1]->type.dtype != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED,
                            "with channels last, there is one scale, of f32, for bytes");
    k->last = (sn_channels_last){x->dims[0], x->dims[1], 1, x->dims[1], 1};
    for (int i = 2; i < x->rank; i++)
        k->last.pixels *= x->dims[i];
    b->bound = k;
    b->run = run_last;
    b->kernel = q->dequantize ? "dequantize_linear_last" : "quantize_linear_last";
    b->flops = 3 * (uint64_t)k->n;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ both */
static sonde_status bind_quant(sn_bind *b)
{
    const quant_params *q = b->params;
    quant_bound *k = SN_NEW(b->arena, quant_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    sn_dtype from = b->in[0]->type.dtype, to = b->out[0].type.dtype;
    sn_dtype quantised = q->dequantize ? from : to, real = q->dequantize ? to : from;
    if (!is_quantised(quantised, q->dequantize) || !is_real(real) ||
        !sn_cast_supported(b->in[1]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "%s to %s is not supported",
                            sn_dtype_onnx_name(from), sn_dtype_onnx_name(to));
    SN_TRY(make_shape(b, &k->shape, &k->n_scales));
    int64_t zeros = 0;
    if (b->n_in > 2 && b->in[2] &&
        (!sn_type_count(&b->in[2]->type, &zeros) || (size_t)zeros != k->n_scales))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the zero point and the scale have different shapes");
    k->n = sn_fact_elems(b->in[0]);
    if (sn_layout_is_last(b->in[0]->form.layout) || sn_layout_is_last(b->out[0].form.layout))
        return bind_last(b, k);
    k->scale = sn_converted_carve(&b->workspace, b->in[1], SONDE_DTYPE_F32);
    k->zero = sn_carve(&b->workspace, (int64_t)k->n_scales, sizeof(int32_t));
    if (q->dequantize)
        k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    else
        k->x = sn_converted_carve(&b->workspace, b->in[0], SONDE_DTYPE_F32);
    b->bound = k;
    b->kernel = q->dequantize ? "dequantize_linear" : "quantize_linear";
    b->arithmetic = SN_ARITH_F32;
    b->flops = 3 * (uint64_t)k->n;
    return SONDE_OK;
}

static const int32_t *zero_points(const sn_step *s, sn_frame *f, const quant_bound *k)
{
    if (!sn_has(s, 2) || sn_dtype_is_float(sn_in(s, f, 2)->dtype))
        return NULL; /* a float's zero point is always zero */
    int32_t *zero = sn_piece_ptr(f, k->zero);
    sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_I32, zero, sn_in(s, f, 2)->dtype,
                sn_in(s, f, 2)->data, k->n_scales, (sn_rounding){0}, NULL);
    return zero;
}

static sonde_status run_quant(const sn_step *s, sn_frame *f)
{
    const quant_params *q = s->params;
    const quant_bound *k = s->bound;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    if (k->n == 0)
        return SONDE_OK;
    const float *scale = sn_converted_in(s, f, 1, f32, k->scale);
    const int32_t *zero = zero_points(s, f, k);
    if (!q->dequantize) {
        sn_quantize_run(f->ctx->cpu.flags, &k->shape, y->dtype, y->data,
                        sn_converted_in(s, f, 0, f32, k->x), scale, zero, q->saturate, f->pool);
        return SONDE_OK;
    }
    sn_dequantize_run(f->ctx->cpu.flags, &k->shape, sn_converted_out(s, f, 0, f32, k->y), x->dtype,
                      x->data, scale, zero, f->pool);
    sn_converted_done(s, f, 0, f32, k->y);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ scale from the data */
static sonde_status infer_dynamic(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type;
    SN_TRY(sn_infer_tensor(c, 0, SONDE_DTYPE_U8, x->dims, x->rank));
    SN_TRY(sn_infer_tensor(c, 1, SONDE_DTYPE_F32, NULL, 0));
    return sn_infer_tensor(c, 2, SONDE_DTYPE_U8, NULL, 0);
}

static sonde_status bind_dynamic(sn_bind *b)
{
    if (b->in[0]->type.dtype != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(b->in[0]->type.dtype));
    b->kernel = "dynamic_quantize_linear";
    b->flops = 5 * (uint64_t)sn_fact_elems(b->in[0]);
    return SONDE_OK;
}

static sonde_status run_dynamic(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_quantize_dynamic_run(f->ctx->cpu.flags, sn_out(s, f, 0)->data, x->data,
                            (size_t)sn_tensor_count(x), sn_out(s, f, 1)->data,
                            sn_out(s, f, 2)->data, f->pool);
    return SONDE_OK;
}

#define QUANT(NAME, INFER, LAST, TYPES)                                                            \
    {                                                                                              \
        {SN_ELT_HEAD(NAME, 10, 0, 2, 3),                                                           \
         .params_size = sizeof(quant_params),                                                      \
         .prepare = prepare_quant,                                                                 \
         .infer = INFER,                                                                           \
         .bind = bind_quant,                                                                       \
         .run = run_quant,                                                                         \
         .in_last = LAST,                                                                          \
         .flags = SN_OP_TILES | SN_OP_ELEMENTWISE,                                                 \
         .types = TYPES},                                                                          \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }
const sn_op sn_op_quantize_linear[] =
    QUANT("QuantizeLinear", infer_quantize, in_last_quantize, "f32 f16 bf16 i32");
const sn_op sn_op_dequantize_linear[] =
    QUANT("DequantizeLinear", infer_dequantize, in_last_dequantize,
          "i8 u8 i16 u16 i32 i4 u4 i2 u2 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f4e2m1");
const sn_op sn_op_dynamic_quantize_linear[] = {{.name = "DynamicQuantizeLinear",
                                                .domain = "",
                                                .since = 11,
                                                .min_in = 1,
                                                .max_in = 1,
                                                .min_out = 3,
                                                .max_out = 3,
                                                .infer = infer_dynamic,
                                                .bind = bind_dynamic,
                                                .run = run_dynamic,
                                                .types = "f32"},
                                               {.name = NULL}};
