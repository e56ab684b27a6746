/* SPDX-License-Identifier: Apache-2.0 */
/* Reports by inference and by execution, in the layouts people know from data frames. */
#include "export/reports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A measured inference, or a record of the user's code, on the time line of its thread. */
typedef struct stretch {
    uint32_t label; /* a record's: number of its name, in the order in which names appear */
    uint32_t thread;
    uint64_t start, end;
    double wall_ns; /* an inference's */
    const char *name;
} stretch;

typedef SN_VEC(stretch) stretches;

static int by_label_and_start(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static stretch stretch_of(const sn_prof_span *s)
{
    return (stretch){
        .thread = s->thread, .start = s->start_ns, .end = s->start_ns + s->dur_ns, .name = s->name};
}

static bool list_inferences(const sn_profile *p, const sn_prof_runs *runs, stretches *out)
{
    for (size_t i = 0; i < runs->all.n; i++) {
        stretch s = stretch_of(&p->spans.data[runs->all.data[i].span]);
        s.wall_ns = runs->all.data[i].wall_ns;
        if (!sn_vec_push(out, p->alloc, s))
            return false;
    }
    if (out->n)
        qsort(out->data, out->n, sizeof *out->data, by_label_and_start);
    return true;
}

static bool list_records(const sn_profile *p, stretches *out)
{
    sn_map numbers; /* of the names, from 1 */
    sn_map_init(&numbers, p->alloc);
    uint32_t labels = 0;
    bool fine = true;
    for (size_t i = 0; i < p->spans.n && fine; i++) {
        if (p->spans.data[i].cat != SN_CAT_USER)
            continue;
        stretch s = stretch_of(&p->spans.data[i]);
        s.label = (uint32_t)(uintptr_t)sn_map_get(&numbers, s.name);
        if (!s.label) {
            s.label = ++labels;
            fine = sn_map_put(&numbers, s.name, (void *)(uintptr_t)s.label, NULL);
        }
        fine = fine && sn_vec_push(out, p->alloc, s);
    }
    sn_map_free(&numbers);
    if (fine && out->n)
        qsort(out->data, out->n, sizeof *out->data, by_label_and_start);
    return fine;
}

/* The first inference of that thread that begins then or later. */
static size_t find_start(const stretches *inferences, const stretch *record)
{
    size_t low = 0, high = inferences->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const stretch *s = &inferences->data[mid];
        const bool before =
            s->thread != record->thread ? s->thread < record->thread : s->start < record->start;
        low = before ? mid + 1 : low;
        high = before ? high : mid;
    }
    return low;
}

/* Latencies of the inferences inside the records [first, end), which have one label. Of those that
 * began before an inference on its thread, the one that ends last decides; so every inference is
 * looked at once, with the record that began last before it. */
static size_t collect(const stretches *inferences, const stretch *first, const stretch *end,
                      double *samples)
{
    size_t n = 0;
    uint64_t last = 0; /* end of the records so far */
    for (const stretch *r = first; r < end; r++) {
        last = r == first || r[-1].thread != r->thread || r->end > last ? r->end : last;
        const bool more = r + 1 < end && r[1].thread == r->thread;
        for (size_t i = find_start(inferences, r); i < inferences->n; i++) {
            const stretch *s = &inferences->data[i];
            if (s->thread != r->thread || s->start > last || (more && s->start >= r[1].start))
                break;
            if (s->end <= last)
                samples[n++] = s->wall_ns;
        }
    }
    return n;
}

static void put_records(const stretches *inferences, const stretches *records, double *samples,
                        sn_writer *w)
{
    bool any = false;
    for (size_t i = 0, next; i < records->n; i = next) {
        const stretch *r = &records->data[i];
        for (next = i; next < records->n && records->data[next].label == r->label;)
            next++;
        const size_t n = collect(inferences, r, r + (next - i), samples);
        if (n == 0)
            continue;
        if (any)
            sn_put(w, "\n");
        put_block(w, r->name, samples, n);
        any = true;
    }
    if (!any)
        sn_put(w, "no record contains a measured inference\n");
}

static sonde_status put_summary(const sn_profile *p, bool by_record, const sn_prof_runs *runs,
                                sn_writer *w, sonde_error *err)
{
    const size_t n = runs->all.n, left = p->left.wall_ns.n, bytes = (n + left + 1) * sizeof(double);
    double *samples = sn_alloc(p->alloc, bytes);
    stretches inferences = {0}, records = {0};
    bool fine = samples != NULL;
    if (fine && by_record) {
        fine = list_inferences(p, runs, &inferences) && list_records(p, &records);
        if (fine)
            put_records(&inferences, &records, samples, w);
    } else if (fine) {
        for (size_t i = 0; i < n; i++)
            samples[i] = runs->all.data[i].wall_ns;
        for (size_t i = 0; i < left; i++)
            samples[n + i] = p->left.wall_ns.data[i];
        put_block(w, NULL, samples, n + left);
    }
    sn_vec_free(&inferences, p->alloc);
    sn_vec_free(&records, p->alloc);
    sn_free(p->alloc, samples, bytes);
    return fine ? SONDE_OK : sn_fail_memory(err, bytes);
}

sonde_status sn_report_summary(const sn_profile *p, bool by_record, sn_sink *sink, sonde_error *err)
{
    sn_prof_runs runs;
    SN_TRY(sn_profile_runs(p, &runs, err));
    sn_writer w;
    sn_writer_init(&w, sink);
    const sonde_status st = put_summary(p, by_record, &runs, &w, err);
    sn_prof_runs_free(&runs);
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
    sn_prof_runs runs;
    SN_TRY(sn_profile_runs(p, &runs, err));
    sn_grid g;
    sn_grid_init(&g, p->alloc, 5);
    add_header(&g, names);
    for (size_t i = 0; i < runs.all.n; i++) {
        const uint32_t at = runs.all.data[i].span;
        const sn_prof_span *s = &p->spans.data[at];
        add_ids(&g, p, at);
        sn_grid_add_u64(&g, thread_of(p, s));
        sn_grid_add_u64(&g, s->dur_ns);
    }
    sn_prof_runs_free(&runs);
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
