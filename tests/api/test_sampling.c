/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: which runs are recorded, what a profile of them has, the bound on what it costs, and
 * profiles of single runs. */
#include <pthread.h>

#include "api/internal.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"

#include "tiny_session.h"

/* NULL: it failed, which no test expects. */
static sonde_recording *sample(const tiny_session *f, int every, double most)
{
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    sonde_recording *r = NULL;
    o.level = 2;
    o.sample_every = every;
    o.max_overhead = most;
    (void)sonde_recording_start(f->context, &o, &r, NULL);
    return r;
}

static int64_t iterations(sonde_recording *r)
{
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    sonde_profile *p = NULL;
    sonde_status st = sonde_recording_get(r, &p, NULL);
    if (!st)
        st = sonde_profile_summary_get(p, &s, NULL);
    sonde_profile_release(p);
    return st ? -1 : (int64_t)s.iterations;
}

static sonde_recorder_info info(const tiny_session *f)
{
    sonde_recorder_info i = SONDE_INIT(sonde_recorder_info);
    (void)sonde_recorder_info_get(f->context, &i, NULL);
    return i;
}

#if SONDE_RECORDER

TEST(one_run_in_ten_is_recorded)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 10, 1);
    CHECK(r != NULL);
    tiny_run(&f, 100);
    CHECK_EQ(iterations(r), 10);
    CHECK_EQ(info(&f).sampled, 10);
    CHECK_EQ(info(&f).skipped, 0);
    sonde_recording_release(r);
    const sonde_recorder_info before = info(&f);
    tiny_run(&f, 100);
    CHECK_EQ(info(&f).sampled, before.sampled); /* nobody samples any more */
    CHECK_EQ(info(&f).held, 0);
    tiny_close(&f);
}

TEST(runs_that_are_not_chosen_take_the_plain_way)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 1000000, 1);
    tiny_run(&f, 1); /* the first is a candidate */
    const uint64_t held = info(&f).held;
    CHECK(held > 0);
    CHECK_EQ(atomic_load(&f.context->core.trace->level), 0);
    tiny_run(&f, 50);
    CHECK_EQ(info(&f).held, held);
    sonde_recording_release(r);
    tiny_close(&f);
}

TEST(a_sampled_recording_shows_no_runs_that_others_record)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    sonde_profiler_options all = SONDE_INIT(sonde_profiler_options);
    sonde_recording *every = NULL;
    sonde_error err;
    all.level = 2;
    CHECK_OK(sonde_recording_start(f.context, &all, &every, &err));
    sonde_recording *some = sample(&f, 4, 1);
    tiny_run(&f, 20);
    CHECK_EQ(iterations(some), 5);
    CHECK_EQ(iterations(every), 20);
    sonde_recording_release(every);
    tiny_run(&f, 20);
    CHECK_EQ(iterations(some), 10);
    sonde_recording_release(some);
    tiny_close(&f);
}

TEST(a_sampled_profile_has_runs_and_operators_and_nothing_else)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 2, 1);
    sonde_profile *p = NULL;
    sonde_profile_spans *spans = NULL;
    sonde_error err;
    tiny_run(&f, 4);
    CHECK_OK(sonde_recording_get(r, &p, &err));
    CHECK_OK(sonde_profile_spans_get(p, &spans, &err));
    size_t operators = 0;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        CHECK_OK(sonde_profile_spans_span(spans, i, &s, &err));
        CHECK(strcmp(s.category, "executor") != 0);
        operators += strcmp(s.category, "operator") == 0;
    }
    CHECK(operators >= 4);
    sonde_profile_spans_release(spans);
    sonde_profile_release(p);
    sonde_recording_release(r);
    tiny_close(&f);
}

TEST(the_bound_is_kept_however_small_the_model_is)
{
    static const double bounds[] = {0.001, 0.01, 0.1};
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        tiny_session f;
        tiny_open(&f, 1, "sampling");
        sonde_recording *r = sample(&f, 1, bounds[k]); /* a run of a few microseconds */
        tiny_run(&f, 5000);
        const sonde_recorder_info i = info(&f);
        CHECK_MSG(i.overhead <= bounds[k], "%g of %g", i.overhead, bounds[k]);
        CHECK_EQ(i.sampled + i.skipped, 5000);
        CHECK(i.skipped > 0);
        CHECK_EQ(iterations(r), i.sampled);
        sonde_recording_release(r);
        tiny_close(&f);
    }
}

