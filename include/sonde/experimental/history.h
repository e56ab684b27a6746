/* SPDX-License-Identifier: Apache-2.0 */
/* The history: a SQLite database of what was measured, over months and machines.
 *
 *     sonde_history *history;
 *     sonde_history_open(NULL, NULL, NULL, &history, &err);
 *     sonde_history_new what = SONDE_INIT(sonde_history_new);
 *     what.profile = profile;
 *     what.source = model;
 *     sonde_history_add(history, &what, NULL, &err);
 *
 *     sonde_history_cursor *cursor;
 *     sonde_history_entry e = SONDE_INIT(sonde_history_entry);
 *     sonde_history_list(history, NULL, &cursor, &err);
 *     while (sonde_history_next(cursor, &e, &err) == SONDE_OK)
 *         printf("%lld %s %.3f ms\n", (long long)e.id, e.model, e.median_ns / 1e6);
 *     sonde_history_cursor_release(cursor);
 *     sonde_history_close(history);
 *
 * Any number of threads and processes may use one database at once. What was added is in it when
 * the call returns, and stays there whatever happens to the process. A history that was opened
 * before a fork is refused in the child, which opens one of its own.
 *
 * Times are nanoseconds, dates milliseconds since 1970. SONDE_UNSUPPORTED: this build has no
 * SQLite. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_HISTORY_H
#define SONDE_EXPERIMENTAL_HISTORY_H

#include "sonde/experimental/profile.h"
#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

SONDE_API int sonde_history_available(void); /* 0: this build has no SQLite */

/* ---------------------------------------------------------------- the database */
typedef struct sonde_history sonde_history;

typedef struct sonde_history_options {
    size_t struct_size;
    int read_only; /* the database must exist, and is not changed, not even to a newer schema */
    int wait_ms;   /* how long to wait for other processes that write; 0 = 60 seconds */
} sonde_history_options;

/* `path` NULL or "": the one that SONDE_HISTORY names, else $XDG_DATA_HOME/sonde/history.db, else
 * ~/.local/share/sonde/history.db, whose folders are made. The database is made if it does not
 * exist. One that an older version made is brought to the schema of this one. SONDE_INVALID_FORMAT:
 * the file is no database, is that of another program, or is damaged; it is not changed.
 * SONDE_UNSUPPORTED: a newer version made it. SONDE_NOT_FOUND: it does not exist (read_only). */
SONDE_API sonde_status sonde_history_open(sonde_context *context, const char *path,
                                          const sonde_history_options *options,
                                          sonde_history **history, sonde_error *err);
SONDE_API void sonde_history_close(sonde_history *history);
SONDE_API const char *sonde_history_path(const sonde_history *history);

/* ---------------------------------------------------------------- adding */
typedef struct sonde_history_new {
    size_t struct_size;
    /* At least one of these two. The profile is kept, compressed, with at most 100,000 spans of
     * operators: of a longer one runs at equal distances. Figures are of all its runs, or of the
     * samples where there are some. */
    const sonde_profile *profile;
    const double *samples_ns; /* latencies of single runs, in their order */
    size_t sample_count;
    /* What was measured: */
    const sonde_model *source;           /* hashes of its content and form; NULL: not known */
    const char *model;                   /* its name; NULL: the profile's */
    const char *model_hash, *model_form; /* instead of `source`; NULL: not known */
    const char *kind;                    /* NULL: "profile", or "bench" without a profile */
    const char *runtime, *version;       /* that ran it; NULL: "sonde" and this version */
    const char *commit; /* of the code that was measured; NULL: see sonde_commit_find */
    const char *host;   /* that measured it; NULL: this one */
    const char
        *options; /* a JSON object: what was chosen, such as {"batch":8}. The threads and the
                     precision of the profile are added where it does not say them. NULL: {} */
    const char *note;
    uint64_t peak_bytes; /* of memory; 0: that of the profile's process */
    int64_t at_ms;       /* when; 0: the profile's start, else now */
} sonde_history_new;

/* *id, if not NULL, receives the number of the entry. */
SONDE_API sonde_status sonde_history_add(sonde_history *history, const sonde_history_new *what,
                                         int64_t *id, sonde_error *err);

/* 32 digits each, or "": of all weights, operators and their attributes as they were read; and of
 * the operators and the shapes of weights alone, which stay the same when a model is trained again.
 * They do not depend on the version of sonde or on the machine, nor on where weights lie. */
