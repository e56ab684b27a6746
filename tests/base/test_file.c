/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped and read alike, empty ones, pipes, refusals that name path and cause, and writes
 * that replace whole files or nothing. */
#include "base/file.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temp_folder.h"
#include "test.h"

static sn_allocator *allocator(void)
{
    static sn_allocator a;
    sn_allocator_init_system(&a);
    return &a;
}

TEST(what_is_written_is_read_back_mapped_and_copied)
{
    sonde_error err = {0};
    sn_allocator *a = allocator();
    static uint8_t data[100000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)test_rand();
    CHECK_OK(sn_file_write(in_dir("data"), data, sizeof data, &err));
    for (int map = 0; map < 2; map++) {
        sn_file f;
        CHECK_OK(sn_file_open(&f, in_dir("data"), map, a, &err));
        CHECK_EQ(f.mapped, map);
        CHECK_EQ(f.bytes, sizeof data);
        CHECK(memcmp(f.data, data, sizeof data) == 0);
        sn_file_release(&f, f.data, f.bytes);
        sn_file_release(&f, f.data + 5000, 9000);
        CHECK(memcmp(f.data, data, sizeof data) == 0); /* released pages come back from the file */
        sn_file_close(&f);
    }
    CHECK_EQ(a->live_bytes, 0);
}

TEST(an_empty_file_has_data_and_no_bytes)
{
    sonde_error err = {0};
    CHECK_OK(sn_file_write(in_dir("empty"), NULL, 0, &err));
    for (int map = 0; map < 2; map++) {
        sn_file f;
        CHECK_OK(sn_file_open(&f, in_dir("empty"), map, allocator(), &err));
        CHECK(f.data != NULL);
        CHECK_EQ(f.bytes, 0);
        sn_file_close(&f);
    }
}

TEST(missing_files_and_directories_are_refused_by_name)
{
    sonde_error err = {0};
    sn_file f;
    CHECK_EQ(sn_file_open(&f, in_dir("absent"), true, allocator(), &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "absent");
    CHECK_HAS(err.message, "No such file");
    CHECK_EQ(sn_file_open(&f, the_dir(), true, allocator(), &err), SONDE_IO);
    CHECK_HAS(err.message, the_dir());
    CHECK_HAS(err.message, "directory");
    CHECK_EQ(sn_file_write(the_dir(), "x", 1, &err), SONDE_IO);
    CHECK_HAS(err.message, "directory");
    CHECK_EQ(sn_file_write(in_dir("no/such/folder"), "x", 1, &err), SONDE_IO);
    CHECK_HAS(err.message, "no/such/folder");
}

static void *feed_pipe(void *arg)
{
    FILE *f = fopen(arg, "w");
    for (int i = 0; f && i < 50000; i++)
        fprintf(f, "line %d\n", i);
    if (f)
        fclose(f);
    return NULL;
}

TEST(a_pipe_is_read_whole)
{
    sonde_error err = {0};
    char path[256];
    snprintf(path, sizeof path, "%s", in_dir("pipe"));
    CHECK(mkfifo(path, 0600) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, feed_pipe, path) == 0);
    sn_allocator *a = allocator();
    sn_file f;
    CHECK_OK(sn_file_open(&f, path, true, a, &err));
    pthread_join(thread, NULL);
    CHECK(!f.mapped);
    CHECK(f.bytes > 500000);
    CHECK(memcmp(f.data + f.bytes - 11, "line 49999\n", 11) == 0);
    sn_file_close(&f);
    CHECK_EQ(a->live_bytes, 0);
}

TEST(a_file_of_proc_that_tells_no_size_is_read)
{
    sonde_error err = {0};
    sn_file f;
    CHECK_OK(sn_file_open(&f, "/proc/self/status", true, allocator(), &err));
    CHECK(f.bytes > 10);
    sn_file_close(&f);
}

TEST(out_of_memory_is_told_and_nothing_leaks)
{
    sonde_error err = {0};
    sn_allocator *a = allocator();
    a->limit_bytes = 1000;
    CHECK_OK(sn_file_write(in_dir("data"), "abc", 3, &err));
    sn_file f;
    CHECK_EQ(sn_file_open(&f, in_dir("data"), false, a, &err), SONDE_OUT_OF_MEMORY);
    CHECK_EQ(a->live_bytes, 0);
    sn_file_close(&f);
}

TEST(writing_keeps_the_mode_follows_links_and_leaves_nothing_behind)
{
    sonde_error err = {0};
    struct stat info;
    CHECK_OK(sn_file_write(in_dir("target"), "one", 3, &err));
    CHECK(chmod(in_dir("target"), 0640) == 0);
    CHECK(symlink("target", in_dir("link")) == 0);
    int before = temp_count(the_dir());
    CHECK_OK(sn_file_write(in_dir("link"), "two!", 4, &err));
    CHECK_EQ(temp_count(the_dir()), before);
    CHECK(lstat(in_dir("link"), &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(stat(in_dir("target"), &info) == 0);
    CHECK_EQ(info.st_size, 4);
    CHECK_EQ(info.st_mode & 0777, 0640);
    CHECK_OK(sn_file_write("/dev/null", "x", 1, &err));
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
}

TEST(a_full_disk_is_named_and_the_old_file_stays)
{
    sonde_error err = {0};
    if (access("/dev/full", W_OK) == 0) {
        CHECK_EQ(sn_file_write("/dev/full", "x", 1, &err), SONDE_IO);
        CHECK_HAS(err.message, "No space left");
    }
    CHECK_OK(sn_file_write(in_dir("kept"), "old", 3, &err));
    int before = temp_count(the_dir());
    static char big[200000];
    struct rlimit was, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &was) == 0);
    small = was;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    sonde_status st = sn_file_write(in_dir("kept"), big, sizeof big, &err);
    CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK_EQ(st, SONDE_IO);
    CHECK_HAS(err.message, "kept");
    CHECK_HAS(err.message, "File too large");
    CHECK_EQ(temp_count(the_dir()), before);
    sn_file f;
    CHECK_OK(sn_file_open(&f, in_dir("kept"), false, allocator(), &err));
    CHECK_EQ(f.bytes, 3);
    sn_file_close(&f);
}

TEST_MAIN()
