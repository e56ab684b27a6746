/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN (its C interface, version 3) on every case, where it is installed: found at run, so the
 * few declarations needed are repeated here. It chooses its own layouts, as sonde does, and has the
 * same work fused: bias, residual, ReLU. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { /* of dnnl_types.h */
       CPU = 1,
       F32 = 3,
       ANY = 1,
       IN_ORDER = 1,
       INFERENCE = 96,
       CONV_DIRECT = 1,
       RELU = 0x20,
       ARG_SRC = 1,
       ARG_DST = 17,
       ARG_WEIGHTS = 33,
       ARG_BIAS = 41,
       SRC_MD = 129,
       WEIGHTS_MD = 131,
       DST_MD = 133,
       MAX_RANK = 12,
};
typedef int64_t dims[MAX_RANK];
typedef struct exec_arg {
    int arg;
    void *memory;
} exec_arg;

/* X(name after "dnnl_", result, parameters) */
#define FUNCTIONS(X)                                                                               \
    X(engine_create, int, (void **, int, size_t))                                                  \
    X(stream_create, int, (void **, void *, unsigned))                                             \
    X(stream_wait, int, (void *))                                                                  \
    X(memory_desc_create_with_tag, int, (void **, int, const dims, int, int))                      \
    X(memory_desc_create_with_strides, int, (void **, int, const dims, int, const dims))           \
    X(memory_desc_destroy, int, (void *))                                                          \
    X(memory_desc_get_size, size_t, (const void *))                                                \
    X(memory_create, int, (void **, const void *, void *, void *))                                 \
    X(memory_destroy, int, (void *))                                                               \
    X(primitive_attr_create, int, (void **))                                                       \
    X(primitive_attr_set_post_ops, int, (void *, const void *))                                    \
    X(primitive_attr_destroy, int, (void *))                                                       \
    X(post_ops_create, int, (void **))                                                             \
    X(post_ops_append_sum, int, (void *, float, int32_t, int))                                     \
    X(post_ops_append_eltwise, int, (void *, int, float, float))                                   \
    X(post_ops_destroy, int, (void *))                                                             \
    X(matmul_primitive_desc_create, int,                                                           \
      (void **, void *, const void *, const void *, const void *, const void *, const void *))     \
    X(convolution_forward_primitive_desc_create, int,                                              \
      (void **, void *, int, int, const void *, const void *, const void *, const void *,          \
       const dims, const dims, const dims, const dims, const void *))                              \
    X(primitive_desc_query_md, const void *, (const void *, int, int))                             \
    X(primitive_desc_destroy, int, (void *))                                                       \
    X(primitive_create, int, (void **, const void *))                                              \
    X(primitive_execute, int, (const void *, void *, int, const exec_arg *))                       \
    X(primitive_destroy, int, (void *))

static struct {
    bool tried, usable;
#define POINTER(name, result, parameters) result(*name) parameters;
    FUNCTIONS(POINTER)
#undef POINTER
    void (*omp_set_num_threads)(int); /* NULL: it takes what affinity leaves */
    void *engine, *stream;
} api;

