/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors, and the sums made of them. */
#include "rows.h"

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

static void check_requantize(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i + 1 : rnd(1, 150), rows = rnd(1, 4);
        const size_t x_row = n + rnd(0, 1) * rnd(0, 5), y_row = n + rnd(0, 1) * rnd(0, 5);
        const size_t nx = (rows - 1) * x_row + n, ny = (rows - 1) * y_row + n;
        const bool at_end = i % 2, is_signed = i % 4 < 2;
        guarded x = guard_floats(nx, at_end), scale = guard_floats(n, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        uint8_t *a = (uint8_t *)(void *)want.data + (at_end ? 3 * ny : 0);
        uint8_t *b = (uint8_t *)(void *)got.data + (at_end ? 3 * ny : 0);
        int32_t *sums = (int32_t *)(void *)x.data;
        for (size_t k = 0; k < nx; k++) /* often half way between two steps, or very large */
            sums[k] = i % 5 ? (int32_t)rnd(0, 4000) - 2000 : (int32_t)(uint32_t)test_rand();
        for (size_t k = 0; k < n; k++) {
            scale.data[k] = i % 3 ? 0.125f : 0.01f + 0.3f * test_randf() * test_randf();
            if (i % 7 == 0 && k % 5 == 0)
                scale.data[k] = specials[test_rand() % ALL];
        }
        const float lo = is_signed ? -128.0f : 0.0f, zero = lo + (float)rnd(0, 255);
        const float low = i % 2 ? lo : zero;
        sn_requantize_args t = {.x = sums,
                                .scale = scale.data,
                                .y = a,
                                .rows = rows,
                                .n = n,
                                .x_row = (ptrdiff_t)x_row,
                                .y_row = (ptrdiff_t)y_row,
                                .zero = zero,
                                .lo = low,
                                .hi = i % 6 ? lo + 255.0f : low};
        guarded others = guard_floats(ny, at_end);
        uint8_t *z = (uint8_t *)(void *)others.data + (at_end ? 3 * ny : 0);
        for (size_t k = 0; k < ny; k++)
            z[k] = (uint8_t)test_rand();
        const sn_requantize_sum sum = {.z = z,
                                       .a_scale = i % 11 ? 0.5f : specials[test_rand() % ALL],
                                       .b_scale = test_randf(),
                                       .offset = 40 * test_randf(),
                                       .second = i % 8 < 4,
                                       .is_signed = is_signed};
        t.sum = i % 3 == 2 ? &sum : NULL;
        memset(a, 0x5A, ny), memset(b, 0x5A, ny);
        ((sn_i32_requantize_fn *)ref->fn)(&t);
        t.y = b;
        ((sn_i32_requantize_fn *)row->fn)(&t);
        CHECK_MSG(memcmp(a, b, ny) == 0, "%s: case %d of %zu", row->name, i, n);
        guard_free(&x), guard_free(&scale), guard_free(&got), guard_free(&want);
        guard_free(&others);
    }
}

static void check_scale(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i + 1 : rnd(1, 150), rows = rnd(1, 4);
        const size_t x_row = n + rnd(0, 1) * rnd(0, 5), y_row = n + rnd(0, 1) * rnd(0, 5);
        const size_t nx = (rows - 1) * x_row + n, ny = (rows - 1) * y_row + n;
        const bool at_end = i % 2;
        guarded x = guard_floats(nx, at_end), scale = guard_floats(n, at_end);
        guarded addend = guard_floats(n, at_end);
        guarded got = guard_floats(ny, at_end), want = guard_floats(ny, at_end);
        int32_t *sums = (int32_t *)(void *)x.data;
        for (size_t k = 0; k < nx; k++) /* above 2^24 they are rounded */
            sums[k] = i % 5 ? (int32_t)rnd(0, 4000) - 2000 : (int32_t)(uint32_t)test_rand();
        for (size_t k = 0; k < n; k++) {
            scale.data[k] = i % 7 == 0 && k % 5 == 0 ? specials[test_rand() % ALL] : test_randf();
            addend.data[k] = i % 3 == 0 && k % 4 == 0 ? -0.0f : 100.0f * test_randf();
        }
        sn_i32_scale_args t = {.x = sums,
                               .scale = scale.data,
                               .addend = i % 4 ? addend.data : NULL,
                               .y = want.data,
                               .rows = rows,
                               .n = n,
                               .x_row = (ptrdiff_t)x_row,
                               .y_row = (ptrdiff_t)y_row};
        memset(want.data, 0x5A, ny * sizeof(float)), memset(got.data, 0x5A, ny * sizeof(float));
        ((sn_i32_scale_fn *)ref->fn)(&t);
        t.y = got.data;
        ((sn_i32_scale_fn *)row->fn)(&t);
        for (size_t k = 0; k < ny; k++) /* a NaN may have any bits */
            CHECK_MSG(memcmp(&want.data[k], &got.data[k], sizeof(float)) == 0 ||
                          (isnan(want.data[k]) && isnan(got.data[k])),
                      "%s: case %d of %zu", row->name, i, n);
        guard_free(&x), guard_free(&scale), guard_free(&addend), guard_free(&got);
        guard_free(&want);
    }
}

