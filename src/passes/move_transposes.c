/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes are brought to where others are, so that fold-views makes one of them:
 *
 *   a Transpose that leaves the last axis alone goes from before a matrix product by constant
 *   weights to behind it, or, with a Reshape of the rows, from behind it to before;
 *   an element taken from an axis is taken before the Transpose, parts of the last axis too;
 *   the parts of an axis of parts, taken one by one, are a Split. */
#include "passes/axes.h"

/* ------------------------------------------------------------------ products */

/* A product of f32 by a matrix of constant weights, whose addend (if any) is a row. */
static bool is_product(const sn_node *n)
{
    const bool gemm = sn_node_is(n, "Gemm");
    if ((!gemm && !sn_node_is(n, "MatMul")) || n->n_in < 2 || !n->in[0].value || !n->in[1].value ||
        !sn_value_is_const(n->in[1].value) || n->in[1].value->fact.data->rank != 2 ||
        !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32))
        return false;
    const sn_value *c = n->n_in > 2 ? n->in[2].value : NULL;
    return !gemm || (!sn_node_attr_int(n, "transA", 0) &&
                     (!c || (c->fact.type.kind == SN_KIND_TENSOR &&
                             (c->fact.type.rank == 0 || c->fact.type.rank == 1))));
}

/* A Transpose of three axes or more that keeps the last one. */
static bool keeps_last(const sn_node *n)
{
    int64_t perm[SN_MAX_RANK];
    const int rank = n && sn_node_is(n, "Transpose") ? n->out[0]->fact.type.rank : -1;
    return rank > 2 && sn_transpose_perm(n, rank, perm) && perm[rank - 1] == rank - 1;
}

/* The Add of a constant row behind a MatMul, if that is what reads it. */
static sn_node *row_added(const sn_node *n)
{
    sn_node *add = sn_value_only_reader(n->out[0]);
    const sn_value *row =
        add && sn_node_is(add, "Add") ? sn_node_other_input(add, n->out[0]) : NULL;
    return row && sn_value_is_const(row) && row->fact.data->rank <= 1 ? add : NULL;
}

/* The output of n becomes a new value that `reader` reads: its shape changes. */
static sonde_status renew_output(sn_graph *g, sn_pass_env *env, sn_node *n, sn_node *reader)
{
    sn_value *v;
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    sn_value_show_as(v, n->out[0]);
    for (uint32_t i = 0; i < reader->n_in; i++)
        if (reader->in[i].value == n->out[0])
            sn_node_set_input(reader, i, v);
    sn_node_set_output(n, 0, v);
    return sn_node_refresh(g, n, env->err);
}

/* Transpose ► MatMul (► Add) ► a chain of views: the Transpose goes behind. */
static sonde_status sink(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *changes)
{
    sn_node *t = n->in[0].value->producer, *add = row_added(n), *tail = add ? add : n;
    const sn_node *next = sn_value_only_reader(tail->out[0]);
    if (!sn_node_is(n, "MatMul") || !t || !keeps_last(t) || !next || !sn_moves_axes(next) ||
        sn_value_only_reader(n->in[0].value) != n)
        return SONDE_OK;
    sn_value *out = tail->out[0];
    sn_node_set_input(n, 0, t->in[0].value);
    sn_node_move(g, t, tail->next);
    sn_node_set_output(t, 0, out);
    sn_node_set_input(t, 0, NULL);
    if (add)
        SN_TRY(renew_output(g, env, n, add));
    sn_value *v;
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    sn_value_show_as(v, out);
    sn_node_set_output(tail, 0, v);
    sn_node_set_input(t, 0, v);
    SN_TRY(sn_node_refresh(g, tail, env->err));
    (*changes)++;
    return sn_node_refresh(g, t, env->err);
}

/* The shape of a constant Reshape that only groups rows anew, with `columns` at its end for those
 * of the input; false: it is another one. */
