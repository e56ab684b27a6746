/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders of traces: found once each, laid on one line of time, joined without loss. */
#include "merge/merge.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/export.h"
#include "failing_alloc.h"
#include "profile/workers.h"
#include "profile_readers/profile_readers.h"
#include "temp_folder.h"
#include "test.h"

#define T0     UINT64_C(1700000000000000000)
#define SECOND UINT64_C(1000000000)

static char dir[TEMP_PATH];

static const char *at(const char *name)
{
    static char paths[8][TEMP_PATH + 64];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void save(const worker_of *w, const char *name)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = make_worker(failing_init(&m), w);
    if (sn_export_file(p, at(name), &err) != SONDE_OK)
        abort();
    sn_profile_free(p);
}

static worker_of plain(const char *host, const char *worker, unsigned runs)
{
    return (worker_of){.host = host,
                       .worker = worker,
                       .version = "1",
                       .pid = 100,
                       .boot = host,
                       .wall_ns = T0,
                       .mono_ns = 5 * SECOND + runs, /* no two begin at once */
                       .runs = runs,
                       .conv_ns = 1001,
                       .matmul_ns = 503,
                       .record_ns = 12.5,
                       .dropped = runs};
}

/* A new folder with a trace for each of three workers; one of them lies deeper. */
static void make_folder(void)
{
    temp_make(dir);
    if (mkdir(at("deep"), 0777) != 0)
        abort();
    const worker_of a = plain("b", "10", 5), b = plain("b", "9", 3), c = plain("a", "9", 8);
    save(&a, "x.pftrace");
    save(&b, "deep/y.pftrace");
    save(&c, "z.pftrace");
}

static sonde_status open_merge(sn_merge *m, sn_allocator *alloc, const char *const *paths, size_t n,
                               sonde_error *err)
{
    sonde_status st = SONDE_OK;
    sn_merge_init(m, alloc, false);
    for (size_t i = 0; i < n && st == SONDE_OK; i++)
        st = sn_merge_add(m, paths[i], err);
    return st == SONDE_OK ? sn_merge_ready(m, err) : st;
}

/* Sums over all members: runs, dropped, operators, their time. */
typedef struct totals {
    uint64_t runs, dropped, operators, operator_ns;
} totals;

static totals totals_of(const sn_fleet *f)
{
    totals t = {0};
    for (size_t i = 0; i < f->members.n; i++) {
        t.runs += f->members.data[i].runs;
        t.dropped += f->members.data[i].dropped;
        t.operators += f->members.data[i].operators;
        t.operator_ns += f->members.data[i].operator_ns;
    }
    return t;
}

TEST(a_folder_gives_every_trace_in_it_sorted_by_host_and_worker)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    make_folder();
    CHECK_OK(open_merge(&merge, failing_init(&m), (const char *[]){dir}, 1, &err));
    CHECK_EQ(merge.sources.n, 3);
    CHECK_EQ(merge.skipped.n, 0);
    CHECK_STR(merge.sources.data[0].host, "a");
    CHECK_STR(merge.sources.data[1].worker, "9");
    CHECK_STR(merge.sources.data[2].worker, "10");
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

TEST(totals_of_a_joined_trace_are_the_sums_of_its_sources)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    sn_profile *p = NULL;
    make_folder();
    CHECK_OK(open_merge(&merge, failing_init(&m), (const char *[]){dir}, 1, &err));
    sn_fleet before, after, again;
    sn_fleet_init(&before, &m.a);
    sn_fleet_init(&after, &m.a);
    sn_fleet_init(&again, &m.a);
    CHECK_OK(sn_merge_figures(&merge, &before, &err));
    const totals want = totals_of(&before);
    CHECK_EQ(want.runs, 5 + 3 + 8);
    CHECK_EQ(want.dropped, 5 + 3 + 8);
    CHECK_EQ(want.operators, 2 * (5 + 3 + 8));
    CHECK_EQ(want.operator_ns, (5 + 3 + 8) * (1001 + 503));
    CHECK_OK(sn_merge_save(&merge, at("fleet.pftrace"), &err));
    sn_merge_free(&merge);
    /* As one profile. */
    CHECK_OK(sn_profile_read_file(at("fleet.pftrace"), true, &m.a, &p, &err));
    CHECK_EQ(p->workers.n, 3);
    CHECK_EQ(p->dropped, want.dropped);
    CHECK_OK(sn_fleet_add_all(&after, p, &err));
    totals got = totals_of(&after);
    CHECK(memcmp(&got, &want, sizeof got) == 0);
    /* And written once more, from memory. */
    CHECK_OK(sn_export_file(p, at("again.pftrace"), &err));
    sn_profile_free(p);
    CHECK_OK(open_merge(&merge, &m.a, (const char *[]){at("again.pftrace")}, 1, &err));
    CHECK_EQ(merge.sources.n, 3);
    CHECK_OK(sn_merge_figures(&merge, &again, &err));
    got = totals_of(&again);
    CHECK(memcmp(&got, &want, sizeof got) == 0);
    sn_merge_free(&merge);
    sn_fleet_free(&before);
    sn_fleet_free(&after);
    sn_fleet_free(&again);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

