/* SPDX-License-Identifier: Apache-2.0 */
/* Violins: how the latencies of each runtime are spread. The outline is a density of all samples (a
 * Gaussian kernel of Silverman's width), as high for each of them, the dark bar inside holds the
 * middle half, the light line is the median. The scale ends where the bulk does: what lies far
 * beyond is counted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/draw.h"

enum { ROW = 40, HALF = 15, GROUP = 26, POINTS = 96, LONGEST_LABEL = 210, FEWEST = 5 };

static bool drawable(const bench_result *r)
{
    return r->state == BENCH_OK && r->latency.n >= FEWEST;
}

/* Silverman's rule with the smaller of the two measures of spread. */
static double bandwidth(const bench_result *r)
{
    const double half = plot_quantile(&r->latency, 0.75) - plot_quantile(&r->latency, 0.25);
    double sigma = r->stats.stddev;
    if (half > 0 && half / 1.34 < sigma)
        sigma = half / 1.34;
    return 0.9 * sigma * pow((double)r->latency.n, -0.2);
}

static double density(const bench_series *s, double at, double width)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        const double z = (s->value[i] - at) / width;
        sum += exp(-0.5 * z * z);
    }
    return sum;
}

static void draw_outline(drawing *d, const bench_result *r, const scale *s, const shown_unit *u,
                         const char *color)
{
    const double middle = d->y + (double)ROW / 2.0, width = bandwidth(r);
    const double low = fmax(r->stats.min, s->low * u->divisor);
    const double high = fmin(r->stats.max, s->high * u->divisor);
    if (!(width > 0) || !(high > low)) { /* all samples are the same */
        const double x = scale_at(s, r->stats.p50 / u->divisor);
        draw_line(d, x, middle - (double)HALF, x, middle + (double)HALF, "spread");
        return;
    }
    double y[POINTS], most = 0;
    for (int k = 0; k < POINTS; k++) {
        y[k] = density(&r->latency, low + (high - low) * k / (POINTS - 1), width);
        most = fmax(most, y[k]);
    }
    text_add(&d->body, "<path fill=\"%s\" fill-opacity=\"0.75\" d=\"", color);
    for (int k = 0; k < 2 * POINTS; k++) {
        const int at = k < POINTS ? k : 2 * POINTS - 1 - k;
        const double x = scale_at(s, (low + (high - low) * at / (POINTS - 1)) / u->divisor);
        const double up = y[at] / most * (double)HALF;
        text_add(&d->body, "%c%.1f %.1f", k ? 'L' : 'M', x, k < POINTS ? middle - up : middle + up);
    }
    text_add(&d->body, "Z\"/>\n");
}

static size_t beyond_scale(const bench_result *of, const scale *s, const shown_unit *u)
{
    size_t n = 0;
    for (size_t i = 0; i < of->latency.n; i++)
        n += of->latency.value[i] / u->divisor > s->high;
    return n;
}

static void draw_violin(drawing *d, const bench_results *r, const bench_result *of, const scale *s,
                        const shown_unit *u)
{
    const double middle = d->y + (double)ROW / 2.0;
    draw_text(d, s->from - 10, middle + 4.5, "label", "end",
              draw_fitted(of->runtime, LONGEST_LABEL, 13));
    draw_outline(d, of, s, u, draw_color(r, of));
    const double q1 = scale_at(s, plot_quantile(&of->latency, 0.25) / u->divisor);
    const double q3 = scale_at(s, plot_quantile(&of->latency, 0.75) / u->divisor);
    const double median = scale_at(s, of->stats.p50 / u->divisor);
    draw_rect(d, q1, middle - 2.5, fmax(q3 - q1, 1), 5, "#222");
    draw_line(d, median, middle - 5, median, middle + 5, "median");
    const size_t beyond = beyond_scale(of, s, u);
    char words[64];
    int n = snprintf(words, sizeof words, "n = %zu", of->latency.n);
    if (beyond && n > 0)
        snprintf(words + n, sizeof words - (size_t)n, ", %zu beyond", beyond);
    draw_text(d, s->to + 10, middle + 4, "tick", "start", words);
    d->y += (double)ROW;
}

