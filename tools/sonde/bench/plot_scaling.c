/* SPDX-License-Identifier: Apache-2.0 */
/* Scaling: throughput over threads and over batch sizes, a line for each runtime, where at least
 * two sizes were measured. Dashed: what the first runtime would reach if twice as much gave twice
 * the speed (threads only). */
#include <math.h>
#include <string.h>

#include "bench/draw.h"

enum { HEIGHT = 220, LEFT = 64, MOST_SIZES = 64, MOST_LINES = 32 };

typedef struct axis {
    const char *title, *unit;
    int64_t (*of)(const bench_result *r);
    /* Results that may stand in one picture: they differ in nothing but the axis and the runtime.
     */
    bool (*beside)(const bench_result *a, const bench_result *b);
    bool ideal;
} axis;

static int64_t threads_of(const bench_result *r)
{
    return r->threads;
}

static int64_t batch_of(const bench_result *r)
{
    return r->batch;
}

static bool same_but_threads(const bench_result *a, const bench_result *b)
{
    return strcmp(a->model, b->model) == 0 && a->batch == b->batch && a->instances == b->instances;
}

static bool same_but_batch(const bench_result *a, const bench_result *b)
{
    return strcmp(a->model, b->model) == 0 && a->threads == b->threads &&
           a->instances == b->instances;
}

typedef struct picture { /* the results of one picture, and the sizes they were measured at */
    const bench_result *items[256];
    size_t n;
    int64_t sizes[MOST_SIZES];
    size_t n_sizes;
    double most;
} picture;

static void collect(picture *p, const bench_results *r, size_t first, const axis *a)
{
    *p = (picture){.n = 0};
    for (size_t i = first; i < r->n; i++) {
        const bench_result *of = &r->items[i];
        if (of->state != BENCH_OK || !(of->throughput_per_s > 0) ||
            !a->beside(&r->items[first], of) || p->n >= 256)
            continue;
        p->items[p->n++] = of;
        p->most = fmax(p->most, of->throughput_per_s);
        size_t k = 0;
        while (k < p->n_sizes && p->sizes[k] < a->of(of))
            k++;
        if ((k < p->n_sizes && p->sizes[k] == a->of(of)) || p->n_sizes >= MOST_SIZES)
            continue;
        memmove(&p->sizes[k + 1], &p->sizes[k], (p->n_sizes - k) * sizeof p->sizes[0]);
        p->sizes[k] = a->of(of);
        p->n_sizes++;
    }
}

static bool first_of_picture(const bench_results *r, size_t i, const axis *a)
{
    for (size_t k = 0; k < i; k++)
        if (a->beside(&r->items[k], &r->items[i]))
            return false;
    return true;
}

/* Sizes stand at equal distances in the order of their numbers: 1, 2, 4, 8 are usual. */
static double place_of(const picture *p, int64_t size, double left, double right)
{
    size_t k = 0;
    while (k + 1 < p->n_sizes && p->sizes[k] < size)
        k++;
    return left + (right - left) * ((double)k + 0.5) / (double)p->n_sizes;
}

/* What the first runtime would reach at `size` if it went on as at its smallest. */
static double ideal_at(const picture *p, const axis *a, int64_t size)
{
    const bench_result *least = p->items[0];
    for (size_t i = 1; i < p->n; i++)
        if (strcmp(p->items[i]->runtime, least->runtime) == 0 && a->of(p->items[i]) < a->of(least))
            least = p->items[i];
    return a->of(least) > 0 ? least->throughput_per_s * (double)size / (double)a->of(least) : 0;
}

typedef struct end_label {
    double y;
    const char *words, *color;
} end_label;

/* Names at the ends of the lines, moved apart where they would overlap. */
static void draw_labels(drawing *d, end_label *labels, size_t n, double x)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && labels[k].y < labels[k - 1].y; k--) {
            const end_label swap = labels[k];
            labels[k] = labels[k - 1];
            labels[k - 1] = swap;
        }
    double last = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double y = fmax(labels[i].y, last + 15);
        draw_rect(d, x + 8, y - 4, 8, 8, labels[i].color);
        draw_text(d, x + 20, y + 4, "value", "start",
                  draw_fitted(labels[i].words, DRAW_ROOM_FOR_VALUES - 8, 12));
        last = y;
    }
}

