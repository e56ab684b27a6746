/* SPDX-License-Identifier: Apache-2.0 */
/* Finding weights: from every constant forward through all its readers, because a weight may only
 * be changed when all of them are known, and agree on how it lies. */
#include "shrink/find_weights.h"

#include <stdlib.h>
#include <string.h>

/* ---- who reads weights ---- */

typedef enum reader_kind { RIGHT, LEFT, CONV, CONV_TRANSPOSE } reader_kind;

static const struct {
    const char *domain, *op_type;
    uint32_t input;
    reader_kind kind;
    const char *transposed; /* attribute that turns the matrix; "" none */
    int scale, zero;        /* inputs of a quantised weight; -1: none */
} readers[] = {
    {"", "MatMul", 1, RIGHT, "", -1, -1},
    {"", "MatMul", 0, LEFT, "", -1, -1},
    {"", "Gemm", 1, RIGHT, "transB", -1, -1},
    {"", "Gemm", 0, LEFT, "transA", -1, -1},
    {"", "Conv", 1, CONV, "", -1, -1},
    {"", "ConvTranspose", 1, CONV_TRANSPOSE, "", -1, -1},
    {"", "MatMulInteger", 1, RIGHT, "", -1, 3},
    {"", "MatMulInteger", 0, LEFT, "", -1, 2},
    {"", "QLinearMatMul", 3, RIGHT, "", 4, 5},
    {"", "QLinearMatMul", 0, LEFT, "", 1, 2},
    {"", "ConvInteger", 1, CONV, "", -1, 3},
    {"", "QLinearConv", 3, CONV, "", 4, 5},
    {"com.microsoft", "FusedMatMul", 1, RIGHT, "transB", -1, -1},
    {"com.microsoft", "FusedMatMul", 0, LEFT, "transA", -1, -1},
    {"com.microsoft", "FusedGemm", 1, RIGHT, "transB", -1, -1},
    {"com.microsoft", "FusedConv", 1, CONV, "", -1, -1},
    {"com.microsoft", "QGemm", 3, RIGHT, "transB", 4, 5},
    {"com.microsoft", "DynamicQuantizeMatMul", 1, RIGHT, "", 2, 3},
    {"com.microsoft", "MatMulIntegerToFloat", 1, RIGHT, "", 3, 5},
};
enum { N_READERS = sizeof readers / sizeof readers[0], LONGEST_WAY = 64 };

/* What stands between a constant and a reader. */
typedef struct way {
    int rank;
    int perm[SN_MAX_RANK]; /* axis i of the value is axis perm[i] of the constant */
    sn_weight_quant quant;
    bool quantized; /* a QuantizeLinear: a DequantizeLinear of the same numbers follows */
    int length;
} way;

typedef struct reader {
    const sn_node *node;
    size_t place;
} reader;

typedef struct finder {
    sn_weights *found;
    sn_weight *w;           /* the one being followed */
    SN_VEC(reader) readers; /* of it */
    bool has_view;
    sn_map places; /* node ► its place among all nodes, from 1 on */
    size_t n_nodes;
    sn_arena *arena;
    sn_allocator *alloc;
    sonde_error *err;
    sonde_status status; /* the first failure */
} finder;

static void no_memory(finder *f)
{
    if (f->status == SONDE_OK)
        f->status = sn_fail_memory(f->err, 64);
}

/* The first reason counts. */
static void leave(finder *f, const char *note)
{
    if (!f->w->note)
        f->w->note = note;
}

static void leave_for(finder *f, const sn_node *n)
{
    char text[300];
    if (f->w->note)
        return;
    f->w->note = sn_arena_printf(f->arena, "%s reads it, too", sn_node_text(n, text, sizeof text));
    if (!f->w->note)
        no_memory(f);
}

static bool is_op(const sn_node *n, const char *domain, const char *op_type)
{
    return strcmp(n->domain, domain) == 0 && strcmp(n->op_type, op_type) == 0;
}

