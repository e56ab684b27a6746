/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of lines and frames against the sum they are short for. */
#include "compute/fourier.h"

#include "levels.h"

enum { MOST = 4096 };
static const double TURN = 6.283185307179586476925286766559;

static double tables[MOST], first[MOST];
static void *scratch;

static bool make(sn_fourier_work *w, sonde_dtype t, int64_t length, int64_t lines, int threads)
{
    if (!sn_fft_plan(&w->fft, length, t != SONDE_DTYPE_F64) || w->fft.table_elems > MOST ||
        w->fft.workspace.bytes > sizeof first)
        return false;
    sn_fft_make(&w->fft, tables, first);
    sn_fourier_share(w, lines, threads);
    free(scratch);
    scratch = malloc(w->workspace.bytes);
    return scratch != NULL;
}

/* Number k of the transform of n complex numbers, not scaled. */
static void plain_sum(const double *z, int64_t n, int64_t k, bool inverse, double *out)
{
    out[0] = out[1] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = (inverse ? TURN : -TURN) * (double)(i * k % n) / (double)n;
        out[0] += z[2 * i] * cos(a) - z[2 * i + 1] * sin(a);
        out[1] += z[2 * i] * sin(a) + z[2 * i + 1] * cos(a);
    }
}

TEST(lines_of_any_length_and_stride_match_the_plain_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (int trial = 0; trial < 60; trial++) {
        const int64_t outer = test_between(1, 3), inner = test_between(1, 4),
                      in = test_between(1, 12), length = test_between(1, 14),
                      parts = test_between(1, 2);
        const bool inverse = trial % 2, onesided = trial % 3 == 0 && !inverse;
        sn_dft d = {.dtype = SONDE_DTYPE_F64,
                    .in = in,
                    .out = onesided ? length / 2 + 1 : length,
                    .inner = inner,
                    .in_parts = parts,
                    .out_parts = 2,
                    .inverse = inverse,
                    .onesided = onesided};
        CHECK(make(&d.work, d.dtype, length, outer * inner, trial % 4 ? 3 : 1));
        double x[3 * 12 * 4 * 2], y[3 * 14 * 4 * 2];
        for (int64_t i = 0; i < outer * in * inner * parts; i++)
            x[i] = (double)test_randf();
        sn_dft_run(&d, y, x, scratch, pool);
        for (int64_t line = 0; line < outer * inner; line++) {
            double z[28] = {0}, want[2];
            for (int64_t i = 0; i < in && i < length; i++)
                for (int64_t p = 0; p < parts; p++)
                    z[2 * i + p] = x[((line / inner * in + i) * inner + line % inner) * parts + p];
            for (int64_t k = 0; k < d.out; k++) {
                const double *got = y + ((line / inner * d.out + k) * inner + line % inner) * 2;
                plain_sum(z, length, k, inverse, want);
                const double scale = inverse ? 1.0 / (double)length : 1.0;
                CHECK_MSG(fabs(got[0] - want[0] * scale) < 1e-12 &&
                              fabs(got[1] - want[1] * scale) < 1e-12,
                          "trial %d, line %lld, number %lld", trial, (long long)line, (long long)k);
            }
        }
    }
    sn_pool_free(pool);
}

TEST(transforms_in_float_are_as_exact_as_float)
{
    static const int64_t lengths[] = {1,  2,   3,   4,   5,   6,   7,   8,   9,   10, 11,
                                      12, 13,  15,  21,  25,  27,  30,  35,  49,  60, 64,
                                      97, 100, 105, 128, 210, 256, 343, 360, 400, 512};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t n = lengths[i];
        float x[2 * 512], y[2 * 512];
        double z[2 * 512], want[2], size = 0;
        sn_dft d = {.dtype = SONDE_DTYPE_F32,
                    .in = n,
                    .out = n,
                    .inner = 1,
                    .in_parts = 2,
                    .out_parts = 2,
                    .inverse = i % 2 != 0};
        for (int64_t k = 0; k < 2 * n; k++) {
            z[k] = (double)(x[k] = test_randf());
            size += fabs(z[k]);
        }
        if (!make(&d.work, d.dtype, n, 1, 1))
            continue; /* a prime whose tables are larger than these */
        sn_dft_run(&d, y, x, scratch, NULL);
        /* Each number is a sum of all inputs, so errors are held against the sum of their sizes: a
         * few roundings of 2^-24. */
        for (int64_t k = 0; k < n; k++) {
            plain_sum(z, n, k, d.inverse, want);
            const double scale = d.inverse ? 1.0 / (double)n : 1.0;
            for (int c = 0; c < 2; c++)
                CHECK_MSG(fabs((double)y[2 * k + c] - want[c] * scale) < 4e-7 * size * scale,
                          "length %lld", (long long)n);
        }
    }
}

