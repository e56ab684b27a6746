/* SPDX-License-Identifier: Apache-2.0 */
/* The one writer of files: what is there stays what it is, and nothing half-written is ever seen.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "temp_folder.h"
#include "test.h"

static bool holds(const char *path, const char *text)
{
    char got[256] = "";
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(got, 1, sizeof got - 1, f) : 0;
    if (f)
        fclose(f);
    return n == strlen(text) && memcmp(got, text, n) == 0;
}

static bool make(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    const bool fine = f && fputs(text, f) >= 0;
    return f && fclose(f) == 0 && fine && chmod(path, mode) == 0;
}

static mode_t mode_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? s.st_mode & 07777 : 0;
}

TEST(pieces_become_one_file_and_it_is_not_there_before_it_is_whole)
{
    sonde_error err = {0};
    sn_file_writer w;
    static char piece[40000];
    memset(piece, 'x', sizeof piece);
    CHECK_OK(sn_file_writer_open(&w, in_dir("whole"), SN_WRITE_WHOLE, &err));
    for (size_t n = 1; n <= sizeof piece; n *= 3)
        CHECK(sn_file_writer_put(&w, piece, n));
    CHECK(sn_file_writer_flush(&w));
    CHECK(access(in_dir("whole"), F_OK) != 0);
    CHECK_OK(sn_file_writer_finish(&w, false, &err));
    struct stat s;
    CHECK(stat(in_dir("whole"), &s) == 0);
    CHECK_EQ(s.st_size, 1 + 3 + 9 + 27 + 81 + 243 + 729 + 2187 + 6561 + 19683);
}

TEST(an_abandoned_file_leaves_the_old_one_and_nothing_beside_it)
{
    sonde_error err = {0};
    sn_file_writer w;
    CHECK(make(in_dir("old"), "old", 0644));
    const int before = temp_count(the_dir());
    CHECK_OK(sn_file_writer_open(&w, in_dir("old"), SN_WRITE_WHOLE, &err));
    CHECK(sn_file_writer_put(&w, "new", 3));
    sn_file_writer_abandon(&w);
    sn_file_writer_abandon(&w);
    CHECK_EQ(temp_count(the_dir()), before);
    CHECK(holds(in_dir("old"), "old"));
}

TEST(a_program_that_is_killed_while_it_writes_leaves_nothing_beside_the_old_file)
{
    CHECK(make(in_dir("killed"), "old", 0644));
    const int before = temp_count(the_dir());
    const pid_t pid = fork();
    if (pid == 0) {
        sn_file_writer w;
        if (sn_file_writer_open(&w, in_dir("killed"), SN_WRITE_WHOLE, NULL) ||
            !sn_file_writer_put(&w, "new", 3) || !sn_file_writer_flush(&w))
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(holds(in_dir("killed"), "old"));
    const int probe = open(the_dir(), O_TMPFILE | O_WRONLY, 0600);
    if (probe >= 0) /* where the file system knows files without a name */
        CHECK_EQ(temp_count(the_dir()), before);
    if (probe >= 0)
        close(probe);
}

TEST(a_private_file_stays_private_and_a_new_one_has_what_the_umask_leaves)
{
    sonde_error err = {0};
    const mode_t modes[] = {0600, 0640, 0644, 0666, 0755};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        CHECK(make(in_dir("moded"), "a", modes[i]));
        CHECK_OK(sn_file_write(in_dir("moded"), "bc", 2, &err));
        CHECK_EQ(mode_of(in_dir("moded")), modes[i]);
        CHECK(holds(in_dir("moded"), "bc"));
    }
    const mode_t was = umask(027);
    CHECK_OK(sn_file_write(in_dir("fresh"), "x", 1, &err));
    umask(was);
    CHECK_EQ(mode_of(in_dir("fresh")), 0640);
}

TEST(a_file_of_another_owner_stays_his)
{
    if (geteuid() != 0)
        SKIP_TEST("only root can give files away");
    sonde_error err = {0};
    struct stat s;
    CHECK(make(in_dir("theirs"), "a", 0600));
    CHECK(chown(in_dir("theirs"), 65534, 65533) == 0);
    CHECK_OK(sn_file_write(in_dir("theirs"), "b", 1, &err));
    CHECK(stat(in_dir("theirs"), &s) == 0);
    CHECK(s.st_uid == 65534 && s.st_gid == 65533);
    CHECK_EQ(s.st_mode & 0777, 0600);
}

