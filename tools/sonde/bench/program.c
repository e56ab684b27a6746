/* SPDX-License-Identifier: Apache-2.0 */
/* Whole programs, from process start to result, as hyperfine measures commands: one run to warm the
 * caches, then each in turn, in rotated order. Loading, importing and starting up count here, which
 * is what somebody waits for who types the command. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/parts.h"

enum { MOST_WORDS = 64 };

/* "a\tb" ► argv; the copy must be freed. */
static char *words_of(const char *line, const char **argv)
{
    char *copy = text_of("%s", line), *state = NULL;
    size_t n = 0;
    for (char *word = strtok_r(copy, "\t", &state); word && n < MOST_WORDS - 1;
         word = strtok_r(NULL, "\t", &state))
        argv[n++] = word;
    argv[n] = NULL;
    return copy;
}

static void it_failed(bench_program *g, bench_state state, char *message)
{
    g->state = state;
    g->message = message;
}

/* What ended badly, with the last thing it said. */
static void it_ended_badly(bench_program *g, int status, const char *log)
{
    char *said = last_line(log);
    it_failed(
        g, BENCH_CRASHED,
        WIFSIGNALED(status)
            ? text_of("ended by signal %d%s%s", WTERMSIG(status), *said ? ": " : "", said)
            : text_of("ended with status %d%s%s", WEXITSTATUS(status), *said ? ": " : "", said));
    free(said);
}

static void keep(bench_program *g, const child_usage *u, int round)
{
    const bench_when when = {.round = round};
    bench_series_add(&g->wall, u->wall_ms, when);
    bench_series_add(&g->user, u->user_ms, when);
    bench_series_add(&g->system, u->system_ms, when);
    bench_series_add(&g->rss, u->rss_bytes, when);
    for (int i = 0; i < BENCH_COUNTERS; i++) { /* sums until all runs are done */
        const bool known = u->counters[i].known && (round == 0 || g->counters[i].known);
        g->counters[i] = (bench_counter){.name = u->counters[i].name,
                                         .known = known,
                                         .value = g->counters[i].value + u->counters[i].value};
    }
}

/* round -1: a warm-up. */
static bool run_once(const bench_plan *p, bench_program *g, int round)
{
    const char *argv[MOST_WORDS];
    char *copy = words_of(g->command, argv), *log = scratch_path("program.log"), *why = NULL;
    const child_setup setup = {.cores = p->cores, .error_log = log, .counts = true};
    child_usage usage;
    bool go_on = true;
    switch (child_run(argv, &setup, p->o->timeout_s, &usage, &why)) {
    case ANSWER_END:
        if (!WIFEXITED(usage.status) || WEXITSTATUS(usage.status))
            it_ended_badly(g, usage.status, log);
        else if (round >= 0)
            keep(g, &usage, round);
        break;
    case ANSWER_INTERRUPTED:
        go_on = false;
        break;
    default:
        it_failed(g, why ? BENCH_FAILED : BENCH_HUNG,
                  why ? why : text_of("did not finish within %g s", p->o->timeout_s));
    }
    free(log);
    free(copy);
    return go_on;
}

bool bench_programs(const bench_plan *p)
{
    const size_t n = p->all->n;
    const int runs = (int)p->o->min_runs;
    bool go_on = true;
    for (int round = -1; round < runs && go_on; round++)
        for (size_t k = 0; k < n && go_on; k++) {
            bench_program *g = &p->results[(k + n - (size_t)(round + 1) % n) % n].program;
            progress(&p->o->setup.common, "programs", ((double)round + 1) / ((double)runs + 1));
            if (g->command && *g->command && !g->state)
                go_on = run_once(p, g, round);
        }
    progress_end();
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < BENCH_COUNTERS; k++) {
            bench_program *g = &p->results[i].program;
            g->counters[k].value /= g->wall.n ? (double)g->wall.n : 1;
        }
    return go_on;
}
