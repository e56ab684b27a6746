/* SPDX-License-Identifier: Apache-2.0 */
/* The float model as the quantiser wants it: a clone of the original with the opset that scales per
 * channel need, Constant nodes and known shapes folded, batch normalisations and padding in their
 * convolutions, and weights equalised where that is asked for. It computes the same results; it is
 * what calibration runs and what the quantised model is compared with. */
#include <string.h>

#include "ops/framework/op.h"
#include "passes/pass.h"
#include "shrink/quantizer.h"

enum {
    OPSET = 13,        /* DequantizeLinear has an axis, MaxPool takes bytes */
    DYNAMIC_OPSET = 11 /* DynamicQuantizeLinear */
};

/* The passes that leave standard ONNX behind and make more of a model quantisable. */
static const char *const wanted[] = {"fold-constants", "constant-shapes", "dead-code",
                                     "identity",       "pad-into",        "conv-batchnorm"};

/* ------------------------------------------------------------------ rewriting */
static sonde_status run_passes(sn_model *m, sonde_error *err)
{
    const char *others[64];
    size_t n = 0;
    const sn_pass *p;
    for (size_t k = 0; (p = sn_pass_row(k)) && n < sizeof others / sizeof *others; k++) {
        bool keep = false;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            keep = keep || strcmp(p->name, wanted[i]) == 0;
        if (!keep)
            others[n++] = p->name;
    }
    sn_pass_env env = {.ctx = m->ctx,
                       .cpu_flags = m->ctx->cpu.flags,
                       .precision = SONDE_PRECISION_F32,
                       .buffers = &m->buffers,
                       .err = err};
    SN_TRY(sn_ops_resolve(m->graph, err));
    SN_TRY(sn_ops_infer(m->graph, err));
    return sn_passes_run(m->graph, &env, others, n, false);
}

/* Passes leave factors of weights and joined weights for later: here they are numbers. `made` has
 * the new tensor of an old one: graphs share constants by their address. */
