/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as the report page reads it: a line of JSON with everything that is small, then spans,
 * counters and runs as columns of numbers, which compress well and are decoded fast. Nothing is
 * kept but the table of texts. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "export/page.h"
#include "findings/findings.h"

/* ------------------------------------------------------------------ texts */
enum { RECENT = 1024 };

/* Each text once, in the order of first use; number 0 is "". */
typedef struct texts {
    sn_allocator *alloc;
    sn_map map; /* text ► 1 + number */
    SN_VEC(const char *) list;
    struct {
        const char *text;
        uint32_t number;
    } recent[RECENT]; /* by address: names of spans are usually the same few pointers */
} texts;

static bool text_number(texts *t, const char *text, uint32_t *number)
{
    const char *s = text ? text : "";
    const size_t slot = ((uintptr_t)s >> 3) % RECENT;
    *number = 0;
    if (!*s)
        return true;
    if (t->recent[slot].text == s) {
        *number = t->recent[slot].number;
        return true;
    }
    const void *found = sn_map_get(&t->map, s);
    if (!found) {
        found = (void *)(uintptr_t)(t->list.n + 1);
        if (t->list.n >= UINT32_MAX || !sn_vec_push(&t->list, t->alloc, s) ||
            !sn_map_put(&t->map, s, (void *)(uintptr_t)t->list.n, NULL))
            return false;
    }
    *number = (uint32_t)((uintptr_t)found - 1);
    t->recent[slot].text = s;
    t->recent[slot].number = *number;
    return true;
}

static sonde_status collect_texts(texts *t, const sn_profile *p, sonde_error *err)
{
    uint32_t n;
    bool ok = sn_vec_push(&t->list, t->alloc, "");
    for (size_t i = 0; i < p->spans.n && ok; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        ok = text_number(t, s->name, &n) && text_number(t, s->args, &n) &&
             text_number(t, s->category, &n);
    }
    for (size_t i = 0; i < p->counters.n && ok; i++)
        ok = text_number(t, p->counters.data[i].name, &n);
    return ok ? SONDE_OK : sn_fail_memory(err, t->list.n * sizeof(char *));
}

/* ------------------------------------------------------------------ JSON */
static void key_u64(sn_writer *w, bool *first, const char *key, uint64_t value)
{
    sn_put_key(w, first, key);
    sn_put_u64(w, value);
}

static void put_machine(sn_writer *w, const sn_profile *p)
{
    bool first = true, own = true;
    sn_put(w, "{");
    sn_put_key_text(w, &first, "cpu", p->cpu_model);
    sn_put_key_text(w, &first, "cpu_level", p->cpu_level);
    sn_put_key_number(w, &first, "cores", p->cores);
    sn_put_key_number(w, &first, "threads", p->threads);
    sn_put_key_text(w, &first, "precision", p->precision);
    sn_put_key(w, &first, "peak_gops");
    sn_put(w, "{");
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        if (p->peak_gops[a] > 0)
            sn_put_key_number(w, &own, sn_arithmetic_name((sn_arithmetic)a), p->peak_gops[a]);
    sn_put(w, "}");
    sn_put_key_number(w, &first, "peak_gbps", p->peak_gbps);
    sn_put_key(w, &first, "caches");
    for (int k = 0; k < 2; k++) {
        bool inner = true;
        sn_put(w, k ? ",{" : "[{");
        sn_put_key_number(w, &inner, "bytes", p->caches[k].bytes);
        sn_put_key_number(w, &inner, "gbps", p->caches[k].gbps);
        sn_put(w, "}");
    }
    sn_put(w, "]}");
}

static void put_memory(sn_writer *w, const sn_prof_memory *m)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } all[] = {
        {"mapped", m->mapped},     {"constants", m->constants}, {"packed", m->packed},
        {"arenas", m->arenas},     {"outputs", m->outputs},     {"workspaces", m->workspaces},
        {"held", m->held},         {"held_peak", m->held_peak}, {"rss", m->rss},
        {"rss_peak", m->rss_peak}, {"rss_anon", m->rss_anon},   {"rss_file", m->rss_file}};
    bool first = true;
    sn_put(w, "{");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].bytes)
            key_u64(w, &first, all[i].name, all[i].bytes);
    sn_put(w, "}");
}

