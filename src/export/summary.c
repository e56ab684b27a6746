/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a profile without its events: as JSON for programs ("schema" names the form, keys
 * are only added), and as Markdown for people to paste. */
#include <math.h>
#include <string.h>

#include "export/units.h"

/* ------------------------------------------------------------------ JSON */
static void key_ms(sn_writer *w, bool *first, const char *key, double ns)
{
    sn_put_key(w, first, key);
    sn_put_fixed(w, ns / 1e6, 6);
}

static void put_latency(sn_writer *w, const sn_prof_stats *s)
{
    bool first = true;
    sn_put(w, "{");
    key_ms(w, &first, "min", s->min);
    key_ms(w, &first, "mean", s->mean);
    key_ms(w, &first, "p50", s->p50);
    key_ms(w, &first, "p90", s->p90);
    key_ms(w, &first, "p95", s->p95);
    key_ms(w, &first, "p97", s->p97);
    key_ms(w, &first, "p99", s->p99);
    key_ms(w, &first, "p999", s->p999);
    key_ms(w, &first, "max", s->max);
    key_ms(w, &first, "stddev", s->stddev);
    sn_put(w, "}");
}

/* "peak_gops":{"f32":180,"bf16_tiles":2500}, in the words of "arithmetic". */
static void put_peaks(sn_writer *w, bool *first, const sn_profile *p)
{
    bool own = true;
    sn_put_key(w, first, "peak_gops");
    sn_put(w, "{");
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        if (p->peak_gops[a] > 0)
            sn_put_key_number(w, &own, sn_arithmetic_name((sn_arithmetic)a), p->peak_gops[a]);
    sn_put(w, "}");
}

static void put_machine(sn_writer *w, const sn_profile *p)
{
    bool first = true;
    sn_put(w, "{");
    sn_put_key_text(w, &first, "cpu", p->cpu_model);
    sn_put_key_text(w, &first, "cpu_level", p->cpu_level);
    sn_put_key_number(w, &first, "cores", p->cores);
    sn_put_key_number(w, &first, "threads", p->threads);
    if (*p->precision)
        sn_put_key_text(w, &first, "precision", p->precision);
    if (p->peak_gops[SN_ARITH_F32] > 0) {
        sn_put_key_number(w, &first, "peak_gflops", p->peak_gops[SN_ARITH_F32]);
        sn_put_key_number(w, &first, "peak_gbps", p->peak_gbps);
        sn_put_key_number(w, &first, "peak_l2_gbps", p->caches[0].gbps);
        sn_put_key_number(w, &first, "peak_l3_gbps", p->caches[1].gbps);
        put_peaks(w, &first, p);
    }
    sn_put(w, "}");
}

/* What the system counted for the process while the runs were measured. */
static void put_usage(sn_writer *w, const sn_profile *p)
{
    bool first = true;
    const sn_prof_usage *u = &p->usage;
    sn_put(w, "{");
    key_ms(w, &first, "task_clock_ms", (double)u->cpu_ns);
    sn_put_key_number(w, &first, "page_faults", (double)(u->minor_faults + u->major_faults));
    sn_put_key_number(w, &first, "major_page_faults", (double)u->major_faults);
    sn_put_key_number(w, &first, "context_switches", (double)(u->voluntary + u->involuntary));
    sn_put_key_number(w, &first, "involuntary_context_switches", (double)u->involuntary);
    sn_put_key_text(w, &first, "note", p->counters_note);
    sn_put(w, "}");
}

static void put_counts(sn_writer *w, bool *first, const sn_prof_hw *hw)
{
    if (!(hw->calls > 0))
        return;
    sn_put_key_number(w, first, "instructions", hw->instructions);
    sn_put_key_number(w, first, "cycles", hw->cycles);
    sn_put_key_number(w, first, "ipc", hw->cycles > 0 ? hw->instructions / hw->cycles : 0);
    sn_put_key_number(w, first, "cache_misses", hw->cache_misses);
    sn_put_key_number(w, first, "branch_misses", hw->branch_misses);
}

