/* SPDX-License-Identifier: Apache-2.0 */
/* The best k of every lane against picking the best again and again. */
#include "compute/topk.h"

#include "levels.h"

enum { MOST = 40000 };
static int32_t x[MOST], values[MOST];
static int64_t indices[MOST];

/* Is element a to be listed before element b? */
static bool before(const sn_topk *p, int64_t base, int64_t a, int64_t b)
{
    const int32_t va = x[base + a * p->inner], vb = x[base + b * p->inner];
    return va == vb ? a < b : p->largest ? va > vb : va < vb;
}

static bool lanes_are_right(const sn_topk *p)
{
    for (int64_t lane = 0; lane < p->outer * p->inner; lane++) {
        const int64_t outer = lane / p->inner, in = lane % p->inner,
                      base = outer * p->n * p->inner + in;
        int64_t last = -1;
        for (int64_t i = 0; i < p->k; i++) {
            int64_t best = -1;
            for (int64_t c = 0; c < p->n; c++)
                if ((last < 0 || before(p, base, last, c)) &&
                    (best < 0 || before(p, base, c, best)))
                    best = c;
            const int64_t at = (outer * p->k + i) * p->inner + in;
            if (indices[at] != best || values[at] != x[base + best * p->inner])
                return false;
            last = best;
        }
    }
    return true;
}

TEST(every_lane_has_its_best_in_order_alone_and_in_threads)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (int trial = 0; trial < 60; trial++) {
        const bool large = trial % 10 == 0; /* enough to be split */
        sn_topk p = {.dtype = SONDE_DTYPE_I32,
                     .largest = trial % 2,
                     .outer = large ? 37 : test_between(1, 4),
                     .n = large ? 100 : test_between(1, 30),
                     .inner = large ? 5 : test_between(1, 4)};
        p.k = test_between(0, p.n < 9 ? p.n : 9);
        for (int64_t i = 0; i < p.outer * p.n * p.inner; i++)
            x[i] = (int32_t)test_between(-9, 9);
        size_t bytes;
        CHECK(sn_topk_scratch(p.k, 3, &bytes));
        void *scratch = malloc(bytes + 1);
        sn_topk_run(&p, values, indices, x, scratch, 3, trial % 4 == 3 ? NULL : pool);
        free(scratch);
        CHECK_MSG(lanes_are_right(&p), "trial %d", trial);
    }
    sn_pool_free(pool);
}

TEST(nan_is_the_largest_and_either_result_may_be_left_out)
{
    const float y[5] = {1, NAN, -INFINITY, INFINITY, 2};
    float top[2];
    int64_t at[2];
    _Alignas(16) uint8_t scratch[64];
    sn_topk p = {.dtype = SONDE_DTYPE_F32, .largest = true, .outer = 1, .n = 5, .inner = 1, .k = 2};
    sn_topk_run(&p, NULL, at, y, scratch, 1, NULL);
    CHECK(at[0] == 1 && at[1] == 3);
    p.largest = false;
    sn_topk_run(&p, top, NULL, y, scratch, 1, NULL);
    CHECK(top[0] == -INFINITY && top[1] == 1);
    p.outer = 0;
    sn_topk_run(&p, NULL, NULL, NULL, NULL, 1, NULL);
    size_t bytes;
    CHECK(!sn_topk_scratch(INT64_MAX, 8, &bytes));
}

TEST_MAIN()
