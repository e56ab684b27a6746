/* SPDX-License-Identifier: Apache-2.0 */
/* The results on the terminal: one table for each question (how fast, how long until it starts, how
 * long does the whole program take, what did the system count), narrow enough for 80 columns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

enum { NAME = 20 };

/* Columns of a terminal: what is no continuation byte of UTF-8. */
static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void pad(int n)
{
    for (; n > 0; n--)
        putchar(' ');
}

static void right(int width, const char *s)
{
    pad(width - width_of(s));
    fputs(s, stdout);
}

static void left(int width, const char *s)
{
    fputs(s, stdout);
    pad(width - width_of(s));
}

/* A name too long for its column takes a line of its own. */
static void name_cell(const char *name, const char *version, const char *suffix)
{
    char *all = text_of("%s%s%s%s", name, suffix, *version ? " " : "", version);
    if (width_of(all) >= NAME)
        printf("%s\n%*s", all, NAME, "");
    else
        left(NAME, all);
    free(all);
}

/* In one of a few static buffers, so that one printf may use several. */
static const char *number_of(double x, int digits)
{
    static char buffers[8][32];
    static unsigned turn;
    char *out = buffers[turn++ % 8];
    snprintf(out, sizeof buffers[0], "%.*f", digits, x < 1e15 ? x : 1e15);
    return out;
}

/* Four digits or so. */
static const char *number(double x)
{
    if (x == 0)
        return "0";
    return number_of(x, x < 0.09995 ? 4 : x < 9.9995 ? 3 : x < 99.995 ? 2 : x < 999.95 ? 1 : 0);
}

/* Prose behind a name, broken into lines. */
static void prose(const char *s)
{
    enum { WIDTH = 80, INDENT = 4 };
    int at = NAME;
    for (const char *word = s; *word;) {
        const int n = (int)strcspn(word, " ");
        if (at + 1 + n > WIDTH && at > INDENT) {
            printf("\n%*s", INDENT - 1, "");
            at = INDENT - 1;
        }
        printf(" %.*s", n, word);
        at += 1 + n;
        word += n + (word[n] == ' ');
    }
    printf("\n");
}

static const char *factor(double x)
{
    return number_of(x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
}

static char *ratio_text(const bench_ratio *r, bool first)
{
    if (first || !r->known)
        return text_of("%s", first ? "1" : "");
    if (isnan(r->low))
        return text_of("%s", factor(r->value));
    if (bench_ratio_unclear(r))
        return text_of("%s (unclear)", factor(r->value));
    return text_of("%s (%s…%s)", factor(r->value), factor(r->low), factor(r->high));
}

static void ratio_cell(const bench_ratio *r, bool first, int width)
{
    char *s = ratio_text(r, first);
    left(width, s);
    free(s);
}

static const char *agreement(const bench_result *r)
{
    static const char *const words[] = {"not compared", "reference", "agree", "DIFFER"};
    return words[r->agreement];
}

static void failure(const bench_result *r)
{
    char *state = bench_state_text(r);
    prose(state);
    free(state);
}

/* ------------------------------------------------------------------ inference */
static void latency_row(const bench_stats *s, double unit_ms)
{
    right(8, number(s->p50 / unit_ms));
    right(8, number(s->p90 / unit_ms));
    right(8, number(s->p99 / unit_ms));
}

/* "Inference, µs" as the title of the names. */
static void unit_title(const char *what, const shown_unit *u)
{
    char *title = text_of("%s, %s", what, u->name);
    printf("\n");
    left(NAME, title);
    free(title);
}

static void inference(const bench_result *r, size_t n)
{
    const shown_unit u = bench_latency_unit(r, n);
    unit_title("Inference", &u);
    printf("%8s%8s%8s%8s  %-16s %s\n", "median", "p90", "p99", "per s", "ratio, 95 %", "outputs");
    const bench_result *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const bench_result *k = &r[i];
        if (!k->state && !k->latency.n)
            continue;
        name_cell(k->runtime, k->version, "");
        if (k->state) {
            failure(k);
            continue;
        }
        first = first ? first : k;
        latency_row(&k->stats, u.divisor);
        right(8, number(k->throughput_per_s));
        printf("  ");
        ratio_cell(&k->ratio, k == first, 16);
        printf(" %s\n", agreement(k));
        if (k->full.n) {
            name_cell(k->runtime, "", "_full");
            latency_row(&k->full_stats, u.divisor);
            printf("%10s", "");
            ratio_cell(&k->full_ratio, k == first, 16);
            printf("\n");
        } else if (k->full_message) {
            name_cell(k->runtime, "", "_full");
            prose(k->full_message);
        }
    }
}

static void start(const bench_result *r, size_t n)
{
    const shown_unit u = bench_latency_unit(r, n);
    unit_title("Start", &u);
    printf("%8s%8s%11s%9s  %s\n", "load", "first", "peak RSS", "mean", "without outliers");
    for (size_t i = 0; i < n; i++) {
        if (r[i].state)
            continue;
        name_cell(r[i].runtime, r[i].version, "");
        right(8, number(r[i].load_stats.p50 / u.divisor));
        right(8, number(r[i].first_stats.p50 / u.divisor));
        right(11, bytes_text((uint64_t)r[i].peak_rss_bytes));
        right(9, number(r[i].stats.mean / u.divisor));
        printf("  %s (%zu of %zu)\n", number(r[i].stats.kept_mean / u.divisor), r[i].stats.outliers,
               r[i].stats.n);
    }
}

