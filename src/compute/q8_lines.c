/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by lines: rows of x at equal distances (lines.h) times tiles of weights. A task
 * is a part of the result, some lines, times a range of its columns. */
#include "compute/q8_ways.h"

#include <string.h>

#include "compute/tiles.h"

enum { ROWS = SN_ROWS_GROUP, BLOCKS = 4 }; /* of the sums at a time */

typedef struct q8_strip {
    sn_q8_call *c;
    int64_t image;
    sn_lines_part part;
    const uint8_t *x; /* row 0 */
    int32_t *sums;
    int64_t *wide;
    float *factors;
    const uint8_t **taps;
} q8_strip;

/* Where row v reads every tap. */
static void point_at_taps(const q8_strip *t, int64_t v)
{
    const sn_q8_plan *p = t->c->p;
    const sn_lines *l = &p->lines;
    const int64_t across = l->kernel[2];
    for (int64_t k = 0; k < p->w.taps; k++) {
        const int64_t run = l->merged ? k / across : k;
        const int64_t pixel = l->merged ? k % across : 0;
        t->taps[k] = t->x + v * l->row + sn_lines_run_at(l, run) + pixel * l->pixel;
    }
}

/* Sums of rows v … v+n-1 to where they belong; rows between lines are no results. */
static void store_rows(const q8_strip *t, sn_q8_sums *s, int64_t v, int64_t n)
{
    const sn_lines *l = &t->c->p->lines;
    int32_t *sums = s->sums;
    const int64_t *wide = s->wide;
    for (int64_t done = 0; done < n;) {
        int64_t at;
        const int64_t there = sn_lines_results(l, &t->part, v + done, n - done, &at);
        if (there == 0) {
            done += at;
            continue;
        }
        s->row = at;
        s->rows = t->c->w_zeros ? 1 : there;
        s->sums = sums + done * s->sums_row;
        s->wide = wide ? wide + done * s->sums_row : NULL;
        if (t->c->w_zeros)
            point_at_taps(t, v + done);
        sn_q8_finish(t->c, s);
        done += s->rows;
    }
}

/* A chunk of columns: of all groups, or of a matrix. */
typedef struct q8_unit {
    int64_t group, q, blocks; /* its first block, of the group; how many */
    const int8_t *weights;
    int64_t at; /* its first block, of all */
} q8_unit;

static q8_unit unit_of(const q8_strip *t, int64_t index)
{
    const sn_q8_plan *p = t->c->p;
    const sn_q8_weights *w = &p->w;
    q8_unit u = {.group = p->d.product ? sn_q8_matrix_of(&p->d, p->d.w_batch, t->image)
                                       : index / p->chunks,
                 .q = index % p->chunks * p->chunk};
    u.blocks = sn_min(p->chunk, w->blocks - u.q);
    u.at = u.group * w->blocks + u.q;
    u.weights = (const int8_t *)t->c->weights + u.at * w->block_bytes;
    return u;
}

/* All steps in parts that int32 holds. */
static void sum_parts(const q8_strip *t, sn_tile_rows tiles)
{
    enum { STEPS = SN_Q8_PART / SN_ROWS_STEP };
    const sn_q8_plan *p = t->c->p;
    const int64_t columns = (int64_t)tiles.blocks * SN_ROWS_TILE;
    for (int64_t from = 0; from < p->steps; from += STEPS) {
        tiles.steps = (size_t)sn_min(STEPS, p->steps - from);
        p->by_rows(&tiles);
        sn_q8_wide_join(t->wide, t->sums, tiles.start, tiles.y_row, (int64_t)tiles.rows, columns,
                        from == 0);
        tiles.at += tiles.steps;
        tiles.w = (const int8_t *)tiles.w + tiles.steps * SN_ROWS_STEP * p->w.block;
    }
}

/* Up to ROWS rows, from row v on, times a unit. On the way, their share of the next unit's weights
 * comes into the cache. */
