/* SPDX-License-Identifier: Apache-2.0 */
/* A scrape. Families are written one after another, as the formats want it, so series are summed
 * once for each of the four that have a line for every series. */
#include <inttypes.h>
#include <stdio.h>

#include "export/prom_text.h"
#include "metrics/metrics.h"

/* The labels of a series, and room for one more. */
typedef struct series_labels {
    char session[16];
    sn_prom_label list[4];
} series_labels;

static const sn_prom_label *labels_of(const sn_series_sums *sums, series_labels *to,
                                      const char *key, const char *value)
{
    snprintf(to->session, sizeof to->session, "%" PRIu32, sums->session);
    to->list[0] = (sn_prom_label){"model", sums->model};
    to->list[1] = (sn_prom_label){"session", to->session};
    to->list[2] = (sn_prom_label){key, value};
    to->list[3] = (sn_prom_label){NULL, ""};
    return to->list;
}

static void put_latencies(sn_prom *p, const sn_series_sums *sums)
{
    series_labels labels;
    sn_prom_histogram h = {.sum_ns = sums->sum_ns};
    for (size_t k = 0; k < SN_LATENCY_BUCKETS; k++)
        h.buckets[k] = sums->buckets[k];
    sn_prom_buckets(p, labels_of(sums, &labels, NULL, ""), &h);
}

static void put_errors(sn_prom *p, const sn_series_sums *sums)
{
    static const char *const names[SN_METRICS_STATUSES] = {
#define STATUS(name, number, text) [number] = text,
        SONDE_STATUS_LIST(STATUS)
#undef STATUS
    };
    for (size_t k = 1; k < SN_METRICS_STATUSES; k++)
        if (names[k] && sums->errors[k]) {
            series_labels labels;
            sn_prom_u64(p, SN_PROM_COUNTER, labels_of(sums, &labels, "status", names[k]),
                        sums->errors[k]);
        }
}

static void put_in_flight(sn_prom *p, const sn_series_sums *sums)
{
    series_labels labels;
    sn_prom_u64(p, SN_PROM_GAUGE, labels_of(sums, &labels, NULL, ""), sums->in_flight);
}

static void put_alone(sn_prom *p, const sn_series_sums *sums)
{
    series_labels labels;
    sn_prom_u64(p, SN_PROM_COUNTER, labels_of(sums, &labels, NULL, ""), sums->alone);
}

static void put_series(sn_prom *p, const sn_metrics *m)
{
    static const struct {
        const char *name;
        sn_prom_kind kind;
        const char *unit, *help;
        void (*put)(sn_prom *p, const sn_series_sums *sums);
    } families[] = {
        {"sonde_run_duration_seconds", SN_PROM_HISTOGRAM, "seconds",
         "Latency of runs that succeeded.", put_latencies},
        {"sonde_run_errors", SN_PROM_COUNTER, "", "Runs that failed or were cancelled.",
         put_errors},
        {"sonde_runs_in_flight", SN_PROM_GAUGE, "", "Runs under way now.", put_in_flight},
        {"sonde_runs_without_pool", SN_PROM_COUNTER, "",
         "Runs of which a part found the thread pool taken by another run, and was computed on the "
         "caller's thread alone.",
         put_alone},
    };
    for (size_t k = 0; k < sizeof families / sizeof families[0]; k++) {
        sn_prom_family(p, families[k].name, families[k].kind, families[k].unit, families[k].help);
        for (const sn_series *s = sn_series_next(m, NULL); s; s = sn_series_next(m, s)) {
            sn_series_sums sums;
            sn_series_sum(s, &sums);
            families[k].put(p, &sums);
        }
    }
}

static void put_one(sn_prom *p, sn_prom_kind kind, const char *name, const char *unit,
                    const char *help, uint64_t value)
{
    sn_prom_family(p, name, kind, unit, help);
    sn_prom_u64(p, kind, NULL, value);
}

static void put_memory(sn_prom *p, const sn_metrics_facts *f)
{
    put_one(p, SN_PROM_GAUGE, "sonde_memory_live_bytes", "bytes",
            "Bytes that the context holds now.", f->live_bytes);
    put_one(p, SN_PROM_GAUGE, "sonde_memory_peak_bytes", "bytes",
            "Most bytes that the context has held.", f->peak_bytes);
    if (f->limit_bytes)
        put_one(p, SN_PROM_GAUGE, "sonde_memory_limit_bytes", "bytes",
                "Bytes that the context may hold.", f->limit_bytes);
    put_one(p, SN_PROM_GAUGE, "sonde_memory_packed_weights_bytes", "bytes",
            "Weights in the form kernels read.", f->packed_bytes);
    put_one(p, SN_PROM_GAUGE, "sonde_memory_arena_bytes", "bytes",
            "Memory that runs work in: values and scratch space, kept for the next run.",
            f->frame_bytes);
    put_one(p, SN_PROM_GAUGE, "sonde_memory_mapped_model_bytes", "bytes",
            "Model files in the address space.", f->mapped_bytes);
}

static void put_recorder(sn_prom *p, const sn_metrics_facts *f)
{
    put_one(p, SN_PROM_GAUGE, "sonde_recorder_held_records", "", "Records that are kept now.",
            f->records_held);
    put_one(p, SN_PROM_COUNTER, "sonde_recorder_dropped_records", "",
            "Records lost because the recorder was full.", f->records_dropped);
    put_one(p, SN_PROM_GAUGE, "sonde_sampling_every", "",
            "One run of so many may be recorded; 0: nothing is sampled.", f->sample_every);
    put_one(p, SN_PROM_COUNTER, "sonde_sampling_runs", "", "Runs that sampling has recorded.",
            f->sampled);
    put_one(p, SN_PROM_COUNTER, "sonde_sampling_skipped_runs", "",
            "Runs that were not recorded because of the bound on overhead.", f->sampling_skipped);
    sn_prom_family(p, "sonde_sampling_overhead_ratio", SN_PROM_GAUGE, "ratio",
                   "Share of the time of recent runs that recording took.");
    sn_prom_real(p, SN_PROM_GAUGE, NULL, f->sampling_overhead);
}

sonde_status sn_metrics_write(const sn_metrics *m, const sn_metrics_facts *f, bool openmetrics,
                              sn_sink *sink, sonde_error *err)
{
    sn_prom p;
    const sn_prom_label build[] = {
        {"version", f->version}, {"cpu", f->cpu}, {"cpu_level", f->cpu_level}, {NULL, ""}};
    sn_prom_begin(&p, sink, openmetrics);
    sn_prom_family(&p, "sonde_build_info", SN_PROM_GAUGE, "", "What runs, and where; always 1.");
    sn_prom_u64(&p, SN_PROM_GAUGE, build, 1);
    put_series(&p, m);
    put_one(&p, SN_PROM_GAUGE, "sonde_pool_threads", "", "Threads of the context's pool.",
            f->threads > 0 ? (uint64_t)f->threads : 0);
    put_one(&p, SN_PROM_GAUGE, "sonde_pool_busy", "",
            "1 while the pool works for a run, so that others compute alone.", f->pool_busy);
    put_memory(&p, f);
    put_recorder(&p, f);
    return sn_prom_end(&p, err);
}