TEST(a_recording_that_several_files_hold_is_taken_once)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    make_folder();
    CHECK(symlink("x.pftrace", at("link.pftrace")) == 0);
    CHECK(link(at("x.pftrace"), at("hard.pftrace")) == 0);
    const worker_of copy = plain("b", "10", 5);
    save(&copy, "copy.pftrace"); /* another file, the same recording */
    CHECK_OK(
        open_merge(&merge, failing_init(&m), (const char *[]){dir, at("x.pftrace"), dir}, 3, &err));
    CHECK_OK(sn_merge_save(&merge, at("deep/fleet.pftrace"), &err));
    CHECK_EQ(merge.sources.n, 3);
    for (size_t i = 0; i < merge.skipped.n; i++)
        CHECK(merge.skipped.data[i].duplicate);
    CHECK(merge.skipped.n >= 4);
    sn_merge_free(&merge);
    /* The joined trace beside its sources adds nothing. */
    CHECK_OK(open_merge(&merge, &m.a, (const char *[]){dir}, 1, &err));
    CHECK_EQ(merge.sources.n, 3);
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

TEST(of_two_copies_the_whole_one_is_taken)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    sn_file file;
    temp_make(dir);
    const worker_of w = plain("a", "1", 20);
    save(&w, "b.pftrace");
    CHECK_OK(sn_file_open(&file, at("b.pftrace"), true, failing_init(&m), &err));
    CHECK_OK(sn_file_write(at("a.pftrace"), file.data, file.bytes * 2 / 3, &err));
    sn_file_close(&file);
    CHECK_OK(open_merge(&merge, &m.a, (const char *[]){dir}, 1, &err));
    CHECK_EQ(merge.sources.n, 1);
    CHECK_HAS(merge.sources.data[0].path, "/b.pftrace");
    CHECK_STR(merge.sources.data[0].note, "");
    CHECK_HAS(merge.skipped.data[0].path, "/a.pftrace");
    sn_merge_free(&merge);
    /* Alone, it is taken as far as it goes, and what is missing is kept when it is joined. */
    const worker_of other = plain("a", "2", 5);
    save(&other, "b.pftrace");
    CHECK_OK(open_merge(&merge, &m.a, (const char *[]){dir}, 1, &err));
    CHECK_EQ(merge.sources.n, 2);
    CHECK_HAS(merge.sources.data[0].note, "truncated");
    CHECK_OK(sn_merge_save(&merge, at("fleet.pftrace"), &err));
    sn_merge_free(&merge);
    sn_profile *p = NULL;
    CHECK_OK(sn_profile_read_file(at("fleet.pftrace"), true, &m.a, &p, &err));
    CHECK_HAS(p->workers.data[0].part->note, "truncated");
    CHECK_HAS(p->note, "1 of 2 joined profiles are incomplete");
    CHECK_STR(p->workers.data[1].part->note, "");
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

TEST(files_that_are_no_traces_are_named_and_left_out)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    make_folder();
    CHECK_OK(sn_file_write(at("bad.pftrace"), "no trace", 8, &err));
    CHECK_OK(sn_file_write(at("empty.pftrace"), "", 0, &err));
    CHECK_OK(sn_file_write(at("notes.txt"), "not looked at", 13, &err));
    CHECK_OK(sn_file_write(at(".hidden.pftrace"), "not looked at", 13, &err));
    CHECK_OK(
        open_merge(&merge, failing_init(&m), (const char *[]){dir, at("missing.json")}, 2, &err));
    CHECK_EQ(merge.sources.n, 3);
    CHECK_EQ(merge.skipped.n, 3);
    CHECK_HAS(merge.skipped.data[0].path, "/bad.pftrace");
    CHECK(!merge.skipped.data[0].duplicate);
    CHECK_HAS(merge.skipped.data[0].why, "is not a profile");
    CHECK_STR(merge.skipped.data[1].why, "it is empty");
    CHECK_HAS(merge.skipped.data[2].path, "/missing.json");
    sn_merge_free(&merge);
    CHECK_EQ(open_merge(&merge, &m.a, (const char *[]){at("bad.pftrace")}, 1, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "there is no trace to merge");
    sn_merge_free(&merge);
    temp_remove(dir);
    temp_make(dir);
    CHECK_EQ(open_merge(&merge, &m.a, (const char *[]){dir}, 1, &err), SONDE_NOT_FOUND);
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

TEST(links_in_circles_end)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    make_folder();
    CHECK(symlink("..", at("deep/up")) == 0);
    CHECK(symlink("nowhere", at("dangling.pftrace")) == 0);
    CHECK_OK(open_merge(&merge, failing_init(&m), (const char *[]){dir}, 1, &err));
    CHECK_EQ(merge.sources.n, 3);
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

/* ------------------------------------------------------------------ clocks */
/* Sources in the order of their workers' names "0", "1", … */
static void open_workers(sn_merge *merge, sn_allocator *alloc, const worker_of *list, size_t n)
{
    sonde_error err = {0};
    temp_make(dir);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu.pftrace", i);
        save(&list[i], name);
    }
    if (open_merge(merge, alloc, (const char *[]){dir}, 1, &err) != SONDE_OK)
        abort();
    temp_remove(dir);
}

