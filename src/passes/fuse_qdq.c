/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised models say their arithmetic in floats: DequantizeLinear ► Conv ► Relu ► QuantizeLinear.
 * What they mean is integer arithmetic, QLinearConv, whose sums are exact: this pass says so. Every
 * QuantizeLinear looks back at the operator before it and at that one's DequantizeLinear inputs.
 * Activations have one scale, weights one or one per output channel.
 *
 * Float sums round, so their results differ by a step where a value lies close to the middle
 * between two, and in a deep network such steps add up. Therefore a model is always taken this way,
 * also without optimisation: with and without the other passes the bits are the same. */
#include <math.h>
#include <string.h>

#include "passes/rewrite.h"

/* A value seen as integers. */
typedef struct quantized {
    sn_node *node;       /* its DequantizeLinear */
    sn_value *q;         /* the integers */
    sn_value *params[2]; /* scale, zero point; the latter may be absent */
} quantized;

typedef struct match {
    sn_node *q;      /* the QuantizeLinear */
    sn_node *act;    /* Relu or Clip that its range does as well; NULL: none */
    sn_node *op;     /* the operator */
    quantized in[3]; /* its inputs */
    float alpha;     /* what a Gemm multiplies by; 0: 1 */
} match;

static bool is_const_of(const sn_value *v, sn_dtype dtype)
{
    return v && sn_value_is_const(v) && v->fact.data->dtype == dtype &&
           sn_tensor_is_plain(v->fact.data);
}

/* Scale (positive, finite) and zero point constant, of the same number of elements, 1 unless
 * `channels` allows that many. Several in more than one dim are of blocks. */
