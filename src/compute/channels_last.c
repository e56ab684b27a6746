/* SPDX-License-Identifier: Apache-2.0 */
/* Channels first and last; see channels_last.h. A unit is a stretch of an image's pixels. */
#include "compute/channels_last.h"

#include <string.h>

#include "compute/parallel.h"
#include "compute/split.h"
#include "kernels/kernels.h"

enum { STRETCH = 256 };

typedef struct turn_call {
    const sn_channels_last *g;
    const sn_kernels *k;
    int64_t stretches;
    const uint8_t *x;
    uint8_t *y;
    bool to_last;
} turn_call;

/* Rows of words become columns, a square at a time, so that both sides stay in the cache. */
static void turn_words(uint32_t *y, int64_t y_row, const uint32_t *x, int64_t x_row, int64_t rows,
                       int64_t columns)
{
    enum { SQUARE = 16 };
    for (int64_t c0 = 0; c0 < columns; c0 += SQUARE)
        for (int64_t r0 = 0; r0 < rows; r0 += SQUARE)
            for (int64_t c = c0; c < sn_min(c0 + SQUARE, columns); c++)
                for (int64_t r = r0; r < sn_min(r0 + SQUARE, rows); r++)
                    y[c * y_row + r] = x[r * x_row + c];
}

static void turn(const turn_call *t, int64_t y_at, int64_t y_row, int64_t x_at, int64_t x_row,
                 int64_t rows, int64_t columns)
{
    const int64_t elem = (int64_t)t->g->elem;
    uint8_t *y = t->y + y_at * elem;
    const uint8_t *x = t->x + x_at * elem;
    if (elem == 1)
        t->k->u8_turn(y, y_row, x, x_row, (size_t)rows, (size_t)columns);
    else
        turn_words((uint32_t *)(void *)y, y_row, (const uint32_t *)(const void *)x, x_row, rows,
                   columns);
}

static void turn_range(void *arg, size_t lo, size_t hi)
{
    const turn_call *t = arg;
    const sn_channels_last *g = t->g;
    for (int64_t u = (int64_t)lo; u < (int64_t)hi; u++) {
        const int64_t image = u / t->stretches, p = u % t->stretches * STRETCH;
        const int64_t n = sn_min(STRETCH, g->pixels - p);
        const int64_t first = image * g->c * g->pixels + p,
                      last = (image * g->pixels + p) * g->pitch;
        if (!t->to_last) {
            turn(t, first, g->pixels, last, g->pitch, n, g->c);
            continue;
        }
        turn(t, last, g->pitch, first, g->pixels, g->c, n);
        for (int64_t i = 0; i < n && g->pitch > g->c; i++)
            memset(t->y + (size_t)(last + i * g->pitch + g->c) * g->elem, 0,
                   (size_t)(g->pitch - g->c) * g->elem);
    }
}

static void run(turn_call *t, uint32_t cpu_flags, sn_pool *pool)
{
    const sn_channels_last *g = t->g;
    t->k = sn_kernels_get(cpu_flags);
    t->stretches = sn_ceil_div(g->pixels, STRETCH);
    sn_parallel_range(pool, (size_t)(g->n * t->stretches), (size_t)(STRETCH * g->c), turn_range, t);
}

void sn_channels_to_last(const sn_channels_last *g, uint32_t cpu_flags, const void *x, void *y,
                         sn_pool *pool)
{
    turn_call t = {.g = g, .x = x, .y = y, .to_last = true};
    run(&t, cpu_flags, pool);
}

void sn_channels_from_last(const sn_channels_last *g, uint32_t cpu_flags, const void *x, void *y,
                           sn_pool *pool)
{
    turn_call t = {.g = g, .x = x, .y = y};
    run(&t, cpu_flags, pool);
}
