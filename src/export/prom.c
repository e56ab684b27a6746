/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in Prometheus' text format, for a node exporter's folder of text files or a push
 * gateway: the latencies of the measured runs as the same histogram that a running service has
 * (src/metrics), operators and memory as gauges. */
#include <inttypes.h>
#include <stdio.h>

#include "export/prom_text.h"

/* Latencies of the runs of one instance. */
static void count_runs(const sn_profile *p, const sn_prof_runs *runs, uint32_t instance,
                       sn_prom_histogram *h)
{
    *h = (sn_prom_histogram){.sum_ns = 0};
    for (size_t i = 0; i < runs->all.n; i++) {
        const sn_prof_run *r = &runs->all.data[i];
        if (p->spans.data[r->span].instance != instance)
            continue;
        const uint64_t ns = r->wall_ns > 0 ? (uint64_t)r->wall_ns : 0;
        h->buckets[sn_latency_bucket(ns)]++;
        h->sum_ns += ns;
    }
}

enum { MOST_INSTANCES = 1024 };

static void put_runs(sn_prom *out, const sn_profile *p, const sn_prof_summary *s,
                     const sn_prof_runs *runs)
{
    sn_prom_family(out, "sonde_run_duration_seconds", SN_PROM_HISTOGRAM, "seconds",
                   "Latency of the measured runs, without the cost of recording them.");
    for (uint32_t k = 0; k < s->instances && k < MOST_INSTANCES; k++) {
        sn_prom_histogram h;
        char number[16];
        snprintf(number, sizeof number, "%" PRIu32, k);
        count_runs(p, runs, k, &h);
        const sn_prom_label labels[] = {{"model", p->model_name}, {"session", number}, {NULL, ""}};
        sn_prom_buckets(out, labels, &h);
    }
}

static void put_operators(sn_prom *out, const sn_profile *p, const sn_prof_summary *s)
{
    static const char *const names[] = {"sonde_operator_seconds", "sonde_operator_calls"};
    static const char *const units[] = {"seconds", ""};
    static const char *const helps[] = {
        "Time of an operator in one run, the mean over the measured runs.",
        "Calls of an operator in one run, the mean over the measured runs."};
    for (int k = 0; k < 2; k++) {
        sn_prom_family(out, names[k], SN_PROM_GAUGE, units[k], helps[k]);
        for (size_t i = 0; i < s->rows.n; i++) {
            const sn_prof_row *row = &s->rows.data[i];
            const sn_prom_label labels[] = {
                {"model", p->model_name}, {"operator", row->name}, {NULL, ""}};
            if (k == 0)
                sn_prom_seconds(out, SN_PROM_GAUGE, labels,
                                row->mean_ns > 0 ? (uint64_t)(row->mean_ns + 0.5) : 0);
            else if (!row->bracket)
                sn_prom_real(out, SN_PROM_GAUGE, labels, row->calls);
        }
    }
}

static void put_gauge(sn_prom *out, const sn_prom_label *labels, const char *name, const char *unit,
                      const char *help, uint64_t value)
{
    sn_prom_family(out, name, SN_PROM_GAUGE, unit, help);
    sn_prom_u64(out, SN_PROM_GAUGE, labels, value);
}

static void put_rest(sn_prom *out, const sn_profile *p, const sn_prof_summary *s)
{
    const sn_prof_memory *m = &p->memory;
    const sn_prom_label model[] = {{"model", p->model_name}, {NULL, ""}};
    const sn_prom_label build[] = {{"version", p->version},
                                   {"cpu", p->cpu_model},
                                   {"cpu_level", p->cpu_level},
                                   {"precision", p->precision},
                                   {NULL, ""}};
    put_gauge(out, build, "sonde_build_info", "", "What made the profile, and where; always 1.", 1);
    put_gauge(out, model, "sonde_profile_warmup_runs", "", "Warm-up runs, which are not measured.",
              s->warmups);
    put_gauge(out, model, "sonde_profile_dropped_records", "",
              "Records lost because the recorder was full.", p->dropped);
    put_gauge(out, model, "sonde_profile_threads", "", "Threads of the context.",
              p->threads > 0 ? (uint64_t)p->threads : 0);
    put_gauge(out, model, "sonde_memory_live_bytes", "bytes", "Bytes that the context holds.",
              m->held);
    put_gauge(out, model, "sonde_memory_peak_bytes", "bytes",
              "Most bytes that the context has held.", m->held_peak);
    put_gauge(out, model, "sonde_memory_packed_weights_bytes", "bytes",
              "Weights in the form kernels read.", m->packed);
    put_gauge(out, model, "sonde_memory_arena_bytes", "bytes",
              "Memory of values and scratch space of all shapes that ran.",
              m->arenas + m->workspaces);
    put_gauge(out, model, "sonde_memory_mapped_model_bytes", "bytes",
              "Model files in the address space.", m->mapped);
}

static sonde_status write_prom(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_prof_summary s;
    sn_prof_runs runs;
    sn_prom out;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    sonde_status st = sn_profile_runs(p, &runs, err);
    if (st == SONDE_OK) {
        sn_prom_begin(&out, sink, false);
        put_runs(&out, p, &s, &runs);
        put_operators(&out, p, &s);
        put_rest(&out, p, &s);
        st = sn_prom_end(&out, err);
        sn_prof_runs_free(&runs);
    }
    sn_prof_summary_free(&s);
    return st;
}

const sn_exporter sn_exporter_prom = {.suffix = ".prom",
                                      .name = "prometheus",
                                      .summary = "Latency histogram, operators and memory in "
                                                 "Prometheus' text format",
                                      .write = write_prom};