static int64_t int_attr(const sn_node *n, const char *name, int64_t otherwise)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_INT ? a->i : otherwise;
}

/* The tensor of a Constant node; NULL: it has none, or is another node. */
static const sn_tensor *constant_of_node(const sn_node *n)
{
    const sn_attr *a = is_op(n, "", "Constant") ? sn_node_attr(n, "value") : NULL;
    return a && a->kind == SN_ATTR_TENSOR ? a->tensor : NULL;
}

const sn_tensor *sn_constant_of(const sn_value *v)
{
    if (sn_value_is_const(v))
        return v->fact.data;
    return v->producer ? constant_of_node(v->producer) : NULL;
}

/* ---- quantised weights ---- */

/* False: scale or zero point are not known, or have shapes that fit nothing. */
static bool quant_inputs(const sn_node *n, int scale, int zero, sn_weight_quant *q)
{
    const int at[] = {scale, zero};
    const sn_tensor **to[] = {&q->scale, &q->zero};
    for (int k = 0; k < 2; k++) {
        if (at[k] < 0 || (uint32_t)at[k] >= n->n_in || !n->in[at[k]].value)
            continue;
        *to[k] = sn_constant_of(n->in[at[k]].value);
        if (!*to[k])
            return false;
    }
    q->there = true;
    q->axis = -1;
    return true;
}

static bool is_single(const sn_tensor *t)
{
    return !t || sn_tensor_count(t) == 1;
}

/* One number along `axis` of the value; of constants `of`. Dims of 1 may stand around it. */
static bool quant_along(sn_weight_quant *q, const way *at, const sn_tensor *of, int axis)
{
    const sn_tensor *both[] = {q->scale, q->zero};
    if (is_single(q->scale) && is_single(q->zero))
        return true;
    q->axis = at->perm[axis];
    for (int k = 0; k < 2; k++)
        if (!is_single(both[k]) && sn_tensor_count(both[k]) != of->dims[q->axis])
            return false;
    return true;
}

static bool quant_in_blocks(sn_weight_quant *q, const way *at, const sn_tensor *of, int axis)
{
    const sn_tensor *both[] = {q->scale, q->zero};
    q->axis = at->perm[axis];
    memcpy(q->perm, at->perm, sizeof q->perm);
    for (int k = 0; k < 2; k++) {
        if (!both[k])
            continue;
        if (both[k]->rank != at->rank)
            return false;
        for (int i = 0; i < at->rank; i++) {
            const int64_t dim = of->dims[at->perm[i]];
            const int64_t want = i == axis ? (dim + q->block - 1) / q->block : dim;
            if (both[k]->dims[i] != want)
                return false;
        }
    }
    return true;
}

static bool read_dequantize(const sn_node *n, const sn_tensor *of, way *at)
{
    int64_t axis = int_attr(n, "axis", 1);
    const int64_t block = int_attr(n, "block_size", 0);
    axis += axis < 0 ? at->rank : 0;
    if (at->quantized) { /* of the numbers a QuantizeLinear made: floats remain floats */
        at->quantized = false;
        return true;
    }
    if (at->quant.there || !quant_inputs(n, 1, 2, &at->quant))
        return false;
    if (is_single(at->quant.scale) && is_single(at->quant.zero))
        return true;
    if (axis < 0 || axis >= at->rank || block < 0)
        return false;
    at->quant.block = block;
    return block ? quant_in_blocks(&at->quant, at, of, (int)axis)
                 : quant_along(&at->quant, at, of, (int)axis);
}

static bool same_quant(const sn_weight_quant *a, const sn_weight_quant *b)
{
    return a->there == b->there && a->scale == b->scale && a->zero == b->zero &&
           a->axis == b->axis && a->block == b->block &&
           memcmp(a->perm, b->perm, sizeof a->perm) == 0;
}

/* ---- readers ---- */

