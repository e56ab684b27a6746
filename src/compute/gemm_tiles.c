/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in bf16 by tiles (kernels/signatures.h, bf16_rows): A is rounded to bf16, B was
 * when it was packed with the weights, or is before anything else; sums are f32. A B of f16 is
 * split in two, and so is A (tiles.h); a B of f32 was split when it was packed, and A is, into two
 * halves of f16, with the factor that undoes their scale behind each row. A is rounded once, for
 * all columns, if there is room for all of it; long ones are rounded part by part. A task is some
 * rows times some chunks of columns. */
#include "compute/gemm_tiles.h"

#include <math.h>
#include <string.h>

#include "compute/packs.h"
#include "compute/split.h"
#include "compute/tiles.h"

enum {
    ROWS = SN_ROWS_GROUP, /* at a time */
    CHUNK = 4,            /* blocks of columns at a time */
    GROUP_SUMS = ROWS * CHUNK * SN_ROWS_TILE,
    NUMBERS = SN_STEP_HALVES,
    FAR_STEPS = 12,
    Y_FAR = 4096 / sizeof(float), /* from row to row of y: all in the same set of the cache */
    SHARED_BYTES = 4 << 20        /* an A up to this size is rounded once for all tasks */
};

unsigned sn_gemm_tiles_pack_id(sn_dtype dtype, uint32_t cpu_flags)
{
    return sn_pack_find(SN_WEIGHTS_PANEL_TILES, dtype,
                        &sn_kernels_get(cpu_flags)->bf16_rows_geometry);
}

int64_t sn_gemm_tiles_floats(int64_t n, int64_t k)
{
    return sn_count(sn_ceil_div(n, SN_ROWS_TILE), sn_max(sn_ceil_div(k, NUMBERS), 1),
                    SN_TILE_FLOATS, 1);
}

bool sn_gemm_tiles_pay(const sn_gemm_desc *d)
{
    enum {
        FEW_ROWS = 12,       /* up to here f32 reads B where it lies */
        LEAST = 16,          /* columns, and numbers of k */
        TURNED = 64,         /* columns, where A has to be turned */
        LEAST_WORK = 1 << 15 /* multiplications of one matrix */
    };
    return d->m > FEW_ROWS && d->n >= (d->trans_a ? TURNED : LEAST) && d->k >= LEAST &&
           sn_count(d->m, d->n, d->k, 1) >= LEAST_WORK;
}

static int64_t panel_bytes(const sn_gemm_plan *p)
{
    return p->tiles.halves ? (int64_t)sn_gemm_halves_panel(p->d.k)
                           : p->tiles.steps * SN_ROWS_WEIGHTS;
}

/* Splitting costs as much for each number of A and of Y as some products do. */
bool sn_gemm_halves_pay(int64_t rows, int64_t n, int64_t k)
{
    enum { FEW_ROWS = 16, EACH = 72, LEAST_WORK = 1 << 21 };
    const int64_t work = sn_count(rows, n, k, 1);
    return sn_count(n, k, 1, 1) >= EACH * (n + k) &&
           (rows < 0 || (rows > FEW_ROWS && work >= LEAST_WORK));
}

