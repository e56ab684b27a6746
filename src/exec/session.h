/* SPDX-License-Identifier: Apache-2.0 */
/* A session: a model made ready to run with certain options. Runs may come from many threads at
 * once; each checks out a frame. Programs are shared between sessions of one model with equal
 * options, so packed weights exist once. */
#ifndef SN_EXEC_SESSION_H
#define SN_EXEC_SESSION_H

#include "base/traceparent.h"
#include "graph/model.h"
#include "plan/program.h"

typedef struct sn_session sn_session;

typedef struct sn_session_config {
    bool no_optimize, no_prepack;
    sonde_precision precision;
    bool plan_only; /* nothing is packed or aligned: runs are refused, bindings can be looked at */
    const char *const *disabled; /* pass names */
    size_t n_disabled;
    int threads;               /* 0 = the context's; otherwise the session has a pool of its own */
    const sn_numa *numa;       /* NULL = the context's */
    const char *weights_cache; /* folder where packed weights are kept on disk; NULL: none */
    const char *tune;          /* folder where tuned choices are kept; NULL: nothing is tuned */
    bool flush_denormals;      /* while a run lasts, on all its threads */
    uint32_t instance;         /* number among the sessions that run side by side */
    uint32_t instances;        /* how many these are; 0: not known, and each has all cores */
} sn_session_config;

/* Keeps a reference to the model. Makes the default program: all errors of the model show here. */
sonde_status sn_session_create(sn_context *ctx, sn_model *model, const sn_session_config *cfg,
                               sn_session **session, sonde_error *err);
void sn_session_free(sn_session *s); /* no run may be under way */
sn_model *sn_session_model(const sn_session *s);
/* The program of the graph's own inputs and outputs. It lives as long as the session, but may be
 * followed by another one that takes inputs which this one refuses (plan/symbols.h). */
sn_program *sn_session_program(const sn_session *s);
/* The same program to look at: with all constants, which the one that runs gives up where they live
 * on in packed form only. */
sonde_status sn_session_plan(const sn_session *s, sn_program **plan, sonde_error *err);
int sn_session_threads(const sn_session *s);
sn_pool *sn_session_pool(const sn_session *s);
const sn_seats *sn_session_seats(const sn_session *s); /* NULL: its threads are not bound */

typedef struct sn_run_config {
    const _Atomic int *cancel;
    /* Asked between two steps ten times a second once a run takes that long; non-zero: cancel.
     * NULL: nobody is asked. */
    int (*interrupt)(void *user);
    void *interrupt_user;
    uint64_t asks_at_ns; /* the run's own: 0 at first */
    bool warmup;
    bool record;             /* record this run's steps even when the context's recorder is off */
    bool sampled;            /* it is recorded because sampling chose it */
    const sn_caller *caller; /* the trace it belongs to, noted where it is recorded; NULL: none */
    sn_write_fn verbose;     /* every step as it runs, as text; NULL: no */
    void *verbose_user;
    uint32_t run_id; /* out, when recorded: its number in the recorder; 0 otherwise */
} sn_run_config;

/* names NULL: the graph's inputs / outputs in order. in[i] are read, not consumed. out[i] on entry:
 * NONE (receives an owned value) or a TENSOR whose memory is written to. `cfg` may be NULL. */
sonde_status sn_session_run(sn_session *s, sn_run_config *cfg, const char *const *in_names,
                            const sn_slot *const *in, size_t n_in, const char *const *out_names,
                            sn_slot *out, size_t n_out, sonde_error *err);

/* The binding that a run on these inputs would take, in the order of the program's, of which one
 * with a default may be of kind NONE. The caller holds one reference. */
sonde_status sn_session_bind(sn_session *s, const sn_slot *const *in, sn_binding **bound,
                             sonde_error *err);

/* Whether one run of the binding, with inputs of so many bytes that are not there yet, fits into
 * the memory there is; the error says what it needs. */
sonde_status sn_binding_fits(const sn_binding *b, size_t input_bytes, sonde_error *err);

/* Names of the values that a partial run with these feeds returns (arena-owned array). */
sonde_status sn_session_frontier(sn_session *s, const char *const *in_names, size_t n_in,
                                 sn_arena *arena, const char ***names, size_t *n, sonde_error *err);

/* Once on a fresh context before its first session (pool, trace and allocator are set), and once
 * before it goes. */
sonde_status sn_exec_init_context(sn_context *ctx, sonde_error *err);
void sn_exec_fini_context(sn_context *ctx);
/* Measures what a record costs, once in a context's life (about a millisecond): before any run that
 * is recorded, so that its times can be shown without that. Not from two threads at once. */
void sn_exec_measure_cost(sn_context *ctx);
/* Recorder on (level 1–3) or off for every run of the context that begins afterwards. */
sonde_status sn_exec_record(sn_context *ctx, int level, sonde_error *err);
/* The binding with this id that has run under the recorder, or NULL. */
struct sn_binding *sn_exec_pinned(const sn_context *ctx, uint32_t table);
/* Lets go of pinned bindings and forgets all records. Nothing may be recording. */
void sn_exec_clear(sn_context *ctx);
/* Around a fork, in parent and child, so that the child finds names and pins whole. */
void sn_exec_before_fork(sn_context *ctx);
void sn_exec_after_fork(sn_context *ctx);

#endif
