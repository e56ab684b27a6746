/* SPDX-License-Identifier: Apache-2.0 */
/* A parallel region, from both sides:
 *
 *     caller                                  worker
 *     take `busy`, write the job              sees `epoch` move (spinning, or woken from its futex)
 *     gate = OPEN, epoch++, wake sleepers     gate: OPEN + k  ->  OPEN + k + 1     (joins)
 *     takes tasks of its range, then others   takes tasks of its range, then others
 *     gate: clears OPEN, nobody joins now     gate: k -> k - 1                     (leaves)
 *     waits until gate counts nobody          …
 *     gives `busy` back
 *
 * A worker that wakes late finds the gate closed and goes back to waiting, so a short region never
 * waits for a sleeper to get up. Joining may happen in a later region than the one whose epoch was
 * seen: the gate, not the epoch, orders the worker's reads after the caller's writes of the job.
 * Busy pools turn away a second caller and nested calls alike: both run their tasks inline.
 *
 * Sixty workers at one gate would take turns at its cache line, twice in each region. So threads
 * are in groups of about eight, each with a line of its own that has all of this: epoch, gate and
 * job. The caller opens as many groups as there are tasks for, and leaves the others asleep. In
 * small pools there is one group. */
#include "base/pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/fpmode.h"
#include "base/thread.h"
#include "base/trace.h"

/* Longer than the gap between two parallel steps, short enough not to be noticed as load. */
enum { SPIN_NS = 40000 };

/* Threads of a group, while there are not more than 128. */
enum { GROUP_THREADS = 8, MAX_GROUPS = 16 };

/* Bits of the gate; the rest counts the workers inside. */
enum { GATE_OPEN = 1 << 30, GATE_CALLER_SLEEPS = 1 << 29, GATE_COUNT = GATE_CALLER_SLEEPS - 1 };

typedef struct worker {
    sn_pool *pool;
    pthread_t thread;
    int index;
    uint32_t seen_epoch;
} worker;

typedef struct job {
    sn_task_fn fn;
    void *arg;
    const sn_thread_hook *hook; /* NULL: none */
    size_t n;
    sn_trace *trace; /* where slices go, NULL = not recorded */
    uint32_t caller; /* its thread's number there, so that slices find the step they are of */
    uint32_t fp; /* the caller's floating-point mode: a result is the same whoever computes it */
} job;

/* What the workers of a group need to know of a region: one cache line, because each line that a
 * worker must fetch from the caller's core costs about 100 ns. */
typedef struct news {
    alignas(64) _Atomic uint32_t epoch; /* futex of sleeping workers */
    _Atomic uint32_t gate;              /* futex of a caller who waits long */
    _Atomic uint32_t sleepers;
    _Atomic bool stop;
    job job; /* written while the gate is closed and empty, read by those inside */
} news;
_Static_assert(sizeof(news) == 64, "a region's news take more than one cache line");

typedef struct range {
    alignas(64) _Atomic size_t next; /* the first task nobody took yet */
} range;

struct sn_pool {
    sn_allocator *alloc;
    const sn_seats *seats; /* NULL: threads sit nowhere in particular */
    int threads, ranges, groups;
    int started; /* workers that exist; changes under `busy` only */
    bool start_tried;
    unsigned spins; /* pauses before sleeping; 0 where threads outnumber cores */
    sn_trace *trace;
    worker *workers;         /* threads - 1 */
    sn_pool *before, *after; /* in the list of all */
    alignas(64) _Atomic bool busy;
    news news[MAX_GROUPS];
    range tasks[SN_POOL_RANGES]; /* apart from the news: everybody writes to them */
};

/* The pool for one of whose regions this thread called, and how many regions it had to run inline
 * because somebody else's was under way. */
static _Thread_local const sn_pool *called_for;
static _Thread_local uint64_t turned_away;
/* The hook that this thread has entered, NULL: none. */
static _Thread_local const sn_thread_hook *entered;

