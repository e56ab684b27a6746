/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: in each, every runtime has its turn in a fresh process, and the next round begins with
 * another one. So slow drifts of the machine meet all alike, no idle runtime spins beside the one
 * that is measured, and start-up, which differs from process to process, is sampled too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

/* Samples are kept, and what the bench holds in memory should stay below what it measures. */
enum { MOST = 20000 };
enum { AT_LEAST = 10, ANSWER_MS = 5000 }; /* a command takes about so long: silence is noticed */

/* How many runs the round should have, when one takes `ms`. */
static long runs_of_round(const bench_plan *p, int round, double ms)
{
    const measuring_options *m = &p->o->setup.measuring;
    if (m->iterations >= 0)
        return (long)(m->iterations / p->rounds + (round < m->iterations % p->rounds));
    const double fit = duration_ms(m) / p->rounds / (ms > 1e-4 ? ms : 1e-4);
    const long least = (AT_LEAST + p->rounds - 1) / p->rounds;
    return fit < (double)least ? least : fit > MOST ? MOST : (long)fit;
}

/* `runs` measured ones, a few seconds' worth to a command. */
static bool run_many(talk *t, const char *verb, long runs, double ms, bench_series *into, int round,
                     double *wall_ms)
{
    const double fit = ANSWER_MS / (ms > 1e-4 ? ms : 1e-4);
    const long most = fit < 1 ? 1 : fit > 1e6 ? 1000000 : (long)fit;
    double took = 0;
    for (long n; runs > 0; runs -= n) {
        char line[64];
        n = runs < most ? runs : most;
        snprintf(line, sizeof line, "%s %ld", verb, n);
        if (!talk_times(t, line, into, round, &took))
            return false;
        *wall_ms += took;
    }
    return true;
}

/* Warm-up runs, one a command; the fastest tells how long a run takes. */
static bool warm_up(talk *t, const char *verb, const bench_plan *p, bench_series *first, int round,
                    double *ms)
{
    const int64_t asked = p->o->setup.measuring.warmup, n = asked >= 0 ? asked : 3;
    char line[64];
    snprintf(line, sizeof line, "%s 1", verb);
    bench_series all = {.n = 0};
    double took = 0;
    bool fine = true;
    for (int64_t i = 0; i < (n ? n : 1) && fine; i++) /* one at least: it is the first inference */
        fine = talk_times(t, line, &all, round, &took);
    if (all.n && first)
        bench_series_add(first, all.value[0], round);
    *ms = INFINITY;
    for (size_t i = 0; i < all.n; i++)
        *ms = all.value[i] < *ms ? all.value[i] : *ms;
    bench_series_free(&all);
    return fine;
}

static void ask_memory(talk *t, bench_result *r, int round)
{
    char *rest = NULL;
    double bytes = 0;
    if (talk_ask(t, "memory", "memory", &rest))
        bytes = strtod(rest, NULL);
    free(talk_forgive(t));
    if (!t->state && !t->stopped)
        bench_series_add(&r->rss, bytes > 0 ? bytes : child_peak_rss(&t->process), round);
}

static void ask_outputs(talk *t, const bench_plan *p, size_t which)
{
    bench_result *r = &p->results[which];
    char *path = bench_outputs_path(which), *line = text_of("outputs %s", path), *rest = NULL;
    char *reference = bench_reference(p, which);
    if (reference)
        (void)child_send(&t->process, "reference %s", reference);
    if (talk_ask(t, line, "outputs", &rest))
        r->difference = strcmp(rest, "saved") == 0
                            ? NULL
                            : printable(strncmp(rest, "none: ", 6) ? rest : rest + 6);
    else
        r->difference = talk_forgive(t);
    free(reference);
    free(line);
    free(path);
}

/* The whole program is the driver's to name; one that has none says so. */
static void ask_program(talk *t, bench_result *r)
{
    char *rest = NULL;
    if (talk_ask(t, "program", "program", &rest))
        r->program.command = text_of("%s", rest);
    else if ((r->program.message = talk_forgive(t)))
        r->program.state = BENCH_UNSUPPORTED;
}

static void measure_full(talk *t, const bench_plan *p, bench_result *r, int round)
{
    double ms = 0, wall = 0;
    if (!warm_up(t, "full", p, NULL, round, &ms) ||
        !run_many(t, "full", runs_of_round(p, round, ms), ms, &r->full, round, &wall))
        r->full_message = talk_forgive(t); /* the rest stands */
}

/* What is timed in one turn. */
static bool measure_turn(talk *t, const bench_plan *p, bench_result *r, int round, double *wall_ms)
{
    double ms = 0;
    if (!warm_up(t, "warmup", p, &r->first, round, &ms) ||
        !run_many(t, "run", runs_of_round(p, round, ms), ms, &r->latency, round, wall_ms))
        return false;
    ask_memory(t, r, round);
    if (p->model->images.n && !r->full_message)
        measure_full(t, p, r, round);
    return true;
}

bench_setting bench_setting_of(const bench_plan *p, size_t which)
{
    return (bench_setting){.all = p->all,
                           .runtime = &p->all->items[which],
                           .model = p->model,
                           .cores = p->cores,
                           .threads = p->threads,
                           .instances = p->instances,
                           .verbose = p->o->setup.common.verbose > 0,
                           .timeout_s = p->o->timeout_s};
}

bool bench_turn_end(talk *t, bench_result *r)
{
    if (t->state) {
        r->state = t->state;
        r->message = t->message;
        t->message = NULL;
    }
    const bool go_on = !t->stopped;
    talk_end(t);
    return go_on;
}

bool bench_ask_load(talk *t, bench_result *r, int round)
{
    char *rest = NULL, *end = NULL;
    if (!talk_ask(t, "load", "loaded", &rest))
        return false;
    bench_series_add(&r->load, strtod(rest, &end) / 1e6, round);
    free(r->version);
    r->version = printable(end + strspn(end, " "));
    return true;
}

/* One runtime's turn. */
static bool take_turn(const bench_plan *p, size_t which, int round, double *wall_ms)
{
    bench_result *r = &p->results[which];
    const bench_setting setting = bench_setting_of(p, which);
    talk t;
    if (talk_start(&t, &setting) && bench_ask_load(&t, r, round) &&
        (p->o->no_inference || measure_turn(&t, p, r, round, wall_ms)) && round == 0) {
        ask_outputs(&t, p, which);
        if (!p->o->no_program)
            ask_program(&t, r);
    }
    return bench_turn_end(&t, r);
}

bool bench_measure(const bench_plan *p)
{
    const size_t n = p->all->n;
    const int rounds = p->o->no_inference ? 1 : p->rounds;
    double *wall_ms = need(calloc(n, sizeof *wall_ms));
    bool go_on = true;
    for (int round = 0; round < rounds && go_on; round++)
        for (size_t k = 0; k < n && go_on; k++) {
            /* A B C, C A B, B C A */
            const size_t which = (k + n - (size_t)round % n) % n;
            progress(&p->o->setup.common, "measuring",
                     ((double)round + (double)k / (double)n) / (double)rounds);
            if (!p->results[which].state)
                go_on = take_turn(p, which, round, &wall_ms[which]);
        }
    progress_end();
    for (size_t i = 0; i < n; i++) {
        bench_result *r = &p->results[i];
        if (wall_ms[i] > 0)
            r->throughput_per_s = (double)r->latency.n * (double)r->batch / (wall_ms[i] / 1e3);
    }
    free(wall_ms);
    return go_on;
}