static bool find(void *lib, const char *name, void *function)
{
    void *found = lib ? dlsym(lib, name) : NULL;
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool open_once(const bench_setup *s)
{
    if (api.tried)
        return api.usable;
    api.tried = true;
    (void)setenv("GOMP_SPINCOUNT", "100000", 0); /* its idle threads leave the others alone */
    void *lib = dlopen(s->onednn ? s->onednn : "libdnnl.so.3", RTLD_NOW | RTLD_GLOBAL);
    bool ok = lib != NULL;
#define FIND(name, result, parameters) ok = find(lib, "dnnl_" #name, &api.name) && ok;
    FUNCTIONS(FIND)
#undef FIND
    (void)find(lib, "omp_set_num_threads", &api.omp_set_num_threads);
    api.usable = ok && api.engine_create(&api.engine, CPU, 0) == 0 &&
                 api.stream_create(&api.stream, api.engine, IN_ORDER) == 0;
    if (!api.usable)
        fprintf(stderr, "oneDNN is not installed: left out\n");
    else if (!api.omp_set_num_threads)
        fprintf(stderr,
                "oneDNN cannot be told its threads: only measured with as many as there "
                "are cores to use (%d)\n",
                s->cpu.usable_cores);
    return api.usable;
}

enum { SRC, WEIGHTS, BIAS, DST, TENSORS };

typedef struct work {
    void *primitive;
    void *memory[TENSORS];
    float *data[TENSORS];
    exec_arg args[TENSORS];
    int threads;
} work;

static void prepare(void *state)
{
    const work *w = state;
    if (api.omp_set_num_threads)
        api.omp_set_num_threads(w->threads);
}

static void run(void *state)
{
    const work *w = state;
    (void)api.primitive_execute(w->primitive, api.stream, TENSORS, w->args);
    (void)api.stream_wait(api.stream);
}

static void release(void *state)
{
    work *w = state;
    for (int i = 0; i < TENSORS; i++) {
        if (w->memory[i])
            (void)api.memory_destroy(w->memory[i]);
        free(w->data[i]);
    }
    if (w->primitive)
        (void)api.primitive_destroy(w->primitive);
    free(w);
}

static bool any_desc(void **d, int rank, const dims dim)
{
    return api.memory_desc_create_with_tag(d, rank, dim, F32, ANY) == 0;
}

/* ReLU, after adding to what the output holds. */
static void *attributes(bool residual, bool relu)
{
    void *attr = NULL, *ops = NULL;
    if (api.primitive_attr_create(&attr) || api.post_ops_create(&ops))
        return attr;
    if (residual)
        (void)api.post_ops_append_sum(ops, 1, 0, 0);
    if (relu)
        (void)api.post_ops_append_eltwise(ops, RELU, 0, 0);
    (void)api.primitive_attr_set_post_ops(attr, ops);
    (void)api.post_ops_destroy(ops);
    return attr;
}

static void *conv_desc(const bench_conv *c, void *md[TENSORS])
{
    const int64_t pad = c->kernel / 2 * c->dilation, step = c->dilation - 1;
    const int64_t to = (c->image + 2 * (c->kernel / 2) - c->kernel) / c->stride + 1;
    const bool grouped = c->groups > 1;
    const dims x = {1, c->in, c->image, c->image}, y = {1, c->out, to, to}, bias = {c->out},
               one = {1}, stride = {c->stride, c->stride}, dilation = {step, step},
               pads = {pad, pad}, w = {c->out, c->in, c->kernel, c->kernel},
               wg = {c->groups, c->out / c->groups, c->in / c->groups, c->kernel, c->kernel};
    void *pd = NULL, *attr = attributes(c->residual, true);
    if (any_desc(&md[SRC], 4, x) && any_desc(&md[DST], 4, y) &&
        any_desc(&md[WEIGHTS], grouped ? 5 : 4, grouped ? wg : w) &&
        api.memory_desc_create_with_strides(&md[BIAS], 1, bias, F32, one) == 0)
        (void)api.convolution_forward_primitive_desc_create(&pd, api.engine, INFERENCE, CONV_DIRECT,
                                                            md[SRC], md[WEIGHTS], md[BIAS], md[DST],
                                                            stride, dilation, pads, pads, attr);
    (void)api.primitive_attr_destroy(attr);
    return pd;
}

static void *gemm_desc(const bench_gemm *g, void *md[TENSORS])
{
    const dims a = {g->m, g->k}, a_strides = {g->k, 1}, b = {g->k, g->n}, b_strides = {g->n, 1},
               y = {g->m, g->n}, y_strides = {g->n, 1}, bias = {1, g->n};
    void *pd = NULL;
    const bool ok =
        api.memory_desc_create_with_strides(&md[SRC], 2, a, F32, a_strides) == 0 &&
        api.memory_desc_create_with_strides(&md[DST], 2, y, F32, y_strides) == 0 &&
        api.memory_desc_create_with_strides(&md[BIAS], 2, bias, F32, y_strides) == 0 &&
        (g->packed ? any_desc(&md[WEIGHTS], 2, b)
                   : api.memory_desc_create_with_strides(&md[WEIGHTS], 2, b, F32, b_strides) == 0);
    if (ok)
        (void)api.matmul_primitive_desc_create(&pd, api.engine, md[SRC], md[WEIGHTS], md[BIAS],
                                               md[DST], NULL);
    return pd;
}

static bool make(work *w, const bench_case *c)
{
    static const int args[TENSORS] = {ARG_SRC, ARG_WEIGHTS, ARG_BIAS, ARG_DST};
    static const int queries[TENSORS] = {SRC_MD, WEIGHTS_MD, 0, DST_MD};
    void *md[TENSORS] = {NULL};
    void *pd = c->is_conv ? conv_desc(&c->conv, md) : gemm_desc(&c->gemm, md);
    bool ok = pd && api.primitive_create(&w->primitive, pd) == 0;
    for (int i = 0; i < TENSORS && ok; i++) {
        const void *chosen = i == BIAS ? md[i] : api.primitive_desc_query_md(pd, queries[i], 0);
        w->data[i] = bench_floats(api.memory_desc_get_size(chosen));
        ok = api.memory_create(&w->memory[i], chosen, api.engine, w->data[i]) == 0;
        w->args[i] = (exec_arg){args[i], w->memory[i]};
    }
    for (int i = 0; i < TENSORS; i++) {
        if (md[i])
            (void)api.memory_desc_destroy(md[i]);
    }
    if (pd)
        (void)api.primitive_desc_destroy(pd);
    return ok;
}

bool bench_onednn(const bench_setup *s, int slot, const bench_case *c, bench_runner *out)
{
    if (!open_once(s))
        return false;
    if (!api.omp_set_num_threads && s->threads[slot] != s->cpu.usable_cores)
        return false;
    work *w = bench_alloc(sizeof *w);
    w->threads = s->threads[slot];
    prepare(w); /* it plans for as many threads as there are now */
    if (!make(w, c)) {
        fprintf(stderr, "%s: oneDNN cannot\n", c->name);
        release(w);
        return false;
    }
    *out = (bench_runner){.by = "onednn",
                          .threads = w->threads,
                          .prepare = prepare,
                          .run = run,
                          .free = release,
                          .state = w};
    return true;
}