/* ------------------------------------------------------------------ forks */
/* All pools of the process, because a forked child has none of their threads. */
static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    sn_pool *first;
} pools = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
    pthread_mutex_lock(&pools.lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&pools.lock);
}

/* Forgets the workers; they are started anew when they are needed. */
static void after_fork_child(void)
{
    for (sn_pool *p = pools.first; p; p = p->after) {
        p->started = 0;
        p->start_tried = false;
        for (int g = 0; g < p->groups; g++) {
            atomic_store(&p->news[g].gate, 0);
            atomic_store(&p->news[g].sleepers, 0);
        }
        atomic_store(&p->busy, false);
    }
    pthread_mutex_unlock(&pools.lock);
}

static void hook(void)
{
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void sn_pool_hook_fork(void)
{
    (void)pthread_once(&pools.once, hook);
}

static void list_add(sn_pool *p)
{
    sn_pool_hook_fork();
    pthread_mutex_lock(&pools.lock);
    p->after = pools.first;
    if (p->after)
        p->after->before = p;
    pools.first = p;
    pthread_mutex_unlock(&pools.lock);
}

static void list_remove(sn_pool *p)
{
    pthread_mutex_lock(&pools.lock);
    if (p->after)
        p->after->before = p->before;
    *(p->before ? &p->before->after : &pools.first) = p->after;
    pthread_mutex_unlock(&pools.lock);
}

/* ------------------------------------------------------------------ waiting */
/* Sleeps while *word is `value`; may return early. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* How many pauses last SPIN_NS here. */
static unsigned measure_spins(void)
{
    enum { PAUSES = 256 };
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t begin = sn_now_ns();
        for (int k = 0; k < PAUSES; k++)
            sn_cpu_pause();
        uint64_t ns = sn_now_ns() - begin;
        if (ns < best_ns)
            best_ns = ns;
    }
    return (unsigned)((uint64_t)SPIN_NS * PAUSES / (best_ns ? best_ns : 1));
}

/* Where part k of n things begins, of `parts` nearly equal ones; k = parts gives n. */
static size_t part_start(size_t n, int parts, int k)
{
    const size_t each = n / (size_t)parts, rest = n % (size_t)parts, i = (size_t)k;
    return each * i + (i < rest ? i : rest);
}

static int group_of(const sn_pool *pool, int index)
{
    int g = 0;
    while (part_start((size_t)pool->threads, pool->groups, g + 1) <= (size_t)index)
        g++;
    return g;
}

/* How many groups a region of n tasks needs, so that each task may have a thread of its own. */
static int groups_for(const sn_pool *pool, size_t n)
{
    return n < (size_t)pool->threads ? group_of(pool, (int)n - 1) + 1 : pool->groups;
}

/* Threads of these groups. */
static int threads_of(const sn_pool *pool, int groups)
{
    return (int)part_start((size_t)pool->threads, pool->groups, groups);
}

/* Takes tasks from the returned one up to *end; none when they are equal. A thread begins with its
 * own range: steps that cut an image alike then find in its cache what it wrote in the step before.
 * Neighbours share what they read and fetch it for each other, so first long runs are taken, then
 * shorter and shorter ones, which leaves nobody waiting for a long last one. `threads`: those that
 * take part. */
static size_t take_run(sn_pool *pool, size_t n, int threads, int index, size_t *end)
{
    const int ranges = pool->ranges, home = index * ranges / threads;
    const size_t shares = 2 * (size_t)((threads + ranges - 1) / ranges);
    for (int i = 0; i < ranges; i++) {
        const int r = home + i < ranges ? home + i : home + i - ranges;
        const size_t stop = part_start(n, ranges, r + 1);
        _Atomic size_t *next = &pool->tasks[r].next;
        size_t at = atomic_load_explicit(next, memory_order_relaxed);
        while (at < stop) {
            *end = at + (stop - at > shares ? (stop - at) / shares : 1);
            if (atomic_compare_exchange_weak_explicit(next, &at, *end, memory_order_relaxed,
                                                      memory_order_relaxed))
                return at;
        }
    }
    return *end = n;
}

