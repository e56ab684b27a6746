/* SPDX-License-Identifier: Apache-2.0 */
/* Sending to receivers of all kinds: those that take spans, take some, are busy, refuse, redirect,
 * hang, go away, or say something that is no HTTP. */
#include "base/clock.h"
#include "export/json.h"
#include "profile/synthetic.h"
#include "receiver.h"
#include "telemetry/send.h"
#include "test.h"

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

typedef struct sent {
    sonde_status st;
    sonde_error err;
    sn_send_result result;
    receiver r;
} sent;

static void no_variables(void)
{
    static const char *const names[] = {"ENDPOINT",       "TRACES_ENDPOINT", "HEADERS",
                                        "TRACES_HEADERS", "TIMEOUT",         "TRACES_TIMEOUT",
                                        "PROTOCOL",       "TRACES_PROTOCOL"};
    char name[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s", names[i]);
        unsetenv(name);
    }
    unsetenv("OTEL_SERVICE_NAME");
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}

/* The receiver stays open, for its requests to be looked at. */
static void send_tiny(sent *s, const char *const *answers, size_t n, const sn_send_options *said)
{
    failing_alloc m;
    sn_send_options how = {.timeout_ms = 60000};
    if (said)
        how = *said;
    memset(s, 0, sizeof *s);
    no_variables();
    receiver_open(&s->r, answers, n);
    how.endpoint = s->r.url;
    sn_profile *p = syn_tiny(failing_init(&m));
    s->st = sn_send_profile(p, &how, NULL, &s->result, &s->err);
    sn_profile_free(p);
    if (m.live != 0)
        abort();
}

TEST(a_receiver_gets_a_well_formed_request)
{
    static const char *const answers[] = {OK_EMPTY};
    const sn_send_options how = {.timeout_ms = 60000,
                                 .headers = "api-key=s3cret%20word",
                                 .service_name = "shop",
                                 .attributes = "deployment.environment=test"};
    sent s;
    json root = {0};
    send_tiny(&s, answers, 1, &how);
    CHECK_MSG(s.st == SONDE_OK, "%s", s.err.message);
    CHECK_EQ(s.result.spans, 9);
    CHECK_EQ(s.result.requests, 1);
    CHECK_EQ(s.result.retries, 0);
    CHECK_EQ(s.r.n_requests, 1);
    const char *request = s.r.requests[0], *body = strstr(request, "\r\n\r\n") + 4;
    CHECK(strncmp(request, "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:", 42) == 0);
    CHECK_HAS(request, "\r\nContent-Type: application/json\r\n");
    CHECK_HAS(request, "\r\napi-key: s3cret word\r\n");
    CHECK_EQ(receiver_length(request), strlen(body));
    CHECK(json_parse(body, &root));
    CHECK_HAS(body, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}}");
    CHECK_HAS(body, "deployment.environment");
    json_free(&root);
    receiver_close(&s.r);
}

TEST(large_profiles_go_out_in_requests_of_bounded_size)
{
    static const char *const answers[] = {OK_EMPTY, OK_EMPTY, OK_EMPTY, OK_EMPTY, OK_EMPTY,
                                          OK_EMPTY, OK_EMPTY, OK_EMPTY, OK_EMPTY};
    const sn_send_options how = {.timeout_ms = 60000, .max_bytes = 3000};
    sent s;
    send_tiny(&s, answers, 9, &how);
    CHECK_MSG(s.st == SONDE_OK, "%s", s.err.message);
    CHECK_EQ(s.result.spans, 9);
    CHECK(s.result.requests > 2 && s.result.requests == s.r.n_requests);
    for (size_t i = 0; i < s.r.n_requests; i++)
        CHECK(receiver_length(s.r.requests[i]) <= 3000);
    receiver_close(&s.r);
}

