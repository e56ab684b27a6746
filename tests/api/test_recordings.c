/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings side by side: each has its own beginning, end, pauses and level. What it recorded, as
 * spans and as bytes. */
#include "api/internal.h"
#include "sonde/experimental/memory.h"
#include "sonde/experimental/profile.h"
#include "sonde/experimental/recording.h"

#include "tiny_session.h"

/* NULL, a count of -1: it failed, which no test expects. */
static sonde_recording *start(const tiny_session *f, int level)
{
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    sonde_recording *r = NULL;
    o.level = level;
    (void)sonde_recording_start(f->context, &o, &r, NULL);
    return r;
}

static sonde_profile *get(sonde_recording *r)
{
    sonde_profile *p = NULL;
    (void)sonde_recording_get(r, &p, NULL);
    return p;
}

static int inferences(sonde_recording *r)
{
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    sonde_profile *p = get(r);
    const sonde_status st = sonde_profile_summary_get(p, &s, NULL);
    sonde_profile_release(p);
    return st == SONDE_OK ? (int)s.iterations : -1;
}

/* Spans of a category and, unless it is NULL, of that name. */
static int spans_of(sonde_recording *r, const char *category, const char *name)
{
    sonde_profile *p = get(r);
    sonde_profile_spans *spans = NULL;
    int n = sonde_profile_spans_get(p, &spans, NULL) == SONDE_OK ? 0 : -1;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        if (sonde_profile_spans_span(spans, i, &s, NULL) == SONDE_OK)
            n += strcmp(s.category, category) == 0 && (!name || strcmp(s.name, name) == 0);
    }
    sonde_profile_spans_release(spans);
    sonde_profile_release(p);
    return n;
}

TEST(recordings_nest_and_overlap)
{
    tiny_session f;
    tiny_open(&f, 1, "recordings");
    sonde_recording *outer = start(&f, 1);
    tiny_run(&f, 1);
    sonde_recording *inner = start(&f, 1);
    tiny_run(&f, 2);
    sonde_recording *other = start(&f, 1);
    tiny_run(&f, 4);
    CHECK_EQ(inferences(outer), 7);
    CHECK_EQ(inferences(inner), 6);
    CHECK_EQ(inferences(other), 4);
    sonde_recording_release(inner);
    tiny_run(&f, 8);
    CHECK_EQ(inferences(other), 12);
    sonde_recording_release(other);
    CHECK_EQ(inferences(outer), 15);
    sonde_recording_release(outer);
    sonde_recording *next = start(&f, 1);
    CHECK_EQ(inferences(next), 0);
    sonde_recording_release(next);
    tiny_close(&f);
}

TEST(a_pause_concerns_its_own_recording_only)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "recordings");
    sonde_recording *a = start(&f, 1), *b = start(&f, 1);
    CHECK_EQ(sonde_recording_resume(a, 0, &err), SONDE_INVALID_ARGUMENT);
    tiny_run(&f, 1);
    CHECK_OK(sonde_recording_pause(a, &err));
    CHECK_EQ(sonde_recording_pause(a, &err), SONDE_INVALID_ARGUMENT);
    sonde_record *record = NULL;
    CHECK_OK(sonde_record_begin(f.context, "unseen", 0, &record, &err));
    tiny_run(&f, 2);
    sonde_record_end(record);
    CHECK_EQ(inferences(a), 1);
    CHECK_EQ(sonde_recording_resume(a, 4, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_recording_resume(a, 0, &err));
    tiny_run(&f, 4);
    CHECK_EQ(inferences(a), 5);
    CHECK_EQ(inferences(b), 7);
    CHECK_EQ(spans_of(a, "user", "unseen"), 0);
    CHECK_EQ(spans_of(b, "user", "unseen"), 1);
    CHECK_OK(sonde_recording_pause(b, &err));
    CHECK_OK(sonde_recording_clear(b, &err));
    CHECK_OK(sonde_recording_clear(a, &err));
    tiny_run(&f, 1);
    CHECK_EQ(inferences(a), 1);
    CHECK_EQ(inferences(b), 0);
    sonde_recording_release(a);
    CHECK_OK(sonde_recording_resume(b, 2, &err));
    CHECK_OK(sonde_recording_clear(b, &err));
    tiny_run(&f, 3);
    CHECK_EQ(inferences(b), 3);
    sonde_recording_release(b);
    tiny_close(&f);
}

