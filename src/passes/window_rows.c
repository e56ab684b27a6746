/* SPDX-License-Identifier: Apache-2.0 */
/* Attention inside windows of an image: exporters roll the image, cut it into windows, multiply
 * each row of them by the weights of queries, keys and values, and undo it all behind the
 * attention. A product of rows does not care about their order. So the products take the rows as
 * they lie in the image, and the attention gets lists of which rows make a window; the copies
 * around it have nothing left to do, and what is added behind them can be added by the last
 * product. */
#include "ops/fused/attention.h"
#include "passes/heads_view.h"
#include "passes/row_chain.h"

/* ------------------------------------------------------------------ before the attention */

/* `out` is v with other dims before the last one, by a Reshape before `at`. */
static sonde_status add_reshape(sn_graph *g, sn_pass_env *env, sn_node *at, sn_value *v,
                                const sn_type *like, sn_value *out, sn_node **made)
{
    const int64_t rank = like->rank;
    sn_value *shape;
    sn_node *n;
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &rank, 1, &shape, &data));
    memcpy(data, like->dims, sizeof(int64_t) * (size_t)rank);
    ((int64_t *)data)[rank - 1] = sn_row_width(v);
    SN_TRY(sn_graph_add_node(g, at, "", "Reshape", at->name, 2, 1, &n, env->err));
    n->opset = 14;
    sn_node_set_input(n, 0, v);
    sn_node_set_input(n, 1, shape);
    sn_node_set_output(n, 0, out);
    *made = n;
    return SONDE_OK;
}

/* v as a matrix of rows, before `at`. */
static sonde_status as_matrix(sn_graph *g, sn_pass_env *env, sn_node *at, sn_value *v,
                              const sn_node *inherit, sn_value **out)
{
    const sn_dim dims[2] = {sn_row_count(v), sn_row_width(v)};
    const sn_type like = {.rank = 2, .dims = dims};
    sn_node *n;
    *out = v;
    if (v->fact.type.rank == 2)
        return SONDE_OK;
    SN_TRY(sn_graph_add_value(g, "", out, env->err));
    sn_value_show_as(*out, v);
    SN_TRY(add_reshape(g, env, at, v, &like, *out, &n));
    SN_TRY(sn_node_inherit(g, n, inherit, env->err));
    return sn_node_refresh(g, n, env->err);
}

/* The row-wise nodes read x one after the other; *y: what the last one makes. */
static sonde_status run_through(sn_graph *g, sn_pass_env *env, const sn_row_chain *c, sn_value *x,
                                sn_value **y)
{
    for (int i = 0; i < c->n_wise; i++) {
        sn_node *n = c->wise[i];
        sn_value *made;
        const bool second = sn_row_wise_input(n) != n->in[0].value;
        SN_TRY(sn_graph_add_value(g, "", &made, env->err));
        sn_value_show_as(made, n->out[0]);
        sn_node_set_input(n, second, x);
        sn_node_set_output(n, 0, made);
        SN_TRY(sn_node_refresh(g, n, env->err));
        x = made;
    }
    *y = x;
    return SONDE_OK;
}

static sonde_status list_constant(sn_graph *g, sn_pass_env *env, int64_t batch, int64_t len,
                                  sn_value **v, int32_t **list)
{
    const int64_t dims[2] = {batch, len};
    void *data;
    SN_TRY(sn_pass_constant(g, env, "rows", SONDE_DTYPE_I32, dims, 2, v, &data));
    *list = data;
    return SONDE_OK;
}

/* Batches, positions and their distances in rows, as a view of v has them. */
typedef struct places {
    int64_t batch, len, batch_rows, len_rows;
} places;

static bool find_places(const sn_value *v, const int64_t *view, places *p)
{
    const sn_type *t = &v->fact.type;
    int64_t distance = 1;
    *p = (places){1, 1, 0, 0};
    if (view[1] >= 0)
        return false;
    for (int i = t->rank - 2; i >= 0; i--) {
        if (i == view[0])
            p->batch = t->dims[i], p->batch_rows = distance;
        else if (i == view[2])
            p->len = t->dims[i], p->len_rows = distance;
        distance *= t->dims[i];
    }
    return p->batch * p->len == distance;
}

static const int64_t *view_of(const sn_node *n, int i)
{
    static const char *const names[3] = {"q_view", "k_view", "v_view"};
    return sn_node_attr(n, names[i])->ints;
}

/* Nothing is repeated for other batches or positions: the result has as many as p, with which
 * inputs first … 2 begin. */
