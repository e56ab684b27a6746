/* SPDX-License-Identifier: Apache-2.0 */
/* Results for spreadsheets (.csv, one row a result) and for pages (.md, one section a model). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

static const char *const states[] = {"ok", "missing", "unsupported", "failed", "crashed", "hung"};
static const char *const agreements[] = {"", "reference", "agrees", "differs"};

/* ------------------------------------------------------------------ .csv */
/* RFC 4180; what a spreadsheet would take for a formula gets an apostrophe in front. */
static void csv_text(text *t, const char *s)
{
    const bool formula = *s && strchr("=+-@\t\r", *s);
    char *shown = printable(s);
    text_add(t, "\"%s", formula ? "'" : "");
    for (const char *at = shown; *at; at++)
        text_add(t, *at == '"' ? "\"\"" : "%c", *at);
    text_add(t, "\",");
    free(shown);
}

static void csv_number(text *t, double x)
{
    if (isfinite(x))
        text_add(t, "%.9g", x);
    text_add(t, ",");
}

static void csv_stats(text *t, const bench_stats *s)
{
    const double x[] = {s->min, s->mean, s->p50, s->p90,   s->p95,
                        s->p99, s->p999, s->max, s->stddev};
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        csv_number(t, s->n ? x[i] : NAN);
}

static void csv_ratio(text *t, const bench_ratio *r)
{
    csv_number(t, r->known ? r->value : NAN);
    csv_number(t, r->known ? r->low : NAN);
    csv_number(t, r->known ? r->high : NAN);
}

static void csv_row(text *t, const bench_result *r)
{
    const bench_program *g = &r->program;
    csv_text(t, r->model);
    csv_text(t, r->runtime);
    csv_text(t, r->version);
    csv_number(t, r->threads);
    csv_number(t, (double)r->batch);
    csv_number(t, r->instances);
    csv_text(t, states[r->state]);
    csv_text(t, r->message ? r->message : "");
    csv_number(t, r->rounds);
    csv_number(t, r->turns);
    csv_number(t, (double)r->latency.n);
    csv_number(t, r->load.n ? r->load_stats.p50 : NAN);
    csv_number(t, r->first.n ? r->first_stats.p50 : NAN);
    csv_stats(t, &r->stats);
    csv_number(t, (double)r->stats.outliers);
    csv_number(t, r->stats.n ? r->stats.kept_mean : NAN);
    csv_ratio(t, &r->ratio);
    csv_number(t, r->latency.n ? r->throughput_per_s : NAN);
    csv_number(t, r->rss.n ? r->peak_rss_bytes : NAN);
    csv_stats(t, &r->full_stats);
    csv_text(t, agreements[r->agreement]);
    csv_number(t, r->max_difference);
    csv_number(t, g->wall.n ? g->stats.mean : NAN);
    csv_number(t, g->wall.n ? g->stats.stddev : NAN);
    csv_number(t, g->wall.n ? g->stats.min : NAN);
    csv_number(t, g->wall.n ? g->stats.max : NAN);
    csv_number(t, g->wall.n ? g->user_ms : NAN);
    csv_number(t, g->wall.n ? g->system_ms : NAN);
    csv_number(t, (double)g->wall.n);
    csv_number(t, g->wall.n ? g->peak_rss_bytes : NAN);
    csv_ratio(t, &g->ratio);
    for (int i = 0; i < BENCH_COUNTERS; i++)
        csv_number(t, g->wall.n && g->counters[i].known ? g->counters[i].value : NAN);
    csv_number(t, r->accuracy.samples ? r->accuracy.top1 : NAN);
    csv_number(t, r->accuracy.samples ? r->accuracy.top5 : NAN);
    csv_number(t, (double)(r->accuracy.skipped + r->skipped));
    t->data[t->n - 1] = '\n'; /* instead of the last comma */
}

