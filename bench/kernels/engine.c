/* SPDX-License-Identifier: Apache-2.0 */
/* sonde's own drivers on a case: planned as an operator's binding plans them, run as its step runs
 * them. The reference is the same with the plain C kernels. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compute/conv.h"
#include "compute/gemm.h"
#include "compute/packs.h"

/* Weights that are to come from beyond the second-level cache exist often enough to fill it. */
enum { COLD_SETS = 4, MAX_COPIES = 64 };

typedef struct work {
    bool is_conv;
    sn_conv_plan conv;
    sn_gemm_plan gemm;
    sn_pool *pool;
    float *x, *y, *z, *bias, *space;
    float *w[MAX_COPIES];
    size_t copies, next;
} work;

static void make_weights(work *w, const bench_setup *s, size_t bytes)
{
    w->copies = 1;
    if (s->cold)
        w->copies = COLD_SETS * s->cpu.l2_bytes / (bytes ? bytes : 1) + 1;
    if (w->copies > MAX_COPIES)
        w->copies = MAX_COPIES;
    for (size_t i = 0; i < w->copies; i++)
        w->w[i] = bench_floats(bytes);
}

static void run(void *state)
{
    work *w = state;
    const float *weights = w->w[w->next];
    w->next = w->next + 1 < w->copies ? w->next + 1 : 0;
    if (w->is_conv)
        sn_conv_run(&w->conv, w->x, weights, w->bias, w->z, w->y, w->space, w->pool);
    else
        sn_gemm_run(&w->gemm, w->x, weights, w->bias, NULL, w->y, w->space, w->pool);
}

static void release(void *state)
{
    work *w = state;
    for (size_t i = 0; i < w->copies; i++)
        free(w->w[i]);
    free(w->x), free(w->y), free(w->z), free(w->bias), free(w->space);
    free(w);
}

static size_t tensor_bytes(int64_t channels, int64_t pixels, unsigned block)
{
    const int64_t b = block ? block : 1;
    return (size_t)((channels + b - 1) / b * b * pixels) * sizeof(float);
}

static sonde_status make_conv(work *w, const bench_setup *s, int threads, uint32_t flags,
                              const bench_conv *c, int winograd, sonde_error *err)
{
    const unsigned block = sn_conv_block(flags);
    const int64_t pad = c->kernel / 2, out = (c->image + 2 * pad - c->kernel) / c->stride + 1;
    const sn_conv_desc d = {.n = 1,
                            .c = c->in,
                            .oc = c->out,
                            .groups = c->groups,
                            .in = {1, c->image, c->image},
                            .out = {1, out, out},
                            .kernel = {1, c->kernel, c->kernel},
                            .stride = {1, c->stride, c->stride},
                            .dilation = {1, 1, 1},
                            .pad = {0, pad, pad},
                            .in_block = c->in < block ? 0 : block,
                            .out_block = block,
                            .residual = c->residual,
                            .packed = true,
                            .winograd = winograd,
                            .act = {SN_ACT_RELU, {0, 0}}};
    const int64_t dims[4] = {c->out, c->in / c->groups, c->kernel, c->kernel};
    SN_TRY(sn_conv_plan_make(&w->conv, &d, flags, s->cpu.l2_bytes, threads, err));
    size_t bytes = 0;
    const unsigned format =
        sn_conv_pack_id(SONDE_DTYPE_F32, dims, 4, c->groups, d.in_block, block, flags);
    const sn_packing packing = {sn_pack_get(format), dims, 4, c->groups, flags};
    if (!packing.format->bytes(&packing, &bytes))
        return sn_fail(err, SONDE_LIMIT, "these weights cannot be packed");
    make_weights(w, s, bytes);
    w->x = bench_floats(tensor_bytes(c->in, c->image * c->image, d.in_block));
    w->y = bench_floats(tensor_bytes(c->out, out * out, block));
    w->z = c->residual ? bench_floats(tensor_bytes(c->out, out * out, block)) : NULL;
    w->bias = bench_floats((size_t)c->out * sizeof(float));
    w->space = bench_floats(w->conv.workspace.bytes);
    return SONDE_OK;
}

static sonde_status make_gemm(work *w, const bench_setup *s, int threads, uint32_t flags,
                              const bench_gemm *g, sonde_error *err)
{
    const sn_gemm_desc d = {.m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .b_count = 1,
                            .packed = g->packed,
                            .has_c = true,
                            .c_n = 1,
                            .alpha = 1,
                            .beta = 1};
    SN_TRY(sn_gemm_plan_make(&w->gemm, &d, flags, s->cpu.l2_bytes, threads, err));
    make_weights(w, s, sn_gemm_packed_floats(g->n, g->k, w->gemm.block) * sizeof(float));
    w->x = bench_floats((size_t)(g->m * g->k) * sizeof(float));
    w->y = bench_floats((size_t)(g->m * g->n) * sizeof(float));
    w->bias = bench_floats((size_t)g->n * sizeof(float));
    w->space = bench_floats(w->gemm.workspace.bytes);
    return SONDE_OK;
}

static bool make(const bench_setup *s, int slot, uint32_t flags, const bench_case *c, int winograd,
                 bench_runner *out)
{
    sonde_error err;
    work *w = bench_alloc(sizeof *w);
    w->is_conv = c->is_conv;
    w->pool = s->pool[slot];
    const int threads = s->threads[slot];
    if (c->is_conv ? make_conv(w, s, threads, flags, &c->conv, winograd, &err)
                   : make_gemm(w, s, threads, flags, &c->gemm, &err)) {
        fprintf(stderr, "%s: %s\n", c->name, err.message);
        release(w);
        return false;
    }
    out->by = winograd ? "winograd" : flags ? "sonde" : "reference";
    out->threads = threads;
    out->run = run;
    out->free = release;
    out->state = w;
    snprintf(out->plan, sizeof out->plan, "%s", c->is_conv ? w->conv.name : w->gemm.name);
    return true;
}

bool bench_engine(const bench_setup *s, int slot, uint32_t cpu_flags, const bench_case *c,
                  bench_runner *out)
{
    return make(s, slot, cpu_flags, c, 0, out);
}

bool bench_winograd(const bench_setup *s, int slot, const bench_case *c, bench_runner *out)
{
    enum { M = 4 };
    const bench_conv *v = &c->conv;
    const unsigned block = sn_conv_block(s->cpu.flags);
    if (!c->is_conv || v->kernel != 3 || v->stride != 1 || v->in / v->groups < block)
        return false;
    return make(s, slot, s->cpu.flags, c, M, out);
}
