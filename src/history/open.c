/* SPDX-License-Identifier: Apache-2.0 */
/* Opening. What is not ours is recognised before SQLite may write anything, even beside it: the
 * number of the application is in the head of the file from the first commit on, which is made
 * before the database goes over to a log beside it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history/history.h"

int sonde_history_available(void)
{
    return sn_sql_available();
}

sonde_status sn_history_enter(sonde_history *h, sonde_error *err)
{
    if (h->owner != getpid())
        return sn_fail(
            err, SONDE_INVALID_ARGUMENT,
            "the history '%s' was opened before this process was forked; close it before "
            "the fork and open it in both",
            h->path);
    pthread_mutex_lock(&h->lock);
    return SONDE_OK;
}

void sn_history_leave(sonde_history *h)
{
    pthread_mutex_unlock(&h->lock);
}

/* Numbers in the head of every database, which the format fixes. */
enum { HEAD_VERSION = 60, HEAD_APPLICATION = 68, HEAD_BYTES = 100 };

static int64_t number_at(const unsigned char *head, int at)
{
    return (int64_t)head[at] << 24 | head[at + 1] << 16 | head[at + 2] << 8 | head[at + 3];
}

/* Whose it is. SQLite looks at more than the head, and while a log is copied into the file, or
 * after a crash amid that, the file alone is no sound database. */
static sonde_status read_head(const char *path, int64_t *application, int64_t *version,
                              sonde_error *err)
{
    static const char magic[16] = "SQLite format 3";
    unsigned char head[HEAD_BYTES];
    bool whole = false;
    *application = *version = 0;
    SN_TRY(sn_sql_head(path, head, sizeof head, &whole, err));
    if (!whole || memcmp(head, magic, sizeof magic) != 0)
        return sn_fail(err, SONDE_INVALID_FORMAT,
                       "'%s' is not a history of sonde: it is no SQLite database", path);
    *application = number_at(head, HEAD_APPLICATION);
    *version = number_at(head, HEAD_VERSION);
    return SONDE_OK;
}

/* *version is -1 for a file that is not there or empty. */
static sonde_status look(const sonde_history *h, int64_t *version, sonde_error *err)
{
    struct stat s;
    *version = -1;
    if (stat(h->path, &s) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return sn_fail(err, SONDE_IO, "cannot open the history '%s': %s", h->path,
                           strerror(errno));
        return h->read_only ? sn_fail(err, SONDE_NOT_FOUND,
                                      "there is no history yet: '%s' does not exist", h->path)
                            : SONDE_OK;
    }
    if (!S_ISREG(s.st_mode))
        return sn_fail(err, SONDE_INVALID_FORMAT, "'%s' is not a history of sonde: it is %s",
                       h->path, S_ISDIR(s.st_mode) ? "a folder" : "no regular file");
    if (s.st_size == 0)
        return h->read_only ? sn_fail(err, SONDE_NOT_FOUND,
                                      "there is no history yet: '%s' is empty", h->path)
                            : SONDE_OK;
    int64_t application;
    SN_TRY(read_head(h->path, &application, version, err));
    if (application != SN_HISTORY_APPLICATION)
        return sn_fail(err, SONDE_INVALID_FORMAT,
                       "'%s' is not a history of sonde: it is a database of something else",
                       h->path);
    return SONDE_OK;
}

/* A writer that was killed amid its first transaction, or where there is no log, leaves a journal
 * to be undone, which a reader may not do. */
static void undo_journal(sonde_history *h, int wait_ms)
{
    char journal[SN_PATH_BYTES + 16];
    struct stat s;
    sn_sql sql;
    sonde_error no_matter;
    int64_t tables;
    snprintf(journal, sizeof journal, "%s-journal", h->path);
    if (stat(journal, &s) != 0 || s.st_size == 0 ||
        sn_sql_open(&sql, h->path, SN_SQL_CREATE, wait_ms, &no_matter) != SONDE_OK)
        return;
    (void)sn_sql_number(&sql, "SELECT count(*) FROM sqlite_schema", &tables, &no_matter);
    sn_sql_close(&sql);
}

/* Readers leave marks beside the file. Where that is not allowed they can do without, as long as
 * nobody else writes: then no log lies there. */
static sonde_status open_to_read(sonde_history *h, int wait_ms, sonde_error *err)
{
    int64_t tables = 0;
    sonde_error first = {.status = SONDE_OK};
    sonde_status st = sn_sql_open(&h->sql, h->path, SN_SQL_READ, wait_ms, &first);
    if (st == SONDE_OK)
        st = sn_sql_number(&h->sql, "SELECT count(*) FROM sqlite_schema", &tables, &first);
    char log[SN_PATH_BYTES + 8];
    struct stat s;
    snprintf(log, sizeof log, "%s-wal", h->path);
    if (st == SONDE_IO && stat(log, &s) != 0) {
        sn_sql_close(&h->sql);
        st = sn_sql_open(&h->sql, h->path, SN_SQL_UNCHANGED, wait_ms, &first);
        if (st == SONDE_OK)
            st = sn_sql_number(&h->sql, "SELECT count(*) FROM sqlite_schema", &tables, &first);
    }
    return st ? sn_fail(err, st, "%s", first.message) : SONDE_OK;
}

