/* SPDX-License-Identifier: Apache-2.0 */
/* How often a comparison is wrong: false alarms on noise alone, recorded and made, and slowdowns it
 * must name. The figures are those of docs/profiling.md. */
#include <string.h>

#include "changes/noise.h"
#include "profile/compare.h"
#include "profile/recorded_turns.h"

enum { RUNS = RECORDED_RUNS, TURN = 4, TURNS = RUNS / TURN, TRIES = 1000 };

#define LIMIT 1.05 /* of --fail-above 5% */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_four(const double *x)
{
    double copy[TURN];
    memcpy(copy, x, sizeof copy);
    qsort(copy, TURN, sizeof *copy, ascending);
    return (copy[1] + copy[2]) / 2;
}

static sn_change compare_turns(const double *old, const double *now)
{
    double ratios[TURNS], room[2 * RUNS];
    sn_change c;
    for (int t = 0; t < TURNS; t++)
        ratios[t] = log(median_of_four(&now[TURN * t]) / median_of_four(&old[TURN * t]));
    sn_compare_turns(old, RUNS, now, RUNS, ratios, TURNS, SN_COMPARE_ERROR, room, &c);
    return c;
}

static sn_change compare_apart(const double *old, const double *now)
{
    double room[2 * RUNS];
    sn_change c;
    sn_compare_samples(old, RUNS, now, RUNS, SN_COMPARE_ERROR, room, &c);
    return c;
}

static bool named(const sn_change *c)
{
    return c->verdict == SN_VERDICT_SLOWER || c->verdict == SN_VERDICT_FASTER;
}

/* ------------------------------------------------------------------ recorded noise */
/* A recorded pair whose sides are swapped in some of its turns, at random: nothing but noise is
 * between them. */
static void swap_turns(int pair, double *old, double *now)
{
    for (int t = 0; t < TURNS; t++) {
        const int swapped = (int)(test_rand() & 1);
        for (int i = TURN * t; i < TURN * (t + 1); i++) {
            old[i] = recorded_turns[pair][swapped][i];
            now[i] = recorded_turns[pair][!swapped][i];
        }
    }
}

TEST(recorded_pairs_without_a_difference_pass_the_limit_of_five_percent)
{
    for (int pair = 0; pair < RECORDED_PAIRS; pair++) {
        double old[RUNS], now[RUNS];
        for (int i = 0; i < RUNS; i++) {
            old[i] = recorded_turns[pair][0][i];
            now[i] = recorded_turns[pair][1][i];
        }
        const sn_change turns = compare_turns(old, now), apart = compare_apart(old, now);
        CHECK_MSG(turns.low <= LIMIT && turns.high >= 1 / LIMIT, "pair %d in turns: %f … %f", pair,
                  turns.low, turns.high);
        CHECK_MSG(apart.low <= LIMIT && apart.high >= 1 / LIMIT, "pair %d apart: %f … %f", pair,
                  apart.low, apart.high);
    }
}

TEST(recorded_noise_in_turns_is_named_in_two_of_a_hundred_pairs_at_most)
{
    for (int pair = 0; pair < RECORDED_PAIRS; pair++) {
        int alarms = 0, limit = 0;
        for (int n = 0; n < TRIES; n++) {
            double old[RUNS], now[RUNS];
            swap_turns(pair, old, now);
            const sn_change c = compare_turns(old, now);
            alarms += named(&c);
            limit += c.low > LIMIT;
        }
        printf("pair %d: %d named, %d above the limit, of %d\n", pair, alarms, limit, TRIES);
        CHECK_MSG(alarms <= TRIES / 50, "pair %d: %d of %d are named", pair, alarms, TRIES);
        CHECK_MSG(limit == 0, "pair %d: %d of %d are above the limit", pair, limit, TRIES);
    }
}

/* Stretches of 20 runs from random places of one recorded series. */
static void draw_stretches(const uint32_t *series, double *to)
{
    enum { STRETCH = 20 };
    for (int i = 0; i < RUNS; i += STRETCH) {
        const size_t from = (size_t)(test_rand() % (RUNS - STRETCH + 1));
        for (int k = 0; k < STRETCH; k++)
            to[i + k] = series[from + (size_t)k];
    }
}

TEST(recorded_noise_apart_is_named_in_five_of_a_hundred_pairs_at_most)
{
    for (int pair = 0; pair < RECORDED_PAIRS; pair++) {
        int alarms = 0;
        for (int n = 0; n < TRIES; n++) {
            double old[RUNS], now[RUNS];
            draw_stretches(recorded_turns[pair][0], old);
            draw_stretches(recorded_turns[pair][0], now);
            const sn_change c = compare_apart(old, now);
            alarms += named(&c);
        }
        printf("pair %d apart: %d named of %d\n", pair, alarms, TRIES);
        CHECK_MSG(alarms <= TRIES / 20, "pair %d: %d of %d are named", pair, alarms, TRIES);
    }
}

TEST(slowdowns_by_fifteen_percent_are_named_in_recorded_noise)
{
    for (int pair = 0; pair < RECORDED_PAIRS; pair++) {
        int found = 0;
        for (int n = 0; n < TRIES; n++) {
            double old[RUNS], now[RUNS];
            swap_turns(pair, old, now);
            for (int i = 0; i < RUNS; i++)
                now[i] *= 1.15;
            found += compare_turns(old, now).verdict == SN_VERDICT_SLOWER;
        }
        printf("pair %d: %d of %d found\n", pair, found, TRIES);
        CHECK_MSG(found >= TRIES * 9 / 10, "pair %d: %d of %d", pair, found, TRIES);
    }
}

