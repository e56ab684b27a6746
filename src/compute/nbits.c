/* SPDX-License-Identifier: Apache-2.0 */
/* Driving products with few-bit weights: a task is a few panels of columns, which are widened part
 * by part of k just before they are multiplied. */
#include "compute/nbits.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/split.h"
#include "compute/tile_cost.h"

enum { PART = 1024 }; /* of k at a time: that many rows of the panels stay near */

sonde_status sn_nbits_plan_make(sn_nbits_plan *p, int64_t m, int64_t n, int64_t k, int bits,
                                int64_t block, uint32_t cpu_flags, int threads, sonde_error *err)
{
    *p = (sn_nbits_plan){.m = m,
                         .n = n,
                         .k = k,
                         .bits = bits,
                         .block = block,
                         .blocks = sn_ceil_div(k, block),
                         .blob = block * bits / 8,
                         .kernels = sn_kernels_get(cpu_flags),
                         .lanes = sn_kernels_get(cpu_flags)->f32_gemm_geometry.block,
                         .threads = threads > 0 ? threads : 1};
    const int64_t panels = sn_ceil_div(n, p->lanes);
    const int64_t model =
        sn_tile_pick_blocks(&p->kernels->f32_gemm_geometry, m, 1, sn_max(panels, 1), true);
    p->panels = sn_max(sn_min(model, panels / p->threads), 1);
    p->tasks = sn_ceil_div(panels, p->panels);
    p->part = sn_min(sn_max(PART / block, 1) * block, k);
    p->zero_row = sn_ceil_div(p->blocks * bits, 8);
    p->flops = 2 * (uint64_t)m * (uint64_t)n * (uint64_t)k;
    p->name = bits == 4 ? "f32_matmul_w4" : bits == 8 ? "f32_matmul_w8" : "f32_matmul_w2";
    size_t bytes;
    if (!sn_size_mul((size_t)p->part, (size_t)p->panels * p->lanes * sizeof(float), &bytes) ||
        !sn_size_mul(bytes, (size_t)p->threads, &p->workspace_bytes) ||
        p->workspace_bytes > PTRDIFF_MAX)
        return sn_fail(err, SONDE_LIMIT, "the matrix is too large");
    return SONDE_OK;
}

typedef struct nbits_call {
    const sn_nbits_plan *p;
    const sn_nbits_args *a;
    float *panels;
} nbits_call;

static unsigned bits_at(const uint8_t *x, int64_t i, int bits)
{
    const int64_t at = i * bits;
    return (unsigned)(x[at >> 3] >> (at & 7)) & ((1u << bits) - 1u);
}

static float zero_at(const nbits_call *c, int64_t row, int64_t block)
{
    const sn_nbits_plan *p = c->p;
    if (c->a->zeros)
        return (float)bits_at(c->a->zeros + row * p->zero_row, block, p->bits);
    if (c->a->zeros_f32)
        return c->a->zeros_f32[row * p->blocks + block];
    return (float)(1 << (p->bits - 1));
}

/* One block of one column: n weights, `lanes` apart in the panel. */
static void unpack(const uint8_t *x, int bits, float scale, float zero, int64_t n, unsigned lanes,
                   float *dst)
{
    if (bits == 4) {
        for (int64_t i = 0; i + 1 < n; i += 2, dst += 2 * lanes) {
            const uint8_t v = x[i >> 1];
            dst[0] = ((float)(v & 15) - zero) * scale;
            dst[lanes] = ((float)(v >> 4) - zero) * scale;
        }
        if (n & 1)
            *dst = ((float)(x[n >> 1] & 15) - zero) * scale;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        dst[i * lanes] = ((float)bits_at(x, i, bits) - zero) * scale;
}

/* `width` columns from `col` on of blocks from … to-1, beside each other. */
static void fill_panel(const nbits_call *c, int64_t col, int64_t width, int64_t from, int64_t to,
                       float *panel)
{
    const sn_nbits_plan *p = c->p;
    const int64_t start = from * p->block, depth = sn_min(to * p->block, p->k) - start;
    if (width < (int64_t)p->lanes)
        memset(panel, 0, sizeof(float) * (size_t)depth * p->lanes);
    for (int64_t b = from; b < to; b++) {
        const int64_t first = b * p->block, n = sn_min(p->block, p->k - first);
        for (int64_t l = 0; l < width; l++) {
            const uint8_t *x = c->a->w + ((col + l) * p->blocks + b) * p->blob;
            float *dst = panel + (first - start) * p->lanes + l;
            if (!c->a->groups) {
                unpack(x, p->bits, c->a->scales[(col + l) * p->blocks + b], zero_at(c, col + l, b),
                       n, p->lanes, dst);
                continue;
            }
            for (int64_t i = 0; i < n; i++) {
                const int64_t g = c->a->groups[first + i];
                dst[i * p->lanes] = ((float)bits_at(x, i, p->bits) - zero_at(c, col + l, g)) *
                                    c->a->scales[(col + l) * p->blocks + g];
            }
        }
    }
}

static void nbits_task(void *arg, size_t task, int worker)
{
    const nbits_call *c = arg;
    const sn_nbits_plan *p = c->p;
    const int64_t lanes = p->lanes, col = (int64_t)task * p->panels * lanes;
    const int64_t width = sn_min(p->panels * lanes, p->n - col), panels = sn_ceil_div(width, lanes);
    float *w = c->panels + (size_t)worker * (size_t)(p->part * p->panels * lanes);
    float bias[SN_TILE_MAX_BLOCKS * 16] = {0};
    if (c->a->bias)
        memcpy(bias, c->a->bias + col, sizeof(float) * (size_t)width);
    for (int64_t k0 = 0; k0 < p->k; k0 += p->part) {
        const int64_t k = sn_min(p->part, p->k - k0), from = k0 / p->block;
        for (int64_t q = 0; q < panels; q++)
            fill_panel(c, col + q * lanes, sn_min(lanes, width - q * lanes), from,
                       from + sn_ceil_div(k, p->block), w + q * k * lanes);
        const sn_f32_tile t = {.x = c->a->a + k0,
                               .w = w,
                               .bias = c->a->bias && k0 == 0 ? bias : NULL,
                               .z = k0 > 0 ? c->a->y + col : NULL,
                               .y = c->a->y + col,
                               .pixels = (size_t)p->m,
                               .blocks = (unsigned)panels,
                               .lanes = (unsigned)(width % lanes),
                               .block = p->lanes,
                               .ic_blocks = 1,
                               .ic = (size_t)k,
                               .ic_last = (size_t)k,
                               .kh = 1,
                               .kw = 1,
                               .last_kw = 1,
                               .x_pixel = p->k,
                               .x_ic = 1,
                               .w_q = k * lanes,
                               .w_ic = lanes,
                               .y_pixel = p->n,
                               .y_q = lanes,
                               .z_pixel = p->n,
                               .z_q = lanes,
                               .lo = -INFINITY,
                               .hi = INFINITY};
        p->kernels->f32_gemm(&t);
    }
}

void sn_nbits_run(const sn_nbits_plan *p, const sn_nbits_args *a, void *workspace, sn_pool *pool)
{
    if (p->m == 0 || p->n == 0)
        return;
    nbits_call c = {p, a, workspace};
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* panels were made for fewer workers */
    sn_pool_run(pool, (size_t)p->tasks, nbits_task, &c);
}
