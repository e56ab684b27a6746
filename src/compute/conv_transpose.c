/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution. With packed weights the product has a row of columns for each pixel of
 * the input, which are added to all output channels at once. Otherwise small images take one
 * product per group, weights read where they lie. For larger ones output channels are done a few at
 * a time, so that columns stay in the cache and memory does not grow with the kernel; the weights
 * are turned once a run for that. Weights in rows of bf16 are turned already, and columns are then
 * products in bf16 (gemm_tiles.c), whose sums and what they are added to are f32. f64 makes its
 * columns by plain loops. */
#include "compute/conv_transpose.h"

#include <string.h>

#include "compute/copy.h"
#include "compute/parallel.h"
#include "compute/split.h"
#include "compute/tiles.h"

enum {
    CHUNK_BYTES = 1 << 20, /* columns of the channels one task works on */
    SMALL_PIXELS = 256,    /* images up to this are done in one product */
    UNIT_PIXELS = 64,      /* that become bf16 at a time: whole tiles */
    PLANES = 8,            /* of the result that are added to in turn */
};

/* ------------------------------------------------------------------ weights in rows of bf16 */
unsigned sn_conv_transpose_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                                   uint32_t cpu_flags)
{
    enum { FEW = 16 }; /* input channels, or rows of columns: a tile would be mostly empty */
    sn_conv_rows r;
    if (dtype != SONDE_DTYPE_BF16 || !sn_conv_transpose_rows_of(w, rank, groups, &r) ||
        w[0] / groups < FEW || w[1] * r.taps < FEW)
        return SN_PACK_NONE;
    return sn_pack_find(SN_WEIGHTS_FOLD_ROWS, dtype,
                        &sn_kernels_get(cpu_flags)->bf16_rows_geometry);
}

/* ------------------------------------------------------------------ plan */
/* An image is the right side of the product, packed at every run. */
static sn_packing packing_of(const sn_conv_transpose_plan *p, const int64_t dims[2])
{
    const sn_pack_format *f = sn_pack_get(sn_gemm_pack_id(SONDE_DTYPE_F32, p->cpu_flags));
    return (sn_packing){f, dims, 2, 0, p->cpu_flags};
}

/* Columns of a few pixels at a time, so that they are in the cache when they are added up. */
static sonde_status plan_packed(sn_conv_transpose_plan *p, uint32_t cpu_flags, size_t l2_bytes,
                                int threads, sonde_error *err)
{
    enum { FEW = 16 };
    const int64_t n = p->d.out_channels * p->taps, in = sn_max(p->in_pixels, 1);
    const int64_t fit = (int64_t)(l2_bytes / 4 / sizeof(float)) / sn_max(n, 1);
    p->chunk = 1;
    p->rows = sn_ceil_div(in, sn_ceil_div(in, sn_max(fit, FEW)));
    p->chunks = sn_ceil_div(in, p->rows);
    sn_gemm_desc d = {.m = p->rows,
                      .n = n,
                      .k = p->d.in_channels,
                      .b_count = 1,
                      .packed = true,
                      .alpha = 1.0f,
                      .beta = 1.0f};
    SN_TRY(sn_gemm_plan_make(&p->plan, &d, cpu_flags, l2_bytes, threads, err));
    d.m = in - (p->chunks - 1) * p->rows;
    SN_TRY(sn_gemm_plan_make(&p->last, &d, cpu_flags, l2_bytes, threads, err));
    p->cpu_flags = cpu_flags;
    p->panel_bytes = p->in_pixels > 1 ? sn_count(p->d.in_channels, in, sizeof(float), 1) : 0;
    p->product_bytes = 0; /* nothing is packed at run, and weights are f32 */
    p->workers = 1;
    p->name = p->plan.name;
    return SONDE_OK;
}

