/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics against figures worked out by hand and by numpy.percentile. */
#include "profile/profile.h"
#include "test.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

TEST(no_samples_give_zeros)
{
    sn_prof_stats s;
    sn_prof_stats_of(NULL, 0, &s);
    CHECK_EQ(s.count, 0);
    CHECK(s.mean == 0 && s.p99 == 0 && s.stddev == 0);
}

TEST(one_sample_is_every_percentile)
{
    double x[] = {7};
    sn_prof_stats s;
    sn_prof_stats_of(x, 1, &s);
    CHECK(s.min == 7 && s.max == 7 && s.mean == 7 && s.p50 == 7 && s.p999 == 7 && s.stddev == 0);
}

TEST(percentiles_interpolate_linearly_like_numpy)
{
    double x[] = {40, 10, 20, 30}; /* numpy.percentile(x, [50, 90, 95, 97, 99, 99.9]) */
    sn_prof_stats s;
    sn_prof_stats_of(x, 4, &s);
    CHECK(near(s.p50, 25));
    CHECK(near(s.p90, 37));
    CHECK(near(s.p95, 38.5));
    CHECK(near(s.p97, 39.1));
    CHECK(near(s.p99, 39.7));
    CHECK(near(s.p999, 39.97));
    CHECK(near(s.total, 100));
    CHECK(near(s.stddev, sqrt(500.0 / 3)));
    CHECK(x[0] == 10 && x[3] == 40);
}

TEST(percentiles_of_an_even_ramp_are_exact)
{
    static double x[1001];
    for (int i = 0; i <= 1000; i++)
        x[i] = 1000 - i;
    sn_prof_stats s;
    sn_prof_stats_of(x, 1001, &s);
    CHECK(near(s.p50, 500) && near(s.p95, 950) && near(s.p99, 990) && near(s.p999, 999));
    CHECK(near(s.mean, 500) && s.min == 0 && s.max == 1000);
}

TEST_MAIN()