void bench_csv(const bench_results *r, text *t)
{
    text_add(
        t, "model,runtime,version,threads,batch,instances,status,message,rounds,turns,"
           "iterations,load_ms,first_ms,min_ms,mean_ms,p50_ms,p90_ms,p95_ms,p99_ms,p999_ms,max_ms,"
           "stddev_ms,outliers,mean_without_outliers_ms,ratio,ratio_low,ratio_high,"
           "throughput_per_s,peak_rss_bytes,full_min_ms,full_mean_ms,full_p50_ms,full_p90_ms,"
           "full_p95_ms,full_p99_ms,full_p999_ms,full_max_ms,full_stddev_ms,outputs,"
           "max_difference,program_mean_ms,program_stddev_ms,program_min_ms,program_max_ms,"
           "program_user_ms,program_system_ms,program_runs,program_peak_rss_bytes,"
           "program_ratio,program_ratio_low,program_ratio_high,task_clock_ms,context_switches,"
           "cpu_migrations,page_faults,cycles,stalled_cycles_frontend,instructions,branches,"
           "branch_misses,top1,top5,skipped\n");
    for (size_t i = 0; i < r->n; i++)
        csv_row(t, &r->items[i]);
}

/* ------------------------------------------------------------------ .md */
/* A cell: bars end it, angle brackets are tags. */
static void md_text(text *t, const char *s)
{
    char *shown = printable(s);
    for (const char *at = shown; *at; at++)
        text_add(t, *at == '|' || *at == '<' || *at == '\\' ? "\\%c" : "%c", *at);
    free(shown);
}

static void md_name(text *t, const bench_result *r)
{
    text_add(t, "| ");
    md_text(t, r->runtime);
    if (*r->version) {
        text_add(t, " ");
        md_text(t, r->version);
    }
    text_add(t, " |");
}

static void md_ratio(text *t, const bench_ratio *r)
{
    if (r->known && bench_ratio_unclear(r))
        text_add(t, " %.2f (unclear) |", r->value);
    else if (r->known && isfinite(r->low))
        text_add(t, " %.2f (%.2f…%.2f) |", r->value, r->low, r->high);
    else if (r->known)
        text_add(t, " %.2f |", r->value);
    else
        text_add(t, " |");
}

/* Median, p90, p99, p99.9, mean ± σ, outliers. */
static void md_latency(text *t, const bench_stats *s, const shown_unit *u)
{
    const double all[] = {s->p50, s->p90, s->p99, s->p999, s->mean};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        text_add(t, "%s %.*f", k ? " |" : "", u->decimals, all[k] / u->divisor);
    text_add(t, " ± %.*f | %zu of %zu |", u->decimals, s->stddev / u->divisor, s->outliers, s->n);
}

static void md_inference(text *t, const bench_result *r, size_t n)
{
    const shown_unit u = bench_latency_unit(r, n);
    text_add(t,
             "| Inference | median %s | p90 | p99 | p99.9 | mean ± σ | outliers | ratio, 95 %% | "
             "per s | load ms | first %s | peak RSS MB | outputs |\n"
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
             u.name, u.name);
    for (size_t i = 0; i < n; i++) {
        const bench_stats *s = &r[i].stats;
        md_name(t, &r[i]);
        if (r[i].state) {
            char *state = bench_state_text(&r[i]);
            text_add(t, " ");
            md_text(t, state);
            text_add(t, " | | | | | | | | | | | |\n");
            free(state);
            continue;
        }
        md_latency(t, s, &u);
        md_ratio(t, &r[i].ratio);
        text_add(t, " %.1f | %.*f | %.2f | %.1f | %s |\n", r[i].throughput_per_s,
                 r[i].load_stats.p50 < 9.95 ? 3 : 1, r[i].load_stats.p50,
                 r[i].first_stats.p50 / u.divisor, r[i].peak_rss_bytes / 1e6,
                 agreements[r[i].agreement]);
        if (r[i].full.n) {
            s = &r[i].full_stats;
            text_add(t, "| ");
            md_text(t, r[i].runtime);
            text_add(t, "_full |");
            md_latency(t, s, &u);
            md_ratio(t, &r[i].full_ratio);
            text_add(t, " | | | | |\n");
        }
    }
}

