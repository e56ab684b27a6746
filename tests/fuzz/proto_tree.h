/* SPDX-License-Identifier: Apache-2.0 */
/* A ModelProto, or a .pftrace, as a tree that can be changed and written again. The tree knows only
 * which fields are messages and which are packed numbers; everything else is numbers and bytes,
 * kept in the order of the file. All memory is the tree's arena: nothing is freed one by one, and
 * running out of memory ends the process, for this serves the fuzzers alone. */
#ifndef SONDE_TESTS_FUZZ_PROTO_TREE_H
#define SONDE_TESTS_FUZZ_PROTO_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a length-delimited field holds. */
typedef enum pt_kind {
    PT_LEAF, /* bytes, text or a number */
    PT_MODEL,
    PT_GRAPH,
    PT_NODE,
    PT_ATTR,
    PT_TENSOR,
    PT_SPARSE,
    PT_INFO, /* ValueInfoProto */
    PT_TYPE,
    PT_TYPE_TENSOR,
    PT_TYPE_NESTED, /* of a sequence or optional */
    PT_TYPE_MAP,
    PT_SHAPE,
    PT_DIM,
    PT_FUNCTION,
    PT_OPSET,
    PT_ENTRY, /* StringStringEntryProto */
    /* of a .pftrace: profile/pftrace_fields.h */
    PT_TRACE,
    PT_PACKET,
    PT_INTERNED,
    PT_RECORD,
    PT_FACTS,
    PT_STEP,
    PT_STEP_TENSOR,
    PT_COUNTS,
    PT_ROW /* numbers and texts only */
} pt_kind;

/* Field numbers, by message. */
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25 };
enum {
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_INFO = 13,
    GRAPH_SPARSE = 15
};
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7 };
enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TENSORS = 10,
    ATTR_TYPE = 20,
    ATTR_REF = 21
};
enum {
    TENSOR_DIM = 1,
    TENSOR_DTYPE = 2,
    TENSOR_F32 = 4,
    TENSOR_I32 = 5,
    TENSOR_STRING = 6,
    TENSOR_I64 = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_F64 = 10,
    TENSOR_U64 = 11
};
enum { INFO_NAME = 1, INFO_TYPE = 2 };
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_OPTIONAL = 9 };
enum { TYPE_TENSOR_DTYPE = 1, TYPE_TENSOR_SHAPE = 2 };
enum { DIM_VALUE = 1, DIM_PARAM = 2 };
enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10
};
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };

typedef struct pt_field pt_field;
struct pt_field {
    uint32_t number;
    uint8_t wire; /* protobuf's wire type: 0 varint, 1 fixed64, 2 bytes or message, 5 fixed32 */
    uint8_t kind; /* pt_kind */
    uint64_t num;
    const uint8_t *bytes; /* leaves of wire type 2; never written through: they may be shared */
    size_t n_bytes;       /* messages: of the last pt_size */
    pt_field **kids;
    uint32_t n_kids, cap_kids;
};

typedef struct pt_arena {
    struct pt_chunk *chunks;
    size_t used; /* of the newest chunk */
    size_t n_fields;
} pt_arena;

void *pt_alloc(pt_arena *a, size_t bytes); /* zeroed */
void pt_reset(pt_arena *a);                /* forgets all; keeps a chunk for the next tree */

/* The root is a PT_MODEL; NULL when the bytes are no message, or one without a graph. `data` must
 * outlive the tree. */
pt_field *pt_parse(pt_arena *a, const uint8_t *data, size_t bytes);
/* The root is a PT_TRACE; NULL when the bytes are no message. */
pt_field *pt_parse_trace(pt_arena *a, const uint8_t *data, size_t bytes);
/* Bytes written, or 0 when there is not room for all. */
size_t pt_write(pt_field *root, uint8_t *out, size_t room);

/* A copy that shares nothing but leaves' bytes. NULL when the tree has grown too large. */
pt_field *pt_clone(pt_arena *a, const pt_field *f);
pt_field *pt_find(const pt_field *message, uint32_t number); /* the first, or NULL */
uint32_t pt_count(const pt_field *message, uint32_t number);
pt_field *pt_nth(const pt_field *message, uint32_t number, uint32_t k); /* NULL past the end */

/* `at` counts the kids; past the end: appended. */
void pt_insert(pt_arena *a, pt_field *message, uint32_t at, pt_field *kid);
void pt_remove(pt_field *message, const pt_field *kid);
void pt_remove_all(pt_field *message, uint32_t number);
pt_field *pt_add_num(pt_arena *a, pt_field *message, uint32_t number, uint8_t wire, uint64_t num);
pt_field *pt_add_bytes(pt_arena *a, pt_field *message, uint32_t number, const void *data, size_t n);
pt_field *pt_add_message(pt_arena *a, pt_field *message, uint32_t number);
/* Sets the first field of that number, adding it when there is none. */
void pt_set_num(pt_arena *a, pt_field *message, uint32_t number, uint64_t num);
void pt_set_bytes(pt_arena *a, pt_field *message, uint32_t number, const void *data, size_t n);
void pt_set_text(pt_arena *a, pt_field *message, uint32_t number, const char *text);

static inline bool pt_same(const pt_field *a, const pt_field *b)
{
    return a->n_bytes == b->n_bytes &&
           (a->n_bytes == 0 || __builtin_memcmp(a->bytes, b->bytes, a->n_bytes) == 0);
}

#endif
