/* SPDX-License-Identifier: Apache-2.0 */
/* The promises every profile keeps, broken one by one. */
#include <math.h>

#include "profile/synthetic.h"
#include "test.h"

static sn_profile *whole(sn_allocator *alloc)
{
    sn_profile *p = syn_tiny(alloc);
    const sn_prof_life life = {1, 0, 1, "y", 64, 4096, SN_LIFE_ARENA};
    const sn_prof_counter counter = {5, SN_COUNTER_USED, 12.5, 0};
    if (!sn_vec_push(&p->lives, alloc, life) || !sn_vec_push(&p->lives, alloc, life) ||
        !sn_vec_push(&p->counters, alloc, counter))
        abort();
    return p;
}

/* Breaks one promise; the sentence says what is wrong. */
typedef struct breach {
    void (*make)(sn_profile *p);
    const char *said;
} breach;

#define BREACH(name, change)                                                                       \
    static void name(sn_profile *p)                                                                \
    {                                                                                              \
        change;                                                                                    \
    }
BREACH(life_backwards, p->lives.data[0].first = 7)
BREACH(life_without_end, p->lives.data[0].last = UINT32_MAX)
BREACH(life_too_large, p->lives.data[1].bytes = UINT64_MAX)
BREACH(lives_too_large, p->lives.data[0].bytes = p->lives.data[1].bytes = SN_PROF_MAX_COUNT)
BREACH(life_too_far, p->lives.data[0].offset = UINT64_MAX)
BREACH(life_nowhere, p->lives.data[0].place = (sn_prof_place)4)
BREACH(life_nameless, p->lives.data[0].name = NULL)
BREACH(span_thread, p->spans.data[2].thread = 2)
BREACH(span_step, p->spans.data[1].step = 2)
BREACH(span_step_of_none, p->spans.data[0].step = 0)
BREACH(span_category, p->spans.data[1].cat = SN_CAT_COUNT)
BREACH(span_order, p->spans.data[3].start_ns = 0)
BREACH(span_late, p->spans.data[p->spans.n - 1].start_ns = UINT64_MAX)
BREACH(span_long, p->spans.data[1].dur_ns = UINT64_MAX)
BREACH(span_twice, p->spans.data[1].id = p->spans.data[2].id)
BREACH(span_zero, p->spans.data[1].id = 0)
BREACH(span_parent_later, p->spans.data[1].parent = p->spans.data[2].id)
BREACH(span_parent_itself, p->spans.data[1].parent = p->spans.data[1].id)
BREACH(span_parent_unknown, p->spans.data[1].parent = 12345)
BREACH(span_nameless, p->spans.data[1].name = NULL)
BREACH(no_thread, p->threads_seen.n = 0)
BREACH(thread_nameless, p->threads_seen.data[1].name = NULL)
BREACH(counter_infinite, p->counters.data[0].value = INFINITY)
BREACH(counter_step, p->counters.data[0].step = 2)
BREACH(counter_late, p->counters.data[0].at_ns = UINT64_MAX)
BREACH(step_nameless, p->steps.data[1].kernel = NULL)
BREACH(step_flops, p->steps.data[1].flops = UINT64_MAX)
BREACH(step_counts, p->steps.data[1].hw.calls = 5e-324)
BREACH(step_cycles, p->steps.data[1].hw.cycles = NAN)
BREACH(tensor_rank, ((sn_prof_tensor *)(uintptr_t)p->steps.data[1].inputs)->rank = -2)
BREACH(tensor_dims, ((sn_prof_tensor *)(uintptr_t)p->steps.data[1].inputs)->dims = NULL)
BREACH(tensor_zeros, ((sn_prof_tensor *)(uintptr_t)p->steps.data[1].inputs)->zeros = 1.5)
BREACH(fact_missing, p->cpu_model = NULL)
BREACH(fact_negative, p->threads = -1)
BREACH(fact_large, p->memory.rss = UINT64_MAX)
BREACH(fact_rate, p->peak_gbps = INFINITY)
BREACH(fact_cost, p->record_ns = -1)
BREACH(fact_categories, p->categories = 1u << SN_CAT_COUNT)

