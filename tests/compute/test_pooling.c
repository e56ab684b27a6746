/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling on blocked tensors against pooling of the same numbers in plain layout, the plain loops
 * against each other and small cases worked out by hand, and the change of layout there and back.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "compute/conv.h"
#include "compute/pooling.h"
#include "compute/reorder.h"
#include "compute/small_floats.h"
#include "levels.h"

/* A pool of random sizes over two axes; false: the window does not fit. */
static bool random_pool(sn_pooling_desc *d, int64_t most)
{
    bool fits = true;
    *d = (sn_pooling_desc){.dtype = SONDE_DTYPE_F32,
                           .kind = test_rand() % 2 ? SN_POOL_MAX : SN_POOL_AVERAGE,
                           .include_pad = test_rand() % 2,
                           .n = test_between(1, 2),
                           .c = test_between(1, 34),
                           .in = {1, 0, 0},
                           .out = {1, 0, 0},
                           .kernel = {1, 0, 0},
                           .stride = {1, 1, 1},
                           .dilation = {1, 1, 1}};
    const bool global = test_rand() % 6 == 0;
    for (int a = 1; a < 3; a++) {
        d->in[a] = test_between(1, a == 2 ? most : 20);
        d->kernel[a] = global ? d->in[a] : test_between(1, 4);
        d->stride[a] = test_between(1, 3);
        d->dilation[a] = global ? 1 : test_between(1, 2);
        d->pad[a] = global ? 0 : test_between(0, d->kernel[a] - 1);
        d->pad_end[a] = global ? 0 : test_between(0, d->kernel[a] - 1);
        int64_t room =
            d->in[a] + d->pad[a] + d->pad_end[a] - (d->kernel[a] - 1) * d->dilation[a] - 1;
        fits = fits && room >= 0;
        d->out[a] = room / d->stride[a] + 1;
    }
    return fits;
}

TEST(plain_pooling_of_f32_matches_f64)
{
    for (const level *lv = levels(); lv->name; lv++) {
        for (int i = 0; i < 200 && !test_errors; i++) {
            sn_pooling_desc d;
            if (!random_pool(&d, i % 40 ? 30 : 2100))
                continue;
            const size_t in = (size_t)(d.n * d.c * d.in[1] * d.in[2]);
            const size_t out = (size_t)(d.n * d.c * d.out[1] * d.out[2]);
            float *x = random_floats(in), *y = random_floats(out);
            double *wide = malloc(in * sizeof *wide), *want = malloc(out * sizeof *want);
            if (i % 5 == 0)
                x[in / 2] = NAN;
            for (size_t k = 0; k < in; k++)
                wide[k] = (double)x[k];
            sn_pooling_plan p;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, x, y, NULL, NULL, NULL);
            d.dtype = SONDE_DTYPE_F64;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, wide, want, NULL, NULL, NULL);
            for (size_t k = 0; k < out && !test_errors; k++)
                CHECK_MSG((isnan(want[k]) && isnan(y[k])) ||
                              (want[k] == -DBL_MAX && y[k] == -FLT_MAX) || /* nothing but padding */
                              fabs((double)y[k] - want[k]) <= 1e-6,
                          "%s case %d: element %zu: %g, expected %g", lv->name, i, k, (double)y[k],
                          want[k]);
            free(x), free(y), free(wide), free(want);
        }
    }
}

