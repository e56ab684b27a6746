/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: two saved profiles side by side. A change is named only when the samples bear it;
 * with --fail-above it is the last step of a CI job, with -o a page for people. */
#include <stdlib.h>
#include <string.h>

#include "comparison.h"

static const char details[] =
    "\n"
    "Compares the median times of two profiles and gives an interval for each change; the\n"
    "intervals of a comparison are right all together with 95 %. Of profiles whose runs were\n"
    "recorded in turns on one machine, neighbours are compared. A row is 'slower' or 'faster'\n"
    "if it changed by 2 % or more and the interval does not contain 0. It is 'same' if the\n"
    "interval lies within 5 %. Otherwise it is 'unclear': measure longer with -n or\n"
    "--duration. --fail-above checks the lower end of the interval, for the total and for each\n"
    "row that by this lower end costs 1 % of the run or more. -o writes the report page of both\n"
    "profiles with the comparison in it.\n"
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
     "exit with status 3 if the total or an operator that matters is slower by more than this"},
    PROFILES_MEMORY_ROW(diff_options, max_memory),
    {0}};

static const option_group groups[] = {{"Comparing", comparing_rows, 0, NULL}, {0}};

typedef struct diff {
    sonde_profile *profiles[2];
    sonde_profile_summary summaries[2];
    sonde_comparison *rows;
    comparison shown;
} diff;

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

/* ------------------------------------------------------------------ files */
static int save_json(const diff *d, const diff_options *o)
{
    static const char *const which[] = {"old", "new"}, *const ways[] = {"op", "node", "shape"};
    text t = {.n = 0};
    text_add(&t, "{\"schema\": \"sonde.diff/1\", \"by\": \"%s\"", ways[d->shown.by]);
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
    int code = comparison_json(&d->shown, &t);
    text_add(&t, "}\n");
    if (!code)
        code = write_text(o->json, t.data, t.n);
    text_free(&t);
    return code;
}

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

/* ------------------------------------------------------------------ the verb */
static int parse(const diff_options *o, diff *d)
{
    d->shown.limit = -1;
    for (size_t i = 0; i < o->outputs.n; i++)
        if (!has_suffix(o->outputs.items[i], ".html"))
            return fail_usage("unknown format of '%s'; diff saves a report page, whose suffix is "
                              ".html; --json saves the figures",
                              o->outputs.items[i]);
    int code = o->by ? comparison_by(o->by, &d->shown.by) : -1;
    if (code < 0 && o->fail_above)
        code = comparison_limit("fail-above", o->fail_above, &d->shown.limit);
    return code;
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
    if (sonde_profile_compare(d->profiles[0], d->profiles[1], d->shown.by, &d->rows, &err))
        return fail("%s", err.message);
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    int code = comparison_make(&d->shown, d->rows);
    if (!code && !json_only && !o->common.quiet) {
        print_heading(d, o);
        code = comparison_print(&d->shown);
    }
    if (!code && d->shown.limit >= 0)
        code = comparison_judge(&d->shown);
    if (!code && o->json)
        code = save_json(d, o);
    if (!code)
        code = save_pages(d, o);
    return !code && d->shown.failures ? EXIT_MISMATCH : code;
}

int cmd_diff(int argc, char **argv)
{
    static const verb_options verb = {"diff", details, groups, NULL};
    diff_options o = {.max_memory = 0};
    diff d = {.shown = {.by = SONDE_BY_OP}};
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0 && o.common.rest.n != 2)
        code = fail_usage("diff takes two profiles, OLD and NEW; see 'sonde diff --help'");
    if (code < 0)
        code = parse(&o, &d);
    if (code < 0)
        code = run(&d, &o);
    sonde_comparison_release(d.rows);
    sonde_profile_release(d.profiles[0]);
    sonde_profile_release(d.profiles[1]);
    options_free(&verb, &o.common);
    return code;
}