/* ------------------------------------------------------------------ noise that was made */
typedef struct kind {
    const char *name;
    double phi, outliers; /* of noise_draw, with a spread of 5 % */
    double drift;         /* over all runs, as a share */
    double slow;          /* share of stretches in which the clock is a third lower */
    int apart;            /* alarms of TRIES pairs that did not take turns */
} kind;

/* A clock that changes every twenty runs or so leaves ten values of 200 to learn from. */
static const kind kinds[] = {{"independent", 0, 0, 0, 0, TRIES / 20},
                             {"outliers", 0, 0.05, 0, 0, TRIES / 20},
                             {"neighbours alike", 0.6, 0.05, 0, 0, TRIES / 20},
                             {"drift", 0.2, 0.05, 0.3, 0, TRIES / 20},
                             {"two clocks", 0.2, 0.05, 0, 0.5, TRIES / 10}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* What the machine does, which both sides meet where they take turns. */
static void draw_machine(const kind *k, double *level)
{
    const double end = k->drift * (noise_uniform() < 0.5 ? -1 : 1);
    double clock = noise_uniform() < k->slow ? 1.5 : 1;
    for (int i = 0; i < RUNS; i++) {
        if (noise_uniform() < 0.1) /* every ten runs or so it may change */
            clock = noise_uniform() < k->slow ? 1.5 : 1;
        level[i] = clock * (1 + end * i / (double)RUNS);
    }
}

static void draw(const kind *k, const double *level, double *x)
{
    noise_draw(x, RUNS, 0.05, k->phi, k->outliers);
    for (int i = 0; i < RUNS; i++)
        x[i] = fmax(x[i], 0.5) * level[i];
}

TEST(made_noise_is_named_as_rarely_as_it_is_said_to_be)
{
    for (int k = 0; k < KINDS; k++)
        for (int turns = 0; turns < 2; turns++) {
            int alarms = 0;
            for (int n = 0; n < TRIES; n++) {
                double level[RUNS], old[RUNS], now[RUNS];
                draw_machine(&kinds[k], level);
                draw(&kinds[k], level, old);
                if (!turns && kinds[k].drift == 0) /* at another time; one drift is no other */
                    draw_machine(&kinds[k], level);
                draw(&kinds[k], level, now);
                const sn_change c = turns ? compare_turns(old, now) : compare_apart(old, now);
                alarms += named(&c);
            }
            printf("%s, %s: %d of %d\n", kinds[k].name, turns ? "in turns" : "apart", alarms,
                   TRIES);
            CHECK_MSG(alarms <= (turns ? TRIES / 20 : kinds[k].apart), "%s, %s: %d of %d",
                      kinds[k].name, turns ? "in turns" : "apart", alarms, TRIES);
        }
}

TEST(slowdowns_by_fifteen_percent_are_named_in_turns_whatever_the_machine_does)
{
    for (int k = 0; k < KINDS; k++) {
        int found = 0;
        for (int n = 0; n < TRIES; n++) {
            double level[RUNS], old[RUNS], now[RUNS];
            draw_machine(&kinds[k], level);
            draw(&kinds[k], level, old);
            draw(&kinds[k], level, now);
            for (int i = 0; i < RUNS; i++)
                now[i] *= 1.15;
            found += compare_turns(old, now).verdict == SN_VERDICT_SLOWER;
        }
        printf("%s: %d of %d\n", kinds[k].name, found, TRIES);
        CHECK_MSG(found >= TRIES * 9 / 10, "%s: %d of %d", kinds[k].name, found, TRIES);
    }
}

/* Few runs have wide intervals or none, but no alarms. */
TEST(few_runs_of_noise_are_named_as_rarely_as_many)
{
    static const size_t counts[] = {5, 8, 10, 19, 20, 30, 50};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int alarms = 0;
        for (int n = 0; n < TRIES; n++) {
            double old[RUNS], now[RUNS], room[2 * RUNS];
            sn_change c;
            noise_draw(old, counts[i], 0.05, 0.1, 0.05);
            noise_draw(now, counts[i], 0.05, 0.1, 0.05);
            sn_compare_samples(old, counts[i], now, counts[i], SN_COMPARE_ERROR, room, &c);
            alarms += named(&c);
        }
        printf("%zu runs: %d of %d\n", counts[i], alarms, TRIES);
        CHECK_MSG(alarms <= TRIES / 20, "%zu runs: %d of %d", counts[i], alarms, TRIES);
    }
}

/* 1.25 times as long, at the level that a single row has. */
TEST(intervals_hold_the_truth_in_ninety_four_of_a_hundred_pairs)
{
    for (int k = 0; k < 3; k++) {
        int inside = 0;
        for (int n = 0; n < TRIES; n++) {
            double level[RUNS], old[RUNS], now[RUNS];
            draw_machine(&kinds[k], level);
            draw(&kinds[k], level, old);
            draw(&kinds[k], level, now);
            for (int i = 0; i < RUNS; i++)
                now[i] *= 1.25;
            const sn_change c = compare_apart(old, now);
            inside += c.low <= 1.25 && c.high >= 1.25;
        }
        printf("%s: %d of %d\n", kinds[k].name, inside, TRIES);
        CHECK_MSG(inside >= TRIES * 94 / 100, "%s: %d of %d", kinds[k].name, inside, TRIES);
    }
}

TEST_MAIN()
