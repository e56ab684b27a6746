/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and fleets through the public API, with traces of sessions. */
#include <stdio.h>

#include "sonde/experimental/fleet.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"
#include "sonde/sonde.h"

#include "temp_folder.h"
#include "tiny_session.h"

static const char *label_of(const sonde_profile *p, const char *key)
{
    sonde_label label;
    for (size_t i = 0; sonde_profile_label_get(p, i, &label, NULL) == SONDE_OK; i++)
        if (strcmp(label.key, key) == 0)
            return label.value;
    return "";
}

TEST(labels_are_those_of_the_options_then_the_machines)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL, *q = NULL;
    sonde_recording *recording = NULL;
    char pid[32];
    tiny_open(&f, 1, "labels");
    const sonde_label own[] = {
        {"host", "box"}, {"site", "x"}, {"site", ""}, {"odd \n\"", "\xFF,="}};
    sonde_profiler_options how = SONDE_INIT(sonde_profiler_options);
    how.level = 1;
    how.labels = own;
    how.label_count = 4;
    CHECK_OK(sonde_profiler_start_with(f.context, &how, &err));
    CHECK_OK(sonde_recording_start(f.context, &how, &recording, &err));
    tiny_run(&f, 3);
    CHECK_OK(sonde_profiler_get(f.context, &q, &err));
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    CHECK_STR(label_of(p, "host"), "box");
    CHECK_STR(label_of(p, "worker"), pid);
    CHECK_STR(label_of(p, "site"), "");
    CHECK_STR(label_of(p, "odd \n\""), "\xFF,=");
    CHECK_STR(label_of(q, "host"), "box");
    sonde_profile_release(q);
    CHECK_OK(sonde_recording_get(recording, &q, &err));
    CHECK_STR(label_of(q, "host"), "box");
    sonde_profile_release(q);
    sonde_recording_release(recording);
    sonde_profile_release(p);
    /* The next profile has its own. */
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK(strcmp(label_of(p, "host"), "box") != 0);
    CHECK_EQ(sonde_profile_label_get(p, 99, &(sonde_label){NULL, NULL}, &err), SONDE_NOT_FOUND);
    sonde_profile_release(p);
    how.labels = &(sonde_label){"", "x"};
    how.label_count = 1;
    CHECK_EQ(sonde_profiler_start_with(f.context, &how, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_recording_start(f.context, &how, &recording, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "a label has no key");
    how.labels = NULL;
    CHECK_EQ(sonde_profiler_start_with(f.context, &how, &err), SONDE_INVALID_ARGUMENT);
    /* And one that was built before there were any. */
    how.struct_size = offsetof(sonde_profiler_options, labels);
    CHECK_OK(sonde_profiler_start_with(f.context, &how, &err));
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    tiny_close(&f);
}

/* A trace of so many runs, written while they happen. */
static bool stream(tiny_session *f, const char *worker, int runs, const char *path)
{
    sonde_error err;
    const sonde_label own[] = {{"host", "box"}, {"worker", worker}, {"version", "7"}};
    sonde_profiler_options how = SONDE_INIT(sonde_profiler_options);
    how.level = 1;
    how.path = path;
    how.labels = own;
    how.label_count = 3;
    if (sonde_profiler_start_with(f->context, &how, &err))
        return false;
    tiny_run(f, runs);
    return sonde_profiler_stop(f->context, NULL, &err) == SONDE_OK;
}

TEST(a_fleet_has_the_runs_of_all_its_workers)
{
    tiny_session f;
    sonde_error err;
    sonde_fleet *fleet = NULL, *again = NULL;
    sonde_fleet_rows *rows = NULL;
    sonde_profile *p = NULL;
    sonde_fleet_row row = SONDE_INIT(sonde_fleet_row);
    sonde_fleet_trace trace = SONDE_INIT(sonde_fleet_trace);
    sonde_fleet_clocks clocks = SONDE_INIT(sonde_fleet_clocks);
    size_t n, uncompared;
    char folder[TEMP_PATH], one[TEMP_PATH + 16], two[TEMP_PATH + 16], all[TEMP_PATH + 16];
    temp_make(folder);
    snprintf(one, sizeof one, "%s/1.pftrace", folder);
    snprintf(two, sizeof two, "%s/2.pftrace", folder);
    snprintf(all, sizeof all, "%s/all.pftrace", folder);
    tiny_open(&f, 1, "fleet");
    CHECK(stream(&f, "2", 7, two) && stream(&f, "1", 5, one));
    tiny_close(&f);
    CHECK_OK(sonde_fleet_open(NULL, (const char *[]){folder}, 1, NULL, &fleet, &err));
    CHECK_EQ(sonde_fleet_count(fleet), 2);
    CHECK_EQ(sonde_fleet_skipped_count(fleet), 0);
    CHECK_OK(sonde_fleet_trace_get(fleet, 0, &trace, &err));
    CHECK_STR(trace.worker, "1");
    CHECK_STR(trace.version, "7");
    CHECK(strlen(trace.model) > 0 && strlen(trace.note) == 0);
    CHECK_OK(sonde_fleet_clocks_get(fleet, &clocks, &err));
    CHECK_EQ(clocks.boots + clocks.loose, clocks.loose ? 2 : 1);
    CHECK_OK(sonde_fleet_save(fleet, all, NULL, &err));
    CHECK_OK(sonde_fleet_rows_get(fleet, SONDE_FLEET_BY_WORKER, &rows, &err));
    CHECK_EQ(sonde_fleet_rows_count(rows), 2);
    CHECK_OK(sonde_fleet_rows_row(rows, 1, &row, &err));
    CHECK_EQ(row.runs, 7);
    CHECK(row.operator_ns > 0 && row.operators >= 7 && row.p50_ns > 0);
    const uint64_t operator_ns = row.operator_ns;
    sonde_fleet_rows_release(rows);
    CHECK_OK(sonde_fleet_straggler_count(fleet, &n, &uncompared, &err));
    CHECK_EQ(n, 0);
    CHECK_EQ(uncompared, 2);
    CHECK_EQ(sonde_fleet_rows_get(fleet, (sonde_fleet_by)9, &rows, &err), SONDE_INVALID_ARGUMENT);
    sonde_fleet_release(fleet);
    /* The joined file is the same fleet. */
    CHECK_OK(sonde_profile_load(NULL, all, &p, &err));
    CHECK_OK(sonde_fleet_of_profile(p, &again, &err));
    sonde_profile_release(p);
    CHECK_OK(sonde_fleet_rows_get(again, SONDE_FLEET_BY_WORKER, &rows, &err));
    CHECK_EQ(sonde_fleet_rows_count(rows), 2);
    CHECK_OK(sonde_fleet_rows_row(rows, 1, &row, &err));
    CHECK_EQ(row.runs, 7);
    CHECK_EQ(row.operator_ns, operator_ns);
    sonde_fleet_rows_release(rows);
    CHECK_EQ(sonde_fleet_save(again, all, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_fleet_trace_get(again, 0, &trace, &err), SONDE_NOT_FOUND);
    sonde_fleet_release(again);
    temp_remove(folder);
}

TEST(wrong_arguments_are_told)
{
    sonde_error err;
    sonde_fleet *fleet = NULL;
    CHECK_EQ(sonde_fleet_open(NULL, NULL, 1, NULL, &fleet, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_fleet_open(NULL, (const char *[]){NULL}, 1, NULL, &fleet, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_fleet_open(NULL, NULL, 0, NULL, &fleet, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_fleet_open(NULL, (const char *[]){"/nonexistent"}, 1, NULL, &fleet, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "/nonexistent");
    CHECK(!fleet);
    CHECK_EQ(sonde_fleet_count(NULL), 0);
    sonde_fleet_release(NULL);
    sonde_fleet_rows_release(NULL);
}

TEST_MAIN()
