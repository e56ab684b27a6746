/* SPDX-License-Identifier: Apache-2.0 */
/* Scales that come from the data: the same at every CPU level, with any number of threads. The
 * rest of quantisation is tested with the operators (tests/ops). */
#include <math.h>
#include <string.h>

#include "compute/cast.h"
#include "levels.h"

/* As ONNX states it, one number after the other. */
static void plain(uint8_t *y, const float *x, size_t n, float *scale, uint8_t *zero)
{
    float lo = 0, hi = 0;
    for (size_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *scale = (hi - lo) / 255.0f;
    *zero = *scale > 0 ? (uint8_t)rintf(-lo / *scale) : 0;
    for (size_t i = 0; i < n; i++) {
        const float v = (*scale > 0 ? rintf(x[i] / *scale) : 0) + (float)*zero;
        y[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static void check(const level *l, sn_pool *pool, const float *x, size_t n)
{
    uint8_t *want = malloc(n + 1), *got = malloc(n + 1), want_zero, got_zero;
    float want_scale, got_scale;
    plain(want, x, n, &want_scale, &want_zero);
    sn_quantize_dynamic_run(l->flags, got, x, n, &got_scale, &got_zero, pool);
    CHECK_MSG(want_scale == got_scale && want_zero == got_zero, "%s: %zu numbers: %g and %d",
              l->name, n, (double)got_scale, got_zero);
    CHECK_MSG(memcmp(want, got, n) == 0, "%s: %zu numbers", l->name, n);
    free(want), free(got);
}

TEST(bytes_and_their_scale_are_those_of_the_formula)
{
    static const size_t sizes[] = {0, 1, 5, 63, 4095, 4096, 4097, 8193, 262144, 300001, 1048577};
    sn_allocator alloc;
    sn_pool *pool = NULL;
    sn_allocator_init_system(&alloc);
    CHECK(sn_pool_create(&pool, 3, &alloc, NULL) == SONDE_OK);
    for (const level *l = levels(); l->name; l++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const size_t n = sizes[i];
            float *x = random_floats(n);
            check(l, NULL, x, n);
            check(l, pool, x, n);
            for (size_t at = 0; at < n; at += n / 3 + 1) { /* extremes anywhere */
                x[at] = 3.0f + (float)at;
                check(l, pool, x, n);
                x[at] = -x[at];
                check(l, pool, x, n);
            }
            free(x);
        }
    sn_pool_free(pool);
}

TEST(numbers_of_one_sign_keep_an_exact_zero)
{
    enum { N = 9000 };
    static float x[N];
    for (const level *l = levels(); l->name; l++) {
        for (int i = 0; i < N; i++)
            x[i] = 5.0f + test_randf();
        check(l, NULL, x, N);
        for (int i = 0; i < N; i++)
            x[i] = -x[i];
        check(l, NULL, x, N);
        memset(x, 0, sizeof x);
        check(l, NULL, x, N);
    }
}

/* One that is no number makes the range what it was in one way through the data. */
TEST(no_number_in_any_part_gives_the_same_range)
{
    enum { N = 20000 };
    static float x[N];
    static uint8_t y[N];
    for (const level *l = levels(); l->name; l++)
        for (int at = 0; at < N; at += 1999) {
            float scale = 7;
            uint8_t zero = 7;
            for (int i = 0; i < N; i++)
                x[i] = test_randf();
            x[at] = NAN;
            sn_quantize_dynamic_run(l->flags, y, x, N, &scale, &zero, NULL);
            CHECK_MSG(scale == 0.0f && zero == 0, "%s: NaN at %d: %g and %d", l->name, at,
                      (double)scale, zero);
        }
}

TEST_MAIN()
