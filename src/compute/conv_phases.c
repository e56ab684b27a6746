/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_phases.h. Pixel o of an axis and tap k read pixel (o + pad - k*dilation) / stride, where
 * that is whole. Packed weights have their taps from the last to the first, so that taps and pixels
 * of x ascend together. */
#include "compute/conv_phases.h"

#include <stdio.h>
#include <string.h>

#include "compute/packs.h"
#include "compute/split.h"

unsigned sn_conv_phases_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                                uint32_t cpu_flags)
{
    const sn_geometry *g = &sn_kernels_get(cpu_flags)->f32_conv_geometry;
    if (dtype != SONDE_DTYPE_F32 || !sn_conv_phases_fit(w, rank, groups, NULL, NULL, g->block))
        return SN_PACK_NONE;
    return sn_pack_find(SN_WEIGHTS_CONV_TURNED, dtype, g);
}

size_t sn_conv_phases_count(const sn_conv_phases_desc *d)
{
    return (size_t)(d->stride[0] * d->stride[1] * d->stride[2]);
}

/* One axis of the phase whose first pixel is `first`. */
static void axis_of(const sn_conv_phases_desc *d, int i, int64_t first, sn_conv_desc *c,
                    sn_conv_phase *f)
{
    const int64_t s = d->stride[i], k = d->kernel[i], at = first + d->pad[i], rest = at % s;
    const int64_t taps = rest < k ? sn_ceil_div(k - rest, s) : 0;
    c->in[i] = d->in[i];
    c->out[i] = first < d->out[i] ? sn_ceil_div(d->out[i] - first, s) : 0;
    c->kernel[i] = taps;
    c->stride[i] = 1;
    c->dilation[i] = d->dilation[i];
    c->pad[i] = (taps - 1) * d->dilation[i] - at / s;
    f->y_dims[i] = d->out[i];
    f->y_first[i] = first;
    f->y_step[i] = s;
    f->w_dims[i] = k;
    f->w_first[i] = taps ? k - 1 - rest - s * (taps - 1) : 0;
    f->w_step[i] = s;
}

sonde_status sn_conv_phases_make(sn_conv_phases *p, const sn_conv_phases_desc *d,
                                 sn_conv_plan *plans, uint32_t cpu_flags, size_t l2_bytes,
                                 int threads, sonde_error *err)
{
    sn_workspace most = {0};
    *p = (sn_conv_phases){.d = *d, .n = sn_conv_phases_count(d), .plans = plans};
    sn_conv_desc c = {.n = d->n, .c = d->c, .oc = d->oc, .groups = d->groups, .act = d->act};
    c.in_block = c.out_block = sn_conv_block(cpu_flags);
    c.packed = true;
    for (size_t i = 0; i < p->n; i++) {
        sn_conv_phase f;
        int64_t rest = (int64_t)i;
        for (int a = 2; a >= 0; a--) {
            axis_of(d, a, rest % d->stride[a], &c, &f);
            rest /= d->stride[a];
        }
        SN_TRY(sn_conv_phase_plan(&plans[i], &c, &f, cpu_flags, l2_bytes, threads, err));
        if (i == 0)
            p->finish = plans[i];
        plans[i].post = plans[i].clear = false; /* results are not side by side yet */
        p->flops += plans[i].flops;
        if (plans[i].workspace.bytes > most.bytes)
            most = plans[i].workspace;
    }
    p->room = sn_carve_inner(&p->workspace, &most);
    const char *tile = strchr(plans[0].name + strlen("f32_conv"), '_');
    snprintf(p->name, sizeof p->name, "f32_conv_transpose%dx%d%.20s", (int)d->kernel[1],
             (int)d->kernel[2], tile ? tile : "");
    return SONDE_OK;
}

typedef struct finish_call {
    const sn_conv_phases *p;
    float *y;
} finish_call;

/* One block of channels of an image. */
static void finish_task(void *arg, size_t task, int worker)
{
    const finish_call *c = arg;
    const sn_conv_phases_desc *d = &c->p->d;
    const int64_t block = c->p->finish.block, blocks = sn_ceil_div(d->oc, block);
    const int64_t pixels = d->out[0] * d->out[1] * d->out[2], at = (int64_t)task;
    (void)worker;
    sn_conv_finish(&c->p->finish, c->y + at * pixels * block, pixels,
                   sn_min(d->oc - at % blocks * block, block));
}

void sn_conv_phases_run(const sn_conv_phases *p, const float *x, const void *w, const float *bias,
                        const float *z, float *y, void *workspace, sn_pool *pool)
{
    void *room = sn_piece_at(workspace, p->room);
    for (size_t i = 0; i < p->n; i++)
        sn_conv_run(&p->plans[i], x, w, bias, z, y, room, pool);
    if (p->finish.post || p->finish.clear) {
        finish_call c = {p, y};
        sn_pool_run(pool, (size_t)(p->d.n * sn_ceil_div(p->d.oc, p->finish.block)), finish_task,
                    &c);
    }
}