TEST(traces_of_one_boot_lie_as_the_monotonic_clock_says)
{
    failing_alloc m;
    sn_merge merge;
    worker_of w[3];
    for (int i = 0; i < 3; i++) {
        w[i] = plain("a", (const char *[]){"0", "1", "2"}[i], 4);
        w[i].pid = i + 1;
        w[i].mono_ns = (uint64_t)(1 + i) * SECOND;
        w[i].wall_ns = T0 + (uint64_t)(1 + i) * SECOND;
    }
    w[1].wall_ns -= 3600 * SECOND; /* the wall clock was wrong for a while */
    open_workers(&merge, failing_init(&m), w, 3);
    for (int i = 0; i < 3; i++)
        CHECK(merge.sources.data[i].aligned_ns == T0 + (uint64_t)(1 + i) * SECOND);
    CHECK_EQ(merge.clocks.boots, 1);
    CHECK_EQ(merge.clocks.loose, 0);
    CHECK(merge.clocks.moved_ns == 3600 * SECOND);
    CHECK_STR(merge.clocks.moved_host, "a");
    sn_merge_free(&merge);
    /* The one that knows its error best is believed, even if it is not the newest. */
    w[1].error_ns = 1000;
    w[2].error_ns = 5000;
    open_workers(&merge, &m.a, w, 3);
    CHECK(merge.sources.data[0].aligned_ns == T0 + SECOND - 3600 * SECOND);
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
}

TEST(boots_meet_by_their_wall_clocks_and_the_error_is_told)
{
    failing_alloc m;
    sn_merge merge;
    worker_of w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = plain((const char *[]){"a", "a", "b", "c"}[i],
                     (const char *[]){"0", "1", "2", "3"}[i], 4);
        w[i].pid = i + 1;
        w[i].error_ns = (uint64_t[]){4000, 3000, 2000, 1000}[i];
    }
    open_workers(&merge, failing_init(&m), w, 4);
    CHECK_EQ(merge.clocks.boots, 3);
    CHECK_EQ(merge.clocks.error_ns, 5000); /* of the two worst: 3000 of a, 2000 of b */
    sn_merge_free(&merge);
    w[3].error_ns = 0;
    open_workers(&merge, &m.a, w, 4);
    CHECK_EQ(merge.clocks.error_ns, 0);
    sn_merge_free(&merge);
    w[3].boot = NULL; /* an earlier version wrote it */
    open_workers(&merge, &m.a, w, 4);
    CHECK_EQ(merge.clocks.boots, 2);
    CHECK_EQ(merge.clocks.loose, 1);
    CHECK_EQ(merge.clocks.error_ns, 0);
    CHECK(merge.sources.data[3].aligned_ns == T0);
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
}

TEST(a_trace_that_grows_is_taken_as_it_was_and_one_that_shrinks_is_told)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_merge merge;
    sn_profile *p = NULL;
    temp_make(dir);
    const worker_of w = plain("a", "1", 20);
    save(&w, "a.pftrace");
    CHECK_OK(open_merge(&merge, failing_init(&m), (const char *[]){dir}, 1, &err));
    const int fd = open(at("a.pftrace"), O_WRONLY | O_APPEND);
    CHECK_EQ(write(fd, "\n\x7F", 2), 2);
    close(fd);
    CHECK_OK(sn_merge_read(&merge, 0, &p, &err));
    CHECK_STR(p->note, "");
    sn_profile_free(p);
    sn_merge_free(&merge);
    CHECK_OK(open_merge(&merge, &m.a, (const char *[]){dir}, 1, &err));
    CHECK(truncate(at("a.pftrace"), 100) == 0);
    CHECK_EQ(sn_merge_read(&merge, 0, &p, &err), SONDE_IO);
    CHECK_HAS(err.message, "has become shorter");
    CHECK_EQ(sn_merge_save(&merge, at("fleet.pftrace"), &err), SONDE_IO);
    CHECK(access(at("fleet.pftrace"), F_OK) != 0);
    sn_merge_free(&merge);
    CHECK_EQ(m.live, 0);
    temp_remove(dir);
}

TEST(every_failing_allocation_is_told)
{
    sonde_status st = SONDE_OUT_OF_MEMORY;
    make_folder();
    for (long fail = 0; st != SONDE_OK; fail++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_merge merge;
        sn_profile *p = NULL;
        failing_init(&m);
        m.fail_at = fail;
        st = open_merge(&merge, &m.a, (const char *[]){dir}, 1, &err);
        if (st == SONDE_OK)
            st = sn_merge_save(&merge, at("deep/fleet"), &err);
        if (st == SONDE_OK)
            st = sn_merge_join(&merge, &p, &err);
        CHECK_MSG(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY, "%s", err.message);
        sn_profile_free(p);
        sn_merge_free(&merge);
        CHECK_EQ(m.live, 0);
    }
    temp_remove(dir);
}

TEST_MAIN()
