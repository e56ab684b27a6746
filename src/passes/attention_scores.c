/* SPDX-License-Identifier: Apache-2.0 */
/* Matching scores; see attention_scores.h. A mask keeps the rank of the scores it was added to and
 * is understood against the highest rank there is. So where ranks change, it must not have an axis
 * that would mean something else there: only one of size 1. */
#include "passes/attention_scores.h"

#include <math.h>

#include "ops/fused/attention.h"
#include "passes/view.h"

enum { DEPTH = 8 };

bool sn_scores_fit(const sn_value *v)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) && v->fact.type.rank >= 3 &&
           v->fact.type.rank <= 5;
}

/* Dim `back` axes before the end; 1 where there is none. */
static sn_dim dim_back(const sn_type *t, int back)
{
    return back <= t->rank ? t->dims[t->rank - back] : 1;
}

/* ------------------------------------------------------------------ ranks */
/* What the axes of scores mean, seen at a value of rank 4 or 5; false: it contradicts the rest. */
static bool take_rank(sn_scores *s, const sn_type *t)
{
    if (t->rank > s->rank)
        s->rank = t->rank;
    if (t->rank == 3)
        return true;
    const sn_dim heads = dim_back(t, 3), windows = t->rank == 5 ? dim_back(t, 4) : 1;
    if (!sn_dim_known(heads) || !sn_dim_known(windows) || heads < 1 || windows < 1 ||
        (sn_dim_known(s->heads) && s->heads != heads) ||
        (t->rank == 5 && s->windows > 1 && s->windows != windows))
        return false;
    s->heads = heads;
    s->windows = windows > 1 ? windows : s->windows;
    return true;
}

sn_value *sn_scores_regrouped(sn_scores *s, const sn_node *n)
{
    if (!sn_node_is(n, "Reshape") || !sn_scores_fit(n->in[0].value) || !sn_scores_fit(n->out[0]))
        return NULL;
    const sn_type *from = &n->in[0].value->fact.type, *to = &n->out[0]->fact.type;
    if (!sn_dim_same(dim_back(from, 1), dim_back(to, 1)) ||
        !sn_dim_same(dim_back(from, 2), dim_back(to, 2)) || !take_rank(s, from) ||
        !take_rank(s, to))
        return NULL;
    return n->in[0].value;
}

/* ------------------------------------------------------------------ what is done to them */
/* A mask that broadcasts into scores without giving them more axes or heads. */
static bool mask_fits(const sn_value *mask, sn_dtype dtype, const sn_value *scores)
{
    const sn_type *t = &scores->fact.type, *m = &mask->fact.type;
    if (!sn_value_is_dtype(mask, dtype) || m->rank < 0 || m->rank > t->rank)
        return false;
    for (int back = 3; t->rank >= 4 && back <= (t->rank == 5 ? 5 : 3); back++)
        if (dim_back(m, back) != 1 && dim_back(m, back) != dim_back(t, back))
            return false;
    return true;
}

static bool leads_to_product(const sn_value *v, int depth)
{
    const sn_node *n = v ? v->producer : NULL;
    if (!n || !sn_scores_fit(v) || !sn_value_only_reader(v))
        return false;
    if (sn_node_is(n, "MatMul"))
        return true;
    if (depth == 0)
        return false;
    const bool where = sn_node_is(n, "Where");
    if (where || sn_node_is(n, "Add") || sn_node_is(n, "Mul"))
        return leads_to_product(n->in[where].value, depth - 1) ||
               leads_to_product(n->in[where + 1].value, depth - 1);
    return (sn_node_is(n, "Div") || sn_node_is(n, "Reshape")) &&
           leads_to_product(n->in[0].value, depth - 1);
}

/* What is found now is added before anything is hidden. */
static bool may_add(const sn_scores *s)
{
    return !s->keep || s->hide == SN_FUSED_ATTENTION_FILL_AFTER_BIAS;
}

/* scores + mask; returns the scores. */
static sn_value *match_term(sn_scores *s, sn_node *n)
{
    if (!sn_node_is(n, "Add") || n->n_in != 2 || s->n_terms == SN_SCORES_TERMS || !may_add(s))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        sn_value *scores = n->in[i].value, *mask = n->in[1 - i].value;
        if (!mask || scores == mask || !leads_to_product(scores, DEPTH) ||
            !mask_fits(mask, SONDE_DTYPE_F32, scores))
            continue;
        s->adders[s->n_terms] = n;
        s->terms[s->n_terms++] = mask;
        return scores;
    }
    return NULL;
}

