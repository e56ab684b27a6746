/* SPDX-License-Identifier: Apache-2.0 */
/* What the search does with series of every kind; how often it is wrong is in test_rates.c. */
#include "changes/changes.h"
#include "changes/noise.h"
#include "failing_alloc.h"

enum { MOST = 32 };

static sonde_change_point changes[MOST];
static size_t found;
static sonde_error err;

static sonde_status find(const double *x, size_t n)
{
    memset(changes, 0, sizeof changes);
    return sonde_changes_find(x, n, NULL, changes, MOST, &found, &err);
}

/* Noise of one percent around `level`, from `from` on. */
static void put(double *x, size_t from, size_t to, double level)
{
    noise_draw(x + from, to - from, 0.01, 0, 0.02);
    for (size_t i = from; i < to; i++)
        x[i] *= level;
}

TEST(a_step_has_its_place_its_levels_and_an_interval)
{
    double x[60];
    put(x, 0, 40, 10);
    put(x, 40, 60, 10.8);
    CHECK_OK(find(x, 60));
    CHECK_EQ(found, 1);
    CHECK_MSG(changes[0].at >= 39 && changes[0].at <= 41, "%zu", changes[0].at);
    CHECK(fabs(changes[0].before - 10) < 0.1 && fabs(changes[0].after - 10.8) < 0.1);
    const double ratio = changes[0].after / changes[0].before;
    CHECK_MSG(changes[0].low > 1.05 && changes[0].low < ratio && changes[0].high > ratio &&
                  changes[0].high < 1.11,
              "%g to %g", changes[0].low, changes[0].high);
    CHECK(changes[0].p > 0 && changes[0].p < 0.001);
}

TEST(several_changes_are_found_in_order)
{
    static const size_t at[] = {0, 30, 50, 80, 100, 130};
    static const double levels[] = {5, 5.5, 5.2, 7, 5.2};
    double x[130];
    for (size_t i = 0; i < 5; i++)
        put(x, at[i], at[i + 1], levels[i]);
    CHECK_OK(find(x, 130));
    CHECK_EQ(found, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_MSG(changes[i].at + 2 >= at[i + 1] && changes[i].at <= at[i + 1] + 2, "%zu, not %zu",
                  changes[i].at, at[i + 1]);
        CHECK(fabs(changes[i].before / levels[i] - 1) < 0.02);
        CHECK(fabs(changes[i].after / levels[i + 1] - 1) < 0.02);
    }
}

/* How much neighbours resemble each other is uncertain in a short series, so not all are found. */
TEST(a_change_is_found_in_most_series_of_thirty_values)
{
    double x[40];
    int right = 0;
    for (size_t n = 0; n <= 40; n++) {
        put(x, 0, n / 2, 1);
        put(x, n / 2, n, 2);
        CHECK_OK(find(x, n));
        if (n < 10) /* less than two levels */
            CHECK_MSG(found == 0, "%zu values", n);
        right += n >= 30 && found == 1 && changes[0].at == n / 2;
    }
    CHECK_MSG(right >= 9, "%d of 11", right);
}

TEST(a_constant_series_and_alternating_ones_have_no_change)
{
    double x[200];
    for (size_t i = 0; i < 200; i++)
        x[i] = 0.1;
    CHECK_OK(find(x, 200));
    CHECK_EQ(found, 0);
    for (size_t i = 0; i < 200; i++)
        x[i] = (double)(1 + i % 2);
    CHECK_OK(find(x, 200));
    CHECK_EQ(found, 0);
}

/* Clocks of whole microseconds. */
TEST(equal_values_are_no_obstacle)
{
    double x[80];
    for (size_t i = 0; i < 80; i++)
        x[i] = (i < 50 ? 20 : 22) + (double)(test_rand() % 2);
    CHECK_OK(find(x, 80));
    CHECK_EQ(found, 1);
    CHECK_MSG(changes[0].at >= 46 && changes[0].at <= 54, "%zu", changes[0].at);
    for (size_t i = 0; i < 80; i++)
        x[i] = i < 50 ? 1 : 2;
    CHECK_OK(find(x, 80));
    CHECK_EQ(found, 1);
    CHECK_EQ(changes[0].at, 50);
    CHECK(changes[0].before == 1 && changes[0].after == 2);
    CHECK(changes[0].low == 2 && changes[0].high == 2);
}

