/* SPDX-License-Identifier: Apache-2.0 */
/* A block of y is made of lanes of one block of x, or of two neighbours. */
#include "compute/channel_copy.h"

#include <string.h>

#include "compute/parallel.h"
#include "compute/split.h"

/* `bytes` of every pixel. */
static inline void lanes(char *y, const char *x, int64_t pixels, size_t pixel, const size_t bytes)
{
    for (int64_t i = 0; i < pixels; i++, y += pixel, x += pixel)
        memcpy(y, x, bytes);
}

static void copy_lanes(char *y, const char *x, int64_t pixels, size_t pixel, size_t bytes)
{
    switch (bytes) { /* sizes that are constants need no call */
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        lanes(y, x, pixels, pixel, n);                                                             \
        return;
        CASE(4)
        CASE(8)
        CASE(12)
        CASE(16)
        CASE(20)
        CASE(24)
        CASE(28)
        CASE(32)
        CASE(36)
        CASE(40)
        CASE(44)
        CASE(48)
        CASE(52)
        CASE(56)
        CASE(60)
#undef CASE
    default:
        lanes(y, x, pixels, pixel, bytes);
    }
}

static void clear_lanes(char *y, int64_t pixels, size_t pixel, size_t bytes)
{
    for (int64_t i = 0; i < pixels; i++, y += pixel)
        memset(y, 0, bytes);
}

typedef struct job {
    const sn_channel_copy *c;
    char *y;
    const char *x;
    int64_t first, blocks; /* blocks of y that channels go to */
} job;

/* Block `b` of y, of one image. */
static void copy_block(const job *j, int64_t image, int64_t b)
{
    const sn_channel_copy *c = j->c;
    const int64_t block = c->block, x_blocks = sn_ceil_div(c->x_channels, block);
    const int64_t y_blocks = sn_ceil_div(c->y_channels, block);
    const size_t elem = c->elem_bytes, pixel = (size_t)block * elem;
    const size_t plane = (size_t)c->pixels * pixel;
    char *to = j->y + (size_t)(image * y_blocks + b) * plane;
    const int64_t end = sn_min(c->to + c->n, (b + 1) * block);
    for (int64_t o = sn_max(c->to, b * block), n; o < end; o += n) {
        const int64_t i = c->from + o - c->to;
        n = sn_min(end - o, block - i % block);
        const char *from = j->x + (size_t)(image * x_blocks + i / block) * plane;
        if (n == block)
            memcpy(to, from, plane);
        else
            copy_lanes(to + (size_t)(o % block) * elem, from + (size_t)(i % block) * elem,
                       c->pixels, pixel, (size_t)n * elem);
    }
    if (end == c->y_channels && end % block)
        clear_lanes(to + (size_t)(end % block) * elem, c->pixels, pixel,
                    (size_t)(block - end % block) * elem);
}

static void range(void *arg, size_t lo, size_t hi)
{
    const job *j = arg;
    for (size_t i = lo; i < hi; i++)
        copy_block(j, (int64_t)i / j->blocks, j->first + (int64_t)i % j->blocks);
}

void sn_channel_copy_run(const sn_channel_copy *c, void *y, const void *x, sn_pool *pool)
{
    if (c->n <= 0 || c->images <= 0 || c->pixels <= 0)
        return;
    const int64_t first = c->to / c->block;
    const job j = {c, y, x, first, sn_ceil_div(c->to + c->n, c->block) - first};
    sn_parallel_range(pool, (size_t)(c->images * j.blocks), (size_t)(c->pixels * c->block), range,
                      (void *)&j);
}