bool sn_gemm_tiles_plan(sn_gemm_plan *p, size_t l2_bytes)
{
    enum { LEAST_PIECE = 2 * ROWS, MOST_PIECES = 4 }; /* of the last tasks */
    enum { LONG_PART = 8 * ROWS, LEAST_STEPS = 16, PARTIAL_BYTES = 1 << 20 };
    const sn_gemm_desc *d = &p->d;
    sn_gemm_tiles *t = &p->tiles;
    t->steps = sn_max(sn_ceil_div(d->k, NUMBERS), 1);
    const bool f16 = d->packed && d->b_dtype == SONDE_DTYPE_F16;
    t->f16 = f16 && d->f16 && sn_pack_has_f16_tiles(p->cpu_flags);
    t->split = f16 && !t->f16;
    t->halves = d->packed && d->b_dtype == SONDE_DTYPE_F32;
    const bool two = t->split || t->halves;
    t->kernel_steps = t->steps * (two ? SN_SPLIT_STEPS : 1);
    t->pitch = sn_tiles_row_bytes((t->steps * (two ? 2 : 1) + t->halves) * NUMBERS);
    t->chunks = sn_ceil_div(p->panels, CHUNK);
    const int64_t wanted = p->threads > 1 ? 4 * (int64_t)p->threads : 1;
    const int64_t all = sn_count(p->batches, sn_ceil_div(d->m, ROWS) * ROWS, t->pitch, 1);
    if (all < 0)
        return false;
    t->shared = d->a_rows || all <= SHARED_BYTES;
    /* Weights come once for every part of the rows: of long rows, which the cache cannot hold, some
     * steps are done for all weights, then the next ones. */
    const int64_t cache = sn_max((int64_t)(l2_bytes / 2), 1);
    int64_t rows = sn_max(cache / t->pitch / ROWS, 1) * ROWS;
    const int64_t long_rows = sn_min(sn_ceil_div(d->m, ROWS), LONG_PART / ROWS) * ROWS;
    t->k_parts = 1;
    if (rows < long_rows && t->steps >= 2 * LEAST_STEPS && !t->split) {
        t->k_parts = sn_min(sn_ceil_div(long_rows * t->pitch, cache), t->steps / LEAST_STEPS);
        rows = sn_min(sn_max(cache * t->k_parts / t->pitch / ROWS, 1) * ROWS, long_rows);
    }
    rows = sn_max(sn_min(rows, sn_ceil_div(d->m, ROWS) * ROWS), ROWS); /* there may be none */
    const int64_t weights = p->panels * panel_bytes(p);
    if (sn_cut_rows(t->shared ? 0 : d->m * t->pitch, weights, l2_bytes) &&
        p->batches * sn_ceil_div(d->m, rows) < wanted && d->m > rows / 2)
        rows = sn_max(sn_ceil_div(sn_ceil_div(d->m * p->batches, wanted), ROWS), 2) * ROWS;
    t->rows = sn_max(sn_min(rows, sn_ceil_div(d->m, ROWS) * ROWS), ROWS);
    t->parts = sn_max(sn_ceil_div(d->m, t->rows), 1);
    const int64_t others = p->batches * t->parts;
    t->column_parts =
        others < wanted && t->shared
            ? sn_unit_parts(t->chunks, sn_ceil_div(wanted, sn_max(others, 1)), p->threads)
            : 1;
    t->column_pieces = t->shared ? sn_min(sn_ceil_div(t->chunks, t->column_parts), MOST_PIECES) : 1;
    t->ending =
        sn_ending_of(others * t->column_parts, p->threads,
                     t->column_pieces * sn_max(sn_min(t->rows / LEAST_PIECE, MOST_PIECES), 1));
    const int64_t columns = t->chunks * CHUNK * SN_ROWS_TILE;
    p->tiles_at = sn_carve(&p->workspace, 2 * t->kernel_steps, sizeof(ptrdiff_t));
    p->tiles_start = sn_carve(&p->workspace, columns, sizeof(float));
    p->tiles_sums =
        sn_carve_each(&p->workspace, (size_t)p->threads, 2 * GROUP_SUMS * sizeof(float));
    const int64_t own = sn_count(t->rows, t->pitch, 1, 1);
    const int64_t parts = sn_count(CHUNK, t->kernel_steps, SN_ROWS_WEIGHTS, 1);
    if (own < 0 || parts < 0)
        return false;
    p->tiles_parts = sn_carve_each(&p->workspace, (size_t)p->threads, t->split ? (size_t)parts : 0);
    const int64_t chunk_bytes = t->rows * CHUNK * SN_ROWS_TILE * (int64_t)sizeof(float);
    t->band = sn_max(sn_min(PARTIAL_BYTES / chunk_bytes, t->chunks), 1);
    p->tiles_partial = sn_carve_each(&p->workspace, (size_t)p->threads,
                                     t->k_parts > 1 ? (size_t)(t->band * chunk_bytes) : 0);
    p->tiles_b = sn_carve(
        &p->workspace, d->packed ? 0 : sn_count(d->b_count, sn_gemm_tiles_floats(d->n, d->k), 1, 1),
        sizeof(float));
    if (d->a_rows)
        return true;
    p->tiles_a = t->shared ? sn_carve_each(&p->workspace, 1, (size_t)all)
                           : sn_carve_each(&p->workspace, (size_t)p->threads, (size_t)own);
    return true;
}

