/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels of sparse weights are called: a tenth of the blocks are not zero. */
#include <math.h>

#include "row_drivers.h"

enum { OUTPUTS = 64, PANELS = OUTPUTS / SN_SPARSE_PANEL };

/* `each` entries in every panel, spread over k. */
static void entries(bench_row *r, size_t k, size_t each, const uint32_t **first,
                    const uint16_t **index)
{
    uint32_t *begin = keep(r, bench_alloc((PANELS + 1) * sizeof *begin));
    uint16_t *at = keep(r, bench_alloc(PANELS * each * sizeof *at));
    for (size_t p = 0; p <= PANELS; p++)
        begin[p] = (uint32_t)(p * each);
    for (size_t p = 0; p < PANELS; p++)
        for (size_t j = 0; j < each; j++)
            at[p * each + j] = (uint16_t)(j * k / each + (p * 7 + j * 3) % (k / each));
    *first = begin;
    *index = at;
}

/* The same in groups of four entries. */
static void group(bench_row *r, size_t each, const uint32_t **first)
{
    uint32_t *begin = keep(r, bench_alloc((PANELS + 1) * sizeof *begin));
    for (size_t p = 0; p <= PANELS; p++)
        begin[p] = (uint32_t)(p * (each / 4));
    *first = begin;
}

static void call_sn_f32_sparse(bench_row *r)
{
    ((sn_f32_sparse_fn *)r->row->fn)(&r->args.sparse);
}

void prepare_sn_f32_sparse(bench_row *r)
{
    const size_t k = r->quick ? 20 : 760, each = k / 10, b = r->row->geometry.block;
    const size_t v = r->row->geometry.pixels[0];
    sn_f32_sparse t = {.outputs = OUTPUTS,
                       .panel = SN_SPARSE_PANEL,
                       .vectors = (unsigned)v,
                       .block = (unsigned)b,
                       .x_k = (ptrdiff_t)b,
                       .x_v = (ptrdiff_t)(k * b),
                       .y_o = (ptrdiff_t)b,
                       .y_v = (ptrdiff_t)(OUTPUTS * b),
                       .lo = -INFINITY,
                       .hi = INFINITY};
    entries(r, k, each, &t.first, &t.index);
    t.x = read_by(r, v * k * b);
    t.w = elements(r, r->row->slot->weights, PANELS * each * SN_SPARSE_PANEL);
    t.y = written_by(r, v * OUTPUTS * b);
    r->args.sparse = t;
    r->flops = 2.0 * (double)(OUTPUTS * each * v * b);
    r->call = call_sn_f32_sparse;
}

static void call_sn_f32_sparse_rows(bench_row *r)
{
    ((sn_f32_sparse_rows_fn *)r->row->fn)(&r->args.sparse_rows);
}

void prepare_sn_f32_sparse_rows(bench_row *r)
{
    const size_t k = r->quick ? 20 : 760, each = k / 10;
    sn_f32_sparse_rows t = {.rows = 1,
                            .panel = SN_SPARSE_PANEL,
                            .outputs = OUTPUTS,
                            .x_row = (ptrdiff_t)k,
                            .x_k = 1,
                            .y_row = OUTPUTS,
                            .lo = -INFINITY,
                            .hi = INFINITY};
    entries(r, k, each, &t.first, &t.index);
    t.x = read_by(r, k);
    t.w = elements(r, r->row->slot->weights, PANELS * each * SN_SPARSE_PANEL);
    t.y = written_by(r, OUTPUTS);
    r->args.sparse_rows = t;
    r->flops = 2.0 * (double)(OUTPUTS * each);
    r->call = call_sn_f32_sparse_rows;
}

static void call_sn_q8_sparse(bench_row *r)
{
    ((sn_q8_sparse_fn *)r->row->fn)(&r->args.byte_sparse);
}

