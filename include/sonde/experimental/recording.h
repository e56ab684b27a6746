/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: profilers with a beginning and an end of their own. Any number may run at once in a
 * context, nested or overlapping, beside the process-wide profiler of sonde/sonde.h.
 *
 *     sonde_profiler_options how = SONDE_INIT(sonde_profiler_options);
 *     how.level = 2;
 *     sonde_recording *recording;
 *     sonde_recording_start(NULL, &how, &recording, &err);
 *     … runs …
 *     sonde_recording_get(recording, &profile, &err);
 *     sonde_recording_release(recording);
 *
 * Records are kept until every recording that may want them is released.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_RECORDING_H
#define SONDE_EXPERIMENTAL_RECORDING_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_recording sonde_recording;

/* `path` of the options must be NULL. */
SONDE_API sonde_status sonde_recording_start(sonde_context *context,
                                             const sonde_profiler_options *options,
                                             sonde_recording **recording, sonde_error *err);
/* Inferences that begin between these two are not in the profile. A level other than 0 holds from
 * the resume on. */
SONDE_API sonde_status sonde_recording_pause(sonde_recording *recording, sonde_error *err);
SONDE_API sonde_status sonde_recording_resume(sonde_recording *recording, int level,
                                              sonde_error *err);
/* Discards the records; the recording continues, or stays paused. */
SONDE_API sonde_status sonde_recording_clear(sonde_recording *recording, sonde_error *err);
/* The profile of everything recorded so far; the records are kept. */
SONDE_API sonde_status sonde_recording_get(sonde_recording *recording, sonde_profile **profile,
                                           sonde_error *err);
SONDE_API void sonde_recording_release(sonde_recording *recording);

/* sonde_profiler_get for who looks again and again while a run goes on: of each thread about so
 * many records, the first quarter of them and the latest, however long it has run, and at least one
 * whole run. The profile says how many runs are left out (`note` of sonde_profile_summary). */
SONDE_API sonde_status sonde_profiler_get_latest(sonde_context *context, size_t records,
                                                 sonde_profile **profile, sonde_error *err);

/* How full a context's recorder is. Each thread has room for `capacity` records; those that do not
 * fit are dropped and counted, never waited for. Recordings and profilers of a context share it. */
typedef struct sonde_recorder_info {
    size_t struct_size;
    uint64_t capacity; /* records of one thread */
    uint64_t room;     /* records that still fit on the thread that has least room */
    uint64_t held;     /* records kept now, of all threads */
    uint64_t dropped;  /* records lost since the last time all were forgotten, of all threads */
    /* Since the context was made: runs that sampling has recorded, and that it would have but for
     * the bound on overhead; and recording's share of the time of recent runs. */
    uint64_t sampled, skipped;
    double overhead;
} sonde_recorder_info;
/* At any time, also while others record. A context of NULL is the process default. */
SONDE_API sonde_status sonde_recorder_info_get(sonde_context *context, sonde_recorder_info *info,
                                               sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
