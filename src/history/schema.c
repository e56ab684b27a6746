/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, and how they became what they are. Steps are never changed once a version has been
 * released: a database is brought from its version to the next one, step by step, in one
 * transaction. What is large lies in a table of its own, so that lists do not read past it. */
#include "history/history.h"

/* Version 1. */
static const char tables[] =
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
    "CREATE UNIQUE INDEX large_entry ON large (entry, what);";

static sonde_status make_tables(sn_sql *sql, sn_allocator *alloc, sonde_error *err)
{
    (void)alloc;
    return sn_sql_run(sql, tables, err);
}

/* Version 2: notes, and the interval of the median, which follows from the samples. */
static const char more_columns[] = "ALTER TABLE entry ADD COLUMN note TEXT NOT NULL DEFAULT '';"
                                   "ALTER TABLE entry ADD COLUMN low REAL NOT NULL DEFAULT 0;"
                                   "ALTER TABLE entry ADD COLUMN high REAL NOT NULL DEFAULT 0;"
                                   "UPDATE entry SET low = median, high = median;";

static sonde_status set_interval(sn_sql_statement *set, int64_t entry, const void *data,
                                 size_t bytes, sn_allocator *alloc, sonde_error *err)
{
    sn_history_samples samples;
    sonde_error unused;
    if (sn_history_unpack(data, bytes, alloc, &samples, &unused) == SONDE_OK && samples.n) {
        sn_history_figures f;
        sn_history_figures_of(samples.data, samples.n, &f);
        sn_sql_bind_real(set, f.low);
        sn_sql_bind_real(set, f.high);
        sn_sql_bind_int(set, entry);
        const sonde_status st = sn_sql_do(set, err);
        sn_vec_free(&samples, alloc);
        return st;
    }
    sn_vec_free(&samples, alloc);
    return SONDE_OK; /* damaged ones have no interval */
}

static sonde_status add_intervals(sn_sql *sql, sn_allocator *alloc, sonde_error *err)
{
    sn_sql_statement get, set = {.statement = NULL};
    bool row = true;
    SN_TRY(sn_sql_run(sql, more_columns, err));
    sonde_status st =
        sn_sql_prepare(&get, sql, "SELECT entry, content FROM large WHERE what = 'samples'", err);
    if (st == SONDE_OK)
        st = sn_sql_prepare(&set, sql, "UPDATE entry SET low = ?, high = ? WHERE id = ?", err);
    while (st == SONDE_OK && (st = sn_sql_step(&get, &row, err)) == SONDE_OK && row) {
        size_t bytes;
        const void *data = sn_sql_blob(&get, 1, &bytes);
        st = set_interval(&set, sn_sql_int(&get, 0), data, bytes, alloc, err);
    }
    sn_sql_end(&get);
    if (set.statement)
        sn_sql_end(&set);
    return st;
}

/* steps[v] leads from version v to v + 1. */
static sonde_status (*const steps[SN_HISTORY_SCHEMA])(sn_sql *, sn_allocator *,
                                                      sonde_error *) = {make_tables, add_intervals};
static const char *const versions[SN_HISTORY_SCHEMA] = {"PRAGMA user_version = 1",
                                                        "PRAGMA user_version = 2"};

static sonde_status take_steps(sn_sql *sql, sn_allocator *alloc, sonde_error *err)
{
    int64_t version;
    SN_TRY(sn_sql_number(sql, "PRAGMA user_version", &version, err));
    if (version > SN_HISTORY_SCHEMA || version < 0)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "the history '%s' was made by a newer version of sonde", sql->path);
    if (version == 0) /* 0x736F6E64 */
        SN_TRY(sn_sql_run(sql, "PRAGMA application_id = 1936682596", err));
    for (; version < SN_HISTORY_SCHEMA; version++) {
        SN_TRY(steps[version](sql, alloc, err));
        SN_TRY(sn_sql_run(sql, versions[version], err));
    }
    return SONDE_OK;
}

sonde_status sn_history_migrate(sn_sql *sql, sn_allocator *alloc, sonde_error *err)
{
    int64_t version;
    SN_TRY(sn_sql_number(sql, "PRAGMA user_version", &version, err));
    if (version == SN_HISTORY_SCHEMA)
        return SONDE_OK;
    /* A new database appears with the first commit, and no pragma may write to it before: the
     * number of the application is there from the beginning. */
    SN_TRY(sn_sql_begin(sql, err));
    const sonde_status st = take_steps(sql, alloc, err);
    if (st) {
        sn_sql_undo(sql);
        return st;
    }
    return sn_sql_commit(sql, err);
}