static sonde_status plan_f32(sn_conv_transpose_plan *p, uint32_t cpu_flags, size_t l2_bytes,
                             int threads, sonde_error *err)
{
    const int64_t per_channel = sn_max(p->taps * p->in_pixels, 1), out = p->d.out_channels;
    const int64_t fit = CHUNK_BYTES / (int64_t)sizeof(float) / per_channel;
    p->small = p->in_pixels <= SMALL_PIXELS;
    p->chunk = sn_max(p->small ? out : sn_min(fit, out), 1);
    p->chunks = sn_ceil_div(out, p->chunk);
    sn_gemm_desc d = {.m = p->chunk * p->taps,
                      .n = p->in_pixels,
                      .k = p->d.in_channels,
                      .b_count = 1,
                      .trans_a = p->small && !p->d.tiles,
                      .packed = true,
                      .tiles = p->d.tiles,
                      .a_rows = p->d.tiles,
                      .alpha = 1.0f,
                      .beta = 1.0f};
    SN_TRY(sn_gemm_plan_make(&p->plan, &d, cpu_flags, l2_bytes, p->small ? threads : 1, err));
    d.m = (out - (p->chunks - 1) * p->chunk) * p->taps;
    SN_TRY(sn_gemm_plan_make(&p->last, &d, cpu_flags, l2_bytes, 1, err));
    const int64_t dims[2] = {p->d.in_channels, p->in_pixels};
    size_t bytes = 0;
    p->cpu_flags = cpu_flags;
    const sn_packing packing = packing_of(p, dims);
    if (p->d.in_channels > 0 && p->in_pixels > 0 && !packing.format->bytes(&packing, &bytes))
        bytes = SIZE_MAX;
    p->panel_bytes = bytes <= PTRDIFF_MAX ? (int64_t)bytes : -1;
    if (p->d.tiles)
        p->panel_bytes =
            sn_count(sn_gemm_tiles_floats(p->in_pixels, p->d.in_channels), sizeof(float), 1, 1);
    p->product_bytes = (int64_t)sn_round_up(p->plan.workspace.bytes > p->last.workspace.bytes
                                                ? p->plan.workspace.bytes
                                                : p->last.workspace.bytes,
                                            SN_ALIGN);
    p->weight_floats =
        p->small || p->d.tiles ? 0 : sn_count(p->d.groups, p->d.in_channels, out, p->taps);
    p->workers = p->small || threads < 1 ? 1 : threads;
    p->name = p->plan.name;
    return SONDE_OK;
}

