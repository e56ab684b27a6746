/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of kernels.inc against row 0 of its slot, the plain C reference: sizes around the
 * vector length, arrays against guard pages on both sides (which also misaligns them), in place
 * where that is allowed, and the special values of floats. */
#include <float.h>
#include <math.h>

#include "guard.h"
#include "kernels/kernels.h"

/* The largest numbers come last: where sums overflow depends on their order, so kernels that add
 * are tested without them. */
static const float specials[] = {0.0f,    -0.0f,   INFINITY, -INFINITY, NAN,      FLT_MIN,
                                 1e-40f,  -1e-42f, -FLT_MIN, 1.0f,      -1.0f,    88.5f,
                                 -104.0f, 0.5f,    2.5f,     -7.0f,     -FLT_MAX, FLT_MAX};
enum { NONE = 0, SMALL = 16, ALL = 18 }; /* how many of them take part */

static void fill(float *p, size_t n, unsigned n_specials)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = test_randf() * (test_rand() % 4 ? 1.0f : 8.0f);
        if (n_specials && test_rand() % 4 == 0)
            p[i] = specials[test_rand() % n_specials];
    }
}

/* Equal up to `ulp` units in the last place of `scale` (or of the reference, when larger). */
static bool close_to(float got, float want, double ulp, double scale)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (got == want)
        return true;
    if (isinf(want) || isinf(got))
        return false;
    const double top = fmax(fabs((double)want), isfinite(scale) ? scale : 0.0);
    return fabs((double)got - (double)want) <= ulp * fmax(top * 0x1p-23, 0x1p-149);
}

static bool same(const char *what, const sn_kernel_row *row, const char *info, const float *got,
                 const float *want, const float *scale, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!close_to(got[i], want[i], row->ulp, scale ? (double)scale[i] : 0.0)) {
            fprintf(stderr, "%s %s %s: element %zu is %.9g, expected %.9g\n", row->name, what, info,
                    i, (double)got[i], (double)want[i]);
            test_errors++;
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ tiles */
/* Sizes of the arrays a tile touches, for strides that are all positive. */
typedef struct tile_case {
    sn_f32_tile t;
    size_t x, w, y, bias;
} tile_case;

static size_t rnd(size_t lo, size_t hi)
{
    return lo + test_rand() % (hi - lo + 1);
}

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
        tile_case c = tile_random(row->slot, row->block ? row->block : 8);
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

/* ------------------------------------------------------------------ depthwise, pooling */
static void check_depthwise(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->block ? row->block : 8;
    for (int i = 0; i < 600 && !test_errors; i++) {
        static const ptrdiff_t squares[] = {3, 5, 7, 1};
        sn_f32_depthwise t = {.block = block, .cols = (ptrdiff_t)rnd(0, 20)};
        const bool at_end = i % 2, square = i % 4 != 0;
        const ptrdiff_t k = squares[test_rand() % 4], s = (ptrdiff_t)rnd(1, 2);
        for (int a = 0; a < 2; a++) {
            t.in[a] = (ptrdiff_t)rnd(1, 20);
            t.kernel[a] = square ? k : (ptrdiff_t)rnd(1, 5);
            t.stride[a] = square ? s : (ptrdiff_t)rnd(1, 3);
            t.dilation[a] = square ? 1 : (ptrdiff_t)rnd(1, 3);
            t.pad[a] = (ptrdiff_t)rnd(0, (size_t)(i % 3 ? t.kernel[a] / 2 : t.kernel[a]));
        }
        t.from = (ptrdiff_t)rnd(0, 4);
        t.to = t.from + (ptrdiff_t)rnd(0, 9);
        t.lo = i % 3 ? -INFINITY : 0.0f;
        t.hi = i % 4 ? INFINITY : 6.0f;
        const size_t ny = (size_t)(t.to * t.cols) * block;
        const size_t nw = (size_t)(t.kernel[0] * t.kernel[1]) * block;
        const size_t nx = (size_t)(t.in[0] * t.in[1]) * block, nz = (size_t)t.in[1] * block;
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
                 "case %d: %td×%td from %td×%td, taps %td×%td, stride %td, pad %td", i,
                 t.to - t.from, t.cols, t.in[0], t.in[1], t.kernel[0], t.kernel[1], t.stride[0],
                 t.pad[0]);
        same("depthwise", row, info, got.data, want.data, scale.data, ny);
        guard_free(&x), guard_free(&w), guard_free(&bias), guard_free(&z), guard_free(&zeros);
        guard_free(&got), guard_free(&want), guard_free(&scale);
    }
}

