/* SPDX-License-Identifier: Apache-2.0 */
/* Chains that move rows; see row_chain.h. */
#include "passes/row_chain.h"

enum { MAX_PARTS = 4, MAX_ROWS = 1 << 22 };

/* ------------------------------------------------------------------ kinds of nodes */
sn_dim sn_row_width(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    return t->kind == SN_KIND_TENSOR && t->rank > 0 ? t->dims[t->rank - 1] : 0;
}

bool sn_has_rows(const sn_value *v)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) && sn_type_is_concrete(&v->fact.type) &&
           v->fact.type.rank >= 2 && sn_row_width(v) > 0;
}

/* Number of rows; -1: more than lists have. */
int64_t sn_row_count(const sn_value *v)
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
sn_value *sn_row_wise_input(const sn_node *n)
{
    if (sn_node_is(n, "Add") && n->n_in == 2)
        for (int i = 0; i < 2; i++)
            if (sn_has_rows(n->in[i].value) && is_row(n->in[1 - i].value) &&
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
           sn_has_rows(n->in[0].value) && sn_has_rows(n->out[0]) &&
           sn_row_width(n->in[0].value) == sn_row_width(n->out[0]);
}

/* Everything but the first input is constant. */
static bool is_fixed(const sn_node *n)
{
    for (uint32_t i = 1; i < n->n_in; i++)
        if (n->in[i].value && !sn_value_is_const(n->in[i].value))
            return false;
    return true;
}

/* The attribute names an axis other than the last one. */
static bool is_row_axis(const sn_node *n, const sn_value *x, int64_t def)
{
    const int64_t axis = sn_node_attr_int(n, "axis", def), last = x->fact.type.rank - 1;
    return axis != -1 && axis != last;
}

/* Takes rows whole and in order of the columns. */
static bool is_row_slice(const sn_node *n)
{
    if (!sn_node_is(n, "Slice") || n->opset < 10 || !is_fixed(n) || !sn_has_rows(n->in[0].value) ||
        !sn_has_rows(n->out[0]) || sn_row_width(n->in[0].value) != sn_row_width(n->out[0]))
        return false;
    const sn_tensor *steps = n->n_in > 4 && n->in[4].value ? n->in[4].value->fact.data : NULL;
    for (int64_t i = 0; steps && i < sn_tensor_count(steps); i++) {
        int64_t step = 0;
        if (steps->dtype == SONDE_DTYPE_I64)
            sn_tensor_read(steps, i, 1, &step);
        if (step < 1)
            return false;
    }
    return true;
}

/* What all inputs of a Concat are Slices of. */
static sn_value *joined_input(const sn_node *n)
{
    sn_value *from = NULL;
    if (n->n_in > MAX_PARTS || !is_row_axis(n, n->out[0], 0))
        return NULL;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_node *part = n->in[i].value ? n->in[i].value->producer : NULL;
        if (!part || !is_row_slice(part) || sn_value_only_reader(part->out[0]) != n ||
            (from && part->in[0].value != from))
            return NULL;
        from = part->in[0].value;
    }
    return from;
}

/* Moves whole rows of one input, or of Slices of one value that it joins; that value. */
static sn_value *moved_input(const sn_node *n)
{
    if (!n->n_out || !sn_has_rows(n->out[0]) || !n->n_in || !sn_has_rows(n->in[0].value))
        return NULL;
    sn_value *x = n->in[0].value;
    const sn_attr *perm = sn_node_attr(n, "perm");
    const int rank = x->fact.type.rank;
    bool rows = is_reshape(n) || is_row_slice(n);
    if (sn_node_is(n, "Concat"))
        return joined_input(n);
    if (sn_node_is(n, "Transpose"))
        rows = perm && perm->n == (size_t)rank && perm->ints[rank - 1] == rank - 1;
    if (sn_node_is(n, "Gather"))
        rows = is_fixed(n) && is_row_axis(n, x, 0);
    return rows ? x : NULL;
}

/* ------------------------------------------------------------------ carrying it out */
static sonde_status new_rows(sn_graph *g, int64_t n, sn_rows *r, sonde_error *err)
{
    r->n = n;
    r->bytes = (size_t)n * sizeof *r->at;
    r->at = sn_alloc_zero(g->alloc, r->bytes);
    return r->at ? SONDE_OK : sn_fail_memory(err, r->bytes);
}

