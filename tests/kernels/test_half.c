/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits, loaded and stored. */
#include "rows.h"

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

static bool is_tiny(uint16_t bf16) /* zero, or what a denormal f32 rounds to */
{
    return (bf16 & 0x7fff) <= 0x80;
}

static bool same_bf16(uint16_t a, uint16_t b)
{
    const bool nan = (a & 0x7fff) > 0x7f80 && (b & 0x7fff) > 0x7f80;
    return a == b || nan || (is_tiny(a) && is_tiny(b));
}

/* All codes of f16: the two parts are the reference's, and their sum is the number. */
static void check_split(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (uint32_t code = 0, i = 0; code < 65536 && !test_errors; i++) {
        enum { MOST = 300 };
        const size_t n = i < 100 ? i : rnd(0, MOST);
        uint16_t x[MOST], high[MOST], low[MOST], want_high[MOST], want_low[MOST];
        for (size_t k = 0; k < n; k++)
            x[k] = (uint16_t)code++;
        ((sn_f16_split_fn *)ref->fn)(want_high, want_low, x, n);
        ((sn_f16_split_fn *)row->fn)(high, low, x, n);
        float whole[MOST], a[MOST], b[MOST];
        const sn_kernels *plain = sn_kernels_get(0);
        plain->f16_load(whole, x, n);
        plain->bf16_load(a, high, n);
        plain->bf16_load(b, low, n);
        for (size_t k = 0; k < n; k++)
            CHECK_MSG(high[k] == want_high[k] && low[k] == want_low[k] &&
                          (isfinite(whole[k]) || a[k] == 0) &&
                          (a[k] + b[k] == whole[k] || isnan(whole[k])),
                      "%s: %x is %x and %x, expected %x and %x", row->name, (unsigned)x[k],
                      (unsigned)high[k], (unsigned)low[k], (unsigned)want_high[k],
                      (unsigned)want_low[k]);
    }
}

/* The two parts are the reference's, and their sum is the number to all its 24 bits, or to the last
 * bit of the smallest f16. */
static void check_halves(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        const float scale = ldexpf(1.0f, (int)rnd(0, 20) - 10);
        guarded x = guard_floats(n, at_end);
        uint16_t high[300], low[300], want_high[300], want_low[300];
        for (size_t k = 0; k < n; k++) /* of all sizes that fit */
            x.data[k] =
                ldexpf((float)((double)rnd(0, 1 << 24) * 0x1p-23 - 1), (int)rnd(0, 40) - 25) /
                scale;
        if (n > 2 && i % 3 == 0) {
            x.data[rnd(0, n - 1)] = i % 2 ? INFINITY : -INFINITY;
            x.data[rnd(0, n - 1)] = NAN;
        }
        ((sn_f16_halves_fn *)ref->fn)(want_high, want_low, x.data, n, scale);
        ((sn_f16_halves_fn *)row->fn)(high, low, x.data, n, scale);
        float a[300], b[300];
        const sn_kernels *plain = sn_kernels_get(0);
        plain->f16_load(a, high, n);
        plain->f16_load(b, low, n);
        for (size_t k = 0; k < n; k++) {
            const double v = (double)x.data[k] * (double)scale, sum = (double)a[k] + (double)b[k];
            const bool same = high[k] == want_high[k] && low[k] == want_low[k];
            CHECK_MSG(isnan(v)      ? a[k] == 0 && isnan(b[k])
                      : isfinite(v) ? same && fabs(sum - v) <= fabs(v) * 0x1p-24 + 0x1p-25
                                    : same && a[k] == 0 && (double)b[k] == v,
                      "%s: %g is %g and %g", row->name, v, (double)a[k], (double)b[k]);
        }
        guard_free(&x);
    }
}

