/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds and turns. In a round every runtime gets a fresh process, so start-up and memory layout,
 * which differ from process to process, are sampled; the next round begins with another one. Each
 * loads and warms up alone. Then all stay alive and are measured in short turns (A B C, C B A, …):
 * the clock of a machine may change by a third within a second, but hardly from one turn to its
 * neighbour, and the neighbours are what is compared. A turn begins when the other processes have
 * stopped using the processor. Where memory would not hold all of them, or one does not come to
 * rest, the rounds that are left have one process at a time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/parts.h"

/* A turn of runs shorter than this begins with one that does not count: the turns of the others
 * have emptied the caches, and threads must be woken. Longer runs would spend half of the time on
 * it, and little of them is lost that way. */
static const double short_ms = 10;
/* How long to wait for others to come to rest, the time they are watched, and what they may use of
 * it. Threads of Intel's OpenMP spin for 200 ms after a run; others sleep sooner. */
static const double patience_ms = 1000, watch_ms = 2, rest_ms = 0.1;

/* A runtime's process in a round. */
typedef struct seat {
    talk t;
    bool open, takes; /* its process runs; it takes part in the turns */
    double ms;        /* of a run */
    double wall_ms;   /* of all measured ones, over all rounds */
} seat;

typedef struct rounds {
    const bench_plan *p;
    seat *seats;   /* one for each runtime */
    size_t *order; /* of this round */
    size_t n;
    int round, of; /* its number, and how many there are */
    bool together; /* several processes may be alive */
    bool go_on;    /* not interrupted */
} rounds;

/* The seats that take part in something. */
typedef struct group {
    seat **items;
    size_t n;
} group;

static size_t which_is(const rounds *r, const seat *s)
{
    return (size_t)(s - r->seats);
}

static bench_result *result_of(const rounds *r, const seat *s)
{
    return &r->p->results[which_is(r, s)];
}

static void leave(rounds *r, seat *s)
{
    r->go_on &= bench_talk_end(&s->t, result_of(r, s));
    s->open = false;
}

/* From here on one process at a time; takes `why`. */
static void go_apart(rounds *r, char *why)
{
    r->together = false;
    for (size_t i = 0; i < r->n; i++)
        if (!r->p->results[i].apart)
            r->p->results[i].apart = text_of("%s", why);
    free(why);
}

/* ------------------------------------------------------------------ idle processes */
/* An open seat other than `self` that used the processor while it was watched, or wants to; NULL:
 * there is none. */
static const seat *find_busy(const rounds *r, const seat *self, double *before_ms)
{
    const seat *found = NULL;
    for (size_t i = 0; i < r->n; i++)
        before_ms[i] = child_cpu_ms(&r->seats[i].t.process);
    nanosleep(&(struct timespec){.tv_nsec = (long)(watch_ms * 1e6)}, NULL);
    for (size_t i = 0; i < r->n && !found; i++) {
        const seat *s = &r->seats[i];
        const child *c = &s->t.process;
        if (s != self && s->open && (child_cpu_ms(c) - before_ms[i] > rest_ms || child_works(c)))
            found = s;
    }
    return found;
}

/* Waits until nobody but `self` uses the processor. One that always does ends the turns. */
static void wait_for_rest(rounds *r, const seat *self)
{
    double *before_ms = need(malloc(r->n * sizeof *before_ms));
    const double end = now_ms() + patience_ms;
    const seat *busy = r->together ? find_busy(r, self, before_ms) : NULL;
    while (busy && now_ms() < end && !interrupted())
        busy = find_busy(r, self, before_ms);
    if (busy && !interrupted())
        go_apart(r, text_of("%s uses the processor while it is idle", result_of(r, busy)->runtime));
    free(before_ms);
}

static double largest(const bench_series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n; i++)
        most = s->value[i] > most ? s->value[i] : most;
    return most;
}

/* Whether memory holds one more process beside the open ones, and a quarter more. What it needs was
 * seen in earlier rounds, or is what the largest of the others has; and an open one may still grow
 * to what it needed then. */
static void check_memory(rounds *r, const seat *next)
{
    const bench_series *seen = &result_of(r, next)->rss;
    double its = largest(seen), growth = 0;
    size_t open = 0;
    for (size_t i = 0; i < r->n; i++) {
        const seat *s = &r->seats[i];
        const double has = s->open ? child_peak_rss(&s->t.process) : 0;
        const double had = s->open ? largest(&result_of(r, s)->rss) : 0;
        its = !seen->n && has > its ? has : its;
        growth += had > has ? had - has : 0;
        open += s->open;
    }
    const double left = bench_memory_left(), bytes = its + growth;
    if (!r->together || !open || left <= 0 || bytes * 1.25 <= left)
        return;
    char *needed = text_of("%s", bytes_text((uint64_t)bytes));
    go_apart(r, text_of("all together need %s more of memory, and %s are available", needed,
                        bytes_text((uint64_t)left)));
    free(needed);
}

/* ------------------------------------------------------------------ turns */
/* As many as asked for, but no more than the slowest has runs. */
static int turns_of(const rounds *r, const group *g)
{
    long turns = g->n > 1 ? r->p->turns : 1;
    for (size_t i = 0; i < g->n; i++) {
        const seat *s = g->items[i];
        const long runs = s->takes ? bench_runs_of_round(r->p, r->round, s->ms) : turns;
        turns = runs < turns ? runs : turns;
    }
    return turns > 1 ? (int)turns : 1;
}

