/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on samples whose answer is known, and two profiles side by side. */
#include "profile/compare.h"

#include "profile/synthetic.h"
#include "test.h"

enum { MANY = 200 };

/* Times around `at` with noise of that relative size, skewed as times are. */
static void fill(double *to, size_t n, double at, double noise)
{
    for (size_t i = 0; i < n; i++) {
        double u = fabs((double)test_randf());
        to[i] = at * (1 + noise * u * u);
    }
}

/* Nothing else is compared. */
static void compare_alone(const double *a, size_t n, const double *b, size_t m, sn_change *c)
{
    double room[2 * MANY];
    sn_compare_samples(a, n, b, m, SN_COMPARE_ERROR, room, c);
}

static sn_change change_of(size_t n, double old, size_t m, double now, double noise)
{
    double a[MANY], b[MANY];
    sn_change c;
    fill(a, n, old, noise);
    fill(b, m, now, noise);
    compare_alone(a, n, b, m, &c);
    return c;
}

TEST(a_clear_change_is_named_with_its_size)
{
    sn_change c = change_of(MANY, 1000, MANY, 1100, 0.05);
    CHECK_EQ(c.verdict, SN_VERDICT_SLOWER);
    CHECK_MSG(c.low < 1.1 && c.high > 1.09 && c.low > 1.08, "%f … %f", c.low, c.high);
    CHECK(c.p < 1e-6);
    c = change_of(MANY, 1100, MANY, 1000, 0.05);
    CHECK_EQ(c.verdict, SN_VERDICT_FASTER);
    CHECK(c.high < 0.93);
}

TEST(no_change_is_the_same_and_noise_is_unclear)
{
    CHECK_EQ(change_of(MANY, 1000, MANY, 1000, 0.05).verdict, SN_VERDICT_SAME);
    CHECK_EQ(change_of(MANY, 1000, MANY, 1010, 0.01).verdict, SN_VERDICT_SAME); /* 1 %: too small */
    CHECK_EQ(change_of(8, 1000, 8, 1020, 3).verdict, SN_VERDICT_UNCLEAR);
}

TEST(few_samples_say_nothing)
{
    CHECK_EQ(change_of(1, 1000, 1, 2000, 0).verdict, SN_VERDICT_UNCLEAR);
    CHECK_EQ(change_of(4, 1000, MANY, 2000, 0.01).verdict, SN_VERDICT_UNCLEAR);
    CHECK_EQ(change_of(0, 1, MANY, 2000, 0.01).verdict, SN_VERDICT_NEW);
    CHECK_EQ(change_of(MANY, 1000, 0, 1, 0.01).verdict, SN_VERDICT_GONE);
    sn_change c = change_of(3, 1000, 3, 2000, 0);
    CHECK(c.ratio == 2 && c.low == 0 && isinf(c.high));
}

TEST(one_outlier_changes_nothing)
{
    double a[MANY], b[MANY];
    sn_change c;
    fill(a, MANY, 1000, 0.02);
    fill(b, MANY, 1000, 0.02);
    b[7] = 1e9; /* somebody else took the core */
    compare_alone(a, MANY, b, MANY, &c);
    CHECK_EQ(c.verdict, SN_VERDICT_SAME);
}

TEST(clocks_of_whole_microseconds_are_compared)
{
    double a[100], b[100];
    sn_change c;
    for (size_t i = 0; i < 100; i++) {
        a[i] = i % 3 ? 2000 : 3000;
        b[i] = i % 3 ? 2000 : 3000;
    }
    compare_alone(a, 100, b, 100, &c);
    CHECK(c.p > 0.5 && c.ratio == 1);
    for (size_t i = 0; i < 100; i++)
        a[i] = b[i] = 0;
    compare_alone(a, 100, b, 100, &c);
    CHECK_EQ(c.verdict, SN_VERDICT_SAME);
    CHECK(c.p == 1);
}

