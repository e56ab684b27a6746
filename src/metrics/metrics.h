/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a context's runs, by model and session number. Counting takes no lock and allocates
 * nothing; series stay until the context goes. */
#ifndef SN_METRICS_METRICS_H
#define SN_METRICS_METRICS_H

#include "base/alloc.h"
#include "base/latency.h"
#include "export/export.h"

typedef struct sn_metrics sn_metrics;
typedef struct sn_series sn_series;

sonde_status sn_metrics_create(sn_metrics **metrics, sn_allocator *alloc, sonde_error *err);
void sn_metrics_free(sn_metrics *m); /* NULL accepted */

/* The series of that name and number, found or made; the name is copied. NULL: out of memory. */
sn_series *sn_metrics_series(sn_metrics *m, const char *model, uint32_t session);

/* Around a run. A run that failed is not among the latencies. `alone`: a part of it found the
 * thread pool taken and ran on the caller's thread. */
void sn_series_begin(sn_series *s);
void sn_series_end(sn_series *s, uint64_t ns, sonde_status status, bool alone);

/* In a forked child: runs under way on the parent's other threads are not here. */
void sn_metrics_after_fork(sn_metrics *m);

/* What others know at the time of a scrape. */
typedef struct sn_metrics_facts {
    const char *version, *cpu, *cpu_level;
    int threads;
    bool pool_busy;
    uint64_t live_bytes, peak_bytes, limit_bytes; /* limit 0: none */
    uint64_t packed_bytes, frame_bytes, mapped_bytes;
    uint64_t records_held, records_dropped;
    uint64_t sampled, sampling_skipped;
    uint32_t sample_every; /* 0: nothing is sampled */
    double sampling_overhead;
} sn_metrics_facts;

/* Everything as text; `openmetrics`: OpenMetrics 1.0 instead of Prometheus' 0.0.4. */
sonde_status sn_metrics_write(const sn_metrics *m, const sn_metrics_facts *facts, bool openmetrics,
                              sn_sink *sink, sonde_error *err);

/* ---- between this room's files ---- */
enum { SN_METRICS_STATUSES = 16 };
_Static_assert((int)SONDE_INVALID_FORMAT < (int)SN_METRICS_STATUSES, "every status has a counter");
typedef struct sn_series_sums {
    const char *model;
    uint32_t session;
    uint64_t buckets[SN_LATENCY_BUCKETS], sum_ns;
    uint64_t in_flight, alone;
    uint64_t errors[SN_METRICS_STATUSES]; /* by status */
} sn_series_sums;
/* The series behind `s`, the first for NULL; NULL: there is none. */
const sn_series *sn_series_next(const sn_metrics *m, const sn_series *s);
void sn_series_sum(const sn_series *s, sn_series_sums *sums);

#endif
