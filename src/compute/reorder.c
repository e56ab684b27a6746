/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the layout of a tensor. One unit is a stretch of pixels of one channel block. */
#include "compute/reorder.h"

#include <string.h>

#include "compute/small_floats.h"
#include "compute/split.h"

enum {
    STRETCH = 1024, /* pixels of a unit: 64 KiB of a block of 16 */
    PIECE = 256,    /* pixels that are converted at once: 16 KiB, which stay in the first cache */
    MOST_LANES = 16
};

typedef struct reorder_call {
    const sn_reorder *r;
    const sn_kernels *k;
    bool fast;      /* the kernels work on this block */
    unsigned block; /* of the blocked side, or of the target */
    int64_t blocks, stretches;
    const float *x;
    float *y; /* or of 16-bit floats: r->plain */
    uint32_t cpu_flags;
} reorder_call;

/* Pixels [0, n) of some channels, which lie `pixels` apart on the plain side. */
static void block_up(const reorder_call *c, float *blocked, const float *plain, int64_t n,
                     unsigned lanes, int64_t pixels)
{
    (c->fast ? c->k->f32_block : sn_f32_block_ref)(blocked, plain, (size_t)n, lanes, c->block,
                                                   (size_t)pixels);
}

static void unblock(const reorder_call *c, float *plain, const float *blocked, int64_t n,
                    unsigned lanes, int64_t pixels)
{
    (c->fast ? c->k->f32_unblock : sn_f32_unblock_ref)(plain, blocked, (size_t)n, lanes, c->block,
                                                       (size_t)pixels);
}

/* The same where the plain side has 16-bit floats, from element `plain` on: through a piece of f32.
 */
static void convert(const reorder_call *c, int64_t blocked, int64_t plain, int64_t n,
                    unsigned lanes)
{
    const sonde_dtype type = c->r->plain;
    float piece[MOST_LANES * PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t m = sn_min(n - at, PIECE), b = blocked + at * c->block;
        if (c->r->to == 0)
            unblock(c, piece, c->x + b, m, lanes, PIECE);
        for (unsigned l = 0; l < lanes; l++) {
            const int64_t p = plain + l * c->r->pixels + at;
            if (c->r->to == 0)
                sn_store_f32(c->cpu_flags, type, (uint16_t *)(void *)c->y + p, piece + l * PIECE,
                             (size_t)m, (sn_rounding){0});
            else
                sn_load_f32(c->cpu_flags, type, piece + l * PIECE,
                            (const uint16_t *)(const void *)c->x + p, (size_t)m);
        }
        if (c->r->to != 0)
            block_up(c, c->y + b, piece, m, lanes, PIECE);
    }
}

static void unit(const reorder_call *c, int64_t index)
{
    const sn_reorder *r = c->r;
    const int64_t s = index % c->stretches, plane = index / c->stretches;
    const int64_t image = plane / c->blocks, cb = plane % c->blocks, block = c->block;
    const int64_t at = s * STRETCH, n = sn_min(r->pixels - at, STRETCH);
    const unsigned lanes = (unsigned)sn_min(block, r->c - cb * block);
    const int64_t plain = (image * r->c + cb * block) * r->pixels + at;
    const int64_t blocked = (plane * r->pixels + at) * block;
    if (r->plain)
        convert(c, blocked, plain, n, lanes);
    else if (r->from == 0)
        block_up(c, c->y + blocked, c->x + plain, n, lanes, r->pixels);
    else if (r->to == 0)
        unblock(c, c->y + plain, c->x + blocked, n, lanes, r->pixels);
    else { /* one block size to another */
        const int64_t from = r->from, in_blocks = sn_ceil_div(r->c, from);
        for (int64_t l = 0; l < block; l++) {
            const int64_t ch = cb * block + l;
            const float *src =
                c->x + ((image * in_blocks + ch / from) * r->pixels + at) * from + ch % from;
            for (int64_t i = 0; i < n; i++)
                c->y[blocked + i * block + l] = ch < r->c ? src[i * from] : 0.0f;
        }
    }
}

/* ------------------------------------------------------------------ channels last */