/* Equal distributions must not be called different often: 1 % by the test's own measure. */
TEST(false_alarms_are_rare)
{
    int alarms = 0;
    for (int round = 0; round < 1000; round++) {
        sn_verdict v = change_of(40, 1000, 40, 1000, 0.3).verdict;
        alarms += v == SN_VERDICT_SLOWER || v == SN_VERDICT_FASTER;
    }
    CHECK_MSG(alarms <= 20, "%d of 1000", alarms);
}

/* The interval of the ratio holds the true one in about 95 of 100 cases. */
TEST(intervals_hold_what_they_promise)
{
    int inside = 0;
    for (int round = 0; round < 1000; round++) {
        sn_change c = change_of(60, 1000, 60, 1250, 0.3);
        inside += c.low <= 1.25 && c.high >= 1.25;
    }
    CHECK_MSG(inside >= 920, "%d of 1000", inside);
}

static const sn_compare_row *row_named(const sn_comparison *c, const char *name)
{
    for (size_t i = 0; i < c->rows.n; i++)
        if (strcmp(c->rows.data[i].name, name) == 0)
            return &c->rows.data[i];
    return NULL;
}

/* Runs of Conv and either MatMul or Gemm. */
static sn_profile *runs(sn_allocator *alloc, size_t n, uint64_t conv_ns, const char *second)
{
    sn_profile *p = syn_profile(alloc);
    uint32_t conv = syn_step(p, "Conv", "conv1", "", ""), other = syn_step(p, second, "fc", "", "");
    for (size_t i = 0; i < n; i++) {
        uint64_t t = i * 20 * MS, wobble = i * 7919 % 1000;
        uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, t, conv_ns + 3 * MS + wobble, "run")->id;
        syn_op(p, it, t + MS, conv_ns + wobble, conv);
        syn_op(p, it, t + MS + conv_ns + wobble, MS, other);
    }
    return p;
}

TEST(profiles_are_compared_row_by_row)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_comparison c;
    failing_init(&m);
    sn_profile *old = runs(&m.a, 30, 4 * MS, "MatMul"), *now = runs(&m.a, 40, 5 * MS, "Gemm");
    CHECK_OK(sn_profile_compare(old, now, SN_BY_OP, &m.a, &c, &err));
    CHECK_EQ(c.old_iterations, 30);
    CHECK_EQ(c.new_iterations, 40);
    const sn_compare_row *conv = row_named(&c, "Conv"), *gone = row_named(&c, "MatMul"),
                         *fresh = row_named(&c, "Gemm");
    CHECK(conv && gone && fresh && row_named(&c, "[Other]"));
    CHECK_EQ(conv->change.verdict, SN_VERDICT_SLOWER);
    CHECK(fabs(conv->change.ratio - 1.25) < 0.001);
    CHECK_EQ(gone->change.verdict, SN_VERDICT_GONE);
    CHECK_EQ(fresh->change.verdict, SN_VERDICT_NEW);
    CHECK(fresh->old_ns == 0 && fresh->new_ns == MS && fresh->new_calls == 1);
    CHECK_EQ(c.total.change.verdict, SN_VERDICT_SLOWER);
    double sum_old = 0, sum_new = 0;
    for (size_t i = 0; i < c.rows.n; i++) {
        sum_old += c.rows.data[i].old_ns;
        sum_new += c.rows.data[i].new_ns;
    }
    CHECK(fabs(sum_old - c.total.old_ns) < 1 && fabs(sum_new - c.total.new_ns) < 1);
    sn_comparison_free(&c);
    CHECK_OK(sn_profile_compare(old, old, SN_BY_NODE, &m.a, &c, &err));
    for (size_t i = 0; i < c.rows.n; i++)
        CHECK_EQ(c.rows.data[i].change.verdict, SN_VERDICT_SAME);
    CHECK_EQ(c.total.change.verdict, SN_VERDICT_SAME);
    sn_comparison_free(&c);
    sn_profile_free(old);
    sn_profile_free(now);
    CHECK_EQ(m.live, 0);
}