static void put_row(sn_writer *w, const sn_profile *p, const sn_prof_row *r, sn_prof_key key)
{
    bool first = true;
    sn_put(w, "\n{");
    sn_put_key_text(w, &first, "name", r->name);
    if (key != SN_BY_OP)
        sn_put_key_text(w, &first, "op", r->op_type);
    sn_put_key_number(w, &first, "calls", r->calls);
    key_ms(w, &first, "mean_ms", r->mean_ns);
    sn_put_key(w, &first, "share");
    sn_put_fixed(w, r->share, 6);
    key_ms(w, &first, "per_call_mean_ms", r->per_call_mean_ns);
    key_ms(w, &first, "per_call_p50_ms", r->per_call_p50_ns);
    key_ms(w, &first, "per_call_p99_ms", r->per_call_p99_ns);
    sn_put_key_number(w, &first, "flops", r->flops);
    sn_put_key_number(w, &first, "bytes", r->bytes);
    sn_put_key_number(w, &first, "input_elems", r->input_elems);
    const double roofline = sn_prof_roofline(p, r);
    if (roofline >= 0) {
        sn_put_key(w, &first, "roofline");
        sn_put_fixed(w, roofline, 6);
    }
    put_counts(w, &first, &r->hw);
    char arithmetic[SN_ARITH_TEXT];
    if (r->arithmetic)
        sn_put_key_text(w, &first, "arithmetic", sn_arithmetic_text(r->arithmetic, arithmetic));
    sn_put_key_text(w, &first, "kernel", r->kernel);
    sn_put_key_text(w, &first, key == SN_BY_NODE ? "node" : "example", r->example);
    if (key == SN_BY_NODE)
        sn_put_key_text(w, &first, "nodes", r->nodes);
    sn_put(w, "}");
}

static sonde_status put_rows(sn_writer *w, const sn_profile *p, const char *name, sn_prof_key key,
                             sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, key, &s, err));
    bool first = false, any = false;
    sn_put(w, "\n");
    sn_put_key(w, &first, name);
    sn_put(w, "[");
    for (size_t i = 0; i < s.rows.n; i++) {
        if (key != SN_BY_OP && s.rows.data[i].bracket)
            continue;
        sn_put(w, any ? "," : "");
        put_row(w, p, &s.rows.data[i], key);
        any = true;
    }
    sn_put(w, "]");
    sn_prof_summary_free(&s);
    return SONDE_OK;
}

static sonde_status write_summary(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    sn_writer w;
    sn_writer_init(&w, sink);
    bool first = true;
    sn_put(&w, "{");
    sn_put_key_text(&w, &first, "schema", "sonde.summary/1");
    sn_put_key_text(&w, &first, "version", p->version);
    sn_put_key_text(&w, &first, "model", p->model_name);
    sn_put_labels(&w, &first, &p->labels);
    sn_put_key(&w, &first, "machine");
    put_machine(&w, p);
    sn_put_key_number(&w, &first, "iterations", (double)s.iterations);
    sn_put_key_number(&w, &first, "warmups", (double)s.warmups);
    sn_put_key_number(&w, &first, "instances", (double)s.instances);
    sn_put_key_number(&w, &first, "runs_per_s", s.runs_per_s);
    sn_put_key_number(&w, &first, "ops", s.ops);
    sn_put_key(&w, &first, "latency_ms");
    put_latency(&w, &s.wall_ns);
    key_ms(&w, &first, "profiler_cost_ms", s.cost_ns);
    sn_put_key_number(&w, &first, "dropped", (double)p->dropped);
    if (p->usage.known) {
        sn_put_key(&w, &first, "counters");
        put_usage(&w, p);
    }
    sn_prof_summary_free(&s);
    SN_TRY(put_rows(&w, p, "operators", SN_BY_OP, err));
    SN_TRY(put_rows(&w, p, "shapes", SN_BY_SHAPE, err));
    SN_TRY(put_rows(&w, p, "nodes", SN_BY_NODE, err));
    SN_TRY(put_rows(&w, p, "kernels", SN_BY_KERNEL, err));
    sn_put(&w, "}\n");
    return sn_writer_finish(&w, err);
}

const sn_exporter sn_exporter_summary = {
    .suffix = ".summary.json",
    .name = "summary",
    .summary = "Latency and one row per operator, shape, node and kernel, as JSON",
    .write = write_summary};

/* ------------------------------------------------------------------ Markdown */
/* A table cell: the characters Markdown or HTML would take for their own are escaped. */
static void put_cell(sn_writer *w, const char *text)
{
    for (const char *s = text ? text : ""; *s;) {
        if (*s == '\n' || *s == '\r') {
            sn_put(w, " ");
            s++;
            continue;
        }
        sn_put(w, strchr("\\`*_{}[]<>#|~&", *s) ? "\\" : "");
        s += sn_put_char(w, s);
    }
}