static bool regroups(const sn_node *r, int64_t columns, int64_t *shape, int *rank)
{
    const sn_value *v = r->n_in > 1 ? r->in[1].value : NULL;
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    const sn_type *x = &r->in[0].value->fact.type;
    if (!t || t->dtype != SONDE_DTYPE_I64 || t->rank != 1 || t->dims[0] < 1 ||
        t->dims[0] > SN_MAX_RANK || x->rank < 1 || sn_node_attr_int(r, "allowzero", 0))
        return false;
    *rank = (int)t->dims[0];
    sn_tensor_read(t, 0, *rank, shape);
    for (int i = 0; i + 1 < *rank; i++)
        if (shape[i] == 0) /* a dim of the product's, whose place may be another before it */
            return false;
    bool same = shape[*rank - 1] == x->dims[x->rank - 1];
    shape[*rank - 1] = columns;
    return same;
}

/* A chain of views ► product ► Reshape ► Transpose: both go before the product. */
static sonde_status hoist(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *changes)
{
    sn_node *r = sn_value_only_reader(n->out[0]);
    sn_node *t = r && sn_node_is(r, "Reshape") ? sn_value_only_reader(r->out[0]) : NULL;
    sn_value *a = n->in[0].value, *shape_value;
    const sn_type *type = &a->fact.type;
    int64_t shape[SN_MAX_RANK];
    int rank;
    void *data;
    if (!t || !keeps_last(t) || !a->producer || !sn_moves_axes(a->producer) || type->rank < 1 ||
        !sn_dim_known(type->dims[type->rank - 1]) ||
        !regroups(r, type->dims[type->rank - 1], shape, &rank))
        return SONDE_OK;
    const int64_t count = rank;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &count, 1, &shape_value, &data));
    memcpy(data, shape, (size_t)rank * sizeof *shape);
    sn_value *out = t->out[0], *rows, *moved;
    SN_TRY(sn_graph_add_value(g, "", &rows, env->err));
    SN_TRY(sn_graph_add_value(g, "", &moved, env->err));
    sn_value_show_as(rows, a);
    sn_value_show_as(moved, a);
    sn_node_set_input(r, 0, a);
    sn_node_set_input(r, 1, shape_value);
    sn_node_set_output(r, 0, rows);
    sn_node_set_input(t, 0, rows);
    sn_node_set_output(t, 0, moved);
    sn_node_set_input(n, 0, moved);
    sn_node_set_output(n, 0, out);
    sn_node_move(g, r, n);
    sn_node_move(g, t, n);
    if (sn_node_is(n, "Gemm")) {
        n->domain = "sonde";
        n->op_type = "FusedGemm";
        n->opset = 1;
    }
    SN_TRY(sn_node_refresh(g, r, env->err));
    SN_TRY(sn_node_refresh(g, t, env->err));
    (*changes)++;
    return sn_node_refresh(g, n, env->err);
}

/* ------------------------------------------------------------------ parts */

/* A Gather of one constant element of an axis: that axis and the element, counted from the front;
 * false: another Gather. */
static bool takes_one(const sn_node *n, int *axis, int64_t *element)
{
    const sn_value *v = sn_node_is(n, "Gather") && n->n_in == 2 ? n->in[1].value : NULL;
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    const sn_type *x = n->in[0].value ? &n->in[0].value->fact.type : NULL;
    if (!t || t->dtype != SONDE_DTYPE_I64 || t->rank != 0 || !x || x->rank < 1)
        return false;
    int64_t a = sn_node_attr_int(n, "axis", 0);
    a += a < 0 ? x->rank : 0;
    sn_tensor_read(t, 0, 1, element);
    if (a < 0 || a >= x->rank || !sn_dim_known(x->dims[a]))
        return false;
    *element += *element < 0 ? x->dims[a] : 0;
    *axis = (int)a;
    return *element >= 0 && *element < x->dims[a];
}

