/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite as this room uses it: statements whose values are always bound, failures as statuses with
 * sentences that name the database. The only file that knows SQLite's own header is sql.c, which
 * without the library says so in every call.
 *
 *     sn_sql_statement s;
 *     SN_TRY(sn_sql_prepare(&s, db, "SELECT model FROM series WHERE id = ?", err));
 *     sn_sql_bind_int(&s, id);
 *     bool row;
 *     sonde_status st = sn_sql_step(&s, &row, err);
 *     …
 *     sn_sql_end(&s);
 *
 * A database is for one thread at a time. */
#ifndef SN_HISTORY_SQL_H
#define SN_HISTORY_SQL_H

#include <stdbool.h>

#include "base/status.h"

typedef struct sn_sql {
    void *db;         /* sqlite3; NULL: not open */
    const char *path; /* for messages; the caller's */
    int wait_ms;
    uint64_t waits_since_ns;
} sn_sql;

typedef enum sn_sql_mode {
    SN_SQL_CREATE,   /* made if it is not there */
    SN_SQL_READ,     /* must be there; not written to */
    SN_SQL_UNCHANGED /* the same, and nobody changes it: no lock is taken, no file made beside it */
} sn_sql_mode;

enum { SN_SQL_LONGEST_PATTERN = 990 }; /* of GLOB; longer ones are errors of a statement */

bool sn_sql_available(void);
sonde_status sn_sql_need(sonde_error *err); /* SONDE_UNSUPPORTED: there is no SQLite */
/* The first bytes of a file, zeros behind its end. No lock is taken and nothing changed, not even
 * beside it. To open and close the file otherwise would cost this process the locks that it has on
 * it through other connections. *whole: it has so many. */
sonde_status sn_sql_head(const char *path, unsigned char *head, size_t bytes, bool *whole,
                         sonde_error *err);
sonde_status sn_sql_open(sn_sql *sql, const char *path, sn_sql_mode mode, int wait_ms,
                         sonde_error *err);
void sn_sql_close(sn_sql *sql);
/* Lets statements call name(a, b), where both are texts. Below 0: out of memory. */
typedef int (*sn_sql_test)(void *user, const char *a, const char *b);
sonde_status sn_sql_add_test(sn_sql *sql, const char *name, sn_sql_test test, void *user,
                             sonde_error *err);

/* Statements without values and results, separated by semicolons. */
sonde_status sn_sql_run(sn_sql *sql, const char *text, sonde_error *err);
/* The number in the first column of the first row, 0 when there is none. */
sonde_status sn_sql_number(sn_sql *sql, const char *text, int64_t *number, sonde_error *err);
/* A transaction that may write from its beginning on. Ended by one of the other two. */
sonde_status sn_sql_begin(sn_sql *sql, sonde_error *err);
sonde_status sn_sql_commit(sn_sql *sql, sonde_error *err); /* after a failure it is undone */
void sn_sql_undo(sn_sql *sql);
int64_t sn_sql_last_id(const sn_sql *sql);
int64_t sn_sql_changes(const sn_sql *sql); /* rows that the last statement changed */

typedef struct sn_sql_statement {
    sn_sql *sql;
    void *statement;
    int bound;   /* values so far: they are bound in their order */
    int problem; /* of binding; told by the next step */
} sn_sql_statement;

/* `statement` needs an end also after a failure. */
sonde_status sn_sql_prepare(sn_sql_statement *s, sn_sql *sql, const char *text, sonde_error *err);
void sn_sql_bind_int(sn_sql_statement *s, int64_t value);
void sn_sql_bind_real(sn_sql_statement *s, double value);
void sn_sql_bind_text(sn_sql_statement *s, const char *text); /* NULL: "". Must live until reset */
void sn_sql_bind_blob(sn_sql_statement *s, const void *data, size_t bytes); /* the same */
sonde_status sn_sql_step(sn_sql_statement *s, bool *row, sonde_error *err);
sonde_status sn_sql_do(sn_sql_statement *s,
                       sonde_error *err); /* a step without a row, and a reset */
void sn_sql_reset(sn_sql_statement *s);   /* to be bound and stepped again */
void sn_sql_end(sn_sql_statement *s);

/* Of the row; whatever type the column has in a file that somebody changed. Texts and blobs live
 * until the next step. */
int64_t sn_sql_int(const sn_sql_statement *s, int column);
double sn_sql_real(const sn_sql_statement *s, int column);                     /* finite */
const char *sn_sql_text(const sn_sql_statement *s, int column);                /* never NULL */
const void *sn_sql_blob(const sn_sql_statement *s, int column, size_t *bytes); /* NULL: none */

#endif
