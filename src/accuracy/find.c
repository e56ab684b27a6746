/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensors two models share, what is known of them before anything runs, and the groups in
 * which they fit into memory. */
#include <math.h>

#include "accuracy/pairs.h"
#include "ops/framework/op.h"

enum { DEFAULT_GROUP_BYTES = 256 << 20 };

static bool has_bodies(const sn_node *n)
{
    return sn_node_body(n, 0) != NULL;
}

/* ------------------------------------------------------------------ pairs */
typedef struct finder {
    sonde_accuracy *acc;
    const sn_graph *a;
    sn_graph *b; /* of acc->tapped */
    sn_map names_a, names_b;
    SN_VEC(sn_pair) pairs;
    uint32_t *pair_of; /* by value id of A: its pair, plus 1; 0: none */
} finder;

/* What a program makes of its inputs: constants are the same on both sides, or not compared. */
static bool is_computed(const sn_value *v)
{
    return *v->name && v->producer && !v->fact.data && !sn_is_op(v->producer, "Constant");
}

static bool is_clip(const sn_node *n)
{
    return sn_is_op(n, "Relu") || sn_is_op(n, "Clip");
}

static sonde_status match(finder *f, const sn_value *v, sn_place_b *found, sonde_error *err)
{
    return sn_match(f->b, sn_model_opset(f->acc->tapped, ""), &f->names_b, &f->names_a, v->name,
                    found, err);
}

/* An output that has another name in B is the one in the same place, if that is none of A's names.
 */
static void match_output(const finder *f, const sn_value *v, sn_place_b *found)
{
    size_t k = 0;
    while (k < f->a->outputs.n && f->a->outputs.data[k] != v)
        k++;
    if (found->seen || k == f->a->outputs.n || f->a->outputs.n != f->b->outputs.n)
        return;
    sn_value *other = f->b->outputs.data[k];
    if (other->producer && !sn_map_get(&f->names_a, other->name))
        found->seen = other;
}

/* Quantisers drop a Relu where bytes cannot be negative anyway. What is called like the input of
 * the Relu then is its output. */
static sonde_status match_clipped(finder *f, const sn_value *v, sn_place_b *found, sonde_error *err)
{
    SN_TRY(match(f, v, found, err));
    const sn_node *behind = v->n_uses == 1 && !v->n_outputs ? v->uses->node : NULL;
    if (found->quantized && is_clip(behind) && behind->out[0]) {
        sn_place_b clipped;
        SN_TRY(match(f, behind->out[0], &clipped, err));
        if (!clipped.seen)
            *found = clipped;
        return SONDE_OK;
    }
    const sn_value *x = is_clip(v->producer) ? v->producer->in[0].value : NULL;
    if (found->seen || !x || x->n_uses != 1 || x->n_outputs || !x->producer)
        return SONDE_OK;
    SN_TRY(match(f, x, found, err));
    if (!found->quantized)
        found->seen = NULL;
    return SONDE_OK;
}

static sonde_status add_pair(finder *f, const sn_node *n, const sn_value *v, sonde_error *err)
{
    sn_pair p = {.name = v->name,
                 .node = n,
                 .layer = n,
                 .output = v->n_outputs > 0,
                 .control = has_bodies(n),
                 .type_a = "",
                 .type_b = "",
                 .inside = "",
                 .at_outputs = NAN};
    SN_TRY(match_clipped(f, v, &p.b, err));
    match_output(f, v, &p.b);
    if (!p.b.seen) {
        f->acc->only_a++;
        return SONDE_OK;
    }
    p.control |= p.b.seen->producer && has_bodies(p.b.seen->producer);
    if (!sn_vec_push(&f->pairs, &f->acc->context->alloc, p))
        return sn_fail_memory(err, sizeof p);
    f->pair_of[v->id] = (uint32_t)f->pairs.n;
    return SONDE_OK;
}

static sonde_status find_pairs(finder *f, sonde_error *err)
{
    sonde_accuracy *acc = f->acc;
    for (const sn_node *n = f->a->first; n; n = n->next)
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && is_computed(n->out[i]))
                SN_TRY(add_pair(f, n, n->out[i], err));
    if (!f->pairs.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "'%.200s' and '%.200s' share no tensor: no name of the first is in the "
                       "second",
                       acc->a.label, acc->b.label);
    if (f->pairs.n > UINT32_MAX / 4)
        return sn_fail(err, SONDE_LIMIT, "the models have too many tensors");
    acc->pairs = SN_NEW_N(&acc->arena, sn_pair, f->pairs.n);
    if (!acc->pairs)
        return sn_fail_memory(err, f->pairs.n * sizeof(sn_pair));
    memcpy(acc->pairs, f->pairs.data, f->pairs.n * sizeof(sn_pair));
    acc->n_pairs = (uint32_t)f->pairs.n;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ what its node reads */
