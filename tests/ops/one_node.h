/* SPDX-License-Identifier: Apache-2.0 */
/* One operator under test:
 *     one_node c;
 *     node_begin(&c, "Add", 14, 2, 1);
 *     node_f32(&c, 0, SHAPE(2, 1), 1, 2);
 *     node_f32(&c, 1, SHAPE(3), 10, 20, 30);
 *     NODE_CHECK(&c, node_run(&c));
 *     CHECK_F32(&c, 0, SHAPE(2, 3), 11, 21, 31, 12, 22, 32);
 *     node_end(&c);
 * The same object serves symbolic inference: node_fact instead of data, then node_infer. An input
 * that is not given is left out. */
#ifndef SONDE_TESTS_OPS_ONE_NODE_H
#define SONDE_TESTS_OPS_ONE_NODE_H

#include "test.h"

#include "ops/framework/eval.h"

enum { NODE_MAX = 12 };

typedef struct one_node {
    sn_allocator alloc;
    sn_context ctx;
    sn_arena arena;
    sn_graph *g;
    sn_node *n;
    sn_slot in[NODE_MAX], out[NODE_MAX];
    bool given[NODE_MAX];
    sonde_error err;
    sonde_status st;
} one_node;

/* An empty graph, for tests that add their own nodes. */
static inline void node_begin_graph(one_node *c)
{
    memset(c, 0, sizeof *c);
    sn_allocator_init_system(&c->alloc);
    sn_arena_init(&c->arena, &c->alloc);
    sn_cpu_detect(&c->ctx.cpu, NULL, NULL);
    (void)sn_cpu_request(&c->ctx.cpu);
    c->ctx.alloc = &c->alloc;
    c->st = sn_graph_new(&c->g, &c->arena, &c->alloc, "test", NULL, &c->err);
}

/* A new value "x0" or "y0". */
static inline sn_value *node_new_value(one_node *c, char kind, uint32_t i)
{
    sn_value *v = NULL;
    const char *name = sn_arena_printf(&c->arena, "%c%u", kind, (unsigned)i);
    if (!c->st)
        c->st = sn_graph_add_value(c->g, name ? name : "", &v, &c->err);
    return v;
}

static inline void node_begin(one_node *c, const char *op, int opset, uint32_t n_in, uint32_t n_out)
{
    node_begin_graph(c);
    if (!c->st)
        c->st = sn_graph_add_node(c->g, NULL, "", op, "it", n_in, n_out, &c->n, &c->err);
    if (c->st)
        return;
    c->n->opset = opset;
    c->n->n_formal_in = n_in;
    for (uint32_t o = 0; o < n_out && !c->st; o++) {
        sn_value *v = node_new_value(c, 'y', o);
        if (v)
            sn_node_set_output(c->n, o, v);
    }
}

static inline void node_end(one_node *c)
{
    for (int i = 0; i < NODE_MAX; i++) {
        sn_slot_clear(&c->in[i]);
        sn_slot_clear(&c->out[i]);
    }
    if (c->g)
        sn_graph_free(c->g);
    sn_arena_free(&c->arena);
    if (c->alloc.live_bytes)
        test_errors++, fprintf(stderr, "%zu bytes leaked\n", (size_t)c->alloc.live_bytes);
}

/* ---- attributes ---- */
static inline void node_attr(one_node *c, sn_attr a)
{
    if (!c->st)
        c->st = sn_node_set_attr(c->g, c->n, &a, &c->err);
}
#define node_int(c, NAME, V)                                                                       \
    node_attr(c, (sn_attr){.name = NAME, .kind = SN_ATTR_INT, .n = 1, .i = V})
#define node_float(c, NAME, V)                                                                     \
    node_attr(c, (sn_attr){.name = NAME, .kind = SN_ATTR_FLOAT, .n = 1, .f = V})
#define node_text(c, NAME, V)                                                                      \
    node_attr(c, (sn_attr){.name = NAME, .kind = SN_ATTR_STRING, .n = 1, .s = {V, strlen(V)}})
#define node_ints(c, NAME, ...)                                                                    \
    node_attr(c, (sn_attr){.name = NAME,                                                           \
                           .kind = SN_ATTR_INTS,                                                   \
                           .n = sizeof((int64_t[]){__VA_ARGS__}) / 8,                              \
                           .ints = (int64_t[]){__VA_ARGS__}})

