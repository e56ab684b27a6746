/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a profile: rows of the table, reports and files. Among these the options of
 * formats: --sparse-ratio and --sparse-aim say what .csv and .xlsx assume about sparse weights,
 * --categories which spans traces show. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool.h"

#define AT(field) offsetof(table_options, field)

const option_row table_option_rows[] = {
    OUTPUT_ROW(table_options, outputs),
    JSON_ROW(table_options, json),
    {0, "sort", OPT_TEXT, AT(sort), "time|name", "order of the rows (default: time)"},
    {0, "report", OPT_LIST, AT(reports), "KIND",
     "print another view: summary, records, inferences, executions, operators, external, memory"},
    {0, "by-shape", OPT_FLAG, AT(by_shape), NULL, "split the row of each operator by input shapes"},
    {0, "by-node", OPT_FLAG, AT(by_node), NULL,
     "one row per step, with the nodes that were fused into it"},
    {0, "wide", OPT_FLAG, AT(wide), NULL,
     "whole names and all columns, however wide the terminal is (as with -v)"},
    {0, "filter-op", OPT_TEXT, AT(filter_op), "A,B", "show only these operators"},
    {0, "categories", OPT_TEXT, AT(categories), "A,B",
     "write only spans of these categories to .json, .pftrace and .otlp.json"},
    {0, "trace-limit", OPT_LIMIT, AT(trace_limit), "BYTES",
     "largest size of .json, .pftrace, .html, .page.gz and .otlp.json, such as 64M, or none: the "
     "first, the "
     "slowest and an even sample of the runs have spans, figures are those of all runs "
     "(default: 256M)"},
    {0, "sparse-ratio", OPT_TEXT, AT(sparse_ratio), "90=4,80=2.5,70=2",
     "assumed speedups of sparse weights in .csv and .xlsx, by percent of zeros"},
    {0, "sparse-aim", OPT_REAL, AT(sparse_aim), "PERCENT",
     "target percentage of zeros in .csv and .xlsx (default: 90)"},
    {0, "folded-nodes", OPT_FLAG, AT(folded_nodes), NULL,
     "in .csv and .xlsx, also list constant-folded nodes, with zero time"},
    {0, "otlp", OPT_TEXT, AT(otlp), "URL",
     "send the spans to an OpenTelemetry collector, such as http://127.0.0.1:4318; '' uses "
     "OTEL_EXPORTER_OTLP_ENDPOINT"},
    {0}};

static double *ratio_at(sonde_export_options *to, const char *key, size_t n)
{
    static const char *const keys[] = {"90", "80", "70", "others"};
    double *const fields[] = {&to->sparse_ratio_90, &to->sparse_ratio_80, &to->sparse_ratio_70,
                              &to->sparse_ratio_others};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (strlen(keys[k]) == n && memcmp(key, keys[k], n) == 0)
            return fields[k];
    return NULL;
}

static int sparse_options(table_options *o)
{
    sonde_export_options *to = &o->export_options;
    if (!(o->sparse_aim >= 0 && o->sparse_aim < 100))
        return fail_usage("--sparse-aim %g is out of range; use 0 to below 100 %%", o->sparse_aim);
    to->sparse_aim = o->sparse_aim;
    for (const char *at = o->sparse_ratio; at && *at;) {
        const char *equals = strchr(at, '=');
        double *ratio = equals ? ratio_at(to, at, (size_t)(equals - at)) : NULL;
        char *end = NULL;
        if (ratio)
            *ratio = strtod(equals + 1, &end);
        if (!ratio || end == equals + 1 || (*end && *end != ',') || !(*ratio > 0 && *ratio <= 1e6))
            return fail_usage("--sparse-ratio takes numbers for 90, 80, 70 or others, such as "
                              "90=4,80=2.5,70=2, not '%s'",
                              o->sparse_ratio);
        at = *end ? end + 1 : end;
    }
    return -1;
}

static bool is_category(const char *name, size_t n)
{
    const char *known;
    for (size_t k = 0; (known = sonde_category_name(k)) != NULL; k++)
        if (strlen(known) == n && memcmp(known, name, n) == 0)
            return true;
    return false;
}

/* The library would say so too, but only after the model has run. */
static int category_options(table_options *o)
{
    for (const char *at = o->categories; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t n = strcspn(at, ",");
        if (is_category(at, n))
            continue;
        text known = {NULL, 0, 0};
        for (size_t k = 0; sonde_category_name(k); k++)
            text_add(&known, "%s%s", k ? ", " : "", sonde_category_name(k));
        const int code = fail_usage("--categories: unknown category '%.*s'; the categories are %s",
                                    (int)n, at, known.data);
        text_free(&known);
        return code;
    }
    o->export_options.categories = o->categories;
    return -1;
}

/* The library would say so too, but only after the model has run. */
static int otlp_options(const table_options *o)
{
    if (!o->otlp || !*o->otlp || strncasecmp(o->otlp, "http://", 7) == 0)
        return -1;
    if (strncasecmp(o->otlp, "https://", 8) == 0)
        return fail_usage("--otlp %s: sonde speaks http without TLS only; send to an OpenTelemetry "
                          "collector on this machine (http://127.0.0.1:4318), which passes spans "
                          "on by https",
                          o->otlp);
    return fail_usage("--otlp takes the address of a collector, such as http://127.0.0.1:4318, not "
                      "'%s'",
                      o->otlp);
}

int table_options_check(void *values)
{
    table_options *o = values;
    if (o->sort && strcmp(o->sort, "time") != 0 && strcmp(o->sort, "name") != 0)
        return fail_usage("--sort is 'time' or 'name', not '%s'", o->sort);
    o->export_options = (sonde_export_options)SONDE_INIT(sonde_export_options);
    o->export_options.folded_nodes = o->folded_nodes;
    o->export_options.trace_limit = o->trace_limit;
    int code = sparse_options(o);
    if (code < 0)
        code = otlp_options(o);
    return code >= 0 ? code : category_options(o);
}
