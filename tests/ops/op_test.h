/* SPDX-License-Identifier: Apache-2.0 */
/* One operator under test: op_begin("Add", 14); op_f32("2 3", 1, 2, 3, 4, 5, 6); …;
 * CHECK_OK(op_run(1)). Shapes are texts ("" = scalar). Results are read with op_out. op_end frees
 * everything. */
#ifndef SONDE_TESTS_OPS_OP_TEST_H
#define SONDE_TESTS_OPS_OP_TEST_H

#include "test.h"

#include "base/context.h"
#include "graph/graph.h"
#include "ops/framework/eval.h"

enum { OP_MAX = 8 };

static sonde_error err;
static struct {
    sn_allocator alloc;
    sn_context ctx;
    sn_arena arena;
    sn_graph *g;
    const char *type;
    int opset;
    sn_slot in[OP_MAX], out[OP_MAX];
    bool has[OP_MAX];
    uint32_t n_in, n_out;
    sn_attr attrs[OP_MAX];
    uint32_t n_attrs;
    sn_node *node;
} op;

static inline void op_begin(const char *type, int opset)
{
    memset(&op, 0, sizeof(op));
    memset(&err, 0, sizeof(err));
    sn_allocator_init_system(&op.alloc);
    sn_arena_init(&op.arena, &op.alloc);
    op.ctx.alloc = &op.alloc;
    sn_cpu_detect(&op.ctx.cpu, NULL, &err);
    sn_graph_new(&op.g, &op.arena, &op.alloc, "test", NULL, &err);
    op.type = type;
    op.opset = opset;
}

static inline int op_shape(const char *text, int64_t *dims)
{
    int rank = 0;
    for (char *end; *text; text = end) {
        dims[rank++] = strtoll(text, &end, 10);
        while (*end == ' ')
            end++;
    }
    return rank;
}

static inline void *op_input(sn_dtype dtype, const char *shape)
{
    int64_t dims[SN_MAX_RANK];
    int rank = op_shape(shape, dims);
    sn_slot *s = &op.in[op.n_in];
    op.has[op.n_in++] = true;
    if (sn_slot_new_tensor(s, dtype, dims, rank, &op.alloc, &err) != SONDE_OK)
        abort();
    return s->t.data;
}
static inline void op_absent(void)
{
    op.n_in++;
}

