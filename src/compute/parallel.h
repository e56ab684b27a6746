/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a range of equal pieces of work over the threads of a pool. */
#ifndef SN_COMPUTE_PARALLEL_H
#define SN_COMPUTE_PARALLEL_H

#include "base/pool.h"

/* Runs fn(arg, lo, hi) over [0, n) in pieces: several at once when n * cost is large. */
typedef void (*sn_range_fn)(void *arg, size_t lo, size_t hi);
void sn_parallel_range(sn_pool *pool, size_t n, size_t cost, sn_range_fn fn, void *arg);

#endif
