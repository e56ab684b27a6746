/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products over strides: odd shapes, diagonals, sums of nothing, every kind of element. */
#include "compute/einsum.h"

#include "compute/element.h"
#include "levels.h"

/* y[i, j] = sum over k of a[i, k] * b[k, j] */
static sn_einsum product(sonde_dtype t, int64_t m, int64_t k, int64_t n)
{
    return (sn_einsum){.n = 2,
                       .dtype = t,
                       .out_rank = 2,
                       .sum_rank = 1,
                       .out_dims = {m, n},
                       .sum_dims = {k},
                       .out_count = m * n,
                       .sum_count = k,
                       .out_strides = {{(ptrdiff_t)k, 0}, {0, 1}},
                       .sum_strides = {{1}, {(ptrdiff_t)n}}};
}

TEST(products_of_every_type_match_a_plain_loop_alone_and_in_threads)
{
    static const sonde_dtype types[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64,  SONDE_DTYPE_I32,
                                        SONDE_DTYPE_I64, SONDE_DTYPE_BF16, SONDE_DTYPE_I8};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int trial = 0; trial < 20; trial++) {
            const int64_t m = test_between(1, 9), k = test_between(1, 5), n = test_between(1, 17);
            double a[45], b[85], want, got;
            _Alignas(8) uint8_t x[2][85 * 8], y[153 * 8];
            const void *const from[2] = {x[0], x[1]};
            for (int64_t i = 0; i < m * k; i++)
                sn_elem_set_f64(types[t], x[0], i, a[i] = (double)test_between(-3, 3));
            for (int64_t i = 0; i < k * n; i++)
                sn_elem_set_f64(types[t], x[1], i, b[i] = (double)test_between(-3, 3));
            const sn_einsum e = product(types[t], m, k, n);
            sn_einsum_run(&e, y, from, trial % 2 ? pool : NULL);
            for (int64_t i = 0; i < m * n; i++) {
                want = 0;
                for (int64_t s = 0; s < k; s++)
                    want += a[i / n * k + s] * b[s * n + i % n];
                got = sn_elem_f64(types[t], y, i);
                CHECK_MSG(got == want, "type %d, %lld×%lld×%lld, element %lld: %g, expected %g",
                          (int)types[t], (long long)m, (long long)k, (long long)n, (long long)i,
                          got, want);
            }
        }
    sn_pool_free(pool);
}

TEST(a_trace_of_three_operands_walks_diagonals)
{
    const float a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[3] = {1, 10, 100}, c[1] = {2};
    const void *const x[3] = {a, b, c};
    float y = -1;
    const sn_einsum e = {.n = 3,
                         .dtype = SONDE_DTYPE_F32,
                         .sum_rank = 1,
                         .sum_dims = {3},
                         .out_count = 1,
                         .sum_count = 3,
                         .sum_strides = {{4}, {1}, {0}}};
    sn_einsum_run(&e, &y, x, NULL);
    CHECK(y == 2 * (1 + 50 + 900));
}

TEST(two_summed_axes_are_walked_in_order)
{
    double x[24], want[4] = {0}, y[4];
    const void *const from[1] = {x};
    for (int i = 0; i < 24; i++)
        want[i % 4] += x[i] = (double)i;
    const sn_einsum e = {.n = 1,
                         .dtype = SONDE_DTYPE_F64,
                         .out_rank = 1,
                         .sum_rank = 2,
                         .out_dims = {4},
                         .sum_dims = {2, 3},
                         .out_count = 4,
                         .sum_count = 6,
                         .out_strides = {{1}},
                         .sum_strides = {{12, 4}}};
    sn_einsum_run(&e, y, from, NULL);
    CHECK(memcmp(y, want, sizeof y) == 0);
}

TEST(a_sum_of_nothing_is_zero_and_no_output_is_no_work)
{
    int32_t y[3] = {7, 7, 7};
    const void *const x[2] = {y, y};
    sn_einsum e = product(SONDE_DTYPE_I32, 1, 0, 3);
    sn_einsum_run(&e, y, x, NULL);
    CHECK(y[0] == 0 && y[1] == 0 && y[2] == 0);
    e = product(SONDE_DTYPE_I32, 0, 4, 3);
    y[0] = 7;
    sn_einsum_run(&e, y, x, NULL);
    CHECK_EQ(y[0], 7);
}

TEST_MAIN()
