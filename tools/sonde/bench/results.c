/* SPDX-License-Identifier: Apache-2.0 */
/* A result's life: opened before the rounds, finished when all samples are there. */
#include <math.h>
#include <stdlib.h>

#include "bench/parts.h"

void bench_result_open(bench_result *r, const bench_plan *p, const runtime *which)
{
    *r = (bench_result){.model = text_of("%s", p->model->label),
                        .runtime = text_of("%s", which->label),
                        .name = text_of("%s", which->name),
                        .version = text_of("%s", ""),
                        .options = bench_options_said(which),
                        .threads = p->threads,
                        .instances = p->instances,
                        .batch = p->model->batch,
                        .skipped = p->model->skipped,
                        .rounds = p->rounds,
                        .turns = 1,
                        .max_difference = NAN};
    for (int k = 0; k < 2 && p->model->hashes[k]; k++)
        r->hashes[k] = text_of("%s", p->model->hashes[k]);
}

static double largest(const bench_series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n; i++)
        most = s->value[i] > most ? s->value[i] : most;
    return most;
}

void bench_result_finish(bench_result *r, const bench_result *first)
{
    bench_program *g = &r->program;
    r->stats = bench_stats_of(&r->latency);
    r->full_stats = bench_stats_of(&r->full);
    r->load_stats = bench_stats_of(&r->load);
    r->first_stats = bench_stats_of(&r->first);
    r->peak_rss_bytes = largest(&r->rss);
    g->stats = bench_stats_of(&g->wall);
    g->user_ms = bench_stats_of(&g->user).mean;
    g->system_ms = bench_stats_of(&g->system).mean;
    g->peak_rss_bytes = largest(&g->rss);
    if (!first)
        return;
    r->ratio = bench_ratio_of(&r->latency, &first->latency);
    r->full_ratio = bench_ratio_of(&r->full, &first->full);
    g->ratio = bench_ratio_of(&g->wall, &first->program.wall);
}

static void result_free(bench_result *r)
{
    bench_series *const series[] = {
        &r->latency,      &r->full,         &r->load,           &r->first,      &r->rss,
        &r->program.wall, &r->program.user, &r->program.system, &r->program.rss};
    char *const texts[] = {
        r->model,        r->hashes[0], r->hashes[1],  r->runtime,         r->name,
        r->version,      r->message,   r->difference, r->program.message, r->program.command,
        r->full_message, r->apart,     r->options};
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
        bench_series_free(series[i]);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
}

void bench_results_cut(bench_results *r, size_t n)
{
    while (r->n > n)
        result_free(&r->items[--r->n]);
}

void bench_results_free(bench_results *r)
{
    bench_results_cut(r, 0);
    free(r->items);
    bench_machine_free(&r->machine);
    *r = (bench_results){.n = 0};
}

char *bench_state_text(const bench_result *r)
{
    static const char *const words[] = {"ok",     "not installed", "cannot run this",
                                        "failed", "crashed",       "hung"};
    return r->state == BENCH_OK ? text_of("ok") : text_of("%s: %s", words[r->state], r->message);
}

shown_unit bench_latency_unit(const bench_result *r, size_t n)
{
    double shortest = 0;
    for (size_t i = 0; i < n; i++)
        if (r[i].latency.n && (shortest == 0 || r[i].stats.p50 < shortest))
            shortest = r[i].stats.p50;
    return unit_of_ms(shortest);
}
