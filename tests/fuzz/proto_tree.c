/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and writing share one table, the schema: which fields are messages, which are runs of
 * numbers. Packed runs are taken apart into one field a number, so that a mutation need not know
 * the difference, and packed again when they are written. What nests too deep stays bytes. */
#include "fuzz/proto_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "profile/pftrace_fields.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define MAX_FIELDS  ((size_t)1 << 17)
#define MAX_DEPTH   40

typedef struct pt_chunk {
    struct pt_chunk *next;
    size_t bytes;
    _Alignas(16) uint8_t data[];
} pt_chunk;

/* ---- the schema ---- */

enum { NOT_PACKED = -1 };

typedef struct rule {
    uint8_t of; /* the message the field is in */
    uint16_t number;
    uint8_t kind;
    int8_t packed; /* wire type of the elements */
} rule;

static const rule rules[] = {
    {PT_MODEL, MODEL_GRAPH, PT_GRAPH, NOT_PACKED},
    {PT_MODEL, MODEL_OPSET, PT_OPSET, NOT_PACKED},
    {PT_MODEL, 14, PT_ENTRY, NOT_PACKED},
    {PT_MODEL, MODEL_FUNCTION, PT_FUNCTION, NOT_PACKED},
    {PT_GRAPH, GRAPH_NODE, PT_NODE, NOT_PACKED},
    {PT_GRAPH, GRAPH_INITIALIZER, PT_TENSOR, NOT_PACKED},
    {PT_GRAPH, GRAPH_INPUT, PT_INFO, NOT_PACKED},
    {PT_GRAPH, GRAPH_OUTPUT, PT_INFO, NOT_PACKED},
    {PT_GRAPH, GRAPH_INFO, PT_INFO, NOT_PACKED},
    {PT_GRAPH, GRAPH_SPARSE, PT_SPARSE, NOT_PACKED},
    {PT_NODE, NODE_ATTR, PT_ATTR, NOT_PACKED},
    {PT_ATTR, ATTR_T, PT_TENSOR, NOT_PACKED},
    {PT_ATTR, ATTR_G, PT_GRAPH, NOT_PACKED},
    {PT_ATTR, ATTR_FLOATS, PT_LEAF, SN_WIRE_FIXED32},
    {PT_ATTR, ATTR_INTS, PT_LEAF, SN_WIRE_VARINT},
    {PT_ATTR, ATTR_TENSORS, PT_TENSOR, NOT_PACKED},
    {PT_ATTR, 11, PT_GRAPH, NOT_PACKED},
    {PT_ATTR, 14, PT_TYPE, NOT_PACKED},
    {PT_ATTR, 15, PT_TYPE, NOT_PACKED},
    {PT_ATTR, 22, PT_SPARSE, NOT_PACKED},
    {PT_ATTR, 23, PT_SPARSE, NOT_PACKED},
    {PT_TENSOR, TENSOR_DIM, PT_LEAF, SN_WIRE_VARINT},
    {PT_TENSOR, TENSOR_F32, PT_LEAF, SN_WIRE_FIXED32},
    {PT_TENSOR, TENSOR_I32, PT_LEAF, SN_WIRE_VARINT},
    {PT_TENSOR, TENSOR_I64, PT_LEAF, SN_WIRE_VARINT},
    {PT_TENSOR, TENSOR_F64, PT_LEAF, SN_WIRE_FIXED64},
    {PT_TENSOR, TENSOR_U64, PT_LEAF, SN_WIRE_VARINT},
    {PT_TENSOR, 13, PT_ENTRY, NOT_PACKED},
    {PT_SPARSE, 1, PT_TENSOR, NOT_PACKED},
    {PT_SPARSE, 2, PT_TENSOR, NOT_PACKED},
    {PT_SPARSE, 3, PT_LEAF, SN_WIRE_VARINT},
    {PT_INFO, INFO_TYPE, PT_TYPE, NOT_PACKED},
    {PT_TYPE, TYPE_TENSOR, PT_TYPE_TENSOR, NOT_PACKED},
    {PT_TYPE, TYPE_SEQUENCE, PT_TYPE_NESTED, NOT_PACKED},
    {PT_TYPE, 5, PT_TYPE_MAP, NOT_PACKED},
    {PT_TYPE, 8, PT_TYPE_TENSOR, NOT_PACKED},
    {PT_TYPE, TYPE_OPTIONAL, PT_TYPE_NESTED, NOT_PACKED},
    {PT_TYPE_TENSOR, TYPE_TENSOR_SHAPE, PT_SHAPE, NOT_PACKED},
    {PT_TYPE_NESTED, 1, PT_TYPE, NOT_PACKED},
    {PT_TYPE_MAP, 2, PT_TYPE, NOT_PACKED},
    {PT_SHAPE, 1, PT_DIM, NOT_PACKED},
    {PT_FUNCTION, FUNCTION_NODE, PT_NODE, NOT_PACKED},
    {PT_FUNCTION, FUNCTION_OPSET, PT_OPSET, NOT_PACKED},
    {PT_FUNCTION, 11, PT_ATTR, NOT_PACKED},
    {PT_FUNCTION, 12, PT_INFO, NOT_PACKED},
    {PT_TRACE, SN_PF_TRACE_PACKET, PT_PACKET, NOT_PACKED},
    {PT_PACKET, SN_PF_PACKET_INTERNED_DATA, PT_INTERNED, NOT_PACKED},
    {PT_PACKET, SN_PF_PACKET_RECORD, PT_RECORD, NOT_PACKED},
    {PT_INTERNED, SN_PF_INTERNED_NAMES, PT_ROW, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_FACTS, PT_FACTS, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_STEP, PT_STEP, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_LIFE, PT_ROW, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_THREAD, PT_ROW, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_SPAN, PT_ROW, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_COUNTER, PT_ROW, NOT_PACKED},
    {PT_RECORD, SN_PF_RECORD_COUNTS, PT_COUNTS, NOT_PACKED},
    {PT_FACTS, SN_PF_FACTS_MEMORY, PT_LEAF, SN_WIRE_VARINT},
    {PT_FACTS, SN_PF_FACTS_USAGE, PT_LEAF, SN_WIRE_VARINT},
    {PT_STEP, SN_PF_STEP_ORIGIN, PT_ROW, NOT_PACKED},
    {PT_STEP, SN_PF_STEP_INPUT, PT_STEP_TENSOR, NOT_PACKED},
    {PT_STEP, SN_PF_STEP_OUTPUT, PT_STEP_TENSOR, NOT_PACKED},
    {PT_STEP, SN_PF_STEP_COUNTS, PT_ROW, NOT_PACKED},
    {PT_STEP_TENSOR, SN_PF_TENSOR_DIMS, PT_LEAF, SN_WIRE_VARINT},
    {PT_COUNTS, SN_PF_COUNTS_COUNTS, PT_ROW, NOT_PACKED},
};

