/* SPDX-License-Identifier: Apache-2.0 */
/* Series over time: a line of bars, the levels, and since when. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comparison.h"
#include "entries/parts.h"

enum { BARS = 60 };

/* ------------------------------------------------------------------ on the terminal */

/* One bar for each of up to BARS parts of the series, as high as the median of the part; the lowest
 * is 20 % below the highest or more, so that noise does not fill the line. */
static void print_bars(const sonde_trends *t, size_t k, size_t n)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double part[BARS], *values = need(malloc((n + 1) * sizeof *values));
    const size_t parts = n < BARS ? n : BARS;
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < parts; i++) {
        const size_t from = i * n / parts, to = (i + 1) * n / parts;
        sonde_trend_point p = SONDE_INIT(sonde_trend_point);
        for (size_t j = from; j < to; j++)
            values[j - from] = sonde_trends_point(t, k, j, &p, NULL) ? 0 : p.ns;
        sort_samples(values, to - from);
        part[i] = percentile(values, to - from, 0.5);
        low = part[i] < low ? part[i] : low;
        high = part[i] > high ? part[i] : high;
    }
    low = low < high * 0.8 ? low : high * 0.8;
    printf("  ");
    for (size_t i = 0; i < parts; i++) {
        const double share = high > low ? (part[i] - low) / (high - low) : 0;
        printf("%s", bars[(int)(share * 7.999)]);
    }
    free(values);
}

static double percent(double ratio)
{
    const double p = (ratio - 1) * 100;
    return fabs(p) < 0.05 ? 0 : p;
}

/* Which ones the points of a level are, the first one first: "resnet-v1, resnet-v2 and 3 more";
 * from malloc. */
static char *which_of(const sonde_trends *t, size_t k, const sonde_trend_level *l)
{
    enum { NAMED = 2, COUNTED = 100 };
    char *seen[COUNTED];
    text shown = {.n = 0};
    size_t n = 0;
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    for (size_t i = l->from; i < l->to && n < COUNTED; i++) {
        size_t same = 0;
        if (sonde_trends_point(t, k, i, &p, NULL) || !*p.which)
            break;
        while (same < n && strcmp(seen[same], p.which) != 0)
            same++;
        if (same < n)
            continue;
        seen[n] = text_of("%s", p.which);
        if (n < NAMED)
            text_add(&shown, "%s%s", n ? " and " : "", seen[n]);
        n++;
    }
    if (n > NAMED)
        text_add(&shown, " and %zu%s more", n - NAMED, n == COUNTED ? " or" : "");
    while (n)
        free(seen[--n]);
    char *made = printable(shown.n ? shown.data : "");
    text_free(&shown);
    return made;
}

/* Other weights under the name of the entry before; another name is said anyway. */
static bool is_changed_model(const sonde_trends *t, size_t k, size_t at)
{
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    if (!at || sonde_trends_point(t, k, at, &p, NULL) || !p.new_model)
        return false;
    char *model = text_of("%s", p.model);
    const bool same = !sonde_trends_point(t, k, at - 1, &p, NULL) && strcmp(p.model, model) == 0;
    free(model);
    return same;
}

static void print_level(const sonde_trends *t, size_t k, const sonde_trend_level *l, bool first)
{
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    if (sonde_trends_point(t, k, l->from, &p, NULL))
        return;
    char *date = entry_date(p.at_ms), *commit = short_commit(p.commit), *note = printable(p.note);
    char *which = which_of(t, k, l);
    char id[32], change[96] = "";
    snprintf(id, sizeof id, "#%lld", (long long)p.id);
    if (!first && l->low > 0 && isfinite(l->high))
        snprintf(change, sizeof change, "%+.1f %% (%+.1f ... %+.1f %%)", percent(l->ratio),
                 percent(l->low), percent(l->high));
    else if (!first)
        snprintf(change, sizeof change, "%+.1f %%", percent(l->ratio));
    const char *time = time_text(l->ns / 1e6);
    printf("  from %-7s %s  %-8s  %*s%s  %5zu entr%s  %s%s%s%s%s%s%s\n", id, date, commit,
           10 - display_width(time), "", time, l->to - l->from,
           l->to - l->from == 1 ? "y  " : "ies", change, *change && *which ? ", " : "", which,
           is_changed_model(t, k, l->from) ? ", another model" : "", *note ? "  \"" : "", note,
           *note ? "\"" : "");
    free(which);
    free(date);
    free(commit);
    free(note);
}