static void check_rescale(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 100 && !test_errors; i++) {
        const size_t rows = rnd(0, 5), n = rnd(1, 70), stride = n + rnd(0, 3), step = rnd(1, 9);
        const size_t all = rows ? (rows - 1) * stride + n : 0,
                     by_all = rows ? (rows - 1) * step + 1 : 0;
        const bool at_end = i % 2;
        guarded got = guard_floats(all, at_end), want = guard_floats(all, at_end);
        guarded by_row = guard_floats(by_all, at_end), by = guard_floats(n, at_end);
        guarded start = guard_floats(n, at_end);
        fill(got.data, all, NONE);
        memcpy(want.data, got.data, all * sizeof(float));
        for (size_t k = 0; k < by_all; k++)
            by_row.data[k] = ldexpf(1.0f, (int)rnd(0, 20) - 10);
        for (size_t k = 0; k < n; k++)
            by.data[k] = ldexpf(1.0f, (int)rnd(0, 20) - 10);
        fill(start.data, n, NONE);
        sn_f32_rescale t = {.y = want.data,
                            .x = got.data,
                            .by_row = by_row.data,
                            .by = by.data,
                            .start = start.data,
                            .rows = rows,
                            .n = n,
                            .y_row = (ptrdiff_t)stride,
                            .x_row = (ptrdiff_t)stride,
                            .row = (ptrdiff_t)step};
        ((sn_f32_rescale_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_f32_rescale_fn *)row->fn)(&t);
        for (size_t k = 0; k < all; k++) /* factors are powers of two: only the sum is rounded */
            CHECK_MSG(got.data[k] == want.data[k], "%s: %g, not %g", row->name, (double)got.data[k],
                      (double)want.data[k]);
        guard_free(&got), guard_free(&want), guard_free(&by_row), guard_free(&by);
        guard_free(&start);
    }
}

static void check_pairs(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = i < 20 ? (size_t)i : rnd(0, 40),
                     step = i % 7 ? SN_PAIR_BLOCK : rnd(16, 40);
        const size_t block = n * SN_PAIR_BLOCK, read = n ? (n - 1) * step + SN_PAIR_BLOCK : 0;
        const bool at_end = i % 2, two = i % 4 != 3, gated = i % 3 == 1;
        guarded a = guard_floats(read, at_end), b = guard_floats(read, at_end);
        guarded gate = guard_floats(2 * SN_PAIR_BLOCK, at_end);
        guarded got = guard_floats(block, at_end), want = guard_floats(block, at_end);
        fill(a.data, read, i % 5 == 0 ? ALL : NONE);
        fill(b.data, read, i % 5 == 1 ? ALL : NONE);
        fill(gate.data, 2 * SN_PAIR_BLOCK, NONE);
        guarded left = guard_floats(block, at_end), left_want = guard_floats(block, at_end);
        uint16_t *x = (uint16_t *)(void *)want.data, *y = (uint16_t *)(void *)got.data;
        uint16_t *rx = (uint16_t *)(void *)left_want.data, *ry = (uint16_t *)(void *)left.data;
        const bool split = i % 2 == 0;
        const bool halves = i % 7 > 3;
        uint16_t *a16 = calloc(2 * read + 1, sizeof *a16), *b16 = a16 + read;
        sn_bf16_store_ref(a16, a.data, read);
        sn_bf16_store_ref(b16, b.data, read);
        sn_bf16_pairs t = {.a = halves ? NULL : a.data,
                           .b = two && !halves ? b.data : NULL,
                           .a16 = halves ? a16 : NULL,
                           .b16 = two && halves ? b16 : NULL,
                           .gate = gated ? gate.data : NULL,
                           .y = x,
                           .rest = split ? rx : NULL,
                           .n = n,
                           .step = step};
        ((sn_bf16_pairs_fn *)ref->fn)(&t);
        t.y = y;
        t.rest = split ? ry : NULL;
        ((sn_bf16_pairs_fn *)row->fn)(&t);
        for (size_t k = 0; k < 2 * block; k++) {
            CHECK_MSG(same_bf16(x[k], y[k]), "%s: number %zu of %zu is %x, expected %x", row->name,
                      k, 2 * block, (unsigned)y[k], (unsigned)x[k]);
            CHECK_MSG(!split || same_bf16(rx[k], ry[k]), "%s: rest %zu of %zu is %x, expected %x",
                      row->name, k, 2 * block, (unsigned)ry[k], (unsigned)rx[k]);
        }
        free(a16);
        guard_free(&left), guard_free(&left_want);
        guard_free(&a), guard_free(&b), guard_free(&gate), guard_free(&got), guard_free(&want);
    }
}