TEST(links_lead_to_the_file_also_when_it_is_not_there_yet_and_stay_links)
{
    sonde_error err = {0};
    struct stat s;
    CHECK(mkdir(in_dir("inner"), 0755) == 0);
    CHECK(symlink("inner/second", in_dir("first")) == 0);
    CHECK(symlink("../behind", in_dir("inner/second")) == 0);
    for (int k = 0; k < 2; k++) { /* not there yet, then there */
        CHECK_OK(sn_file_write(in_dir("first"), k ? "two" : "one", 3, &err));
        CHECK(holds(in_dir("behind"), k ? "two" : "one"));
        CHECK(lstat(in_dir("first"), &s) == 0 && S_ISLNK(s.st_mode));
        CHECK(lstat(in_dir("inner/second"), &s) == 0 && S_ISLNK(s.st_mode));
    }
    CHECK(symlink("round", in_dir("round")) == 0);
    CHECK_EQ(sn_file_write(in_dir("round"), "x", 1, &err), SONDE_IO);
    CHECK_HAS(err.message, "round");
    CHECK(symlink("no/where", in_dir("nowhere")) == 0);
    CHECK_EQ(sn_file_write(in_dir("nowhere"), "x", 1, &err), SONDE_IO);
    CHECK_HAS(err.message, "nowhere");
}

TEST(other_hard_links_keep_the_old_content)
{
    sonde_error err = {0};
    CHECK(make(in_dir("one_name"), "old", 0644));
    CHECK(link(in_dir("one_name"), in_dir("other_name")) == 0);
    CHECK_OK(sn_file_write(in_dir("one_name"), "new", 3, &err));
    CHECK(holds(in_dir("one_name"), "new"));
    CHECK(holds(in_dir("other_name"), "old"));
}

/* Without /proc a file cannot get its name later. In a process of its own: there is no way back. */
static bool write_without_proc(void)
{
    sonde_error err = {0};
    sn_file_writer w;
    if (chroot(the_dir()) != 0 || chdir("/") != 0)
        return false;
    const int before = temp_count("/");
    return sn_file_writer_open(&w, "/rootless", SN_WRITE_WHOLE, &err) == SONDE_OK &&
           temp_count("/") == before + 1 && access("/rootless", F_OK) != 0 &&
           sn_file_writer_put(&w, "text", 4) &&
           sn_file_writer_finish(&w, false, &err) == SONDE_OK && holds("/rootless", "text") &&
           temp_count("/") == before + 1 &&
           sn_file_writer_open(&w, "rootless", SN_WRITE_WHOLE, &err) == SONDE_OK &&
           (sn_file_writer_abandon(&w), temp_count("/") == before + 1) && holds("rootless", "text");
}

TEST(where_no_file_is_nameless_it_has_a_hidden_name_until_it_is_whole)
{
    if (geteuid() != 0)
        SKIP_TEST("only root can change its root folder");
    const char *made = in_dir("rootless");
    const pid_t pid = fork();
    if (pid == 0)
        _exit(write_without_proc() ? 0 : 1);
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    CHECK(holds(made, "text"));
}

static void *read_pipe(void *path)
{
    static char got[16];
    FILE *f = fopen(path, "r");
    if (f) {
        got[fread(got, 1, sizeof got - 1, f)] = 0;
        fclose(f);
    }
    return got;
}

TEST(pipes_and_devices_are_written_to_as_they_are)
{
    sonde_error err = {0};
    struct stat s;
    const sn_write_how ways[] = {SN_WRITE_WHOLE, SN_WRITE_REPLACE, SN_WRITE_VISIBLE};
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("pipe"));
    CHECK(mkfifo(path, 0600) == 0);
    const bool device = mknod(in_dir("null"), S_IFCHR | 0666, makedev(1, 3)) == 0 &&
                        access(in_dir("null"), W_OK) == 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        pthread_t thread;
        void *got = NULL;
        sn_file_writer w;
        CHECK(pthread_create(&thread, NULL, read_pipe, path) == 0);
        CHECK_OK(sn_file_writer_open(&w, path, ways[i], &err));
        CHECK(sn_file_writer_put(&w, "text", 4));
        CHECK_OK(sn_file_writer_finish(&w, true, &err));
        CHECK(pthread_join(thread, &got) == 0);
        CHECK_STR(got, "text");
        CHECK(lstat(path, &s) == 0 && S_ISFIFO(s.st_mode));
        const int fd = device ? open(in_dir("null"), O_WRONLY) : -1;
        if (fd < 0) /* no right to make one, or a file system without devices */
            continue;
        close(fd);
        CHECK_OK(sn_file_writer_open(&w, in_dir("null"), ways[i], &err));
        CHECK(sn_file_writer_put(&w, "text", 4));
        CHECK_OK(sn_file_writer_finish(&w, false, &err));
        CHECK(lstat(in_dir("null"), &s) == 0 && S_ISCHR(s.st_mode));
    }
}