static bool view_of(finder *f, size_t row, const sn_node *n, const way *at, sn_weight_view *view)
{
    const reader_kind kind = readers[row].kind;
    int out = kind == CONV ? 0 : kind == CONV_TRANSPOSE ? 1 : at->rank - (kind == RIGHT ? 1 : 2);
    int k = kind == CONV ? 1 : kind == CONV_TRANSPOSE ? 0 : at->rank - (kind == RIGHT ? 2 : 1);
    const int64_t groups = kind == CONV || kind == CONV_TRANSPOSE ? int_attr(n, "group", 1) : 1;
    if (readers[row].transposed[0] && int_attr(n, readers[row].transposed, 0)) {
        const int swap = out;
        out = k;
        k = swap;
    }
    /* FusedMatMul: the batches may lie between the axes of the matrices. */
    if (at->rank > 2 && int_attr(n, readers[row].input ? "transBatchB" : "transBatchA", 0)) {
        out = out == at->rank - 2 ? 0 : out;
        k = k == at->rank - 2 ? 0 : k;
    }
    *view = (sn_weight_view){.out_axis = at->perm[out],
                             .k_axis = at->perm[k],
                             .groups = groups,
                             .groups_along_k = groups > 1 && kind == CONV_TRANSPOSE};
    const int64_t *dims = f->w->data->dims;
    const int64_t split = dims[view->groups_along_k ? view->k_axis : view->out_axis];
    if (groups < 1 || split % groups != 0)
        return false;
    if (groups > 1)
        f->w->depthwise = dims[view->groups_along_k ? view->out_axis : view->k_axis] == 1 &&
                          (!view->groups_along_k || split == groups);
    return true;
}

static bool same_view(const sn_weight_view *a, const sn_weight_view *b)
{
    return a->out_axis == b->out_axis && a->k_axis == b->k_axis && a->groups == b->groups &&
           a->groups_along_k == b->groups_along_k;
}

static void read_weight(finder *f, size_t row, const sn_node *n, way at)
{
    sn_weight_view view;
    const sn_tensor *t = f->w->data;
    const reader r = {n, (size_t)(uintptr_t)sn_map_get_address(&f->places, n)};
    if (!sn_vec_push(&f->readers, f->alloc, r))
        no_memory(f);
    if (!at.quantized && (readers[row].scale >= 0 || readers[row].zero >= 0)) {
        const bool conv = readers[row].kind == CONV;
        const int out = conv ? 0 : at.rank - (readers[row].kind == RIGHT ? 1 : 2);
        const bool turned = readers[row].transposed[0] && int_attr(n, readers[row].transposed, 0);
        if (!quant_inputs(n, readers[row].scale, readers[row].zero, &at.quant) ||
            !quant_along(&at.quant, &at, t, turned ? at.rank - 2 : out))
            leave(f, "its scale or zero point is not a constant of the usual shape");
    }
    if (!view_of(f, row, n, &at, &view)) {
        leave(f, "its groups are not supported");
    } else if (!f->has_view) {
        f->w->view = view;
        f->w->quant = at.quant;
        f->has_view = true;
    } else if (!same_view(&view, &f->w->view)) {
        leave(f, "nodes that share it read it in different orientations");
    } else if (!same_quant(&at.quant, &f->w->quant)) {
        leave(f, "nodes that share it use different scales or zero points");
    }
}

/* ---- the way there ---- */

static void follow(finder *f, const sn_graph *g, const sn_value *v, const way *at);

static bool is_float(int64_t dtype)
{
    return dtype == SONDE_DTYPE_F32 || dtype == SONDE_DTYPE_F16 || dtype == SONDE_DTYPE_BF16 ||
           dtype == SONDE_DTYPE_F64;
}

static bool transpose(const sn_node *n, way *at)
{
    const sn_attr *a = sn_node_attr(n, "perm");
    const way from = *at;
    uint32_t seen = 0; /* every axis once: what is no permutation must not become a view */
    if (a && (a->kind != SN_ATTR_INTS || a->n != (size_t)at->rank))
        return false;
    for (int i = 0; i < at->rank; i++) {
        const int64_t axis = a ? a->ints[i] : at->rank - 1 - i;
        if (axis < 0 || axis >= at->rank || (seen >> axis & 1))
            return false;
        seen |= UINT32_C(1) << axis;
        at->perm[i] = from.perm[axis];
    }
    return true;
}

