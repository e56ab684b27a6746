/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as exporters spell it out: MatMul ► scale ► mask ► Softmax ► MatMul becomes one
 * sonde.FusedAttention. It reads queries, keys and values where the projections wrote them, and
 * writes its result where the nodes behind it want it, so that the Transposes, Splits and repeats
 * of shared heads around it have nothing left to do. Results differ by rounding: exponentials are
 * divided by their sum after they were mixed, and scales are applied to scores. */
#include <math.h>

#include "ops/fused/attention.h"
#include "passes/attention_scores.h"
#include "passes/heads_view.h"

enum { MAX_NODES = 32, MAX_BEHIND = 6 };

typedef struct attention {
    sn_node *nodes[MAX_NODES]; /* in order of finding; all go */
    size_t n;
    sn_node *first; /* q · kᵀ */
    sn_node *last;  /* makes the result */
    sn_scores scores;
    sn_heads_view q, k, v;
    double scale;
    bool nan_is_zero;
    sn_heads_axes axes;
    bool unit; /* queries and keys are divided by their lengths, or by … */
    float least;
    int64_t y_axes[SN_VIEW_RANK];
    int y_rank;
} attention;

/* ------------------------------------------------------------------ operands */
static bool find_views(attention *m, sn_value *q, sn_value *k, sn_value *v, bool k_columns)
{
    for (int cuts = 1; cuts >= 0; cuts--) {
        if (!sn_heads_view_find(q, false, m->axes, cuts, &m->q) ||
            !sn_heads_view_find(k, k_columns, m->axes, cuts, &m->k) ||
            !sn_heads_view_find(v, false, m->axes, cuts, &m->v))
            continue;
        /* A copy that stays for one of them is better for the others, too. */
        if (m->q.cut == m->k.cut && m->q.cut == m->v.cut)
            return true;
    }
    return false;
}

/* Queries and keys are divided by their lengths: what they are before is read. */
static bool find_unit_views(attention *m, sn_value *v)
{
    float other;
    sn_value *q = sn_heads_of_unit(m->first->in[0].value, false, &m->least);
    sn_value *k = sn_heads_of_unit(m->first->in[1].value, true, &other);
    return q && k && m->least == other && find_views(m, q, k, v, false) && m->q.scale == 1 &&
           m->k.scale == 1;
}

static bool find_operands(attention *m, const sn_node *product, sn_heads_axes axes)
{
    m->axes = axes;
    m->unit = find_unit_views(m, product->in[1].value);
    if (!m->unit &&
        !find_views(m, m->first->in[0].value, m->first->in[1].value, product->in[1].value, true))
        return false;
    /* Heads as the scores have them: one head of q may meet several of k by broadcasting. */
    const int64_t heads = axes == SN_HEADS_FIRST ? m->scores.windows : m->scores.heads;
    if (m->scores.rank > 3 && heads != m->q.heads)
        return false;
    return m->q.size == m->k.size && m->k.heads == m->v.heads && m->q.heads % m->k.heads == 0;
}

static int steps_of(const attention *m)
{
    return m->q.steps + m->k.steps + m->v.steps;
}

/* The same with heads before windows, where scores of rank 5 have no masks that would tell which is
 * which; taken if its sources are further up. */
static bool find_heads_first(attention *m, const sn_node *product, bool found)
{
    attention other = *m;
    if (m->scores.rank != 5 || m->scores.n_terms || m->scores.keep || m->scores.scales ||
        !find_operands(&other, product, SN_HEADS_FIRST) ||
        (found && steps_of(&other) <= steps_of(m)))
        return false;
    *m = other;
    m->scores.rank = 4;
    m->scores.windows = 1;
    return true;
}

static bool find_any_operands(attention *m, const sn_node *product)
{
    const bool usual = find_operands(m, product, SN_HEADS_USUAL);
    if (find_heads_first(m, product, usual) || usual)
        return true;
    return m->scores.rank <= 3 && find_operands(m, product, SN_HEADS_FLAT);
}