/* Puts the state of `hook` in the place of the one this thread has, which is returned. */
static const sn_thread_hook *enter_hook(const sn_thread_hook *hook)
{
    const sn_thread_hook *outer = entered;
    if (outer)
        outer->leave(outer->arg);
    hook->enter(hook->arg);
    entered = hook;
    return outer;
}

static void leave_hook(const sn_thread_hook *hook, const sn_thread_hook *outer)
{
    hook->leave(hook->arg);
    if (outer)
        outer->enter(outer->arg);
    entered = outer;
}

/* Works on the open job until no task is left, and leaves a slice when it got any. */
static void take_tasks(sn_pool *pool, const job *j, int index)
{
    const int threads = pool->groups > 1 ? threads_of(pool, groups_for(pool, j->n)) : pool->threads;
    size_t end, task = take_run(pool, j->n, threads, index, &end);
    if (task == end)
        return;
    uint64_t t0 = j->trace ? sn_ticks() : 0;
    const sn_thread_hook *outer = j->hook ? enter_hook(j->hook) : NULL;
    do {
        for (; task < end; task++)
            j->fn(j->arg, task, index);
        task = take_run(pool, j->n, threads, index, &end);
    } while (task < end);
    if (j->hook)
        leave_hook(j->hook, outer);
    if (!j->trace)
        return;
    sn_trace_rec rec = {.t0 = t0,
                        .t1 = sn_ticks(),
                        .table = SN_TRACE_NONE,
                        .index = (uint32_t)index,
                        .parent = j->caller,
                        .kind = SN_TRACE_SLICE};
    sn_trace_ring *ring = sn_trace_ring_get(j->trace);
    if (ring)
        sn_trace_push(ring, &rec);
}

/* Returns once `epoch` is no longer `seen`, with its new value. */
static uint32_t wait_epoch(const sn_pool *pool, news *n, uint32_t seen)
{
    bool slept = false;
    for (unsigned i = 0;; i++) {
        uint32_t epoch = atomic_load_explicit(&n->epoch, memory_order_acquire);
        if (epoch != seen) {
            if (slept && pool->groups > 1 && atomic_load(&n->sleepers))
                futex_wake(&n->epoch, INT_MAX); /* the caller woke one of each group */
            return epoch;
        }
        if (i < pool->spins) {
            sn_cpu_pause();
            continue;
        }
        /* The caller moves the epoch, then looks for sleepers; here it is the other way round, and
         * the kernel looks at the epoch once more: one of the two sees the other. */
        atomic_fetch_add(&n->sleepers, 1);
        futex_wait(&n->epoch, seen);
        atomic_fetch_sub(&n->sleepers, 1);
        slept = true;
    }
}

