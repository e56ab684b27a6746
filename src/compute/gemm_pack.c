/* SPDX-License-Identifier: Apache-2.0 */
/* Packed right-hand matrices: panels of `block` columns, [matrix][panel][k][block], the last panel
 * filled with zeros. The source is [..., k, n], or [..., n, k] when `arg` (transposed) is 1. A
 * larger `arg` cuts the n rows into so many matrices, each of which begins a panel: the gates of
 * recurrent layers. A negative one says that the first dim is the k of so many matrices and all
 * others are their n: the groups of transposed convolutions. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compute/gemm.h"
#include "compute/packs.h"
#include "compute/split.h"
#include "compute/tiles.h"

size_t sn_gemm_packed_floats(int64_t n, int64_t k, unsigned block)
{
    return ((size_t)n + block - 1) / block * block * (size_t)k;
}

/* A unit is a few neighbouring panels, so that a row of the source is read in pieces of several
 * cache lines. */
enum { UNIT_PANELS = 4 };

typedef struct panels {
    int64_t n, k, block; /* columns, rows, columns of a panel */
    int64_t units;       /* of a matrix */
    int64_t groups;      /* matrices that the dims of one hold */
    int leading;         /* dims in front of those */
} panels;

static int64_t columns_of(const sn_packing *p)
{
    int64_t n = 1;
    for (int i = 1; i < p->rank; i++)
        n = sn_count(n, p->dims[i], 1, 1);
    return n;
}

static panels panels_of(const sn_packing *p)
{
    const int64_t *last = p->dims + p->rank - 2, block = p->format->block;
    const int64_t groups = p->arg < 0 ? -p->arg : p->arg > 1 ? p->arg : 1;
    panels m = {.block = block, .groups = groups};
    if (p->arg < 0) {
        m.n = columns_of(p);
        m.k = p->dims[0] / groups;
    } else {
        m.n = last[p->arg ? 0 : 1] / groups;
        m.k = last[p->arg ? 1 : 0];
        m.leading = p->rank - 2;
    }
    m.units = m.n > 0 ? (m.n - 1) / (UNIT_PANELS * block) + 1 : 0;
    return m;
}

/* Are there whole matrices? */
static bool is_even(const sn_packing *p)
{
    if (p->rank < 2)
        return false;
    return p->arg < 0 ? p->dims[0] % p->arg == 0
                      : p->arg <= 1 || p->dims[p->rank - 2] % p->arg == 0;
}

static bool panel_bytes(const sn_packing *p, size_t *bytes)
{
    if (!is_even(p))
        return false;
    const panels m = panels_of(p);
    int64_t vectors;
    if (m.n <= 0 || m.k <= 0 || !sn_i64_mul((m.n - 1) / m.block + 1, m.k, &vectors) ||
        !sn_i64_mul(vectors, m.groups, &vectors))
        return false;
    for (int i = 0; i < m.leading; i++)
        if (p->dims[i] <= 0 || !sn_i64_mul(vectors, p->dims[i], &vectors))
            return false;
    return sn_pack_vector_bytes(p->format, vectors, bytes);
}

static size_t panel_units(const sn_packing *p)
{
    const panels m = panels_of(p);
    size_t units = (size_t)(m.units * m.groups);
    for (int i = 0; i < m.leading; i++)
        units *= (size_t)p->dims[i];
    return units;
}

/* Rows `row` … of a panel, from rows of n elements: column `col` and those behind it. `vector`, the
 * bytes of a row of the panel, is a constant where this is called. */
static inline void pack_rows(uint8_t *dst, const uint8_t *src, const panels *m, int64_t row,
                             int64_t rows, int64_t col, const size_t vector)
{
    const size_t elem = vector / (size_t)m->block, stride = (size_t)m->n * elem;
    src += (size_t)(row * m->n + col) * elem;
    dst += (size_t)row * vector;
    if (m->n - col >= m->block) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(dst + (size_t)i * vector, src + (size_t)i * stride, vector);
        return;
    }
    memset(dst, 0, (size_t)rows * vector);
    for (int64_t i = 0; i < rows; i++)
        memcpy(dst + (size_t)i * vector, src + (size_t)i * stride, (size_t)(m->n - col) * elem);
}