static void put_usage(sn_writer *w, const sn_prof_usage *u)
{
    bool first = true;
    if (!u->known) {
        sn_put(w, "null");
        return;
    }
    sn_put(w, "{");
    key_u64(w, &first, "cpu_ns", u->cpu_ns);
    key_u64(w, &first, "minor_faults", u->minor_faults);
    key_u64(w, &first, "major_faults", u->major_faults);
    key_u64(w, &first, "voluntary", u->voluntary);
    key_u64(w, &first, "involuntary", u->involuntary);
    sn_put(w, "}");
}

static void put_wall(sn_writer *w, const sn_prof_stats *s)
{
    bool first = true;
    sn_put(w, "{");
    key_u64(w, &first, "count", s->count);
    sn_put_key_number(w, &first, "min", s->min);
    sn_put_key_number(w, &first, "max", s->max);
    sn_put_key_number(w, &first, "mean", s->mean);
    sn_put_key_number(w, &first, "stddev", s->stddev);
    sn_put_key_number(w, &first, "p50", s->p50);
    sn_put_key_number(w, &first, "p90", s->p90);
    sn_put_key_number(w, &first, "p95", s->p95);
    sn_put_key_number(w, &first, "p97", s->p97);
    sn_put_key_number(w, &first, "p99", s->p99);
    sn_put_key_number(w, &first, "p999", s->p999);
    sn_put(w, "}");
}

static sonde_status put_summary(sn_writer *w, const sn_profile *p, sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    bool first = true;
    sn_put(w, "{");
    key_u64(w, &first, "iterations", s.iterations);
    key_u64(w, &first, "warmups", s.warmups);
    key_u64(w, &first, "instances", s.instances);
    sn_put_key_number(w, &first, "runs_per_s", s.runs_per_s);
    sn_put_key_number(w, &first, "ops", s.ops);
    sn_put_key_number(w, &first, "cost_ns", s.cost_ns);
    sn_put_key(w, &first, "wall");
    put_wall(w, &s.wall_ns);
    sn_put(w, "}");
    sn_prof_summary_free(&s);
    return SONDE_OK;
}

static void put_finding(sn_writer *w, bool *first, const sonde_finding *f, double gain)
{
    static const char *const severities[] = {"good", "note", "slow"};
    bool own = true;
    sn_put(w, *first ? "{" : ",{");
    *first = false;
    sn_put_key_text(w, &own, "severity", severities[f->severity]);
    sn_put_key_text(w, &own, "topic", f->topic);
    sn_put_key_text(w, &own, "finding", f->finding);
    sn_put_key_text(w, &own, "evidence", f->evidence);
    sn_put_key_text(w, &own, "remedy", f->remedy);
    if (gain > 0)
        sn_put_key_number(w, &own, "gain", gain);
    sn_put(w, "}");
}

static sonde_status put_findings(sn_writer *w, const sn_profile *p, const sn_export_options *opt,
                                 sonde_error *err)
{
    sn_findings own;
    SN_TRY(sn_findings_of(p, &own, err));
    bool first = true;
    sn_put(w, "[");
    for (size_t i = 0; i < own.list.n; i++)
        put_finding(w, &first, &own.list.data[i], own.gains.data[i]);
    for (size_t i = 0; i < opt->n_findings; i++)
        put_finding(w, &first, &opt->findings[i], 0);
    sn_put(w, "]");
    sn_findings_free(&own);
    return SONDE_OK;
}

static void put_scenarios(sn_writer *w, const sn_export_options *opt)
{
    sn_put(w, "[");
    for (size_t i = 0; i < opt->n_scenarios; i++) {
        const sonde_scenario_time *s = &opt->scenarios[i];
        bool first = true;
        sn_put(w, i ? ",{" : "{");
        sn_put_key_text(w, &first, "name", s->name);
        sn_put_key_number(w, &first, "ns", s->ns);
        sn_put_key_number(w, &first, "speedup", s->speedup);
        sn_put_key_text(w, &first, "note", s->note);
        sn_put(w, "}");
    }
    sn_put(w, "]");
}

