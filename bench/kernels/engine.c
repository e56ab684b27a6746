/* SPDX-License-Identifier: Apache-2.0 */
/* sonde's own drivers on a case: planned as an operator's binding plans them, run as its step runs
 * them. The reference is the same with the plain C kernels. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compute/conv.h"
#include "compute/conv_tiles.h"
#include "compute/gemm.h"
#include "compute/packs.h"

enum { COLD_SETS = 4 }; /* of the second-level cache */

typedef struct work {
    bool is_conv;
    sn_conv_plan conv;
    sn_gemm_plan gemm;
    sn_pool *pool;
    float *x, *y, *z, *bias, *space;
    bench_weights w;
} work;

void bench_weights_make(bench_weights *w, const bench_setup *s, size_t bytes)
{
    w->copies = 1;
    if (s->cold)
        w->copies = COLD_SETS * s->cpu.l2_bytes / (bytes ? bytes : 1) + 1;
    if (w->copies > BENCH_MAX_COPIES)
        w->copies = BENCH_MAX_COPIES;
    for (size_t i = 0; i < w->copies; i++)
        w->of[i] = bench_numbers(s->type, bytes);
}

const void *bench_weights_next(bench_weights *w)
{
    const void *weights = w->of[w->next];
    w->next = w->next + 1 < w->copies ? w->next + 1 : 0;
    return weights;
}

void bench_weights_free(bench_weights *w)
{
    for (size_t i = 0; i < w->copies; i++)
        free(w->of[i]);
}

static void run(void *state)
{
    work *w = state;
    const void *weights = bench_weights_next(&w->w);
    if (w->is_conv)
        sn_conv_run(&w->conv, w->x, weights, w->bias, w->z, w->y, w->space, w->pool);
    else
        sn_gemm_run(&w->gemm, w->x, weights, w->bias, NULL, w->y, w->space, w->pool);
}

static void release(void *state)
{
    work *w = state;
    bench_weights_free(&w->w);
    free(w->x), free(w->y), free(w->z), free(w->bias), free(w->space);
    free(w);
}

static float *image(sn_dtype type, int64_t channels, int64_t pixels, unsigned block)
{
    const int64_t b = block ? block : 1;
    return bench_numbers(type,
                         (size_t)((channels + b - 1) / b * b * pixels) * sn_dtype_bytes(type));
}

/* Depthwise ones have their weights in f32. */
static unsigned conv_format(const sn_conv_desc *d, const int64_t *dims, bool half, uint32_t flags,
                            int64_t *arg)
{
    *arg = half ? sn_conv_tiles_pack_arg(d->groups, d->in_block == 0, dims[3], d->dilation[2])
                : d->groups;
    if (half)
        return sn_conv_tiles_pack_id(SONDE_DTYPE_BF16, dims, 4, d->groups, d->in_block,
                                     d->out_block, flags);
    return sn_conv_pack_id(SONDE_DTYPE_F32, dims, 4, d->groups, d->in_block, d->out_block, flags);
}

static sonde_status make_conv(work *w, const bench_setup *s, int threads, uint32_t flags,
                              const bench_conv *c, int winograd, sonde_error *err)
{
    const unsigned block = sn_conv_block(flags);
    const int64_t pad = c->kernel / 2 * c->dilation;
    const int64_t out = (c->image + 2 * (c->kernel / 2) - c->kernel) / c->stride + 1;
    const sn_dtype half = s->type == SONDE_DTYPE_BF16 ? s->type : 0;
    sn_conv_desc d = {.n = 1,
                      .c = c->in,
                      .oc = c->out,
                      .groups = c->groups,
                      .in = {1, c->image, c->image},
                      .out = {1, out, out},
                      .kernel = {1, c->kernel, c->kernel},
                      .stride = {1, c->stride, c->stride},
                      .dilation = {1, c->dilation, c->dilation},
                      .pad = {0, pad, pad},
                      .in_block = c->in < block ? 0 : block,
                      .out_block = block,
                      .residual = c->residual,
                      .packed = true,
                      .winograd = winograd,
                      .act = {SN_ACT_RELU, {0, 0}}};
    const int64_t dims[4] = {c->out, c->in / c->groups, c->kernel, c->kernel};
    int64_t arg = 0;
    unsigned format = conv_format(&d, dims, half != 0, flags, &arg);
    if (half && format != SN_PACK_NONE) {
        d.tiles = true;
        d.w_dtype = d.x_half = d.y_half = half;
        d.z_half = c->residual ? half : 0;
    } else {
        format = conv_format(&d, dims, false, flags, &arg);
    }
    SN_TRY(sn_conv_plan_make(&w->conv, &d, flags, s->cpu.l2_bytes, threads, err));
    size_t bytes = 0;
    const sn_packing packing = {sn_pack_get(format), dims, 4, arg, flags};
    if (!packing.format->bytes(&packing, &bytes))
        return sn_fail(err, SONDE_LIMIT, "these weights cannot be packed");
    bench_weights_make(&w->w, s, bytes);
    const sn_dtype type = d.tiles ? half : SONDE_DTYPE_F32;
    w->x = image(type, c->in, c->image * c->image, d.in_block);
    w->y = image(type, c->out, out * out, block);
    w->z = c->residual ? image(type, c->out, out * out, block) : NULL;
    w->bias = bench_floats((size_t)c->out * sizeof(float));
    w->space = bench_floats(w->conv.workspace.bytes);
    return SONDE_OK;
}

static sonde_status make_gemm(work *w, const bench_setup *s, int threads, uint32_t flags,
                              const bench_gemm *g, sonde_error *err)
{
    const bool tiles = s->type == SONDE_DTYPE_BF16 &&
                       sn_gemm_tiles_pack_id(SONDE_DTYPE_BF16, flags) != SN_PACK_NONE;
    const sn_gemm_desc d = {.m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .b_count = 1,
                            .packed = g->packed,
                            .b_dtype = tiles && g->packed ? SONDE_DTYPE_BF16 : 0,
                            .tiles = tiles,
                            .has_c = true,
                            .c_n = 1,
                            .alpha = 1,
                            .beta = 1};
    SN_TRY(sn_gemm_plan_make(&w->gemm, &d, flags, s->cpu.l2_bytes, threads, err));
    const size_t floats = tiles && g->packed ? (size_t)sn_gemm_tiles_floats(g->n, g->k)
                                             : sn_gemm_packed_floats(g->n, g->k, w->gemm.block);
    bench_weights_make(&w->w, s, floats * sizeof(float));
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
    out->arithmetic = c->is_conv ? w->conv.arithmetic : w->gemm.arithmetic;
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
