/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of bytes; see integer_conv.h. An image at a time; its output channels, or the tiles
 * of its f32 convolution, run side by side. */
#include "compute/integer_conv.h"

#include <string.h>

#include "compute/eltwise.h"
#include "compute/split.h"

/* ------------------------------------------------------------------ plan */
static sonde_status plan_chunks(sn_integer_conv_plan *p, size_t l2_bytes, int threads,
                                sonde_error *err)
{
    sn_conv_desc d = p->d;
    d.n = d.groups = 1;
    d.oc = p->out_channels;
    d.c = p->chunk;
    SN_TRY(sn_conv_plan_make(&p->plan, &d, p->cpu_flags, l2_bytes, threads, err));
    d.c = p->in_channels - (p->chunks - 1) * p->chunk;
    SN_TRY(sn_conv_plan_make(&p->last, &d, p->cpu_flags, l2_bytes, threads, err));
    const size_t a = p->plan.workspace.bytes, z = p->last.workspace.bytes;
    const int64_t groups = p->depthwise ? p->d.groups : 1;
    p->core_bytes = a > z ? a : z;
    p->x_floats = sn_count(p->in_pixels, p->d.c, 1, 1);
    p->sums_floats = sn_count(p->out_pixels, p->out_channels, groups, 1);
    p->name = p->depthwise ? "u8_depthwise_exact_f32" : "u8_conv_exact_f32";
    return SONDE_OK;
}

sonde_status sn_integer_conv_plan_make(sn_integer_conv_plan *p, const sn_conv_desc *d,
                                       sonde_dtype x, sonde_dtype w, bool quantized,
                                       uint32_t cpu_flags, size_t l2_bytes, int threads,
                                       sonde_error *err)
{
    *p = (sn_integer_conv_plan){.d = *d,
                                .x_type = x,
                                .w_type = w,
                                .quantized = quantized,
                                .in_channels = d->c / d->groups,
                                .out_channels = d->oc / d->groups,
                                .in_pixels = sn_count(d->in[0], d->in[1], d->in[2], 1),
                                .out_pixels = sn_count(d->out[0], d->out[1], d->out[2], 1),
                                .taps = sn_count(d->kernel[0], d->kernel[1], d->kernel[2], 1),
                                .cpu_flags = cpu_flags,
                                .name = "u8_conv_ref"};
    const int64_t acc = sn_count(p->out_pixels, d->oc, 1, 1);
    p->w_floats = sn_count(d->oc, p->in_channels, p->taps, 1);
    p->acc_ints = acc < 0 || quantized ? acc : 0;
    if (p->in_pixels < 0 || p->out_pixels < 0 || p->taps < 1 || p->w_floats < 0 || acc < 0) {
        p->acc_ints = -1;
        return SONDE_OK;
    }
    p->chunk = sn_min(SN_EXACT_TERMS / p->taps, p->in_channels);
    p->chunks = p->chunk > 0 ? sn_ceil_div(p->in_channels, p->chunk) : 0;
    p->depthwise = d->groups > 1 && p->in_channels == 1 && d->in[0] == 1 && d->out[0] == 1 &&
                   d->kernel[0] == 1 && d->pad[0] == 0;
    p->flops = 2 * (uint64_t)d->n * (uint64_t)acc * (uint64_t)p->in_channels * (uint64_t)p->taps;
    return p->chunk > 0 ? plan_chunks(p, l2_bytes, threads, err) : SONDE_OK;
}

/* ------------------------------------------------------------------ sums of one image */
typedef struct conv_call {
    const sn_integer_conv_plan *p;
    const sn_integer_conv_args *a;
    int64_t image;
    int32_t *acc; /* of this image */
    bool join;    /* sums are wanted in acc */
} conv_call;

/* Weights of one output channel, its chunks apart: [group][chunk][channel of the group][taps]. */
static void widen_weights(void *arg, size_t lo, size_t hi)
{
    const conv_call *c = arg;
    const sn_integer_conv_plan *p = c->p;
    const int64_t row = p->in_channels * p->taps;
    for (int64_t oc = (int64_t)lo; oc < (int64_t)hi; oc++) {
        const int64_t group = oc / p->out_channels, own = oc % p->out_channels;
        const int32_t zero = sn_byte_zero(&c->a->w_zero, oc);
        for (int64_t first = 0; first < p->in_channels; first += p->chunk) {
            const int64_t n = sn_min(p->chunk, p->in_channels - first);
            float *dst = c->a->w_f32 + group * p->out_channels * row +
                         first * p->out_channels * p->taps + own * n * p->taps;
            sn_bytes_to_f32(p->cpu_flags, p->w_type, dst,
                            (const uint8_t *)c->a->w + oc * row + first * p->taps, n * p->taps,
                            zero);
        }
    }
}