TEST(the_sampler_adds_up_what_it_is_told)
{
    sn_sampler s = {.every = 10, .max_overhead = 0.01};
    CHECK_EQ(sn_sampler_next(&s, 1000), SN_SAMPLE_SKIPPED); /* nothing is saved up yet */
    sn_sampler_ran(&s, 20000, 0);                           /* stands for ten runs: 200 µs */
    for (int i = 0; i < 9; i++)
        CHECK_EQ(sn_sampler_next(&s, 1000), SN_SAMPLE_NONE);
    CHECK_EQ(sn_sampler_next(&s, 1000), SN_SAMPLE_TAKEN); /* 1 of 200 is below 1 % */
    sn_sampler_ran(&s, 21000, 1000);
    CHECK(fabs(sn_sampler_overhead(&s) - 1000.0 / 400000) < 1e-9);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(sn_sampler_next(&s, 1000), SN_SAMPLE_NONE);
    CHECK_EQ(sn_sampler_next(&s, 5000), SN_SAMPLE_SKIPPED);
    CHECK_EQ(atomic_load(&s.sampled), 1);
    CHECK_EQ(atomic_load(&s.skipped), 2);
    for (int i = 0; i < 10000; i++) /* long running keeps the share and forgets the rest */
        sn_sampler_ran(&s, 1e8, 1e4);
    CHECK(atomic_load(&s.run_ns) < 1e11);
    CHECK(fabs(sn_sampler_overhead(&s) - 1e4 / ((1e8 - 1e4) * 10)) < 1e-6);
}

enum { THREADS = 6, RUNS = 300 };

static void *run_many(void *arg)
{
    tiny_run(arg, RUNS);
    return NULL;
}

TEST(runs_of_many_threads_are_counted_together)
{
    tiny_session f;
    pthread_t threads[THREADS];
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 9, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, run_many, &f), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(iterations(r), THREADS * RUNS / 9);
    sonde_recording_release(r);
    tiny_close(&f);
}

TEST(the_profiler_samples_into_memory_and_into_a_file)
{
    sonde_error err;
    for (int streamed = 0; streamed < 2; streamed++) {
        tiny_session f;
        tiny_open(&f, 1, "sampling");
        sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
        sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
        sonde_profile *p = NULL;
        o.level = 2;
        o.sample_every = 5;
        o.max_overhead = 1;
        o.path = streamed ? f.path : NULL;
        CHECK_OK(sonde_profiler_start_with(f.context, &o, &err));
        tiny_run(&f, 20);
        CHECK_OK(sonde_profiler_stop(f.context, streamed ? NULL : &p, &err));
        if (streamed)
            CHECK_OK(sonde_profile_load(f.context, f.path, &p, &err));
        CHECK_OK(sonde_profile_summary_get(p, &s, &err));
        CHECK_EQ(s.iterations, 4);
        sonde_profile_release(p);
        tiny_close(&f);
    }
}

TEST(warm_ups_and_pauses_are_not_sampled)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 1, 1);
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    sonde_value *out = NULL;
    o.warmup = 1;
    CHECK_OK(sonde_session_run(f.session, &o, NULL, &f.in, 1, NULL, &out, 1, &err));
    sonde_value_release(out);
    CHECK_EQ(iterations(r), 0);
    tiny_run(&f, 2);
    CHECK_OK(sonde_recording_pause(r, &err));
    tiny_run(&f, 3);
    CHECK_OK(sonde_recording_resume(r, 0, &err));
    tiny_run(&f, 4);
    CHECK_EQ(iterations(r), 6);
    sonde_recording_release(r);
    tiny_close(&f);
}

TEST(numbers_that_mean_nothing_are_refused)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    CHECK(!sample(&f, -1, 1));
    CHECK(!sample(&f, 1, -0.5));
    CHECK(!sample(&f, 1, (double)NAN));
    CHECK(!sample(&f, 1, (double)INFINITY));
    tiny_close(&f);
}

/* ------------------------------------------------------------------ callers and single runs */
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

static sonde_status run_in(const tiny_session *f, const char *traceparent, sonde_profile **profile)
{
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    sonde_value *out = NULL;
    o.traceparent = traceparent;
    o.profile = profile;
    const sonde_status st = sonde_session_run(f->session, &o, NULL, &f->in, 1, NULL, &out, 1, NULL);
    sonde_value_release(out);
    return st;
}