/* ------------------------------------------------------------------ a run */
typedef struct tiles_call {
    const sn_gemm_plan *p;
    const sn_gemm_operands *o;
    const uint8_t *b;           /* in tiles */
    const ptrdiff_t *at, *w_at; /* of the steps of x; of B, or NULL */
    const float *start;
    void *workspace;
} tiles_call;

/* n numbers of row `row` of A, or of its column, from number `from` on; `room` has space for them.
 */
static const float *some_of_row(const sn_gemm_desc *d, const float *a, int64_t row, int64_t from,
                                int64_t n, float *room)
{
    if (!d->trans_a)
        return a + row * d->k + from;
    for (int64_t j = 0; j < n; j++)
        room[j] = a[(from + j) * d->m + row];
    return room;
}

/* Rows in two halves of f16, zero behind k, and behind both what undoes their scale. */
static void halve_rows(const sn_gemm_plan *p, const float *a, int64_t first, int64_t n, uint8_t *to)
{
    enum { SOME = 32 * NUMBERS };
    const sn_gemm_desc *d = &p->d;
    const sn_kernels *k = p->k;
    const int64_t low = p->tiles.steps * NUMBERS;
    const size_t behind = (size_t)(low - d->k) * sizeof(uint16_t);
    float room[SOME];
    for (int64_t r = first; r < first + n; r++, to += p->tiles.pitch) {
        uint16_t *y = (uint16_t *)(void *)to;
        float top = 0;
        for (int64_t i = 0; i < d->k; i += SOME) {
            const int64_t m = sn_min(SOME, d->k - i);
            const float *x = some_of_row(d, a, r, i, m, room);
            top = fmaxf(top, k->f32_rowabs(x, (size_t)m));
        }
        const float scale = sn_halves_scale(top, (float *)(void *)(y + 2 * low));
        for (int64_t i = 0; i < d->k; i += SOME) {
            const int64_t m = sn_min(SOME, d->k - i);
            k->f16_halves(y + i, y + low + i, some_of_row(d, a, r, i, m, room), (size_t)m, scale);
        }
        memset(y + d->k, 0, behind);
        memset(y + low + d->k, 0, behind);
    }
}

/* Rows of f16, zero behind k. */
static void round_rows_to_f16(const sn_gemm_plan *p, const float *a, int64_t first, int64_t n,
                              uint8_t *to)
{
    enum { SOME = 8 * NUMBERS };
    const sn_gemm_desc *d = &p->d;
    for (int64_t r = first; r < first + n; r++, to += p->tiles.pitch) {
        uint16_t *y = (uint16_t *)(void *)to;
        memset(y + d->k, 0, (size_t)(p->tiles.steps * NUMBERS - d->k) * sizeof *y);
        if (!d->trans_a)
            p->k->f16_store(y, a + r * d->k, (size_t)d->k);
        for (int64_t i = 0; i < d->k && d->trans_a; i += SOME) {
            float column[SOME];
            const int64_t m = sn_min(SOME, d->k - i);
            for (int64_t j = 0; j < m; j++)
                column[j] = a[(i + j) * d->m + r];
            p->k->f16_store(y + i, column, (size_t)m);
        }
    }
}

/* Rows first … first+n-1 of matrix `ia` of A, in bf16, zero behind k; low parts follow high ones.
 */
static void round_rows(const sn_gemm_plan *p, const float *a, int64_t ia, int64_t first, int64_t n,
                       uint8_t *to)
{
    enum { SOME = 8 * NUMBERS };
    const sn_gemm_desc *d = &p->d;
    const int64_t low = p->tiles.steps * SN_ROWS_STEP;
    a += ia * d->m * d->k;
    if (p->tiles.halves) {
        halve_rows(p, a, first, n, to);
        return;
    }
    if (p->tiles.f16) {
        round_rows_to_f16(p, a, first, n, to);
        return;
    }
    if (!d->trans_a && !p->tiles.split) {
        const sn_bf16_round t = {.x = a + first * d->k,
                                 .y = (uint16_t *)(void *)to,
                                 .rows = (size_t)n,
                                 .n = (size_t)d->k,
                                 .x_row = d->k,
                                 .y_row = (ptrdiff_t)(p->tiles.pitch / (int64_t)sizeof(uint16_t))};
        p->k->bf16_round(&t);
        return;
    }
    if (!p->tiles.split && p->k->f32_gemm_geometry.block == SN_ROWS_TILE) {
        sn_tiles_round_turned(p->k, to, (ptrdiff_t)p->tiles.pitch, a + first, d->m, n, d->k);
        return;
    }
    for (int64_t r = first; r < first + n; r++, to += p->tiles.pitch) {
        uint8_t *rest = p->tiles.split ? to + low : NULL;
        if (!d->trans_a) {
            sn_tiles_round(p->k, to, rest, a + r * d->k, (size_t)d->k);
            continue;
        }
        for (int64_t i = 0; i < d->k; i += SOME) {
            float column[SOME];
            const int64_t m = sn_min(SOME, d->k - i), at = i * (int64_t)sizeof(uint16_t);
            for (int64_t j = 0; j < m; j++)
                column[j] = a[(i + j) * d->m + r];
            sn_tiles_round(p->k, to + at, rest ? rest + at : NULL, column, (size_t)m);
        }
    }
}

