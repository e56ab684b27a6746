/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of this process through perf_event_open, where the machine has them and the
 * system lets them be read; and what the system counts for a process in any case. */
#ifndef SN_BASE_COUNTERS_H
#define SN_BASE_COUNTERS_H

#include "base/alloc.h"

typedef enum sn_hw {
    SN_HW_CYCLES,
    SN_HW_INSTRUCTIONS,
    SN_HW_CACHE_MISSES,
    SN_HW_BRANCH_MISSES,
    SN_HW_COUNT
} sn_hw;

typedef struct sn_counters sn_counters;

/* Counts what every thread of the process does in user code from now on; threads made later by
 * those there are count too. SONDE_UNSUPPORTED when the kernel refuses or the machine has none: the
 * sentence says which, and what would allow it. Cycles and instructions are there or it fails; the
 * others read as 0 where the machine lacks them. */
sonde_status sn_counters_open(sn_counters **counters, sn_allocator *alloc, sonde_error *err);
void sn_counters_close(sn_counters *c); /* NULL accepted */
/* Totals over all threads since they were opened. From any thread. */
void sn_counters_read(const sn_counters *c, uint64_t values[SN_HW_COUNT]);
/* What one read costs, measured when they were opened. */
double sn_counters_read_ns(const sn_counters *c);

/* What the system has counted for this process so far. */
typedef struct sn_usage {
    uint64_t cpu_ns;                     /* of all threads, user and system */
    uint64_t minor_faults, major_faults; /* pages: without and with reading from a disk */
    uint64_t voluntary, involuntary;     /* context switches: waited, or was made to wait */
} sn_usage;
sn_usage sn_usage_now(void);
sn_usage sn_usage_since(const sn_usage *then); /* now, less what was then */

#endif