/* One convolution, then what else there is, 1 ms each; whatever it is called in the file. */
static sn_profile *steps_of(sn_allocator *alloc, const char *const (*steps)[3], size_t n)
{
    sn_profile *p = syn_profile(alloc);
    for (size_t k = 0; k < n; k++)
        syn_step(p, steps[k][0], steps[k][1], steps[k][2], "");
    for (uint64_t i = 0; i < 10; i++) {
        const uint64_t t = i * 20 * MS;
        const uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, t, (n + 1) * MS, "run")->id;
        for (uint32_t k = 0; k < n; k++)
            syn_op(p, it, t + k * MS, MS, k);
    }
    return p;
}

TEST(what_one_side_did_in_one_step_is_one_row_of_both)
{
    /* Steps with something behind them stand for the nodes add1 and relu1 too. */
    static const char *const plain[][3] = {
        {"Conv", "conv1", ""}, {"Add", "add1", ""}, {"Relu", "relu1", ""}, {"Gemm", "fc", ""}};
    static const char *const fused[][3] = {
        {"[Reorder]", "conv1", ""}, {"Conv", "conv1", "Add+Relu"}, {"Gemm", "fc", ""}};
    failing_alloc m;
    sonde_error err = {0};
    sn_comparison c;
    failing_init(&m);
    sn_profile *old = steps_of(&m.a, plain, 4), *now = steps_of(&m.a, fused, 3);
    for (int swapped = 0; swapped < 2; swapped++) {
        CHECK_OK(sn_profile_compare(swapped ? now : old, swapped ? old : now, SN_BY_NODE, &m.a, &c,
                                    &err));
        const sn_compare_row *row = row_named(&c, "Conv+Add+Relu"), *same = row_named(&c, "Gemm");
        CHECK(row && same && row_named(&c, "[Other]"));
        CHECK_EQ(c.rows.n, 3);
        CHECK_STR(row->op_type, "Conv");
        CHECK_STR(row->example, "conv1, add1, relu1");
        CHECK(row->old_calls == (swapped ? 2 : 3) && row->new_calls == (swapped ? 3 : 2));
        CHECK(fabs(row->old_ns - (swapped ? 2.0 : 3.0) * MS) < 1);
        CHECK_STR(same->example, "fc");
        CHECK_EQ(same->change.verdict, SN_VERDICT_SAME);
        sn_comparison_free(&c);
    }
    sn_profile_free(old);
    sn_profile_free(now);
    CHECK_EQ(m.live, 0);
}

/* A run of two nodes, the second at a place in time of its own. */
static void add_run(sn_profile *p, uint64_t at, uint64_t first_ns, uint64_t second_ns)
{
    const uint64_t wall = first_ns + second_ns + 1000;
    const uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, at, wall, "run")->id;
    syn_op(p, it, at, first_ns, 0);
    syn_op(p, it, at + first_ns, second_ns, 1);
}

static sn_profile *two_nodes(sn_allocator *alloc, const char *boot)
{
    sn_profile *p = syn_profile(alloc);
    syn_step(p, "Conv", "conv1", "", "");
    syn_step(p, "Gemm", "fc", "", "");
    p->boot = boot;
    p->start_mono_ns = 1000000;
    return p;
}

TEST(one_slow_run_makes_no_operator_large)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_comparison c;
    failing_init(&m);
    sn_profile *old = two_nodes(&m.a, ""), *now = two_nodes(&m.a, "");
    for (uint64_t i = 0; i < 50; i++) { /* fc takes 1 % of a run, and 40 ms once */
        add_run(old, i * 100 * MS, 990000 + i * 7919 % 1000, i == 20 ? 40 * MS : 10000 + i % 3);
        add_run(now, i * 100 * MS, 490000 + i * 7919 % 1000, 12000 + i % 3);
    }
    CHECK_OK(sn_profile_compare(old, now, SN_BY_OP, &m.a, &c, &err));
    const sn_compare_row *fc = row_named(&c, "Gemm");
    CHECK(fc && fc->old_ns > 0.4 * c.total.old_ns); /* by means, which add up */
    CHECK_MSG(fc->old_share > 0.009 && fc->old_share < 0.011, "%f", fc->old_share);
    CHECK_EQ(fc->change.verdict, SN_VERDICT_SLOWER);
    CHECK_EQ(c.total.change.verdict, SN_VERDICT_FASTER);
    sn_comparison_free(&c);
    sn_profile_free(old);
    sn_profile_free(now);
}