static const rule *rule_of(unsigned kind, uint32_t number)
{
    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++)
        if (rules[k].of == kind && rules[k].number == number)
            return &rules[k];
    return NULL;
}

/* ---- memory ---- */

void *pt_alloc(pt_arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->chunks || a->chunks->bytes - a->used < bytes) {
        size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        pt_chunk *c = malloc(sizeof *c + room);
        if (!c)
            abort();
        *c = (pt_chunk){.next = a->chunks, .bytes = room};
        a->chunks = c;
        a->used = 0;
    }
    void *p = a->chunks->data + a->used;
    a->used += bytes;
    return memset(p, 0, bytes);
}

void pt_reset(pt_arena *a)
{
    while (a->chunks && (a->chunks->next || a->chunks->bytes > CHUNK_BYTES)) {
        pt_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
    a->used = a->n_fields = 0;
}

static pt_field *new_field(pt_arena *a, uint32_t number, uint8_t wire)
{
    pt_field *f = pt_alloc(a, sizeof *f);
    f->number = number;
    f->wire = wire;
    a->n_fields++;
    return f;
}

/* ---- reading ---- */

static bool parse_message(pt_arena *a, pt_field *m, sn_wire w, unsigned depth);

static void parse_packed(pt_arena *a, pt_field *m, const sn_field *f, uint8_t elem)
{
    sn_wire_iter it;
    uint64_t num;
    sn_wire_iter_start(&it, f, elem);
    while (sn_wire_iter_next(&it, &num))
        pt_add_num(a, m, f->tag >> 3, elem, num);
}

static void parse_field(pt_arena *a, pt_field *m, const sn_field *f, unsigned depth)
{
    uint32_t number = f->tag >> 3;
    uint8_t wire = f->tag & 7;
    size_t count;
    const rule *r = rule_of(m->kind, number);
    if (wire == SN_WIRE_BYTES && r && r->packed != NOT_PACKED &&
        sn_wire_count(f, r->packed, &count) && count) {
        parse_packed(a, m, f, (uint8_t)r->packed);
        return;
    }
    pt_field *kid = new_field(a, number, wire);
    kid->num = f->num;
    kid->bytes = f->body.at;
    kid->n_bytes = wire == SN_WIRE_BYTES ? sn_wire_bytes(&f->body) : 0;
    if (wire == SN_WIRE_BYTES && r && r->kind != PT_LEAF && depth < MAX_DEPTH) {
        kid->kind = r->kind;
        if (!parse_message(a, kid, f->body, depth + 1)) {
            kid->kind = PT_LEAF;
            kid->n_kids = 0;
        }
    }
    pt_insert(a, m, UINT32_MAX, kid);
}

static bool parse_message(pt_arena *a, pt_field *m, sn_wire w, unsigned depth)
{
    sn_field f;
    sn_wire_status got;
    while ((got = sn_wire_next(&w, &f)) == SN_WIRE_FIELD && a->n_fields < MAX_FIELDS)
        parse_field(a, m, &f, depth);
    return got == SN_WIRE_END;
}

pt_field *pt_parse(pt_arena *a, const uint8_t *data, size_t bytes)
{
    pt_field *root = new_field(a, 0, SN_WIRE_BYTES);
    root->kind = PT_MODEL;
    if (!parse_message(a, root, sn_wire_of(data, bytes), 0))
        return NULL;
    const pt_field *graph = pt_find(root, MODEL_GRAPH);
    return graph && graph->kind == PT_GRAPH ? root : NULL;
}

pt_field *pt_parse_trace(pt_arena *a, const uint8_t *data, size_t bytes)
{
    pt_field *root = new_field(a, 0, SN_WIRE_BYTES);
    root->kind = PT_TRACE;
    return parse_message(a, root, sn_wire_of(data, bytes), 0) ? root : NULL;
}

/* ---- writing ---- */

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v > 0x7F; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static size_t num_bytes(uint8_t wire, uint64_t num)
{
    return wire == SN_WIRE_VARINT ? varint_bytes(num) : wire == SN_WIRE_FIXED64 ? 8 : 4;
}

static uint8_t *put_num(uint8_t *p, uint8_t wire, uint64_t num)
{
    if (wire == SN_WIRE_VARINT)
        return put_varint(p, num);
    for (int k = 0; k < (wire == SN_WIRE_FIXED64 ? 8 : 4); k++)
        *p++ = (uint8_t)(num >> (8 * k));
    return p;
}

/* How many kids from `k` on are one packed run: contents of tensors are, as protobuf declares them,
 * and every list of a .pftrace; 0: the field stands alone. */
static uint32_t packed_run(const pt_field *m, uint32_t k, size_t *bytes)
{
    const pt_field *f = m->kids[k];
    const bool contents = m->kind == PT_TENSOR && f->number != TENSOR_DIM;
    if (!(contents || m->kind >= PT_TRACE) || f->wire == SN_WIRE_BYTES)
        return 0;
    const rule *r = rule_of(m->kind, f->number);
    if (!r || r->packed != (int8_t)f->wire)
        return 0;
    uint32_t n = 0;
    *bytes = 0;
    while (k + n < m->n_kids && m->kids[k + n]->number == f->number &&
           m->kids[k + n]->wire == f->wire)
        *bytes += num_bytes(f->wire, m->kids[k + n++]->num);
    return n;
}

static size_t pt_size(pt_field *m)
{
    size_t sum = 0, run_bytes;
    for (uint32_t k = 0; k < m->n_kids; k++) {
        pt_field *f = m->kids[k];
        sum += varint_bytes((uint64_t)f->number << 3);
        uint32_t run = packed_run(m, k, &run_bytes);
        if (run) {
            sum += varint_bytes(run_bytes) + run_bytes;
            k += run - 1;
        } else if (f->wire != SN_WIRE_BYTES) {
            sum += num_bytes(f->wire, f->num);
        } else {
            if (f->kind != PT_LEAF)
                f->n_bytes = pt_size(f);
            sum += varint_bytes(f->n_bytes) + f->n_bytes;
        }
    }
    return sum;
}

static uint8_t *put_message(uint8_t *p, const pt_field *m)
{
    size_t run_bytes;
    for (uint32_t k = 0; k < m->n_kids; k++) {
        const pt_field *f = m->kids[k];
        uint32_t run = packed_run(m, k, &run_bytes);
        p = put_varint(p, (uint64_t)f->number << 3 | (run ? SN_WIRE_BYTES : f->wire));
        if (run) {
            p = put_varint(p, run_bytes);
            for (uint32_t i = 0; i < run; i++)
                p = put_num(p, f->wire, m->kids[k + i]->num);
            k += run - 1;
        } else if (f->wire != SN_WIRE_BYTES) {
            p = put_num(p, f->wire, f->num);
        } else {
            p = put_varint(p, f->n_bytes);
            if (f->kind != PT_LEAF)
                p = put_message(p, f);
            else if (f->n_bytes)
                p = (uint8_t *)memcpy(p, f->bytes, f->n_bytes) + f->n_bytes;
        }
    }
    return p;
}

size_t pt_write(pt_field *root, uint8_t *out, size_t room)
{
    size_t bytes = pt_size(root);
    if (bytes == 0 || bytes > room)
        return 0;
    return (size_t)(put_message(out, root) - out);
}

/* ---- looking and changing ---- */

pt_field *pt_clone(pt_arena *a, const pt_field *f)
{
    if (a->n_fields >= MAX_FIELDS)
        return NULL;
    pt_field *c = new_field(a, f->number, f->wire);
    c->kind = f->kind;
    c->num = f->num;
    c->bytes = f->bytes;
    c->n_bytes = f->n_bytes;
    for (uint32_t k = 0; k < f->n_kids; k++) {
        pt_field *kid = pt_clone(a, f->kids[k]);
        if (!kid)
            return NULL;
        pt_insert(a, c, UINT32_MAX, kid);
    }
    return c;
}

pt_field *pt_nth(const pt_field *message, uint32_t number, uint32_t k)
{
    for (uint32_t i = 0; i < message->n_kids; i++)
        if (message->kids[i]->number == number && k-- == 0)
            return message->kids[i];
    return NULL;
}

pt_field *pt_find(const pt_field *message, uint32_t number)
{
    return pt_nth(message, number, 0);
}

uint32_t pt_count(const pt_field *message, uint32_t number)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < message->n_kids; i++)
        n += message->kids[i]->number == number;
    return n;
}

