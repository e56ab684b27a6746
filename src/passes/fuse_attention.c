/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as exporters spell it out: MatMul ► scale ► mask ► Softmax ► MatMul becomes one
 * sonde.FusedAttention. It reads queries, keys and values where the projections wrote them, and
 * writes its result where the nodes behind it want it, so that the Transposes, Splits and repeats
 * of shared heads around it have nothing left to do. Results differ by rounding: exponentials are
 * divided by their sum after they were mixed, and scales are applied to scores. */
#include <math.h>

#include "ops/fused/attention.h"
#include "passes/heads_view.h"

enum { MAX_NODES = 24, MAX_BEHIND = 6 };

typedef struct attention {
    sn_node *nodes[MAX_NODES]; /* in order of finding; all go */
    size_t n;
    sn_node *first; /* q · kᵀ */
    sn_node *last;  /* makes the result */
    sn_value *bias, *keep;
    sn_heads_view q, k, v;
    double scale;
    float filter;
    int64_t hidden, hide;
    bool nan_is_zero, flat; /* flat: scores of rank 3, batch and heads are one axis */
    int64_t y_axes[SN_VIEW_RANK];
    int y_rank;
} attention;

/* ------------------------------------------------------------------ operands */
static bool find_operands(attention *m, const sn_node *product, bool flat)
{
    m->flat = flat;
    if (!sn_heads_view_find(m->first->in[0].value, false, flat, &m->q) ||
        !sn_heads_view_find(m->first->in[1].value, true, flat, &m->k) ||
        !sn_heads_view_find(product->in[1].value, false, flat, &m->v))
        return false;
    const int rank = m->first->out[0]->fact.type.rank;
    if (rank == 4) {
        /* Heads as the scores have them: one head of q may meet several of k by broadcasting. */
        const sn_dim heads = m->first->out[0]->fact.type.dims[1];
        if (!sn_dim_known(heads) || heads != m->q.heads)
            return false;
    }
    return m->q.size == m->k.size && m->k.heads == m->v.heads && m->q.heads % m->k.heads == 0;
}

/* ------------------------------------------------------------------ above the softmax */
static bool add_node(attention *m, sn_node *n)
{
    if (m->n == MAX_NODES)
        return false;
    m->nodes[m->n++] = n;
    return true;
}

static bool is_scores(const sn_value *v)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) &&
           (v->fact.type.rank == 3 || v->fact.type.rank == 4);
}

/* A mask that broadcasts into scores without giving them more axes or heads. */
static bool mask_fits(const sn_value *mask, sn_dtype dtype, const sn_value *scores)
{
    const sn_type *t = &scores->fact.type;
    if (!sn_value_is_dtype(mask, dtype) || mask->fact.type.rank < 0 ||
        mask->fact.type.rank > t->rank)
        return false;
    if (t->rank == 4 && mask->fact.type.rank >= 3) {
        const sn_dim heads = mask->fact.type.dims[mask->fact.type.rank - 3];
        return heads == 1 || heads == t->dims[1];
    }
    return true;
}

static bool leads_to_product(const sn_value *v, int depth)
{
    const sn_node *n = v ? v->producer : NULL;
    double factor;
    if (!n || !is_scores(v) || !sn_value_only_reader(v))
        return false;
    if (sn_node_is(n, "MatMul"))
        return true;
    if (depth == 0)
        return false;
    if (sn_node_is(n, "Add"))
        return leads_to_product(n->in[0].value, depth - 1) ||
               leads_to_product(n->in[1].value, depth - 1);
    if (sn_node_is(n, "Where"))
        return leads_to_product(n->in[1].value, depth - 1) ||
               leads_to_product(n->in[2].value, depth - 1);
    const sn_value *x = sn_node_scaled_input(n, &factor);
    return x && leads_to_product(x, depth - 1);
}

/* scores + mask; returns the scores. */
static sn_value *match_bias(attention *m, sn_node *n)
{
    for (uint32_t i = 0; i < 2 && !m->bias && sn_node_is(n, "Add") && n->n_in == 2; i++) {
        sn_value *scores = n->in[i].value, *mask = n->in[1 - i].value;
        if (scores == mask || !leads_to_product(scores, 3) ||
            !mask_fits(mask, SONDE_DTYPE_F32, scores))
            continue;
        m->bias = mask;
        return scores;
    }
    return NULL;
}

/* Where(c, scores, number) or the other way round; returns the scores. */
static sn_value *match_keep(attention *m, sn_node *n)
{
    for (uint32_t i = 1; i < 3 && !m->keep && sn_node_is(n, "Where") && n->n_in == 3; i++) {
        sn_value *scores = n->in[i].value, *number = n->in[3 - i].value;
        if (!leads_to_product(scores, 3) || !sn_value_scalar_f32(number, &m->filter) ||
            number->fact.data->rank > scores->fact.type.rank || isnan(m->filter) ||
            !n->in[0].value || !mask_fits(n->in[0].value, SONDE_DTYPE_BOOL, scores))
            continue;
        m->keep = n->in[0].value;
        m->hidden = i == 1 ? 0 : 1;
        m->hide =
            m->bias ? SN_FUSED_ATTENTION_FILL_BEFORE_BIAS : SN_FUSED_ATTENTION_FILL_AFTER_BIAS;
        return scores;
    }
    return NULL;
}