static void check_round(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    enum { STEP = 2 * SN_PAIR_BLOCK };
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 70 ? (size_t)i : rnd(0, 200), whole = (n + STEP - 1) / STEP * STEP;
        const size_t rows = rnd(1, 5), gap = rnd(0, 3), y_row = whole + 2 * rnd(0, 2);
        const bool at_end = i % 2;
        guarded x = guard_floats((rows - 1) * (n + gap) + n, at_end);
        const size_t floats = ((rows - 1) * y_row + whole) / 2;
        guarded got = guard_floats(floats, at_end), want = guard_floats(floats, at_end);
        fill(x.data, (rows - 1) * (n + gap) + n, i % 3 == 0 ? ALL : NONE);
        memset(got.data, 0x55, floats * sizeof(float));
        memset(want.data, 0x55, floats * sizeof(float));
        sn_bf16_round t = {.x = x.data,
                           .y = (uint16_t *)(void *)want.data,
                           .rows = rows,
                           .n = n,
                           .x_row = (ptrdiff_t)(n + gap),
                           .y_row = (ptrdiff_t)y_row};
        ((sn_bf16_round_fn *)ref->fn)(&t);
        t.y = (uint16_t *)(void *)got.data;
        ((sn_bf16_round_fn *)row->fn)(&t);
        const uint16_t *a = (const uint16_t *)(const void *)want.data, *b = t.y;
        for (size_t k = 0; k < 2 * floats; k++)
            CHECK_MSG(same_bf16(a[k], b[k]), "%s: number %zu of %zu rows of %zu is %x, expected %x",
                      row->name, k, rows, n, (unsigned)b[k], (unsigned)a[k]);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_zip(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 70 ? (size_t)i : rnd(0, 200);
        const bool at_end = i % 2;
        guarded a = guard_floats(n, at_end), b = guard_floats(n, at_end);
        guarded got = guard_floats(n, at_end), want = guard_floats(n, at_end);
        fill(a.data, n, i % 3 == 0 ? ALL : NONE);
        fill(b.data, n, i % 5 == 0 ? ALL : NONE);
        const float *second = i % 4 ? b.data : NULL;
        ((sn_bf16_zip_fn *)ref->fn)((uint16_t *)(void *)want.data, a.data, second, n);
        ((sn_bf16_zip_fn *)row->fn)((uint16_t *)(void *)got.data, a.data, second, n);
        CHECK_MSG(memcmp(got.data, want.data, n * sizeof(float)) == 0, "%s: %zu pairs", row->name,
                  n);
        guard_free(&a), guard_free(&b), guard_free(&got), guard_free(&want);
    }
}

static bool same_f16(uint16_t a, uint16_t b)
{
    enum { SIGN = 0x8000, INF = 0x7c00 };
    return a == b || ((a & ~SIGN) > INF && (b & ~SIGN) > INF);
}

static void check_add_clip(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const bool is_f16 = row->slot->written == SONDE_DTYPE_F16;
    static const float limits[][2] = {{-INFINITY, INFINITY}, {0, INFINITY}, {0, 6}, {-1, 0.5f}};
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300), halves = (n + 1) / 2;
        const bool at_end = i % 2, add = i % 3 > 0, in_place = add && i % 5 == 0;
        const float *limit = limits[i % 4];
        guarded x = guard_floats(n, at_end), other = guard_floats(n, at_end);
        guarded z = guard_floats(halves, at_end);
        guarded got = guard_floats(halves, at_end), want = guard_floats(halves, at_end);
        fill(x.data, n, i % 7 ? NONE : ALL);
        fill(other.data, n, i % 7 ? NONE : ALL);
        uint16_t *addend = (uint16_t *)(void *)(z.data + halves) - n;
        uint16_t *a = (uint16_t *)(void *)(want.data + halves) - n;
        uint16_t *b = (uint16_t *)(void *)(got.data + halves) - n;
        (is_f16 ? sn_f16_store_ref : sn_bf16_store_ref)(addend, other.data, n);
        ((sn_bf16_add_clip_fn *)ref->fn)(a, x.data, add ? addend : NULL, n, limit[0], limit[1]);
        if (in_place)
            memcpy(b, addend, n * sizeof *b);
        const uint16_t *from = in_place ? b : addend;
        ((sn_bf16_add_clip_fn *)row->fn)(b, x.data, add ? from : NULL, n, limit[0], limit[1]);
        for (size_t k = 0; k < n; k++)
            CHECK_MSG(is_f16 ? same_f16(a[k], b[k]) : same_bf16(a[k], b[k]),
                      "%s: number %zu of %zu is %x, expected %x", row->name, k, n, (unsigned)b[k],
                      (unsigned)a[k]);
        guard_free(&x), guard_free(&other), guard_free(&z), guard_free(&got), guard_free(&want);
    }
}

