/* SPDX-License-Identifier: Apache-2.0 */
/* The attained share is that of the nearest peak, and counts are means per run. */
#include "test.h"

#include "synthetic.h"

TEST(the_nearest_peak_decides)
{
    sn_profile p = {.peak_gflops = 100,
                    .peak_gbps = 10,
                    .caches = {{.bytes = 1e6, .gbps = 200}, {.bytes = 1e8, .gbps = 50}}};
    const char *bound;
    CHECK(sn_prof_attained(&p, 5e4, 100, 1000, &bound) == 0.5); /* 50 GFLOP/s */
    CHECK_STR(bound, "compute");
    CHECK(sn_prof_attained(&p, 0, 1e5, 1000, &bound) == 0.5); /* 100 GB/s from the second level */
    CHECK_STR(bound, "l2");
    CHECK(sn_prof_attained(&p, 0, 1e7, 1e6, &bound) == 0.2);
    CHECK_STR(bound, "l3");
    CHECK(sn_prof_attained(&p, 0, 1e9, 4e8, &bound) == 0.25);
    CHECK_STR(bound, "memory");
    CHECK(sn_prof_attained(&p, 1e9, 1, 1, &bound) == 1); /* noise, not more than possible */
}

TEST(what_was_not_measured_is_not_guessed)
{
    sn_profile none = {.peak_gflops = 0, .peak_gbps = 10};
    sn_profile no_memory = {.peak_gflops = 100,
                            .caches = {{.bytes = 10, .gbps = 20}, {.bytes = 20, .gbps = 5}}};
    const char *bound;
    CHECK(sn_prof_attained(&none, 1, 1, 1, &bound) == -1);
    CHECK_STR(bound, "");
    CHECK(sn_prof_attained(&no_memory, 1, 1, 0, NULL) == -1);
    CHECK(sn_prof_attained(&no_memory, 0, 0, 1, NULL) == -1);
    CHECK(sn_prof_attained(&no_memory, 0, 100, 100, &bound) ==
          0.2); /* the largest cache that is known */
    CHECK_STR(bound, "l3");
}

TEST(rows_hold_counts_and_shares_per_run)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    sonde_error err;
    p->peak_gflops = 1;
    p->steps.data[0].hw = (sn_prof_hw){
        .calls = 2, .cycles = 2e6, .instructions = 5e6, .cache_misses = 40, .branch_misses = 6};
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    for (size_t i = 0; i < s.rows.n; i++) {
        const sn_prof_row *r = &s.rows.data[i];
        if (strcmp(r->name, "Conv") == 0) {
            CHECK(r->hw.calls == 1 && r->hw.cycles == 1e6 && r->hw.instructions == 2.5e6);
            CHECK(r->hw.cache_misses == 20 && r->hw.branch_misses == 3);
            /* 10^6 operations in 7 ms of 1 GFLOP/s */
            CHECK(sn_prof_roofline(p, r) > 0.142 && sn_prof_roofline(p, r) < 0.143);
        } else {
            CHECK(r->hw.calls == 0 && r->hw.cycles == 0);
        }
        if (r->bracket)
            CHECK(sn_prof_roofline(p, r) == -1);
    }
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