TEST(many_pauses_leave_out_what_lies_in_them)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "recordings");
    sonde_recording *all = start(&f, 1), *some = start(&f, 1);
    for (int i = 0; i < 100; i++) {
        tiny_run(&f, 1);
        CHECK_OK(sonde_recording_pause(some, &err));
        tiny_run(&f, 2);
        CHECK_OK(sonde_recording_resume(some, 0, &err));
    }
    CHECK_EQ(inferences(some), 100);
    CHECK_EQ(inferences(all), 300);
    CHECK_EQ(spans_of(all, "operator", NULL), 3 * spans_of(some, "operator", NULL));
    sonde_recording_release(all);
    sonde_recording_release(some);
    tiny_close(&f);
}

TEST(a_level_is_not_raised_by_others)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "recordings");
    sonde_recording *low = start(&f, 1), *high = start(&f, 2);
    sonde_session *session = NULL;
    CHECK_OK(sonde_session_create(f.model, NULL, &session, &err));
    sonde_session_release(session);
    const int64_t dims[2] = {3, 16}; /* a new shape: binding is executor's work */
    sonde_value *in = NULL, *out = NULL;
    CHECK_OK(sonde_tensor_create(f.context, SONDE_DTYPE_F32, dims, 2, NULL, 192, &in, &err));
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, &in, 1, NULL, &out, 1, &err));
    CHECK_EQ(spans_of(low, "executor", NULL), 0);
    CHECK(spans_of(high, "executor", NULL) > 0);
    CHECK_EQ(spans_of(low, "operator", NULL), spans_of(high, "operator", NULL));
    sonde_value_release(in);
    sonde_value_release(out);
    sonde_recording_release(low);
    sonde_recording_release(high);
    tiny_close(&f);
}

TEST(recordings_do_not_disturb_the_profiler_of_the_process)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    tiny_open(&f, 1, "recordings");
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 1);
    sonde_recording *r = start(&f, 2);
    tiny_run(&f, 1);
    sonde_recording_release(r);
    tiny_run(&f, 1);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_OK(sonde_profile_summary_get(p, &s, &err));
    CHECK_EQ(s.iterations, 3);
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(spans_say_what_reports_say)
{
    tiny_session f;
    sonde_error err;
    sonde_profile_spans *spans = NULL;
    tiny_open(&f, 1, "recordings");
    sonde_recording *r = start(&f, 1);
    tiny_run(&f, 2);
    sonde_profile *p = get(r);
    sonde_recording_release(r); /* the profile does not need it */
    CHECK_OK(sonde_profile_spans_get(p, &spans, &err));
    char run[33] = "", run_span[17] = "";
    int operators = 0;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        CHECK_OK(sonde_profile_spans_span(spans, i, &s, &err));
        CHECK_EQ(strlen(s.trace_id), 32);
        CHECK_EQ(strlen(s.span_id), 16);
        CHECK(s.end_ns >= s.start_ns && s.start_ns > UINT64_C(1500000000000000000));
        if (strcmp(s.category, "iteration") == 0) {
            memcpy(run, s.trace_id, sizeof run);
            memcpy(run_span, s.span_id, sizeof run_span);
            CHECK_EQ(s.operator_index, -1);
            CHECK_STR(s.op_type, "");
        } else if (strcmp(s.category, "operator") == 0) {
            CHECK_STR(s.trace_id, run);
            CHECK_STR(s.parent_span_id, run_span);
            CHECK(s.operator_index >= 0 && s.iteration >= 0 && s.flops >= 0);
            CHECK(*s.op_type && *s.input_shapes && *s.input_types);
            operators++;
        }
        CHECK_EQ(s.pe_index, -1);
        CHECK_EQ(s.execution_index, -1);
    }
    CHECK(operators >= 2);
    sonde_profile_span s = SONDE_INIT(sonde_profile_span);
    CHECK_EQ(sonde_profile_spans_span(spans, sonde_profile_spans_count(spans), &s, &err),
             SONDE_NOT_FOUND);
    s.struct_size = 0;
    CHECK_EQ(sonde_profile_spans_span(spans, 0, &s, &err), SONDE_INVALID_ARGUMENT);
    sonde_profile_spans_release(spans);
    sonde_profile_release(p);
    tiny_close(&f);
}

