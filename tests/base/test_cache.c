/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of what is kept: only the user's own, which nobody else can write to, and only regular
 * files in them; what is written there is for its owner. */
#include "base/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temp_folder.h"
#include "test.h"

enum { NOBODY = 65534 };

typedef struct place {
    char path[TEMP_PATH], folder[96], file[128];
    sn_allocator alloc;
} place;

static void begin(place *p)
{
    temp_make(p->path);
    snprintf(p->folder, sizeof p->folder, "%s/kept", p->path);
    snprintf(p->file, sizeof p->file, "%s/file", p->folder);
    sn_allocator_init_system(&p->alloc);
}

static void end(const place *p)
{
    CHECK(temp_remove(p->path));
    CHECK_EQ(atomic_load(&p->alloc.live_bytes), 0);
}

/* Makes the folder with "content" in its file. */
static void fill(const place *p)
{
    sonde_error err;
    sn_cache c;
    CHECK_OK(sn_cache_open(&c, p->folder, true, &err));
    CHECK_OK(sn_cache_write(&c, "file", "content", 7, &err));
    sn_cache_close(&c);
}

static sonde_status open_only(const char *path, sonde_error *err)
{
    sn_cache c;
    const sonde_status st = sn_cache_open(&c, path, false, err);
    if (!st)
        sn_cache_close(&c);
    return st;
}

/* Whether the file is what `fill` wrote. */
static sonde_status read_back(place *p, size_t most, sonde_error *err)
{
    sn_cache c;
    sn_file f;
    SN_TRY(sn_cache_open(&c, p->folder, false, err));
    sonde_status st = sn_cache_read(&c, "file", most, true, &p->alloc, &f, err);
    if (!st && (f.bytes != 7 || memcmp(f.data, "content", 7) != 0))
        st = SONDE_INTERNAL;
    if (!st)
        sn_file_close(&f);
    sn_cache_close(&c);
    return st;
}

static unsigned mode_of(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 ? s.st_mode & 07777 : 0;
}

TEST(folders_and_files_are_made_for_their_owner_only)
{
    place p;
    sonde_error err;
    begin(&p);
    const mode_t old = umask(0);
    char deep[128], middle[128];
    snprintf(middle, sizeof middle, "%s/a", p.path);
    snprintf(deep, sizeof deep, "%s/a/b/", p.path);
    sn_cache c;
    CHECK_EQ(open_only(deep, &err), SONDE_NOT_FOUND);
    CHECK_OK(sn_cache_open(&c, deep, true, &err));
    sn_cache_close(&c);
    CHECK_EQ(mode_of(middle), 0700);
    CHECK_EQ(mode_of(deep), 0700);
    fill(&p);
    umask(old);
    CHECK_EQ(mode_of(p.file), 0600);
    CHECK_OK(read_back(&p, 7, &err));
    end(&p);
}

TEST(a_folder_others_can_write_to_is_refused)
{
    place p;
    sonde_error err;
    begin(&p);
    fill(&p);
    static const mode_t modes[] = {0720, 0702, 0777, 01777};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        CHECK_EQ(chmod(p.folder, modes[i]), 0);
        CHECK_EQ(open_only(p.folder, &err), SONDE_IO);
        CHECK_HAS(err.message, p.folder);
        CHECK_HAS(err.message, "other users can write to it");
    }
    CHECK_EQ(chmod(p.folder, 0755), 0); /* they may look */
    CHECK_OK(read_back(&p, 7, &err));
    CHECK_EQ(open_only("/tmp", &err), SONDE_IO);
    end(&p);
}

TEST(what_belongs_to_somebody_else_is_refused)
{
    if (geteuid() != 0)
        SKIP_TEST("only root can give files away");
    place p;
    sonde_error err;
    begin(&p);
    fill(&p);
    CHECK_EQ(chown(p.file, NOBODY, NOBODY), 0);
    CHECK_EQ(read_back(&p, 7, &err), SONDE_IO);
    CHECK_HAS(err.message, "belongs to another user");
    CHECK_EQ(chown(p.file, 0, 0), 0);
    CHECK_EQ(chown(p.folder, NOBODY, NOBODY), 0);
    CHECK_EQ(read_back(&p, 7, &err), SONDE_IO);
    CHECK_HAS(err.message, "belongs to another user");
    end(&p);
}

