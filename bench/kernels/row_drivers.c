/* SPDX-License-Identifier: Apache-2.0 */
/* How a row of kernels.inc is called: one driver for each signature, prepare_<signature>, which
 * makes the arrays a call needs and says what it amounts to. Block sizes and tiles come from the
 * row's geometry, element types and the arrangement of weights from its slot, so a new row needs
 * nothing here. A slot whose signature has no driver does not compile: the table at the end of this
 * file names the missing function. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "compute/cast.h"
#include "rows.h"

/* What kernels return goes here, so that no call can be left out. */
static volatile float sink;

static void *keep(bench_row *r, void *memory)
{
    if (r->arrays == BENCH_ROW_ARRAYS) {
        fprintf(stderr, "%s: more than %d arrays\n", r->row->name, BENCH_ROW_ARRAYS);
        exit(1);
    }
    return r->array[r->arrays++] = memory;
}

static float *floats(bench_row *r, size_t n)
{
    return keep(r, bench_floats(n * sizeof(float)));
}

static float *constants(bench_row *r, size_t n, float value)
{
    float *p = keep(r, bench_alloc(n * sizeof *p));
    for (size_t i = 0; i < n; i++)
        p[i] = value;
    return p;
}

/* n elements of one of the slot's types: small floats of both signs, or integers around zero. */
static void *elements(bench_row *r, sonde_dtype type, size_t n)
{
    float *wide = floats(r, n);
    if (type == SONDE_DTYPE_F32)
        return wide;
    if (!sn_cast_supported(type)) {
        fprintf(stderr, "%s: no elements of type %s can be made\n", r->row->name,
                sn_dtype_name(type));
        exit(1);
    }
    for (size_t i = 0; i < n && !sn_dtype_is_float(type); i++)
        wide[i] *= 100;
    void *narrow = keep(r, bench_alloc(n * sn_dtype_bytes(type)));
    sn_cast_run(0, type, narrow, SONDE_DTYPE_F32, wide, n, (sn_rounding){.saturate = true}, NULL);
    return narrow;
}

static void *read_by(bench_row *r, size_t n)
{
    return elements(r, r->row->slot->read, n);
}

static void *written_by(bench_row *r, size_t n)
{
    return elements(r, r->row->slot->written, n);
}

/* Bytes of n elements that are read and of `m` that are written. */
static double moved(const bench_row *r, size_t n, size_t m)
{
    const sn_kernel_slot *s = r->row->slot;
    return (double)(n * sn_dtype_bytes(s->read) + m * sn_dtype_bytes(s->written));
}

/* ------------------------------------------------------------------ tiles */
static void call_sn_f32_tile(bench_row *r)
{
    ((sn_f32_tile_fn *)r->row->fn)(&r->args.tile);
}

/* The number of blocks with the largest tile. */
static unsigned best_blocks(const sn_geometry *g)
{
    unsigned best = 1;
    for (unsigned q = 2; q <= SN_TILE_MAX_BLOCKS; q++)
        if (q * g->pixels[q - 1] > best * g->pixels[best - 1])
            best = q;
    return best;
}

