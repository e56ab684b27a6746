/* SPDX-License-Identifier: Apache-2.0 */
/* Two sets of runs side by side. A change is named only when the samples bear it. */
#include "comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row counts for the limit if it made the run slower by this share at least. Where its data
 * happens to lie in memory changes a node by several percent from one process to the next. */
#define CHANGE_THAT_MATTERS 0.01

static const char *const ways[] = {"op", "node", "shape", NULL};

int comparison_by(const char *said, sonde_by *by)
{
    int k = 0;
    while (said && ways[k] && strcmp(ways[k], said) != 0)
        k++;
    if (!ways[k])
        return fail_usage("--by is 'op', 'node' or 'shape', not '%s'", said);
    *by = (sonde_by)k;
    return -1;
}

int comparison_limit(const char *option, const char *said, double *limit)
{
    char *end;
    const double percent = strtod(said, &end);
    end += *end == '%';
    if (!*said || *end || !(percent >= 0) || percent > 1e6)
        return fail_usage("--%s takes a percentage such as 5 or 5%%, not '%s'", option, said);
    *limit = percent / 100;
    return -1;
}

int comparison_make(comparison *c, const sonde_comparison *rows)
{
    sonde_error err;
    c->rows = rows;
    c->total.struct_size = sizeof c->total;
    return sonde_comparison_total(rows, &c->total, &err) ? fail("%s", err.message) : EXIT_OK;
}

static size_t count_rows(const comparison *d)
{
    return d->rows ? sonde_comparison_count(d->rows) : 0;
}

/* Row i; behind the last one the total. */
static int row_at(const comparison *d, size_t i, sonde_change *c)
{
    sonde_error err;
    *c = d->total;
    return i < count_rows(d) && sonde_comparison_row(d->rows, i, c, &err) ? fail("%s", err.message)
                                                                          : EXIT_OK;
}

/* ------------------------------------------------------------------ the table */
static char *label(const comparison *d, const sonde_change *c)
{
    const bool shape = d->by == SONDE_BY_SHAPE && strcmp(c->name, c->op_type) != 0;
    char *raw = text_of("%s%s%s", shape ? c->op_type : "", shape ? " " : "", c->name);
    char *shown = printable(raw);
    free(raw);
    return shown;
}

static void print_time(double ns, bool there, const shown_unit *u)
{
    if (there)
        printf("  %10.3f", ns / 1e6 / u->divisor);
    else
        printf("  %10s", "-");
}

/* 1.25 ► +25.0, and no "-0.0". */
static double percent(double ratio)
{
    const double p = (ratio - 1) * 100;
    return fabs(p) < 0.05 ? 0 : p;
}

/* Beyond ten times as long digits behind the point say nothing. */
static void print_interval(const sonde_change *c)
{
    const double low = percent(c->low), high = percent(c->high);
    printf("  %+7.*f ... %+7.*f %%", low < 1000 ? 1 : 0, low, high < 1000 ? 1 : 0, high);
}

/* `nodes`: what the row stands for, as many as there are, behind everything else; or NULL. */
static void print_row(const char *name, int width, const sonde_change *c, const shown_unit *u,
                      const char *nodes)
{
    const bool both = c->verdict != SONDE_NEW && c->verdict != SONDE_GONE;
    printf("%-*s", width, name);
    print_time(c->old_median_ns, c->verdict != SONDE_NEW, u);
    print_time(c->new_median_ns, c->verdict != SONDE_GONE, u);
    if (both && c->old_median_ns > 0 && c->new_median_ns > 0)
        printf("  %+8.1f %%", percent(c->ratio));
    else
        printf("  %10s", "");
    if (both && c->low > 0 && isfinite(c->high))
        print_interval(c);
    else
        printf("  %21s", "");
    if (nodes)
        printf("  %-7s  %s\n", sonde_verdict_text(c->verdict), nodes);
    else
        printf("  %s\n", sonde_verdict_text(c->verdict));
}

/* What has no counterpart, with its part of the run: names are all that nodes are matched by. */
static void print_unmatched(const sonde_change *rows, size_t n)
{
    size_t gone = 0, fresh = 0;
    double old_share = 0, new_share = 0;
    for (size_t i = 0; i < n; i++) {
        const bool node = *rows[i].node != 0; /* else it is no operator's: memory, and the rest */
        const bool old = node && rows[i].verdict == SONDE_GONE;
        const bool now = node && rows[i].verdict == SONDE_NEW;
        gone += old;
        old_share += old ? rows[i].old_share : 0;
        fresh += now;
        new_share += now ? rows[i].new_share : 0;
    }
    if (gone || fresh)
        printf("\nnot matched by name: %zu rows of old, %.1f %% of its run; %zu rows of new, %.1f "
               "%% of "
               "its run\n",
               gone, old_share * 100, fresh, new_share * 100);
}

