/* SPDX-License-Identifier: Apache-2.0 */
/* Bars: one for each runtime, from zero, with the spread of the samples as a whisker and the figure
 * at its end. A runtime that gave no figure keeps its row and says why. */
#include <math.h>
#include <string.h>

#include "bench/draw.h"

enum { ROW = 26, BAR = 16, GROUP = 26, LONGEST_LABEL = 210 };

/* What is to be drawn of a result; length < 0: nothing was measured, `words` says why. */
typedef struct bar {
    double length, low, high;
    bench_ratio ratio;
    const char *words;
} bar;

typedef struct panel {
    const char *title, *note;
    bar (*of)(const bench_result *r);
    shown_unit (*unit_for)(double largest);
} panel;

static const char *why_not(bench_state state, const char *message)
{
    switch (state) {
    case BENCH_MISSING:
        return "not installed";
    case BENCH_UNSUPPORTED:
        return "cannot run this model";
    case BENCH_CRASHED:
        return "crashed";
    case BENCH_HUNG:
        return "did not answer in time";
    case BENCH_OK:
    case BENCH_FAILED:
        break;
    }
    return message && *message ? message : "not measured";
}

static bar latency_bar(const bench_result *r)
{
    if (r->state != BENCH_OK || r->latency.n == 0)
        return (bar){.length = -1, .words = why_not(r->state, r->message)};
    return (bar){.length = r->stats.p50,
                 .low = plot_quantile(&r->latency, 0.05),
                 .high = plot_quantile(&r->latency, 0.95),
                 .ratio = r->ratio};
}

static bar program_bar(const bench_result *r)
{
    const bench_program *p = &r->program;
    if (p->state != BENCH_OK || p->wall.n == 0)
        return (bar){.length = -1, .words = why_not(p->state, p->message)};
    return (bar){.length = p->stats.mean,
                 .low = fmax(0, p->stats.mean - p->stats.stddev),
                 .high = p->stats.mean + p->stats.stddev,
                 .ratio = p->ratio};
}

static bar memory_bar(const bench_result *r)
{
    const bench_program *p = &r->program;
    const bool whole = p->state == BENCH_OK && p->rss.n > 0;
    if (!whole && (r->state != BENCH_OK || r->rss.n == 0))
        return (bar){.length = -1, .words = why_not(r->state, r->message)};
    const bench_series *s = whole ? &p->rss : &r->rss;
    return (bar){.length = plot_quantile(s, 1), .low = NAN, .high = NAN};
}

static void draw_bar(drawing *d, const bench_results *r, const bench_result *of, const bar *b,
                     const scale *s, const shown_unit *u)
{
    const double middle = d->y + (double)ROW / 2.0;
    draw_text(d, s->from - 10, middle + 4.5, "label", "end",
              draw_fitted(of->runtime, LONGEST_LABEL, 13));
    if (b->length < 0) {
        draw_text(d, s->from + 6, middle + 4, "absent", "start",
                  draw_fitted(b->words, s->to - s->from, 12));
        d->y += (double)ROW;
        return;
    }
    const double end = scale_at(s, b->length / u->divisor);
    double right = end;
    draw_rect(d, s->from, middle - (double)BAR / 2.0, end - s->from, BAR, draw_color(r, of));
    if (b->high > b->low) {
        const double low = scale_at(s, b->low / u->divisor);
        right = fmax(end, scale_at(s, b->high / u->divisor));
        draw_line(d, low, middle, right, middle, "spread");
        draw_line(d, low, middle - 4, low, middle + 4, "spread");
        draw_line(d, right, middle - 4, right, middle + 4, "spread");
    }
    char words[96];
    int n = snprintf(words, sizeof words, "%s", short_number(b->length / u->divisor));
    if (b->ratio.known && b->ratio.value != 1 && n > 0)
        snprintf(words + n, sizeof words - (size_t)n, "  (%s\xC3\x97)",
                 short_number(b->ratio.value));
    draw_text(d, right + 6, middle + 4, "value", "start", words);
    d->y += (double)ROW;
}

/* One table with a scale of its own; returns where the next begins. */
static size_t draw_table(drawing *d, const bench_results *r, const panel *p, size_t first)
{
    double largest = 0, widest = 60;
    size_t end = first;
    for (; end < r->n && bench_same_table(&r->items[first], &r->items[end]); end++) {
        const bar b = p->of(&r->items[end]);
        largest = fmax(largest, fmax(b.length, b.high > b.low ? b.high : 0));
        widest = fmax(widest, draw_width(r->items[end].runtime, 13));
    }
    draw_text(d, DRAW_MARGIN, d->y + 18, "group", "start",
              draw_fitted(plot_table_name(&r->items[first]), DRAW_WIDTH - 2 * DRAW_MARGIN, 14));
    d->y += (double)GROUP;
    const shown_unit u = p->unit_for(largest);
    /* From zero, always: a bar's length is what it says. */
    const scale s =
        scale_make(0, largest / u.divisor, (double)DRAW_MARGIN + fmin(widest, LONGEST_LABEL) + 10,
                   DRAW_WIDTH - DRAW_MARGIN - DRAW_ROOM_FOR_VALUES, 6);
    draw_scale(d, &s, d->y, d->y + (double)(end - first) * (double)ROW, u.name);
    for (size_t i = first; i < end; i++) {
        const bar b = p->of(&r->items[i]);
        draw_bar(d, r, &r->items[i], &b, &s, &u);
    }
    d->y += 30;
    return end;
}

static void draw_panel(drawing *d, const bench_results *r, const panel *p)
{
    size_t bars = 0;
    for (size_t i = 0; i < r->n; i++)
        bars += p->of(&r->items[i]).length >= 0;
    if (bars == 0)
        return;
    draw_heading(d, p->title, p->note);
    for (size_t i = 0; i < r->n;)
        i = draw_table(d, r, p, i);
}

void plot_bars(drawing *d, const bench_results *r)
{
    draw_panel(
        d, r,
        &(panel){"Inference latency",
                 "Median of one inference; whiskers: 5th to 95th percentile. Lower is better.",
                 latency_bar, unit_of_ms});
}

void plot_program(drawing *d, const bench_results *r)
{
    draw_panel(d, r,
               &(panel){"Whole program",
                        "Process start to result: mean; whiskers: one standard deviation. Lower is "
                        "better.",
                        program_bar, unit_of_ms});
}

void plot_memory(drawing *d, const bench_results *r)
{
    draw_panel(d, r,
               &(panel){"Peak memory", "Largest resident set of the process. Lower is better.",
                        memory_bar, unit_of_bytes});
}
