/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights with the tiles of AMX: a tile of weights is the left side, 16 outputs × 16 lines,
 * and meets up to four tiles of x, 16 lines × 16 rows. Tiles are read at equal distances, so the
 * lines of x are copied together first. Tiles do not take what still waits to be written to the
 * cache, so copies of one step, and sums to begin with, are made a step before they are used;
 * weights are fetched some steps before. */
#include <immintrin.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { TILE = 16, LINE = 64, TILE_BYTES = TILE * LINE, MOST = 4, AHEAD = 6 };

/* What the kernels need beside their arguments: two steps of copies, and sums to begin with. */
typedef struct room {
    _Alignas(64) uint8_t lines[2][MOST][TILE_BYTES];
    _Alignas(64) int32_t start[2][TILE][TILE];
} room;

SN_INLINE void copy_lines(uint8_t *to, const uint8_t *x, const uint16_t *at)
{
    SN_UNROLL for (int i = 0; i < TILE; i++)
        _mm512_store_si512(to + i * LINE, _mm512_loadu_si512(x + at[i] * LINE));
}

SN_INLINE void copy_group(room *m, const sn_tile_sparse *t, size_t v, size_t group, const int V)
{
    const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)v * t->x_v;
    SN_UNROLL for (int i = 0; i < V; i++)
        copy_lines(m->lines[group % 2][i], x + i * t->x_v, t->index + group * TILE);
}

/* A tile of weights, which may lie behind the last one. */
SN_INLINE void fetch_weights(const uint8_t *w)
{
    SN_UNROLL for (int i = 0; i < TILE; i++) SN_FETCH_L1(w + i * LINE);
}

/* Panel p begins with these sums; it may be the one behind the last. */
SN_INLINE void make_start(room *m, const sn_tile_sparse *t, size_t p)
{
    for (size_t o = 0; o < TILE && p * TILE < t->outputs; o++) {
        const size_t at = p * TILE + o;
        int32_t bits = 0;
        if (at < t->outputs)
            __builtin_memcpy(&bits, (const uint8_t *)t->start + 4 * at, sizeof bits);
        _mm512_store_si512(m->start[p % 2][o], _mm512_set1_epi32(bits));
    }
}

/* Numbers of tiles must be literals: sums are tiles 0 … 3, weights 4, lines 5 … 7. */
#define DEFINE_SPARSE(name, product)                                                               \
    SN_INLINE void name##_panel(const sn_tile_sparse *t, room *m, size_t p, size_t v, size_t last, \
                                const int V)                                                       \
    {                                                                                              \
        const size_t from = t->first[p], to = t->first[p + 1];                                     \
        int32_t *y = (int32_t *)t->y + (ptrdiff_t)(p * TILE) * t->y_o + (ptrdiff_t)v * t->y_v;     \
        const size_t y_o = (size_t)t->y_o * sizeof *y;                                             \
        _tile_loadd(0, m->start[p % 2], LINE);                                                     \
        if (V > 1)                                                                                 \
            _tile_loadd(1, m->start[p % 2], LINE);                                                 \
        if (V > 2)                                                                                 \
            _tile_loadd(2, m->start[p % 2], LINE);                                                 \
        if (V > 3)                                                                                 \
            _tile_loadd(3, m->start[p % 2], LINE);                                                 \
        for (size_t j = from; j < to; j++) {                                                       \
            if (j + 1 < last)                                                                      \
                copy_group(m, t, v, j + 1, V);                                                     \
            fetch_weights((const uint8_t *)t->w + (j + AHEAD) * TILE_BYTES);                       \
            _tile_loadd(4, (const uint8_t *)t->w + j * TILE_BYTES, LINE);                          \
            _tile_loadd(5, m->lines[j % 2][0], LINE);                                              \
            product(0, 4, 5);                                                                      \
            if (V > 1) {                                                                           \
                _tile_loadd(6, m->lines[j % 2][1], LINE);                                          \
                product(1, 4, 6);                                                                  \
            }                                                                                      \
            if (V > 2) {                                                                           \
                _tile_loadd(7, m->lines[j % 2][2], LINE);                                          \
                product(2, 4, 7);                                                                  \
            }                                                                                      \
            if (V > 3) {                                                                           \
                _tile_loadd(5, m->lines[j % 2][3], LINE);                                          \
                product(3, 4, 5);                                                                  \
            }                                                                                      \
        }                                                                                          \
        _tile_stored(0, y, y_o);                                                                   \
        if (V > 1)                                                                                 \
            _tile_stored(1, y + t->y_v, y_o);                                                      \
        if (V > 2)                                                                                 \
            _tile_stored(2, y + 2 * t->y_v, y_o);                                                  \
        if (V > 3)                                                                                 \
            _tile_stored(3, y + 3 * t->y_v, y_o);                                                  \
    }                                                                                              \
    SN_INLINE void name##_vectors(const sn_tile_sparse *t, room *m, size_t v, const int V)         \
    {                                                                                              \
        const size_t panels = (t->outputs + TILE - 1) / TILE, last = t->first[panels];             \
        if (t->first[0] < last)                                                                    \
            copy_group(m, t, v, t->first[0], V);                                                   \
        make_start(m, t, 0);                                                                       \
        for (size_t p = 0; p < panels; p++) {                                                      \
            make_start(m, t, p + 1);                                                               \
            name##_panel(t, m, p, v, last, V);                                                     \
        }                                                                                          \
    }                                                                                              \
    void name(const sn_tile_sparse *t)                                                             \
    {                                                                                              \
        room m;                                                                                    \
        size_t v = 0;                                                                              \
        for (; v + MOST <= t->vectors; v += MOST)                                                  \
            name##_vectors(t, &m, v, MOST);                                                        \
        if (t->vectors - v == 3)                                                                   \
            name##_vectors(t, &m, v, 3);                                                           \
        else if (t->vectors - v == 2)                                                              \
            name##_vectors(t, &m, v, 2);                                                           \
        else if (t->vectors - v == 1)                                                              \
            name##_vectors(t, &m, v, 1);                                                           \
    }
DEFINE_SPARSE(sn_u8_sparse16_amx, _tile_dpbsud)
DEFINE_SPARSE(sn_i8_sparse16_amx, _tile_dpbssd)
DEFINE_SPARSE(sn_bf16_sparse16_amx, _tile_dpbf16ps)
