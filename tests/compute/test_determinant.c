/* SPDX-License-Identifier: Apache-2.0 */
/* Determinants against the sum over permutations. */
#include "compute/determinant.h"

#include "test.h"

/* Expansion along the first row of an n × n matrix in rows of `stride`. */
static double by_minors(const double *a, int n, int stride)
{
    if (n == 0)
        return 1.0;
    double sum = 0;
    for (int column = 0; column < n; column++) {
        double minor[36];
        for (int r = 1; r < n; r++)
            for (int c = 0, k = 0; c < n; c++)
                if (c != column)
                    minor[(r - 1) * 6 + k++] = a[r * stride + c];
        sum += (column % 2 ? -1 : 1) * a[column] * by_minors(minor, n - 1, 6);
    }
    return sum;
}

TEST(random_matrices_match_the_sum_over_minors)
{
    for (int n = 0; n <= 5; n++)
        for (int trial = 0; trial < 20; trial++) {
            double x[2 * 25], scratch[25];
            for (int i = 0; i < 2 * n * n; i++)
                x[i] = test_rand() % 4 ? (double)test_randf() : 0.0; /* pivots are needed */
            const double got = sn_determinant((sn_elems){SONDE_DTYPE_F64, x}, n * n, n, scratch),
                         want = by_minors(x + n * n, n, n);
            CHECK_MSG(fabs(got - want) < 1e-12, "%d × %d: %g, expected %g", n, n, got, want);
        }
}

TEST(a_row_twice_gives_zero_in_every_float_type)
{
    const uint16_t half[4] = {0x3c00, 0x4000, 0x3c00, 0x4000}; /* 1, 2 twice */
    const float x[4] = {0, 2, 3, 0};
    double scratch[4];
    CHECK(sn_determinant((sn_elems){SONDE_DTYPE_F16, (void *)(uintptr_t)half}, 0, 2, scratch) == 0);
    CHECK(sn_determinant((sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)x}, 0, 2, scratch) == -6);
}

TEST(many_matrices_are_done_one_after_the_other_until_cancelled)
{
    const double x[8] = {1, 2, 3, 4, 5, 6, 7, 9};
    float y[2] = {0, 0};
    double scratch[4];
    _Atomic int cancel = 0;
    const sn_elems from = {SONDE_DTYPE_F64, (void *)(uintptr_t)x}, to = {SONDE_DTYPE_F32, y};
    CHECK(sn_determinants_run(to, from, 2, 2, scratch, NULL));
    CHECK(fabsf(y[0] + 2) < 1e-6f && fabsf(y[1] - 3) < 1e-6f);
    CHECK(sn_determinants_run(to, from, 2, 2, scratch, &cancel));
    cancel = 1;
    y[1] = 7;
    CHECK(!sn_determinants_run(to, from, 2, 2, scratch, &cancel));
    CHECK(y[1] == 7);
}

TEST_MAIN()
