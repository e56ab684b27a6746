/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with sparse weights, in blocks of four outputs at one k (sparse.h). x is turned
 * a tile of rows at a time, [k][rows], so that vectors run over rows; sums leave the kernel as
 * [output][rows] and are turned back a chunk of columns at a time, to be finished like all others.
 * A few rows go one by one, as they lie. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/q8_ways.h"
#include "compute/sparse.h"
#include "compute/split.h"
#include "compute/tiles.h"

/* FAST: the speed from which on a kernel has tiles. */
enum {
    CHUNK = 64,
    FEW = 2,
    TASKS_PER_THREAD = 4,
    TILE_VECTORS = 4,
    FAST = 10,
    START_CYCLES = 1500
};

/* ------------------------------------------------------------------ plan */
/* The faster of the two kinds; the activations' own where they are the same. */
static void choose_kernel(sn_q8_plan *p, const char **name)
{
    const sn_kernels *k = p->k;
    if (p->d.sparse_tiles) {
        const bool bytes = p->d.x_type == SONDE_DTYPE_U8;
        p->by_tiles = bytes ? k->u8_sparse16 : k->i8_sparse16;
        *name = bytes ? k->u8_sparse16_name : k->i8_sparse16_name;
        return;
    }
    const float u8 = k->u8_sparse4_geometry.speed, i8 = k->i8_sparse4_geometry.speed;
    const bool is_signed = u8 == i8 ? p->d.x_type == SONDE_DTYPE_I8 : i8 > u8;
    p->by_panels = is_signed ? k->i8_sparse4 : k->u8_sparse4;
    p->by_row = is_signed ? k->i8_sparse4_row : k->u8_sparse4_row;
    p->flips = is_signed != (p->d.x_type == SONDE_DTYPE_I8);
    *name = is_signed ? k->i8_sparse4_name : k->u8_sparse4_name;
}

static const sn_geometry *geometry_of(const sn_q8_plan *p)
{
    const bool is_signed = p->by_panels == p->k->i8_sparse4;
    return is_signed ? &p->k->i8_sparse4_geometry : &p->k->u8_sparse4_geometry;
}

static sn_q8_weights weights_of(const sn_conv_desc *c, int64_t panel)
{
    sn_q8_weights w = {.block = (unsigned)panel,
                       .kr = 4,
                       .groups = 1,
                       .merge = 1,
                       .group_in = c->c,
                       .group_out = c->oc,
                       .in = c->c,
                       .out = c->oc,
                       .taps = 1,
                       .runs = 1,
                       .run = c->c};
    w.blocks = sn_ceil_div(c->oc, panel);
    w.sums_bytes = (int64_t)sn_round_up((size_t)(w.blocks * panel) * sizeof(int32_t), SN_ALIGN);
    return w;
}

/* Cycles of one core, fitted to measurements with AMX, VNNI, AVX-VNNI and AVX2. */
static double sparse_cycles(double rows, double n, double k, double entries, const sn_geometry *g)
{
    const double groups = entries / 4 + 3 * n / 32;
    if (rows <= (double)FEW)
        return (double)START_CYCLES + 7 * rows * groups;
    return (double)START_CYCLES + 16 * groups * ceil(rows / (g->block * g->pixels[0])) +
           0.3 * rows * (n + k);
}

static double sparse_tiles_cycles(double rows, double n, double k, double entries)
{
    const double panels = ceil(n / (double)SN_ROWS_TILE),
                 tiles = entries / (double)SN_ROWS_TILE + panels / 2;
    const double weights = 8 * entries; /* they come from far, too */
    const double work = ceil(rows / (double)SN_ROWS_TILE) * (60 * tiles + 40 * panels);
    return (double)START_CYCLES + (work > weights ? work : weights) + rows * (0.1 * k + 0.4 * n);
}

static double dense_cycles(double rows, double n, double k, double speed)
{
    const bool tiles = speed > (double)FAST;
    const double products = rows * n * k / (tiles ? 550 : 26 * speed);
    const double far = tiles ? 0.045 : 0.075, near = tiles ? 0.02 : 0.025;
    const double weights = (n * k > (double)SN_SPARSE_FAR_BYTES ? far : near) * n * k;
    return products > weights ? products : weights;
}

