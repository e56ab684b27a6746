/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of latencies against a search from the front. */
#include "base/latency.h"
#include "test.h"

static size_t searched(uint64_t ns)
{
    size_t k = 0;
    while (k < SN_LATENCY_BOUNDS && ns > sn_latency_bounds_ns[k])
        k++;
    return k;
}

TEST(every_latency_is_in_the_first_bucket_that_holds_it)
{
    for (uint64_t ns = 0; ns < 20000; ns++)
        CHECK_MSG(sn_latency_bucket(ns) == searched(ns), "%llu ns", (unsigned long long)ns);
    for (size_t k = 0; k < SN_LATENCY_BOUNDS; k++)
        for (int d = -1; d <= 1; d++) {
            const uint64_t ns = sn_latency_bounds_ns[k] + (uint64_t)(int64_t)d;
            CHECK_MSG(sn_latency_bucket(ns) == searched(ns), "%llu ns", (unsigned long long)ns);
        }
    for (int i = 0; i < 100000; i++) {
        const uint64_t ns = test_rand() >> (test_rand() % 64);
        CHECK_MSG(sn_latency_bucket(ns) == searched(ns), "%llu ns", (unsigned long long)ns);
    }
    CHECK_EQ(sn_latency_bucket(UINT64_MAX), SN_LATENCY_BOUNDS);
}

TEST(bounds_grow_and_their_texts_are_the_same_numbers)
{
    for (size_t k = 0; k < SN_LATENCY_BOUNDS; k++) {
        const double seconds = strtod(sn_latency_bound_text(k), NULL);
        CHECK_MSG(fabs(seconds * 1e9 - (double)sn_latency_bounds_ns[k]) < 1e-3, "%s is not %llu ns",
                  sn_latency_bound_text(k), (unsigned long long)sn_latency_bounds_ns[k]);
        if (k)
            CHECK(sn_latency_bounds_ns[k] > sn_latency_bounds_ns[k - 1] * 3 / 2);
    }
    CHECK_EQ(sn_latency_bounds_ns[0], 1000);
    CHECK_EQ(sn_latency_bounds_ns[SN_LATENCY_BOUNDS - 1], 100000000000LL);
    CHECK_STR(sn_latency_bound_text(SN_LATENCY_BOUNDS), "+Inf");
}

TEST_MAIN()
