/* SPDX-License-Identifier: Apache-2.0 */
/* Databases come from anywhere, so schemas are not trusted: no triggers, no views, no functions of
 * the schema's. Waiting for other writers is done here and not by SQLite's own timeout, whose steps
 * grow to a tenth of a second: with many writers that wakes each of them too rarely. */
#include "history/sql.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#ifdef SONDE_HAVE_SQLITE
#include <sqlite3.h>

enum { LONGEST_TEXT = 64 << 20 }; /* of a value in the database */

bool sn_sql_available(void)
{
    return true;
}

sonde_status sn_sql_need(sonde_error *err)
{
    (void)err;
    return SONDE_OK;
}

static sonde_status fail_read_only(const sn_sql *sql, sonde_error *err)
{
    return sn_fail(err, SONDE_IO,
                   "cannot write the history '%s': the file, its folder or its disk is read-only",
                   sql->path);
}

/* SQLite does not tell why a file cannot be made, but for a "no such file" that is about the file
 * itself. */
static sonde_status fail_to_open(const sn_sql *sql, int system, const char *why, sonde_error *err)
{
    struct stat s;
    char folder[SN_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", sql->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    const bool missing = stat(sql->path, &s) != 0 && errno == ENOENT;
    if (missing && slash && stat(folder, &s) != 0)
        return sn_fail(err, SONDE_IO, "cannot create the history '%s': the folder '%s' %s",
                       sql->path, folder,
                       errno == ENOENT ? "does not exist" : "cannot be looked into");
    if (missing && slash && !S_ISDIR(s.st_mode))
        return sn_fail(err, SONDE_IO, "cannot create the history '%s': '%s' is no folder",
                       sql->path, folder);
    if (missing &&
        (!system || system == ENOENT || system == EACCES || system == EPERM || system == EROFS))
        return sn_fail(err, SONDE_IO,
                       "cannot create the history '%s': the folder '%s' cannot be written",
                       sql->path, slash ? folder : ".");
    return sn_fail(err, SONDE_IO, "cannot open the history '%s': %s", sql->path, why);
}

static sonde_status fail_with(const sn_sql *sql, int rc, sonde_error *err)
{
    const int cause = errno, told = sql->db ? sqlite3_system_errno(sql->db) : 0;
    const int system = told ? told : cause; /* some failures are not told */
    const char *why = system ? strerror(system) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return sn_fail_memory(err, 0);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return sn_fail(err, SONDE_IO,
                       "the history '%s' is in use: other processes have written to it for %d "
                       "seconds",
                       sql->path, sql->wait_ms / 1000);
    case SQLITE_FULL:
        return sn_fail(err, SONDE_IO, "cannot write the history '%s': the disk is full", sql->path);
    case SQLITE_READONLY:
        return fail_read_only(sql, err);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        /* On a disk that is read-only it is the log beside the file that cannot be made. */
        if (access(sql->path, F_OK) == 0 && access(sql->path, W_OK) != 0)
            return fail_read_only(sql, err);
        return fail_to_open(sql, system, why, err);
    case SQLITE_IOERR:
        return sn_fail(err, SONDE_IO, "cannot read or write the history '%s': %s", sql->path, why);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* our statements fit our schema: another one stands there */
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT:
    case SQLITE_SCHEMA:
        return sn_fail(err, SONDE_INVALID_FORMAT,
                       "the history '%s' is damaged (%s): 'sqlite3 FILE .recover' may save what is "
                       "in it; move it away to begin a new one",
                       sql->path, sql->db ? sqlite3_errmsg(sql->db) : sqlite3_errstr(rc));
    case SQLITE_TOOBIG:
        return sn_fail(err, SONDE_LIMIT, "a value is too large for the history '%s'", sql->path);
    default:
        return sn_fail(err, SONDE_INTERNAL, "the history '%s' failed: %s", sql->path,
                       sqlite3_errstr(rc));
    }
}

/* ------------------------------------------------------------------ opening */

/* SQLite asks again and again; the first time of a row of calls begins the wait. */
static int wait_for_others(void *user, int calls)
{
    sn_sql *sql = user;
    const uint64_t now = sn_now_ns();
    if (calls == 0)
        sql->waits_since_ns = now;
    if (now - sql->waits_since_ns >= (uint64_t)sql->wait_ms * 1000000)
        return 0;
    /* 1 to 16 ms, another number each time and in each process */
    const uint64_t ms = 1 + (now >> 10) % (calls < 15 ? (uint64_t)calls + 1 : 16);
    const struct timespec pause = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&pause, NULL);
    return 1;
}

