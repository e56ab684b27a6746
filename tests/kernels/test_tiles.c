/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of convolutions and matrix products. */
#include "rows.h"

/* Sizes of the arrays a tile touches, for strides that are all positive. */
typedef struct tile_case {
    sn_f32_tile t;
    size_t x, w, y, bias;
} tile_case;

static tile_case tile_random(const char *slot, unsigned block)
{
    tile_case c = {.t = {.block = block}};
    sn_f32_tile *t = &c.t;
    const bool gemm = strcmp(slot, "f32_gemm") == 0, any = strcmp(slot, "f32_conv_any") == 0;
    t->blocks = (unsigned)rnd(1, 4);
    t->pixels = rnd(0, 70);
    t->ic_blocks = gemm ? 1 : rnd(1, 3);
    t->ic = gemm || any ? rnd(0, 20) : block;
    t->ic_last = t->ic_blocks == 1 || any ? t->ic : rnd(1, block);
    t->kh = gemm ? 1 : rnd(0, 3);
    t->kw = gemm ? 1 : rnd(1, 3);
    t->first_kw = gemm ? 0 : rnd(0, t->kw);
    t->last_kw = gemm ? 1 : rnd(0, t->kw);
    if (t->first_kw > t->last_kw && t->pixels != 1)
        t->last_kw = t->kw;
    t->lanes = test_rand() % 3 ? 0 : (unsigned)rnd(1, block - 1);
    if (gemm || any) {
        t->x_ic = gemm || test_rand() % 2 ? 1 : 29;
        t->x_kw = (ptrdiff_t)rnd(1, 3) * (ptrdiff_t)t->ic;
        t->x_pixel = (ptrdiff_t)rnd(1, 60);
    } else {
        t->x_ic = 1;
        t->x_pixel = (ptrdiff_t)(rnd(1, 3) * block);
        t->x_kw = (ptrdiff_t)(rnd(1, 2) * block);
    }
    t->x_kh = (ptrdiff_t)rnd(0, 100);
    t->x_block = (ptrdiff_t)rnd(0, 200);
    t->w_kw = (ptrdiff_t)(t->ic * block);
    t->w_kh = t->w_kw * (ptrdiff_t)t->kw;
    t->w_block = t->w_kh * (ptrdiff_t)t->kh;
    t->w_q = t->w_block * (ptrdiff_t)t->ic_blocks;
    t->w_ic = (ptrdiff_t)block;
    if (gemm && test_rand() % 2) { /* a matrix that is not packed: blocks side by side */
        t->w_q = (ptrdiff_t)block;
        t->w_ic = (ptrdiff_t)(t->blocks * block + rnd(0, 5));
        if (test_rand() % 8 == 0) /* one row, for a single channel or repeated */
            t->w_ic = 0;
    }
    t->y_q = t->z_q = (ptrdiff_t)block;
    t->y_pixel = t->z_pixel = (ptrdiff_t)(t->blocks * block);
    if (!t->lanes && test_rand() % 2) { /* blocks far apart, as in blocked tensors */
        t->y_pixel = t->z_pixel = (ptrdiff_t)block;
        t->y_q = t->z_q = (ptrdiff_t)(block * (t->pixels + 1));
    }
    t->lo = test_rand() % 2 ? -INFINITY : -0.25f;
    t->hi = test_rand() % 2 ? INFINITY : 0.75f;
    const size_t lanes = t->lanes ? t->lanes : block;
    /* The last element the last pixel and the last block may touch. */
    const ptrdiff_t channels = (ptrdiff_t)(t->ic > t->ic_last ? t->ic : t->ic_last);
    if (t->pixels > 0) {
        c.x = (size_t)((ptrdiff_t)(t->pixels - 1) * t->x_pixel +
                       (ptrdiff_t)(t->ic_blocks - 1) * t->x_block +
                       (ptrdiff_t)(t->kh ? t->kh - 1 : 0) * t->x_kh +
                       (ptrdiff_t)(t->kw - 1) * t->x_kw +
                       (channels > 0 ? (channels - 1) * t->x_ic : 0) + 1);
        c.y = (size_t)((ptrdiff_t)(t->pixels - 1) * t->y_pixel +
                       (ptrdiff_t)(t->blocks - 1) * t->y_q) +
              lanes;
    }
    c.w = (size_t)t->w_q * t->blocks;
    if (gemm && t->w_q == (ptrdiff_t)block)
        c.w = t->ic ? (t->ic - 1) * (size_t)t->w_ic + t->blocks * block : 0;
    c.bias = (t->blocks - 1) * block + lanes;
    return c;
}

static void check_tile(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    sn_f32_tile_fn *fn = (sn_f32_tile_fn *)row->fn, *want_fn = (sn_f32_tile_fn *)ref->fn;
    for (int i = 0; i < 600 && !test_errors; i++) {
        tile_case c = tile_random(row->slot->name, row->geometry.block);
        const bool at_end = i % 2, odd = i % 7 == 0;
        guarded x = guard_floats(c.x, at_end), w = guard_floats(c.w, at_end);
        guarded bias = guard_floats(c.bias, at_end), z = guard_floats(c.y, at_end);
        guarded got = guard_floats(c.y, at_end), want = guard_floats(c.y, at_end);
        guarded scale = guard_floats(c.y, at_end);
        char info[160];
        fill(x.data, c.x, odd ? SMALL : NONE);
        fill(w.data, c.w, NONE);
        fill(bias.data, c.bias, NONE);
        fill(z.data, c.y, odd ? SMALL : NONE);
        fill(got.data, c.y, NONE);
        memcpy(want.data, got.data, c.y * sizeof(float));
        memcpy(scale.data, got.data, c.y * sizeof(float));
        sn_f32_tile t = c.t;
        t.x = x.data;
        t.w = w.data;
        t.bias = test_rand() % 3 ? bias.data : NULL;
        t.z = test_rand() % 3 ? z.data : NULL;
        const bool in_place = t.z && test_rand() % 3 == 0;
        if (in_place) {
            memcpy(got.data, z.data, c.y * sizeof(float));
            memcpy(want.data, z.data, c.y * sizeof(float));
        }
        t.y = want.data;
        want_fn(&t);
        sn_f32_tile u = t;
        u.y = got.data;
        if (in_place)
            u.z = got.data;
        fn(&u);
        /* The same sum of absolute values: the unit of its rounding error. */
        float *all[] = {x.data, w.data, bias.data, z.data};
        const size_t sizes[] = {c.x, c.w, c.bias, c.y};
        for (int k = 0; k < 4; k++)
            for (size_t j = 0; j < sizes[k]; j++)
                all[k][j] = fabsf(all[k][j]);
        t.y = scale.data;
        t.lo = -INFINITY;
        t.hi = INFINITY;
        want_fn(&t);
        snprintf(info, sizeof info,
                 "case %d: pixels %zu blocks %u lanes %u ic %zu×%zu…%zu taps %zu×%zu [%zu, %zu)", i,
                 t.pixels, t.blocks, t.lanes, t.ic_blocks, t.ic, t.ic_last, t.kh, t.kw, t.first_kw,
                 t.last_kw);
        same("tile", row, info, got.data, want.data, scale.data, c.y);
        guard_free(&x), guard_free(&w), guard_free(&bias), guard_free(&z);
        guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

TEST(every_tile_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_tile", check_tile}, {NULL, NULL}};
    check_family("tiles", checkers);
}

TEST_MAIN()
