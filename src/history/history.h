/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of this room. Every call from outside takes the lock of its history, because a
 * database is for one thread at a time. */
#ifndef SN_HISTORY_HISTORY_H
#define SN_HISTORY_HISTORY_H

#include <stdio.h>
#include <sys/types.h>

#include "api/internal.h"
#include "history/sql.h"
#include "sonde/experimental/history.h"

typedef struct sn_history_file sn_history_file;

struct sonde_history {
    sonde_context *context;
    char *path; /* absolute or beginning with "./" */
    size_t path_bytes;
    sn_sql sql; /* not to be moved */
    pthread_mutex_t lock;
    pid_t owner;
    bool read_only, said;  /* said: the caller named the file */
    sn_history_file *file; /* its place among those that are open */
};

/* Takes the lock. SONDE_INVALID_ARGUMENT in a forked child, and then the lock is not taken. */
sonde_status sn_history_enter(sonde_history *h, sonde_error *err);
void sn_history_leave(sonde_history *h);

/* The path as the caller wrote it; "": the usual database. */
const char *sn_history_said(const sonde_history *h);

/* ---- files.c ---- */
/* SONDE_INVALID_ARGUMENT: this process inherited it from one that had it open. */
sonde_status sn_history_may_open(const char *path, sonde_error *err);
sonde_status sn_history_opened(const char *path, sn_history_file **file, sonde_error *err);
void sn_history_closed(sn_history_file *file); /* NULL accepted */

/* ---- schema.c ---- */
enum {
    SN_HISTORY_APPLICATION = 0x736F6E64, /* "sond", in the head of the database */
    SN_HISTORY_SCHEMA = 2
};
/* Makes the tables in an empty database and brings older ones to today's version, all or nothing.
 * Another process may do the same at the same time. */
sonde_status sn_history_migrate(sn_sql *sql, sn_allocator *alloc, sonde_error *err);

/* ---- place.c ---- */
/* The path of the database: `path` where it is one, else the user's, whose folder is made if
 * `make`. From the allocator, *bytes of them. */
sonde_status sn_history_place(const char *path, bool make, sn_allocator *alloc, char **out,
                              size_t *bytes, sonde_error *err);
/* What SONDE_MACHINE says, else the name of the host. Terminated. */
void sn_history_host(char *text, size_t bytes);

/* ---- options.c ---- */
enum { SN_HISTORY_OPTIONS_BYTES = 64 << 10 };
/* The object in one form: sorted keys, no spaces, one way to escape. `threads` and `precision` are
 * added where it has none and they are known (0, ""). In the arena. */
sonde_status sn_history_options(const char *json, int threads, const char *precision,
                                sn_arena *arena, const char **out, sonde_error *err);
/* Whether such an object says what "threads=1,precision=bf16" asks for; below 0: no memory to find
 * out. */
int sn_history_options_say(void *alloc, const char *json, const char *wanted);
/* Both, one key after the other: "threads 1 and 2", at most `bytes`. */
void sn_history_options_differ(const char *a, const char *b, sn_allocator *alloc, char *text,
                               size_t bytes);
/* "1 thread, bf16, batch 8": all that is worth a word in a title. */
void sn_history_options_title(const char *json, sn_allocator *alloc, char *text, size_t bytes);
/* Adds the keys in which two objects differ, each once, up to SN_HISTORY_KEYS; they live in the
 * arena, the list in its allocator. False: no memory. */
enum { SN_HISTORY_KEYS = 12 };
typedef SN_VEC(const char *) sn_history_keys;
bool sn_history_options_keys(const char *a, const char *b, sn_arena *arena, sn_history_keys *keys);
/* "1 thread, without batch": what an object says of such keys. False: no memory. */
bool sn_history_options_words(const char *json, const sn_history_keys *keys, sn_allocator *alloc,
                              char *text, size_t bytes);

/* ---- samples.c ---- */
enum { SN_HISTORY_SAMPLES = 1 << 16 }; /* kept of one entry */
typedef struct sn_history_figures {
    sn_prof_stats stats;
    double low, high; /* 95 % interval of the median; both equal it: too few samples */
} sn_history_figures;
/* `samples` are sorted. */
void sn_history_figures_of(double *samples, size_t n, sn_history_figures *out);
typedef SN_VEC(uint8_t) sn_history_bytes;
/* Whole nanoseconds as differences, one to three bytes each for runs that are alike. Of more than
 * SN_HISTORY_SAMPLES those at equal distances. */
sonde_status sn_history_pack(const double *samples, size_t n, sn_allocator *alloc,
                             sn_history_bytes *out, size_t *kept, sonde_error *err);
typedef SN_VEC(double) sn_history_samples;
/* SONDE_INVALID_FORMAT: these are no packed samples. */
sonde_status sn_history_unpack(const void *data, size_t bytes, sn_allocator *alloc,
                               sn_history_samples *out, sonde_error *err);

/* ---- kept_profile.c ---- */
/* The profile as a trace, compressed where the build can; `form` is static. */
sonde_status sn_history_press(const sn_profile *p, sn_history_bytes *out, const char **form,
                              sonde_error *err);
sonde_status sn_history_unpress(const void *data, size_t bytes, const char *form,
                                sonde_context *context, sonde_profile **profile, sonde_error *err);

/* ---- entry.c ---- */
/* The columns of an entry, from 0 on, of FROM entry e joined with series s, machine m, setting o;
 * SN_ENTRY_FROM joins them in the order in which an index of e can give them. */
extern const char sn_entry_columns[], sn_entry_from[];
/* Reads a row; texts are copied to the arena. */
sonde_status sn_entry_read(const sn_sql_statement *s, sn_arena *arena, sonde_history_entry *e,
                           sonde_error *err);

/* ---- filter.c ---- */
/* " WHERE …" about the tables of sn_entry_from, with a mark for each value, and its values. */
sonde_status sn_filter_text(const sonde_history_filter *f, sn_arena *arena, const char **where,
                            sonde_error *err);
sonde_status sn_filter_bind(const sonde_history_filter *f, sn_sql_statement *s, sn_arena *arena,
                            sonde_error *err);
/* The caller's options into ones of ours. */
sonde_status sn_filter_take(const sonde_history_filter *theirs, sonde_history_filter *own,
                            sonde_error *err);

#endif
