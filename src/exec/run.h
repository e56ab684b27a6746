/* SPDX-License-Identifier: Apache-2.0 */
/* One run, between the files that make it up: what is called for, the run under way, and its frame,
 * the memory it works in. Frames are checked out of their binding and given back, so one session
 * runs on many threads at once. */
#ifndef SN_EXEC_RUN_H
#define SN_EXEC_RUN_H

#include "exec/session.h"
#include "ops/framework/op.h"
#include "plan/binding.h"

typedef struct sn_frame_impl {
    sn_frame f; /* first: what operators see */
    sn_binding *binding;
    sn_buffer *memory;  /* arena, then workspace */
    struct sn_run *run; /* the one under way */
    struct sn_frame_impl *next;
} sn_frame_impl;

/* What a caller asks for: in[] by program input, out[] by program output (see sn_session_run). On
 * failure outputs that were NONE may hold fresh values: the caller clears them. */
typedef struct sn_call {
    sn_program *program;
    const sn_slot *const *in;
    sn_slot *out;
    sn_pool *pool;
    int threads;
    uint32_t instance;  /* the session's */
    sn_run_config *cfg; /* never NULL */
    const struct sn_run
        *parent; /* of a body: the run whose step `parent_step` calls it, else NULL */
    uint32_t parent_step;
    sonde_error *err;
} sn_call;

/* One run under way: of a whole model, or of a body inside one. */
typedef struct sn_run {
    const sn_call *call;
    sn_call_fn self; /* bodies are called the same way as the run they are part of */
    sn_binding *binding;
    bool bound; /* by this run; else its binding was there */
    sn_frame_impl *frame;
    /* profiling twin only */
    sn_trace_ring *ring; /* this thread's; NULL: not recording */
    uint32_t id;
    uint16_t flags;
} sn_run;

/* A frame of the right binding with inputs set; then outputs, steps, results; then give it back. */
sonde_status sn_run_begin(sn_run *run);
sonde_status sn_run_set_outputs(sn_run *run);
sonde_status sn_run_steps(sn_run *run);
sonde_status sn_run_take_outputs(sn_run *run);
void sn_run_end(sn_run *run, sonde_status st);

/* The two ways to run a program (run.c, run_recorded.c). */
sonde_status sn_call_plain(const sn_call *call);
sonde_status sn_call_recorded(const sn_call *call);

static inline bool sn_run_cancelled(const sn_frame *f)
{
    return atomic_load_explicit(f->cancel, memory_order_relaxed) != 0;
}
static inline void sn_run_release(const sn_binding *b, const sn_frame *f, uint32_t i)
{
    for (uint32_t r = b->release_start[i]; r < b->release_start[i + 1]; r++)
        sn_slot_clear(&f->slots[b->release[r]]);
}
/* The answer of cfg->interrupt, where it is time to ask. */
bool sn_run_interrupted(sn_run_config *cfg);
static inline bool sn_run_stopped(const sn_run *run)
{
    return sn_run_cancelled(&run->frame->f) ||
           (run->call->cfg->interrupt && sn_run_interrupted(run->call->cfg));
}
/* What ends the run before its first step: binding, tuning, waiting for another thread. NULL where
 * nothing can; else `stop`. */
const sn_stop *sn_run_stop(sn_run_config *cfg, sn_stop *stop);

#endif