/* Two profiles of a machine whose clock is low in every second stretch of sixty runs, with turns of
 * `burst` runs of each side. */
static void take_turns(sn_profile *old, sn_profile *now, uint64_t runs, uint64_t burst,
                       double slower)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < 2 * runs; i++) {
        const double level = i / 60 % 2 ? 1.6 : 1;
        const double noise = 1 + 0.01 * fabs((double)test_randf());
        const bool second = (i + burst) / (2 * burst) % 2 != 0; /* OLD NEW NEW OLD */
        const uint64_t conv = (uint64_t)(MS * level * noise * (second ? slower : 1));
        add_run(second ? now : old, at, conv, (uint64_t)(MS / 2 * level));
        at += 4 * MS;
    }
}

TEST(profiles_recorded_in_turns_are_compared_turn_by_turn)
{
    static const uint64_t bursts[] = {1, 3, 5};
    for (size_t k = 0; k < 3; k++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_comparison c;
        failing_init(&m);
        sn_profile *old = two_nodes(&m.a, "boot"), *now = two_nodes(&m.a, "boot");
        take_turns(old, now, 210, bursts[k], 1.15);
        CHECK_OK(sn_profile_compare(old, now, SN_BY_NODE, &m.a, &c, &err));
        const sn_compare_row *conv = row_named(&c, "Conv"), *fc = row_named(&c, "Gemm");
        CHECK_MSG(conv->change.turns >= 20, "%zu turns", conv->change.turns);
        CHECK_EQ(conv->change.verdict, SN_VERDICT_SLOWER);
        CHECK_MSG(conv->change.low > 1.1 && conv->change.high < 1.2, "%f … %f", conv->change.low,
                  conv->change.high);
        CHECK_EQ(fc->change.verdict, SN_VERDICT_SAME);
        sn_comparison_free(&c);
        sn_profile_free(old);
        sn_profile_free(now);
        CHECK_EQ(m.live, 0);
    }
}

TEST(profiles_of_other_times_or_clocks_have_no_turns)
{
    static const struct {
        const char *old, *now;
        uint64_t later; /* that the second began */
    } cases[] = {{"boot", "other", 0}, {"", "", 0}, {"boot", "boot", UINT64_C(1500) * MS}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_comparison c;
        failing_init(&m);
        sn_profile *old = two_nodes(&m.a, cases[k].old), *now = two_nodes(&m.a, cases[k].now);
        take_turns(old, now, 200, 1, 1.15);
        now->start_mono_ns += cases[k].later;
        CHECK_OK(sn_profile_compare(old, now, SN_BY_NODE, &m.a, &c, &err));
        CHECK_EQ(c.total.change.turns, 0);
        CHECK_EQ(row_named(&c, "Gemm")->change.turns, 0);
        sn_comparison_free(&c);
        CHECK_OK(sn_profile_compare(old, old, SN_BY_NODE, &m.a, &c, &err));
        CHECK_EQ(c.total.change.turns, 0); /* a profile took no turns with itself */
        CHECK(c.total.change.ratio == 1 && c.total.change.p == 1);
        sn_comparison_free(&c);
        sn_profile_free(old);
        sn_profile_free(now);
        CHECK_EQ(m.live, 0);
    }
}

/* Of 40 operators that are all the same, about one in two comparisons would name one if each had
 * the whole error for itself. */
