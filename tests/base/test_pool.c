/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: every task once, nesting, many callers, slices, signals and forks. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/fpmode.h"
#include "base/trace.h"
#include "test.h"

static sn_allocator allocator;

static sn_pool *make_pool(int threads)
{
    sn_pool *pool;
    sn_allocator_init_system(&allocator);
    return sn_pool_create(&pool, threads, &allocator, NULL) == SONDE_OK ? pool : NULL;
}

typedef struct counts {
    sn_pool *pool;
    int max_worker;
    _Atomic int bad_worker;
    unsigned char
        *hits; /* plain memory: each task writes its own byte, the caller reads them all */
} counts;

static void count(void *arg, size_t task, int worker)
{
    counts *c = arg;
    c->hits[task]++;
    if (worker < 0 || worker > c->max_worker)
        atomic_store(&c->bad_worker, 1);
}

TEST(every_task_runs_exactly_once_with_any_number_of_threads)
{
    enum { N = 1000 };
    unsigned char hits[N];
    for (int threads = 1; threads <= 9; threads += 2) {
        sn_pool *pool = make_pool(threads);
        CHECK(pool != NULL);
        CHECK_EQ(sn_pool_threads(pool), threads);
        counts c = {.max_worker = threads - 1, .hits = hits};
        for (size_t n = 0; n < N; n += 1 + n / 3) {
            memset(hits, 0, sizeof hits);
            sn_pool_run(pool, n, count, &c);
            for (size_t i = 0; i < N; i++)
                CHECK_EQ(hits[i], i < n);
        }
        CHECK(!c.bad_worker);
        sn_pool_free(pool);
        CHECK_EQ(allocator.live_bytes, 0);
    }
}

TEST(thousands_of_short_regions_in_a_row_lose_nothing)
{
    sn_pool *pool = make_pool(4);
    unsigned char hits[7];
    counts c = {.max_worker = 3, .hits = hits};
    for (int region = 0; region < 20000; region++) {
        memset(hits, 0, sizeof hits);
        sn_pool_run(pool, sizeof hits, count, &c);
        for (size_t i = 0; i < sizeof hits; i++)
            CHECK_EQ(hits[i], 1);
    }
    sn_pool_free(pool);
}

TEST(null_pools_and_impossible_sizes)
{
    unsigned char hits[3] = {0};
    counts c = {.hits = hits};
    sn_pool_run(NULL, 3, count, &c);
    CHECK_EQ(hits[0] + hits[1] + hits[2], 3);
    CHECK_EQ(sn_pool_threads(NULL), 1);
    sn_pool_free(NULL);
    sn_pool *pool;
    sn_allocator_init_system(&allocator);
    CHECK_EQ(sn_pool_create(&pool, 0, &allocator, NULL), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sn_pool_create(&pool, 1 << 30, &allocator, NULL), SONDE_INVALID_ARGUMENT);
    for (size_t limit = 1; limit < 2000; limit += 100) {
        sn_allocator_init_system(&allocator);
        allocator.limit_bytes = limit;
        sonde_error err = {0};
        sonde_status st = sn_pool_create(&pool, 16, &allocator, &err);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        sn_pool_free(pool);
        CHECK_EQ(allocator.live_bytes, 0);
    }
}

static void nest(void *arg, size_t task, int worker)
{
    (void)worker;
    counts *outer = arg;
    counts inner = {.max_worker = 0, .hits = outer->hits + 50 * task};
    sn_pool_run(outer->pool, 50, count, &inner);
    if (inner.bad_worker)
        atomic_store(&outer->bad_worker, 1);
}

TEST(nested_regions_run_inline)
{
    sn_pool *pool = make_pool(3);
    unsigned char hits[50 * 20] = {0};
    counts c = {.pool = pool, .hits = hits};
    sn_pool_run(pool, 20, nest, &c);
    for (size_t i = 0; i < sizeof hits; i++)
        CHECK_EQ(hits[i], 1);
    CHECK(!c.bad_worker);
    sn_pool_free(pool);
}

static void *call_often(void *arg)
{
    sn_pool *pool = arg;
    unsigned char hits[33];
    counts c = {.max_worker = 2, .hits = hits};
    for (int i = 0; i < 500; i++) {
        memset(hits, 0, sizeof hits);
        sn_pool_run(pool, sizeof hits, count, &c);
        for (size_t k = 0; k < sizeof hits; k++)
            if (hits[k] != 1)
                return arg;
    }
    return NULL;
}