static void accuracy(const bench_result *r, size_t n)
{
    printf("\n%-*s%8s%8s%11s\n", NAME, "Accuracy, %", "top-1", "top-5", "samples");
    for (size_t i = 0; i < n; i++) {
        const bench_accuracy *a = &r[i].accuracy;
        name_cell(r[i].runtime, r[i].version, "");
        if (r[i].state)
            failure(&r[i]);
        else
            printf("%8.2f%8.2f%11zu\n", a->top1 * 100, a->top5 * 100, a->samples);
        if (!r[i].state && a->skipped)
            printf("%-*ssamples without a label or that cannot be read, skipped: %zu\n", NAME, "",
                   a->skipped);
    }
}

/* ------------------------------------------------------------------ whole programs */
static bool has_program(const bench_result *r)
{
    return r->program.wall.n || r->program.message;
}

static void programs(const bench_result *r, size_t n)
{
    const bench_result *first = NULL;
    printf("\n%-*s%-19s%8s%8s%11s  %s\n", NAME, "Whole program, ms", "      mean ± σ", "user",
           "system", "peak RSS", "ratio");
    for (size_t i = 0; i < n; i++) {
        const bench_program *g = &r[i].program;
        if (!has_program(&r[i]))
            continue;
        name_cell(r[i].runtime, "", "");
        if (g->message) {
            prose(g->message);
            continue;
        }
        first = first ? first : &r[i];
        char *mean = text_of("%s ± %s", number(g->stats.mean), number(g->stats.stddev));
        right(18, mean);
        free(mean);
        right(8, number(g->user_ms));
        right(8, number(g->system_ms));
        right(11, bytes_text((uint64_t)g->peak_rss_bytes));
        printf("  ");
        ratio_cell(&g->ratio, &r[i] == first, 0);
        printf("\n%-*s      %s … %s, %zu runs\n", NAME, "", number(g->stats.min),
               number(g->stats.max), g->stats.n);
    }
}

static void count(const bench_counter *c, int width)
{
    right(width, c->known ? grouped((uint64_t)(c->value + 0.5)) : "-");
}

static void counts(const bench_result *r, size_t n, const char *hardware)
{
    printf("\n%-*s%12s%8s%15s%12s%12s\n", NAME, "Counters of a run", "task-clock", "CPUs",
           "switches", "migrations", "page faults");
    for (size_t i = 0; i < n; i++) {
        const bench_program *g = &r[i].program;
        if (!g->wall.n)
            continue;
        name_cell(r[i].runtime, "", "");
        right(9, number(g->counters[0].value));
        printf(" ms");
        right(8, number(g->stats.mean > 0 ? g->counters[0].value / g->stats.mean : 0));
        count(&g->counters[1], 15);
        count(&g->counters[2], 12);
        count(&g->counters[3], 12);
        printf("\n");
    }
    if (*hardware) {
        printf("cycles, stalled-cycles-frontend, instructions, branches, branch-misses:\n"
               "%s\n",
               hardware);
        return;
    }
    printf("\n%-*s%16s%16s%13s%13s\n", NAME, "", "cycles", "instructions", "branches", "misses");
    for (size_t i = 0; i < n; i++) {
        const bench_counter *c = r[i].program.counters;
        if (!r[i].program.wall.n)
            continue;
        name_cell(r[i].runtime, "", "");
        count(&c[4], 16);
        count(&c[6], 16);
        count(&c[7], 13);
        count(&c[8], 13);
        printf("\n");
    }
}

/* ------------------------------------------------------------------ all */
static void remarks(const bench_result *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!r[i].state && r[i].difference)
            printf("\n%s: %s\n", r[i].runtime, r[i].difference);
    if (r->apart)
        printf("\none runtime at a time%s: %s\n", r->turns > 1 ? " in some rounds" : "", r->apart);
}

void bench_table(const bench_results *results, size_t from, size_t to)
{
    const bench_result *r = results->items + from;
    const size_t n = to - from;
    bool any = false, inferred = false, failed = false, rated = false;
    for (size_t i = 0; i < n; i++) {
        any |= has_program(&r[i]);
        inferred |= r[i].latency.n > 0;
        failed |= r[i].state != BENCH_OK;
        rated |= r[i].accuracy.samples > 0;
    }
    char *name = printable(r->model);
    printf("%s%s\n", from ? "\n" : "", name);
    free(name);
    printf("batch %lld, %d thread%s", (long long)r->batch, r->threads, r->threads == 1 ? "" : "s");
    if (r->instances > 1)
        printf(" over %d instances", r->instances);
    if (*results->machine.pinned)
        printf(", cores pinned");
    if (inferred)
        printf(", %d round%s", r->rounds, r->rounds == 1 ? "" : "s");
    if (inferred && r->turns > 1)
        printf(" of %d turns", r->turns);
    printf("; %s\n", results->machine.cpu);
    if (rated)
        accuracy(r, n);
    else if (inferred || failed)
        inference(r, n);
    if (inferred)
        start(r, n);
    if (any) {
        programs(r, n);
        counts(r, n, results->machine.hardware);
    }
    remarks(r, n);
    if (r->skipped)
        printf("\n");
    print_skipped(r->skipped, 0, "images");
}