static void print_trend(const sonde_trends *t, size_t k, const sonde_trend *s)
{
    char *title = printable(s->title), *machine = printable(s->machine);
    printf("%s%s (%s)\n", k ? "\n" : "", title, machine);
    free(title);
    free(machine);
    print_bars(t, k, s->points);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    if (!sonde_trends_point(t, k, s->points - 1, &p, NULL)) {
        char *date = entry_date(p.at_ms);
        printf("  %s, #%lld of %s\n", time_text(p.ns / 1e6), (long long)p.id, date);
        free(date);
    }
    sonde_trend_level l = SONDE_INIT(sonde_trend_level);
    for (size_t i = 0; !sonde_trends_level(t, k, i, &l, NULL); i++)
        print_level(t, k, &l, i == 0);
}

/* ------------------------------------------------------------------ JSON */
static void add_point(text *j, const sonde_trend_point *p)
{
    text_add(j, "{\"id\": %lld, \"at_ms\": %lld", (long long)p->id, (long long)p->at_ms);
    add_number(j, "ns", p->ns);
    add_number(j, "low_ns", p->low_ns);
    add_number(j, "high_ns", p->high_ns);
    text_add(j, ", \"commit\": ");
    text_json(j, p->commit);
    text_add(j, ", \"version\": ");
    text_json(j, p->version);
    text_add(j, ", \"note\": ");
    text_json(j, p->note);
    text_add(j, ", \"new_model\": %s, \"model\": ", p->new_model ? "true" : "false");
    text_json(j, p->model);
    text_add(j, ", \"which\": ");
    text_json(j, p->which);
    text_add(j, "}");
}

static void add_level(text *j, const sonde_trend_level *l)
{
    text_add(j, "{\"from\": %zu, \"to\": %zu", l->from, l->to);
    add_number(j, "ns", l->ns);
    add_number(j, "ratio", l->ratio);
    add_number(j, "low", l->low > 0 ? l->low : NAN);
    add_number(j, "high", l->high);
    add_number(j, "p", l->p);
    text_add(j, "}");
}

static int save_json(const sonde_trends *t, const history_options *o, int failures)
{
    text j = {.n = 0};
    sonde_trend s = SONDE_INIT(sonde_trend);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    sonde_trend_level l = SONDE_INIT(sonde_trend_level);
    text_add(&j, "{\"schema\": \"sonde.trend/1\"");
    if (o->limit >= 0)
        text_add(&j, ", \"fail_above\": %.9g, \"failed\": %s", o->limit,
                 failures ? "true" : "false");
    text_add(&j, ", \"trends\": [");
    for (size_t k = 0; !sonde_trends_get(t, k, &s, NULL); k++) {
        text_add(&j, "%s{\"title\": ", k ? ",\n " : "\n ");
        text_json(&j, s.title);
        text_add(&j, ", \"machine\": ");
        text_json(&j, s.machine);
        text_add(&j, ", \"across\": ");
        text_json(&j, s.across);
        text_add(&j, ",\n  \"levels\": [");
        for (size_t i = 0; !sonde_trends_level(t, k, i, &l, NULL); i++) {
            text_add(&j, i ? ",\n   " : "\n   ");
            add_level(&j, &l);
        }
        text_add(&j, "],\n  \"points\": [");
        for (size_t i = 0; !sonde_trends_point(t, k, i, &p, NULL); i++) {
            text_add(&j, i ? ",\n   " : "\n   ");
            add_point(&j, &p);
        }
        text_add(&j, "]}");
    }
    text_add(&j, "]}\n");
    const int code = write_text(o->table.json, j.data, j.n);
    text_free(&j);
    return code;
}

