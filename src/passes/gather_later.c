/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are gathered and then multiplied by weights: where more rows are gathered than there
 * are, the product goes first, and its rows are gathered. Networks on graphs do this for both ends
 * of every edge and join the two, often with numbers of the edge itself: the product of a joined
 * row is the sum of the products of its parts, each by its rows of the weights. Sums are taken in
 * another order, so results differ by rounding. */
#include "passes/product.h"

enum {
    MOST_PARTS = 8,
    LEAST_WIDTH = 32, /* of a part: the product of fewer takes no longer than the sum that it saves
                       */
};

/* A part of the rows that the product reads. */
typedef struct part {
    sn_value *x;
    sn_node *gather; /* that goes behind its product; NULL: x stays what it is */
    sn_node *behind; /* … as this one */
    int64_t first, width;
} part;

typedef struct parts {
    part at[MOST_PARTS];
    uint32_t n, gathered;
    sn_node *join; /* NULL: there is one part */
} parts;

static bool known(const sn_value *v)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) && sn_type_is_concrete(&v->fact.type) &&
           v->fact.type.rank >= 2;
}

static int64_t rows_of(const sn_value *v)
{
    int64_t rows = 1;
    for (int i = 0; i < v->fact.type.rank - 1; i++)
        if (!sn_i64_mul(rows, v->fact.type.dims[i], &rows))
            return -1;
    return rows;
}

/* Does n pick whole rows? */
static bool picks_rows(const sn_node *n)
{
    const sn_type *x = &n->in[0].value->fact.type, *index = &n->in[1].value->fact.type;
    if (sn_node_is(n, "Gather")) {
        const int64_t axis = sn_node_attr_int(n, "axis", 0);
        return axis != -1 && axis != x->rank - 1;
    }
    return sn_node_is(n, "GatherND") && sn_type_is_concrete(index) && index->rank >= 1 &&
           sn_node_attr_int(n, "batch_dims", 0) + index->dims[index->rank - 1] < x->rank;
}

/* The node that gathers v, if its product pays. */
static sn_node *gather_of(const sn_value *v, bool gemm)
{
    sn_node *n = v->producer;
    if (!n || (!sn_node_is(n, "Gather") && !sn_node_is(n, "GatherND")) || !known(n->in[0].value) ||
        !n->in[1].value || !picks_rows(n) || (gemm && n->in[0].value->fact.type.rank != 2))
        return NULL;
    const int64_t width = v->fact.type.dims[v->fact.type.rank - 1];
    const int64_t rows = rows_of(n->in[0].value);
    return width >= LEAST_WIDTH && rows >= 0 && rows <= rows_of(v) / 2 ? n : NULL;
}

static bool is_join(const sn_node *n, const sn_value *x)
{
    const int rank = x->fact.type.rank;
    const int64_t axis = n && sn_node_is(n, "Concat") ? sn_node_attr_int(n, "axis", 0) : 0;
    return n && sn_node_is(n, "Concat") && sn_value_only_reader(x) &&
           (axis == -1 || axis == rank - 1) && n->n_in <= MOST_PARTS;
}

/* The parts of what the product reads; false: none is gathered. */
static bool find_parts(const sn_product *p, parts *f)
{
    const bool gemm = sn_node_is(p->node, "Gemm");
    sn_value *x = p->node->in[0].value;
    *f = (parts){.n = 1, .at[0].x = x};
    if (!known(x))
        return false;
    if (is_join(x->producer, x)) {
        f->join = x->producer;
        f->n = f->join->n_in;
        for (uint32_t i = 0; i < f->n; i++)
            f->at[i].x = f->join->in[i].value;
    }
    int64_t first = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        part *a = &f->at[i];
        if (!known(a->x))
            return false;
        a->first = first;
        a->width = a->x->fact.type.dims[a->x->fact.type.rank - 1];
        first += a->width;
        a->gather = gather_of(a->x, gemm);
        f->gathered += a->gather != NULL;
    }
    return f->gathered > 0 && first == p->k;
}

/* ------------------------------------------------------------------ what takes their place */
typedef struct rewrite {
    sn_graph *g;
    sn_pass_env *env;
    const sn_product *p;
    sn_node *product; /* the last one that was made; the first has the bias */
} rewrite;

/* The rows of the weights that `a` meets. */
static sonde_status cut_weights(const rewrite *r, const part *a, sn_value **cut)
{
    const sn_value *whole = r->p->node->in[1].value;
    const sn_tensor *w = whole->fact.data;
    const int64_t k = r->p->k, n = r->p->columns;
    const int64_t dims[2] = {r->p->k_axis ? n : a->width, r->p->k_axis ? a->width : n};
    void *data;
    SN_TRY(sn_pass_constant(r->g, r->env, "", w->dtype, dims, 2, cut, &data));
    sn_value_show_as(*cut, whole);
    if (r->p->k_axis == 0) {
        sn_tensor_read(w, a->first * n, a->width * n, data);
        return SONDE_OK;
    }
    const size_t row = (size_t)a->width * sn_dtype_bytes(w->dtype);
    for (int64_t i = 0; i < n; i++)
        sn_tensor_read(w, i * k + a->first, a->width, (uint8_t *)data + (size_t)i * row);
    return SONDE_OK;
}

