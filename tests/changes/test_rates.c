/* SPDX-License-Identifier: Apache-2.0 */
/* How often the search is wrong: false alarms on series of noise alone, and steps it must find. The
 * figures are those of docs/changes.md. */
#include "changes/changes.h"
#include "changes/noise.h"

enum { LENGTH = 100, MOST = 16, SERIES = 1000, SEEDS = 3 };

#define SPREAD 0.02

static const uint16_t *const recorded[] = {recorded_at_once, recorded_spaced, recorded_threads};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median and median deviation. */
static void center(const uint16_t *series, double *median, double *deviation)
{
    double x[RECORDED];
    for (int i = 0; i < RECORDED; i++)
        x[i] = series[i];
    qsort(x, RECORDED, sizeof *x, ascending);
    *median = (x[RECORDED / 2 - 1] + x[RECORDED / 2]) / 2;
    for (int i = 0; i < RECORDED; i++)
        x[i] = fabs(series[i] - *median);
    qsort(x, RECORDED, sizeof *x, ascending);
    *deviation = (x[RECORDED / 2 - 1] + x[RECORDED / 2]) / 2;
}

/* A kind of noise. */
typedef struct kind {
    const char *name;
    double phi, outliers; /* of noise_draw */
    int series;           /* -1; else number of a recorded one */
    size_t block;         /* of it: values that stay together */
} kind;

static const kind kinds[] = {
    {"independent", 0, 0.03, -1, 0},
    {"AR(1) 0.1", 0.1, 0.03, -1, 0},
    {"AR(1) 0.2", 0.2, 0.03, -1, 0},
    {"recorded one after the other, single values", 0, 0, 0, 1},
    {"recorded one after the other, blocks", 0, 0, 0, 20},
    {"recorded with pauses, single values", 0, 0, 1, 1},
    {"recorded with two threads, single values", 0, 0, 2, 1},
};

static void draw(const kind *k, double *x, size_t n)
{
    double median, deviation;
    if (k->series < 0) {
        noise_draw(x, n, SPREAD, k->phi, k->outliers);
        return;
    }
    center(recorded[k->series], &median, &deviation);
    noise_recorded(x, n, SPREAD, recorded[k->series], median, deviation, k->block);
}

/* Changes of any size count here. */
static size_t find(const double *x, size_t n, sonde_change_point *changes)
{
    sonde_change_options options = SONDE_INIT(sonde_change_options);
    size_t found = 0;
    sonde_error err;
    options.least = 1e-9;
    if (sonde_changes_find(x, n, &options, changes, MOST, &found, &err) == SONDE_OK)
        return found;
    fprintf(stderr, "%s\n", err.message);
    test_errors++;
    return 0;
}

static int false_alarms(const kind *k, size_t n)
{
    double x[LENGTH];
    sonde_change_point changes[MOST];
    int alarms = 0;
    for (int i = 0; i < SERIES; i++) {
        draw(k, x, n);
        alarms += find(x, n, changes) > 0;
    }
    return alarms;
}

TEST(noise_alone_shows_a_change_in_one_of_a_hundred_series_at_most)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            test_state = test_seed + 1000 * seed;
            const int alarms = false_alarms(&kinds[i], LENGTH);
            printf("%s, seed %llu: %d of %d\n", kinds[i].name,
                   (unsigned long long)(test_seed + 1000 * seed), alarms, SERIES);
            CHECK_MSG(alarms <= SERIES / 100, "%s, seed %llu: %d of %d series", kinds[i].name,
                      (unsigned long long)(test_seed + 1000 * seed), alarms, SERIES);
        }
}

/* Under load the recorded series have phases of a quarter of a percent, which are real. As they
 * were recorded, and with the least change that users get, they are no alarm. */
TEST(recorded_noise_as_it_is_shows_a_change_in_one_of_a_hundred_series_at_most)
{
    for (size_t i = 0; i < sizeof recorded / sizeof recorded[0]; i++) {
        double x[LENGTH], median, deviation;
        int alarms = 0;
        center(recorded[i], &median, &deviation);
        for (int n = 0; n < SERIES; n++) {
            sonde_change_point changes[MOST];
            size_t found = 0;
            sonde_error err;
            noise_recorded(x, LENGTH, 1.4826 * deviation / median, recorded[i], median, deviation,
                           25);
            CHECK_OK(sonde_changes_find(x, LENGTH, NULL, changes, MOST, &found, &err));
            alarms += found > 0;
        }
        printf("recorded series %zu as it is: %d of %d\n", i, alarms, SERIES);
        CHECK_MSG(alarms <= SERIES / 100, "series %zu: %d of %d", i, alarms, SERIES);
    }
}