static void widen_input(void *arg, size_t lo, size_t hi)
{
    const conv_call *c = arg;
    const int64_t image = c->p->d.c * c->p->in_pixels;
    sn_bytes_to_f32(c->p->cpu_flags, c->p->x_type, c->a->x_f32 + lo,
                    (const uint8_t *)c->a->x + c->image * image + (int64_t)lo, (int64_t)(hi - lo),
                    c->a->x_zero);
}

/* Kernels too large to be exact in f32: one output channel at a time. */
static void plain_plane(void *arg, size_t task, int worker)
{
    const conv_call *c = arg;
    const sn_integer_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t oc = (int64_t)task, group = oc / p->out_channels;
    const uint8_t *x =
        (const uint8_t *)c->a->x + (c->image * d->c + group * p->in_channels) * p->in_pixels;
    const uint8_t *w = (const uint8_t *)c->a->w + oc * p->in_channels * p->taps;
    const int32_t zero = sn_byte_zero(&c->a->w_zero, oc);
    (void)worker;
    for (int64_t i = 0; i < p->out_pixels; i++) {
        const int64_t o[3] = {i / d->out[2] / d->out[1], i / d->out[2] % d->out[1], i % d->out[2]};
        int64_t first[3], end[3], at[3];
        uint32_t sum = 0;
        for (int a = 0; a < 3; a++)
            sn_conv_taps(o[a], d->stride[a], d->pad[a], d->dilation[a], d->kernel[a], d->in[a],
                         &first[a], &end[a]);
        for (int64_t ch = 0; ch < p->in_channels; ch++)
            for (at[0] = first[0]; at[0] < end[0]; at[0]++)
                for (at[1] = first[1]; at[1] < end[1]; at[1]++)
                    for (at[2] = first[2]; at[2] < end[2]; at[2]++) {
                        int64_t q = 0, t = 0;
                        for (int a = 0; a < 3; a++) {
                            q = q * d->in[a] + o[a] * d->stride[a] - d->pad[a] +
                                at[a] * d->dilation[a];
                            t = t * d->kernel[a] + at[a];
                        }
                        sum += (uint32_t)((sn_byte_at(p->x_type, x, ch * p->in_pixels + q) -
                                           c->a->x_zero) *
                                          (sn_byte_at(p->w_type, w, ch * p->taps + t) - zero));
                    }
        c->acc[oc * p->out_pixels + i] = (int32_t)sum;
    }
}

/* Depthwise, two-dimensional: a group has one input channel, and a tap is a row times a number. The
 * column bounds of a tap are those of its first and last output inside the image. */
static void depthwise_plane(void *arg, size_t task, int worker)
{
    const conv_call *c = arg;
    const sn_integer_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t oc = (int64_t)task, group = oc / p->out_channels;
    const int64_t height = d->in[1], width = d->in[2], stride = d->stride[2];
    const float *x = c->a->x_f32 + group * p->in_pixels;
    const uint8_t *w = (const uint8_t *)c->a->w + oc * p->taps;
    const int32_t zero = sn_byte_zero(&c->a->w_zero, oc);
    float *sums = c->a->sums + oc * p->out_pixels;
    sn_f32_axpy_fn *axpy = sn_kernels_get(p->cpu_flags)->f32_axpy;
    (void)worker;
    memset(sums, 0, (size_t)p->out_pixels * sizeof *sums);
    for (int64_t oy = 0; oy < d->out[1]; oy++)
        for (int64_t t = 0; t < p->taps; t++) {
            const int64_t ky = t / d->kernel[2], kx = t % d->kernel[2];
            const int64_t y = oy * d->stride[1] - d->pad[1] + ky * d->dilation[1];
            const int64_t shift = kx * d->dilation[2] - d->pad[2]; /* column of output 0 */
            if (y < 0 || y >= height || shift >= width)
                continue;
            const int64_t first = shift < 0 ? sn_ceil_div(-shift, stride) : 0;
            const int64_t end = sn_min(d->out[2], (width - 1 - shift) / stride + 1);
            const float weight = (float)(sn_byte_at(p->w_type, w, t) - zero);
            const float *from = x + y * width + shift;
            float *to = sums + oy * d->out[2];
            if (first < end)
                axpy(to + first, from + first * stride, (size_t)(end - first), (size_t)stride,
                     weight);
        }
    if (c->join)
        sn_exact_join(c->acc + oc * p->out_pixels, sums, p->out_pixels, true);
}

