/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: a saved profile again, as a table or in any other format. */
#include <string.h>

#include "fleet.h"

static const char details[] =
    "\n"
    "PROFILE is a .pftrace or .json file written by sonde, a profile of ONNX Runtime\n"
    "(SessionOptions.enable_profiling) or a trace of PyTorch (export_chrome_trace). The\n"
    "format is detected from the content. A truncated .pftrace file is read up to where it\n"
    "ends.\n"
    "\n"
    "  sonde report trace.pftrace --by-shape\n"
    "  sonde report trace.pftrace -q -o trace.json -o report.md\n"
    "  sonde report onnxruntime_profile.json\n"
    "\n"
    "With --by, there may be several, and folders of .pftrace files (see 'sonde merge'): a table\n"
    "with a row for each host, worker or version of the model, and the workers that are slower\n"
    "than those that run the same: by 10 % or more, and by 3 scaled median absolute deviations.\n"
    "\n"
    "  sonde report --by worker traces\n"
    "  sonde report --by host fleet.pftrace --json fleet.json\n";

typedef struct report_options {
    common_options common;
    table_options table;
    const char *by;
    int64_t max_memory;
} report_options;

static const option_row memory_rows[] = {
    {0, "by", OPT_TEXT, offsetof(report_options, by), "host|worker|version",
     "print a table of many profiles, a row for each host, worker or version"},
    PROFILES_MEMORY_ROW(report_options, max_memory),
    {0}};

static const option_group groups[] = {
    TABLE_OPTIONS(report_options, table), {"Output", memory_rows, 0, NULL}, {0}};

static int report(const report_options *o)
{
    sonde_profile *profile = NULL;
    int code = load_profile(&o->common, o->max_memory, o->common.rest.items[0], &profile);
    if (!code)
        code = show_profile(profile, &o->table, &o->common);
    sonde_profile_release(profile);
    return code;
}

static int report_by(const report_options *o)
{
    sonde_fleet *fleet = NULL;
    sonde_fleet_by by;
    size_t left_out;
    const char *json = o->table.json;
    if (!fleet_by_named(o->by, &by))
        return fail_usage("--by is 'host', 'worker' or 'version', not '%s'", o->by);
    if (o->table.outputs.n)
        return fail_usage("--by prints a table, which --json saves; 'sonde merge' writes files of "
                          "all profiles");
    int code = fleet_open(&o->common, o->max_memory, &o->common.rest, NULL, &fleet, &left_out);
    if (!code && !o->common.quiet && !(json && strcmp(json, "-") == 0))
        code = fleet_print(fleet, by);
    if (!code && json)
        code = fleet_save_json(fleet, json);
    sonde_fleet_release(fleet);
    return code ? code : fleet_end(left_out);
}

int cmd_report(int argc, char **argv)
{
    static const verb_options verb = {"report", details, groups, help_formats};
    report_options o = {.max_memory = 0};
    const list *rest = &o.common.rest;
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0 && (!rest->n || (rest->n != 1 && !o.by)))
        code = rest->n ? fail_usage("report takes one PROFILE, not %zu, except with --by", rest->n)
                       : fail_usage("report needs a PROFILE; see 'sonde report --help'");
    if (code < 0)
        code = show_check(&o.table);
    if (code < 0)
        code = o.by ? report_by(&o) : report(&o);
    options_free(&verb, &o.common);
    return code;
}
