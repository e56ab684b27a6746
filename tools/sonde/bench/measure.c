/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of one runtime in a round: to load, to warm up, to run a number of times, what it
 * took of memory, what it computed. rounds.c has the order of it all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

/* Samples are kept, and what the bench holds in memory should stay below what it measures. */
enum { MOST = 20000 };
enum { AT_LEAST = 10, ANSWER_MS = 5000 }; /* a command takes about so long: silence is noticed */

long bench_runs_of_round(const bench_plan *p, int round, double ms)
{
    const measuring_options *m = &p->o->setup.measuring;
    if (m->iterations >= 0)
        return (long)(m->iterations / p->rounds + (round < m->iterations % p->rounds));
    const double fit = duration_ms(m) / p->rounds / (ms > 1e-4 ? ms : 1e-4);
    const long least = (AT_LEAST + p->rounds - 1) / p->rounds;
    return fit < (double)least ? least : fit > (double)MOST ? MOST : (long)fit;
}

bool bench_run_many(talk *t, const char *verb, long runs, double ms, bench_series *into,
                    bench_when when, double *wall_ms)
{
    const double fit = (double)ANSWER_MS / (ms > 1e-4 ? ms : 1e-4);
    const long most = fit < 1 ? 1 : fit > 1e6 ? 1000000 : (long)fit;
    double took = 0;
    for (long n; runs > 0; runs -= n) {
        char line[64];
        n = runs < most ? runs : most;
        snprintf(line, sizeof line, "%s %ld", verb, n);
        if (!talk_times(t, line, into, when, &took))
            return false;
        *wall_ms += took;
    }
    return true;
}

bool bench_warm_up(talk *t, const char *verb, const bench_plan *p, bench_series *first, int round,
                   double *ms)
{
    const int64_t asked = p->o->setup.measuring.warmup, n = asked >= 0 ? asked : 3;
    const bench_when when = {.round = round};
    char line[64];
    snprintf(line, sizeof line, "%s 1", verb);
    bench_series all = {.n = 0};
    double took = 0;
    bool fine = true;
    for (int64_t i = 0; i < (n ? n : 1) && fine; i++) /* one at least: it is the first inference */
        fine = talk_times(t, line, &all, when, &took);
    if (all.n && first)
        bench_series_add(first, all.value[0], when);
    *ms = INFINITY;
    for (size_t i = 0; i < all.n; i++)
        *ms = all.value[i] < *ms ? all.value[i] : *ms;
    bench_series_free(&all);
    return fine;
}

void bench_ask_memory(talk *t, bench_result *r, int round)
{
    char *rest = NULL;
    double bytes = 0;
    if (talk_ask(t, "memory", "memory", &rest))
        bytes = strtod(rest, NULL);
    free(talk_forgive(t));
    if (!t->state && !t->stopped)
        bench_series_add(&r->rss, bytes > 0 ? bytes : child_peak_rss(&t->process),
                         (bench_when){.round = round});
}

void bench_ask_outputs(talk *t, const bench_plan *p, size_t which)
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

void bench_ask_program(talk *t, bench_result *r)
{
    char *rest = NULL;
    if (talk_ask(t, "program", "program", &rest))
        r->program.command = text_of("%s", rest);
    else if ((r->program.message = talk_forgive(t)))
        r->program.state = BENCH_UNSUPPORTED;
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

bool bench_talk_end(talk *t, bench_result *r)
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
    bench_series_add(&r->load, strtod(rest, &end) / 1e6, (bench_when){.round = round});
    free(r->version);
    r->version = printable(end + strspn(end, " "));
    return true;
}
