/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles made for one trouble each: a check speaks above its threshold, with the right figures,
 * and is silent below it. */
#include "findings/findings.h"
#include "profile/synthetic.h"
#include "test.h"

typedef struct made {
    failing_alloc m;
    sn_profile *p;
    sn_findings f;
    uint64_t t; /* where the next run begins */
} made;

static void begin(made *x)
{
    *x = (made){.t = 0};
    x->p = syn_profile(failing_init(&x->m));
    x->p->record_ns = 0;
}

static bool look(made *x)
{
    sonde_error err = {0};
    const bool fine = sn_findings_of(x->p, &x->f, &err) == SONDE_OK;
    if (!fine)
        fprintf(stderr, "%s\n", err.message);
    return fine;
}

static const sonde_finding *get(const made *x, const char *topic)
{
    for (size_t i = 0; i < x->f.list.n; i++)
        if (strcmp(x->f.list.data[i].topic, topic) == 0)
            return &x->f.list.data[i];
    return NULL;
}

/* What following the remedy may gain, in percent of a run. */
static int gain(const made *x, const char *topic)
{
    const sonde_finding *f = get(x, topic);
    return f ? (int)(x->f.gains.data[f - x->f.list.data] * 100 + 0.5) : -1;
}

static long end(made *x)
{
    sn_findings_free(&x->f);
    sn_profile_free(x->p);
    return x->m.live;
}

/* A run of `ns` in which the step takes `op_ns`; 1 ms later the next one begins. Returns the id of
 * the operator's span. */
static uint32_t add_run(made *x, uint64_t ns, uint32_t step, uint64_t op_ns, bool warmup)
{
    sn_prof_span *run = syn_span(x->p, SN_CAT_ITERATION, 0, x->t, ns, "run");
    run->warmup = warmup;
    run->run = 1;
    const uint32_t id = run->id, op = syn_op(x->p, id, x->t, op_ns, step);
    x->p->spans.data[x->p->spans.n - 1].warmup = warmup;
    x->t += ns + MS;
    return op;
}

static void add_life(made *x, uint32_t first, uint32_t last, uint64_t offset, uint64_t bytes)
{
    const sn_prof_life l = {.table = 1,
                            .first = first,
                            .last = last,
                            .name = "v",
                            .offset = offset,
                            .bytes = bytes,
                            .place = SN_LIFE_ARENA};
    if (!sn_vec_push(&x->p->lives, x->p->alloc, l))
        abort();
}

#define CHECK_NONE(x, topic)                                                                       \
    CHECK_MSG(!get((x), (topic)), "found \"%s\"", get((x), (topic))->finding)
#define CHECK_FOUND(x, topic, weight, said)                                                        \
    do {                                                                                           \
        CHECK_MSG(get((x), (topic)), "nothing about %s", (topic));                                 \
        CHECK_STR(get((x), (topic))->finding, (said));                                             \
        CHECK_EQ(get((x), (topic))->severity, (weight));                                           \
    } while (0)

/* Ten runs of 10 ms; in one of them a transpose that takes 1 % is interrupted for a second. */
TEST(one_slow_run_makes_no_finding)
{
    made x;
    begin(&x);
    sn_profile_free(x.p);
    x.p = syn_profile(&x.m.a);
    const uint32_t conv = syn_step(x.p, "Conv", "conv1", "", "f32_conv1x1_avx2");
    const uint32_t turn = syn_step(x.p, "Transpose", "turn", "", "");
    for (uint64_t i = 0, at = 0; i < 10; i++) {
        const uint64_t slow = i == 4 ? 1000 * MS : MS / 10;
        const uint32_t it = syn_span(x.p, SN_CAT_ITERATION, 0, at, 99 * MS / 10 + slow, "run")->id;
        syn_op(x.p, it, at, 99 * MS / 10, conv);
        syn_op(x.p, it, at + 99 * MS / 10, slow, turn);
        at += 2000 * MS;
    }
    CHECK(look(&x));
    CHECK_HAS(get(&x, "operators")->finding, "a run of 2 steps takes 10.000 ms (mean 109.990 ms");
    CHECK_STR(get(&x, "operators")->evidence, "Conv 99.0 %, Transpose 1.0 %");
    CHECK_NONE(&x, "layout"); /* by means transposes take 91 % */
    CHECK_EQ(end(&x), 0);
}

