/* SPDX-License-Identifier: Apache-2.0 */
/* The file of tuned choices: what was put is found again by another reader on the same kind of
 * machine, and whatever else stands in the file is as good as absent. */
#include "plan/tuning.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/fork_lock.h"
#include "forks.h"
#include "plan/program.h"
#include "temp_folder.h"
#include "test.h"

typedef struct fixture {
    sn_allocator alloc;
    sn_context ctx;
    char dir[TEMP_PATH], path[160];
    char said[256]; /* the last warning */
    int times;      /* warnings so far */
} fixture;

static void hear(void *user, sn_log_level level, const char *line)
{
    (void)level;
    ((fixture *)user)->times++;
    snprintf(((fixture *)user)->said, sizeof((fixture *)user)->said, "%s", line);
}

static void begin(fixture *f)
{
    sonde_error err;
    memset(f, 0, sizeof *f);
    temp_make(f->dir);
    sn_allocator_init_system(&f->alloc);
    f->ctx.alloc = &f->alloc;
    f->ctx.log = (sn_log){SN_LOG_WARN, hear, f};
    CHECK_OK(sn_cpu_detect(&f->ctx.cpu, "baseline", &err));
}

static void end(const fixture *f)
{
    CHECK(temp_remove(f->dir));
}

static sn_tuning *reader(const fixture *f)
{
    sonde_error err;
    sn_tuning *t = NULL;
    return sn_tuning_open(&f->ctx, f->dir, &t, &err) == SONDE_OK ? t : NULL;
}

static sn_choices about(const char *key, unsigned n)
{
    sn_choices c = {.n = n};
    snprintf(c.key, sizeof c.key, "%s", key);
    return c;
}

/* The variant a fresh reader finds, or -1. */
static int found(const fixture *f, const char *key, unsigned n, int threads)
{
    sn_tuning *t = reader(f);
    const sn_choices c = about(key, n);
    unsigned v = 0;
    const int got = !t ? -2 : sn_tuning_find(t, &c, threads, &v) ? (int)v : -1;
    sn_tuning_free(t);
    return got;
}

static void keep(const fixture *f, const char *key, unsigned n, int threads, unsigned variant)
{
    sonde_error err;
    sn_tuning *t = reader(f);
    const sn_choices c = about(key, n);
    CHECK_OK(sn_tuning_put(t, &c, threads, variant, &err));
    sn_tuning_save(t);
    sn_tuning_free(t);
}

