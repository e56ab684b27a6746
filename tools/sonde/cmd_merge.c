/* SPDX-License-Identifier: Apache-2.0 */
/* sonde merge: traces of many processes become one file. */
#include <string.h>

#include "fleet.h"

static const char details[] =
    "\n"
    "Each TRACE is a profile in any format that 'sonde report' reads, or a folder, of which\n"
    "every *.pftrace is taken, also from folders in it. Traces that end early, as those of\n"
    "killed processes, are taken up to there. A recording that several files hold is taken\n"
    "once. Files that cannot be read are named and left out, and the exit status is 1.\n"
    "\n"
    "Workers are grouped as 'host / worker', after the labels of their traces. Traces of one\n"
    "boot of one machine are aligned exactly, those of different machines by their wall\n"
    "clocks. A .pftrace is written trace by trace; other formats need all of them in memory.\n"
    "\n"
    "  sonde profile model.onnx -o traces/1.pftrace --label worker=1\n"
    "  sonde merge traces -o fleet.pftrace\n"
    "  sonde merge a.pftrace b.pftrace -o fleet.pftrace -o fleet.html\n"
    "  sonde report --by worker fleet.pftrace\n";

typedef struct merge_options {
    common_options common;
    list outputs;
    const char *json;
    int64_t max_memory;
} merge_options;

#define AT(field) offsetof(merge_options, field)

/* Outputs may lie in a folder that is read: they are not read, and so no OPT_FILES. */
static const option_row rows[] = {
    {'o', "output", OPT_LIST, AT(outputs), "FILE",
     "save to FILE in the format of its suffix, .pftrace for all of it; may be repeated"},
    {0, "json", OPT_TEXT, AT(json), "FILE",
     "write tables by host, worker and version as JSON; '-' is standard output"},
    PROFILES_MEMORY_ROW(merge_options, max_memory),
    {0}};

static const option_group groups[] = {{"Merging", rows, 0, NULL}, {0}};

/* Every place is looked at before anything is read, and no file that is named is written to. */
static int check_places(const merge_options *o)
{
    list written = {.n = 0}, read = {.n = 0};
    int code = -1;
    for (size_t i = 0; i < o->outputs.n; i++)
        list_add(&written, o->outputs.items[i]);
    if (o->json)
        list_add(&written, o->json);
    for (size_t i = 0; i < o->common.rest.n; i++)
        if (!is_folder(o->common.rest.items[i]))
            list_add(&read, o->common.rest.items[i]);
    for (size_t i = 0; i < written.n && code < 0; i++)
        code = output_check(written.items[i]);
    if (code < 0)
        code = check_outputs(&written, &read);
    list_free(&written);
    list_free(&read);
    return code;
}

static int check(const merge_options *o)
{
    const table_options formats = {.outputs = o->outputs};
    if (!o->common.rest.n)
        return fail_usage("merge needs traces, or a folder of them; see 'sonde merge --help'");
    if (!o->outputs.n && !o->json)
        return fail_usage("merge needs a file to write: -o FILE.pftrace");
    const int code = show_check(&formats);
    return code < 0 ? check_places(o) : code;
}

/* ------------------------------------------------------------------ what was joined */
static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Different ones among the traces; hosts are sorted, and workers within each. */
static void count_names(const sonde_fleet *fleet, size_t *hosts, size_t *workers)
{
    sonde_fleet_trace t = SONDE_INIT(sonde_fleet_trace), before = t;
    *hosts = *workers = 0;
    for (size_t i = 0; sonde_fleet_trace_get(fleet, i, &t, NULL) == SONDE_OK; i++) {
        const bool host = !i || strcmp(t.host, before.host) != 0;
        *hosts += host;
        *workers += host || strcmp(t.worker, before.worker) != 0;
        before = t;
    }
}

static void print_clocks(const sonde_fleet *fleet)
{
    sonde_fleet_clocks c = SONDE_INIT(sonde_fleet_clocks);
    if (sonde_fleet_clocks_get(fleet, &c, NULL))
        return;
    if (c.boots == 1 && !c.loose)
        printf("clocks: one monotonic clock, exact\n");
    else if (c.error_ns)
        printf("clocks: exact on each machine; between machines within %s, as they estimate it\n",
               time_text((double)c.error_ns / 1e6));
    else
        printf(
            "clocks: %sby wall clock between machines, whose error is not known (NTP leaves 1 to "
            "10 ms as a rule)\n",
            c.boots ? "exact on each machine; " : "");
    if (c.loose && c.boots)
        printf("clocks: %zu trace%s of earlier versions or other programs lie by wall clock\n",
               c.loose, plural(c.loose));
    if (c.moved_ns >= 10000000)
        warn("the wall clock of '%s' was moved by %s between its traces; they are aligned by the "
             "monotonic clock",
             c.moved_host, time_text((double)c.moved_ns / 1e6));
}

static void print_joined(const sonde_fleet *fleet)
{
    size_t hosts, workers;
    const size_t n = sonde_fleet_count(fleet);
    count_names(fleet, &hosts, &workers);
    printf("%zu trace%s of %zu worker%s on %zu host%s\n", n, plural(n), workers, plural(workers),
           hosts, plural(hosts));
    print_clocks(fleet);
}

static int save(sonde_fleet *fleet, const merge_options *o)
{
    sonde_error err;
    int code = EXIT_OK;
    for (size_t i = 0; i < o->outputs.n; i++) /* one that cannot be written costs no other */
        if (sonde_fleet_save(fleet, o->outputs.items[i], NULL, &err))
            code = fail("%s", err.message);
    const int json = o->json ? fleet_save_json(fleet, o->json) : EXIT_OK;
    return code ? code : json;
}

static bool to_stdout(const merge_options *o)
{
    bool any = o->json && strcmp(o->json, "-") == 0;
    for (size_t i = 0; i < o->outputs.n; i++)
        any |= o->outputs.items[i][0] == '-';
    return any;
}

/* The output that may lie in a folder that is read. */
static const char *joined_file(const merge_options *o)
{
    for (size_t i = 0; i < o->outputs.n; i++)
        if (has_suffix(o->outputs.items[i], ".pftrace"))
            return o->outputs.items[i];
    return NULL;
}

static int merge(const merge_options *o)
{
    sonde_fleet *fleet = NULL;
    size_t left_out;
    int code =
        fleet_open(&o->common, o->max_memory, &o->common.rest, joined_file(o), &fleet, &left_out);
    if (!code)
        code = save(fleet, o);
    if (!code && !o->common.quiet && !to_stdout(o))
        print_joined(fleet);
    sonde_fleet_release(fleet);
    return code ? code : fleet_end(left_out);
}

int cmd_merge(int argc, char **argv)
{
    static const verb_options verb = {"merge", details, groups, help_formats};
    merge_options o = {.max_memory = 0};
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0)
        code = check(&o);
    if (code < 0)
        code = merge(&o);
    options_free(&verb, &o.common);
    return code;
}
