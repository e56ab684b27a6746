/* SPDX-License-Identifier: Apache-2.0 */
/* Picking places and numbers, and the round that applies mutations. Places are picked by walking
 * the tree once and keeping each match with probability one in how many there were so far, so no
 * index must be kept in step with changes. */
#include "fuzz/mutate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/run_model.h"

#define MAX_OUTPUT ((size_t)1 << 17)

/* ---- places ---- */

typedef struct walk {
    mutation *m;
    pt_kind kind;
    mu_filter filter;
    mu_spot *out;
    uint32_t seen;
} walk;

static void walk_down(walk *w, pt_field *message)
{
    for (uint32_t k = 0; k < message->n_kids; k++) {
        pt_field *f = message->kids[k];
        if (f->kind == PT_LEAF)
            continue;
        if (f->kind == w->kind && (!w->filter || w->filter(message, f)) &&
            mu_one_in(w->m, ++w->seen))
            *w->out = (mu_spot){message, f};
        walk_down(w, f);
    }
}

bool mu_pick_in(mutation *m, pt_field *root, pt_kind kind, mu_filter filter, mu_spot *out)
{
    walk w = {m, kind, filter, out, 0};
    walk_down(&w, root);
    return w.seen > 0;
}

bool mu_pick(mutation *m, pt_kind kind, mu_filter filter, mu_spot *out)
{
    return mu_pick_in(m, m->model, kind, filter, out);
}

pt_field *mu_pick_kid(mutation *m, const pt_field *message, uint32_t number)
{
    return pt_nth(message, number, mu_below(m, pt_count(message, number)));
}

static bool names_a_value(const pt_field *parent, const pt_field *f)
{
    if (f->kind == PT_NODE)
        return pt_find(f, NODE_OUTPUT) != NULL;
    if (f->kind == PT_TENSOR)
        return parent->kind == PT_GRAPH && pt_find(f, TENSOR_NAME) != NULL;
    return parent->kind == PT_GRAPH && pt_find(f, INFO_NAME) != NULL;
}

const pt_field *mu_pick_name(mutation *m)
{
    static const struct {
        pt_kind kind;
        uint32_t number;
    } places[] = {{PT_NODE, NODE_OUTPUT}, {PT_INFO, INFO_NAME}, {PT_TENSOR, TENSOR_NAME}};
    uint32_t first = mu_below(m, 3);
    for (uint32_t k = 0; k < 3; k++) {
        mu_spot s;
        uint32_t p = (first + k) % 3;
        if (mu_pick(m, places[p].kind, names_a_value, &s))
            return mu_pick_kid(m, s.field, places[p].number);
    }
    return NULL;
}

const char *mu_fresh_name(mutation *m)
{
    char *name = pt_alloc(m->arena, 16);
    snprintf(name, 16, "m%u_%u", (unsigned)(m->random >> 48), m->fresh++);
    return name;
}

/* ---- numbers ---- */

static bool has_dim(const pt_field *parent, const pt_field *f)
{
    (void)parent;
    return pt_find(f, TENSOR_DIM) != NULL; /* = DIM_VALUE */
}

static uint64_t some_dim(mutation *m)
{
    mu_spot s;
    if (!mu_pick(m, mu_one_in(m, 2) ? PT_TENSOR : PT_DIM, has_dim, &s))
        return mu_below(m, 9);
    return mu_pick_kid(m, s.field, TENSOR_DIM)->num + mu_below(m, 3) - 1;
}

int64_t mu_int(mutation *m, int64_t old)
{
    static const int64_t hurting[] = {INT64_MIN,
                                      INT64_MAX,
                                      INT64_MIN + 1,
                                      INT64_MAX - 1,
                                      INT32_MIN,
                                      INT32_MAX,
                                      1LL << 31,
                                      1LL << 32,
                                      1LL << 62,
                                      -(1LL << 62),
                                      (1LL << 32) + 1,
                                      1LL << 20,
                                      65536,
                                      65535,
                                      255,
                                      256,
                                      -128,
                                      1 << 24,
                                      (1LL << 61) + 1,
                                      -(1LL << 31) - 1};
    switch (mu_below(m, 16)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return 1;
    case 3:
        return -1;
    case 4:
    case 5:
        return (int64_t)((uint64_t)old + 1);
    case 6:
    case 7:
        return (int64_t)((uint64_t)old - 1);
    case 8:
        return (int64_t)(0 - (uint64_t)old);
    case 9:
        return (int64_t)((uint64_t)old * 2);
    case 10:
        return (int64_t)((uint64_t)old ^ (uint64_t)1 << mu_below(m, 64));
    case 11:
        return (int64_t)some_dim(m);
    case 12:
        return (int64_t)(0 - some_dim(m));
    case 13:
        return hurting[mu_below(m, sizeof hurting / sizeof hurting[0])];
    default:
        return (int64_t)mu_below(m, 18) - 8;
    }
}