void pt_insert(pt_arena *a, pt_field *m, uint32_t at, pt_field *kid)
{
    if (m->n_kids == m->cap_kids) {
        uint32_t cap = m->cap_kids ? m->cap_kids * 2 : 4;
        pt_field **kids = pt_alloc(a, cap * sizeof *kids);
        if (m->n_kids)
            memcpy(kids, m->kids, m->n_kids * sizeof *kids);
        m->kids = kids;
        m->cap_kids = cap;
    }
    if (at > m->n_kids)
        at = m->n_kids;
    memmove(m->kids + at + 1, m->kids + at, (m->n_kids - at) * sizeof *m->kids);
    m->kids[at] = kid;
    m->n_kids++;
}

void pt_remove(pt_field *m, const pt_field *kid)
{
    for (uint32_t i = 0; i < m->n_kids; i++)
        if (m->kids[i] == kid) {
            m->n_kids--;
            memmove(m->kids + i, m->kids + i + 1, (m->n_kids - i) * sizeof *m->kids);
            return;
        }
}

void pt_remove_all(pt_field *m, uint32_t number)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_kids; i++)
        if (m->kids[i]->number != number)
            m->kids[n++] = m->kids[i];
    m->n_kids = n;
}

pt_field *pt_add_num(pt_arena *a, pt_field *m, uint32_t number, uint8_t wire, uint64_t num)
{
    pt_field *f = new_field(a, number, wire);
    f->num = num;
    pt_insert(a, m, UINT32_MAX, f);
    return f;
}