/* Tables differ in scale: each has its own. `shown` results of [first, end) are drawn. */
typedef struct panel {
    size_t first, end, shown;
    shown_unit unit;
    scale scale;
} panel;

static panel plan_panel(const bench_results *r, size_t first)
{
    double low = INFINITY, high = 0, widest = 60;
    panel p = {.first = first, .end = first};
    for (; p.end < r->n && bench_same_table(&r->items[first], &r->items[p.end]); p.end++) {
        const bench_result *of = &r->items[p.end];
        if (!drawable(of))
            continue;
        p.shown++;
        low = fmin(low, of->stats.min);
        const double most = plot_quantile(&of->latency, 0.95);
        const double body = most - plot_quantile(&of->latency, 0.05);
        high = fmax(high, fmin(of->stats.max, most + body)); /* what lies far away is counted */
        widest = fmax(widest, draw_width(of->runtime, 13));
    }
    if (p.shown == 0)
        return p;
    p.unit = unit_of_ms(high);
    p.scale = scale_make(low / p.unit.divisor, high / p.unit.divisor,
                         (double)DRAW_MARGIN + fmin(widest, LONGEST_LABEL) + 10,
                         DRAW_WIDTH - DRAW_MARGIN - DRAW_ROOM_FOR_VALUES, 6);
    return p;
}

static void draw_panel(drawing *d, const bench_results *r, const panel *p)
{
    draw_text(d, DRAW_MARGIN, d->y + 18, "group", "start",
              draw_fitted(plot_table_name(&r->items[p->first]), DRAW_WIDTH - 2 * DRAW_MARGIN, 14));
    d->y += (double)GROUP;
    draw_scale(d, &p->scale, d->y, d->y + (double)p->shown * (double)ROW, p->unit.name);
    for (size_t i = p->first; i < p->end; i++)
        if (drawable(&r->items[i]))
            draw_violin(d, r, &r->items[i], &p->scale, &p->unit);
    d->y += 30;
}

/* What the drawing shows and what it does not; in at most 120 letters, which is the width. */
static char *note_of(const bench_results *r)
{
    size_t beyond = 0, few = 0, panels = 0, cut = 0;
    for (size_t i = 0; i < r->n;) {
        const panel p = plan_panel(r, i);
        for (size_t k = i; k < p.end; k++) {
            const bench_result *of = &r->items[k];
            if (drawable(of))
                beyond += beyond_scale(of, &p.scale, &p.unit);
            else
                few += of->state == BENCH_OK && of->latency.n > 0;
        }
        panels += p.shown > 0;
        cut += p.shown > 0 && p.scale.low > 0;
        i = p.end;
    }
    text t = {.n = 0};
    text_add(&t, "All samples; dark: middle half, light: median.");
    if (beyond)
        text_add(&t, " %zu beyond the scale.", beyond);
    if (few)
        text_add(&t, " Under %d: not drawn.", FEWEST);
    if (cut)
        text_add(&t, " %s above zero.",
                 cut < panels  ? "Some scales begin"
                 : panels == 1 ? "The scale begins"
                               : "The scales begin");
    return t.data;
}

void plot_violins(drawing *d, const bench_results *r)
{
    size_t shown = 0;
    for (size_t i = 0; i < r->n; i++)
        shown += drawable(&r->items[i]);
    if (shown == 0)
        return;
    char *note = note_of(r);
    draw_heading(d, "Distribution of the latencies", note);
    free(note);
    for (size_t i = 0; i < r->n;) {
        const panel p = plan_panel(r, i);
        if (p.shown)
            draw_panel(d, r, &p);
        i = p.end;
    }
}