static bool params_fit(const sn_node *n, sn_dtype dtype, int64_t channels)
{
    const sn_value *scale = n->n_in > 1 ? n->in[1].value : NULL;
    const sn_value *zero = n->n_in > 2 ? n->in[2].value : NULL;
    if (!is_const_of(scale, SONDE_DTYPE_F32) || (zero && !is_const_of(zero, dtype)) ||
        sn_node_attr_int(n, "block_size", 0))
        return false;
    const int64_t count = sn_tensor_count(scale->fact.data);
    if ((count != 1 && (count != channels || scale->fact.data->rank > 1)) ||
        (zero && sn_tensor_count(zero->fact.data) != count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        float s = sn_read_f32(scale->fact.data, i);
        if (!(s > 0.0f) || isinf(s))
            return false;
    }
    return true;
}

/* A QuantizeLinear from f32 to bytes with one scale. */
static bool makes_bytes(const sn_node *q)
{
    return sn_node_is(q, "QuantizeLinear") && sn_value_is_byte(q->out[0]) &&
           sn_value_is_dtype(q->in[0].value, SONDE_DTYPE_F32) &&
           params_fit(q, q->out[0]->fact.type.dtype, 1);
}

/* v is DequantizeLinear of bytes, or of `dtype` when that is given. */
static bool dequantized(sn_value *v, sn_dtype dtype, int64_t channels, quantized *out)
{
    sn_node *n = v ? v->producer : NULL;
    if (!n || !sn_node_is(n, "DequantizeLinear") || !sn_value_is_dtype(v, SONDE_DTYPE_F32))
        return false;
    sn_value *q = n->in[0].value;
    if (dtype ? !sn_value_is_dtype(q, dtype) : !sn_value_is_byte(q))
        return false;
    if (!params_fit(n, q->fact.type.dtype, channels))
        return false;
    *out = (quantized){n, q, {n->in[1].value, n->n_in > 2 ? n->in[2].value : NULL}};
    return true;
}

static double zero_of(const sn_value *zero)
{
    if (!zero)
        return 0;
    const uint8_t byte = *(const uint8_t *)zero->fact.data->data;
    return zero->fact.data->dtype == SONDE_DTYPE_I8 ? (double)(int8_t)byte : (double)byte;
}

/* Does the range of the integers do what the activation does? */
static bool absorbs(const sn_node *q, const sn_node *act)
{
    const bool is_signed = sn_value_is_dtype(q->out[0], SONDE_DTYPE_I8);
    const double scale = (double)sn_read_f32(q->in[1].value->fact.data, 0);
    const double zero = zero_of(q->n_in > 2 ? q->in[2].value : NULL);
    const double low = ((is_signed ? -128.0 : 0.0) - zero) * scale;
    const double high = ((is_signed ? 127.0 : 255.0) - zero) * scale;
    float lo = 0, hi = INFINITY;
    if (sn_node_is(act, "Relu"))
        return low >= 0;
    if (!sn_node_is(act, "Clip"))
        return false;
    if (act->opset < 11) {
        lo = sn_node_attr_float(act, "min", -INFINITY);
        hi = sn_node_attr_float(act, "max", INFINITY);
    } else {
        lo = -INFINITY;
        if ((act->n_in > 1 && act->in[1].value && !sn_value_scalar_f32(act->in[1].value, &lo)) ||
            (act->n_in > 2 && act->in[2].value && !sn_value_scalar_f32(act->in[2].value, &hi)))
            return false;
    }
    return low >= (double)lo && high <= (double)hi;
}

static sn_node *only_producer(const sn_value *v)
{
    return v && v->n_uses == 1 && !v->n_outputs ? v->producer : NULL;
}

/* ------------------------------------------------------------------ rewriting */
static sonde_status zero_or_new(sn_graph *g, sn_pass_env *env, sn_value *zero, sn_dtype dtype,
                                int64_t count, sn_value **out)
{
    *out = zero;
    if (zero)
        return SONDE_OK;
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", dtype, &count, count == 1 ? 0 : 1, out, &data));
    memset(data, 0, (size_t)count);
    return SONDE_OK;
}

/* The inputs of a QLinear operator: integers, scale and zero point of each operand, then scale and
 * zero point of the result, then the bias (`bias_first`: before those two). */
static sonde_status set_inputs(sn_graph *g, sn_pass_env *env, const match *m, uint32_t operands,
                               bool has_bias, bool bias_first)
{
    sn_value *in[10];
    uint32_t n = 0;
    for (uint32_t i = 0; i < operands; i++) {
        const quantized *x = &m->in[i];
        in[n++] = x->q;
        in[n++] = x->params[0];
        SN_TRY(zero_or_new(g, env, x->params[1], x->q->fact.type.dtype,
                           sn_tensor_count(x->params[0]->fact.data), &in[n++]));
    }
    sn_value *bias = has_bias ? m->in[operands].q : NULL;
    if (bias_first)
        in[n++] = bias;
    in[n++] = m->q->in[1].value;
    SN_TRY(zero_or_new(g, env, m->q->n_in > 2 ? m->q->in[2].value : NULL,
                       m->q->out[0]->fact.type.dtype, 1, &in[n++]));
    if (bias && !bias_first)
        in[n++] = bias;
    for (uint32_t i = 0; i < n; i++) {
        if (i < m->op->n_in)
            sn_node_set_input(m->op, i, in[i]);
        else
            SN_TRY(sn_node_add_input(g, m->op, in[i], env->err));
    }
    return SONDE_OK;
}

/* m->op makes what m->q made; what is between them and what nobody reads any more becomes part of
 * it. */
static sonde_status finish(sn_graph *g, sn_pass_env *env, const match *m)
{
    sn_node *olds[5];
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        sn_node *dq = m->in[i].node;
        bool twice = i > 0 && dq == m->in[0].node;
        if (dq && !twice && !dq->out[0]->n_uses && !dq->out[0]->n_outputs)
            olds[n++] = dq;
    }
    if (m->act) {
        olds[n++] = m->act;
        SN_TRY(sn_node_add_post_op(g, m->op, m->act->op_type, env->err));
    }
    olds[n++] = m->q;
    SN_TRY(sn_node_add_post_op(g, m->op, m->q->op_type, env->err));
    sn_node_set_output(m->op, 0, m->q->out[0]);
    SN_TRY(sn_graph_replace(g, olds, n, m->op, m->op, env->err));
    return sn_node_refresh(g, m->op, env->err);
}

