/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of one and of two arguments. */
#include "rows.h"

static const float params[2] = {0.5f, 0.75f}; /* good for every function that takes some */

/* GELU promises an error measured against its argument, like the formula with erf in f32. */
static float gelu_scale(float x)
{
    const float a = fabsf(x);
    return fmaxf(a, fminf(2.5f * a, 1.0f));
}

static void check_unary(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const bool gelu = strncmp(row->slot->name, "f32_gelu", 8) == 0;
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end), scale = guard_floats(n, at_end);
        char info[64];
        fill(x.data, n, i % 3 == 0 ? ALL : NONE);
        if (i % 5 == 0)
            for (size_t k = 0; k < n; k++)
                x.data[k] *= 20.0f;
        for (size_t k = 0; k < n; k++)
            scale.data[k] = gelu ? gelu_scale(x.data[k]) : 0.0f;
        ((sn_f32_unary_fn *)ref->fn)(want.data, x.data, n, params);
        snprintf(info, sizeof info, "case %d of %zu", i, n);
        if (i % 4 == 0) { /* in place */
            memcpy(got.data, x.data, n * sizeof(float));
            ((sn_f32_unary_fn *)row->fn)(got.data, got.data, n, params);
        } else {
            ((sn_f32_unary_fn *)row->fn)(got.data, x.data, n, params);
        }
        same("unary", row, info, got.data, want.data, scale.data, n);
        guard_free(&x), guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

static void check_binary(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 450 && !test_errors; i++) {
        const size_t n = i < 150 ? (size_t)i : rnd(0, 300);
        const int mode = i % 3;
        const bool at_end = i % 2;
        const size_t na = mode == SN_BINARY_SV ? 1 : n, nb = mode == SN_BINARY_VS ? 1 : n;
        guarded a = guard_floats(na, at_end), b = guard_floats(nb, at_end);
        guarded got = guard_floats(n, at_end), want = guard_floats(n, at_end);
        char info[64];
        fill(a.data, na, i % 2 ? ALL : NONE);
        fill(b.data, nb, i % 2 ? ALL : NONE);
        ((sn_f32_binary_fn *)ref->fn)(want.data, a.data, b.data, n, mode);
        snprintf(info, sizeof info, "mode %d of %zu", mode, n);
        const float *pa = a.data, *pb = b.data;
        if (i % 4 == 1 && na == n) {
            memcpy(got.data, a.data, n * sizeof(float));
            pa = got.data;
        } else if (i % 4 == 2 && nb == n) {
            memcpy(got.data, b.data, n * sizeof(float));
            pb = got.data;
        }
        ((sn_f32_binary_fn *)row->fn)(got.data, pa, pb, n, mode);
        same("binary", row, info, got.data, want.data, NULL, n);
        guard_free(&a), guard_free(&b), guard_free(&got), guard_free(&want);
    }
}

static void check_add_clip(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    static const float limits[][2] = {{-INFINITY, INFINITY}, {0, INFINITY}, {0, 6}, {-1, 0.5f}};
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        const float *limit = limits[i % 4];
        guarded x = guard_floats(n, at_end), z = guard_floats(n, at_end);
        guarded got = guard_floats(n, at_end), want = guard_floats(n, at_end);
        fill(x.data, n, i % 2 ? ALL : NONE);
        fill(z.data, n, i % 2 ? ALL : NONE);
        const float *from = x.data, *addend = i % 3 ? z.data : NULL;
        ((sn_f32_add_clip_fn *)ref->fn)(want.data, from, addend, n, limit[0], limit[1]);
        if (i % 5 == 1) { /* where one of the inputs lies */
            memcpy(got.data, x.data, n * sizeof(float));
            from = got.data;
        } else if (i % 5 == 2 && addend) {
            memcpy(got.data, z.data, n * sizeof(float));
            addend = got.data;
        }
        ((sn_f32_add_clip_fn *)row->fn)(got.data, from, addend, n, limit[0], limit[1]);
        same("sum and clip", row, "", got.data, want.data, NULL, n);
        guard_free(&x), guard_free(&z), guard_free(&got), guard_free(&want);
    }
}

TEST(every_elementwise_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_unary", check_unary},
                                           {"sn_f32_binary", check_binary},
                                           {"sn_f32_add_clip", check_add_clip},
                                           {NULL, NULL}};
    check_family("eltwise", checkers);
}

TEST_MAIN()
