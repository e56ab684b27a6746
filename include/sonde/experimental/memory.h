/* SPDX-License-Identifier: Apache-2.0 */
/* The memory profiler: what inferences hold while they run, step by step. It switches apart from
 * the time profiler and may run beside it.
 *
 *     sonde_memory_start(NULL, &err);
 *     … runs …
 *     sonde_memory_stop(NULL, &err);
 *     sonde_memory_info info = SONDE_INIT(sonde_memory_info);
 *     sonde_memory_max(NULL, &info, &err);
 *
 * Used is what values and weights take; allocated is what the context's allocator holds, arenas,
 * workspaces and bookkeeping included. Each maximum is its own: they need not be of one moment.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_MEMORY_H
#define SONDE_EXPERIMENTAL_MEMORY_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context of NULL is the process default. Start forgets what an earlier session recorded. */
SONDE_API sonde_status sonde_memory_start(sonde_context *context, sonde_error *err);
SONDE_API sonde_status sonde_memory_stop(sonde_context *context, sonde_error *err);
/* Forgets maxima and trace; a running profiler goes on from here. */
SONDE_API sonde_status sonde_memory_reset(sonde_context *context, sonde_error *err);

typedef struct sonde_memory_info {
    size_t struct_size;
    double max_used_mb, max_allocated_mb; /* MB of 2^20 bytes */
    uint64_t max_used, max_allocated;     /* bytes */
    double fragmentation; /* 1 - used / allocated when most was used (the first time) */
    size_t samples;       /* entries of the trace */
} sonde_memory_info;
/* Since the start, running or stopped. */
SONDE_API sonde_status sonde_memory_max(sonde_context *context, sonde_memory_info *info,
                                        sonde_error *err);

/* The trace: one entry after every step. `tag` says which ("Conv /stem/Conv") and belongs to the
 * trace. */
typedef struct sonde_memory_trace sonde_memory_trace;
typedef struct sonde_memory_sample {
    size_t struct_size;
    const char *tag;
    uint64_t at_ns; /* since the start */
    uint64_t used, allocated;
} sonde_memory_sample;
SONDE_API sonde_status sonde_memory_trace_get(sonde_context *context, sonde_memory_trace **trace,
                                              sonde_error *err);
SONDE_API size_t sonde_memory_trace_count(const sonde_memory_trace *trace);
SONDE_API sonde_status sonde_memory_trace_sample(const sonde_memory_trace *trace, size_t index,
                                                 sonde_memory_sample *sample, sonde_error *err);
SONDE_API void sonde_memory_trace_release(sonde_memory_trace *trace);

#ifdef __cplusplus
}
#endif
#endif