TEST(links_are_not_followed)
{
    place p;
    sonde_error err;
    char link[128], slash[132], elsewhere[128];
    begin(&p);
    fill(&p);
    snprintf(link, sizeof link, "%s/link", p.path);
    snprintf(slash, sizeof slash, "%s//", link);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", p.path);
    CHECK_EQ(symlink(p.folder, link), 0);
    const char *const names[] = {link, slash};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(open_only(names[i], &err), SONDE_IO);
        CHECK_HAS(err.message, "symbolic link");
    }
    /* A file: neither read through nor written through, but replaced. */
    CHECK_EQ(rename(p.file, elsewhere), 0);
    CHECK_EQ(symlink(elsewhere, p.file), 0);
    CHECK_EQ(read_back(&p, 7, &err), SONDE_IO);
    CHECK_HAS(err.message, "symbolic link");
    CHECK_EQ(truncate(elsewhere, 0), 0);
    fill(&p);
    CHECK_OK(read_back(&p, 7, &err));
    struct stat s;
    CHECK(lstat(p.file, &s) == 0 && S_ISREG(s.st_mode));
    CHECK(stat(elsewhere, &s) == 0 && s.st_size == 0);
    end(&p);
}

TEST(only_regular_files_of_the_expected_size_are_read)
{
    place p;
    sonde_error err;
    begin(&p);
    fill(&p);
    CHECK_EQ(read_back(&p, 6, &err), SONDE_IO);
    CHECK_HAS(err.message, "too large");
    CHECK_EQ(chmod(p.file, 0620), 0);
    CHECK_EQ(read_back(&p, 7, &err), SONDE_IO);
    CHECK_HAS(err.message, "other users can write to it");
    CHECK_EQ(remove(p.file), 0);
    CHECK_EQ(read_back(&p, 7, &err), SONDE_NOT_FOUND);
    CHECK_EQ(mkfifo(p.file, 0600), 0); /* nobody will ever write into it: must not wait */
    CHECK_EQ(read_back(&p, 7, &err), SONDE_IO);
    CHECK_HAS(err.message, "not a regular file");
    fill(&p); /* takes the pipe's place */
    CHECK_OK(read_back(&p, 7, &err));
    CHECK_EQ(remove(p.file), 0);
    CHECK_EQ(mkdir(p.file, 0700), 0);
    CHECK_EQ(read_back(&p, 7, &err), SONDE_IO);
    CHECK_EQ(open_only(p.path, &err), SONDE_OK);
    end(&p);
}

/* Dies of SIGXFSZ when the first bytes are in the file. */
static _Noreturn void die_writing(const place *p)
{
    static char much[1 << 16];
    const struct rlimit small = {4096, 4096};
    sonde_error err;
    sn_cache c;
    signal(SIGXFSZ, SIG_DFL);
    if (sn_cache_open(&c, p->folder, true, &err) == SONDE_OK &&
        setrlimit(RLIMIT_FSIZE, &small) == 0)
        (void)sn_cache_write(&c, "file", much, sizeof much, &err);
    _exit(0);
}

TEST(a_program_that_dies_while_it_writes_leaves_the_old_file_alone)
{
    place p;
    sonde_error err;
    int status = 0, entries = 0;
    begin(&p);
    fill(&p);
    const pid_t pid = fork();
    if (pid == 0)
        die_writing(&p);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_OK(read_back(&p, 7, &err));
    const int probe = open(p.folder, O_TMPFILE | O_WRONLY, 0600);
    DIR *folder = opendir(p.folder);
    while (readdir(folder))
        entries++;
    closedir(folder);
    if (probe >= 0) /* where the file system knows files without a name */
        CHECK_EQ(entries, 3);
    if (probe >= 0)
        close(probe);
    end(&p);
}