TEST(the_operators_that_take_the_time_come_first)
{
    made x;
    begin(&x);
    sn_profile_free(x.p);
    x.p = syn_tiny(&x.m.a);
    CHECK(look(&x));
    CHECK_STR(x.f.list.data[0].topic, "operators");
    CHECK_FOUND(&x, "operators", SONDE_GOOD,
                "a run of 2 steps takes 11.000 ms (mean 11.000 ms, p99 11.980 ms)");
    CHECK_STR(get(&x, "operators")->evidence, "Conv 63.6 %, MatMul 18.2 %");
    CHECK_FOUND(&x, "overhead", SONDE_NOTE, "13.6 % of the time is spent between operators");
    CHECK_STR(get(&x, "overhead")->evidence, "[Other] is 1.500 ms per run for 2 steps");
    CHECK_NONE(&x, "allocation"); /* 4.5 % */
    CHECK_FOUND(&x, "roofline", SONDE_NOTE, "the percentage of the machine's peak is unknown");
    CHECK_NONE(&x, "kernels");
    CHECK_NONE(&x, "spread");
    CHECK_NONE(&x, "first run");
    CHECK_EQ(end(&x), 0);
}

TEST(nothing_is_found_where_nothing_was_measured)
{
    made x;
    begin(&x);
    x.p->dropped = 3;
    add_run(&x, 10 * MS, syn_step(x.p, "Conv", "c", "", "f32_conv_ref"), 9 * MS, true);
    CHECK(look(&x));
    CHECK_EQ(x.f.list.n, 0);
    CHECK_EQ(end(&x), 0);
}

TEST(plain_kernels_transposes_and_steps_that_were_not_fused_are_named_with_their_shares)
{
    made x;
    begin(&x);
    const uint32_t conv = syn_step(x.p, "Conv", "c", "", "f32_conv_ref");
    const uint32_t turn = syn_step(x.p, "Transpose", "t", "", "copy");
    const uint32_t relu = syn_step(x.p, "Relu", "r", "", "f32_relu_avx2");
    const uint32_t run = syn_span(x.p, SN_CAT_ITERATION, 0, 0, 100 * MS, "run")->id;
    syn_op(x.p, run, 0, 50 * MS, conv);
    syn_op(x.p, run, 50 * MS, 30 * MS, turn);
    syn_op(x.p, run, 80 * MS, 20 * MS, relu);
    x.p->steps.data[turn].dynamic = true;
    CHECK(look(&x));
    CHECK_FOUND(&x, "kernels", SONDE_SLOW, "50.0 % of the time is spent in plain C kernels");
    CHECK_STR(get(&x, "kernels")->evidence, "f32_conv_ref 50.0 %");
    CHECK_FOUND(&x, "layout", SONDE_SLOW, "30.0 % of the time is spent in transposes");
    CHECK_FOUND(&x, "fusion", SONDE_NOTE,
                "20.0 % of the time is spent in elementwise operators that were not fused");
    CHECK_HAS(get(&x, "fusion")->remedy, "--no-optimize");
    CHECK_FOUND(&x, "shapes", SONDE_SLOW,
                "1 steps have data-dependent shapes (30.0 % of the time)");
    CHECK_STR(get(&x, "shapes")->evidence, "t 30.0 %");
    CHECK_NONE(&x, "overhead");
    CHECK_EQ(x.f.gains.n, x.f.list.n);
    CHECK_EQ(gain(&x, "kernels"), 50);
    CHECK_EQ(gain(&x, "layout"), 30);
    CHECK_EQ(gain(&x, "fusion"), 20);
    CHECK_EQ(gain(&x, "operators"), 0); /* nothing is wrong there */
    CHECK_EQ(end(&x), 0);
}

