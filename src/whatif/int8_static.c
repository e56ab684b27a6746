/* SPDX-License-Identifier: Apache-2.0 */
/* A model in 8 bits with fixed scales, as quantisers write it: weights of products are i8 with a
 * scale per output, and what products read is quantised and dequantised (u8, one scale), which the
 * session turns into products of integers. What lies between products and can be computed in bytes
 * is treated alike, so that bytes flow from one product to the next. Scales are made up: they
 * decide what is computed, not how long it takes. */
#include <math.h>

#include "whatif/whatif.h"

/* Small enough that bytes end below the bound of a Clip at 6. */
#define SCALE 0.02f

typedef enum role {
    NONE,
    PRODUCT,
    BETWEEN, /* computed in bytes if all that it reads and all its readers are */
    ABSORBED /* by the range of the bytes behind it */
} role;

typedef struct quantiser {
    const sn_variant *v;
    sn_graph *g;
    uint8_t *roles;    /* by node */
    uint32_t n_nodes;  /* before any were added */
    sn_value **bytes;  /* by value: dequantised again */
    uint32_t n_values; /* likewise */
} quantiser;

/* ------------------------------------------------------------------ weights */
sonde_status sn_variant_int8_weight(const sn_variant *v, sn_graph *g, const sn_weight *w,
                                    sn_value **q, sn_value **scales)
{
    void *bytes = NULL, *scale = NULL;
    const int64_t count = sn_tensor_count(w->data);
    SN_TRY(sn_variant_constant(v, g, SONDE_DTYPE_I8, w->data->dims, w->data->rank, q, &bytes));
    SN_TRY(sn_variant_constant(v, g, SONDE_DTYPE_F32, &w->outputs, 1, scales, &scale));
    float *copy = sn_alloc(v->m->ctx->alloc, (size_t)count * sizeof *copy);
    if (!copy)
        return sn_fail_memory(v->err, (size_t)count * sizeof *copy);
    sn_tensor_read(w->data, 0, count, copy);
    for (int64_t o = 0; o < w->outputs; o++) {
        float most = 0.0f;
        for (int64_t k = 0; k < w->inputs; k++)
            most = fmaxf(most, fabsf(copy[o * w->output_step + k * w->input_step]));
        const float unit = most > 1e-30f && isfinite(most) ? most / 127.0f : 1.0f;
        ((float *)scale)[o] = unit;
        for (int64_t k = 0; k < w->inputs; k++) {
            const int64_t i = o * w->output_step + k * w->input_step;
            ((int8_t *)bytes)[i] = isfinite(copy[i]) ? (int8_t)lrintf(copy[i] / unit) : 0;
        }
    }
    sn_free(v->m->ctx->alloc, copy, (size_t)count * sizeof *copy);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ which nodes */
static bool is_one_of(const sn_node *n, const char *const *list)
{
    while (*list && !sn_is_onnx(n, *list))
        list++;
    return *list != NULL;
}

static bool is_move(const sn_node *n)
{
    static const char *const moves[] = {"MaxPool",   "Reshape",   "Flatten", "Squeeze",
                                        "Unsqueeze", "Transpose", NULL};
    return is_one_of(n, moves);
}

/* All inputs are activations, rather than the first one alone. */
static bool joins(const sn_node *n)
{
    static const char *const joining[] = {"Add", "Mul", "Concat", NULL};
    return is_one_of(n, joining);
}

static bool can_be_bytes(const sn_node *n)
{
    static const char *const between[] = {"AveragePool", "GlobalAveragePool",
                                          "Sigmoid",     "HardSwish",
                                          "HardSigmoid", "LeakyRelu",
                                          "Tanh",        "Elu",
                                          "Gelu",        "Erf",
                                          NULL};
    return n->n_out == 1 && n->n_in > 0 && n->out[0] &&
           (is_move(n) || joins(n) || is_one_of(n, between));
}

static bool is_product(const quantiser *q, const sn_node *n)
{
    sn_weight w;
    return sn_variant_form(q->v, n).form == SN_BITS_INT8 && sn_variant_bits_weight(q->v, n, &w);
}

static bool readers_take_bytes(const quantiser *q, const sn_value *y)
{
    if (!y || y->n_outputs || !y->uses)
        return false;
    for (const sn_edge *e = y->uses; e; e = e->next)
        if (q->roles[e->node->id] == NONE || (q->roles[e->node->id] == PRODUCT && e->index != 0))
            return false;
    return true;
}

static bool inputs_are_bytes(const quantiser *q, const sn_node *n)
{
    for (uint32_t i = 0; i < (joins(n) ? n->n_in : 1); i++) {
        const sn_value *x = n->in[i].value;
        if (!x || !x->producer || q->roles[x->producer->id] == NONE)
            return false;
    }
    return true;
}

/* Candidates fall away until what is left agrees. */
static void find_roles(const quantiser *q)
{
    static const char *const absorbed[] = {"Relu", "Clip", NULL};
    bool falls = true;
    for (const sn_node *n = q->g->first; n; n = n->next)
        q->roles[n->id] = is_product(q, n)                                       ? PRODUCT
                          : is_one_of(n, absorbed) && n->n_out == 1 && n->out[0] ? ABSORBED
                          : can_be_bytes(n)                                      ? BETWEEN
                                                                                 : NONE;
    while (falls) {
        falls = false;
        for (const sn_node *n = q->g->last; n; n = n->prev)
            if (q->roles[n->id] >= BETWEEN && !readers_take_bytes(q, n->out[0])) {
                q->roles[n->id] = NONE;
                falls = true;
            }
        for (const sn_node *n = q->g->first; n; n = n->next)
            if (q->roles[n->id] >= BETWEEN && !inputs_are_bytes(q, n)) {
                q->roles[n->id] = NONE;
                falls = true;
            }
    }
}

/* ------------------------------------------------------------------ what they read */
/* Whether the value is never negative, so that bytes may begin at 0 and do what a Relu does. */
static bool is_positive(const sn_value *x)
{
    static const char *const positive[] = {"Relu", "Clip", "Sigmoid", NULL};
    const sn_node *n = x->producer;
    while (n && is_move(n) && n->in[0].value)
        n = n->in[0].value->producer;
    return n && is_one_of(n, positive);
}

static sonde_status params(const quantiser *q, bool positive, sn_value **scale, sn_value **zero)
{
    void *s = NULL, *z = NULL;
    SN_TRY(sn_variant_constant(q->v, q->g, SONDE_DTYPE_F32, NULL, 0, scale, &s));
    SN_TRY(sn_variant_constant(q->v, q->g, SONDE_DTYPE_U8, NULL, 0, zero, &z));
    *(float *)s = SCALE;
    *(uint8_t *)z = positive ? 0 : 128;
    return SONDE_OK;
}

/* What a node of bytes makes is bytes for all its readers, so that it is made only once. */
static void redirect(const quantiser *q, sn_value *x, const sn_node *quantize)
{
    if (!x->producer || q->roles[x->producer->id] == NONE)
        return;
    for (sn_edge *e = x->uses, *next; e; e = next) {
        next = e->next;
        if (e->node != quantize)
            sn_node_set_input(e->node, e->index, q->bytes[x->id]);
    }
}

/* x as bytes and back, made once, right behind where x is made. */
static sonde_status read_bytes(const quantiser *q, sn_node *n, uint32_t input)
{
    sn_value *x = n->in[input].value;
    if (!x || x->id >= q->n_values)
        return SONDE_OK;
    if (!q->bytes[x->id]) {
        sn_node *before = x->producer ? x->producer->next : q->g->first;
        sn_node *quantize = NULL, *dequantize = NULL;
        sn_value *scale = NULL, *zero = NULL;
        SN_TRY(params(q, is_positive(x), &scale, &zero));
        SN_TRY(sn_variant_node(q->v, q->g, before, "QuantizeLinear", 3, 1, &quantize));
        SN_TRY(sn_variant_node(q->v, q->g, before, "DequantizeLinear", 3, 1, &dequantize));
        sn_node_set_input(quantize, 0, x);
        sn_node_set_input(dequantize, 0, quantize->out[0]);
        for (sn_node *const *m = (sn_node *const[]){quantize, dequantize, NULL}; *m; m++) {
            sn_node_set_input(*m, 1, scale);
            sn_node_set_input(*m, 2, zero);
        }
        q->bytes[x->id] = dequantize->out[0];
        redirect(q, x, quantize);
    }
    sn_node_set_input(n, input, q->bytes[x->id]);
    return SONDE_OK;
}

static sonde_status quantise_weight(const quantiser *q, sn_node *n)
{
    sn_weight w;
    sn_value *bytes = NULL, *scales = NULL;
    sn_node *dequantize = NULL;
    if (!sn_weight_of(n, &w))
        return SONDE_OK;
    SN_TRY(sn_variant_int8_weight(q->v, q->g, &w, &bytes, &scales));
    SN_TRY(sn_variant_node(q->v, q->g, n, "DequantizeLinear", 2, 1, &dequantize));
    const sn_attr axis = {
        .name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = w.output_step == 1 ? 1 : 0};
    SN_TRY(sn_node_set_attr(q->g, dequantize, &axis, q->v->err));
    sn_node_set_input(dequantize, 0, bytes);
    sn_node_set_input(dequantize, 1, scales);
    sn_node_set_input(n, w.input, dequantize->out[0]);
    return SONDE_OK;
}

/* A normalisation behind a convolution becomes part of its weights and bias before it is
 * quantised. */
static sonde_status absorb_norm(const quantiser *q, sn_node *n)
{
    const sn_edge *use = n->out[0]->n_uses == 1 && !n->out[0]->n_outputs ? n->out[0]->uses : NULL;
    sn_node *norm = use && use->index == 0 ? use->node : NULL;
    sn_weight w;
    if (!norm || !sn_is_onnx(n, "Conv") || !sn_is_onnx(norm, "BatchNormalization") ||
        norm->n_out != 1 || !norm->out[0] || !sn_weight_of(n, &w))
        return SONDE_OK;
    if (n->n_in < 3 || !n->in[2].value) {
        sn_value *bias = NULL;
        void *data = NULL;
        SN_TRY(sn_variant_constant(q->v, q->g, SONDE_DTYPE_F32, &w.outputs, 1, &bias, &data));
        memset(data, 0, (size_t)w.outputs * sizeof(float));
        if (n->n_in < 3)
            SN_TRY(sn_node_add_input(q->g, n, bias, q->v->err));
        else
            sn_node_set_input(n, 2, bias);
        n->n_formal_in = n->n_in;
    }
    sn_value *y = norm->out[0];
    sn_node *both[] = {n, norm};
    sn_node_set_output(n, 0, y);
    return sn_graph_replace(q->g, both, 2, n, n, q->v->err);
}

static sonde_status absorb_norms(const quantiser *q)
{
    sn_graph_each (n, q->g) {
        if (is_product(q, n))
            SN_TRY(absorb_norm(q, n));
        n_next = n->next;
    }
    return SONDE_OK;
}

static sonde_status quantise(const quantiser *q)
{
    sn_graph_each (n, q->g) {
        const role part = n->id < q->n_nodes ? (role)q->roles[n->id] : NONE;
        for (uint32_t i = 0; part == BETWEEN && i < (joins(n) ? n->n_in : 1); i++)
            SN_TRY(read_bytes(q, n, i));
        if (part != PRODUCT)
            continue;
        SN_TRY(read_bytes(q, n, 0));
        SN_TRY(quantise_weight(q, n));
    }
    return SONDE_OK;
}

sonde_status sn_variant_int8(const sn_variant *v, sn_graph *g)
{
    quantiser q = {.v = v, .g = g, .n_nodes = g->n_nodes, .n_values = (uint32_t)g->values.n};
    sn_allocator *alloc = v->m->ctx->alloc;
    q.roles = sn_alloc_zero(alloc, (size_t)q.n_nodes + 1);
    q.bytes = sn_alloc_zero(alloc, ((size_t)q.n_values + 1) * sizeof *q.bytes);
    sonde_status st = SONDE_OK;
    if (!q.roles || !q.bytes)
        st = sn_fail_memory(v->err, q.n_values * sizeof *q.bytes);
    if (st == SONDE_OK)
        st = absorb_norms(&q);
    if (st == SONDE_OK) {
        find_roles(&q);
        st = quantise(&q);
    }
    sn_free(alloc, q.bytes, ((size_t)q.n_values + 1) * sizeof *q.bytes);
    sn_free(alloc, q.roles, (size_t)q.n_nodes + 1);
    return st;
}
