/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger and QLinearConv: bytes become f32 with their zero points taken off, the f32
 * convolution runs over as many channels as stay exact, and partial sums meet in int32 (see
 * integer.h). Kernels with more taps than that take plain integer loops. */
#include "ops/shared/integer.h"

#include <math.h>
#include <string.h>

#include "compute/conv.h"
#include "compute/eltwise.h"
#include "compute/split.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/window.h"

/* Where each operator has its inputs; 0 behind x: absent. */
typedef struct conv_ports {
    uint32_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} conv_ports;

typedef struct conv_params {
    sn_window window;
    int64_t groups;
    conv_ports at;
    bool quantized;
} conv_params;

static sonde_status prepare(sn_prep *p)
{
    conv_params *r = p->params;
    SN_TRY(sn_window_prepare(p, &r->window));
    SN_TRY(sn_prep_int(p, "group", 1, &r->groups));
    if (r->groups < 1 || r->groups > INT32_MAX)
        return sn_prep_fail(p, "attribute 'group' is %lld", (long long)r->groups);
    return SONDE_OK;
}

static sonde_status prepare_integer(sn_prep *p)
{
    conv_params *r = p->params;
    r->at = (conv_ports){.w = 1, .x_zero = 2, .w_zero = 3};
    return prepare(p);
}

static sonde_status prepare_quantized(sn_prep *p)
{
    conv_params *r = p->params;
    r->quantized = true;
    r->at = (conv_ports){.x_scale = 1,
                         .x_zero = 2,
                         .w = 3,
                         .w_scale = 4,
                         .w_zero = 5,
                         .y_scale = 6,
                         .y_zero = 7,
                         .bias = 8};
    return prepare(p);
}

/* ------------------------------------------------------------------ infer */
/* A parameter of one element, or of `channels` when that is not 1. */
static sonde_status check_param(sn_infer *c, uint32_t i, sn_dim channels)
{
    int64_t n;
    if (i == 0 || !sn_infer_has(c, i) || !sn_type_count(&c->in[i]->type, &n) || n == 1 ||
        !sn_dim_known(channels) || n == channels)
        return SONDE_OK;
    return sn_infer_fail(c, "input %u has %lld elements, expected 1%s", i, (long long)n,
                         channels == 1 ? "" : " or one per output channel");
}

