/* SPDX-License-Identifier: Apache-2.0 */
/* What travels through every room instead of globals: allocator, log, cpu, pool, recorder. */
#ifndef SN_BASE_CONTEXT_H
#define SN_BASE_CONTEXT_H

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/trace.h"

typedef struct sn_context {
    sn_allocator *alloc;
    sn_log log;
    sn_cpu cpu;
    sn_pool *pool;
    int threads;
    sn_trace *trace; /* always there; level 0 = nothing is recorded */
} sn_context;

#endif
