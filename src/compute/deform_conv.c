/* SPDX-License-Identifier: Apache-2.0 */
/* Deformable convolution; panels of output pixels are gathered side by side. */
#include "compute/deform_conv.h"

#include <math.h>
#include <string.h>

#include "compute/split.h"

enum { MAX_CORNERS = 8 };

sonde_status sn_deform_conv_plan_make(sn_deform_conv_plan *p, const sn_deform_conv_desc *d,
                                      uint32_t cpu_flags, size_t l2_bytes, int threads,
                                      sonde_error *err)
{
    *p = (sn_deform_conv_plan){.d = *d, .in_pixels = 1, .out_pixels = 1, .taps = 1};
    for (int i = 0; i < d->spatial; i++) {
        p->in_pixels = sn_count(p->in_pixels, d->in[i], 1, 1);
        p->out_pixels = sn_count(p->out_pixels, d->out[i], 1, 1);
        p->taps = sn_count(p->taps, d->kernel[i], 1, 1);
    }
    const int64_t depth = sn_count(d->in_channels, p->taps, 1, 1);
    p->panel_floats = -1;
    if (p->in_pixels < 0 || p->out_pixels < 0 || depth < 0)
        return SONDE_OK;
    const sn_gemm_desc g = {.m = d->out_channels,
                            .n = p->out_pixels,
                            .k = depth,
                            .b_count = 1,
                            .packed = true,
                            .has_c = d->bias,
                            .c_m = 1,
                            .alpha = 1.0f,
                            .beta = 1.0f};
    SN_TRY(sn_gemm_plan_make(&p->gemm, &g, cpu_flags, l2_bytes, threads, err));
    p->panel_floats = sn_count(depth, p->gemm.panels, p->gemm.block, 1);
    p->flops = (uint64_t)(d->n * d->groups) * p->gemm.flops;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ gathering */
typedef struct deform_call {
    const sn_deform_conv_plan *p;
    const float *x, *offset, *mask; /* of this image; mask may be NULL */
    int64_t group;
    float *panels;
} deform_call;

typedef struct corners {
    int n;
    int64_t at[MAX_CORNERS];
    float weight[MAX_CORNERS];
} corners;

/* Input elements around a position, those outside left out. */
static void corners_of(const sn_deform_conv_desc *k, const float *position, float scale, corners *c)
{
    c->n = 1;
    c->at[0] = 0;
    c->weight[0] = scale;
    for (int d = 0; d < k->spatial; d++) {
        const float p = position[d];
        const int64_t in = k->in[d];
        if (!(p > -1.0f && p < (float)in)) { /* NaN too */
            c->n = 0;
            return;
        }
        const float base = floorf(p), part = p - base;
        const int64_t low = (int64_t)base;
        const int n = c->n;
        c->n = 0;
        corners next = {.n = 0};
        for (int i = 0; i < n; i++)
            for (int side = 0; side < 2; side++) {
                const int64_t at = low + side;
                const float weight = side ? part : 1.0f - part;
                if (at < 0 || at >= in || weight == 0.0f)
                    continue;
                next.at[next.n] = c->at[i] * in + at;
                next.weight[next.n++] = c->weight[i] * weight;
            }
        *c = next;
    }
}

/* One panel: `block` output pixels, all channels of the group and all taps. */
static void gather_task(void *arg, size_t task, int worker)
{
    const deform_call *c = arg;
    const sn_deform_conv_plan *p = c->p;
    const sn_deform_conv_desc *k = &p->d;
    const int64_t block = p->gemm.block, first = (int64_t)task * block;
    const int64_t lanes = sn_min(block, p->out_pixels - first);
    const int64_t per_offset = k->in_channels * k->groups / k->offset_groups;
    float *panel = c->panels + (int64_t)task * k->in_channels * p->taps * block;
    (void)worker;
    memset(panel, 0, (size_t)(k->in_channels * p->taps * block) * sizeof *panel);
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t pixel = first + lane;
        int64_t o[SN_DEFORM_MAX_SPATIAL], rest = pixel;
        for (int d = k->spatial - 1; d >= 0; d--) {
            o[d] = rest % k->out[d];
            rest /= k->out[d];
        }
        for (int64_t tap = 0; tap < p->taps; tap++) {
            int64_t t[SN_DEFORM_MAX_SPATIAL];
            rest = tap;
            for (int d = k->spatial - 1; d >= 0; d--) {
                t[d] = rest % k->kernel[d];
                rest /= k->kernel[d];
            }
            corners around = {.n = 0};
            int64_t known = -1; /* offset group `around` is for */
            for (int64_t ch = 0; ch < k->in_channels; ch++) {
                const int64_t channel = c->group * k->in_channels + ch, og = channel / per_offset;
                if (og != known) {
                    float position[SN_DEFORM_MAX_SPATIAL];
                    const int64_t cell = og * p->taps + tap;
                    for (int d = 0; d < k->spatial; d++)
                        position[d] =
                            (float)(o[d] * k->stride[d] - k->pad[d] + t[d] * k->dilation[d]) +
                            c->offset[(cell * k->spatial + d) * p->out_pixels + pixel];
                    corners_of(k, position, c->mask ? c->mask[cell * p->out_pixels + pixel] : 1.0f,
                               &around);
                    known = og;
                }
                const float *x = c->x + channel * p->in_pixels;
                float sum = 0.0f;
                for (int i = 0; i < around.n; i++)
                    sum += around.weight[i] * x[around.at[i]];
                panel[(ch * p->taps + tap) * block + lane] = sum;
            }
        }
    }
}

bool sn_deform_conv_run(const sn_deform_conv_plan *p, const sn_deform_conv_args *a, sn_pool *pool)
{
    const sn_deform_conv_desc *k = &p->d;
    const int64_t cells = k->offset_groups * p->taps * p->out_pixels;
    deform_call c = {.p = p, .panels = a->panels};
    for (int64_t i = 0; i < k->n * k->groups && p->out_pixels > 0; i++) {
        const int64_t image = i / k->groups;
        c.group = i % k->groups;
        c.x = a->x + image * k->groups * k->in_channels * p->in_pixels;
        c.offset = a->offset + image * cells * k->spatial;
        c.mask = a->mask ? a->mask + image * cells : NULL;
        sn_pool_run(pool, (size_t)p->gemm.panels, gather_task, &c);
        sn_gemm_run(&p->gemm, a->w + c.group * k->out_channels * k->in_channels * p->taps, c.panels,
                    a->bias ? a->bias + c.group * k->out_channels : NULL, NULL,
                    a->y + i * k->out_channels * p->out_pixels, NULL, pool);
        if (a->cancel && atomic_load_explicit(a->cancel, memory_order_relaxed))
            return false;
    }
    return true;
}
