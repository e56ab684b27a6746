/* SPDX-License-Identifier: Apache-2.0 */
/* Small arithmetic of the drivers: how work is cut. */
#ifndef SN_COMPUTE_SPLIT_H
#define SN_COMPUTE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

static inline int64_t sn_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t sn_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t sn_ceil_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b + (a % b > 0);
}

/* a · b · c · d of sizes that are not negative; -1: it overflows, or one of them was -1 already. */
static inline int64_t sn_count(int64_t a, int64_t b, int64_t c, int64_t d)
{
    if (a < 0 || b < 0 || c < 0 || d < 0 || __builtin_mul_overflow(a, b, &a) ||
        __builtin_mul_overflow(a, c, &a) || __builtin_mul_overflow(a, d, &a))
        return -1;
    return a;
}

/* Where batch number i finds its matrix: dims of the batch, outermost first, and steps in matrices.
 */
static inline int64_t sn_batch_at(const int64_t *dims, const int64_t *steps, int rank, int64_t i)
{
    int64_t at = 0;
    for (int k = rank - 1; k >= 0; k--) {
        at += i % dims[k] * steps[k];
        i /= dims[k];
    }
    return at;
}

/* Rows of x times columns of weights: each part of the rows reads all weights again, each part of
 * the columns all of x. Which are cut to have enough for all threads? */
static inline bool sn_cut_rows(int64_t x_bytes, int64_t w_bytes, size_t l2_bytes)
{
    return w_bytes <= x_bytes || w_bytes <= (int64_t)(l2_bytes / 4);
}

/* How many parts a row of n units is cut into to have about `want` tasks: the weights of a unit
 * come into the cache while the one before it is computed, so a part has a few of them, if there
 * are enough for all threads. */
static inline int64_t sn_unit_parts(int64_t n, int64_t want, int64_t threads)
{
    enum { FEW = 2 };
    return sn_max(sn_min(n, sn_min(want, sn_max(n / FEW, threads))), 1);
}

/* How many tasks, for work that is worth `by_work` of them: as many for each thread. */
static inline int64_t sn_task_count(int64_t by_work, int threads, int64_t most_each)
{
    if (threads <= 1 || by_work <= 1)
        return 1;
    return sn_min(sn_ceil_div(by_work, threads), most_each) * threads;
}

/* Where part k of n things cut into `parts` even ranges begins; k = parts gives n. */
static inline size_t sn_split(size_t n, size_t parts, size_t k)
{
    const size_t rest = n % parts;
    return n / parts * k + (k < rest ? k : rest);
}

/* Tasks of which some, one for each thread, are handed out in pieces, so that threads that are not
 * equally fast end together. A pool gives every thread a range of what it hands out (base/pool.h):
 * pieces are at its end. */
typedef struct sn_ending {
    size_t tasks, cut, pieces; /* of them are cut, into so many pieces each */
} sn_ending;
static inline sn_ending sn_ending_of(int64_t tasks, int threads, int64_t pieces)
{
    const int64_t ranges = sn_min(threads, SN_POOL_RANGES);
    const int64_t cut = ranges > 1 && pieces > 1 ? sn_min(tasks, ranges) : 0;
    return (sn_ending){(size_t)tasks, (size_t)cut, (size_t)(cut ? pieces : 1)};
}
static inline size_t sn_ending_count(const sn_ending *e) /* tasks and pieces */
{
    return e->tasks + e->cut * (e->pieces - 1);
}
/* The task that `index` is all of, or piece *piece of *pieces. */
static inline size_t sn_ending_task(const sn_ending *e, size_t index, size_t *piece, size_t *pieces)
{
    *piece = 0;
    *pieces = 1;
    for (size_t r = 0; r < e->cut; r++) { /* threads are few */
        const size_t last = sn_split(e->tasks, e->cut, r + 1) - 1, more = e->pieces - 1;
        if (index < last + r * more)
            return index - r * more;
        if (index <= last + (r + 1) * more) {
            *piece = index - last - r * more;
            *pieces = e->pieces;
            return last;
        }
    }
    return index;
}

#endif