/* ------------------------------------------------------------------ --fail-on-regression */

/* Whether the newest level is slower than the one before it by more than the limit. */
static bool judge(const sonde_trends *t, size_t k, const sonde_trend *s, double limit)
{
    sonde_trend_level l = SONDE_INIT(sonde_trend_level);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    if (s->levels < 2 || sonde_trends_level(t, k, s->levels - 1, &l, NULL) ||
        !(l.low > 1 + limit) || sonde_trends_point(t, k, l.from, &p, NULL))
        return false;
    char *title = printable(s->title), *date = entry_date(p.at_ms);
    char *commit = short_commit(p.commit), *which = printable(p.which);
    fflush(stdout);
    fprintf(stderr,
            "sonde: %s is slower by %.1f %%, at least %.1f %%, since #%lld of %s%s%s%s%s; the "
            "limit is %g %%\n",
            title, percent(l.ratio), percent(l.low), (long long)p.id, date, *commit ? ", " : "",
            commit, *which ? ", " : "", which, limit * 100);
    free(which);
    free(title);
    free(date);
    free(commit);
    return true;
}

/* A job that looks at nothing must not pass: somebody mistyped a name. */
static int fail_empty(const history_options *o, const char *path)
{
    const bool op = o->op && *o->op;
    char *shown = printable(op ? o->op : "");
    const int code = fail("--fail-on-regression has nothing to look at: no entry of the history "
                          "'%s' matches%s%s",
                          path, op ? " and has operators of type " : "", shown);
    free(shown);
    return code;
}

static int show(const sonde_trends *t, const history_options *o, const char *path)
{
    sonde_trend s = SONDE_INIT(sonde_trend);
    const char *json = o->table.json;
    const bool quiet = o->common.quiet || (json && strcmp(json, "-") == 0);
    const bool empty = !sonde_trends_count(t);
    int failures = empty && o->limit >= 0, code = EXIT_OK;
    sonde_error err;
    if (failures)
        fail_empty(o, path);
    else if (empty && !quiet)
        fprintf(stderr, "sonde: no such entry\n");
    for (size_t k = 0; !sonde_trends_get(t, k, &s, NULL); k++) {
        if (!quiet)
            print_trend(t, k, &s);
        failures += o->limit >= 0 && judge(t, k, &s, o->limit);
    }
    if (json)
        code = save_json(t, o, failures);
    for (size_t i = 0; i < o->table.outputs.n; i++) /* one that cannot be written costs no other */
        if (sonde_trends_save(t, o->table.outputs.items[i], &err))
            code = fail("%s", err.message);
    return code || !failures ? code : empty ? EXIT_ERROR : EXIT_MISMATCH;
}

static int check_outputs_of(const list *outputs)
{
    static const char *const suffixes[] = {".svg", ".html", ".page.gz"};
    for (size_t i = 0; i < outputs->n; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof suffixes / sizeof suffixes[0]; k++)
            known |= has_suffix(outputs->items[i], suffixes[k]);
        if (!known)
            return fail_usage("unknown format of '%s'; trend saves .svg, .html and .page.gz; "
                              "--json saves the figures",
                              outputs->items[i]);
    }
    return -1;
}

int history_trend(history_options *o, sonde_history *h)
{
    sonde_trend_options how = SONDE_INIT(sonde_trend_options);
    sonde_trends *t = NULL;
    sonde_error err;
    int code = check_outputs_of(&o->table.outputs);
    if (code >= 0)
        return code;
    how.across = o->across_set;
    how.op = o->op;
    if (sonde_history_trends(h, &o->filter, &how, &t, &err))
        return fail("%s", err.message);
    code = show(t, o, sonde_history_path(h));
    sonde_trends_release(t);
    return code;
}