static sonde_status make_plain(sn_model *m, sn_graph *g, sn_map *made, sonde_error *err)
{
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i];
        const sn_tensor *t = v->fact.data;
        if (!t || v->producer || (!v->n_uses && !v->n_outputs) ||
            (sn_tensor_is_readable(t) && !t->scale && !t->parts))
            continue;
        sn_tensor *own = sn_map_get_address(made, t);
        if (!own) {
            own = SN_NEW(&m->arena, sn_tensor);
            if (!own)
                return sn_fail_memory(err, sizeof *own);
            *own = *t;
            SN_TRY(sn_tensor_make_readable(own, &m->buffers, m->ctx->alloc, err));
            if (!sn_map_put_address(made, t, own, NULL))
                return sn_fail_memory(err, sizeof(sn_map_entry));
        }
        v->fact.data = own;
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(make_plain(m, body, made, err)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

/* An output that a pass took away with its Identity, or folded, has its name back. */
static sonde_status name_outputs(sn_model *m, const sn_graph *from, sonde_error *err)
{
    sn_graph *g = m->graph;
    for (size_t i = 0; i < g->outputs.n; i++) {
        sn_value *v = g->outputs.data[i], *own = NULL;
        const char *name = from->outputs.data[i]->name;
        sn_node *node;
        if (strcmp(v->name, name) == 0)
            continue;
        if (v->producer && v->n_outputs == 1) {
            v->name = name;
            continue;
        }
        SN_TRY(sn_graph_add_node(g, NULL, "", "Identity", name, 1, 1, &node, err));
        SN_TRY(sn_graph_add_value(g, name, &own, err));
        node->opset = (int32_t)sn_model_opset(m, "");
        node->n_formal_in = 1;
        own->fact.type = v->fact.type;
        sn_node_set_input(node, 0, v);
        sn_node_set_output(node, 0, own);
        v->n_outputs--;
        own->n_outputs = 1;
        g->outputs.data[i] = own;
    }
    return SONDE_OK;
}

/* Values that passes made may be called as others are: a name belongs to one value, and what nodes
 * make comes before constants. */
static sonde_status name_values(sn_model *m, sonde_error *err)
{
    sn_graph *g = m->graph;
    sn_map used;
    sn_map_init(&used, m->ctx->alloc);
    sonde_status st = SONDE_OK;
    for (int constants = 0; constants < 2 && st == SONDE_OK; constants++)
        for (size_t i = 0; i < g->values.n && st == SONDE_OK; i++) {
            sn_value *v = g->values.data[i];
            if ((v->fact.data && !v->producer && !v->is_input) != (constants == 1))
                continue;
            const char *base = v->shown && v->shown[0] ? v->shown : v->name, *name = base;
            if (!constants && v->name[0])
                base = name = v->name;
            for (unsigned k = 1; st == SONDE_OK && (!name[0] || sn_map_get(&used, name)); k++) {
                name = sn_arena_printf(&m->arena, "%s_%u", base[0] ? base : "value", k);
                if (!name)
                    st = sn_fail_memory(err, strlen(base));
            }
            if (st == SONDE_OK && !sn_map_put(&used, name, v, NULL))
                st = sn_fail_memory(err, strlen(name));
            if (st == SONDE_OK)
                v->name = name;
        }
    sn_map_free(&used);
    return st;
}

/* ------------------------------------------------------------------ already quantised? */
static bool is_quantized(const sn_node *n)
{
    static const char *const types[] = {
        "QuantizeLinear", "DequantizeLinear",    "DynamicQuantizeLinear",
        "MatMulInteger",  "ConvInteger",         "MatMulNBits",
        "QGemm",          "MatMulIntegerToFloat"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(n->op_type, types[i]) == 0)
            return true;
    return strncmp(n->op_type, "QLinear", 7) == 0 ||
           strncmp(n->op_type, "DynamicQuantize", 15) == 0;
}

static sonde_status check_float(const sn_graph *g, sonde_error *err)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_graph *body;
        if (is_quantized(n)) {
            char text[400];
            return sn_fail(err, SONDE_UNSUPPORTED,
                           "the model is quantised already (%s); start from the float model, or "
                           "quantise what is left in float with --force",
                           sn_node_text(n, text, sizeof text));
        }
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(check_float(body, err)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

static sonde_status fill(sn_quantizer *q, sn_model *m)
{
    SN_TRY(sn_q_copy_model(m, q->source->core, q->err));
    q->opset_before = sn_model_opset(m, "");
    const int64_t least = q->o.kind == SONDE_QUANTIZE_STATIC    ? OPSET
                          : q->o.kind == SONDE_QUANTIZE_DYNAMIC ? DYNAMIC_OPSET
                                                                : 0;
    if (q->opset_before >= 0 && q->opset_before < least)
        SN_TRY(sn_q_raise_opset(m, OPSET, q->err));
    if (q->o.kind == SONDE_QUANTIZE_STATIC)
        SN_TRY(sn_q_widen(m, q->source->core->graph, &q->widened, q->err));
    SN_TRY(run_passes(m, q->err));
    SN_TRY(name_outputs(m, q->source->core->graph, q->err));
    sn_map made;
    sn_map_init(&made, m->ctx->alloc);
    const sonde_status st = make_plain(m, m->graph, &made, q->err);
    sn_map_free(&made);
    SN_TRY(st);
    SN_TRY(sn_q_plain_gemms(m, m->graph, q->err));
    sn_graph_drop_values(m->graph);
    return name_values(m, q->err);
}

static sonde_status add_scope(sn_quantizer *q, sn_graph *g)
{
    const sn_q_scope s = {.g = g,
                          .g_nodes = SN_NEW_N(&q->arena, const sn_node *, g->n_nodes + 1),
                          .nodes = SN_NEW_N(&q->arena, sn_q_node, g->n_nodes + 1)};
    if (!s.g_nodes || !s.nodes || !sn_vec_push(&q->scopes, &q->context->alloc, s))
        return sn_fail_memory(q->err, g->n_nodes * sizeof *s.nodes);
    for (sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        s.g_nodes[n->id] = n;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(add_scope(q, body)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

sonde_status sn_q_prepare(sn_quantizer *q)
{
    sn_model *m = NULL;
    if (!q->o.force)
        SN_TRY(check_float(q->source->core->graph, q->err));
    SN_TRY(sn_model_new(&m, &q->context->core, q->err));
    const sonde_status st = fill(q, m);
    if (st != SONDE_OK) {
        sn_model_unref(m);
        return st;
    }
    SN_TRY(sn_api_model(q->context, m, q->source->name, &q->prepared, q->err));
    q->g = m->graph;
    if (q->o.equalize)
        SN_TRY(sn_q_equalize(q));
    SN_TRY(add_scope(q, q->g));
    q->nodes = q->scopes.data[0].nodes;
    q->g_nodes = q->scopes.data[0].g_nodes;
    q->left = SN_NEW_N(&q->arena, bool, q->g->n_nodes + 1);
    q->values = SN_NEW_N(&q->arena, sn_q_value, q->g->values.n + 1);
    if (!q->left || !q->values)
        return sn_fail_memory(q->err, q->g->values.n * sizeof *q->values);
    return SONDE_OK;
}