float mu_float(mutation *m, float old)
{
    static const float hurting[] = {NAN,    INFINITY, -INFINITY, 0.0f,   -0.0f, 1e30f, -1e30f,
                                    1e-40f, 3e38f,    -3e38f,    2.5e9f, -1.0f, 1.0f,  1e-7f};
    switch (mu_below(m, 5)) {
    case 0:
        return old + 1;
    case 1:
        return -old;
    case 2:
        return old * 0.5f;
    case 3:
        return (float)mu_below(m, 65) / 8 - 4;
    default:
        return hurting[mu_below(m, sizeof hurting / sizeof hurting[0])];
    }
}

uint32_t mu_dtype(mutation *m)
{
    static const uint8_t common[] = {SONDE_DTYPE_F32, SONDE_DTYPE_I64, SONDE_DTYPE_I32,
                                     SONDE_DTYPE_U8,  SONDE_DTYPE_F16, SONDE_DTYPE_F64,
                                     SONDE_DTYPE_I8,  SONDE_DTYPE_BOOL};
    return mu_one_in(m, 2) ? common[mu_below(m, sizeof common)]
                           : mu_below(m, SONDE_DTYPE_COUNT + 1);
}

/* ---- a round ---- */

static const mutation_row *const lists[] = {mutations_of_tensors, mutations_of_attributes,
                                            mutations_of_types, mutations_of_nodes,
                                            mutations_of_structure};

static void mutate_once(mutation *m)
{
    uint32_t sum = 0;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (const mutation_row *r = lists[l]; r->fn; r++)
            sum += r->weight;
    for (int tries = 0; tries < 8; tries++) {
        uint32_t at = mu_below(m, sum);
        const mutation_row *chosen = NULL;
        for (size_t l = 0; !chosen; l++)
            for (const mutation_row *r = lists[l]; !chosen && r->fn; r++) {
                if (at < r->weight)
                    chosen = r;
                else
                    at -= r->weight;
            }
        if (chosen->fn(m))
            return;
    }
}

static size_t finish(mutation *m, uint8_t *out, size_t room)
{
    if (!mu_one_in(m, 16))
        mu_repair(m);
    pt_field *steer = pt_find(m->model, RUN_STEER_FIELD);
    uint64_t num = steer && steer->wire == 1 ? steer->num : 0;
    if (mu_one_in(m, 3))
        num = mu_one_in(m, 8) ? 0 : fuzz_random(&m->random);
    pt_remove_all(m->model, RUN_STEER_FIELD);
    if (num)
        pt_add_num(m->arena, m->model, RUN_STEER_FIELD, 1, num); /* the last: see run_steer */
    return pt_write(m->model, out, room);
}

/* The bytes are in the caller's buffer, which the tree points into: written aside first. */
static size_t write_aside(mutation *m, uint8_t *out, size_t room)
{
    if (room > MAX_OUTPUT)
        room = MAX_OUTPUT;
    uint8_t *aside = pt_alloc(m->arena, room);
    size_t n = finish(m, aside, room);
    memcpy(out, aside, n);
    return n;
}

/* One arena for all rounds: a fresh one a round costs more than a mutation. */
static mutation begin(const uint8_t *data, size_t size, uint64_t seed)
{
    static pt_arena arena;
    pt_reset(&arena);
    return (mutation){.arena = &arena,
                      .model = pt_parse(&arena, data, size),
                      .random = seed * 0xD1342543DE82EF95u | 1};
}

size_t mutate_model(const uint8_t *data, size_t size, uint8_t *out, size_t room, uint64_t seed)
{
    mutation m = begin(data, size, seed);
    if (!m.model)
        return 0;
    for (uint32_t k = 1 + mu_below(&m, 4) * mu_below(&m, 2); k > 0; k--)
        mutate_once(&m);
    return write_aside(&m, out, room);
}

/* ---- two models ---- */