static bool take_turn(rounds *r, seat *s, bool full, int turn, int turns)
{
    const char *verb = full ? "full" : "run";
    bench_result *result = result_of(r, s);
    const bench_when when = {r->round, turn};
    const long all = bench_runs_of_round(r->p, r->round, s->ms);
    const long runs = all / turns + (turn < all % turns);
    double unused = 0;
    if (turns > 1 && s->ms < short_ms && r->p->o->setup.measuring.warmup != 0) {
        bench_series warm = {.n = 0};
        const bool fine = talk_times(&s->t, full ? "full 1" : "warmup 1", &warm, when, &unused);
        bench_series_free(&warm);
        if (!fine)
            return false;
    }
    return bench_run_many(&s->t, verb, runs, s->ms, full ? &result->full : &result->latency, when,
                          full ? &unused : &s->wall_ms);
}

static void take_turns(rounds *r, const group *g, bool full)
{
    const int turns = turns_of(r, g);
    for (int turn = 0; turn < turns; turn++)
        for (size_t k = 0; k < g->n && r->go_on; k++) {
            seat *s = g->items[turn % 2 ? g->n - 1 - k : k];
            if (!s->takes)
                continue;
            progress(&r->p->o->setup.common, "measuring",
                     (r->round + (turn + (double)k / (double)g->n) / turns) / r->of);
            wait_for_rest(r, s);
            if (take_turn(r, s, full, turn, turns))
                continue;
            s->takes = false;
            if (full && (result_of(r, s)->full_message = talk_forgive(&s->t)))
                continue; /* the rest stands */
            leave(r, s);
        }
    for (size_t i = 0; i < g->n && !full; i++) {
        bench_result *result = result_of(r, g->items[i]);
        result->turns = turns > result->turns ? turns : result->turns;
    }
}

/* With decoding, resizing and normalising images. */
static void measure_full(rounds *r, const group *g)
{
    for (size_t i = 0; i < g->n && r->go_on; i++) {
        seat *s = g->items[i];
        bench_result *result = result_of(r, s);
        s->takes = false;
        if (!s->open || result->full_message)
            continue;
        s->takes = bench_warm_up(&s->t, "full", r->p, NULL, r->round, &s->ms);
        if (!s->takes && !(result->full_message = talk_forgive(&s->t)))
            leave(r, s);
    }
    take_turns(r, g, true);
}

/* ------------------------------------------------------------------ a round */
static void open_seat(rounds *r, seat *s)
{
    const bench_plan *p = r->p;
    bench_result *result = result_of(r, s);
    const bench_setting setting = bench_setting_of(p, which_is(r, s));
    s->open = true;
    s->takes =
        talk_start(&s->t, &setting) && bench_ask_load(&s->t, result, r->round) &&
        (p->o->no_inference || bench_warm_up(&s->t, "warmup", p, &result->first, r->round, &s->ms));
    if (!s->takes)
        leave(r, s);
}

/* Everything after the warm-up, for processes that are alive at once. */
static void finish_group(rounds *r, const group *g)
{
    const bench_plan *p = r->p;
    if (!p->o->no_inference && r->go_on) {
        take_turns(r, g, false);
        for (size_t i = 0; i < g->n; i++)
            if (g->items[i]->open)
                bench_ask_memory(&g->items[i]->t, result_of(r, g->items[i]), r->round);
        if (p->model->images.n && r->go_on)
            measure_full(r, g);
    }
    for (size_t i = 0; i < g->n; i++) {
        seat *s = g->items[i];
        if (s->open && r->round == 0 && r->go_on && !s->t.state) {
            bench_ask_outputs(&s->t, p, which_is(r, s));
            if (!p->o->no_program)
                bench_ask_program(&s->t, result_of(r, s));
        }
        if (s->open)
            leave(r, s);
    }
}

/* Measures and ends what is alive: in turns, or one after the other. */
static void finish(rounds *r)
{
    group all = {.items = need(malloc(r->n * sizeof(seat *)))};
    for (size_t k = 0; k < r->n; k++)
        if (r->seats[r->order[k]].open)
            all.items[all.n++] = &r->seats[r->order[k]];
    if (r->together && all.n)
        finish_group(r, &all);
    for (size_t k = 0; k < all.n && !r->together; k++)
        if (all.items[k]->open)
            finish_group(r, &(group){.items = all.items + k, .n = 1});
    free(all.items);
}

static void take_round(rounds *r)
{
    for (size_t k = 0; k < r->n; k++) /* A B C, C A B, B C A */
        r->order[k] = (k + r->n - (size_t)r->round % r->n) % r->n;
    for (size_t k = 0; k < r->n && r->go_on; k++) {
        seat *s = &r->seats[r->order[k]];
        if (result_of(r, s)->state)
            continue;
        progress(&r->p->o->setup.common, "measuring", (double)r->round / r->of);
        check_memory(r, s);
        if (!r->together)
            finish(r);
        open_seat(r, s);
        wait_for_rest(r, NULL);
    }
    finish(r);
}

bool bench_measure(const bench_plan *p)
{
    const size_t n = p->all->n;
    rounds r = {.p = p,
                .seats = need(calloc(n, sizeof *r.seats)),
                .order = need(calloc(n, sizeof *r.order)),
                .n = n,
                .of = p->o->no_inference ? 1 : p->rounds,
                .together = p->turns > 1 && n > 1 && !p->o->no_inference,
                .go_on = true};
    for (; r.round < r.of && r.go_on; r.round++)
        take_round(&r);
    progress_end();
    for (size_t i = 0; i < n; i++) {
        bench_result *result = &p->results[i];
        if (r.seats[i].wall_ms > 0)
            result->throughput_per_s =
                (double)result->latency.n * (double)result->batch / (r.seats[i].wall_ms / 1e3);
    }
    free(r.order);
    free(r.seats);
    return r.go_on;
}
