/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose weights have zeros in blocks, through the drivers of sparse weights. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compute/gemm.h"
#include "compute/sparse.h"

typedef struct work {
    sn_gemm_plan gemm;
    sn_pool *pool;
    float *x, *y, *bias, *space;
    bench_weights w;
} work;

static void run(void *state)
{
    work *w = state;
    sn_gemm_run(&w->gemm, w->x, bench_weights_next(&w->w), w->bias, NULL, w->y, w->space, w->pool);
}

static void release(void *state)
{
    work *w = state;
    bench_weights_free(&w->w);
    free(w->x), free(w->y), free(w->bias), free(w->space);
    free(w);
}

/* [k, n] with so many blocks of zeros, spread at random. */
static float *sparse_floats(const bench_gemm *g)
{
    float *w = bench_floats((size_t)(g->n * g->k) * sizeof *w);
    uint64_t random = 88172645463325252u;
    for (int64_t k = 0; k < g->k; k += g->ks)
        for (int64_t n = 0; n < g->n; n += g->outputs) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            const bool zero = random >> 32 < (uint64_t)g->zeros * ((uint64_t)1 << 32) / 100;
            for (int64_t i = 0; i < g->ks * g->outputs; i++) {
                const int64_t row = k + i / g->outputs, col = n + i % g->outputs;
                if (row < g->k && col < g->n && (zero || w[row * g->n + col] == 0))
                    w[row * g->n + col] = zero ? 0.0f : 0.5f;
            }
        }
    return w;
}

static bool make_f32(work *w, const bench_setup *s, int threads, const bench_gemm *g,
                     sonde_error *err)
{
    float *dense = sparse_floats(g);
    const sn_sparse_source source = {dense, SONDE_DTYPE_F32, g->k, g->n, false};
    const int64_t entries = sn_sparse_blocks(&source, SN_SPARSE_PANEL, 1), dims[] = {g->k, g->n};
    const sn_packing packing = {sn_pack_get(SN_PACK_F32_SPARSE4), dims, 2,
                                sn_sparse_arg(false, entries), s->cpu.flags};
    const sn_gemm_desc d = {.m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .b_count = 1,
                            .packed = true,
                            .sparse = true,
                            .entries = entries,
                            .has_c = true,
                            .c_n = 1,
                            .alpha = 1,
                            .beta = 1};
    size_t bytes = 0;
    bool good = packing.format->bytes(&packing, &bytes) &&
                !sn_gemm_plan_make(&w->gemm, &d, s->cpu.flags, s->cpu.l2_bytes, threads, err);
    if (good) {
        bench_weights_make(&w->w, s, bytes);
        for (size_t i = 0; i < w->w.copies; i++)
            packing.format->pack(&packing, w->w.of[i], dense, 0);
    }
    free(dense);
    return good;
}

bool bench_sparse(const bench_setup *s, int slot, const bench_case *c, bench_runner *out)
{
    sonde_error err = {0};
    const bench_gemm *g = &c->gemm;
    work *w = bench_alloc(sizeof *w);
    const int threads = s->threads[slot];
    w->pool = s->pool[slot];
    if (s->type != SONDE_DTYPE_F32 || !make_f32(w, s, threads, g, &err)) {
        release(w);
        return false;
    }
    w->x = bench_floats((size_t)(g->m * g->k) * sizeof(float));
    w->y = bench_floats((size_t)(g->m * g->n) * sizeof(float));
    w->bias = bench_floats((size_t)g->n * sizeof(float));
    w->space = bench_floats(w->gemm.workspace.bytes);
    *out = (bench_runner){.by = "sparse",
                          .threads = threads,
                          .arithmetic = w->gemm.arithmetic,
                          .run = run,
                          .free = release,
                          .state = w};
    snprintf(out->plan, sizeof out->plan, "%s", w->gemm.name);
    return true;
}
