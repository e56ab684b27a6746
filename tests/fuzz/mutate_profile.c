/* SPDX-License-Identifier: Apache-2.0 */
/* A profile is tables of numbers that point at each other, so numbers are what is changed most: to
 * another one of the same field, to one beside it, to one that hurts. Records are dropped, doubled
 * and moved: a file may have been cut, or put together. A .pftrace is changed as a tree, JSON as
 * text. */
#include "fuzz/mutate_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "fuzz/proto_tree.h"
#include "fuzz/values.h"
#include "profile/pftrace_fields.h"

static uint64_t hurting_number(uint64_t *random)
{
    static const uint64_t all[] = {0,
                                   1,
                                   2,
                                   UINT32_MAX,
                                   UINT32_MAX - 1,
                                   UINT64_C(1) << 32,
                                   INT32_MAX,
                                   UINT64_MAX,
                                   UINT64_MAX - 1,
                                   INT64_MAX,
                                   UINT64_C(1) << 63,
                                   UINT64_C(1) << 62,
                                   UINT64_C(1) << 60,
                                   1000000,
                                   65536,
                                   64};
    return all[fuzz_below(random, sizeof all / sizeof all[0])];
}

static double hurting_real(uint64_t *random)
{
    static const double all[] = {0,      -0.0,  1,      -1,   0.5,  NAN,  INFINITY, -INFINITY,
                                 5e-324, 1e308, -1e308, 4e18, 1e19, 1e-9, 0.4999};
    return all[fuzz_below(random, sizeof all / sizeof all[0])];
}

static uint64_t changed(uint64_t old, uint64_t *random)
{
    switch (fuzz_below(random, 5)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return old ^ UINT64_C(1) << fuzz_below(random, 64);
    case 3:
        return fuzz_below(random, 8);
    default:
        return hurting_number(random);
    }
}

/* ---- .pftrace ---- */

typedef struct pick {
    uint64_t *random;
    uint32_t number; /* only fields like this one; 0: any leaf of a record */
    uint8_t wire, kind;
    uint32_t seen;
    pt_field *parent, *field;
} pick;

/* Each match is kept with probability one in how many there were so far. */
static void walk(pick *p, pt_field *m)
{
    for (uint32_t k = 0; k < m->n_kids; k++) {
        pt_field *f = m->kids[k];
        const bool leaf = f->kind == PT_LEAF && m->kind >= PT_RECORD;
        const bool like = f->number == p->number && f->wire == p->wire && m->kind == p->kind;
        if (leaf && (!p->number || like) && fuzz_below(p->random, ++p->seen) == 0) {
            p->parent = m;
            p->field = f;
        }
        walk(p, f);
    }
}

static bool pick_leaf(pt_field *root, uint64_t *random, pick *p)
{
    *p = (pick){.random = random};
    walk(p, root);
    return p->field != NULL;
}

/* Another field of the same number in the same kind of message. */
static const pt_field *pick_like(pt_field *root, const pick *of)
{
    pick p = {.random = of->random,
              .number = of->field->number,
              .wire = of->field->wire,
              .kind = of->parent->kind};
    walk(&p, root);
    return p.field;
}

static bool change_value(pt_arena *a, pt_field *root, uint64_t *random)
{
    pick p;
    if (!pick_leaf(root, random, &p))
        return false;
    pt_field *f = p.field;
    if (fuzz_below(random, 3) == 0) {
        const pt_field *other = pick_like(root, &p);
        f->num = other->num;
        f->bytes = other->bytes;
        f->n_bytes = other->n_bytes;
    } else if (f->wire == SN_WIRE_FIXED64) {
        const double v = hurting_real(random);
        memcpy(&f->num, &v, sizeof f->num);
    } else if (f->wire != SN_WIRE_BYTES) {
        f->num = changed(f->num, random);
    } else {
        static const char *const texts[] = {"", "Conv", "MatMul", "a,b;c", "\xFF\x80\"", "=1+1"};
        const char *text = texts[fuzz_below(random, sizeof texts / sizeof texts[0])];
        f->bytes = (const uint8_t *)text;
        f->n_bytes = strlen(text);
    }
    (void)a;
    return true;
}

