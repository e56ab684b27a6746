/* SPDX-License-Identifier: Apache-2.0 */
/* Inference: the helpers operators use to map facts of inputs to facts of outputs, and the walk
 * over a graph that stores the result. A type the file declares and one that is inferred are
 * merged: what is known wins over symbols, two different known numbers are the model's
 * contradiction. */
#include <string.h>

#include "ops/framework/op.h"

sonde_status sn_infer_fail(sn_infer *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sonde_status st = sn_node_fail_va(c->err, SONDE_INVALID_MODEL, c->node, fmt, args);
    va_end(args);
    return st;
}

/* ------------------------------------------------------------------ dims */
sn_dim sn_dim_add(sn_dim a, sn_dim b)
{
    if (a == 0)
        return b;
    if (b == 0)
        return a;
    int64_t r;
    if (!sn_dim_known(a) || !sn_dim_known(b) || !sn_i64_add(a, b, &r) || !sn_dim_known(r))
        return SN_DIM_UNKNOWN;
    return r;
}

sn_dim sn_dim_mul(sn_dim a, sn_dim b)
{
    if (a == 0 || b == 0)
        return 0;
    if (a == 1)
        return b;
    if (b == 1)
        return a;
    int64_t r;
    if (!sn_dim_known(a) || !sn_dim_known(b) || !sn_i64_mul(a, b, &r) || !sn_dim_known(r))
        return SN_DIM_UNKNOWN;
    return r;
}

/* ------------------------------------------------------------------ answers */
sonde_status sn_infer_tensor(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims, int rank)
{
    if (o >= c->n_out)
        return SONDE_OK;
    sn_type *t = &c->out[o].type;
    t->kind = SN_KIND_TENSOR;
    t->dtype = dtype;
    t->rank = rank < 0 ? -1 : rank;
    t->dims = NULL;
    if (rank > SN_MAX_RANK)
        return sn_infer_fail(c, "output %u has rank %d, at most %d is supported", o, rank,
                             SN_MAX_RANK);
    static const sn_dim no_dims[1]; /* a scalar's: not NULL, so that it can be copied from */
    if (rank == 0)
        t->dims = no_dims;
    if (rank <= 0)
        return SONDE_OK;
    sn_dim *copy = SN_NEW_N(c->arena, sn_dim, rank);
    if (!copy)
        return sn_fail_memory(c->err, sizeof(sn_dim) * (size_t)rank);
    for (int i = 0; i < rank; i++) {
        if (sn_dim_known(dims[i]) && dims[i] < 0)
            return sn_infer_fail(c, "dimension %d of output %u would be %lld", i, o,
                                 (long long)dims[i]);
        copy[i] = dims[i];
    }
    t->dims = copy;
    return SONDE_OK;
}

sonde_status sn_infer_same(sn_infer *c, uint32_t o, uint32_t i)
{
    if (o < c->n_out)
        c->out[o].type = c->in[i]->type;
    return SONDE_OK;
}

static bool read_int(const sn_tensor *t, int64_t k, int64_t *v)
{
    const uint8_t *p = t->data;
    switch (t->dtype) {
#define CASE(D, T)                                                                                 \
    case SONDE_DTYPE_##D: {                                                                        \
        T x;                                                                                       \
        memcpy(&x, p + (size_t)k * sizeof(T), sizeof(T));                                          \
        *v = (int64_t)x;                                                                           \
        return true;                                                                               \
    }
        CASE(I64, int64_t)
        CASE(I32, int32_t)
        CASE(I16, int16_t)
        CASE(I8, int8_t)
        CASE(U8, uint8_t)
        CASE(BOOL, uint8_t)
        CASE(U16, uint16_t)
        CASE(U32, uint32_t)
        CASE(U64, uint64_t)
#undef CASE
    default:
        return false;
    }
}

