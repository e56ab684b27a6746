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
#include "compute/sparse.h"
#include "compute/split.h"

enum {
    CHUNK = 64, /* columns, a multiple of a panel's */
    TASK_FLOPS = 500000,
    TASKS_PER_THREAD = 4,
};

/* ------------------------------------------------------------------ plan */
/* Cycles, as measured with AVX-512: others are slower in everything alike. */
static double dense_cycles(double rows, double n, double k)
{
    const double products = rows * n * k / 31, weights = 0.22 * n * k; /* from the next cache */
    return products > weights ? products : weights;
}

static double sparse_cycles(double rows, double n, double k, double entries)
{
    if (rows <= SN_SPARSE_ROWS)
        return entries * (1 + 0.5 * rows);
    const double vectors = ceil(rows / 16);
    const double turned = 0.6 * rows * k + 0.5 * rows * n, entry = vectors > 1 ? 2.7 * vectors : 4;
    return turned + entry * entries;
}

bool sn_gemm_sparse_pays(int64_t rows, int64_t n, int64_t k, int64_t entries)
{
    static const int64_t usual[] = {1, 8, 128};
    const double margin = 0.95;
    if (rows == 0 || n <= 0 || k <= 0)
        return false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const double m = (double)(rows > 0 ? rows : usual[i]);
        if (sparse_cycles(m, (double)n, (double)k, (double)entries) >
            margin * dense_cycles(m, (double)n, (double)k))
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
    const int64_t vector_bytes = sn_max(d->k, 1) * p->block * (int64_t)sizeof(float);
    const int64_t fit = sn_max((int64_t)(l2_bytes / 4 * 3) / vector_bytes, 1);
    const int64_t most = sn_min(g->pixels[0], fit);
    s->groups = sn_max(sn_ceil_div(all, most), 1);
    s->vectors = sn_ceil_div(all, s->groups);
    const int64_t want =
        sn_min((int64_t)p->threads * TASKS_PER_THREAD, (int64_t)(p->flops / TASK_FLOPS) + 1);
    const int64_t by_rows = sn_max(p->batches * s->groups, 1);
    s->column_parts = p->threads == 1 ? 1 : sn_min(s->chunks, sn_ceil_div(want, by_rows));
}

bool sn_gemm_sparse_plan(sn_gemm_plan *p, size_t l2_bytes)
{
    const sn_gemm_desc *d = &p->d;
    sn_gemm_sparse *s = &p->sparse;
    p->block = p->k->f32_sparse4_geometry.block;
    p->flops = 2 * (uint64_t)p->batches * (uint64_t)d->m * (uint64_t)d->entries * SN_SPARSE_PANEL;
    s->by_rows = d->m <= SN_SPARSE_ROWS;
    s->chunks = sn_ceil_div(d->n, CHUNK);
    plan_groups(p, l2_bytes);
    p->items = (size_t)(p->batches * s->groups * s->column_parts);
    snprintf(p->name, sizeof p->name, "f32_gemm_sparse4x1_%s",
             isa_of(s->by_rows ? p->k->f32_sparse4_rows_name : p->k->f32_sparse4_name));
    if (s->by_rows)
        return true;
    s->shared = s->column_parts > 1;
    const int64_t vector = sn_count(sn_max(d->k, 1), p->block, sizeof(float), 1);
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

/* Of one row: k whose x is not finite count for all columns, as 0 · x is NaN then; those that have
 * no entry for it are NaN. */
static void spoil_row(const sparse_call *c, const float *x, ptrdiff_t x_k, const piece *t)
{
    const sn_gemm_desc *d = &c->p->d;
    float *y = c->o->y + out_at(c->p, t);
    int64_t bad = 0;
    for (int64_t k = 0; k < d->k; k++)
        bad += !isfinite(x[k * x_k]);
    for (int64_t j = 0; j < t->n && bad; j += SN_SPARSE_PANEL) {
        const int64_t panel = (t->col + j) / SN_SPARSE_PANEL;
        int64_t met = 0;
        for (uint32_t e = c->b.first[panel]; e < c->b.first[panel + 1]; e++)
            met += !isfinite(x[c->b.index[e] * x_k]);
        for (int64_t i = j; i < sn_min(j + SN_SPARSE_PANEL, t->n) && met < bad; i++)
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
                                     .first = c->b.first + t->col / SN_SPARSE_PANEL,
                                     .start = p->bias ? c->o->c + t->col : NULL,
                                     .y = add ? sums : y,
                                     .rows = (size_t)t->rows,
                                     .outputs = (size_t)t->n,
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

/* Are there numbers in x that are not finite? A sum of large ones may seem so. */
static bool seems_bad(const sn_gemm_plan *p, const float *x, int64_t n)
{
    return !isfinite(p->k->f32_sum(x, (size_t)n));
}

/* Rows `row` … of a batch, at most `block`, as [k][block]. */
static void turn(const sparse_call *c, int64_t batch, int64_t row, float *to)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
    const float *a = (const float *)c->o->a + ia * d->m * d->k;
    const int64_t block = p->block, lanes = sn_min(block, d->m - row);
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
                 (int64_t)index * c->p->d.k * c->p->block);
}

/* Sums of a vector, [column][block], to rows of y. */
static void turn_back(const sparse_call *c, const piece *t, const float *sums, float *rows)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const float *add = addend_of(c, t);
    const int64_t out = out_at(p, t);
    p->k->f32_unblock(add ? rows : c->o->y + out, sums, (size_t)t->n, (unsigned)t->rows, p->block,
                      (size_t)(add ? CHUNK : d->n));
    for (int64_t r = 0; r < t->rows && add; r++)
        p->k->f32_add_clip(c->o->y + out + r * d->n, rows + r * CHUNK, add + r * d->n, (size_t)t->n,
                           p->lo, p->hi);
}