/* x, y or both as bf16 in memory: what f32 gives for rounded numbers, rounded. */
static void check_halves(const sn_pooling_desc *of, sonde_dtype type, const float *x,
                         uint32_t cpu_flags)
{
    sn_pooling_desc d = *of;
    const int64_t planes = d.n * ((d.c + d.block - 1) / d.block) * d.block;
    const size_t in = (size_t)(planes * d.in[1] * d.in[2]);
    const size_t out = (size_t)(planes * d.out[1] * d.out[2]);
    float *rounded = malloc((in + 1) * sizeof *rounded), *want = malloc((out + 1) * sizeof *want);
    float *got = malloc((out + 1) * sizeof *got);
    uint16_t *half = malloc((in + 1) * sizeof *half), *half_y = malloc((out + 1) * sizeof *half_y);
    const float step = type == SONDE_DTYPE_F16 ? 2048 : 256;
    sn_store_f32(0, type, half, x, in, (sn_rounding){0});
    sn_load_f32(0, type, rounded, half, in);
    sn_pooling_plan p;
    sn_pooling_plan_make(&p, &d, cpu_flags, 1);
    sn_pooling_run(&p, rounded, want, NULL, NULL, NULL);
    for (int i = 1; i < 4; i++) {
        d.x_half = i & 1 ? type : 0;
        d.y_half = i & 2 ? type : 0;
        sn_pooling_plan_make(&p, &d, cpu_flags, 1);
        void *space = malloc(p.workspace.bytes + 1);
        sn_pooling_run(&p, d.x_half ? (const void *)half : rounded, d.y_half ? (void *)half_y : got,
                       NULL, space, NULL);
        if (d.y_half)
            sn_load_f32(0, type, got, half_y, out);
        for (size_t k = 0; k < out; k++)
            CHECK_MSG(
                (want[k] == -FLT_MAX && d.y_half && isinf(got[k]) && got[k] < 0) ||
                    (isnan(want[k]) && isnan(got[k])) ||
                    fabsf(got[k] - want[k]) <= fabsf(want[k]) / (d.y_half ? step : 0x1p21f) + 1e-7f,
                "halves %d: element %zu is %g, expected %g", i, k, (double)got[k], (double)want[k]);
        free(space);
    }
    free(rounded), free(want), free(got), free(half), free(half_y);
}

TEST(blocked_pooling_matches_plain_pooling)
{
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 200 && !test_errors; i++) {
            sn_pooling_desc d;
            if (!random_pool(&d, i % 8 ? 20 : 70)) /* many bands of rows */
                continue;
            const int64_t in = d.in[1] * d.in[2], out = d.out[1] * d.out[2];
            float *x = random_floats((size_t)(d.n * d.c * in));
            if (i % 5 == 0)
                x[0] = NAN;
            float *xb = to_blocked(x, d.n, d.c, in, block);
            float *y = random_floats((size_t)(d.n * d.c * out));
            float *yb = random_floats((size_t)(d.n * (d.c + block) * out));
            sn_pooling_plan p;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, x, y, NULL, NULL, NULL);
            d.block = block;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, xb, yb, NULL, NULL, NULL);
            for (int64_t n = 0; n < d.n; n++)
                for (int64_t c = 0; c < d.c; c++)
                    for (int64_t o = 0; o < out; o++) {
                        float want = y[(n * d.c + c) * out + o];
                        float got = blocked_at(yb, d.c, out, block, n, c, o);
                        CHECK_MSG((isnan(want) && isnan(got)) || fabsf(got - want) <= 1e-6f,
                                  "%s case %d: image %d channel %d pixel %d: %g, expected %g",
                                  lv->name, i, (int)n, (int)c, (int)o, (double)got, (double)want);
                    }
            check_halves(&d, SONDE_DTYPE_BF16, xb, lv->flags);
            check_halves(&d, SONDE_DTYPE_F16, xb, lv->flags);
            free(x), free(xb), free(y), free(yb);
        }
    }
}

