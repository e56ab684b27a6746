/* SPDX-License-Identifier: Apache-2.0 */
/* Driving matrix products whose weights are sparse, in blocks of four columns at one k.
 *
 * A is turned, so that vectors run over its rows: [k][block] for every `block` of them, some of
 * which, a group, stay in the second-level cache while all columns pass over them. The kernel
 * leaves sums as [column][block], which is turned back into rows of Y a chunk of columns at a time.
 * With a handful of rows neither is worth it, and a vector is the four columns of a block.
 *
 * Every sum is made in ascending order of k, however the work is cut. */
#include "compute/gemm_sparse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/gemm_finish.h"
#include "compute/slot_arithmetic.h"
#include "compute/sparse.h"
#include "compute/split.h"
#include "compute/tiles.h"

enum {
    CHUNK = 64, /* columns, a multiple of a panel's */
    TASK_FLOPS = 500000,
    TASKS_PER_THREAD = 4,
    TILE_VECTORS = 4, /* that a tile of weights meets */
    START_CYCLES = 1500,
};

/* ------------------------------------------------------------------ plan */
/* Cycles, as measured with AVX-512 and AMX: others are slower in everything alike. Dense weights
 * that are large come from beyond the second-level cache, which takes longest where rows are few;
 * others may still be there from the run before. */
static double dense_cycles(double rows, double n, double k, bool tiles)
{
    const double products = rows * n * k / (tiles ? 230 : 31);
    const double bytes = n * k * (tiles ? 2 : 4);
    const double far = tiles ? 0.11 : 0.3, near = tiles ? 0.04 : 0.085;
    const double weights = (bytes > (double)SN_SPARSE_FAR_BYTES ? far : near) * n * k;
    return products > weights ? products : weights;
}

static double sparse_cycles(double rows, double n, double k, double entries, bool single)
{
    if (rows <= (double)SN_SPARSE_ROWS)
        return (double)START_CYCLES + entries * (single ? 1.3 + rows : 1 + 0.5 * rows);
    const double vectors = ceil(rows / 16);
    const double turned = 0.5 * rows * k + 0.4 * rows * n;
    const double block = vectors > 1 ? 2.7 * vectors : 3.4;
    const double entry = single ? 1 + 1.5 * vectors : block;
    return (double)START_CYCLES + turned + entry * entries;
}

/* Of pairs of k × 16 columns. */
static double sparse_tiles_cycles(double rows, double n, double k, double entries)
{
    const double panels = ceil(n / (double)SN_ROWS_TILE),
                 tiles = entries / (double)SN_ROWS_TILE + panels / 2;
    const double weights = 4 * entries; /* they come from far, too */
    const double work = ceil(rows / (double)SN_ROWS_TILE) * (70 * tiles + 40 * panels);
    return (double)START_CYCLES + (work > weights ? work : weights) + rows * (0.25 * k + 0.35 * n);
}

bool sn_gemm_sparse_pays(const sn_gemm_sparse_case *c)
{
    static const int64_t usual[] = {1, 8, 128};
    const double margin = c->tiles ? 0.85 : 0.95, n = (double)c->n, k = (double)c->k,
                 entries = (double)c->entries;
    if (c->rows == 0 || c->n <= 0 || c->k <= 0)
        return false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const double rows = (double)(c->rows > 0 ? c->rows : usual[i]);
        const double cycles = c->tiles ? sparse_tiles_cycles(rows, n, k, entries)
                                       : sparse_cycles(rows, n, k, entries, c->single);
        if (cycles > margin * dense_cycles(rows, n, k, c->dense_tiles))
            return false;
    }
    return true;
}

static const char *isa_of(const char *kernel)
{
    const char *isa = strrchr(kernel, '_');
    return isa ? isa + 1 : "ref";
}

/* Groups of rows, as even as they can be, that fit the cache; then parts of the columns where these
 * are too few for the threads. */
