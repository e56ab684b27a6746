/* SPDX-License-Identifier: Apache-2.0 */
/* A Perfetto trace (.pftrace) written piece by piece, while things happen or afterwards. Every call
 * appends whole packets that need only what came before them, so a file cut at any byte, by a full
 * disk or a killed process, opens up to the cut.
 *
 *     sn_pftrace *t;
 *     sn_pftrace_open(&t, sink, facts, alloc, err);
 *     sn_pftrace_thread(t, &thread);          // number 0
 *     sn_pftrace_step(t, &step);              // number 0
 *     sn_pftrace_slice(t, &span, 0);          // its thread and step are those numbers
 *     sn_pftrace_flush(t);                    // after every batch: a reader sees all of it
 *     sn_pftrace_close(t, facts, err);
 *
 * Order: threads and steps before the slices that name them. Slices of a thread may come in any
 * order of time as long as what begins in the same nanosecond comes outermost first; viewers sort
 * the rest. Best is a batch in the order of a profile (by start, longer ones first). A slice that
 * would cut through another one of its thread gets a lane of its own.
 *
 * Memory: names and the texts of steps, once each; nothing per slice. Not thread-safe: one writer.
 * Failures of memory or sink are kept and told by sn_pftrace_close; the other calls say false. */
#ifndef SN_EXPORT_PFTRACE_STREAM_H
#define SN_EXPORT_PFTRACE_STREAM_H

#include "export/export.h"

typedef struct sn_pftrace sn_pftrace;

/* Of `facts` only the fields before `steps` are read: model, version, machine, process, level,
 * start_wall_ns (the time of ns 0), record_ns, memory … Spans and counters that are not of their
 * `categories` are left out by the calls below. `sink` stays the caller's
 * and must outlive the trace. */
sonde_status sn_pftrace_open(sn_pftrace **t, sn_sink *sink, const sn_profile *facts,
                             sn_allocator *alloc, sonde_error *err);
/* The same of a trace that is one of several in a file, one behind the other, each closed before
 * the next is opened. `section` says what tells it from the others (pftrace_sections.h). */
typedef struct sn_pftrace_section {
    uint32_t number;  /* from 1 */
    uint32_t of;      /* so many in the file */
    const char *name; /* of the process, for viewers */
    int64_t pid;      /* for viewers, which unite what has one number */
} sn_pftrace_section;
sonde_status sn_pftrace_open_section(sn_pftrace **t, sn_sink *sink, const sn_profile *facts,
                                     const sn_pftrace_section *section, sn_allocator *alloc,
                                     sonde_error *err);
/* The facts as they are now; the last ones count. For what changes: dropped, memory, threads. */
bool sn_pftrace_facts(sn_pftrace *t, const sn_profile *facts);

bool sn_pftrace_thread(sn_pftrace *t, const sn_prof_thread *thread);
bool sn_pftrace_step(sn_pftrace *t, const sn_prof_step *step);
bool sn_pftrace_life(sn_pftrace *t, const sn_prof_life *life);
bool sn_pftrace_left(sn_pftrace *t, const sn_prof_left *left); /* nothing where nothing was */
/* `arrows`, of an OPERATOR: one bit per thread (the first 64) that had a slice of its work; of a
 * THREAD slice: not 0 when its operator (the parent) lies on another thread and had that bit. A
 * writer that cannot know may give an operator the bits of all other threads, at nine bytes each.
 * Where a thread had several slices of an operator, one behind the other, so do their arrows: from
 * the operator to the first, from that one to the second. */
bool sn_pftrace_slice(sn_pftrace *t, const sn_prof_span *span, uint64_t arrows);
bool sn_pftrace_counter(sn_pftrace *t, const sn_prof_counter *counter);

/* Hands what is buffered (up to 64 KiB) to the sink. */
bool sn_pftrace_flush(sn_pftrace *t);
/* Writes the facts, and what counters counted in their steps (NULL: nothing has changed), then the
 * mark that the trace is whole, and frees `t`. Reports the first failure since it was opened. NULL
 * is accepted. */
sonde_status sn_pftrace_close(sn_pftrace *t, const sn_profile *facts, sonde_error *err);

#endif
