/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON, schema sonde.bench/1: one result is an object, several stand in "results". What
 * was not measured is null. Raw samples are there too, so that others can compute their own. */
#include <math.h>
#include <string.h>

#include "bench/parts.h"

static void json_number(text *t, const char *key, double x)
{
    if (isfinite(x))
        text_add(t, ",\"%s\":%.9g", key, x);
    else
        text_add(t, ",\"%s\":null", key);
}

static void json_text(text *t, const char *key, const char *value)
{
    text_add(t, ",\"%s\":", key);
    if (value)
        text_json(t, value);
    else
        text_add(t, "null");
}

static void json_stats(text *t, const char *key, const bench_stats *s)
{
    if (!s->n) {
        text_add(t, ",\"%s\":null", key);
        return;
    }
    text_add(t,
             ",\"%s\":{\"min\":%.9g,\"mean\":%.9g,\"p50\":%.9g,\"p90\":%.9g,\"p95\":%.9g,"
             "\"p99\":%.9g,\"p999\":%.9g,\"max\":%.9g,\"stddev\":%.9g}",
             key, s->min, s->mean, s->p50, s->p90, s->p95, s->p99, s->p999, s->max, s->stddev);
}

static void json_ratio(text *t, const char *key, const bench_ratio *r)
{
    if (!r->known) {
        text_add(t, ",\"%s\":null", key);
        return;
    }
    text_add(t, ",\"%s\":{\"value\":%.9g", key, r->value);
    json_number(t, "low", r->low);
    json_number(t, "high", r->high);
    text_add(t, "}");
}

/* Values, and the rounds and turns they belong to. */
static void json_series(text *t, const char *key, const bench_series *s)
{
    text_add(t, ",\"%s\":{\"values\":[", key);
    for (size_t i = 0; i < s->n; i++)
        text_add(t, "%s%.9g", i ? "," : "", s->value[i]);
    text_add(t, "],\"rounds\":[");
    for (size_t i = 0; i < s->n; i++)
        text_add(t, "%s%d", i ? "," : "", s->when[i].round);
    text_add(t, "],\"turns\":[");
    for (size_t i = 0; i < s->n; i++)
        text_add(t, "%s%d", i ? "," : "", s->when[i].turn);
    text_add(t, "]}");
}

static void json_program(text *t, const bench_program *g)
{
    const bench_stats *s = &g->stats;
    if (!s->n) {
        text_add(t, ",\"program_ms\":null,\"counters\":null");
        return;
    }
    text_add(t,
             ",\"program_ms\":{\"mean\":%.9g,\"stddev\":%.9g,\"min\":%.9g,\"max\":%.9g,"
             "\"user\":%.9g,\"system\":%.9g,\"runs\":%zu}",
             s->mean, s->stddev, s->min, s->max, g->user_ms, g->system_ms, s->n);
    text_add(t, ",\"counters\":{");
    for (int i = 0; i < BENCH_COUNTERS; i++) {
        text_add(t, "%s\"%s\":", i ? "," : "", g->counters[i].name);
        if (g->counters[i].known)
            text_add(t, "%.9g", g->counters[i].value);
        else
            text_add(t, "null");
    }
    text_add(t, "}");
}

static void json_machine(text *t, const bench_machine *m)
{
    text_add(t, ",\"machine\":{\"cpu\":");
    text_json(t, m->cpu);
    json_text(t, "level", m->level);
    text_add(t, ",\"cores\":%d,\"usable_cores\":%d,\"memory_bytes\":%.0f", m->cores,
             m->usable_cores, m->memory_bytes);
    json_text(t, "arch", m->arch);
    json_text(t, "kernel", m->kernel);
    json_text(t, "governor", *m->governor ? m->governor : NULL);
    json_text(t, "pinned", *m->pinned ? m->pinned : NULL);
    json_text(t, "hardware_counters", *m->hardware ? m->hardware : NULL);
    json_text(t, "date", m->date);
    text_add(t, "}");
}

static void json_agreement(text *t, const bench_result *r)
{
    static const char *const words[] = {NULL, "reference", "agrees", "differs"};
    json_text(t, "outputs", words[r->agreement]);
    json_number(t, "max_difference", r->max_difference);
    json_text(t, "remark", r->difference);
}

static void json_accuracy(text *t, const bench_accuracy *a)
{
    if (!a->samples) {
        text_add(t, ",\"accuracy\":null");
        return;
    }
    text_add(t, ",\"accuracy\":{\"samples\":%zu,\"top1\":%.9g,\"top5\":%.9g,\"skipped\":%zu}",
             a->samples, a->top1, a->top5, a->skipped);
}

static void json_result(text *t, const bench_results *all, const bench_result *r)
{
    static const char *const states[] = {"ok",     "missing", "unsupported",
                                         "failed", "crashed", "hung"};
    text_add(t, "{\"schema\":\"sonde.bench/1\",\"model\":");
    text_json(t, r->model);
    text_add(t, ",\"runtime\":{\"name\":");
    text_json(t, r->runtime);
    json_text(t, "version", *r->version ? r->version : NULL);
    text_add(t, "},\"threads\":%d,\"iterations\":%zu", r->threads, r->latency.n);
    json_number(t, "load_ms", r->load.n ? r->load_stats.p50 : NAN);
    json_number(t, "first_ms", r->first.n ? r->first_stats.p50 : NAN);
    json_stats(t, "latency_ms", &r->stats);
    json_number(t, "throughput_per_s", r->latency.n ? r->throughput_per_s : NAN);
    json_number(t, "peak_rss_bytes", r->rss.n ? r->peak_rss_bytes : NAN);
    json_program(t, &r->program);
    json_machine(t, &all->machine);
    json_text(t, "status", states[r->state]);
    json_text(t, "message", r->message);
    text_add(t, ",\"batch\":%lld,\"instances\":%d,\"rounds\":%d,\"turns\":%d", (long long)r->batch,
             r->instances, r->rounds, r->turns);
    json_text(t, "one_at_a_time", r->apart);
    text_add(t, ",\"outliers\":%zu", r->stats.outliers);
    json_number(t, "mean_without_outliers_ms", r->latency.n ? r->stats.kept_mean : NAN);
    json_number(t, "stddev_without_outliers_ms", r->latency.n ? r->stats.kept_stddev : NAN);
    json_ratio(t, "ratio", &r->ratio);
    json_stats(t, "latency_full_ms", &r->full_stats);
    json_ratio(t, "ratio_full", &r->full_ratio);
    json_agreement(t, r);
    json_number(t, "program_peak_rss_bytes", r->program.wall.n ? r->program.peak_rss_bytes : NAN);
    json_ratio(t, "program_ratio", &r->program.ratio);
    json_text(t, "program_message", r->program.message);
    json_accuracy(t, &r->accuracy);
    text_add(t, ",\"skipped_images\":%zu", r->skipped);
    text_add(t, ",\"samples\":{\"unit\":\"ms\"");
    json_series(t, "latency", &r->latency);
    json_series(t, "full", &r->full);
    json_series(t, "load", &r->load);
    json_series(t, "first", &r->first);
    json_series(t, "program", &r->program.wall);
    text_add(t, "}}");
}

void bench_json(const bench_results *r, text *t)
{
    if (r->n == 1) {
        json_result(t, r, &r->items[0]);
    } else {
        text_add(t, "{\"schema\":\"sonde.bench/1\",\"results\":[");
        for (size_t i = 0; i < r->n; i++) {
            text_add(t, i ? ",\n" : "");
            json_result(t, r, &r->items[i]);
        }
        text_add(t, "]}");
    }
    text_add(t, "\n");
}