static void plan_groups(sn_gemm_plan *p, size_t l2_bytes)
{
    const sn_gemm_desc *d = &p->d;
    sn_gemm_sparse *s = &p->sparse;
    const sn_geometry *g = &p->k->f32_sparse4_geometry;
    const int64_t all = sn_ceil_div(d->m, p->block);
    const int64_t vector_bytes = s->depth * p->block * (int64_t)sizeof(float);
    const int64_t fit = sn_max((int64_t)(l2_bytes / 4 * 3) / vector_bytes, 1);
    const int64_t most = sn_min(s->tiles ? TILE_VECTORS : g->pixels[d->sparse == 1], fit);
    s->groups = sn_max(sn_ceil_div(all, most), 1);
    s->vectors = sn_ceil_div(all, s->groups);
    const int64_t want =
        sn_task_count((int64_t)(p->flops / TASK_FLOPS) + 1, p->threads, TASKS_PER_THREAD);
    const int64_t by_rows = sn_max(p->batches * s->groups, 1);
    s->column_parts = p->threads == 1 ? 1 : sn_min(s->chunks, sn_ceil_div(want, by_rows));
}

bool sn_gemm_sparse_plan(sn_gemm_plan *p, size_t l2_bytes)
{
    const sn_gemm_desc *d = &p->d;
    sn_gemm_sparse *s = &p->sparse;
    s->tiles = d->sparse == SN_ROWS_TILE;
    p->block = s->tiles ? SN_ROWS_TILE : p->k->f32_sparse4_geometry.block;
    s->depth = s->tiles ? sn_ceil_div(d->k, SN_STEP_HALVES) * SN_ROWS_TILE + 1 : sn_max(d->k, 1);
    const uint64_t each = s->tiles ? 2 * SN_ROWS_TILE : d->sparse;
    p->flops = 2 * (uint64_t)p->batches * (uint64_t)d->m * (uint64_t)d->entries * each;
    s->by_rows = !s->tiles && d->m <= SN_SPARSE_ROWS;
    s->chunks = sn_ceil_div(d->n, CHUNK);
    plan_groups(p, l2_bytes);
    p->items = (size_t)(p->batches * s->groups * s->column_parts);
    if (s->tiles) {
        p->arithmetic = SN_SLOT_ARITHMETIC(bf16_sparse16);
        snprintf(p->name, sizeof p->name, "bf16_gemm_sparse16x4_%s",
                 isa_of(p->k->bf16_sparse16_name));
    } else {
        snprintf(p->name, sizeof p->name, "f32_gemm_sparse%ux1_%s", d->sparse,
                 isa_of(s->by_rows ? p->k->f32_sparse4_rows_name : p->k->f32_sparse4_name));
    }
    if (s->by_rows)
        return true;
    s->shared = s->column_parts > 1;
    const int64_t vector = sn_count(s->depth, p->block, sizeof(float), 1);
    const int64_t sums = CHUNK * p->block * (int64_t)sizeof(float);
    if (s->shared)
        s->turned_all =
            sn_carve(&p->workspace, sn_count(p->batches, s->groups, s->vectors, 1), (size_t)vector);
    else
        s->turned = sn_carve_each(&p->workspace, (size_t)p->threads,
                                  (size_t)sn_count(s->vectors, vector, 1, 1));
    /* One more: where rows of a vector lie before something is added. */
    s->sums = sn_carve_each(&p->workspace, (size_t)p->threads, (size_t)((s->vectors + 1) * sums));
    return vector > 0;
}

/* ------------------------------------------------------------------ run */
typedef struct sparse_call {
    const sn_gemm_plan *p;
    const sn_gemm_operands *o;
    sn_sparse_view b;
    void *workspace;
} sparse_call;

/* Columns col … col+n-1 of some rows of a batch. */
typedef struct piece {
    int64_t batch, row, rows, col, n;
} piece;

static int64_t out_at(const sn_gemm_plan *p, const piece *t)
{
    return (t->batch * p->d.m + t->row) * p->d.n + t->col;
}

/* What is added to a piece as it leaves, or NULL; rows are as far apart as those of y. */
static const float *addend_of(const sparse_call *c, const piece *t)
{
    const sn_gemm_desc *d = &c->p->d;
    if (!c->p->add)
        return NULL;
    return c->o->z ? c->o->z + out_at(c->p, t) : c->o->c + t->row * d->c_m + t->col;
}

