/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the layout of a tensor. One unit is a stretch of pixels of one channel block. */
#include "compute/reorder.h"

#include <string.h>

#include "compute/split.h"

enum { STRETCH = 1024 }; /* pixels of a unit: 64 KiB of a block of 16 */

typedef struct reorder_call {
    const sn_reorder *r;
    const sn_kernels *k;
    bool fast;      /* the kernels work on this block */
    unsigned block; /* of the blocked side, or of the target */
    int64_t blocks, stretches;
    const float *x;
    float *y;
} reorder_call;

static void unit(const reorder_call *c, int64_t index)
{
    const sn_reorder *r = c->r;
    const int64_t s = index % c->stretches, plane = index / c->stretches;
    const int64_t image = plane / c->blocks, cb = plane % c->blocks, block = c->block;
    const int64_t at = s * STRETCH, n = sn_min(r->pixels - at, STRETCH);
    const unsigned lanes = (unsigned)sn_min(block, r->c - cb * block);
    const int64_t plain = (image * r->c + cb * block) * r->pixels + at;
    const int64_t blocked = (plane * r->pixels + at) * block;
    if (r->from == 0)
        (c->fast ? c->k->f32_block : sn_f32_block_ref)(c->y + blocked, c->x + plain, (size_t)n,
                                                       lanes, c->block, (size_t)r->pixels);
    else if (r->to == 0)
        (c->fast ? c->k->f32_unblock : sn_f32_unblock_ref)(c->y + plain, c->x + blocked, (size_t)n,
                                                           lanes, c->block, (size_t)r->pixels);
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

typedef struct task_call {
    reorder_call c;
    size_t units, tasks;
} task_call;

static void task(void *arg, size_t k, int worker)
{
    const task_call *t = arg;
    (void)worker;
    for (size_t u = sn_split(t->units, t->tasks, k); u < sn_split(t->units, t->tasks, k + 1); u++)
        unit(&t->c, (int64_t)u);
}

void sn_reorder_run(const sn_reorder *r, uint32_t cpu_flags, const float *x, float *y,
                    sn_pool *pool)
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
                         .y = y}};
    t.units = (size_t)(r->n * t.c.blocks * t.c.stretches);
    t.tasks = (size_t)sn_min((int64_t)t.units, (int64_t)sn_pool_threads(pool) * 4);
    sn_pool_run(pool, t.tasks, task, &t);
}

const char *sn_reorder_name(const sn_reorder *r, uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    const unsigned block = r->to ? r->to : r->from;
    if ((r->from && r->to) || block != k->f32_block_geometry.block)
        return "f32_reorder_ref";
    return r->to ? k->f32_block_name : k->f32_unblock_name;
}