/* From the softmax up: masks, then scales, then the product. */
static bool match_scores(attention *m, sn_value *v)
{
    bool scaled = false;
    for (int i = 0; i < 6; i++) {
        sn_node *n = v->producer;
        double factor;
        if (!n || !is_scores(v) || !sn_value_only_reader(v) || !add_node(m, n))
            return false;
        if (sn_node_is(n, "MatMul")) {
            m->first = n;
            return n->n_in == 2 && n->in[0].value && n->in[1].value &&
                   n->in[0].value->fact.type.rank == v->fact.type.rank &&
                   n->in[1].value->fact.type.rank == v->fact.type.rank;
        }
        sn_value *from = scaled ? NULL : match_bias(m, n);
        from = from || scaled ? from : match_keep(m, n);
        if (!from) {
            from = sn_node_scaled_input(n, &factor);
            if (!from)
                return false;
            m->scale *= factor;
            scaled = true;
        }
        v = from;
    }
    return false;
}

/* ------------------------------------------------------------------ below it */
/* Softmax ► Where(IsNaN(·), 0, ·), which makes rows without any key zero. */
static sn_value *match_nan_guard(attention *m, sn_value *v)
{
    if (v->n_uses != 2 || v->n_outputs)
        return v;
    sn_node *a = v->uses->node, *b = v->uses->next->node;
    sn_node *test = sn_node_is(a, "IsNaN") ? a : b, *where = test == a ? b : a;
    float zero;
    if (test == where || !sn_node_is(test, "IsNaN") || !sn_node_is(where, "Where") ||
        where->n_in != 3 || sn_value_only_reader(test->out[0]) != where ||
        where->in[0].value != test->out[0] || where->in[2].value != v ||
        !sn_value_scalar_f32(where->in[1].value, &zero) || zero != 0.0f ||
        where->in[1].value->fact.data->rank > v->fact.type.rank || !add_node(m, test) ||
        !add_node(m, where))
        return v;
    m->nan_is_zero = true;
    return where->out[0];
}

/* Axes of the result as digits of [batch, heads, positions, size]. */
static bool result_axes(attention *m, const sn_view *v, int rank)
{
    static const int64_t four[4] = {1, 2, 3, 4}, three[3] = {1, 3, 4};
    int64_t axes[SN_VIEW_RANK];
    for (int i = 0; i < v->rank; i++) {
        axes[i] = 0;
        for (int k = 0; k < v->axis[i].n; k++) {
            const sn_digit *d = &v->axis[i].digit[k];
            int64_t part = rank == 4 ? four[d->axis] : three[d->axis];
            if (rank == 3 && d->axis == 0 && !m->flat)
                part = d->inner == 1 ? 2 : 1;
            else if (d->inner != 1)
                return false;
            axes[i] = axes[i] * 10 + part;
        }
    }
    if (v->rank < 1 || axes[v->rank - 1] % 10 != 4)
        return false;
    memcpy(m->y_axes, axes, sizeof axes);
    m->y_rank = v->rank;
    return true;
}

/* Every part is there, unless its size is 1. */
static bool all_parts(const attention *m, const sn_type *product)
{
    unsigned seen = m->q.heads == 1 ? 1u << 2 : 0;
    if (product->dims[0] == 1)
        seen |= 1u << 1;
    if (product->dims[product->rank - 2] == 1)
        seen |= 1u << 3;
    for (int i = 0; i < m->y_rank; i++)
        for (int64_t code = m->y_axes[i]; code > 0; code /= 10)
            seen |= 1u << (code % 10);
    return seen == 0x1e;
}

/* The result as [batch, heads, positions, size], then through the Transposes and Reshapes behind
 * it for as long as they only lay it out differently. */
static bool match_result(attention *m, sn_node *product)
{
    sn_value *v = product->out[0];
    const sn_type *t = &v->fact.type;
    const int rank = t->rank;
    sn_view view;
    if (!sn_view_begin(v, &view) || (rank != 3 && rank != 4))
        return false;
    if (rank == 3 && !m->flat) {
        view.axis[0].n = 2;
        view.axis[0].digit[0] = (sn_digit){0, m->q.heads, SN_DIM_UNKNOWN, false};
        view.axis[0].digit[1] = (sn_digit){0, 1, m->q.heads, false};
    }
    m->last = product;
    if (!result_axes(m, &view, rank) || !all_parts(m, t))
        return false;
    sn_node *found[MAX_BEHIND];
    size_t n = 0, used = 0;
    for (;;) {
        sn_node *next = sn_value_only_reader(v);
        if (n == MAX_BEHIND || !next || next->in[0].value != v || !next->n_out || !next->out[0] ||
            !(sn_node_is(next, "Transpose") || sn_node_is(next, "Reshape")) ||
            !sn_view_step(next, v, next->out[0], &view))
            break;
        found[n++] = next;
        v = next->out[0];
        if (result_axes(m, &view, rank) && all_parts(m, t)) {
            m->last = next;
            used = n;
        }
    }
    for (size_t i = 0; i < used; i++)
        if (!add_node(m, found[i]))
            return false;
    return true;
}