TEST(many_rows_of_noise_are_no_more_alarms_than_one)
{
    enum { ROWS = 40, RUNS = 60, TRIES = 60 };
    int alarms = 0;
    for (int n = 0; n < TRIES; n++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_comparison c;
        failing_init(&m);
        sn_profile *sides[2];
        for (int k = 0; k < 2; k++) {
            sides[k] = syn_profile(&m.a);
            for (int r = 0; r < ROWS; r++) {
                char *name = sn_arena_printf(&sides[k]->arena, "node%d", r);
                syn_step(sides[k], "Conv", name, "", "");
            }
            for (uint64_t i = 0; i < RUNS; i++) {
                const uint32_t it =
                    syn_span(sides[k], SN_CAT_ITERATION, 0, i * 100 * MS, 90 * MS, "run")->id;
                for (uint32_t r = 0; r < ROWS; r++) {
                    const double u = (double)test_randf();
                    syn_op(sides[k], it, i * 100 * MS + 2 * r * MS,
                           (uint64_t)(MS * (1 + 0.3 * u * u)), r);
                }
            }
        }
        CHECK_OK(sn_profile_compare(sides[0], sides[1], SN_BY_NODE, &m.a, &c, &err));
        int named = 0;
        for (size_t i = 0; i < c.rows.n; i++)
            named += c.rows.data[i].change.verdict == SN_VERDICT_SLOWER ||
                     c.rows.data[i].change.verdict == SN_VERDICT_FASTER;
        alarms += named > 0;
        sn_comparison_free(&c);
        sn_profile_free(sides[0]);
        sn_profile_free(sides[1]);
    }
    CHECK_MSG(alarms <= TRIES / 20, "%d of %d", alarms, TRIES);
}

TEST(a_node_that_another_program_calls_after_its_output_is_found)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_comparison c;
    failing_init(&m);
    for (int swapped = 0; swapped < 2; swapped++) {
        static const char *const ours[][3] = {{"Conv", "conv1", "Relu"}, {"Gemm", "fc", ""}};
        static const char *const theirs[][3] = {{"Conv", "features", ""}, {"Gemm", "fc", ""}};
        static const char *const split[][3] = {{"Conv", "conv1_output_0", ""}, {"Gemm", "fc", ""}};
        sn_profile *own = steps_of(&m.a, ours, 2), *other = steps_of(&m.a, theirs, 2);
        sn_profile *exported = steps_of(&m.a, split, 2);
        sn_prof_tensor value = syn_tensor(own, "features", "f32", 0, NULL);
        other->record_ns = exported->record_ns = NAN;
        own->steps.data[0].outputs = &value;
        own->steps.data[0].n_outputs = 1;
        for (int k = 0; k < 2; k++) { /* by the value it makes, and as exporters call that */
            sn_profile *const named = k ? exported : other;
            CHECK_OK(sn_profile_compare(swapped ? named : own, swapped ? own : named, SN_BY_NODE,
                                        &m.a, &c, &err));
            const sn_compare_row *row = row_named(&c, "Conv+Relu");
            CHECK_EQ(c.rows.n, 3);
            CHECK(row && row->old_calls == 1 && row->new_calls == 1);
            CHECK_STR(row->example, "conv1, add1, relu1"); /* the value is no node */
            sn_comparison_free(&c);
        }
        sn_profile_free(own);
        sn_profile_free(other);
        sn_profile_free(exported);
    }
    CHECK_EQ(m.live, 0);
}

TEST(a_profile_without_runs_cannot_be_compared)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_comparison c;
    failing_init(&m);
    sn_profile *none = syn_profile(&m.a), *some = syn_tiny(&m.a);
    CHECK_EQ(sn_profile_compare(none, some, SN_BY_OP, &m.a, &c, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sn_profile_compare(some, none, SN_BY_OP, &m.a, &c, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "no measured run");
    sn_profile_free(none);
    sn_profile_free(some);
    CHECK_EQ(m.live, 0);
}

TEST(every_failing_allocation_of_a_comparison_is_told)
{
    failing_alloc m;
    failing_init(&m);
    sn_profile *old = runs(&m.a, 10, 4 * MS, "MatMul"), *now = syn_tiny(&m.a);
    long live = m.live;
    for (long fail = 0; fail < 100000; fail++) {
        sonde_error err = {0};
        sn_comparison c;
        m.calls = 0;
        m.fail_at = fail;
        sonde_status st = sn_profile_compare(old, now, SN_BY_NODE, &m.a, &c, &err);
        if (st == SONDE_OK)
            sn_comparison_free(&c);
        CHECK_EQ(m.live, live);
        if (st == SONDE_OK)
            break;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
    sn_profile_free(old);
    sn_profile_free(now);
}

TEST_MAIN()
