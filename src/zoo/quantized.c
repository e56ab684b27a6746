/* SPDX-License-Identifier: Apache-2.0 */
/* Int8 variants of the image classifiers, written as ONNX Runtime's static quantiser writes them:
 * normalisations folded into their convolutions, weights int8 with a scale per output channel,
 * biases int32, activations uint8 with a scale per tensor, and QuantizeLinear ► DequantizeLinear
 * around every operator. ReLU and ReLU6 go away: the range of their integers does the same. Ranges
 * come from moments.h instead of from calibration images.
 *
 * The float graph is read in order and a new one written; its weights are given back one by one, so
 * that the two never exist in full at the same time. */
#include <math.h>
#include <string.h>

#include "zoo/builder.h"
#include "zoo/moments.h"

/* What stands for a value of the float graph in the new one. */
typedef struct stand_in {
    sn_value *value; /* what a DequantizeLinear made; NULL: not there yet */
    sn_value *scale, *zero;
    float step; /* the number in `scale` */
} stand_in;

typedef struct quantizer {
    sn_builder b; /* of the new graph */
    sn_arena scratch;
    sn_buffers weights;        /* of the float graph; those not needed any more are NULL */
    const sn_moments *moments; /* of the float graph, by value id */
    stand_in *of;              /* likewise */
} quantizer;

/* The first `n` bytes of `name`, and `suffix`. */
static const char *join_part(quantizer *q, const char *name, size_t n, const char *suffix)
{
    if (!sn_b_ok(&q->b))
        return "";
    const char *text = sn_arena_printf(&q->b.model->arena, "%.*s%s", (int)n, name, suffix);
    if (!text)
        *q->b.status = sn_fail_memory(q->b.err, 0);
    return text ? text : "";
}

static const char *join(quantizer *q, const char *name, const char *suffix)
{
    return join_part(q, name, strlen(name), suffix);
}

/* ------------------------------------------------------------------ activations */
/* QuantizeLinear and DequantizeLinear of `x`, which stands for `old` from now on. */
static void pair(quantizer *q, const sn_value *old, sn_value *x, stand_in *s)
{
    const char *name = old->name;
    const char *made = join(q, name, old->n_outputs ? "" : "_DequantizeLinear_Output");
    sn_value *integers = sn_b_node(&q->b, join(q, name, "_QuantizeLinear"), "QuantizeLinear",
                                   SN_IN(x, s->scale, s->zero), SN_NO_ATTRS,
                                   join(q, name, "_QuantizeLinear_Output"));
    s->value = sn_b_node(&q->b, join(q, name, "_DequantizeLinear"), "DequantizeLinear",
                         SN_IN(integers, s->scale, s->zero), SN_NO_ATTRS, made);
    q->of[old->id] = *s;
}

/* The same with the scale and zero point that the range of `old` asks for. */
static void quantize(quantizer *q, const sn_value *old, sn_value *x)
{
    const sn_moments *m = &q->moments[old->id];
    void *scale = NULL, *zero = NULL;
    const float low = fminf(m->low, 0.0f), high = fmaxf(m->high, 0.0f);
    stand_in s = {.step = (high - low) / 255};
    s.scale = sn_b_constant(&q->b, join(q, old->name, "_scale"), SONDE_DTYPE_F32, NULL, 0, &scale);
    s.zero =
        sn_b_constant(&q->b, join(q, old->name, "_zero_point"), SONDE_DTYPE_U8, NULL, 0, &zero);
    if (!sn_b_ok(&q->b))
        return;
    *(float *)scale = s.step;
    *(uint8_t *)zero = (uint8_t)lrintf(-low / s.step);
    pair(q, old, x, &s);
}

/* ------------------------------------------------------------------ weights */
/* y = scale · (w x) + shift, for each output channel. */
typedef struct affine {
    float *scale, *shift;
} affine;

/* The only reader of v, when it is an `op_type`. */
static const sn_node *only_reader(const sn_value *v, const char *op_type)
{
    if (v->n_uses != 1 || v->n_outputs || strcmp(v->uses->node->op_type, op_type) != 0)
        return NULL;
    return v->uses->node;
}

static const float *floats(const sn_node *n, uint32_t i)
{
    return n->in[i].value->fact.data->data;
}