typedef struct sonde_model_hashes {
    size_t struct_size;
    char content[33], form[33];
} sonde_model_hashes;
SONDE_API sonde_status sonde_model_hashes_get(const sonde_model *model, sonde_model_hashes *hashes,
                                              sonde_error *err);

/* The commit that is checked out in the folder (NULL: the current one) or in one above it, read
 * from .git; before that what GITHUB_SHA or CI_COMMIT_SHA say. "" when there is none. Returns
 * `text`. */
SONDE_API const char *sonde_commit_find(const char *folder, char *text, size_t bytes);

/* ---------------------------------------------------------------- reading */
typedef struct sonde_history_entry {
    size_t struct_size;
    int64_t id, at_ms;
    const char *kind, *runtime, *version;
    const char *model, *model_hash, *model_form; /* the hashes: "" when not known */
    const char *commit, *note;                   /* "" */
    const char *host;                            /* what SONDE_MACHINE says, else its name */
    const char *cpu, *cpu_level;
    int cores;
    const char *options;               /* JSON, its keys sorted */
    uint64_t runs, samples;            /* measured, and kept one by one */
    double median_ns, low_ns, high_ns; /* and its 95 % interval; both equal it: not known */
    double mean_ns, stddev_ns, min_ns, max_ns, p95_ns, p99_ns;
    uint64_t peak_bytes;    /* 0: not known */
    uint64_t profile_bytes; /* as it is kept; 0: there is none */
    uint64_t series; /* entries of the same number are alike: same kind, runtime, name and form of
                        the model, machine and options. Within one database */
} sonde_history_entry;

/* Ways in which entries may differ and still be of one series. */
enum {
    SONDE_ACROSS_MODELS = 1, /* names and forms of models */
    SONDE_ACROSS_HOSTS = 2,  /* hosts with the same processor and instructions */
    SONDE_ACROSS_MACHINES = 4,
    SONDE_ACROSS_OPTIONS = 8
};

/* NULL and 0: everything. Patterns have *, ? and [a-z]. */
typedef struct sonde_history_filter {
    size_t struct_size;
    const char *model; /* a pattern, or the beginning of the hash of its content */
    const char *kind, *runtime;
    const char *commit;  /* its beginning */
    const char *machine; /* a pattern for host or processor */
    const char *note;    /* a pattern */
    const char *options; /* "threads=1,precision=bf16": what the options say; an empty value: that
                            they do not say it */
    int64_t since_ms, until_ms; /* from, and before */
    uint64_t series;
    size_t limit; /* the newest so many */
} sonde_history_filter;

/* Entries, the newest first. They are read a few hundred at a time; what is added meanwhile is not
 * among them. SONDE_NOT_FOUND past the end, with no message. Texts live until the next call. A
 * cursor is for one thread at a time and ends before its history. */
typedef struct sonde_history_cursor sonde_history_cursor;
SONDE_API sonde_status sonde_history_list(sonde_history *history,
                                          const sonde_history_filter *filter,
                                          sonde_history_cursor **cursor, sonde_error *err);
SONDE_API sonde_status sonde_history_next(sonde_history_cursor *cursor, sonde_history_entry *entry,
                                          sonde_error *err);
SONDE_API void sonde_history_cursor_release(sonde_history_cursor *cursor);

/* What people call an entry: its number, "17" or "#17"; "@0", the newest that the filter leaves,
 * "@-1" and so on the ones before it among those alike; or the beginning of a commit (four digits
 * and more), whose newest entry it is. SONDE_NOT_FOUND says what there is instead. */
SONDE_API sonde_status sonde_history_find(sonde_history *history, const char *reference,
                                          const sonde_history_filter *filter, int64_t *id,
                                          sonde_error *err);

/* One operator type of an entry: mean per run. */
typedef struct sonde_history_operator {
    size_t struct_size;
    const char *name; /* "Conv", "[Other]" */
    double calls, mean_ns;
} sonde_history_operator;

/* An entry with what belongs to it. */
typedef struct sonde_history_record sonde_history_record;
SONDE_API sonde_status sonde_history_get(sonde_history *history, int64_t id,
                                         sonde_history_record **record, sonde_error *err);
SONDE_API void sonde_history_record_release(sonde_history_record *record);
/* Texts belong to the record. */
SONDE_API sonde_status sonde_history_record_entry(const sonde_history_record *record,
                                                  sonde_history_entry *entry, sonde_error *err);