static void check_turn(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t rows = rnd(1, i % 2 ? 20 : 70), columns = rnd(1, i % 3 ? 20 : 70);
        const size_t x_row = columns + rnd(0, 1) * rnd(0, 9), y_row = rows + rnd(0, 1) * rnd(0, 9);
        const size_t nx = (rows - 1) * x_row + columns, ny = (columns - 1) * y_row + rows;
        const bool at_end = i % 2;
        guarded x = guard_floats(nx, at_end), got = guard_floats(ny, at_end);
        guarded want = guard_floats(ny, at_end);
        uint8_t *from = (uint8_t *)(void *)x.data + (at_end ? 3 * nx : 0);
        uint8_t *a = (uint8_t *)(void *)want.data + (at_end ? 3 * ny : 0);
        uint8_t *b = (uint8_t *)(void *)got.data + (at_end ? 3 * ny : 0);
        for (size_t k = 0; k < nx; k++)
            from[k] = (uint8_t)test_rand();
        memset(a, 0x5A, ny), memset(b, 0x5A, ny);
        ((sn_bytes_turn_fn *)ref->fn)(a, (ptrdiff_t)y_row, from, (ptrdiff_t)x_row, rows, columns);
        ((sn_bytes_turn_fn *)row->fn)(b, (ptrdiff_t)y_row, from, (ptrdiff_t)x_row, rows, columns);
        CHECK_MSG(memcmp(a, b, ny) == 0, "%s: %zu x %zu", row->name, rows, columns);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_quantize(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2, is_signed = i % 4 < 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        uint8_t *a = (uint8_t *)(void *)want.data + (at_end ? 3 * n : 0);
        uint8_t *b = (uint8_t *)(void *)got.data + (at_end ? 3 * n : 0);
        fill(x.data, n, i % 3 ? ALL : NONE);
        const float scale = i % 5 ? 0.03f : i % 7 ? 0.125f : specials[test_rand() % ALL];
        const float lo = is_signed ? -128.0f : 0.0f, zero = lo + (float)rnd(0, 255);
        ((sn_f32_quantize_fn *)ref->fn)(a, x.data, n, scale, zero, lo, lo + 255.0f);
        ((sn_f32_quantize_fn *)row->fn)(b, x.data, n, scale, zero, lo, lo + 255.0f);
        CHECK_MSG(memcmp(a, b, n) == 0, "%s: case %d of %zu", row->name, i, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void random_bytes(uint8_t *p, size_t n)
{
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)test_rand();
}

static void check_pair(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        const int mode = i % 4 ? SN_BINARY_VV : SN_BINARY_VS;
        const size_t na = n, nb = mode == SN_BINARY_VS ? 1 : n;
        guarded ga = guard_floats(na, at_end), gb = guard_floats(nb, at_end);
        guarded got = guard_floats(n, at_end), want = guard_floats(n, at_end);
        uint8_t *a = (uint8_t *)(void *)ga.data + (at_end ? 3 * na : 0);
        uint8_t *b = (uint8_t *)(void *)gb.data + (at_end ? 3 * nb : 0);
        random_bytes(a, na), random_bytes(b, nb);
        sn_q8_binary_args t = {.a = a,
                               .b = b,
                               .y = (uint8_t *)(void *)want.data + (at_end ? 3 * n : 0),
                               .n = n,
                               .a_scale = 0.01f + fabsf(test_randf()),
                               .b_scale = i % 9 ? 0.5f : specials[test_rand() % ALL],
                               .offset = i % 7 ? (float)rnd(0, 255) - 128.0f
                                               : specials[test_rand() % ALL],
                               .a_zero = (int32_t)rnd(0, 255) - (i % 3 ? 0 : 128),
                               .b_zero = (int32_t)rnd(0, 255) - (i % 3 ? 0 : 128),
                               .mode = mode,
                               .is_signed = i % 3 == 0};
        const uint8_t *expected = t.y;
        ((sn_q8_pair_fn *)ref->fn)(&t);
        const bool in_place = i % 5 == 0;
        t.y = in_place ? a : (uint8_t *)(void *)got.data + (at_end ? 3 * n : 0);
        ((sn_q8_pair_fn *)row->fn)(&t);
        CHECK_MSG(memcmp(t.y, expected, n) == 0, "%s: case %d of %zu", row->name, i, n);
        guard_free(&ga), guard_free(&gb), guard_free(&got), guard_free(&want);
    }
}

static void check_repeat(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 300), rows = rnd(1, 5);
        const size_t step = n + rnd(0, 1) * rnd(0, 9), na = (rows - 1) * step + n;
        const bool at_end = i % 2;
        guarded ga = guard_floats(na, at_end), b = guard_floats(n, at_end);
        guarded got = guard_floats(na, at_end), want = guard_floats(na, at_end);
        uint8_t *a = (uint8_t *)(void *)ga.data + (at_end ? 3 * na : 0);
        sn_q8_repeat t = {.a = a,
                          .b = b.data,
                          .y = (uint8_t *)(void *)want.data + (at_end ? 3 * na : 0),
                          .rows = rows,
                          .n = n,
                          .row = (ptrdiff_t)step,
                          .a_scale = i % 9 ? 0.01f + fabsf(test_randf()) : 0.125f,
                          .offset = (float)rnd(0, 255) - 128.0f,
                          .a_zero = (int32_t)rnd(0, 255) - (i % 3 ? 0 : 128),
                          .is_signed = i % 3 == 0};
        random_bytes(a, na);
        for (size_t k = 0; k < n; k++)
            b.data[k] = (float)((int)rnd(0, 510) - 255) * (i % 4 ? test_randf() : 0.25f);
        if (i % 9 == 0 && n > 0)
            b.data[rnd(0, n - 1)] = specials[test_rand() % ALL];
        uint8_t *other = (uint8_t *)(void *)got.data + (at_end ? 3 * na : 0);
        uint8_t *expected = t.y;
        memcpy(expected, a, na), memcpy(other, a, na); /* what lies between rows stays */
        ((sn_q8_repeat_fn *)ref->fn)(&t);
        t.y = i % 5 ? other : a;
        ((sn_q8_repeat_fn *)row->fn)(&t);
        CHECK_MSG(memcmp(t.y, expected, na) == 0, "%s: case %d of %zu x %zu", row->name, i, rows,
                  n);
        guard_free(&ga), guard_free(&b), guard_free(&got), guard_free(&want);
    }
}

