/* SPDX-License-Identifier: Apache-2.0 */
/* A thread finds its ring through a small thread-local cache keyed by the recorder's id, which is
 * never reused; when the cache misses, through the recorder's list, by the thread's own number
 * (never reused either, unlike the kernel's thread ids). Only a thread's first record allocates. */
#include "base/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#define DEFAULT_RING_CAP ((size_t)1 << 20)
/* Names are kept for good. A program that makes up new ones for ever is answered with shorter ones
 * after so many, so that its memory ends too. */
enum { MOST_NAMES = 1 << 16, MOST_SHORT_NAMES = 1 << 12 };

/* Interned span names; texts lie in the arena and never move. */
typedef struct sn_trace_names {
    pthread_mutex_t lock;
    sn_arena arena;
    sn_map ids; /* text -> id as a pointer-sized number */
    SN_VEC(const char *) texts;
} sn_trace_names;

/* Numbers handed out for the life of the process; 0 is never one of them. */
static _Atomic uint64_t next_trace_id = 1, next_thread_id = 1;

enum { CACHE_SLOTS = 4 };
static _Thread_local struct {
    uint64_t thread;
    unsigned turn;
    struct {
        uint64_t trace;
        sn_trace_ring *ring;
    } slots[CACHE_SLOTS];
} cache;

static size_t power_of_two(size_t n)
{
    size_t p = 1;
    while (p < n && p <= SIZE_MAX / 4)
        p *= 2;
    return p;
}

static void init_drain(sn_trace_drain *d)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->wake, &monotonic);
    pthread_cond_init(&d->freed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&d->lock, NULL);
    atomic_init(&d->readers, 0);
}

sonde_status sn_trace_create(sn_trace **trace, sn_allocator *alloc, size_t ring_cap,
                             sonde_error *err)
{
    *trace = NULL;
    sn_trace *t = sn_alloc_zero(alloc, sizeof *t);
    sn_trace_names *names = sn_alloc_zero(alloc, sizeof *names);
    if (!t || !names) {
        sn_free(alloc, t, sizeof *t);
        sn_free(alloc, names, sizeof *names);
        return sn_fail_memory(err, sizeof *t + sizeof *names);
    }
    pthread_mutex_init(&names->lock, NULL);
    sn_arena_init(&names->arena, alloc);
    sn_map_init(&names->ids, alloc);
    t->alloc = alloc;
    atomic_init(&t->level, 0);
    atomic_init(&t->next_run, 1);
    atomic_init(&t->rings, NULL);
    init_drain(&t->drain);
    t->ring_cap = power_of_two(ring_cap ? ring_cap : DEFAULT_RING_CAP);
    t->reserved_cap = t->ring_cap;
    t->id = atomic_fetch_add_explicit(&next_trace_id, 1, memory_order_relaxed);
    t->start_ticks = sn_ticks();
    t->names = names;
    *trace = t;
    return SONDE_OK;
}

void sn_trace_free(sn_trace *t)
{
    if (!t)
        return;
    for (sn_trace_ring *r = atomic_load(&t->rings); r;) {
        sn_trace_ring *next = r->next;
        munmap(r->recs, t->reserved_cap * sizeof *r->recs);
        sn_free(t->alloc, r, sizeof *r);
        r = next;
    }
    sn_vec_free(&t->names->texts, t->alloc);
    sn_map_free(&t->names->ids);
    sn_arena_free(&t->names->arena);
    pthread_mutex_destroy(&t->names->lock);
    pthread_mutex_destroy(&t->drain.lock);
    pthread_cond_destroy(&t->drain.wake);
    pthread_cond_destroy(&t->drain.freed);
    sn_free(t->alloc, t->names, sizeof *t->names);
    sn_free(t->alloc, t, sizeof *t);
}

/* Address space for a full ring; the kernel gives pages as records arrive. */
static sn_trace_ring *ring_create(sn_trace *t)
{
    size_t bytes;
    if (!sn_size_mul(t->reserved_cap, sizeof(sn_trace_rec), &bytes))
        return NULL;
    sn_trace_ring *r = sn_alloc_zero(t->alloc, sizeof *r);
    if (!r)
        return NULL;
    void *recs = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (recs == MAP_FAILED) {
        sn_free(t->alloc, r, sizeof *r);
        return NULL;
    }
    r->recs = recs;
    r->cap = r->limit = t->ring_cap;
    r->gave_up = SIZE_MAX;
    atomic_init(&r->n, 0);
    atomic_init(&r->tail, 0);
    atomic_init(&r->dropped, 0);
    r->owner = cache.thread;
    r->os_tid = syscall(SYS_gettid);
    if (pthread_getname_np(pthread_self(), r->thread_name, sizeof r->thread_name) != 0)
        snprintf(r->thread_name, sizeof r->thread_name, "thread");
    sn_trace_ring *head = atomic_load_explicit(&t->rings, memory_order_acquire);
    do {
        r->next = head;
        r->thread_id = head ? head->thread_id + 1 : 1;
    } while (!atomic_compare_exchange_weak_explicit(&t->rings, &head, r, memory_order_acq_rel,
                                                    memory_order_acquire));
    return r;
}

