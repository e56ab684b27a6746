/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor of B is a tensor of A, by name. A quantised B keeps a tensor X as X ► QuantizeLinear
 * ► DequantizeLinear, where what comes out is compared; or, in the names that ONNX Runtime's
 * quantiser gives, as X_DequantizeLinear_Output, or as bytes named X_quantized, of which the
 * operator that makes them knows scale and zero point. */
#include <stdio.h>

#include "accuracy/pairs.h"

sonde_status sn_map_values(sn_map *names, const sn_graph *g, sonde_error *err)
{
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i];
        if (*v->name && !sn_map_put(names, v->name, v, NULL))
            return sn_fail_memory(err, sizeof(sn_map_entry));
    }
    return SONDE_OK;
}

bool sn_is_op(const sn_node *n, const char *op_type)
{
    return n && strcmp(n->op_type, op_type) == 0;
}

bool sn_is_quantized_op(const sn_node *n)
{
    static const char *const words[] = {"QLinear", "QGemm", "QAttention", "DynamicQuantize"};
    static const char *const ends[] = {"Integer", "IntegerToFloat", "NBits", "Bnb4"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(n->op_type, words[i], strlen(words[i])) == 0)
            return true;
    const size_t length = strlen(n->op_type);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t k = strlen(ends[i]);
        if (length > k && strcmp(n->op_type + length - k, ends[i]) == 0)
            return true;
    }
    /* A weight that is kept in integers. */
    return sn_is_op(n, "DequantizeLinear") && n->n_in && n->in[0].value &&
           n->in[0].value->fact.data;
}

/* Its first reader of that type that reads it as input 0; NULL: none. */
static sn_node *reader(const sn_value *v, const char *op_type)
{
    sn_node *found = NULL;
    for (const sn_edge *e = v->uses; e; e = e->next)
        if (e->index == 0 && sn_is_op(e->node, op_type) && e->node->n_out && e->node->out[0] &&
            (!found || e->node->id < found->id))
            found = e->node;
    return found;
}

static void chain(sn_node *dequantize, sn_place_b *found)
{
    sn_value *q = dequantize->in[0].value;
    *found = (sn_place_b){.seen = dequantize->out[0], .quantized = q, .dequantize = dequantize};
    if (q && sn_is_op(q->producer, "QuantizeLinear"))
        found->quantize = q->producer;
}

/* X itself, or what is behind Q ► DQ, unless X is an output or A has that, too. */
static void match_same_name(sn_value *v, const sn_map *names_a, sn_place_b *found)
{
    sn_node *q = reader(v, "QuantizeLinear");
    sn_node *dq = q ? reader(q->out[0], "DequantizeLinear") : NULL;
    if (dq && !v->n_outputs && !sn_map_get(names_a, dq->out[0]->name))
        chain(dq, found);
    else
        found->seen = v;
}

/* ------------------------------------------------------------------ bytes */
/* Where operators on bytes have the scale of their result; the zero point is behind it. */
static int scale_input(const sn_node *n)
{
    static const struct {
        const char *op_type;
        int input;
    } rows[] = {{"QuantizeLinear", 1},
                {"QLinearConv", 6},
                {"QLinearMatMul", 6},
                {"QLinearAdd", 6},
                {"QLinearMul", 6},
                {"QGemm", 7},
                {"QLinearConcat", 0},
                {"QLinearSigmoid", 3},
                {"QLinearLeakyRelu", 3},
                {"QLinearSoftmax", 3},
                {"QLinearGlobalAveragePool", 3},
                {"QLinearAveragePool", 3},
                {"QLinearReduceMean", 3},
                {"QLinearWhere", 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (sn_is_op(n, rows[i].op_type))
            return rows[i].input;
    return -1;
}

/* The node that knows the scale of v: its own, or the one whose bytes it only moves. */
static const sn_node *scale_owner(const sn_value *v)
{
    for (int steps = 0; v && v->producer && steps < 64; steps++) {
        const sn_node *n = v->producer;
        if (scale_input(n) >= 0)
            return n;
        static const char *const moves[] = {"MaxPool",  "Reshape", "Transpose",
                                            "Flatten",  "Squeeze", "Unsqueeze",
                                            "Identity", "Slice",   "Split"};
        bool moved = false;
        for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
            moved |= sn_is_op(n, moves[i]);
        v = moved && n->n_in ? n->in[0].value : NULL;
    }
    return NULL;
}

static sonde_status dequantized(sn_graph *g, int64_t opset, sn_value *bytes, sn_place_b *found,
                                sonde_error *err)
{
    sn_node *dq = reader(bytes, "DequantizeLinear");
    const sn_node *owner = dq ? NULL : scale_owner(bytes);
    if (dq)
        chain(dq, found);
    if (!owner || opset < 10)
        return SONDE_OK;
    const uint32_t scale = (uint32_t)scale_input(owner);
    if (scale + 1 >= owner->n_in || !owner->in[scale].value)
        return SONDE_OK;
    char name[512];
    (void)snprintf(name, sizeof name, "sonde.dequantized.%u", bytes->id);
    sn_value *out = NULL;
    SN_TRY(sn_graph_add_node(g, NULL, "", "DequantizeLinear", name, 3, 1, &dq, err));
    dq->opset = (int32_t)opset;
    dq->n_formal_in = 3;
    sn_node_set_input(dq, 0, bytes);
    sn_node_set_input(dq, 1, owner->in[scale].value);
    if (owner->in[scale + 1].value)
        sn_node_set_input(dq, 2, owner->in[scale + 1].value);
    SN_TRY(sn_graph_add_value(g, name, &out, err));
    sn_node_set_output(dq, 0, out);
    SN_TRY(sn_graph_add_origin(g, dq, NULL, err));
    chain(dq, found);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ all */
static sn_value *with_suffix(const sn_map *names, const char *name, const char *suffix)
{
    char text[1024];
    const int n = snprintf(text, sizeof text, "%s%s", name, suffix);
    return n > 0 && (size_t)n < sizeof text ? sn_map_get(names, text) : NULL;
}

sonde_status sn_match(sn_graph *g, int64_t opset, const sn_map *names, const sn_map *names_a,
                      const char *name, sn_place_b *found, sonde_error *err)
{
    *found = (sn_place_b){.seen = NULL};
    sn_value *v = sn_map_get(names, name);
    if (v) {
        if (v->producer)
            match_same_name(v, names_a, found);
        return SONDE_OK;
    }
    v = with_suffix(names, name, "_DequantizeLinear_Output");
    if (v && sn_is_op(v->producer, "DequantizeLinear")) {
        chain(v->producer, found);
        return SONDE_OK;
    }
    v = with_suffix(names, name, "_quantized");
    return v && v->producer ? dequantized(g, opset, v, found, err) : SONDE_OK;
}