TEST(callers_on_many_threads_share_one_pool)
{
    sn_pool *pool = make_pool(3);
    pthread_t threads[4];
    void *wrong[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, call_often, pool) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &wrong[i]);
    for (int i = 0; i < 4; i++)
        CHECK(wrong[i] == NULL);
    sn_pool_free(pool);
}

/* Each task waits until another thread has one too, so that two threads certainly take part. */
typedef struct meeting {
    _Atomic int arrived;
    _Atomic int signals_open, named;
} meeting;

static void meet(void *arg, size_t task, int worker)
{
    (void)task;
    meeting *m = arg;
    atomic_fetch_add(&m->arrived, 1);
    while (atomic_load(&m->arrived) < 2) {
    }
    if (worker == 0)
        return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGINT))
        atomic_store(&m->signals_open, 1);
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strncmp(name, "sonde-", 6) == 0)
        atomic_store(&m->named, 1);
}

TEST(workers_have_names_and_take_no_signals)
{
    sn_pool *pool = make_pool(2);
    meeting m = {0};
    sn_pool_run(pool, 2, meet, &m);
    CHECK(!m.signals_open);
    CHECK(m.named);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGINT));
    sn_pool_free(pool);
}

TEST(level_three_records_one_slice_per_thread_and_region)
{
    sn_pool *pool = make_pool(2);
    sn_trace *trace;
    CHECK_EQ(sn_trace_create(&trace, &allocator, 100, NULL), SONDE_OK);
    sn_pool_set_trace(pool, trace);
    for (int level = 2; level <= 3; level++) {
        atomic_store(&trace->level, level);
        meeting m = {0};
        sn_pool_run(pool, 2, meet, &m);
    }
    int slices = 0, workers = 0;
    for (sn_trace_ring *r = atomic_load(&trace->rings); r; r = r->next)
        for (size_t i = 0; i < atomic_load(&r->n); i++) {
            CHECK_EQ(r->recs[i].kind, SN_TRACE_SLICE);
            CHECK_EQ(r->recs[i].table, SN_TRACE_NONE);
            CHECK(r->recs[i].t1 >= r->recs[i].t0);
            workers |= 1 << r->recs[i].index;
            slices++;
        }
#if SONDE_RECORDER
    CHECK_EQ(slices, 2);
    CHECK_EQ(workers, 3);
#else
    CHECK_EQ(slices + workers, 0);
#endif
    sn_pool_free(pool);
    sn_trace_free(trace);
    CHECK_EQ(allocator.live_bytes, 0);
}

typedef struct modes {
    _Atomic int arrived;
    uint32_t seen[2];
} modes;

/* Each waits for the other, so both threads of the pool take part. */
static void look_at_mode(void *arg, size_t task, int worker)
{
    modes *m = arg;
    (void)worker;
    m->seen[task] = sn_fp_get();
    atomic_fetch_add(&m->arrived, 1);
    while (atomic_load(&m->arrived) < 2) {
    }
}

TEST(workers_compute_in_their_callers_floating_point_mode)
{
    sn_pool *pool = make_pool(2);
    const uint32_t own = sn_fp_get();
    CHECK(sn_fp_flushing(own) != own);
    for (int round = 0; round < 4; round++) {
        const uint32_t mode = round % 2 ? sn_fp_flushing(own) : own;
        modes m = {0};
        sn_fp_set(mode);
        sn_pool_run(pool, 2, look_at_mode, &m);
        sn_fp_set(own);
        CHECK_EQ(m.seen[0], mode);
        CHECK_EQ(m.seen[1], mode);
    }
    sn_pool_free(pool);
}

