/* SPDX-License-Identifier: Apache-2.0 */
/* The attained share is that of the nearest peak, and counts are means per run. */
#include <math.h>

#include "test.h"

#include "synthetic.h"

TEST(the_nearest_peak_decides)
{
    sn_profile p = {.peak_gops = {[SN_ARITH_F32] = 100},
                    .peak_gbps = 10,
                    .caches = {{.bytes = 1e6, .gbps = 200}, {.bytes = 1e8, .gbps = 50}}};
    const char *bound;
    CHECK(sn_prof_attained(&p, 500, 100, 1000, &bound) == 0.5); /* 500 ns at the peak */
    CHECK_STR(bound, "compute");
    CHECK(sn_prof_attained(&p, 0, 1e5, 1000, &bound) == 0.5); /* 100 GB/s from the second level */
    CHECK_STR(bound, "l2");
    CHECK(sn_prof_attained(&p, 0, 1e7, 1e6, &bound) == 0.2);
    CHECK_STR(bound, "l3");
    CHECK(sn_prof_attained(&p, 0, 1e9, 4e8, &bound) == 0.25);
    CHECK_STR(bound, "memory");
    CHECK(sn_prof_attained(&p, 1e9, 1, 1, &bound) == 1); /* noise, not more than possible */
}

TEST(every_arithmetic_has_its_own_peak)
{
    sn_profile p = {.peak_gops = {[SN_ARITH_F32] = 100, [SN_ARITH_BF16_TILES] = 2000}};
    CHECK(sn_prof_peak_ns(&p, SN_ARITH_F32, 1e6) == 1e4);
    CHECK(sn_prof_peak_ns(&p, SN_ARITH_BF16_TILES, 1e6) == 500);
    CHECK(sn_prof_peak_ns(&p, SN_ARITH_NONE, 1e6) == 1e4); /* files of before */
    CHECK(sn_prof_peak_ns(&p, SN_ARITH_I8, 1e6) == -1);
    CHECK(sn_prof_peak_ns(&p, SN_ARITH_I8, 0) == 0);
    CHECK(sn_prof_attained(&p, -1, 1e6, 1e6, NULL) == -1);
}

/* Step 0 is the Conv of 10^6 operations that takes 7 ms a run. */
TEST(rows_of_several_arithmetics_add_up_their_times_at_the_peaks)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    sonde_error err;
    p->peak_gops[SN_ARITH_F32] = 1;
    p->peak_gops[SN_ARITH_I8] = 4;
    p->steps.data[0].arithmetic = SN_ARITH_I8;
    p->steps.data[1].arithmetic = SN_ARITH_F32;
    p->steps.data[1].op_type = "Conv"; /* one row for both */
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    bool found = false;
    for (size_t i = 0; i < s.rows.n; i++) {
        const sn_prof_row *r = &s.rows.data[i];
        char text[SN_ARITH_TEXT];
        if (strcmp(r->name, "Conv") != 0)
            continue;
        found = true;
        const double one = (double)p->steps.data[0].flops, other = (double)p->steps.data[1].flops;
        CHECK_MSG(fabs(r->peak_ns - (one / 4 + other)) < 1, "%g", r->peak_ns);
        CHECK_STR(sn_arithmetic_text(r->arithmetic, text), "f32+i8");
    }
    CHECK(found);
    sn_prof_summary_free(&s);
    p->peak_gops[SN_ARITH_I8] = 0; /* one of the two is not known */
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    for (size_t i = 0; i < s.rows.n; i++)
        if (strcmp(s.rows.data[i].name, "Conv") == 0)
            CHECK(s.rows.data[i].peak_ns == -1 && sn_prof_roofline(p, &s.rows.data[i]) == -1);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(what_was_not_measured_is_not_guessed)
{
    sn_profile none = {.peak_gops = {[SN_ARITH_F32] = 0}, .peak_gbps = 10};
    sn_profile no_memory = {.peak_gops = {[SN_ARITH_F32] = 100},
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
    p->peak_gops[SN_ARITH_F32] = 1;
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
