/* SPDX-License-Identifier: Apache-2.0 */
/* Models for pass tests, and a small interpreter: a graph before and after the passes must compute
 * the same from the same random inputs, node by node with the operators' own evaluation. */
#ifndef SONDE_TESTS_PASSES_INTERPRET_H
#define SONDE_TESTS_PASSES_INTERPRET_H

#include "graph/build.h"
#include "ops/framework/eval.h"
#include "passes/pass.h"

static sn_buffers pass_buffers;
static sn_arena pass_arena;
static uint32_t pass_cpu_flags;

static inline sn_model *pass_model(size_t fail_at)
{
    sn_model *m = model(fail_at);
    sn_cpu_detect(&build_ctx.cpu, NULL, NULL);
    (void)sn_cpu_request(&build_ctx.cpu);
    pass_cpu_flags = build_ctx.cpu.flags;
    memset(&pass_buffers, 0, sizeof pass_buffers);
    sn_arena_init(&pass_arena, &build_alloc.a);
    return m;
}

static inline void end_pass_model(sn_model *m, sn_graph *g)
{
    sn_graph_free(g);
    sn_arena_free(&pass_arena);
    for (size_t i = 0; i < pass_buffers.list.n; i++)
        sn_buffer_unref(pass_buffers.list.data[i]);
    sn_vec_free(&pass_buffers.list, &build_alloc.a);
    end_model(m);
}

static inline sn_value *typed_input(sn_graph *g, const char *name, sn_dtype dtype, int rank,
                                    const int64_t *dims)
{
    sn_value *v = value(g, name);
    if (!v)
        return NULL;
    sn_type t = {.kind = SN_KIND_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
    build_note(sn_type_copy(&v->fact.type, &t, g->arena, &err));
    build_note(sn_graph_add_input(g, v, &err));
    return v;
}
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Random in [-1, 1) plus `offset`. */
static inline sn_value *const_f32(sn_graph *g, const char *name, float offset, int rank,
                                  const int64_t *dims)
{
    int64_t n = 1;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    if (!sn_dims_count(dims, rank, &n) || !t) {
        build_note(SONDE_OUT_OF_MEMORY);
        return NULL;
    }
    t->dtype = SONDE_DTYPE_F32;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    t->bytes = (size_t)n * 4;
    float *data = SN_NEW_N(g->arena, float, n + 1);
    t->data = data;
    if (!data) {
        build_note(SONDE_OUT_OF_MEMORY);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        data[i] = test_randf() + offset;
    sn_value *v = value(g, name);
    if (v)
        build_note(sn_value_set_constant(g, v, t, &err));
    return v;
}

static inline sn_value *const_i64(sn_graph *g, const char *name, int rank, const int64_t *data)
{
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    int64_t *copy = SN_NEW_N(g->arena, int64_t, rank + 1);
    if (!t || !copy) {
        build_note(SONDE_OUT_OF_MEMORY);
        return NULL;
    }
    memcpy(copy, data, (size_t)rank * sizeof *copy);
    *t = (sn_tensor){.dtype = SONDE_DTYPE_I64,
                     .rank = 1,
                     .dims = {rank},
                     .data = copy,
                     .bytes = (size_t)rank * 8};
    sn_value *v = value(g, name);
    if (v)
        build_note(sn_value_set_constant(g, v, t, &err));
    return v;
}

static inline sn_value *scalar_f32(sn_graph *g, const char *name, float x)
{
    sn_value *v = const_f32(g, name, 0, 0, NULL);
    if (v)
        *(float *)v->fact.data->data = x;
    return v;
}

static inline void attr_ints(sn_graph *g, sn_node *n, const char *name, int count,
                             const int64_t *ints)
{
    int64_t *copy = SN_NEW_N(g->arena, int64_t, count);
    if (!copy)
        build_note(SONDE_OUT_OF_MEMORY);
    if (!copy || !n)
        return;
    memcpy(copy, ints, (size_t)count * sizeof *copy);
    sn_attr a = {.name = name, .kind = SN_ATTR_INTS, .n = (size_t)count, .ints = copy};
    build_note(sn_node_set_attr(g, n, &a, &err));
}

static inline void attr_float(sn_graph *g, sn_node *n, const char *name, float f)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_FLOAT, .n = 1, .f = f};
    if (n)
        build_note(sn_node_set_attr(g, n, &a, &err));
}

static inline void attr_text(sn_graph *g, sn_node *n, const char *name, const char *text)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_STRING, .n = 1, .s = {text, strlen(text)}};
    if (n)
        build_note(sn_node_set_attr(g, n, &a, &err));
}