sn_trace_ring *sn_trace_ring_get(sn_trace *t)
{
    for (int i = 0; i < CACHE_SLOTS; i++)
        if (cache.slots[i].trace == t->id)
            return cache.slots[i].ring;
    if (cache.thread == 0)
        cache.thread = atomic_fetch_add_explicit(&next_thread_id, 1, memory_order_relaxed);
    sn_trace_ring *r = atomic_load_explicit(&t->rings, memory_order_acquire);
    while (r && r->owner != cache.thread)
        r = r->next;
    if (!r)
        r = ring_create(t);
    if (r) {
        unsigned slot = cache.turn++ % CACHE_SLOTS;
        cache.slots[slot].trace = t->id;
        cache.slots[slot].ring = r;
    }
    return r;
}

/* With the lock held. */
static uint32_t intern(sn_trace *t, const char *name, size_t most)
{
    sn_trace_names *names = t->names;
    uintptr_t id = (uintptr_t)sn_map_get(&names->ids, name);
    if (id)
        return (uint32_t)id;
    if (names->texts.n >= most || !sn_vec_reserve(&names->texts, t->alloc, 1))
        return 0;
    const char *copy = sn_arena_strdup(&names->arena, name);
    id = names->texts.n + 1;
    if (!copy || !sn_map_put(&names->ids, copy, (void *)id, NULL))
        return 0;
    names->texts.data[names->texts.n++] = copy;
    return (uint32_t)id;
}

/* A name without what follows its last separator, cut where it is long. */
static uint32_t intern_shorter(sn_trace *t, const char *name)
{
    char text[128];
    const char *end = strrchr(name, SN_TRACE_SEPARATOR);
    snprintf(text, sizeof text, "%.*s", end ? (int)(end + 1 - name) : 0, name);
    const uint32_t id = end ? intern(t, text, MOST_NAMES + MOST_SHORT_NAMES) : 0;
    return id ? id : intern(t, "\xE2\x80\xA6", MOST_NAMES + MOST_SHORT_NAMES + 1);
}

uint32_t sn_trace_name(sn_trace *t, const char *name)
{
    pthread_mutex_lock(&t->names->lock);
    uint32_t id = intern(t, name, MOST_NAMES);
    if (!id)
        id = intern_shorter(t, name);
    pthread_mutex_unlock(&t->names->lock);
    return id;
}

const char *sn_trace_name_text(sn_trace *t, uint32_t id)
{
    pthread_mutex_lock(&t->names->lock);
    const char *text = id >= 1 && id <= t->names->texts.n ? t->names->texts.data[id - 1] : "";
    pthread_mutex_unlock(&t->names->lock);
    return text;
}

void sn_span_end(sn_trace *t, uint64_t begin, const char *name, const char *detail)
{
    if (begin == 0 || !sn_trace_on(t, 2))
        return;
    sn_trace_rec rec = {
        .t0 = begin, .t1 = sn_ticks(), .table = SN_TRACE_NONE, .kind = SN_TRACE_EXEC};
    char text[256];
    if (detail) {
        snprintf(text, sizeof text, "%s: %s", name, detail);
        name = text;
    }
    rec.index = sn_trace_name(t, name);
    sn_trace_ring *r = sn_trace_ring_get(t);
    if (r)
        sn_trace_push(r, &rec);
}

void sn_trace_clear(sn_trace *t)
{
    /* Pages stay: whoever records next does not pay for them again. */
    for (sn_trace_ring *r = atomic_load(&t->rings); r; r = r->next) {
        r->limit = r->cap;
        r->gave_up = SIZE_MAX;
        atomic_store(&r->n, 0);
        atomic_store(&r->tail, 0);
        atomic_store(&r->dropped, 0);
    }
}

void sn_trace_forget(sn_trace *t, uint64_t before)
{
    for (sn_trace_ring *r = atomic_load(&t->rings); r; r = r->next) {
        const size_t n = atomic_load_explicit(&r->n, memory_order_acquire);
        size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
        while (n - tail > 1 && r->recs[(tail + 1) & (r->cap - 1)].t1 < before)
            tail++;
        atomic_store_explicit(&r->tail, tail, memory_order_release);
    }
}

