/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop. Outputs of the previous run are let go before the clock starts: their memory
 * is what the next run takes first. One instance runs on the caller's thread; several run on a
 * thread each, are warmed up, begin together and end by themselves, or when one of them fails. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runner.h"
#include "sonde/experimental/machine.h"
#include "sonde/experimental/recording.h"

void values_drop(sonde_value **values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sonde_value_release(values[i]);
        values[i] = NULL;
    }
}

typedef struct group { /* of instances that run side by side */
    runner *r;
    const run_setup *s;
    int64_t warmup, iterations;
    size_t most;
    pthread_barrier_t warm, go; /* of the instances and of who started them */
    size_t n;                   /* instances */
    _Atomic size_t ready;       /* of them, awake after `go` */
    _Atomic bool started;       /* all are */
    double start_ms;            /* of the first measured run */
    _Atomic bool ended;         /* no further run: one has failed, or a signal came */
    _Atomic bool cut;           /* a signal */
} group;

typedef struct instance {
    group *g;
    size_t number;
    sonde_session *session;
    sonde_value **out;
    double *ms;
    size_t runs;
    double end_ms; /* of the last measured run */
    sonde_error err;
    pthread_t thread;
} instance;

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Run number k; false: it failed or was cut, or another instance was. */
static bool run_once(instance *in, size_t k, bool warmup, bool verbose, double *ms)
{
    const runner *r = in->g->r;
    sonde_run_options run = SONDE_INIT(sonde_run_options);
    run.warmup = warmup;
    run.verbose = verbose;
    run.cancel = interrupt_token();
    const size_t set = k % r->sets;
    const feeds *feed = &r->in[set];
    sonde_value **out = in->out + set * r->outputs;
    values_drop(out, r->outputs);
    const double start = now_ms();
    const sonde_status st = sonde_session_run(in->session, &run, feed->names, feed->values, feed->n,
                                              NULL, out, r->outputs, &in->err);
    *ms = now_ms() - start;
    if (st == SONDE_CANCELLED) { /* no failure: what ran before it counts */
        in->g->cut = true;
        in->err.status = SONDE_OK;
    }
    if (st)
        in->g->ended = true;
    return !in->g->ended;
}

/* With -v the very first run prints every step, so that one that fails is seen. */
static bool prints_steps(const instance *in)
{
    return in->g->s->common.verbose && !in->number;
}

static void warm_up(instance *in)
{
    const group *g = in->g;
    double ms;
    for (int64_t i = 0; i < g->warmup; i++) {
        if (!in->number)
            progress(&g->s->common, "warming up", (double)i / (double)g->warmup);
        if (!run_once(in, (size_t)i, true, prints_steps(in) && i == 0, &ms))
            return;
    }
}

/* A quarter of the recorder stays free: for what ends after the last run, and for runs on other
 * threads that are under way. */
static bool is_nearly_full(const runner *r)
{
    sonde_recorder_info info = SONDE_INIT(sonde_recorder_info);
    return sonde_recorder_info_get(r->model.context, &info, NULL) == SONDE_OK &&
           info.room < info.capacity / 4;
}

/* Whether a run that is limited by time was the last one. */
static bool has_enough(const instance *in, double spent_ms)
{
    const group *g = in->g;
    if (in->runs >= g->most)
        return true;
    return in->runs >= g->r->least && (spent_ms >= duration_ms(&g->s->measuring) ||
                                       (g->r->stop_when_full && is_nearly_full(g->r)));
}

static void measure(instance *in)
{
    const group *g = in->g;
    const bool by_count = g->iterations >= 0;
    const double budget = duration_ms(&g->s->measuring);
    double ms;
    for (;;) {
        const double spent = now_ms() - g->start_ms;
        if (by_count ? in->runs >= (size_t)g->iterations : has_enough(in, spent))
            return;
        if (!in->number)
            progress(&g->s->common, "measuring",
                     by_count     ? (double)in->runs / (double)g->iterations
                     : budget > 0 ? spent / budget
                                  : 1);
        if (interrupted()) {
            in->g->cut = in->g->ended = true;
            return;
        }
        if (!run_once(in, in->runs, false, prints_steps(in) && !g->warmup && !in->runs, &ms))
            return;
        in->end_ms = now_ms();
        in->ms = grow(in->ms, in->runs, sizeof *in->ms);
        in->ms[in->runs++] = ms;
        if (in->runs == 1 && g->r->first)
            g->r->first(g->r->user);
    }
}

/* Leaving a barrier takes a thread that sleeps longer than some models run: whoever is awake first
 * waits for the others without sleeping, and the clock starts when all are there. */
static void start_together(group *g)
{
    if (atomic_fetch_add(&g->ready, 1) + 1 == g->n) {
        g->start_ms = now_ms();
        g->started = true;
    }
    while (!g->started)
        sched_yield();
}

static void *run_instance(void *arg)
{
    instance *in = arg;
    char name[16];
    snprintf(name, sizeof name, "instance %zu", in->number);
    (void)pthread_setname_np(pthread_self(), name); /* lanes of traces are called so */
    warm_up(in);
    pthread_barrier_wait(&in->g->warm);
    pthread_barrier_wait(&in->g->go);
    start_together(in->g);
    if (!in->g->ended)
        measure(in);
    return NULL;
}