static void rename_node(sn_node *n, const char *domain, const char *op_type)
{
    n->op_type = op_type;
    if (domain[0]) {
        n->domain = domain;
        n->opset = 1;
    }
}

/* ------------------------------------------------------------------ the operators */
/* One of the weights' scales or biases, of which there is one or one per channel. */
static float of_channel(const sn_value *v, int64_t c)
{
    return sn_read_f32(v->fact.data, sn_tensor_count(v->fact.data) == 1 ? 0 : c);
}

/* What sums are in units of. */
static float sum_scale(const match *m, int64_t c)
{
    const float scale = of_channel(m->in[0].params[0], 0) * of_channel(m->in[1].params[0], c);
    return m->alpha != 0.0f ? scale * m->alpha : scale;
}

static float bias_steps(const match *m, const sn_value *bias, int64_t c)
{
    return of_channel(bias, c) / sum_scale(m, c);
}

/* One number per channel; or a Gemm's that broadcasts in another way, such as one per row, which
 * may be as many: then sums have to have one scale. */
static bool bias_lies(const match *m, const sn_tensor *bias, int64_t channels)
{
    if (sn_tensor_count(bias) == channels &&
        (channels == 1 || bias->dims[bias->rank - 1] == channels))
        return true;
    return sn_node_is(m->op, "Gemm") && sn_tensor_count(m->in[1].params[0]->fact.data) == 1;
}

/* Is the bias, DequantizeLinear of int32, in units of sums? */
static bool bias_fits(const match *m, int64_t channels)
{
    const quantized *b = &m->in[2];
    if (!sn_value_is_const(b->q) || !bias_lies(m, b->q->fact.data, channels))
        return false;
    if (b->params[1]) {
        const sn_tensor *zero = b->params[1]->fact.data;
        for (size_t i = 0; i < zero->bytes; i++)
            if (((const uint8_t *)zero->data)[i])
                return false;
    }
    for (int64_t c = 0; c < channels; c++) {
        double want = (double)sum_scale(m, c);
        double have = (double)of_channel(b->params[0], c);
        if (!isfinite(want) || !(fabs(want - have) <= 1e-5 * fabs(want)))
            return false;
    }
    return true;
}

/* The axis of the numbers that a DequantizeLinear has several scales for. */
static int64_t scale_axis(const quantized *x)
{
    const int64_t axis = sn_node_attr_int(x->node, "axis", 1);
    return axis < 0 ? axis + x->q->fact.type.rank : axis;
}

/* A bias of floats; as integers in units of x_scale · w_scale it has a rounding
 * more than the model says, of half such a unit, which is far below a step of the result. ONNX
 * Runtime does the same. */
static bool is_float_bias(const match *m, const sn_value *bias, int64_t channels)
{
    enum { MOST = 1 << 30 };
    if (!is_const_of(bias, SONDE_DTYPE_F32) || !bias_lies(m, bias->fact.data, channels))
        return false;
    for (int64_t c = 0; c < sn_tensor_count(bias->fact.data); c++)
        if (!isfinite(sum_scale(m, c)) || !(fabsf(bias_steps(m, bias, c)) < (float)MOST))
            return false;
    return true;
}

/* Conv and Gemm: weights and bias constant, scales per tensor or per output channel. A bias of
 * floats is left to quantize_bias. */
static bool match_product(match *m, int64_t channels, int64_t axis)
{
    const sn_node *n = m->op;
    sn_value *bias = n->n_in > 2 ? n->in[2].value : NULL;
    if (!dequantized(n->in[0].value, 0, 1, &m->in[0]) ||
        !dequantized(n->in[1].value, 0, channels, &m->in[1]) || !sn_value_is_const(m->in[1].q))
        return false;
    if (sn_tensor_count(m->in[1].params[0]->fact.data) != 1 && scale_axis(&m->in[1]) != axis)
        return false;
    if (!bias || is_float_bias(m, bias, channels))
        return true;
    return dequantized(bias, SONDE_DTYPE_I32, channels, &m->in[2]) && bias_fits(m, channels);
}