TEST(values_that_are_not_finite_are_skipped_and_counted_in_places)
{
    double x[70], clean[60];
    put(clean, 0, 30, 1);
    put(clean, 30, 60, 1.2);
    CHECK_OK(find(clean, 60));
    CHECK_EQ(found, 1);
    const size_t at = changes[0].at;
    for (size_t i = 0, k = 0; i < 70; i++)
        x[i] = i % 7 == 3 ? (i % 2 ? NAN : i % 4 ? INFINITY : -INFINITY) : clean[k++];
    CHECK_OK(find(x, 70));
    CHECK_EQ(found, 1);
    size_t k = 0, place = 0;
    for (; k < at || !isfinite(x[place]); place++)
        k += isfinite(x[place]) != 0;
    CHECK_EQ(changes[0].at, place);
    for (size_t i = 0; i < 70; i++)
        x[i] = NAN;
    CHECK_OK(find(x, 70));
    CHECK_EQ(found, 0);
}

TEST(levels_of_zero_and_below_have_changes_whose_ratio_is_not_known)
{
    double x[60];
    for (size_t i = 0; i < 60; i++)
        x[i] = i < 30 ? 0 : 3;
    CHECK_OK(find(x, 60));
    CHECK_EQ(found, 1);
    CHECK(changes[0].before == 0 && changes[0].after == 3);
    CHECK(changes[0].low == 0 && changes[0].high == INFINITY);
    for (size_t i = 0; i < 60; i++)
        x[i] = (i < 30 ? -5 : 5) + noise_normal();
    CHECK_OK(find(x, 60));
    CHECK_EQ(found, 1);
    CHECK(changes[0].low == 0 && changes[0].high == INFINITY);
    for (size_t i = 0; i < 60; i++)
        x[i] = (i < 30 ? -50 : -60) + noise_normal();
    CHECK_OK(find(x, 60));
    CHECK_EQ(found, 1);
    CHECK(changes[0].low > 1.1 && changes[0].low < 1.2 && changes[0].high > 1.2 &&
          changes[0].high < 1.3);
}

TEST(extreme_values_do_not_overflow)
{
    double x[40];
    for (size_t i = 0; i < 40; i++)
        x[i] = (i < 20 ? 1e308 : 1.7e308) * (1 + 1e-3 * noise_uniform());
    CHECK_OK(find(x, 40));
    CHECK_EQ(found, 1);
    CHECK(isfinite(changes[0].before) && isfinite(changes[0].after));
    for (size_t i = 0; i < 40; i++)
        x[i] = 4.9e-324 * (double)(i < 20 ? 10 + i % 2 : 20 + i % 2);
    CHECK_OK(find(x, 40));
    CHECK_EQ(found, 1);
    CHECK_EQ(changes[0].at, 20);
}

TEST(outliers_and_short_episodes_are_no_change)
{
    double x[100];
    put(x, 0, 100, 1);
    for (size_t i = 50; i < 54; i++)
        x[i] = 40;
    x[7] = 1e9;
    x[99] = 1e12;
    CHECK_OK(find(x, 100));
    CHECK_EQ(found, 0);
}

TEST(changes_that_are_too_small_to_matter_are_left_out)
{
    double x[200];
    sonde_change_options o = SONDE_INIT(sonde_change_options);
    for (size_t i = 0; i < 200; i++)
        x[i] = (i < 100 ? 1 : 1.006) * (1 + 0.001 * noise_normal());
    CHECK_OK(find(x, 200));
    CHECK_EQ(found, 0);
    o.least = 0.004;
    CHECK_OK(sonde_changes_find(x, 200, &o, changes, MOST, &found, &err));
    CHECK_EQ(found, 1);
    o.least = 0.0065;
    CHECK_OK(sonde_changes_find(x, 200, &o, changes, MOST, &found, &err));
    CHECK_EQ(found, 0);
}

TEST(a_level_lasts_as_long_as_was_asked_for)
{
    double x[100];
    sonde_change_options o = SONDE_INIT(sonde_change_options);
    put(x, 0, 92, 1);
    put(x, 92, 100, 1.5);
    CHECK_OK(find(x, 100));
    CHECK_EQ(found, 1);
    CHECK_MSG(changes[0].at >= 91 && changes[0].at <= 93, "%zu", changes[0].at);
    o.shortest = 9;
    CHECK_OK(sonde_changes_find(x, 100, &o, changes, MOST, &found, &err));
    for (size_t i = 0; i < found; i++)
        CHECK_MSG(changes[i].at <= 91, "%zu", changes[i].at);
    o.shortest = SIZE_MAX;
    CHECK_OK(sonde_changes_find(x, 100, &o, changes, MOST, &found, &err));
    CHECK_EQ(found, 0);
}