/* What a user without rights of root sees; in a process of its own. */
static bool as_nobody(bool (*check)(void))
{
    const pid_t pid = fork();
    if (pid == 0) {
        const bool dropped = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
        _exit(dropped && check() ? 0 : 1);
    }
    int status = 1;
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool closed_folder_is_written_in_place(void)
{
    sonde_error err = {0};
    sn_file_writer w;
    return sn_file_write(in_dir("closed/open"), "new", 3, &err) == SONDE_OK &&
           sn_file_writer_open(&w, in_dir("closed/open"), SN_WRITE_REPLACE, &err) == SONDE_IO &&
           sn_file_write(in_dir("closed/absent"), "new", 3, &err) == SONDE_IO &&
           strstr(err.message, "Permission denied");
}

TEST(where_the_folder_takes_no_new_file_the_old_one_is_written_unless_it_may_be_mapped)
{
    CHECK(mkdir(in_dir("closed"), 0755) == 0);
    CHECK(chmod(the_dir(), 0755) == 0);
    CHECK(make(in_dir("closed/open"), "old content", 0666));
    CHECK(chmod(in_dir("closed"), 0555) == 0);
    CHECK(as_nobody(closed_folder_is_written_in_place));
    CHECK(chmod(in_dir("closed"), 0755) == 0);
    CHECK(holds(in_dir("closed/open"), "new"));
    CHECK_EQ(temp_count(in_dir("closed")), 1);
}

static bool forbidden_file_is_refused(void)
{
    sonde_error err = {0};
    return sn_file_write(in_dir("shared/forbidden"), "new", 3, &err) == SONDE_IO &&
           strstr(err.message, "Permission denied") &&
           sn_file_write(in_dir("shared/theirs"), "new", 3, &err) == SONDE_OK;
}

TEST(a_file_whose_mode_forbids_writing_stays_and_one_of_another_owner_keeps_him)
{
    struct stat s;
    CHECK(mkdir(in_dir("shared"), 0777) == 0 && chmod(in_dir("shared"), 0777) == 0);
    CHECK(chmod(the_dir(), 0755) == 0);
    CHECK(make(in_dir("shared/forbidden"), "old", 0444));
    CHECK(make(in_dir("shared/theirs"), "old", 0666));
    CHECK(as_nobody(forbidden_file_is_refused));
    CHECK(holds(in_dir("shared/forbidden"), "old"));
    CHECK(holds(in_dir("shared/theirs"), "new"));
    CHECK(stat(in_dir("shared/theirs"), &s) == 0);
    CHECK_EQ(s.st_uid, geteuid());
    CHECK_EQ(s.st_mode & 0777, 0666);
    CHECK_EQ(temp_count(in_dir("shared")), 2);
}

TEST(a_name_as_long_as_names_may_be_is_written)
{
    sonde_error err = {0};
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    CHECK_OK(sn_file_write(in_dir(name), "one", 3, &err));
    CHECK_OK(sn_file_write(in_dir(name), "two", 3, &err));
    CHECK(holds(in_dir(name), "two"));
}

TEST(a_visible_file_is_there_from_the_first_byte_on)
{
    sonde_error err = {0};
    sn_file_writer w;
    CHECK(make(in_dir("seen"), "what was there before", 0600));
    CHECK_OK(sn_file_writer_open(&w, in_dir("seen"), SN_WRITE_VISIBLE, &err));
    CHECK(sn_file_writer_put(&w, "now", 3) && sn_file_writer_flush(&w));
    CHECK(holds(in_dir("seen"), "now"));
    CHECK_OK(sn_file_writer_finish(&w, false, &err));
    CHECK_EQ(mode_of(in_dir("seen")), 0600);
}

TEST(the_file_that_standard_output_goes_to_is_written_on)
{
    sonde_error err = {0};
    fflush(stdout);
    const int was = dup(STDOUT_FILENO);
    const int fd = open(in_dir("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(was >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
    const bool first = write(STDOUT_FILENO, "one ", 4) == 4;
    const sonde_status st = sn_file_write("/dev/stdout", "two ", 4, &err);
    const bool last = write(STDOUT_FILENO, "three", 5) == 5;
    dup2(was, STDOUT_FILENO);
    close(was);
    close(fd);
    CHECK(first && last);
    CHECK_OK(st);
    CHECK(holds(in_dir("out"), "one two three"));
}

TEST_MAIN()