static void check_max(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 150 ? (size_t)i : rnd(0, 300);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        uint8_t *from = (uint8_t *)(void *)x.data + (at_end ? 3 * n : 0);
        uint8_t *a = (uint8_t *)(void *)want.data + (at_end ? 3 * n : 0);
        uint8_t *b = (uint8_t *)(void *)got.data + (at_end ? 3 * n : 0);
        random_bytes(from, n), random_bytes(a, n);
        memcpy(b, a, n);
        ((sn_bytes_max_fn *)ref->fn)(a, from, n, i % 3 ? 0 : 0x80);
        ((sn_bytes_max_fn *)row->fn)(b, from, n, i % 3 ? 0 : 0x80);
        CHECK_MSG(memcmp(a, b, n) == 0, "%s: %zu bytes", row->name, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_sums(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 400 && !test_errors; i++) {
        const size_t n = i < 150 ? (size_t)i : rnd(0, 700), rows = i % 9 ? rnd(1, 40) : rnd(1, 700);
        const size_t x_row = n + rnd(0, 1) * rnd(0, 9), nx = (rows - 1) * x_row + n;
        const bool at_end = i % 2;
        guarded x = guard_floats((nx + 3) / 4, at_end), got = guard_floats(n, at_end);
        guarded want = guard_floats(n, at_end);
        uint8_t *from = (uint8_t *)(void *)x.data + (at_end ? (nx + 3) / 4 * 4 - nx : 0);
        random_bytes(from, nx);
        if (i % 5 == 0)
            memset(from, i % 2 ? 255 : 127, nx); /* the largest sums */
        const uint8_t flip = i % 3 ? 0 : 0x80;
        ((sn_bytes_sums_fn *)ref->fn)((int32_t *)(void *)want.data, from, (ptrdiff_t)x_row, rows, n,
                                      flip);
        ((sn_bytes_sums_fn *)row->fn)((int32_t *)(void *)got.data, from, (ptrdiff_t)x_row, rows, n,
                                      flip);
        CHECK_MSG(memcmp(got.data, want.data, n * sizeof(int32_t)) == 0, "%s: %zu x %zu", row->name,
                  rows, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_average(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 1000 && !test_errors; i++) {
        const size_t n = i < 100 ? (size_t)i : rnd(0, 150);
        const bool at_end = i % 2;
        const size_t pixels = rnd(1, 4), pitch = n + rnd(0, 9);
        sn_q8_average t = {.pixels = pixels,
                           .n = n,
                           .x_pixel = (ptrdiff_t)(rnd(1, 2) * pitch),
                           .count = (float)rnd(0, 30),
                           .x_scale = i % 4 ? 0.125f : 0.01f + fabsf(test_randf()),
                           .y_scale = i % 9 ? 0.125f : specials[test_rand() % ALL],
                           .y_zero = (float)rnd(0, 255) - (i % 3 ? 0.0f : 128.0f),
                           .x_zero = (int32_t)rnd(0, 255) - (i % 3 ? 0 : 128),
                           .is_signed = i % 3 == 0};
        ptrdiff_t step = (ptrdiff_t)pitch;
        size_t last = (pixels - 1) * (size_t)t.x_pixel; /* where the last tap begins */
        for (int d = 2; d >= 0; d--) {
            t.taps[d] = rnd(i % 7 ? 1 : 0, 3);
            t.step[d] = step;
            step *= 3;
            last += t.taps[d] ? (t.taps[d] - 1) * (size_t)t.step[d] : 0;
        }
        const size_t nx = last + n;
        guarded x = guard_floats(nx, at_end), got = guard_floats(pixels * n, at_end);
        guarded want = guard_floats(pixels * n, at_end);
        uint8_t *from = (uint8_t *)(void *)x.data + (at_end ? 3 * nx : 0);
        random_bytes(from, nx);
        t.x = from;
        t.y = (uint8_t *)(void *)want.data + (at_end ? 3 * pixels * n : 0);
        const uint8_t *expected = t.y;
        ((sn_q8_average_fn *)ref->fn)(&t);
        t.y = (uint8_t *)(void *)got.data + (at_end ? 3 * pixels * n : 0);
        ((sn_q8_average_fn *)row->fn)(&t);
        CHECK_MSG(memcmp(t.y, expected, pixels * n) == 0, "%s: case %d of %zu", row->name, i, n);
        guard_free(&x), guard_free(&got), guard_free(&want);
    }
}

static void check_table(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 600 && !test_errors; i++) {
        const size_t n = i < 300 ? (size_t)i : rnd(0, 700);
        const bool at_end = i % 2;
        guarded x = guard_floats(n, at_end), got = guard_floats(n, at_end);
        guarded table = guard_floats(SN_BYTE_VALUES / sizeof(float), at_end);
        uint8_t *from = (uint8_t *)(void *)x.data + (at_end ? 3 * n : 0);
        uint8_t *b = (uint8_t *)(void *)got.data + (at_end ? 3 * n : 0), want[700];
        const uint8_t *t = (const uint8_t *)(void *)table.data;
        random_bytes(from, n), random_bytes((uint8_t *)(void *)table.data, SN_BYTE_VALUES);
        for (size_t k = 0; k < n && n >= SN_BYTE_VALUES; k++) /* each of them */
            from[k] = (uint8_t)(k * 5);
        ((sn_bytes_table_fn *)ref->fn)(want, from, n, t);
        if (i % 3 == 0) /* in place */
            b = from;
        ((sn_bytes_table_fn *)row->fn)(b, from, n, t);
        CHECK_MSG(memcmp(want, b, n) == 0, "%s: %zu bytes", row->name, n);
        guard_free(&x), guard_free(&got), guard_free(&table);
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

/* A number of any size that scales have. */
static float any_scale(void)
{
    return ldexpf(1.0f + fabsf(test_randf()), (int)rnd(0, 24) - 18);
}

/* Every pair of bytes, with offsets that put many of them half way between two steps. */
static void check_all_pairs(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    static uint8_t a[256], b[256], want[256], got[256];
    for (int k = 0; k < 256; k++)
        a[k] = (uint8_t)k;
    for (int i = 0; i < 12 && !test_errors; i++) {
        sn_q8_binary_args t = {.a = a,
                               .b = b,
                               .n = 256,
                               .a_scale = i % 2 ? any_scale() : 0.5f,
                               .b_scale = i % 3 ? any_scale() : 0.25f,
                               .offset = (float)rnd(0, 255) - 0.5f * (float)(i % 4),
                               .a_zero = (int32_t)rnd(0, 255),
                               .b_zero = (int32_t)rnd(0, 255),
                               .is_signed = i % 5 == 0};
        for (int k = 0; k < 256; k++) {
            memset(b, k, sizeof b);
            t.y = want;
            ((sn_q8_pair_fn *)ref->fn)(&t);
            t.y = got;
            ((sn_q8_pair_fn *)row->fn)(&t);
            CHECK_MSG(memcmp(got, want, sizeof got) == 0, "%s: scales %a, %a, %a", row->name,
                      (double)t.a_scale, (double)t.b_scale, (double)t.offset);
        }
    }
}

/* Numbers half way between two steps, and their neighbours. */
static void check_half_steps(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    enum { STEPS = 300 };
    float x[3 * STEPS];
    uint8_t want[3 * STEPS], got[3 * STEPS];
    for (int i = 0; i < 300 && !test_errors; i++) {
        const float scale = any_scale(), lo = i % 2 ? -128.0f : 0.0f;
        const float zero = lo + (float)rnd(0, 255), high = lo + (float)rnd(0, 255);
        for (int k = 0; k < STEPS; k++) {
            x[3 * k] = ((float)k - 149.5f) * scale;
            x[3 * k + 1] = nextafterf(x[3 * k], INFINITY);
            x[3 * k + 2] = nextafterf(x[3 * k], -INFINITY);
        }
        const float hi = i % 3 ? lo + 255.0f : fmaxf(zero, high);
        ((sn_f32_quantize_fn *)ref->fn)(want, x, 3 * STEPS, scale, zero, lo, hi);
        ((sn_f32_quantize_fn *)row->fn)(got, x, 3 * STEPS, scale, zero, lo, hi);
        CHECK_MSG(memcmp(got, want, sizeof got) == 0, "%s: scale %a", row->name, (double)scale);
    }
}

static void check_pairs(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    check_pair(row, ref);
    check_all_pairs(row, ref);
}

static void check_quantizes(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    check_quantize(row, ref);
    check_half_steps(row, ref);
}

TEST(every_kernel_of_bytes_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_bytes_load", check_bytes_load},
                                           {"sn_bytes_store", check_bytes_store},
                                           {"sn_i32_requantize", check_requantize},
                                           {"sn_i32_scale", check_scale},
                                           {"sn_bytes_turn", check_turn},
                                           {"sn_f32_quantize", check_quantizes},
                                           {"sn_q8_pair", check_pairs},
                                           {"sn_q8_repeat", check_repeat},
                                           {"sn_bytes_max", check_max},
                                           {"sn_bytes_sums", check_sums},
                                           {"sn_q8_average", check_average},
                                           {"sn_bytes_table", check_table},
                                           {"sn_f32_axpy", check_axpy},
                                           {NULL, NULL}};
    check_family("bytes", checkers);
}

TEST_MAIN()