/* ---- inputs ---- */
static inline sn_value *node_value(one_node *c, uint32_t i)
{
    sn_value *v = node_new_value(c, 'x', i);
    if (!c->st)
        c->st = sn_graph_add_input(c->g, v, &c->err);
    if (!c->st)
        sn_node_set_input(c->n, i, v);
    return v;
}

static inline void node_tensor(one_node *c, uint32_t i, sn_dtype t, int rank, const int64_t *dims,
                               const void *data)
{
    sn_value *v = node_value(c, i);
    if (c->st)
        return;
    if (t == SONDE_DTYPE_STRING)
        c->st = sn_slot_new_strings(&c->in[i], dims, rank, data, &c->alloc, &c->err);
    else
        c->st = sn_slot_new_tensor(&c->in[i], t, dims, rank, &c->alloc, &c->err);
    if (c->st)
        return;
    if (t != SONDE_DTYPE_STRING && data)
        memcpy(c->in[i].t.data, data, c->in[i].t.bytes);
    c->given[i] = true;
    v->fact.type =
        (sn_type){.kind = SN_KIND_TENSOR, .dtype = t, .rank = rank, .dims = c->in[i].t.dims};
}
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[])                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SCALAR 0, NULL
/* Elements of any type, written out: NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(2), 1, 2). */
#define NODE_INPUT(c, i, D, T, shape, ...)                                                         \
    node_tensor(c, i, SONDE_DTYPE_##D, shape, (T[]){__VA_ARGS__})
#define node_f32(c, i, shape, ...) node_tensor(c, i, SONDE_DTYPE_F32, shape, (float[]){__VA_ARGS__})
#define node_i64(c, i, shape, ...)                                                                 \
    node_tensor(c, i, SONDE_DTYPE_I64, shape, (int64_t[]){__VA_ARGS__})
#define node_list(c, i, ...)                                                                       \
    node_i64(c, i, SHAPE(sizeof((int64_t[]){__VA_ARGS__}) / 8), __VA_ARGS__)

/* An input whose elements the caller writes where this points to. */
static inline void *node_room(one_node *c, uint32_t i, sn_dtype t, int rank, const int64_t *dims)
{
    node_tensor(c, i, t, rank, dims, NULL);
    return c->in[i].t.data;
}

/* n elements 0, 1, 2, … of f32. */
static inline void node_count_up(one_node *c, uint32_t i, int rank, const int64_t *dims)
{
    int64_t n = 1;
    sn_dims_count(dims, rank, &n);
    float *data = malloc(((size_t)n + 1) * sizeof *data);
    for (int64_t k = 0; k < n; k++)
        data[k] = (float)k;
    node_tensor(c, i, SONDE_DTYPE_F32, rank, dims, data);
    free(data);
}

/* A type without data: for node_infer. `ints` may be NULL. */
static inline void node_fact(one_node *c, uint32_t i, sn_dtype t, int rank, const sn_dim *dims,
                             const sn_dim *ints, int64_t n_ints)
{
    sn_value *v = node_value(c, i);
    if (c->st)
        return;
    sn_type type = {.kind = SN_KIND_TENSOR, .dtype = t, .rank = rank, .dims = dims};
    c->st = sn_type_copy(&v->fact.type, &type, &c->arena, &c->err);
    v->fact.ints = ints;
    v->fact.n_ints = n_ints;
}

/* ---- doing ---- */
static inline sonde_status node_prepare(one_node *c)
{
    if (!c->st)
        c->st = sn_op_prepare(c->g, c->n, &c->err);
    return c->st;
}

static inline sonde_status node_infer(one_node *c)
{
    if (!node_prepare(c))
        c->st = sn_op_infer_node(c->g, c->n, &c->err);
    return c->st;
}

/* As a program does it: types first, then the data. */
static inline sonde_status node_run(one_node *c)
{
    const sn_slot *in[NODE_MAX] = {NULL};
    node_infer(c);
    for (uint32_t i = 0; i < c->n->n_in; i++)
        in[i] = c->given[i] ? &c->in[i] : NULL;
    if (!c->st)
        c->st = sn_eval_node(&c->ctx, c->n, in, c->out, &c->err);
    return c->st;
}

static inline const sn_fact *node_fact_of(const one_node *c, uint32_t o)
{
    return &c->n->out[o]->fact;
}

/* ---- looking ---- */
static inline bool has_shape(const sn_slot *s, int rank, const int64_t *dims)
{
    bool same = s->kind == SN_KIND_TENSOR && s->t.rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = s->t.dims[i] == dims[i];
    if (!same) {
        fprintf(stderr, "shape [");
        for (int i = 0; i < s->t.rank; i++)
            fprintf(stderr, " %lld", (long long)s->t.dims[i]);
        fprintf(stderr, " ]\n");
    }
    return same;
}
static inline bool has_elems(const sn_slot *s, const void *want, size_t bytes, bool floats)
{
    if (s->kind == SN_KIND_TENSOR && s->t.bytes == bytes &&
        (bytes == 0 || memcmp(s->t.data, want, bytes) == 0))
        return true;
    for (size_t i = 0; s->kind == SN_KIND_TENSOR && i < s->t.bytes / (floats ? 4 : 8); i++)
        fprintf(stderr, "%g ",
                floats ? (double)((float *)s->t.data)[i] : (double)((int64_t *)s->t.data)[i]);
    fprintf(stderr, "(got)\n");
    return false;
}
#define IS_F32(slot, ...)                                                                          \
    has_elems(slot, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}), true)