TEST(a_forked_child_starts_workers_of_its_own)
{
#if defined(__SANITIZE_THREAD__)
    SKIP_TEST("ThreadSanitizer ends a forked child that starts threads");
#endif
    if (getenv("SONDE_EMULATED"))
        SKIP_TEST("an emulator cannot fork a process with threads");
    sn_pool *pool = make_pool(2);
    meeting m = {0};
    sn_pool_run(pool, 2, meet, &m);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        meeting own = {0};
        sn_pool_run(pool, 2, meet, &own); /* returns only if a second thread came */
        sn_pool_free(pool);
        _exit(atomic_load(&own.named) ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    sn_pool_free(pool);
}

typedef struct looking {
    const sn_pool *pool;
    _Atomic int busy;
} looking;

static void look(void *arg, size_t task, int worker)
{
    looking *l = arg;
    (void)task, (void)worker;
    atomic_fetch_add(&l->busy, sn_pool_is_busy(l->pool));
}

TEST(a_pool_is_busy_while_a_region_runs)
{
    sn_allocator alloc;
    sonde_error err;
    sn_pool *pool = NULL;
    sn_allocator_init_system(&alloc);
    CHECK_OK(sn_pool_create(&pool, 2, &alloc, &err));
    looking l = {.pool = pool};
    CHECK(!sn_pool_is_busy(pool) && !sn_pool_is_busy(NULL));
    sn_pool_run(pool, 10, look, &l);
    CHECK_EQ(l.busy, 10);
    CHECK(!sn_pool_is_busy(pool));
    sn_pool_free(pool);
}

static void run_inside(void *arg, size_t task, int worker)
{
    counts *c = arg, inner = {.hits = (unsigned char[2]){0}};
    (void)task, (void)worker;
    sn_pool_run(c->pool, 2, count, &inner);
}

static void *turned_away_twice(void *arg)
{
    counts c = {.hits = (unsigned char[2]){0}};
    const uint64_t before = sn_pool_turned_away();
    sn_pool_run(arg, 2, count, &c);
    sn_pool_run(arg, 1, count, &c); /* needs no pool */
    sn_pool_run(arg, 2, count, &c);
    return sn_pool_turned_away() - before == 2 ? arg : NULL;
}

static void ask_another_thread(void *arg, size_t task, int worker)
{
    pthread_t thread;
    void *fine = NULL;
    counts *c = arg;
    (void)worker;
    if (task == 0 && pthread_create(&thread, NULL, turned_away_twice, c->pool) == 0 &&
        pthread_join(thread, &fine) == 0)
        c->hits[0] = fine != NULL;
}

TEST(who_runs_inline_because_of_others_can_tell)
{
    unsigned char hits[8] = {0};
    counts c = {.pool = make_pool(2), .max_worker = 1, .hits = hits};
    const uint64_t before = sn_pool_turned_away();
    sn_pool_run(c.pool, 8, count, &c);
    sn_pool_run(c.pool, 8, run_inside, &c); /* in a region of its own */
    sn_pool_run(NULL, 8, count, &c);
    CHECK_EQ(sn_pool_turned_away(), before);
    hits[0] = 0;
    sn_pool_run(c.pool, 2, ask_another_thread, &c);
    CHECK_EQ(hits[0], 1);
    CHECK_EQ(sn_pool_turned_away(), before);
    sn_pool_free(c.pool);
}

/* What a thread has entered: one state at a time, and how often. */
static _Thread_local const void *state;

typedef struct visits {
    sn_pool *pool;
    sn_thread_hook hook;
    _Atomic int entered, left, inside; /* inside: threads that have the state now */
    _Atomic int wrong;
    _Atomic int workers; /* bits: who took a task */
    _Atomic int arrived;
    int meet; /* tasks wait until so many threads have one */
} visits;

static void enter(void *arg)
{
    visits *v = arg;
    if (state)
        atomic_store(&v->wrong, 1);
    state = v;
    atomic_fetch_add(&v->entered, 1);
    atomic_fetch_add(&v->inside, 1);
}

static void leave(void *arg)
{
    visits *v = arg;
    if (state != v)
        atomic_store(&v->wrong, 2);
    state = NULL;
    atomic_fetch_add(&v->left, 1);
    atomic_fetch_sub(&v->inside, 1);
}

static void visit(void *arg, size_t task, int worker)
{
    visits *v = arg;
    (void)task;
    if (state != v)
        atomic_store(&v->wrong, 3);
    atomic_fetch_or(&v->workers, 1 << worker);
    atomic_fetch_add(&v->arrived, 1);
    while (atomic_load(&v->arrived) < v->meet) {
    }
}

static void visits_init(visits *v, sn_pool *pool, int meeting_threads)
{
    memset(v, 0, sizeof *v);
    v->pool = pool;
    v->hook = (sn_thread_hook){enter, leave, v};
    v->meet = meeting_threads;
}

TEST(each_thread_of_a_region_enters_and_leaves_once)
{
    sn_pool *pool = make_pool(3);
    for (int round = 0; round < 200; round++) {
        visits v;
        visits_init(&v, pool, round % 2 ? 3 : 0);
        sn_pool_run_hooked(pool, 3 + (size_t)round % 40, visit, &v, &v.hook);
        CHECK_EQ(v.wrong, 0);
        CHECK_EQ(v.entered, __builtin_popcount((unsigned)v.workers));
        CHECK_EQ(v.left, v.entered);
        CHECK_EQ(v.inside, 0);
        CHECK(state == NULL);
    }
    sn_pool_free(pool);
}

TEST(all_threads_enter_where_all_take_part)
{
    sn_pool *pool = make_pool(3);
    visits v;
    visits_init(&v, pool, 3); /* each task waits for two others, so each thread has one */
    sn_pool_run_hooked(pool, 3, visit, &v, &v.hook);
    CHECK_EQ(v.wrong, 0);
    CHECK_EQ(v.workers, 7);
    CHECK_EQ(v.entered, 3);
    CHECK_EQ(v.left, 3);
    sn_pool_free(pool);
}

TEST(a_region_on_its_caller_alone_enters_once_and_one_without_tasks_never)
{
    sn_pool *one = make_pool(1), *two = make_pool(2);
    sn_pool *const pools[] = {NULL, one, two};
    for (size_t i = 0; i < 3; i++) {
        visits v;
        visits_init(&v, pools[i], 0);
        sn_pool_run_hooked(pools[i], 0, visit, &v, &v.hook);
        CHECK_EQ(v.entered + v.left, 0);
        sn_pool_run_hooked(pools[i], pools[i] == two ? 1 : 9, visit, &v, &v.hook);
        CHECK_EQ(v.wrong, 0);
        CHECK_EQ(v.workers, 1);
        CHECK_EQ(v.entered, 1);
        CHECK_EQ(v.left, 1);
    }
    sn_pool_free(one);
    sn_pool_free(two);
}

static void nothing(void *arg, size_t task, int worker)
{
    (void)arg, (void)task, (void)worker;
}

/* An inner region in each task: without a hook, or with that of `inner`. */
typedef struct nesting {
    visits outer, inner;
    sn_pool *pool; /* of the inner regions */
    bool hooked;
} nesting;

static void nest_hooked(void *arg, size_t task, int worker)
{
    nesting *n = arg;
    visit(&n->outer, task, worker);
    if (n->hooked)
        sn_pool_run_hooked(n->pool, 4, visit, &n->inner, &n->inner.hook);
    else
        sn_pool_run(n->pool, 4, nothing, NULL);
    if (state != &n->outer)
        atomic_store(&n->outer.wrong, 4);
}

/* Outer regions on a pool or on the caller alone, inner ones on the same pool, another, or none. */
static void check_nesting(bool hooked)
{
    enum { OUTER = 20 };
    sn_pool *pool = make_pool(2), *other = make_pool(2);
    sn_pool *const pools[][2] = {
        {pool, pool}, {pool, NULL}, {pool, other}, {NULL, pool}, {NULL, NULL}};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        nesting n = {.pool = pools[i][1], .hooked = hooked};
        visits_init(&n.outer, pools[i][0], 0);
        visits_init(&n.inner, pools[i][1], 0);
        sn_pool_run_hooked(pools[i][0], OUTER, nest_hooked, &n, &n.outer.hook);
        const int threads = __builtin_popcount((unsigned)n.outer.workers);
        CHECK_EQ(n.outer.wrong, 0);
        CHECK_EQ(n.inner.wrong, 0);
        CHECK_EQ(n.outer.left, n.outer.entered);
        CHECK_EQ(n.inner.left, n.inner.entered);
        if (hooked) {
            /* once per inner region that this thread had a task of, and again behind it */
            CHECK(n.outer.entered >= threads && n.outer.entered <= threads + OUTER);
            CHECK(n.inner.entered >= OUTER);
        } else {
            CHECK_EQ(n.outer.entered, threads);
            CHECK_EQ(n.inner.entered, 0);
        }
        CHECK(state == NULL);
    }
    sn_pool_free(pool);
    sn_pool_free(other);
}