/* Channels last against one channel at a time, and that against plain loops, as maxima of i32. */
TEST(maxima_of_bytes_match_those_of_integers)
{
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 300 && !test_errors; i++) {
            sn_pooling_desc d;
            if (!random_pool(&d, i % 20 ? 30 : 2100))
                continue;
            d.kind = SN_POOL_MAX;
            if (i % 30 == 1)
                d.c = test_between(3000, 9000); /* a window of them is too much to be joined */
            d.in[1] = i % 30 == 1 ? sn_min(d.in[1], 4) : d.in[1];
            for (int a = 1; a < 3; a++)
                d.out[a] =
                    (d.in[a] + d.pad[a] + d.pad_end[a] - (d.kernel[a] - 1) * d.dilation[a] - 1) /
                        d.stride[a] +
                    1;
            if (d.in[1] + d.pad[1] + d.pad_end[1] <= (d.kernel[1] - 1) * d.dilation[1])
                continue;
            const bool is_signed = i % 2;
            const int64_t in = d.in[1] * d.in[2], out = d.out[1] * d.out[2];
            const size_t n_in = (size_t)(d.n * d.c * in), n_out = (size_t)(d.n * d.c * out);
            uint8_t *x = malloc(n_in), *turned = malloc(n_in);
            uint8_t *y = malloc(n_out), *last = malloc(n_out);
            int32_t *whole = malloc(n_in * sizeof *whole), *want = malloc(n_out * sizeof *want);
            for (size_t k = 0; k < n_in; k++) {
                const size_t pixel = k % (size_t)in, plane = k / (size_t)in;
                const size_t image = plane / (size_t)d.c, c = plane % (size_t)d.c;
                x[k] = (uint8_t)test_rand();
                whole[k] = is_signed ? (int8_t)x[k] : x[k];
                turned[(image * (size_t)in + pixel) * (size_t)d.c + c] = x[k];
            }
            sn_pooling_plan p;
            d.dtype = SONDE_DTYPE_I32;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, whole, want, NULL, NULL, NULL);
            d.dtype = is_signed ? SONDE_DTYPE_I8 : SONDE_DTYPE_U8;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, x, y, NULL, NULL, NULL);
            d.last = true;
            sn_pooling_plan_make(&p, &d, lv->flags, 1);
            sn_pooling_run(&p, turned, last, NULL, NULL, NULL);
            for (size_t k = 0; k < n_out && !test_errors; k++) {
                const size_t pixel = k % (size_t)out, plane = k / (size_t)out;
                const size_t image = plane / (size_t)d.c, c = plane % (size_t)d.c;
                const uint8_t there = last[(image * (size_t)out + pixel) * (size_t)d.c + c];
                /* Of nothing, the lowest number of each type. */
                const uint8_t number =
                    want[k] == INT32_MIN ? (is_signed ? 0x80 : 0) : (uint8_t)want[k];
                CHECK_MSG(number == y[k], "%s case %d: element %zu", lv->name, i, k);
                CHECK_MSG(y[k] == there, "%s case %d, channels last: element %zu", lv->name, i, k);
            }
            free(x), free(turned), free(y), free(last), free(whole), free(want);
        }
}

TEST(maximum_indices_count_rows_or_columns_first)
{
    const float x[6] = {1, 2, 3, 4, 9, 5}; /* 2 × 3 */
    float y;
    int64_t index;
    sn_pooling_desc d = {.kind = SN_POOL_MAX,
                         .dtype = SONDE_DTYPE_F32,
                         .n = 1,
                         .c = 1,
                         .in = {1, 2, 3},
                         .out = {1, 1, 1},
                         .kernel = {1, 2, 3},
                         .stride = {1, 1, 1},
                         .dilation = {1, 1, 1}};
    sn_pooling_plan p;
    sn_pooling_plan_make(&p, &d, 0, 1);
    sn_pooling_run(&p, x, &y, &index, NULL, NULL);
    CHECK(y == 9.0f);
    CHECK_EQ(index, 4);
    d.column_major = true;
    sn_pooling_plan_make(&p, &d, 0, 1);
    sn_pooling_run(&p, x, &y, &index, NULL, NULL);
    CHECK_EQ(index, 3);
}