static const breach breaches[] = {
    {life_backwards, "value 0 of the memory table is produced by step 7 but last used by step 1"},
    {life_without_end, "last used by step 4294967295"},
    {life_too_large, "value 1 of the memory table has 18446744073709551615 bytes"},
    {lives_too_large, "value 1 of the memory table"},
    {life_too_far, "at offset 18446744073709551615"},
    {life_nowhere, "value 0 has an unknown location"},
    {life_nameless, "a string of value 0"},
    {span_thread, "span 2 refers to thread 2, but there are 2 threads"},
    {span_step, "span 1 refers to step 2, but there are 2 steps"},
    {span_step_of_none, "span 0 refers to step 0"},
    {span_category, "span 1 has no known category"},
    {span_order, "span 3 starts before the one before it"},
    {span_late, "times of span"},
    {span_long, "times of span 1"},
    {span_twice, "two spans have the id 3"},
    {span_zero, "two spans have the id 0"},
    {span_parent_later, "the parent of span 1 does not come before it"},
    {span_parent_itself, "the parent of span 1 does not come before it"},
    {span_parent_unknown, "the parent of span 1 does not come before it"},
    {span_nameless, "a string of span 1"},
    {no_thread, "there are no threads"},
    {thread_nameless, "a string of thread 1"},
    {counter_infinite, "counter 0"},
    {counter_step, "counter 0"},
    {counter_late, "counter 0"},
    {step_nameless, "a string of step 1"},
    {step_flops, "a number of step 1"},
    {step_counts, "a number of step 1"},
    {step_cycles, "a number of step 1"},
    {tensor_rank, "a tensor of step 1"},
    {tensor_dims, "a tensor of step 1"},
    {tensor_zeros, "a tensor of step 1"},
    {fact_missing, "a string in the header data"},
    {fact_negative, "a number in the header data is negative"},
    {fact_large, "a number in the header data is 18446744073709551615"},
    {fact_rate, "a rate in the header data is inf"},
    {fact_cost, "a rate in the header data is -1"},
    {fact_categories, "the set of categories is 0x100"},
};

TEST(a_whole_profile_passes)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = whole(failing_init(&m));
    CHECK_OK(sn_profile_check(p, &err));
    p->record_ns = NAN; /* another program's: not known */
    CHECK_OK(sn_profile_check(p, &err));
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(every_broken_promise_is_named)
{
    for (size_t k = 0; k < sizeof breaches / sizeof breaches[0]; k++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_profile *p = whole(failing_init(&m));
        breaches[k].make(p);
        CHECK_EQ(sn_profile_check(p, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, breaches[k].said);
        sn_profile_free(p);
        CHECK_EQ(m.live, 0);
    }
}

/* Three times the longest time in one parent is more than 64 bits hold. */
TEST(own_times_stay_right_where_children_claim_more_than_time_holds)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    const uint32_t step = syn_step(p, "If", "if", "", "");
    const uint32_t run = syn_span(p, SN_CAT_ITERATION, 0, 0, SN_PROF_MAX_NS, "Iteration0")->id;
    const uint32_t outer = syn_op(p, run, 0, SN_PROF_MAX_NS, step);
    for (int k = 0; k < 16; k++)
        syn_op(p, outer, 1, SN_PROF_MAX_NS, step);
    CHECK_OK(sn_profile_check(p, &err));
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_EQ(s.iterations, 1);
    CHECK_STR(s.rows.data[0].name, "If");
    CHECK(s.rows.data[0].mean_ns == 16 * (double)SN_PROF_MAX_NS); /* the outer one's own is 0 */
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(elements_of_absurd_shapes_are_counted_without_infinities)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    const uint32_t step = syn_step(p, "Add", "add", "", "");
    int64_t dims[40];
    for (int d = 0; d < 40; d++)
        dims[d] = INT64_MAX;
    sn_prof_tensor *in = (sn_prof_tensor *)(uintptr_t)p->steps.data[step].inputs;
    in[0] = syn_tensor(p, "x", "f32", 40, dims);
    dims[39] = 0;
    in[1] = syn_tensor(p, "y", "f32", 40, dims);
    const uint32_t run = syn_span(p, SN_CAT_ITERATION, 0, 0, 2 * MS, "Iteration0")->id;
    syn_op(p, run, 0, MS, step);
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK(s.rows.data[0].input_elems == (double)SN_PROF_MAX_COUNT ||
          s.rows.data[1].input_elems == (double)SN_PROF_MAX_COUNT);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