static bool is_whole(const sn_node *n, int first, const places *p)
{
    const int64_t *q = view_of(n, 0);
    const sn_type *t = &n->in[0].value->fact.type, *y = &n->out[0]->fact.type;
    if (!sn_type_is_concrete(t) || !sn_type_is_concrete(y) || p->len < 2)
        return false;
    int64_t count = 1;
    for (int i = 0; i < y->rank; i++)
        count *= y->dims[i];
    const int64_t len = first == 0 ? p->len : q[2] < 0 ? 1 : t->dims[q[2]];
    return count ==
           p->batch * len * sn_node_attr_int(n, "heads", 1) * sn_node_attr_int(n, "v_head_size", 1);
}

static bool read_by_only(const sn_value *v, const sn_node *n)
{
    if (v->n_outputs)
        return false;
    for (const sn_edge *u = v->uses; u; u = u->next)
        if (u->node != n)
            return false;
    return true;
}

static sonde_status fit_input(sn_node *n, uint32_t i, sn_graph *g, sn_value *v, sonde_error *err)
{
    while (n->n_in <= i)
        SN_TRY(sn_node_add_input(g, n, NULL, err));
    sn_node_set_input(n, i, v);
    return SONDE_OK;
}

/* Inputs first … last of the attention, one value, get rows from further up. */
static sonde_status list_sources(sn_graph *g, sn_pass_env *env, sn_node *n, const sn_row_chain *c,
                                 int first, int last, const sn_rows *map)
{
    static const char *const names[3] = {"q_view", "k_view", "v_view"};
    places p;
    sn_value *x, *made, *list;
    int32_t *at;
    find_places(n->in[first].value, view_of(n, first), &p);
    SN_TRY(list_constant(g, env, p.batch, p.len, &list, &at));
    for (int64_t b = 0; b < p.batch; b++)
        for (int64_t i = 0; i < p.len; i++)
            at[b * p.len + i] = map->at[b * p.batch_rows + i * p.len_rows];
    SN_TRY(as_matrix(g, env, c->wise[0], c->from, c->move[0], &x));
    SN_TRY(run_through(g, env, c, x, &made));
    for (int i = first; i <= last; i++) {
        const int64_t *old = view_of(n, i), view[5] = {-1, -1, 0, old[3], old[4]};
        SN_TRY(sn_node_set_ints(g, n, names[i], view, 5, env->err));
        sn_node_set_input(n, (uint32_t)i, made);
    }
    if (first == 0)
        SN_TRY(fit_input(n, SN_FUSED_ATTENTION_Q_ROWS, g, list, env->err));
    if (last == 2)
        SN_TRY(fit_input(n, SN_FUSED_ATTENTION_KV_ROWS, g, list, env->err));
    return SONDE_OK;
}

static sonde_status visit_sources(sn_graph *g, sn_pass_env *env, sn_node *n, int first, int last,
                                  bool *done)
{
    sn_row_chain c;
    sn_rows map = {0};
    places p, other;
    sn_value *v = n->in[first].value;
    if (!sn_has_rows(v) || !find_places(v, view_of(n, first), &p))
        return SONDE_OK;
    for (int i = first + 1; i <= last; i++)
        if (n->in[i].value != v || !find_places(v, view_of(n, i), &other) ||
            memcmp(&p, &other, sizeof p) != 0)
            return SONDE_OK;
    if (!is_whole(n, first, &p) || !read_by_only(v, n) || !sn_row_chain_before(v, &c))
        return SONDE_OK;
    bool usable;
    sonde_status st = sn_row_chain_follow(g, env, &c, &map, &usable);
    if (st == SONDE_OK && usable && !sn_rows_still(&map)) {
        st = list_sources(g, env, n, &c, first, last, &map);
        *done = true;
    }
    sn_rows_free(g, &map);
    return st;
}

/* ------------------------------------------------------------------ behind it */

/* Places of the attention's result: the last axis is heads times numbers, the others are rows. */
static bool result_places(const sn_node *n, places *p)
{
    const sn_attr *axes = sn_node_attr(n, "y_axes");
    const sn_type *t = &n->out[0]->fact.type;
    int64_t distance = 1;
    *p = (places){1, 1, 0, 0};
    if (!axes || axes->n != (size_t)t->rank ||
        (axes->ints[t->rank - 1] != 24 &&
         !(axes->ints[t->rank - 1] == 4 && sn_node_attr_int(n, "heads", 0) == 1)))
        return false;
    for (int i = t->rank - 2; i >= 0; i--) {
        if (axes->ints[i] == 1)
            p->batch = t->dims[i], p->batch_rows = distance;
        else if (axes->ints[i] == 3)
            p->len = t->dims[i], p->len_rows = distance;
        else if (axes->ints[i] != 0)
            return false;
        distance *= t->dims[i];
    }
    return true;
}