TEST(the_result_follows_from_the_order_alone)
{
    double x[120], scaled[120], turned[120];
    put(x, 0, 50, 3);
    put(x, 50, 80, 3.4);
    put(x, 80, 120, 3.1);
    CHECK_OK(find(x, 120));
    CHECK_EQ(found, 2);
    const sonde_change_point first[2] = {changes[0], changes[1]};
    CHECK_OK(find(x, 120));
    CHECK(found == 2 && memcmp(first, changes, sizeof first) == 0);
    for (size_t i = 0; i < 120; i++) {
        scaled[i] = x[i] * 4096;
        turned[i] = x[119 - i];
    }
    CHECK_OK(find(scaled, 120));
    CHECK(found == 2 && changes[0].at == first[0].at && changes[1].at == first[1].at);
    CHECK(changes[0].p == first[0].p && changes[0].low == first[0].low);
    CHECK_OK(find(turned, 120));
    CHECK(found == 2 && changes[0].at == 120 - first[1].at && changes[1].at == 120 - first[0].at);
}

TEST(a_long_series_is_searched_whole)
{
    enum { LONG = 100000, LEVEL = 1000 };
    double *x = malloc(LONG * sizeof *x);
    sonde_change_point *all = calloc(LONG / LEVEL, sizeof *all);
    for (size_t i = 0; i < LONG; i += LEVEL)
        put(x, i, i + LEVEL, 1 + 0.05 * (double)((i / LEVEL) % 2));
    const sonde_status st = sonde_changes_find(x, LONG, NULL, all, LONG / LEVEL, &found, &err);
    size_t right = 0;
    for (size_t i = 0; st == SONDE_OK && i < found && i < LONG / LEVEL; i++)
        right += all[i].at + 5 >= (i + 1) * LEVEL && all[i].at <= (i + 1) * LEVEL + 5;
    free(all);
    free(x);
    CHECK_OK(st);
    CHECK_EQ(found, LONG / LEVEL - 1);
    CHECK_EQ(right, LONG / LEVEL - 1);
}

TEST(what_does_not_fit_is_counted)
{
    double x[90];
    put(x, 0, 30, 1);
    put(x, 30, 60, 2);
    put(x, 60, 90, 3);
    changes[1].at = 12345;
    CHECK_OK(sonde_changes_find(x, 90, NULL, changes, 1, &found, &err));
    CHECK_EQ(found, 2);
    CHECK_EQ(changes[0].at, 30);
    CHECK_EQ(changes[1].at, 12345);
    CHECK_OK(sonde_changes_find(x, 90, NULL, NULL, 0, &found, NULL));
    CHECK_EQ(found, 2);
    CHECK_OK(sonde_changes_find(NULL, 0, NULL, NULL, 0, &found, NULL));
    CHECK_EQ(found, 0);
}

TEST(wrong_arguments_are_refused_with_a_sentence)
{
    double x[4] = {1, 2, 3, 4};
    sonde_change_options o = SONDE_INIT(sonde_change_options);
    CHECK_EQ(sonde_changes_find(NULL, 4, NULL, changes, MOST, &found, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_changes_find(x, 4, NULL, NULL, 1, &found, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_changes_find(x, 4, NULL, changes, 1, NULL, NULL), SONDE_INVALID_ARGUMENT);
    o.struct_size = 0;
    CHECK_EQ(sonde_changes_find(x, 4, &o, changes, MOST, &found, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "SONDE_INIT");
    static const double bad[] = {-1, 1, 2, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o = (sonde_change_options)SONDE_INIT(sonde_change_options);
        o.false_alarms = bad[i];
        CHECK_EQ(sonde_changes_find(x, 4, &o, changes, MOST, &found, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, "false alarm");
    }
    for (size_t i = 3; i < sizeof bad / sizeof bad[0]; i++) {
        o = (sonde_change_options)SONDE_INIT(sonde_change_options);
        o.least = bad[i];
        CHECK_EQ(sonde_changes_find(x, 4, &o, changes, MOST, &found, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, "least change");
    }
    o = (sonde_change_options)SONDE_INIT(sonde_change_options);
    o.shortest = 1;
    CHECK_EQ(sonde_changes_find(x, 4, &o, changes, MOST, &found, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "2 values");
}

TEST(every_failed_allocation_is_reported_and_leaves_nothing)
{
    double x[60];
    failing_alloc m;
    sn_allocator *alloc = failing_init(&m);
    put(x, 0, 30, 1);
    put(x, 30, 60, 1.3);
    CHECK_OK(sn_changes_find(x, 60, NULL, alloc, changes, MOST, &found, &err));
    CHECK_EQ(found, 1);
    CHECK_EQ(m.live, 0);
    const long calls = m.calls;
    CHECK(calls > 5);
    for (long i = 0; i < calls; i++) {
        alloc = failing_init(&m);
        m.fail_at = i;
        const sonde_status st = sn_changes_find(x, 60, NULL, alloc, changes, MOST, &found, &err);
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY, "allocation %ld: status %d", i, (int)st);
        CHECK_MSG(m.live == 0, "allocation %ld: %ld blocks are left", i, m.live);
        CHECK_EQ(found, 0);
    }
}

TEST_MAIN()
