/* SPDX-License-Identifier: Apache-2.0 */
/* Attention inside windows of an image: exporters roll the image, cut it into windows, multiply
 * each row of them by the weights of queries, keys and values, and undo it all behind the
 * attention. A product of rows does not care about their order. So the products take the rows as
 * they lie in the image, and the attention gets lists of which rows make a window; the copies
 * around it have nothing left to do, and what is added behind them can be added by the last
 * product.
 *
 * What moves rows may be any chain of Reshape, Transpose, Slice, Concat, Gather and the like: it is
 * carried out here, on the numbers of the rows. */
#include "ops/fused/attention.h"
#include "passes/heads_view.h"

enum { MAX_STEPS = 16, MAX_WISE = 6, MAX_PARTS = 4, MAX_ROWS = 1 << 22 };

typedef struct rows {
    int32_t *at;
    int64_t n;
    size_t bytes;
} rows;

/* Row-wise nodes and the nodes that move rows, both in the order in which they run. */
typedef struct chain {
    sn_node *wise[MAX_WISE];
    int n_wise;
    sn_node *move[MAX_STEPS];
    int n_move;
    sn_value *from, *to; /* ends of what moves */
} chain;

/* ------------------------------------------------------------------ kinds of nodes */
static sn_dim last_dim(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    return t->kind == SN_KIND_TENSOR && t->rank > 0 ? t->dims[t->rank - 1] : 0;
}

static bool is_concrete(const sn_value *v)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) && sn_type_is_concrete(&v->fact.type) &&
           v->fact.type.rank >= 2 && last_dim(v) > 0;
}

/* Number of rows; -1: more than lists have. */
static int64_t count_rows(const sn_value *v)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < v->fact.type.rank && n >= 0; i++)
        n = v->fact.type.dims[i] > MAX_ROWS / (n > 0 ? n : 1) ? -1 : n * v->fact.type.dims[i];
    return n;
}

static bool is_row(const sn_value *v)
{
    return v && sn_value_is_const(v) && v->fact.type.rank <= 2 &&
           (v->fact.type.rank <= 1 || v->fact.type.dims[0] == 1);
}

/* Does the same to every row of its first input, and nothing else. */
static sn_value *wise_input(const sn_node *n)
{
    if (sn_node_is(n, "Add") && n->n_in == 2)
        for (int i = 0; i < 2; i++)
            if (is_concrete(n->in[i].value) && is_row(n->in[1 - i].value) &&
                sn_type_same_shape(&n->in[i].value->fact.type, &n->out[0]->fact.type))
                return n->in[i].value;
    if (sn_node_is(n, "MatMul") && n->n_in == 2 && sn_value_is_const(n->in[1].value) &&
        n->in[1].value->fact.type.rank == 2)
        return n->in[0].value;
    const bool gemm = sn_node_is(n, "Gemm") || sn_node_is_internal(n, "FusedGemm");
    if (gemm && n->n_in <= 3 && !n->post_op[0] && !sn_node_attr_int(n, "transA", 0) &&
        sn_value_is_const(n->in[1].value) &&
        (n->n_in < 3 || !n->in[2].value || is_row(n->in[2].value)))
        return n->in[0].value;
    return NULL;
}

static bool is_reshape(const sn_node *n)
{
    return (sn_node_is(n, "Reshape") || sn_node_is(n, "Squeeze") || sn_node_is(n, "Unsqueeze") ||
            sn_node_is(n, "Flatten")) &&
           is_concrete(n->in[0].value) && is_concrete(n->out[0]) &&
           last_dim(n->in[0].value) == last_dim(n->out[0]);
}

/* Moves whole rows of one input, or of Slices of one value that it joins; that value. */
static sn_value *moved_input(const sn_node *n)
{
    if (!n->n_out || !is_concrete(n->out[0]) || !n->n_in || !is_concrete(n->in[0].value))
        return NULL;
    if (is_reshape(n))
        return n->in[0].value;
    if (sn_node_is(n, "Concat")) {
        sn_value *from = NULL;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const sn_node *part = n->in[i].value ? n->in[i].value->producer : NULL;
            if (!part || !sn_node_is(part, "Slice") || n->n_in > MAX_PARTS ||
                sn_value_only_reader(part->out[0]) != n || (from && part->in[0].value != from))
                return NULL;
            from = part->in[0].value;
        }
        return last_dim(from) == last_dim(n->out[0]) ? from : NULL;
    }
    if (!sn_node_is(n, "Transpose") && !sn_node_is(n, "Slice") && !sn_node_is(n, "Gather"))
        return NULL;
    for (uint32_t i = 1; i < n->n_in; i++)
        if (n->in[i].value && !sn_value_is_const(n->in[i].value))
            return NULL;
    const sn_attr *perm = sn_node_attr(n, "perm");
    const int rank = n->in[0].value->fact.type.rank;
    if (sn_node_is(n, "Transpose") &&
        (!perm || perm->n != (size_t)rank || perm->ints[rank - 1] != rank - 1))
        return NULL;
    return last_dim(n->in[0].value) == last_dim(n->out[0]) ? n->in[0].value : NULL;
}

