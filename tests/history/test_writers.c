/* SPDX-License-Identifier: Apache-2.0 */
/* Many writers, and writers that end in the middle of it: what was added is there. With
 * SONDE_FULL=1 as many as somebody may have. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "history/entries.h"
#include "history/sql.h"

static bool is_full(void)
{
    const char *full = getenv("SONDE_FULL");
    return full && strcmp(full, "1") == 0;
}

#define NEED_FORK()                                                                                \
    do {                                                                                           \
        if (getenv("SONDE_EMULATED"))                                                              \
            SKIP_TEST("the emulator cannot fork");                                                 \
    } while (0)

/* The whole database, page by page. */
static void check_whole(const char *path)
{
    sn_sql sql;
    sn_sql_statement s;
    sonde_error err;
    bool row;
    CHECK_OK(sn_sql_open(&sql, path, SN_SQL_READ, 60000, &err));
    CHECK_OK(sn_sql_prepare(&s, &sql, "PRAGMA integrity_check", &err));
    CHECK_OK(sn_sql_step(&s, &row, &err));
    CHECK_STR(sn_sql_text(&s, 0), "ok");
    sn_sql_end(&s);
    CHECK_OK(sn_sql_prepare(&s, &sql,
                            "SELECT count(*) FROM entry e LEFT JOIN large l ON l.entry = e.id"
                            " WHERE l.entry IS NULL",
                            &err));
    CHECK_OK(sn_sql_step(&s, &row, &err));
    CHECK_EQ(sn_sql_int(&s, 0), 0); /* none without its samples */
    sn_sql_end(&s);
    sn_sql_close(&sql);
}

static int write_many(const char *path, int writer, int n)
{
    sonde_error err = {.message = ""};
    sonde_history *h = open_at(path, &err);
    for (int i = 0; h && i < n; i++) {
        char model[32];
        snprintf(model, sizeof model, "writer %d", writer);
        if (!add_entry(h, model, NULL, 1000 + i, i + 1, "", &err)) {
            fprintf(stderr, "writer %d, entry %d: %s\n", writer, i, err.message);
            return 1;
        }
    }
    if (!h)
        fprintf(stderr, "writer %d: %s\n", writer, err.message);
    sonde_history_close(h);
    return h ? 0 : 1;
}

TEST(processes_that_write_at_once_lose_no_entry)
{
    NEED_SQLITE();
    NEED_FORK();
    enum { WRITERS = 8 };
    const int each = is_full() ? 1000 : 40;
    const char *path = in_dir("processes.db"); /* which they also make, all at once */
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0)
            _exit(write_many(path, i, each));
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQ(status, 0);
    }
    sonde_error err;
    sonde_history *h = open_at(path, &err);
    CHECK_MSG(h, "%s", err.message);
    for (int i = 0; i < WRITERS; i++) {
        sonde_history_filter f = SONDE_INIT(sonde_history_filter);
        char model[32];
        snprintf(model, sizeof model, "writer %d", i);
        f.model = model;
        CHECK_EQ(count_entries(h, &f), each);
    }
    sonde_history_close(h);
    check_whole(path);
}

/* ------------------------------------------------------------------ the end in the middle */

/* Adds entries until it is killed, and tells of each that is in. */
static void write_until_killed(const char *path, int told)
{
    sonde_error err;
    sonde_history *h = open_at(path, &err);
    if (!h)
        _exit(1);
    for (int64_t i = 1;; i++) {
        const int64_t id = add_entry(h, "m", "{\"n\":1}", 1000, i, "", &err);
        if (!id || write(told, &id, sizeof id) != sizeof id)
            _exit(1);
    }
}

TEST(a_writer_that_is_killed_loses_nothing_that_was_added)
{
    NEED_SQLITE();
    NEED_FORK();
    const char *path = in_dir("killed.db");
    size_t told = 0;
    int64_t last = 0;
    for (int kill_number = 0; kill_number < 50; kill_number++) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            close(ends[0]);
            write_until_killed(path, ends[1]);
        }
        close(ends[1]);
        /* After some entries, and anywhere in the next ones; or before the first. */
        int64_t id;
        for (uint64_t n = test_rand() % 4; n; n--)
            if (read(ends[0], &id, sizeof id) == sizeof id) {
                last = id;
                told++;
            }
        for (uint64_t n = test_rand() % 2000; n; n--)
            sched_yield();
        CHECK(kill(child, SIGKILL) == 0);
        while (read(ends[0], &id, sizeof id) == sizeof id) {
            last = id;
            told++;
        }
        close(ends[0]);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        sonde_error err;
        sonde_history *h = open_at(path, &err);
        CHECK_MSG(h, "kill %d: %s", kill_number, err.message);
        const size_t n = count_entries(h, NULL);
        CHECK_MSG(n != SIZE_MAX && n >= told && n <= told + (size_t)kill_number + 1,
                  "kill %d: %zu entries, %zu were added", kill_number, n, told);
        sonde_history_record *r = NULL;
        if (last)
            CHECK_OK(sonde_history_get(h, last, &r, &err));
        sonde_history_record_release(r);
        sonde_history_close(h);
        check_whole(path);
    }
}