/* Where(c, scores, number) or the other way round; returns the scores. */
static sn_value *match_keep(sn_scores *s, const sn_node *n)
{
    for (uint32_t i = 1; i < 3 && !s->keep && sn_node_is(n, "Where") && n->n_in == 3; i++) {
        sn_value *scores = n->in[i].value, *number = n->in[3 - i].value;
        if (!leads_to_product(scores, DEPTH) || !sn_value_scalar_f32(number, &s->filter) ||
            number->fact.data->rank > scores->fact.type.rank || isnan(s->filter) ||
            !n->in[0].value || !mask_fits(n->in[0].value, SONDE_DTYPE_BOOL, scores))
            continue;
        s->keep = n->in[0].value;
        s->hidden = i == 1 ? 0 : 1;
        /* -inf stays what it is, whatever is added. */
        s->hide = s->n_terms && s->filter != -INFINITY ? SN_FUSED_ATTENTION_FILL_BEFORE_BIAS
                                                       : SN_FUSED_ATTENTION_FILL_AFTER_BIAS;
        return scores;
    }
    return NULL;
}

/* scores times one number of each head, or divided by it; returns the scores. */
static sn_value *match_scales(sn_scores *s, const sn_node *n)
{
    const bool div = sn_node_is(n, "Div");
    if ((!div && !sn_node_is(n, "Mul")) || n->n_in != 2 || s->scales)
        return NULL;
    for (uint32_t i = 0; i < (div ? 1u : 2u); i++) {
        sn_value *scores = n->in[i].value, *by = n->in[1 - i].value;
        if (!sn_scores_fit(scores) || scores->fact.type.rank < 4 || !by ||
            !sn_value_is_dtype(by, SONDE_DTYPE_F32) || !sn_value_is_const(by) ||
            by->fact.type.rank > scores->fact.type.rank ||
            sn_tensor_count(by->fact.data) != dim_back(&by->fact.type, 3) ||
            dim_back(&by->fact.type, 3) != dim_back(&scores->fact.type, 3))
            continue;
        s->scales = by;
        s->divided = div;
        return scores;
    }
    return NULL;
}

/* What n does to scores, masks first; NULL: something else. */
static sn_value *match_step(sn_scores *s, sn_node *n, bool *scaled)
{
    double factor;
    sn_value *from = sn_scores_regrouped(s, n);
    if (!from && !*scaled)
        from = match_term(s, n);
    if (!from && !*scaled)
        from = match_keep(s, n);
    if (from)
        return from;
    *scaled = true;
    from = sn_node_scaled_input(n, &factor);
    if (!from)
        return match_scales(s, n);
    s->scale *= factor;
    return from;
}

/* ------------------------------------------------------------------ all of it */
/* The mask means the same against scores of the highest rank. */
static bool keeps_meaning(const sn_scores *s, const sn_value *mask, int rank)
{
    const sn_type *t = &mask->fact.type;
    if (rank == s->rank)
        return true;
    /* Heads of the only batch are heads; everything before them is 1. */
    for (int back = 3; back <= t->rank; back++)
        if (t->dims[t->rank - back] != 1 && !(back == 3 && dim_back(t, back) == s->heads))
            return false;
    return true;
}

bool sn_scores_match(sn_value *v, sn_scores *s)
{
    int term_rank[SN_SCORES_TERMS] = {0}, keep_rank = 0;
    bool scaled = false;
    *s = (sn_scores){.scale = 1, .filter = -INFINITY, .windows = 1, .heads = SN_DIM_UNKNOWN};
    while (s->n_nodes < SN_SCORES_NODES) {
        sn_node *n = v->producer;
        const int terms = s->n_terms, rank = v->fact.type.rank;
        const bool kept = s->keep != NULL;
        if (!n || !sn_scores_fit(v) || !sn_value_only_reader(v) || !take_rank(s, &v->fact.type))
            return false;
        s->nodes[s->n_nodes++] = n;
        if (sn_node_is(n, "MatMul"))
            break;
        v = match_step(s, n, &scaled);
        if (!v)
            return false;
        if (s->n_terms > terms)
            term_rank[terms] = rank;
        if (!kept && s->keep)
            keep_rank = rank;
    }
    const sn_node *product = s->nodes[s->n_nodes - 1];
    if (!sn_node_is(product, "MatMul") || (s->keep && !keeps_meaning(s, s->keep, keep_rank)))
        return false;
    for (int i = 0; i < s->n_terms; i++)
        if (!keeps_meaning(s, s->terms[i], term_rank[i]))
            return false;
    const int rank = product->out[0]->fact.type.rank;
    return product->n_in == 2 && product->in[0].value && product->in[1].value &&
           product->in[0].value->fact.type.rank == rank &&
           product->in[1].value->fact.type.rank == rank;
}