/* A copy of the model's graph, resolved and inferred. */
static inline sonde_status ready_copy(sn_model *m, sn_graph **g)
{
    SN_TRY(sn_graph_clone(m->graph, &pass_arena, g, &err));
    SN_TRY(sn_ops_resolve(*g, &err));
    return sn_ops_infer(*g, &err);
}

/* All passes, or only the one named. */
static inline sonde_status run_passes(sn_graph *g, const char *only)
{
    const char *off[64];
    size_t n = 0;
    for (size_t k = 0; sn_pass_row(k); k++)
        if (only && strcmp(only, sn_pass_row(k)->name) != 0)
            off[n++] = sn_pass_row(k)->name;
    sn_pass_env env = {
        .ctx = &build_ctx,
        .cpu_flags = pass_cpu_flags,
        .buffers = &pass_buffers,
        .err = &err,
        .precision = SONDE_PRECISION_F32 /* facts are those of the tensors, which have no forms */};
    SN_TRY(sn_passes_run(g, &env, off, n, false));
    return sn_graph_verify(g, &err);
}

/* What the passes, or only the one named, make of the model. */
static inline sonde_status finish(sn_model *m, const char *only, sn_graph **g)
{
    SN_TRY(sn_model_finish(m, &err));
    SN_TRY(ready_copy(m, g));
    return run_passes(*g, only);
}

/* A convolution with k x k filters of its own, "w_<out>", padded so that sizes stay; `bias` is the
 * name of a constant, or NULL. */
static inline sn_node *conv_node(sn_graph *g, const char *out, const char *in, int64_t oc,
                                 int64_t ic, int64_t k, const char *bias)
{
    char w[80], ins[200];
    snprintf(w, sizeof w, "w_%s", out);
    const_f32(g, w, 0, DIMS(oc, ic, k, k));
    snprintf(ins, sizeof ins, "%s %s%s%s", in, w, bias ? " " : "", bias ? bias : "");
    sn_node *n = node(g, "Conv", out, ins);
    attr_ints(g, n, "pads", DIMS(k / 2, k / 2, k / 2, k / 2));
    return n;
}

/* A model with an input "x" of one image. */
static inline sn_model *image_model(size_t fail_at, int64_t channels, int64_t height, int64_t width)
{
    sn_model *m = pass_model(fail_at);
    if (m)
        typed_input(m->graph, "x", SONDE_DTYPE_F32, DIMS(1, channels, height, width));
    return m;
}

/* `whole` does everything from building a model to its last pass; with each allocation refused in
 * turn it must say so and leave nothing behind. */
static inline void check_failing_allocations(sonde_status (*whole)(size_t fail_at, sn_model **m,
                                                                   sn_graph **p))
{
    sn_model *m;
    sn_graph *p;
    CHECK_OK(whole(0, &m, &p));
    const size_t total = (size_t)build_alloc.calls;
    end_pass_model(m, p);
    for (size_t k = 1; k <= total; k++) {
        const sonde_status st = whole(k, &m, &p);
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY, "allocation %zu of %zu: status %d %s", k, total, st,
                  err.message);
        end_pass_model(m, p);
    }
}

static inline sonde_status interpret_node(const sn_node *n, sn_slot *slots)
{
    const sn_slot *in[16] = {NULL};
    sn_slot out[16];
    memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i].value ? &slots[n->in[i].value->id] : NULL;
    SN_TRY(sn_eval_node(&build_ctx, n, in, out, &err));
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o])
            slots[n->out[o]->id] = out[o];
    return SONDE_OK;
}

/* What a program does to a constant before a step reads it. */
static inline sonde_status make_readable(sn_slot *slot)
{
    sn_slot copy = {0};
    sonde_status st =
        sn_slot_new_tensor(&copy, slot->t.dtype, slot->t.dims, slot->t.rank, build_ctx.alloc, &err);
    if (st == SONDE_OK)
        sn_tensor_read(&slot->t, 0, sn_tensor_count(&slot->t), copy.t.data);
    sn_slot_clear(slot);
    *slot = copy;
    return st;
}

