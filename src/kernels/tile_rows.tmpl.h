/* SPDX-License-Identifier: Apache-2.0 */
/* Rows times tiles of AMX (signatures.h, sn_tile_rows), for files that have a product: two tiles of
 * rows × two blocks at a time. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/tile_rows.h"

enum {
    TILE_ROWS = 16,
    TILE_LINE = 64,
    TILE_BYTES = TILE_ROWS * TILE_LINE,
    TILE_STEPS = 12 /* at a time, for all blocks: their rows of x stay in the first-level cache */
};

/* Steps from … to-1. */
typedef struct span {
    size_t from, to;
} span;

/* Sums that are still in tiles 0 … 3. */
typedef struct waiting {
    int32_t *y;
    bool some, tall, wide;
} waiting;

/* One or two tiles of rows × one or two blocks. The products of a step are independent, and a tile
 * that is loaded is used for both, and for the next step if that reads the same. Sums begin as
 * `start`, the same in every row: a tile whose lines are all read from one place. Storing tiles
 * takes as long as three products if nothing else is there to do, so sums wait in their tiles until
 * the next ones begin: each is stored just before its place is taken. Of long rows a few steps are
 * computed for all blocks, then the next few, and sums go on from y. Numbers of tiles must be
 * literals, so this is a macro. */
#define DEFINE_ROWS(name, product)                                                                 \
    SN_INLINE void name##_store(const sn_tile_rows *t, const waiting *p, const int tile)           \
    {                                                                                              \
        const size_t y_row = (size_t)t->y_row * sizeof(int32_t);                                   \
        if (tile == 0 && p->some)                                                                  \
            _tile_stored(0, p->y, y_row);                                                          \
        if (tile == 1 && p->wide)                                                                  \
            _tile_stored(1, p->y + t->y_q, y_row);                                                 \
        if (tile == 2 && p->tall)                                                                  \
            _tile_stored(2, p->y + TILE_ROWS * t->y_row, y_row);                                   \
        if (tile == 3 && p->tall && p->wide)                                                       \
            _tile_stored(3, p->y + TILE_ROWS * t->y_row + t->y_q, y_row);                          \
    }                                                                                              \
    SN_INLINE void name##_some(const sn_tile_rows *t, size_t r, size_t q, const waiting *before,   \
                               sn_fetch *f, const span steps, const int32_t *sums,                 \
                               const bool tall, const bool wide)                                   \
    {                                                                                              \
        const size_t x_row = (size_t)t->x_row, groups = r / SN_ROWS_GROUP;                         \
        const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)r * t->x_row;                        \
        const uint8_t *below = x + TILE_ROWS * t->x_row;                                           \
        const uint8_t *all = (const uint8_t *)t->w + (ptrdiff_t)q * t->w_q;                        \
        const bool more = steps.from > 0;                                                          \
        const int32_t *start = more ? sums : (const int32_t *)t->start + q * TILE_ROWS;            \
        const ptrdiff_t next = more ? t->y_q : TILE_ROWS;                                          \
        const ptrdiff_t down = more ? TILE_ROWS * t->y_row : 0;                                    \
        const size_t row = more ? (size_t)t->y_row * sizeof *sums : 0;                             \
        for (size_t s = steps.from; s < steps.to; s++) {                                           \
            const bool first = s == steps.from;                                                    \
            const uint8_t *w = all + (t->w_at ? t->w_at[s] : (ptrdiff_t)(s * TILE_BYTES));         \
            const bool other_x = first || t->at[s] != t->at[s - 1];                                \
            const bool other_w = first || !t->w_at || t->w_at[s] != t->w_at[s - 1];                \
            if (other_x)                                                                           \
                _tile_loadd(4, x + t->at[s], x_row);                                               \
            if (other_w)                                                                           \
                _tile_loadd(6, w, TILE_LINE);                                                      \
            if (first) {                                                                           \
                name##_store(t, before, 0);                                                        \
                _tile_loadd(0, start, row);                                                        \
            }                                                                                      \
            product(0, 4, 6);                                                                      \
            if (first)                                                                             \
                name##_store(t, before, 1);                                                        \
            if (wide) {                                                                            \
                if (first)                                                                         \
                    _tile_loadd(1, start + next, row);                                             \
                if (other_w)                                                                       \
                    _tile_loadd(7, w + t->w_q, TILE_LINE);                                         \
                product(1, 4, 7);                                                                  \
            }                                                                                      \
            if (first)                                                                             \
                name##_store(t, before, 2);                                                        \
            if (tall) {                                                                            \
                if (first)                                                                         \
                    _tile_loadd(2, start + down, row);                                             \
                if (other_x)                                                                       \
                    _tile_loadd(5, below + t->at[s], x_row);                                       \
                product(2, 5, 6);                                                                  \
            }                                                                                      \
            if (first)                                                                             \
                name##_store(t, before, 3);                                                        \
            if (tall && wide) {                                                                    \
                if (first)                                                                         \
                    _tile_loadd(3, start + down + next, row);                                      \
                product(3, 5, 7);                                                                  \
            }                                                                                      \
            sn_fetch_some(f);                                                                      \
            if (t->beside)                                                                         \
                t->beside(t->beside_arg, groups);                                                  \
        }                                                                                          \
    }                                                                                              \
    void name(const sn_tile_rows *t)                                                               \
    {                                                                                              \
        const size_t groups = (t->rows + SN_ROWS_GROUP - 1) / SN_ROWS_GROUP;                       \
        sn_fetch f = sn_fetch_begin(t, groups * sn_tile_rows_calls(t));                            \
        const size_t pairs = (t->blocks + 1) / 2;                                                  \
        const bool cut = t->again && pairs > 1 && t->steps >= 2 * TILE_STEPS;                      \
        const size_t parts = cut ? (t->steps + TILE_STEPS - 1) / TILE_STEPS : 1;                   \
        waiting sums = {0};                                                                        \
        for (size_t r = 0; r < t->rows; r += SN_ROWS_GROUP) {                                      \
            int32_t *y = (int32_t *)t->y + sn_rows_y(t, r);                                        \
            for (size_t p = 0; p < 2 * parts * pairs; p += 2) {                                    \
                const size_t k = p / 2 / pairs, q = p - 2 * k * pairs;                             \
                const span steps = {t->steps * k / parts, t->steps * (k + 1) / parts};             \
                int32_t *to = y + (ptrdiff_t)q * t->y_q;                                           \
                const bool tall = t->rows - r > TILE_ROWS, wide = t->blocks - q > 1;               \
                if (tall && wide)                                                                  \
                    name##_some(t, r, q, &sums, &f, steps, to, true, true);                        \
                else if (tall)                                                                     \
                    name##_some(t, r, q, &sums, &f, steps, to, true, false);                       \
                else if (wide)                                                                     \
                    name##_some(t, r, q, &sums, &f, steps, to, false, true);                       \
                else                                                                               \
                    name##_some(t, r, q, &sums, &f, steps, to, false, false);                      \
                sums = (waiting){to, true, tall, wide};                                            \
            }                                                                                      \
        }                                                                                          \
        name##_store(t, &sums, 0);                                                                 \
        name##_store(t, &sums, 1);                                                                 \
        name##_store(t, &sums, 2);                                                                 \
        name##_store(t, &sums, 3);                                                                 \
        if (t->beside)                                                                             \
            t->beside(t->beside_arg, groups);                                                      \
    }
