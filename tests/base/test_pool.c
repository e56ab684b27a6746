/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: every task once, nesting, many callers, slices, signals and forks. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST_MAIN()
