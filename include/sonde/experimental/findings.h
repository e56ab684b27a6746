/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of a profile mean: sentences with their evidence and what to do.
 *
 *     sonde_findings *found;
 *     sonde_profile_findings(profile, &found, &err);
 *     for (size_t i = 0; i < sonde_findings_count(found); i++) {
 *         sonde_finding f;
 *         sonde_findings_get(found, i, &f, &err);
 *         printf("[%s] %s: %s\n", sonde_severity_text(f.severity), f.topic, f.finding);
 *     }
 *     sonde_findings_release(found);
 *
 * They are a function of the profile alone; `sonde doctor` adds what it sees of the model and the
 * machine. Names of nodes are those of the model, whatever bytes they have.
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_FINDINGS_H
#define SONDE_EXPERIMENTAL_FINDINGS_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

SONDE_API const char *sonde_severity_text(sonde_severity severity); /* "good", "note", "slow" */

/* Texts belong to the findings, which do not need the profile. What takes the time comes first. A
 * profile without a measured run has none. */
typedef struct sonde_findings sonde_findings;
SONDE_API sonde_status sonde_profile_findings(const sonde_profile *profile,
                                              sonde_findings **findings, sonde_error *err);
/* What the machine means for the context's threads: sockets, hardware threads, huge pages. With a
 * session, which has run: where its memory lies, and what the system refused. */
SONDE_API sonde_status sonde_machine_findings(sonde_context *context, sonde_session *session,
                                              sonde_findings **findings, sonde_error *err);
SONDE_API size_t sonde_findings_count(const sonde_findings *findings);
/* SONDE_NOT_FOUND past the end. */
SONDE_API sonde_status sonde_findings_get(const sonde_findings *findings, size_t index,
                                          sonde_finding *finding, sonde_error *err);
SONDE_API void sonde_findings_release(sonde_findings *findings);

#ifdef __cplusplus
}
#endif
#endif
