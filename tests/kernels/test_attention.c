/* SPDX-License-Identifier: Apache-2.0 */
/* What attention does between its products. */
#include "rows.h"

/* Rows with scores far below 0, -inf, NaN, nothing at all, and with pieces seen before or not. */
static void check_exp_rows(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    enum { MOST = 9 };
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300), rows = rnd(0, MOST);
        const size_t stride = n + rnd(0, 3), all = rows ? (rows - 1) * stride + n : 0;
        const bool with_bias = i % 3 != 0;
        guarded got = guard_floats(all, i % 2), want = guard_floats(all, i % 2),
                bias = guard_floats(all, i % 2), more = guard_floats(all, i % 2),
                scale = guard_floats(all, i % 2);
        float state[2][3][MOST] = {0}, size[MOST];
        const float width = i % 5 ? 4.0f : 300.0f, far = i % 7 ? width : width + 1000.0f;
        for (size_t k = 0; k < all; k++) {
            want.data[k] = test_randf() * width - (far - width);
            bias.data[k] = i % 4 > 1 || test_rand() % 3 == 0 ? test_randf()
                           : i % 4 == 1                      ? -INFINITY
                                                             : -FLT_MAX;
            more.data[k] = i % 5 ? test_randf() : bias.data[k];
            scale.data[k] = 1.0f + far;
        }
        if (i % 11 == 0 && all > 0)
            want.data[rnd(0, all - 1)] = NAN;
        memcpy(got.data, want.data, all * sizeof(float));
        for (size_t r = 0; r < rows; r++) {
            const bool before = test_rand() % 2;
            state[0][0][r] = state[1][0][r] = before ? test_randf() * 8.0f : -INFINITY;
            state[0][1][r] = state[1][1][r] = before ? 3.0f : 0.0f;
            size[r] = ((float)n + 3.0f) * (1.0f + far);
        }
        sn_f32_exp_rows e = {
            .s = want.data,
            .bias = with_bias ? bias.data : NULL,
            .more = with_bias && i % 2 ? more.data : NULL,
            .s_row = (ptrdiff_t)stride,
            .bias_row = i % 2 ? (ptrdiff_t)stride : 0,
            .more_row = i % 6 > 2 ? (ptrdiff_t)stride : 0,
            .rows = rows,
            .n = n,
            .scale = test_randf() * 2.0f,
            .max = state[0][0],
            .sum = state[0][1],
            .factor = state[0][2],
        };
        ((sn_f32_exp_rows_fn *)ref->fn)(&e);
        e.s = got.data;
        e.max = state[1][0], e.sum = state[1][1], e.factor = state[1][2];
        ((sn_f32_exp_rows_fn *)row->fn)(&e);
        for (size_t r = 0; r < rows; r++)
            if (isnan(state[0][1][r])) { /* nothing but the sum is promised */
                state[0][0][r] = state[1][0][r] = state[0][2][r] = state[1][2][r] = 0.0f;
                memset(want.data + r * stride, 0, n * sizeof(float));
                memset(got.data + r * stride, 0, n * sizeof(float));
            }
        same("maxima", row, "", state[1][0], state[0][0], size, rows);
        same("sums", row, "", state[1][1], state[0][1], size, rows);
        same("factors", row, "", state[1][2], state[0][2], size, rows);
        same("exponentials", row, "", got.data, want.data, scale.data, all);
        guard_free(&got), guard_free(&want), guard_free(&bias), guard_free(&more);
        guard_free(&scale);
    }
}

static void check_scale_rows(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 100 && !test_errors; i++) {
        const size_t n = (size_t)i, rows = rnd(0, 5), stride = n + rnd(0, 3);
        const size_t all = rows ? (rows - 1) * stride + n : 0;
        guarded got = guard_floats(all, i % 2), want = guard_floats(all, i % 2),
                by = guard_floats(rows, i % 2);
        fill(want.data, all, ALL), fill(by.data, rows, i % 3 ? NONE : ALL);
        memcpy(got.data, want.data, all * sizeof(float));
        ((sn_f32_scale_rows_fn *)ref->fn)(want.data, (ptrdiff_t)stride, rows, n, by.data);
        ((sn_f32_scale_rows_fn *)row->fn)(got.data, (ptrdiff_t)stride, rows, n, by.data);
        same("scaled rows", row, "", got.data, want.data, NULL, all);
        guard_free(&got), guard_free(&want), guard_free(&by);
    }
}

static void check_dots(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = rnd(0, 20), size = i < 100 ? (size_t)i : rnd(0, 200);
        const size_t stride = size + rnd(0, 5), all = n ? (n - 1) * stride + size : 0;
        guarded x = guard_floats(size, i % 2), rows = guard_floats(all, i % 2),
                got = guard_floats(n, i % 2), want = guard_floats(n, i % 2);
        float scale[20] = {0};
        fill(x.data, size, NONE), fill(rows.data, all, NONE);
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < size; k++)
                scale[j] += fabsf(x.data[k] * rows.data[j * stride + k]);
        ((sn_f32_dots_fn *)ref->fn)(want.data, x.data, rows.data, n, size, stride);
        ((sn_f32_dots_fn *)row->fn)(got.data, x.data, rows.data, n, size, stride);
        same("y", row, "", got.data, want.data, scale, n);
        guard_free(&x), guard_free(&rows), guard_free(&got), guard_free(&want);
    }
}

TEST(every_kernel_of_attention_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_exp_rows", check_exp_rows},
                                           {"sn_f32_scale_rows", check_scale_rows},
                                           {"sn_f32_dots", check_dots},
                                           {NULL, NULL}};
    check_family("attention", checkers);
}

TEST_MAIN()