static void check_pool(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->block ? row->block : 8;
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

/* ------------------------------------------------------------------ Winograd */
static void check_wino_in(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->block ? row->block : 8;
    const int n = strstr(row->slot, "wino4") ? 6 : 4;
    for (int i = 0; i < 200 && !test_errors; i++) {
        sn_f32_wino_in t = {.block = block};
        t.row_from = i % 3 ? 0 : (int)rnd(0, (size_t)n);
        t.row_to = i % 3 ? n : (int)rnd((size_t)t.row_from, (size_t)n);
        t.col_from = i % 3 ? 0 : (int)rnd(0, (size_t)n);
        t.col_to = i % 3 ? n : (int)rnd((size_t)t.col_from, (size_t)n);
        t.x_row = (ptrdiff_t)((rnd(0, 3) + (size_t)n) * block);
        t.v_pos = (ptrdiff_t)(block + rnd(0, 40));
        /* Only the part inside may be read: the array is just that. */
        const ptrdiff_t first = t.row_from * t.x_row + t.col_from * (ptrdiff_t)block;
        const bool empty = t.row_from == t.row_to || t.col_from == t.col_to;
        const size_t nx =
            empty ? 0 : (size_t)((t.row_to - 1) * t.x_row + t.col_to * (ptrdiff_t)block - first);
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
    const unsigned block = row->block ? row->block : 8;
    const int m = strstr(row->slot, "wino4") ? 4 : 2, n = m + 2;
    for (int i = 0; i < 200 && !test_errors; i++) {
        sn_f32_wino_out t = {.block = block, .lo = i % 2 ? -INFINITY : -1, .hi = 100};
        t.rows = (int)rnd(1, (size_t)m);
        t.cols = (int)rnd(1, (size_t)m);
        t.y_row = (ptrdiff_t)((rnd(0, 3) + (size_t)t.cols) * block);
        t.m_pos = (ptrdiff_t)(block + rnd(0, 40));
        const size_t nm = (size_t)((n * n - 1) * t.m_pos) + block;
        const size_t ny = (size_t)((t.rows - 1) * t.y_row) + (size_t)t.cols * block;
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
        ((sn_f32_wino_out_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_wino_out_fn *)row->fn)(&t);
        for (size_t j = 0; j < ny; j++)
            scale.data[j] = 512.0f;
        same("pixels", row, "", got.data, want.data, scale.data, ny);
        guard_free(&products), guard_free(&bias), guard_free(&z), guard_free(&scale);
        guard_free(&got), guard_free(&want);
    }
}

static void check_wino_filter(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const unsigned block = row->block ? row->block : 8;
    const size_t n = strstr(row->slot, "wino4") ? 6 : 4, tap = block * block;
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

/* ------------------------------------------------------------------ layout */
static void check_layout(const sn_kernel_row *row, const sn_kernel_row *ref, bool to_blocks)
{
    const unsigned block = row->block ? row->block : 8;
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

/* ------------------------------------------------------------------ elementwise */
static const float params[2] = {0.5f, 0.75f}; /* good for every function that takes some */

/* GELU promises an error measured against its argument, like the formula with erf in f32. */
static float gelu_scale(float x)
{
    const float a = fabsf(x);
    return fmaxf(a, fminf(2.5f * a, 1.0f));
}

static void check_unary(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const bool gelu = strncmp(row->slot, "f32_gelu", 8) == 0;
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

/* ------------------------------------------------------------------ rows */
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

static void check_peak(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = i < 200 ? (size_t)i : rnd(0, 1000), rounds = rnd(0, 3);
        guarded x = guard_floats(n, i % 2);
        float scale = 0;
        fill(x.data, n, NONE);
        const float want = ((sn_f32_peak_fn *)ref->fn)(x.data, n, rounds);
        const float got = ((sn_f32_peak_fn *)row->fn)(x.data, n, rounds);
        for (size_t k = 0; k < n; k++)
            scale += (float)rounds * fabsf(x.data[k]);
        same("peak", row, "", &got, &want, &scale, 1);
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

/* Rows with scores far below 0, -inf, NaN, nothing at all, and with pieces seen before or not. */
static void check_exp_rows(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    enum { MOST = 9 };
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300), rows = rnd(0, MOST);
        const size_t stride = n + rnd(0, 3), all = rows ? (rows - 1) * stride + n : 0;
        const bool with_bias = i % 3 != 0;
        guarded got = guard_floats(all, i % 2), want = guard_floats(all, i % 2),
                bias = guard_floats(all, i % 2), scale = guard_floats(all, i % 2);
        float state[2][3][MOST] = {0}, size[MOST];
        const float width = i % 5 ? 4.0f : 300.0f, far = i % 7 ? width : width + 1000.0f;
        for (size_t k = 0; k < all; k++) {
            want.data[k] = test_randf() * width - (far - width);
            bias.data[k] = i % 4 > 1 || test_rand() % 3 == 0 ? test_randf()
                           : i % 4 == 1                      ? -INFINITY
                                                             : -FLT_MAX;
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
            .s_row = (ptrdiff_t)stride,
            .bias_row = i % 2 ? (ptrdiff_t)stride : 0,
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
        guard_free(&got), guard_free(&want), guard_free(&bias), guard_free(&scale);
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

/* ------------------------------------------------------------------ all rows */
/* ------------------------------------------------------------------ floats of 16 bits */
/* All 65536 codes, cut into pieces of every length around the vector's. */
static void check_half_load(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (uint32_t code = 0, i = 0; code < 65536 && !test_errors; i++) {
        const size_t n = i < 100 ? i : rnd(0, 300);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        /* the codes at the end of x's floats, so that both sides are guarded in turn */
        uint16_t *codes = (uint16_t *)(void *)x.data + (at_end ? n : 0);
        for (size_t k = 0; k < n; k++)
            codes[k] = (uint16_t)code++;
        ((sn_half_load_fn *)ref->fn)(want.data, codes, n);
        ((sn_half_load_fn *)row->fn)(got.data, codes, n);
        CHECK_MSG(memcmp(got.data, want.data, n * sizeof(float)) == 0, "%s: %zu codes up to %x",
                  row->name, n, (unsigned)code);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_half_store(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 3000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        fill(x.data, n, i % 3 == 0 ? ALL : NONE);
        for (size_t k = 0; k < n && i % 3 == 1;
             k++) { /* any bits, and those half way between two */
            uint32_t u = (uint32_t)test_rand();
            u = i % 2 ? u : (u & ~0xfffu) | (u >> 20 & 1) << 11;
            memcpy(&x.data[k], &u, sizeof u);
        }
        for (size_t k = 0; k < n && i % 3 == 2; k++) /* around the limits of f16 */
            x.data[k] *= i % 2 ? 30000.0f : 1e-6f;
        uint16_t *a = (uint16_t *)(void *)want.data + (at_end ? n : 0);
        uint16_t *b = (uint16_t *)(void *)got.data + (at_end ? n : 0);
        ((sn_half_store_fn *)ref->fn)(a, x.data, n);
        ((sn_half_store_fn *)row->fn)(b, x.data, n);
        for (size_t k = 0; k < n; k++)
            CHECK_MSG(a[k] == b[k], "%s: %.9g is %x, expected %x", row->name, (double)x.data[k],
                      (unsigned)b[k], (unsigned)a[k]);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

/* ------------------------------------------------------------------ bytes */
static void check_bytes_load(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        uint8_t *bytes = (uint8_t *)(void *)x.data + (at_end ? 3 * n : 0);
        const int32_t zero = (int32_t)rnd(0, 383) - 128;
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)test_rand();
        ((sn_bytes_load_fn *)ref->fn)(want.data, bytes, n, zero);
        ((sn_bytes_load_fn *)row->fn)(got.data, bytes, n, zero);
        CHECK_MSG(memcmp(got.data, want.data, n * sizeof(float)) == 0, "%s: %zu bytes", row->name,
                  n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_bytes_store(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2, is_signed = i % 4 < 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        uint8_t *a = (uint8_t *)(void *)want.data + (at_end ? 3 * n : 0);
        uint8_t *b = (uint8_t *)(void *)got.data + (at_end ? 3 * n : 0);
        for (size_t k = 0; k < n; k++) /* sums of products, often half way between two steps */
            x.data[k] = i % 7 == 0 && k % 5 == 0 ? NAN : (float)((int)rnd(0, 4000) - 2000) * 0.5f;
        const float scale = i % 3 ? 0.125f : 0.01f + 0.3f * test_randf() * test_randf();
        const float zero = (float)rnd(0, 255) - (is_signed ? 128.0f : 0.0f);
        const float bias = (float)((int)rnd(0, 200) - 100), lo = is_signed ? -128.0f : 0.0f;
        ((sn_bytes_store_fn *)ref->fn)(a, x.data, n, bias, scale, zero, lo);
        ((sn_bytes_store_fn *)row->fn)(b, x.data, n, bias, scale, zero, lo);
        CHECK_MSG(memcmp(a, b, n) == 0, "%s: case %d of %zu", row->name, i, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_axpy(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300), stride = i % 3 ? 1 : rnd(1, 4);
        const bool at_end = i % 2;
        const size_t nx = n ? (n - 1) * stride + 1 : 0;
        guarded x = guard_floats(nx, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        fill(x.data, nx, NONE), fill(got.data, n, NONE);
        memcpy(want.data, got.data, n * sizeof(float));
        const float a = test_randf() * 3.0f;
        float scale[300];
        for (size_t k = 0; k < n; k++)
            scale[k] = fabsf(want.data[k]) + fabsf(a * x.data[k * stride]);
        ((sn_f32_axpy_fn *)ref->fn)(want.data, x.data, n, stride, a);
        ((sn_f32_axpy_fn *)row->fn)(got.data, x.data, n, stride, a);
        char info[64];
        snprintf(info, sizeof info, "case %d of %zu, stride %zu", i, n, stride);
        same("y", row, info, got.data, want.data, scale, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static const struct {
    const char *signature;
    void (*check)(const sn_kernel_row *row, const sn_kernel_row *ref);
} checkers[] = {
    {"sn_f32_tile", check_tile},
    {"sn_f32_depthwise", check_depthwise},
    {"sn_f32_pool", check_pool},
    {"sn_f32_block", check_block},
    {"sn_f32_unblock", check_unblock},
    {"sn_f32_unary", check_unary},
    {"sn_f32_binary", check_binary},
    {"sn_f32_reduce", check_reduce},
    {"sn_f32_softmax", check_softmax},
    {"sn_f32_norm", check_norm},
    {"sn_half_load", check_half_load},
    {"sn_half_store", check_half_store},
    {"sn_bytes_load", check_bytes_load},
    {"sn_bytes_store", check_bytes_store},
    {"sn_f32_axpy", check_axpy},
    {"sn_f32_peak", check_peak},
    {"sn_f32_wino_in", check_wino_in},
    {"sn_f32_wino_out", check_wino_out},
    {"sn_f32_wino_filter", check_wino_filter},
    {"sn_f32_mix", check_mix},
    {"sn_f32_exp_rows", check_exp_rows},
    {"sn_f32_scale_rows", check_scale_rows},
    {"sn_f32_dots", check_dots},
};

static const sn_kernel_row *reference_of(const sn_kernel_row *row)
{
    for (size_t k = 0;; k++) {
        const sn_kernel_row *r = sn_kernel_row_get(k);
        if (!r || strcmp(r->slot, row->slot) == 0)
            return r;
    }
}

TEST(every_kernel_matches_its_reference)
{
    sn_cpu cpu;
    int failed = 0, compared = 0;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k), *ref = reference_of(row);
        size_t c = 0;
        while (c < sizeof checkers / sizeof checkers[0] &&
               strcmp(checkers[c].signature, row->signature) != 0)
            c++;
        CHECK_MSG(c < sizeof checkers / sizeof checkers[0], "no checker for %s", row->signature);
        if (row->flags & ~cpu.found)
            continue;
        test_errors = 0;
        checkers[c].check(row, ref);
        failed += test_errors != 0;
        compared++;
    }
    test_errors = failed;
    printf("%d rows compared\n", compared);
}

TEST(the_first_row_of_every_slot_is_plain_c)
{
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k);
        CHECK_MSG(reference_of(row)->flags == 0, "%s", row->slot);
    }
}

TEST(tables_are_filled_upward_and_shared)
{
    sn_cpu cpu;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    const sn_kernels *plain = sn_kernels_get(0), *best = sn_kernels_get(cpu.flags);
    CHECK(plain->f32_conv == sn_f32_conv_ref);
    CHECK_STR(plain->f32_conv_name, "f32_conv_ref");
    CHECK(best == sn_kernels_get(cpu.flags));
#define SN_SLOT(slot, signature) CHECK(plain->slot != NULL && best->slot != NULL);
#include "kernels/slots.inc"
#undef SN_SLOT
}

TEST_MAIN()
