/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of latencies: bounds from 1 µs to 100 s, five to a factor of ten, the same everywhere and
 * for ever, so that histograms of several processes and times can be added. */
#ifndef SN_BASE_LATENCY_H
#define SN_BASE_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* Buckets 0 … SN_LATENCY_BOUNDS - 1 end at their bound, which belongs to them; the last has what is
 * longer. */
enum { SN_LATENCY_BOUNDS = 41, SN_LATENCY_BUCKETS = SN_LATENCY_BOUNDS + 1 };

extern const uint64_t sn_latency_bounds_ns[SN_LATENCY_BOUNDS];

/* A bound in seconds with no digits that it does not need: "0.0016". */
const char *sn_latency_bound_text(size_t bound);
/* The bucket of a latency. */
size_t sn_latency_bucket(uint64_t ns);

#endif
