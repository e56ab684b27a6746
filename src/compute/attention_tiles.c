/* SPDX-License-Identifier: Apache-2.0 */
/* A packed head is (tiles.h)
 *
 *   keys    [block of 16 keys][step of 32 elements][32 / 2][16 keys][2]
 *   values  [block of 16 elements][step of 32 keys][32 / 2][16 elements][2]
 */
#include "compute/attention_tiles.h"

#include "compute/tiles.h"

enum {
    TILE = SN_ROWS_TILE,
    STEP_FLOATS = SN_ROWS_STEP / sizeof(float),
    WEIGHT_FLOATS = SN_TILE_FLOATS
};

static int64_t steps_of(int64_t n)
{
    return sn_ceil_div(n, SN_STEP_HALVES);
}

static int64_t whole_tiles(int64_t n)
{
    return sn_ceil_div(n, TILE) * TILE;
}

int64_t sn_attention_tiles_keys(const sn_attention_desc *d)
{
    return sn_count(sn_ceil_div(d->kv_len, TILE), steps_of(d->head), WEIGHT_FLOATS, 1);
}

int64_t sn_attention_tiles_values(const sn_attention_desc *d)
{
    return sn_count(sn_ceil_div(d->v_head, TILE), steps_of(d->kv_len), WEIGHT_FLOATS, 1);
}

/* Floats: of a row of queries, of exponentials, of results; zeros; offsets. */
static int64_t q_row(const sn_attention_plan *p)
{
    return steps_of(p->d.head) * STEP_FLOATS;
}

static int64_t e_row(const sn_attention_plan *p)
{
    return steps_of(p->keys) * STEP_FLOATS;
}

static int64_t zeros(const sn_attention_plan *p)
{
    return whole_tiles(sn_max(p->keys, p->d.v_head));
}

static int64_t most_steps(const sn_attention_plan *p)
{
    return sn_max(steps_of(p->d.head), steps_of(p->keys));
}

int64_t sn_attention_tiles_scratch(const sn_attention_plan *p, int64_t rows)
{
    const int64_t each = q_row(p) + e_row(p) + whole_tiles(p->d.v_head);
    const int64_t of_rows = sn_count(whole_tiles(rows), each, 1, 1);
    const int64_t others = zeros(p) + most_steps(p) * (int64_t)(sizeof(ptrdiff_t) / sizeof(float));
    return of_rows < 0 || of_rows > INT64_MAX / 2 || others > INT64_MAX / 4 ? -1 : of_rows + others;
}

void sn_attention_tiles_pack(const sn_attention_plan *p, const float *k, const float *v, float *dst)
{
    const sn_attention_desc *d = &p->d;
    sn_tiles_pack_turned(p->kernels, dst, k, d->k[2], d->kv_len, d->head);
    sn_tiles_pack_plain(p->kernels, dst + p->pack_k, v, d->v[2], d->v_head, d->kv_len);
}

sn_attention_tiles sn_attention_tiles_begin(const sn_attention_plan *p, const float *q,
                                            int64_t rows, float *scratch)
{
    const int64_t all = whole_tiles(rows);
    sn_attention_tiles t = {.q = (uint8_t *)scratch};
    scratch += all * q_row(p);
    t.e = (uint8_t *)scratch;
    scratch += all * e_row(p);
    t.mixed = scratch;
    scratch += all * whole_tiles(p->d.v_head);
    t.zeros = scratch;
    memset(t.zeros, 0, (size_t)zeros(p) * sizeof(float));
    t.at = (ptrdiff_t *)(void *)(scratch + zeros(p));
    for (int64_t s = 0; s < most_steps(p); s++)
        t.at[s] = s * SN_ROWS_STEP;
    const sn_bf16_round queries = {.x = q,
                                   .y = (uint16_t *)(void *)t.q,
                                   .rows = (size_t)rows,
                                   .n = (size_t)p->d.head,
                                   .x_row = p->d.q[2],
                                   .y_row = 2 * q_row(p)};
    p->kernels->bf16_round(&queries);
    return t;
}

void sn_attention_tiles_scores(const sn_attention_plan *p, const sn_attention_tiles *t,
                               const float *pack, float *s, int64_t rows, int64_t at, int64_t n)
{
    const int64_t steps = steps_of(p->d.head), block = steps * WEIGHT_FLOATS;
    const sn_tile_rows tiles = {.x = t->q,
                                .at = t->at,
                                .w = pack + at / TILE * block,
                                .start = t->zeros,
                                .y = s,
                                .rows = (size_t)rows,
                                .blocks = (size_t)sn_ceil_div(n, TILE),
                                .steps = (size_t)steps,
                                .x_row = (ptrdiff_t)(steps * SN_ROWS_STEP),
                                .w_q = (ptrdiff_t)(steps * SN_ROWS_WEIGHTS),
                                .y_row = p->keys,
                                .y_q = TILE};
    p->kernels->bf16_rows(&tiles);
}

void sn_attention_tiles_mix(const sn_attention_plan *p, const sn_attention_tiles *t,
                            const float *pack, const float *s, float *y, int64_t rows, int64_t at,
                            int64_t n, bool add)
{
    const sn_attention_desc *d = &p->d;
    const int64_t e = e_row(p) * (int64_t)sizeof(float), row = whole_tiles(d->v_head);
    const sn_bf16_round exponentials = {.x = s,
                                        .y = (uint16_t *)(void *)t->e,
                                        .rows = (size_t)rows,
                                        .n = (size_t)n,
                                        .x_row = p->keys,
                                        .y_row = 2 * e_row(p)};
    p->kernels->bf16_round(&exponentials);
    const sn_tile_rows tiles = {.x = t->e,
                                .at = t->at,
                                .w = pack + p->pack_k + at / SN_STEP_HALVES * WEIGHT_FLOATS,
                                .start = t->zeros,
                                .y = t->mixed,
                                .rows = (size_t)rows,
                                .blocks = (size_t)(row / TILE),
                                .steps = (size_t)steps_of(n),
                                .x_row = (ptrdiff_t)e,
                                .w_q = (ptrdiff_t)(steps_of(d->kv_len) * SN_ROWS_WEIGHTS),
                                .y_row = (ptrdiff_t)row,
                                .y_q = TILE};
    p->kernels->bf16_rows(&tiles);
    for (int64_t r = 0; r < rows; r++) {
        float *to = y + r * d->y[2];
        p->kernels->f32_add_clip(to, t->mixed + r * row, add ? to : NULL, (size_t)d->v_head,
                                 -__builtin_inff(), __builtin_inff());
    }
}