static sonde_status infer(sn_infer *c)
{
    static const sn_dtype bytes[] = {SONDE_DTYPE_U8, SONDE_DTYPE_I8}, f32[] = {SONDE_DTYPE_F32},
                          i32[] = {SONDE_DTYPE_I32};
    const conv_params *r = c->params;
    const conv_ports *at = &r->at;
    const sn_type *x = &c->in[at->x]->type, *w = &c->in[at->w]->type;
    sn_dtype dtype = SONDE_DTYPE_I32;
    SN_TRY(sn_wide_dtype(c, at->x, bytes, 2));
    SN_TRY(sn_wide_dtype(c, at->w, bytes, 2));
    if (sn_infer_has(c, at->x_zero))
        SN_TRY(sn_wide_same_dtype(c, at->x_zero, at->x));
    if (sn_infer_has(c, at->w_zero))
        SN_TRY(sn_wide_same_dtype(c, at->w_zero, at->w));
    if (r->quantized) {
        dtype = c->in[at->y_zero]->type.dtype;
        SN_TRY(sn_wide_dtype(c, at->y_zero, bytes, 2));
        SN_TRY(sn_wide_dtype(c, at->x_scale, f32, 1));
        SN_TRY(sn_wide_dtype(c, at->w_scale, f32, 1));
        SN_TRY(sn_wide_dtype(c, at->y_scale, f32, 1));
        SN_TRY(sn_wide_dtype(c, at->bias, i32, 1));
    }
    if (x->rank < 0 || w->rank < 0)
        return sn_infer_tensor(c, 0, dtype, NULL, -1);
    const int rank = x->rank;
    if (rank < 3 || rank > 5 || w->rank != rank)
        return sn_infer_fail(
            c, "input and weight have ranks %d and %d: equal ones of 3 to 5 are needed", rank,
            (int)w->rank);
    SN_TRY(sn_window_check(c, &r->window, rank - 2));
    sn_dim want[5], dims[5];
    if ((sn_dim_known(x->dims[1]) && x->dims[1] % r->groups != 0) ||
        (sn_dim_known(w->dims[0]) && w->dims[0] % r->groups != 0))
        return sn_infer_fail(c, "the channels do not divide into %lld groups",
                             (long long)r->groups);
    want[0] = w->dims[0];
    want[1] = sn_dim_known(x->dims[1]) ? x->dims[1] / r->groups : SN_DIM_UNKNOWN;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 0; i < rank - 2; i++) {
        want[i + 2] = r->window.kernel ? r->window.kernel[i] : SN_DIM_UNKNOWN;
        SN_TRY(sn_window_dim(c, &r->window, i, x->dims[i + 2], w->dims[i + 2], &dims[i + 2]));
    }
    SN_TRY(sn_wide_dims(c, at->w, want, rank));
    SN_TRY(check_param(c, at->x_scale, 1));
    SN_TRY(check_param(c, at->x_zero, 1));
    SN_TRY(check_param(c, at->w_scale, w->dims[0]));
    SN_TRY(check_param(c, at->w_zero, w->dims[0]));
    SN_TRY(check_param(c, at->y_scale, 1));
    SN_TRY(check_param(c, at->y_zero, 1));
    if (at->bias)
        SN_TRY(sn_wide_dims(c, at->bias, dims + 1, 1));
    return sn_wide_out(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind */
typedef struct conv_bound {
    sn_conv_desc d;                                                 /* the whole convolution */
    int64_t in_channels, out_channels, in_pixels, out_pixels, taps; /* channels of one group */
    int64_t chunk, chunks;   /* channels whose sums are exact; 0: plain loops */
    sn_conv_plan plan, last; /* one image, one group, a chunk of channels */
    bool depthwise;          /* groups of one input channel, two-dimensional */
    size_t x_at, w_at, y_at, acc_at, space_at;
} conv_bound;

static sonde_status plan_chunks(sn_bind *b, conv_bound *k, sn_room *room)
{
    sn_conv_desc d = k->d;
    d.n = d.groups = 1;
    d.oc = k->out_channels;
    d.c = k->chunk;
    SN_TRY(sn_conv_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    d.c = k->in_channels - (k->chunks - 1) * k->chunk;
    SN_TRY(sn_conv_plan_make(&k->last, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    int64_t x, y, all;
    if (!sn_i64_mul(k->in_pixels, k->d.c, &x) || !sn_i64_mul(k->out_pixels, k->out_channels, &y) ||
        !sn_i64_mul(y, k->d.groups, &all))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    const size_t a = sn_conv_workspace(&k->plan), z = sn_conv_workspace(&k->last);
    k->x_at = sn_room_take(room, x, sizeof(float));
    k->y_at = sn_room_take(room, k->depthwise ? all : y, sizeof(float));
    k->space_at = sn_room_take(room, (int64_t)(a > z ? a : z), 1);
    b->kernel = k->depthwise ? "u8_depthwise_exact_f32" : "u8_conv_exact_f32";
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const conv_params *r = b->params;
    const sn_type *x = &b->in[r->at.x]->type, *w = &b->in[r->at.w]->type;
    conv_bound *k = SN_NEW(b->arena, conv_bound);
    sn_axis axes[3];
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_byte(x->dtype) || !sn_is_byte(w->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "only 8-bit integers are supported");
    if (!sn_window_axes(&r->window, x->dims + 2, x->rank - 2, w->dims + 2, axes))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    sn_conv_desc *d = &k->d;
    *d = (sn_conv_desc){.n = x->dims[0], .c = x->dims[1], .oc = w->dims[0], .groups = r->groups};
    for (int i = 0; i < 3; i++) {
        d->in[i] = axes[i].in;
        d->out[i] = axes[i].out;
        d->kernel[i] = axes[i].kernel;
        d->stride[i] = axes[i].stride;
        d->dilation[i] = axes[i].dilation;
        d->pad[i] = axes[i].pad;
    }
    k->in_channels = d->c / d->groups;
    k->out_channels = d->oc / d->groups;
    if (!sn_dims_count(d->in, 3, &k->in_pixels) || !sn_dims_count(d->out, 3, &k->out_pixels) ||
        !sn_dims_count(d->kernel, 3, &k->taps))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    sn_room room = {0};
    k->chunk = sn_min(SN_EXACT_TERMS / k->taps, k->in_channels);
    k->chunks = k->chunk > 0 ? sn_ceil_div(k->in_channels, k->chunk) : 0;
    k->w_at = sn_room_take(&room, sn_wide_count(b->in[r->at.w]), sizeof(float));
    k->depthwise = d->groups > 1 && k->in_channels == 1 && x->rank <= 4;
    b->kernel = "u8_conv_ref";
    if (k->chunk > 0)
        SN_TRY(plan_chunks(b, k, &room));
    int64_t acc;
    if (!sn_i64_mul(k->out_pixels, d->oc, &acc))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->acc_at = sn_room_take(&room, r->quantized ? acc : 0, sizeof(int32_t));
    b->bound = k;
    b->flops = 2 * (uint64_t)d->n * (uint64_t)acc * (uint64_t)k->in_channels * (uint64_t)k->taps;
    return sn_room_done(b, &room);
}

/* ------------------------------------------------------------------ run */
typedef struct conv_call {
    const conv_bound *k;
    const sn_tensor *x, *w, *w_zero;
    float *wide;
    int32_t x_zero;
    int64_t image;
    int32_t *acc;
    float *sums; /* of every output channel */
    bool join;   /* sums are wanted in acc */
    uint32_t cpu_flags;
} conv_call;

/* What turns sums into bytes. */
typedef struct conv_finish {
    const conv_call *c;
    const float *sums; /* of all channels, exact; NULL: they are in acc */
    const int32_t *bias;
    const sn_tensor *w_scale;
    sn_tensor *y;
    float x_scale, y_scale;
    int32_t y_zero;
    uint32_t cpu_flags;
} conv_finish;

/* Weights of one output channel, its chunks apart: [group][chunk][channel of the group][taps]. */
static void widen_weights(void *arg, size_t lo, size_t hi)
{
    const conv_call *c = arg;
    const conv_bound *k = c->k;
    const int64_t row = k->in_channels * k->taps;
    for (int64_t oc = (int64_t)lo; oc < (int64_t)hi; oc++) {
        const int64_t group = oc / k->out_channels, own = oc % k->out_channels;
        const int32_t zero = !c->w_zero ? 0
                                        : sn_byte_at(c->w_zero->dtype, c->w_zero->data,
                                                     sn_tensor_count(c->w_zero) == 1 ? 0 : oc);
        for (int64_t first = 0; first < k->in_channels; first += k->chunk) {
            const int64_t n = sn_min(k->chunk, k->in_channels - first);
            float *dst = c->wide + group * k->out_channels * row +
                         first * k->out_channels * k->taps + own * n * k->taps;
            sn_bytes_to_f32(c->cpu_flags, c->w->dtype, dst,
                            (const uint8_t *)c->w->data + oc * row + first * k->taps, n * k->taps,
                            zero);
        }
    }
}

static void widen_input(void *arg, size_t lo, size_t hi)
{
    const conv_call *c = arg;
    const int64_t image = c->k->d.c * c->k->in_pixels;
    sn_bytes_to_f32(c->cpu_flags, c->x->dtype, c->wide + lo,
                    (const uint8_t *)c->x->data + c->image * image + (int64_t)lo,
                    (int64_t)(hi - lo), c->x_zero);
}

/* Kernels too large to be exact in f32: one output channel at a time. */
static void plain_plane(void *arg, size_t task, int worker)
{
    const conv_call *c = arg;
    const conv_bound *k = c->k;
    const sn_conv_desc *d = &k->d;
    const int64_t oc = (int64_t)task, group = oc / k->out_channels;
    const uint8_t *x =
        (const uint8_t *)c->x->data + (c->image * d->c + group * k->in_channels) * k->in_pixels;
    const uint8_t *w = (const uint8_t *)c->w->data + oc * k->in_channels * k->taps;
    const int32_t zero = !c->w_zero ? 0
                                    : sn_byte_at(c->w_zero->dtype, c->w_zero->data,
                                                 sn_tensor_count(c->w_zero) == 1 ? 0 : oc);
    (void)worker;
    for (int64_t i = 0; i < k->out_pixels; i++) {
        const int64_t o[3] = {i / d->out[2] / d->out[1], i / d->out[2] % d->out[1], i % d->out[2]};
        int64_t first[3], end[3], at[3];
        uint32_t sum = 0;
        for (int a = 0; a < 3; a++)
            sn_conv_taps(o[a], d->stride[a], d->pad[a], d->dilation[a], d->kernel[a], d->in[a],
                         &first[a], &end[a]);
        for (int64_t ch = 0; ch < k->in_channels; ch++)
            for (at[0] = first[0]; at[0] < end[0]; at[0]++)
                for (at[1] = first[1]; at[1] < end[1]; at[1]++)
                    for (at[2] = first[2]; at[2] < end[2]; at[2]++) {
                        int64_t p = 0, t = 0;
                        for (int a = 0; a < 3; a++) {
                            p = p * d->in[a] + o[a] * d->stride[a] - d->pad[a] +
                                at[a] * d->dilation[a];
                            t = t * d->kernel[a] + at[a];
                        }
                        sum += (uint32_t)((sn_byte_at(c->x->dtype, x, ch * k->in_pixels + p) -
                                           c->x_zero) *
                                          (sn_byte_at(c->w->dtype, w, ch * k->taps + t) - zero));
                    }
        c->acc[oc * k->out_pixels + i] = (int32_t)sum;
    }
}

/* Depthwise, two-dimensional: a group has one input channel, and a tap is a row times a number. The
 * column bounds of a tap are those of its first and last output inside the image. */
static void depthwise_plane(void *arg, size_t task, int worker)
{
    const conv_call *c = arg;
    const conv_bound *k = c->k;
    const sn_conv_desc *d = &k->d;
    const int64_t oc = (int64_t)task, group = oc / k->out_channels;
    const int64_t height = d->in[1], width = d->in[2], stride = d->stride[2];
    const float *x = c->wide + group * k->in_pixels;
    const uint8_t *w = (const uint8_t *)c->w->data + oc * k->taps;
    const int32_t zero = !c->w_zero ? 0
                                    : sn_byte_at(c->w_zero->dtype, c->w_zero->data,
                                                 sn_tensor_count(c->w_zero) == 1 ? 0 : oc);
    float *sums = c->sums + oc * k->out_pixels;
    sn_f32_axpy_fn *axpy = sn_kernels_get(c->cpu_flags)->f32_axpy;
    (void)worker;
    memset(sums, 0, (size_t)k->out_pixels * sizeof *sums);
    for (int64_t oy = 0; oy < d->out[1]; oy++)
        for (int64_t t = 0; t < k->taps; t++) {
            const int64_t ky = t / d->kernel[2], kx = t % d->kernel[2];
            const int64_t y = oy * d->stride[1] - d->pad[1] + ky * d->dilation[1];
            const int64_t shift = kx * d->dilation[2] - d->pad[2]; /* column of output 0 */
            if (y < 0 || y >= height || shift >= width)
                continue;
            const int64_t first = shift < 0 ? sn_ceil_div(-shift, stride) : 0;
            const int64_t end = sn_min(d->out[2], (width - 1 - shift) / stride + 1);
            const float weight = (float)(sn_byte_at(c->w->dtype, w, t) - zero);
            const float *from = x + y * width + shift;
            float *to = sums + oy * d->out[2];
            if (first < end)
                axpy(to + first, from + first * stride, (size_t)(end - first), (size_t)stride,
                     weight);
        }
    if (c->join)
        sn_exact_join(c->acc + oc * k->out_pixels, sums, k->out_pixels, true);
}

/* All output channels of one image into acc. */
static void convolve(const conv_call *c, const float *weights, float *x, float *y, void *space,
                     sn_pool *pool)
{
    const conv_bound *k = c->k;
    conv_call wide = *c;
    wide.wide = x;
    wide.sums = y;
    sn_parallel_range(pool, (size_t)(k->d.c * k->in_pixels), 1, widen_input, &wide);
    if (k->depthwise) {
        sn_pool_run(pool, (size_t)k->d.oc, depthwise_plane, &wide);
        return;
    }
    for (int64_t g = 0; g < k->d.groups; g++)
        for (int64_t part = 0; part < k->chunks; part++) {
            const int64_t first = part * k->chunk;
            sn_conv_run(part + 1 < k->chunks ? &k->plan : &k->last,
                        x + (g * k->in_channels + first) * k->in_pixels,
                        weights + g * k->out_channels * k->in_channels * k->taps +
                            first * k->out_channels * k->taps,
                        NULL, NULL, y, space, pool);
            if (c->join)
                sn_exact_join(c->acc + g * k->out_channels * k->out_pixels, y,
                              k->out_channels * k->out_pixels, part == 0);
        }
}

static float float_of(const sn_tensor *t, int64_t i)
{
    return (float)sn_elem_f64(t->dtype, t->data, sn_tensor_count(t) == 1 ? 0 : i);
}

void sn_requantize_f32(uint32_t cpu_flags, sn_dtype t, void *y, const float *sums, int64_t n,
                       int32_t bias, float scale, int32_t zero)
{
    sn_kernels_get(cpu_flags)->q8_store(y, sums, (size_t)n, (float)bias, scale, (float)zero,
                                        t == SONDE_DTYPE_U8 ? 0.0f : -128.0f);
}

void sn_requantize(uint32_t cpu_flags, sn_dtype t, void *y, const int32_t *acc, int64_t n,
                   float scale, int32_t zero)
{
    float part[256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = sn_min(n - i, 256);
        for (int64_t k = 0; k < m; k++)
            part[k] = (float)acc[i + k];
        sn_requantize_f32(cpu_flags, t, (uint8_t *)y + i, part, m, 0, scale, zero);
    }
}

/* One output channel, from exact sums where they were not cut. */
static void finish_channel(void *arg, size_t task, int worker)
{
    const conv_finish *e = arg;
    const conv_bound *k = e->c->k;
    const int64_t oc = (int64_t)task;
    (void)worker;
    const float scale = e->x_scale * float_of(e->w_scale, oc) / e->y_scale;
    const int32_t bias = e->bias ? e->bias[oc] : 0;
    uint8_t *y = (uint8_t *)e->y->data + (e->c->image * k->d.oc + oc) * k->out_pixels;
    if (e->sums && bias >= -(1 << 24) && bias <= 1 << 24) {
        sn_requantize_f32(e->cpu_flags, e->y->dtype, y, e->sums + oc * k->out_pixels, k->out_pixels,
                          bias, scale, e->y_zero);
        return;
    }
    int32_t *acc = e->c->acc + oc * k->out_pixels;
    if (e->sums)
        sn_exact_join(acc, e->sums + oc * k->out_pixels, k->out_pixels, true);
    for (int64_t i = 0; bias && i < k->out_pixels; i++)
        acc[i] = (int32_t)((uint32_t)acc[i] + (uint32_t)bias);
    sn_requantize(e->cpu_flags, e->y->dtype, y, acc, k->out_pixels, scale, e->y_zero);
}

static void finish(const sn_step *s, sn_frame *f, const conv_call *c, const float *sums)
{
    const conv_params *r = s->params;
    const sn_tensor *zero = sn_in(s, f, r->at.y_zero);
    conv_finish e = {.c = c,
                     .sums = sums,
                     .bias = sn_has(s, r->at.bias) ? sn_in(s, f, r->at.bias)->data : NULL,
                     .w_scale = sn_in(s, f, r->at.w_scale),
                     .y = sn_out(s, f, 0),
                     .x_scale = float_of(sn_in(s, f, r->at.x_scale), 0),
                     .y_scale = float_of(sn_in(s, f, r->at.y_scale), 0),
                     .y_zero = sn_byte_at(zero->dtype, zero->data, 0),
                     .cpu_flags = f->ctx->cpu.flags};
    sn_pool_run(f->pool, (size_t)c->k->d.oc, finish_channel, &e);
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const conv_params *r = s->params;
    const conv_bound *k = s->bound;
    const sn_tensor *zero = sn_has(s, r->at.x_zero) ? sn_in(s, f, r->at.x_zero) : NULL;
    conv_call c = {.k = k,
                   .x = sn_in(s, f, r->at.x),
                   .w = sn_in(s, f, r->at.w),
                   .w_zero = sn_has(s, r->at.w_zero) ? sn_in(s, f, r->at.w_zero) : NULL,
                   .wide = sn_space_f32(f, k->w_at),
                   .x_zero = zero ? sn_byte_at(zero->dtype, zero->data, 0) : 0,
                   .acc = (int32_t *)(void *)(f->workspace + k->acc_at),
                   .cpu_flags = f->ctx->cpu.flags};
    const bool whole = r->quantized && k->chunks == 1 && (k->depthwise || k->d.groups == 1);
    c.join = !whole;
    const int64_t out = k->d.oc * k->out_pixels;
    if (sn_tensor_count(sn_out(s, f, 0)) == 0)
        return SONDE_OK;
    if (k->chunk > 0 && !k->depthwise)
        sn_parallel_range(f->pool, (size_t)k->d.oc, (size_t)(k->in_channels * k->taps),
                          widen_weights, &c);
    for (c.image = 0; c.image < k->d.n; c.image++) {
        if (!r->quantized)
            c.acc = (int32_t *)sn_out(s, f, 0)->data + c.image * out;
        if (k->chunk > 0)
            convolve(&c, sn_space_f32(f, k->w_at), sn_space_f32(f, k->x_at),
                     sn_space_f32(f, k->y_at), f->workspace + k->space_at, f->pool);
        else
            sn_pool_run(f->pool, (size_t)k->d.oc, plain_plane, &c);
        if (r->quantized)
            finish(s, f, &c, whole ? sn_space_f32(f, k->y_at) : NULL);
        if (sn_move_cancelled(f))
            return sn_run_cancelled(s, f);
    }
    return SONDE_OK;
}

#define INTEGER_CONV(NAME, MIN_IN, MAX_IN, PREPARE)                                                \
    {                                                                                              \
        .name = NAME, .domain = "", .since = 10, .min_in = MIN_IN, .max_in = MAX_IN, .min_out = 1, \
        .max_out = 1, .params_size = sizeof(conv_params), .prepare = PREPARE, .infer = infer,      \
        .bind = bind, .run = run, .types = "i8 u8"                                                 \
    }
const sn_op sn_op_conv_integer[] = {INTEGER_CONV("ConvInteger", 2, 4, prepare_integer),
                                    {.name = NULL}};
const sn_op sn_op_qlinear_conv[] = {INTEGER_CONV("QLinearConv", 8, 9, prepare_quantized),
                                    {.name = NULL}};
