/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine of many cores means for a context or a session: where its threads may run, where
 * its memory lies, huge pages. A pure function of what the system shows (base/topology.h), so that
 * it can be tested with machines that are not here. */
#ifndef SN_FINDINGS_MACHINE_H
#define SN_FINDINGS_MACHINE_H

#include "base/seats.h"
#include "findings/findings.h"

typedef struct sn_machine_state {
    const sn_topology *topology;
    const sn_seats *seats; /* NULL: threads are not bound */
    int threads;
    const sn_id_set *allowed;            /* CPUs that the process may really use; NULL: not known */
    int threads_refused, memory_refused; /* errno; 0: not refused */
    const char *huge_pages; /* "always [madvise] never", as the system writes it; "": not known */
    /* Of this process, by node of the topology; NULL: not known, or nothing of note has been made
     * yet. */
    const uint64_t *node_bytes;
} sn_machine_state;

/* What holds for the machine and the number of threads. Free it also after an error. */
sonde_status sn_findings_of_machine(const sn_machine_state *s, sn_allocator *alloc,
                                    sn_findings *out, sonde_error *err);
/* What holds once a session has run: where its memory lies, and what was refused. */
sonde_status sn_findings_of_placement(const sn_machine_state *s, sn_allocator *alloc,
                                      sn_findings *out, sonde_error *err);

#endif
