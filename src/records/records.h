/* SPDX-License-Identifier: Apache-2.0 */
/* Who records, who reads records, and when they may be forgotten. A context has one recorder and
 * any number of observers: profilers, recordings, the environment's traces, and whoever makes a
 * profile just now. The recorder runs at the highest level that any of them asks for; records go
 * when none of them wants them any more. Nothing here knows who the observers are. */
#ifndef SN_RECORDS_RECORDS_H
#define SN_RECORDS_RECORDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/context.h"
#include "graph/model.h"
#include "profile/profile.h"
#include "records/machine.h"
#include "records/sampler.h"

#define SN_NO_RECORDS UINT64_MAX

/* Changed with the lock held; sn_records_set_level and sn_records_forget then do what follows. */
typedef struct sn_observer {
    int level;         /* that the recorder is to have for it now; 0: none */
    bool memory;       /* what is held after every step is recorded, too */
    bool ends_at_fork; /* it belongs to a thread that a forked child does not have */
    /* It wants one run of so many, recorded at level 1; 0: every run. And the share of the time
     * that recording may take then. */
    uint32_t sample_every;
    double max_overhead;
    uint64_t since; /* ticks: the earliest records it wants; SN_NO_RECORDS: it wants none */
    struct sn_observer *next;
} sn_observer;

typedef struct sn_known_model { /* a model that is loaded, and what its user calls it */
    const sn_model *model;
    const char *name;
    struct sn_known_model *next;
} sn_known_model;

typedef struct sn_stream sn_stream;

typedef struct sn_records {
    sn_context *ctx;
    sn_machine *machine;
    /* A call that may record counts itself in `in_flight` first and then looks at `clearing`; the
     * one who clears does it the other way round, so one of them always sees the other
     * (sequentially consistent). */
    _Atomic int in_flight;
    _Atomic int clearing;
    pthread_mutex_t lock; /* of everything below, and of clearing */
    sn_observer *observers;
    sn_stream *streams; /* traces being written, also those that are being closed */
    sn_known_model *models;
    const sn_labels *labels; /* of every profile; NULL: none. Set once, before anything records */
    uint64_t fork_ticks; /* when this process was forked off; what came before is the parent's */
    sn_sampler sampler;  /* of all observers that want one run of many */
} sn_records;

void sn_records_init(sn_records *r, sn_context *ctx, sn_machine *machine);
void sn_records_fini(sn_records *r);

/* Around every call that may record. */
void sn_records_enter(sn_records *r);
void sn_records_leave(sn_records *r);

/* ---- with the lock held ---- */
void sn_records_add(sn_records *r, sn_observer *o);
void sn_records_remove(sn_records *r, sn_observer *o);
/* The earliest records that an observer wants; SN_NO_RECORDS: nobody wants any. */
uint64_t sn_records_wanted(const sn_records *r);
/* Brings the recorder to the level that observers ask for now. Those that sample share one choice
 * of runs: the most that any of them asks for. */
sonde_status sn_records_set_level(sn_records *r, sonde_error *err);
/* Forgets records that nobody wants; when there are no others and nothing records, lets go of
 * pinned bindings too. */
void sn_records_forget(sn_records *r);
/* Empties the rings and lets each hold `cap` records, if nobody wants any and nothing is being
 * recorded; otherwise they stay as they are. */
void sn_records_shrink(sn_records *r, size_t cap);

/* Around reading records without the lock: those since `since` and the bindings they name stay.
 * `reader` lies on the caller's stack. Begin with the lock held; the end takes it, and forgets what
 * nobody else wants. */
void sn_records_read_begin(sn_records *r, sn_observer *reader, uint64_t since);
void sn_records_read_end(sn_records *r, sn_observer *reader);

/* Take the lock. The node belongs to the caller, who removes it before the model goes. */
void sn_records_add_model(sn_records *r, sn_known_model *m);
void sn_records_remove_model(sn_records *r, sn_known_model *m);

/* Around a fork: the lock is held in between. The child has neither the parent's calls under way,
 * nor its streams, nor the observers that end at a fork. */
void sn_records_before_fork(sn_records *r);
void sn_records_after_fork(sn_records *r, bool child);

/* ---- records ► profile ---- */
/* The records since `since` ticks as plain tables; `only_run` != 0: of that inference alone. The
 * caller is among the observers, since then or earlier. Without the lock. */
sonde_status sn_records_profile(sn_records *r, uint64_t since, uint32_t only_run, int level,
                                sn_profile **profile, sonde_error *err);
typedef struct sn_time_window {
    uint64_t from, to; /* ticks */
} sn_time_window;
/* The same with more to say. */
typedef struct sn_records_request {
    uint64_t since;
    uint32_t only_run;
    int level;
    /* Only inferences that began in one of these, in order, and what else touches one; records of a
     * higher level than asked for are left out. NULL: all since then. */
    const sn_time_window *windows;
    size_t n_windows;
    bool sampled; /* only inferences that sampling chose, and nothing beside them */
    bool brief;   /* times, names and shapes: no zeros of weights, no memory. It takes as long as a
                     run of a small model */
    size_t most;  /* records of a thread: of more, the first and the latest ones and the whole runs
                     they tell of, at least one; 0: all */
} sn_records_request;
sonde_status sn_records_profile_of(sn_records *r, const sn_records_request *request,
                                   sn_profile **profile, sonde_error *err);

#endif