static void start_counters(const group *g)
{
    sonde_error err;
    if (g->s->counters && !g->ended) /* where they are refused the profile says why */
        (void)sonde_counters_start(g->r->model.context, &err);
}

static void run_alone(group *g, instance *in)
{
    warm_up(in);
    start_counters(g);
    g->start_ms = now_ms();
    if (!g->ended)
        measure(in);
}

static void run_side_by_side(group *g, instance *all, size_t n)
{
    pthread_barrier_init(&g->warm, NULL, (unsigned)n + 1);
    pthread_barrier_init(&g->go, NULL, (unsigned)n + 1);
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&all[i].thread, NULL, run_instance, &all[i]))
            exit(fail("cannot start %zu threads", n)); /* others wait for it */
    pthread_barrier_wait(&g->warm);
    start_counters(g);
    pthread_barrier_wait(&g->go);
    for (size_t i = 0; i < n; i++)
        pthread_join(all[i].thread, NULL);
    pthread_barrier_destroy(&g->warm);
    pthread_barrier_destroy(&g->go);
}

/* Latencies of all instances together, and the time they took; the error of the first that failed.
 */
static int collect(runner *r, instance *all, size_t n)
{
    const instance *bad = NULL;
    const double start_ms = all[0].g->start_ms;
    double end_ms = start_ms;
    for (size_t i = 0; i < n; i++) {
        bad = all[i].err.status && !bad ? &all[i] : bad;
        end_ms = all[i].end_ms > end_ms ? all[i].end_ms : end_ms;
        for (size_t k = 0; k < all[i].runs; k++) {
            r->ms = grow(r->ms, r->runs, sizeof *r->ms);
            r->ms[r->runs++] = all[i].ms[k];
        }
        free(all[i].ms);
    }
    r->wall_ms = end_ms - start_ms;
    if (!bad)
        return EXIT_OK;
    return bad->err.status == SONDE_CANCELLED
               ? fail("%s", bad->err.message)
               : fail_with_sizes(&r->model, all[0].g->s, bad->err.message);
}

static int say_interrupted(runner *r)
{
    r->cut = true;
    values_drop(r->out, r->sets * r->outputs * r->model.n_sessions);
    r->n_out = 0;
    fflush(stdout);
    if (r->runs)
        fprintf(stderr, "sonde: interrupted after %zu measured run%s\n", r->runs,
                r->runs == 1 ? "" : "s");
    else
        fprintf(stderr, "sonde: interrupted before the first measured run\n");
    return r->runs ? EXIT_OK : EXIT_ERROR;
}

int runner_run(runner *r, const run_setup *s, int64_t warmup, int64_t iterations, size_t most)
{
    if (interrupt_keep())
        return EXIT_ERROR;
    const size_t n = r->model.n_sessions;
    group g = {.r = r, .s = s, .warmup = warmup, .iterations = iterations, .most = most, .n = n};
    instance *all = need(calloc(n, sizeof *all));
    for (size_t i = 0; i < n; i++)
        all[i] = (instance){.g = &g,
                            .number = i,
                            .session = r->model.sessions[i],
                            .out = r->out + i * r->sets * r->outputs};
    if (n == 1)
        run_alone(&g, all);
    else
        run_side_by_side(&g, all, n);
    progress_end();
    r->n_out = (all[0].runs < r->sets ? all[0].runs : r->sets) * r->outputs;
    int code = collect(r, all, n);
    free(all);
    if (!code && g.cut)
        code = say_interrupted(r);
    sonde_error err;
    if (!code && s->counters && sonde_counters_stop(r->model.context, &err))
        code = fail("%s", err.message);
    return code;
}

double runner_throughput(const runner *r)
{
    const sonde_value *first = r->in[0].n ? r->in[0].values[0] : NULL;
    const bool many = first && sonde_value_kind(first) == SONDE_KIND_TENSOR &&
                      sonde_tensor_rank(first) > 0 && counts_samples(&r->model);
    const double batch = many ? (double)sonde_tensor_dims(first)[0] : 1;
    return r->wall_ms > 0 ? (double)r->runs * batch / (r->wall_ms / 1e3) : 0;
}

void runner_print_instances(const runner *r)
{
    const size_t n = r->model.n_sessions;
    int least = INT_MAX, most = 0;
    for (size_t i = 0; i < n; i++) {
        sonde_placement p = SONDE_INIT(sonde_placement);
        (void)sonde_session_placement(r->model.sessions[i], &p, NULL);
        least = p.threads < least ? p.threads : least;
        most = p.threads > most ? p.threads : most;
    }
    if (n < 2)
        return;
    if (least < most)
        printf("%zu instances of %d to %d threads each: ", n, least, most);
    else
        printf("%zu instances of %d thread%s each: ", n, most, most > 1 ? "s" : "");
    printf("%.1f samples per second\n", runner_throughput(r));
    for (size_t i = 0; i < n; i++) {
        sonde_placement p = SONDE_INIT(sonde_placement);
        if (sonde_session_placement(r->model.sessions[i], &p, NULL) == SONDE_OK && *p.nodes)
            printf("  instance %zu: %d thread%s on node%s %s, CPUs %s\n", i, p.threads,
                   p.threads > 1 ? "s" : "", strpbrk(p.nodes, ",-") ? "s" : "", p.nodes, p.cpus);
    }
}
