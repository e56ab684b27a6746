/* SPDX-License-Identifier: Apache-2.0 */
/* The memory profiler: the memory of inferences after every step. It can be enabled separately from
 * the time profiler, and both can be active at once.
 *
 *     sonde_memory_start(NULL, &err);
 *     … runs …
 *     sonde_memory_stop(NULL, &err);
 *     sonde_memory_info info = SONDE_INIT(sonde_memory_info);
 *     sonde_memory_max(NULL, &info, &err);
 *
 * "used" is the memory of values and weights; "allocated" is the memory of the context's allocator,
 * with arenas, workspaces and bookkeeping. The two maxima may occur at different times.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_MEMORY_H
#define SONDE_EXPERIMENTAL_MEMORY_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A NULL context is the process default. Start discards earlier records. */
SONDE_API sonde_status sonde_memory_start(sonde_context *context, sonde_error *err);
SONDE_API sonde_status sonde_memory_stop(sonde_context *context, sonde_error *err);
/* Discards the maxima and the trace; an active profiler continues. */
SONDE_API sonde_status sonde_memory_reset(sonde_context *context, sonde_error *err);

typedef struct sonde_memory_info {
    size_t struct_size;
    double max_used_mb, max_allocated_mb; /* MiB, despite the names */
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
