/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of many processes as one: joined into a file, and as tables by host, worker and version.
 *
 *     const char *paths[] = {"traces/"};
 *     sonde_fleet *fleet;
 *     sonde_fleet_open(NULL, paths, 1, NULL, &fleet, &err);
 *     sonde_fleet_save(fleet, "fleet.pftrace", NULL, &err);
 *     sonde_fleet_rows_get(fleet, SONDE_FLEET_BY_HOST, &rows, &err);
 *     …
 *     sonde_fleet_release(fleet);
 *
 * Traces are read one after the other: a joined .pftrace and the tables take as much memory as the
 * largest of them, and 8 bytes for each run. Texts belong to the object they come from and are ""
 * where there is nothing to say. docs/fleet.md. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_FLEET_H
#define SONDE_EXPERIMENTAL_FLEET_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_fleet sonde_fleet;

typedef struct sonde_fleet_options {
    size_t struct_size;
    int no_mmap; /* read files instead of mapping them: for files that others may cut meanwhile */
    const char *output; /* a file that is not read although it lies in one of the folders; NULL */
} sonde_fleet_options;

/* Files of any format sonde reads, and folders, of which every *.pftrace is taken, also from
 * folders in them. What cannot be read is listed as skipped; it is an error only if nothing is
 * left. One recording that several files hold is taken once. Traces are sorted by host, worker and
 * start. */
SONDE_API sonde_status sonde_fleet_open(sonde_context *context, const char *const *paths,
                                        size_t path_count, const sonde_fleet_options *options,
                                        sonde_fleet **fleet, sonde_error *err);
/* The workers of a joined profile, or the profile itself as the only one. */
SONDE_API sonde_status sonde_fleet_of_profile(const sonde_profile *profile, sonde_fleet **fleet,
                                              sonde_error *err);
SONDE_API void sonde_fleet_release(sonde_fleet *fleet);

/* One trace. */
typedef struct sonde_fleet_trace {
    size_t struct_size;
    const char *path;
    const char *host, *worker, *version, *model; /* labels, and the model's name */
    const char *note;       /* what is missing, as of a trace that was truncated */
    int64_t pid;            /* 0: not known */
    uint64_t start_wall_ns; /* since 1970, on the line of time that all traces have */
    int64_t moved_ns;       /* by how much it was moved there from what the trace says */
} sonde_fleet_trace;
SONDE_API size_t sonde_fleet_count(const sonde_fleet *fleet);
SONDE_API sonde_status sonde_fleet_trace_get(const sonde_fleet *fleet, size_t index,
                                             sonde_fleet_trace *trace, sonde_error *err);

/* A file that is not among the traces. */
typedef struct sonde_fleet_skipped {
    size_t struct_size;
    const char *path, *why;
    int duplicate; /* nothing is missing: what it holds is among the traces */
} sonde_fleet_skipped;
SONDE_API size_t sonde_fleet_skipped_count(const sonde_fleet *fleet);
SONDE_API sonde_status sonde_fleet_skipped_get(const sonde_fleet *fleet, size_t index,
                                               sonde_fleet_skipped *skipped, sonde_error *err);

/* How well the line of time is known. Traces of one boot of one machine lie on it exactly; those of
 * different machines by their wall clocks. */
typedef struct sonde_fleet_clocks {
    size_t struct_size;
    size_t boots;      /* clocks that traces have in common */
    size_t loose;      /* traces that do not say whose clock they had */
    uint64_t error_ns; /* by which two machines may be apart, as their systems estimate; 0: one
                          clock only, or not known */
    uint64_t moved_ns; /* the most a wall clock was moved between two traces of one boot */
    const char *moved_host;
} sonde_fleet_clocks;
SONDE_API sonde_status sonde_fleet_clocks_get(const sonde_fleet *fleet, sonde_fleet_clocks *clocks,
                                              sonde_error *err);

/* The suffix picks the format. .pftrace is written trace by trace; every other format, and options
 * that are not NULL, need all traces in memory at once. */
SONDE_API sonde_status sonde_fleet_save(sonde_fleet *fleet, const char *path,
                                        const sonde_export_options *options, sonde_error *err);
/* All traces as one profile in memory. */
SONDE_API sonde_status sonde_fleet_profile(sonde_fleet *fleet, sonde_profile **profile,
                                           sonde_error *err);

typedef enum sonde_fleet_by {
    SONDE_FLEET_BY_HOST = 0,
    SONDE_FLEET_BY_WORKER = 1, /* of a host */
    SONDE_FLEET_BY_VERSION = 2 /* of a model */
} sonde_fleet_by;

/* Times are nanoseconds, of measured runs. */
typedef struct sonde_fleet_row {
    size_t struct_size;
    const char *host, *worker, *version, *model; /* "" where the traces of the row differ */
    uint64_t traces, incomplete;                 /* how many, and how many of them end early */
    uint64_t runs, warmups, dropped;
    uint64_t operators;   /* that were executed in measured runs */
    uint64_t operator_ns; /* what they took as it was recorded, to the nanosecond */
    double runs_per_s;    /* from the first start to the last end of a measured run */
    double share;         /* 0…1 of operator_ns of all rows */
    double mean_ns, min_ns, max_ns, p50_ns, p95_ns, p99_ns; /* of a run */
} sonde_fleet_row;
typedef struct sonde_fleet_rows sonde_fleet_rows;
/* Sorted by names. The rows need the fleet to live as long. */
SONDE_API sonde_status sonde_fleet_rows_get(sonde_fleet *fleet, sonde_fleet_by by,
                                            sonde_fleet_rows **rows, sonde_error *err);
SONDE_API size_t sonde_fleet_rows_count(const sonde_fleet_rows *rows);
SONDE_API sonde_status sonde_fleet_rows_row(const sonde_fleet_rows *rows, size_t index,
                                            sonde_fleet_row *row, sonde_error *err);
SONDE_API void sonde_fleet_rows_release(sonde_fleet_rows *rows);

/* A worker that is slower than those that run the same version of the same model: its median is
 * above the median of all by 10 % at least and by 3 scaled median absolute deviations. Workers with
 * fewer than 5 measured runs do not count, and fewer than 3 workers are not compared. */
typedef struct sonde_straggler {
    size_t struct_size;
    const char *host, *worker, *version, *model;
    double p50_ns, usual_ns; /* its median, and the median of all */
    size_t peers;            /* workers that were compared, itself included */
    const char *op;          /* the operator whose time per run differs most from what is usual */
    double op_ns, op_usual_ns;
} sonde_straggler;
/* *uncompared (may be NULL): workers that could not be compared. The slowest come first. */
SONDE_API sonde_status sonde_fleet_straggler_count(sonde_fleet *fleet, size_t *count,
                                                   size_t *uncompared, sonde_error *err);
SONDE_API sonde_status sonde_fleet_straggler_get(sonde_fleet *fleet, size_t index,
                                                 sonde_straggler *straggler, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