static sonde_status set_ints(sn_graph *g, sn_node *n, const char *name, const int64_t *ints,
                             int count, sonde_error *err)
{
    int64_t *copy = SN_NEW_N(g->arena, int64_t, count + 1);
    if (!copy)
        return sn_fail_memory(err, sizeof *copy * SN_MAX_RANK);
    memcpy(copy, ints, (size_t)count * sizeof *copy);
    sn_attr a = {.name = name, .kind = SN_ATTR_INTS, .n = (size_t)count, .ints = copy};
    return sn_node_set_attr(g, n, &a, err);
}

/* Transpose ► Gather of one element: the element first, a smaller Transpose behind. */
static sonde_status take_before(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *changes)
{
    int axis;
    int64_t element, perm[SN_MAX_RANK], rest[SN_MAX_RANK];
    sn_node *t = n->in[0].value ? n->in[0].value->producer : NULL, *made;
    const int rank = t ? n->in[0].value->fact.type.rank : -1;
    if (!t || !sn_node_is(t, "Transpose") || !takes_one(n, &axis, &element) ||
        !sn_transpose_perm(t, rank, perm))
        return SONDE_OK;
    for (int i = 0, k = 0; i < rank; i++)
        if (i != axis)
            rest[k++] = perm[i] - (perm[i] > perm[axis]);
    SN_TRY(sn_graph_add_node(g, n->next, "", "Transpose", t->name, 1, 1, &made, env->err));
    made->opset = 13;
    SN_TRY(set_ints(g, made, "perm", rest, rank - 1, env->err));
    SN_TRY(sn_node_inherit(g, made, t, env->err));
    sn_node_set_input(n, 0, t->in[0].value);
    sn_attr a = {.name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = perm[axis]};
    SN_TRY(sn_node_set_attr(g, n, &a, env->err));
    sn_value *out = n->out[0], *v;
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    sn_value_show_as(v, out);
    sn_node_set_output(made, 0, out);
    sn_node_set_output(n, 0, v);
    sn_node_set_input(made, 0, v);
    SN_TRY(sn_node_refresh(g, n, env->err));
    (*changes)++;
    return sn_node_refresh(g, made, env->err);
}

enum { MAX_PARTS = 8 };

/* [… , parts · n] ► Reshape ► [… , parts, n] ► a Gather of each part along that axis: a Split. */
static sonde_status split_parts(sn_graph *g, sn_pass_env *env, sn_node *r, uint32_t *changes)
{
    const sn_value *v = r->out[0];
    const sn_type *x = &r->in[0].value->fact.type, *y = &v->fact.type;
    sn_node *gather[MAX_PARTS] = {NULL}, *made;
    if (v->n_outputs || x->rank < 1 || y->rank != x->rank + 1)
        return SONDE_OK;
    const sn_dim parts = y->dims[y->rank - 2], n = y->dims[y->rank - 1];
    if (!sn_dim_known(parts) || !sn_dim_known(n) || parts < 2 || parts > MAX_PARTS ||
        v->n_uses != (uint32_t)parts || x->dims[x->rank - 1] != parts * n)
        return SONDE_OK;
    for (int i = 0; i + 1 < x->rank; i++)
        if (!sn_dim_same(x->dims[i], y->dims[i]))
            return SONDE_OK;
    sn_node *first = NULL;
    for (const sn_edge *e = v->uses; e; e = e->next) {
        int axis;
        int64_t k;
        if (!takes_one(e->node, &axis, &k) || e->index != 0 || axis != y->rank - 2 || gather[k])
            return SONDE_OK;
        gather[k] = e->node;
    }
    for (const sn_node *at = r->next; at && !first; at = at->next)
        for (int k = 0; k < parts; k++)
            first = at == gather[k] ? gather[k] : first;
    SN_TRY(sn_graph_add_node(g, first, "", "Split", r->name, 2, (uint32_t)parts, &made, env->err));
    made->opset = 13;
    sn_value *sizes;
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &parts, 1, &sizes, &data));
    for (int k = 0; k < parts; k++)
        ((int64_t *)data)[k] = n;
    sn_attr a = {.name = "axis", .kind = SN_ATTR_INT, .n = 1, .i = x->rank - 1};
    SN_TRY(sn_node_set_attr(g, made, &a, env->err));
    sn_node_set_input(made, 0, r->in[0].value);
    sn_node_set_input(made, 1, sizes);
    sn_node *olds[MAX_PARTS + 1] = {r};
    for (int k = 0; k < parts; k++) {
        sn_node_set_output(made, (uint32_t)k, gather[k]->out[0]);
        olds[k + 1] = gather[k];
    }
    SN_TRY(sn_graph_replace(g, olds, (size_t)parts + 1, made, r, env->err));
    (*changes)++;
    return sn_node_refresh(g, made, env->err);
}

