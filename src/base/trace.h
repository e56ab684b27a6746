/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: rings of opaque fixed-size records, one ring per (recorder, thread). A ring's
 * memory is reserved at a thread's first record and touched only as it fills; pushing never blocks;
 * an overfull ring drops the newest and counts.
 * The recorder knows no names: `table` and `index` are ids that whoever recorded can explain.
 * Rings outlive their threads. They are read after recording has stopped, or drained meanwhile:
 * who drains moves `tail` on, and the owner goes on in the freed places. Between two runs, never
 * inside one, a thread gives a drainer that is behind some time. */
#ifndef SN_BASE_TRACE_H
#define SN_BASE_TRACE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"

typedef enum sn_trace_kind {
    SN_TRACE_STEP = 1,   /* table = binding id, index = step */
    SN_TRACE_RUN = 2,    /* one inference or one body run; table = binding id, index = number of
                            the session among those that run side by side */
    SN_TRACE_EXEC = 3,   /* executor work (load, parse, pass, pack, bind, …); index = name id */
    SN_TRACE_SLICE = 4,  /* a worker's share of a parallel region; index = worker, parent = the
                            thread_id of who called for it */
    SN_TRACE_USER = 5,   /* a labelled scope; index = name id */
    SN_TRACE_ALLOC = 6,  /* time spent allocating and releasing; index = step, or SN_TRACE_NONE for
                            a run's outputs: its number = bytes the allocator holds after that */
    SN_TRACE_MEMORY = 7, /* after a step: its number = bytes the allocator holds; t0 = t1 */
    SN_TRACE_COUNT = 8,  /* after a step: its number = what one hardware counter (flags >>
                            SN_TRACE_HW_SHIFT) counted in it; t0 = t1 */
    SN_TRACE_CALLER = 9  /* of a run: a part of the caller's trace (flags >> SN_TRACE_PART_SHIFT):
                            0 and 1: the number is half of the trace id; 2: of the span id, index =
                            its flags; t0 = t1 */
} sn_trace_kind;

#define SN_TRACE_NONE UINT32_MAX

typedef struct sn_trace_rec {
    uint64_t t0, t1; /* ticks */
    uint32_t table, index;
    uint32_t run;          /* id of the inference or body run it belongs to; 0 = none */
    uint32_t parent;       /* RUN: the run that called this body, 0 for a top-level run */
    uint32_t parent_index; /* RUN of a body: step of the parent run */
    uint16_t kind;         /* sn_trace_kind */
    uint16_t flags;        /* SN_TRACE_WARMUP and so on */
} sn_trace_rec;

_Static_assert(sizeof(sn_trace_rec) == 40, "a ring's memory is counted in records of 40 bytes");

/* The 64-bit number of an ALLOC, MEMORY, COUNT or CALLER record, which has no parent. */
static inline void sn_trace_set_number(sn_trace_rec *r, uint64_t number)
{
    r->parent = (uint32_t)number;
    r->parent_index = (uint32_t)(number >> 32);
}
static inline uint64_t sn_trace_number(const sn_trace_rec *r)
{
    return (uint64_t)r->parent_index << 32 | r->parent;
}

enum {
    SN_TRACE_WARMUP = 1,
    SN_TRACE_BOUND = 2,    /* RUN, STEP: this run made the binding it runs on */
    SN_TRACE_PARTED = 4,   /* USER: the name is "name<1f>category<1f>text" */
    SN_TRACE_CUT = 8,      /* RUN: cancelled */
    SN_TRACE_SAMPLED = 16, /* RUN: chosen by sampling (records/sampler.h) */
    SN_TRACE_HW_SHIFT = 8,
    SN_TRACE_PART_SHIFT = 8
};

typedef struct sn_trace_ring {
    sn_trace_rec *recs;
    size_t cap;          /* a power of two; record k is recs[k & (cap - 1)] */
    _Atomic size_t n;    /* records pushed; written by the owner thread only */
    size_t limit;        /* the owner's: tail + cap when it last looked */
    _Atomic size_t tail; /* records before this one are drained */
    _Atomic size_t dropped;
    size_t gave_up;     /* tail when a drainer was last waited for in vain */
    uint32_t thread_id; /* 1, 2, … in the order of first records */
    uint64_t owner;     /* the thread's number in this process, never reused */
    long os_tid;
    char thread_name[32];
    struct sn_trace_ring *next;
} sn_trace_ring;

typedef struct sn_trace_drain { /* between those who record and those who drain */
    _Atomic int readers;        /* that drain now */
    pthread_mutex_t lock;
    pthread_cond_t wake, freed;
    unsigned hurries; /* times somebody asked for room */
} sn_trace_drain;

