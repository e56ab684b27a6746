/* SPDX-License-Identifier: Apache-2.0 */
/* Sending through the public API: what it checks, what it says, and that a profile of real runs
 * arrives. */
#include "sonde/experimental/otlp.h"
#include "telemetry/receiver.h"
#include "tiny_session.h"

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

static sonde_profile *two_runs(tiny_session *f)
{
    sonde_profile *p = NULL;
    if (sonde_profiler_start(f->context, 1, NULL))
        return NULL;
    tiny_run(f, 2);
    (void)sonde_profiler_stop(f->context, &p, NULL);
    return p;
}

TEST(a_profile_of_real_runs_arrives)
{
    static const char *const answers[] = {OK_EMPTY};
    tiny_session f;
    receiver r;
    sonde_error err;
    tiny_open(&f, 1, "otlp");
    sonde_profile *p = two_runs(&f);
    if (!p)
        SKIP_TEST("this build has no recorder");
    receiver_open(&r, answers, 1);
    sonde_otlp_options o = SONDE_INIT(sonde_otlp_options);
    sonde_otlp_result sent = SONDE_INIT(sonde_otlp_result);
    o.endpoint = r.url;
    o.service_name = "tiny";
    CHECK_OK(sonde_otlp_send(p, &o, &sent, &err));
    CHECK(sent.spans >= 6);
    CHECK_EQ(sent.requests, 1);
    CHECK_HAS(r.requests[0], "\"name\":\"run tiny_mlp\"");
    CHECK_HAS(r.requests[0], "{\"stringValue\":\"tiny\"}");
    CHECK_HAS(r.requests[0], "{\"key\":\"sonde.batch\",\"value\":{\"intValue\":\"1\"}}");
    receiver_close(&r);
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(arguments_are_checked)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "otlp");
    sonde_profile *p = two_runs(&f);
    if (!p)
        SKIP_TEST("this build has no recorder");
    sonde_otlp_options o = SONDE_INIT(sonde_otlp_options);
    CHECK_EQ(sonde_otlp_send(NULL, &o, NULL, &err), SONDE_INVALID_ARGUMENT);
    o.endpoint = "https://collector.example:4318";
    CHECK_EQ(sonde_otlp_send(p, &o, NULL, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "without TLS");
    o.endpoint = "http://127.0.0.1:1";
    o.max_bytes = (size_t)5 << 20;
    CHECK_EQ(sonde_otlp_send(p, &o, NULL, &err), SONDE_INVALID_ARGUMENT);
    o.max_bytes = 0;
    o.timeout_ms = -1;
    CHECK_EQ(sonde_otlp_send(p, &o, NULL, &err), SONDE_INVALID_ARGUMENT);
    o.timeout_ms = 0;
    o.categories = "nonsense";
    CHECK_EQ(sonde_otlp_send(p, &o, NULL, &err), SONDE_INVALID_ARGUMENT);
    o.categories = NULL;
    sonde_otlp_result unset = {.struct_size = 0};
    CHECK(sonde_otlp_send(p, &o, &unset, &err) != SONDE_OK);
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(a_token_ends_it)
{
    static const char *const answers[] = {HANG};
    tiny_session f;
    receiver r;
    sonde_error err;
    tiny_open(&f, 1, "otlp");
    sonde_profile *p = two_runs(&f);
    if (!p)
        SKIP_TEST("this build has no recorder");
    receiver_open(&r, answers, 1);
    sonde_otlp_options o = SONDE_INIT(sonde_otlp_options);
    CHECK_OK(sonde_cancel_token_create(&o.cancel, &err));
    sonde_cancel(o.cancel);
    o.endpoint = r.url;
    CHECK_EQ(sonde_otlp_send(p, &o, NULL, &err), SONDE_CANCELLED);
    sonde_cancel_token_release(o.cancel);
    receiver_close(&r);
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST_MAIN()