TEST(remedies_for_another_programs_profile_do_not_name_options_of_sonde)
{
    made x;
    begin(&x);
    x.p->record_ns = NAN;
    const uint32_t step = syn_step(x.p, "Relu", "r", "", "");
    for (int k = 0; k < 6; k++)
        add_run(&x, k ? 10 * MS : 80 * MS, step, 9 * MS, false);
    CHECK(look(&x));
    CHECK_NONE(&x, "roofline");
    CHECK(get(&x, "fusion") && !strstr(get(&x, "fusion")->remedy, "--no-optimize"));
    CHECK(get(&x, "first run") && !strstr(get(&x, "first run")->remedy, "-w"));
    CHECK_EQ(end(&x), 0);
}

TEST(operators_are_held_against_the_peaks_of_the_machine)
{
    made x;
    begin(&x);
    x.p->peak_gops[SN_ARITH_F32] = 100;
    x.p->peak_gbps = 10;
    const uint32_t slow = syn_step(x.p, "Conv", "slow", "", "");
    const uint32_t copy = syn_step(x.p, "Concat", "copy", "", "");
    x.p->steps.data[slow].arithmetic = SN_ARITH_F32; /* 10 µs of 5 ms at the peak */
    x.p->steps.data[copy].flops = 0;
    x.p->steps.data[copy].bytes = 40 * MS; /* 4 ms of 5 ms */
    const uint32_t run = syn_span(x.p, SN_CAT_ITERATION, 0, 0, 10 * MS, "run")->id;
    syn_op(x.p, run, 0, 5 * MS, slow);
    syn_op(x.p, run, 5 * MS, 5 * MS, copy);
    CHECK(look(&x));
    CHECK_FOUND(&x, "roofline", SONDE_NOTE,
                "50.0 % of the time is spent in operators below 20 % of the machine's peak");
    CHECK_STR(get(&x, "roofline")->evidence, "slow 50.0 %");
    CHECK_FOUND(&x, "bandwidth", SONDE_NOTE,
                "50.0 % of the time is limited by memory bandwidth, not by arithmetic");
    CHECK_STR(get(&x, "bandwidth")->evidence, "Concat 50.0 %");
    CHECK_EQ(end(&x), 0);
}

TEST(halves_that_are_widened_are_found_unless_others_are_multiplied)
{
    for (int tiles = 0; tiles < 2; tiles++) {
        made x;
        begin(&x);
        const uint32_t a = syn_step(x.p, "Gemm", "g", "", "");
        sn_prof_tensor *in = SN_NEW_N(&x.p->arena, sn_prof_tensor, 1);
        *in = syn_tensor(x.p, "x", "f16", 0, NULL);
        x.p->steps.data[a].inputs = in;
        x.p->steps.data[a].n_inputs = 1;
        x.p->steps.data[a].arithmetic = SN_ARITH_F32;
        add_run(&x, 10 * MS, a, 9 * MS, false);
        if (tiles) {
            const uint32_t b = syn_step(x.p, "Conv", "c", "", "");
            x.p->steps.data[b].arithmetic = SN_ARITH_F16_TILES;
            add_run(&x, 10 * MS, b, 1 * MS, false);
        }
        CHECK(look(&x));
        if (tiles)
            CHECK_NONE(&x, "types");
        else
            CHECK_FOUND(&x, "types", SONDE_SLOW,
                        "90.0 % of the time is spent on 16-bit floats, which are computed in f32");
        CHECK_EQ(end(&x), 0);
    }
}

