/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels of bytes, and those that use tiles, are called. */
#include <string.h>

#include "row_drivers.h"

static void call_sn_bytes_load(bench_row *r)
{
    ((sn_bytes_load_fn *)r->row->fn)(r->y, r->x, r->n, 3);
}

void prepare_sn_bytes_load(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_load);
}

static void call_sn_bytes_store(bench_row *r)
{
    ((sn_bytes_store_fn *)r->row->fn)(r->y, r->x, r->n, 0.25f, 200, 3, 0);
}

void prepare_sn_bytes_store(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_store);
}

static void call_sn_i32_requantize(bench_row *r)
{
    const sn_requantize_args t = {
        .x = r->x, .scale = r->w, .y = r->y, .rows = 1, .n = r->n, .zero = 3, .hi = 255};
    ((sn_i32_requantize_fn *)r->row->fn)(&t);
}

void prepare_sn_i32_requantize(bench_row *r)
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

void prepare_sn_i32_scale(bench_row *r)
{
    prepare_flat(r, call_sn_i32_scale);
    r->w = constants(r, r->n, 0.01f);
    r->bytes += (double)(r->n * sizeof(float));
}

static void call_sn_f32_quantize(bench_row *r)
{
    ((sn_f32_quantize_fn *)r->row->fn)(r->y, r->x, r->n, 0.01f, 3, 0, 255);
}

void prepare_sn_f32_quantize(bench_row *r)
{
    prepare_flat(r, call_sn_f32_quantize);
}

static void call_sn_q8_pair(bench_row *r)
{
    const sn_q8_binary_args t = {.a = r->x,
                                 .b = r->w,
                                 .y = r->y,
                                 .n = r->n,
                                 .a_scale = 0.5f,
                                 .b_scale = 0.25f,
                                 .offset = 3.0f};
    ((sn_q8_pair_fn *)r->row->fn)(&t);
}

void prepare_sn_q8_pair(bench_row *r)
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
                            .a_scale = 0.5f,
                            .offset = 3.0f};
    ((sn_q8_repeat_fn *)r->row->fn)(&t);
}

void prepare_sn_q8_repeat(bench_row *r)
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

void prepare_sn_bytes_max(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_max);
    r->bytes = moved(r, 2 * r->n, r->n);
}

enum { SUMS_ROWS = 49 };

static void call_sn_bytes_sums(bench_row *r)
{
    ((sn_bytes_sums_fn *)r->row->fn)(r->y, r->x, (ptrdiff_t)r->n, SUMS_ROWS, r->n, 0);
}

void prepare_sn_bytes_sums(bench_row *r)
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

void prepare_sn_q8_average(bench_row *r)
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

void prepare_sn_bytes_table(bench_row *r)
{
    prepare_flat(r, call_sn_bytes_table);
    r->w = read_by(r, SN_BYTE_VALUES);
}

enum { TURN_ROWS = 64 };

static void call_sn_bytes_turn(bench_row *r)
{
    ((sn_bytes_turn_fn *)r->row->fn)(r->y, TURN_ROWS, r->x, (ptrdiff_t)r->n, TURN_ROWS, r->n);
}

void prepare_sn_bytes_turn(bench_row *r)
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

void prepare_sn_q8_tile(bench_row *r)
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

void prepare_sn_q8_depthwise(bench_row *r)
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

void prepare_sn_tile_rows(bench_row *r)
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
    const size_t numbers = x_row / (r->row->slot->read == SONDE_DTYPE_BF16 ? 2 : 1);
    r->flops = 2.0 * (double)ROWS_ROUNDS * (double)(rows * columns * numbers);
    r->call = call_sn_tile_rows;
}

static void call_sn_bytes_quads(bench_row *r)
{
    ((sn_bytes_quads_fn *)r->row->fn)(&r->args.quads);
}

void prepare_sn_bytes_quads(bench_row *r)
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

void prepare_sn_q8_by_quads(bench_row *r) /* 3×3 */
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

void prepare_sn_thread_state(bench_row *r)
{
    r->n = 1;
    r->call = call_sn_thread_state;
}

/* ------------------------------------------------------------------ peaks */
enum { PEAK_ROUNDS = 1024 };

static void call_sn_product_peak(bench_row *r)
{
    const sn_kernels *k = sn_kernels_get(r->row->flags);
    k->tiles_enter();
    ((sn_product_peak_fn *)r->row->fn)(r->y, r->x, r->w, PEAK_ROUNDS);
    k->tiles_leave();
}

void prepare_sn_product_peak(bench_row *r)
{
    const size_t numbers = SN_ROWS_WEIGHTS / sn_dtype_bytes(r->row->slot->read);
    r->x = read_by(r, numbers);
    r->w = read_by(r, numbers);
    r->y = written_by(r, SN_ROWS_TILE * SN_ROWS_TILE);
    /* A tile is multiplied by 16 columns, a vector, a sixteenth of it, element by element. */
    r->flops = 2.0 * (double)PEAK_ROUNDS * (double)numbers *
               (r->row->geometry.block ? (double)SN_ROWS_TILE : 1.0 / (double)SN_ROWS_TILE);
    r->call = call_sn_product_peak;
}