bool sn_q8_sparse_pays(const sn_q8_sparse_case *c, uint32_t cpu_flags)
{
    static const int64_t usual[] = {1, 16, 128};
    const sn_kernels *kernels = sn_kernels_get(cpu_flags);
    const float u8 = kernels->u8_sparse4_geometry.speed, i8 = kernels->i8_sparse4_geometry.speed;
    const sn_geometry *g = i8 > u8 ? &kernels->i8_sparse4_geometry : &kernels->u8_sparse4_geometry;
    const float dense[] = {kernels->u8_tile_geometry.speed, kernels->i8_tile_geometry.speed,
                           kernels->u8_rows_geometry.speed};
    const double margin = c->tiles ? 0.85 : 0.95, n = (double)c->n, k = (double)c->k,
                 entries = (double)c->entries;
    float speed = 0;
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++)
        speed = dense[i] > speed ? dense[i] : speed;
    if (c->rows == 0 || c->n <= 0 || c->k <= 0 || c->k > SN_Q8_PART ||
        (c->tiles && kernels->u8_sparse16_geometry.speed < (float)FAST))
        return false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const double rows = (double)(c->rows > 0 ? c->rows : usual[i]);
        const double cycles = c->tiles ? sparse_tiles_cycles(rows, n, k, entries)
                                       : sparse_cycles(rows, n, k, entries, g);
        if (cycles > margin * dense_cycles(rows, n, k, (double)speed))
            return false;
    }
    return true;
}

/* Of a tile's rows of x: k bytes of each, or four at a time, which are lines. */
static int64_t turned_bytes(const sn_q8_plan *p)
{
    const int64_t k = sn_max(p->d.conv.c, 1);
    return p->rows * (p->by_tiles ? sn_ceil_div(k, 4) * 4 : k);
}

bool sn_q8_sparse_plan(sn_q8_plan *p, int threads)
{
    const sn_conv_desc *c = &p->d.conv;
    const char *name;
    choose_kernel(p, &name);
    const sn_geometry *g = geometry_of(p);
    const int64_t panel = p->by_tiles ? SN_ROWS_TILE : SN_SPARSE_PANEL;
    const size_t n = (size_t)threads;
    p->threads = threads;
    p->empty = c->c == 0;
    p->flat = true;
    p->w = weights_of(c, panel);
    p->rows = p->by_tiles ? TILE_VECTORS * SN_ROWS_TILE : g->block * g->pixels[0];
    p->few = !p->by_tiles && p->out_pixels <= FEW;
    p->chunk = sn_min(CHUNK, p->w.blocks * panel);
    p->chunks = sn_ceil_div(c->oc, CHUNK);
    p->row_parts = sn_max(p->few ? 1 : sn_ceil_div(p->out_pixels, p->rows), 1);
    const int64_t by_rows = sn_max(c->n, 1) * p->row_parts, want = TASKS_PER_THREAD * threads;
    p->chunk_parts = threads == 1 ? 1 : sn_max(sn_min(p->chunks, sn_ceil_div(want, by_rows)), 1);
    p->shared = p->chunk_parts > 1;
    const int64_t columns = p->w.blocks * panel, tile = turned_bytes(p);
    const size_t sums = (size_t)(p->rows * CHUNK) * sizeof(int32_t);
    p->start = sn_carve(&p->workspace, columns, sizeof(int32_t));
    p->factor = sn_carve(&p->workspace, columns, sizeof(float));
    p->pointers = sn_carve_each(&p->workspace, n, (size_t)p->rows * sizeof(void *));
    p->sums = sn_carve_each(&p->workspace, n, sums);
    p->factors = sn_carve_each(&p->workspace, n, CHUNK * sizeof(float));
    if (!p->few) {
        p->panels = sn_carve_each(&p->workspace, n, sums);
        if (p->shared)
            p->turned_all = sn_carve(&p->workspace, sn_count(by_rows, tile, 1, 1), 1);
        else
            p->turned = sn_carve_each(&p->workspace, n, (size_t)tile);
    }
    snprintf(p->name, sizeof p->name, "%s_%s_sparse%s%s",
             p->d.x_type == SONDE_DTYPE_U8 ? "u8" : "i8", p->d.product ? "gemm" : "conv1x1",
             p->by_tiles ? "16x4" : "4x1", strrchr(name, '_'));
    return !p->workspace.overflow;
}

/* ------------------------------------------------------------------ run */
/* Rows row … row+n-1 of an image times some columns. */
typedef struct part {
    int64_t image, row, n;
    const uint8_t *x;      /* its first row */
    const uint8_t *turned; /* or NULL: it goes row by row */
    int32_t *panels, *sums;
    float *factors;
    const uint8_t **pointers;
} part;

