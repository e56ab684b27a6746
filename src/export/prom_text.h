/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text format: 0.0.4, and OpenMetrics 1.0 where it is asked for. A family is announced
 * once, its samples follow. */
#ifndef SN_EXPORT_PROM_TEXT_H
#define SN_EXPORT_PROM_TEXT_H

#include "base/latency.h"
#include "export/writer.h"

typedef struct sn_prom {
    sn_writer w;
    bool openmetrics;
    const char *family; /* the samples now belong to */
} sn_prom;

typedef enum sn_prom_kind { SN_PROM_COUNTER, SN_PROM_GAUGE, SN_PROM_HISTOGRAM } sn_prom_kind;

/* Values may be any bytes; keys are ours. A list ends with a key of NULL. */
typedef struct sn_prom_label {
    const char *key, *value;
} sn_prom_label;

/* Latencies counted by bucket (base/latency.h), and their sum. */
typedef struct sn_prom_histogram {
    uint64_t buckets[SN_LATENCY_BUCKETS], sum_ns;
} sn_prom_histogram;

void sn_prom_begin(sn_prom *p, sn_sink *sink, bool openmetrics);
sonde_status sn_prom_end(sn_prom *p, sonde_error *err);

/* `name` without the "_total" of a counter; `unit` is its last word ("seconds", "bytes", …) or "".
 */
void sn_prom_family(sn_prom *p, const char *name, sn_prom_kind kind, const char *unit,
                    const char *help);
/* One sample of the family; of a counter with "_total" behind its name. */
void sn_prom_u64(sn_prom *p, sn_prom_kind kind, const sn_prom_label *labels, uint64_t value);
void sn_prom_real(sn_prom *p, sn_prom_kind kind, const sn_prom_label *labels, double value);
/* The same of nanoseconds, in seconds: exact. */
void sn_prom_seconds(sn_prom *p, sn_prom_kind kind, const sn_prom_label *labels, uint64_t ns);
void sn_prom_buckets(sn_prom *p, const sn_prom_label *labels, const sn_prom_histogram *h);

#endif
