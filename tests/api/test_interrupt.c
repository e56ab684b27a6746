/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are stopped: by a token, by a function that is asked, and what profiles say of them. */
#include "sonde/experimental/profile.h"
#include "tiny_session.h"

/* One run that is over before its first step. */
static void cut_run(const tiny_session *t)
{
    sonde_error err;
    sonde_value *out = NULL;
    sonde_cancel_token *token = NULL;
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    CHECK_OK(sonde_cancel_token_create(&token, &err));
    sonde_cancel(token);
    o.cancel = token;
    CHECK_EQ(sonde_session_run(t->session, &o, NULL, &t->in, 1, NULL, &out, 1, &err),
             SONDE_CANCELLED);
    CHECK(out == NULL);
    sonde_cancel_token_release(token);
}

static void check_iterations(const sonde_profile *p, uint64_t expected)
{
    sonde_error err;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    CHECK_OK(sonde_profile_summary_get(p, &s, &err));
    CHECK_EQ(s.iterations, expected);
}

TEST(a_run_that_was_cut_is_in_no_figure_and_in_no_trace)
{
    tiny_session t;
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profile_spans *spans = NULL;
    for (int level = 1; level <= 3; level++) {
        tiny_open(&t, 1, "cut");
        CHECK_OK(sonde_profiler_start(t.context, level, &err));
        tiny_run(&t, 2);
        cut_run(&t);
        tiny_run(&t, 3);
        cut_run(&t);
        CHECK_OK(sonde_profiler_stop(t.context, &p, &err));
        check_iterations(p, 5);
        CHECK_OK(sonde_profile_spans_get(p, &spans, &err));
        size_t iterations = 0;
        for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
            sonde_profile_span s = SONDE_INIT(sonde_profile_span);
            CHECK_OK(sonde_profile_spans_span(spans, i, &s, &err));
            iterations += strcmp(s.category, "iteration") == 0;
        }
        CHECK_EQ(iterations, 5);
        sonde_profile_spans_release(spans);
        sonde_profile_release(p);
        tiny_close(&t);
    }
}

TEST(a_trace_that_is_written_meanwhile_has_no_run_that_was_cut)
{
    tiny_session t;
    sonde_error err;
    sonde_profile *p = NULL;
    tiny_open(&t, 1, "cut-stream");
    CHECK_OK(sonde_profiler_stream(t.context, 1, t.path, &err));
    for (int i = 0; i < 20; i++) {
        tiny_run(&t, 2);
        cut_run(&t);
    }
    CHECK_OK(sonde_profiler_stop(t.context, NULL, &err));
    CHECK_OK(sonde_profile_load(NULL, t.path, &p, &err));
    check_iterations(p, 40);
    sonde_profile_release(p);
    tiny_close(&t);
}

typedef struct asked {
    int times, stop_at;
} asked;

static int ask(void *user)
{
    asked *a = user;
    return ++a->times == a->stop_at;
}

/* tiny_loop with a trip count that nobody lives to see. */
static void run_endless(asked *a, bool recorded)
{
    sonde_error err = {.status = SONDE_OK};
    sonde_context *context = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    CHECK_OK(sonde_context_create(&o, &context, &err));
    CHECK_OK(sonde_zoo_build(context, "tiny_loop", 1, &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &session, &err));
    const int64_t four = 4, trips = INT64_MAX;
    const char *names[] = {"input", "steps"}, *wanted = "final";
    sonde_value *in[2] = {NULL, NULL}, *out = NULL;
    CHECK_OK(sonde_tensor_create(context, SONDE_DTYPE_F32, &four, 1, NULL, 16, &in[0], &err));
    CHECK_OK(sonde_tensor_create(context, SONDE_DTYPE_I64, NULL, 0, &trips, 8, &in[1], &err));
    if (recorded)
        CHECK_OK(sonde_profiler_start(context, 1, &err));
    sonde_run_options run = SONDE_INIT(sonde_run_options);
    run.interrupt = ask;
    run.interrupt_user = a;
    CHECK_EQ(sonde_session_run(session, &run, names, in, 2, &wanted, &out, 1, &err),
             SONDE_CANCELLED);
    CHECK(out == NULL);
    sonde_value_release(in[0]);
    sonde_value_release(in[1]);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(context);
}

TEST(a_long_run_asks_and_stops_when_it_is_told_to)
{
    for (int recorded = 0; recorded < 2; recorded++) {
        asked a = {.stop_at = 3};
        run_endless(&a, recorded);
        CHECK_EQ(a.times, 3);
    }
}

TEST_MAIN()