TEST(layout_there_and_back_is_the_same_tensor)
{
    for (const level *lv = levels(); lv->name; lv++) {
        for (int i = 0; i < 60; i++) {
            const unsigned block = test_rand() % 2 ? 8 : 16;
            sn_reorder r = {.n = test_between(1, 2),
                            .c = test_between(1, 40),
                            .pixels = test_between(1, 2500),
                            .to = block};
            float *x = random_floats((size_t)(r.n * r.c * r.pixels));
            float *b = random_floats((size_t)(r.n * (r.c + 16) * r.pixels));
            float *o = random_floats((size_t)(r.n * (r.c + 16) * r.pixels));
            float *y = random_floats((size_t)(r.n * r.c * r.pixels));
            sn_reorder_run(&r, lv->flags, x, b, NULL);
            float *want = to_blocked(x, r.n, r.c, r.pixels, block);
            const size_t all = (size_t)(r.n * ((r.c + block - 1) / block * block) * r.pixels);
            CHECK(memcmp(want, b, all * sizeof *b) == 0);
            sn_reorder other = r, back = r;
            other.from = block;
            other.to = block == 8 ? 16 : 8;
            sn_reorder_run(&other, lv->flags, b, o, NULL);
            back.from = other.to;
            back.to = 0;
            sn_reorder_run(&back, lv->flags, o, y, NULL);
            CHECK(memcmp(x, y, (size_t)(r.n * r.c * r.pixels) * sizeof *x) == 0);
            free(x), free(b), free(o), free(y), free(want);
        }
    }
}

TEST(blocks_are_made_of_channels_last_and_taken_apart_again)
{
    for (int i = 0; i < 60; i++) {
        const unsigned block = test_rand() % 2 ? 8 : 16;
        sn_reorder r = {.n = test_between(1, 3),
                        .c = test_between(1, 70),
                        .pixels = test_between(1, 900),
                        .to = block,
                        .last = true};
        const size_t count = (size_t)(r.n * r.c * r.pixels);
        const size_t all = (size_t)(r.n * ((r.c + block - 1) / block * block) * r.pixels);
        float *plain = random_floats(count), *last = random_floats(count);
        float *b = random_floats(all), *y = random_floats(count);
        for (int64_t n = 0; n < r.n; n++)
            for (int64_t c = 0; c < r.c; c++)
                for (int64_t p = 0; p < r.pixels; p++)
                    last[(n * r.pixels + p) * r.c + c] = plain[(n * r.c + c) * r.pixels + p];
        float *want = to_blocked(plain, r.n, r.c, r.pixels, block);
        sn_reorder_run(&r, 0, last, b, NULL);
        CHECK(memcmp(want, b, all * sizeof *b) == 0);
        r.from = block;
        r.to = 0;
        sn_reorder_run(&r, 0, b, y, NULL);
        CHECK(memcmp(last, y, count * sizeof *y) == 0);
        free(plain), free(last), free(b), free(y), free(want);
    }
}

TEST(a_reorder_converts_16_bit_floats_as_two_steps_do)
{
    for (const level *lv = levels(); lv->name; lv++) {
        for (int i = 0; i < 60; i++) {
            const sonde_dtype type = i % 2 ? SONDE_DTYPE_F16 : SONDE_DTYPE_BF16;
            const unsigned block = test_rand() % 2 ? 8 : 16;
            const sn_reorder r = {.n = test_between(1, 2),
                                  .c = test_between(1, 40),
                                  .pixels = test_between(1, 2500),
                                  .to = block};
            const size_t plain = (size_t)(r.n * r.c * r.pixels);
            const size_t all = (size_t)(r.n * ((r.c + block - 1) / block * block) * r.pixels);
            float *x = random_floats(plain), *want = random_floats(all), *got = random_floats(all);
            uint16_t *half = malloc(plain * sizeof *half), *back = malloc(plain * sizeof *back);
            sn_store_f32(lv->flags, type, half, x, plain, (sn_rounding){0});
            sn_load_f32(lv->flags, type, x, half, plain);
            sn_reorder_run(&r, lv->flags, x, want, NULL);
            sn_reorder there = r, again = r;
            there.plain = again.plain = type;
            again.from = block;
            again.to = 0;
            sn_reorder_run(&there, lv->flags, half, got, NULL);
            CHECK(memcmp(want, got, all * sizeof *got) == 0);
            sn_reorder_run(&again, lv->flags, got, back, NULL);
            CHECK(memcmp(half, back, plain * sizeof *half) == 0);
            free(x), free(want), free(got), free(half), free(back);
        }
    }
}

TEST_MAIN()