void prepare_sn_q8_sparse(bench_row *r)
{
    const size_t k = r->quick ? 40 : 760, each = k / 10, b = r->row->geometry.block;
    const size_t v = r->row->geometry.pixels[0];
    sn_q8_sparse t = {.outputs = OUTPUTS,
                      .vectors = (unsigned)v,
                      .block = (unsigned)b,
                      .x_k = (ptrdiff_t)(v * b),
                      .y_o = (ptrdiff_t)b,
                      .y_v = (ptrdiff_t)(OUTPUTS * b)};
    entries(r, k, each, &t.first, &t.index);
    group(r, each, &t.first);
    t.x = read_by(r, v * k * b);
    t.w = elements(r, r->row->slot->weights, PANELS * each * SN_SPARSE_PANEL);
    t.start = written_by(r, OUTPUTS);
    t.y = written_by(r, v * OUTPUTS * b);
    r->args.byte_sparse = t;
    r->flops = 2.0 * (double)(OUTPUTS * (each / 4 * 4) * v * b);
    r->call = call_sn_q8_sparse;
}

static void call_sn_q8_sparse_row(bench_row *r)
{
    ((sn_q8_sparse_row_fn *)r->row->fn)(&r->args.byte_sparse_row);
}

void prepare_sn_q8_sparse_row(bench_row *r)
{
    const size_t k = r->quick ? 40 : 760, each = k / 10;
    sn_q8_sparse_row t = {.outputs = OUTPUTS};
    entries(r, k, each, &t.first, &t.index);
    group(r, each, &t.first);
    t.x = read_by(r, k);
    t.w = elements(r, r->row->slot->weights, PANELS * each * SN_SPARSE_PANEL);
    t.start = written_by(r, OUTPUTS);
    t.y = written_by(r, OUTPUTS);
    r->args.byte_sparse_row = t;
    r->flops = 2.0 * (double)(OUTPUTS * (each / 4 * 4));
    r->call = call_sn_q8_sparse_row;
}

static void call_sn_tile_sparse(bench_row *r)
{
    enum { ROUNDS = 16 }; /* setting up the tiles should not count */
    const sn_kernels *k = sn_kernels_get(r->row->flags);
    k->tiles_enter();
    for (int i = 0; i < ROUNDS; i++)
        ((sn_tile_sparse_fn *)r->row->fn)(&r->args.tile_sparse);
    k->tiles_leave();
}

void prepare_sn_tile_sparse(bench_row *r)
{
    enum { TILES = 2, VECTORS = 4, LINES = 384, LINE_FLOATS = 16 };
    uint32_t *first = keep(r, bench_alloc((OUTPUTS / 16 + 1) * sizeof *first));
    uint16_t *index = keep(r, bench_alloc(OUTPUTS / 16 * TILES * 16 * sizeof *index));
    for (size_t p = 0; p <= OUTPUTS / 16; p++)
        first[p] = (uint32_t)(p * TILES);
    for (size_t i = 0; i < OUTPUTS / 16 * TILES * 16; i++)
        index[i] = (uint16_t)(i % (TILES * 16) * (LINES / (TILES * 16)) + i % 7);
    const size_t numbers = 4 / sn_dtype_bytes(r->row->slot->read);
    r->args.tile_sparse = (sn_tile_sparse){
        .x = read_by(r, VECTORS * LINES * LINE_FLOATS * numbers),
        .w = elements(r, r->row->slot->weights, OUTPUTS / 16 * TILES * 256 * numbers),
        .index = index,
        .first = first,
        .start = written_by(r, OUTPUTS),
        .y = written_by(r, VECTORS * OUTPUTS * 16),
        .outputs = OUTPUTS,
        .vectors = VECTORS,
        .x_v = LINES * 64,
        .y_o = 16,
        .y_v = OUTPUTS * 16};
    r->flops = 2.0 * (double)(OUTPUTS / 16 * TILES * 256 * numbers * 16 * VECTORS) * 16;
    r->call = call_sn_tile_sparse;
}