/* ------------------------------------------------------------------ carrying it out */
static sonde_status new_rows(sn_graph *g, int64_t n, rows *r, sonde_error *err)
{
    r->n = n;
    r->bytes = (size_t)n * sizeof *r->at;
    r->at = sn_alloc_zero(g->alloc, r->bytes);
    return r->at ? SONDE_OK : sn_fail_memory(err, r->bytes);
}

static void free_rows(sn_graph *g, rows *r)
{
    sn_free(g->alloc, r->at, r->at ? r->bytes : 0);
    r->at = NULL;
}

/* `numbers` as a tensor shaped like v, with one number instead of a row. */
static sonde_status as_slot(sn_graph *g, const sn_value *v, const rows *numbers, sn_slot *s,
                            sonde_error *err)
{
    int64_t dims[SN_MAX_RANK];
    const int rank = v->fact.type.rank;
    memcpy(dims, v->fact.type.dims, sizeof *dims * (size_t)rank);
    dims[rank - 1] = 1;
    SN_TRY(sn_slot_new_tensor(s, SONDE_DTYPE_I32, dims, rank, g->alloc, err));
    memcpy(s->t.data, numbers->at, (size_t)numbers->n * sizeof(int32_t));
    return SONDE_OK;
}

/* One node, which is no Reshape, on the numbers of rows. */
static sonde_status move_once(sn_graph *g, sn_pass_env *env, const sn_node *n, const sn_slot *x,
                              sn_slot *y, bool *usable)
{
    sn_slot parts[MAX_PARTS] = {0};
    const sn_slot *given[MAX_PARTS + 4] = {x};
    sonde_status st = SONDE_OK;
    *usable = n->n_in <= MAX_PARTS + 4;
    if (sn_node_is(n, "Concat"))
        for (uint32_t i = 0; i < n->n_in && st == SONDE_OK && *usable; i++) {
            const sn_slot *const one[8] = {x};
            st = sn_node_evaluate(g, env, n->in[i].value->producer, one, &parts[i], usable);
            given[i] = &parts[i];
        }
    if (st == SONDE_OK && *usable)
        st = sn_node_evaluate(g, env, n, given, y, usable);
    for (int i = 0; i < MAX_PARTS; i++)
        sn_slot_clear(&parts[i]);
    return st;
}

/* Row i of c->to is row map->at[i] of c->from. */
static sonde_status follow(sn_graph *g, sn_pass_env *env, const chain *c, rows *map, bool *usable)
{
    rows now = {0};
    sonde_status st = SONDE_OK;
    *usable = true;
    SN_TRY(new_rows(g, count_rows(c->from), &now, env->err));
    for (int64_t i = 0; i < now.n; i++)
        now.at[i] = (int32_t)i;
    for (int k = 0; k < c->n_move && st == SONDE_OK && *usable; k++) {
        const sn_node *n = c->move[k];
        sn_slot x = {0}, y = {0};
        if (is_reshape(n))
            continue;
        st = as_slot(g, moved_input(n), &now, &x, env->err);
        if (st == SONDE_OK)
            st = move_once(g, env, n, &x, &y, usable);
        *usable = *usable && st == SONDE_OK && y.t.dtype == SONDE_DTYPE_I32 &&
                  sn_tensor_count(&y.t) == count_rows(n->out[0]);
        if (*usable) {
            free_rows(g, &now);
            st = new_rows(g, count_rows(n->out[0]), &now, env->err);
        }
        if (*usable && st == SONDE_OK)
            memcpy(now.at, y.t.data, now.bytes);
        sn_slot_clear(&x);
        sn_slot_clear(&y);
    }
    *map = now;
    return st;
}

static bool is_still(const rows *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->at[i] != i)
            return false;
    return true;
}