typedef struct sn_trace {
    sn_allocator *alloc;
    _Atomic int level; /* 0 off, 1 operators, 2 + executor, 3 + worker slices */
    _Atomic uint32_t next_run;
    _Atomic(sn_trace_ring *) rings;         /* push-only list */
    size_t ring_cap;                        /* records per thread, a power of two */
    size_t reserved_cap;                    /* that address space is reserved for */
    _Atomic bool memory;                    /* MEMORY records are wanted */
    _Atomic(struct sn_counters *) counters; /* COUNT records are wanted, of these; NULL: none */
    sn_trace_drain drain;
    uint64_t id; /* never reused, so a thread's cached ring cannot be stale */
    uint64_t start_ticks;
    _Atomic double record_ns; /* measured cost of recording one step */
    struct sn_trace_names *names;
} sn_trace;

/* ring_cap 0: about a million records per thread; others are rounded up to a power of two. */
sonde_status sn_trace_create(sn_trace **trace, sn_allocator *alloc, size_t ring_cap,
                             sonde_error *err);
void sn_trace_free(sn_trace *t);

/* The calling thread's ring, made at first use; NULL when out of memory (records are then lost). */
sn_trace_ring *sn_trace_ring_get(sn_trace *t);

/* The place of the next record, or NULL when the ring is full, which counts; sn_trace_commit makes
 * it a record. In two parts so that a record is written where it stays: a copy from elsewhere would
 * be read before its parts have arrived there, which costs more than all the rest. */
static inline sn_trace_rec *sn_trace_place(sn_trace_ring *r)
{
    const size_t n = atomic_load_explicit(&r->n, memory_order_relaxed);
    if (n >= r->limit) {
        r->limit = atomic_load_explicit(&r->tail, memory_order_acquire) + r->cap;
        if (n >= r->limit) {
            atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
            return NULL;
        }
    }
    return &r->recs[n & (r->cap - 1)];
}

static inline void sn_trace_commit(sn_trace_ring *r)
{
    const size_t n = atomic_load_explicit(&r->n, memory_order_relaxed);
    atomic_store_explicit(&r->n, n + 1, memory_order_release);
}

static inline void sn_trace_push(sn_trace_ring *r, const sn_trace_rec *rec)
{
    sn_trace_rec *place = sn_trace_place(r);
    if (place) {
        *place = *rec;
        sn_trace_commit(r);
    }
}

/* True when records of `level` are wanted now. */
static inline bool sn_trace_on(const sn_trace *t, int level)
{
    return atomic_load_explicit(&((sn_trace *)(uintptr_t)t)->level, memory_order_relaxed) >= level;
}

/* Id of a span name (EXEC, USER): interned, copied, thread-safe; 0 when out of memory. Ids count
 * from 1. sn_trace_name_text gives the text back (valid while the recorder lives), "" for other
 * ids. After 65,536 names further ones lose what follows their last separator. */
#define SN_TRACE_SEPARATOR 0x1f
uint32_t sn_trace_name(sn_trace *t, const char *name);
const char *sn_trace_name_text(sn_trace *t, uint32_t id);

/* One executor span (level 2). `detail` may be NULL; shown after the name as "name: detail". */
static inline uint64_t sn_span_begin(const sn_trace *t)
{
    return sn_trace_on(t, 2) ? sn_ticks() : 0;
}
void sn_span_end(sn_trace *t, uint64_t begin, const char *name, const char *detail);

/* Forgets all records; only while nothing records and nobody reads. */
void sn_trace_clear(sn_trace *t);
/* Frees the places of records that ended before `before`, but for the latest of them in each ring:
 * who reads backwards from the newest stops there. Also while others record, or read what is newer;
 * not while another moves tails. */
void sn_trace_forget(sn_trace *t, uint64_t before);
/* Rings hold at most `cap` records from now on (rounded up to a power of two, never more than at
 * creation); forgets all records, so the same holds. */
void sn_trace_set_cap(sn_trace *t, size_t cap);

/* ---- draining ---- */
/* One more, or one fewer, who moves the rings' tails on. */
void sn_trace_drain_begin(sn_trace *t);
void sn_trace_drain_end(sn_trace *t);
/* The drainer's pause: over after `ns`, when somebody needs room, or when *stop is true and
 * sn_trace_drain_hurry was called after that. `hurries` is the drainer's own note, 0 at first:
 * who asked while it was at work is not forgotten. */
void sn_trace_drain_wait(sn_trace *t, uint64_t ns, const _Atomic bool *stop, unsigned *hurries);
void sn_trace_drain_hurry(sn_trace *t);
/* Tails have been moved. */
void sn_trace_drained(sn_trace *t);
/* While someone drains: waits until no ring is more than half full. A drainer that frees nothing
 * for a second (a slow disk, other readers) is not waited for again until it does. */
void sn_trace_make_room(sn_trace *t);
/* In a forked child, where nobody drains. */
void sn_trace_after_fork(sn_trace *t);
/* Around a fork, so that the child finds the names whole; unlocked in parent and child. */
void sn_trace_lock_names(sn_trace *t);
void sn_trace_unlock_names(sn_trace *t);

/* Measures what recording one step costs on this machine, into t->record_ns. */
void sn_trace_measure_cost(sn_trace *t);

#endif
