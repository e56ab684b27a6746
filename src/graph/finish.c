/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a model between reading and use; the larger steps are in files of their own. */
#include "graph/finish.h"

/* A value has one definition; a reader that links a second one is caught here. */
static sonde_status check_values(const sn_graph *g, sonde_error *err)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->producer && (v->is_input || v->is_initializer))
            return sn_fail(err, SONDE_INVALID_MODEL,
                           "'%.300s' is defined twice: by a node and as an %s", v->name,
                           v->is_input ? "input" : "initializer");
    }
    return SONDE_OK;
}

static sonde_status finish_graph(sn_model *m, sn_graph *g, sonde_error *err)
{
    char text[400];
    g->origins = &m->origins;
    SN_TRY(check_values(g, err));
    SN_TRY(sn_graph_sort(g, err));
    for (sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        if (n->opset < 0)
            return sn_fail(
                err, SONDE_INVALID_MODEL, "%s has domain '%.200s', which the model does not import",
                sn_node_text(n, text, sizeof text), n->domain[0] ? n->domain : "ai.onnx");
        for (uint32_t i = 0; i < n->n_attrs; i++)
            if (n->attrs[i].ref)
                return sn_fail(err, SONDE_INVALID_MODEL,
                               "attribute '%.100s' of %s refers to a function's attribute outside "
                               "of a function",
                               n->attrs[i].name, sn_node_text(n, text, sizeof text));
        SN_TRY(sn_graph_add_origin(g, n, n->function, err));
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            SN_TRY(finish_graph(m, body, err));
    }
    return SONDE_OK;
}

sonde_status sn_model_finish(sn_model *m, sonde_error *err)
{
    m->origins.list.n = 0; /* numbered anew, in the order of the finished graph */
    SN_TRY(sn_captures_resolve(m->graph, "the model", err));
    sn_graph_set_opsets(m, m->graph, m->opsets.data, m->opsets.n);
    SN_TRY(sn_functions_inline(m, err));
    return finish_graph(m, m->graph, err);
}
