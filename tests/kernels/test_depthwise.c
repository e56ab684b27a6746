/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions, and those of narrow groups. */
#include "rows.h"

enum { PLANES = 5, SOURCES = 3 };

/* Windows that slide, and some that do not. */
static void random_windows(sn_f32_depthwise *t, int i)
{
    static const ptrdiff_t sizes[] = {3, 5, 7, 1, 9, 2};
    const bool square = i % 4 != 0, line = i % 4 == 3;
    const ptrdiff_t k = sizes[test_rand() % 6], s = (ptrdiff_t)rnd(1, 2);
    for (int a = 0; a < 2; a++) {
        t->in[a] = (ptrdiff_t)rnd(1, 20);
        t->kernel[a] = line && a == 0 ? 1 : square ? k : (ptrdiff_t)rnd(1, 5);
        t->stride[a] = square ? s : (ptrdiff_t)rnd(1, 3);
        t->dilation[a] = square && test_rand() % 2 ? 1 : (ptrdiff_t)rnd(1, 4);
        t->pad[a] = (ptrdiff_t)rnd(0, (size_t)(i % 3 ? t->kernel[a] / 2 : t->kernel[a]));
    }
    if (line && test_rand() % 2)
        t->stride[0] = (ptrdiff_t)rnd(1, 3);
}

/* Every lane of every plane from anywhere, also from nowhere; of one source or two. */
static void random_planes(sn_f32_plane *planes, ptrdiff_t n, ptrdiff_t plane, unsigned block)
{
    const size_t sources = rnd(1, 2);
    for (ptrdiff_t q = 0; q < n; q++) {
        planes[q].at[0] = (ptrdiff_t)rnd(0, SOURCES - 1) * plane;
        planes[q].at[1] = sources == 1 ? planes[q].at[0] : (ptrdiff_t)rnd(0, SOURCES - 1) * plane;
        const size_t most = planes[q].at[0] == planes[q].at[1] ? block : 2 * block;
        for (unsigned l = 0; l < block; l++)
            planes[q].lane[l] = (int32_t)rnd(0, most) - 1;
    }
}

static void check_depthwise(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->geometry.block;
    for (int i = 0; i < 1200 && !test_errors; i++) {
        sn_f32_depthwise t = {.block = block, .cols = (ptrdiff_t)rnd(0, 20)};
        const bool at_end = i % 2;
        sn_f32_plane planes[PLANES];
        random_windows(&t, i);
        t.from = (ptrdiff_t)rnd(0, 4);
        t.to = t.from + (ptrdiff_t)rnd(0, 9);
        t.lo = i % 3 ? -INFINITY : 0.0f;
        t.hi = i % 4 ? INFINITY : 6.0f;
        const size_t ny = (size_t)(t.to * t.cols) * block;
        if (i % 5 < 2) {
            t.planes = planes;
            t.n_planes = (ptrdiff_t)rnd(0, PLANES);
            random_planes(planes, t.n_planes, t.in[0] * t.in[1] * (ptrdiff_t)block, block);
        }
        const size_t nw = (size_t)(t.kernel[0] * t.kernel[1] * (t.planes ? t.n_planes : 1)) * block;
        const size_t nx = (size_t)(t.in[0] * t.in[1]) * block * (t.planes ? SOURCES : 1),
                     nz = (size_t)t.in[1] * block;
        guarded x = guard_floats(nx, at_end), w = guard_floats(nw, at_end);
        guarded bias = guard_floats(block, at_end), z = guard_floats(ny, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        guarded scale = guard_floats(ny, at_end), zeros = guard_floats(nz, at_end);
        fill(x.data, nx, i % 7 == 0 ? SMALL : NONE);
        fill(w.data, nw, NONE);
        fill(bias.data, block, NONE);
        fill(z.data, ny, NONE);
        memset(zeros.data, 0, nz * sizeof(float));
        t.x = x.data, t.w = w.data, t.zeros = zeros.data;
        t.bias = test_rand() % 2 ? bias.data : NULL;
        t.z = test_rand() % 2 ? z.data : NULL;
        memset(got.data, 0, ny * sizeof(float));
        memset(want.data, 0, ny * sizeof(float));
        memset(scale.data, 0, ny * sizeof(float));
        t.y = want.data;
        ((sn_f32_depthwise_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_depthwise_fn *)row->fn)(&t);
        /* The same sum of absolute values: the unit of its rounding error. */
        float *all[] = {x.data, w.data, bias.data, z.data};
        const size_t sizes[] = {nx, nw, block, ny};
        for (int n = 0; n < 4; n++)
            for (size_t j = 0; j < sizes[n]; j++)
                all[n][j] = fabsf(all[n][j]);
        t.y = scale.data;
        t.lo = -INFINITY;
        t.hi = INFINITY;
        ((sn_f32_depthwise_fn *)ref->fn)(&t);
        char info[160];
        snprintf(info, sizeof info,
                 "case %d: %td×%td from %td×%td, taps %td×%td, stride %td, dilation %td,%td, pad "
                 "%td, planes %td",
                 i, t.to - t.from, t.cols, t.in[0], t.in[1], t.kernel[0], t.kernel[1], t.stride[0],
                 t.dilation[0], t.dilation[1], t.pad[0], t.n_planes);
        same("depthwise", row, info, got.data, want.data, scale.data, ny);
        guard_free(&x), guard_free(&w), guard_free(&bias), guard_free(&z), guard_free(&zeros);
        guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

TEST(every_depthwise_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_depthwise", check_depthwise}, {NULL, NULL}};
    check_family("depthwise", checkers);
}

TEST_MAIN()
