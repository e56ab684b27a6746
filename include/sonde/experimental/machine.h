/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: what it is, and what it reaches at best. Peaks are measured once and kept in a small
 * file ($XDG_CACHE_HOME/sonde/peaks, or ~/.cache/sonde/peaks); profiles taken afterwards say which
 * share of them every operator attains.
 *
 *     sonde_machine_info info = SONDE_INIT(sonde_machine_info);
 *     sonde_machine_calibrate(NULL, &info, &err);
 *     printf("%.0f GFLOP/s with %d threads\n", info.all.gflops, info.all.threads);
 *
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_MACHINE_H
#define SONDE_EXPERIMENTAL_MACHINE_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The best of several trials. GB of 10^9 bytes; 0 = not measured. */
typedef struct sonde_machine_peak {
    int threads;
    double gflops;                        /* multiply-adds in f32, two operations each */
    double l2_gbps, l3_gbps, memory_gbps; /* reading, all threads together */
} sonde_machine_peak;

/* One way to multiply that this processor has, among the instructions in use. */
typedef struct sonde_machine_rate {
    const char *arithmetic;    /* "f32", "i8", "bf16_tiles", as profiles call it */
    const char *instructions;  /* "vnni" */
    double one_gops, all_gops; /* two operations per multiply-add; of one thread, and of all; 0: not
                                  measured */
} sonde_machine_rate;
enum { SONDE_MACHINE_RATES = 12 };

typedef struct sonde_machine_info {
    size_t struct_size;
    const char *cpu;                  /* "AMD EPYC 9654 96-Core Processor" */
    const char *level, *found;        /* instructions in use, and the best there are kernels for */
    const char *levels;               /* all there are: "baseline, avx2, avx512" */
    int cores, usable_cores, threads; /* online; after affinity and quota; of the context */
    double quota_cores;               /* of the cgroup; 0 = none */
    uint64_t l1_bytes, l2_bytes, l3_bytes; /* data caches of one core; the third level's as told */
    const char *build;      /* what makes this build of the library slow: "address sanitizer"; "" */
    int measured;           /* whether the peaks below are known */
    uint64_t measured_at_s; /* since 1970 */
    sonde_machine_peak one, all; /* of one thread, and of the context's */
    const char *cache_file;      /* where peaks are kept; "": there is no place, or it is refused */
    const char *unused;          /* those of `levels` that no kernel uses: "vnni, bf16, amx"; "" */
    sonde_machine_rate rates[SONDE_MACHINE_RATES]; /* of the first rate_count; f32 is one of them */
    size_t rate_count;
    int sockets, memory_nodes;
    int physical_cores, usable_physical_cores; /* `cores` above are hardware threads */
    int threads_per_core;                      /* the most that a core has */
} sonde_machine_info;

/* Facts, and peaks if they were measured before with this processor, these instructions and this
 * number of threads. Texts belong to the context. */
SONDE_API sonde_status sonde_machine_peaks(sonde_context *context, sonde_machine_info *info,
                                           sonde_error *err);
/* Measures the peaks, which takes one to two seconds in which the context should run nothing else,
 * and keeps them. A file that cannot be written is no failure. */
SONDE_API sonde_status sonde_machine_calibrate(sonde_context *context, sonde_machine_info *info,
                                               sonde_error *err);

/* A memory node: a socket, or a part of one, with the memory that its cores reach fastest. */
typedef struct sonde_machine_node {
    size_t struct_size;
    int id;     /* the system's number, as --numa takes it */
    int socket; /* from 0; -1: it has no CPUs, or those of several */
    int cores, usable_cores, cpus, usable_cpus; /* CPUs are hardware threads */
    int has_memory;                             /* that this process may use */
    uint64_t memory_bytes, free_bytes;          /* 0: not known */
} sonde_machine_node;
/* Node `index` from 0; SONDE_NOT_FOUND past the last. There is one even where the system shows
 * none.
 */
SONDE_API sonde_status sonde_machine_node_get(sonde_context *context, size_t index,
                                              sonde_machine_node *node, sonde_error *err);

/* Where a session runs, and where its packed weights lie. Texts are lists such as "0,2-3", belong
 * to the session, and are "" where nothing is bound. */
typedef struct sonde_placement {
    size_t struct_size;
    int threads;
    const char *nodes, *cpus; /* where its threads run */
    const char *memory;       /* nodes that its weights and activations are asked from */
    /* errno of a refusal of the system, in any session of the context; 0: it did not refuse. */
    int threads_refused, memory_refused;
    uint64_t weight_bytes; /* packed */
    /* A sample of the pages of packed weights: how many were found, and how many of them lie on
     * other nodes than `memory`. 0: the system does not say. */
    size_t pages, pages_elsewhere;
} sonde_placement;
SONDE_API sonde_status sonde_session_placement(sonde_session *session, sonde_placement *placement,
                                               sonde_error *err);

/* Hardware counters (cycles, instructions, cache misses, branch misses) of every step that is
 * recorded from now on, and what the system counts for the process. Where the former are refused it
 * returns SONDE_UNSUPPORTED and says why, and how they can be allowed; the latter are counted all
 * the same. */
SONDE_API sonde_status sonde_counters_start(sonde_context *context, sonde_error *err);
SONDE_API sonde_status sonde_counters_stop(sonde_context *context, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