int comparison_print(const comparison *d)
{
    const size_t n = count_rows(d);
    sonde_change *rows = need(calloc(n + 1, sizeof *rows));
    char **labels = need(calloc(n + 1, sizeof *labels));
    int width = 5, code = EXIT_OK;
    for (size_t i = 0; i <= n && !code; i++) {
        code = row_at(d, i, &rows[i]);
        if (!code)
            labels[i] = label(d, &rows[i]);
        if (labels[i] && strlen(labels[i]) > (size_t)width)
            width = strlen(labels[i]) < 100 ? (int)strlen(labels[i]) : 100;
    }
    /* The unit of the shorter run, so that operators have digits. */
    const shown_unit u =
        unit_of_ms((rows[n].old_median_ns < rows[n].new_median_ns ? rows[n].old_median_ns
                                                                  : rows[n].new_median_ns) /
                   1e6);
    if (!code && d->total.turns)
        printf("recorded in turns: changes are medians of the ratios of %zu turns\n\n",
               d->total.turns);
    if (!code) {
        const int bytes = 10 + (u.divisor == 1e-3); /* µ takes two */
        char *titles[2] = {text_of("old (%s)", u.name), text_of("new (%s)", u.name)};
        printf("%-*s  %*s  %*s  %10s  %21s\n", width, "", bytes, titles[0], bytes, titles[1],
               "change", "95 % interval");
        free(titles[0]);
        free(titles[1]);
    }
    for (size_t i = 0; i <= n && !code; i++) {
        char *nodes = d->by == SONDE_BY_NODE && *rows[i].node ? printable(rows[i].node) : NULL;
        print_row(labels[i], width, &rows[i], &u, nodes);
        free(nodes);
    }
    if (!code && d->by == SONDE_BY_NODE)
        print_unmatched(rows, n);
    for (size_t i = 0; i <= n; i++)
        free(labels[i]);
    free(labels);
    free(rows);
    return code;
}

/* ------------------------------------------------------------------ JSON */
void add_number(text *t, const char *key, double v)
{
    if (isfinite(v))
        text_add(t, ", \"%s\": %.9g", key, v);
    else
        text_add(t, ", \"%s\": null", key);
}

static void add_change(text *t, const sonde_change *c)
{
    text_add(t, "{\"name\": ");
    text_json(t, c->name);
    text_add(t, ", \"op\": ");
    text_json(t, c->op_type);
    text_add(t, ", \"node\": ");
    text_json(t, c->node);
    add_number(t, "old_ns", c->old_ns);
    add_number(t, "new_ns", c->new_ns);
    add_number(t, "old_share", c->old_share);
    add_number(t, "new_share", c->new_share);
    add_number(t, "old_calls", c->old_calls);
    add_number(t, "new_calls", c->new_calls);
    add_number(t, "old_median_ns", c->old_median_ns);
    add_number(t, "new_median_ns", c->new_median_ns);
    add_number(t, "ratio", c->ratio);
    add_number(t, "low", c->low > 0 ? c->low : NAN);
    add_number(t, "high", c->high);
    add_number(t, "p", c->p);
    text_add(t, ", \"turns\": %zu", c->turns);
    text_add(t, ", \"verdict\": \"%s\"}", sonde_verdict_text(c->verdict));
}

int comparison_json(const comparison *d, text *t)
{
    if (d->limit >= 0)
        text_add(t, ",\n \"fail_above\": %.9g, \"failed\": %s", d->limit,
                 d->failures ? "true" : "false");
    text_add(t, ",\n \"total\": ");
    add_change(t, &d->total);
    text_add(t, ",\n \"rows\": [");
    for (size_t i = 0; i < count_rows(d); i++) {
        sonde_change c;
        const int code = row_at(d, i, &c);
        if (code)
            return code;
        text_add(t, i ? ",\n  " : "\n  ");
        add_change(t, &c);
    }
    text_add(t, "]");
    return EXIT_OK;
}

/* ------------------------------------------------------------------ the limit */
/* At the lower end of the interval, as everything that the limit looks at. */
static bool matters(const comparison *d, const sonde_change *c)
{
    return (c->low - 1) * c->old_median_ns >= CHANGE_THAT_MATTERS * d->total.old_median_ns;
}

static void judge(comparison *d, const sonde_change *c, bool counts)
{
    if (c->verdict != SONDE_SLOWER || !counts || !(c->low > 1 + d->limit))
        return;
    const bool named = d->by == SONDE_BY_NODE && *c->node;
    char *name = label(d, c), *nodes = printable(c->node);
    fflush(stdout);
    fprintf(stderr, "sonde: %s%s%s%s is slower by %.1f %%, at least %.1f %%; the limit is %g %%\n",
            name, named ? " (" : "", named ? nodes : "", named ? ")" : "", percent(c->ratio),
            percent(c->low), d->limit * 100);
    free(nodes);
    free(name);
    d->failures++;
}

int comparison_judge(comparison *d)
{
    judge(d, &d->total, true);
    for (size_t i = 0; i < count_rows(d); i++) {
        sonde_change c;
        const int code = row_at(d, i, &c);
        if (code)
            return code;
        judge(d, &c, matters(d, &c));
    }
    return EXIT_OK;
}
