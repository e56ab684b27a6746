/* SPDX-License-Identifier: Apache-2.0 */
/* What travels through every room instead of globals: allocator, log, cpu, pool, recorder. */
#ifndef SN_BASE_CONTEXT_H
#define SN_BASE_CONTEXT_H

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/trace.h"

struct sn_call; /* exec's: one run of a program */
typedef sonde_status (*sn_call_fn)(const struct sn_call *call);

typedef struct sn_context {
    sn_allocator *alloc;
    sn_log log;
    sn_cpu cpu;
    sn_pool *pool;
    int threads;
    bool threads_given;              /* by somebody, not taken from what there is */
    sn_numa numa;                    /* what sessions follow that say nothing themselves */
    sn_seats *seats;                 /* of the pool; NULL: its threads are not bound */
    const char *system_root;         /* before /sys and /proc: "" */
    _Atomic(sn_topology *) topology; /* by sn_topology_get: read when something asks for it */
    /* errno of the first time that the system refused to place threads or memory; 0: it did not. */
    _Atomic int threads_refused, memory_refused;
    sn_trace *trace; /* always there; level 0 = nothing is recorded */
    /* How a program is run: plainly, or by the profiling twin while something records. One indirect
     * call a run instead of a branch a step. Set by exec. */
    _Atomic(sn_call_fn) call;
    void *pins; /* exec's: bindings whose names a recording needs */
    /* What of the allocator's bytes are packed weights (plan's; also those mapped from a cache),
     * and the memory that runs work in (exec's). */
    _Atomic size_t packed_bytes, frame_bytes;
} sn_context;

#endif
