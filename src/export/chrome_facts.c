/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds the events of a Chrome trace: model, machine, memory, counters, and what else it
 * takes to make the tables again. Viewers show it as "metadata". */
#include "export/chrome_facts.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/date.h"
#include "profile/chrome_keys.h"
#include "profile/left.h"

static void fact_text(sn_writer *w, bool *first, const char *key, const char *value)
{
    sn_put_key(w, first, key);
    sn_put_json(w, value);
}

static void fact_u64(sn_writer *w, bool *first, const char *key, uint64_t value)
{
    sn_put_key(w, first, key);
    sn_put_u64(w, value);
}

static void fact_i64(sn_writer *w, bool *first, const char *key, int64_t value)
{
    sn_put_key(w, first, key);
    sn_put_i64(w, value);
}

static void fact_number(sn_writer *w, bool *first, const char *key, double value)
{
    sn_put_key(w, first, key);
    sn_put_number(w, value);
}

void sn_chrome_counts(sn_writer *w, const sn_prof_hw *hw)
{
    bool first = true;
    sn_put(w, "{");
#define X(name) fact_number(w, &first, #name, hw->name);
    SN_CHROME_COUNTS(X)
#undef X
    sn_put(w, "}");
}

static void put_start(sn_writer *w, bool *first, uint64_t start_wall_ns)
{
    const sn_date d = sn_date_of((int64_t)(start_wall_ns / 1000000000u));
    char text[64];
    snprintf(text, sizeof text, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02dZ", d.year, d.month, d.day,
             d.hour, d.minute, d.second);
    fact_text(w, first, "start_time", text);
    snprintf(text, sizeof text, "%" PRIu64, start_wall_ns); /* a string: beyond 2^53 */
    fact_text(w, first, "start_time_ns", text);
}

/* The other clock at the same moment. */
static void put_mono(sn_writer *w, bool *first, const sn_profile *p)
{
    char text[32];
    if (!*p->boot)
        return;
    fact_text(w, first, "boot", p->boot);
    snprintf(text, sizeof text, "%" PRIu64, p->start_mono_ns);
    fact_text(w, first, "start_mono_ns", text);
    if (p->wall_error_ns)
        fact_u64(w, first, "wall_error_ns", p->wall_error_ns);
}

static void put_machine(sn_writer *w, bool *first, const sn_profile *p)
{
    fact_text(w, first, "cpu", p->cpu_model);
    fact_text(w, first, "cpu_level", p->cpu_level);
    fact_i64(w, first, "cores", p->cores);
    fact_i64(w, first, "threads", p->threads);
    if (*p->precision)
        fact_text(w, first, "precision", p->precision);
    fact_i64(w, first, "level", p->level);
    if (!(p->peak_gops[SN_ARITH_F32] > 0))
        return;
    bool own = true;
    sn_put_key(w, first, "peaks");
    sn_put(w, "{");
    fact_number(w, &own, "gflops", p->peak_gops[SN_ARITH_F32]);
    fact_number(w, &own, "gbps", p->peak_gbps);
    fact_number(w, &own, "l2_bytes", p->caches[0].bytes);
    fact_number(w, &own, "l2_gbps", p->caches[0].gbps);
    fact_number(w, &own, "l3_bytes", p->caches[1].bytes);
    fact_number(w, &own, "l3_gbps", p->caches[1].gbps);
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        if (a != SN_ARITH_F32 && p->peak_gops[a] > 0)
            fact_number(w, &own, sn_arithmetic_name((sn_arithmetic)a), p->peak_gops[a]);
    sn_put(w, "}");
}

static void put_usage(sn_writer *w, bool *first, const sn_profile *p)
{
    bool own = true;
    if (p->usage.known) {
        sn_put_key(w, first, "usage");
        sn_put(w, "{");
#define X(name) fact_u64(w, &own, #name, p->usage.name);
        SN_CHROME_USAGE(X)
#undef X
        sn_put(w, "}");
    }
    if (p->counters_note && *p->counters_note)
        fact_text(w, first, "counters_note", p->counters_note);
}

static void put_memory(sn_writer *w, bool *first, const sn_prof_memory *m)
{
    bool own = true;
    sn_put_key(w, first, "memory");
    sn_put(w, "{");
#define X(name) fact_u64(w, &own, #name, m->name);
    SN_CHROME_MEMORY(X)
#undef X
    sn_put(w, "}");
}

static void put_categories(sn_writer *w, bool *first, uint32_t set)
{
    if (!set)
        return;
    sn_put_key(w, first, "categories");
    bool any = false;
    for (int c = 0; c < SN_CAT_COUNT; c++) {
        if (!(set >> c & 1))
            continue;
        sn_put(w, any ? "," : "[");
        sn_put_json(w, sn_prof_cat_name((sn_prof_cat)c));
        any = true;
    }
    sn_put(w, "]");
}

static void put_threads(sn_writer *w, bool *first, const sn_profile *p)
{
    sn_put_key(w, first, "thread_ids");
    sn_put(w, "[");
    for (size_t i = 0; i < p->threads_seen.n; i++) {
        bool own = true;
        sn_put(w, i ? ",{" : "{");
        fact_u64(w, &own, "tid", SN_CHROME_FIRST_THREAD + i);
        fact_i64(w, &own, "os_tid", p->threads_seen.data[i].os_tid);
        sn_put(w, "}");
    }
    sn_put(w, "]");
}