TEST(a_one_sided_spectrum_comes_back_as_the_real_line_it_was_made_of)
{
    for (int64_t n = 2; n <= 9; n++) {
        float x[9], half[10], back[9];
        sn_dft d = {.dtype = SONDE_DTYPE_F32,
                    .in = n,
                    .out = n / 2 + 1,
                    .inner = 1,
                    .in_parts = 1,
                    .out_parts = 2,
                    .onesided = true};
        for (int64_t i = 0; i < n; i++)
            x[i] = test_randf();
        CHECK(make(&d.work, d.dtype, n, 1, 1));
        sn_dft_run(&d, half, x, scratch, NULL);
        sn_dft inverse = {.dtype = SONDE_DTYPE_F32,
                          .in = n / 2 + 1,
                          .out = n,
                          .inner = 1,
                          .in_parts = 2,
                          .out_parts = 1,
                          .inverse = true,
                          .onesided = true};
        CHECK(make(&inverse.work, inverse.dtype, n, 1, 1));
        sn_dft_run(&inverse, back, half, scratch, NULL);
        for (int64_t i = 0; i < n; i++)
            CHECK_MSG(fabsf(back[i] - x[i]) < 1e-6f, "length %lld", (long long)n);
    }
}

TEST(frames_step_along_the_signal_under_a_window)
{
    enum { SIGNAL = 17, LENGTH = 6, STEP = 3, FRAMES = 4, OUT = LENGTH / 2 + 1 };
    double x[2 * SIGNAL], window[4] = {0.25, 1.0, 0.5, 2.0}, y[2 * FRAMES * OUT * 2];
    for (int i = 0; i < 2 * SIGNAL; i++)
        x[i] = (double)test_randf();
    for (int windowed = 0; windowed < 2; windowed++) {
        sn_stft d = {.dtype = SONDE_DTYPE_F64,
                     .signal = SIGNAL,
                     .frames = FRAMES,
                     .step = STEP,
                     .in_parts = 1,
                     .out = OUT,
                     .window = windowed ? 4 : -1};
        CHECK(make(&d.work, d.dtype, LENGTH, 2 * FRAMES, 2));
        sn_stft_run(&d, y, x, windowed ? window : NULL, scratch, NULL);
        for (int line = 0; line < 2 * FRAMES; line++) {
            double z[2 * LENGTH] = {0}, want[2];
            for (int i = 0; i < (windowed ? 4 : LENGTH); i++)
                z[2 * i] = x[line / FRAMES * SIGNAL + line % FRAMES * STEP + i] *
                           (windowed ? window[i] : 1.0);
            for (int k = 0; k < OUT; k++) {
                plain_sum(z, LENGTH, k, false, want);
                const double *got = y + (line * OUT + k) * 2;
                CHECK_MSG(fabs(got[0] - want[0]) < 1e-12 && fabs(got[1] - want[1]) < 1e-12,
                          "window %d, frame %d, number %d", windowed, line, k);
            }
        }
    }
    free(scratch);
    scratch = NULL;
}

TEST(no_lines_need_no_work)
{
    sn_dft d = {.dtype = SONDE_DTYPE_F32, .in = 4, .out = 4, .inner = 0, .in_parts = 1};
    CHECK(make(&d.work, d.dtype, 4, 0, 3));
    CHECK_EQ(d.work.tasks, 1);
    sn_dft_run(&d, NULL, NULL, scratch, NULL);
    free(scratch);
    scratch = NULL;
}

TEST_MAIN()
