/* SPDX-License-Identifier: Apache-2.0 */
/* Projections of one value that only fused attention (or a rotation before it) reads become one
 * matrix product with their weights side by side; each reader takes its columns as a view. The
 * weights are joined when they are packed and exist once. */
#include "passes/rewrite.h"

enum { MAX_PARTS = 8, VIEW_FIRST = 4, VIEW_INTS = 5 };

typedef struct projection {
    sn_node *product, *add; /* add: NULL, or the Add of a constant row behind a MatMul */
    sn_value *result;
    const sn_tensor *weights, *bias; /* bias may be NULL */
    const sn_value *bias_value;
    int64_t columns;
    bool trans; /* weights are [columns, k] */
} projection;

/* The attribute that holds the view through which input i is read; NULL: it is read as it is. */
static const char *view_attribute(const sn_node *n, uint32_t i)
{
    static const char *const views[3] = {"q_view", "k_view", "v_view"};
    if (i == 0 && sn_node_is_internal(n, "FusedRotary"))
        return "x_view";
    return i < 3 && sn_node_is_internal(n, "FusedAttention") ? views[i] : NULL;
}

static bool only_views_read(const sn_value *v)
{
    for (const sn_edge *e = v->uses; e; e = e->next)
        if (!view_attribute(e->node, e->index))
            return false;
    return v->n_uses > 0 && !v->n_outputs;
}

/* Constant weights nobody has packed. */
static const sn_tensor *weights_of(const sn_value *v)
{
    const sn_tensor *t = v && sn_value_is_const(v) && sn_value_is_weight(v) ? v->fact.data : NULL;
    return t && sn_tensor_is_plain(t) ? t : NULL;
}

/* A constant f32 row nobody has packed. */
static const sn_tensor *numbers(const sn_value *v)
{
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    return t && t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) ? t : NULL;
}

/* One element per column and nothing else. */
static bool is_row(const sn_tensor *t, int64_t columns)
{
    return t && t->rank >= 1 && t->dims[t->rank - 1] == columns && sn_tensor_count(t) == columns;
}

/* MatMul, or Gemm without anything but a bias, by constant weights. */
static bool match_product(sn_node *n, projection *p)
{
    const bool matmul = sn_node_is(n, "MatMul");
    if ((!matmul && !sn_node_is(n, "Gemm") && !sn_node_is_internal(n, "FusedGemm")) ||
        n->n_in < 2 || n->n_in > 3 || !n->out[0] || !n->in[0].value ||
        !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) || n->in[0].value->fact.type.rank < 2)
        return false;
    *p = (projection){.product = n, .result = n->out[0], .weights = weights_of(n->in[1].value)};
    if (!p->weights || p->weights->rank != 2 || p->weights->parts ||
        sn_node_attr_float(n, "alpha", 1.0f) != 1.0f ||
        sn_node_attr_float(n, "beta", 1.0f) != 1.0f || sn_node_attr_int(n, "transA", 0) ||
        sn_node_attr(n, "activation"))
        return false;
    p->trans = !matmul && sn_node_attr_int(n, "transB", 0);
    p->columns = p->weights->dims[p->trans ? 0 : 1];
    if (n->n_in == 3 && n->in[2].value) {
        p->bias_value = n->in[2].value;
        p->bias = numbers(p->bias_value);
        return is_row(p->bias, p->columns);
    }
    return true;
}

static bool match(sn_node *n, projection *p)
{
    if (!match_product(n, p))
        return false;
    sn_node *add = sn_value_only_reader(p->result);
    if (add && sn_node_is(add, "Add") && !p->bias) {
        p->bias_value = sn_node_other_input(add, p->result);
        const sn_tensor *row = numbers(p->bias_value);
        if (!is_row(row, p->columns) || row->rank > p->result->fact.type.rank)
            return false;
        p->bias = row;
        p->add = add;
        p->result = add->out[0];
    }
    return only_views_read(p->result);
}