/* Inputs of each type from numbers written out. */
#define OP_INPUT(D, T, shape, ...)                                                                 \
    do {                                                                                           \
        const T op_values_[] = {__VA_ARGS__};                                                      \
        void *op_data_ = op_input(SONDE_DTYPE_##D, shape);                                         \
        memcpy(op_data_, op_values_, sizeof(op_values_));                                          \
    } while (0)
#define op_f32(shape, ...) OP_INPUT(F32, float, shape, __VA_ARGS__)
#define op_i64(shape, ...) OP_INPUT(I64, int64_t, shape, __VA_ARGS__)

static inline sn_attr *op_attr(const char *name, sn_attr_kind kind)
{
    sn_attr *a = &op.attrs[op.n_attrs++];
    a->name = name;
    a->kind = kind;
    a->n = 1;
    return a;
}
static inline void op_int(const char *name, int64_t v)
{
    op_attr(name, SN_ATTR_INT)->i = v;
}
static inline void op_float(const char *name, float v)
{
    op_attr(name, SN_ATTR_FLOAT)->f = v;
}
static inline void op_string(const char *name, const char *v)
{
    op_attr(name, SN_ATTR_STRING)->s = (sonde_string){v, strlen(v)};
}
#define op_ints(name, ...)                                                                         \
    do {                                                                                           \
        static const int64_t op_list_[] = {__VA_ARGS__};                                           \
        sn_attr *op_a_ = op_attr(name, SN_ATTR_INTS);                                              \
        op_a_->ints = op_list_;                                                                    \
        op_a_->n = sizeof(op_list_) / sizeof(op_list_[0]);                                         \
    } while (0)

/* Makes the node; input values carry the types of the inputs given. */
static inline sonde_status op_make(uint32_t n_out)
{
    char name[16];
    sonde_status st =
        sn_graph_add_node(op.g, NULL, "", op.type, "it", op.n_in, n_out, &op.node, &err);
    if (st != SONDE_OK)
        return st;
    op.n_out = n_out;
    op.node->opset = op.opset;
    for (uint32_t i = 0; i < op.n_in; i++) {
        if (!op.has[i])
            continue;
        sn_value *v;
        snprintf(name, sizeof(name), "x%u", i);
        if ((st = sn_graph_add_value(op.g, sn_arena_strdup(&op.arena, name), &v, &err)) != SONDE_OK)
            return st;
        sn_slot *s = &op.in[i];
        v->fact.type = (sn_type){
            .kind = SN_KIND_TENSOR, .dtype = s->t.dtype, .rank = s->t.rank, .dims = s->t.dims};
        sn_node_set_input(op.node, i, v);
    }
    for (uint32_t o = 0; o < n_out; o++) {
        sn_value *v;
        snprintf(name, sizeof(name), "y%u", o);
        if ((st = sn_graph_add_value(op.g, sn_arena_strdup(&op.arena, name), &v, &err)) != SONDE_OK)
            return st;
        sn_node_set_output(op.node, o, v);
    }
    for (uint32_t a = 0; a < op.n_attrs; a++)
        if ((st = sn_node_set_attr(op.g, op.node, &op.attrs[a], &err)) != SONDE_OK)
            return st;
    return sn_op_prepare(op.g, op.node, &err);
}

static inline sonde_status op_run(uint32_t n_out)
{
    sonde_status st = op_make(n_out);
    if (st == SONDE_OK)
        st = sn_op_infer_node(op.g, op.node, &err);
    const sn_slot *in[OP_MAX];
    for (uint32_t i = 0; i < op.n_in; i++)
        in[i] = op.has[i] ? &op.in[i] : NULL;
    return st != SONDE_OK ? st : sn_eval_node(&op.ctx, op.node, in, op.out, &err);
}

static inline const void *op_out(uint32_t o)
{
    return op.out[o].t.data;
}

static inline void op_end(void)
{
    for (uint32_t i = 0; i < OP_MAX; i++) {
        sn_slot_clear(&op.in[i]);
        sn_slot_clear(&op.out[i]);
    }
    sn_graph_free(op.g);
    sn_arena_free(&op.arena);
}

static inline bool op_has_shape(uint32_t o, const char *shape)
{
    int64_t dims[SN_MAX_RANK];
    int rank = op_shape(shape, dims);
    const sn_tensor *t = &op.out[o].t;
    return t->rank == rank &&
           (rank == 0 || memcmp(t->dims, dims, sizeof(int64_t) * (size_t)rank) == 0);
}

/* Output o is an f32 tensor with these numbers, to within tol (relative and absolute). */
static inline int op_differs(uint32_t o, const float *want, size_t n, double tol)
{
    const float *got = op_out(o);
    if (op.out[o].t.dtype != SONDE_DTYPE_F32 || (size_t)sn_tensor_count(&op.out[o].t) != n)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(want[i]) ? isnan(got[i]) : got[i] == want[i])
            continue;
        if (!(fabs((double)got[i] - (double)want[i]) <= tol * (1.0 + fabs((double)want[i]))))
            return (int)i;
    }
    return -1;
}
#define CHECK_F32_NEAR(o, shape, tol, ...)                                                         \
    do {                                                                                           \
        const float want_[] = {__VA_ARGS__};                                                       \
        CHECK(op_has_shape(o, shape));                                                             \
        int at_ = op_differs(o, want_, sizeof(want_) / sizeof(want_[0]), tol);                     \
        CHECK_MSG(at_ < 0, "element %d: got %.9g, expected %.9g", at_,                             \
                  (double)((const float *)op_out(o))[at_], (double)want_[at_]);                    \
    } while (0)
#define CHECK_F32(o, shape, ...) CHECK_F32_NEAR(o, shape, 0.0, __VA_ARGS__)
/* Output o has this element type, shape and exactly these numbers. */
#define CHECK_OUT(o, D, T, shape, ...)                                                             \
    do {                                                                                           \
        const T want_[] = {__VA_ARGS__};                                                           \
        CHECK_EQ(op.out[o].t.dtype, SONDE_DTYPE_##D);                                              \
        CHECK(op_has_shape(o, shape));                                                             \
        for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(want_[0]); i_++)                           \
            CHECK_MSG(((const T *)op_out(o))[i_] == want_[i_],                                     \
                      "element %zu: got %.17g, expected %.17g", i_,                                \
                      (double)((const T *)op_out(o))[i_], (double)want_[i_]);                      \
    } while (0)

#endif
