/* SPDX-License-Identifier: Apache-2.0 */
/* Means and variances over any axes against sums in double. */
#include "compute/mean_variance.h"

#include "levels.h"

TEST(every_set_of_axes_matches_plain_sums)
{
    const int64_t dims[3] = {3, 4, 5};
    for (int set = 0; set < 8; set++)
        for (int wide = 0; wide < 2; wide++) {
            const bool reduced[3] = {set & 1, set & 2, set & 4};
            double x[60], z[60], stats[60];
            float small[60], out[60];
            for (int i = 0; i < 60; i++)
                x[i] = (double)(small[i] = 3 + test_randf());
            sn_mean_variance m;
            sn_mean_variance_make(&m, wide ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32, dims, 3, reduced,
                                  0);
            CHECK(m.stats <= 60);
            sn_mean_variance_run(&m, wide ? (void *)z : out, wide ? (void *)x : small, stats, NULL);
            for (int i = 0; i < 60; i++) {
                double sum = 0, squares = 0, n = 0;
                for (int pass = 0; pass < 2; pass++)
                    for (int k = 0; k < 60; k++) {
                        const bool same = (reduced[0] || k / 20 == i / 20) &&
                                          (reduced[1] || k / 5 % 4 == i / 5 % 4) &&
                                          (reduced[2] || k % 5 == i % 5);
                        if (!same)
                            continue;
                        if (pass == 0) {
                            sum += x[k];
                            n++;
                        } else {
                            squares += (x[k] - sum / n) * (x[k] - sum / n);
                        }
                    }
                const double want = (x[i] - sum / n) / (sqrt(squares / n) + 1e-9),
                             got = wide ? z[i] : (double)out[i];
                CHECK_MSG(fabs(got - want) < (wide ? 1e-11 : 1e-4), "axes %d, element %d: %g, %g",
                          set, i, got, want);
            }
        }
}

TEST(a_tensor_may_be_normalised_in_place)
{
    const int64_t dims[1] = {4};
    const bool reduced[1] = {true};
    double x[4] = {1, 2, 3, 4}, y[4], stats[1];
    sn_mean_variance m;
    sn_mean_variance_make(&m, SONDE_DTYPE_F64, dims, 1, reduced, 0);
    CHECK_EQ(m.stats, 1);
    sn_mean_variance_run(&m, y, x, stats, NULL);
    sn_mean_variance_run(&m, x, x, stats, NULL);
    CHECK(memcmp(x, y, sizeof x) == 0);
}

TEST_MAIN()