/* Runs g on inputs filled from `seed`; output 0…n-1 into `outs` (to be cleared by the caller). */
static inline sonde_status interpret(const sn_graph *g, uint64_t seed, sn_slot *outs)
{
    size_t n = g->values.n;
    sonde_status st = SONDE_OK;
    sn_slot *slots = calloc(n + 1, sizeof *slots);
    uint64_t kept = test_state;
    test_state = seed;
    for (size_t i = 0; i < n; i++)
        if (sn_value_is_const(g->values.data[i])) {
            slots[i].kind = SN_KIND_TENSOR;
            slots[i].t = *g->values.data[i]->fact.data;
            sn_buffer_ref(slots[i].t.owner);
            if (!sn_tensor_is_readable(&slots[i].t) && st == SONDE_OK)
                st = make_readable(&slots[i]);
        }
    for (size_t i = 0; i < g->inputs.n && st == SONDE_OK; i++) {
        const sn_value *v = g->inputs.data[i];
        int64_t dims[SN_MAX_RANK];
        for (int d = 0; d < v->fact.type.rank; d++) /* free dims are 5 */
            dims[d] = sn_dim_known(v->fact.type.dims[d]) ? v->fact.type.dims[d] : 5;
        st = sn_slot_new_tensor(&slots[v->id], v->fact.type.dtype, dims, v->fact.type.rank,
                                build_ctx.alloc, &err);
        int64_t count = st == SONDE_OK ? sn_tensor_count(&slots[v->id].t) : 0;
        for (int64_t k = 0; k < count; k++) {
            if (v->fact.type.dtype == SONDE_DTYPE_F32)
                ((float *)slots[v->id].t.data)[k] = test_randf() * 2;
            else if (v->fact.type.dtype == SONDE_DTYPE_U8 || v->fact.type.dtype == SONDE_DTYPE_I8)
                ((uint8_t *)slots[v->id].t.data)[k] = (uint8_t)test_rand();
            else
                ((uint8_t *)slots[v->id].t.data)[k] = 0;
        }
    }
    for (const sn_node *node_at = g->first; node_at && st == SONDE_OK; node_at = node_at->next)
        st = interpret_node(node_at, slots);
    for (size_t i = 0; i < g->outputs.n && st == SONDE_OK; i++)
        st = sn_slot_share(&outs[i], &slots[g->outputs.data[i]->id], true, build_ctx.alloc, &err);
    for (size_t i = 0; i < n; i++)
        sn_slot_clear(&slots[i]);
    free(slots);
    test_state = kept;
    return st;
}

/* The rewritten graph computes what the original does, up to rounding. */
static inline void check_same(sn_model *m, const sn_graph *rewritten, double tolerance)
{
    sn_graph *original = NULL;
    sn_slot a[8], b[8];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    CHECK_OK(ready_copy(m, &original));
    CHECK_EQ(original->outputs.n, rewritten->outputs.n);
    CHECK_OK(interpret(original, 7, a));
    CHECK_OK(interpret(rewritten, 7, b));
    for (size_t i = 0; i < original->outputs.n; i++) {
        CHECK_EQ(a[i].t.dtype, b[i].t.dtype);
        CHECK_EQ(a[i].t.rank, b[i].t.rank);
        CHECK(sn_tensor_is_plain(&b[i].t));
        CHECK_EQ(a[i].t.bytes, b[i].t.bytes);
        for (int d = 0; d < a[i].t.rank; d++)
            CHECK_EQ(a[i].t.dims[d], b[i].t.dims[d]);
        if (a[i].t.dtype != SONDE_DTYPE_F32) {
            CHECK(memcmp(a[i].t.data, b[i].t.data, a[i].t.bytes) == 0);
            continue;
        }
        for (int64_t k = 0; k < sn_tensor_count(&a[i].t); k++) {
            double x = (double)((float *)a[i].t.data)[k], y = (double)((float *)b[i].t.data)[k];
            /* Equal infinities have no difference. */
            CHECK_MSG(x == y || fabs(x - y) <= tolerance * (1 + fabs(x)),
                      "output %zu element %lld: %g became %g", i, (long long)k, x, y);
        }
    }
    for (size_t i = 0; i < 8; i++) {
        sn_slot_clear(&a[i]);
        sn_slot_clear(&b[i]);
    }
    sn_graph_free(original);
}

static inline uint32_t count_ops(const sn_graph *g, const char *op_type)
{
    uint32_t n = 0;
    for (const sn_node *x = g->first; x; x = x->next)
        n += strcmp(x->op_type, op_type) == 0;
    return n;
}

/* The model's graph after these passes, ended by NULL; NULL: one failed, which is said. */
static inline sn_graph *with_passes(sn_model *m, const char *const *names)
{
    sn_graph *p = NULL;
    sonde_status st = sn_model_finish(m, &err);
    if (st == SONDE_OK)
        st = ready_copy(m, &p);
    for (; st == SONDE_OK && *names; names++)
        st = run_passes(p, *names);
    if (st == SONDE_OK)
        return p;
    test_errors++;
    fprintf(stderr, "%s\n", err.message);
    return NULL;
}

#endif