static void fill_swish(float *x, size_t n, int i)
{
    fill(x, n, i % 7 ? NONE : ALL);
    for (size_t k = 0; k < n && i % 7; k++)
        x[k] *= i % 5 == 0 ? 100.0f : 8.0f;
}

/* As many numbers of bf16 lie between the two as the row says, or fewer. */
static void check_swish(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const uint16_t small = 0x0d80; /* 2^-100 */
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 2000), halves = (n + 1) / 2;
        const bool at_end = i % 2;
        const float beta = i % 3 ? 1.0f : 1.702f;
        guarded x = guard_floats(n, at_end);
        guarded got = guard_floats(halves, at_end), want = guard_floats(halves, at_end);
        fill_swish(x.data, n, i);
        uint16_t *a = (uint16_t *)(void *)(want.data + halves) - n;
        uint16_t *b = (uint16_t *)(void *)(got.data + halves) - n;
        ((sn_bf16_swish_fn *)ref->fn)(a, x.data, n, beta);
        ((sn_bf16_swish_fn *)row->fn)(b, x.data, n, beta);
        for (size_t k = 0; k < n; k++)
            CHECK_MSG(same_bf16(a[k], b[k]) || abs((int)a[k] - (int)b[k]) <= (int)row->ulp ||
                          ((a[k] & 0x7fff) < small && (b[k] & 0x7fff) < small),
                      "%s: of %g is %x, expected %x", row->name, (double)x.data[k], (unsigned)b[k],
                      (unsigned)a[k]);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_swish_rough(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 2000);
        const bool at_end = i % 2;
        const float beta = i % 3 ? 1.0f : 1.702f;
        guarded x = guard_floats(n, at_end);
        guarded got = guard_floats(n, at_end), want = guard_floats(n, at_end);
        fill_swish(x.data, n, i);
        memcpy(got.data, x.data, n * sizeof(float));
        ((sn_f32_swish_rough_fn *)ref->fn)(want.data, x.data, n, beta);
        ((sn_f32_swish_rough_fn *)row->fn)(got.data, i % 4 ? x.data : got.data, n, beta);
        for (size_t k = 0; k < n; k++)
            CHECK_MSG(close_to(got.data[k], want.data[k], row->ulp, 0x1p-100),
                      "%s: of %g is %g, expected %g", row->name, (double)x.data[k],
                      (double)got.data[k], (double)want.data[k]);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_join(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const int channels = i % (SN_JOIN_CHANNELS + 1);
        guarded in[SN_JOIN_CHANNELS];
        const float *x[SN_JOIN_CHANNELS] = {NULL};
        guarded got = guard_floats(2 * n, i % 2), want = guard_floats(2 * n, i % 2);
        for (int c = 0; c < SN_JOIN_CHANNELS; c++) {
            in[c] = guard_floats(n, i % 2);
            fill(in[c].data, n, i % 7 ? NONE : ALL);
            x[c] = c < channels ? in[c].data : NULL;
        }
        if (n > 0 && i % 5 == 0) /* one of them is not finite, or is not in bf16 */
            in[0].data[rnd(0, n - 1)] = i % 2 ? INFINITY : 3.4e38f;
        uint16_t *a = (uint16_t *)(void *)want.data, *b = (uint16_t *)(void *)got.data;
        const bool finite = ((sn_bf16_join_fn *)ref->fn)(a, x, n);
        CHECK_MSG(((sn_bf16_join_fn *)row->fn)(b, x, n) == finite, "%s: finite?", row->name);
        for (size_t k = 0; k < SN_JOIN_CHANNELS * n; k++)
            CHECK_MSG(same_bf16(a[k], b[k]), "%s: number %zu of %zu pixels is %x, expected %x",
                      row->name, k, n, (unsigned)b[k], (unsigned)a[k]);
        for (int c = 0; c < SN_JOIN_CHANNELS; c++)
            guard_free(&in[c]);
        guard_free(&got), guard_free(&want);
    }
}