/* The bias of a convolution and the normalisation after it, if any. */
static void fold(const sn_node *n, const sn_node *norm, int64_t channels, affine *a)
{
    const float *bias = n->n_in > 2 ? floats(n, 2) : NULL;
    for (int64_t c = 0; c < channels; c++) {
        a->scale[c] = 1.0f;
        a->shift[c] = bias ? bias[c] : 0.0f;
        if (!norm)
            continue;
        const float epsilon = sn_node_attr(norm, "epsilon")->f;
        a->scale[c] = floats(norm, 1)[c] / sqrtf(floats(norm, 4)[c] + epsilon);
        a->shift[c] = floats(norm, 2)[c] + a->scale[c] * (a->shift[c] - floats(norm, 3)[c]);
    }
}

/* Integers of one output channel and what their step is worth: symmetric, largest 127. */
static float quantize_channel(const float *w, float scale, int64_t n, int8_t *out)
{
    float largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(w[i]));
    if (largest * fabsf(scale) == 0.0f) {
        memset(out, 0, (size_t)n);
        return 1.0f;
    }
    const float times = copysignf(127.0f / largest, scale);
    for (int64_t i = 0; i < n; i++)
        out[i] = (int8_t)lrintf(w[i] * times);
    return largest * fabsf(scale) / 127.0f;
}

/* A constant with one scale and one zero point for each entry of its first axis, dequantised. */
typedef struct channelwise {
    void *data, *zeros;
    float *scale;
    sn_value *value;
} channelwise;

static channelwise channelwise_constant(quantizer *q, const char *name, sn_dtype dtype,
                                        const int64_t *dims, int rank, const char *suffix)
{
    channelwise c = {0};
    void *scale = NULL;
    const char *base = join(q, name, suffix);
    sn_value *in[3] = {
        sn_b_constant(&q->b, join(q, name, "_quantized"), dtype, dims, rank, &c.data),
        sn_b_constant(&q->b, join(q, base, "_scale"), SONDE_DTYPE_F32, dims, 1, &scale),
        sn_b_constant(&q->b, join(q, base, "_zero_point"), dtype, dims, 1, &c.zeros)};
    c.value = sn_b_node(&q->b, join(q, name, "_DequantizeLinear"), "DequantizeLinear", in, 3,
                        SN_ATTRS(sn_a_int("axis", 0)), join(q, name, "_DequantizeLinear_Output"));
    c.scale = scale;
    if (c.value)
        memset(c.zeros, 0, in[2]->fact.data->bytes);
    return c;
}

/* The buffer of these weights is not needed any more. */
static void give_back(quantizer *q, const void *data)
{
    for (size_t i = 0; i < q->weights.list.n; i++) {
        sn_buffer **at = &q->weights.list.data[i];
        if (*at && (*at)->data == data) {
            sn_buffer_unref(*at);
            *at = NULL;
            return;
        }
    }
}

/* "layer1.0.conv1.weight" ► "layer1.0.conv1.bias": folding gives every convolution one. */
static const char *bias_name(quantizer *q, const char *weight)
{
    return join_part(q, weight, strlen(weight) - strlen("weight"), "bias");
}

/* Conv or Gemm on integers. Returns the value whose name the result takes. */
static const sn_value *product(quantizer *q, const sn_node *n, sn_value **weight, sn_value **bias)
{
    sn_builder *b = &q->b;
    const sn_node *norm = only_reader(n->out[0], "BatchNormalization");
    const sn_value *old = n->in[1].value;
    const sn_tensor *w = old->fact.data;
    const int64_t channels = w->dims[0], each = sn_tensor_count(w) / channels;
    affine a = {SN_NEW_N(&q->scratch, float, channels), SN_NEW_N(&q->scratch, float, channels)};
    const channelwise cw = channelwise_constant(q, old->name, SONDE_DTYPE_I8, w->dims, w->rank, "");
    const channelwise cb = channelwise_constant(q, bias_name(q, old->name), SONDE_DTYPE_I32,
                                                &channels, 1, "_quantized");
    *weight = cw.value;
    *bias = cb.value;
    if (sn_b_ok(b) && (!a.scale || !a.shift))
        *b->status = sn_fail_memory(b->err, 0);
    if (!sn_b_ok(b))
        return n->out[0];
    fold(n, norm, channels, &a);
    const float *values = w->data;
    for (int64_t c = 0; c < channels; c++) {
        cw.scale[c] =
            quantize_channel(values + c * each, a.scale[c], each, (int8_t *)cw.data + c * each);
        cb.scale[c] = q->of[n->in[0].value->id].step * cw.scale[c];
        ((int32_t *)cb.data)[c] = (int32_t)lrintf(a.shift[c] / cb.scale[c]);
    }
    give_back(q, values);
    return norm ? norm->out[0] : n->out[0];
}

