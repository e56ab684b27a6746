/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose weights have zeros in blocks, through the drivers of sparse weights. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compute/q8.h"
#include "compute/sparse.h"

typedef struct work {
    sn_gemm_plan gemm;
    sn_q8_plan q8;
    sn_q8_args args;
    sn_pool *pool;
    void *x, *y, *space;
    float *bias; /* or scales */
    bench_weights w;
} work;

static void run_bytes(void *state)
{
    work *w = state;
    w->args.w = bench_weights_next(&w->w);
    (void)sn_q8_run(&w->q8, &w->args, w->pool);
}

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

/* Blocks of 16 outputs are for tiles of AMX, if there are any. */
static bool in_tiles(const bench_setup *s, const bench_gemm *g)
{
    const sn_kernels *k = sn_kernels_get(s->cpu.flags);
    return s->type != SONDE_DTYPE_F32 && g->outputs % SN_ROWS_TILE == 0 &&
           k->bf16_sparse16_geometry.speed > 1;
}

/* Packs weights as the format wants them; false: it does not. */
static bool pack(work *w, const bench_setup *s, const bench_gemm *g, unsigned format,
                 const void *dense, int64_t entries)
{
    const int64_t dims[] = {g->k, g->n};
    const sn_packing packing = {sn_pack_get(format), dims, 2,
                                sn_sparse_arg(SN_SPARSE_PLAIN, entries), s->cpu.flags};
    size_t bytes = 0;
    if (!packing.format->bytes(&packing, &bytes))
        return false;
    bench_weights_make(&w->w, s, bytes);
    for (size_t i = 0; i < w->w.copies; i++)
        packing.format->pack(&packing, w->w.of[i], dense, 0);
    return true;
}

/* As the format counts them. */
static int64_t entries_of(const bench_gemm *g, unsigned format, const void *dense)
{
    const sn_pack_format *f = sn_pack_get(format);
    const sn_sparse_source source = {dense, f->dtype, g->k, g->n, false};
    return sn_sparse_blocks(&source, f->block, f->arrangement == SN_WEIGHTS_SPARSE ? 1 : f->kr);
}

static bool make_floats(work *w, const bench_setup *s, int threads, const bench_gemm *g,
                        const float *dense)
{
    sonde_error err;
    const bool tiles = in_tiles(s, g);
    const unsigned format = tiles             ? SN_PACK_BF16_SPARSE16
                            : g->outputs == 1 ? SN_PACK_F32_SPARSE1
                                              : SN_PACK_F32_SPARSE4;
    const size_t n = (size_t)(g->k * g->n);
    void *weights = bench_alloc(n * sizeof(float));
    memcpy(weights, dense, n * sizeof(float));
    if (tiles)
        sn_pack_convert(SONDE_DTYPE_BF16, SONDE_DTYPE_F32, weights, (int64_t)n, s->cpu.flags);
    const sn_gemm_desc d = {.m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .b_count = 1,
                            .packed = true,
                            .sparse = sn_pack_get(format)->block,
                            .b_dtype = tiles ? SONDE_DTYPE_BF16 : 0,
                            .entries = entries_of(g, format, weights),
                            .has_c = true,
                            .c_n = 1,
                            .alpha = 1,
                            .beta = 1};
    const bool good =
        !sn_gemm_plan_make(&w->gemm, &d, s->cpu.flags, s->cpu.l2_bytes, threads, &err) &&
        pack(w, s, g, format, weights, d.entries);
    free(weights);
    if (!good)
        return false;
    w->x = bench_floats((size_t)(g->m * g->k) * sizeof(float));
    w->y = bench_floats((size_t)(g->m * g->n) * sizeof(float));
    w->bias = bench_floats((size_t)g->n * sizeof(float));
    w->space = bench_floats(w->gemm.workspace.bytes);
    return true;
}

static bool make_bytes(work *w, const bench_setup *s, int threads, const bench_gemm *g,
                       const float *dense)
{
    static const uint8_t zero = 128;
    static const float scale = 0x1p-8f;
    sonde_error err;
    const sn_gemm_desc d = {.m = g->m, .n = g->n, .k = g->k, .b_count = 1};
    int8_t *bytes = bench_alloc((size_t)(g->k * g->n));
    for (int64_t i = 0; i < g->k * g->n; i++)
        bytes[i] = dense[i] == 0 ? 0 : (int8_t)((int)(dense[i] * 200) | 1);
    sn_q8_desc q = sn_q8_product(&d);
    q.x_type = q.y_type = SONDE_DTYPE_U8;
    q.w_type = SONDE_DTYPE_I8;
    q.packed = q.sparse = true;
    q.sparse_tiles = in_tiles(s, g);
    const unsigned format = q.sparse_tiles ? SN_PACK_I8_SPARSE16 : SN_PACK_I8_SPARSE4;
    q.entries = entries_of(g, format, bytes);
    const bool good = !sn_q8_plan_make(&w->q8, &q, s->cpu.flags, s->cpu.l2_bytes, threads, &err) &&
                      pack(w, s, g, format, bytes, q.entries);
    free(bytes);
    if (!good)
        return false;
    w->x = bench_numbers(SONDE_DTYPE_I8, (size_t)(g->m * g->k));
    w->y = bench_alloc((size_t)(g->m * g->n));
    w->space = bench_alloc(w->q8.workspace.bytes);
    w->bias = bench_floats((size_t)g->n * sizeof(float));
    for (int64_t i = 0; i < g->n; i++)
        w->bias[i] = 0x1p-8f;
    w->args = (sn_q8_args){.x = w->x,
                           .y = w->y,
                           .x_zero = {SONDE_DTYPE_U8, &zero, 1},
                           .x_scale = &scale,
                           .x_scales = 1,
                           .w_scale = w->bias,
                           .w_scales = g->n,
                           .y_scale = 1,
                           .y_zero = zero,
                           .workspace = w->space};
    return true;
}

bool bench_sparse(const bench_setup *s, int slot, const bench_case *c, bench_runner *out)
{
    const bench_gemm *g = &c->gemm;
    work *w = bench_alloc(sizeof *w);
    const int threads = s->threads[slot];
    const bool bytes = s->type == SONDE_DTYPE_I8;
    float *dense = sparse_floats(g);
    w->pool = s->pool[slot];
    const bool good =
        bytes ? make_bytes(w, s, threads, g, dense) : make_floats(w, s, threads, g, dense);
    free(dense);
    if (!good) {
        release(w);
        return false;
    }
    *out = (bench_runner){.by = "sparse",
                          .threads = threads,
                          .arithmetic = bytes ? w->q8.arithmetic : w->gemm.arithmetic,
                          .run = bytes ? run_bytes : run,
                          .free = release,
                          .state = w};
    snprintf(out->plan, sizeof out->plan, "%s", bytes ? w->q8.name : w->gemm.name);
    return true;
}