sonde_status sn_infer_ints(sn_infer *c, uint32_t i, const sn_dim **ints, int64_t *n)
{
    *ints = NULL;
    *n = 0;
    if (!sn_infer_has(c, i))
        return SONDE_OK;
    const sn_fact *f = c->in[i];
    if (f->ints) {
        *ints = f->ints;
        *n = f->n_ints;
        return SONDE_OK;
    }
    const sn_tensor *t = f->data;
    if (!t || !sn_tensor_is_plain(t) || f->type.kind != SN_KIND_TENSOR)
        return SONDE_OK;
    int64_t count = sn_tensor_count(t);
    int64_t probe;
    if (count > SN_MAX_KNOWN_INTS || (count > 0 && !read_int(t, 0, &probe)))
        return SONDE_OK;
    sn_dim *copy = SN_NEW_N(c->arena, sn_dim, count > 0 ? count : 1);
    if (!copy)
        return sn_fail_memory(c->err, sizeof(sn_dim) * (size_t)count);
    for (int64_t k = 0; k < count; k++) {
        read_int(t, k, &copy[k]);
        const bool beyond = t->dtype == SONDE_DTYPE_U64 && copy[k] < 0; /* of 63 bits */
        copy[k] = beyond ? SN_DIM_UNKNOWN : sn_dim_of_number(copy[k]);
    }
    *ints = copy;
    *n = count;
    return SONDE_OK;
}

