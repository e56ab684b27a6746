/* SPDX-License-Identifier: Apache-2.0 */
/* A tiny protobuf emitter, so that tests can write any message, also wrong ones, and a context to
 * load them in. Not a wrapper of the writer under test. */
#ifndef SONDE_TESTS_ONNX_PROTO_H
#define SONDE_TESTS_ONNX_PROTO_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_readers/model_readers.h"
#include "onnx/onnx.h"
#include "test.h"

/* ---- messages ---- */

typedef struct pb {
    uint8_t *data;
    size_t n, cap;
} pb;

static inline void pb_raw(pb *b, const void *data, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2 + 64;
        b->data = realloc(b->data, b->cap);
    }
    if (n)
        memcpy(b->data + b->n, data, n);
    b->n += n;
}
static inline void pb_varint(pb *b, uint64_t v)
{
    do {
        uint8_t byte = (uint8_t)((v & 0x7F) | (v > 0x7F ? 0x80 : 0));
        pb_raw(b, &byte, 1);
        v >>= 7;
    } while (v);
}
static inline void pb_int(pb *b, uint32_t field, uint64_t v)
{
    pb_varint(b, (uint64_t)field << 3);
    pb_varint(b, v);
}
static inline void pb_float(pb *b, uint32_t field, float f)
{
    pb_varint(b, (uint64_t)field << 3 | 5);
    pb_raw(b, &f, 4);
}
static inline void pb_bytes(pb *b, uint32_t field, const void *data, size_t n)
{
    pb_varint(b, (uint64_t)field << 3 | 2);
    pb_varint(b, n);
    pb_raw(b, data, n);
}
static inline void pb_text(pb *b, uint32_t field, const char *s)
{
    pb_bytes(b, field, s, strlen(s));
}
/* Appends `m` as a message and frees it. */
static inline void pb_msg(pb *b, uint32_t field, pb m)
{
    pb_bytes(b, field, m.data, m.n);
    free(m.data);
}

/* ---- parts of a model ---- */

static inline pb pb_tensor(const char *name, int dtype, int rank, const int64_t *dims)
{
    pb t = {0};
    for (int i = 0; i < rank; i++)
        pb_int(&t, 1, (uint64_t)dims[i]);
    pb_int(&t, 2, (uint64_t)dtype);
    pb_text(&t, 8, name);
    return t;
}
static inline pb pb_tensor_raw(const char *name, int dtype, int rank, const int64_t *dims,
                               const void *raw, size_t bytes)
{
    pb t = pb_tensor(name, dtype, rank, dims);
    pb_bytes(&t, 9, raw, bytes);
    return t;
}
/* dims: -1 unknown, -2 the symbol "N", -3 a question mark in the place of a name. */
static inline pb pb_tensor_type(int dtype, int rank, const int64_t *dims)
{
    pb shape = {0}, tensor = {0}, type = {0};
    for (int i = 0; i < rank; i++) {
        pb dim = {0};
        if (dims[i] >= 0)
            pb_int(&dim, 1, (uint64_t)dims[i]);
        else if (dims[i] < -1)
            pb_text(&dim, 2, dims[i] == -2 ? "N" : "?");
        pb_msg(&shape, 1, dim);
    }
    pb_int(&tensor, 1, (uint64_t)dtype);
    pb_msg(&tensor, 2, shape);
    pb_msg(&type, 1, tensor);
    return type;
}
static inline pb pb_value_info(const char *name, pb type)
{
    pb v = {0};
    pb_text(&v, 1, name);
    pb_msg(&v, 2, type);
    return v;
}
static inline pb pb_float_value(const char *name)
{
    int64_t dims[] = {-2, 3};
    return pb_value_info(name, pb_tensor_type(SONDE_DTYPE_F32, 2, dims));
}
/* Space-separated names; "-" is an absent one. */
static inline void pb_names(pb *b, uint32_t field, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        pb_bytes(b, field, names, n == 1 && names[0] == '-' ? 0 : n);
        names += n + (names[n] == ' ');
    }
}
static inline pb pb_node(const char *op, const char *inputs, const char *outputs)
{
    pb n = {0};
    pb_names(&n, 1, inputs);
    pb_names(&n, 2, outputs);
    pb_text(&n, 3, op);
    pb_text(&n, 4, op);
    return n;
}
static inline pb pb_opset(const char *domain, int64_t version)
{
    pb o = {0};
    pb_text(&o, 1, domain);
    pb_int(&o, 2, (uint64_t)version);
    return o;
}
/* A model around a graph, which it frees. */
static inline pb pb_model(int64_t ir_version, pb graph)
{
    pb m = {0};
    pb_int(&m, 1, (uint64_t)ir_version);
    pb_text(&m, 2, "tests");
    pb_msg(&m, 8, pb_opset("", 18));
    pb_msg(&m, 7, graph);
    return m;
}
/* x -> Relu -> y, to which tests add what they are about. */
static inline pb pb_relu_graph(void)
{
    pb g = {0};
    pb_text(&g, 2, "tests");
    pb_msg(&g, 1, pb_node("Relu", "x", "y"));
    pb_msg(&g, 11, pb_float_value("x"));
    pb_msg(&g, 12, pb_float_value("y"));
    return g;
}

