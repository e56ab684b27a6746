/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of older versions are brought up to date with all that is in them; those of newer ones,
 * of other programs, and files that are no database are refused and stay as they are, byte by
 * byte. */
#include <sys/stat.h>

#include "history/entries.h"
#include "history/sql.h"

/* Version 1 as it was: never to be changed. Its two entries have samples 1000, 1010, … 1090. */
static const char version_1[] =
    "CREATE TABLE machine ("
    " id INTEGER PRIMARY KEY, host TEXT NOT NULL, cpu TEXT NOT NULL, level TEXT NOT NULL,"
    " cores INTEGER NOT NULL, UNIQUE (host, cpu, level, cores));"
    "CREATE TABLE setting (id INTEGER PRIMARY KEY, options TEXT NOT NULL UNIQUE);"
    "CREATE TABLE series ("
    " id INTEGER PRIMARY KEY, kind TEXT NOT NULL, runtime TEXT NOT NULL, model TEXT NOT NULL,"
    " form TEXT NOT NULL, machine INTEGER NOT NULL REFERENCES machine,"
    " setting INTEGER NOT NULL REFERENCES setting,"
    " UNIQUE (model, form, kind, runtime, machine, setting));"
    "CREATE TABLE entry ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,"
    " series INTEGER NOT NULL REFERENCES series, hash TEXT NOT NULL, version TEXT NOT NULL,"
    " code TEXT NOT NULL, runs INTEGER NOT NULL, median REAL NOT NULL, mean REAL NOT NULL,"
    " stddev REAL NOT NULL, least REAL NOT NULL, most REAL NOT NULL, p95 REAL NOT NULL,"
    " p99 REAL NOT NULL, peak INTEGER NOT NULL, samples INTEGER NOT NULL,"
    " profile INTEGER NOT NULL);"
    "CREATE INDEX entry_at ON entry (at);"
    "CREATE INDEX entry_series ON entry (series, at);"
    "CREATE INDEX entry_code ON entry (code);"
    "CREATE TABLE operator ("
    " entry INTEGER NOT NULL REFERENCES entry, name TEXT NOT NULL, calls REAL NOT NULL,"
    " mean REAL NOT NULL, PRIMARY KEY (entry, name)) WITHOUT ROWID;"
    "CREATE TABLE large ("
    " entry INTEGER NOT NULL REFERENCES entry, what TEXT NOT NULL, form TEXT NOT NULL,"
    " content BLOB NOT NULL);"
    "CREATE UNIQUE INDEX large_entry ON large (entry, what);"
    "INSERT INTO machine VALUES (1, 'old host', 'old cpu', 'avx2', 4);"
    "INSERT INTO setting VALUES (1, '{\"threads\":1}');"
    "INSERT INTO series VALUES (1, 'bench', 'sonde', 'old model', '', 1, 1);"
    "INSERT INTO entry VALUES"
    " (1, 5000, 1, 'hash', '0.0.9', 'c0ffee', 10, 1045, 1045, 28.7, 1000, 1090, 1085.5, 1089.1, 77,"
    "  10, 0),"
    " (2, 6000, 1, 'hash', '0.0.9', 'decade', 10, 1045, 1045, 28.7, 1000, 1090, 1085.5, 1089.1, 77,"
    "  10, 0);"
    "INSERT INTO operator VALUES (1, 'Conv', 2, 900), (1, 'Relu', 1, 145);"
    "INSERT INTO large VALUES"
    " (1, 'samples', 'differences', x'd00f141414141414141414'),"
    " (2, 'samples', 'differences', x'ffffffffffffffffffffffff');"
    "PRAGMA application_id = 1936682596;"
    "PRAGMA user_version = 1;";

static void make(const char *path, const char *text)
{
    sn_sql sql;
    sonde_error err;
    CHECK_OK(sn_sql_open(&sql, path, SN_SQL_CREATE, 1000, &err));
    CHECK_OK(sn_sql_run(&sql, text, &err));
    sn_sql_close(&sql);
}