TEST(short_series_of_noise_show_no_more_changes_than_long_ones)
{
    static const size_t lengths[] = {10, 14, 20, 30, 50};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const int alarms = false_alarms(&kinds[0], lengths[i]);
        printf("%zu values: %d of %d\n", lengths[i], alarms, SERIES);
        CHECK_MSG(alarms <= SERIES / 100, "%zu values: %d of %d", lengths[i], alarms, SERIES);
    }
}

/* Puts a step by the factor at a place in 10 … 90; was one found within 10 of it? `single`: and no
 * other. */
static bool step_is_found(const kind *k, double factor, bool *single)
{
    double x[LENGTH];
    sonde_change_point changes[MOST];
    const size_t at = 10 + (size_t)(test_rand() % 81);
    bool near = false;
    draw(k, x, LENGTH);
    for (size_t i = at; i < LENGTH; i++)
        x[i] *= factor;
    const size_t found = find(x, LENGTH, changes);
    for (size_t c = 0; c < found && c < MOST; c++)
        near |= changes[c].at + 10 >= at && changes[c].at <= at + 10 &&
                (changes[c].after > changes[c].before) == (factor > 1);
    *single = near && found == 1;
    return near;
}

TEST(of_steps_by_five_percent_in_noise_of_two_at_least_95_percent_are_found_within_ten_values)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int up = 0; up < 2; up++) {
            int hits = 0, alone = 0;
            for (int n = 0; n < SERIES; n++) {
                bool single;
                hits += step_is_found(&kinds[i], up ? 1.05 : 1 / 1.05, &single);
                alone += single;
            }
            printf("%s, %s: %d of %d, %d of them alone\n", kinds[i].name, up ? "up" : "down", hits,
                   SERIES, alone);
            CHECK_MSG(hits >= SERIES * 95 / 100, "%s, %s: %d of %d", kinds[i].name,
                      up ? "up" : "down", hits, SERIES);
            CHECK_MSG(alone >= hits * 98 / 100, "%s: %d of %d came with others", kinds[i].name,
                      hits - alone, hits);
        }
}

/* A regression that was found and mended 25 commits later. */
TEST(of_two_steps_that_undo_each_other_at_least_90_percent_are_both_found)
{
    int hits = 0;
    for (int n = 0; n < SERIES; n++) {
        double x[LENGTH];
        sonde_change_point changes[MOST];
        const size_t at = 20 + (size_t)(test_rand() % 36);
        noise_draw(x, LENGTH, SPREAD, 0.1, 0.01);
        for (size_t i = at; i < at + 25; i++)
            x[i] *= 1.05;
        const size_t found = find(x, LENGTH, changes);
        bool first = false, second = false;
        for (size_t c = 0; c < found && c < MOST; c++) {
            first |= changes[c].at + 10 >= at && changes[c].at <= at + 10;
            second |= changes[c].at + 10 >= at + 25 && changes[c].at <= at + 35;
        }
        hits += first && second;
    }
    printf("both: %d of %d\n", hits, SERIES);
    CHECK_MSG(hits >= SERIES * 9 / 10, "%d of %d", hits, SERIES);
}

/* The interval of a ratio is a rough one after a search: it shall hold the truth in most series. */
TEST(the_interval_of_the_ratio_holds_the_step_in_nine_of_ten_series)
{
    int inside = 0, all = 0;
    for (int n = 0; n < SERIES; n++) {
        double x[LENGTH];
        sonde_change_point changes[MOST];
        noise_draw(x, LENGTH, SPREAD, 0.1, 0.01);
        for (size_t i = 40; i < LENGTH; i++)
            x[i] *= 1.05;
        if (find(x, LENGTH, changes) != 1)
            continue;
        all++;
        inside += changes[0].low <= 1.05 && changes[0].high >= 1.05;
    }
    printf("inside: %d of %d\n", inside, all);
    CHECK_MSG(inside >= all * 9 / 10, "%d of %d", inside, all);
}

TEST_MAIN()