static void prepare_sn_f32_tile(bench_row *r)
{
    const sn_geometry *g = &r->row->geometry;
    const unsigned b = g->block, q = best_blocks(g);
    const size_t pixels = (r->quick ? 1 : 4) * (size_t)g->pixels[q - 1], width = pixels + 2;
    sn_f32_tile t = {.pixels = pixels,
                     .blocks = q,
                     .block = b,
                     .ic_blocks = 1,
                     .kh = 1,
                     .kw = 1,
                     .y_pixel = b,
                     .y_q = (ptrdiff_t)(pixels * b),
                     .w_ic = b,
                     .lo = -INFINITY,
                     .hi = INFINITY};
    size_t x_elems = 0;
    switch (r->row->slot->arrangement) {
    case SN_WEIGHTS_CONV: /* 3×3, blocks of channels */
        t.ic_blocks = r->quick ? 1 : 4;
        t.ic = b;
        t.kh = t.kw = 3;
        t.x_ic = 1;
        t.x_pixel = t.x_kw = b;
        t.x_kh = (ptrdiff_t)(width * b);
        t.x_block = 3 * t.x_kh;
        x_elems = t.ic_blocks * 3 * width * b;
        break;
    case SN_WEIGHTS_CONV_PLAIN: /* 3×3, a plain image of 3 channels */
        t.ic = 3;
        t.kh = t.kw = 3;
        t.x_pixel = t.x_kw = 1;
        t.x_kh = (ptrdiff_t)width;
        t.x_ic = 3 * t.x_kh;
        x_elems = t.ic * 3 * width;
        break;
    case SN_WEIGHTS_PANELS: /* rows of a matrix */
        t.ic = r->quick ? 5 : 256;
        t.x_ic = 1;
        t.x_pixel = (ptrdiff_t)t.ic;
        x_elems = pixels * t.ic;
        break;
    case SN_WEIGHTS_CONV_LAST:
    case SN_WEIGHTS_CONV_TILES:
    case SN_WEIGHTS_PANEL_TILES:
    case SN_WEIGHTS_DEPTHWISE_QUADS:
    case SN_WEIGHTS_DEPTHWISE:
    case SN_WEIGHTS_NONE:
        fprintf(stderr, "%s: no tiles are known for how its weights are arranged\n", r->row->name);
        exit(1);
    }
    t.ic_last = t.ic;
    t.last_kw = t.kw;
    t.w_kw = (ptrdiff_t)(t.ic * b);
    t.w_kh = (ptrdiff_t)t.kw * t.w_kw;
    t.w_block = (ptrdiff_t)t.kh * t.w_kh;
    t.w_q = (ptrdiff_t)t.ic_blocks * t.w_block;
    t.x = read_by(r, x_elems);
    t.w = elements(r, r->row->slot->weights, q * (size_t)t.w_q);
    t.y = written_by(r, q * pixels * b);
    r->args.tile = t;
    r->flops = 2.0 * (double)(q * (size_t)t.w_q * pixels);
    r->call = call_sn_f32_tile;
}

static void call_sn_f32_depthwise(bench_row *r)
{
    ((sn_f32_depthwise_fn *)r->row->fn)(&r->args.depthwise);
}

static void prepare_sn_f32_depthwise(bench_row *r)
{
    const ptrdiff_t size = r->quick ? 5 : 28;
    const unsigned b = r->row->geometry.block;
    const size_t plane = (size_t)(size * size) * b;
    r->args.depthwise = (sn_f32_depthwise){.x = read_by(r, plane),
                                           .w = elements(r, r->row->slot->weights, 9 * (size_t)b),
                                           .zeros = constants(r, (size_t)size * b, 0),
                                           .y = written_by(r, plane),
                                           .to = size,
                                           .cols = size,
                                           .in = {size, size},
                                           .kernel = {3, 3},
                                           .stride = {1, 1},
                                           .dilation = {1, 1},
                                           .pad = {1, 1},
                                           .block = b,
                                           .lo = -INFINITY,
                                           .hi = INFINITY};
    r->flops = 2.0 * 9 * (double)plane;
    r->call = call_sn_f32_depthwise;
}

/* ------------------------------------------------------------------ Winograd */
/* m of F(m×m, 3×3), which only the slot's name has: "f32_wino4_in". */
static int winograd_size(const bench_row *r)
{
    const char *name = strstr(r->row->slot->name, "wino");
    const int m = name ? atoi(name + 4) : 0;
    if (m < 1) {
        fprintf(stderr, "%s: its slot's name does not say the size of the patch\n", r->row->name);
        exit(1);
    }
    return m;
}

static void call_sn_f32_wino_in(bench_row *r)
{
    ((sn_f32_wino_in_fn *)r->row->fn)(&r->args.wino_in);
}

static void prepare_sn_f32_wino_in(bench_row *r)
{
    const int n = winograd_size(r) + 2;
    const unsigned b = r->row->geometry.block;
    const size_t patch = (size_t)(n * n) * b;
    r->args.wino_in = (sn_f32_wino_in){.x = read_by(r, patch),
                                       .v = written_by(r, patch),
                                       .block = b,
                                       .x_row = n * (ptrdiff_t)b,
                                       .v_pos = b,
                                       .row_to = n,
                                       .col_to = n};
    r->bytes = moved(r, patch, patch);
    r->call = call_sn_f32_wino_in;
}

static void call_sn_f32_wino_out(bench_row *r)
{
    ((sn_f32_wino_out_fn *)r->row->fn)(&r->args.wino_out);
}

