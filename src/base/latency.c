/* SPDX-License-Identifier: Apache-2.0 */
/* The number of bits says nearly which bucket it is; two short loops put that right. */
#include "base/latency.h"

/* Nanoseconds, and the same in seconds: 1, 1.6, 2.5, 4 and 6.3 times powers of ten. */
#define BOUNDS(BOUND)                                                                              \
    BOUND(1000, "0.000001")                                                                        \
    BOUND(1600, "0.0000016")                                                                       \
    BOUND(2500, "0.0000025")                                                                       \
    BOUND(4000, "0.000004") BOUND(6300, "0.0000063") BOUND(10000, "0.00001")                       \
        BOUND(16000, "0.000016") BOUND(25000, "0.000025") BOUND(40000, "0.00004")                  \
            BOUND(63000, "0.000063") BOUND(100000, "0.0001") BOUND(160000, "0.00016")              \
                BOUND(250000, "0.00025") BOUND(400000, "0.0004") BOUND(630000, "0.00063") BOUND(   \
                    1000000, "0.001") BOUND(1600000, "0.0016") BOUND(2500000, "0.0025")            \
                    BOUND(4000000, "0.004") BOUND(6300000, "0.0063") BOUND(10000000, "0.01")       \
                        BOUND(16000000, "0.016") BOUND(25000000, "0.025") BOUND(40000000, "0.04")  \
                            BOUND(63000000, "0.063") BOUND(100000000, "0.1")                       \
                                BOUND(160000000, "0.16") BOUND(250000000, "0.25")                  \
                                    BOUND(400000000, "0.4") BOUND(630000000, "0.63")               \
                                        BOUND(1000000000, "1") BOUND(1600000000, "1.6")            \
                                            BOUND(2500000000, "2.5") BOUND(4000000000, "4")        \
                                                BOUND(6300000000, "6.3") BOUND(10000000000, "10")  \
                                                    BOUND(16000000000, "16")                       \
                                                        BOUND(25000000000, "25")                   \
                                                            BOUND(40000000000, "40")               \
                                                                BOUND(63000000000, "63")           \
                                                                    BOUND(100000000000, "100")

const uint64_t sn_latency_bounds_ns[SN_LATENCY_BOUNDS] = {
#define BOUND(ns, text) ns,
    BOUNDS(BOUND)
#undef BOUND
};

const char *sn_latency_bound_text(size_t bound)
{
    static const char *const texts[SN_LATENCY_BOUNDS] = {
#define BOUND(ns, text) text,
        BOUNDS(BOUND)
#undef BOUND
    };
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
