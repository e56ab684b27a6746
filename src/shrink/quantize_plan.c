/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes compute with integers. Products with constant weights do, and what lies between two
 * of them joins in, so that bytes stay bytes: Conv ► Relu ► MaxPool ► Add ► Conv. A node in between
 * needs bytes on all its inputs and somebody who reads its result as bytes; every node that lacks
 * one is taken out again until nothing changes. So nothing is rounded to bytes that only floats
 * read: the residual stream of a transformer and the outputs of the model stay floats.
 *
 * The forms are those that the pass fuse-qdq (and ONNX Runtime) compute with integers. */
#include <math.h>
#include <string.h>

#include "shrink/quantizer.h"

enum { MOST_PARTS = 10 }; /* of a Concat, as many as QLinearConcat takes */

static const char no_form[] = "no 8-bit form";
static const char feeds_floats[] = "only float operators read it";
static const char reads_floats[] = "float operators make its input";
static const char asked[] = "left in float as asked";
static const char in_body[] = "in a body of control flow, where nothing is calibrated";
static const char for_goal[] = "left in float for the goal";

static bool is_one_of(const sn_node *n, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sn_q_is(n, types[i]))
            return true;
    return false;
}
#define IS_ONE_OF(n, list) is_one_of((n), (list), sizeof(list) / sizeof *(list))

/* ------------------------------------------------------------------ what a node may be */
static bool is_number(const sn_value *v)
{
    return v && sn_value_is_const(v) && sn_tensor_count(v->fact.data) == 1;
}

static bool is_text(const sn_node *n, const char *name, const char *text)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_STRING && a->s.size == strlen(text) &&
           memcmp(a->s.data, text, a->s.size) == 0;
}

static bool moves(const sn_node *n)
{
    static const char *const types[] = {
        "Reshape", "Flatten",      "Transpose",    "Squeeze", "Unsqueeze", "Slice", "Gather",
        "Expand",  "DepthToSpace", "SpaceToDepth", "MaxPool", "Resize",    "Split", "Pad"};
    if (!IS_ONE_OF(n, types) || !sn_q_is_f32(n->in[0].value) || sn_value_is_const(n->in[0].value))
        return false;
    if (sn_q_is(n, "MaxPool"))
        return n->n_out < 2 || !n->out[1];
    if (sn_q_is(n, "Resize"))
        return (!sn_node_attr(n, "mode") || is_text(n, "mode", "nearest")) &&
               !is_text(n, "coordinate_transformation_mode", "tf_crop_and_resize");
    if (sn_q_is(n, "Pad"))
        return (n->n_in < 3 || !n->in[2].value || is_number(n->in[2].value)) && n->opset >= 13;
    return true;
}

/* The value that a node of elementwise functions is a function of; NULL: it is none. */
static const sn_value *root_of(const sn_quantizer *q, const sn_node *n)
{
    static const char *const types[] = {
        "Sigmoid",     "Tanh",     "Relu",     "Clip", "LeakyRelu", "Elu", "Selu", "HardSwish",
        "HardSigmoid", "Softplus", "Softsign", "Erf",  "Gelu",      "Exp", "Neg",  "Abs",
        "Sqrt",        "Mul",      "Add",      "Sub",  "Div",       "Pow", "Min",  "Max"};
    const sn_value *root = NULL;
    if (!IS_ONE_OF(n, types) || n->n_out != 1 || !sn_q_is_f32(n->out[0]))
        return NULL;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v || is_number(v))
            continue;
        if (!sn_q_is_f32(v) || sn_value_is_const(v))
            return NULL;
        const sn_q_node *from = v->producer ? &q->nodes[v->producer->id] : NULL;
        if (from && from->role == SN_Q_TABLE)
            v = from->root;
        if (root && root != v)
            return NULL;
        root = v;
    }
    return root;
}

/* Relu, or a Clip from 0 to something: what bytes from 0 on do anyhow. */
static bool is_folded(const sn_quantizer *q, const sn_node *n)
{
    const sn_value *v = n->n_in ? n->in[0].value : NULL;
    if (!v || !v->producer || v->n_uses != 1 || v->n_outputs)
        return false;
    const sn_q_role role = q->nodes[v->producer->id].role;
    if (role != SN_Q_PRODUCT && role != SN_Q_JOIN)
        return false;
    if (sn_q_is(n, "Relu"))
        return true;
    const sn_value *low = n->n_in > 1 ? n->in[1].value : NULL;
    const sn_value *high = n->n_in > 2 ? n->in[2].value : NULL;
    if (!sn_q_is(n, "Clip") || !is_number(low) || !sn_q_floats(low) || (high && !is_number(high)))
        return false;
    float x;
    sn_tensor_read(low->fact.data, 0, 1, &x);
    return x == 0.0f;
}