static void round_task(void *arg, size_t index, int worker)
{
    const tiles_call *c = arg;
    const sn_gemm_plan *p = c->p;
    const int64_t strips = sn_ceil_div(p->d.m, ROWS);
    const int64_t batch = (int64_t)index / strips, first = (int64_t)index % strips * ROWS;
    const int64_t ia = sn_batch_at(p->d.batch, p->d.a_batch, p->d.batch_rank, batch);
    (void)worker;
    uint8_t *to = sn_pieces_at(c->workspace, p->tiles_a, 0);
    round_rows(p, (const float *)c->o->a, ia, first, sn_min(ROWS, p->d.m - first),
               to + (batch * strips * ROWS + first) * p->tiles.pitch);
}

/* alpha, C and Z of n columns of a row, where C is not just the row that sums begin with. */
static void add_row(const tiles_call *c, float *y, int64_t batch, int64_t row, int64_t col,
                    int64_t n)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    if (p->raw)
        for (int64_t j = 0; j < n; j++) {
            float v = d->alpha * y[j];
            if (c->o->c)
                v = v + d->beta * c->o->c[row * d->c_m + (col + j) * d->c_n];
            y[j] = v;
        }
    const float *more = c->o->z ? c->o->z : p->add ? c->o->c : NULL;
    if (more)
        p->k->f32_add(y, y, more + (batch * d->m + row) * d->n + col, (size_t)n, SN_BINARY_VV);
}

/* Some rows of a batch times a chunk of columns, n of them from `col` on. Sums that have to be
 * finished are, a few rows at a time, beside the products that follow: of group `group` of rows
 * those from row `done` of it on. */
typedef struct tiles_chunk {
    const tiles_call *c;
    int64_t batch, row, rows, col, n;
    float *sums; /* of two groups */
    int64_t group, done, some;
    const uint8_t *x; /* the rows */
    float *partial;   /* sums of the steps before, and of these, row by row; or NULL */
    int64_t partial_row;
    bool begins, ends;                /* at the first step, with the last */
    float back[CHUNK * SN_ROWS_TILE]; /* halves: what undoes the scale of each column */
} tiles_chunk;

/* Up to `most` rows of the group that waits. */
static void finish_some(tiles_chunk *k, int64_t most)
{
    enum { SUMS_ROW = CHUNK * SN_ROWS_TILE };
    const tiles_call *c = k->c;
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t first = k->group * ROWS + k->done;
    const int64_t n = sn_min(most, sn_min(ROWS - k->done, k->rows - first));
    if (n <= 0)
        return;
    float *sums = k->sums + (k->group & 1) * GROUP_SUMS + k->done * SUMS_ROW;
    float *y = c->o->y + (k->batch * d->m + k->row + first) * d->n + k->col;
    k->done += n;
    float *partial = k->partial ? k->partial + first * k->partial_row : NULL;
    for (int64_t r = 0; r < n && !k->begins; r++, partial += k->partial_row)
        p->k->f32_add(sums + r * SUMS_ROW, sums + r * SUMS_ROW, partial, SUMS_ROW, SN_BINARY_VV);
    if (!k->ends) {
        partial = k->partial + first * k->partial_row;
        for (int64_t r = 0; r < n; r++, partial += k->partial_row)
            memcpy(partial, sums + r * SUMS_ROW, SUMS_ROW * sizeof *sums);
        return;
    }
    const bool adds = p->raw || p->add || c->o->z, direct = !adds && d->act.kind == SN_ACT_NONE;
    if (p->tiles.halves) {
        const int64_t pitch = p->tiles.pitch, tail = 2 * p->tiles.steps * SN_ROWS_STEP;
        const uint8_t *by_row = k->x + first * pitch + tail;
        p->k->f32_rescale(&(sn_f32_rescale){.y = direct ? y : sums,
                                            .x = sums,
                                            .by_row = (const float *)(const void *)by_row,
                                            .by = k->back,
                                            .start = c->start + k->col,
                                            .rows = (size_t)n,
                                            .n = (size_t)(direct ? k->n : SUMS_ROW),
                                            .y_row = direct ? d->n : SUMS_ROW,
                                            .x_row = SUMS_ROW,
                                            .row = pitch / (int64_t)sizeof(float)});
        if (direct)
            return;
    }
    if (adds)
        for (int64_t r = 0; r < n; r++)
            add_row(c, sums + r * SUMS_ROW, k->batch, k->row + first + r, k->col, k->n);
    sn_act_apply(&d->act, p->k, sums, (size_t)(n * SUMS_ROW));
    for (int64_t r = 0; r < n; r++)
        memcpy(y + r * d->n, sums + r * SUMS_ROW, (size_t)k->n * sizeof *y);
}