TEST(nested_regions_without_a_hook_leave_the_outer_state_alone)
{
    check_nesting(false);
}

TEST(nested_regions_with_a_hook_give_the_outer_state_back)
{
    check_nesting(true);
}

static void cancelled(void *arg, size_t task, int worker)
{
    visits *v = arg;
    if (task % 3 == 1)
        return; /* as a task does that finds its run cancelled */
    visit(v, task, worker);
}

TEST(regions_whose_tasks_give_up_are_left_too)
{
    sn_pool *pool = make_pool(3);
    for (int round = 0; round < 100; round++) {
        visits v;
        visits_init(&v, pool, 0);
        sn_pool_run_hooked(pool, 12, cancelled, &v, &v.hook);
        CHECK_EQ(v.wrong, 0);
        CHECK(v.entered >= 1);
        CHECK_EQ(v.left, v.entered);
    }
    sn_pool_free(pool);
}

static void *visit_often(void *arg)
{
    for (int i = 0; i < 300; i++) {
        visits v;
        visits_init(&v, arg, 0);
        sn_pool_run_hooked(arg, 16, visit, &v, i % 3 ? &v.hook : NULL);
        const int want = i % 3 ? __builtin_popcount((unsigned)v.workers) : 0;
        /* without the hook the tasks miss the state: 3 */
        if (v.wrong != (i % 3 ? 0 : 3) || v.entered != want || v.left != want || state)
            return arg;
    }
    return NULL;
}