static bool join_region(news *n)
{
    uint32_t gate = atomic_load_explicit(&n->gate, memory_order_relaxed);
    while (gate & GATE_OPEN)
        if (atomic_compare_exchange_weak_explicit(&n->gate, &gate, gate + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void leave_region(news *n)
{
    uint32_t before = atomic_fetch_sub_explicit(&n->gate, 1, memory_order_release);
    if (before == (GATE_CALLER_SLEEPS | 1))
        futex_wake(&n->gate, 1);
}

static void take_seat(const sn_pool *pool, int index)
{
    sn_id_set cpus;
    if (!pool->seats || index >= pool->seats->n)
        return;
    sn_seats_cpus(pool->seats, index, &cpus);
    (void)sn_affinity_set(&cpus);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    sn_pool *pool = w->pool;
    news *n = &pool->news[group_of(pool, w->index)];
    char name[16];
    snprintf(name, sizeof name, "sonde-%d", w->index);
    pthread_setname_np(pthread_self(), name);
    take_seat(pool, w->index);
    for (uint32_t seen = w->seen_epoch;;) {
        seen = wait_epoch(pool, n, seen);
        if (atomic_load_explicit(&n->stop, memory_order_relaxed))
            return NULL;
        if (join_region(n)) {
            if (sn_fp_get() != n->job.fp)
                sn_fp_set(n->job.fp);
            take_tasks(pool, &n->job, w->index);
            leave_region(n);
        }
    }
}

/* Starts the workers once; those that cannot be had are done without. Under `busy`. */
static void start_workers(sn_pool *pool)
{
    pool->start_tried = true;
    /* Workers inherit the CPUs, but not the seat of a caller that sits for another pool. */
    sn_id_set seat;
    const sn_id_set *const own = pool->seats ? NULL : sn_sitting_before();
    const bool stands = own && sn_affinity_get(&seat) && sn_affinity_set(own);
    for (int i = 0; i < pool->threads - 1; i++) {
        worker *w = &pool->workers[i];
        *w = (worker){.pool = pool, .index = i + 1};
        w->seen_epoch = atomic_load(&pool->news[group_of(pool, w->index)].epoch);
        if (!sn_thread_start(&w->thread, worker_main, w))
            break;
        pool->started++;
    }
    if (stands)
        (void)sn_affinity_set(&seat);
}

sonde_status sn_pool_create(sn_pool **pool, int threads, sn_allocator *alloc, sonde_error *err)
{
    return sn_pool_create_seated(pool, NULL, threads, alloc, err);
}

sonde_status sn_pool_create_seated(sn_pool **pool, const sn_seats *seats, int threads,
                                   sn_allocator *alloc, sonde_error *err)
{
    *pool = NULL;
    if (threads < 1 || threads > SN_POOL_MOST)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a pool takes 1 to %d threads, not %d",
                       SN_POOL_MOST, threads);
    sn_pool *p = sn_alloc_zero(alloc, sizeof *p);
    if (!p)
        return sn_fail_memory(err, sizeof *p);
    p->alloc = alloc;
    p->seats = seats;
    p->threads = threads;
    p->ranges = threads < SN_POOL_RANGES ? threads : SN_POOL_RANGES;
    p->groups = (threads + GROUP_THREADS - 1) / GROUP_THREADS;
    p->groups = p->groups < MAX_GROUPS ? p->groups : MAX_GROUPS;
    if (threads > 1) {
        size_t bytes = (size_t)(threads - 1) * sizeof *p->workers;
        p->workers = sn_alloc_zero(alloc, bytes);
        if (!p->workers) {
            sn_free(alloc, p, sizeof *p);
            return sn_fail_memory(err, bytes);
        }
        if (threads <= sn_cpu_usable_cores(NULL) && (!seats || threads <= seats->n_cpus))
            p->spins = measure_spins();
    }
    list_add(p);
    *pool = p;
    return SONDE_OK;
}

void sn_pool_free(sn_pool *pool)
{
    if (!pool)
        return;
    for (int g = 0; g < pool->groups; g++) {
        news *n = &pool->news[g];
        atomic_store_explicit(&n->stop, true, memory_order_relaxed);
        atomic_fetch_add(&n->epoch, 1);
        futex_wake(&n->epoch, INT_MAX);
    }
    list_remove(pool);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    sn_free(pool->alloc, pool->workers, (size_t)(pool->threads - 1) * sizeof *pool->workers);
    sn_free(pool->alloc, pool, sizeof *pool);
}

int sn_pool_threads(const sn_pool *pool)
{
    return pool ? pool->threads : 1;
}

bool sn_pool_is_busy(const sn_pool *pool)
{
    return pool && atomic_load_explicit(&((sn_pool *)(uintptr_t)pool)->busy, memory_order_relaxed);
}

void sn_pool_set_trace(sn_pool *pool, sn_trace *trace)
{
    if (pool)
        pool->trace = trace;
}

static void run_inline(size_t n, sn_task_fn fn, void *arg, const sn_thread_hook *hook)
{
    if (n == 0)
        return;
    const sn_thread_hook *outer = hook ? enter_hook(hook) : NULL;
    for (size_t task = 0; task < n; task++)
        fn(arg, task, 0);
    if (hook)
        leave_hook(hook, outer);
}

/* Shows the groups what there is to do. Of the sleepers in several groups one of each is woken, and
 * wakes the others: waking one takes the caller a microsecond or more. */
static void begin_region(sn_pool *pool, const job *j, int groups)
{
    for (int g = 0; g < groups; g++) {
        news *n = &pool->news[g];
        n->job = *j;
        atomic_store_explicit(&n->gate, GATE_OPEN, memory_order_release);
        atomic_fetch_add(&n->epoch, 1);
    }
    for (int g = 0; g < groups; g++)
        if (atomic_load(&pool->news[g].sleepers))
            futex_wake(&pool->news[g].epoch, pool->groups > 1     ? 1
                                             : j->n - 1 < INT_MAX ? (int)(j->n - 1)
                                                                  : INT_MAX);
}

/* Waits until nobody is inside a gate that is closed. */
static void wait_empty(const sn_pool *pool, news *n)
{
    uint32_t gate = atomic_load_explicit(&n->gate, memory_order_acquire);
    for (unsigned i = 0; (gate & GATE_COUNT) && i < pool->spins; i++) {
        sn_cpu_pause();
        gate = atomic_load_explicit(&n->gate, memory_order_acquire);
    }
    if ((gate & GATE_COUNT) == 0)
        return;
    gate = atomic_fetch_or_explicit(&n->gate, GATE_CALLER_SLEEPS, memory_order_acquire) |
           GATE_CALLER_SLEEPS;
    while (gate & GATE_COUNT) {
        futex_wait(&n->gate, gate);
        gate = atomic_load_explicit(&n->gate, memory_order_acquire);
    }
}

/* Closes the gates and waits for those inside. */
static void finish_region(sn_pool *pool, int groups)
{
    for (int g = 0; g < groups; g++)
        atomic_fetch_and_explicit(&pool->news[g].gate, ~(uint32_t)GATE_OPEN, memory_order_acq_rel);
    for (int g = 0; g < groups; g++)
        wait_empty(pool, &pool->news[g]);
}

uint64_t sn_pool_turned_away(void)
{
    return turned_away;
}

void sn_pool_run(sn_pool *pool, size_t n, sn_task_fn fn, void *arg)
{
    sn_pool_run_hooked(pool, n, fn, arg, NULL);
}

void sn_pool_run_hooked(sn_pool *pool, size_t n, sn_task_fn fn, void *arg,
                        const sn_thread_hook *hook)
{
    if (!pool || pool->threads == 1 || n < 2) {
        run_inline(n, fn, arg, hook);
        return;
    }
    if (atomic_load_explicit(&pool->busy, memory_order_relaxed) ||
        atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        turned_away += called_for != pool;
        run_inline(n, fn, arg, hook);
        return;
    }
    if (!pool->start_tried)
        start_workers(pool);
    if (pool->started == 0) {
        atomic_store_explicit(&pool->busy, false, memory_order_release);
        run_inline(n, fn, arg, hook);
        return;
    }
    job j = {.fn = fn, .arg = arg, .hook = hook, .n = n, .fp = sn_fp_get()};
#if SONDE_RECORDER
    if (pool->trace && sn_trace_on(pool->trace, 3)) {
        const sn_trace_ring *ring = sn_trace_ring_get(pool->trace);
        j.trace = pool->trace;
        j.caller = ring ? ring->thread_id : 0;
    }
#endif
    for (int r = 0; r < pool->ranges; r++)
        atomic_store_explicit(&pool->tasks[r].next, part_start(n, pool->ranges, r),
                              memory_order_relaxed);
    const int groups = pool->groups > 1 ? groups_for(pool, n) : 1;
    begin_region(pool, &j, groups);
    const sn_pool *outer = called_for;
    called_for = pool;
    take_tasks(pool, &j, 0);
    called_for = outer;
    finish_region(pool, groups);
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}
