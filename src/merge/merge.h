/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of many processes: found, laid on one line of time, and read one after the other, so that
 * what they take in memory is the largest of them and not their sum.
 *
 *     sn_merge m;
 *     sn_merge_init(&m, alloc, false);
 *     sn_merge_add(&m, "traces/", err);            // files and folders
 *     sn_merge_ready(&m, err);
 *     for (size_t i = 0; i < m.sources.n; i++)
 *         sn_merge_read(&m, i, &profile, err);     // by host, worker and start
 *     sn_merge_free(&m);
 */
#ifndef SN_MERGE_MERGE_H
#define SN_MERGE_MERGE_H

#include "base/file.h"
#include "base/map.h"
#include "profile/fleet.h"
#include "profile_readers/parts.h"

enum { SN_MERGE_MOST = 65536 }; /* traces */

/* One trace: a file, or a part of a joined one. */
typedef struct sn_merge_source {
    const char *path;
    sn_profile_part part;
    const char *host, *worker, *version, *model, *boot, *note;
    int64_t pid;
    int instance;
    uint64_t start_wall_ns, start_mono_ns, wall_error_ns;
    uint64_t aligned_ns; /* the wall clock at its ns 0, by the clock that all of its boot have */
} sn_merge_source;

/* A file that is not among the sources. */
typedef struct sn_merge_skipped {
    const char *path, *why; /* a sentence without its dot */
    bool duplicate;         /* nothing is missing: what it holds is among the sources */
} sn_merge_skipped;

/* What is known of the line of time. */
typedef struct sn_merge_clocks {
    size_t boots;      /* clocks that traces have in common; those of one are exact */
    size_t loose;      /* traces that do not say whose clock they had */
    uint64_t error_ns; /* by which traces of two clocks may be wrong; 0: not known */
    uint64_t moved_ns; /* the most a wall clock was moved between two traces of one boot */
    const char *moved_host;
} sn_merge_clocks;

typedef struct sn_merge {
    sn_allocator *alloc;
    sn_arena arena;
    bool map;             /* files are mapped, not read */
    const char *not_this; /* a file that is no source although it lies in a folder; NULL */
    const char *left_out; /* where it was met; NULL: nowhere */
    SN_VEC(sn_merge_source) sources;
    SN_VEC(sn_merge_skipped) skipped;
    sn_merge_clocks clocks;
    sn_map files;     /* device and inode ► found already */
    sn_file open;     /* the file that was read last */
    const char *last; /* its path; NULL: none */
} sn_merge;

void sn_merge_init(sn_merge *m, sn_allocator *alloc, bool map);
void sn_merge_free(sn_merge *m);
/* A file, whatever its name, or all *.pftrace of a folder and those in it. What cannot be read is
 * listed in `skipped` and is no error. */
sonde_status sn_merge_add(sn_merge *m, const char *path, sonde_error *err);
/* After the last one: takes out what is there twice, sets aligned_ns and sorts. An error when there
 * are no sources. */
sonde_status sn_merge_ready(sn_merge *m, sonde_error *err);

/* The profile of source i with its start_wall_ns aligned. */
sonde_status sn_merge_read(sn_merge *m, size_t i, sn_profile **profile, sonde_error *err);

/* ---- what is made of them ---- */
/* A joined .pftrace, written trace by trace. */
sonde_status sn_merge_save(sn_merge *m, const char *path, sonde_error *err);
/* All of them in memory, joined where there are several. */
sonde_status sn_merge_join(sn_merge *m, sn_profile **profile, sonde_error *err);
sonde_status sn_merge_figures(sn_merge *m, sn_fleet *fleet, sonde_error *err);

/* align.c, of sn_merge_ready */
void sn_merge_align(sn_merge *m);

#endif
