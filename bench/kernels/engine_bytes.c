/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of bytes (compute/q8.h) on a case: unsigned activations, signed weights, a scale per
 * output channel, bytes as the result. A residual is a step of its own and not part of it. */
#include <stdlib.h>

#include "bench.h"
#include "compute/q8.h"

typedef struct work {
    sn_q8_plan plan;
    sn_q8_args args;
    sn_pool *pool;
    void *x, *y, *space;
    float *scales;
    bench_weights w;
} work;

static void run(void *state)
{
    work *w = state;
    w->args.w = bench_weights_next(&w->w);
    (void)sn_q8_run(&w->plan, &w->args, w->pool);
}

static void release(void *state)
{
    work *w = state;
    bench_weights_free(&w->w);
    free(w->x), free(w->y), free(w->space), free(w->scales);
    free(w);
}

static sn_q8_desc product_of(const bench_gemm *g)
{
    const sn_gemm_desc d = {.m = g->m, .n = g->n, .k = g->k, .b_count = 1};
    sn_q8_desc q = sn_q8_product(&d);
    q.packed = g->packed;
    return q;
}

static sn_q8_desc conv_of(const bench_conv *c)
{
    const int64_t pad = c->kernel / 2 * c->dilation;
    const int64_t out = (c->image + 2 * (c->kernel / 2) - c->kernel) / c->stride + 1;
    return (sn_q8_desc){.conv = {.n = 1,
                                 .c = c->in,
                                 .oc = c->out,
                                 .groups = c->groups,
                                 .in = {1, c->image, c->image},
                                 .out = {1, out, out},
                                 .kernel = {1, c->kernel, c->kernel},
                                 .stride = {1, c->stride, c->stride},
                                 .dilation = {1, c->dilation, c->dilation},
                                 .pad = {0, pad, pad}},
                        .x_pitch = c->in,
                        .y_pitch = c->out,
                        .packed = true};
}

static bool weight_bytes(const sn_q8_desc *d, const bench_case *c, uint32_t flags, size_t *bytes)
{
    const int64_t conv[4] = {c->conv.out, c->conv.groups ? c->conv.in / c->conv.groups : 0,
                             c->conv.kernel, c->conv.kernel};
    const int64_t product[2] = {c->gemm.k, c->gemm.n};
    *bytes = (size_t)(c->gemm.k * c->gemm.n);
    if (!d->packed)
        return true;
    const int64_t arg = c->is_conv ? sn_q8_conv_pack_arg(c->conv.groups, c->conv.kernel, 1) : 0;
    const unsigned format = c->is_conv ? sn_q8_conv_pack_id(SONDE_DTYPE_I8, conv, 4, arg, flags)
                                       : sn_q8_gemm_pack_id(SONDE_DTYPE_I8, flags);
    const sn_packing packing = {sn_pack_get(format), c->is_conv ? conv : product,
                                c->is_conv ? 4 : 2, arg, flags};
    return format != SN_PACK_NONE && packing.format->bytes(&packing, bytes);
}

bool bench_bytes(const bench_setup *s, int slot, uint32_t cpu_flags, const bench_case *c,
                 bench_runner *out)
{
    static const uint8_t zero = 128;
    static const float scale = 0x1p-8f;
    sonde_error err;
    sn_q8_desc d = c->is_conv ? conv_of(&c->conv) : product_of(&c->gemm);
    d.x_type = d.y_type = SONDE_DTYPE_U8;
    d.w_type = SONDE_DTYPE_I8;
    work *w = bench_alloc(sizeof *w);
    const int threads = s->threads[slot];
    size_t bytes = 0;
    if (!weight_bytes(&d, c, cpu_flags, &bytes) ||
        sn_q8_plan_make(&w->plan, &d, cpu_flags, s->cpu.l2_bytes, threads, &err)) {
        fprintf(stderr, "%s: has no way in bytes\n", c->name);
        release(w);
        return false;
    }
    const sn_conv_desc *v = &d.conv;
    bench_weights_make(&w->w, s, bytes);
    w->pool = s->pool[slot];
    w->x = bench_numbers(SONDE_DTYPE_I8, (size_t)(w->plan.in_pixels * v->c));
    w->y = bench_alloc((size_t)(w->plan.out_pixels * v->oc));
    w->space = bench_alloc(w->plan.workspace.bytes);
    w->scales = bench_floats((size_t)v->oc * sizeof(float));
    for (int64_t i = 0; i < v->oc; i++)
        w->scales[i] = 0x1p-8f;
    w->args = (sn_q8_args){.x = w->x,
                           .y = w->y,
                           .x_zero = {SONDE_DTYPE_U8, &zero, 1},
                           .x_scale = &scale,
                           .x_scales = 1,
                           .w_scale = w->scales,
                           .w_scales = v->oc,
                           .y_scale = 1,
                           .y_zero = zero,
                           .workspace = w->space};
    out->by = cpu_flags ? "sonde" : "reference";
    out->threads = threads;
    out->arithmetic = w->plan.arithmetic;
    out->run = run;
    out->free = release;
    out->state = w;
    snprintf(out->plan, sizeof out->plan, "%s", w->plan.name);
    return true;
}
