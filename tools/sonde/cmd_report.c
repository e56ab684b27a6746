/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: a saved profile again, as a table or in any other format. */
#include "tool.h"

static const char details[] =
    "\n"
    "PROFILE is a .pftrace or .json file written by sonde, a profile of ONNX Runtime\n"
    "(SessionOptions.enable_profiling) or a trace of PyTorch (export_chrome_trace). The\n"
    "format is detected from the content. A truncated .pftrace file is read up to where it\n"
    "ends.\n"
    "\n"
    "  sonde report trace.pftrace --by-shape\n"
    "  sonde report trace.pftrace -q -o trace.json -o report.md\n"
    "  sonde report onnxruntime_profile.json\n";

typedef struct report_options {
    common_options common;
    table_options table;
    int64_t max_memory;
} report_options;

static const option_row memory_rows[] = {PROFILES_MEMORY_ROW(report_options, max_memory), {0}};

static const option_group groups[] = {
    TABLE_OPTIONS(report_options, table), {"Output", memory_rows, 0, NULL}, {0}};

static int report(const report_options *o)
{
    sonde_profile *profile = NULL;
    int code = load_profile(&o->common, o->max_memory, o->common.rest.items[0], &profile);
    if (!code)
        code = show_profile(profile, &o->table, o->common.quiet);
    sonde_profile_release(profile);
    return code;
}

int cmd_report(int argc, char **argv)
{
    static const verb_options verb = {"report", details, groups, help_formats};
    report_options o = {.max_memory = 0};
    const list *rest = &o.common.rest;
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0 && rest->n != 1)
        code = rest->n ? fail_usage("report takes one PROFILE, not %zu", rest->n)
                       : fail_usage("report needs a PROFILE; see 'sonde report --help'");
    if (code < 0)
        code = show_check(&o.table);
    if (code < 0)
        code = report(&o);
    options_free(&verb, &o.common);
    return code;
}
