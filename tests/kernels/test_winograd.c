/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of Winograd's convolutions. */
#include "rows.h"

static void check_wino_in(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->geometry.block;
    const int n = strstr(row->slot->name, "wino4") ? 6 : 4;
    for (int i = 0; i < 200 && !test_errors; i++) {
        sn_f32_wino_in t = {.block = block};
        t.row_from = i % 3 ? 0 : (int)rnd(0, (size_t)n);
        t.row_to = i % 3 ? n : (int)rnd((size_t)t.row_from, (size_t)n);
        t.col_from = i % 3 ? 0 : (int)rnd(0, (size_t)n);
        t.col_to = i % 3 ? n : (int)rnd((size_t)t.col_from, (size_t)n);
        t.x_pixel = (ptrdiff_t)((i % 4 ? 1 : rnd(1, 3)) * block);
        t.x_row = (ptrdiff_t)(rnd(0, 3) * block) + n * t.x_pixel;
        t.v_pos = (ptrdiff_t)(block + rnd(0, 40));
        /* Only the part inside may be read: the array is just that. */
        const ptrdiff_t first = t.row_from * t.x_row + t.col_from * t.x_pixel;
        const bool empty = t.row_from == t.row_to || t.col_from == t.col_to;
        const size_t nx =
            empty ? 0
                  : (size_t)((t.row_to - 1) * t.x_row + (t.col_to - 1) * t.x_pixel - first) + block;
        const size_t nv = (size_t)((n * n - 1) * t.v_pos) + block;
        guarded x = guard_floats(nx, i % 2);
        guarded got = guard_floats(nv, i % 2), want = guard_floats(nv, i % 2);
        guarded scale = guard_floats(nv, i % 2);
        fill(x.data, nx, NONE);
        memset(got.data, 0, nv * sizeof(float));
        memset(want.data, 0, nv * sizeof(float));
        t.x = x.data - first;
        t.v = want.data;
        ((sn_f32_wino_in_fn *)ref->fn)(&t);
        t.v = got.data;
        ((sn_f32_wino_in_fn *)row->fn)(&t);
        for (size_t j = 0; j < nv; j++) /* up to 10 x 10 times the largest element, 64 */
            scale.data[j] = 64.0f;
        same("patch", row, "", got.data, want.data, scale.data, nv);
        guard_free(&x), guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

static void check_wino_out(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->geometry.block;
    const int m = strstr(row->slot->name, "wino4") ? 4 : 2, n = m + 2;
    for (int i = 0; i < 200 && !test_errors; i++) {
        sn_f32_wino_out t = {.block = block, .lo = i % 2 ? -INFINITY : -1, .hi = 100};
        t.rows = (int)rnd(1, (size_t)m);
        t.cols = (int)rnd(1, (size_t)m);
        t.y_pixel = (ptrdiff_t)((i % 4 ? 1 : rnd(1, 3)) * block);
        t.y_row = (ptrdiff_t)(rnd(0, 3) * block) + t.cols * t.y_pixel;
        t.m_pos = (ptrdiff_t)(block + rnd(0, 40));
        const size_t nm = (size_t)((n * n - 1) * t.m_pos) + block;
        const size_t ny = (size_t)((t.rows - 1) * t.y_row + (t.cols - 1) * t.y_pixel) + block;
        guarded products = guard_floats(nm, i % 2), bias = guard_floats(block, i % 2);
        guarded z = guard_floats(ny, i % 2), scale = guard_floats(ny, i % 2);
        guarded got = guard_floats(ny, i % 2), want = guard_floats(ny, i % 2);
        fill(products.data, nm, NONE);
        fill(bias.data, block, NONE);
        fill(z.data, ny, NONE);
        memset(got.data, 0, ny * sizeof(float));
        memset(want.data, 0, ny * sizeof(float));
        t.m = products.data;
        t.bias = i % 3 ? bias.data : NULL;
        t.z = i % 5 < 2 ? z.data : NULL;
        t.y = want.data;
        CHECK(((sn_f32_wino_out_fn *)ref->fn)(&t));
        t.y = got.data;
        CHECK(((sn_f32_wino_out_fn *)row->fn)(&t));
        for (size_t j = 0; j < ny; j++)
            scale.data[j] = 512.0f;
        same("pixels", row, "", got.data, want.data, scale.data, ny);
        /* What is not finite is noticed in each of the positions that are looked at, in any lane.
         */
        const int looked_at[] = {0, n - 1, n + 1, n * (n - 1), n * n - 1};
        memcpy(want.data, got.data, ny * sizeof(float));
        products.data[looked_at[i % 5] * t.m_pos + (ptrdiff_t)rnd(0, block - 1)] =
            i % 2 ? NAN : -INFINITY;
        CHECK(!((sn_f32_wino_out_fn *)ref->fn)(&t) && !((sn_f32_wino_out_fn *)row->fn)(&t));
        CHECK(memcmp(want.data, got.data, ny * sizeof(float)) == 0);
        guard_free(&products), guard_free(&bias), guard_free(&z), guard_free(&scale);
        guard_free(&got), guard_free(&want);
    }
}

static void check_wino_filter(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->geometry.block;
    const size_t n = strstr(row->slot->name, "wino4") ? 6 : 4, tap = block * block;
    const size_t nw = 9 * tap, nu = (n * n - 1) * (tap + SN_WINO_GAP) + tap;
    for (int i = 0; i < 20 && !test_errors; i++) {
        guarded w = guard_floats(nw, i % 2), scale = guard_floats(nu, i % 2);
        guarded got = guard_floats(nu, i % 2), want = guard_floats(nu, i % 2);
        fill(w.data, nw, NONE);
        memset(got.data, 0, nu * sizeof(float));
        memset(want.data, 0, nu * sizeof(float));
        ((sn_f32_wino_filter_fn *)ref->fn)(want.data, w.data, block);
        ((sn_f32_wino_filter_fn *)row->fn)(got.data, w.data, block);
        for (size_t j = 0; j < nu; j++) /* up to 7 x 7 times the largest element */
            scale.data[j] = 64.0f;
        same("filter", row, "", got.data, want.data, scale.data, nu);
        guard_free(&w), guard_free(&scale), guard_free(&got), guard_free(&want);
    }
}

TEST(every_winograd_transform_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_wino_in", check_wino_in},
                                           {"sn_f32_wino_out", check_wino_out},
                                           {"sn_f32_wino_filter", check_wino_filter},
                                           {NULL, NULL}};
    check_family("winograd", checkers);
}

TEST_MAIN()