/* ---- loading ---- */

typedef struct fixture {
    sn_allocator alloc;
    sn_context ctx;
    sn_model *m;
    sonde_error err;
} fixture;

static inline void fixture_init(fixture *f)
{
    memset(f, 0, sizeof *f);
    sn_allocator_init_system(&f->alloc);
    f->ctx.alloc = &f->alloc;
    if (sn_trace_create(&f->ctx.trace, &f->alloc, 64, &f->err) != SONDE_OK)
        abort();
}
/* Frees the message too. */
static inline sonde_status fixture_load(fixture *f, pb model)
{
    /* A copy of the exact size: reading past its end is seen by the sanitizer. */
    sn_buffer *owner = sn_buffer_new(&f->alloc, model.n);
    if (model.n)
        memcpy(owner->data, model.data, model.n);
    free(model.data);
    sn_model_unref(f->m);
    f->m = NULL;
    f->err.message[0] = 0;
    sonde_status st =
        sn_model_load_memory(&f->ctx, owner->data, model.n, owner, NULL, &f->m, &f->err);
    sn_buffer_unref(owner);
    return st;
}
/* True when nothing is left allocated. */
static inline bool fixture_free(fixture *f)
{
    sn_model_unref(f->m);
    sn_trace_free(f->ctx.trace);
    return atomic_load(&f->alloc.live_bytes) == 0;
}
static inline sn_value *find_value(const sn_graph *g, const char *name)
{
    for (size_t i = 0; i < g->values.n; i++)
        if (strcmp(g->values.data[i]->name, name) == 0)
            return g->values.data[i];
    return NULL;
}

#define CHECK_FAILS(expr, want, part)                                                              \
    do {                                                                                           \
        CHECK_EQ((expr), (want));                                                                  \
        CHECK_HAS(f.err.message, (part));                                                          \
    } while (0)

/* ---- a model with a bit of everything ---- */

static inline pb pb_attr(const char *name, int type)
{
    pb a = {0};
    pb_text(&a, 1, name);
    pb_int(&a, 20, (uint64_t)type);
    return a;
}

static inline pb pb_if_body(const char *node, const char *out)
{
    pb g = {0};
    pb_text(&g, 2, "branch");
    pb_msg(&g, 1, pb_node(node, "x", out)); /* x comes from outside */
    pb_msg(&g, 12, pb_float_value(out));
    return g;
}

static inline pb pb_sparse(const char *name)
{
    int64_t n = 2, at[] = {1, 4};
    float values[] = {5, 7};
    pb s = {0};
    pb_msg(&s, 1, pb_tensor_raw(name, SONDE_DTYPE_F32, 1, &n, values, sizeof values));
    pb_msg(&s, 2, pb_tensor_raw("", SONDE_DTYPE_I64, 1, &n, at, sizeof at));
    pb_int(&s, 3, 2);
    pb_int(&s, 3, 3);
    return s;
}