static void put_threads(sn_writer *w, const sn_profile *p)
{
    sn_put(w, "[");
    for (size_t i = 0; i < p->threads_seen.n; i++) {
        const sn_prof_thread *t = &p->threads_seen.data[i];
        bool first = true;
        sn_put(w, i ? ",{" : "{");
        key_u64(w, &first, "id", t->id);
        sn_put_key(w, &first, "os_tid");
        sn_put_i64(w, t->os_tid);
        sn_put_key_text(w, &first, "name", t->name);
        sn_put(w, "}");
    }
    sn_put(w, "]");
}

static void put_strings(sn_writer *w, const texts *t)
{
    sn_put(w, "[");
    for (size_t i = 0; i < t->list.n; i++) {
        sn_put(w, i ? "," : "");
        sn_put_json(w, t->list.data[i]);
    }
    sn_put(w, "]");
}

static sonde_status put_json(sn_writer *w, const sn_profile *p, const sn_export_options *opt,
                             const texts *t, size_t runs, sonde_error *err)
{
    bool first = true, own = true;
    sn_put(w, "{");
    sn_put_key_text(w, &first, "schema", "sonde.page/1");
    sn_put_key_text(w, &first, "sonde", p->version);
    sn_put_key_text(w, &first, "model", p->model_name);
    sn_put_key_number(w, &first, "level", p->level);
    sn_put_key(w, &first, "pid");
    sn_put_i64(w, p->pid);
    sn_put_key(w, &first, "start_unix_ms");
    sn_put_fixed(w, (double)p->start_wall_ns / 1e6, 3);
    sn_put_labels(w, &first, &p->labels);
    sn_put_key_number(w, &first, "record_ns", p->record_ns);
    key_u64(w, &first, "dropped", p->dropped);
    sn_put_key_text(w, &first, "note", p->note);
    sn_put_key_text(w, &first, "counters_note", p->counters_note);
    sn_put_key(w, &first, "machine");
    put_machine(w, p);
    sn_put_key(w, &first, "memory");
    put_memory(w, &p->memory);
    sn_put_key(w, &first, "usage");
    put_usage(w, &p->usage);
    sn_put_key(w, &first, "summary");
    SN_TRY(put_summary(w, p, err));
    sn_put(w, ",");
    SN_TRY(sn_page_tables(p, w, err));
    sn_put_key(w, &first, "threads");
    put_threads(w, p);
    sn_put_key(w, &first, "findings");
    SN_TRY(put_findings(w, p, opt, err));
    sn_put_key(w, &first, "what_if");
    put_scenarios(w, opt);
    if (opt->n_trends) {
        sn_put_key(w, &first, "trends");
        sn_page_trends(w, opt->trends, opt->n_trends);
    }
    sn_put_key(w, &first, "strings");
    put_strings(w, t);
    sn_put_key(w, &first, "counts");
    sn_put(w, "{");
    key_u64(w, &own, "spans", p->spans.n);
    key_u64(w, &own, "counters", p->counters.n);
    key_u64(w, &own, "runs", runs);
    sn_put(w, "}}\n");
    return SONDE_OK;
}

/* ------------------------------------------------------------------ columns */
static void put_varint(sn_writer *w, uint64_t v)
{
    unsigned char b[10];
    size_t n = 0;
    while (v > 127) {
        b[n++] = (unsigned char)(v | 128);
        v >>= 7;
    }
    b[n++] = (unsigned char)v;
    sn_put_bytes(w, b, n);
}

static void put_double(sn_writer *w, double v)
{
    uint64_t bits;
    unsigned char b[8];
    memcpy(&bits, &v, sizeof bits);
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(bits >> (8 * i));
    sn_put_bytes(w, b, sizeof b);
}

