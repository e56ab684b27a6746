/* SPDX-License-Identifier: Apache-2.0 */
/* Selections whose size only the data tells: what a condition keeps, what is not zero, what
 * differs. The caller counts first, makes room, then has it written. Memory that others may change
 * in between is read twice: never more is written than was counted, and what is lacking is the
 * first entry. */
#ifndef SN_COMPUTE_SELECT_H
#define SN_COMPUTE_SELECT_H

#include "base/workspace.h"
#include "compute/element.h"

/* A tensor as entries along its middle: [outer][n][inner]. */
typedef struct sn_entries {
    int64_t outer, n, inner;
} sn_entries;

/* How many of n flags are set. */
int64_t sn_flags_count(const uint8_t *flags, int64_t n);
/* The `count` entries whose flag is set, of the first n (at most e->n). */
void sn_compress_run(const sn_entries *e, size_t elem_bytes, void *y, const void *x,
                     const uint8_t *flags, int64_t n, int64_t count);

/* Elements that are not zero, nor empty strings. */
int64_t sn_nonzero_count(sn_elems x, int64_t n);
/* y [rank][count]: their coordinates, in row-major order; the rank is at most this: */
#define SN_NONZERO_RANK 16
void sn_nonzero_run(sn_elems x, const int64_t *dims, int rank, int64_t *y, int64_t count);

/* Entries that are equal form a group. Groups are numbered in the order of their elements (NaN
 * last, complex numbers by their parts), or in that of their first entries. */
typedef struct sn_unique {
    sn_entries entries;
    bool sorted;
    /* Tables of one number per entry: the order of the entries and another to merge into; the group
     * of an entry; the new number of a group and then its first entry. */
    sn_piece order, merged, group, number;
    sn_workspace workspace;
} sn_unique;
sn_unique sn_unique_plan(sn_entries entries, bool sorted);
/* Finds the groups, keeps them in the workspace and returns how many there are. */
int64_t sn_unique_find(const sn_unique *u, sn_elems x, void *workspace);
/* Of every group its entry (y [outer][groups][inner]), the number of the first one and how many
 * there are; of every entry its group. Each may be NULL. */
void sn_unique_write(const sn_unique *u, sn_elems x, void *workspace, int64_t groups, void *y,
                     int64_t *first, int64_t *inverse, int64_t *counts);

#endif
