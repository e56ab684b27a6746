/* SPDX-License-Identifier: Apache-2.0 */
/* Reports by inference and by execution, in the layouts people know from data frames. */
#include "export/reports.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "export/grid.h"

/* ------------------------------------------------------------------ ids */
static uint64_t mix(const sn_profile *p, uint64_t kind, uint64_t number)
{
    const uint64_t key[4] = {(uint64_t)p->pid, p->start_wall_ns, kind, number};
    const uint64_t h = sn_hash(key, sizeof key, 0);
    return h ? h : 1; /* all zeros means "none" elsewhere */
}

void sn_trace_id_text(const sn_profile *p, uint32_t run, char text[33])
{
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)mix(p, 1, run),
             (unsigned long long)mix(p, 2, run));
}

void sn_span_id_text(const sn_profile *p, uint32_t span, char text[17])
{
    snprintf(text, 17, "%016llx", (unsigned long long)mix(p, 3, span));
}

/* A measured inference: an iteration that is not warm-up and not inside another. */
static bool is_inference(const sn_prof_span *s)
{
    return s->cat == SN_CAT_ITERATION && !s->warmup;
}

static uint64_t thread_of(const sn_profile *p, const sn_prof_span *s)
{
    return s->thread < p->threads_seen.n ? (uint64_t)p->threads_seen.data[s->thread].os_tid : 0;
}

/* Columns 0 to 3 of a line: position in the profile, trace_id, span_id, and what follows. */
static void add_ids(sn_grid *g, const sn_profile *p, size_t at)
{
    char text[33];
    const sn_prof_span *s = &p->spans.data[at];
    sn_grid_add_u64(g, at);
    sn_trace_id_text(p, s->run, text);
    sn_grid_add(g, text);
    sn_span_id_text(p, s->id, text);
    sn_grid_add(g, text);
}

static void add_header(sn_grid *g, const char *const *names)
{
    g->index = true;
    for (size_t i = 0; i < g->columns; i++)
        sn_grid_add(g, names[i]);
}

/* ------------------------------------------------------------------ summary */
static void put_line(sn_writer *w, const char *name, double value)
{
    char text[96];
    snprintf(text, sizeof text, "%-32s: %.0f\n", name, value);
    sn_put(w, text);
}

static void put_block(sn_writer *w, const char *label, double *samples, size_t n)
{
    static const char line[] = "================================================\n";
    sn_prof_stats s;
    sn_prof_stats_of(samples, n, &s);
    sn_put(w, line);
    sn_put(w, "  Inference Results Summary");
    if (label) {
        sn_put(w, ": ");
        sn_put_terminal(w, label);
    }
    sn_put(w, "\n");
    sn_put(w, line);
    put_line(w, "Inference counts", (double)n);
    if (n == 0)
        return;
    put_line(w, "Min latency (ns)", s.min);
    put_line(w, "Max latency (ns)", s.max);
    put_line(w, "Mean latency (ns)", s.mean);
    put_line(w, "Median latency (ns)", s.p50);
    put_line(w, "90.0 percentile latency (ns)", s.p90);
    put_line(w, "95.0 percentile latency (ns)", s.p95);
    put_line(w, "97.0 percentile latency (ns)", s.p97);
    put_line(w, "99.0 percentile latency (ns)", s.p99);
    put_line(w, "99.9 percentile latency (ns)", s.p999);
}

static bool inside(const sn_prof_span *s, const sn_prof_span *record)
{
    return s->thread == record->thread && s->start_ns >= record->start_ns &&
           s->start_ns + s->dur_ns <= record->start_ns + record->dur_ns;
}

/* Latencies of the measured inferences, of those inside a record called `label` when it is given.
 * Both are in order of start: records that ended before an inference began are passed for good. */
static size_t collect(const sn_profile *p, const char *label, double *samples)
{
    size_t n = 0, first = 0;
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (!is_inference(s))
            continue;
        bool counts = !label, passed = true;
        for (size_t k = first; k < i && !counts && label; k++) {
            const sn_prof_span *r = &p->spans.data[k];
            const bool record = r->cat == SN_CAT_USER && strcmp(r->name, label) == 0;
            counts = record && inside(s, r);
            passed &= !record || r->start_ns + r->dur_ns < s->start_ns;
            first = passed ? k + 1 : first;
        }
        if (counts)
            samples[n++] = (double)s->dur_ns;
    }
    return n;
}

static sonde_status put_records(const sn_profile *p, sn_writer *w, double *samples,
                                sonde_error *err)
{
    sn_map seen;
    sn_map_init(&seen, p->alloc);
    bool fine = true, any = false;
    for (size_t i = 0; i < p->spans.n && fine; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (s->cat != SN_CAT_USER || sn_map_get(&seen, s->name))
            continue;
        fine = sn_map_put(&seen, s->name, (void *)(uintptr_t)s, NULL);
        const size_t n = fine ? collect(p, s->name, samples) : 0;
        if (n == 0)
            continue;
        if (any)
            sn_put(w, "\n");
        put_block(w, s->name, samples, n);
        any = true;
    }
    if (!any)
        sn_put(w, "No record has a measured inference in it\n");
    sn_map_free(&seen);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(void *));
}

