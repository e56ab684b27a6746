/* SPDX-License-Identifier: Apache-2.0 */
/* The number of bits says nearly which bucket it is; two short loops put that right. */
#include "base/latency.h"

/* 1, 1.6, 2.5, 4 and 6.3 times powers of ten. */
const uint64_t sn_latency_bounds_ns[SN_LATENCY_BOUNDS] = {
    1000,        1600,        2500,        4000,        6300,        10000,       16000,
    25000,       40000,       63000,       100000,      160000,      250000,      400000,
    630000,      1000000,     1600000,     2500000,     4000000,     6300000,     10000000,
    16000000,    25000000,    40000000,    63000000,    100000000,   160000000,   250000000,
    400000000,   630000000,   1000000000,  1600000000,  2500000000,  4000000000,  6300000000,
    10000000000, 16000000000, 25000000000, 40000000000, 63000000000, 100000000000};

/* The same in seconds. */
const char *sn_latency_bound_text(size_t bound)
{
    static const char *const texts[SN_LATENCY_BOUNDS] = {
        "0.000001", "0.0000016", "0.0000025", "0.000004", "0.0000063", "0.00001", "0.000016",
        "0.000025", "0.00004",   "0.000063",  "0.0001",   "0.00016",   "0.00025", "0.0004",
        "0.00063",  "0.001",     "0.0016",    "0.0025",   "0.004",     "0.0063",  "0.01",
        "0.016",    "0.025",     "0.04",      "0.063",    "0.1",       "0.16",    "0.25",
        "0.4",      "0.63",      "1",         "1.6",      "2.5",       "4",       "6.3",
        "10",       "16",        "25",        "40",       "63",        "100"};
    return bound < SN_LATENCY_BOUNDS ? texts[bound] : "+Inf";
}

size_t sn_latency_bucket(uint64_t ns)
{
    /* 5 · log10(2) = 1.505 bounds to a bit; the first bound has 10 bits. */
    const unsigned bits = ns ? 64 - (unsigned)__builtin_clzll(ns) : 0;
    if (bits < 10)
        return 0;
    size_t k = (bits - 10) * 3 / 2;
    k = k < SN_LATENCY_BOUNDS ? k : SN_LATENCY_BOUNDS;
    while (k > 0 && ns <= sn_latency_bounds_ns[k - 1])
        k--;
    while (k < SN_LATENCY_BOUNDS && ns > sn_latency_bounds_ns[k])
        k++;
    return k;
}
