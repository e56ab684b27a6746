/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way to a profile, all at once (whole.c) or batch by batch (batches.c): what both
 * share. */
#ifndef SN_RECORDS_BUILDER_H
#define SN_RECORDS_BUILDER_H

#include "base/clock_track.h"
#include "base/traceparent.h"
#include "plan/binding.h"
#include "records/records.h"
#include "records/steps.h"

typedef struct sn_event {
    sn_trace_rec rec;
    uint32_t thread; /* index into threads_seen */
    uint32_t span;   /* 1 + index into spans, once made */
} sn_event;

typedef struct sn_run_row {           /* one RUN record; sorted by id */
    uint32_t id, parent, event, root; /* root: row of the top-level run; UINT32_MAX: not known */
    uint32_t number, iteration;       /* of a root */
    bool cut;                         /* it was cancelled: neither it nor its steps are shown */
    bool sampled;                     /* sampling chose it */
    sn_caller caller;                 /* as far as it was told: */
    uint8_t caller_parts;             /* bits 0 to 2; all: it is whole */
    uint64_t t0, t1;
    uint64_t live; /* bytes of its own values, as far as its steps have been looked at */
    uint64_t held; /* bytes the allocator held before its first step; UINT64_MAX: not known */
} sn_run_row;

typedef struct sn_table_row { /* one binding; sorted by id */
    uint32_t id, first_step, n_steps;
    const sn_binding *binding;
    const sn_step_bytes *bytes; /* by step, as far as known beforehand */
} sn_table_row;

typedef struct sn_step_key { /* span of a control step; sorted by (run, index) */
    uint32_t run, index, span;
} sn_step_key;

typedef struct sn_live_change {
    uint64_t at_ns;
    int64_t bytes; /* more, or fewer, than before */
} sn_live_change;

typedef struct sn_profile_builder {
    sn_records *r;
    sn_profile *p;
    sn_arena *texts; /* for names of spans: the profile's, or one that lasts for a batch */
    sn_arena batch;
    sn_clock clock;
    sn_clock_track track;          /* of one that streams: what becomes of the clock meanwhile */
    const sn_time_window *windows; /* what began outside of them is left out; NULL: nothing is */
    size_t n_windows;
    bool only_sampled; /* inferences that sampling chose, and nothing else */
    bool brief;        /* as in sn_records_request */
    int level;
    uint64_t base_ns;
    SN_VEC(sn_event) events;
    SN_VEC(sn_run_row) runs;
    SN_VEC(sn_table_row) tables;
    SN_VEC(sn_step_key) controls;
    SN_VEC(uint32_t) operators; /* spans of steps, in order of start */
    /* Over all batches: */
    uint32_t ids;           /* span ids given so far; the first is the model's */
    uint32_t numbers;       /* top-level runs */
    uint32_t iterations[2]; /* of those measured ones and warm-ups */
    uint64_t first_ticks, last_ticks;
    uint32_t model_thread;
    SN_VEC(uint64_t) written;       /* by thread: when the last step or run it wrote had ended */
    SN_VEC(sn_live_change) changes; /* of live bytes, that have not become counters yet */
    uint64_t live_ns, live;         /* the last counter made of them */
    bool counted;                   /* steps have hardware counts */
    bool streaming;                 /* spans come in batches, the model's at the end */
} sn_profile_builder;

/* ---- latest.c ---- */
/* What is left out of a profile that shows the start and the latest runs: everything that ended
 * after `from` and began before `to`. */
typedef struct sn_gap {
    uint64_t from, to; /* ticks; 0: nothing is left out */
} sn_gap;
/* So that about `most` records of each thread remain, and a whole run; 0: all. */
sn_gap sn_builder_gap(const sn_trace *t, uint64_t since, size_t most);
bool sn_gap_holds(const sn_gap *gap, const sn_trace_rec *r);
/* Says in the profile's note how many runs there were. */
sonde_status sn_gap_note(sn_profile *p, size_t left_out, sonde_error *err);

/* ---- what both share: builder.c ---- */
/* Index of a ring's thread in threads_seen, added when it is new; UINT32_MAX: out of memory. */
uint32_t sn_builder_thread(sn_profile_builder *b, const sn_trace_ring *r);
void sn_builder_sort(sn_profile_builder *b); /* b->events by start */
sonde_status sn_builder_list_runs(sn_profile_builder *b,
                                  sonde_error *err);                  /* b->events ► b->runs */
sn_run_row *sn_builder_run(const sn_profile_builder *b, uint32_t id); /* NULL: none */
/* The top-level run a run belongs to; NULL when a link of the chain is missing. */
sn_run_row *sn_builder_root(const sn_profile_builder *b, uint32_t id);
/* Drops events that are not wanted: steps of unfinished and of cancelled runs, what lies outside of
 * the windows or was not sampled and, with `only_run`, all but that inference. */
void sn_builder_filter(sn_profile_builder *b, uint32_t only_run);
/* Adds the bindings that runs in b->events name to b->tables, their steps to the profile. */
sonde_status sn_builder_list_tables(sn_profile_builder *b, sonde_error *err);
const sn_table_row *sn_builder_table(const sn_profile_builder *b, uint32_t id); /* NULL: none */
/* Top-level runs by start: from 1 over all, from 0 over measured ones and over warm-ups. */
void sn_builder_number_runs(sn_profile_builder *b);
uint64_t sn_builder_ns(const sn_profile_builder *b, uint64_t ticks); /* since the profile's begin */
/* Machine, process, labels and clocks. */
sonde_status sn_builder_describe(sn_profile_builder *b, int level, sonde_error *err);
void sn_builder_free_tables(sn_profile_builder *b);

/* ---- origin.c ---- */
/* Labels, and the clocks at b->base_ns. */
sonde_status sn_builder_describe_origin(sn_profile_builder *b, sonde_error *err);

/* ---- spans.c ---- */
/* b->events ► spans and counters of the profile. `until`: as of sn_builder_live. */
sonde_status sn_builder_add_spans(sn_profile_builder *b, uint64_t until, sonde_error *err);
/* The model's span over everything so far; false: nothing ran. */
bool sn_builder_model_span(const sn_profile_builder *b, sn_prof_span *span);

/* ---- batches.c ---- */
/* An empty profile with the machine's facts; times count from `since`. */
sonde_status sn_builder_init(sn_profile_builder *b, sn_records *r, uint64_t since, int level,
                             sonde_error *err);
/* b->events ► b->p->spans and counters (the former ones are forgotten); steps and threads are
 * added to. Events of runs that have not ended stay in b->events, unless there are more than `keep`
 * of them. `until`: ticks before which every record was read; UINT64_MAX: this is the last batch.
 */
sonde_status sn_builder_batch(sn_profile_builder *b, size_t keep, uint64_t until, sonde_error *err);
void sn_builder_free(sn_profile_builder *b); /* with the profile */

/* ---- model_names.c ---- */
/* b->p->model_name after every model that ran: "encoder, decoder"; many end in "…". */
void sn_builder_name_model(sn_profile_builder *b);

/* ---- live_bytes.c ---- */
/* Counters of live bytes from the steps in b->events, up to `until` (ticks); the rest waits. */
sonde_status sn_builder_live(sn_profile_builder *b, uint64_t until, sonde_error *err);

#endif