/* Whether the node hands the weight on, and how. */
static bool pass_on(const finder *f, const sn_node *n, uint32_t input, way *at)
{
    if (input != 0 || n->n_out < 1 || !n->out[0] || ++at->length > LONGEST_WAY)
        return false;
    if (is_op(n, "", "Identity"))
        return true;
    if (is_op(n, "", "Transpose"))
        return transpose(n, at);
    if (is_op(n, "", "Cast"))
        return (is_float(f->w->data->dtype) || at->quant.there) && is_float(int_attr(n, "to", 0));
    if (is_op(n, "", "QuantizeLinear"))
        return (at->quantized = is_float(f->w->data->dtype) && !at->quantized);
    if (is_op(n, "", "DequantizeLinear"))
        return read_dequantize(n, f->w->data, at);
    return false;
}

static void follow_captures(finder *f, const sn_node *n, uint32_t input, const way *at)
{
    const sn_graph *body;
    for (uint32_t b = 0; (body = sn_node_body(n, b)) != NULL; b++)
        for (size_t k = 0; k < body->capture_map.n; k++)
            if (body->capture_map.data[k] == input)
                follow(f, body, body->inputs.data[body->n_formal_inputs + k], at);
}

static void follow_edge(finder *f, const sn_graph *g, const sn_edge *e, const way *at)
{
    if (e->index >= e->node->n_formal_in) {
        follow_captures(f, e->node, e->index, at);
        return;
    }
    for (size_t row = 0; at->rank >= 2 && row < N_READERS; row++)
        if (e->index == readers[row].input &&
            is_op(e->node, readers[row].domain, readers[row].op_type)) {
            read_weight(f, row, e->node, *at);
            return;
        }
    way next = *at;
    if (pass_on(f, e->node, e->index, &next))
        follow(f, g, e->node->out[0], &next);
    else
        leave_for(f, e->node);
}

static void follow(finder *f, const sn_graph *g, const sn_value *v, const way *at)
{
    if (v->n_outputs)
        leave(f, g->parent ? "a body returns it" : "it is an output of the model");
    for (const sn_edge *e = v->uses; e; e = e->next)
        follow_edge(f, g, e, at);
}

/* ---- constants ---- */

static bool can_change(const sn_weight *w)
{
    const sn_dtype t = w->data->dtype;
    if (w->quant.there)
        return t == SONDE_DTYPE_I8 || t == SONDE_DTYPE_U8 || t == SONDE_DTYPE_I4 ||
               t == SONDE_DTYPE_U4 || t == SONDE_DTYPE_I16 || t == SONDE_DTYPE_U16;
    return is_float(t);
}

/* The values that are one constant: an entry for each, those of one in a chain. */
typedef struct entry {
    const sn_tensor *data;
    const sn_graph *g;
    const sn_value *v;
    size_t next, last; /* of the chain; SIZE_MAX: none. `last` is that of the first */
} entry;

typedef struct entries {
    SN_VEC(entry) list;
    sn_map first; /* contents ► number of the first entry, and one */
} entries;

static void add_entry(finder *f, entries *all, const sn_tensor *t, const sn_graph *g,
                      const sn_value *v)
{
    const entry e = {t, g, v, SIZE_MAX, all->list.n};
    if (!sn_vec_push(&all->list, f->alloc, e)) {
        no_memory(f);
        return;
    }
    const size_t at = all->list.n - 1;
    const size_t first = (size_t)(uintptr_t)sn_map_get_address(&all->first, t);
    if (first) {
        entry *head = &all->list.data[first - 1];
        all->list.data[head->last].next = at;
        head->last = at;
    } else if (!sn_map_put_address(&all->first, t, (void *)(uintptr_t)(at + 1), NULL)) {
        no_memory(f);
    }
}