static size_t read_all(fixture *f, char *text, size_t bytes)
{
    char command[96];
    snprintf(command, sizeof command, "ls %s/*.tuning", f->dir);
    FILE *ls = popen(command, "r");
    if (!ls || !fgets(f->path, sizeof f->path, ls) || pclose(ls) != 0)
        return 0;
    f->path[strcspn(f->path, "\n")] = 0;
    FILE *file = fopen(f->path, "rb");
    const size_t n = file ? fread(text, 1, bytes - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    return n;
}

static void write_all(const fixture *f, const char *text, size_t n)
{
    FILE *file = fopen(f->path, "wb");
    CHECK(file && fwrite(text, 1, n, file) == n && fclose(file) == 0);
}

/* With the checksum that belongs to it. */
static void write_summed(fixture *f, const char *text, size_t n)
{
    sonde_error err;
    sn_cache c;
    CHECK_OK(sn_cache_open(&c, f->dir, false, &err));
    CHECK_OK(sn_cache_write_text(&c, strrchr(f->path, '/') + 1, text, n, &f->alloc, &err));
    sn_cache_close(&c);
}

TEST(a_choice_is_found_again_by_key_threads_and_count)
{
    fixture f;
    begin(&f);
    CHECK_EQ(found(&f, "gemm 1 2 3", 60, 2), -1);
    keep(&f, "gemm 1 2 3", 60, 2, 7);
    CHECK_EQ(found(&f, "gemm 1 2 3", 60, 2), 7);
    CHECK_EQ(found(&f, "gemm 1 2 3", 60, 1), -1);
    CHECK_EQ(found(&f, "gemm 1 2 4", 60, 2), -1);
    CHECK_EQ(found(&f, "gemm 1 2 3", 59, 2), -1); /* of other variants */
    keep(&f, "gemm 1 2 3", 59, 2, 8);
    CHECK_EQ(found(&f, "gemm 1 2 3", 59, 2), 8);
    end(&f);
}

TEST(saving_keeps_what_others_have_saved_meanwhile)
{
    fixture f;
    begin(&f);
    sonde_error err;
    sn_tuning *a = reader(&f);
    const sn_choices mine = about("mine", 60);
    CHECK_OK(sn_tuning_put(a, &mine, 1, 5, &err));
    keep(&f, "theirs", 60, 1, 6);
    sn_tuning_save(a);
    sn_tuning_free(a);
    CHECK_EQ(found(&f, "mine", 60, 1), 5);
    CHECK_EQ(found(&f, "theirs", 60, 1), 6);
    end(&f);
}

/* A thread that saves and is stopped where it says that it cannot. */
typedef struct saving {
    sn_tuning *tuning;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool stopped, go_on;
} saving;

static void stop_at_warning(void *user, sn_log_level level, const char *line)
{
    saving *s = user;
    (void)level, (void)line;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->moved);
    while (!s->go_on)
        pthread_cond_wait(&s->moved, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void *save_main(void *arg)
{
    sn_tuning_save(((saving *)arg)->tuning);
    return NULL;
}

/* Where it does wait, this never ends. */
TEST(saving_does_not_wait_for_another_thread_that_saves)
{
    fixture f;
    saving s = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    const sn_choices first = about("first", 60), second = about("second", 60);
    sonde_error err;
    pthread_t thread;
    begin(&f);
    CHECK_EQ(rmdir(f.dir), 0);
    f.ctx.log = (sn_log){SN_LOG_WARN, stop_at_warning, &s};
    s.tuning = reader(&f);
    FILE *file = fopen(f.dir, "wb"); /* in the place of the folder */
    CHECK(file && fclose(file) == 0);
    CHECK_OK(sn_tuning_put(s.tuning, &first, 1, 5, &err));
    CHECK_EQ(pthread_create(&thread, NULL, save_main, &s), 0);
    pthread_mutex_lock(&s.lock);
    while (!s.stopped)
        pthread_cond_wait(&s.moved, &s.lock);
    pthread_mutex_unlock(&s.lock);
    CHECK_OK(sn_tuning_put(s.tuning, &second, 1, 6, &err));
    sn_tuning_save(s.tuning);
    CHECK_EQ(unlink(f.dir), 0);
    pthread_mutex_lock(&s.lock);
    s.go_on = true;
    pthread_cond_broadcast(&s.moved);
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    sn_tuning_free(s.tuning);
    CHECK_EQ(found(&f, "first", 60, 1), 5);
    CHECK_EQ(found(&f, "second", 60, 1), 6); /* the thread that was at it wrote it, too */
    end(&f);
}

/* A thread that puts and finds without end. */
typedef struct changing {
    sn_tuning *tuning;
    _Atomic bool over;
} changing;

static void *change_main(void *arg)
{
    changing *c = arg;
    sonde_error err;
    unsigned variant;
    for (unsigned i = 0; !atomic_load(&c->over); i++) {
        char key[32];
        snprintf(key, sizeof key, "step %u", i % 1000);
        const sn_choices about_it = about(key, 60);
        if (sn_tuning_put(c->tuning, &about_it, 1, i % 60, &err) != SONDE_OK ||
            !sn_tuning_find(c->tuning, &about_it, 1, &variant))
            return c;
    }
    return NULL;
}

/* 0: what was put before the fork is there, and more can be put and saved. */
static int use_in_child(const fixture *f, sn_tuning *t)
{
    sonde_error err;
    unsigned variant = 0;
    const sn_choices early = about("early", 60), late = about("late", 60);
    alarm(60);
    if (!sn_tuning_find(t, &early, 1, &variant) || variant != 7 || !sn_tuning_has_room(t) ||
        sn_tuning_put(t, &late, 1, 8, &err) != SONDE_OK)
        return 1;
    sn_tuning_save(t);
    sn_tuning_free(t);
    return found(f, "early", 60, 1) == 7 && found(f, "late", 60, 1) == 8 ? 0 : 2;
}

TEST(a_child_can_use_the_choices_that_a_thread_of_its_parent_was_changing)
{
    enum { FORKS = 50 };
    if (!can_fork())
        SKIP_TEST("no forks beside other threads in this build");
    static fixture f; /* the thread has these, also after a check failed */
    static changing c;
    begin(&f);
    c.tuning = reader(&f);
    const sn_choices early = about("early", 60);
    sonde_error err;
    pthread_t thread;
    CHECK_EQ(pthread_atfork(sn_fork_locks_before, sn_fork_locks_after, sn_fork_locks_after), 0);
    CHECK_OK(sn_tuning_put(c.tuning, &early, 1, 7, &err));
    CHECK_EQ(pthread_create(&thread, NULL, change_main, &c), 0);
    for (int i = 0; i < FORKS; i++) {
        const pid_t pid = fork();
        if (pid == 0)
            _exit(use_in_child(&f, c.tuning));
        int status = -1;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, 0);
    }
    atomic_store(&c.over, true);
    void *failed = NULL;
    pthread_join(thread, &failed);
    CHECK(!failed);
    sn_tuning_free(c.tuning);
    end(&f);
}

TEST(choices_of_another_machine_are_not_found)
{
    fixture f;
    begin(&f);
    keep(&f, "conv", 60, 1, 3);
    const sn_cpu here = f.ctx.cpu;
    snprintf(f.ctx.cpu.model, sizeof f.ctx.cpu.model, "another");
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    f.ctx.cpu = here;
    f.ctx.cpu.l2_bytes *= 2;
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    f.ctx.cpu = here;
    CHECK_EQ(found(&f, "conv", 60, 1), 3);
    /* The name of the file is only a hash: its first line has to say the same. */
    char text[1024];
    const size_t n = read_all(&f, text, sizeof text);
    CHECK(n > 20);
    text[20] ^= 1;
    write_all(&f, text, n);
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    end(&f);
}

TEST(lines_that_say_nothing_are_ignored)
{
    fixture f;
    begin(&f);
    keep(&f, "conv", 60, 1, 3);
    char head[1024], text[2048];
    CHECK(read_all(&f, head, sizeof head) > 0);
    head[strcspn(head, "\n")] = 0;
    static const char *const lines[] = {"",
                                        "t1 conv",
                                        "t1 conv\t",
                                        "t1 conv\t3",
                                        "t1 conv\t3/",
                                        "t1 conv\t/60",
                                        "t1 conv\t-1/60",
                                        "t1 conv\t60/60",
                                        "t1 conv\t3/60x",
                                        "t1 conv\t 3/60",
                                        "t1 conv\t99999999999/99999999999",
                                        "\t3/60",
                                        "t1 conv\t3/61"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const int n = snprintf(text, sizeof text, "%s\n%s\nt1 other\t4/60\n", head, lines[i]);
        write_summed(&f, text, (size_t)n);
        CHECK_MSG(found(&f, "conv", 60, 1) == -1, "'%s'", lines[i]);
        CHECK_MSG(found(&f, "other", 60, 1) == 4, "'%s'", lines[i]);
    }
    const int n = snprintf(text, sizeof text, "%s\nt1 conv\t3/60", head); /* cut short */
    write_summed(&f, text, (size_t)n);
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    end(&f);
}

TEST(random_bytes_are_no_choices)
{
    fixture f;
    begin(&f);
    keep(&f, "conv", 60, 1, 3);
    static char whole[4096], text[4096];
    const size_t n = read_all(&f, whole, sizeof whole);
    CHECK(n > 0);
    for (int i = 0; i < 500; i++) {
        memcpy(text, whole, n);
        for (int k = 0; k < 3; k++)
            text[test_rand() % n] = (char)test_rand();
        write_summed(&f, text, test_rand() % 3 ? n : test_rand() % n);
        const int got = found(&f, "conv", 60, 1);
        CHECK_MSG(got >= -1 && got < 60, "got %d", got);
    }
    end(&f);
}

TEST(a_damaged_file_is_said_and_replaced)
{
    fixture f;
    begin(&f);
    keep(&f, "conv", 60, 1, 3);
    char text[1024];
    const size_t n = read_all(&f, text, sizeof text);
    char *choice = strstr(text, "\t3/60");
    CHECK(choice != NULL);
    choice[1] = '4';
    write_all(&f, text, n);
    CHECK_STR(f.said, "");
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    CHECK_HAS(f.said, "checksum");
    CHECK_EQ(f.times, 1);
    keep(&f, "gemm", 60, 1, 5);
    CHECK_EQ(f.times, 2); /* reading it again before writing says nothing new */
    f.said[0] = 0;
    CHECK_EQ(found(&f, "gemm", 60, 1), 5);
    CHECK_STR(f.said, "");
    end(&f);
}

TEST(only_a_file_of_ones_own_is_read)
{
    fixture f;
    begin(&f);
    keep(&f, "conv", 60, 1, 3);
    char text[1024], elsewhere[192];
    CHECK(read_all(&f, text, sizeof text) > 0);
    struct stat s;
    CHECK(stat(f.path, &s) == 0 && (s.st_mode & 07777) == 0600);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f.dir);
    CHECK(rename(f.path, elsewhere) == 0 && symlink(elsewhere, f.path) == 0);
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    CHECK_HAS(f.said, "symbolic link");
    CHECK(remove(f.path) == 0 && mkfifo(f.path, 0600) == 0);
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    CHECK_HAS(f.said, "not a regular file");
    CHECK_EQ(rename(elsewhere, f.path), 0);
    CHECK_EQ(found(&f, "conv", 60, 1), 3);
    CHECK_EQ(chmod(f.dir, 0777), 0);
    CHECK_EQ(found(&f, "conv", 60, 1), -1);
    CHECK_HAS(f.said, "other users can write to it");
    keep(&f, "gemm", 60, 1, 5);
    CHECK_EQ(chmod(f.dir, 0700), 0);
    CHECK_EQ(found(&f, "gemm", 60, 1), -1); /* nothing was written there */
    end(&f);
}