static const uint8_t *rows_at(const sn_q8_call *c, int64_t image, int64_t row)
{
    const sn_q8_plan *p = c->p;
    const int64_t at = p->d.product ? sn_q8_matrix_of(&p->d, p->d.x_batch, image) : image;
    return (const uint8_t *)c->a->x + (at * p->in_pixels + row) * p->d.x_pitch;
}

/* Lines: [16 rows][4 bytes] of every four k, and so on for the next 16 rows. Four bytes that lie
 * together move as a float does. */
static void turn_to_lines(const sn_q8_call *c, const part *t, uint8_t *to)
{
    const sn_q8_plan *p = c->p;
    const int64_t k = p->d.conv.c, pitch = p->d.x_pitch, lines = sn_ceil_div(k, 4);
    const bool words = pitch % 4 == 0 && (uintptr_t)t->x % 4 == 0 &&
                       p->k->f32_block_geometry.block == SN_ROWS_TILE;
    for (int64_t r = 0; r < p->rows; r += SN_ROWS_TILE, to += lines * SN_ROWS_STEP) {
        const uint8_t *x = t->x + r * pitch;
        const int64_t lanes = sn_max(sn_min(SN_ROWS_TILE, t->n - r), 0);
        const int64_t moved = words && lanes ? k / 4 : 0;
        if (moved)
            p->k->f32_block((float *)(void *)to, (const float *)(const void *)x, (size_t)moved,
                            (unsigned)lanes, SN_ROWS_TILE, (size_t)(pitch / 4));
        memset(to + moved * SN_ROWS_STEP, 0, (size_t)((lines - moved) * SN_ROWS_STEP));
        for (int64_t i = moved * 4; i < k; i++)
            for (int64_t l = 0; l < lanes; l++)
                to[i / 4 * SN_ROWS_STEP + l * 4 + i % 4] = x[l * pitch + i];
    }
}

static void turn(const sn_q8_call *c, const part *t, uint8_t *to)
{
    const sn_q8_plan *p = c->p;
    if (p->by_tiles) {
        turn_to_lines(c, t, to);
        return;
    }
    const size_t bytes = (size_t)(p->rows * p->d.conv.c);
    if (t->n < p->rows)
        memset(to, 0, bytes);
    p->k->u8_turn(to, p->rows, t->x, p->d.x_pitch, (size_t)t->n, (size_t)p->d.conv.c);
    for (size_t i = 0; p->flips && i < bytes; i += sizeof(uint64_t)) {
        uint64_t word; /* rows are a multiple of its bytes */
        memcpy(&word, to + i, sizeof word);
        word ^= 0x8080808080808080u;
        memcpy(to + i, &word, sizeof word);
    }
}

