/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over one row: sums, softmax, normalisations. */
#include "rows.h"

static void check_reduce(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 150 ? (size_t)i : rnd(0, 1000);
        guarded x = guard_floats(n, i % 2);
        float scale = 0;
        fill(x.data, n, i % 4 == 0 ? SMALL : NONE);
        const float want = ((sn_f32_reduce_fn *)ref->fn)(x.data, n);
        const float got = ((sn_f32_reduce_fn *)row->fn)(x.data, n);
        for (size_t k = 0; k < n; k++)
            scale += x.data[k] * x.data[k] + fabsf(x.data[k]);
        same("row", row, "", &got, &want, &scale, 1);
        guard_free(&x);
    }
}

static void check_softmax(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(1, 1000);
        guarded x = guard_floats(n, i % 2), got = guard_floats(n, i % 2),
                want = guard_floats(n, i % 2);
        fill(x.data, n, NONE);
        ((sn_f32_softmax_fn *)ref->fn)(want.data, x.data, n);
        if (i % 2)
            memcpy(got.data, x.data, n * sizeof(float));
        ((sn_f32_softmax_fn *)row->fn)(got.data, i % 2 ? got.data : x.data, n);
        same("row", row, "", got.data, want.data, NULL, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_norm(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i + 1 : rnd(1, 1000);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), s = guard_floats(n, at_end),
                b = guard_floats(n, at_end);
        guarded got = guard_floats(n, at_end), want = guard_floats(n, at_end);
        guarded scale = guard_floats(n, at_end);
        float stats_want[2], stats_got[2];
        fill(x.data, n, NONE);
        fill(s.data, n, NONE);
        fill(b.data, n, NONE);
        const float *ps = i % 3 ? s.data : NULL, *pb = i % 5 ? b.data : NULL;
        ((sn_f32_norm_fn *)ref->fn)(want.data, x.data, ps, pb, n, 1e-5f, stats_want);
        ((sn_f32_norm_fn *)row->fn)(got.data, x.data, ps, pb, n, 1e-5f, i % 2 ? stats_got : NULL);
        for (size_t k = 0; k < n; k++)
            scale.data[k] = 1.0f + fabsf(want.data[k]) + (pb ? fabsf(pb[k]) : 0.0f) +
                            (ps ? fabsf(ps[k]) : 1.0f) * stats_want[1] * 8.0f;
        same("row", row, "", got.data, want.data, scale.data, n);
        guard_free(&x), guard_free(&s), guard_free(&b), guard_free(&got), guard_free(&want);
        guard_free(&scale);
    }
}

TEST(every_row_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_reduce", check_reduce},
                                           {"sn_f32_softmax", check_softmax},
                                           {"sn_f32_norm", check_norm},
                                           {NULL, NULL}};
    check_family("rows", checkers);
}

TEST_MAIN()