static void pack_some_rows(uint8_t *dst, const uint8_t *src, const panels *m, int64_t row,
                           int64_t rows, int64_t col, size_t vector)
{
    if (vector == 64)
        pack_rows(dst, src, m, row, rows, col, 64);
    else if (vector == 32)
        pack_rows(dst, src, m, row, rows, col, 32);
    else
        pack_rows(dst, src, m, row, rows, col, vector);
}

enum { ROWS = 64 }; /* of all panels of a unit, before the next */

static void pack_panels(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    const panels m = panels_of(p);
    const size_t elem = sn_dtype_bytes(p->format->dtype), column = (size_t)m.k * elem;
    const int64_t matrix = (int64_t)unit / m.units;
    const int64_t first = (int64_t)unit % m.units * UNIT_PANELS * m.block;
    const int64_t end = sn_min(first + UNIT_PANELS * m.block, m.n);
    const uint8_t *from = (const uint8_t *)src + (size_t)(matrix * m.n) * column;
    uint8_t *to =
        (uint8_t *)dst + (size_t)(matrix * sn_ceil_div(m.n, m.block) * m.block + first) * column;
    if (p->arg > 0) { /* rows of k elements each become lanes */
        for (int64_t col = first; col < end; col += m.block, to += (size_t)m.block * column)
            sn_pack_lanes(p, to, from + (size_t)col * column, (size_t)m.k,
                          (unsigned)sn_min(m.n - col, m.block), (size_t)m.k);
        return;
    }
    for (int64_t row = 0; row < m.k; row += ROWS)
        for (int64_t col = first; col < end; col += m.block) {
            uint8_t *panel = to + (size_t)(col - first) * column;
            const int64_t rows = sn_min(m.k - row, ROWS);
            pack_some_rows(panel, from, &m, row, rows, col, (size_t)m.block * elem);
        }
}

/* The rows of a transposed matrix are a panel's columns; else a panel takes a piece of each row. */
static bool panel_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    const panels m = panels_of(p);
    const int64_t matrix = (int64_t)unit / m.units;
    const int64_t col = (int64_t)unit % m.units * UNIT_PANELS * m.block;
    *first = (matrix * m.n + col) * m.k;
    *count = sn_min(m.n - col, UNIT_PANELS * m.block) * m.k;
    return p->arg > 0;
}

/* The panels of the next part follow when a part fills its last panel. */
static bool panels_join(const sn_packing *p, int axis)
{
    const int64_t *d = p->dims;
    return p->rank == 2 && p->arg >= 0 && axis == (p->arg ? 0 : 1) && d[0] > 0 && d[1] > 0 &&
           d[axis] % p->format->block == 0;
}

#define PANELS(TYPE, type, BLOCK)                                                                  \
    const sn_pack_format sn_pack_##type##_panels##BLOCK = {.name = #type "_panels" #BLOCK,         \
                                                           .arrangement = SN_WEIGHTS_PANELS,       \
                                                           .dtype = SONDE_DTYPE_##TYPE,            \
                                                           .block = BLOCK,                         \
                                                           .kr = 1,                                \
                                                           .bytes = panel_bytes,                   \
                                                           .units = panel_units,                   \
                                                           .pack = pack_panels,                    \
                                                           .source = panel_source,                 \
                                                           .joins = panels_join};

PANELS(F32, f32, 8)
PANELS(F32, f32, 16)
PANELS(F16, f16, 8)
PANELS(F16, f16, 16)
PANELS(BF16, bf16, 8)
PANELS(BF16, bf16, 16)

/* ------------------------------------------------------------------ tiles */
/* Panels of 16 columns in steps of 32 rows: [matrix][panel][k / 32][16][column][2], filled with
 * zeros. A unit is a panel. */
enum { STEP = SN_ROWS_STEP / 2 };