static void prepare_sn_f32_wino_out(bench_row *r)
{
    const int m = winograd_size(r), n = m + 2;
    const unsigned b = r->row->geometry.block;
    const size_t patch = (size_t)(n * n) * b, pixels = (size_t)(m * m) * b;
    r->args.wino_out = (sn_f32_wino_out){.m = read_by(r, patch),
                                         .y = written_by(r, pixels),
                                         .block = b,
                                         .m_pos = b,
                                         .y_row = m * (ptrdiff_t)b,
                                         .rows = m,
                                         .cols = m,
                                         .lo = -INFINITY,
                                         .hi = INFINITY};
    r->bytes = moved(r, patch, pixels);
    r->call = call_sn_f32_wino_out;
}

static void call_sn_f32_wino_filter(bench_row *r)
{
    ((sn_f32_wino_filter_fn *)r->row->fn)(r->y, r->x, r->row->geometry.block);
}

static void prepare_sn_f32_wino_filter(bench_row *r)
{
    const size_t n = (size_t)winograd_size(r) + 2, b = r->row->geometry.block;
    r->x = read_by(r, 9 * b * b);
    r->y = written_by(r, n * n * (b * b + SN_WINO_GAP));
    r->bytes = moved(r, 9 * b * b, n * n * b * b);
    r->call = call_sn_f32_wino_filter;
}

/* ------------------------------------------------------------------ blocks of channels */
static void call_sn_f32_pool(bench_row *r)
{
    ((sn_f32_pool_fn *)r->row->fn)(&r->args.pool);
}

static void prepare_sn_f32_pool(bench_row *r)
{
    const size_t pixels = r->quick ? 3 : 56, width = pixels + 2, b = r->row->geometry.block;
    r->args.pool = (sn_f32_pool){.x = read_by(r, 3 * width * b),
                                 .y = written_by(r, pixels * b),
                                 .pixels = pixels,
                                 .kh = 3,
                                 .kw = 3,
                                 .block = (unsigned)b,
                                 .x_pixel = (ptrdiff_t)b,
                                 .x_kh = (ptrdiff_t)(width * b),
                                 .x_kw = (ptrdiff_t)b,
                                 .scale = 1.0f / 9};
    r->flops = 9.0 * (double)(pixels * b);
    r->call = call_sn_f32_pool;
}

enum { MIX_TAPS = 4 };

static void call_sn_f32_mix(bench_row *r)
{
    ((sn_f32_mix_fn *)r->row->fn)(r->y, r->x, r->n, r->n, r->index, r->w, MIX_TAPS);
}

static void prepare_sn_f32_mix(bench_row *r)
{
    r->n = r->quick ? 5 : 64;
    r->x = read_by(r, r->n * r->n);
    r->y = written_by(r, r->n * r->n);
    r->w = floats(r, r->n * MIX_TAPS);
    r->index = keep(r, bench_alloc(r->n * MIX_TAPS * sizeof *r->index));
    for (size_t i = 0; i < r->n * MIX_TAPS; i++)
        r->index[i] = (int32_t)((i * 7 + i / 3) % r->n);
    r->flops = 2.0 * MIX_TAPS * (double)(r->n * r->n);
    r->call = call_sn_f32_mix;
}

static void call_sn_f32_block(bench_row *r)
{
    const unsigned b = r->row->geometry.block;
    ((sn_f32_block_fn *)r->row->fn)(r->y, r->x, r->n, b, b, r->n);
}

static void prepare_sn_f32_block(bench_row *r)
{
    r->n = r->quick ? 7 : 196;
    const size_t all = r->n * r->row->geometry.block;
    r->x = read_by(r, all);
    r->y = written_by(r, all);
    r->bytes = moved(r, all, all);
    r->call = call_sn_f32_block;
}

static void call_sn_f32_unblock(bench_row *r)
{
    const unsigned b = r->row->geometry.block;
    ((sn_f32_unblock_fn *)r->row->fn)(r->y, r->x, r->n, b, b, r->n);
}

static void prepare_sn_f32_unblock(bench_row *r)
{
    prepare_sn_f32_block(r);
    r->call = call_sn_f32_unblock;
}

/* ------------------------------------------------------------------ n elements */
static void prepare_flat(bench_row *r, void (*call)(bench_row *))
{
    r->n = r->quick ? 37 : 4096;
    r->x = read_by(r, r->n);
    r->y = written_by(r, r->n);
    r->bytes = moved(r, r->n, r->n);
    r->call = call;
}

static void call_sn_f32_unary(bench_row *r)
{
    static const float params[2] = {0.5f, 0.75f}; /* good for every function that takes some */
    ((sn_f32_unary_fn *)r->row->fn)(r->y, r->x, r->n, params);
}