/* ------------------------------------------------------------------ the pass */
static bool is_last_softmax(const sn_node *n)
{
    if (!sn_node_is(n, "Softmax") || n->n_in != 1 || !is_scores(n->in[0].value) || !n->out[0])
        return false;
    const int rank = n->in[0].value->fact.type.rank;
    const int64_t axis = sn_node_attr_int(n, "axis", n->opset < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

static bool match(sn_node *softmax, attention *m)
{
    m->scale = 1;
    m->filter = -INFINITY;
    if (!is_last_softmax(softmax) || !match_scores(m, softmax->in[0].value) ||
        !add_node(m, softmax))
        return false;
    sn_value *p = match_nan_guard(m, softmax->out[0]);
    sn_node *product = sn_value_only_reader(p);
    if (!product || !sn_node_is(product, "MatMul") || product->in[0].value != p ||
        !product->in[1].value || product->in[1].value == p ||
        product->in[1].value->fact.type.rank != p->fact.type.rank ||
        product->out[0]->fact.type.rank != p->fact.type.rank || !add_node(m, product))
        return false;
    if (!find_operands(m, product, false) &&
        (p->fact.type.rank == 4 || !find_operands(m, product, true)))
        return false;
    m->scale *= m->q.scale * m->k.scale;
    /* Values that were scaled would scale the result: left alone. */
    return isfinite(m->scale) && m->v.scale == 1 && match_result(m, product);
}

static sonde_status set_attributes(sn_graph *g, sn_node *n, const attention *m, sonde_error *err)
{
    SN_TRY(sn_node_set_int(g, n, "heads", m->q.heads, err));
    SN_TRY(sn_node_set_int(g, n, "kv_heads", m->k.heads, err));
    SN_TRY(sn_node_set_int(g, n, "head_size", m->q.size, err));
    SN_TRY(sn_node_set_int(g, n, "v_head_size", m->v.size, err));
    SN_TRY(sn_node_set_int(g, n, "scores_rank", m->first->out[0]->fact.type.rank, err));
    SN_TRY(sn_node_set_ints(g, n, "q_view", m->q.view, 5, err));
    SN_TRY(sn_node_set_ints(g, n, "k_view", m->k.view, 5, err));
    SN_TRY(sn_node_set_ints(g, n, "v_view", m->v.view, 5, err));
    SN_TRY(sn_node_set_ints(g, n, "y_axes", m->y_axes, (size_t)m->y_rank, err));
    SN_TRY(sn_node_set_float(g, n, "scale", m->scale, err));
    if (m->nan_is_zero)
        SN_TRY(sn_node_set_int(g, n, "nan_is_zero", 1, err));
    if (!m->keep)
        return SONDE_OK;
    SN_TRY(sn_node_set_int(g, n, "hide", m->hide, err));
    SN_TRY(sn_node_set_int(g, n, "hidden", m->hidden, err));
    return sn_node_set_float(g, n, "filter", (double)m->filter, err);
}

static sonde_status apply(sn_graph *g, sn_pass_env *env, const attention *m, sn_node **made)
{
    sn_value *const in[5] = {m->q.source, m->k.source, m->v.source, m->bias, m->keep};
    const uint32_t n_in = m->keep ? 5 : m->bias ? 4 : 3;
    sn_node *n;
    SN_TRY(sn_graph_add_node(g, m->last, "sonde", "FusedAttention", m->first->name, n_in, 1, &n,
                             env->err));
    n->opset = 1;
    for (uint32_t i = 0; i < n_in; i++)
        sn_node_set_input(n, i, in[i]);
    sn_node_set_output(n, 0, m->last->out[0]);
    SN_TRY(set_attributes(g, n, m, env->err));
    SN_TRY(sn_graph_replace(g, m->nodes, m->n, n, m->first, env->err));
    SN_TRY(sn_node_add_post_op(g, n, "Softmax", env->err));
    SN_TRY(sn_node_add_post_op(g, n, "MatMul", env->err));
    *made = n;
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t fused = 0;
    if (!sn_op_find("sonde", "FusedAttention", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        attention m = {.n = 0};
        sn_node *made;
        if (!match(n, &m))
            continue;
        SN_TRY(apply(g, env, &m, &made));
        n_next = made->next; /* what followed may be gone */
        fused++;
    }
    *changes += fused;
    /* Transposes and Reshapes nobody reads any more, and the shapes computed for them. */
    return fused ? sn_pass_dead_code.run(g, env, changes) : SONDE_OK;
}

const sn_pass sn_pass_fuse_attention = {
    .name = "fuse-attention",
    .summary = "fuses attention that consists of matrix products and a softmax",
    .run = run,
    .bodies = true,
};