static void put_folded(sn_writer *w, bool *first, const sn_profile *p)
{
    bool any = false;
    sn_put_key(w, first, "folded_nodes");
    sn_put(w, "[");
    for (size_t i = 0; i < p->steps.n; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        if (!s->folded)
            continue;
        bool own = true;
        sn_put(w, any ? ",{" : "{");
        fact_text(w, &own, "name", s->name);
        fact_text(w, &own, "op", s->op_type);
        sn_put(w, "}");
        any = true;
    }
    sn_put(w, "]");
}

/* Which steps the events are, as the lives of values count them: binding, number, first span. */
static void put_steps(sn_writer *w, bool *first, const sn_profile *p, const uint32_t *first_span)
{
    bool any = false;
    sn_put_key(w, first, "steps");
    sn_put(w, "[");
    for (size_t i = 0; i < p->steps.n; i++) {
        if (!first_span[i])
            continue;
        sn_put(w, any ? ",[" : "[");
        sn_put_u64(w, p->steps.data[i].table);
        sn_put(w, ",");
        sn_put_u64(w, p->steps.data[i].index);
        sn_put(w, ",");
        sn_put_u64(w, first_span[i]);
        sn_put(w, "]");
        any = true;
    }
    sn_put(w, "]");
}

static void put_lives(sn_writer *w, bool *first, const sn_profile *p)
{
    sn_put_key(w, first, "lives");
    sn_put(w, "[");
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *life = &p->lives.data[i];
        bool own = true;
        sn_put(w, i ? ",\n{" : "\n{");
        fact_text(w, &own, "name", life->name);
#define X(key) fact_u64(w, &own, #key, life->key);
        SN_CHROME_LIFE(X)
#undef X
        fact_text(w, &own, "place", sn_prof_place_name(life->place));
        sn_put(w, "}");
    }
    sn_put(w, "]");
}

static void put_left_step(sn_writer *w, const sn_prof_left_step *s, uint32_t span)
{
    sn_put(w, "[");
    if (span) {
        sn_put_u64(w, span);
        sn_put(w, ",");
    }
    sn_put_number(w, s->calls);
    sn_put(w, ",");
    sn_put_number(w, s->total_ns);
    for (size_t k = 0; k < SN_LEFT_POINTS; k++) {
        sn_put(w, ",");
        sn_put_number(w, s->points[k]);
    }
    sn_put(w, "]");
}

/* Runs without events: the time of each, then for each step its first span, calls, time in all and
 * quantiles of a call. */
static void put_left(sn_writer *w, bool *first, const sn_profile *p, const uint32_t *first_span)
{
    const sn_prof_left *l = &p->left;
    bool own = true, any = false;
    char note[160];
    if (!l->wall_ns.n && !l->warmups)
        return;
    sn_put_key(w, first, "left_out");
    sn_put(w, "{");
    fact_text(w, &own, "note", sn_left_note(p, sn_left_kept(p), note));
    fact_u64(w, &own, "runs", l->wall_ns.n);
    fact_u64(w, &own, "warmups", l->warmups);
    fact_number(w, &own, "cost_ns", l->cost_ns);
    fact_u64(w, &own, "first_ns", l->first_ns);
    fact_u64(w, &own, "last_ns", l->last_ns);
    sn_put_key(w, &own, "wall_ns");
    sn_put(w, "[");
    for (size_t i = 0; i < l->wall_ns.n; i++) {
        sn_put(w, i ? "," : "");
        sn_put_number(w, l->wall_ns.data[i]);
    }
    sn_put(w, "]");
    for (size_t i = 0; i < l->steps.n; i++) {
        const sn_prof_left_step *s = &l->steps.data[i];
        if (s->step < p->steps.n)
            continue;
        sn_put_key(w, &own, s->step == SN_LEFT_MEMORY ? "memory" : "other");
        put_left_step(w, s, 0);
    }
    sn_put_key(w, &own, "steps");
    sn_put(w, "[");
    for (size_t i = 0; i < l->steps.n; i++) {
        const sn_prof_left_step *s = &l->steps.data[i];
        if (s->step >= p->steps.n || !first_span[s->step])
            continue;
        sn_put(w, any ? ",\n" : "\n");
        put_left_step(w, s, first_span[s->step]);
        any = true;
    }
    sn_put(w, "]}");
}

void sn_chrome_facts(sn_writer *w, const sn_profile *p, const sn_prof_summary *s,
                     const uint32_t *first_span)
{
    bool first = true;
    fact_text(w, &first, "tool", "sonde");
    fact_text(w, &first, "version", p->version);
    fact_text(w, &first, "model", p->model_name);
    fact_i64(w, &first, "instance", p->instance);
    fact_i64(w, &first, "pid", p->pid);
    put_machine(w, &first, p);
    put_start(w, &first, p->start_wall_ns);
    put_mono(w, &first, p);
    sn_put_labels(w, &first, &p->labels);
    fact_u64(w, &first, "iterations", s->iterations);
    fact_u64(w, &first, "warmups", s->warmups);
    fact_number(w, &first, "profiler_ns_per_record", p->record_ns);
    sn_put_key(w, &first, "profiler_cost_ms_per_iteration");
    sn_put_fixed(w, s->cost_ns / 1e6, 6);
    fact_u64(w, &first, "dropped", p->dropped);
    put_categories(w, &first, p->categories);
    put_usage(w, &first, p);
    put_memory(w, &first, &p->memory);
    put_threads(w, &first, p);
    put_folded(w, &first, p);
    put_steps(w, &first, p, first_span);
    put_left(w, &first, p, first_span);
    put_lives(w, &first, p);
}