static void check_f16_join(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300), halves = (n + 1) / 2;
        const int channels = i % (SN_JOIN_CHANNELS + 1);
        guarded in[SN_JOIN_CHANNELS];
        const uint16_t *x[SN_JOIN_CHANNELS] = {NULL};
        guarded got = guard_floats(2 * n, i % 2), want = guard_floats(2 * n, i % 2);
        for (int c = 0; c < SN_JOIN_CHANNELS; c++) {
            in[c] = guard_floats(halves, i % 2);
            uint16_t *row_of = (uint16_t *)(void *)(in[c].data + halves) - n;
            for (size_t k = 0; k < n; k++)
                row_of[k] = (uint16_t)(test_rand() & (i % 3 ? 0xbbff : 0xffff));
            x[c] = c < channels ? row_of : NULL;
        }
        uint16_t *a = (uint16_t *)(void *)want.data, *b = (uint16_t *)(void *)got.data;
        const bool finite = ((sn_f16_join_fn *)ref->fn)(a, x, n);
        CHECK_MSG(((sn_f16_join_fn *)row->fn)(b, x, n) == finite, "%s: finite?", row->name);
        CHECK_MSG(memcmp(a, b, SN_JOIN_CHANNELS * n * sizeof *a) == 0, "%s: %zu pixels", row->name,
                  n);
        for (int c = 0; c < SN_JOIN_CHANNELS; c++)
            guard_free(&in[c]);
        guard_free(&got), guard_free(&want);
    }
}

static void check_half_pool(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        sn_half_pool t = {.rows = 1 + (size_t)test_rand() % 4,
                          .in = 1 + (size_t)test_rand() % 20,
                          .kw = 1 + (size_t)test_rand() % 4,
                          .stride = 1 + (size_t)test_rand() % 3,
                          .step = 1 + (size_t)test_rand() % 2,
                          .block = i % 9 ? row->geometry.block : 8,
                          .nans = i % 2 ? SN_F16_NANS : SN_BF16_NANS};
        const size_t reach = (t.kw - 1) * t.step;
        t.before = t.step > 1 ? 0 : (size_t)test_rand() % (reach + 1);
        /* The first window, and the last one, have a pixel inside. */
        t.pixels = 1 + (size_t)test_rand() % ((t.before + t.in - 1) / t.stride + 1);
        const size_t line = t.in * t.block, gap = (size_t)test_rand() % 5;
        const size_t nx = (t.rows - 1) * (line + gap) + line, ny = t.pixels * t.block;
        t.x_row = (ptrdiff_t)(line + gap);
        guarded x = guard_floats((nx + 1) / 2, i % 4 < 2), want = guard_floats((ny + 1) / 2, false);
        guarded got = guard_floats((ny + 1) / 2, false);
        const size_t room =
            sn_half_pool_line(t.before, t.in, t.pixels, t.stride, t.kw, t.step) * t.block;
        guarded line_room = guard_floats((room + 1) / 2, true);
        uint16_t *codes = (uint16_t *)(void *)x.data + (i % 4 < 2 ? nx % 2 : 0);
        for (size_t k = 0; k < nx; k++)
            codes[k] = (uint16_t)test_rand();
        t.x = codes;
        t.line = (int16_t *)(void *)line_room.data + room % 2;
        t.y = (uint16_t *)(void *)want.data;
        ((sn_half_pool_fn *)ref->fn)(&t);
        t.y = (uint16_t *)(void *)got.data;
        ((sn_half_pool_fn *)row->fn)(&t);
        CHECK_MSG(memcmp(got.data, want.data, ny * sizeof *t.y) == 0, "%s: case %d", row->name, i);
        guard_free(&x), guard_free(&want), guard_free(&got), guard_free(&line_room);
    }
}

TEST(every_kernel_of_16_bit_floats_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_half_load", check_half_load},
                                           {"sn_half_store", check_half_store},
                                           {"sn_half_pool", check_half_pool},
                                           {"sn_bf16_pairs", check_pairs},
                                           {"sn_bf16_round", check_round},
                                           {"sn_bf16_zip", check_zip},
                                           {"sn_f16_split", check_split},
                                           {"sn_f16_halves", check_halves},
                                           {"sn_f32_rescale", check_rescale},
                                           {"sn_bf16_add_clip", check_add_clip},
                                           {"sn_bf16_swish", check_swish},
                                           {"sn_bf16_join", check_join},
                                           {"sn_f16_join", check_f16_join},
                                           {"sn_f32_swish_rough", check_swish_rough},
                                           {NULL, NULL}};
    check_family("half", checkers);
}

TEST_MAIN()
