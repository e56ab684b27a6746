/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies of single runs: what follows from them, and how they are kept. */
#include <math.h>

#include "history/history.h"

enum { FEWEST = 6 }; /* of fewer samples no two enclose the median with 95 % confidence */

void sn_history_figures_of(double *samples, size_t n, sn_history_figures *out)
{
    sn_prof_stats_of(samples, n, &out->stats);
    out->low = out->high = out->stats.p50;
    if (n < FEWEST)
        return;
    /* The binomial distribution of how many lie below the median, as a normal one. */
    const double below = floor(((double)n + 1) / 2 - 0.98 * sqrt((double)n) + 0.5);
    const size_t c = below < 1 ? 1 : (size_t)below;
    out->low = samples[c - 1];
    out->high = samples[n - c];
}

/* ------------------------------------------------------------------ packing
 * Seven bits a byte, the lowest first; differences alternate between the signs: 0, -1, 1, -2 … */

static bool put(sn_history_bytes *out, uint64_t v, sn_allocator *alloc)
{
    do {
        const uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        if (!sn_vec_push(out, alloc, byte))
            return false;
        v >>= 7;
    } while (v);
    return true;
}

static int64_t whole_ns(double ns)
{
    return ns > 0 ? ns < 0x1p60 ? (int64_t)llround(ns) : INT64_C(1) << 60 : 0;
}

sonde_status sn_history_pack(const double *samples, size_t n, sn_allocator *alloc,
                             sn_history_bytes *out, size_t *kept, sonde_error *err)
{
    int64_t before = 0;
    *out = (sn_history_bytes){0};
    *kept = n < SN_HISTORY_SAMPLES ? n : SN_HISTORY_SAMPLES;
    for (size_t i = 0; i < *kept; i++) {
        const size_t at = *kept == n ? i : (size_t)((double)i * (double)n / (double)*kept);
        const int64_t ns = whole_ns(samples[at < n ? at : n - 1]), d = ns - before;
        before = ns;
        if (!put(out, d < 0 ? ((uint64_t)(-(d + 1)) << 1) + 1 : (uint64_t)d << 1, alloc)) {
            sn_vec_free(out, alloc);
            return sn_fail_memory(err, *kept);
        }
    }
    return SONDE_OK;
}

static sonde_status not_packed(sonde_error *err)
{
    return sn_fail(err, SONDE_INVALID_FORMAT, "the samples of an entry are damaged");
}

sonde_status sn_history_unpack(const void *data, size_t bytes, sn_allocator *alloc,
                               sn_history_samples *out, sonde_error *err)
{
    const uint8_t *p = data, *end = p + bytes;
    int64_t before = 0;
    *out = (sn_history_samples){0};
    while (p < end) {
        uint64_t v = 0;
        int shift = 0;
        for (; p < end && *p & 0x80 && shift < 63; shift += 7)
            v |= (uint64_t)(*p++ & 0x7f) << shift;
        if (p == end || *p & 0x80 || shift >= 63)
            return not_packed(err);
        v |= (uint64_t)*p++ << shift;
        const int64_t d = v & 1 ? -(int64_t)(v >> 1) - 1 : (int64_t)(v >> 1);
        if (!sn_i64_add(before, d, &before) || before < 0 || out->n >= SN_HISTORY_SAMPLES)
            return not_packed(err);
        if (!sn_vec_push(out, alloc, (double)before))
            return sn_fail_memory(err, sizeof(double));
    }
    return SONDE_OK;
}