/* All output channels of one image into acc, or left in sums. */
static void convolve(conv_call *c, sn_pool *pool)
{
    const sn_integer_conv_plan *p = c->p;
    const sn_integer_conv_args *a = c->a;
    sn_parallel_range(pool, (size_t)(p->d.c * p->in_pixels), 1, widen_input, c);
    if (p->depthwise) {
        sn_pool_run(pool, (size_t)p->d.oc, depthwise_plane, c);
        return;
    }
    for (int64_t g = 0; g < p->d.groups; g++)
        for (int64_t part = 0; part < p->chunks; part++) {
            const int64_t first = part * p->chunk;
            sn_conv_run(part + 1 < p->chunks ? &p->plan : &p->last,
                        a->x_f32 + (g * p->in_channels + first) * p->in_pixels,
                        a->w_f32 + g * p->out_channels * p->in_channels * p->taps +
                            first * p->out_channels * p->taps,
                        NULL, NULL, a->sums, a->core, pool);
            if (c->join)
                sn_exact_join(c->acc + g * p->out_channels * p->out_pixels, a->sums,
                              p->out_channels * p->out_pixels, part == 0);
        }
}

/* ------------------------------------------------------------------ bytes again */
/* One output channel, from exact sums where they were not cut. */
static void finish_channel(void *arg, size_t task, int worker)
{
    const conv_call *c = arg;
    const sn_integer_conv_plan *p = c->p;
    const sn_integer_conv_args *a = c->a;
    const int64_t oc = (int64_t)task, n = p->out_pixels;
    (void)worker;
    const float scale = a->x_scale * a->w_scale[a->w_scales == 1 ? 0 : oc] / a->y_scale;
    const int32_t bias = a->bias ? a->bias[oc] : 0;
    uint8_t *y = (uint8_t *)a->y_bytes + (c->image * p->d.oc + oc) * n;
    const float *sums = c->join ? NULL : a->sums + oc * n;
    if (sums && bias >= -(1 << 24) && bias <= 1 << 24) {
        sn_requantize_f32(p->cpu_flags, a->y_type, y, sums, n, bias, scale, a->y_zero);
        return;
    }
    int32_t *acc = c->acc + oc * n;
    if (sums)
        sn_exact_join(acc, sums, n, true);
    for (int64_t i = 0; bias && i < n; i++)
        acc[i] = (int32_t)((uint32_t)acc[i] + (uint32_t)bias);
    sn_requantize(p->cpu_flags, a->y_type, y, acc, n, scale, a->y_zero);
}

bool sn_integer_conv_run(const sn_integer_conv_plan *p, const sn_integer_conv_args *a,
                         sn_pool *pool)
{
    const int64_t out = p->d.oc * p->out_pixels;
    /* Sums that need no joining go to bytes as they are. */
    const bool whole = p->quantized && p->chunks == 1 && (p->depthwise || p->d.groups == 1);
    conv_call c = {.p = p, .a = a, .acc = a->acc, .join = !whole};
    if (p->chunk > 0 && !p->depthwise)
        sn_parallel_range(pool, (size_t)p->d.oc, (size_t)(p->in_channels * p->taps), widen_weights,
                          &c);
    for (c.image = 0; c.image < p->d.n; c.image++) {
        if (!p->quantized)
            c.acc = a->y + c.image * out;
        if (p->chunk > 0)
            convolve(&c, pool);
        else
            sn_pool_run(pool, (size_t)p->d.oc, plain_plane, &c);
        if (p->quantized)
            sn_pool_run(pool, (size_t)p->d.oc, finish_channel, &c);
        if (a->cancel && atomic_load_explicit(a->cancel, memory_order_relaxed))
            return false;
    }
    return true;
}