sonde_status sn_conv_transpose_plan_make(sn_conv_transpose_plan *p, const sn_conv_transpose_desc *d,
                                         uint32_t cpu_flags, size_t l2_bytes, int threads,
                                         sonde_error *err)
{
    const sn_fold *f = &d->fold;
    *p = (sn_conv_transpose_plan){.d = *d,
                                  .in_pixels = 1,
                                  .out_pixels = 1,
                                  .taps = 1,
                                  .chunk = 1,
                                  .chunks = d->out_channels,
                                  .workers = threads < 1 ? 1 : threads,
                                  .name = "f64_conv_transpose"};
    for (int i = 0; i < f->rank; i++) {
        p->in_pixels = sn_count(p->in_pixels, f->grid[i], 1, 1);
        p->out_pixels = sn_count(p->out_pixels, f->image[i], 1, 1);
        p->taps = sn_count(p->taps, f->kernel[i], 1, 1);
    }
    if (p->out_pixels < 0 || sn_count(p->in_pixels, p->taps, 1, 1) < 0 ||
        sn_count(d->out_channels, p->taps, 1, 1) < 0) {
        p->columns_bytes = -1;
        return SONDE_OK;
    }
    if (d->packed)
        SN_TRY(plan_packed(p, cpu_flags, l2_bytes, threads, err));
    else if (f->dtype == SONDE_DTYPE_F32)
        SN_TRY(plan_f32(p, cpu_flags, l2_bytes, threads, err));
    const int64_t elem = f->dtype == SONDE_DTYPE_F32 ? sizeof(float) : sizeof(double);
    const int64_t bytes = d->packed ? sn_count(p->rows, p->taps, d->out_channels, elem)
                                    : sn_count(p->in_pixels, p->taps, p->chunk, elem);
    p->columns_bytes =
        bytes < 0 || bytes > PTRDIFF_MAX / 2 ? -1 : (int64_t)sn_round_up((size_t)bytes, SN_ALIGN);
    p->flops = 2 * (uint64_t)(d->groups * d->in_channels) * (uint64_t)d->n *
               (uint64_t)d->out_channels * (uint64_t)p->taps * (uint64_t)p->in_pixels;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
typedef struct transpose_call {
    const sn_conv_transpose_plan *p;
    const void *x, *w, *bias; /* of this image and group; f32: w is turned */
    const float *z;           /* f32 */
    float *panels;            /* f32: x, packed */
    void *y;
    uint8_t *columns, *products;
} transpose_call;

static int64_t row_bytes(const sn_conv_transpose_plan *p) /* of weights that are turned */
{
    return p->d.tiles ? sn_tiles_row_bytes(p->d.in_channels)
                      : p->d.in_channels * (int64_t)sizeof(float);
}

/* What a plane of the result is before columns are added to it. */
static void begin_plane(const sn_conv_transpose_plan *p, const float *bias, const float *z,
                        int64_t channel, float *y)
{
    const float value = bias ? bias[channel] : 0.0f;
    float *plane = y + channel * p->out_pixels;
    for (int64_t i = 0; !z && i < p->out_pixels; i++)
        plane[i] = value;
    for (int64_t i = 0; z && i < p->out_pixels; i++)
        plane[i] = value + z[channel * p->out_pixels + i];
}

/* Planes that are complete. */
static void end_planes(const sn_conv_transpose_plan *p, float *y, int64_t planes)
{
    if (p->d.act.kind != SN_ACT_NONE)
        sn_act_apply(&p->d.act, sn_kernels_get(p->cpu_flags), y, (size_t)(planes * p->out_pixels));
}

static void fold_channel(const transpose_call *c, const float *columns, int64_t channel)
{
    const sn_conv_transpose_plan *p = c->p;
    float *plane = (float *)c->y + channel * p->out_pixels;
    begin_plane(p, c->bias, c->z, channel, c->y);
    sn_fold_add(&p->d.fold, columns, plane);
    end_planes(p, plane, 1);
}

static void chunk_f32(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const sn_conv_transpose_plan *p = c->p;
    const int64_t first = (int64_t)task * p->chunk;
    const int64_t n = sn_min(p->chunk, p->d.out_channels - first);
    float *columns = (float *)(void *)(c->columns + worker * p->columns_bytes);
    sn_gemm_run(n == p->chunk ? &p->plan : &p->last,
                (const uint8_t *)c->w + first * p->taps * row_bytes(p), c->panels, NULL, NULL,
                columns, c->products + worker * p->product_bytes, NULL);
    for (int64_t i = 0; i < n; i++)
        fold_channel(c, columns + i * p->taps * p->in_pixels, first + i);
}

static void fold_task(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const float *columns = (const float *)(const void *)c->columns;
    (void)worker;
    fold_channel(c, columns + (int64_t)task * c->p->taps * c->p->in_pixels, (int64_t)task);
}

static void chunk_f64(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const sn_conv_transpose_plan *p = c->p;
    const int64_t oc = (int64_t)task, cells = p->taps * p->in_pixels;
    double *columns = (double *)(void *)(c->columns + worker * p->columns_bytes), *y = c->y;
    const double *bias = c->bias, *w = c->w, *x = c->x;
    memset(columns, 0, (size_t)cells * sizeof *columns);
    for (int64_t ic = 0; ic < p->d.in_channels; ic++)
        for (int64_t t = 0; t < p->taps; t++) {
            const double tap = w[(ic * p->d.out_channels + oc) * p->taps + t];
            for (int64_t i = 0; i < p->in_pixels; i++)
                columns[t * p->in_pixels + i] += tap * x[ic * p->in_pixels + i];
        }
    double *plane = y + oc * p->out_pixels;
    for (int64_t i = 0; i < p->out_pixels; i++)
        plane[i] = bias ? bias[oc] : 0.0;
    sn_fold_add(&p->d.fold, columns, plane);
}

static void pack_unit(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const int64_t dims[2] = {c->p->d.in_channels, c->p->in_pixels};
    (void)worker;
    if (c->p->d.tiles) {
        const int64_t first = (int64_t)task * UNIT_PIXELS;
        sn_tiles_pack_plain(
            sn_kernels_get(c->p->cpu_flags), c->panels + sn_gemm_tiles_floats(first, dims[0]),
            (const float *)c->x + first, dims[1], sn_min(UNIT_PIXELS, dims[1] - first), dims[0]);
        return;
    }
    const sn_packing packing = packing_of(c->p, dims);
    packing.format->pack(&packing, c->panels, c->x, task);
}

/* Weights [in][out][taps] of each group as [out][taps][in]. */
static const void *turn_weights(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a,
                                sn_pool *pool)
{
    const int64_t rows = p->d.out_channels * p->taps, in = p->d.in_channels;
    const int64_t dims[3] = {p->d.groups, rows, in};
    const ptrdiff_t dst[3] = {rows * in, in, 1}, src[3] = {in * rows, 1, rows};
    sn_copy turn;
    if (p->small || p->d.tiles)
        return a->w;
    sn_copy_plan(&turn, sizeof(float), 3, dims, dst, src);
    sn_copy_run(&turn, a->weights, a->w, pool);
    return a->weights;
}

/* One group of one image. */
static void run_group_f32(const sn_conv_transpose_plan *p, transpose_call *c, sn_pool *pool)
{
    const int64_t dims[2] = {p->d.in_channels, p->in_pixels};
    const sn_packing packing = packing_of(p, dims);
    if (p->d.in_channels * p->in_pixels > 0)
        sn_pool_run(pool,
                    p->d.tiles ? (size_t)sn_ceil_div(p->in_pixels, UNIT_PIXELS)
                               : packing.format->units(&packing),
                    pack_unit, c);
    if (!p->small) {
        sn_pool_run(pool, (size_t)p->chunks, chunk_f32, c);
        return;
    }
    sn_gemm_run(&p->plan, c->w, c->panels, NULL, NULL, (float *)(void *)c->columns, c->products,
                pool);
    sn_pool_run(pool, (size_t)p->d.out_channels, fold_task, c);
}

/* ------------------------------------------------------------------ packed weights */
typedef struct pixels_call {
    const sn_conv_transpose_plan *p;
    const float *columns, *bias, *z;
    float *y;
    int64_t first, count; /* pixels of the input */
} pixels_call;

static void add_channels(void *arg, size_t lo, size_t hi)
{
    const pixels_call *c = arg;
    const sn_conv_transpose_plan *p = c->p;
    const int64_t from = (int64_t)lo, channels = (int64_t)(hi - lo);
    float *y = c->y + from * p->out_pixels;
    for (int64_t i = 0; c->first == 0 && i < channels; i++)
        begin_plane(p, c->bias, c->z, from + i, c->y);
    /* Planes are often a multiple of 4 KiB apart, and then share the same few lines of the
     * first-level cache. */
    for (int64_t i = 0; i < channels; i += PLANES)
        sn_fold_add_positions(&p->d.fold, c->columns + (from + i) * p->taps,
                              p->d.out_channels * p->taps, c->first, c->count,
                              sn_min(PLANES, channels - i), y + i * p->out_pixels);
    if (c->first + c->count == p->in_pixels)
        end_planes(p, y, channels);
}

/* One group of one image: x [channel][pixel] becomes [pixel][channel], the left side. */
static void run_group_packed(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a,
                             const float *x, const float *w, pixels_call *c, sn_pool *pool)
{
    const int64_t in = p->d.in_channels, dims[2] = {p->in_pixels, in};
    const ptrdiff_t dst[2] = {in, 1}, src[2] = {1, p->in_pixels};
    if (p->in_pixels > 1) {
        sn_copy turn;
        sn_copy_plan(&turn, sizeof(float), 2, dims, dst, src);
        sn_copy_run(&turn, a->panels, x, pool);
        x = a->panels;
    }
    c->columns = a->columns;
    for (int64_t i = 0; i < p->chunks; i++) {
        c->first = i * p->rows;
        c->count = sn_min(p->rows, p->in_pixels - c->first);
        sn_gemm_run(i + 1 < p->chunks ? &p->plan : &p->last, x + c->first * in, w, NULL, NULL,
                    a->columns, NULL, pool);
        sn_parallel_range(pool, (size_t)p->d.out_channels, (size_t)(p->taps * c->count),
                          add_channels, c);
    }
}

static bool run_packed(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a,
                       sn_pool *pool)
{
    const int64_t out = p->d.out_channels, in = p->d.in_channels * p->in_pixels;
    const size_t matrix = sn_gemm_packed_floats(out * p->taps, p->d.in_channels, p->plan.block);
    for (int64_t i = 0; i < p->d.n * p->d.groups; i++) {
        const int64_t g = i % p->d.groups, at = i * out * p->out_pixels;
        pixels_call c = {.p = p,
                         .bias = a->bias ? (const float *)a->bias + g * out : NULL,
                         .z = a->z ? (const float *)a->z + at : NULL,
                         .y = (float *)a->y + at};
        run_group_packed(p, a, (const float *)a->x + i * in,
                         (const float *)a->w + (size_t)g * matrix, &c, pool);
        if (a->cancel && atomic_load_explicit(a->cancel, memory_order_relaxed))
            return false;
    }
    return true;
}

static bool run_f32(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a, sn_pool *pool)
{
    const int64_t rows = p->d.out_channels * p->taps, in = p->d.in_channels * p->in_pixels;
    const uint8_t *w = turn_weights(p, a, pool);
    const float *bias = a->bias;
    transpose_call c = {
        .p = p, .panels = a->panels, .columns = a->columns, .products = a->products};
    for (int64_t i = 0; i < p->d.n * p->d.groups; i++) {
        const int64_t g = i % p->d.groups, at = i * p->d.out_channels * p->out_pixels;
        c.x = (const float *)a->x + i * in;
        c.w = w + g * rows * row_bytes(p);
        c.bias = bias ? bias + g * p->d.out_channels : NULL;
        c.z = a->z ? (const float *)a->z + at : NULL;
        c.y = (float *)a->y + at;
        run_group_f32(p, &c, pool);
        if (a->cancel && atomic_load_explicit(a->cancel, memory_order_relaxed))
            return false;
    }
    return true;
}

static void run_f64(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a, sn_pool *pool)
{
    const double *bias = a->bias;
    transpose_call c = {.p = p, .columns = a->columns};
    for (int64_t i = 0; i < p->d.n * p->d.groups; i++) {
        const int64_t g = i % p->d.groups;
        c.x = (const double *)a->x + i * p->d.in_channels * p->in_pixels;
        c.w = (const double *)a->w + g * p->d.in_channels * p->d.out_channels * p->taps;
        c.bias = bias ? bias + g * p->d.out_channels : NULL;
        c.y = (double *)a->y + i * p->d.out_channels * p->out_pixels;
        sn_pool_run(pool, (size_t)p->chunks, chunk_f64, &c);
    }
}

bool sn_conv_transpose_run(const sn_conv_transpose_plan *p, const sn_conv_transpose_args *a,
                           sn_pool *pool)
{
    if (p->d.out_channels == 0 || p->out_pixels == 0) /* nothing to give; the plan is for some */
        return true;
    if (p->d.packed)
        return run_packed(p, a, pool);
    if (p->d.fold.dtype == SONDE_DTYPE_F32)
        return run_f32(p, a, pool);
    run_f64(p, a, pool);
    return true;
}