pt_field *pt_add_bytes(pt_arena *a, pt_field *m, uint32_t number, const void *data, size_t n)
{
    pt_field *f = new_field(a, number, SN_WIRE_BYTES);
    f->bytes = data;
    f->n_bytes = n;
    pt_insert(a, m, UINT32_MAX, f);
    return f;
}

pt_field *pt_add_message(pt_arena *a, pt_field *m, uint32_t number)
{
    pt_field *f = pt_add_bytes(a, m, number, NULL, 0);
    const rule *r = rule_of(m->kind, number);
    f->kind = r ? r->kind : PT_LEAF;
    return f;
}

void pt_set_num(pt_arena *a, pt_field *m, uint32_t number, uint64_t num)
{
    pt_field *f = pt_find(m, number);
    if (f)
        f->num = num;
    else
        pt_add_num(a, m, number, SN_WIRE_VARINT, num);
}

void pt_set_bytes(pt_arena *a, pt_field *m, uint32_t number, const void *data, size_t n)
{
    pt_field *f = pt_find(m, number);
    if (!f || f->kind != PT_LEAF || f->wire != SN_WIRE_BYTES) {
        pt_remove_all(m, number);
        f = pt_add_bytes(a, m, number, data, n);
    }
    f->bytes = data;
    f->n_bytes = n;
}

void pt_set_text(pt_arena *a, pt_field *m, uint32_t number, const char *text)
{
    pt_set_bytes(a, m, number, text, strlen(text));
}