static void finish(const sparse_call *c, const piece *t)
{
    const sn_gemm_desc *d = &c->p->d;
    const int64_t out = out_at(c->p, t);
    if (c->p->post)
        sn_gemm_finish(c->p, c->o->c ? c->o->c + t->row * d->c_m + t->col * d->c_n : NULL,
                       c->o->z ? c->o->z + out : NULL, c->o->y + out, t->rows, t->n);
}

/* A row of A: number k of it is x[k * step]. */
typedef struct row_of_a {
    const float *x;
    ptrdiff_t step;
} row_of_a;

static row_of_a row_at(const sparse_call *c, int64_t batch, int64_t row)
{
    const sn_gemm_desc *d = &c->p->d;
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
    const float *a = (const float *)c->o->a + ia * d->m * d->k;
    return d->trans_a ? (row_of_a){a + row, d->m} : (row_of_a){a + row * d->k, 1};
}

/* Numbers from … to-1 of a row that are not finite. */
static int64_t count_bad(row_of_a a, int64_t from, int64_t to)
{
    int64_t bad = 0;
    for (int64_t k = from; k < to; k++)
        bad += !isfinite(a.x[k * a.step]);
    return bad;
}

/* Of one row: k whose x is not finite count for all columns, as 0 · x is NaN then; those that have
 * no entry for it are NaN. */
static void spoil_row(const sparse_call *c, const piece *t)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t panel = d->sparse;
    const int64_t each = p->sparse.tiles ? SN_ROWS_TILE : 1, ks = p->sparse.tiles ? 2 : 1;
    const row_of_a a = row_at(c, t->batch, t->row);
    const int64_t bad = count_bad(a, 0, d->k);
    float *y = c->o->y + out_at(p, t);
    for (int64_t j = 0; j < t->n && bad; j += panel) {
        const uint32_t *first = c->b.first + (t->col + j) / panel;
        int64_t met = 0;
        for (int64_t e = first[0] * each; e < first[1] * each; e++)
            met += count_bad(a, c->b.index[e] * ks, sn_min((c->b.index[e] + 1) * ks, d->k));
        for (int64_t i = j; i < sn_min(j + panel, t->n) && met < bad; i++)
            y[i] = NAN;
    }
}

static void by_rows(const sparse_call *c, const piece *t)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, t->batch);
    const float *a = (const float *)c->o->a + ia * d->m * d->k;
    const float *add = addend_of(c, t);
    const int64_t out = out_at(p, t);
    float *y = c->o->y + out, sums[SN_SPARSE_ROWS * CHUNK];
    const sn_f32_sparse_rows tile = {.x = a,
                                     .w = c->b.w,
                                     .index = c->b.index,
                                     .first = c->b.first + t->col / d->sparse,
                                     .start = p->bias ? c->o->c + t->col : NULL,
                                     .y = add ? sums : y,
                                     .rows = (size_t)t->rows,
                                     .outputs = (size_t)t->n,
                                     .panel = d->sparse,
                                     .x_row = d->trans_a ? 1 : d->k,
                                     .x_k = d->trans_a ? d->m : 1,
                                     .y_row = add ? CHUNK : d->n,
                                     .lo = add ? -INFINITY : p->lo,
                                     .hi = add ? INFINITY : p->hi};
    p->k->f32_sparse4_rows(&tile);
    for (int64_t r = 0; r < t->rows && add; r++)
        p->k->f32_add_clip(y + r * d->n, sums + r * CHUNK, add + r * d->n, (size_t)t->n, p->lo,
                           p->hi);
    finish(c, t);
}

/* Are there numbers in some rows of a batch that are not finite? A sum of large ones may seem so.
 */
static bool seems_bad(const sparse_call *c, int64_t batch, int64_t row, int64_t rows)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const row_of_a a = row_at(c, batch, row);
    if (!d->trans_a)
        return !isfinite(p->k->f32_sum(a.x, (size_t)(rows * d->k)));
    float sum = 0;
    for (int64_t k = 0; k < d->k; k++)
        sum += p->k->f32_sum(a.x + k * a.step, (size_t)rows);
    return !isfinite(sum);
}