/* ------------------------------------------------------------------ before the attention */
/* From v, which only `reader` reads, up: products, then what moves their rows. */
static bool find_before(sn_value *v, chain *c)
{
    sn_node *wise[MAX_WISE], *move[MAX_STEPS];
    sn_value *x;
    *c = (chain){.n_wise = 0};
    for (;; v = x) {
        sn_node *n = v->producer;
        x = !n || n->n_out != 1 || !is_concrete(v) ? NULL
            : is_reshape(n)                        ? n->in[0].value
                                                   : wise_input(n);
        if (!x)
            break;
        if (!is_reshape(n)) {
            if (c->n_wise == MAX_WISE)
                return false;
            wise[c->n_wise++] = n;
        }
        if (!sn_value_only_reader(x))
            break;
    }
    if (c->n_wise == 0 || !sn_value_only_reader(wise_input(wise[c->n_wise - 1])))
        return false;
    c->to = v = wise_input(wise[c->n_wise - 1]);
    while (c->n_move < MAX_STEPS && v->producer && (x = moved_input(v->producer))) {
        move[c->n_move++] = v->producer;
        v = x;
    }
    c->from = v;
    for (int i = 0; i < c->n_wise; i++)
        c->wise[i] = wise[c->n_wise - 1 - i];
    for (int i = 0; i < c->n_move; i++)
        c->move[i] = move[c->n_move - 1 - i];
    return c->n_move > 0 && count_rows(c->from) > 0 && count_rows(c->to) > 0;
}

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
    ((int64_t *)data)[rank - 1] = last_dim(v);
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
    const sn_dim dims[2] = {count_rows(v), last_dim(v)};
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
static sonde_status run_through(sn_graph *g, sn_pass_env *env, const chain *c, sn_value *x,
                                sn_value **y)
{
    for (int i = 0; i < c->n_wise; i++) {
        sn_node *n = c->wise[i];
        sn_value *made;
        const bool second = wise_input(n) != n->in[0].value;
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

static const int64_t *view_of(const sn_node *n, int i)
{
    static const char *const names[3] = {"q_view", "k_view", "v_view"};
    return sn_node_attr(n, names[i])->ints;
}

/* Inputs first … last of the attention, one value, get rows from further up. */
static sonde_status list_sources(sn_graph *g, sn_pass_env *env, sn_node *n, const chain *c,
                                 int first, int last, const rows *map)
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
    chain c;
    rows map = {0};
    places p, other;
    sn_value *v = n->in[first].value;
    if (!is_concrete(v) || !find_places(v, view_of(n, first), &p))
        return SONDE_OK;
    for (int i = first + 1; i <= last; i++)
        if (n->in[i].value != v || !find_places(v, view_of(n, i), &other) ||
            memcmp(&p, &other, sizeof p) != 0)
            return SONDE_OK;
    if (!read_by_only(v, n) || !find_before(v, &c))
        return SONDE_OK;
    bool usable;
    sonde_status st = follow(g, env, &c, &map, &usable);
    if (st == SONDE_OK && usable && !is_still(&map)) {
        st = list_sources(g, env, n, &c, first, last, &map);
        *done = true;
    }
    free_rows(g, &map);
    return st;
}

/* ------------------------------------------------------------------ behind it */
/* The node that v goes through next, or the Concat of its Slices. */
static sn_node *next_move(const sn_value *v)
{
    if (v->n_outputs || !v->uses)
        return NULL;
    sn_node *n = v->uses->node;
    if (v->n_uses > 1) {
        n = sn_node_is(n, "Slice") ? sn_value_only_reader(n->out[0]) : NULL;
        for (const sn_edge *u = v->uses; u && n; u = u->next)
            if (!sn_node_is(u->node, "Slice") || sn_value_only_reader(u->node->out[0]) != n)
                n = NULL;
    }
    return n && moved_input(n) == v ? n : NULL;
}

static bool find_behind(sn_value *v, chain *c)
{
    sn_node *n;
    *c = (chain){.from = v};
    while ((n = sn_value_only_reader(v)) && n->n_out == 1 && is_concrete(n->out[0])) {
        if (!is_reshape(n)) {
            if (wise_input(n) != v || c->n_wise == MAX_WISE)
                break;
            c->wise[c->n_wise++] = n;
            c->from = n->out[0];
        }
        v = n->out[0];
    }
    v = c->from;
    while (c->n_move < MAX_STEPS && (n = next_move(v))) {
        c->move[c->n_move++] = n;
        v = n->out[0];
    }
    c->to = v;
    return c->n_move > 0 && count_rows(c->from) > 0 && count_rows(c->to) > 0;
}

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

/* Where each row of the chain's beginning goes; false: to more than one place. */
static sonde_status invert(sn_graph *g, sn_pass_env *env, const rows *map, int64_t n, rows *to,
                           bool *usable)
{
    SN_TRY(new_rows(g, n, to, env->err));
    memset(to->at, -1, to->bytes);
    for (int64_t i = 0; i < map->n; i++) {
        *usable = *usable && to->at[map->at[i]] < 0;
        to->at[map->at[i]] = (int32_t)i;
    }
    return SONDE_OK;
}

/* The rows y in the shape of the chain's end, which is made of them. Products take them in that
 * shape, so that nothing is between them and what is added behind; a Gemm takes matrices only. */
static sonde_status shape_result(sn_graph *g, sn_pass_env *env, const chain *c, sn_value *y)
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

static sonde_status list_result(sn_graph *g, sn_pass_env *env, sn_node *n, const chain *c,
                                const places *p, const rows *to, int64_t count)
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
    chain c;
    places p;
    rows map = {0}, to = {0};
    bool usable = true;
    if (!is_concrete(n->out[0]) || n->out[0]->n_outputs || !result_places(n, &p) ||
        !find_behind(n->out[0], &c))
        return SONDE_OK;
    sonde_status st = follow(g, env, &c, &map, &usable);
    if (st == SONDE_OK && usable && !is_still(&map))
        st = invert(g, env, &map, count_rows(c.from), &to, &usable);
    if (st == SONDE_OK && usable && to.at) {
        st = list_result(g, env, n, &c, &p, &to, map.n);
        *done = true;
    }
    free_rows(g, &map);
    free_rows(g, &to);
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
