/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of plain tensors, one to three spatial dims, any groups: the input values that a
 * segment of output pixels needs are gathered into panels of `block` pixels, column by column of
 * the kernel, and multiplied with the weights, whose rows are read where they lie. */
#include <string.h>

#include "compute/conv.h"
#include "compute/split.h"

/* Where a pixel's window starts in the input. */
typedef struct corner {
    int64_t d, h, w;
} corner;

static corner corner_of(const sn_conv_desc *d, int64_t pixel)
{
    const int64_t ow = pixel % d->out[2], rest = pixel / d->out[2];
    const int64_t oh = rest % d->out[1], od = rest / d->out[1];
    return (corner){od * d->stride[0] - d->pad[0], oh * d->stride[1] - d->pad[1],
                    ow * d->stride[2] - d->pad[2]};
}

/* One panel: `n` pixels from `first`, the lanes beyond are zero. x is the group's first channel. */
static void gather(const sn_conv_plan *p, const float *x, int64_t first, int64_t n, float *panel)
{
    const sn_conv_desc *d = &p->d;
    const int64_t block = p->block, channels = d->c / d->groups;
    const int64_t plane = d->in[1] * d->in[2], volume = d->in[0] * plane;
    corner at[16];
    for (int64_t l = 0; l < n; l++)
        at[l] = corner_of(d, first + l);
    /* A full panel inside one output row at stride 1 reads consecutive floats. */
    const bool straight =
        n == block && d->stride[2] == 1 && at[n - 1].h == at[0].h && at[n - 1].d == at[0].d;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t kd = 0; kd < d->kernel[0]; kd++) {
            for (int64_t kh = 0; kh < d->kernel[1]; kh++) {
                for (int64_t kw = 0; kw < d->kernel[2]; kw++, panel += block) {
                    const int64_t dd = kd * d->dilation[0], dh = kh * d->dilation[1];
                    const int64_t dw = kw * d->dilation[2];
                    if (straight && at[0].w + dw >= 0 && at[n - 1].w + dw < d->in[2]) {
                        const int64_t id = at[0].d + dd, ih = at[0].h + dh;
                        if (id < 0 || id >= d->in[0] || ih < 0 || ih >= d->in[1])
                            memset(panel, 0, (size_t)block * sizeof(float));
                        else
                            memcpy(panel,
                                   x + c * volume + id * plane + ih * d->in[2] + at[0].w + dw,
                                   (size_t)block * sizeof(float));
                        continue;
                    }
                    for (int64_t l = 0; l < block; l++) {
                        float v = 0.0f;
                        if (l < n) {
                            const int64_t id = at[l].d + dd, ih = at[l].h + dh, iw = at[l].w + dw;
                            if (id >= 0 && id < d->in[0] && ih >= 0 && ih < d->in[1] && iw >= 0 &&
                                iw < d->in[2])
                                v = x[c * volume + id * plane + ih * d->in[2] + iw];
                        }
                        panel[l] = v;
                    }
                }
            }
        }
    }
}

/* Bias and residual into y, where the kernel finds them as its addend. */
static void prefill(const sn_conv_call *c, float *y, const float *z, int64_t oc0, int64_t rows,
                    int64_t stride, int64_t n)
{
    for (int64_t o = 0; o < rows; o++) {
        const float bias = c->bias ? c->bias[oc0 + o] : 0.0f;
        for (int64_t i = 0; i < n; i++)
            y[o * stride + i] = z ? z[o * stride + i] + bias : bias;
    }
}

static void columns_item(const sn_conv_call *c, size_t index, float *panels)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t block = p->block, channels = d->c / d->groups, rows = d->oc / d->groups;
    const int64_t k = channels * d->kernel[0] * d->kernel[1] * d->kernel[2];
    const int64_t seg = (int64_t)index % p->segs, rest = (int64_t)index / p->segs;
    const int64_t image = rest / d->groups, group = rest % d->groups;
    const int64_t first = seg * p->seg, n = sn_min(p->cols - first, p->seg);
    const int64_t volume = d->in[0] * d->in[1] * d->in[2];
    const float *x = c->x + (image * d->c + group * channels) * volume;
    for (int64_t i = 0; i < n; i += block)
        gather(p, x, first + i, sn_min(block, n - i), panels + i * k);

    const int64_t at = (image * d->oc + group * rows) * p->cols + first;
    float *y = c->y + at;
    const bool add = c->bias || c->z;
    if (add)
        prefill(c, y, c->z ? c->z + at : NULL, group * rows, rows, p->cols, n);
    for (int64_t i = 0; i < n; i += p->chunk_blocks * block) {
        const int64_t width = sn_min(p->chunk_blocks * block, n - i);
        sn_f32_tile t = {
            .x = (const float *)c->w + group * rows * k,
            .w = panels + i * k,
            .z = add ? y + i : NULL,
            .y = y + i,
            .pixels = (size_t)rows,
            .blocks = (unsigned)((width + block - 1) / block),
            .lanes = (unsigned)(width % block),
            .block = p->block,
            .ic_blocks = 1,
            .ic = (size_t)k,
            .ic_last = (size_t)k,
            .kh = 1,
            .kw = 1,
            .last_kw = 1,
            .x_pixel = k,
            .x_ic = 1,
            .w_q = k * block,
            .w_ic = block,
            .y_pixel = p->cols,
            .y_q = block,
            .z_pixel = p->cols,
            .z_q = block,
            .lo = p->lo,
            .hi = p->hi,
        };
        p->k->f32_gemm(&t);
    }
    if (p->post)
        for (int64_t o = 0; o < rows; o++)
            sn_act_apply(&d->act, p->k, y + o * p->cols, (size_t)n);
}

void sn_conv_columns_task(void *call, size_t task, int worker)
{
    const sn_conv_call *c = call;
    const sn_conv_plan *p = c->p;
    float *panels = sn_conv_panel(c, worker);
    for (size_t i = sn_split(p->items, p->tasks, task); i < sn_split(p->items, p->tasks, task + 1);
         i++)
        columns_item(c, i, panels);
}