static bool is_product(const sn_node *n)
{
    return sn_is_op(n, "Conv") || sn_is_op(n, "MatMul") || sn_is_op(n, "Gemm") ||
           sn_is_op(n, "ConvTranspose");
}

/* Pairs above the pair's node; nodes that make no pair are passed through. They are part of the
 * same layer, which is called after its product: a Conv whose normalisation B has folded in. */
static sonde_status collect(finder *f, sn_pair *p, uint32_t *seen, uint32_t mark, uint32_t *found,
                            uint32_t *count, sonde_error *err)
{
    SN_VEC(const sn_node *) todo = {0};
    sn_allocator *alloc = &f->acc->context->alloc;
    bool fine = sn_vec_push(&todo, alloc, p->node);
    while (todo.n && fine) {
        const sn_node *at = todo.data[--todo.n];
        if (is_product(at) && !is_product(p->layer))
            p->layer = at;
        for (uint32_t i = 0; i < at->n_in && fine; i++) {
            const sn_value *v = at->in[i].value;
            if (!v || seen[v->id] == mark)
                continue;
            seen[v->id] = mark;
            if (f->pair_of[v->id])
                found[(*count)++] = f->pair_of[v->id] - 1;
            else if (v->producer)
                fine = sn_vec_push(&todo, alloc, v->producer);
        }
    }
    sn_vec_free(&todo, alloc);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(void *));
}

static sonde_status find_reads(finder *f, sonde_error *err)
{
    sonde_accuracy *acc = f->acc;
    const size_t n_values = f->a->values.n + 1;
    sn_arena scratch;
    sn_arena_init(&scratch, &acc->context->alloc);
    uint32_t *seen = SN_NEW_N(&scratch, uint32_t, n_values);
    uint32_t *found = SN_NEW_N(&scratch, uint32_t, n_values);
    sonde_status st = seen && found ? SONDE_OK : sn_fail_memory(err, n_values * sizeof *seen);
    for (uint32_t i = 0; i < acc->n_pairs && st == SONDE_OK; i++) {
        sn_pair *p = &acc->pairs[i];
        uint32_t n = 0;
        st = collect(f, p, seen, i + 1, found, &n, err);
        uint32_t *reads = SN_NEW_N(&acc->arena, uint32_t, n + 1);
        if (st == SONDE_OK && !reads)
            st = sn_fail_memory(err, n * sizeof *reads);
        if (st != SONDE_OK)
            break;
        memcpy(reads, found, n * sizeof *reads);
        p->reads = reads;
        p->n_reads = n;
    }
    sn_arena_free(&scratch);
    return st;
}

/* ------------------------------------------------------------------ types */
/* A copy of the graph with inferred types; with a sample, for its shapes. */
static sonde_status infer(sn_graph *g, const sn_sample *s, sn_arena *arena, sn_graph **typed,
                          sonde_error *err)
{
    SN_TRY(sn_graph_clone(g, arena, typed, err));
    for (size_t i = 0; s && i < (*typed)->inputs.n; i++) {
        sn_value *v = (*typed)->inputs.data[i];
        for (size_t k = 0; k < s->n; k++) {
            const sn_slot *slot = &s->values[k]->slot;
            if (strcmp(s->names[k], v->name) != 0 || slot->kind != SN_KIND_TENSOR)
                continue;
            const sn_type type = {.kind = SN_KIND_TENSOR,
                                  .dtype = slot->t.dtype,
                                  .rank = slot->t.rank,
                                  .dims = slot->t.dims};
            SN_TRY(sn_type_copy(&v->fact.type, &type, arena, err));
        }
    }
    sonde_error ignored; /* what is not known, is found while running */
    sonde_status st = sn_ops_resolve(*typed, &ignored);
    if (st == SONDE_OK)
        st = sn_ops_infer_undeclared(*typed, &ignored);
    return st == SONDE_OUT_OF_MEMORY ? sn_fail_memory(err, 0) : SONDE_OK;
}

static size_t planned_bytes(const sn_type *t)
{
    size_t bytes = t->kind == SN_KIND_TENSOR ? sonde_dtype_bytes(t->dtype) : 0;
    for (int i = 0; t->kind == SN_KIND_TENSOR && i < t->rank; i++)
        if (sn_dim_known(t->dims[i]) && __builtin_mul_overflow(bytes, (size_t)t->dims[i], &bytes))
            return SIZE_MAX / 16;
    return bytes;
}

/* The type of B's tensor as an input: sizes that another sample may change are left open. */
static sonde_status open_type(const sn_type *from, sn_type *to, sn_arena *arena, sonde_error *err)
{
    SN_TRY(sn_type_copy(to, from, arena, err));
    if (from->kind != SN_KIND_TENSOR || from->rank <= 0)
        return SONDE_OK;
    sn_dim *dims = SN_NEW_N(arena, sn_dim, from->rank);
    if (!dims)
        return sn_fail_memory(err, sizeof *dims * (size_t)from->rank);
    for (int i = 0; i < from->rank; i++)
        dims[i] = sn_dim_known(from->dims[i]) ? from->dims[i] : SN_DIM_UNKNOWN;
    to->dims = dims;
    return SONDE_OK;
}