/* A node like n, before the product's, that reads `x` first; its result goes to `y`, or to a new
 * value, shown as that of `like`. */
static sonde_status add_like(const rewrite *r, const sn_node *n, uint32_t n_in, sn_value *x,
                             const sn_value *like, sn_value *y, sn_node **made)
{
    sonde_error *err = r->env->err;
    SN_TRY(sn_graph_add_node(r->g, r->p->node, n->domain, n->op_type, n->name, n_in, 1, made, err));
    (*made)->opset = n->opset;
    (*made)->narrow_weights = n->narrow_weights;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        SN_TRY(sn_node_set_attr(r->g, *made, &n->attrs[i], err));
    if (!y) {
        SN_TRY(sn_graph_add_value(r->g, "", &y, err));
        sn_value_show_as(y, like);
    }
    sn_node_set_input(*made, 0, x);
    sn_node_set_output(*made, 0, y);
    return SONDE_OK;
}

/* The product of `x` by the weights of `a`; the first one also has the bias. */
static sonde_status add_product(rewrite *r, const part *a, sn_value *x, sn_value *y,
                                sn_value **made)
{
    const sn_node *old = r->p->node;
    const bool bias = !r->product && old->n_in > 2 && old->in[2].value;
    sn_node *n;
    sn_value *w;
    SN_TRY(cut_weights(r, a, &w));
    SN_TRY(add_like(r, old, bias ? 3 : 2, x, old->out[0], y, &n));
    sn_node_set_input(n, 1, w);
    if (bias)
        sn_node_set_input(n, 2, old->in[2].value);
    r->product = n;
    SN_TRY(sn_node_inherit(r->g, n, old, r->env->err));
    *made = n->out[0];
    return sn_node_refresh(r->g, n, r->env->err);
}

/* The product of a gathered part: first the product, then its rows. */
static sonde_status add_gathered(rewrite *r, part *a, sn_value *y, sn_value **made)
{
    sn_node *n;
    sn_value *v;
    SN_TRY(add_product(r, a, a->gather->in[0].value, NULL, &v));
    SN_TRY(add_like(r, a->gather, 2, v, r->p->node->out[0], y, &n));
    sn_node_set_input(n, 1, a->gather->in[1].value);
    SN_TRY(sn_node_inherit(r->g, n, a->gather, r->env->err));
    a->behind = n;
    *made = n->out[0];
    return sn_node_refresh(r->g, n, r->env->err);
}

static sonde_status add_sum(const rewrite *r, sn_value *a, sn_value *b, sn_value *y,
                            sn_value **made)
{
    const sn_node add = {.domain = "", .op_type = "Add", .name = r->p->node->name, .opset = 14};
    sn_node *n;
    SN_TRY(add_like(r, &add, 2, a, r->p->node->out[0], y, &n));
    sn_node_set_input(n, 1, b);
    SN_TRY(sn_node_inherit(r->g, n, r->p->node, r->env->err));
    *made = n->out[0];
    return sn_node_refresh(r->g, n, r->env->err);
}

/* Parts go one by one: those that are not gathered have a product each, which takes the sum so far
 * as its residual. */
static sonde_status replace(sn_graph *g, sn_pass_env *env, const sn_product *p, parts *f)
{
    rewrite r = {.g = g, .env = env, .p = p};
    sn_value *sum = NULL, *v, *out = p->node->out[0];
    for (uint32_t i = 0; i < f->n; i++) {
        part *a = &f->at[i];
        sn_value *y = f->n == 1 ? out : NULL;
        if (a->gather)
            SN_TRY(add_gathered(&r, a, y, &v));
        else
            SN_TRY(add_product(&r, a, a->x, y, &v));
        if (sum)
            SN_TRY(add_sum(&r, sum, v, i + 1 == f->n ? out : NULL, &v));
        sum = v;
    }
    sn_node *const gone[] = {p->node, f->join};
    return sn_graph_replace(g, gone, f->join ? 2 : 1, r.product, p->node, env->err);
}

/* Gathers that nobody reads any more. */
static sonde_status drop_gathers(sn_graph *g, sn_pass_env *env, const parts *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        sn_node *n = f->at[i].gather;
        for (uint32_t k = 0; k < i; k++)
            n = f->at[k].gather == n ? NULL : n;
        if (n && !n->out[0]->n_uses && !n->out[0]->n_outputs)
            SN_TRY(sn_graph_replace(g, &n, 1, f->at[i].behind, n, env->err));
    }
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        sn_product p;
        parts f;
        if (!sn_product_of(n, &p) || !find_parts(&p, &f))
            continue;
        SN_TRY(replace(g, env, &p, &f));
        SN_TRY(drop_gathers(g, env, &f));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_gather_later = {
    .name = "gather-later",
    .summary = "multiplies rows before they are gathered, where those are fewer",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