static void prepare_sn_f32_unary(bench_row *r)
{
    prepare_flat(r, call_sn_f32_unary);
}

static void call_sn_f32_binary(bench_row *r)
{
    ((sn_f32_binary_fn *)r->row->fn)(r->y, r->x, r->w, r->n, SN_BINARY_VV);
}

static void prepare_sn_f32_binary(bench_row *r)
{
    prepare_flat(r, call_sn_f32_binary);
    r->w = read_by(r, r->n);
    r->bytes = moved(r, 2 * r->n, r->n);
}

static void call_sn_f32_add_clip(bench_row *r)
{
    ((sn_f32_add_clip_fn *)r->row->fn)(r->y, r->x, r->w, r->n, 0.0f, 6.0f);
}

static void prepare_sn_f32_add_clip(bench_row *r)
{
    prepare_flat(r, call_sn_f32_add_clip);
    r->w = read_by(r, r->n);
    r->bytes = moved(r, 2 * r->n, r->n);
}

static void call_sn_f32_reduce(bench_row *r)
{
    sink = ((sn_f32_reduce_fn *)r->row->fn)(r->x, r->n);
}

static void prepare_sn_f32_reduce(bench_row *r)
{
    prepare_flat(r, call_sn_f32_reduce);
    r->bytes = moved(r, r->n, 1);
}

static void call_sn_f32_softmax(bench_row *r)
{
    ((sn_f32_softmax_fn *)r->row->fn)(r->y, r->x, r->n);
}

static void prepare_sn_f32_softmax(bench_row *r)
{
    prepare_flat(r, call_sn_f32_softmax);
}

static void call_sn_f32_norm(bench_row *r)
{
    ((sn_f32_norm_fn *)r->row->fn)(r->y, r->x, r->w, r->z, r->n, 1e-5f, NULL);
}

static void prepare_sn_f32_norm(bench_row *r)
{
    prepare_flat(r, call_sn_f32_norm);
    r->w = floats(r, r->n);
    r->z = floats(r, r->n);
    r->bytes = moved(r, 3 * r->n, r->n);
}

static void call_sn_half_load(bench_row *r)
{
    ((sn_half_load_fn *)r->row->fn)(r->y, r->x, r->n);
}

static void prepare_sn_half_load(bench_row *r)
{
    prepare_flat(r, call_sn_half_load);
}

static void call_sn_half_store(bench_row *r)
{
    ((sn_half_store_fn *)r->row->fn)(r->y, r->x, r->n);
}

static void prepare_sn_half_store(bench_row *r)
{
    prepare_flat(r, call_sn_half_store);
}

static void call_sn_bf16_pairs(bench_row *r)
{
    const size_t pixels = r->n / (2 * SN_PAIR_BLOCK);
    const float *x = r->x;
    const sn_bf16_pairs t = {
        .a = x, .b = x + pixels * SN_PAIR_BLOCK, .y = r->y, .n = pixels, .step = SN_PAIR_BLOCK};
    ((sn_bf16_pairs_fn *)r->row->fn)(&t);
}

static void call_sn_f16_split(bench_row *r)
{
    uint16_t *y = r->y;
    ((sn_f16_split_fn *)r->row->fn)(y, y + r->n / 2, r->x, r->n / 2);
}

static void prepare_sn_f16_split(bench_row *r)
{
    prepare_flat(r, call_sn_f16_split);
}

static void prepare_sn_bf16_pairs(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_pairs);
}

static void call_sn_bf16_add_clip(bench_row *r)
{
    ((sn_bf16_add_clip_fn *)r->row->fn)(r->y, r->x, r->w, r->n, 0.0f, 6.0f);
}

static void prepare_sn_bf16_add_clip(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_add_clip);
    r->w = floats(r, r->n);
    r->bytes = moved(r, r->n, r->n) + (double)(r->n * sizeof(uint16_t));
}

static void call_sn_bf16_swish(bench_row *r)
{
    ((sn_bf16_swish_fn *)r->row->fn)(r->y, r->x, r->n, 1.0f);
}

static void prepare_sn_bf16_swish(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_swish);
}

static void call_sn_f32_swish_rough(bench_row *r)
{
    ((sn_f32_swish_rough_fn *)r->row->fn)(r->y, r->x, r->n, 1.0f);
}

static void prepare_sn_f32_swish_rough(bench_row *r)
{
    prepare_flat(r, call_sn_f32_swish_rough);
}