static sonde_status find_types(finder *f, const sn_sample *s, sonde_error *err)
{
    sonde_accuracy *acc = f->acc;
    sn_arena scratch;
    sn_arena_init(&scratch, &acc->context->alloc);
    sn_graph *a = NULL, *b = NULL;
    sonde_status st = infer(acc->a.model->core->graph, s, &scratch, &a, err);
    if (st == SONDE_OK)
        st = infer(f->b, NULL, &scratch, &b, err);
    sn_map names;
    sn_map_init(&names, &acc->context->alloc);
    if (st == SONDE_OK)
        st = sn_map_values(&names, a, err);
    for (uint32_t i = 0; i < acc->n_pairs && st == SONDE_OK; i++) {
        sn_pair *p = &acc->pairs[i];
        const sn_type *t = &((sn_value *)sn_map_get(&names, p->name))->fact.type;
        p->bytes = planned_bytes(t);
        p->dtype_a = t->kind == SN_KIND_TENSOR ? t->dtype : SONDE_DTYPE_UNDEFINED;
        st = open_type(&b->values.data[p->b.seen->id]->fact.type, &p->type, &acc->arena, err);
    }
    sn_map_free(&names);
    if (a)
        sn_graph_free(a);
    if (b)
        sn_graph_free(b);
    sn_arena_free(&scratch);
    return st;
}

/* ------------------------------------------------------------------ groups */
/* In memory at the same time: a pair's tensor in A, in B and as B's operator makes it of A's, and
 * what that operator reads. */
static size_t cost_of(const sonde_accuracy *acc, const sn_pair *p)
{
    size_t cost = p->bytes * 3;
    for (uint32_t i = 0; i < p->n_needs; i++)
        cost += acc->pairs[p->needs[i]].group != p->group ? acc->pairs[p->needs[i]].bytes : 0;
    return cost;
}

static void make_groups(sonde_accuracy *acc)
{
    const size_t most =
        acc->options.group_bytes ? acc->options.group_bytes : (size_t)DEFAULT_GROUP_BYTES;
    size_t total = 0;
    uint32_t group = 0;
    for (uint32_t i = 0; i < acc->n_pairs; i++)
        acc->pairs[i].group = UINT32_MAX;
    for (uint32_t i = 0; i < acc->n_pairs; i++) {
        sn_pair *p = &acc->pairs[i];
        p->group = group;
        size_t cost = cost_of(acc, p);
        if (total && (cost > most || total > most - cost)) {
            p->group = ++group;
            cost = cost_of(acc, p);
            total = 0;
        }
        total = cost > SIZE_MAX - total ? SIZE_MAX : total + cost;
    }
    acc->n_groups = group + 1;
}

static bool any_quantized(const sn_graph *g)
{
    for (const sn_node *n = g->first; n; n = n->next)
        if (sn_is_quantized_op(n) || sn_is_op(n, "QuantizeLinear"))
            return true;
    return false;
}

/* ------------------------------------------------------------------ all of it */
static sonde_status find(finder *f, const sn_sample *s, sonde_error *err)
{
    sonde_accuracy *acc = f->acc;
    f->pair_of = sn_alloc_zero(&acc->context->alloc, (f->a->values.n + 1) * sizeof *f->pair_of);
    if (!f->pair_of)
        return sn_fail_memory(err, f->a->values.n * sizeof *f->pair_of);
    SN_TRY(sn_map_values(&f->names_a, f->a, err));
    SN_TRY(sn_map_values(&f->names_b, f->b, err));
    SN_TRY(find_pairs(f, err));
    SN_TRY(find_reads(f, err));
    SN_TRY(find_types(f, s, err));
    SN_TRY(sn_accuracy_look_inside(acc, err));
    SN_TRY(sn_accuracy_weights(acc, err));
    if (!acc->options.no_local)
        SN_TRY(sn_accuracy_cut(acc, err));
    acc->quantized = any_quantized(f->b) && !any_quantized(f->a);
    make_groups(acc);
    return SONDE_OK;
}

sonde_status sn_accuracy_find(sonde_accuracy *acc, const sn_sample *s, sonde_error *err)
{
    SN_TRY(sn_copy_model(acc->context, acc->b.model->core, &acc->tapped, err));
    finder f = {.acc = acc, .a = acc->a.model->core->graph, .b = acc->tapped->graph};
    sn_map_init(&f.names_a, &acc->context->alloc);
    sn_map_init(&f.names_b, &acc->context->alloc);
    const sonde_status st = find(&f, s, err);
    sn_map_free(&f.names_a);
    sn_map_free(&f.names_b);
    sn_vec_free(&f.pairs, &acc->context->alloc);
    if (f.pair_of)
        sn_free(&acc->context->alloc, f.pair_of, (f.a->values.n + 1) * sizeof *f.pair_of);
    return st;
}
