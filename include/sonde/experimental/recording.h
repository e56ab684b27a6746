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
/* Forgets what was recorded, and goes on, or stays paused. */
SONDE_API sonde_status sonde_recording_clear(sonde_recording *recording, sonde_error *err);
/* What was recorded so far; it stays recorded. */
SONDE_API sonde_status sonde_recording_get(sonde_recording *recording, sonde_profile **profile,
                                           sonde_error *err);
SONDE_API void sonde_recording_release(sonde_recording *recording);

#ifdef __cplusplus
}
#endif
#endif