static void call_sn_bf16_join(bench_row *r)
{
    const size_t n = r->n / SN_JOIN_CHANNELS;
    const float *x = r->x, *rows[SN_JOIN_CHANNELS] = {x, x + n, x + 2 * n};
    (void)((sn_bf16_join_fn *)r->row->fn)(r->y, rows, n);
}

static void prepare_sn_bf16_join(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_join);
}

static void call_sn_bf16_zip(bench_row *r)
{
    const float *x = r->x;
    ((sn_bf16_zip_fn *)r->row->fn)(r->y, x, x + r->n / 2, r->n / 2);
}

static void prepare_sn_bf16_zip(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_zip);
}

static void call_sn_bytes_load(bench_row *r)
{
    ((sn_bytes_load_fn *)r->row->fn)(r->y, r->x, r->n, 3);
}

static void prepare_sn_bytes_load(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_load);
}

static void call_sn_bytes_store(bench_row *r)
{
    ((sn_bytes_store_fn *)r->row->fn)(r->y, r->x, r->n, 0.25f, 200, 3, 0);
}

static void prepare_sn_bytes_store(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_store);
}

static void call_sn_i32_requantize(bench_row *r)
{
    const sn_requantize_args t = {
        .x = r->x, .scale = r->w, .y = r->y, .rows = 1, .n = r->n, .zero = 3, .hi = 255};
    ((sn_i32_requantize_fn *)r->row->fn)(&t);
}

static void prepare_sn_i32_requantize(bench_row *r)
{
    prepare_flat(r, call_sn_i32_requantize);
    r->w = constants(r, r->n, 0.01f);
    r->bytes += (double)(r->n * sizeof(float));
}

static void call_sn_i32_scale(bench_row *r)
{
    const sn_i32_scale_args t = {
        .x = r->x, .scale = r->w, .addend = r->w, .y = r->y, .rows = 1, .n = r->n};
    ((sn_i32_scale_fn *)r->row->fn)(&t);
}

static void prepare_sn_i32_scale(bench_row *r)
{
    prepare_flat(r, call_sn_i32_scale);
    r->w = constants(r, r->n, 0.01f);
    r->bytes += (double)(r->n * sizeof(float));
}

static void call_sn_f32_quantize(bench_row *r)
{
    ((sn_f32_quantize_fn *)r->row->fn)(r->y, r->x, r->n, 0.01f, 3, 0, 255);
}

static void prepare_sn_f32_quantize(bench_row *r)
{
    prepare_flat(r, call_sn_f32_quantize);
}

static void call_sn_q8_pair(bench_row *r)
{
    const sn_q8_binary_args t = {.a = r->x,
                                 .b = r->w,
                                 .y = r->y,
                                 .n = r->n,
                                 .a_scale = 0.01f,
                                 .b_scale = 0.02f,
                                 .y_scale = 0.02f};
    ((sn_q8_pair_fn *)r->row->fn)(&t);
}

static void prepare_sn_q8_pair(bench_row *r)
{
    prepare_flat(r, call_sn_q8_pair);
    r->w = read_by(r, r->n);
    r->bytes = moved(r, 2 * r->n, r->n);
}

enum { REPEAT_ROWS = 16 };

static void call_sn_q8_repeat(bench_row *r)
{
    const sn_q8_repeat t = {.a = r->x,
                            .b = r->w,
                            .y = r->y,
                            .rows = REPEAT_ROWS,
                            .n = r->n,
                            .row = (ptrdiff_t)r->n,
                            .a_scale = 0.01f,
                            .b_scale = 0.02f,
                            .y_scale = 0.02f};
    ((sn_q8_repeat_fn *)r->row->fn)(&t);
}

static void prepare_sn_q8_repeat(bench_row *r)
{
    r->n = r->quick ? 37 : 256;
    r->x = read_by(r, REPEAT_ROWS * r->n);
    r->w = floats(r, r->n);
    r->y = written_by(r, REPEAT_ROWS * r->n);
    r->bytes = moved(r, REPEAT_ROWS * r->n, REPEAT_ROWS * r->n);
    r->call = call_sn_q8_repeat;
}

static void call_sn_bytes_max(bench_row *r)
{
    ((sn_bytes_max_fn *)r->row->fn)(r->y, r->x, r->n, 0);
}

static void prepare_sn_bytes_max(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_max);
    r->bytes = moved(r, 2 * r->n, r->n);
}

enum { SUMS_ROWS = 49 };