TEST(a_receiver_that_takes_a_part_is_reported)
{
    static const char partial[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 72\r\n\r\n"
        "{\"partialSuccess\":{\"rejectedSpans\":\"4\",\"errorMessage\":\"too \\u001b old\"}}";
    const char *const answers[] = {partial};
    sent s;
    send_tiny(&s, answers, 1, NULL);
    CHECK_MSG(s.st == SONDE_OK, "%s", s.err.message);
    CHECK_EQ(s.result.rejected, 4);
    CHECK_STR(s.result.message, "too ? old");
    receiver_close(&s.r);
}

TEST(replies_that_mean_nothing_are_successes_all_the_same)
{
    static const char *const bodies[] = {
        "",
        "OK",
        "[1]",
        "{\"partialSuccess\":7}",
        "{\"partialSuccess\":{\"rejectedSpans\":{}}}",
        "\xff\xfe",
        "{\"partialSuccess\":{\"rejectedSpans\":99999999999999999999}}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char answer[300];
        snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(bodies[i]), bodies[i]);
        const char *const answers[] = {answer};
        sent s;
        send_tiny(&s, answers, 1, NULL);
        CHECK_MSG(s.st == SONDE_OK, "%s: %s", bodies[i], s.err.message);
        CHECK(s.result.rejected <= s.result.spans);
        receiver_close(&s.r);
    }
}

TEST(a_busy_receiver_is_asked_again_after_the_pause_it_names)
{
    static const char *const answers[] = {
        "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 429 Slow down\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 502 Bad gateway\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 504 Late\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", OK_EMPTY};
    sent s;
    send_tiny(&s, answers, 5, NULL);
    CHECK_MSG(s.st == SONDE_OK, "%s", s.err.message);
    CHECK_EQ(s.result.retries, 4);
    CHECK_EQ(s.result.requests, 1);
    CHECK_EQ(s.r.n_requests, 5);
    CHECK_STR(strstr(s.r.requests[4], "\r\n\r\n"), strstr(s.r.requests[0], "\r\n\r\n"));
    receiver_close(&s.r);
}

TEST(waiting_has_an_end)
{
    static const char *const answers[] = {
        "HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"};
    const sn_send_options how = {.timeout_ms = 60000, .max_wait_ms = 5000};
    sent s;
    send_tiny(&s, answers, 1, &how); /* does not wait an hour to find out */
    CHECK_EQ(s.st, SONDE_IO);
    CHECK_HAS(s.err.message, "is busy (status 503)");
    CHECK_HAS(s.err.message, "5000 ms");
    receiver_close(&s.r);
    static const char at_once[] =
        "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    const char *many[RECEIVER_MOST];
    for (size_t i = 0; i < RECEIVER_MOST; i++)
        many[i] = at_once;
    const sn_send_options little = {.timeout_ms = 60000, .max_wait_ms = 20};
    send_tiny(&s, many, RECEIVER_MOST, &little);
    CHECK_EQ(s.st, SONDE_IO);
    CHECK_EQ(s.result.retries, 0); /* even "at once" is a tenth of a second */
    receiver_close(&s.r);
    const sn_send_options some = {.timeout_ms = 60000, .max_wait_ms = 350};
    send_tiny(&s, many, RECEIVER_MOST, &some);
    CHECK_EQ(s.st, SONDE_IO);
    CHECK(s.result.retries <= 3);
    receiver_close(&s.r);
}

