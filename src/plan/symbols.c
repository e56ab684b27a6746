/* SPDX-License-Identifier: Apache-2.0 */
/* Inference gives each unknown dimension of an input a symbol of its own, so it is enough to make
 * the repeated ones unknown. */
#include "plan/symbols.h"

#include <string.h>

/* The symbol of dim d of a tensor; 0: it has none. */
static uint32_t symbol_of(const sn_type *t, int d)
{
    return sn_dim_known(t->dims[d]) ? 0 : sn_dim_symbol_id(t->dims[d]);
}

/* What the inputs before dim `last` of input `input` say of a symbol; false: nothing. */
static bool said_before(const sn_program *p, const sn_slot *const *in, uint32_t input, int last,
                        uint32_t symbol, int64_t *size)
{
    for (uint32_t i = 0; i <= input; i++) {
        const sn_type *t = &p->graph->inputs.data[i]->fact.type;
        if (t->kind != SN_KIND_TENSOR || in[i]->kind != SN_KIND_TENSOR || t->rank != in[i]->t.rank)
            continue;
        for (int d = 0; d < (i == input ? last : t->rank); d++)
            if (symbol_of(t, d) == symbol) {
                *size = in[i]->t.dims[d];
                return true;
            }
    }
    return false;
}

bool sn_symbols_clash(const sn_program *p, const sn_slot *const *in, sn_symbol_clash *clash)
{
    const sn_graph *g = p->graph;
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const sn_type *t = &g->inputs.data[i]->fact.type;
        if (t->kind != SN_KIND_TENSOR || in[i]->kind != SN_KIND_TENSOR || t->rank != in[i]->t.rank)
            continue;
        for (int d = 0; d < t->rank; d++) {
            const uint32_t symbol = symbol_of(t, d);
            int64_t other;
            if (!symbol || symbol > g->symbols.n || !g->symbols.data[symbol - 1] ||
                !said_before(p, in, i, d, symbol, &other) || other == in[i]->t.dims[d])
                continue;
            *clash = (sn_symbol_clash){g->inputs.data[i]->name, g->symbols.data[symbol - 1],
                                       in[i]->t.dims[d], other};
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ apart */

/* `seen`: by symbol, whether an input has it already; NULL: none may stay. */
static sonde_status part_value(sn_graph *g, sn_value *v, uint8_t *seen, size_t n_seen,
                               sonde_error *err)
{
    sn_type *t = &v->fact.type;
    if (t->kind != SN_KIND_TENSOR || t->rank <= 0 || v->fact.data)
        return SONDE_OK;
    sn_dim *dims = SN_NEW_N(g->arena, sn_dim, t->rank);
    if (!dims)
        return sn_fail_memory(err, (size_t)t->rank * sizeof *dims);
    for (int d = 0; d < t->rank; d++) {
        const uint32_t symbol = symbol_of(t, d);
        const bool first = symbol && symbol <= n_seen && !seen[symbol - 1];
        dims[d] = sn_dim_known(t->dims[d]) || first ? t->dims[d] : SN_DIM_UNKNOWN;
        if (first)
            seen[symbol - 1] = 1;
    }
    t->dims = dims;
    return SONDE_OK;
}

/* Bodies declare their inputs in the same words. */
static sonde_status part_bodies(sn_graph *g, sonde_error *err)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++) {
            for (size_t i = 0; i < body->inputs.n; i++)
                SN_TRY(part_value(body, body->inputs.data[i], NULL, 0, err));
            SN_TRY(part_bodies(body, err)); /* depth is bounded by sn_graph_new */
        }
    }
    return SONDE_OK;
}

sonde_status sn_symbols_part(sn_graph *g, sonde_error *err)
{
    uint8_t *seen = SN_NEW_N(g->arena, uint8_t, g->symbols.n + 1);
    if (!seen)
        return sn_fail_memory(err, g->symbols.n);
    for (size_t i = 0; i < g->inputs.n; i++)
        SN_TRY(part_value(g, g->inputs.data[i], seen, g->symbols.n, err));
    sn_ops_forget_shapes(g);
    return part_bodies(g, err);
}