sonde_status sn_report_summary(const sn_profile *p, bool by_record, sn_sink *sink, sonde_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        n += is_inference(&p->spans.data[i]);
    double *samples = sn_alloc(p->alloc, (n + 1) * sizeof *samples);
    if (!samples)
        return sn_fail_memory(err, n * sizeof *samples);
    sn_writer w;
    sn_writer_init(&w, sink);
    sonde_status st = SONDE_OK;
    if (by_record)
        st = put_records(p, &w, samples, err);
    else
        put_block(&w, NULL, samples, collect(p, NULL, samples));
    sn_free(p->alloc, samples, (n + 1) * sizeof *samples);
    const sonde_status written = sn_writer_finish(&w, err);
    return st ? st : written;
}

/* ------------------------------------------------------------------ lines */
static sonde_status finish(sn_grid *g, sn_sink *sink, sonde_error *err)
{
    sn_writer w;
    sn_writer_init(&w, sink);
    const sonde_status st = sn_grid_write(g, &w, err), written = sn_writer_finish(&w, err);
    return st ? st : written;
}

sonde_status sn_report_inferences(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    static const char *const names[] = {"", "trace_id", "span_id", "thread.id", "dur"};
    sn_grid g;
    sn_grid_init(&g, p->alloc, 5);
    add_header(&g, names);
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (!is_inference(s))
            continue;
        add_ids(&g, p, i);
        sn_grid_add_u64(&g, thread_of(p, s));
        sn_grid_add_u64(&g, s->dur_ns);
    }
    return finish(&g, sink, err);
}

/* A device execution's time on the device is that of the device spans directly inside it; by span,
 * 0 where there are none. */
static sonde_status device_times(const sn_profile *p, const sn_prof_index *index, uint64_t **times,
                                 sonde_error *err)
{
    *times = sn_alloc_zero(p->alloc, p->spans.n * sizeof **times);
    if (!*times)
        return sn_fail_memory(err, p->spans.n * sizeof **times);
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        const uint32_t outer = sn_prof_index_find(index, s->parent);
        if (s->cat == SN_CAT_DEVICE && outer != UINT32_MAX &&
            (*times)[outer] < UINT64_MAX - s->dur_ns)
            (*times)[outer] += s->dur_ns;
    }
    return SONDE_OK;
}

sonde_status sn_report_executions(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    static const char *const names[] = {
        "", "trace_id", "span_id", "pe_index", "execution_index", "Total", "Run", "IoWait"};
    sn_grid g;
    sn_prof_index index;
    uint64_t *times;
    SN_TRY(sn_prof_index_build(p, &index, err));
    const sonde_status st = device_times(p, &index, &times, err);
    if (st != SONDE_OK) {
        sn_prof_index_free(&index);
        return st;
    }
    sn_grid_init(&g, p->alloc, 8);
    add_header(&g, names);
    uint64_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        const uint32_t at = sn_prof_index_find(&index, s->parent);
        if (s->cat != SN_CAT_DEVICE || s->warmup ||
            (at != UINT32_MAX && p->spans.data[at].cat == SN_CAT_DEVICE))
            continue;
        const uint64_t run = times[i] ? times[i] : s->dur_ns;
        add_ids(&g, p, i);
        sn_grid_add_u64(&g, s->thread);
        sn_grid_add_u64(&g, n++);
        sn_grid_add_u64(&g, s->dur_ns);
        sn_grid_add_u64(&g, run < s->dur_ns ? run : s->dur_ns);
        sn_grid_add_u64(&g, run < s->dur_ns ? s->dur_ns - run : 0);
    }
    sn_free(p->alloc, times, p->spans.n * sizeof *times);
    sn_prof_index_free(&index);
    return finish(&g, sink, err);
}

sonde_status sn_report_operators(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    sn_grid g;
    sn_grid_init(&g, p->alloc, 3);
    static const char *const names[] = {"", "average elapsed(ns)", "count"};
    g.index_name = "name";
    add_header(&g, names);
    for (size_t i = 0; i < s.rows.n; i++) {
        const sn_prof_row *r = &s.rows.data[i];
        char text[32];
        if (r->bracket)
            continue;
        sn_grid_add(&g, r->name);
        sn_grid_add(&g, sn_fixed_text(text, r->per_call_mean_ns, 6));
        sn_grid_add_u64(&g, (uint64_t)llround(r->calls * (double)s.iterations));
    }
    sn_prof_summary_free(&s);
    return finish(&g, sink, err);
}

sonde_status sn_report_external_operators(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    static const char *const names[] = {"",     "trace_id",       "span_id", "thread.id",
                                        "name", "operator_index", "dur"};
    sn_grid g;
    sn_grid_init(&g, p->alloc, 7);
    add_header(&g, names);
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (s->cat != SN_CAT_OPERATOR || s->warmup || s->step == UINT32_MAX)
            continue;
        add_ids(&g, p, i);
        sn_grid_add_u64(&g, thread_of(p, s));
        sn_grid_add(&g, p->steps.data[s->step].op_type);
        sn_grid_add_u64(&g, p->steps.data[s->step].index);
        sn_grid_add_u64(&g, s->dur_ns);
    }
    return finish(&g, sink, err);
}