/* ------------------------------------------------------------------ nodes */
static bool is_one_of(const sn_node *n, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(n->op_type, types[i]) == 0)
            return true;
    return false;
}

static void rewrite(quantizer *q, const sn_node *n)
{
    static const char *const products[] = {"Conv", "Gemm"}, *const moves[] = {"MaxPool", "Flatten"};
    sn_value *in[3] = {NULL};
    uint32_t n_in = n->n_in < 3 ? n->n_in : 3;
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = q->of[n->in[i].value->id].value;
    const sn_value *result = n->out[0];
    if (is_one_of(n, products, 2)) {
        result = product(q, n, &in[1], &in[2]);
        n_in = 3;
    }
    const sn_node *act = only_reader(result, "Relu");
    if (!act)
        act = only_reader(result, "Clip");
    if (act)
        result = act->out[0];
    const char *name =
        result->n_outputs ? join(q, result->name, "_QuantizeLinear_Input") : result->name;
    sn_value *y = sn_b_node(&q->b, n->name, n->op_type, in, n_in, n->attrs, n->n_attrs, name);
    if (is_one_of(n, moves, 2)) { /* what only moves keeps its scale */
        stand_in same = q->of[n->in[0].value->id];
        pair(q, result, y, &same);
    } else {
        quantize(q, result, y);
    }
}

static sonde_status write_graph(quantizer *q, const sn_graph *old)
{
    sn_builder *b = &q->b;
    sn_moments *moments = NULL;
    SN_TRY(sn_moments_estimate(old, &q->scratch, &moments, b->err));
    q->moments = moments;
    q->of = SN_NEW_N(&q->scratch, stand_in, old->values.n);
    if (!q->of)
        return sn_fail_memory(b->err, 0);
    for (size_t i = 0; i < old->symbols.n; i++)
        if (!sn_graph_symbol(b->graph, old->symbols.data[i]))
            return sn_fail_memory(b->err, 0);
    for (size_t i = 0; i < old->inputs.n; i++) {
        const sn_value *v = old->inputs.data[i];
        const sn_type *t = &v->fact.type;
        quantize(q, v, sn_b_input(b, v->name, t->dtype, t->dims, t->rank));
    }
    /* A node whose operand nothing stands for has become part of the one before it. */
    for (const sn_node *n = old->first; n && sn_b_ok(b); n = n->next)
        if (n->n_in && q->of[n->in[0].value->id].value)
            rewrite(q, n);
    for (size_t i = 0; i < old->outputs.n && sn_b_ok(b); i++) {
        const sn_value *v = old->outputs.data[i];
        const sn_type *t = &v->fact.type;
        sn_b_output(b, q->of[v->id].value, v->name, t->dtype, t->dims, t->rank);
    }
    return *b->status;
}

/* Turns the model of float weights that `build` makes into one of integers. */
static sonde_status build_int8(sonde_status (*build)(sn_model *, uint64_t, sonde_error *),
                               sn_model *m, uint64_t seed, sonde_error *err)
{
    SN_TRY(build(m, seed, err));
    sn_graph *old = m->graph, *fresh = NULL;
    SN_TRY(sn_graph_new(&fresh, &m->arena, old->alloc, old->name, NULL, err));
    fresh->origins = &m->origins;
    m->graph = fresh;
    quantizer q = {.b = {.model = m, .graph = fresh, .err = err}, .weights = m->buffers};
    q.b.status = &q.b.status_own;
    m->buffers = (sn_buffers){{0}};

    sn_arena_init(&q.scratch, old->alloc);
    const sonde_status st = write_graph(&q, old);
    sn_arena_free(&q.scratch);
    for (size_t i = 0; i < q.weights.list.n; i++)
        sn_buffer_unref(q.weights.list.data[i]);
    sn_vec_free(&q.weights.list, old->alloc);
    sn_graph_free(old);
    return st;
}

#define INT8(id)                                                                                   \
    sonde_status sn_zoo_build_##id##_int8(sn_model * m, uint64_t seed, sonde_error * err)          \
    {                                                                                              \
        return build_int8(sn_zoo_build_##id, m, seed, err);                                        \
    }
INT8(regnet_x_400mf)
INT8(regnet_y_400mf)
INT8(resnet18)
INT8(resnet50)
INT8(mobilenet_v2)
INT8(efficientnet_b0)
INT8(tiny_cnn)
INT8(tiny_resnet)
INT8(tiny_regnet_y)
INT8(tiny_mobilenet)
INT8(tiny_efficientnet)