/* `groups` are there: the last one waits from now on, if it is new, and the others are done. */
static void finish_beside(void *arg, size_t groups)
{
    tiles_chunk *k = arg;
    if (k->group + 1 < (int64_t)groups) {
        finish_some(k, ROWS);
        k->group++;
        k->done = 0;
    }
    finish_some(k, k->some);
}

/* Rows `row` … row+rows-1 of a batch, which lie at x, times chunk `chunk`, whose weights may have
 * been split: range `part` of the steps. */
typedef struct tiles_work {
    int64_t batch, ib, row, rows;
    const uint8_t *x, *split;
    float *sums, *partial; /* partial: of a band of chunks, from column band_col on */
    int64_t band_col;
} tiles_work;

static void compute(const tiles_call *c, const tiles_work *work, int64_t chunk, int64_t part)
{
    const int64_t batch = work->batch, row = work->row, rows = work->rows;
    const uint8_t *x = work->x, *split = work->split;
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const sn_gemm_tiles *t = &p->tiles;
    const int64_t q = chunk * CHUNK, blocks = sn_min(CHUNK, p->panels - q);
    const int64_t col = q * SN_ROWS_TILE, n = sn_min(blocks * SN_ROWS_TILE, d->n - col);
    const int64_t panel = panel_bytes(p);
    static const float zeros[CHUNK * SN_ROWS_TILE];
    const bool whole = n == blocks * SN_ROWS_TILE && rows % SN_ROWS_TILE == 0;
    const bool adds = p->raw || p->add || c->o->z;
    /* Sums that go on from y, some steps at a time, where its lines push each other out. */
    const bool far = rows > SN_AGAIN_ROWS && d->n % Y_FAR == 0 && t->kernel_steps >= FAR_STEPS;
    const bool direct = whole && !far && !adds && t->k_parts == 1 && !t->halves && !p->post &&
                        p->lo == -INFINITY && p->hi == INFINITY;
    const uint8_t *w = c->b + (work->ib * p->panels + q) * panel;
    const int64_t each = t->kernel_steps / t->steps;
    const int64_t from = (int64_t)sn_split((size_t)t->steps, (size_t)t->k_parts, (size_t)part);
    const int64_t to = (int64_t)sn_split((size_t)t->steps, (size_t)t->k_parts, (size_t)part + 1);
    const int64_t first = t->halves ? 0 : from * each * SN_ROWS_WEIGHTS; /* else w_at says it */
    tiles_chunk k = {.c = c,
                     .batch = batch,
                     .row = row,
                     .rows = rows,
                     .col = col,
                     .n = n,
                     .sums = work->sums,
                     .group = -1,
                     .done = ROWS,
                     .x = x,
                     .partial = work->partial ? work->partial + col - work->band_col : NULL,
                     .partial_row = t->band * CHUNK * SN_ROWS_TILE,
                     .begins = part == 0,
                     .ends = part + 1 == t->k_parts};
    for (int64_t i = 0; i < blocks && t->halves; i++)
        memcpy(k.back + i * SN_ROWS_TILE, w + (i + 1) * panel - SN_ROWS_TILE * sizeof(float),
               SN_ROWS_TILE * sizeof(float));
    sn_tile_rows tiles = {.x = x,
                          .at = c->at + from * each,
                          .w_at = c->w_at ? c->w_at + from * each : NULL,
                          .w = (split ? split : w) + first,
                          .start = t->halves || part > 0 ? zeros : c->start + col,
                          .rows = (size_t)rows,
                          .blocks = (size_t)blocks,
                          .steps = (size_t)((to - from) * each),
                          .x_row = (ptrdiff_t)t->pitch,
                          .w_q = (ptrdiff_t)(split ? t->kernel_steps * SN_ROWS_WEIGHTS : panel),
                          .y_q = SN_ROWS_TILE,
                          .again = rows > SN_AGAIN_ROWS};
    if (direct) {
        tiles.y = c->o->y + (batch * d->m + row) * d->n + col;
        tiles.y_row = d->n;
    } else {
        tiles.y = work->sums;
        tiles.y_row = CHUNK * SN_ROWS_TILE;
        tiles.turn = GROUP_SUMS;
        tiles.beside = finish_beside;
        tiles.beside_arg = &k;
        k.some = sn_beside_rows(ROWS, sn_tile_rows_calls(&tiles));
    }
    const int64_t next = sn_min(CHUNK, p->panels - q - blocks);
    if (next > 0) { /* the next chunk's weights come with these rows */
        const int64_t step = t->halves ? 2 * SN_ROWS_WEIGHTS : panel / t->steps;
        tiles.ahead = w + blocks * panel + from * step;
        tiles.ahead_bytes = (size_t)((to - from) * step);
        tiles.ahead_more = (size_t)(next - 1);
        tiles.ahead_q = (ptrdiff_t)panel;
    }
    (t->f16 || t->halves ? p->k->f16_rows : p->k->bf16_rows)(&tiles);
    if (!direct)
        finish_some(&k, ROWS);
}