#define IS_I64(slot, ...)                                                                          \
    has_elems(slot, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}), false)

/* A call that must succeed and leaves its message in the node. */
#define NODE_CHECK(c, expr) CHECK_MSG((expr) == SONDE_OK, "%s", (c)->err.message)
#define NODE_OK(c)          NODE_CHECK(c, (c)->st)

/* The first element of an f32 tensor that is not `want`, to within tol (relative and absolute);
 * -1: none, and there are n. */
static inline int first_difference(const sn_slot *s, const float *want, size_t n, double tol)
{
    const float *got = s->t.data;
    if (s->kind != SN_KIND_TENSOR || s->t.dtype != SONDE_DTYPE_F32 ||
        (size_t)sn_tensor_count(&s->t) != n)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(want[i]) ? isnan(got[i]) : got[i] == want[i])
            continue;
        if (!(fabs((double)got[i] - (double)want[i]) <= tol * (1.0 + fabs((double)want[i]))))
            return (int)i;
    }
    return -1;
}
static inline bool is_near(const sn_slot *s, int rank, const int64_t *dims, const float *want,
                           size_t n, double tol)
{
    const int at = has_shape(s, rank, dims) ? first_difference(s, want, n, tol) : 0;
    if (at >= 0)
        fprintf(stderr, "element %d: got %.9g, expected %.9g\n", at,
                n && s->t.data ? (double)((const float *)s->t.data)[at] : 0.0,
                n ? (double)want[at] : 0.0);
    return at < 0;
}
/* Output o has this shape and these numbers, NaN included. */
#define NUMBERS(...)                (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4
#define CHECK_F32(c, o, shape, ...) CHECK(is_near(&(c)->out[o], shape, NUMBERS(__VA_ARGS__), 0))
#define CHECK_F32_NEAR(c, o, shape, tol, ...)                                                      \
    CHECK(is_near(&(c)->out[o], shape, NUMBERS(__VA_ARGS__), tol))
/* Output o has this element type, shape and exactly these numbers. */
#define CHECK_OUT(c, o, D, T, shape, ...)                                                          \
    do {                                                                                           \
        const T want_[] = {__VA_ARGS__};                                                           \
        const sn_slot *slot_ = &(c)->out[o];                                                       \
        CHECK_EQ(slot_->t.dtype, SONDE_DTYPE_##D);                                                 \
        CHECK(has_shape(slot_, shape));                                                            \
        for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(want_[0]); i_++)                           \
            CHECK_MSG(((const T *)slot_->t.data)[i_] == want_[i_],                                 \
                      "element %zu: got %.17g, expected %.17g", i_,                                \
                      (double)((const T *)slot_->t.data)[i_], (double)want_[i_]);                  \
    } while (0)

#endif