static void draw_lines(drawing *d, const bench_results *r, const picture *p, const axis *a,
                       const scale *s, double left, double right)
{
    end_label labels[MOST_LINES];
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(p->items[k]->runtime, p->items[i]->runtime) == 0;
        if (seen || n >= MOST_LINES)
            continue;
        const char *color = draw_color(r, p->items[i]);
        double last_x = 0, last_y = 0;
        for (size_t k = 0, points = 0; k < p->n_sizes; k++)
            for (size_t j = i; j < p->n; j++) {
                const bench_result *of = p->items[j];
                if (strcmp(of->runtime, p->items[i]->runtime) != 0 || a->of(of) != p->sizes[k])
                    continue;
                const double x = place_of(p, p->sizes[k], left, right);
                const double y = scale_at(s, of->throughput_per_s);
                if (points++)
                    text_add(&d->body,
                             "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                             "stroke-width=\"2\"/>\n",
                             last_x, last_y, x, y, color);
                text_add(&d->body, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x,
                         y, color);
                last_x = x;
                last_y = y;
            }
        labels[n++] = (end_label){last_y, p->items[i]->runtime, color};
    }
    draw_labels(d, labels, n, right);
}

static void draw_picture(drawing *d, const bench_results *r, const picture *p, const axis *a)
{
    const double left = DRAW_MARGIN + LEFT, right = DRAW_WIDTH - DRAW_MARGIN - DRAW_ROOM_FOR_VALUES;
    const bench_result *first = p->items[0];
    const char *model = is_zoo(first->model) ? first->model + 4 : first->model;
    char words[320];
    if (a->of == batch_of)
        snprintf(words, sizeof words, "%.200s, %d thread%s", model, first->threads,
                 first->threads == 1 ? "" : "s");
    else
        snprintf(words, sizeof words, "%.200s, batch %lld", model, (long long)first->batch);
    draw_text(d, DRAW_MARGIN, d->y + 18, "group", "start",
              draw_fitted(words, DRAW_WIDTH - 2 * DRAW_MARGIN, 14));
    d->y += 50;
    const double top = d->y, bottom = d->y + (double)HEIGHT;
    const double perfect = ideal_at(p, a, p->sizes[p->n_sizes - 1]);
    const bool ideal = a->ideal && perfect <= 2 * p->most; /* else it would flatten the rest */
    const scale s = scale_make(0, ideal ? fmax(perfect, p->most) : p->most, bottom, top, 5);
    for (double value = 0; value <= s.high + s.step / 2; value += s.step) {
        const double y = scale_at(&s, value);
        draw_line(d, left, y, right, y, value == 0 ? "axis" : "grid");
        draw_text(d, left - 8, y + 4, "tick", "end", scale_tick(&s, value));
    }
    for (size_t k = 0; k < p->n_sizes; k++) {
        char size[32];
        snprintf(size, sizeof size, "%lld", (long long)p->sizes[k]);
        draw_text(d, place_of(p, p->sizes[k], left, right), bottom + 18, "tick", "middle", size);
    }
    draw_text(d, (left + right) / 2, bottom + 36, "tick", "middle", a->unit);
    draw_text(d, DRAW_MARGIN, top - 12, "tick", "start", "samples per second");
    for (size_t k = 0; ideal && k + 1 < p->n_sizes; k++)
        draw_line(d, place_of(p, p->sizes[k], left, right),
                  scale_at(&s, ideal_at(p, a, p->sizes[k])),
                  place_of(p, p->sizes[k + 1], left, right),
                  scale_at(&s, ideal_at(p, a, p->sizes[k + 1])), "ideal");
    draw_lines(d, r, p, a, &s, left, right);
    d->y = bottom + 50;
}

static void draw_axis(drawing *d, const bench_results *r, const axis *a)
{
    bool begun = false;
    for (size_t i = 0; i < r->n; i++) {
        picture p;
        if (!first_of_picture(r, i, a))
            continue;
        collect(&p, r, i, a);
        if (p.n_sizes < 2)
            continue;
        if (!begun)
            draw_heading(d, a->title,
                         a->ideal ? "Throughput; dashed: the first runtime if it scaled perfectly. "
                                    "Higher is better."
                                  : "Throughput. Higher is better.");
        begun = true;
        draw_picture(d, r, &p, a);
    }
}

void plot_scaling(drawing *d, const bench_results *r)
{
    draw_axis(d, r, &(axis){"Scaling with threads", "threads", threads_of, same_but_threads, true});
    draw_axis(
        d, r,
        &(axis){"Scaling with the batch", "samples in a batch", batch_of, same_but_batch, false});
}