TEST(a_folder_that_cannot_be_made_only_costs_the_choices)
{
    fixture f;
    begin(&f);
    fixture nowhere = f;
    strcpy(nowhere.dir, "/proc/no/such/folder");
    keep(&nowhere, "conv", 60, 1, 3);
    CHECK_EQ(found(&nowhere, "conv", 60, 1), -1);
    end(&f);
}

/* ------------------------------------------------------------------ measuring */
/* A step of two ways, in whose runs somebody else may take the pool: after it was found free, and
 * before the step asks for it. */
typedef struct hog {
    sn_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool has_it, lets_go;
} hog;

static bool disturbs;
static _Atomic int step_runs;

static void hold(void *arg, size_t task, int worker)
{
    hog *h = arg;
    (void)worker;
    if (task)
        return;
    pthread_mutex_lock(&h->lock);
    h->has_it = true;
    pthread_cond_broadcast(&h->moved);
    while (!h->lets_go)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void *hog_main(void *arg)
{
    sn_pool_run(((hog *)arg)->pool, 2, hold, arg);
    return NULL;
}

static void work(void *arg, size_t task, int worker)
{
    (void)arg, (void)task, (void)worker;
}

static sonde_status run_two_ways(const sn_step *s, sn_frame *f)
{
    hog h = {.pool = f->pool, .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    (void)s;
    step_runs++;
    if (disturbs) {
        if (pthread_create(&thread, NULL, hog_main, &h))
            return SONDE_LIMIT;
        pthread_mutex_lock(&h.lock);
        while (!h.has_it)
            pthread_cond_wait(&h.moved, &h.lock);
        pthread_mutex_unlock(&h.lock);
    }
    sn_pool_run(f->pool, 2, work, NULL);
    if (disturbs) {
        pthread_mutex_lock(&h.lock);
        h.lets_go = true;
        pthread_cond_broadcast(&h.moved);
        pthread_mutex_unlock(&h.lock);
        pthread_join(thread, NULL);
    }
    return SONDE_OK;
}

static sonde_status bind_two_ways(sn_bind *b)
{
    if (b->choices)
        *b->choices = (sn_choices){.n = 2, .cut = b->variant, .key = "two ways"};
    return SONDE_OK;
}

/* Whether the step's choice is known after it was tuned; -1: that failed. */
static int is_remembered(fixture *f, sn_pool *pool)
{
    static const sn_op op = {.name = "TwoWays", .bind = bind_two_ways, .run = run_two_ways};
    const sn_choices two = about("two ways", 2);
    sonde_error err;
    sn_program program = {.ctx = &f->ctx, .tuning = reader(f)};
    sn_step step = {.op = &op};
    sn_step_info info = {.unmeasured = true};
    const sn_binding b = {
        .program = &program, .threads = 2, .steps = &step, .info = &info, .n_steps = 1};
    bool better;
    unsigned variant;
    const sonde_status st = sn_tune_binding(&b, pool, NULL, &better, &err);
    const bool known = sn_tuning_find(program.tuning, &two, 2, &variant);
    sn_tuning_free(program.tuning);
    return st ? -1 : known;
}

TEST(a_step_whose_pool_others_take_while_it_is_measured_is_not_remembered)
{
    fixture f;
    sn_pool *pool = NULL;
    sonde_error err;
    begin(&f);
    CHECK_OK(sn_pool_create(&pool, 2, &f.alloc, &err));
    disturbs = true;
    CHECK_EQ(is_remembered(&f, pool), 0);
    CHECK(step_runs > 0);
    disturbs = false;
    CHECK_EQ(is_remembered(&f, pool), 1);
    sn_pool_free(pool);
    end(&f);
}

TEST_MAIN()