/* The path as a URI, in which some characters mean something; false: too long. */
static bool uri_of(const char *path, char *uri, size_t bytes)
{
    static const char head[] = "file:", tail[] = "?immutable=1", digits[] = "0123456789ABCDEF";
    size_t n = sizeof head - 1;
    memcpy(uri, head, n);
    for (const char *p = path; *p; p++) {
        if (n + 4 + sizeof tail > bytes)
            return false;
        const unsigned char c = (unsigned char)*p;
        if (c == '?' || c == '#' || c == '%') {
            uri[n++] = '%';
            uri[n++] = digits[c >> 4];
            uri[n++] = digits[c & 15];
        } else {
            uri[n++] = *p;
        }
    }
    memcpy(uri + n, tail, sizeof tail);
    return true;
}

sonde_status sn_sql_open(sn_sql *sql, const char *path, sn_sql_mode mode, int wait_ms,
                         sonde_error *err)
{
    static const int flags[] = {
        [SN_SQL_CREATE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
        [SN_SQL_READ] = SQLITE_OPEN_READWRITE, /* a reader, too, marks what it reads beside it */
        [SN_SQL_UNCHANGED] = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI};
    char uri[4096 * 3];
    sqlite3 *db = NULL;
    *sql = (sn_sql){.path = path, .wait_ms = wait_ms};
    if (mode == SN_SQL_UNCHANGED && !uri_of(path, uri, sizeof uri))
        return sn_fail(err, SONDE_IO, "cannot open the history: its path is too long");
    const int rc =
        sqlite3_open_v2(mode == SN_SQL_UNCHANGED ? uri : path, &db,
                        flags[mode] | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
    sql->db = db;
    if (rc != SQLITE_OK) {
        const sonde_status st = fail_with(sql, rc, err);
        sn_sql_close(sql);
        return st;
    }
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_handler(db, wait_for_others, sql);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST_TEXT);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, SN_SQL_LONGEST_PATTERN + 10);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    const sonde_status st = sn_sql_run(sql, "PRAGMA cell_size_check = ON", err);
    if (st)
        sn_sql_close(sql);
    return st;
}

void sn_sql_close(sn_sql *sql)
{
    sqlite3_close_v2(sql->db);
    sql->db = NULL;
}