/* The trace of the first run in the profile, and its parent. */
static void trace_of(const sonde_profile *p, char trace[33], char parent[17])
{
    sonde_profile_spans *spans = NULL;
    trace[0] = parent[0] = 0;
    if (sonde_profile_spans_get(p, &spans, NULL))
        return;
    for (size_t i = 0; i < sonde_profile_spans_count(spans) && !trace[0]; i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        if (sonde_profile_spans_span(spans, i, &s, NULL) == SONDE_OK &&
            strcmp(s.category, "iteration") == 0) {
            memcpy(trace, s.trace_id, 33);
            memcpy(parent, s.parent_span_id, 17);
        }
    }
    sonde_profile_spans_release(spans);
}

TEST(a_run_remembers_the_trace_of_its_caller_in_memory_and_in_files)
{
    static const char *const suffixes[] = {"", ".pftrace", ".json"};
    tiny_session f;
    sonde_error err;
    char trace[33], parent[17];
    tiny_open(&f, 1, "sampling");
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    CHECK_EQ(run_in(&f, "00-" TRACE "-" SPAN "-01", NULL), SONDE_OK);
    CHECK_EQ(run_in(&f, "not a trace", NULL), SONDE_OK);
    sonde_profile *p = NULL;
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    for (size_t i = 0; i < 3; i++) {
        sonde_profile *again = NULL;
        char path[128];
        snprintf(path, sizeof path, "%s%s", f.path, suffixes[i]);
        if (*suffixes[i]) {
            CHECK_OK(sonde_profile_save(p, path, &err));
            CHECK_OK(sonde_profile_load(f.context, path, &again, &err));
            remove(path);
        }
        trace_of(again ? again : p, trace, parent);
        CHECK_STR(trace, TRACE);
        CHECK_STR(parent, SPAN);
        sonde_profile_release(again);
    }
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(what_the_caller_does_not_sample_is_not_sampled)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 1, 1);
    CHECK_EQ(run_in(&f, "00-" TRACE "-" SPAN "-00", NULL), SONDE_OK);
    CHECK_EQ(iterations(r), 0);
    CHECK_EQ(run_in(&f, "00-" TRACE "-" SPAN "-01", NULL), SONDE_OK);
    CHECK_EQ(run_in(&f, "00-" TRACE "-" SPAN "-zz", NULL), SONDE_OK); /* no caller */
    CHECK_EQ(iterations(r), 2);
    sonde_recording_release(r);
    tiny_close(&f);
}

TEST(a_single_run_gives_its_own_profile)
{
    tiny_session f;
    sonde_error err;
    char trace[33], parent[17];
    tiny_open(&f, 1, "sampling");
    tiny_run(&f, 3);
    for (int i = 0; i < 3; i++) {
        sonde_profile *p = NULL;
        sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
        CHECK_EQ(run_in(&f, "00-" TRACE "-" SPAN "-01", &p), SONDE_OK);
        CHECK(p != NULL);
        CHECK_OK(sonde_profile_summary_get(p, &s, &err));
        CHECK_EQ(s.iterations, 1);
        CHECK(s.ops >= 2);
        trace_of(p, trace, parent);
        CHECK_STR(trace, TRACE);
        sonde_profile_release(p);
    }
    CHECK_EQ(info(&f).held, 0); /* nothing is kept */
    tiny_close(&f);
}

TEST(a_run_that_fails_gives_no_profile)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    sonde_profile *p = (sonde_profile *)&f; /* not NULL */
    sonde_value *out = NULL;
    const char *name = "no such input";
    o.profile = &p;
    CHECK(sonde_session_run(f.session, &o, &name, &f.in, 1, NULL, &out, 1, NULL) != SONDE_OK);
    CHECK(p == NULL);
    tiny_close(&f);
}

static void *profile_many(void *arg)
{
    const tiny_session *f = arg;
    for (int i = 0; i < 50; i++) {
        sonde_profile *p = NULL;
        sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
        if (run_in(f, NULL, &p) || !p || sonde_profile_summary_get(p, &s, NULL) ||
            s.iterations != 1)
            abort();
        sonde_profile_release(p);
    }
    return NULL;
}

TEST(single_runs_on_many_threads_get_their_own_profiles)
{
    tiny_session f;
    pthread_t threads[THREADS];
    tiny_open(&f, 1, "sampling");
    sonde_recording *r = sample(&f, 3, 1); /* beside a recording */
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, profile_many, &f), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(iterations(r), THREADS * 50 / 3);
    sonde_recording_release(r);
    tiny_close(&f);
}

#else

TEST(a_build_without_recorder_says_so)
{
    tiny_session f;
    tiny_open(&f, 1, "sampling");
    CHECK(!sample(&f, 10, 1));
    CHECK_EQ(info(&f).sampled, 0);
    (void)iterations;
    tiny_close(&f);
}

#endif

TEST_MAIN()