static sonde_status quantize_bias(sn_graph *g, sn_pass_env *env, match *m)
{
    sn_value *bias = m->op->n_in > 2 ? m->op->in[2].value : NULL;
    void *data;
    if (!bias || m->in[2].node)
        return SONDE_OK;
    const sn_tensor *t = bias->fact.data;
    SN_TRY(sn_pass_constant(g, env, bias->name, SONDE_DTYPE_I32, t->dims, t->rank, &m->in[2].q,
                            &data));
    sn_value_show_as(m->in[2].q, bias);
    for (int64_t i = 0; i < sn_tensor_count(t); i++)
        ((int32_t *)data)[i] = (int32_t)rintf(bias_steps(m, bias, i));
    return SONDE_OK;
}

static sonde_status try_conv(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    const sn_type *w = &m->op->in[1].value->fact.type;
    if (w->rank < 3 || w->rank > 5 || !sn_dim_known(w->dims[0]) || !match_product(m, w->dims[0], 0))
        return SONDE_OK;
    *done = true;
    SN_TRY(quantize_bias(g, env, m));
    SN_TRY(set_inputs(g, env, m, 2, m->in[2].q != NULL, false));
    rename_node(m->op, "", "QLinearConv");
    return finish(g, env, m);
}

static bool match_gemm(match *m, int64_t *columns)
{
    const sn_type *w = &m->op->in[1].value->fact.type;
    const bool turned = sn_node_attr_int(m->op, "transB", 0) != 0;
    m->alpha = sn_node_attr_float(m->op, "alpha", 1.0f);
    if (w->rank != 2 || !sn_dim_known(w->dims[!turned]) || m->alpha == 0.0f ||
        !isfinite(m->alpha) || (m->op->n_in > 2 && sn_node_attr_float(m->op, "beta", 1.0f) != 1.0f))
        return false;
    *columns = w->dims[!turned];
    return match_product(m, *columns, !turned);
}

static sonde_status try_gemm(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    int64_t columns;
    if (!match_gemm(m, &columns))
        return SONDE_OK;
    *done = true;
    SN_TRY(quantize_bias(g, env, m));
    SN_TRY(set_inputs(g, env, m, 2, m->in[2].q != NULL, true));
    sn_node_remove_attr(m->op, "beta");
    rename_node(m->op, "com.microsoft", "QGemm");
    return finish(g, env, m);
}

/* Both sides may be activations; the right one may have a scale per column. */
static bool match_matmul(match *m)
{
    const sn_type *w = m->op->in[1].value ? &m->op->in[1].value->fact.type : NULL;
    const sn_dim columns = w && w->rank >= 2 ? w->dims[w->rank - 1] : 1;
    if (!dequantized(m->op->in[0].value, 0, 1, &m->in[0]) ||
        !dequantized(m->op->in[1].value, 0, sn_dim_known(columns) ? columns : 1, &m->in[1]))
        return false;
    return sn_tensor_count(m->in[1].params[0]->fact.data) == 1 ||
           scale_axis(&m->in[1]) == w->rank - 1;
}

static sonde_status try_matmul(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    if (!match_matmul(m))
        return SONDE_OK;
    *done = true;
    SN_TRY(set_inputs(g, env, m, 2, false, false));
    rename_node(m->op, "", "QLinearMatMul");
    return finish(g, env, m);
}

/* A sum of bytes has its zero points added up beforehand. Where a step of an operand is many of the
 * result, of which little fits into a byte, their rounding errors are no small part of a step. */
static bool sum_is_coarse(const match *m)
{
    enum { MOST = 256 };
    const float step = of_channel(m->q->in[1].value, 0);
    for (int i = 0; i < 2; i++)
        if (!(of_channel(m->in[i].params[0], 0) / step <= (float)MOST))
            return true;
    return false;
}

