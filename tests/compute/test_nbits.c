/* SPDX-License-Identifier: Apache-2.0 */
/* Products with weights of few bits against a naive sum in double precision: several parts of k,
 * panels that are not full, more threads than panels. */
#include <math.h>
#include <string.h>

#include "compute/nbits.h"
#include "compute/split.h"
#include "levels.h"

typedef struct product {
    int64_t m, n, k, block, blocks;
    int bits;
    const float *a, *scales, *zeros_f32, *bias;
    const uint8_t *w, *zeros;
    const int32_t *groups;
} product;

static uint8_t *random_bytes(int64_t n)
{
    uint8_t *x = malloc((size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (uint8_t)test_rand();
    return x;
}

static int number(const uint8_t *x, int64_t i, int bits)
{
    const int64_t at = i * bits;
    return x[at / 8] >> at % 8 & ((1 << bits) - 1);
}

static double weight(const product *t, int64_t column, int64_t i)
{
    const int64_t block = t->block, g = t->groups ? t->groups[i] : i / block;
    const int64_t zero_row = sn_ceil_div(t->blocks * t->bits, 8), blob = block * t->bits / 8;
    const double zero = t->zeros       ? number(t->zeros + column * zero_row, g, t->bits)
                        : t->zeros_f32 ? (double)t->zeros_f32[column * t->blocks + g]
                                       : 1 << (t->bits - 1);
    const uint8_t *w = t->w + (column * t->blocks + i / block) * blob;
    return (number(w, i % block, t->bits) - zero) * (double)t->scales[column * t->blocks + g];
}

static void check(const product *t, const level *lv, sn_pool *pool)
{
    sonde_error err = {0};
    sn_nbits_plan p;
    CHECK_OK(sn_nbits_plan_make(&p, t->m, t->n, t->k, t->bits, t->block, lv->flags,
                                (int)sn_pool_threads(pool), &err));
    void *space = aligned_alloc(64, (p.workspace_bytes + 127) / 64 * 64);
    float *y = random_floats((size_t)(t->m * t->n));
    const sn_nbits_args args = {.a = t->a,
                                .w = t->w,
                                .scales = t->scales,
                                .zeros = t->zeros,
                                .zeros_f32 = t->zeros_f32,
                                .groups = t->groups,
                                .bias = t->bias,
                                .y = y};
    sn_nbits_run(&p, &args, space, pool);
    for (int64_t s = 0, bad = 0; s < t->n && !bad; s++)
        for (int64_t r = 0; r < t->m && !bad; r++) {
            double sum = t->bias ? (double)t->bias[s] : 0, scale = 1;
            for (int64_t i = 0; i < t->k; i++) {
                const double v = (double)t->a[r * t->k + i] * weight(t, s, i);
                sum += v;
                scale += fabs(v);
            }
            const double got = (double)y[r * t->n + s];
            bad = !(fabs(got - sum) <= 4e-6 * scale);
            CHECK_MSG(!bad, "%s: %d bits, m %d n %d k %d, blocks of %d: [%d, %d] = %g, not %g",
                      lv->name, t->bits, (int)t->m, (int)t->n, (int)t->k, (int)t->block, (int)r,
                      (int)s, got, sum);
        }
    free(y), free(space);
}

TEST(weights_of_few_bits_match_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 3, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 60 && !test_errors; i++) {
            product t = {.m = test_between(1, i % 3 ? 20 : 4),
                         .n = test_between(1, 70),
                         .k = test_between(1, i % 4 ? 200 : 2500),
                         .bits = 2 << test_rand() % 3,
                         .block = 16 << test_rand() % 8};
            if (i % 20 == 19)
                t.k = 1024 * test_between(1, 3);
            t.blocks = sn_ceil_div(t.k, t.block);
            const int64_t zero_row = sn_ceil_div(t.blocks * t.bits, 8);
            float *a = random_floats((size_t)(t.m * t.k)), *bias = random_floats((size_t)t.n);
            float *scales = random_floats((size_t)(t.n * t.blocks));
            float *zeros_f32 = random_floats((size_t)(t.n * t.blocks));
            uint8_t *w = random_bytes(t.n * t.blocks * t.block * t.bits / 8);
            uint8_t *zeros = random_bytes(t.n * zero_row);
            int32_t *groups = malloc((size_t)t.k * sizeof *groups);
            for (int64_t j = 0; j < t.k; j++)
                groups[j] = (int32_t)test_between(0, t.blocks - 1);
            t.a = a, t.w = w, t.scales = scales;
            t.bias = test_rand() % 2 ? bias : NULL;
            t.zeros = test_rand() % 3 == 0 ? zeros : NULL;
            t.zeros_f32 = !t.zeros && test_rand() % 2 ? zeros_f32 : NULL;
            t.groups = test_rand() % 3 == 0 ? groups : NULL;
            check(&t, lv, i % 2 ? pool : NULL);
            free(a), free(bias), free(scales), free(zeros_f32), free(w), free(zeros), free(groups);
        }
    sn_pool_free(pool);
}

TEST_MAIN()
