/* SPDX-License-Identifier: Apache-2.0 */
/* Probabilities against known values and against simulation. */
#include "changes/changes.h"
#include "changes/noise.h"

TEST(normal_quantiles_are_those_of_tables)
{
    static const double table[][2] = {{0.5, 0},
                                      {0.975, 1.959963984540054},
                                      {0.995, 2.5758293035489},
                                      {0.001, -3.090232306167813},
                                      {1e-9, -5.997807015007687}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        CHECK_MSG(fabs(sn_chance_quantile(table[i][0]) - table[i][1]) < 1e-9, "%g: %.12f",
                  table[i][0], sn_chance_quantile(table[i][0]));
    CHECK(sn_chance_quantile(0) == -INFINITY && sn_chance_quantile(1) == INFINITY);
}

/* Two-sided 5 % and 0.1 % of Student's distribution. */
TEST(t_becomes_the_z_that_is_as_likely)
{
    static const double table[][3] = {{8, 2.306, 1.95996},
                                      {8, 5.041, 3.29053},
                                      {28, 2.048, 1.95996},
                                      {28, 3.674, 3.29053},
                                      {98, 1.984, 1.95996}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        CHECK_MSG(fabs(sn_chance_of_t(table[i][1], table[i][0]) / table[i][2] - 1) < 0.01,
                  "t %g with %g: %g", table[i][1], table[i][0],
                  sn_chance_of_t(table[i][1], table[i][0]));
}

/* The largest |z| over the places of one stretch of independent normal values. */
static double largest_of_one(size_t n, size_t shortest)
{
    double x[100], sum = 0, total = 0, best = 0;
    for (size_t i = 0; i < n; i++)
        total += x[i] = noise_normal();
    for (size_t k = 1; k <= n - shortest; k++) {
        sum += x[k - 1];
        const double d = sum - (double)k * total / (double)n;
        if (k >= shortest)
            best = fmax(best, fabs(d) / sqrt((double)k * (double)(n - k) / (double)n));
    }
    return best;
}

TEST(chance_in_one_stretch_is_that_of_simulated_ones)
{
    static const size_t lengths[] = {10, 20, 100};
    enum { TRIES = 20000 };
    for (size_t i = 0; i < 3; i++) {
        const sn_search_layers one = {.row = {{lengths[i], 1}}, .n = 1, .shortest = 5};
        const double limit = sn_chance_threshold(&one, 0.05);
        int above = 0;
        for (int t = 0; t < TRIES; t++)
            above += largest_of_one(lengths[i], 5) > limit;
        CHECK_MSG(above > (double)TRIES * 0.04 && above < (double)TRIES * 0.055,
                  "%zu values: %d of %d are above %.3f, expected 5 %%", lengths[i], above, TRIES,
                  limit);
    }
}

TEST(threshold_and_chance_are_inverse)
{
    const sn_search_layers layers = {
        .row = {{1000, 1}, {708, 2}, {10, 199}}, .n = 3, .shortest = 5};
    for (double p = 1e-12; p < 0.5; p *= 10) {
        const double z = sn_chance_threshold(&layers, p);
        CHECK_MSG(fabs(sn_chance_anywhere(&layers, z) / p - 1) < 1e-3, "%g gives %g", p, z);
    }
    CHECK(sn_chance_anywhere(&layers, 0) == 1);
    CHECK(sn_chance_anywhere(&layers, NAN) == 1);
    CHECK(sn_chance_anywhere(&layers, 1e300) == 0);
}

TEST_MAIN()