/* Pieces of `lanes` floats from rows of x to rows of y, which end with zeros up to `block`. */
static void copy_pieces(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows,
                        size_t lanes, size_t block)
{
    for (int64_t p = 0; p < rows; p++) {
        memcpy(y + p * y_row, x + p * x_row, lanes * sizeof *y);
        for (size_t l = lanes; l < block; l++)
            y[p * y_row + (int64_t)l] = 0.0f;
    }
}

/* Whole blocks: a size that the compiler knows is a few moves of vectors. */
static void copy_blocks(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows,
                        size_t lanes, size_t block)
{
    if (lanes == 16)
        for (int64_t p = 0; p < rows; p++)
            memcpy(y + p * y_row, x + p * x_row, 16 * sizeof *y);
    else if (lanes == 8)
        for (int64_t p = 0; p < rows; p++)
            memcpy(y + p * y_row, x + p * x_row, 8 * sizeof *y);
    else
        copy_pieces(y, y_row, x, x_row, rows, lanes, block);
}

/* All channels of a few pixels, so that every line of memory comes once. */
static int64_t pixels_at_once(const sn_reorder *r)
{
    enum { ELEMS = 8192, LEAST = 16 };
    return sn_max(ELEMS / r->c, LEAST);
}

static void unit_last(const reorder_call *c, int64_t index)
{
    const sn_reorder *r = c->r;
    const int64_t image = index / c->stretches, step = pixels_at_once(r), block = c->block;
    const int64_t at = index % c->stretches * step, n = sn_min(r->pixels - at, step);
    const int64_t last = (image * r->pixels + at) * r->c;
    for (int64_t cb = 0; cb < c->blocks; cb++) {
        const int64_t blocked = ((image * c->blocks + cb) * r->pixels + at) * block;
        const size_t lanes = (size_t)sn_min(block, r->c - cb * block);
        if (r->to)
            copy_blocks(c->y + blocked, block, c->x + last + cb * block, r->c, n, lanes,
                        (size_t)block);
        else
            copy_blocks(c->y + last + cb * block, r->c, c->x + blocked, block, n, lanes, lanes);
    }
}

typedef struct task_call {
    reorder_call c;
    size_t units, tasks;
} task_call;

static void task(void *arg, size_t k, int worker)
{
    const task_call *t = arg;
    (void)worker;
    for (size_t u = sn_split(t->units, t->tasks, k); u < sn_split(t->units, t->tasks, k + 1); u++)
        (t->c.r->last ? unit_last : unit)(&t->c, (int64_t)u);
}

void sn_reorder_run(const sn_reorder *r, uint32_t cpu_flags, const void *x, void *y, sn_pool *pool)
{
    if (r->n == 0 || r->c == 0 || r->pixels == 0)
        return;
    if (r->from == r->to) {
        const int64_t c = r->from ? sn_ceil_div(r->c, r->from) * r->from : r->c;
        memcpy(y, x, (size_t)(r->n * c * r->pixels) * sizeof(float));
        return;
    }
    const unsigned block = r->to ? r->to : r->from;
    task_call t = {.c = {.r = r,
                         .k = sn_kernels_get(cpu_flags),
                         .fast = block == sn_kernels_get(cpu_flags)->f32_block_geometry.block,
                         .block = block,
                         .blocks = sn_ceil_div(r->c, block),
                         .stretches = sn_ceil_div(r->pixels, STRETCH),
                         .x = x,
                         .y = y,
                         .cpu_flags = cpu_flags}};
    t.units = (size_t)(r->n * t.c.blocks * t.c.stretches);
    if (r->last) {
        t.c.stretches = sn_ceil_div(r->pixels, pixels_at_once(r));
        t.units = (size_t)(r->n * t.c.stretches);
    }
    t.tasks = (size_t)sn_min((int64_t)t.units, (int64_t)sn_pool_threads(pool) * 4);
    sn_pool_run(pool, t.tasks, task, &t);
}

const char *sn_reorder_name(const sn_reorder *r, uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    const unsigned block = r->to ? r->to : r->from;
    if (r->last)
        return r->to ? "f32_block_last" : "f32_unblock_last";
    if ((r->from && r->to) || block != k->f32_block_geometry.block)
        return "f32_reorder_ref";
    return r->to ? k->f32_block_name : k->f32_unblock_name;
}