void sn_trace_set_cap(sn_trace *t, size_t cap)
{
    cap = power_of_two(cap);
    t->ring_cap = cap < t->reserved_cap ? cap : t->reserved_cap;
    for (sn_trace_ring *r = atomic_load(&t->rings); r; r = r->next)
        r->cap = t->ring_cap;
    sn_trace_clear(t);
}

/* ------------------------------------------------------------------ draining */
static struct timespec in_ns(uint64_t ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    ns += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(ns / 1000000000u);
    at.tv_nsec = (long)(ns % 1000000000u);
    return at;
}

void sn_trace_drain_begin(sn_trace *t)
{
    atomic_fetch_add(&t->drain.readers, 1);
}

void sn_trace_drain_end(sn_trace *t)
{
    atomic_fetch_sub(&t->drain.readers, 1);
    sn_trace_drained(t); /* who waits looks again */
}

void sn_trace_drain_wait(sn_trace *t, uint64_t ns, const _Atomic bool *stop, unsigned *hurries)
{
    sn_trace_drain *d = &t->drain;
    const struct timespec until = in_ns(ns);
    pthread_mutex_lock(&d->lock);
    while (!atomic_load(stop) && d->hurries == *hurries &&
           pthread_cond_timedwait(&d->wake, &d->lock, &until) == 0)
        ;
    *hurries = d->hurries;
    pthread_mutex_unlock(&d->lock);
}

void sn_trace_drain_hurry(sn_trace *t)
{
    pthread_mutex_lock(&t->drain.lock);
    t->drain.hurries++;
    pthread_cond_broadcast(&t->drain.wake);
    pthread_mutex_unlock(&t->drain.lock);
}

void sn_trace_drained(sn_trace *t)
{
    pthread_mutex_lock(&t->drain.lock);
    pthread_cond_broadcast(&t->drain.freed);
    pthread_mutex_unlock(&t->drain.lock);
}

static bool crowded(const sn_trace_ring *r, size_t *tail)
{
    *tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    return atomic_load_explicit(&r->n, memory_order_acquire) - *tail > r->cap / 2;
}

/* With the lock held. */
static void wait_for_room(sn_trace *t, sn_trace_ring *r)
{
    sn_trace_drain *d = &t->drain;
    size_t tail, before = SIZE_MAX;
    struct timespec until = {0};
    while (crowded(r, &tail) && tail != r->gave_up && atomic_load(&d->readers) > 0) {
        if (tail != before)
            until = in_ns(1000000000);
        before = tail;
        d->hurries++;
        pthread_cond_broadcast(&d->wake);
        if (pthread_cond_timedwait(&d->freed, &d->lock, &until) != 0)
            r->gave_up = tail;
    }
}

void sn_trace_make_room(sn_trace *t)
{
    for (sn_trace_ring *r = atomic_load_explicit(&t->rings, memory_order_acquire); r; r = r->next) {
        size_t tail;
        if (!crowded(r, &tail))
            continue;
        pthread_mutex_lock(&t->drain.lock);
        wait_for_room(t, r);
        pthread_mutex_unlock(&t->drain.lock);
    }
}

/* ------------------------------------------------------------------ forks */
void sn_trace_after_fork(sn_trace *t)
{
    init_drain(&t->drain);
}

void sn_trace_lock_names(sn_trace *t)
{
    pthread_mutex_lock(&t->names->lock);
}

void sn_trace_unlock_names(sn_trace *t)
{
    pthread_mutex_unlock(&t->names->lock);
}

/* ------------------------------------------------------------------ own cost */
static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sn_trace_measure_cost(sn_trace *t)
{
    enum { RECORDS = 1024, BATCHES = 15 };
    sn_trace_ring scratch = {.cap = RECORDS, .limit = RECORDS};
    scratch.recs = sn_alloc_zero(t->alloc, RECORDS * sizeof(sn_trace_rec));
    if (!scratch.recs)
        return;
    double ns[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        atomic_store(&scratch.n, 0);
        uint64_t begin = sn_now_ns();
        for (uint32_t i = 0; i < RECORDS; i++) {
            uint64_t t0 = sn_ticks();
            sn_trace_rec rec = {
                .t0 = t0, .t1 = sn_ticks(), .index = i, .run = 1, .kind = SN_TRACE_STEP};
            sn_trace_push(&scratch, &rec);
        }
        ns[batch] = (double)(sn_now_ns() - begin) / (double)RECORDS;
    }
    /* The median: the first batches warm up, and an interruption spoils some. */
    qsort(ns, BATCHES, sizeof *ns, compare_doubles);
    t->record_ns = ns[BATCHES / 2];
    sn_free(t->alloc, scratch.recs, RECORDS * sizeof(sn_trace_rec));
}