TEST(only_the_first_few_names_are_said_and_an_empty_one_is_said_to_be_so)
{
    made x;
    begin(&x);
    const uint32_t run = syn_span(x.p, SN_CAT_ITERATION, 0, 0, 60 * MS, "run")->id;
    for (uint32_t k = 0; k < 6; k++) {
        static const char *const names[] = {"", "a\x1b[2J", "b", "c", "d", "e"};
        const uint32_t step = syn_step(x.p, k ? "Conv" : "", names[k], "", "");
        x.p->steps.data[step].dynamic = true;
        syn_op(x.p, run, k * 10 * MS, (10 - k) * MS, step);
    }
    CHECK(look(&x));
    CHECK_HAS(get(&x, "shapes")->finding, "6 steps have data-dependent shapes (75.0 %");
    /* Names are as the model has them. */
    CHECK_STR(get(&x, "shapes")->evidence,
              "(unnamed) 16.7 %, a\x1b[2J 15.0 %, b 13.3 %, c 11.7 % and more");
    CHECK_EQ(end(&x), 0);
}

TEST(runs_that_vary_are_found)
{
    made x;
    begin(&x);
    const uint32_t step = syn_step(x.p, "Conv", "c", "", "");
    for (int k = 0; k < 10; k++)
        add_run(&x, k == 5 ? 30 * MS : 10 * MS, step, 10 * MS, false);
    CHECK(look(&x));
    CHECK_FOUND(&x, "spread", SONDE_NOTE,
                "the slowest 1 % of runs take at least 2.8 times the median");
    CHECK_STR(get(&x, "spread")->evidence, "median 10.000 ms, p99 28.200 ms");
    CHECK_EQ(end(&x), 0);
}

/* 30 runs; the last ten take `percent` more, or run `other` instead. */
static bool drift(made *x, unsigned percent, bool other)
{
    begin(x);
    const uint32_t step = syn_step(x->p, "Conv", "c", "", "");
    const uint32_t another = syn_step(x->p, "Conv", "c", "", "");
    for (unsigned k = 0; k < 30; k++) {
        const uint64_t ns = 10 * MS + k % 3 * 1000 + (k >= 20 ? percent * MS / 10 : 0);
        add_run(x, ns, k >= 20 && other ? another : step, ns, false);
    }
    return look(x);
}

TEST(runs_that_get_slower_are_found_if_they_do_the_same)
{
    made x;
    CHECK(drift(&x, 20, false));
    CHECK_FOUND(&x, "drift", SONDE_NOTE,
                "the last third of the runs takes 20 % longer than the first third");
    CHECK_STR(get(&x, "drift")->evidence, "medians of 10 runs each: 10.001 ms, then 12.001 ms");
    CHECK_EQ(end(&x), 0);
    CHECK(drift(&x, 5, false));
    CHECK_NONE(&x, "drift");
    CHECK_EQ(end(&x), 0);
    CHECK(drift(&x, 20, true));
    CHECK_NONE(&x, "drift");
    CHECK_EQ(end(&x), 0);
}

static bool first(made *x, uint64_t ns, bool warmup, bool other)
{
    begin(x);
    const uint32_t step = syn_step(x->p, "Conv", "c", "", "");
    const uint32_t another = syn_step(x->p, "Conv", "c", "", "");
    add_run(x, ns, other ? another : step, ns, warmup);
    for (int k = 0; k < 5; k++)
        add_run(x, 10 * MS, step, 10 * MS, false);
    return look(x);
}

TEST(a_slow_first_run_is_found)
{
    made x;
    CHECK(first(&x, 80 * MS, true, false));
    CHECK_FOUND(&x, "first run", SONDE_NOTE, "the first run takes 8.0 times the median");
    CHECK_STR(get(&x, "first run")->evidence, "80.000 ms, later runs 10.000 ms");
    CHECK_HAS(get(&x, "first run")->remedy, "--weights-cache");
    CHECK_EQ(end(&x), 0);
    CHECK(first(&x, 80 * MS, false, false));
    CHECK_HAS(get(&x, "first run")->evidence, "among the measured runs");
    CHECK_HAS(get(&x, "first run")->remedy, "-w");
    CHECK_EQ(end(&x), 0);
    CHECK(first(&x, 40 * MS, true, false));
    CHECK_NONE(&x, "first run");
    CHECK_EQ(end(&x), 0);
    CHECK(first(&x, 80 * MS, true, true)); /* another model, or other shapes */
    CHECK_NONE(&x, "first run");
    CHECK_EQ(end(&x), 0);
}

