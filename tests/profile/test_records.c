/* SPDX-License-Identifier: Apache-2.0 */
/* Records, inferences and the executor's work as a tree, found by time. */
#include "profile/synthetic.h"
#include "test.h"

/* A model's span, then records three deep with an inference in each, one outside of all. */
static sn_profile *nested(sn_allocator *alloc)
{
    sn_profile *p = syn_profile(alloc);
    syn_span(p, SN_CAT_MODEL, 0, 0, 100 * MS, "tiny");             /* 1 */
    syn_span(p, SN_CAT_USER, 0, 10 * MS, 50 * MS, "a");            /* 2 */
    syn_span(p, SN_CAT_ITERATION, 1, 11 * MS, 2 * MS, "run 0");    /* 3 */
    syn_span(p, SN_CAT_USER, 0, 20 * MS, 30 * MS, "b");            /* 4 */
    syn_span(p, SN_CAT_EXECUTOR, 0, 21 * MS, 5 * MS, "load");      /* 5 */
    syn_span(p, SN_CAT_EXECUTOR, 0, 22 * MS, 1 * MS, "parse");     /* 6 */
    syn_span(p, SN_CAT_USER, 0, 30 * MS, 10 * MS, "c");            /* 7 */
    syn_span(p, SN_CAT_ITERATION, 1, 31 * MS, 9 * MS, "run 1");    /* 8 */
    syn_span(p, SN_CAT_EXECUTOR, 8, 32 * MS, 1 * MS, "body");      /* 9 */
    syn_span(p, SN_CAT_ITERATION, 1, 45 * MS, 1 * MS, "run 2");    /* 10 */
    syn_span(p, SN_CAT_ITERATION, 1, 50 * MS, 1 * MS, "elsewhere") /* 11 */
        ->thread = 1;
    syn_span(p, SN_CAT_ITERATION, 1, 60 * MS, 1 * MS, "run 3"); /* 12 */
    return p;
}

TEST(spans_belong_to_the_innermost_record_of_their_thread)
{
    static const uint32_t parents[] = {0, 0, 2, 2, 4, 5, 4, 7, 8, 4, 1, 1};
    failing_alloc m;
    sn_profile *p = nested(failing_init(&m));
    for (int again = 0; again < 2; again++) { /* what is linked stays */
        CHECK_EQ(sn_profile_link_records(p, NULL), SONDE_OK);
        for (size_t i = 0; i < p->spans.n; i++)
            CHECK_MSG(p->spans.data[i].parent == parents[i], "span %zu has parent %u", i + 1,
                      p->spans.data[i].parent);
    }
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(records_that_overlap_do_not_contain_each_other)
{
    failing_alloc m;
    sn_profile *p = syn_profile(failing_init(&m));
    syn_span(p, SN_CAT_USER, 0, 0, 10 * MS, "first");
    syn_span(p, SN_CAT_USER, 0, 5 * MS, 10 * MS, "second");
    syn_span(p, SN_CAT_ITERATION, 0, 9 * MS, 2 * MS, "run");
    syn_span(p, SN_CAT_USER, 0, 15 * MS, UINT64_MAX, "without end");
    syn_span(p, SN_CAT_USER, 0, 16 * MS, 0, "moment");
    CHECK_EQ(sn_profile_link_records(p, NULL), SONDE_OK);
    CHECK_EQ(p->spans.data[1].parent, 0);
    CHECK_EQ(p->spans.data[2].parent, 2);
    CHECK_EQ(p->spans.data[3].parent, 0);
    CHECK_EQ(p->spans.data[4].parent, 4);
    sn_profile_free(p);
}

TEST(every_failing_allocation_is_told)
{
    failing_alloc m;
    sn_profile *p = nested(failing_init(&m));
    const long live = m.live;
    bool done = false;
    for (long k = 0; !done && k < 100; k++) {
        sonde_error err = {0};
        m.calls = 0;
        m.fail_at = k;
        const sonde_status st = sn_profile_link_records(p, &err);
        m.fail_at = -1;
        done = st == SONDE_OK;
        CHECK(done || st == SONDE_OUT_OF_MEMORY);
        CHECK_EQ(m.live, live);
    }
    CHECK(done);
    sn_profile_free(p);
}

TEST_MAIN()