static bool drop_value(pt_arena *a, pt_field *root, uint64_t *random)
{
    pick p;
    (void)a;
    if (!pick_leaf(root, random, &p))
        return false;
    pt_remove(p.parent, p.field);
    return true;
}

/* A field that the message could have: numbers of all fields are below 24. */
static bool add_value(pt_arena *a, pt_field *root, uint64_t *random)
{
    pick p;
    if (!pick_leaf(root, random, &p))
        return false;
    pt_add_num(a, p.parent, 1 + fuzz_below(random, 23), SN_WIRE_VARINT, changed(0, random));
    return true;
}

static bool drop_packet(pt_arena *a, pt_field *root, uint64_t *random)
{
    (void)a;
    if (root->n_kids)
        pt_remove(root, root->kids[fuzz_below(random, root->n_kids)]);
    return root->n_kids > 0;
}

static bool double_packet(pt_arena *a, pt_field *root, uint64_t *random)
{
    if (!root->n_kids)
        return false;
    pt_field *copy = pt_clone(a, root->kids[fuzz_below(random, root->n_kids)]);
    if (!copy)
        return false;
    /* Ids are unique: a doubled span gets one of its own. */
    pt_field *record = pt_find(copy, SN_PF_PACKET_RECORD);
    pt_field *span = record ? pt_find(record, SN_PF_RECORD_SPAN) : NULL;
    if (span)
        pt_set_num(a, span, SN_PF_SPAN_ID, 1 + fuzz_random(random) % UINT32_MAX);
    pt_insert(a, root, fuzz_below(random, root->n_kids + 1), copy);
    return true;
}

static bool move_packet(pt_arena *a, pt_field *root, uint64_t *random)
{
    if (root->n_kids < 2)
        return false;
    pt_field *packet = root->kids[fuzz_below(random, root->n_kids)];
    pt_remove(root, packet);
    pt_insert(a, root, fuzz_below(random, root->n_kids + 1), packet);
    return true;
}

static bool change_time(pt_arena *a, pt_field *root, uint64_t *random)
{
    if (!root->n_kids)
        return false;
    pt_field *packet = root->kids[fuzz_below(random, root->n_kids)];
    const pt_field *at = packet->kind == PT_PACKET ? pt_find(packet, SN_PF_PACKET_TIMESTAMP) : NULL;
    if (!at)
        return false;
    pt_set_num(a, packet, SN_PF_PACKET_TIMESTAMP, changed(at->num, random));
    return true;
}

size_t mutate_trace(uint8_t *data, size_t size, size_t room, uint64_t seed)
{
    static bool (*const all[])(pt_arena *, pt_field *, uint64_t *) = {
        change_value, change_value, change_value,  change_value, drop_value,
        add_value,    drop_packet,  double_packet, move_packet,  change_time};
    static pt_arena arena;
    uint64_t random = seed + 1;
    pt_reset(&arena);
    uint8_t *copy = pt_alloc(&arena, size + 1); /* leaves point into it */
    if (size)
        memcpy(copy, data, size);
    pt_field *root = pt_parse_trace(&arena, copy, size);
    bool any = false;
    for (uint32_t k = 0, n = 1 + fuzz_below(&random, 4); root && k < n; k++)
        any |= all[fuzz_below(&random, sizeof all / sizeof all[0])](&arena, root, &random);
    return any ? pt_write(root, data, room) : 0;
}

/* ---- JSON ---- */

typedef struct text {
    uint8_t *data;
    size_t size, room;
    uint64_t *random;
} text;

