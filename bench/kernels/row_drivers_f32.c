/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels of f32 are called. */
#include <math.h>
#include <string.h>

#include "row_drivers.h"

/* What kernels return goes here, so that no call can be left out. */
static volatile float sink;

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

void prepare_sn_f32_tile(bench_row *r)
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
    case SN_WEIGHTS_CONV_ROWS:
    case SN_WEIGHTS_CONV_TURNED:
    case SN_WEIGHTS_FOLD_ROWS:
    case SN_WEIGHTS_DEPTHWISE_QUADS:
    case SN_WEIGHTS_SPARSE:
    case SN_WEIGHTS_SPARSE_TILES:
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

void prepare_sn_f32_depthwise(bench_row *r)
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

void prepare_sn_f32_wino_in(bench_row *r)
{
    const int n = winograd_size(r) + 2;
    const unsigned b = r->row->geometry.block;
    const size_t patch = (size_t)(n * n) * b;
    r->args.wino_in = (sn_f32_wino_in){.x = read_by(r, patch),
                                       .v = written_by(r, patch),
                                       .block = b,
                                       .x_row = n * (ptrdiff_t)b,
                                       .x_pixel = b,
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

void prepare_sn_f32_wino_out(bench_row *r)
{
    const int m = winograd_size(r), n = m + 2;
    const unsigned b = r->row->geometry.block;
    const size_t patch = (size_t)(n * n) * b, pixels = (size_t)(m * m) * b;
    r->args.wino_out = (sn_f32_wino_out){.m = read_by(r, patch),
                                         .y = written_by(r, pixels),
                                         .block = b,
                                         .m_pos = b,
                                         .y_row = m * (ptrdiff_t)b,
                                         .y_pixel = b,
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

void prepare_sn_f32_wino_filter(bench_row *r)
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

void prepare_sn_f32_pool(bench_row *r)
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

void prepare_sn_f32_mix(bench_row *r)
{
    r->n = r->quick ? 5 : 64;
    r->x = read_by(r, r->n * r->n);
    r->y = written_by(r, r->n * r->n);
    r->w = floats(r, r->n * MIX_TAPS);
    r->index = keep(r, bench_alloc(r->n * MIX_TAPS * sizeof *r->index));
    for (size_t i = 0; i < r->n * MIX_TAPS; i++)
        r->index[i] = (int32_t)((i * 7 + i / 3) % r->n);
    r->flops = 2.0 * (double)MIX_TAPS * (double)(r->n * r->n);
    r->call = call_sn_f32_mix;
}

static void call_sn_f32_block(bench_row *r)
{
    const unsigned b = r->row->geometry.block;
    ((sn_f32_block_fn *)r->row->fn)(r->y, r->x, r->n, b, b, r->n);
}

void prepare_sn_f32_block(bench_row *r)
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

void prepare_sn_f32_unblock(bench_row *r)
{
    prepare_sn_f32_block(r);
    r->call = call_sn_f32_unblock;
}

/* ------------------------------------------------------------------ n elements */
static void call_sn_f32_unary(bench_row *r)
{
    static const float params[2] = {0.5f, 0.75f}; /* good for every function that takes some */
    ((sn_f32_unary_fn *)r->row->fn)(r->y, r->x, r->n, params);
}

void prepare_sn_f32_unary(bench_row *r)
{
    prepare_flat(r, call_sn_f32_unary);
}

static void call_sn_f32_binary(bench_row *r)
{
    ((sn_f32_binary_fn *)r->row->fn)(r->y, r->x, r->w, r->n, SN_BINARY_VV);
}

void prepare_sn_f32_binary(bench_row *r)
{
    prepare_flat(r, call_sn_f32_binary);
    r->w = read_by(r, r->n);
    r->bytes = moved(r, 2 * r->n, r->n);
}

static void call_sn_f32_add_clip(bench_row *r)
{
    ((sn_f32_add_clip_fn *)r->row->fn)(r->y, r->x, r->w, r->n, 0.0f, 6.0f);
}

void prepare_sn_f32_add_clip(bench_row *r)
{
    prepare_flat(r, call_sn_f32_add_clip);
    r->w = read_by(r, r->n);
    r->bytes = moved(r, 2 * r->n, r->n);
}

static void call_sn_f32_reduce(bench_row *r)
{
    sink = ((sn_f32_reduce_fn *)r->row->fn)(r->x, r->n);
}

void prepare_sn_f32_reduce(bench_row *r)
{
    prepare_flat(r, call_sn_f32_reduce);
    r->bytes = moved(r, r->n, 1);
}

static void call_sn_f32_softmax(bench_row *r)
{
    ((sn_f32_softmax_fn *)r->row->fn)(r->y, r->x, r->n);
}

void prepare_sn_f32_softmax(bench_row *r)
{
    prepare_flat(r, call_sn_f32_softmax);
}

static void call_sn_f32_norm(bench_row *r)
{
    ((sn_f32_norm_fn *)r->row->fn)(r->y, r->x, r->w, r->z, r->n, 1e-5f, NULL);
}

void prepare_sn_f32_norm(bench_row *r)
{
    prepare_flat(r, call_sn_f32_norm);
    r->w = floats(r, r->n);
    r->z = floats(r, r->n);
    r->bytes = moved(r, 3 * r->n, r->n);
}

static void call_sn_f32_cell(bench_row *r)
{
    ((sn_f32_cell_fn *)r->row->fn)(&r->args.cell);
}

/* One row: what a stream of single samples needs. */
void prepare_sn_f32_cell(bench_row *r)
{
    const size_t units = r->quick ? 5 : 64, gates = 4;
    const unsigned b = r->row->geometry.block;
    const size_t gate = (units + b - 1) / b * b * units;
    r->args.cell = (sn_f32_cell){.x = read_by(r, gates * units),
                                 .w = elements(r, r->row->slot->weights, gates * gate),
                                 .h = read_by(r, units),
                                 .c = floats(r, units),
                                 .y = written_by(r, units),
                                 .rows = 1,
                                 .units = units,
                                 .to = units,
                                 .block = b,
                                 .x_gate = (ptrdiff_t)units,
                                 .w_gate = (ptrdiff_t)gate};
    const size_t read = strcmp(r->row->slot->name, "f32_lstm") == 0 ? gates : gates - 1;
    r->flops = 2.0 * (double)(read * units * units);
    r->call = call_sn_f32_cell;
}

static void call_sn_f32_axpy(bench_row *r)
{
    ((sn_f32_axpy_fn *)r->row->fn)(r->y, r->x, r->n, 1, 1e-6f); /* y stays small */
}

void prepare_sn_f32_axpy(bench_row *r)
{
    prepare_flat(r, call_sn_f32_axpy);
    r->bytes = moved(r, 2 * r->n, r->n);
}

enum { PEAK_ROUNDS = 8 };

static void call_sn_f32_peak(bench_row *r)
{
    sink = ((sn_f32_peak_fn *)r->row->fn)(r->x, r->n, PEAK_ROUNDS);
}

void prepare_sn_f32_peak(bench_row *r)
{
    r->n = r->quick ? 64 : 2048;
    r->x = read_by(r, r->n);
    r->flops = 4.0 * (double)PEAK_ROUNDS * (double)r->n;
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

void prepare_sn_f32_exp_rows(bench_row *r)
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

void prepare_sn_f32_scale_rows(bench_row *r)
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

void prepare_sn_f32_dots(bench_row *r)
{
    r->n = r->quick ? 37 : 512;
    r->x = read_by(r, r->n);
    r->w = read_by(r, ROWS * r->n);
    r->y = written_by(r, ROWS);
    r->flops = 2.0 * (double)ROWS * (double)r->n;
    r->call = call_sn_f32_dots;
}