static void keep(void *user, const char *data, size_t size)
{
    char *text = user;
    const size_t n = strlen(text);
    if (n + size < 1 << 16)
        memcpy(text + n, data, size);
}

TEST(a_profile_is_written_piece_by_piece)
{
    tiny_session f;
    sonde_error err;
    static char text[1 << 16];
    tiny_open(&f, 1, "recordings");
    sonde_recording *r = start(&f, 1);
    tiny_run(&f, 1);
    sonde_profile *p = get(r);
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    CHECK_OK(sonde_profile_write(p, NULL, keep, text, &err));
    CHECK_HAS(text, "\"traceEvents\"");
    memset(text, 0, sizeof text);
    o.format = ".md";
    CHECK_OK(sonde_profile_write(p, &o, keep, text, &err));
    CHECK_HAS(text, "| Gemm |");
    o.format = ".nothing";
    CHECK_EQ(sonde_profile_write(p, &o, keep, text, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_write(p, &o, NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    sonde_profile_release(p);
    sonde_recording_release(r);
    tiny_close(&f);
}

TEST(a_recorder_says_how_full_it_is_and_what_it_lost)
{
    enum { CAPACITY = 16 };
    tiny_session f;
    sonde_error err;
    sonde_recorder_info info = SONDE_INIT(sonde_recorder_info);
    tiny_open(&f, 1, "recordings");
    CHECK_OK(sonde_recorder_info_get(f.context, &info, &err));
    CHECK(info.capacity >= 1 << 20);
    CHECK_EQ(info.room, info.capacity);
    CHECK_EQ(info.held, 0);
    CHECK_EQ(info.dropped, 0);
    sonde_recording *r = start(&f, 1);
    tiny_run(&f, 1);
    CHECK_OK(sonde_recorder_info_get(f.context, &info, &err));
    const uint64_t each = info.held;
    CHECK(each > 1 && each < CAPACITY);
    CHECK_EQ(info.room, info.capacity - each);
    sn_trace_set_cap(f.context->core.trace, CAPACITY); /* and forgets */
    tiny_run(&f, CAPACITY);
    CHECK_OK(sonde_recorder_info_get(f.context, &info, &err));
    CHECK_EQ(info.capacity, CAPACITY);
    CHECK_EQ(info.room, 0);
    CHECK_EQ(info.held, CAPACITY);
    CHECK_EQ(info.held + info.dropped, CAPACITY * each);
    sonde_recording_release(r);
    CHECK_OK(sonde_recorder_info_get(f.context, &info, &err));
    CHECK_EQ(info.held, 0);
    CHECK_EQ(info.dropped, 0);
    CHECK_EQ(sonde_recorder_info_get(f.context, NULL, &err), SONDE_INVALID_ARGUMENT);
    info.struct_size = 0;
    CHECK_EQ(sonde_recorder_info_get(f.context, &info, &err), SONDE_INVALID_ARGUMENT);
    info.struct_size = sizeof info;
    CHECK_EQ(sonde_recorder_info_get(NULL, &info, NULL), SONDE_OK);
    tiny_close(&f);
}

TEST(what_cannot_be_is_refused)
{
    sonde_profiler_options o = SONDE_INIT(sonde_profiler_options);
    sonde_recording *r = NULL;
    sonde_profile_spans *spans = NULL;
    sonde_error err;
    o.level = 4;
    CHECK_EQ(sonde_recording_start(NULL, &o, &r, &err), SONDE_INVALID_ARGUMENT);
    o.level = 1;
    o.path = "trace.pftrace";
    CHECK_EQ(sonde_recording_start(NULL, &o, &r, &err), SONDE_INVALID_ARGUMENT);
    o.path = NULL;
    o.categories = "operators";
    CHECK_EQ(sonde_recording_start(NULL, &o, &r, &err), SONDE_INVALID_ARGUMENT);
    CHECK(!r);
    CHECK_EQ(sonde_recording_pause(NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_recording_get(NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_spans_get(NULL, &spans, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_spans_count(NULL), 0);
    sonde_recording_release(NULL);
    sonde_profile_spans_release(NULL);
}

TEST_MAIN()