/* ------------------------------------------------------------------ joined constants */
static sonde_status join_weights(sn_graph *g, sn_pass_env *env, const projection *p, size_t n,
                                 int64_t columns, sn_value **out)
{
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    sn_tensor_parts *parts = SN_NEW(g->arena, sn_tensor_parts);
    const sn_tensor **list = SN_NEW_N(g->arena, const sn_tensor *, n);
    if (!t || !parts || !list)
        return sn_fail_memory(env->err, sizeof *t);
    for (size_t i = 0; i < n; i++)
        list[i] = p[i].weights;
    *parts = (sn_tensor_parts){.axis = p->trans ? 0 : 1, .n = n, .part = list};
    *t = (sn_tensor){.dtype = p->weights->dtype, .rank = 2, .parts = parts};
    t->dims[0] = p->trans ? columns : p->weights->dims[0];
    t->dims[1] = p->trans ? p->weights->dims[1] : columns;
    if (!sn_tensor_bytes(t->dtype, t->dims, 2, &t->bytes))
        return sn_fail(env->err, SONDE_LIMIT, "merged weights are too large");
    return sn_graph_add_constant(g, "", t, out, env->err);
}

static sonde_status join_biases(sn_graph *g, sn_pass_env *env, const projection *p, size_t n,
                                int64_t columns, sn_value **out)
{
    void *data;
    bool any = false;
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        any |= p[i].bias != NULL;
    if (!any)
        return SONDE_OK;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_F32, &columns, 1, out, &data));
    float *to = data;
    for (size_t i = 0; i < n; to += p[i++].columns) {
        if (p[i].bias)
            sn_tensor_read(p[i].bias, 0, p[i].columns, to);
        else
            memset(to, 0, (size_t)p[i].columns * sizeof *to);
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the pass */
/* Readers of one projection read their columns of `merged`, which begin at `first`. */
static sonde_status move_readers(sn_graph *g, sn_pass_env *env, sn_value *result, sn_value *merged,
                                 int64_t first)
{
    while (result->uses) {
        sn_node *n = result->uses->node;
        const uint32_t i = result->uses->index;
        const sn_attr *old = sn_node_attr(n, view_attribute(n, i));
        int64_t *view = SN_NEW_N(g->arena, int64_t, VIEW_INTS);
        if (!view)
            return sn_fail_memory(env->err, VIEW_INTS * sizeof *view);
        memcpy(view, old->ints, VIEW_INTS * sizeof *view);
        view[VIEW_FIRST] += first;
        sn_attr a = {.name = old->name, .kind = SN_ATTR_INTS, .n = VIEW_INTS, .ints = view};
        SN_TRY(sn_node_set_attr(g, n, &a, env->err));
        sn_node_set_input(n, i, merged);
        n->in[i].shown = sn_value_shown(result);
    }
    return SONDE_OK;
}

static sonde_status refresh_readers(sn_graph *g, sn_pass_env *env, const sn_value *merged)
{
    const sn_node *last = NULL;
    for (sn_edge *e = merged->uses; e; e = e->next) {
        if (e->node != last)
            SN_TRY(sn_node_refresh(g, e->node, env->err));
        last = e->node;
    }
    return SONDE_OK;
}

/* What is joined goes by the names of its parts. */
static sonde_status show_parts(sn_graph *g, sn_pass_env *env, const projection *p, size_t n,
                               sn_value *weights, sn_value *bias, sn_value *merged)
{
    const sn_value *w[MAX_PARTS], *b[MAX_PARTS], *y[MAX_PARTS];
    for (size_t i = 0; i < n; i++) {
        w[i] = p[i].product->in[1].value;
        b[i] = p[i].bias_value;
        y[i] = p[i].result;
    }
    SN_TRY(sn_value_show_all(g, weights, w, n, env->err));
    SN_TRY(sn_value_show_all(g, merged, y, n, env->err));
    return bias ? sn_value_show_all(g, bias, b, n, env->err) : SONDE_OK;
}

/* The first product is the anchor. */
static sonde_status set_post_op(sn_graph *g, sn_pass_env *env, const projection *p, size_t n,
                                sn_node *made)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            SN_TRY(sn_node_add_post_op(g, made, p[i].product->shown_type, env->err));
        SN_TRY(sn_node_add_post_op(g, made, p[i].product->post_op, env->err));
        SN_TRY(sn_node_add_post_op(g, made, p[i].add ? p[i].add->shown_type : "", env->err));
    }
    return SONDE_OK;
}