/* An index behind which UINT32_MAX means none, as a number from 1, and 0. */
static uint64_t from_one(uint32_t index)
{
    return index == UINT32_MAX ? 0 : (uint64_t)index + 1;
}

/* One field of all spans behind the other: `expression` of span `s` at position `i`. */
#define COLUMN(expression)                                                                         \
    for (size_t i = 0; i < p->spans.n; i++) {                                                      \
        const sn_prof_span *s = &p->spans.data[i];                                                 \
        put_varint(w, (expression));                                                               \
    }

static uint64_t number_of(texts *t, const char *text)
{
    uint32_t n = 0;
    (void)text_number(t, text, &n); /* all were collected: no memory is needed */
    return n;
}

static sonde_status put_parents(sn_writer *w, const sn_profile *p, sonde_error *err)
{
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    for (size_t i = 0; i < p->spans.n; i++) {
        const uint32_t parent = p->spans.data[i].parent;
        const uint32_t at = parent ? sn_prof_index_find(&index, parent) : UINT32_MAX;
        put_varint(w, at < i ? i - at : 0);
    }
    sn_prof_index_free(&index);
    return SONDE_OK;
}

static sonde_status put_spans(sn_writer *w, const sn_profile *p, texts *t, sonde_error *err)
{
    uint64_t before = 0;
    for (size_t i = 0; i < p->spans.n; i++) {
        put_varint(w, p->spans.data[i].start_ns - before);
        before = p->spans.data[i].start_ns;
    }
    COLUMN(s->dur_ns)
    COLUMN((uint64_t)s->cat)
    COLUMN(s->thread)
    COLUMN(from_one(s->step))
    COLUMN(s->run)
    COLUMN(s->iteration)
    COLUMN(s->instance)
    COLUMN((s->warmup ? 1u : 0u) | (s->bound ? 2u : 0u))
    COLUMN(number_of(t, s->name))
    COLUMN(number_of(t, s->args))
    COLUMN(number_of(t, s->category))
    return put_parents(w, p, err);
}

static void put_counters(sn_writer *w, const sn_profile *p, texts *t)
{
    for (size_t i = 0; i < p->counters.n; i++)
        put_varint(w, p->counters.data[i].at_ns);
    for (size_t i = 0; i < p->counters.n; i++)
        put_varint(w, number_of(t, p->counters.data[i].name));
    for (size_t i = 0; i < p->counters.n; i++)
        put_varint(w, from_one(p->counters.data[i].step));
    for (size_t i = 0; i < p->counters.n; i++)
        put_double(w, p->counters.data[i].value);
}

static void put_runs(sn_writer *w, const sn_prof_runs *runs)
{
    for (size_t i = 0; i < runs->all.n; i++)
        put_varint(w, runs->all.data[i].span);
    for (size_t i = 0; i < runs->all.n; i++)
        put_double(w, runs->all.data[i].wall_ns);
}

static sonde_status put_all(const sn_profile *p, const sn_export_options *opt, texts *t,
                            const sn_prof_runs *runs, sn_sink *sink, sonde_error *err)
{
    sn_writer w;
    sn_writer_init(&w, sink);
    SN_TRY(collect_texts(t, p, err));
    SN_TRY(put_json(&w, p, opt, t, runs->all.n, err));
    SN_TRY(put_spans(&w, p, t, err));
    put_counters(&w, p, t);
    put_runs(&w, runs);
    return sn_writer_finish(&w, err);
}

sonde_status sn_page_data(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                          sonde_error *err)
{
    texts *t = sn_alloc(p->alloc, sizeof *t);
    if (!t)
        return sn_fail_memory(err, sizeof *t);
    *t = (texts){.alloc = p->alloc};
    sn_map_init(&t->map, p->alloc);
    sn_prof_runs runs;
    sonde_status st = sn_profile_runs(p, &runs, err);
    if (st == SONDE_OK) {
        st = put_all(p, opt, t, &runs, sink, err);
        sn_prof_runs_free(&runs);
    }
    sn_map_free(&t->map);
    sn_vec_free(&t->list, p->alloc);
    sn_free(p->alloc, t, sizeof *t);
    return st;
}