void sn_rows_free(sn_graph *g, sn_rows *r)
{
    sn_free(g->alloc, r->at, r->at ? r->bytes : 0);
    r->at = NULL;
}

/* `numbers` as a tensor shaped like v, with one number instead of a row. */
static sonde_status as_slot(sn_graph *g, const sn_value *v, const sn_rows *numbers, sn_slot *s,
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
sonde_status sn_row_chain_follow(sn_graph *g, sn_pass_env *env, const sn_row_chain *c, sn_rows *map,
                                 bool *usable)
{
    sn_rows now = {0};
    sonde_status st = SONDE_OK;
    *usable = true;
    SN_TRY(new_rows(g, sn_row_count(c->from), &now, env->err));
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
                  sn_tensor_count(&y.t) == sn_row_count(n->out[0]);
        if (*usable) {
            sn_rows_free(g, &now);
            st = new_rows(g, sn_row_count(n->out[0]), &now, env->err);
        }
        if (*usable && st == SONDE_OK)
            memcpy(now.at, y.t.data, now.bytes);
        sn_slot_clear(&x);
        sn_slot_clear(&y);
    }
    *map = now;
    return st;
}

bool sn_rows_still(const sn_rows *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->at[i] != i)
            return false;
    return true;
}

/* ------------------------------------------------------------------ finding */
/* From v, which only `reader` reads, up: products, then what moves their rows. */
bool sn_row_chain_before(sn_value *v, sn_row_chain *c)
{
    sn_node *wise[SN_ROW_WISE], *move[SN_ROW_MOVES];
    sn_value *x;
    *c = (sn_row_chain){.n_wise = 0};
    for (;; v = x) {
        sn_node *n = v->producer;
        x = !n || n->n_out != 1 || !sn_has_rows(v) ? NULL
            : is_reshape(n)                        ? n->in[0].value
                                                   : sn_row_wise_input(n);
        if (!x)
            break;
        if (!is_reshape(n)) {
            if (c->n_wise == SN_ROW_WISE)
                return false;
            wise[c->n_wise++] = n;
        }
        if (!sn_value_only_reader(x))
            break;
    }
    if (c->n_wise == 0 || !sn_value_only_reader(sn_row_wise_input(wise[c->n_wise - 1])))
        return false;
    c->to = v = sn_row_wise_input(wise[c->n_wise - 1]);
    while (c->n_move < SN_ROW_MOVES && v->producer && (x = moved_input(v->producer))) {
        move[c->n_move++] = v->producer;
        v = x;
    }
    c->from = v;
    for (int i = 0; i < c->n_wise; i++)
        c->wise[i] = wise[c->n_wise - 1 - i];
    for (int i = 0; i < c->n_move; i++)
        c->move[i] = move[c->n_move - 1 - i];
    return c->n_move > 0 && sn_row_count(c->from) > 0 && sn_row_count(c->to) > 0;
}

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

bool sn_row_chain_behind(sn_value *v, sn_row_chain *c)
{
    sn_node *n;
    *c = (sn_row_chain){.from = v};
    while ((n = sn_value_only_reader(v)) && n->n_out == 1 && sn_has_rows(n->out[0])) {
        if (!is_reshape(n)) {
            if (sn_row_wise_input(n) != v || c->n_wise == SN_ROW_WISE)
                break;
            c->wise[c->n_wise++] = n;
            c->from = n->out[0];
        }
        v = n->out[0];
    }
    v = c->from;
    while (c->n_move < SN_ROW_MOVES && (n = next_move(v))) {
        c->move[c->n_move++] = n;
        v = n->out[0];
    }
    c->to = v;
    return c->n_move > 0 && sn_row_count(c->from) > 0 && sn_row_count(c->to) > 0;
}

/* Where each row of the chain's beginning goes; false: to more than one place. */
sonde_status sn_rows_invert(sn_graph *g, sn_pass_env *env, const sn_rows *map, int64_t n,
                            sn_rows *to, bool *usable)
{
    SN_TRY(new_rows(g, n, to, env->err));
    memset(to->at, -1, to->bytes);
    for (int64_t i = 0; i < map->n; i++) {
        *usable = *usable && to->at[map->at[i]] < 0;
        to->at[map->at[i]] = (int32_t)i;
    }
    return SONDE_OK;
}