/* Operators of com.microsoft with one or two operands, all of one type. */
static sonde_status try_contrib(sn_graph *g, sn_pass_env *env, match *m, const char *op_type,
                                uint32_t operands, bool *done)
{
    if (m->op->n_in != operands)
        return SONDE_OK;
    for (uint32_t i = 0; i < operands; i++)
        if (!dequantized(m->op->in[i].value, m->q->out[0]->fact.type.dtype, 1, &m->in[i]))
            return SONDE_OK;
    if (sn_node_is(m->op, "Add") && sum_is_coarse(m))
        return SONDE_OK;
    *done = true;
    SN_TRY(set_inputs(g, env, m, operands, false, false));
    rename_node(m->op, "com.microsoft", op_type);
    return finish(g, env, m);
}

static sonde_status set_int(sn_graph *g, sn_node *n, const char *name, int64_t i, sonde_error *err)
{
    const sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = i};
    return sn_node_set_attr(g, n, &a, err);
}

/* The integer softmax wants a scale of the result that is not absurd: 1 has few steps. It rounds as
 * the nodes do, also where the operator of com.microsoft does not. */
static sonde_status try_softmax(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    const int64_t opset = m->op->opset;
    if (sn_read_f32(m->q->in[1].value->fact.data, 0) < 0x1p-16f ||
        !dequantized(m->op->in[0].value, m->q->out[0]->fact.type.dtype, 1, &m->in[0]))
        return SONDE_OK;
    SN_TRY(
        set_int(g, m->op, "axis", sn_node_attr_int(m->op, "axis", opset < 13 ? 1 : -1), env->err));
    SN_TRY(set_int(g, m->op, "opset", opset, env->err));
    SN_TRY(set_int(g, m->op, "as_nodes", 1, env->err));
    return try_contrib(g, env, m, "QLinearSoftmax", 1, done);
}

static bool same_constant(const sn_value *a, const sn_value *b)
{
    if (!a || !b)
        return a == b;
    const sn_tensor *x = a->fact.data, *y = b->fact.data;
    return x->dtype == y->dtype && x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
}

/* Is the input in bytes of the scale and zero point that q gives the result? */
static bool keeps_scale(match *m, const sn_node *q)
{
    return dequantized(m->op->in[0].value, q->out[0]->fact.type.dtype, 1, &m->in[0]) &&
           same_constant(m->in[0].params[0], q->in[1].value) &&
           same_constant(m->in[0].params[1], q->n_in > 2 ? q->in[2].value : NULL);
}

/* Data only moves (or its largest is taken): the integers may move instead. */
static sonde_status try_move(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    if (m->act || !keeps_scale(m, m->q))
        return SONDE_OK;
    *done = true;
    sn_node_set_input(m->op, 0, m->in[0].q);
    return finish(g, env, m);
}

/* Bytes of one scale are joined as they are, others by QLinearConcat. */
static sonde_status try_concat(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    enum { PARTS = 10 }; /* as many as QLinearConcat takes with channels last */
    quantized in[PARTS];
    sn_node *olds[PARTS + 1];
    const uint32_t parts = m->op->n_in;
    sn_value *q_params[2] = {m->q->in[1].value, m->q->n_in > 2 ? m->q->in[2].value : NULL};
    const sn_dtype dtype = m->q->out[0]->fact.type.dtype;
    bool alike = true;
    size_t n = 0;
    if (m->act || parts > PARTS)
        return SONDE_OK;
    for (uint32_t i = 0; i < parts; i++) {
        if (!dequantized(m->op->in[i].value, dtype, 1, &in[i]))
            return SONDE_OK;
        alike = alike && same_constant(in[i].params[0], q_params[0]) &&
                same_constant(in[i].params[1], q_params[1]);
    }
    *done = true;
    for (uint32_t i = 0; i < parts && alike; i++)
        sn_node_set_input(m->op, i, in[i].q);
    for (uint32_t i = 0, at = 0; i <= parts && !alike; i++) { /* the result's scale comes first */
        sn_value *const *params = i ? in[i - 1].params : q_params;
        sn_value *all[3] = {i ? in[i - 1].q : NULL, params[0], NULL};
        SN_TRY(zero_or_new(g, env, params[1], dtype, 1, &all[2]));
        for (int k = i ? 0 : 1; k < 3; k++, at++) {
            if (at < m->op->n_in)
                sn_node_set_input(m->op, at, all[k]);
            else
                SN_TRY(sn_node_add_input(g, m->op, all[k], env->err));
        }
    }
    if (!alike)
        rename_node(m->op, "com.microsoft", "QLinearConcat");
    for (uint32_t i = 0; i < parts; i++) {
        bool listed = in[i].node->out[0]->n_uses || in[i].node->out[0]->n_outputs;
        for (size_t k = 0; k < n; k++)
            listed = listed || olds[k] == in[i].node;
        if (!listed)
            olds[n++] = in[i].node;
    }
    olds[n++] = m->q;
    SN_TRY(sn_node_add_post_op(g, m->op, m->q->op_type, env->err));
    sn_node_set_output(m->op, 0, m->q->out[0]);
    SN_TRY(sn_graph_replace(g, olds, n, m->op, m->op, env->err));
    return sn_node_refresh(g, m->op, env->err);
}

