/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights on disk, through the public API: they give the numbers packing gives, whatever
 * somebody did to the files. */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "forks.h"
#include "temp_folder.h"
#include "test.h"

enum { MAX_OUT = 4096 };

typedef struct folder {
    char path[TEMP_PATH], model[96], cache[96];
} folder;

static char said[512]; /* the last warning */

static void hear(void *user, int level, const char *line)
{
    (void)user, (void)level;
    snprintf(said, sizeof said, "%s", line);
}

static void save_model(const folder *f, uint64_t seed)
{
    sonde_error err;
    sonde_model *m = NULL;
    CHECK_OK(sonde_zoo_build(NULL, "tiny_cnn", seed, &m, &err));
    CHECK_OK(sonde_model_save(m, f->model, &err));
    sonde_model_release(m);
}

static void open_folder(folder *f)
{
    temp_make(f->path);
    snprintf(f->model, sizeof f->model, "%s/model.onnx", f->path);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->path);
    save_model(f, 1);
}

static void close_folder(const folder *f)
{
    CHECK(temp_remove(f->path));
}

/* What the model computes of ones; returns how many numbers. 0: it failed. */
static size_t run(const folder *f, const char *cache, int no_mmap, float *out)
{
    sonde_error err;
    sonde_context *c = NULL;
    sonde_model *m = NULL;
    sonde_session *s = NULL;
    sonde_value *x = NULL, *y = NULL;
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    co.threads = 2;
    co.log = hear;
    co.log_level = 2;
    said[0] = 0;
    sonde_model_options mo = SONDE_INIT(sonde_model_options);
    mo.no_mmap = no_mmap;
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.weights_cache = cache;
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    size_t n = 0;
    if (sonde_context_create(&co, &c, &err) == SONDE_OK &&
        sonde_model_load(c, f->model, &mo, &m, &err) == SONDE_OK &&
        sonde_session_create(m, &so, &s, &err) == SONDE_OK &&
        sonde_session_input_info(s, 0, &info, &err) == SONDE_OK) {
        int64_t dims[8] = {0}, count = 1;
        for (int i = 0; i < info.rank; i++) {
            dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
            count *= dims[i];
        }
        if (!sonde_tensor_create(c, SONDE_DTYPE_F32, dims, (size_t)info.rank, NULL,
                                 (size_t)count * 4, &x, &err)) {
            for (int64_t i = 0; i < count; i++)
                ((float *)sonde_tensor_data(x))[i] = (float)(i % 7) / 7;
            if (!sonde_session_run(s, NULL, NULL, &x, 1, NULL, &y, 1, &err))
                n = sonde_tensor_bytes(y) / sizeof(float);
        }
    }
    if (n > 0 && n <= MAX_OUT)
        memcpy(out, sonde_tensor_data(y), n * sizeof(float));
    sonde_value_release(x);
    sonde_value_release(y);
    sonde_session_release(s);
    sonde_model_release(m);
    sonde_context_release(c);
    return n;
}

/* Files in the cache; `path`, if any, receives the name of the last. */
static int cached(const folder *f, char *path, size_t bytes)
{
    int n = 0;
    DIR *d = opendir(f->cache);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (path)
            snprintf(path, bytes, "%s/%s", f->cache, e->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

TEST(cached_weights_give_the_same_numbers)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT], c[MAX_OUT];
    const size_t n = run(&f, NULL, 0, a);
    CHECK(n > 0 && n <= MAX_OUT);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_EQ(cached(&f, NULL, 0), 1);
    CHECK_EQ(run(&f, f.cache, 0, c), n);
    CHECK_EQ(cached(&f, NULL, 0), 1);
    CHECK(memcmp(a, b, n * sizeof *a) == 0 && memcmp(a, c, n * sizeof *a) == 0);
    CHECK_EQ(run(&f, f.cache, 1, c), n);
    CHECK(memcmp(a, c, n * sizeof *a) == 0);
    close_folder(&f);
}

static ino_t inode(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? s.st_ino : 0;
}