/* Rows `row` … of a batch, at most `block`, as [k][block]. */
static void turn(const sparse_call *c, int64_t batch, int64_t row, float *to)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
    const float *a = (const float *)c->o->a + ia * d->m * d->k;
    const int64_t block = p->block, lanes = sn_min(block, d->m - row);
    if (p->sparse.tiles) {
        if (d->trans_a)
            sn_tiles_pack_plain(p->k, to, a + row, d->m, lanes, d->k);
        else
            sn_tiles_pack_turned(p->k, to, a + row * d->k, d->k, lanes, d->k);
        memset(to + (p->sparse.depth - 1) * block, 0, (size_t)block * sizeof *to);
        return;
    }
    if (!d->trans_a) {
        p->k->f32_block(to, a + row * d->k, (size_t)d->k, (unsigned)lanes, p->block, (size_t)d->k);
        return;
    }
    if (lanes < block)
        memset(to, 0, (size_t)(d->k * block) * sizeof *to);
    for (int64_t k = 0; k < d->k; k++)
        memcpy(to + k * block, a + k * d->m + row, (size_t)lanes * sizeof *to);
}

static void turn_task(void *arg, size_t index, int worker)
{
    const sparse_call *c = arg;
    const sn_gemm_sparse *s = &c->p->sparse;
    const int64_t all = s->groups * s->vectors;
    const int64_t batch = (int64_t)index / all, v = (int64_t)index % all;
    (void)worker;
    if (v * c->p->block < c->p->d.m)
        turn(c, batch, v * c->p->block,
             (float *)sn_piece_at(c->workspace, s->turned_all) +
                 (int64_t)index * s->depth * c->p->block);
}

/* Sums of a vector, [column][block], to rows of y. Those of tiles are not clipped yet. */
static void turn_back(const sparse_call *c, const piece *t, const float *sums, float *rows)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const float *add = addend_of(c, t);
    const int64_t out = out_at(p, t);
    const bool clip = p->sparse.tiles && (p->lo != -INFINITY || p->hi != INFINITY);
    const bool later = add || clip;
    p->k->f32_unblock(later ? rows : c->o->y + out, sums, (size_t)t->n, (unsigned)t->rows, p->block,
                      (size_t)(later ? CHUNK : d->n));
    for (int64_t r = 0; r < t->rows && later; r++)
        p->k->f32_add_clip(c->o->y + out + r * d->n, rows + r * CHUNK, add ? add + r * d->n : NULL,
                           (size_t)t->n, p->lo, p->hi);
}

static void sum_by_tiles(const sparse_call *c, const piece *t, const float *x, float *sums)
{
    static const float zeros[CHUNK];
    const sn_gemm_plan *p = c->p;
    const sn_tile_sparse tile = {.x = x,
                                 .w = c->b.w,
                                 .index = c->b.index,
                                 .first = c->b.first + t->col / SN_ROWS_TILE,
                                 .start = p->bias ? c->o->c + t->col : zeros,
                                 .y = sums,
                                 .outputs = (size_t)t->n,
                                 .vectors = (size_t)sn_ceil_div(t->rows, p->block),
                                 .x_v = p->sparse.depth * SN_ROWS_STEP,
                                 .y_o = SN_ROWS_TILE,
                                 .y_v = CHUNK * SN_ROWS_TILE};
    p->k->bf16_sparse16(&tile);
}

static void sum_by_vectors(const sparse_call *c, const piece *t, const float *x, float *sums)
{
    const sn_gemm_plan *p = c->p;
    const int64_t block = p->block;
    const sn_f32_sparse tile = {.x = x,
                                .w = c->b.w,
                                .index = c->b.index,
                                .first = c->b.first + t->col / p->d.sparse,
                                .start = p->bias ? c->o->c + t->col : NULL,
                                .y = sums,
                                .outputs = (size_t)t->n,
                                .panel = p->d.sparse,
                                .vectors = (unsigned)sn_ceil_div(t->rows, block),
                                .block = p->block,
                                .x_k = block,
                                .x_v = p->sparse.depth * block,
                                .y_o = block,
                                .y_v = CHUNK * block,
                                .lo = p->add ? -INFINITY : p->lo,
                                .hi = p->add ? INFINITY : p->hi};
    p->k->f32_sparse4(&tile);
}

