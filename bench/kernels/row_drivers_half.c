/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels of 16-bit floats are called. */
#include "row_drivers.h"

static void call_sn_half_load(bench_row *r)
{
    ((sn_half_load_fn *)r->row->fn)(r->y, r->x, r->n);
}

void prepare_sn_half_load(bench_row *r)
{
    prepare_flat(r, call_sn_half_load);
}

static void call_sn_half_store(bench_row *r)
{
    ((sn_half_store_fn *)r->row->fn)(r->y, r->x, r->n);
}

void prepare_sn_half_store(bench_row *r)
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

void prepare_sn_f16_split(bench_row *r)
{
    prepare_flat(r, call_sn_f16_split);
}

static void call_sn_f16_halves(bench_row *r)
{
    uint16_t *y = r->y;
    ((sn_f16_halves_fn *)r->row->fn)(y, y + r->n, r->x, r->n, 1.0f);
}

void prepare_sn_f16_halves(bench_row *r)
{
    prepare_flat(r, call_sn_f16_halves);
    r->bytes = (double)(r->n * 2 * sizeof(float));
}

static void call_sn_f32_rescale(bench_row *r)
{
    const float one = 1.0f;
    const sn_f32_rescale t = {
        .y = r->y, .x = r->x, .by_row = &one, .by = r->w, .start = r->w, .rows = 1, .n = r->n};
    ((sn_f32_rescale_fn *)r->row->fn)(&t);
}

void prepare_sn_f32_rescale(bench_row *r)
{
    prepare_flat(r, call_sn_f32_rescale);
    r->w = floats(r, r->n);
    r->bytes = (double)(r->n * 3 * sizeof(float));
}

void prepare_sn_bf16_pairs(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_pairs);
}

static void call_sn_bf16_add_clip(bench_row *r)
{
    ((sn_bf16_add_clip_fn *)r->row->fn)(r->y, r->x, r->w, r->n, 0.0f, 6.0f);
}

void prepare_sn_bf16_add_clip(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_add_clip);
    r->w = floats(r, r->n);
    r->bytes = moved(r, r->n, r->n) + (double)(r->n * sizeof(uint16_t));
}

static void call_sn_bf16_swish(bench_row *r)
{
    ((sn_bf16_swish_fn *)r->row->fn)(r->y, r->x, r->n, 1.0f);
}

void prepare_sn_bf16_swish(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_swish);
}

static void call_sn_f32_swish_rough(bench_row *r)
{
    ((sn_f32_swish_rough_fn *)r->row->fn)(r->y, r->x, r->n, 1.0f);
}

void prepare_sn_f32_swish_rough(bench_row *r)
{
    prepare_flat(r, call_sn_f32_swish_rough);
}

static void call_sn_bf16_join(bench_row *r)
{
    const size_t n = r->n / SN_JOIN_CHANNELS;
    const float *x = r->x, *rows[SN_JOIN_CHANNELS] = {x, x + n, x + 2 * n};
    (void)((sn_bf16_join_fn *)r->row->fn)(r->y, rows, n);
}

void prepare_sn_bf16_join(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_join);
}

static void call_sn_f16_join(bench_row *r)
{
    const size_t n = r->n / SN_JOIN_CHANNELS;
    const uint16_t *x = r->x, *rows[SN_JOIN_CHANNELS] = {x, x + n, x + 2 * n};
    (void)((sn_f16_join_fn *)r->row->fn)(r->y, rows, n);
}

void prepare_sn_f16_join(bench_row *r)
{
    prepare_flat(r, call_sn_f16_join);
}

static void call_sn_bf16_round(bench_row *r)
{
    const sn_bf16_round t = {.x = r->x, .y = r->y, .rows = 1, .n = r->n};
    ((sn_bf16_round_fn *)r->row->fn)(&t);
}

void prepare_sn_bf16_round(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_round);
}

static void call_sn_bf16_zip(bench_row *r)
{
    const float *x = r->x;
    ((sn_bf16_zip_fn *)r->row->fn)(r->y, x, x + r->n / 2, r->n / 2);
}

void prepare_sn_bf16_zip(bench_row *r)
{
    prepare_flat(r, call_sn_bf16_zip);
}

static void call_sn_half_pool(bench_row *r)
{
    ((sn_half_pool_fn *)r->row->fn)(&r->args.half_pool);
}

void prepare_sn_half_pool(bench_row *r)
{
    const size_t pixels = r->quick ? 3 : 56, in = 2 * pixels + 1, b = r->row->geometry.block;
    r->args.half_pool = (sn_half_pool){.x = read_by(r, 3 * in * b),
                                       .y = written_by(r, pixels * b),
                                       .line = keep(r, bench_alloc(in * b * sizeof(int16_t))),
                                       .rows = 3,
                                       .in = in,
                                       .pixels = pixels,
                                       .kw = 3,
                                       .stride = 2,
                                       .step = 1,
                                       .x_row = (ptrdiff_t)(in * b),
                                       .block = (unsigned)b,
                                       .nans = SN_BF16_NANS};
    r->flops = 9.0 * (double)(pixels * b);
    r->call = call_sn_half_pool;
}
