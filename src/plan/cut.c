/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a graph down to what leads from the values that are fed to those that are asked for. */
#include "plan/cut.h"

#include "base/map.h"

static sonde_status find_value(const sn_map *names, const char *name, const char *role,
                               sn_value **v, sonde_error *err)
{
    *v = sn_map_get(names, name);
    if (!*v)
        return sn_fail(err, SONDE_NOT_FOUND, "the model has no value named '%s' to use as %s", name,
                       role);
    return SONDE_OK;
}

/* Makes `outputs` the graph's outputs. */
static sonde_status cut_outputs(sn_graph *g, const sn_map *names, const sn_program_config *cfg,
                                sonde_error *err)
{
    for (size_t i = 0; i < g->outputs.n; i++)
        g->outputs.data[i]->n_outputs--;
    g->outputs.n = 0;
    for (size_t i = 0; i < cfg->n_outputs; i++) {
        sn_value *v;
        SN_TRY(find_value(names, cfg->outputs[i], "an output", &v, err));
        SN_TRY(sn_graph_add_output(g, v, err));
    }
    return SONDE_OK;
}

static bool any_inner_feed(const sn_map *names, const sn_program_config *cfg)
{
    for (size_t i = 0; i < cfg->n_feeds; i++) {
        const sn_value *v = sn_map_get(names, cfg->feeds[i]);
        if (v && v->producer)
            return true;
    }
    return false;
}

/* The type of an inner value that is fed: what its node would make, as far as inference knows
 * numbers. A symbol says that a dimension equals another one: true of what the node makes, but
 * whoever feeds the value may have it from elsewhere (a Loop that never ran has outputs without
 * elements). Operators that need equal dimensions check that themselves. */
static sonde_status fed_type(sn_graph *g, const sn_type *made, sn_type *type, sonde_error *err)
{
    *type = *made;
    if (made->kind != SN_KIND_TENSOR || made->rank <= 0)
        return SONDE_OK;
    sn_dim *dims = SN_NEW_N(g->arena, sn_dim, made->rank);
    if (!dims)
        return sn_fail_memory(err, sizeof *dims * (size_t)made->rank);
    for (int i = 0; i < made->rank; i++)
        dims[i] = sn_dim_known(made->dims[i]) ? made->dims[i] : SN_DIM_UNKNOWN;
    type->dims = dims;
    return SONDE_OK;
}

/* Files are often wrong about the shapes of what they compute themselves, and no run minds. Where
 * such a value is fed instead, its feed is held against what inference finds without these
 * declarations. */
static sonde_status retype_inner_feeds(sn_graph *g, const sn_graph *whole, const sn_map *names,
                                       const sn_program_config *cfg, sonde_error *err)
{
    sn_graph *found;
    sonde_error ignored; /* a model that contradicts itself: nothing is known */
    SN_TRY(sn_graph_clone(whole, g->arena, &found, err));
    sonde_status st = sn_ops_resolve(found, err);
    const bool known = !st && !sn_ops_infer_undeclared(found, &ignored);
    for (size_t i = 0; i < cfg->n_feeds && !st; i++) {
        sn_value *v = sn_map_get(names, cfg->feeds[i]);
        if (!v || !v->producer)
            continue;
        const sn_type nothing = {
            .kind = v->fact.type.kind, .dtype = v->fact.type.dtype, .rank = -1};
        if (known)
            st = fed_type(g, &found->values.data[v->id]->fact.type, &v->fact.type, err);
        else if (v->fact.type.kind == SN_KIND_TENSOR)
            v->fact.type = nothing;
    }
    sn_graph_free(found);
    return st;
}

/* Makes `feeds` the graph's inputs: an inner value loses its producer, a default its constant. */
static sonde_status cut_feeds(sn_graph *g, const sn_graph *whole, const sn_map *names,
                              const sn_program_config *cfg, sonde_error *err)
{
    if (any_inner_feed(names, cfg))
        SN_TRY(retype_inner_feeds(g, whole, names, cfg, err));
    for (size_t i = 0; i < g->inputs.n; i++)
        g->inputs.data[i]->is_input = false;
    g->inputs.n = 0;
    for (size_t i = 0; i < cfg->n_feeds; i++) {
        sn_value *v;
        SN_TRY(find_value(names, cfg->feeds[i], "an input", &v, err));
        if (v->is_input)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "input '%s' is given twice", cfg->feeds[i]);
        if (v->producer) {
            v->producer->out[v->output_index] = NULL;
            v->producer = NULL;
        }
        v->fact.data = NULL;
        v->fact.ints = NULL;
        SN_TRY(sn_graph_add_input(g, v, err));
    }
    g->n_formal_inputs = (uint32_t)g->inputs.n;
    return SONDE_OK;
}

/* Inputs with a default (an initializer of the same name) are constants unless they are fed. */
static void drop_defaults(sn_graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->inputs.n; i++) {
        sn_value *v = g->inputs.data[i];
        if (v->fact.data)
            v->is_input = false;
        else
            g->inputs.data[kept++] = v;
    }
    g->inputs.n = kept;
    g->n_formal_inputs = (uint32_t)kept;
}

/* Removes what the outputs do not need, walking backwards: the list is in topological order. */
static sonde_status prune(sn_graph *g, sonde_error *err)
{
    for (sn_node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        bool needed = false;
        for (uint32_t o = 0; o < n->n_out; o++)
            needed |= n->out[o] && (n->out[o]->n_uses || n->out[o]->n_outputs);
        if (!needed)
            SN_TRY(sn_graph_remove(g, n, err));
    }
    return SONDE_OK;
}

/* A value read by a step, or returned, that nothing provides. */
static sonde_status check_provided(const sn_graph *g, sonde_error *err)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if ((v->n_uses || v->n_outputs) && !v->producer && !v->fact.data && !v->is_input)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "input '%s' is missing: the requested outputs depend on it", v->name);
    }
    return SONDE_OK;
}

sonde_status sn_cut_graph(sn_graph *g, const sn_graph *whole, const sn_program_config *cfg,
                          sonde_error *err)
{
    if (!cfg->feeds && !cfg->outputs) {
        drop_defaults(g);
        return SONDE_OK;
    }
    sn_map names;
    sn_map_init(&names, g->alloc);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < g->values.n && !st; i++)
        if (*g->values.data[i]->name &&
            !sn_map_put(&names, g->values.data[i]->name, g->values.data[i], NULL))
            st = sn_fail_memory(err, sizeof(sn_map_entry));
    if (!st && cfg->outputs)
        st = cut_outputs(g, &names, cfg, err);
    if (!st && cfg->feeds)
        st = cut_feeds(g, whole, &names, cfg, err);
    else if (!st)
        drop_defaults(g);
    sn_map_free(&names);
    SN_TRY(st);
    SN_TRY(prune(g, err));
    return check_provided(g, err);
}