/* A chunk of columns of a group, whose turned rows are at x. */
static void by_vectors(const sparse_call *c, const piece *t, const float *x, unsigned bad,
                       float *sums)
{
    const sn_gemm_plan *p = c->p;
    const int64_t block = p->block, each = CHUNK * block;
    (p->sparse.tiles ? sum_by_tiles : sum_by_vectors)(c, t, x, sums);
    for (int64_t r = 0; r < t->rows; r += block) {
        const piece part = {t->batch, t->row + r, sn_min(block, t->rows - r), t->col, t->n};
        turn_back(c, &part, sums + r / block * each, sums + p->sparse.vectors * each);
    }
    finish(c, t);
    for (int64_t r = 0; r < t->rows && bad; r++)
        if (bad >> (r / block) & 1)
            spoil_row(c, &(piece){t->batch, t->row + r, 1, t->col, t->n});
}

/* The turned rows of a group, and which of its vectors seem bad, one bit each. */
static const float *turned_group(const sparse_call *c, int64_t batch, int64_t group, int64_t rows,
                                 int worker, unsigned *bad)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_sparse *s = &p->sparse;
    const int64_t vector = s->depth * p->block, row = group * s->vectors * p->block;
    float *x = s->shared ? (float *)sn_piece_at(c->workspace, s->turned_all) +
                               (batch * s->groups + group) * s->vectors * vector
                         : sn_pieces_at(c->workspace, s->turned, (size_t)worker);
    *bad = 0;
    for (int64_t v = 0; v * p->block < rows; v++) {
        if (!s->shared)
            turn(c, batch, row + v * p->block, x + v * vector);
        const int64_t some = sn_min(p->block, rows - v * p->block);
        *bad |= (unsigned)seems_bad(c, batch, row + v * p->block, some) << v;
    }
    return x;
}

static void task(void *arg, size_t index, int worker)
{
    const sparse_call *c = arg;
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const sn_gemm_sparse *s = &p->sparse;
    const int64_t part = (int64_t)index % s->column_parts, rest = (int64_t)index / s->column_parts;
    const int64_t group = rest % s->groups, batch = rest / s->groups;
    const int64_t row = group * s->vectors * p->block;
    const int64_t rows = sn_min(s->vectors * p->block, d->m - row);
    if (rows <= 0)
        return;
    unsigned bad = 0;
    const float *x = s->by_rows ? NULL : turned_group(c, batch, group, rows, worker, &bad);
    float *sums = s->by_rows ? NULL : sn_pieces_at(c->workspace, s->sums, (size_t)worker);
    for (int64_t chunk = part * s->chunks / s->column_parts;
         chunk < (part + 1) * s->chunks / s->column_parts; chunk++) {
        const piece t = {batch, row, rows, chunk * CHUNK, sn_min(CHUNK, d->n - chunk * CHUNK)};
        if (s->by_rows)
            by_rows(c, &t);
        else
            by_vectors(c, &t, x, bad, sums);
    }
}

/* What by_rows leaves out, as it does not look at x: after all is done, as it is rare. */
static void spoil_rows(const sparse_call *c)
{
    const sn_gemm_desc *d = &c->p->d;
    for (int64_t batch = 0; batch < c->p->batches; batch++)
        for (int64_t r = 0; seems_bad(c, batch, 0, d->m) && r < d->m; r++)
            spoil_row(c, &(piece){batch, r, 1, 0, d->n});
}

void sn_gemm_sparse_run(const sn_gemm_plan *p, const sn_gemm_operands *o, void *workspace,
                        sn_pool *pool)
{
    const sn_gemm_sparse *s = &p->sparse;
    const unsigned format = s->tiles           ? SN_PACK_BF16_SPARSE16
                            : p->d.sparse == 1 ? SN_PACK_F32_SPARSE1
                                               : SN_PACK_F32_SPARSE4;
    const sparse_call c = {p, o, sn_sparse_view_of(sn_pack_get(format), o->b, p->d.n, p->d.entries),
                           workspace};
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* workspace is planned per worker */
    if (s->shared && !s->by_rows)
        sn_pool_run(pool, (size_t)(p->batches * s->groups * s->vectors), turn_task, (void *)&c);
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    if (s->tiles)
        sn_pool_run_hooked(pool, p->items, task, (void *)&c, &hook);
    else
        sn_pool_run(pool, p->items, task, (void *)&c);
    if (s->by_rows)
        spoil_rows(&c);
}