sonde_status sn_sql_head(const char *path, unsigned char *head, size_t bytes, bool *whole,
                         sonde_error *err)
{
    sn_sql sql;
    sqlite3_file *file = NULL;
    SN_TRY(sn_sql_open(&sql, path, SN_SQL_UNCHANGED, 0, err));
    sonde_status st = SONDE_OK;
    memset(head, 0, bytes);
    int rc = sqlite3_file_control(sql.db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (rc == SQLITE_OK && file && file->pMethods)
        rc = file->pMethods->xRead(file, head, (int)bytes, 0);
    *whole = rc == SQLITE_OK;
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        st = fail_with(&sql, rc, err);
    sn_sql_close(&sql);
    return st;
}

typedef struct kept_test {
    sn_sql_test test;
    void *user;
} kept_test;

static void call_test(sqlite3_context *c, int n, sqlite3_value **values)
{
    const kept_test *kept = sqlite3_user_data(c);
    (void)n;
    const unsigned char *a = sqlite3_value_text(values[0]), *b = sqlite3_value_text(values[1]);
    const int found = a && b ? kept->test(kept->user, (const char *)a, (const char *)b) : 0;
    if (found < 0)
        sqlite3_result_error_nomem(c);
    else
        sqlite3_result_int(c, found);
}

sonde_status sn_sql_add_test(sn_sql *sql, const char *name, sn_sql_test test, void *user,
                             sonde_error *err)
{
    kept_test *kept = sqlite3_malloc(sizeof *kept);
    if (!kept)
        return sn_fail_memory(err, sizeof *kept);
    *kept = (kept_test){test, user};
    const int rc = sqlite3_create_function_v2(
        sql->db, name, 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, kept, call_test,
        NULL, NULL, sqlite3_free); /* which frees it after a failure, too */
    return rc == SQLITE_OK ? SONDE_OK : fail_with(sql, rc, err);
}

/* ------------------------------------------------------------------ whole statements */

sonde_status sn_sql_run(sn_sql *sql, const char *text, sonde_error *err)
{
    errno = 0;
    const int rc = sqlite3_exec(sql->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? SONDE_OK : fail_with(sql, rc, err);
}

sonde_status sn_sql_number(sn_sql *sql, const char *text, int64_t *number, sonde_error *err)
{
    sn_sql_statement s;
    bool row = false;
    *number = 0;
    sonde_status st = sn_sql_prepare(&s, sql, text, err);
    if (st == SONDE_OK)
        st = sn_sql_step(&s, &row, err);
    if (st == SONDE_OK && row)
        *number = sn_sql_int(&s, 0);
    sn_sql_end(&s);
    return st;
}

sonde_status sn_sql_begin(sn_sql *sql, sonde_error *err)
{
    return sn_sql_run(sql, "BEGIN IMMEDIATE", err);
}

sonde_status sn_sql_commit(sn_sql *sql, sonde_error *err)
{
    const sonde_status st = sn_sql_run(sql, "COMMIT", err);
    if (st)
        sn_sql_undo(sql);
    return st;
}

void sn_sql_undo(sn_sql *sql)
{
    if (sql->db && !sqlite3_get_autocommit(sql->db))
        (void)sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL, NULL);
}

int64_t sn_sql_last_id(const sn_sql *sql)
{
    return sqlite3_last_insert_rowid(sql->db);
}

int64_t sn_sql_changes(const sn_sql *sql)
{
    return sqlite3_changes(sql->db);
}

/* ------------------------------------------------------------------ statements */

sonde_status sn_sql_prepare(sn_sql_statement *s, sn_sql *sql, const char *text, sonde_error *err)
{
    sqlite3_stmt *statement = NULL;
    errno = 0;
    const int rc = sqlite3_prepare_v2(sql->db, text, -1, &statement, NULL);
    *s = (sn_sql_statement){.sql = sql, .statement = statement};
    return rc == SQLITE_OK ? SONDE_OK : fail_with(sql, rc, err);
}

static void bound(sn_sql_statement *s, int rc)
{
    if (rc != SQLITE_OK && !s->problem)
        s->problem = rc;
}

void sn_sql_bind_int(sn_sql_statement *s, int64_t value)
{
    bound(s, sqlite3_bind_int64(s->statement, ++s->bound, value));
}

void sn_sql_bind_real(sn_sql_statement *s, double value)
{
    bound(s, sqlite3_bind_double(s->statement, ++s->bound, isfinite(value) ? value : 0));
}

void sn_sql_bind_text(sn_sql_statement *s, const char *text)
{
    bound(s, sqlite3_bind_text64(s->statement, ++s->bound, text ? text : "",
                                 text ? strlen(text) : 0, SQLITE_STATIC, SQLITE_UTF8));
}

void sn_sql_bind_blob(sn_sql_statement *s, const void *data, size_t bytes)
{
    bound(s, sqlite3_bind_blob64(s->statement, ++s->bound, data, bytes, SQLITE_STATIC));
}

sonde_status sn_sql_step(sn_sql_statement *s, bool *row, sonde_error *err)
{
    errno = 0;
    const int rc = s->problem ? s->problem : sqlite3_step(s->statement);
    *row = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SONDE_OK : fail_with(s->sql, rc, err);
}

sonde_status sn_sql_do(sn_sql_statement *s, sonde_error *err)
{
    bool row;
    const sonde_status st = sn_sql_step(s, &row, err);
    sn_sql_reset(s);
    return st;
}

void sn_sql_reset(sn_sql_statement *s)
{
    sqlite3_reset(s->statement);
    sqlite3_clear_bindings(s->statement);
    s->bound = s->problem = 0;
}

void sn_sql_end(sn_sql_statement *s)
{
    sqlite3_finalize(s->statement);
    s->statement = NULL;
}

int64_t sn_sql_int(const sn_sql_statement *s, int column)
{
    return sqlite3_column_int64(s->statement, column);
}

double sn_sql_real(const sn_sql_statement *s, int column)
{
    const double value = sqlite3_column_double(s->statement, column);
    return isfinite(value) ? value : 0;
}

const char *sn_sql_text(const sn_sql_statement *s, int column)
{
    const unsigned char *text = sqlite3_column_text(s->statement, column);
    return text ? (const char *)text : "";
}

const void *sn_sql_blob(const sn_sql_statement *s, int column, size_t *bytes)
{
    const void *data = sqlite3_column_blob(s->statement, column);
    *bytes = data ? (size_t)sqlite3_column_bytes(s->statement, column) : 0;
    return data;
}

#else

bool sn_sql_available(void)
{
    return false;
}

sonde_status sn_sql_need(sonde_error *err)
{
    return sn_fail(
        err, SONDE_UNSUPPORTED,
        "this build of sonde keeps no history: SQLite (libsqlite3) was not there when it "
        "was built");
}

sonde_status sn_sql_head(const char *path, unsigned char *head, size_t bytes, bool *whole,
                         sonde_error *err)
{
    (void)path, (void)bytes;
    *head = 0;
    *whole = false;
    return sn_sql_need(err);
}

sonde_status sn_sql_open(sn_sql *sql, const char *path, sn_sql_mode mode, int wait_ms,
                         sonde_error *err)
{
    (void)mode;
    *sql = (sn_sql){.path = path, .wait_ms = wait_ms};
    return sn_sql_need(err);
}

void sn_sql_close(sn_sql *sql)
{
    (void)sql;
}

sonde_status sn_sql_add_test(sn_sql *sql, const char *name, sn_sql_test test, void *user,
                             sonde_error *err)
{
    (void)sql, (void)name, (void)test, (void)user;
    return sn_sql_need(err);
}

sonde_status sn_sql_run(sn_sql *sql, const char *text, sonde_error *err)
{
    (void)sql, (void)text;
    return sn_sql_need(err);
}

sonde_status sn_sql_number(sn_sql *sql, const char *text, int64_t *number, sonde_error *err)
{
    (void)sql, (void)text, (void)number;
    return sn_sql_need(err);
}

sonde_status sn_sql_begin(sn_sql *sql, sonde_error *err)
{
    (void)sql;
    return sn_sql_need(err);
}

sonde_status sn_sql_commit(sn_sql *sql, sonde_error *err)
{
    (void)sql;
    return sn_sql_need(err);
}

void sn_sql_undo(sn_sql *sql)
{
    (void)sql;
}

int64_t sn_sql_last_id(const sn_sql *sql)
{
    (void)sql;
    return 0;
}

int64_t sn_sql_changes(const sn_sql *sql)
{
    (void)sql;
    return 0;
}

sonde_status sn_sql_prepare(sn_sql_statement *s, sn_sql *sql, const char *text, sonde_error *err)
{
    (void)text;
    *s = (sn_sql_statement){.sql = sql};
    return sn_sql_need(err);
}

void sn_sql_bind_int(sn_sql_statement *s, int64_t value)
{
    (void)s, (void)value;
}

void sn_sql_bind_real(sn_sql_statement *s, double value)
{
    (void)s, (void)value;
}

void sn_sql_bind_text(sn_sql_statement *s, const char *text)
{
    (void)s, (void)text;
}

void sn_sql_bind_blob(sn_sql_statement *s, const void *data, size_t bytes)
{
    (void)s, (void)data, (void)bytes;
}

sonde_status sn_sql_step(sn_sql_statement *s, bool *row, sonde_error *err)
{
    (void)s;
    *row = false;
    return sn_sql_need(err);
}

sonde_status sn_sql_do(sn_sql_statement *s, sonde_error *err)
{
    (void)s;
    return sn_sql_need(err);
}

void sn_sql_reset(sn_sql_statement *s)
{
    (void)s;
}

void sn_sql_end(sn_sql_statement *s)
{
    (void)s;
}

int64_t sn_sql_int(const sn_sql_statement *s, int column)
{
    (void)s, (void)column;
    return 0;
}

double sn_sql_real(const sn_sql_statement *s, int column)
{
    (void)s, (void)column;
    return 0;
}

const char *sn_sql_text(const sn_sql_statement *s, int column)
{
    (void)s, (void)column;
    return "";
}

const void *sn_sql_blob(const sn_sql_statement *s, int column, size_t *bytes)
{
    (void)s, (void)column;
    *bytes = 0;
    return NULL;
}
#endif