sonde_status sn_infer_set_ints(sn_infer *c, uint32_t o, const sn_dim *ints, int64_t n)
{
    if (o >= c->n_out || n < 0 || n > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    sn_dim *copy = SN_NEW_N(c->arena, sn_dim, n > 0 ? n : 1);
    if (!copy)
        return sn_fail_memory(c->err, sizeof(sn_dim) * (size_t)n);
    if (n > 0)
        memcpy(copy, ints, sizeof(sn_dim) * (size_t)n);
    c->out[o].ints = copy;
    c->out[o].n_ints = n;
    return SONDE_OK;
}

sonde_status sn_infer_broadcast(sn_infer *c, const sn_type *a, const sn_type *b, sn_dim *dims,
                                int *rank)
{
    *rank = -1;
    if (a->rank < 0 || b->rank < 0)
        return SONDE_OK;
    int n = a->rank > b->rank ? a->rank : b->rank;
    if (n > SN_MAX_RANK)
        return sn_infer_fail(c, "rank %d is above the limit of %d", n, SN_MAX_RANK);
    for (int i = 0; i < n; i++) {
        int ia = i - (n - a->rank), ib = i - (n - b->rank);
        sn_dim da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
        if (da == 1)
            dims[i] = db;
        else if (db == 1 || sn_dim_same(da, db))
            dims[i] = da;
        else if (sn_dim_known(da) && sn_dim_known(db))
            return sn_infer_fail(c, "shapes do not broadcast: %lld against %lld in dimension %d",
                                 (long long)da, (long long)db, i);
        else
            dims[i] = sn_dim_known(da) ? da : sn_dim_known(db) ? db : SN_DIM_UNKNOWN;
    }
    *rank = n;
    return SONDE_OK;
}

sonde_status sn_infer_axis(sn_infer *c, int64_t axis, int rank, bool allow_rank, int *out)
{
    int64_t top = allow_rank ? rank : (int64_t)rank - 1;
    int64_t a = axis < 0 ? axis + rank : axis;
    if (axis < INT32_MIN || a < 0 || a > top)
        return sn_infer_fail(c, "axis %lld is outside a tensor of rank %d", (long long)axis, rank);
    *out = (int)a;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ merging */
/* Merges `made` (inferred) over `declared`; the result is in *made. `what` names the value. Files
 * whose declared shapes are wrong are common, and every other runtime runs them: what the node
 * makes holds then. */
static sonde_status merge_type(const sn_type *declared, sn_type *made, sn_arena *arena,
                               const char *what, int depth, sonde_error *err)
{
    if (declared->kind == SN_KIND_NONE || depth > 16)
        return SONDE_OK;
    if (made->kind == SN_KIND_NONE) {
        *made = *declared;
        return SONDE_OK;
    }
    if (declared->kind != made->kind)
        return sn_fail(err, SONDE_INVALID_MODEL,
                       "value '%s' is declared as a different kind of value than its node produces",
                       what);
    if (made->kind != SN_KIND_TENSOR) {
        if (made->dtype == SONDE_DTYPE_UNDEFINED)
            made->dtype = declared->dtype;
        if (!made->elem || !declared->elem) {
            made->elem = made->elem ? made->elem : declared->elem;
            return SONDE_OK;
        }
        sn_type *elem = SN_NEW(arena, sn_type);
        if (!elem)
            return sn_fail_memory(err, sizeof(sn_type));
        *elem = *made->elem;
        made->elem = elem;
        return merge_type(declared->elem, elem, arena, what, depth + 1, err);
    }
    if (made->dtype == SONDE_DTYPE_UNDEFINED)
        made->dtype = declared->dtype;
    else if (declared->dtype != SONDE_DTYPE_UNDEFINED && declared->dtype != made->dtype)
        return sn_fail(err, SONDE_INVALID_MODEL,
                       "value '%s' is declared as %s but its node produces %s", what,
                       sn_dtype_onnx_name(declared->dtype), sn_dtype_onnx_name(made->dtype));
    if (declared->rank < 0)
        return SONDE_OK;
    if (made->rank < 0) {
        made->rank = declared->rank;
        made->dims = declared->dims;
        return SONDE_OK;
    }
    if (made->rank != declared->rank)
        return SONDE_OK;
    sn_dim *dims = NULL;
    for (int i = 0; i < made->rank; i++) {
        sn_dim d = declared->dims[i], m = made->dims[i];
        if (sn_dim_known(m) || d == SN_DIM_UNKNOWN || (m != SN_DIM_UNKNOWN && !sn_dim_known(d)))
            continue;
        if (!dims) {
            dims = SN_NEW_N(arena, sn_dim, made->rank);
            if (!dims)
                return sn_fail_memory(err, sizeof(sn_dim) * (size_t)made->rank);
            memcpy(dims, made->dims, sizeof(sn_dim) * (size_t)made->rank);
            made->dims = dims;
        }
        dims[i] = d;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ nodes and graphs */
/* What an operator sees for an input of which nothing is known: a tensor of unknown rank, or, for
 * operators that take other kinds too, nothing. */
static const sn_fact unknown_tensor = {
    .type = {.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_UNDEFINED, .rank = -1}};
static const sn_fact unknown_value = {.type = {.kind = SN_KIND_NONE, .rank = -1}};

/* A dim of which nothing is known is still one number in every run: with a symbol of its own, what
 * follows from the value is known to agree with it. Not in bodies, whose runs differ. */
static sonde_status name_unknown_dims(sn_graph *g, sn_type *t, sonde_error *err)
{
    if (g->parent || t->kind != SN_KIND_TENSOR)
        return SONDE_OK;
    sn_dim *dims = NULL;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] != SN_DIM_UNKNOWN)
            continue;
        uint32_t id = sn_graph_fresh_symbol(g);
        if (!dims) {
            dims = SN_NEW_N(g->arena, sn_dim, t->rank);
            if (dims)
                memcpy(dims, t->dims, sizeof(sn_dim) * (size_t)t->rank);
        }
        if (!id || !dims)
            return sn_fail_memory(err, sizeof(sn_dim) * (size_t)t->rank);
        dims[i] = sn_dim_symbol(id);
        t->dims = dims;
    }
    return SONDE_OK;
}

enum { LOCAL = 8 }; /* nodes with more inputs or outputs take the arena */

sonde_status sn_op_infer_node(sn_graph *g, sn_node *n, sonde_error *err)
{
    const sn_fact *in_local[LOCAL] = {NULL};
    sn_fact out_local[LOCAL];
    const sn_fact **in = in_local;
    sn_fact *out = out_local;
    if (!n->op)
        SN_TRY(sn_op_prepare(g, n, err));
    memset(out_local, 0, sizeof(out_local));
    if (n->n_in > LOCAL)
        in = SN_NEW_N(g->arena, const sn_fact *, n->n_in);
    if (n->n_out > LOCAL)
        out = SN_NEW_N(g->arena, sn_fact, n->n_out);
    if (!in || !out)
        return sn_fail_memory(err, sizeof(sn_fact) * ((size_t)n->n_in + n->n_out));
    sn_infer c = {.node = n,
                  .params = n->params,
                  .in = in,
                  .out = out,
                  .n_in = n->n_in,
                  .n_out = n->n_out,
                  .arena = g->arena,
                  .err = err};
    bool any_kind = (n->op->flags & (SN_OP_NONTENSOR | SN_OP_CONTROL)) != 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v)
            continue;
        in[i] = &v->fact;
        /* Operators multiply dims without looking. */
        if (!sn_type_fits(&v->fact.type))
            return sn_fail(err, SONDE_LIMIT, "value '%s' is too large", v->name);
        if (v->fact.type.kind == SN_KIND_NONE)
            in[i] = any_kind ? &unknown_value : &unknown_tensor;
        else if (v->fact.type.kind != SN_KIND_TENSOR && !any_kind)
            return sn_infer_fail(&c, "input %u ('%s') must be a tensor", i, v->name);
        else if (v->fact.type.kind == SN_KIND_TENSOR && v->fact.type.rank > SN_MAX_RANK)
            return sn_infer_fail(&c, "input %u ('%s') has rank %d, at most %d is supported", i,
                                 v->name, v->fact.type.rank, SN_MAX_RANK);
    }
    for (uint32_t o = 0; o < n->n_out; o++)
        out[o].type.rank = -1;
    SN_TRY(n->op->infer(&c));
    for (uint32_t o = 0; o < n->n_out; o++) {
        sn_value *v = n->out[o];
        if (!v)
            continue;
        sonde_status st = merge_type(&v->fact.type, &out[o].type, g->arena, v->name, 0, err);
        if (st != SONDE_OK) {
            sn_error_prefix(err, "node '%s' (%s)", n->name ? n->name : "", n->shown_type);
            return st;
        }
        SN_TRY(name_unknown_dims(g, &out[o].type, err));
        v->fact.type = out[o].type;
        v->fact.ints = out[o].ints;
        v->fact.n_ints = out[o].n_ints;
        v->fact.data = out[o].data;
    }
    return SONDE_OK;
}