static bool tile_bytes(const sn_packing *p, size_t *bytes)
{
    if (!is_even(p))
        return false;
    const panels m = panels_of(p);
    if (m.n <= 0 || m.k <= 0)
        return false;
    int64_t steps = sn_count(sn_ceil_div(m.n, m.block), sn_ceil_div(m.k, STEP), m.groups, 1);
    for (int i = 0; i < m.leading; i++)
        steps = p->dims[i] > 0 ? sn_count(steps, p->dims[i], 1, 1) : -1;
    steps = sn_count(steps, SN_ROWS_WEIGHTS, 1, 1);
    *bytes = (size_t)steps;
    return steps > 0;
}

static size_t tile_units(const sn_packing *p)
{
    const panels m = panels_of(p);
    size_t units = (size_t)(sn_ceil_div(m.n, m.block) * m.groups);
    for (int i = 0; i < m.leading; i++)
        units *= (size_t)p->dims[i];
    return units;
}

static void pack_tiles(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    enum { KR = 2 };
    const panels m = panels_of(p);
    const int64_t per_matrix = sn_ceil_div(m.n, m.block), steps = sn_ceil_div(m.k, STEP);
    const int64_t matrix = (int64_t)unit / per_matrix, col = (int64_t)unit % per_matrix * m.block;
    const int64_t lanes = sn_min(m.block, m.n - col);
    const size_t panel = (size_t)steps * SN_ROWS_WEIGHTS;
    const uint8_t *from = (const uint8_t *)src + (size_t)(matrix * m.n * m.k) * sizeof(uint16_t);
    uint16_t *to = (uint16_t *)(void *)((uint8_t *)dst + unit * panel);
    memset(to, 0, panel);
    for (int64_t i = 0; i < m.k; i++)
        for (int64_t l = 0; l < lanes; l++) {
            const int64_t at = p->arg > 0 ? (col + l) * m.k + i : i * m.n + col + l;
            memcpy(&to[(i / KR * m.block + l) * KR + i % KR], from + (size_t)at * sizeof *to,
                   sizeof *to);
        }
}

static bool tile_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    const panels m = panels_of(p);
    const int64_t per_matrix = sn_ceil_div(m.n, m.block);
    const int64_t col = (int64_t)unit % per_matrix * m.block;
    *first = ((int64_t)unit / per_matrix * m.n + col) * m.k;
    *count = sn_min(m.n - col, m.block) * m.k;
    return p->arg > 0;
}

#define TILES(TYPE, type)                                                                          \
    const sn_pack_format sn_pack_##type##_panel_tiles16 = {.name = #type "_panel_tiles16",         \
                                                           .arrangement = SN_WEIGHTS_PANEL_TILES,  \
                                                           .dtype = SONDE_DTYPE_##TYPE,            \
                                                           .block = 16,                            \
                                                           .kr = 2,                                \
                                                           .bytes = tile_bytes,                    \
                                                           .units = tile_units,                    \
                                                           .pack = pack_tiles,                     \
                                                           .source = tile_source,                  \
                                                           .joins = panels_join};
TILES(BF16, bf16)
TILES(F16, f16)

/* ------------------------------------------------------------------ tiles of f32 in two halves */
/* The same with f32 as the sum of two f16 (tiles.h): every step is two, high parts before low ones.
 * All numbers of a panel are multiplied by a power of two before; what undoes that stands behind
 * them, once for each column: [matrix][panel]([k / 32][2][16][column][2], [16] f32). */
enum { HALVES_STEP = 2 * SN_ROWS_WEIGHTS };

size_t sn_gemm_halves_panel(int64_t k)
{
    return (size_t)sn_ceil_div(k, STEP) * HALVES_STEP + SN_ROWS_TILE * sizeof(float);
}

static bool halves_bytes(const sn_packing *p, size_t *bytes)
{
    size_t steps, tail;
    if (!tile_bytes(p, &steps) || !sn_size_mul(steps, 2, bytes))
        return false;
    return sn_size_mul(tile_units(p), SN_ROWS_TILE * sizeof(float), &tail) &&
           sn_size_add(*bytes, tail, bytes) && *bytes <= PTRDIFF_MAX;
}

