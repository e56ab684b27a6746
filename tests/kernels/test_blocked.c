/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels around the blocked layout: pooling, mixing rows, into blocks and out of them. */
#include "rows.h"

static void check_pool(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->geometry.block;
    for (int i = 0; i < 300 && !test_errors; i++) {
        sn_f32_pool t = {
            .pixels = rnd(0, 30), .kh = rnd(1, 4), .kw = rnd(1, i % 5 ? 4 : 20), .block = block};
        const bool at_end = i % 2;
        t.x_pixel = (ptrdiff_t)(rnd(1, 3) * block);
        t.x_kw = (ptrdiff_t)(rnd(1, 2) * block);
        t.x_kh = (ptrdiff_t)rnd(0, 300);
        t.scale = 1.0f / (float)(t.kh * t.kw);
        const size_t ny = t.pixels * block;
        const size_t nx = t.pixels
                              ? (t.pixels - 1) * (size_t)t.x_pixel + (t.kh - 1) * (size_t)t.x_kh +
                                    (t.kw - 1) * (size_t)t.x_kw + block
                              : 0;
        guarded x = guard_floats(nx, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        guarded scale = guard_floats(ny, at_end);
        fill(x.data, nx, i % 3 == 0 ? SMALL : NONE);
        t.x = x.data;
        t.y = want.data;
        ((sn_f32_pool_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_pool_fn *)row->fn)(&t);
        for (size_t j = 0; j < nx; j++) /* the unit of rounding error, as above */
            x.data[j] = fabsf(x.data[j]);
        t.y = scale.data;
        ((sn_f32_pool_fn *)ref->fn)(&t);
        same("pool", row, "", got.data, want.data, row->ulp > 0 ? scale.data : NULL, ny);
        guard_free(&x), guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

static void check_mix(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        enum { MOST = 12 * 6 };
        const size_t n = rnd(0, 12), taps = rnd(1, 6), rows = rnd(1, 9), inner = rnd(1, 70);
        const bool at_end = i % 2;
        int32_t index[MOST];
        float weight[MOST];
        guarded x = guard_floats(rows * inner, at_end), got = guard_floats(n * inner, at_end);
        guarded want = guard_floats(n * inner, at_end), scale = guard_floats(n * inner, at_end);
        fill(x.data, rows * inner, NONE);
        for (size_t k = 0; k < n * taps; k++) {
            index[k] = (int32_t)rnd(0, rows - 1);
            weight[k] = test_randf();
        }
        ((sn_f32_mix_fn *)ref->fn)(want.data, x.data, n, inner, index, weight, taps);
        ((sn_f32_mix_fn *)row->fn)(got.data, x.data, n, inner, index, weight, taps);
        for (size_t k = 0; k < rows * inner; k++)
            x.data[k] = fabsf(x.data[k]);
        for (size_t k = 0; k < n * taps; k++)
            weight[k] = fabsf(weight[k]);
        ((sn_f32_mix_fn *)ref->fn)(scale.data, x.data, n, inner, index, weight, taps);
        same("mix", row, "", got.data, want.data, scale.data, n * inner);
        guard_free(&x), guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

static void check_layout(const sn_kernel_row *row, const sn_kernel_row *ref, bool to_blocks)
{
    const unsigned block = row->geometry.block;
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = rnd(0, 70), channel = n + rnd(0, 3);
        const unsigned lanes = (unsigned)rnd(1, block);
        const bool at_end = i % 2;
        const size_t plain = n ? (lanes - 1) * channel + n : 0, blocked = n * block;
        const size_t nx = to_blocks ? plain : blocked, ny = to_blocks ? blocked : plain;
        guarded x = guard_floats(nx, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        fill(x.data, nx, ALL);
        fill(got.data, ny, NONE);
        memcpy(want.data, got.data, ny * sizeof(float));
        if (to_blocks) {
            ((sn_f32_block_fn *)ref->fn)(want.data, x.data, n, lanes, block, channel);
            ((sn_f32_block_fn *)row->fn)(got.data, x.data, n, lanes, block, channel);
        } else {
            ((sn_f32_unblock_fn *)ref->fn)(want.data, x.data, n, lanes, block, channel);
            ((sn_f32_unblock_fn *)row->fn)(got.data, x.data, n, lanes, block, channel);
        }
        CHECK_MSG(memcmp(got.data, want.data, ny * sizeof(float)) == 0,
                  "%s: n %zu lanes %u channel %zu", row->name, n, lanes, channel);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}
static void check_block(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    check_layout(row, ref, true);
}
static void check_unblock(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    check_layout(row, ref, false);
}

TEST(every_kernel_of_the_blocked_layout_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_pool", check_pool},
                                           {"sn_f32_mix", check_mix},
                                           {"sn_f32_block", check_block},
                                           {"sn_f32_unblock", check_unblock},
                                           {NULL, NULL}};
    check_family("blocked", checkers);
}

TEST_MAIN()