/* What quantising v gives. */
static uint8_t byte_of(float v, const sn_node *q)
{
    const bool is_signed = sn_value_is_dtype(q->out[0], SONDE_DTYPE_I8);
    const double lo = is_signed ? -128.0 : 0.0;
    const double steps = (double)rintf(v / sn_read_f32(q->in[1].value->fact.data, 0)) +
                         zero_of(q->n_in > 2 ? q->in[2].value : NULL);
    return (uint8_t)(int32_t)fmin(fmax(steps, lo), lo + 255.0);
}

/* One number that is known: a constant, or a byte that is one. */
static bool is_number(sn_value *v, float *number)
{
    quantized d;
    if (sn_value_scalar_f32(v, number))
        return !isnan(*number);
    if (!dequantized(v, 0, 1, &d) || !is_const_of(d.q, d.q->fact.type.dtype) ||
        sn_tensor_count(d.q->fact.data) != 1)
        return false;
    *number = (float)(zero_of(d.q) - zero_of(d.params[1])) * of_channel(d.params[0], 0);
    return true;
}

/* Padding moves bytes, and the number that it adds is one of them. */
static sonde_status try_pad(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    enum { PADS = 1, NUMBER };
    sn_node *n = m->op;
    float number = 0.0f;
    sn_value *byte;
    void *data;
    if (m->act || n->opset < 13 || n->n_in <= PADS || !keeps_scale(m, m->q) ||
        (n->n_in > NUMBER && n->in[NUMBER].value && !is_number(n->in[NUMBER].value, &number)))
        return SONDE_OK;
    SN_TRY(sn_pass_constant(g, env, "", m->q->out[0]->fact.type.dtype, NULL, 0, &byte, &data));
    *(uint8_t *)data = byte_of(number, m->q);
    if (n->n_in > NUMBER)
        sn_node_set_input(n, NUMBER, byte);
    else
        SN_TRY(sn_node_add_input(g, n, byte, env->err));
    return try_move(g, env, m, done);
}

/* A Split whose parts all become bytes of its own scale. */
static sonde_status try_split(sn_graph *g, sn_pass_env *env, sn_node *split, bool *done)
{
    enum { PARTS = 32 };
    match m = {.op = split};
    sn_node *olds[PARTS + 1], *dq;
    size_t n = 0;
    if (split->n_out > PARTS)
        return SONDE_OK;
    for (uint32_t i = 0; i < split->n_out; i++) {
        sn_node *q = split->out[i] ? sn_value_only_reader(split->out[i]) : NULL;
        if (!q || !makes_bytes(q) || !keeps_scale(&m, q))
            return SONDE_OK;
        olds[n++] = q;
    }
    if (n == 0)
        return SONDE_OK;
    *done = true;
    dq = m.in[0].node;
    sn_node_set_input(split, 0, m.in[0].q);
    for (uint32_t i = 0; i < split->n_out; i++)
        sn_node_set_output(split, i, olds[i]->out[0]);
    SN_TRY(sn_node_add_post_op(g, split, olds[0]->op_type, env->err));
    if (!dq->out[0]->n_uses && !dq->out[0]->n_outputs)
        olds[n++] = dq;
    SN_TRY(sn_graph_replace(g, olds, n, split, split, env->err));
    return sn_node_refresh(g, split, env->err);
}

