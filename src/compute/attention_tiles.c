/* SPDX-License-Identifier: Apache-2.0 */
/* A packed head is
 *
 *   keys    [block of 16 keys][step of 32 elements][32 / 2][16 keys][2]
 *   values  [block of 16 elements][step of 32 keys][32 / 2][16 elements][2]
 *
 * with zeros behind the last key and the last element. */
#include "compute/attention_tiles.h"

#include "compute/tiles.h"

enum {
    TILE = SN_ROWS_TILE,
    STEP_FLOATS = SN_ROWS_STEP / sizeof(float),
    WEIGHT_FLOATS = SN_ROWS_WEIGHTS / sizeof(float),
    SOME_STEPS = 4 /* of keys that are packed at a time, on the stack */
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

static void pack_keys(const sn_attention_plan *p, const float *k, float *dst)
{
    const sn_attention_desc *d = &p->d;
    const int64_t steps = steps_of(d->head);
    uint16_t some[TILE][SOME_STEPS * SN_STEP_HALVES];
    for (int64_t t = 0; t < d->kv_len; t += TILE) {
        const int64_t n = sn_min(TILE, d->kv_len - t);
        for (int64_t s = 0; s < steps; s += SOME_STEPS) {
            const int64_t m = sn_min(SOME_STEPS, steps - s), from = s * SN_STEP_HALVES;
            for (int64_t r = 0; r < n; r++)
                sn_tiles_round(p->kernels, some[r], NULL, k + (t + r) * d->k[2] + from,
                               (size_t)sn_min(m * SN_STEP_HALVES, d->head - from));
            /* Pairs of elements are as wide as floats: keys become lanes. */
            p->kernels->f32_block(dst, (const float *)(const void *)some[0],
                                  (size_t)(m * STEP_FLOATS), (unsigned)n, TILE,
                                  SOME_STEPS * STEP_FLOATS);
            dst += m * WEIGHT_FLOATS;
        }
    }
}

static void pack_values(const sn_attention_plan *p, const float *v, float *dst)
{
    const sn_attention_desc *d = &p->d;
    const int64_t steps = steps_of(d->kv_len);
    if (d->kv_len % SN_STEP_HALVES != 0 || d->v_head % TILE != 0)
        memset(dst, 0, (size_t)sn_attention_tiles_values(d) * sizeof *dst);
    for (int64_t j = 0; j < d->kv_len; j += 2)
        for (int64_t c = 0; c < d->v_head; c += TILE) {
            const float *a = v + j * d->v[2] + c;
            const int64_t at = c / TILE * steps * WEIGHT_FLOATS + j / 2 * TILE;
            p->kernels->bf16_zip((uint16_t *)(void *)(dst + at), a,
                                 j + 1 < d->kv_len ? a + d->v[2] : NULL,
                                 (size_t)sn_min(TILE, d->v_head - c));
        }
}

void sn_attention_tiles_pack(const sn_attention_plan *p, const float *k, const float *v, float *dst)
{
    pack_keys(p, k, dst);
    pack_values(p, v, dst + p->pack_k);
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
    for (int64_t r = 0; r < rows; r++)
        sn_tiles_round(p->kernels, t.q + r * q_row(p) * (int64_t)sizeof(float), NULL,
                       q + r * p->d.q[2], (size_t)p->d.head);
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
    for (int64_t r = 0; r < rows; r++)
        sn_tiles_round(p->kernels, t->e + r * e, NULL, s + r * p->keys, (size_t)n);
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