/* A chunk of columns of a group, whose turned rows are at x. */
static void by_vectors(const sparse_call *c, const piece *t, const float *x, unsigned bad,
                       float *sums)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t block = p->block, each = CHUNK * block, vector = d->k * block;
    const bool add = p->add;
    const sn_f32_sparse tile = {.x = x,
                                .w = c->b.w,
                                .index = c->b.index,
                                .first = c->b.first + t->col / SN_SPARSE_PANEL,
                                .start = p->bias ? c->o->c + t->col : NULL,
                                .y = sums,
                                .outputs = (size_t)t->n,
                                .vectors = (unsigned)sn_ceil_div(t->rows, block),
                                .block = p->block,
                                .x_k = block,
                                .x_v = vector,
                                .y_o = block,
                                .y_v = each,
                                .lo = add ? -INFINITY : p->lo,
                                .hi = add ? INFINITY : p->hi};
    p->k->f32_sparse4(&tile);
    for (int64_t v = 0; v < tile.vectors; v++) {
        const piece part = {t->batch, t->row + v * block, sn_min(block, t->rows - v * block),
                            t->col, t->n};
        turn_back(c, &part, sums + v * each, sums + p->sparse.vectors * each);
    }
    finish(c, t);
    for (int64_t r = 0; r < t->rows && bad; r++)
        if (bad >> (r / block) & 1)
            spoil_row(c, x + r / block * vector + r % block, block,
                      &(piece){t->batch, t->row + r, 1, t->col, t->n});
}

/* The turned rows of a group, and which of its vectors seem bad, one bit each. */
static const float *turned_group(const sparse_call *c, int64_t batch, int64_t group, int64_t rows,
                                 int worker, unsigned *bad)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_sparse *s = &p->sparse;
    const int64_t vector = p->d.k * p->block, row = group * s->vectors * p->block;
    float *x = s->shared ? (float *)sn_piece_at(c->workspace, s->turned_all) +
                               (batch * s->groups + group) * s->vectors * vector
                         : sn_pieces_at(c->workspace, s->turned, (size_t)worker);
    *bad = 0;
    for (int64_t v = 0; v * p->block < rows; v++) {
        if (!s->shared)
            turn(c, batch, row + v * p->block, x + v * vector);
        *bad |= (unsigned)seems_bad(p, x + v * vector, vector) << v;
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
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    for (int64_t batch = 0; batch < p->batches; batch++) {
        const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
        const float *a = (const float *)c->o->a + ia * d->m * d->k;
        if (!seems_bad(p, a, d->m * d->k))
            continue;
        for (int64_t r = 0; r < d->m; r++)
            spoil_row(c, d->trans_a ? a + r : a + r * d->k, d->trans_a ? d->m : 1,
                      &(piece){batch, r, 1, 0, d->n});
    }
}

void sn_gemm_sparse_run(const sn_gemm_plan *p, const sn_gemm_operands *o, void *workspace,
                        sn_pool *pool)
{
    const sn_gemm_sparse *s = &p->sparse;
    const sparse_call c = {p, o, sn_sparse_view_of(SONDE_DTYPE_F32, o->b, p->d.n, p->d.entries),
                           workspace};
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* workspace is planned per worker */
    if (s->shared && !s->by_rows)
        sn_pool_run(pool, (size_t)(p->batches * s->groups * s->vectors), turn_task, (void *)&c);
    sn_pool_run(pool, p->items, task, (void *)&c);
    if (s->by_rows)
        spoil_rows(&c);
}