TEST(a_database_of_the_first_version_is_brought_up_to_date)
{
    NEED_SQLITE();
    sonde_error err;
    const char *path = in_dir("old.db");
    make(path, version_1);
    sonde_history *h = NULL;
    sonde_history_options read_only = SONDE_INIT(sonde_history_options);
    read_only.read_only = 1;
    CHECK_EQ(sonde_history_open(NULL, path, &read_only, &h, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "older version");
    h = open_at(path, &err);
    CHECK_MSG(h, "%s", err.message);
    sonde_history_record *r = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    CHECK_OK(sonde_history_get(h, 1, &r, &err));
    CHECK_OK(sonde_history_record_entry(r, &e, &err));
    CHECK_STR(e.model, "old model");
    CHECK_STR(e.host, "old host");
    CHECK_STR(e.commit, "c0ffee");
    CHECK_STR(e.note, "");
    CHECK(e.median_ns == 1045 && e.low_ns == 1010 && e.high_ns == 1080);
    size_t n;
    const double *samples = sonde_history_record_samples(r, &n);
    CHECK(n == 10 && samples[0] == 1000 && samples[9] == 1090);
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    CHECK_OK(sonde_history_record_operator(r, 0, &op, &err));
    CHECK_STR(op.name, "Conv");
    sonde_history_record_release(r);
    /* Samples that cannot be read are no reason to lose the entry. */
    sonde_history_cursor *c;
    CHECK_OK(sonde_history_list(h, NULL, &c, &err));
    CHECK_OK(sonde_history_next(c, &e, &err));
    CHECK(e.id == 2 && e.low_ns == 1045 && e.high_ns == 1045);
    sonde_history_cursor_release(c);
    CHECK_EQ(sonde_history_get(h, 2, &r, &err), SONDE_INVALID_FORMAT);
    CHECK_EQ(add_entry(h, "new model", NULL, 1000, 7000, "", &err), 3);
    sonde_history_close(h);
    CHECK_OK(sonde_history_open(NULL, path, &read_only, &h, &err));
    CHECK_EQ(count_entries(h, NULL), 3);
    sonde_history_close(h);
}

TEST(a_new_database_has_the_same_tables_as_one_that_was_brought_up_to_date)
{
    NEED_SQLITE();
    sonde_error err;
    const char *paths[2] = {in_dir("step.db"), in_dir("fresh.db")};
    static const char text[] =
        "SELECT count(*) FROM pragma_table_info('entry') WHERE name IN ('note', 'low', 'high')";
    int64_t columns[2], tables[2];
    make(paths[0], version_1);
    for (int k = 0; k < 2; k++) {
        sonde_history_close(open_at(paths[k], &err));
        sn_sql sql;
        CHECK_OK(sn_sql_open(&sql, paths[k], SN_SQL_READ, 1000, &err));
        CHECK_OK(sn_sql_number(&sql, text, &columns[k], &err));
        CHECK_OK(sn_sql_number(&sql, "SELECT count(*) FROM sqlite_schema", &tables[k], &err));
        sn_sql_close(&sql);
    }
    CHECK_EQ(columns[0], 3);
    CHECK_EQ(columns[1], 3);
    CHECK_EQ(tables[0], tables[1]);
}

/* ------------------------------------------------------------------ what is refused */

typedef struct content {
    char bytes[1 << 18];
    size_t n;
    struct stat s;
} content;

static void read_content(const char *path, content *c)
{
    FILE *f = fopen(path, "rb");
    CHECK(f && stat(path, &c->s) == 0);
    c->n = fread(c->bytes, 1, sizeof c->bytes, f);
    fclose(f);
}

static void check_refused(const char *path, sonde_status status, const char *why)
{
    static content before, after;
    sonde_error err = {.message = ""};
    const int files = temp_count(the_dir());
    read_content(path, &before);
    for (int read_only = 0; read_only < 2; read_only++) {
        sonde_history *h = NULL;
        sonde_history_options o = SONDE_INIT(sonde_history_options);
        o.read_only = read_only;
        CHECK_EQ(sonde_history_open(NULL, path, &o, &h, &err), status);
        CHECK(!h);
        CHECK_HAS(err.message, why);
    }
    read_content(path, &after);
    CHECK_MSG(after.n == before.n && memcmp(after.bytes, before.bytes, after.n) == 0 &&
                  after.s.st_mtim.tv_nsec == before.s.st_mtim.tv_nsec &&
                  after.s.st_ino == before.s.st_ino,
              "%s was changed", path);
    CHECK_EQ(temp_count(the_dir()), files); /* nothing beside it either */
}

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

TEST(what_is_no_history_is_refused_and_not_touched)
{
    NEED_SQLITE();
    const char *text = in_dir("text"), *foreign = in_dir("foreign.db"), *log = in_dir("log.db");
    const char *half = in_dir("half.db"), *named = in_dir("named.db");
    write_file(text, "just some text\n", 15);
    check_refused(text, SONDE_INVALID_FORMAT, "no SQLite database");
    write_file(half, "SQLite format 3", 16); /* and then nothing */
    check_refused(half, SONDE_INVALID_FORMAT, "not a history");
    make(foreign, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    check_refused(foreign, SONDE_INVALID_FORMAT, "something else");
    make(log, "PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    check_refused(log, SONDE_INVALID_FORMAT, "something else");
    make(named, "PRAGMA application_id = 252006675; CREATE TABLE entry (id)");
    check_refused(named, SONDE_INVALID_FORMAT, "something else");
}

TEST(half_of_a_history_is_a_damaged_one)
{
    NEED_SQLITE();
    static content whole;
    sonde_error err;
    const char *path = in_dir("whole.db"), *cut = in_dir("cut.db");
    sonde_history *h = open_at(path, &err);
    CHECK_MSG(h, "%s", err.message);
    sonde_history_close(h);
    read_content(path, &whole);
    CHECK(whole.n > 5000);
    write_file(cut, whole.bytes, 5000);
    check_refused(cut, SONDE_INVALID_FORMAT, "is damaged");
}

static void copy(const char *from, const char *to, long at, unsigned char byte)
{
    static content c;
    read_content(from, &c);
    if (at >= 0)
        c.bytes[at] = (char)byte;
    write_file(to, c.bytes, c.n);
}

/* A process that is killed while its log is copied into the file leaves a file whose head counts
 * more pages than it has; with the log it is sound. */
TEST(a_file_amid_a_checkpoint_is_a_history)
{
    NEED_SQLITE();
    sonde_error err;
    enum { PAGES = 31 }; /* the last byte of the count in the head */
    const char *path = in_dir("live.db"), *log = in_dir("live.db-wal");
    const char *torn = in_dir("torn.db"), *torn_log = in_dir("torn.db-wal");
    static char model[9000]; /* takes new pages, so that the log has the head, too */
    memset(model, 'm', sizeof model - 1);
    sonde_history *h = open_at(path, &err);
    CHECK_MSG(h && add_entry(h, model, NULL, 1, 1, "", &err), "%s", err.message);
    copy(path, torn, PAGES, 0xF0);
    copy(log, torn_log, -1, 0);
    sonde_history_close(h);
    for (int read_only = 1; read_only >= 0; read_only--) {
        sonde_history_options o = SONDE_INIT(sonde_history_options);
        o.read_only = read_only;
        CHECK_MSG(sonde_history_open(NULL, torn, &o, &h, &err) == SONDE_OK, "%s", err.message);
        CHECK_EQ(count_entries(h, NULL), 1);
        sonde_history_close(h);
    }
}

TEST(an_empty_file_is_no_history_yet)
{
    NEED_SQLITE();
    sonde_error err;
    const char *path = in_dir("empty.db");
    sonde_history *h = NULL;
    sonde_history_options o = SONDE_INIT(sonde_history_options);
    o.read_only = 1;
    write_file(path, "", 0);
    CHECK_EQ(sonde_history_open(NULL, path, &o, &h, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "is empty");
    h = open_at(path, &err);
    CHECK_MSG(h && add_entry(h, "m", NULL, 1, 1, "", &err), "%s", err.message);
    sonde_history_close(h);
}

TEST(patterns_have_a_longest)
{
    NEED_SQLITE();
    sonde_error err;
    static char pattern[1200];
    memset(pattern, 'a', sizeof pattern - 1);
    sonde_history *h = open_at(in_dir("long.db"), &err);
    for (size_t n = 980; n < 1010; n++) {
        sonde_history_filter f = SONDE_INIT(sonde_history_filter);
        sonde_history_cursor *c = NULL;
        f.model = f.machine = f.note = pattern + sizeof pattern - 1 - n;
        const sonde_status st = sonde_history_list(h, &f, &c, &err);
        CHECK_EQ(st, n <= 990 ? SONDE_OK : SONDE_INVALID_ARGUMENT);
        sonde_history_cursor_release(c);
    }
    sonde_history_close(h);
}

TEST(folders_and_pipes_are_refused)
{
    NEED_SQLITE();
    sonde_error err;
    CHECK(!open_at(the_dir(), &err));
    CHECK_HAS(err.message, "folder");
    const char *pipe = in_dir("pipe");
    CHECK(mkfifo(pipe, 0600) == 0);
    CHECK(!open_at(pipe, &err));
    CHECK_HAS(err.message, "no regular file");
    CHECK(!open_at(in_dir("no/such/folder/x.db"), &err));
    CHECK_HAS(err.message, "does not exist");
    unlink(pipe);
}

TEST(a_database_of_a_newer_version_is_refused_and_not_touched)
{
    NEED_SQLITE();
    const char *path = in_dir("newer.db");
    sonde_error err;
    sonde_history_close(open_at(path, &err));
    make(path, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 3");
    check_refused(path, SONDE_UNSUPPORTED, "newer version");
}

TEST(names_that_sqlite_takes_for_something_else_are_files)
{
    NEED_SQLITE();
    sonde_error err;
    char folder[TEMP_PATH], before[4096];
    static const char *const names[] = {":memory:", "file:x.db?mode=memory", "a?b#c%20.db",
                                        "with 'quotes' \"and\"\nline \xff"};
    CHECK(getcwd(before, sizeof before));
    temp_make(folder);
    CHECK(chdir(folder) == 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sonde_history *h = open_at(names[i], &err);
        CHECK_MSG(h, "%s", err.message);
        CHECK(add_entry(h, "m", NULL, 1, 1, "", &err));
        sonde_history_close(h);
        CHECK_MSG(access(names[i], F_OK) == 0, "%s is no file", names[i]);
        h = open_at(names[i], &err);
        CHECK_EQ(count_entries(h, NULL), 1);
        sonde_history_close(h);
    }
    CHECK(chdir(before) == 0);
    temp_remove(folder);
}

TEST(the_usual_place_follows_the_environment)
{
    NEED_SQLITE();
    sonde_error err;
    char home[TEMP_PATH], expected[200];
    sonde_history *h = NULL;
    temp_make(home);
    unsetenv("SONDE_HISTORY");
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", home, 1);
    snprintf(expected, sizeof expected, "%s/.local/share/sonde/history.db", home);
    h = open_at(NULL, &err);
    CHECK_MSG(h, "%s", err.message);
    CHECK_STR(sonde_history_path(h), expected);
    sonde_history_close(h);
    setenv("XDG_DATA_HOME", "relative", 1); /* is ignored */
    h = open_at("", &err);
    CHECK_STR(sonde_history_path(h), expected);
    sonde_history_close(h);
    snprintf(expected, sizeof expected, "%s/data", home);
    setenv("XDG_DATA_HOME", expected, 1);
    snprintf(expected, sizeof expected, "%s/data/sonde/history.db", home);
    h = open_at(NULL, &err);
    CHECK_STR(sonde_history_path(h), expected);
    sonde_history_close(h);
    snprintf(expected, sizeof expected, "%s/own.db", home);
    setenv("SONDE_HISTORY", expected, 1);
    h = open_at(NULL, &err);
    CHECK_STR(sonde_history_path(h), expected);
    sonde_history_close(h);
    unsetenv("SONDE_HISTORY");
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    CHECK_EQ(sonde_history_open(NULL, NULL, NULL, &h, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "HOME");
    temp_remove(home);
}

TEST_MAIN()