/* Sums of n columns of a vector of rows, [column][block], to `rows` rows. */
static void turn_back(const sn_q8_plan *p, int32_t *y, const int32_t *sums, int64_t n, int64_t rows,
                      unsigned block)
{
    if (p->k->f32_unblock_geometry.block == block) { /* the bits move, whatever they mean */
        p->k->f32_unblock((float *)(void *)y, (const float *)(const void *)sums, (size_t)n,
                          (unsigned)rows, block, CHUNK);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            y[r * CHUNK + i] = sums[i * block + r];
}

static unsigned format_of(const sn_q8_plan *p)
{
    if (p->by_tiles)
        return p->d.w_type == SONDE_DTYPE_U8 ? SN_PACK_U8_SPARSE16 : SN_PACK_I8_SPARSE16;
    return p->d.w_type == SONDE_DTYPE_U8 ? SN_PACK_U8_SPARSE4 : SN_PACK_I8_SPARSE4;
}

/* Sums of n columns from `first` on, in rows. */
static void sum_up(const sn_q8_call *c, const part *t, int64_t first, int64_t n)
{
    const sn_q8_plan *p = c->p;
    const sn_sparse_view v = sn_sparse_view_of(
        sn_pack_get(format_of(p)), c->weights - p->w.sums_bytes, p->d.conv.oc, p->d.entries);
    const uint32_t *begin = v.first + first / p->w.block;
    const int64_t block = p->by_tiles ? SN_ROWS_TILE : geometry_of(p)->block, each = CHUNK * block;
    if (!t->turned) {
        for (int64_t r = 0; r < t->n; r++) {
            const sn_q8_sparse_row row = {.x = t->x + r * p->d.x_pitch,
                                          .w = v.w,
                                          .index = v.index,
                                          .first = begin,
                                          .start = c->start + first,
                                          .y = t->sums + r * CHUNK,
                                          .outputs = (size_t)n,
                                          .flip = p->flips ? 0x80 : 0};
            p->by_row(&row);
        }
        return;
    }
    if (p->by_tiles) {
        const sn_tile_sparse tile = {.x = t->turned,
                                     .w = v.w,
                                     .index = v.index,
                                     .first = begin,
                                     .start = c->start + first,
                                     .y = t->panels,
                                     .outputs = (size_t)n,
                                     .vectors = (size_t)sn_ceil_div(t->n, block),
                                     .x_v = turned_bytes(p) / TILE_VECTORS,
                                     .y_o = block,
                                     .y_v = each};
        p->by_tiles(&tile);
    } else {
        const sn_q8_sparse tile = {.x = t->turned,
                                   .w = v.w,
                                   .index = v.index,
                                   .first = begin,
                                   .start = c->start + first,
                                   .y = t->panels,
                                   .outputs = (size_t)n,
                                   .vectors = (unsigned)(p->rows / block),
                                   .block = (unsigned)block,
                                   .x_k = p->rows,
                                   .y_o = block,
                                   .y_v = each};
        p->by_panels(&tile);
    }
    for (int64_t r = 0; r < t->n; r += block)
        turn_back(p, t->sums + r * CHUNK, t->panels + r / block * each, n, sn_min(block, t->n - r),
                  (unsigned)block);
}

static void compute(const sn_q8_call *c, const part *t, int64_t chunk)
{
    const sn_q8_plan *p = c->p;
    const int64_t first = chunk * CHUNK, n = sn_min(CHUNK, p->d.conv.oc - first);
    sum_up(c, t, first, n);
    const sn_q8_sums s = {.image = t->image,
                          .row = t->row,
                          .rows = t->n,
                          .first = first,
                          .n = n,
                          .sums = t->sums,
                          .sums_row = CHUNK,
                          .factors = t->factors,
                          .taps = t->pointers,
                          .taps_step = t->n};
    sn_q8_finish(c, &s);
}

static part part_of(const sn_q8_call *c, int64_t place)
{
    const sn_q8_plan *p = c->p;
    part t = {.image = place / p->row_parts};
    t.row = place % p->row_parts * p->rows;
    t.n = sn_min(p->rows, p->out_pixels - t.row);
    t.x = rows_at(c, t.image, t.row);
    return t;
}

static void turn_task(void *arg, size_t index, int worker)
{
    const sn_q8_call *c = arg;
    const part t = part_of(c, (int64_t)index);
    (void)worker;
    turn(c, &t,
         (uint8_t *)sn_piece_at(c->a->workspace, c->p->turned_all) +
             (int64_t)index * turned_bytes(c->p));
}

static void task(void *arg, size_t index, int worker)
{
    sn_q8_call *c = arg;
    const sn_q8_plan *p = c->p;
    void *memory = c->a->workspace;
    const int64_t chunk_part = (int64_t)index % p->chunk_parts;
    const int64_t place = (int64_t)index / p->chunk_parts;
    part t = part_of(c, place);
    t.sums = sn_pieces_at(memory, p->sums, (size_t)worker);
    t.factors = sn_pieces_at(memory, p->factors, (size_t)worker);
    t.pointers = sn_pieces_at(memory, p->pointers, (size_t)worker);
    for (int64_t r = 0; r < t.n && c->w_zeros; r++)
        t.pointers[r] = t.x + r * p->d.x_pitch;
    if (!p->few) {
        t.panels = sn_pieces_at(memory, p->panels, (size_t)worker);
        uint8_t *turned =
            p->shared ? (uint8_t *)sn_piece_at(memory, p->turned_all) + place * turned_bytes(p)
                      : sn_pieces_at(memory, p->turned, (size_t)worker);
        if (!p->shared)
            turn(c, &t, turned);
        t.turned = turned;
    }
    for (int64_t chunk = chunk_part * p->chunks / p->chunk_parts;
         chunk < (chunk_part + 1) * p->chunks / p->chunk_parts; chunk++) {
        if (sn_q8_cancelled(c))
            return;
        compute(c, &t, chunk);
    }
}

void sn_q8_by_sparse(sn_q8_call *c, sn_pool *pool)
{
    const sn_q8_plan *p = c->p;
    const size_t places = (size_t)(sn_max(p->d.conv.n, 0) * p->row_parts);
    if (p->out_pixels <= 0)
        return;
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* workspace is planned per worker */
    if (p->shared && !p->few)
        sn_pool_run(pool, places, turn_task, c);
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    if (p->by_tiles)
        sn_pool_run_hooked(pool, places * (size_t)p->chunk_parts, task, c, &hook);
    else
        sn_pool_run(pool, places * (size_t)p->chunk_parts, task, c);
}
