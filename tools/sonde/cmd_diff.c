/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: two saved profiles side by side. A change is named only when the samples bear it;
 * with --fail-above it is the last step of a CI job, with -o a page for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/profile.h"
#include "tool.h"

static const char details[] =
    "\n"
    "Compares the median times of two profiles and gives a 95 % confidence interval for each\n"
    "change. A row is 'slower' or 'faster' if its medians differ by 2 % or more and a rank\n"
    "test gives p < 1 %. It is 'same' if the interval lies within 5 %. Otherwise it is\n"
    "'unclear': measure longer with -n or --duration. --fail-above checks the lower end of\n"
    "the interval, for the total and for each row that takes 5 % of the run or more. -o writes\n"
    "the report page of both profiles with the comparison in it.\n"
    "\n"
    "  sonde profile model.onnx -q -o old.pftrace\n"
    "  sonde diff old.pftrace new.pftrace\n"
    "  sonde diff old.pftrace new.pftrace --by node --fail-above 5%\n"
    "  sonde diff old.pftrace new.pftrace -o change.html\n";

typedef struct diff_options {
    common_options common;
    list outputs;
    const char *json, *by, *fail_above;
    int64_t max_memory;
} diff_options;

#define AT(field) offsetof(diff_options, field)

static const option_row comparing_rows[] = {
    {'o', "output", OPT_FILES, AT(outputs), "FILE.html",
     "save a report page that shows both profiles and what changed; may be repeated"},
    JSON_ROW(diff_options, json),
    {0, "by", OPT_TEXT, AT(by), "op|node|shape",
     "what a row is: operator type, node, or type with input shapes (default: op)"},
    {0, "fail-above", OPT_TEXT, AT(fail_above), "PERCENT",
     "exit with status 3 if the total or a large operator is slower by more than this"},
    PROFILES_MEMORY_ROW(diff_options, max_memory),
    {0}};

static const option_group groups[] = {{"Comparing", comparing_rows, 0, NULL}, {0}};

/* A row counts for --fail-above from this share of the run on. */
#define SHARE_THAT_MATTERS 0.05

typedef struct diff {
    sonde_profile *profiles[2];
    sonde_profile_summary summaries[2];
    sonde_comparison *comparison;
    sonde_by by;
    double limit; /* 0.05 for 5 %; < 0: none */
    int failures;
} diff;

/* ------------------------------------------------------------------ the table */
static char *label(const diff *d, const sonde_change *c)
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
        printf("  %+7.1f ... %+7.1f %%", percent(c->low), percent(c->high));
    else
        printf("  %21s", "");
    if (nodes)
        printf("  %-7s  %s\n", sonde_verdict_text(c->verdict), nodes);
    else
        printf("  %s\n", sonde_verdict_text(c->verdict));
}

static int print_table(const diff *d)
{
    const size_t n = sonde_comparison_count(d->comparison);
    sonde_change *rows = need(calloc(n + 1, sizeof *rows));
    char **labels = need(calloc(n + 1, sizeof *labels));
    int width = 5, code = EXIT_OK;
    sonde_error err;
    for (size_t i = 0; i <= n && !code; i++) {
        rows[i].struct_size = sizeof rows[i];
        if (i < n ? sonde_comparison_row(d->comparison, i, &rows[i], &err)
                  : sonde_comparison_total(d->comparison, &rows[i], &err))
            code = fail("%s", err.message);
        else
            labels[i] = label(d, &rows[i]);
        if (labels[i] && strlen(labels[i]) > (size_t)width)
            width = strlen(labels[i]) < 100 ? (int)strlen(labels[i]) : 100;
    }
    /* The unit of the shorter run, so that operators have digits. */
    const shown_unit u =
        unit_of_ms((rows[n].old_median_ns < rows[n].new_median_ns ? rows[n].old_median_ns
                                                                  : rows[n].new_median_ns) /
                   1e6);
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
    for (size_t i = 0; i <= n; i++)
        free(labels[i]);
    free(labels);
    free(rows);
    return code;
}

static void print_heading(const diff *d, const diff_options *o)
{
    static const char *const which[] = {"old", "new"};
    for (int k = 0; k < 2; k++) {
        const sonde_profile_summary *s = &d->summaries[k];
        const shown_unit u = unit_of_ms(s->p50_ns / 1e6);
        char *file = printable(o->common.rest.items[k]), *model = printable(s->model);
        printf("%s: %s, %llu runs, median %.*f%s%s%s\n", which[k], file,
               (unsigned long long)s->iterations, u.decimals, s->p50_ns / 1e6 / u.divisor, u.name,
               *model ? ", " : "", model);
        free(file);
        free(model);
    }
    printf("\n");
}

/* ------------------------------------------------------------------ JSON */
static void add_number(text *t, const char *key, double v)
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
    text_add(t, ", \"verdict\": \"%s\"}", sonde_verdict_text(c->verdict));
}