static bool says(const sn_node *n, const char *attribute, const char *text)
{
    const sn_attr *a = sn_node_attr(n, attribute);
    return a && a->kind == SN_ATTR_STRING && a->s.size == strlen(text) &&
           memcmp(a->s.data, text, a->s.size) == 0;
}

/* Resizing to the nearest moves elements, unless it puts a number outside of a region. */
static bool moves_bytes(const sn_node *n)
{
    if (sn_node_is(n, "MaxPool"))
        return n->opset >= 12;
    if (sn_node_is(n, "Resize"))
        return (!sn_node_attr(n, "mode") || says(n, "mode", "nearest")) &&
               !says(n, "coordinate_transformation_mode", "tf_crop_and_resize");
    return true;
}

static sonde_status try_op(sn_graph *g, sn_pass_env *env, match *m, bool *done)
{
    static const struct {
        const char *from, *to;
        uint32_t operands;
    } contrib[] = {
        {"Add", "QLinearAdd", 2},
        {"Mul", "QLinearMul", 2},
        {"Sigmoid", "QLinearSigmoid", 1},
        {"LeakyRelu", "QLinearLeakyRelu", 1},
        {"AveragePool", "QLinearAveragePool", 1},
        {"GlobalAveragePool", "QLinearGlobalAveragePool", 1},
    };
    static const char *const moves[] = {"Reshape",      "Flatten",      "Transpose", "Squeeze",
                                        "Unsqueeze",    "Slice",        "Gather",    "Expand",
                                        "DepthToSpace", "SpaceToDepth", "MaxPool",   "Resize"};
    sn_node *n = m->op;
    if (sn_node_is(n, "Conv"))
        return try_conv(g, env, m, done);
    if (sn_node_is(n, "Gemm"))
        return try_gemm(g, env, m, done);
    if (sn_node_is(n, "MatMul"))
        return try_matmul(g, env, m, done);
    if (sn_node_is(n, "Concat"))
        return try_concat(g, env, m, done);
    if (sn_node_is(n, "Softmax"))
        return try_softmax(g, env, m, done);
    if (sn_node_is(n, "Pad"))
        return try_pad(g, env, m, done);
    for (size_t i = 0; i < sizeof contrib / sizeof *contrib; i++)
        if (sn_node_is(n, contrib[i].from))
            return try_contrib(g, env, m, contrib[i].to, contrib[i].operands, done);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (sn_node_is(n, moves[i]) && moves_bytes(n))
            return try_move(g, env, m, done);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ results that stay floats */
/* A product of bytes whose result nobody quantises: its sums are integers, too, and become floats
 * as in models that are quantised dynamically. Weights are constant. */
static bool match_float_product(match *m, int64_t channels, int64_t axis)
{
    const sn_node *n = m->op;
    if (n->n_out != 1 || n->n_in < 2 || !sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32) ||
        !dequantized(n->in[0].value, 0, 1, &m->in[0]) ||
        !dequantized(n->in[1].value, 0, channels, &m->in[1]) || !sn_value_is_const(m->in[1].q))
        return false;
    return sn_tensor_count(m->in[1].params[0]->fact.data) == 1 || scale_axis(&m->in[1]) == axis;
}

/* The operator reads `in` now, and has taken the place of what nobody reads any more. */
static sonde_status become(sn_graph *g, sn_pass_env *env, match *m, sn_value *const in[7],
                           const char *domain, const char *op_type)
{
    sn_node *n = m->op, *olds[3];
    size_t n_olds = 0;
    for (uint32_t i = 0; i < 7; i++) {
        if (i < n->n_in)
            sn_node_set_input(n, i, in[i]);
        else
            SN_TRY(sn_node_add_input(g, n, in[i], env->err));
    }
    for (int i = 0; i < 3; i++) {
        const sn_value *v = m->in[i].node ? m->in[i].node->out[0] : NULL;
        if (v && !v->n_uses && !v->n_outputs && (i == 0 || m->in[i].node != m->in[0].node))
            olds[n_olds++] = m->in[i].node;
    }
    rename_node(n, domain, op_type);
    if (n_olds)
        SN_TRY(sn_graph_replace(g, olds, n_olds, n, n, env->err));
    return sn_node_refresh(g, n, env->err);
}