/* Rows first … first+rows-1 of a batch, in bf16. */
static const uint8_t *rounded(const tiles_call *c, int64_t batch, int64_t first, int64_t rows,
                              int worker)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
    if (d->a_rows)
        return (const uint8_t *)c->o->a + (ia * d->m + first) * p->tiles.pitch;
    uint8_t *x = sn_pieces_at(c->workspace, p->tiles_a, p->tiles.shared ? 0 : (size_t)worker);
    if (p->tiles.shared)
        return x + (batch * sn_ceil_div(d->m, ROWS) * ROWS + first) * p->tiles.pitch;
    round_rows(p, c->o->a, ia, first, rows, x);
    return x;
}

static void task(void *arg, size_t index, int worker)
{
    const tiles_call *c = arg;
    const sn_gemm_plan *p = c->p;
    const sn_gemm_tiles *t = &p->tiles;
    const size_t column_parts = (size_t)t->column_parts, parts = (size_t)t->parts;
    size_t piece, pieces;
    index = sn_ending_task(&t->ending, index, &piece, &pieces);
    const size_t cp = index % column_parts, place = index / column_parts;
    const size_t columns = pieces > 1 ? (size_t)t->column_pieces : 1; /* pieces of them */
    const size_t chunk = sn_split((size_t)t->chunks, column_parts, cp);
    const size_t n = sn_split((size_t)t->chunks, column_parts, cp + 1) - chunk;
    const size_t c0 = chunk + sn_split(n, columns, piece % columns);
    const size_t c1 = chunk + sn_split(n, columns, piece % columns + 1);
    const int64_t batch = (int64_t)(place / parts), from = (int64_t)(place % parts) * t->rows;
    const int64_t all = sn_min(t->rows, p->d.m - from);
    const size_t groups = (size_t)sn_ceil_div(all, ROWS), rp = piece / columns;
    const int64_t first = from + (int64_t)sn_split(groups, pieces / columns, rp) * ROWS;
    const int64_t end = from + (int64_t)sn_split(groups, pieces / columns, rp + 1) * ROWS;
    const int64_t rows = sn_min(end, from + all) - first;
    if (rows <= 0)
        return;
    const sn_gemm_desc *d = &p->d;
    const size_t own = (size_t)worker;
    uint8_t *split = t->split ? sn_pieces_at(c->workspace, p->tiles_parts, own) : NULL;
    tiles_work work = {.batch = batch,
                       .ib = sn_batch_at(d->batch, d->b_batch, d->batch_rank, batch),
                       .row = first,
                       .rows = rows,
                       .x = rounded(c, batch, first, rows, worker),
                       .split = split,
                       .sums = sn_pieces_at(c->workspace, p->tiles_sums, own),
                       .partial = t->k_parts > 1 ? sn_pieces_at(c->workspace, p->tiles_partial, own)
                                                 : NULL};
    for (size_t band = c0; band < c1; band += (size_t)t->band) {
        const size_t stop = band + (size_t)t->band < c1 ? band + (size_t)t->band : c1;
        work.band_col = (int64_t)band * CHUNK * SN_ROWS_TILE;
        for (int64_t part = 0; part < t->k_parts; part++)
            for (size_t k = band; k < stop; k++) {
                const int64_t q = (int64_t)k * CHUNK, blocks = sn_min(CHUNK, p->panels - q);
                const int64_t weights = (work.ib * p->panels + q) * t->steps * SN_ROWS_WEIGHTS;
                if (split)
                    sn_tiles_split_weights(p->k, split, c->b + weights, blocks * t->steps);
                compute(c, &work, (int64_t)k, part);
            }
    }
}