static void put_stat(sn_writer *w, const sn_time_unit *unit, const char *name, double ns)
{
    sn_put(w, "| ");
    sn_put(w, name);
    sn_put(w, " | ");
    sn_put_in_unit(w, ns, unit, unit->decimals + 1);
    sn_put(w, " |\n");
}

static sonde_status write_markdown(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    const sn_time_unit unit = sn_time_unit_for(s.wall_ns.mean);
    sn_writer w;
    sn_writer_init(&w, sink);
    sn_put(&w, "# Profile of ");
    put_cell(&w, p->model_name && *p->model_name ? p->model_name : "a model");
    sn_put(&w, "\n\n");
    put_cell(&w, p->cpu_model);
    sn_put(&w, " (");
    put_cell(&w, p->cpu_level);
    sn_put(&w, "), threads: ");
    sn_put_i64(&w, p->threads);
    if (*p->precision) {
        sn_put(&w, ", precision: ");
        put_cell(&w, p->precision);
    }
    sn_put(&w, "; sonde ");
    put_cell(&w, p->version);
    sn_put(&w, ". Measured runs: ");
    sn_put_u64(&w, s.iterations);
    if (s.instances > 1) {
        sn_put(&w, " in ");
        sn_put_u64(&w, s.instances);
        sn_put(&w, " instances");
    }
    sn_put(&w, ", warm-up: ");
    sn_put_u64(&w, s.warmups);
    sn_put(&w, ", operators per run: ");
    sn_put_fixed(&w, s.ops, 0);
    sn_put(&w, ".\n\n| latency | ");
    sn_put(&w, unit.name);
    sn_put(&w, " |\n| --- | ---: |\n");
    put_stat(&w, &unit, "mean", s.wall_ns.mean);
    put_stat(&w, &unit, "min", s.wall_ns.min);
    put_stat(&w, &unit, "median", s.wall_ns.p50);
    put_stat(&w, &unit, "p95", s.wall_ns.p95);
    put_stat(&w, &unit, "p99", s.wall_ns.p99);
    put_stat(&w, &unit, "max", s.wall_ns.max);
    if (isnan(s.cost_ns))
        sn_put(&w, "| profiler | unknown |\n");
    else
        put_stat(&w, &unit, "profiler (not included)", s.cost_ns);
    const bool peaks = p->peak_gops[SN_ARITH_F32] > 0;
    char arithmetic[SN_ARITH_TEXT];
    bool direct = false;
    sn_put(&w, "\n| operator | calls | ");
    sn_put(&w, unit.name);
    sn_put(&w, " | share | GFLOP/s | ");
    sn_put(&w, peaks ? "% of roofline | arithmetic | kernel |\n" : "arithmetic | kernel |\n");
    sn_put(&w, "| --- | ---: | ---: | ---: | ---: | ");
    sn_put(&w, peaks ? "---: | --- | --- |\n" : "--- | --- |\n");
    for (size_t i = 0; i < s.rows.n; i++) {
        const sn_prof_row *r = &s.rows.data[i];
        sn_put(&w, "| ");
        put_cell(&w, r->name);
        sn_put(&w, " | ");
        sn_put_fixed(&w, r->calls, r->calls == (double)(int64_t)r->calls ? 0 : 1);
        sn_put(&w, " | ");
        sn_put_fixed(&w, r->mean_ns / unit.ns, unit.decimals + 1);
        sn_put(&w, " | ");
        sn_put_fixed(&w, r->share * 100, 2);
        sn_put(&w, " % | ");
        if (r->flops > 0 && r->mean_ns > 0)
            sn_put_fixed(&w, r->flops / r->mean_ns, 1);
        sn_put(&w, " | ");
        const double roofline = sn_prof_roofline(p, r);
        if (roofline >= 0)
            sn_put_fixed(&w, roofline * 100, 1);
        sn_put(&w, peaks ? " | " : "");
        put_cell(&w, sn_arithmetic_text(r->arithmetic, arithmetic));
        sn_put(&w, " | ");
        put_cell(&w, r->kernel);
        sn_put(&w, " |\n");
        direct |= sn_prof_counts_direct(r);
    }
    if (direct)
        sn_put(&w, "\n" SN_PROF_DIRECT_NOTE "\n");
    sn_prof_summary_free(&s);
    return sn_writer_finish(&w, err);
}

const sn_exporter sn_exporter_markdown = {.suffix = ".md",
                                          .name = "markdown",
                                          .summary = "Latency and operators, as Markdown",
                                          .write = write_markdown};