TEST(a_file_that_fits_is_used_and_stays)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT];
    char path[512];
    const size_t n = run(&f, f.cache, 0, a);
    CHECK_EQ(cached(&f, path, sizeof path), 1);
    struct stat s;
    CHECK(stat(path, &s) == 0 && (s.st_mode & 07777) == 0600);
    CHECK(stat(f.cache, &s) == 0 && (s.st_mode & 07777) == 0700);
    const ino_t first = inode(path);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_STR(said, "");
    CHECK(first && inode(path) == first);
    close_folder(&f);
}

/* The file of the cache that this process has mapped; 0: none. */
static ino_t mapped(const folder *f)
{
    ino_t found = 0;
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long node;
        if (strstr(line, f->cache) && sscanf(line, "%*s %*s %*s %*s %lu", &node) == 1)
            found = (ino_t)node;
    }
    if (maps)
        (void)fclose(maps);
    return found;
}

/* The file that a new session on the model has mapped. */
static ino_t mapped_by_a_session(const folder *f)
{
    sonde_error err;
    sonde_context *c = NULL;
    sonde_model *m = NULL;
    sonde_session *s = NULL;
    ino_t found = 0;
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    co.threads = 1;
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.weights_cache = f->cache;
    if (sonde_context_create(&co, &c, &err) == SONDE_OK &&
        sonde_model_load(c, f->model, NULL, &m, &err) == SONDE_OK &&
        sonde_session_create(m, &so, &s, &err) == SONDE_OK)
        found = mapped(f);
    sonde_session_release(s);
    sonde_model_release(m);
    sonde_context_release(c);
    return found;
}

TEST(the_session_that_packed_the_weights_maps_them_like_the_next_one)
{
    folder f;
    open_folder(&f);
    char path[512];
    const ino_t first = mapped_by_a_session(&f);
    CHECK_EQ(cached(&f, path, sizeof path), 1);
    CHECK(first && first == inode(path));
    CHECK(mapped_by_a_session(&f) == first);
    CHECK(mapped(&f) == 0);
    close_folder(&f);
}

TEST(processes_that_start_at_once_share_one_file)
{
    enum { PROCESSES = 6 };
    if (!can_fork())
        SKIP_TEST("children of this build may not use malloc");
    folder f;
    open_folder(&f);
    int start[2], answers[2];
    CHECK(pipe(start) == 0 && pipe(answers) == 0);
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        CHECK(child[i] >= 0);
        if (child[i] == 0) {
            char byte;
            close(start[1]);
            (void)!read(start[0], &byte, 1); /* until the parent closes it */
            const ino_t found = mapped_by_a_session(&f);
            _exit(write(answers[1], &found, sizeof found) == (ssize_t)sizeof found ? 0 : 1);
        }
    }
    close(start[0]);
    close(start[1]);
    close(answers[1]);
    ino_t found[PROCESSES] = {0};
    for (int i = 0; i < PROCESSES; i++)
        CHECK_EQ(read(answers[0], &found[i], sizeof found[i]), (ssize_t)sizeof found[i]);
    close(answers[0]);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0);
    }
    char path[512];
    CHECK_EQ(cached(&f, path, sizeof path), 1);
    for (int i = 0; i < PROCESSES; i++)
        CHECK(found[i] && found[i] == inode(path));
    close_folder(&f);
}

/* Changes `bytes` bytes at `at`. */
static void poison(const char *path, long at, int bytes)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file && fseek(file, at, SEEK_SET) == 0);
    for (int i = 0; i < bytes; i++)
        fputc(0x7f, file); /* as floats: not a number */
    CHECK_EQ(fclose(file), 0);
}

