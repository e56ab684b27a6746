/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that several nodes read are written once. What was made of a tensor is found by its
 * address, which graphs of control flow share, and used again where form and scales are the same.
 * The file has a constant of two bodies once if the main graph has it. */
#include <string.h>

#include "shrink/quantizer.h"

static sn_q_made *first_of(const sn_q_writer *w, const sn_tensor *of)
{
    return sn_map_get_address(&w->made, of);
}

sonde_status sn_q_made_add(sn_q_writer *w, const sn_q_made *one)
{
    sn_q_made *own = SN_NEW(&w->m->arena, sn_q_made);
    if (!own)
        return sn_fail_memory(w->err, sizeof *own);
    *own = *one;
    own->g = w->g;
    own->next = first_of(w, own->of);
    if (!sn_map_put_address(&w->made, own->of, own, NULL))
        return sn_fail_memory(w->err, sizeof(sn_map_entry));
    return SONDE_OK;
}

static bool same_scales(const sn_q_made *m, const float *scales)
{
    const sn_tensor *t = m->values[1]->fact.data;
    return !scales || memcmp(t->data, scales, t->bytes) == 0;
}

sonde_status sn_q_made_find(sn_q_writer *w, const sn_tensor *of, int form, const float *scales,
                            const sn_q_made **found)
{
    const sn_q_made *other = NULL;
    *found = NULL;
    for (const sn_q_made *m = first_of(w, of); m; m = m->next) {
        if (m->form != form || !same_scales(m, scales))
            continue;
        if (m->g == w->g) {
            *found = m;
            return SONDE_OK;
        }
        other = m;
    }
    if (!other)
        return SONDE_OK;
    sn_q_made own = *other;
    for (size_t i = 0; i < SN_Q_PARTS && own.values[i]; i++) {
        SN_TRY(sn_graph_add_constant(w->g, other->values[i]->name, other->values[i]->fact.data,
                                     &own.values[i], w->err));
        own.values[i]->is_initializer = true;
    }
    SN_TRY(sn_q_made_add(w, &own));
    *found = first_of(w, of);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ constants of bodies */
typedef struct sharing {
    sn_graph *root;
    sn_map seen; /* contents ► a graph that has them, at last the root */
    sonde_error *err;
} sharing;

static sonde_status share_body(sharing *s, sn_graph *g)
{
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i], *shared = NULL;
        if (!sn_value_is_const(v) || (!v->n_uses && !v->n_outputs))
            continue;
        const sn_graph *has = sn_map_get_address(&s->seen, v->fact.data);
        if (has == s->root || has == g)
            continue;
        if (has)
            SN_TRY(sn_graph_add_constant(s->root, v->name, v->fact.data, &shared, s->err));
        if (!sn_map_put_address(&s->seen, v->fact.data, has ? s->root : g, NULL))
            return sn_fail_memory(s->err, sizeof(sn_map_entry));
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(share_body(s, body)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

sonde_status sn_q_share_constants(sn_graph *g, sonde_error *err)
{
    sharing s = {.root = g, .err = err};
    sn_map_init(&s.seen, g->alloc);
    const sonde_status st = share_body(&s, g);
    sn_map_free(&s.seen);
    return st;
}