static void md_programs(text *t, const bench_result *r, size_t n)
{
    text_add(t,
             "\n| Whole program | mean ± σ ms | user | system | min … max | runs | peak RSS MB | "
             "ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        const bench_program *g = &r[i].program;
        if (!g->wall.n)
            continue;
        md_name(t, &r[i]);
        text_add(t, " %.1f ± %.1f | %.1f | %.1f | %.1f … %.1f | %zu | %.1f |", g->stats.mean,
                 g->stats.stddev, g->user_ms, g->system_ms, g->stats.min, g->stats.max, g->stats.n,
                 g->peak_rss_bytes / 1e6);
        md_ratio(t, &g->ratio);
        text_add(t, "\n");
    }
}

static void md_counters(text *t, const bench_results *all, const bench_result *r, size_t n)
{
    text_add(t,
             "\n| Counters | CPU cycles | CPUs utilized | Total time (s) | User time (s) | System "
             "time (s) | Total instructions | context-switches | cpu-migrations | page-faults |\n"
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        static const int rows[] = {1, 2, 3};
        const bench_program *g = &r[i].program;
        if (!g->wall.n)
            continue;
        md_name(t, &r[i]);
        text_add(t, " %s | %.3f | %.6f | %.6f | %.6f | %s |",
                 g->counters[4].known ? grouped((uint64_t)g->counters[4].value) : "–",
                 g->counters[0].value / g->stats.mean, g->stats.mean / 1e3, g->user_ms / 1e3,
                 g->system_ms / 1e3,
                 g->counters[6].known ? grouped((uint64_t)g->counters[6].value) : "–");
        for (int k = 0; k < 3; k++)
            text_add(t, " %s |",
                     g->counters[rows[k]].known ? grouped((uint64_t)g->counters[rows[k]].value)
                                                : "–");
        text_add(t, "\n");
    }
    if (*all->machine.hardware)
        text_add(t, "\nHardware counters: %s.\n", all->machine.hardware);
}

static void md_accuracy(text *t, const bench_result *r, size_t n)
{
    text_add(t, "| Accuracy | top-1 %% | top-5 %% | samples | skipped |\n| --- | --- | --- | --- | "
                "--- |\n");
    for (size_t i = 0; i < n; i++) {
        md_name(t, &r[i]);
        if (r[i].state) {
            char *state = bench_state_text(&r[i]);
            text_add(t, " ");
            md_text(t, state);
            text_add(t, " | | | |\n");
            free(state);
            continue;
        }
        text_add(t, " %.2f | %.2f | %zu | %zu |\n", r[i].accuracy.top1 * 100,
                 r[i].accuracy.top5 * 100, r[i].accuracy.samples, r[i].accuracy.skipped);
    }
}

void bench_markdown(const bench_results *r, text *t)
{
    const bench_machine *m = &r->machine;
    for (size_t from = 0, to = 0; from < r->n; from = to) {
        const bench_result *first = &r->items[from];
        bool program = false, rated = false;
        for (to = from; to < r->n && bench_same_table(first, &r->items[to]); to++) {
            program |= r->items[to].program.wall.n > 0;
            rated |= r->items[to].accuracy.samples > 0;
        }
        text_add(t, "%s## ", from ? "\n" : "");
        md_text(t, first->model);
        text_add(t, ", batch %lld, %d thread%s", (long long)first->batch, first->threads,
                 first->threads == 1 ? "" : "s");
        if (first->instances > 1)
            text_add(t, " over %d instances", first->instances);
        text_add(t, "\n\n");
        if (rated)
            md_accuracy(t, first, to - from);
        else
            md_inference(t, first, to - from);
        if (first->skipped)
            text_add(t, "\nImages that cannot be read and were skipped: %zu.\n", first->skipped);
        if (first->apart) {
            text_add(t, "\nOne runtime at a time%s: ", first->turns > 1 ? " in some rounds" : "");
            md_text(t, first->apart);
            text_add(t, ".\n");
        }
        if (program) {
            md_programs(t, first, to - from);
            md_counters(t, r, first, to - from);
        }
    }
    text_add(
        t,
        "\n%s (%s), %d cores, %.1f GB, %s; %s; sonde %s. All samples are used; an outlier "
        "is more than 5 scaled median absolute deviations from the median; ratios are relative to "
        "the first row, turn by turn, with Student's 95 %% interval over the rounds.\n",
        m->cpu, m->level, m->usable_cores, m->memory_bytes / 1e9, m->kernel, m->date, m->version);
}