static sonde_status newer(const sonde_history *h, int64_t version, sonde_error *err)
{
    return sn_fail(
        err, SONDE_UNSUPPORTED,
        "the history '%s' was made by a newer version of sonde (its schema is %lld, this "
        "version knows %d); use that version",
        h->path, (long long)version, SN_HISTORY_SCHEMA);
}

static sonde_status open_to_write(sonde_history *h, int wait_ms, sonde_error *err)
{
    SN_TRY(sn_sql_open(&h->sql, h->path, SN_SQL_CREATE, wait_ms, err));
    /* A commit is on the disk when it returns. */
    SN_TRY(sn_sql_run(&h->sql, "PRAGMA synchronous = FULL", err));
    SN_TRY(sn_history_migrate(&h->sql, &h->context->alloc, err));
    /* Readers and writers do not wait for each other then. It is a wish: file systems without
     * shared memory, and others that have it open just now, leave it as it is. */
    sonde_error no_matter;
    int64_t unused;
    (void)sn_sql_number(&h->sql, "PRAGMA journal_mode = WAL", &unused, &no_matter);
    return SONDE_OK;
}

static sonde_status open_database(sonde_history *h, int wait_ms, sonde_error *err)
{
    int64_t version;
    SN_TRY(look(h, &version, err));
    if (version > SN_HISTORY_SCHEMA)
        return newer(h, version, err);
    if (!h->read_only)
        return open_to_write(h, wait_ms, err);
    undo_journal(h, wait_ms);
    SN_TRY(look(h, &version, err)); /* it may be empty now */
    SN_TRY(open_to_read(h, wait_ms, err));
    /* The head may be older than the log. */
    SN_TRY(sn_sql_number(&h->sql, "PRAGMA user_version", &version, err));
    if (version > SN_HISTORY_SCHEMA)
        return newer(h, version, err);
    if (version < SN_HISTORY_SCHEMA)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "the history '%s' was made by an older version of sonde and has to be "
                       "brought up to date first; open it where it can be written",
                       h->path);
    return SONDE_OK;
}

static void free_history(sonde_history *h)
{
    sonde_context *c = h->context;
    sn_history_closed(h->file);
    sn_free(&c->alloc, h->path, h->path_bytes);
    pthread_mutex_destroy(&h->lock);
    sn_free(&c->alloc, h, sizeof *h);
    sonde_context_release(c);
}

sonde_status sonde_history_open(sonde_context *context, const char *path,
                                const sonde_history_options *options, sonde_history **history,
                                sonde_error *err)
{
    SN_REQUIRE(history, err);
    *history = NULL;
    SN_TRY(sn_sql_need(err));
    sonde_history_options o;
    SN_OPTIONS(o, options, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_history *h = sn_alloc_zero(&c->alloc, sizeof *h);
    if (!h || pthread_mutex_init(&h->lock, NULL) != 0) {
        sn_free(&c->alloc, h, sizeof *h);
        sonde_context_release(c);
        return sn_fail_memory(err, sizeof *h);
    }
    h->context = c;
    h->owner = getpid();
    h->read_only = o.read_only != 0;
    h->said = path && *path;
    sonde_status st =
        sn_history_place(path, !h->read_only, &c->alloc, &h->path, &h->path_bytes, err);
    if (st == SONDE_OK)
        st = sn_history_may_open(h->path, err);
    if (st == SONDE_OK)
        st = open_database(h, o.wait_ms > 0 ? o.wait_ms : 60000, err);
    if (st == SONDE_OK)
        st = sn_history_opened(h->path, &h->file, err);
    if (st == SONDE_OK)
        st = sn_sql_add_test(&h->sql, "options_say", sn_history_options_say, &c->alloc, err);
    if (st == SONDE_OK) {
        *history = h;
        return SONDE_OK;
    }
    sn_sql_close(&h->sql);
    free_history(h);
    return st;
}

void sonde_history_close(sonde_history *history)
{
    if (!history)
        return;
    if (history->owner == getpid()) /* in a forked child the connection is the parent's */
        sn_sql_close(&history->sql);
    free_history(history);
}

const char *sn_history_said(const sonde_history *h)
{
    static const char before[] = "./"; /* sn_history_place puts it there */
    return !h->said ? "" : h->path[0] == '/' ? h->path : h->path + sizeof before - 1;
}

const char *sonde_history_path(const sonde_history *history)
{
    return history ? history->path : "";
}