/* All constants, and all nodes in the order they run. */
static void collect(finder *f, entries *all, const sn_graph *g)
{
    for (size_t i = 0; i < g->values.n && f->status == SONDE_OK; i++) {
        const sn_value *v = g->values.data[i];
        const sn_tensor *t = v->producer ? constant_of_node(v->producer) : v->fact.data;
        if (t && sn_tensor_is_plain(t) && t->rank >= 2)
            add_entry(f, all, t, g, v);
    }
    for (const sn_node *n = g->first; n && f->status == SONDE_OK; n = n->next) {
        if (!sn_map_put_address(&f->places, n, (void *)(uintptr_t)++f->n_nodes, NULL))
            no_memory(f);
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            collect(f, all, body); /* depth is bounded by sn_graph_new */
    }
}

static int by_place(const void *a, const void *b)
{
    const reader *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void set_readers(finder *f)
{
    const size_t n = f->readers.n;
    const sn_node **list = SN_NEW_N(f->arena, const sn_node *, n);
    if (!list) {
        no_memory(f);
        return;
    }
    qsort(f->readers.data, n, sizeof *f->readers.data, by_place);
    for (size_t i = 0; i < n; i++)
        list[i] = f->readers.data[i].node;
    f->w->readers = list;
    f->w->n_readers = n;
    f->w->order = f->readers.data[0].place;
}

static void find_one(finder *f, const entries *all, size_t first)
{
    sn_weight w = {.data = all->list.data[first].data, .name = ""};
    way at = {.rank = w.data->rank};
    for (int i = 0; i < at.rank; i++)
        at.perm[i] = i;
    f->w = &w;
    f->has_view = false;
    f->readers.n = 0;
    for (size_t k = first; k != SIZE_MAX && f->status == SONDE_OK; k = all->list.data[k].next) {
        const entry *e = &all->list.data[k];
        if (!e->v->producer && e->v->is_input)
            leave(f, "it is an input of the model with a default value");
        if (!w.name[0])
            w.name = e->v->name;
        follow(f, e->g, e->v, &at);
    }
    if (!f->readers.n || f->status != SONDE_OK)
        return;
    if (sn_tensor_count(w.data) == 0)
        leave(f, "it is empty");
    else if (!w.note && !can_change(&w))
        w.note = sn_arena_printf(f->arena, "weights of type %s%s are not supported",
                                 sn_dtype_name(w.data->dtype), w.quant.there ? " with scales" : "");
    set_readers(f);
    if (f->status == SONDE_OK && !sn_vec_push(&f->found->list, f->alloc, w))
        no_memory(f);
}

static int by_order(const void *a, const void *b)
{
    const sn_weight *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->name, y->name);
}

sonde_status sn_weights_find(sn_weights *w, const sn_graph *g, sn_arena *arena, sonde_error *err)
{
    finder f = {.found = w, .arena = arena, .alloc = g->alloc, .err = err};
    entries all = {.list = {NULL, 0, 0}};
    memset(w, 0, sizeof *w);
    sn_map_init(&f.places, g->alloc);
    sn_map_init(&all.first, g->alloc);
    collect(&f, &all, g);
    for (size_t k = 0; k < all.list.n && f.status == SONDE_OK; k++) {
        const sn_tensor *t = all.list.data[k].data;
        if ((size_t)(uintptr_t)sn_map_get_address(&all.first, t) == k + 1)
            find_one(&f, &all, k);
    }
    if (f.status == SONDE_OK && w->list.n > 1)
        qsort(w->list.data, w->list.n, sizeof *w->list.data, by_order);
    sn_map_free(&f.places);
    sn_map_free(&all.first);
    sn_vec_free(&all.list, g->alloc);
    sn_vec_free(&f.readers, g->alloc);
    if (f.status != SONDE_OK)
        sn_weights_free(w, g->alloc);
    return f.status;
}

void sn_weights_free(sn_weights *w, sn_allocator *alloc)
{
    sn_vec_free(&w->list, alloc);
}