static bool joins(const sn_node *n)
{
    static const char *const two[] = {"Add", "Mul"};
    static const char *const one[] = {"AveragePool", "GlobalAveragePool"};
    const bool concat = sn_q_is(n, "Concat");
    if (!concat && !IS_ONE_OF(n, two) && !IS_ONE_OF(n, one))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!sn_q_is_f32(n->in[i].value) || sn_value_is_const(n->in[i].value))
            return false;
    return n->n_in <= MOST_PARTS;
}

/* Is one of the nodes that this one was made of, such as a normalisation in a convolution, to stay
 * in float? */
static bool excepts_origin(const sn_quantizer *q, const sn_node *n)
{
    const sn_origins *all = q->g->origins;
    for (uint32_t i = 0; all && i < n->n_origins; i++) {
        const sn_node *from =
            n->origins[i] < all->list.n ? all->list.data[n->origins[i]].node : NULL;
        if (from && sn_selection_excepts(&q->selection, from, NULL))
            return true;
    }
    return false;
}

/* Why the selection leaves it in float; NULL: it does not. Only products are selected: what lies
 * between them follows. */
static const char *not_selected(const sn_quantizer *q, const sn_node *n)
{
    const bool product = sn_q_is_product(n);
    const sn_value *w = product && n->n_in > 1 ? n->in[1].value : NULL;
    const char *weight = w && sn_value_is_const(w) ? w->name : NULL;
    if (sn_selection_excepts(&q->selection, n, weight) || excepts_origin(q, n))
        return asked;
    return product && !sn_selection_has(&q->selection, n, weight) ? "not selected" : NULL;
}

static void propose_product(const sn_quantizer *q, const sn_node *n, sn_q_node *d)
{
    sn_q_product p;
    *d = (sn_q_node){.why = not_selected(q, n), .sqnr_db = NAN};
    if (!d->why)
        d->why = sn_q_product_of(n, &p);
    if (!d->why && p.half && q->o.kind == SONDE_QUANTIZE_STATIC)
        d->why = "it computes in f16, and static quantisation takes f32";
    d->role = d->why ? SN_Q_FLOAT : SN_Q_PRODUCT;
}

static void propose(sn_quantizer *q, const sn_node *n)
{
    sn_q_node *d = &q->nodes[n->id];
    *d = (sn_q_node){.why = no_form, .sqnr_db = NAN};
    const char *why = q->left[n->id] ? for_goal : not_selected(q, n);
    if (why)
        d->why = why;
    else if (sn_q_is_product(n))
        propose_product(q, n, d);
    else if (n->n_in == 0 || n->n_out == 0 || !n->out[0])
        return;
    else if (is_folded(q, n))
        d->role = SN_Q_FOLDED;
    else if ((d->root = root_of(q, n)))
        d->role = SN_Q_TABLE;
    else if (joins(n))
        d->role = SN_Q_JOIN;
    else if (moves(n))
        d->role = SN_Q_MOVE;
}

/* ------------------------------------------------------------------ taking out */
bool sn_q_reads_bytes(const sn_quantizer *q, const sn_node *n, uint32_t k)
{
    const sn_q_node *d = &q->nodes[n->id];
    const sn_value *v = n->in[k].value;
    if (!v || sn_value_is_const(v))
        return false;
    switch (d->role) {
    case SN_Q_PRODUCT:
    case SN_Q_MOVE:
        return k == 0;
    case SN_Q_JOIN:
        return true;
    case SN_Q_TABLE: {
        const sn_q_node *from = v->producer ? &q->nodes[v->producer->id] : NULL;
        return !(from && from->role == SN_Q_TABLE && from->root == d->root);
    }
    default:
        return false;
    }
}

/* A node of integers makes v, or a product reads it as bytes anyhow. */
static bool is_at_hand(const sn_quantizer *q, const sn_value *v)
{
    if (v->producer && q->nodes[v->producer->id].role != SN_Q_FLOAT)
        return true;
    for (const sn_edge *e = v->uses; e; e = e->next)
        if (e->index == 0 && q->nodes[e->node->id].role == SN_Q_PRODUCT)
            return true;
    return false;
}

static bool is_wanted(const sn_quantizer *q, const sn_value *v)
{
    for (const sn_edge *e = v->uses; e; e = e->next) {
        const sn_q_role role = q->nodes[e->node->id].role;
        if (role == SN_Q_JOIN || role == SN_Q_TABLE || (role != SN_Q_FLOAT && e->index == 0))
            return true;
    }
    return false;
}

