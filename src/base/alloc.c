/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation with counting and a limit. The counters are statistics shared by threads: relaxed
 * atomics are enough, because nobody reads memory on the strength of them. The limit reserves first
 * and gives back on refusal, so that threads racing for the last bytes never exceed it together. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
/* From here on huge pages are asked for whatever they cost: runs gain from them. */
#define HUGE_ALWAYS_BYTES ((size_t)64 << 20)
/* Memory that is kept has its last huge page from here on. It costs up to 2 MiB, once; without it
 * a model of 360 KB of weights took 1.3 times as long as with it, or not, from process to process,
 * by where its small pages happened to lie. */
#define HUGE_TAIL_BYTES ((size_t)128 << 10)
/* Making one, zeroed, takes a third of a millisecond, and small pages in its place five times that;
 * but where memory is in pieces the kernel may search for longer than a small model takes to load.
 */
#define HUGE_DEAR_NS 1500000

#ifdef MADV_HUGEPAGE
/* How long this thread ran: waiting for a core says nothing about memory. */
static int64_t own_ns(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Only whole huge pages, so that a tail does not cost 2 MiB. Advice: a refusal changes nothing. The
 * first page shows what the others will cost. */
static void ask_for_huge_pages(sn_allocator *self, uint8_t *p, size_t bytes)
{
    const size_t whole = bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    const bool always = bytes >= HUGE_ALWAYS_BYTES;
    if (!always && atomic_load_explicit(&self->huge_is_dear, memory_order_relaxed))
        return;
    (void)madvise(p, whole, MADV_HUGEPAGE);
    if (always)
        return;
    const int64_t start = own_ns();
    *(volatile uint8_t *)p = 0;
    if (own_ns() - start < HUGE_DEAR_NS)
        return;
    atomic_store_explicit(&self->huge_is_dear, true, memory_order_relaxed);
    (void)madvise(p + HUGE_PAGE_BYTES, whole - HUGE_PAGE_BYTES, MADV_NOHUGEPAGE);
}
#endif

static void *system_alloc(sn_allocator *self, size_t bytes)
{
    const bool huge = bytes >= HUGE_PAGE_BYTES;
    void *p = NULL;
    if (bytes > PTRDIFF_MAX || posix_memalign(&p, huge ? HUGE_PAGE_BYTES : SN_ALIGN, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (huge)
        ask_for_huge_pages(self, p, bytes);
#else
    (void)self;
#endif
    return p;
}

static void *system_alloc_kept(sn_allocator *self, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const size_t tail = bytes % HUGE_PAGE_BYTES;
    if (tail >= HUGE_TAIL_BYTES && bytes <= PTRDIFF_MAX - HUGE_PAGE_BYTES)
        bytes += HUGE_PAGE_BYTES - tail;
#endif
    return system_alloc(self, bytes);
}

static void system_free(sn_allocator *self, void *ptr, size_t bytes)
{
    (void)self;
    (void)bytes;
    free(ptr);
}

void sn_allocator_init_system(sn_allocator *a)
{
    memset(a, 0, sizeof *a);
    a->alloc = system_alloc;
    a->alloc_kept = system_alloc_kept;
    a->free = system_free;
    atomic_init(&a->live_bytes, 0);
    atomic_init(&a->peak_bytes, 0);
}

/* Zero bytes are one byte everywhere, so that every block has an address of its own. */
static size_t real_bytes(size_t bytes)
{
    return bytes ? bytes : 1;
}

/* Why the last refusal of this thread came, as errno would say it: the limit, or 0. */
static _Thread_local size_t refused_by_limit;

size_t sn_alloc_limit_reached(void)
{
    return refused_by_limit;
}

static bool reserve(sn_allocator *a, size_t bytes)
{
    size_t live = atomic_fetch_add_explicit(&a->live_bytes, bytes, memory_order_relaxed);
    size_t total;
    if (!sn_size_add(live, bytes, &total) || (a->limit_bytes && total > a->limit_bytes)) {
        atomic_fetch_sub_explicit(&a->live_bytes, bytes, memory_order_relaxed);
        refused_by_limit = a->limit_bytes;
        return false;
    }
    size_t peak = atomic_load_explicit(&a->peak_bytes, memory_order_relaxed);
    while (total > peak &&
           !atomic_compare_exchange_weak_explicit(&a->peak_bytes, &peak, total,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return true;
}

typedef void *alloc_fn(sn_allocator *self, size_t bytes);

static void *alloc_by(sn_allocator *a, alloc_fn *fn, size_t bytes)
{
    bytes = real_bytes(bytes);
    if (!reserve(a, bytes))
        return NULL;
    void *p = fn(a, bytes);
    if (!p) {
        atomic_fetch_sub_explicit(&a->live_bytes, bytes, memory_order_relaxed);
        refused_by_limit = 0;
    }
    return p;
}

void *sn_alloc(sn_allocator *a, size_t bytes)
{
    return alloc_by(a, a->alloc, bytes);
}

void *sn_alloc_kept(sn_allocator *a, size_t bytes)
{
    return alloc_by(a, a->alloc_kept ? a->alloc_kept : a->alloc, bytes);
}

void *sn_alloc_zero(sn_allocator *a, size_t bytes)
{
    void *p = sn_alloc(a, bytes);
    if (p)
        memset(p, 0, real_bytes(bytes));
    return p;
}

void *sn_realloc(sn_allocator *a, void *ptr, size_t old_bytes, size_t new_bytes)
{
    void *p = sn_alloc(a, new_bytes);
    if (p && ptr) {
        memcpy(p, ptr, old_bytes < new_bytes ? old_bytes : new_bytes);
        sn_free(a, ptr, old_bytes);
    }
    return p;
}

void sn_free(sn_allocator *a, void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    bytes = real_bytes(bytes);
    a->free(a, ptr, bytes);
    atomic_fetch_sub_explicit(&a->live_bytes, bytes, memory_order_relaxed);
}