static bool replace(text *t, size_t from, size_t to, const void *with, size_t n)
{
    if (t->size - (to - from) + n > t->room)
        return false;
    memmove(t->data + from + n, t->data + to, t->size - to);
    if (n)
        memcpy(t->data + from, with, n);
    t->size = t->size - (to - from) + n;
    return true;
}

static bool part_of_number(uint8_t c)
{
    return c && strchr("0123456789.eE+-", c) != NULL;
}

/* The next number from a place chosen at random, inside texts too: shapes are written there. */
static bool change_number(text *t)
{
    static const char *const hard[] = {
        "0",   "1",    "-1",     "4294967295",           "4294967296",
        "1e9", "1e30", "0.0005", "18446744073709551615", "1e-30",
        "2",   "3",    "100",    "4611686018427387904",  "1e18"};
    size_t from = fuzz_below(t->random, (uint32_t)t->size);
    while (from < t->size && !(t->data[from] >= '0' && t->data[from] <= '9'))
        from++;
    size_t to = from;
    while (to < t->size && part_of_number(t->data[to]))
        to++;
    if (from == to)
        return false;
    char number[32];
    const char *with = hard[fuzz_below(t->random, sizeof hard / sizeof hard[0])];
    if (fuzz_below(t->random, 2)) {
        char old[24] = "";
        memcpy(old, t->data + from, to - from < 20 ? to - from : 20);
        snprintf(number, sizeof number, "%llu",
                 (unsigned long long)changed(strtoull(old, NULL, 10), t->random));
        with = number;
    }
    return replace(t, from, to, with, strlen(with));
}

/* An object from a place chosen at random: from its brace to the matching one. */
static bool find_object(const text *t, size_t *from, size_t *to)
{
    size_t at = fuzz_below(t->random, (uint32_t)t->size);
    while (at < t->size && t->data[at] != '{')
        at++;
    *from = at;
    int depth = 0;
    for (; at < t->size; at++) {
        depth += (t->data[at] == '{') - (t->data[at] == '}');
        if (depth == 0) {
            *to = at + 1;
            return true;
        }
    }
    return false;
}

static bool double_object(text *t)
{
    size_t from, to;
    if (!find_object(t, &from, &to) || t->size + (to - from) + 1 > t->room)
        return false;
    const size_t n = to - from + 1;
    memmove(t->data + to + n, t->data + to, t->size - to);
    t->data[to] = ',';
    memcpy(t->data + to + 1, t->data + from, n - 1);
    t->size += n;
    return true;
}

static bool drop_object(text *t)
{
    size_t from, to;
    if (!find_object(t, &from, &to))
        return false;
    if (to < t->size && t->data[to] == ',')
        to++;
    return replace(t, from, to, NULL, 0);
}

static bool change_word(text *t)
{
    static const char *const words[] = {"operator", "iteration", "thread", "user",   "memory",
                                        "device",   "model",     "true",   "null",   "{}",
                                        "[]",       "\"\"",      "Node",   "cpu_op", "1*2*?"};
    size_t from = fuzz_below(t->random, (uint32_t)t->size);
    while (from < t->size && t->data[from] != '"')
        from++;
    size_t to = from + 1;
    while (to < t->size && t->data[to] != '"')
        to++;
    const char *with = words[fuzz_below(t->random, sizeof words / sizeof words[0])];
    return to < t->size && replace(t, from + 1, to, with, strlen(with));
}

size_t mutate_json(uint8_t *data, size_t size, size_t room, uint64_t seed)
{
    static bool (*const all[])(text *) = {change_number, change_number, change_number,
                                          double_object, drop_object,   change_word};
    uint64_t random = seed + 1;
    text t = {data, size, room, &random};
    bool any = false;
    for (uint32_t k = 0, n = 1 + fuzz_below(&random, 3); t.size && k < n; k++)
        any |= all[fuzz_below(&random, sizeof all / sizeof all[0])](&t);
    return any ? t.size : 0;
}