TEST(poisoned_weights_are_packed_again)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT];
    char path[512];
    const size_t n = run(&f, f.cache, 0, a);
    CHECK_EQ(cached(&f, path, sizeof path), 1);
    struct stat whole;
    CHECK_EQ(stat(path, &whole), 0);
    const long size = (long)whole.st_size;
    /* Head, first and last weights, something in between, checksums. */
    const long places[] = {0, 8, 4096, 4096 + (size - 4096) / 2, size - 8 - 64, size - 8};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        poison(path, places[i], 4);
        const ino_t old = inode(path);
        CHECK_EQ(run(&f, f.cache, 0, b), n);
        CHECK_MSG(memcmp(a, b, n * sizeof *a) == 0, "poisoned at %ld", places[i]);
        CHECK_HAS(said, "packed again");
        CHECK_HAS(said, path);
        CHECK(inode(path) != old);
        CHECK_EQ(run(&f, f.cache, 0, b), n); /* it was replaced */
        CHECK_STR(said, "");
    }
    close_folder(&f);
}

TEST(links_and_pipes_are_replaced_and_not_opened)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT];
    char path[512], elsewhere[128];
    struct stat s;
    const size_t n = run(&f, f.cache, 0, a);
    CHECK_EQ(cached(&f, path, sizeof path), 1);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f.path);
    CHECK(rename(path, elsewhere) == 0 && symlink(elsewhere, path) == 0);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_HAS(said, "symbolic link");
    CHECK(lstat(path, &s) == 0 && S_ISREG(s.st_mode));
    CHECK(remove(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_HAS(said, "not a regular file");
    CHECK(lstat(path, &s) == 0 && S_ISREG(s.st_mode));
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_STR(said, "");
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    close_folder(&f);
}

TEST(a_folder_that_others_can_write_to_is_not_used)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT];
    char link[96];
    const size_t n = run(&f, NULL, 0, a);
    CHECK(mkdir(f.cache, 0700) == 0 && chmod(f.cache, 01777) == 0);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_HAS(said, "other users can write to it");
    CHECK_EQ(cached(&f, NULL, 0), 0);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    CHECK_EQ(chmod(f.cache, 0700), 0);
    snprintf(link, sizeof link, "%s/link", f.path);
    CHECK_EQ(symlink(f.cache, link), 0);
    CHECK_EQ(run(&f, link, 0, b), n);
    CHECK_HAS(said, "symbolic link");
    CHECK_EQ(cached(&f, NULL, 0), 0);
    close_folder(&f);
}

TEST(damaged_files_are_replaced)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT];
    char path[512];
    const size_t n = run(&f, f.cache, 0, a);
    CHECK_EQ(cached(&f, path, sizeof path), 1);
    struct stat whole, now;
    CHECK_EQ(stat(path, &whole), 0);
    const off_t sizes[] = {0, 1, 39, 4096, whole.st_size - 1, whole.st_size + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK_EQ(truncate(path, sizes[i]), 0);
        CHECK_EQ(run(&f, f.cache, 0, b), n);
        CHECK_MSG(memcmp(a, b, n * sizeof *a) == 0, "cut to %lld", (long long)sizes[i]);
        CHECK(stat(path, &now) == 0 && now.st_size == whole.st_size);
    }
    FILE *file = fopen(path, "r+b");
    CHECK(file && fputc('X', file) == 'X' && fclose(file) == 0);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    close_folder(&f);
}

TEST(a_changed_model_has_its_own_weights)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT], c[MAX_OUT];
    const size_t n = run(&f, f.cache, 0, a);
    save_model(&f, 2);
    CHECK_EQ(run(&f, f.cache, 0, b), n);
    CHECK_EQ(run(&f, NULL, 0, c), n);
    CHECK(memcmp(a, b, n * sizeof *a) != 0);
    CHECK(memcmp(b, c, n * sizeof *b) == 0);
    close_folder(&f);
}

TEST(a_folder_that_cannot_be_written_to_is_no_error)
{
    folder f;
    open_folder(&f);
    static float a[MAX_OUT], b[MAX_OUT];
    const size_t n = run(&f, NULL, 0, a);
    CHECK_EQ(run(&f, "/proc/no/such/folder", 0, b), n);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    CHECK_EQ(run(&f, f.model, 0, b), n); /* a file is no folder */
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    close_folder(&f);
}

TEST_MAIN()
