/* SPDX-License-Identifier: Apache-2.0 */
/* A profile on the terminal and in files: what `profile` and `report` do with the one they have. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sonde/experimental/otlp.h"
#include "tool.h"

static void write_stdout(void *user, const char *s, size_t n)
{
    (void)user;
    fwrite(s, 1, n, stdout);
}

/* `verbose`: everything, on a terminal; what is no terminal has whole names anyway. */
static int print_table(const sonde_profile *profile, const table_options *o, bool verbose)
{
    enum { ROOM_FOR_ALL = 1 << 24 };
    const int terminal = terminal_width();
    sonde_table_options table = SONDE_INIT(sonde_table_options);
    table.sort_by_name = o->sort && strcmp(o->sort, "name") == 0;
    table.by_shape = o->by_shape;
    table.by_node = o->by_node;
    table.filter_op = o->filter_op;
    table.width = o->wide || (verbose && terminal) ? ROOM_FOR_ALL : terminal;
    table.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    sonde_error err;
    if (sonde_profile_table(profile, &table, write_stdout, NULL, &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* Views beside the table, by what --report calls them. */
static const char *const report_names[] = {"summary",   "records",  "inferences", "executions",
                                           "operators", "external", "memory",     NULL};
static const sonde_report report_kinds[] = {
    SONDE_REPORT_SUMMARY,    SONDE_REPORT_SUMMARY_BY_RECORD, SONDE_REPORT_INFERENCES,
    SONDE_REPORT_EXECUTIONS, SONDE_REPORT_OPERATORS,         SONDE_REPORT_EXTERNAL_OPERATORS,
    SONDE_REPORT_MEMORY};

/* Its place in the lists; past their end for a name that is none. */
static size_t report_at(const char *name)
{
    size_t k = 0;
    while (report_names[k] && strcmp(report_names[k], name) != 0)
        k++;
    return k;
}

static int print_reports(const sonde_profile *profile, const table_options *o)
{
    sonde_report_options how = SONDE_INIT(sonde_report_options);
    how.width = terminal_width();
    for (size_t i = 0; i < o->reports.n; i++) {
        sonde_error err;
        printf("\n");
        if (sonde_profile_report_with(profile, report_kinds[report_at(o->reports.items[i])], &how,
                                      write_stdout, NULL, &err))
            return fail("%s", err.message);
    }
    return EXIT_OK;
}

static bool has_format(const char *path)
{
    const char *suffix;
    for (size_t k = 0; (suffix = sonde_format_suffix(k)) != NULL; k++)
        if (has_suffix(path, suffix))
            return true;
    return false;
}

static int no_format(const char *path)
{
    text known = {NULL, 0, 0};
    for (size_t k = 0; sonde_format_suffix(k); k++)
        text_add(&known, "%s%s", k ? ", " : "", sonde_format_suffix(k));
    const int code =
        fail_usage("unknown format of '%s'; the suffix must be one of %s", path, known.data);
    text_free(&known);
    return code;
}

int show_check(const table_options *o)
{
    for (size_t i = 0; i < o->outputs.n; i++)
        if (!has_format(o->outputs.items[i]))
            return no_format(o->outputs.items[i]);
    for (size_t i = 0; i < o->reports.n; i++) {
        const char *name = o->reports.items[i];
        if (report_names[report_at(name)])
            continue;
        const char *near = closest(name, report_names);
        if (near)
            return fail_usage("unknown report '%s'; did you mean '%s'?", name, near);
        text known = {NULL, 0, 0};
        for (size_t k = 0; report_names[k]; k++)
            text_add(&known, "%s%s", k ? ", " : "", report_names[k]);
        const int code = fail_usage("unknown report '%s'; the reports are %s", name, known.data);
        text_free(&known);
        return code;
    }
    return -1;
}

/* --json is always the summary, whatever the file is called. */
static int save_summary(const sonde_profile *profile, const char *path)
{
    sonde_export_options how = SONDE_INIT(sonde_export_options);
    how.format = ".summary.json";
    sonde_error err;
    if (sonde_profile_save_with(profile, strcmp(path, "-") == 0 ? "-.summary.json" : path, &how,
                                &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* To a collector; what it did not take is said. */
static int send_spans(const sonde_profile *profile, const table_options *o, bool quiet)
{
    sonde_otlp_options how = SONDE_INIT(sonde_otlp_options);
    sonde_otlp_result sent = SONDE_INIT(sonde_otlp_result);
    sonde_error err;
    how.endpoint = *o->otlp ? o->otlp : NULL;
    how.categories = o->categories;
    how.cancel = interrupt_token();
    if (sonde_otlp_send(profile, &how, &sent, &err))
        return sent.spans ? fail("%s; %llu spans were sent before", err.message,
                                 (unsigned long long)sent.spans)
                          : fail("%s", err.message);
    if (sent.rejected || *sent.message)
        warn("the collector did not take %llu of %llu spans%s%s", (unsigned long long)sent.rejected,
             (unsigned long long)sent.spans, *sent.message ? ": " : "", sent.message);
    if (!quiet)
        printf("sent %s spans in %llu request%s\n", grouped(sent.spans),
               (unsigned long long)sent.requests, sent.requests == 1 ? "" : "s");
    return EXIT_OK;
}

int show_profile(const sonde_profile *profile, const table_options *o, const common_options *common)
{
    const bool quiet = common->quiet;
    sonde_error err;
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    int code = json_only || quiet ? EXIT_OK : print_table(profile, o, common->verbose > 0);
    if (!code && !json_only)
        code = print_reports(profile, o);
    if (!code && o->json)
        code = save_summary(profile, o->json);
    for (size_t i = 0; i < o->outputs.n; i++) /* one that cannot be written costs no other */
        if (sonde_profile_save_with(profile, o->outputs.items[i], &o->export_options, &err))
            code = fail("%s", err.message);
    if (o->otlp) {
        const int sent = send_spans(profile, o, quiet || json_only);
        code = code ? code : sent;
    }
    return code;
}