/* The product that makes the columns of all stands where `first_node`, the first of them, does. */
static sonde_status merge(sn_graph *g, sn_pass_env *env, const projection *p, size_t n,
                          sn_node *first_node)
{
    int64_t columns = 0, first = 0;
    sn_value *weights, *bias, *merged;
    sn_node *olds[2 * MAX_PARTS], *made;
    size_t n_olds = 0;
    for (size_t i = 0; i < n; i++)
        columns += p[i].columns;
    SN_TRY(join_weights(g, env, p, n, columns, &weights));
    SN_TRY(join_biases(g, env, p, n, columns, &bias));
    SN_TRY(sn_graph_add_value(g, "", &merged, env->err));
    SN_TRY(show_parts(g, env, p, n, weights, bias, merged));
    SN_TRY(sn_graph_add_node(g, first_node, "sonde", "FusedGemm", first_node->name, bias ? 3 : 2, 1,
                             &made, env->err));
    made->opset = 1;
    sn_node_set_input(made, 0, first_node->in[0].value);
    sn_node_set_input(made, 1, weights);
    if (bias)
        sn_node_set_input(made, 2, bias);
    sn_node_set_output(made, 0, merged);
    if (p->trans) {
        sn_attr a = {.name = "transB", .kind = SN_ATTR_INT, .n = 1, .i = 1};
        SN_TRY(sn_node_set_attr(g, made, &a, env->err));
    }
    for (size_t i = 0; i < n; first += p[i++].columns) {
        SN_TRY(move_readers(g, env, p[i].result, merged, first));
        olds[n_olds++] = p[i].product;
        if (p[i].add)
            olds[n_olds++] = p[i].add;
    }
    SN_TRY(sn_graph_replace(g, olds, n_olds, made, first_node, env->err));
    SN_TRY(set_post_op(g, env, p, n, made));
    SN_TRY(sn_node_refresh(g, made, env->err));
    return refresh_readers(g, env, merged);
}

/* All projections of x whose weights lie like those of the first one found, in the same type. */
static size_t find_projections(const sn_value *x, projection *list)
{
    size_t n = 0;
    int64_t columns = 0;
    projection p;
    for (const sn_edge *e = x->uses; e && n < MAX_PARTS; e = e->next) {
        if (e->index != 0 || !match(e->node, &p) ||
            (n > 0 && (p.trans != list->trans || p.weights->dtype != list->weights->dtype)) ||
            p.columns > INT32_MAX - columns)
            continue;
        columns += p.columns;
        /* Uses are mostly listed newest first: columns stand in the order of the nodes. */
        memmove(list + 1, list, n++ * sizeof *list);
        list[0] = p;
    }
    return n;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        projection list[MAX_PARTS], p;
        if (!match(n, &p))
            continue;
        const size_t count = find_projections(n->in[0].value, list);
        bool taken = false;
        for (size_t i = 0; i < count; i++)
            taken |= list[i].product == n;
        if (count < 2 || !taken)
            continue;
        sn_node *before = n->prev;
        SN_TRY(merge(g, env, list, count, n));
        n_next = before ? before->next : g->first; /* projections are gone */
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_merge_qkv = {
    .name = "merge-qkv",
    .summary = "merges the query, key and value projections of attention into one matrix product",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