/* Largest time first. SONDE_NOT_FOUND past the end. */
SONDE_API sonde_status sonde_history_record_operator(const sonde_history_record *record,
                                                     size_t index, sonde_history_operator *op,
                                                     sonde_error *err);
/* Latencies in their order; of very many runs, some at equal distances. */
SONDE_API const double *sonde_history_record_samples(const sonde_history_record *record,
                                                     size_t *count);
/* The profile as it was kept. SONDE_NOT_FOUND: there is none. */
SONDE_API sonde_status sonde_history_record_profile(const sonde_history_record *record,
                                                    sonde_profile **profile, sonde_error *err);
/* What differs between two entries that makes them not alike, as words such as "threads 1 and 2";
 * "" for entries that are alike. Returns `text`. */
SONDE_API const char *sonde_history_record_unlike(const sonde_history_record *a,
                                                  const sonde_history_record *b, char *text,
                                                  size_t bytes);
/* Compares latencies as sonde_profile_compare does with the runs of two profiles. */
SONDE_API sonde_status sonde_history_record_compare(const sonde_history_record *before,
                                                    const sonde_history_record *after,
                                                    sonde_change *change, sonde_error *err);

/* ---------------------------------------------------------------- removing */
SONDE_API sonde_status sonde_history_remove(sonde_history *history, int64_t id, sonde_error *err);

typedef struct sonde_history_prune_options {
    size_t struct_size;
    size_t keep;       /* the newest so many of each series stay */
    int only_profiles; /* entries and their figures stay, also of operators; profiles go */
} sonde_history_prune_options;
/* Of the entries that the filter leaves (its limit does not count). *removed: how many. */
SONDE_API sonde_status sonde_history_prune(sonde_history *history,
                                           const sonde_history_filter *filter,
                                           const sonde_history_prune_options *options,
                                           uint64_t *removed, sonde_error *err);

/* ---------------------------------------------------------------- trends
 * The medians of each series over time, and where they change for good
 * (sonde/experimental/changes.h). */
typedef struct sonde_trends sonde_trends;

typedef struct sonde_trend_options {
    size_t struct_size;
    unsigned across; /* SONDE_ACROSS_… joined by | */
    const char *op;  /* the mean time of this operator type instead of the run's median */
    double false_alarms, least; /* see sonde_change_options; 0: the defaults */
    size_t shortest;
} sonde_trend_options;

SONDE_API sonde_status sonde_history_trends(sonde_history *history,
                                            const sonde_history_filter *filter,
                                            const sonde_trend_options *options,
                                            sonde_trends **trends, sonde_error *err);
SONDE_API void sonde_trends_release(sonde_trends *trends);

/* One series; that of the newest entry first. */
typedef struct sonde_trend {
    size_t struct_size;
    const char *title;              /* "zoo:tiny_cnn, 1 thread" */
    const char *machine;            /* "host, processor" */
    size_t points, levels, changes; /* levels: one more than changes; 0 without points */
    const char *across; /* what its points differ in: "model", "host", "machine", "options" or
                           several of them, "model, options"; "": they are alike */
} sonde_trend;
SONDE_API size_t sonde_trends_count(const sonde_trends *trends);
SONDE_API sonde_status sonde_trends_get(const sonde_trends *trends, size_t index,
                                        sonde_trend *trend, sonde_error *err);

typedef struct sonde_trend_point { /* oldest first */
    size_t struct_size;
    int64_t id, at_ms;
    double ns, low_ns, high_ns;
    const char *commit, *note, *version;
    int new_model; /* the model has another content than at the point before */
    const char *model;
    const char *which; /* where points differ: which of them it is, in words: "resnet-v2",
                          "build-3, 2 threads"; "" where they are alike */
} sonde_trend_point;
SONDE_API sonde_status sonde_trends_point(const sonde_trends *trends, size_t trend, size_t index,
                                          sonde_trend_point *point, sonde_error *err);

typedef struct sonde_trend_level {
    size_t struct_size;
    size_t from, to; /* points [from, to) */
    double ns;       /* their median */
    /* Of the change with which it begins; ratio 1 for the first level. */
    double ratio, low, high, p;
} sonde_trend_level;
SONDE_API sonde_status sonde_trends_level(const sonde_trends *trends, size_t trend, size_t index,
                                          sonde_trend_level *level, sonde_error *err);

/* A picture (".svg"), the report page (".html") or its data (".page.gz"), by suffix. */
SONDE_API sonde_status sonde_trends_save(const sonde_trends *trends, const char *path,
                                         sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
