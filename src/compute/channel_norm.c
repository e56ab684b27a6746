/* SPDX-License-Identifier: Apache-2.0 */
/* A few pixels at a time become rows in the workspace, which stays in the first-level cache, are
 * normalised there, and go back. */
#include "compute/channel_norm.h"

#include <string.h>

#include "compute/split.h"

enum { PIXELS = 8, FLOATS_PER_TASK = 32 << 10 };

void sn_channel_norm_plan(sn_channel_norm *p, uint32_t cpu_flags)
{
    const int64_t unit = p->block ? p->block : 1;
    p->kernels = sn_kernels_get(cpu_flags);
    p->name = p->rms ? p->kernels->f32_rmsnorm_name : p->kernels->f32_layernorm_name;
    p->pitch = sn_ceil_div(p->channels, unit) * unit;
    p->rows =
        sn_carve_each(&p->workspace, (size_t)p->threads, (size_t)p->pitch * PIXELS * sizeof(float));
}

typedef struct job {
    const sn_channel_norm *p;
    float *y;
    const float *x, *scale, *bias;
    void *workspace;
    size_t groups, tasks;
} job;

static inline void copy_lanes(float *to, const float *from, int64_t block)
{
    if (block == 16)
        memcpy(to, from, 16 * sizeof *to);
    else
        memcpy(to, from, (size_t)block * sizeof *to);
}

/* `count` pixels between the image, from its first of them, and rows. */
static void gather(const sn_channel_norm *p, float *rows, const float *x, int64_t count)
{
    if (!p->block) {
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t i = 0; i < count; i++)
                rows[i * p->pitch + c] = x[c * p->pixels + i];
        return;
    }
    for (int64_t c = 0; c < p->pitch; c += p->block)
        for (int64_t i = 0; i < count; i++)
            copy_lanes(rows + i * p->pitch + c, x + c * p->pixels + i * p->block, p->block);
}

static void scatter(const sn_channel_norm *p, float *y, const float *rows, int64_t count)
{
    if (!p->block) {
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t i = 0; i < count; i++)
                y[c * p->pixels + i] = rows[i * p->pitch + c];
        return;
    }
    for (int64_t c = 0; c < p->pitch; c += p->block)
        for (int64_t i = 0; i < count; i++)
            copy_lanes(y + c * p->pixels + i * p->block, rows + i * p->pitch + c, p->block);
}

/* Lanes behind the last channel are zero in x and are not touched on the way. */
static void normalise(const job *j, int64_t group, float *rows)
{
    const sn_channel_norm *p = j->p;
    const int64_t of_image = sn_ceil_div(p->pixels, PIXELS), first = group % of_image * PIXELS;
    const int64_t at = group / of_image * p->pitch * p->pixels + first * (p->block ? p->block : 1);
    const int64_t count = sn_min(p->pixels - first, PIXELS);
    sn_f32_norm_fn *kernel = p->rms ? p->kernels->f32_rmsnorm : p->kernels->f32_layernorm;
    gather(p, rows, j->x + at, count);
    for (int64_t i = 0; i < count; i++) {
        float *row = rows + i * p->pitch;
        kernel(row, row, j->scale, j->bias, (size_t)p->channels, p->epsilon, NULL);
    }
    scatter(p, j->y + at, rows, count);
}

static void task(void *arg, size_t index, int worker)
{
    const job *j = arg;
    float *rows = sn_pieces_at(j->workspace, j->p->rows, (size_t)worker);
    for (size_t g = sn_split(j->groups, j->tasks, index);
         g < sn_split(j->groups, j->tasks, index + 1); g++)
        normalise(j, (int64_t)g, rows);
}

void sn_channel_norm_run(const sn_channel_norm *p, float *y, const float *x, const float *scale,
                         const float *bias, void *workspace, sn_pool *pool)
{
    job j = {.p = p, .y = y, .x = x, .scale = scale, .bias = bias, .workspace = workspace};
    const int64_t floats = p->images * p->pixels * p->channels;
    if (floats == 0)
        return;
    if (sn_pool_threads(pool) > p->threads) /* the workspace is planned per worker */
        pool = NULL;
    j.groups = (size_t)(p->images * sn_ceil_div(p->pixels, PIXELS));
    j.tasks = (size_t)sn_min((int64_t)j.groups, floats / FLOATS_PER_TASK + 1);
    sn_pool_run(pool, j.tasks, task, &j);
}