/* Transpose ► Split of the last axis, which the Transpose leaves alone: the parts are transposed.
 */
static sonde_status split_before(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *changes)
{
    sn_value *x = n->in[0].value;
    sn_node *t = x ? x->producer : NULL, *made;
    const int rank = x ? x->fact.type.rank : -1;
    const int64_t axis = sn_node_attr_int(n, "axis", 0);
    int64_t perm[SN_MAX_RANK];
    if (!t || !keeps_last(t) || sn_value_only_reader(x) != n || (axis != rank - 1 && axis != -1) ||
        !sn_transpose_perm(t, rank, perm))
        return SONDE_OK;
    sn_node_set_input(n, 0, t->in[0].value);
    sn_node *next = n->next;
    for (uint32_t o = 0; o < n->n_out; o++) {
        sn_value *out = n->out[o], *v;
        if (!out)
            continue;
        SN_TRY(sn_graph_add_node(g, next, "", "Transpose", t->name, 1, 1, &made, env->err));
        made->opset = 13;
        SN_TRY(set_ints(g, made, "perm", perm, rank, env->err));
        SN_TRY(sn_node_inherit(g, made, t, env->err));
        SN_TRY(sn_graph_add_value(g, "", &v, env->err));
        sn_value_show_as(v, out);
        sn_node_set_output(made, 0, out);
        sn_node_set_output(n, o, v);
        sn_node_set_input(made, 0, v);
    }
    SN_TRY(sn_node_refresh(g, n, env->err));
    for (sn_node *m = n->next; m != next; m = m->next)
        SN_TRY(sn_node_refresh(g, m, env->err));
    (*changes)++;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the pass */

static sonde_status round_of(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t ignored = 0;
    sn_graph_each (n, g) {
        if (is_product(n)) {
            SN_TRY(sink(g, env, n, changes));
            if (is_product(n))
                SN_TRY(hoist(g, env, n, changes));
        } else if (sn_node_is(n, "Gather")) {
            SN_TRY(take_before(g, env, n, changes));
        } else if (sn_node_is(n, "Split")) {
            SN_TRY(split_before(g, env, n, changes));
        }
        n_next = n->next;
    }
    SN_TRY(sn_pass_fold_views.run(g, env, &ignored));
    SN_TRY(sn_pass_dead_code.run(g, env, &ignored));
    for (sn_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!sn_node_is(n, "Reshape") || !n->in[0].value)
            continue;
        sn_node *before = n->prev;
        SN_TRY(split_parts(g, env, n, changes));
        next = n->removed ? (before ? before->next : g->first) : next;
    }
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    enum { ROUNDS = 4 };
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t found = 0;
        SN_TRY(round_of(g, env, &found));
        *changes += found;
        if (!found)
            break;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_move_transposes = {
    .name = "move-transposes",
    .summary = "moves transposes across matrix products and gathers, to combine them",
    .run = run,
    .bodies = true,
};