static bool add_node(attention *m, sn_node *n)
{
    if (m->n == MAX_NODES)
        return false;
    m->nodes[m->n++] = n;
    return true;
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
    static const int64_t usual[6][5] = {[3] = {1, 3, 4}, [4] = {1, 2, 3, 4}, [5] = {1, 1, 2, 3, 4}};
    static const int64_t heads_first[5] = {1, 2, 1, 3, 4};
    const int64_t *parts = m->axes == SN_HEADS_FIRST ? heads_first : usual[rank];
    int64_t axes[SN_VIEW_RANK];
    for (int i = 0; i < v->rank; i++) {
        axes[i] = 0;
        for (int k = 0; k < v->axis[i].n; k++) {
            const sn_digit *d = &v->axis[i].digit[k];
            int64_t part = parts[d->axis];
            if (rank == 3 && d->axis == 0 && m->axes != SN_HEADS_FLAT)
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
    const int second = m->axes == SN_HEADS_FIRST ? 2 : 1; /* axis of batches, of five */
    if (product->dims[0] == 1 && (product->rank < 5 || product->dims[second] == 1))
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
    /* Of two axes of batches, one has size 1. */
    if (!sn_view_begin(v, &view) || rank < 3 || rank > 5 ||
        (rank == 5 && t->dims[0] != 1 && (m->axes == SN_HEADS_FIRST || t->dims[1] != 1)))
        return false;
    if (rank == 3 && m->axes != SN_HEADS_FLAT) {
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

/* ------------------------------------------------------------------ all of it */
static bool is_last_softmax(const sn_node *n)
{
    if (!sn_node_is(n, "Softmax") || n->n_in != 1 || !sn_scores_fit(n->in[0].value) || !n->out[0])
        return false;
    const int rank = n->in[0].value->fact.type.rank;
    const int64_t axis = sn_node_attr_int(n, "axis", n->opset < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/* The product with the values, which may see the axes before the last two in other groups. */
static sn_node *match_product(attention *m, sn_value *p)
{
    sn_node *n = sn_value_only_reader(p);
    if (n && sn_scores_regrouped(&m->scores, n) == p) {
        p = n->out[0];
        if (!add_node(m, n))
            return NULL;
        n = sn_value_only_reader(p);
    }
    if (!n || !sn_node_is(n, "MatMul") || n->in[0].value != p || !n->in[1].value ||
        n->in[1].value == p || n->in[1].value->fact.type.rank != p->fact.type.rank ||
        n->out[0]->fact.type.rank != p->fact.type.rank || !add_node(m, n))
        return NULL;
    return n;
}

static bool match(sn_node *softmax, attention *m)
{
    if (!is_last_softmax(softmax) || !sn_scores_match(softmax->in[0].value, &m->scores))
        return false;
    for (size_t i = 0; i < m->scores.n_nodes; i++)
        m->nodes[m->n++] = m->first = m->scores.nodes[i];
    if (!add_node(m, softmax))
        return false;
    const int rank = m->scores.rank;
    sn_node *product = match_product(m, match_nan_guard(m, softmax->out[0]));
    if (!product || (m->scores.rank != rank && (m->scores.n_terms || m->scores.keep)))
        return false;
    if (!find_any_operands(m, product))
        return false;
    m->scale = m->scores.scale * m->q.scale * m->k.scale;
    /* Values that were scaled would scale the result: left alone. */
    return isfinite(m->scale) && m->v.scale == 1 && match_result(m, product);
}

static sonde_status set_attributes(sn_graph *g, sn_node *n, const attention *m, sonde_error *err)
{
    SN_TRY(sn_node_set_int(g, n, "heads", m->q.heads, err));
    SN_TRY(sn_node_set_int(g, n, "kv_heads", m->k.heads, err));
    SN_TRY(sn_node_set_int(g, n, "head_size", m->q.size, err));
    SN_TRY(sn_node_set_int(g, n, "v_head_size", m->v.size, err));
    SN_TRY(sn_node_set_int(g, n, "scores_rank", m->scores.rank, err));
    if (m->scores.windows > 1)
        SN_TRY(sn_node_set_int(g, n, "windows", m->scores.windows, err));
    SN_TRY(sn_node_set_ints(g, n, "q_view", m->q.view, 5, err));
    SN_TRY(sn_node_set_ints(g, n, "k_view", m->k.view, 5, err));
    SN_TRY(sn_node_set_ints(g, n, "v_view", m->v.view, 5, err));
    SN_TRY(sn_node_set_ints(g, n, "y_axes", m->y_axes, (size_t)m->y_rank, err));
    SN_TRY(sn_node_set_float(g, n, "scale", m->scale, err));
    if (m->nan_is_zero)
        SN_TRY(sn_node_set_int(g, n, "nan_is_zero", 1, err));
    if (m->unit) {
        SN_TRY(sn_node_set_int(g, n, "unit", 1, err));
        SN_TRY(sn_node_set_float(g, n, "least", (double)m->least, err));
    }
    if (!m->scores.keep)
        return SONDE_OK;
    SN_TRY(sn_node_set_int(g, n, "hide", m->scores.hide, err));
    SN_TRY(sn_node_set_int(g, n, "hidden", m->scores.hidden, err));
    return sn_node_set_float(g, n, "filter", (double)m->scores.filter, err);
}

/* ------------------------------------------------------------------ terms and scales */
static bool same_shape(const sn_value *a, const sn_value *b)
{
    const sn_type *s = &a->fact.type, *t = &b->fact.type;
    for (int i = 0; i < s->rank && s->rank == t->rank; i++)
        if (!sn_dim_same(s->dims[i], t->dims[i]))
            return false;
    return s->rank == t->rank;
}

/* Two terms that become one: of one shape if they can be, both constant if there are only two. The
 * first one's adder is still there. */
static bool find_pair(const sn_scores *s, int *a, int *b)
{
    for (*a = 0; *a < s->n_terms; ++*a)
        for (*b = *a + 1; *b < s->n_terms; ++*b)
            if (s->adders[*a] && same_shape(s->terms[*a], s->terms[*b]) &&
                (s->n_terms > 2 ||
                 (sn_value_is_const(s->terms[*a]) && sn_value_is_const(s->terms[*b]))))
                return true;
    *a = s->n_terms - 2;
    if (s->n_terms > 2 && !s->adders[*a])
        --*a;
    *b = *a + 1;
    return s->n_terms > 2;
}

/* The node nearer to the softmax, which added one term, now adds the other one to it and stays. */
static sonde_status join_terms(sn_graph *g, sn_pass_env *env, attention *m, int a, int b)
{
    sn_scores *s = &m->scores;
    sn_node *n = s->adders[a];
    sn_value *sum;
    size_t left = 0;
    SN_TRY(sn_graph_add_value(g, "", &sum, env->err));
    sn_node_set_input(n, 0, s->terms[a]);
    sn_node_set_input(n, 1, s->terms[b]);
    sn_node_set_output(n, 0, sum);
    SN_TRY(sn_node_refresh(g, n, env->err));
    for (size_t i = 0; i < m->n; i++)
        if (m->nodes[i] != n)
            m->nodes[left++] = m->nodes[i];
    m->n = left;
    s->terms[a] = sum;
    s->adders[a] = NULL;
    for (s->n_terms--; b < s->n_terms; b++) {
        s->terms[b] = s->terms[b + 1];
        s->adders[b] = s->adders[b + 1];
    }
    s->terms[s->n_terms] = NULL;
    return SONDE_OK;
}

/* The factors of the heads as one list. */
static sonde_status list_scales(sn_graph *g, sn_pass_env *env, const sn_scores *s, sn_value **list)
{
    const sn_tensor *t = s->scales->fact.data;
    const int64_t n = sn_tensor_count(t);
    void *data;
    SN_TRY(sn_pass_constant(g, env, s->scales->name, SONDE_DTYPE_F32, &n, 1, list, &data));
    sn_value_show_as(*list, s->scales);
    for (int64_t i = 0; i < n; i++)
        ((float *)data)[i] = s->divided ? 1.0f / sn_read_f32(t, i) : sn_read_f32(t, i);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ sources */
/* The source with an axis cut in two, by a Reshape before `at`. */
static sonde_status cut_source(sn_graph *g, sn_pass_env *env, sn_node *at, sn_heads_view *o)
{
    const sn_type *t = &o->source->fact.type;
    const int64_t rank = t->rank + 1;
    sn_value *shape, *made;
    sn_node *n;
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &rank, 1, &shape, &data));
    int64_t *dims = data;
    for (int i = 0; i < t->rank; i++)
        dims[i + (i > o->cut_axis)] = t->dims[i];
    dims[o->cut_axis] /= o->cut;
    dims[o->cut_axis + 1] = o->cut;
    SN_TRY(sn_graph_add_value(g, "", &made, env->err));
    sn_value_show_as(made, o->source);
    SN_TRY(sn_graph_add_node(g, at, "", "Reshape", at->name, 2, 1, &n, env->err));
    n->opset = 14;
    sn_node_set_input(n, 0, o->source);
    sn_node_set_input(n, 1, shape);
    sn_node_set_output(n, 0, made);
    SN_TRY(sn_node_inherit(g, n, at, env->err));
    o->source = made;
    return sn_node_refresh(g, n, env->err);
}

/* Sources that are one value stay one. */
static sonde_status cut_sources(sn_graph *g, sn_pass_env *env, attention *m)
{
    sn_heads_view *const views[3] = {&m->q, &m->k, &m->v};
    sn_heads_view old[3];
    for (int i = 0; i < 3; i++) {
        old[i] = *views[i];
        int same = 0;
        while (same < i && !(old[same].source == old[i].source && old[same].cut == old[i].cut &&
                             old[same].cut_axis == old[i].cut_axis))
            same++;
        if (same < i)
            views[i]->source = views[same]->source;
        else if (old[i].cut)
            SN_TRY(cut_source(g, env, m->last, views[i]));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the pass */
static sonde_status apply(sn_graph *g, sn_pass_env *env, attention *m, sn_node **made)
{
    sn_scores *s = &m->scores;
    sn_value *scales = NULL;
    sn_node *n;
    for (int a, b; find_pair(s, &a, &b);)
        SN_TRY(join_terms(g, env, m, a, b));
    if (s->scales)
        SN_TRY(list_scales(g, env, s, &scales));
    SN_TRY(cut_sources(g, env, m));
    sn_value *const in[] = {m->q.source, m->k.source, m->v.source, s->terms[0],
                            s->keep,     s->terms[1], scales};
    uint32_t n_in = sizeof in / sizeof in[0];
    while (!in[n_in - 1])
        n_in--;
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
    bool joined = false;
    if (!sn_op_find("sonde", "FusedAttention", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        attention m = {.n = 0};
        sn_node *made;
        if (!match(n, &m))
            continue;
        const int terms = m.scores.n_terms;
        SN_TRY(apply(g, env, &m, &made));
        joined |= m.scores.n_terms < terms;
        n_next = made->next; /* what followed may be gone */
        fused++;
    }
    *changes += fused;
    if (joined) /* sums of constant terms */
        SN_TRY(sn_pass_fold_constants.run(g, env, changes));
    /* Transposes and Reshapes nobody reads any more, and the shapes computed for them. */
    return fused ? sn_pass_dead_code.run(g, env, changes) : SONDE_OK;
}

const sn_pass sn_pass_fuse_attention = {
    .name = "fuse-attention",
    .summary = "fuses attention that consists of matrix products and a softmax",
    .run = run,
    .bodies = true,
};