TEST(an_arena_larger_than_what_lies_in_it_is_found)
{
    enum { MIB = 1 << 20 };
    for (unsigned k = 0; k < 2; k++) {
        made x;
        begin(&x);
        add_run(&x, 10 * MS, syn_step(x.p, "Conv", "c", "", ""), 10 * MS, false);
        add_life(&x, 0, 1, 0, 2 * MIB);
        add_life(&x, 1, 2, 2 * MIB, 2 * MIB); /* the peak: 4 MiB at step 1 */
        add_life(&x, 3, UINT32_MAX, (k ? 4 : 3) * MIB, 2 * MIB);
        CHECK(look(&x));
        if (k) {
            CHECK_FOUND(&x, "memory", SONDE_NOTE,
                        "the arena of activations is 50 % larger than what lies in it at once");
            CHECK_STR(get(&x, "memory")->evidence,
                      "6.0 MiB, of which at most 4.0 MiB are in use (step 1)");
        } else {
            CHECK_NONE(&x, "memory");
        }
        CHECK_EQ(end(&x), 0);
    }
}

TEST(threads_that_wait_are_found)
{
    for (unsigned k = 0; k < 2; k++) {
        made x;
        begin(&x);
        x.p->level = 3;
        const uint32_t conv = syn_step(x.p, "Conv", "c", "", "");
        const uint32_t gemm = syn_step(x.p, "Gemm", "g", "", "");
        const uint32_t run = syn_span(x.p, SN_CAT_ITERATION, 0, 0, 20 * MS, "run")->id;
        const uint32_t op = syn_op(x.p, run, 0, 10 * MS, conv);
        sn_prof_span *s = syn_span(x.p, SN_CAT_THREAD, op, 0, 10 * MS, "slice");
        s->step = conv;
        s->thread = s->run = 1;
        const uint32_t second = syn_op(x.p, run, 10 * MS, 10 * MS, gemm);
        s = syn_span(x.p, SN_CAT_THREAD, second, 10 * MS, (k ? 2 : 8) * MS, "slice");
        s->step = gemm;
        s->thread = s->run = 1;
        CHECK(look(&x));
        if (k) {
            CHECK_FOUND(&x, "threads", SONDE_NOTE,
                        "2 threads are idle for 20.0 % of the time of the operators");
            CHECK_STR(get(&x, "threads")->evidence, "of all threads' time: Gemm 20.0 %");
        } else {
            CHECK_NONE(&x, "threads"); /* 5 % */
        }
        CHECK_EQ(end(&x), 0);
    }
}

TEST(lost_records_are_said)
{
    made x;
    begin(&x);
    add_run(&x, 10 * MS, syn_step(x.p, "Conv", "c", "", ""), 10 * MS, false);
    x.p->dropped = 12;
    CHECK(look(&x));
    CHECK_FOUND(&x, "dropped", SONDE_NOTE, "12 records were dropped because the recorder was full");
    CHECK_EQ(end(&x), 0);
}

TEST(every_allocation_may_fail)
{
    for (long at = 0;; at++) {
        made x;
        CHECK(drift(&x, 20, false));
        sn_findings_free(&x.f);
        x.p->level = 3;
        add_life(&x, 0, 1, 0, 2 << 20);
        add_life(&x, 2, 2, 2 << 20, 2 << 20);
        sonde_error err = {0};
        const long before = x.m.live;
        x.m.calls = 0;
        x.m.fail_at = at;
        const sonde_status st = sn_findings_of(x.p, &x.f, &err);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        if (st)
            CHECK_EQ(x.m.live, before);
        CHECK_EQ(end(&x), 0);
        if (!st) {
            CHECK(at > 20);
            return;
        }
    }
}

TEST_MAIN()