static void call_sn_bytes_sums(bench_row *r)
{
    ((sn_bytes_sums_fn *)r->row->fn)(r->y, r->x, (ptrdiff_t)r->n, SUMS_ROWS, r->n, 0);
}

static void prepare_sn_bytes_sums(bench_row *r)
{
    r->n = r->quick ? 77 : 512;
    r->x = read_by(r, SUMS_ROWS * r->n);
    r->y = written_by(r, r->n);
    r->bytes = moved(r, SUMS_ROWS * r->n, r->n);
    r->call = call_sn_bytes_sums;
}

enum { AVERAGE_PIXELS = 14 };

static void call_sn_q8_average(bench_row *r)
{
    const ptrdiff_t pixel = (ptrdiff_t)r->n;
    const sn_q8_average t = {.x = r->x,
                             .y = r->y,
                             .pixels = AVERAGE_PIXELS,
                             .n = r->n,
                             .taps = {1, 1, 3},
                             .x_pixel = pixel,
                             .step = {pixel, pixel, pixel},
                             .count = 3,
                             .x_scale = 0.01f,
                             .y_scale = 0.023f};
    ((sn_q8_average_fn *)r->row->fn)(&t);
}

static void prepare_sn_q8_average(bench_row *r)
{
    r->n = r->quick ? 77 : 512;
    r->x = read_by(r, (AVERAGE_PIXELS + 2) * r->n);
    r->y = written_by(r, AVERAGE_PIXELS * r->n);
    r->bytes = moved(r, (AVERAGE_PIXELS + 2) * r->n, AVERAGE_PIXELS * r->n);
    r->call = call_sn_q8_average;
}

static void call_sn_bytes_table(bench_row *r)
{
    ((sn_bytes_table_fn *)r->row->fn)(r->y, r->x, r->n, r->w);
}

static void prepare_sn_bytes_table(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_table);
    r->w = read_by(r, SN_BYTE_VALUES);
}

enum { TURN_ROWS = 64 };

static void call_sn_bytes_turn(bench_row *r)
{
    ((sn_bytes_turn_fn *)r->row->fn)(r->y, TURN_ROWS, r->x, (ptrdiff_t)r->n, TURN_ROWS, r->n);
}

static void prepare_sn_bytes_turn(bench_row *r)
{
    r->n = r->quick ? 37 : 256;
    r->x = read_by(r, TURN_ROWS * r->n);
    r->y = written_by(r, TURN_ROWS * r->n);
    r->bytes = moved(r, TURN_ROWS * r->n, TURN_ROWS * r->n);
    r->call = call_sn_bytes_turn;
}

/* ------------------------------------------------------------------ products of bytes */
enum { ROWS_ROUNDS = 8 }; /* so that setting up tiles does not count */

static void call_sn_q8_tile(bench_row *r)
{
    ((sn_q8_tile_fn *)r->row->fn)(&r->args.bytes);
}

/* `rows` rows of one tap each, or of nine of a depthwise convolution. */
static void prepare_bytes(bench_row *r, size_t rows, size_t taps, size_t columns, size_t channels)
{
    const sn_geometry *g = &r->row->geometry;
    const size_t weights = (taps + g->kr - 1) / g->kr * g->kr * columns * (channels + g->kr);
    uint8_t *x = read_by(r, taps * rows * channels);
    const uint8_t **pointers = keep(r, bench_alloc(taps * rows * sizeof *pointers));
    for (size_t i = 0; i < taps * rows; i++)
        pointers[i] = x + i * channels;
    r->args.bytes = (sn_q8_tile){.x = pointers,
                                 .w = elements(r, r->row->slot->weights, weights),
                                 .start = elements(r, SONDE_DTYPE_I32, columns + g->block),
                                 .y = written_by(r, rows * columns),
                                 .rows = rows,
                                 .taps = taps,
                                 .channels = channels,
                                 .y_row = (ptrdiff_t)columns,
                                 .block = g->block,
                                 .kr = g->kr};
    r->call = call_sn_q8_tile;
}

static void prepare_sn_q8_tile(bench_row *r)
{
    const sn_geometry *g = &r->row->geometry;
    unsigned blocks = SN_TILE_MAX_BLOCKS;
    while (blocks > 1 && g->pixels[blocks - 1] == 0)
        blocks--;
    const size_t channels = r->quick ? 8 : 256, rows = g->pixels[blocks - 1];
    prepare_bytes(r, rows, 1, (size_t)blocks * g->block, channels);
    r->args.bytes.blocks = blocks;
    r->args.bytes.w_q = (ptrdiff_t)(channels * g->block);
    r->flops = 2.0 * (double)(rows * blocks * g->block * channels);
}