/* Numbers of a panel from row `row` on, one step of them, as [row][column], zeros behind the last.
 */
static void gather_step(const sn_packing *p, const panels *m, const uint8_t *from, int64_t row,
                        int64_t col, float *to)
{
    const int64_t rows = sn_min(STEP, m->k - row), lanes = sn_min(m->block, m->n - col);
    memset(to + rows * m->block, 0, (size_t)((STEP - rows) * m->block) * sizeof *to);
    if (p->arg > 0) {
        sn_pack_lanes(p, to, from + (size_t)(col * m->k + row) * sizeof *to, (size_t)rows,
                      (unsigned)lanes, (size_t)m->k);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        memset(to + i * m->block + lanes, 0, (size_t)(m->block - lanes) * sizeof *to);
        memcpy(to + i * m->block, from + (size_t)((row + i) * m->n + col) * sizeof *to,
               (size_t)lanes * sizeof *to);
    }
}

/* A unit is a few neighbouring panels, as of f32. */
static void pack_halves(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    enum { N = STEP * SN_ROWS_TILE, GUESS = 4 };
    const panels m = panels_of(p);
    const sn_kernels *k = sn_kernels_get(p->cpu_flags);
    const int64_t steps = sn_ceil_div(m.k, STEP), matrix = (int64_t)unit / m.units;
    const int64_t first = (int64_t)unit % m.units * UNIT_PANELS * m.block;
    const int64_t n = sn_ceil_div(sn_min(UNIT_PANELS * m.block, m.n - first), m.block);
    const uint8_t *from = (const uint8_t *)src + (size_t)(matrix * m.n * m.k) * sizeof(float);
    const size_t panel = sn_gemm_halves_panel(m.k);
    uint8_t *to =
        (uint8_t *)dst + (size_t)(matrix * sn_ceil_div(m.n, m.block) + first / m.block) * panel;
    float some[N], top[UNIT_PANELS], seen[UNIT_PANELS], scale[UNIT_PANELS], back[UNIT_PANELS];
    bool larger = true;
    for (int64_t q = 0; q < n; q++) { /* a guess: weights are read once, most often */
        gather_step(p, &m, from, 0, first + q * m.block, some);
        top[q] = fminf((float)GUESS * k->f32_rowabs(some, N), FLT_MAX);
    }
    for (int pass = 0; pass < 2 && larger; pass++) {
        for (int64_t q = 0; q < n; q++) {
            scale[q] = sn_halves_scale(top[q], &back[q]);
            seen[q] = 0;
        }
        for (int64_t i = 0; i < steps * n; i++) {
            const int64_t q = i % n, step = i / n;
            gather_step(p, &m, from, step * STEP, first + q * m.block, some);
            seen[q] = fmaxf(seen[q], k->f32_rowabs(some, N));
            sn_halves_tile(k, to + (size_t)q * panel + (size_t)step * HALVES_STEP, some, scale[q]);
        }
        larger = false;
        for (int64_t q = 0; q < n; q++) {
            larger |= seen[q] > top[q];
            top[q] = fmaxf(top[q], seen[q]);
        }
    }
    for (int64_t q = 0; q < n; q++)
        for (int l = 0; l < SN_ROWS_TILE; l++)
            memcpy(to + (size_t)q * panel + (size_t)steps * HALVES_STEP + (size_t)l * sizeof *back,
                   &back[q], sizeof *back);
}

const sn_pack_format sn_pack_f32_panel_tiles16 = {.name = "f32_panel_tiles16",
                                                  .arrangement = SN_WEIGHTS_PANEL_TILES,
                                                  .dtype = SONDE_DTYPE_F32,
                                                  .block = 16,
                                                  .kr = 2,
                                                  .bytes = halves_bytes,
                                                  .units = panel_units,
                                                  .pack = pack_halves,
                                                  .source = panel_source,
                                                  .joins = panels_join};