TEST(callers_on_many_threads_have_hooks_of_their_own)
{
    sn_pool *pool = make_pool(3);
    pthread_t threads[4];
    void *wrong[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, visit_often, pool) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &wrong[i]);
    for (int i = 0; i < 4; i++)
        CHECK(wrong[i] == NULL);
    sn_pool_free(pool);
}

/* ------------------------------------------------------------------ many threads */
TEST(many_threads_lose_no_task_however_few_or_many_there_are)
{
    enum { N = 3000 };
    static unsigned char hits[N];
    static const int sizes[] = {16, 17, 64, 100, 128, 200};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        sn_pool *pool = make_pool(sizes[k]);
        CHECK(pool != NULL);
        counts c = {.max_worker = sizes[k] - 1, .hits = hits};
        for (size_t n = 0; n < N; n += 1 + n / 5) {
            memset(hits, 0, sizeof hits);
            sn_pool_run(pool, n, count, &c);
            for (size_t i = 0; i < N; i++)
                CHECK_MSG(hits[i] == (i < n), "%d threads, %zu tasks, task %zu ran %d times",
                          sizes[k], n, i, hits[i]);
        }
        CHECK(!c.bad_worker);
        sn_pool_free(pool);
        CHECK_EQ(allocator.live_bytes, 0);
    }
}

TEST(short_regions_of_changing_size_on_64_and_128_threads)
{
    static const size_t sizes[] = {2, 7, 9, 63, 64, 65, 128, 129, 500};
    static unsigned char hits[500];
    for (int threads = 64; threads <= 128; threads += 64) {
        sn_pool *pool = make_pool(threads);
        counts c = {.max_worker = threads - 1, .hits = hits};
        for (int region = 0; region < 1500; region++) {
            const size_t n = sizes[test_rand() % (sizeof sizes / sizeof *sizes)];
            memset(hits, 0, sizeof hits);
            sn_pool_run(pool, n, count, &c);
            for (size_t i = 0; i < sizeof hits; i++)
                CHECK_EQ(hits[i], i < n);
        }
        CHECK(!c.bad_worker);
        sn_pool_free(pool);
    }
}

typedef struct everybody {
    _Atomic int arrived;
    int wanted;
} everybody;

static void wait_for_all(void *arg, size_t task, int worker)
{
    everybody *e = arg;
    (void)task, (void)worker;
    atomic_fetch_add(&e->arrived, 1);
    while (atomic_load(&e->arrived) < e->wanted)
        sched_yield();
}

TEST(every_one_of_64_threads_comes_where_each_has_a_task)
{
    sn_pool *pool = make_pool(64);
    for (int round = 0; round < 3; round++) {
        everybody all = {.wanted = 64};
        sn_pool_run(pool, 64, wait_for_all, &all); /* returns only if all came */
        CHECK_EQ(all.arrived, 64);
        everybody some = {.wanted = 20}; /* and where fewer are needed, so many do */
        sn_pool_run(pool, 20, wait_for_all, &some);
        CHECK_EQ(some.arrived, 20);
    }
    sn_pool_free(pool);
}