static void prepare_sn_q8_depthwise(bench_row *r)
{
    const size_t channels = r->quick ? 24 : 256, rows = 4, taps = 9;
    prepare_bytes(r, rows, taps, channels, channels);
    r->flops = 2.0 * (double)(rows * taps * channels);
}

static void call_sn_tile_rows(bench_row *r)
{
    const sn_kernels *k = sn_kernels_get(r->row->flags);
    k->tiles_enter();
    for (int i = 0; i < ROWS_ROUNDS; i++)
        ((sn_tile_rows_fn *)r->row->fn)(&r->args.rows);
    k->tiles_leave();
}

static void prepare_sn_tile_rows(bench_row *r)
{
    enum { TILES = 2, BLOCKS = 4 };
    const size_t steps = r->quick ? 1 : 8, rows = TILES * SN_ROWS_TILE;
    const size_t columns = BLOCKS * SN_ROWS_TILE, x_row = steps * SN_ROWS_STEP;
    ptrdiff_t *at = keep(r, bench_alloc(steps * sizeof *at));
    for (size_t s = 0; s < steps; s++)
        at[s] = (ptrdiff_t)(s * SN_ROWS_STEP);
    r->args.rows =
        (sn_tile_rows){.x = read_by(r, rows * x_row),
                       .at = at,
                       .w = elements(r, r->row->slot->weights, BLOCKS * steps * SN_ROWS_WEIGHTS),
                       .start = elements(r, SONDE_DTYPE_I32, columns),
                       .y = written_by(r, rows * columns),
                       .rows = rows,
                       .blocks = BLOCKS,
                       .steps = steps,
                       .x_row = (ptrdiff_t)x_row,
                       .w_q = (ptrdiff_t)(steps * SN_ROWS_WEIGHTS),
                       .y_row = (ptrdiff_t)columns,
                       .y_q = SN_ROWS_TILE};
    r->flops = 2.0 * ROWS_ROUNDS * (double)(rows * columns * x_row);
    r->call = call_sn_tile_rows;
}

static void call_sn_bytes_quads(bench_row *r)
{
    ((sn_bytes_quads_fn *)r->row->fn)(&r->args.quads);
}

static void prepare_sn_bytes_quads(bench_row *r)
{
    const size_t pixels = r->quick ? 4 : 56;
    uint8_t *x = read_by(r, (pixels + 2) * SN_QUAD_CHANNELS);
    r->args.quads = (sn_quads_args){.x = x,
                                    .outside = x,
                                    .y = written_by(r, pixels / 2 * SN_QUAD_BYTES),
                                    .pairs = pixels / 2,
                                    .channels = SN_QUAD_CHANNELS,
                                    .there = pixels + 2,
                                    .x_pixel = SN_QUAD_CHANNELS};
    r->bytes = (double)(pixels * SN_QUAD_CHANNELS + pixels / 2 * SN_QUAD_BYTES);
    r->call = call_sn_bytes_quads;
}

static void call_sn_q8_by_quads(bench_row *r)
{
    ((sn_q8_by_quads_fn *)r->row->fn)(&r->args.by_quads);
}

static void prepare_sn_q8_by_quads(bench_row *r) /* 3×3 */
{
    enum { RUNS = 3 };
    const size_t rows = r->quick ? 3 : 56, line = (rows / 2 + 1) * SN_QUAD_BYTES;
    ptrdiff_t *at = keep(r, bench_alloc(RUNS * sizeof *at));
    for (size_t k = 0; k < RUNS; k++)
        at[k] = (ptrdiff_t)(k * line);
    float *scale = elements(r, SONDE_DTYPE_F32, SN_QUAD_CHANNELS);
    for (size_t c = 0; c < SN_QUAD_CHANNELS; c++)
        scale[c] = 0.001f;
    r->args.by_quads =
        (sn_q8_depthwise_args){.x = read_by(r, RUNS * line),
                               .at = at,
                               .w = elements(r, r->row->slot->weights, 2 * RUNS * SN_QUAD_BYTES),
                               .start = elements(r, SONDE_DTYPE_I32, SN_QUAD_CHANNELS),
                               .scale = scale,
                               .rows = rows,
                               .runs = RUNS,
                               .quads = 1,
                               .stride = 1,
                               .channels = SN_QUAD_CHANNELS,
                               .y = written_by(r, rows * SN_QUAD_CHANNELS),
                               .y_row = SN_QUAD_CHANNELS,
                               .hi = 255};
    r->flops = 2.0 * 9 * (double)(rows * SN_QUAD_CHANNELS);
    r->call = call_sn_q8_by_quads;
}