sonde_status sn_ops_infer(sn_graph *g, sonde_error *err)
{
    for (size_t i = 0; i < g->inputs.n; i++)
        SN_TRY(name_unknown_dims(g, &g->inputs.data[i]->fact.type, err));
    sn_graph_each (n, g)
        SN_TRY(sn_op_infer_node(g, n, err));
    return SONDE_OK;
}

void sn_ops_forget_shapes(sn_graph *g)
{
    sn_graph_each (n, g) {
        for (uint32_t o = 0; o < n->n_out; o++) {
            if (!n->out[o])
                continue;
            sn_fact *f = &n->out[o]->fact;
            f->ints = NULL;
            f->data = NULL;
            f->type.rank = -1;
            f->type.dims = NULL;
        }
    }
}

sonde_status sn_ops_infer_undeclared(sn_graph *g, sonde_error *err)
{
    sn_ops_forget_shapes(g);
    return sn_ops_infer(g, err);
}

static void set_input(sn_value *v, const sn_fact *given)
{
    if (!given || given->type.kind == SN_KIND_NONE || v->is_initializer)
        return;
    sn_dtype declared = v->fact.type.kind == SN_KIND_TENSOR ? v->fact.type.dtype : 0;
    v->fact = *given;
    v->fact.form = (sn_form){0};
    v->fact.pack = 0;
    if (v->fact.type.kind == SN_KIND_TENSOR && v->fact.type.dtype == SONDE_DTYPE_UNDEFINED)
        v->fact.type.dtype = declared;
}

sonde_status sn_infer_body(sn_infer *c, sn_graph *body, const sn_fact *const *formal, uint32_t n)
{
    if (c->arena != body->arena)
        return SONDE_OK;
    if (n != body->n_formal_inputs)
        return sn_infer_fail(c, "its body '%s' has %u inputs, but %u are given", body->name,
                             body->n_formal_inputs, n);
    sn_ops_forget_shapes(body);
    for (uint32_t i = 0; i < n && i < body->inputs.n; i++)
        set_input(body->inputs.data[i], formal ? formal[i] : NULL);
    for (size_t k = 0; k < body->capture_map.n; k++) {
        size_t inner = body->n_formal_inputs + k;
        uint32_t outer = body->capture_map.data[k];
        if (inner < body->inputs.n && outer < c->n_in)
            set_input(body->inputs.data[inner], c->in[outer]);
    }
    return sn_ops_infer(body, c->err);
}