static sonde_status read_text(place *p, const char *first, size_t *bytes, sonde_error *err)
{
    sn_cache c;
    sn_file f;
    SN_TRY(sn_cache_open(&c, p->folder, false, err));
    const sonde_status st = sn_cache_read_text(&c, "file", first, 4096, &p->alloc, &f, err);
    if (!st) {
        *bytes = f.bytes;
        sn_file_close(&f);
    }
    sn_cache_close(&c);
    return st;
}

TEST(every_changed_bit_of_a_text_is_seen)
{
    static const char text[] = "kind 1\nsome 1\nlines 2\n";
    place p;
    sonde_error err;
    sn_cache c;
    size_t n = 0;
    uint8_t whole[256];
    begin(&p);
    CHECK_OK(sn_cache_open(&c, p.folder, true, &err));
    CHECK_OK(sn_cache_write_text(&c, "file", text, strlen(text), &p.alloc, &err));
    sn_cache_close(&c);
    CHECK_OK(read_text(&p, "kind 1", &n, &err));
    CHECK_EQ(n, strlen(text));
    CHECK_EQ(read_text(&p, "kind 2", &n, &err), SONDE_NOT_FOUND);
    CHECK_EQ(read_text(&p, "kind", &n, &err), SONDE_NOT_FOUND);
    const int fd = open(p.file, O_RDWR);
    const ssize_t bytes = pread(fd, whole, sizeof whole, 0);
    CHECK(bytes > (ssize_t)strlen(text));
    for (ssize_t bit = 0; bit < bytes * 8; bit++) {
        const uint8_t changed = whole[bit / 8] ^ (uint8_t)(1u << bit % 8);
        CHECK_EQ(pwrite(fd, &changed, 1, bit / 8), 1);
        const sonde_status st = read_text(&p, "kind 1", &n, &err);
        CHECK_MSG(st == (bit / 8 < 7 ? SONDE_NOT_FOUND : SONDE_IO), "bit %zd: %d", bit, st);
        CHECK_EQ(pwrite(fd, &whole[bit / 8], 1, bit / 8), 1);
    }
    for (ssize_t cut = bytes - 1; cut >= 0; cut--) {
        CHECK_EQ(ftruncate(fd, cut), 0);
        CHECK(read_text(&p, "kind 1", &n, &err) != SONDE_OK);
    }
    close(fd);
    end(&p);
}

TEST(a_folder_is_locked_by_one_at_a_time)
{
    place p;
    sonde_error err;
    sn_cache a, b;
    begin(&p);
    CHECK_OK(sn_cache_open(&a, p.folder, true, &err));
    CHECK_OK(sn_cache_open(&b, p.folder, true, &err));
    CHECK(sn_cache_lock(&a, 0));
    CHECK(!sn_cache_lock(&b, 0));
    CHECK(!sn_cache_lock(&b, 20)); /* waits in vain */
    sn_cache_unlock(&a);
    CHECK(sn_cache_lock(&b, 0));
    sn_cache_close(&b); /* as the end of its process does */
    CHECK(sn_cache_lock(&a, 0));
    sn_cache_close(&a);
    end(&p);
}

TEST(a_folder_that_cannot_be_written_to_is_not_locked)
{
    if (geteuid() == 0)
        SKIP_TEST("root can write everywhere");
    place p;
    sonde_error err;
    sn_cache c;
    begin(&p);
    fill(&p);
    CHECK_EQ(chmod(p.folder, 0500), 0);
    CHECK_OK(sn_cache_open(&c, p.folder, false, &err));
    CHECK(!sn_cache_lock(&c, 1000));
    sn_cache_close(&c);
    CHECK_EQ(chmod(p.folder, 0700), 0);
    end(&p);
}

TEST_MAIN()