static void call_sn_thread_state(bench_row *r)
{
    const sn_kernels *k = sn_kernels_get(r->row->flags);
    k->tiles_enter();
    k->tiles_leave();
}

static void prepare_sn_thread_state(bench_row *r)
{
    r->n = 1;
    r->call = call_sn_thread_state;
}

static void call_sn_f32_axpy(bench_row *r)
{
    ((sn_f32_axpy_fn *)r->row->fn)(r->y, r->x, r->n, 1, 1e-6f); /* y stays small */
}

static void prepare_sn_f32_axpy(bench_row *r)
{
    prepare_flat(r, call_sn_f32_axpy);
    r->bytes = moved(r, 2 * r->n, r->n);
}

enum { PEAK_ROUNDS = 8 };

static void call_sn_f32_peak(bench_row *r)
{
    sink = ((sn_f32_peak_fn *)r->row->fn)(r->x, r->n, PEAK_ROUNDS);
}

static void prepare_sn_f32_peak(bench_row *r)
{
    r->n = r->quick ? 64 : 2048;
    r->x = read_by(r, r->n);
    r->flops = 4.0 * PEAK_ROUNDS * (double)r->n;
    r->call = call_sn_f32_peak;
}

/* ------------------------------------------------------------------ rows of n elements */
enum { ROWS = 8 };

static void call_sn_f32_exp_rows(bench_row *r)
{
    sn_f32_exp_rows *e = &r->args.exp_rows;
    for (size_t i = 0; i < ROWS; i++) {
        e->max[i] = -INFINITY; /* each call is a first piece */
        e->sum[i] = 0;
    }
    ((sn_f32_exp_rows_fn *)r->row->fn)(e);
}

static void prepare_sn_f32_exp_rows(bench_row *r)
{
    const size_t n = r->quick ? 37 : 256;
    r->args.exp_rows = (sn_f32_exp_rows){.s = read_by(r, ROWS * n),
                                         .s_row = (ptrdiff_t)n,
                                         .rows = ROWS,
                                         .n = n,
                                         .scale = 0.125f,
                                         .max = constants(r, ROWS, 0),
                                         .sum = constants(r, ROWS, 0),
                                         .factor = constants(r, ROWS, 0)};
    r->bytes = moved(r, ROWS * n, ROWS * n);
    r->call = call_sn_f32_exp_rows;
}

static void call_sn_f32_scale_rows(bench_row *r)
{
    ((sn_f32_scale_rows_fn *)r->row->fn)(r->y, (ptrdiff_t)r->n, ROWS, r->n, r->w);
}

static void prepare_sn_f32_scale_rows(bench_row *r)
{
    r->n = r->quick ? 37 : 256;
    r->y = written_by(r, ROWS * r->n);
    r->w = constants(r, ROWS, -1);
    r->bytes = moved(r, ROWS * r->n, ROWS * r->n);
    r->call = call_sn_f32_scale_rows;
}

static void call_sn_f32_dots(bench_row *r)
{
    ((sn_f32_dots_fn *)r->row->fn)(r->y, r->x, r->w, ROWS, r->n, r->n);
}

static void prepare_sn_f32_dots(bench_row *r)
{
    r->n = r->quick ? 37 : 512;
    r->x = read_by(r, r->n);
    r->w = read_by(r, ROWS * r->n);
    r->y = written_by(r, ROWS);
    r->flops = 2.0 * ROWS * (double)r->n;
    r->call = call_sn_f32_dots;
}

/* ------------------------------------------------------------------ slots */
static const struct {
    const char *slot;
    void (*prepare)(bench_row *r);
} drivers[] = {
#define SN_SLOT(slot, signature, read, weights, written, arrangement) {#slot, prepare_##signature},
#include "kernels/slots.inc"
#undef SN_SLOT
};

void bench_row_prepare(bench_row *r)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (strcmp(drivers[i].slot, r->row->slot->name) == 0)
            drivers[i].prepare(r);
}

void bench_row_free(bench_row *r)
{
    for (int i = 0; i < r->arrays; i++)
        free(r->array[i]);
}