static const char *objection(const sn_quantizer *q, const sn_node *n)
{
    const sn_q_node *d = &q->nodes[n->id];
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        const bool matters = sn_q_reads_bytes(q, n, i) || (d->role == SN_Q_FOLDED && i == 0) ||
                             (d->role == SN_Q_TABLE && v && !is_number(v));
        if (matters && !is_at_hand(q, v))
            return reads_floats;
    }
    if (d->role == SN_Q_TABLE && !is_at_hand(q, d->root))
        return reads_floats;
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] && (n->out[o]->n_uses || n->out[o]->n_outputs) && !is_wanted(q, n->out[o]))
            return feeds_floats;
    return NULL;
}

static void take_out(sn_quantizer *q)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (const sn_node *n = q->g->last; n; n = n->prev) {
            sn_q_node *d = &q->nodes[n->id];
            if (d->role == SN_Q_FLOAT || d->role == SN_Q_PRODUCT)
                continue;
            const char *why = objection(q, n);
            if (!why)
                continue;
            d->role = SN_Q_FLOAT;
            d->why = why;
            changed = true;
        }
    }
}

/* ------------------------------------------------------------------ other kinds, and bodies */
/* The other kinds know products of matrices alone; blocks are of one matrix. */
static void keep_matrices(const sn_quantizer *q, const sn_q_scope *s)
{
    for (const sn_node *n = s->g->first; n; n = n->next) {
        sn_q_node *d = &s->nodes[n->id];
        const bool matrix = sn_q_is(n, "MatMul") || sn_q_is(n, "Gemm");
        if (d->role == SN_Q_FLOAT)
            continue;
        if (d->role != SN_Q_PRODUCT || !matrix)
            *d = (sn_q_node){.why = "only static quantisation has it", .sqnr_db = NAN};
        else if (q->o.kind == SONDE_QUANTIZE_WEIGHTS && n->in[1].value->fact.data->rank != 2)
            *d = (sn_q_node){.why = "its weights are no matrix", .sqnr_db = NAN};
    }
}

/* Ranges are known of the main graph alone: what a body computes cannot be asked for. */
static void propose_in_body(const sn_quantizer *q, const sn_node *n, sn_q_node *d)
{
    *d = (sn_q_node){.why = no_form, .sqnr_db = NAN};
    if (sn_q_is_product(n))
        propose_product(q, n, d);
    if (d->role == SN_Q_PRODUCT && q->o.kind == SONDE_QUANTIZE_STATIC)
        *d = (sn_q_node){.why = in_body, .sqnr_db = NAN};
}

/* ------------------------------------------------------------------ values */
static void mark_values(sn_quantizer *q)
{
    for (size_t i = 0; i < q->g->values.n; i++) {
        sn_q_value *v = &q->values[i];
        *v = (sn_q_value){.scale_of = (uint32_t)i};
    }
    for (const sn_node *n = q->g->first; n; n = n->next) {
        const sn_q_node *d = &q->nodes[n->id];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (d->role != SN_Q_FLOAT && sn_q_reads_bytes(q, n, k))
                q->values[n->in[k].value->id].bytes = true;
        if (d->role == SN_Q_PRODUCT && !q->o.no_bias_correction) {
            sn_q_value *x = &q->values[n->in[0].value->id];
            const bool rows = sn_q_is(n, "Gemm") || sn_q_is(n, "MatMul");
            x->wants_means = true;
            x->axis = rows ? -1 : 1;
        }
        for (uint32_t o = 0; o < n->n_out && d->role == SN_Q_MOVE; o++)
            if (n->out[o])
                q->values[n->out[o]->id].scale_of = q->values[n->in[0].value->id].scale_of;
    }
}

sonde_status sn_q_plan(sn_quantizer *q)
{
    for (const sn_node *n = q->g->first; n; n = n->next)
        propose(q, n);
    for (size_t i = 1; i < q->scopes.n; i++) {
        const sn_q_scope *s = &q->scopes.data[i];
        for (const sn_node *n = s->g->first; n; n = n->next)
            propose_in_body(q, n, &s->nodes[n->id]);
    }
    if (q->o.kind == SONDE_QUANTIZE_STATIC)
        take_out(q);
    else
        for (size_t i = 0; i < q->scopes.n; i++)
            keep_matrices(q, &q->scopes.data[i]);
    mark_values(q);
    return SONDE_OK;
}