/* ------------------------------------------------------------------ threads and forks */

typedef struct shared {
    sonde_history *history;
    _Atomic int failures;
} shared;

static void *use(void *arg)
{
    shared *s = arg;
    sonde_error err;
    for (int i = 0; i < 20; i++) {
        s->failures += add_entry(s->history, "thread", NULL, 1000, i + 1, "", &err) == 0;
        s->failures += count_entries(s->history, NULL) == SIZE_MAX;
    }
    return NULL;
}

TEST(threads_may_share_a_history)
{
    NEED_SQLITE();
    sonde_error err;
    shared s = {.history = open_at(in_dir("threads.db"), &err)};
    pthread_t threads[4];
    CHECK_MSG(s.history, "%s", err.message);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use, &s) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(s.failures, 0);
    CHECK_EQ(count_entries(s.history, NULL), 80);
    sonde_history_close(s.history);
}

/* In a child: 0 if it may add to the history at `path` (`own`), or is refused as forked. */
static int add_in_child(const char *path, bool may)
{
    sonde_error err = {.message = ""};
    sonde_history *h = open_at(path, &err);
    const bool refused = err.status == SONDE_INVALID_ARGUMENT && strstr(err.message, "forked");
    const bool added = h && add_entry(h, "child", NULL, 1, 2, "", &err);
    sonde_history_close(h);
    return (may ? added : refused) ? 0 : 1;
}

/* SQLite's locks do not survive a fork: what both write would be lost. */
TEST(a_forked_child_does_not_write_what_was_open_in_its_parent)
{
    NEED_SQLITE();
    NEED_FORK();
    sonde_error err = {.message = ""};
    const char *path = in_dir("forked.db");
    sonde_history *h = open_at(path, &err);
    CHECK_MSG(h && add_entry(h, "parent", NULL, 1, 1, "", &err), "%s", err.message);
    int status = 1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const bool refused = !add_entry(h, "child", NULL, 1, 1, "", &err) &&
                             err.status == SONDE_INVALID_ARGUMENT && strstr(err.message, "forked");
        sonde_history_close(h);
        _exit(refused ? add_in_child(path, false) : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(add_entry(h, "parent", NULL, 1, 3, "", &err));
    sonde_history_close(h);
    child = fork(); /* now it is closed */
    CHECK(child >= 0);
    if (child == 0)
        _exit(add_in_child(path, true));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    h = open_at(path, &err);
    CHECK_EQ(count_entries(h, NULL), 3);
    sonde_history_close(h);
    check_whole(path);
}

TEST(a_list_does_not_see_what_is_added_or_removed_behind_it)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("moving.db"), &err),
                  *other = open_at(in_dir("moving.db"), &err);
    sonde_history_cursor *c = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    CHECK_MSG(h && other, "%s", err.message);
    for (int i = 0; i < 600; i++)
        CHECK(add_entry(h, "m", NULL, 1, 1000 + i / 3, "", &err)); /* some of one time */
    CHECK_OK(sonde_history_list(h, NULL, &c, &err));
    size_t n = 0;
    int64_t last = INT64_MAX;
    for (; sonde_history_next(c, &e, &err) == SONDE_OK; n++) {
        CHECK(e.id < last);
        last = e.id;
        if (n == 100)
            for (int i = 0; i < 10; i++)
                CHECK(add_entry(other, "m", NULL, 1, 900 + i * 100, "", &err));
        if (n == 300)
            CHECK_OK(sonde_history_remove(other, 5, &err));
    }
    CHECK_EQ(n, 599);
    sonde_history_cursor_release(c);
    sonde_history_close(h);
    sonde_history_close(other);
}

TEST_MAIN()