/* ------------------------------------------------------------------ B that was not packed */
enum { UNIT_PANELS = 4 }; /* neighbours, so that a row is read in pieces of several cache lines */

static void pack_task(void *arg, size_t index, int worker)
{
    const tiles_call *c = arg;
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t units = sn_ceil_div(p->panels, UNIT_PANELS);
    const int64_t matrix = (int64_t)index / units, q = (int64_t)index % units * UNIT_PANELS;
    const int64_t col = q * SN_ROWS_TILE, n = sn_min(UNIT_PANELS * SN_ROWS_TILE, d->n - col);
    const float *b = (const float *)c->o->b + matrix * d->n * d->k;
    float *to = (float *)sn_piece_at(c->workspace, p->tiles_b) +
                (matrix * p->panels + q) * p->tiles.steps * SN_TILE_FLOATS;
    (void)worker;
    if (d->trans_b)
        sn_tiles_pack_turned(p->k, to, b + col * d->k, d->k, n, d->k);
    else
        sn_tiles_pack_plain(p->k, to, b + col, d->n, n, d->k);
}

void sn_gemm_tiles_run(const sn_gemm_plan *p, const sn_gemm_operands *o, void *workspace,
                       sn_pool *pool)
{
    const sn_gemm_desc *d = &p->d;
    const sn_gemm_tiles *t = &p->tiles;
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* workspace is planned per worker */
    ptrdiff_t *at = sn_piece_at(workspace, p->tiles_at);
    float *start = sn_piece_at(workspace, p->tiles_start);
    const int64_t each = t->kernel_steps / t->steps;
    for (int64_t s = 0; s < t->kernel_steps; s++)
        at[s] = (s / each + (s % each == SN_SPLIT_STEPS - 1 ? t->steps : 0)) * SN_ROWS_STEP;
    ptrdiff_t *w_at = at + t->kernel_steps;
    for (int64_t s = 0; s < t->kernel_steps && t->halves; s++) {
        at[s] = (s / each + (sn_halves_low_x(s) ? t->steps : 0)) * SN_ROWS_STEP;
        w_at[s] = (s / each * 2 + sn_halves_low_w(s)) * SN_ROWS_WEIGHTS;
    }
    memset(start, 0, (size_t)(t->chunks * CHUNK * SN_ROWS_TILE) * sizeof *start);
    if (p->bias)
        memcpy(start, o->c, (size_t)d->n * sizeof *start);
    tiles_call c = {p, o, o->b, at, t->halves ? w_at : NULL, start, workspace};
    if (!d->packed) {
        c.b = sn_piece_at(workspace, p->tiles_b);
        sn_pool_run(pool, (size_t)(d->b_count * sn_ceil_div(p->panels, UNIT_PANELS)), pack_task,
                    &c);
    }
    if (t->shared && !d->a_rows)
        sn_pool_run(pool, (size_t)(p->batches * sn_ceil_div(d->m, ROWS)), round_task, &c);
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    sn_pool_run_hooked(pool, sn_ending_count(&t->ending), task, &c, &hook);
}