/* The rows y in the shape of the chain's end, which is made of them. Products take them in that
 * shape, so that nothing is between them and what is added behind; a Gemm takes matrices only. */
static sonde_status shape_result(sn_graph *g, sn_pass_env *env, const sn_row_chain *c, sn_value *y)
{
    sn_node *last = c->move[c->n_move - 1], *shaped;
    sn_value *x = c->to, *made;
    bool first = c->n_wise > 0;
    for (int i = 0; i < c->n_wise; i++)
        first = first && !sn_node_is(c->wise[i], "Gemm");
    if (!first) {
        SN_TRY(run_through(g, env, c, y, &made));
        SN_TRY(add_reshape(g, env, last, made, &c->to->fact.type, x, &shaped));
        SN_TRY(sn_graph_replace(g, (sn_node *[]){last}, 1, shaped, last, env->err));
        return sn_node_refresh(g, shaped, env->err);
    }
    SN_TRY(sn_graph_add_value(g, "", &x, env->err));
    sn_value_show_as(x, y);
    SN_TRY(add_reshape(g, env, c->wise[0], y, &c->to->fact.type, x, &shaped));
    SN_TRY(sn_node_inherit(g, shaped, last, env->err));
    SN_TRY(sn_node_refresh(g, shaped, env->err));
    SN_TRY(run_through(g, env, c, x, &made));
    sn_node *end = c->wise[c->n_wise - 1];
    sn_node_set_output(end, 0, c->to);
    return sn_node_refresh(g, end, env->err);
}

static sonde_status list_result(sn_graph *g, sn_pass_env *env, sn_node *n, const sn_row_chain *c,
                                const places *p, const sn_rows *to, int64_t count)
{
    sn_value *list, *y;
    int32_t *at;
    SN_TRY(list_constant(g, env, p->batch, p->len, &list, &at));
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->len; i++)
            at[b * p->len + i] = to->at[b * p->batch_rows + i * p->len_rows];
    SN_TRY(fit_input(n, SN_FUSED_ATTENTION_Y_ROWS, g, list, env->err));
    SN_TRY(sn_node_set_int(g, n, "y_count", count, env->err));
    SN_TRY(sn_graph_add_value(g, "", &y, env->err));
    sn_value_show_as(y, n->out[0]);
    sn_node_set_output(n, 0, y);
    SN_TRY(sn_node_refresh(g, n, env->err));
    return shape_result(g, env, c, y);
}

static sonde_status visit_result(sn_graph *g, sn_pass_env *env, sn_node *n, bool *done)
{
    sn_row_chain c;
    places p;
    sn_rows map = {0}, to = {0};
    bool usable = true;
    if (!sn_has_rows(n->out[0]) || n->out[0]->n_outputs || !result_places(n, &p) ||
        !sn_row_chain_behind(n->out[0], &c))
        return SONDE_OK;
    sonde_status st = sn_row_chain_follow(g, env, &c, &map, &usable);
    if (st == SONDE_OK && usable && !sn_rows_still(&map))
        st = sn_rows_invert(g, env, &map, sn_row_count(c.from), &to, &usable);
    if (st == SONDE_OK && usable && to.at) {
        st = list_result(g, env, n, &c, &p, &to, map.n);
        *done = true;
    }
    sn_rows_free(g, &map);
    sn_rows_free(g, &to);
    return st;
}

/* ------------------------------------------------------------------ the pass */
static sonde_status visit(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *found)
{
    bool done = false;
    if (n->in[0].value == n->in[1].value)
        SN_TRY(visit_sources(g, env, n, 0, 2, &done));
    else
        SN_TRY(visit_sources(g, env, n, 1, 2, &done));
    if (done)
        SN_TRY(sn_node_refresh(g, n, env->err));
    SN_TRY(visit_result(g, env, n, &done));
    *found += done;
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t found = 0;
    sn_graph_each (n, g) {
        if (!sn_node_is_internal(n, "FusedAttention"))
            continue;
        SN_TRY(visit(g, env, n, &found));
        n_next = n->next; /* what followed may be gone */
    }
    *changes += found;
    return found ? sn_pass_dead_code.run(g, env, changes) : SONDE_OK;
}

const sn_pass sn_pass_window_rows = {
    .name = "window-rows",
    .summary = "lets attention in windows find its rows where they lie in the image",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