static int save_json(const diff *d, const diff_options *o)
{
    static const char *const which[] = {"old", "new"}, *const ways[] = {"op", "node", "shape"};
    text t = {.n = 0};
    sonde_error err;
    text_add(&t, "{\"schema\": \"sonde.diff/1\", \"by\": \"%s\"", ways[d->by]);
    for (int k = 0; k < 2; k++) {
        text_add(&t, ",\n \"%s\": {\"file\": ", which[k]);
        text_json(&t, o->common.rest.items[k]);
        text_add(&t, ", \"model\": ");
        text_json(&t, d->summaries[k].model);
        text_add(&t, ", \"version\": ");
        text_json(&t, d->summaries[k].version);
        text_add(&t, ", \"iterations\": %llu", (unsigned long long)d->summaries[k].iterations);
        add_number(&t, "mean_ns", d->summaries[k].mean_ns);
        add_number(&t, "median_ns", d->summaries[k].p50_ns);
        text_add(&t, "}");
    }
    if (d->limit >= 0)
        text_add(&t, ",\n \"fail_above\": %.9g, \"failed\": %s", d->limit,
                 d->failures ? "true" : "false");
    sonde_change c = SONDE_INIT(sonde_change);
    int code = sonde_comparison_total(d->comparison, &c, &err) ? fail("%s", err.message) : EXIT_OK;
    text_add(&t, ",\n \"total\": ");
    if (!code)
        add_change(&t, &c);
    text_add(&t, ",\n \"rows\": [");
    for (size_t i = 0; i < sonde_comparison_count(d->comparison) && !code; i++) {
        if (sonde_comparison_row(d->comparison, i, &c, &err))
            code = fail("%s", err.message);
        text_add(&t, i ? ",\n  " : "\n  ");
        add_change(&t, &c);
    }
    text_add(&t, "]}\n");
    if (!code)
        code = write_text(o->json, t.data, t.n);
    text_free(&t);
    return code;
}

/* ------------------------------------------------------------------ the page */
static int save_pages(const diff *d, const diff_options *o)
{
    sonde_export_options how = SONDE_INIT(sonde_export_options);
    sonde_error err;
    int code = EXIT_OK;
    how.before = d->profiles[0];
    how.before_title = o->common.rest.items[0];
    how.title = o->common.rest.items[1];
    for (size_t i = 0; i < o->outputs.n; i++) /* one that cannot be written costs no other */
        if (sonde_profile_save_with(d->profiles[1], o->outputs.items[i], &how, &err))
            code = fail("%s", err.message);
    return code;
}

/* ------------------------------------------------------------------ --fail-above */
static void judge(diff *d, const sonde_change *c)
{
    const bool matters = c->old_share >= SHARE_THAT_MATTERS || c->new_share >= SHARE_THAT_MATTERS;
    if (c->verdict != SONDE_SLOWER || !matters || !(c->low > 1 + d->limit))
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

static int judge_all(diff *d)
{
    sonde_change c = SONDE_INIT(sonde_change);
    sonde_error err;
    if (sonde_comparison_total(d->comparison, &c, &err))
        return fail("%s", err.message);
    judge(d, &c);
    for (size_t i = 0; i < sonde_comparison_count(d->comparison); i++) {
        if (sonde_comparison_row(d->comparison, i, &c, &err))
            return fail("%s", err.message);
        judge(d, &c);
    }
    return EXIT_OK;
}

/* ------------------------------------------------------------------ the verb */
static int parse(const diff_options *o, diff *d)
{
    static const char *const ways[] = {"op", "node", "shape", NULL};
    d->limit = -1;
    for (size_t i = 0; i < o->outputs.n; i++)
        if (!has_suffix(o->outputs.items[i], ".html"))
            return fail_usage("unknown format of '%s'; diff saves a report page, whose suffix is "
                              ".html; --json saves the figures",
                              o->outputs.items[i]);
    if (o->by) {
        int k = 0;
        while (ways[k] && strcmp(ways[k], o->by) != 0)
            k++;
        if (!ways[k])
            return fail_usage("--by is 'op', 'node' or 'shape', not '%s'", o->by);
        d->by = (sonde_by)k;
    }
    if (o->fail_above) {
        char *end;
        const double percent = strtod(o->fail_above, &end);
        end += *end == '%';
        if (!*o->fail_above || *end || !(percent >= 0) || percent > 1e6)
            return fail_usage("--fail-above takes a percentage such as 5 or 5%%, not '%s'",
                              o->fail_above);
        d->limit = percent / 100;
    }
    return -1;
}

static int run(diff *d, const diff_options *o)
{
    sonde_error err;
    for (int k = 0; k < 2; k++) {
        d->summaries[k].struct_size = sizeof d->summaries[k];
        const int code =
            load_profile(&o->common, o->max_memory, o->common.rest.items[k], &d->profiles[k]);
        if (code)
            return code;
        if (sonde_profile_summary_get(d->profiles[k], &d->summaries[k], &err))
            return fail("%s", err.message);
        if (!d->summaries[k].iterations)
            return fail("'%s' has no measured run to compare", o->common.rest.items[k]);
    }
    if (sonde_profile_compare(d->profiles[0], d->profiles[1], d->by, &d->comparison, &err))
        return fail("%s", err.message);
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    int code = EXIT_OK;
    if (!json_only && !o->common.quiet) {
        print_heading(d, o);
        code = print_table(d);
    }
    if (!code && d->limit >= 0)
        code = judge_all(d);
    if (!code && o->json)
        code = save_json(d, o);
    if (!code)
        code = save_pages(d, o);
    return !code && d->failures ? EXIT_MISMATCH : code;
}

int cmd_diff(int argc, char **argv)
{
    static const verb_options verb = {"diff", details, groups, NULL};
    diff_options o = {.max_memory = 0};
    diff d = {.by = SONDE_BY_OP};
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0 && o.common.rest.n != 2)
        code = fail_usage("diff takes two profiles, OLD and NEW; see 'sonde diff --help'");
    if (code < 0)
        code = parse(&o, &d);
    if (code < 0)
        code = run(&d, &o);
    sonde_comparison_release(d.comparison);
    sonde_profile_release(d.profiles[0]);
    sonde_profile_release(d.profiles[1]);
    options_free(&verb, &o.common);
    return code;
}