static void compute(const q8_strip *t, int64_t v, const q8_unit *u, const q8_unit *next)
{
    const sn_q8_call *c = t->c;
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    const int64_t rows = sn_min(ROWS, t->part.rows - v), first = u->q * w->block;
    const int64_t x_at = p->d.product ? 0 : u->group * w->in;
    sn_tile_rows tiles = {.x = t->x + v * p->lines.row + x_at,
                          .at = sn_piece_at(c->a->workspace, p->at),
                          .w = u->weights,
                          .start = c->start + u->at * w->block,
                          .y = t->sums,
                          .rows = (size_t)rows,
                          .blocks = (size_t)u->blocks,
                          .steps = (size_t)p->steps,
                          .x_row = (ptrdiff_t)p->lines.row,
                          .w_q = (ptrdiff_t)w->block_bytes,
                          .y_row = BLOCKS * SN_ROWS_TILE,
                          .y_q = SN_ROWS_TILE,
                          .again = t->part.rows > SN_AGAIN_ROWS};
    if (next) {
        const int64_t share =
            sn_ceil_div(next->blocks * w->block_bytes, sn_ceil_div(t->part.rows, ROWS));
        tiles.ahead = next->weights + v / ROWS * share;
        tiles.ahead_bytes = (size_t)share;
    }
    const bool parts = c->wide && p->parted;
    if (parts)
        sum_parts(t, tiles);
    else
        p->by_rows(&tiles);
    sn_q8_sums s = {.image = t->image,
                    .group = u->group,
                    .first = first,
                    .n = sn_min(w->out - first, u->blocks * w->block),
                    .sums = t->sums,
                    .sums_row = tiles.y_row,
                    .wide = parts ? t->wide : NULL,
                    .factors = t->factors,
                    .taps = t->taps,
                    .taps_step = 1,
                    .x_at = x_at};
    store_rows(t, &s, v, rows);
}

static void task(void *arg, size_t index, int worker)
{
    sn_q8_call *c = arg;
    const sn_q8_plan *p = c->p;
    const sn_q8_desc *d = &p->d;
    const size_t chunk_parts = (size_t)p->chunk_parts, parts = (size_t)sn_lines_parts(&p->lines);
    const size_t units = (size_t)((d->product ? 1 : p->w.groups) * p->chunks);
    const size_t cp = index % chunk_parts, place = index / chunk_parts;
    const size_t u0 = sn_split(units, chunk_parts, cp), u1 = sn_split(units, chunk_parts, cp + 1);
    void *memory = c->a->workspace;
    q8_strip t = {.c = c,
                  .image = (int64_t)(place / parts),
                  .part = sn_lines_part_of(&p->lines, (int64_t)(place % parts)),
                  .sums = sn_pieces_at(memory, p->sums, (size_t)worker),
                  .wide = sn_pieces_at(memory, p->wide, (size_t)worker),
                  .factors = sn_pieces_at(memory, p->factors, (size_t)worker),
                  .taps = sn_pieces_at(memory, p->pointers, (size_t)worker)};
    const int64_t matrix = d->product ? sn_q8_matrix_of(d, d->x_batch, t.image) : t.image;
    const int64_t image_bytes = p->in_pixels * d->x_pitch;
    const sn_lines_image image = {.pixels = (const uint8_t *)c->a->x + matrix * image_bytes,
                                  .left = (p->x_images - matrix) * image_bytes,
                                  .outside = c->outside};
    uint8_t *copy = sn_pieces_at(memory, p->copies, (size_t)worker);
    sn_lines_held *held = sn_pieces_at(memory, p->held, (size_t)worker);
    const bool there = sn_lines_holds(held, matrix, (int64_t)(place % parts), 0);
    t.x = there && !p->lines.in_place ? copy : sn_lines_prepare(&p->lines, &t.part, &image, copy);
    q8_unit next = unit_of(&t, (int64_t)u0);
    for (size_t i = u0; i < u1; i++) {
        const q8_unit u = next;
        if (i + 1 < u1)
            next = unit_of(&t, (int64_t)i + 1);
        for (int64_t v = 0; v < t.part.rows && !sn_q8_cancelled(c); v += ROWS)
            compute(&t, v, &u, i + 1 < u1 ? &next : NULL);
    }
}

void sn_q8_by_lines(sn_q8_call *c, sn_pool *pool)
{
    const sn_q8_plan *p = c->p;
    ptrdiff_t *at = sn_piece_at(c->a->workspace, p->at);
    const int64_t each = p->steps / p->lines.runs;
    for (int64_t s = 0; s < p->steps; s++)
        at[s] = sn_lines_run_at(&p->lines, s / each) + s % each * SN_ROWS_STEP;
    for (int i = 0; i < p->threads; i++) {
        sn_lines_held *held = sn_pieces_at(c->a->workspace, p->held, (size_t)i);
        *held = (sn_lines_held){.part = -1};
    }
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    const int64_t tasks = sn_max(p->d.conv.n, 0) * sn_lines_parts(&p->lines) * p->chunk_parts;
    sn_pool_run_hooked(pool, (size_t)tasks, task, c, &hook);
}