static sonde_status to_float(sn_graph *g, sn_pass_env *env, match *m, bool conv)
{
    sn_value *bias = m->op->n_in > 2 ? m->op->in[2].value : NULL;
    sn_value *const in[7] = {
        m->in[0].q,         m->in[1].q, m->in[0].params[0], m->in[1].params[0], m->in[0].params[1],
        m->in[1].params[1], bias};
    return become(g, env, m, in, conv ? "sonde" : "com.microsoft",
                  conv ? "ConvIntegerToFloat" : "MatMulIntegerToFloat");
}

/* QGemm without a scale of the result makes floats; its bias is integers. */
static sonde_status float_gemm(sn_graph *g, sn_pass_env *env, match *m)
{
    SN_TRY(quantize_bias(g, env, m));
    sn_value *in[7] = {m->in[0].q, m->in[0].params[0], NULL, m->in[1].q, m->in[1].params[0],
                       NULL,       m->in[2].q};
    for (int i = 0; i < 2; i++)
        SN_TRY(zero_or_new(g, env, m->in[i].params[1], m->in[i].q->fact.type.dtype,
                           sn_tensor_count(m->in[i].params[0]->fact.data), &in[3 * i + 2]));
    sn_node_remove_attr(m->op, "beta");
    return become(g, env, m, in, "com.microsoft", "QGemm");
}

static sonde_status try_float(sn_graph *g, sn_pass_env *env, sn_node *n, bool *done)
{
    match m = {.op = n};
    const sn_type *w = n->n_in > 1 && n->in[1].value ? &n->in[1].value->fact.type : NULL;
    const bool conv = sn_node_is(n, "Conv");
    int64_t columns;
    if (w && sn_node_is(n, "Gemm") && sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32) &&
        match_gemm(&m, &columns)) {
        *done = true;
        return float_gemm(g, env, &m);
    }
    if (!w || (!conv && !sn_node_is(n, "MatMul")))
        return SONDE_OK;
    const int axis = conv ? 0 : w->rank - 1;
    if ((conv ? w->rank < 3 || w->rank > 5 : w->rank != 2) || !sn_dim_known(w->dims[axis]) ||
        n->in[0].value->fact.type.rank < 2 || !match_float_product(&m, w->dims[axis], axis))
        return SONDE_OK;
    *done = true;
    return to_float(g, env, &m, conv);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (q, g) {
        bool done = false;
        if (sn_node_is(q, "Split")) {
            SN_TRY(try_split(g, env, q, &done));
            q_next = q->next; /* what read its parts is gone */
        } else if (makes_bytes(q)) {
            match m = {.q = q, .op = only_producer(q->in[0].value)};
            if (m.op && m.op->n_out == 1 && absorbs(q, m.op)) {
                m.act = m.op;
                m.op = only_producer(m.act->in[0].value);
            }
            if (m.op && m.op->n_out == 1 && m.op->n_in > 0)
                SN_TRY(try_op(g, env, &m, &done));
        }
        *changes += done;
    }
    sn_graph_each (n, g) {
        bool done = false;
        SN_TRY(try_float(g, env, n, &done));
        *changes += done;
    }
    return SONDE_OK;
}

static bool means(const sn_graph *g)
{
    for (const sn_node *n = g->first; n; n = n->next)
        if (sn_node_is(n, "QuantizeLinear") && sn_value_is_byte(n->out[0]))
            return true;
    return false;
}

const sn_pass sn_pass_fuse_qdq = {
    .name = "fuse-qdq",
    .summary = "computes the operators between DequantizeLinear and QuantizeLinear with integers",
    .run = run,
    .bodies = true,
    .reads_weights = true,
    .means = means,
};