/* Puts a copy of some message of `kind` of the other model where one of ours is. */
static void swap_in(mutation *m, pt_field *other, pt_kind kind)
{
    mu_spot from, to;
    if (!mu_pick_in(m, other, kind, NULL, &from) || !mu_pick(m, kind, NULL, &to))
        return;
    pt_field *copy = pt_clone(m->arena, from.field);
    if (!copy)
        return;
    uint32_t names[] = {[PT_TENSOR] = TENSOR_NAME, [PT_ATTR] = ATTR_NAME, [PT_INFO] = INFO_NAME};
    const pt_field *name = kind <= PT_INFO && names[kind] ? pt_find(to.field, names[kind]) : NULL;
    if (name && !mu_one_in(m, 8)) /* what refers to it finds the new one */
        pt_set_bytes(m->arena, copy, names[kind], name->bytes, name->n_bytes);
    to.field->kids = copy->kids;
    to.field->n_kids = copy->n_kids;
    to.field->cap_kids = copy->cap_kids;
}

/* Nodes and initializers of the other graph behind ours; mu_repair connects them. */
static void append_graph(mutation *m, pt_field *other)
{
    pt_field *ours = pt_find(m->model, MODEL_GRAPH), *theirs = pt_find(other, MODEL_GRAPH);
    uint32_t outputs = mu_below(m, 2), inputs = mu_below(m, 4);
    for (uint32_t k = 0; k < theirs->n_kids; k++) {
        const pt_field *f = theirs->kids[k];
        bool wanted = f->number == GRAPH_NODE || f->number == GRAPH_INITIALIZER ||
                      (f->number == GRAPH_OUTPUT && outputs) ||
                      (f->number == GRAPH_INPUT && inputs);
        pt_field *copy = wanted ? pt_clone(m->arena, f) : NULL;
        if (copy)
            pt_insert(m->arena, ours, UINT32_MAX, copy);
    }
}

static void splice_node(mutation *m, pt_field *other)
{
    mu_spot from, to;
    if (!mu_pick_in(m, other, PT_NODE, NULL, &from) || !mu_pick(m, PT_NODE, NULL, &to))
        return;
    pt_field *copy = pt_clone(m->arena, from.field);
    if (!copy)
        return;
    copy->number = to.field->number; /* of a graph or of a function */
    if (mu_one_in(m, 2)) {           /* in its place, or before it */
        pt_field *out = pt_find(to.field, NODE_OUTPUT);
        if (out)
            pt_set_bytes(m->arena, copy, NODE_OUTPUT, out->bytes, out->n_bytes);
        pt_remove(to.parent, to.field);
    }
    pt_insert(m->arena, to.parent, mu_below(m, to.parent->n_kids + 1), copy);
    /* Constants it reads come along. */
    pt_field *theirs = pt_find(other, MODEL_GRAPH), *ours = pt_find(m->model, MODEL_GRAPH);
    for (uint32_t i = 0; i < pt_count(copy, NODE_INPUT); i++)
        for (uint32_t k = 0; k < theirs->n_kids; k++) {
            pt_field *f = theirs->kids[k], *name;
            if (f->number == GRAPH_INITIALIZER && f->kind == PT_TENSOR &&
                (name = pt_find(f, TENSOR_NAME)) && pt_same(name, pt_nth(copy, NODE_INPUT, i))) {
                pt_field *constant = pt_clone(m->arena, f);
                if (constant)
                    pt_insert(m->arena, ours, UINT32_MAX, constant);
            }
        }
}

/* Calls of the other model's functions then mean something. */
static void adopt_functions(mutation *m, pt_field *other)
{
    for (uint32_t k = 0; k < other->n_kids; k++) {
        pt_field *copy =
            other->kids[k]->number == MODEL_FUNCTION ? pt_clone(m->arena, other->kids[k]) : NULL;
        if (copy)
            pt_insert(m->arena, m->model, UINT32_MAX, copy);
    }
}

size_t mutate_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                    size_t room, uint64_t seed)
{
    static const pt_kind kinds[] = {PT_TENSOR, PT_ATTR,  PT_GRAPH,    PT_TYPE,
                                    PT_NODE,   PT_OPSET, PT_FUNCTION, PT_SHAPE};
    mutation m = begin(a, a_size, seed);
    pt_field *other = pt_parse(m.arena, b, b_size);
    if (!m.model || !other)
        return 0;
    uint32_t how = mu_below(&m, 8);
    if (how == 0)
        append_graph(&m, other);
    else if (how < 4)
        splice_node(&m, other);
    else
        swap_in(&m, other, kinds[mu_below(&m, sizeof kinds / sizeof kinds[0])]);
    if (how < 4 && !mu_one_in(&m, 4))
        adopt_functions(&m, other);
    if (mu_one_in(&m, 2))
        mutate_once(&m);
    return write_aside(&m, out, room);
}