static inline pb pb_full_model(void)
{
    pb g = pb_relu_graph(), n, a, t, fn = {0}, seq = {0}, type = {0}, inner = {0}, meta = {0};
    float w[6] = {1, 2, 3, 4, 5, 6};
    int64_t dims[] = {2, 3}, three = 3, two = 2;
    uint8_t nibbles[] = {0x21, 0x0F};

    n = pb_node("If", "c", "z");
    a = pb_attr("then_branch", SN_ATTR_GRAPH);
    pb_msg(&a, 6, pb_if_body("Abs", "then_out"));
    pb_msg(&n, 5, a);
    a = pb_attr("else_branch", SN_ATTR_GRAPH);
    pb_msg(&a, 6, pb_if_body("Neg", "else_out"));
    pb_msg(&n, 5, a);
    pb_msg(&g, 1, n);

    n = pb_node("Everything", "y - w", "e - f");
    pb_text(&n, 7, "tests");
    a = pb_attr("f", SN_ATTR_FLOAT), pb_float(&a, 2, 1.5f), pb_msg(&n, 5, a);
    a = pb_attr("i", SN_ATTR_INT), pb_int(&a, 3, (uint64_t)-7), pb_msg(&n, 5, a);
    a = pb_attr("s", SN_ATTR_STRING), pb_text(&a, 4, "text"), pb_msg(&n, 5, a);
    a = pb_attr("t", SN_ATTR_TENSOR);
    pb_msg(&a, 5, pb_tensor_raw("", SONDE_DTYPE_U4, 1, &three, nibbles, 2));
    pb_msg(&n, 5, a);
    a = pb_attr("floats", SN_ATTR_FLOATS), pb_bytes(&a, 7, w, 8), pb_float(&a, 7, 9),
    pb_msg(&n, 5, a);
    a = pb_attr("ints", SN_ATTR_INTS), pb_bytes(&a, 8, "\x01\x80\x01", 3), pb_int(&a, 8, 5);
    pb_msg(&n, 5, a);
    a = pb_attr("strings", SN_ATTR_STRINGS), pb_text(&a, 9, "a"), pb_text(&a, 9, ""),
    pb_msg(&n, 5, a);
    a = pb_attr("tensors", SN_ATTR_TENSORS);
    pb_msg(&a, 10, pb_tensor_raw("", SONDE_DTYPE_F32, 1, &two, w, 8));
    pb_msg(&n, 5, a);
    a = pb_attr("graphs", SN_ATTR_GRAPHS);
    pb_msg(&a, 11, pb_if_body("Abs", "g0"));
    pb_msg(&n, 5, a);
    a = pb_attr("sparse", SN_ATTR_SPARSE_TENSOR), pb_msg(&a, 22, pb_sparse("")), pb_msg(&n, 5, a);
    a = pb_attr("sparses", 12), pb_msg(&a, 23, pb_sparse("")), pb_msg(&n, 5, a);
    a = pb_attr("type", SN_ATTR_TYPE_PROTO), pb_msg(&a, 14, pb_tensor_type(1, 2, dims)),
    pb_msg(&n, 5, a);
    a = pb_attr("types", 14), pb_msg(&a, 15, pb_tensor_type(1, 2, dims));
    pb_msg(&a, 15, pb_tensor_type(7, 1, dims)), pb_msg(&n, 5, a);
    pb_msg(&g, 1, n);
    n = pb_node("Twice", "e", "twice");
    pb_text(&n, 7, "tests");
    pb_text(&n, 8, "v2");
    pb_msg(&g, 1, n);

    pb_msg(&g, 5, pb_tensor_raw("w", SONDE_DTYPE_F32, 2, dims, w, sizeof w));
    t = pb_tensor("names", SONDE_DTYPE_STRING, 1, &two);
    pb_text(&t, 6, "one"), pb_text(&t, 6, "two");
    pb_msg(&g, 5, t);
    t = pb_tensor("half", SONDE_DTYPE_F16, 1, &two);
    pb_bytes(&t, 5, "\x80\x78\x05", 3);
    pb_msg(&g, 5, t);
    pb_msg(&g, 15, pb_sparse("sparse_weight"));
    pb_msg(&g, 11, pb_value_info("c", pb_tensor_type(SONDE_DTYPE_BOOL, 0, NULL)));
    pb_msg(&inner, 1, pb_tensor_type(1, 2, dims));
    pb_msg(&type, 4, inner);
    pb_msg(&seq, 9, (pb){0});
    pb_msg(&g, 11, pb_value_info("sequence", type));
    pb_msg(&g, 11, pb_value_info("optional", seq));
    pb_msg(&g, 12, pb_float_value("z"));
    pb_msg(&g, 12, pb_float_value("twice"));
    pb_msg(&g, 13, pb_float_value("e"));

    pb m = pb_model(10, g);
    pb_msg(&m, 8, pb_opset("tests", 1));
    pb_text(&meta, 1, "key");
    pb_text(&meta, 2, "value");
    pb_msg(&m, 14, meta);
    pb_text(&fn, 1, "Twice");
    pb_text(&fn, 10, "tests");
    pb_text(&fn, 13, "v2");
    pb_text(&fn, 4, "a");
    pb_text(&fn, 5, "b");
    pb_msg(&fn, 7, pb_node("Add", "a a", "b"));
    pb_msg(&fn, 9, pb_opset("", 18));
    a = pb_attr("k", SN_ATTR_INT), pb_int(&a, 3, 2), pb_msg(&fn, 11, a);
    pb_msg(&fn, 12, pb_float_value("b"));
    pb_msg(&m, 25, fn);
    return m;
}

#endif