TEST(refusals_are_repeated_in_words_that_can_be_printed)
{
    static const struct {
        const char *answer, *part;
    } cases[] = {
        {"HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\nbroken\x1b[2J", "status 500: broken?[2J"},
        {"HTTP/1.1 400 Bad\r\nContent-Length: 36\r\n\r\n{\"code\":3,\"message\":\"no such field\"}",
         "status 400: no such field"},
        {"HTTP/1.1 404 Not found\r\nContent-Length: 0\r\n\r\n", "address of a collector?"},
        {"HTTP/1.1 307 Go\r\nLocation: http://elsewhere:1/\r\nContent-Length: 0\r\n\r\n",
         "redirects to 'http://elsewhere:1/'"},
        {"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "before its reply ended"},
        {CLOSE_AFTER, "without a reply"},
        {REFUSE_UNREAD, "status 413: too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const answers[] = {cases[i].answer};
        sent s;
        send_tiny(&s, answers, 1, NULL);
        CHECK_EQ(s.st, SONDE_IO);
        CHECK_HAS(s.err.message, cases[i].part);
        CHECK_EQ(s.result.requests, 0);
        receiver_close(&s.r);
    }
}

TEST(what_was_sent_before_a_refusal_is_counted)
{
    static const char *const answers[] = {OK_EMPTY,
                                          "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"};
    const sn_send_options how = {.timeout_ms = 60000, .max_bytes = 3000};
    sent s;
    send_tiny(&s, answers, 2, &how);
    CHECK_EQ(s.st, SONDE_IO);
    CHECK_EQ(s.result.requests, 1);
    CHECK(s.result.spans > 0 && s.result.spans < 9);
    receiver_close(&s.r);
}

TEST(a_receiver_that_closes_before_it_reads_is_an_error)
{
    static const char *const answers[] = {CLOSE_AT_ONCE};
    sent s;
    send_tiny(&s, answers, 1, NULL);
    CHECK_EQ(s.st, SONDE_IO);
    CHECK_HAS(s.err.message, "cannot send to http://127.0.0.1:");
    receiver_close(&s.r);
}

TEST(a_receiver_that_hangs_is_left_at_the_timeout)
{
    static const char *const answers[] = {HANG};
    const sn_send_options how = {.timeout_ms = 50};
    sent s;
    send_tiny(&s, answers, 1, &how);
    CHECK_EQ(s.st, SONDE_IO);
    CHECK_HAS(s.err.message, "in time");
    receiver_close(&s.r);
}

static bool at_once(void *user)
{
    return ++*(int *)user > 2;
}

TEST(sending_ends_when_nobody_wants_it_any_more)
{
    static const char *const answers[] = {HANG};
    failing_alloc m;
    sonde_error err = {0};
    sn_send_result result;
    receiver r;
    int asked = 0;
    const sn_stop stop = {at_once, &asked};
    no_variables();
    receiver_open(&r, answers, 1);
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_send_options how = {.endpoint = r.url, .timeout_ms = 3600000};
    CHECK_EQ(sn_send_profile(p, &how, &stop, &result, &err), SONDE_CANCELLED);
    sn_profile_free(p);
    receiver_close(&r);
}

TEST(where_nobody_listens_is_said)
{
    static const char *const answers[] = {OK_EMPTY};
    failing_alloc m;
    sonde_error err = {0};
    sn_send_result result;
    receiver r;
    receiver_open(&r, answers, 1);
    receiver_close(&r);
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_send_options how = {.endpoint = r.url};
    CHECK_EQ(sn_send_profile(p, &how, NULL, &result, &err), SONDE_IO);
    CHECK_HAS(err.message, "nobody listens there");
    sn_profile_free(p);
}

/* ------------------------------------------------------------------ variables */
TEST(the_environment_says_what_the_caller_does_not)
{
    static const char *const answers[] = {OK_EMPTY, OK_EMPTY};
    failing_alloc m;
    sonde_error err = {0};
    sn_send_result result;
    receiver r;
    char url[128];
    no_variables();
    receiver_open(&r, answers, 2);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.url, 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-a=1", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-b=2", 1);
    setenv("OTEL_SERVICE_NAME", "by the environment", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", 1); /* the path is the same */
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_send_options nothing = {.endpoint = NULL};
    CHECK_OK(sn_send_profile(p, &nothing, NULL, &result, &err));
    CHECK_HAS(r.requests[0], "POST /v1/traces HTTP/1.1");
    CHECK_HAS(r.requests[0], "x-b: 2");
    CHECK(!strstr(r.requests[0], "x-a: 1"));
    CHECK_HAS(r.requests[0], "by the environment");
    snprintf(url, sizeof url, "%s/own/path", r.url);
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url, 1);
    CHECK_OK(sn_send_profile(p, &nothing, NULL, &result, &err));
    CHECK_HAS(r.requests[1], "POST /own/path HTTP/1.1");
    unsetenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    CHECK_EQ(sn_send_profile(p, &nothing, NULL, &result, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "http/json");
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", 1);
    CHECK_EQ(sn_send_profile(p, &nothing, NULL, &result, &err), SONDE_INVALID_ARGUMENT);
    no_variables();
    sn_profile_free(p);
    receiver_close(&r);
}

TEST(every_failing_allocation_is_survived)
{
    static const char *const answers[] = {OK_EMPTY};
    for (long k = 0;; k++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_send_result result;
        receiver r;
        no_variables();
        receiver_open(&r, answers, 1);
        sn_profile *p = syn_tiny(failing_init(&m));
        const sn_send_options how = {.endpoint = r.url, .timeout_ms = 60000};
        const long before = m.calls;
        m.fail_at = before + k;
        const sonde_status st = sn_send_profile(p, &how, NULL, &result, &err);
        const bool all = m.calls <= before + k;
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY || st == SONDE_OK, "%s", err.message);
        m.fail_at = -1;
        sn_profile_free(p);
        CHECK_EQ(m.live, 0);
        receiver_close(&r);
        if (all)
            break;
        CHECK(k < 200);
    }
}

TEST_MAIN()
