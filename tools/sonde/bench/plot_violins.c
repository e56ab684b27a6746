/* SPDX-License-Identifier: Apache-2.0 */
/* Violins: how the latencies of each runtime are spread. The outline is a density of all samples (a
 * Gaussian kernel of Silverman's width), the dark bar inside holds the middle half, the light line
 * is the median. The scale ends where the bulk does: what lies far beyond is counted. */
#include <math.h>
#include <string.h>

#include "bench/draw.h"

enum { ROW = 40, HALF = 15, GROUP = 26, POINTS = 96, LONGEST_LABEL = 210, MOST_SAMPLES = 4000 };

static bool drawable(const bench_result *r)
{
    return r->state == BENCH_OK && r->latency.n >= 5;
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
    const size_t stride = s->n / MOST_SAMPLES + 1; /* an outline needs no more */
    double sum = 0;
    for (size_t i = 0; i < s->n; i += stride) {
        const double z = (s->value[i] - at) / width;
        sum += exp(-0.5 * z * z);
    }
    return sum;
}

static void draw_outline(drawing *d, const bench_result *r, const scale *s, const shown_unit *u,
                         const char *color)
{
    const double middle = d->y + ROW / 2.0, width = bandwidth(r);
    const double low = fmax(r->stats.min, s->low * u->divisor);
    const double high = fmin(r->stats.max, s->high * u->divisor);
    if (!(width > 0) || !(high > low)) { /* all samples are the same */
        const double x = scale_at(s, r->stats.p50 / u->divisor);
        draw_line(d, x, middle - HALF, x, middle + HALF, "spread");
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
        const double up = y[at] / most * HALF;
        text_add(&d->body, "%c%.1f %.1f", k ? 'L' : 'M', x, k < POINTS ? middle - up : middle + up);
    }
    text_add(&d->body, "Z\"/>\n");
}

static void draw_violin(drawing *d, const bench_results *r, const bench_result *of, const scale *s,
                        const shown_unit *u)
{
    const double middle = d->y + ROW / 2.0;
    draw_text(d, s->from - 10, middle + 4.5, "label", "end",
              draw_fitted(of->runtime, LONGEST_LABEL, 13));
    draw_outline(d, of, s, u, draw_color(r, of));
    const double q1 = scale_at(s, plot_quantile(&of->latency, 0.25) / u->divisor);
    const double q3 = scale_at(s, plot_quantile(&of->latency, 0.75) / u->divisor);
    const double median = scale_at(s, of->stats.p50 / u->divisor);
    draw_rect(d, q1, middle - 2.5, fmax(q3 - q1, 1), 5, "#222");
    draw_line(d, median, middle - 5, median, middle + 5, "median");
    size_t beyond = 0;
    for (size_t i = 0; i < of->latency.n; i++)
        beyond += of->latency.value[i] / u->divisor > s->high;
    char words[64];
    int n = snprintf(words, sizeof words, "n = %zu", of->latency.n);
    if (beyond && n > 0)
        snprintf(words + n, sizeof words - (size_t)n, ", %zu beyond", beyond);
    draw_text(d, s->to + 10, middle + 4, "tick", "start", words);
    d->y += ROW;
}

/* Tables differ in scale: each has its own. */
static size_t draw_table(drawing *d, const bench_results *r, size_t first)
{
    double low = INFINITY, high = 0, widest = 60;
    size_t end = first, shown = 0;
    for (; end < r->n && bench_same_table(&r->items[first], &r->items[end]); end++) {
        const bench_result *of = &r->items[end];
        if (!drawable(of))
            continue;
        shown++;
        low = fmin(low, of->stats.min);
        const double most = plot_quantile(&of->latency, 0.95);
        const double body = most - plot_quantile(&of->latency, 0.05);
        high = fmax(high, fmin(of->stats.max, most + body)); /* what lies far away is counted */
        widest = fmax(widest, draw_width(of->runtime, 13));
    }
    if (shown == 0)
        return end;
    const shown_unit u = unit_of_ms(high);
    const scale s = scale_make(low / u.divisor, high / u.divisor,
                               DRAW_MARGIN + fmin(widest, LONGEST_LABEL) + 10,
                               DRAW_WIDTH - DRAW_MARGIN - DRAW_ROOM_FOR_VALUES, 6);
    draw_text(d, DRAW_MARGIN, d->y + 18, "group", "start",
              draw_fitted(plot_table_name(&r->items[first]), DRAW_WIDTH - 2 * DRAW_MARGIN, 14));
    d->y += GROUP;
    draw_scale(d, &s, d->y, d->y + (double)shown * ROW, u.name);
    for (size_t i = first; i < end; i++)
        if (drawable(&r->items[i]))
            draw_violin(d, r, &r->items[i], &s, &u);
    d->y += 30;
    return end;
}

void plot_violins(drawing *d, const bench_results *r)
{
    size_t shown = 0;
    for (size_t i = 0; i < r->n; i++)
        shown += drawable(&r->items[i]);
    if (shown == 0)
        return;
    draw_heading(
        d, "Distribution of the latencies",
        "All samples; dark: the middle half, light: the median. The scale does not begin at "
        "zero.");
    for (size_t i = 0; i < r->n;)
        i = draw_table(d, r, i);
}