TEST(a_forked_child_starts_64_workers_of_its_own)
{
#if defined(__SANITIZE_THREAD__)
    SKIP_TEST("ThreadSanitizer ends a forked child that starts threads");
#endif
    if (getenv("SONDE_EMULATED"))
        SKIP_TEST("an emulator cannot fork a process with threads");
    sn_pool *pool = make_pool(64);
    everybody all = {.wanted = 64};
    sn_pool_run(pool, 64, wait_for_all, &all);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        everybody own = {.wanted = 64};
        sn_pool_run(pool, 64, wait_for_all, &own);
        sn_pool_free(pool);
        _exit(atomic_load(&own.arrived) == 64 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    sn_pool_free(pool);
}

/* ------------------------------------------------------------------ seats */
typedef struct places {
    _Atomic int arrived;
    sn_id_set of[2]; /* by worker */
} places;

static void note_place(void *arg, size_t task, int worker)
{
    places *p = arg;
    (void)task;
    if (!sn_affinity_get(&p->of[worker]))
        memset(&p->of[worker], 0, sizeof p->of[worker]);
    atomic_fetch_add(&p->arrived, 1);
    while (atomic_load(&p->arrived) < 2)
        sched_yield();
}

/* A seat for each of two threads: the first and the last CPU that this thread may use. */
static bool two_seats(sn_seats *s, sn_seat seat[2], int cpus[2], sn_id_set *own)
{
    if (!sn_affinity_get(own))
        return false;
    cpus[0] = cpus[1] = sn_id_set_next(own, 0);
    for (int id = cpus[0]; id >= 0; id = sn_id_set_next(own, id + 1))
        cpus[1] = id;
    seat[0] = (sn_seat){0, 1};
    seat[1] = (sn_seat){1, 2};
    *s = (sn_seats){.n = 2, .seat = seat, .cpus = cpus, .n_cpus = 2};
    sn_id_set_add(&s->all, cpus[0]);
    sn_id_set_add(&s->all, cpus[1]);
    return true;
}

TEST(workers_take_their_seats_and_the_caller_stays_where_it_is)
{
    sn_seats seats;
    sn_seat seat[2];
    sn_id_set own, now;
    int cpus[2];
    sn_pool *pool;
    CHECK(two_seats(&seats, seat, cpus, &own));
    sn_allocator_init_system(&allocator);
    CHECK_EQ(sn_pool_create_seated(&pool, &seats, 2, &allocator, NULL), SONDE_OK);
    places p = {0};
    sn_pool_run(pool, 2, note_place, &p);
    CHECK(memcmp(&p.of[0], &own, sizeof own) == 0);
    CHECK_EQ(sn_id_set_count(&p.of[1]), 1);
    CHECK(sn_id_set_has(&p.of[1], cpus[1]));
    CHECK(sn_affinity_get(&now) && memcmp(&now, &own, sizeof own) == 0);
    sn_pool_free(pool);
}

TEST(workers_of_another_pool_do_not_inherit_the_seat_of_their_caller)
{
    sn_seats seats;
    sn_seat seat[2];
    sn_id_set own;
    sn_sitting s;
    int cpus[2];
    CHECK(two_seats(&seats, seat, cpus, &own));
    if (cpus[0] == cpus[1])
        SKIP_TEST("this process may use one CPU only");
    seats.all = (sn_id_set){{0}}; /* so that whoever may use just these two sits down, too */
    sn_id_set_add(&seats.all, cpus[0]);
    sn_pool *pool = make_pool(2);
    CHECK(sn_sit(&s, &seats, 0));
    places p = {0};
    sn_pool_run(pool, 2, note_place, &p);
    sn_stand_up(&s);
    CHECK_EQ(sn_id_set_count(&p.of[0]), 1);
    CHECK(memcmp(&p.of[1], &own, sizeof own) == 0);
    sn_pool_free(pool);
}

TEST(seats_that_are_refused_are_done_without)
{
    int cpus[2] = {SN_ID_LIMIT - 2, SN_ID_LIMIT - 1};
    sn_seat seat[2] = {{0, 1}, {1, 2}};
    const sn_seats seats = {.n = 2, .seat = seat, .cpus = cpus, .n_cpus = 2};
    sn_id_set own;
    sn_pool *pool;
    CHECK(sn_affinity_get(&own));
    sn_allocator_init_system(&allocator);
    CHECK_EQ(sn_pool_create_seated(&pool, &seats, 2, &allocator, NULL), SONDE_OK);
    places p = {0};
    sn_pool_run(pool, 2, note_place, &p);
    CHECK(memcmp(&p.of[1], &own, sizeof own) == 0);
    sn_pool_free(pool);
}

TEST_MAIN()
