/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of a run that goes on: its size is bounded, however long that has run. */
#include <pthread.h>

#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"

#include "tiny_session.h"

typedef struct counted {
    size_t runs, operators, executor, labels;
    size_t left_out; /* as the note says */
    bool whole;      /* every run has as many operators as the first */
} counted;

/* Without a run and not whole: it failed, which no test expects. */
static counted latest(const tiny_session *f, size_t records)
{
    sonde_profile *p = NULL;
    sonde_profile_spans *spans = NULL;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    counted c = {.whole = true};
    size_t in_run = 0, each = 0;
    if (sonde_profiler_get_latest(f->context, records, &p, NULL) ||
        sonde_profile_summary_get(p, &s, NULL) || sonde_profile_spans_get(p, &spans, NULL))
        c.whole = false;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span span = SONDE_INIT(sonde_profile_span);
        (void)sonde_profile_spans_span(spans, i, &span, NULL);
        const bool run = strcmp(span.category, "iteration") == 0;
        if (run && c.runs) {
            each = each ? each : in_run;
            c.whole &= in_run == each;
        }
        in_run = run ? 0 : in_run + (strcmp(span.category, "operator") == 0);
        c.runs += run;
        c.operators += strcmp(span.category, "operator") == 0;
        c.executor += strcmp(span.category, "executor") == 0;
        c.labels += strcmp(span.category, "user") == 0;
    }
    const char *number = strstr(s.note, "; ");
    c.left_out = number ? strtoul(number + 2, NULL, 10) : 0;
    c.whole &= s.iterations == c.runs && !*s.note == !c.left_out;
    sonde_profile_spans_release(spans);
    sonde_profile_release(p);
    return c;
}

TEST(a_short_run_is_all_there)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "latest");
    CHECK_OK(sonde_profiler_start(f.context, 2, &err));
    tiny_run(&f, 3);
    const counted c = latest(&f, 1000);
    CHECK_EQ(c.runs, 3);
    CHECK_EQ(c.left_out, 0);
    tiny_close(&f);
}

TEST(a_long_run_has_its_start_and_its_latest_runs)
{
    enum { RUNS = 20000, RECORDS = 400 };
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "latest");
    CHECK_OK(sonde_profiler_start(f.context, 2, &err));
    const int64_t dims[2] = {3, 16}; /* a new shape: the executor's work comes first */
    sonde_value *in = NULL, *out = NULL;
    CHECK_OK(sonde_tensor_create(f.context, SONDE_DTYPE_F32, dims, 2, NULL, 192, &in, &err));
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
    sonde_value_release(in);
    sonde_value_release(out);
    const size_t executor = latest(&f, 100000).executor;
    CHECK(executor > 0);
    size_t before = 0;
    for (int i = 0; i < 4; i++) {
        tiny_run(&f, RUNS / 4);
        const counted c = latest(&f, RECORDS);
        CHECK(c.executor >= executor);
        CHECK(c.runs > RECORDS / 20 && c.operators + c.runs <= 2 * RECORDS);
        CHECK_EQ(c.runs + c.left_out, 1 + (size_t)(i + 1) * RUNS / 4);
        CHECK(c.left_out > before && c.whole);
        before = c.left_out;
    }
    sonde_profile *p = NULL;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err)); /* nothing was forgotten */
    CHECK_OK(sonde_profile_summary_get(p, &s, &err));
    CHECK_EQ(s.iterations, 1 + RUNS);
    CHECK_STR(s.note, "");
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(there_is_a_whole_run_however_few_records_are_wanted)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "latest");
    CHECK_OK(sonde_profiler_start(f.context, 2, &err));
    tiny_run(&f, 50);
    for (size_t records = 0; records < 8; records++) {
        const counted c = latest(&f, records);
        CHECK(c.runs >= 1 && c.whole);
        CHECK(c.operators >= 2 * c.runs);
        CHECK_EQ(c.runs + c.left_out, 50);
    }
    tiny_close(&f);
}

TEST(a_label_around_many_runs_stays)
{
    tiny_session f;
    sonde_error err;
    sonde_record *record = NULL;
    tiny_open(&f, 1, "latest");
    CHECK_OK(sonde_profiler_start(f.context, 2, &err));
    CHECK_OK(sonde_record_begin(f.context, "phase", 0, &record, &err));
    tiny_run(&f, 2000);
    sonde_record_end(record);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(sonde_record_begin(f.context, "inner", 0, &record, &err));
        tiny_run(&f, 1);
        sonde_record_end(record);
    }
    const counted c = latest(&f, 100);
    CHECK(c.labels >= 2 && c.labels < 100);
    CHECK_EQ(c.runs + c.left_out, 2100);
    tiny_close(&f);
}

typedef struct other_thread {
    tiny_session *f;
    int runs;
} other_thread;

static void *run_there(void *arg)
{
    const other_thread *t = arg;
    tiny_run(t->f, t->runs);
    return NULL;
}

TEST(threads_show_the_same_time)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "latest");
    CHECK_OK(sonde_profiler_start(f.context, 2, &err));
    other_thread there = {&f, 3000};
    pthread_t thread;
    tiny_run(&f, 5);
    CHECK(pthread_create(&thread, NULL, run_there, &there) == 0);
    pthread_join(thread, NULL);
    tiny_run(&f, 5);
    const counted c = latest(&f, 200);
    CHECK_EQ(c.runs + c.left_out, 3010);
    CHECK(c.runs >= 5 && c.runs < 200 && c.whole);
    tiny_close(&f);
}

TEST(what_was_not_recorded_is_not_there)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    tiny_open(&f, 1, "latest");
    CHECK_EQ(sonde_profiler_get_latest(f.context, 100, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK(!p);
    CHECK_EQ(sonde_profiler_get_latest(f.context, 100, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    CHECK_EQ(latest(&f, 100).runs, 0);
    tiny_close(&f);
}

TEST_MAIN()
