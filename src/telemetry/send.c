/* SPDX-License-Identifier: Apache-2.0 */
/* A profile goes out request by request. A receiver that is busy (429, 502, 503, 504) is asked
 * again after the pause it names, else after a growing one; all pauses and the requests that were
 * in vain are bounded together. Any
 * other refusal ends the sending: what came before stays sent, and the result says how much that
 * is. */
#include "telemetry/send.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "export/otlp.h"
#include "telemetry/environment.h"
#include "telemetry/http_client.h"
#include "telemetry/partial.h"

enum { FIRST_PAUSE_MS = 500, LONGEST_PAUSE_MS = 8000, SHORTEST_PAUSE_MS = 100, SLICE_MS = 100 };

typedef struct sending {
    const sn_profile *p;
    sn_send_options how;
    sn_endpoint to;
    char headers[SN_HEADER_BYTES];
    const sn_stop *stop;
    sn_send_result *result;
    sn_sink sink; /* the body of a request: */
    SN_VEC(char) body;
    sn_reply reply;
    uint64_t waited_ms;
    int pause_ms; /* the next one, where the receiver names none */
    sonde_error *err;
} sending;

static bool write_body(sn_sink *sink, const void *data, size_t n)
{
    sending *s = sink->user;
    return sn_vec_append(&s->body, s->p->alloc, data, n);
}

/* ------------------------------------------------------------------ pauses */
static sonde_status pause_for(const sending *s, uint64_t ms)
{
    for (uint64_t slice; ms; ms -= slice) {
        if (sn_stop_wanted(s->stop))
            return sn_stop_error(s->err);
        slice = ms < SLICE_MS ? ms : SLICE_MS;
        const struct timespec t = {.tv_nsec = (long)slice * 1000000};
        (void)nanosleep(&t, NULL); /* one that ends early only asks earlier */
    }
    return SONDE_OK;
}

static bool may_try_again(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static sonde_status refused(const sending *s)
{
    char said[300];
    const sn_reply *r = &s->reply;
    if (r->status >= 300 && r->status < 400)
        return sn_fail(
            s->err, SONDE_IO,
            "http://%s%s redirects to '%s' (status %d), which is not followed; give that "
            "address if it is the collector's",
            s->to.authority, s->to.path, r->location, r->status);
    sn_refusal_read(r->body, r->body_bytes, s->p->alloc, said, sizeof said);
    return sn_fail(s->err, SONDE_IO, "http://%s%s refused the spans with status %d%s%s%s",
                   s->to.authority, s->to.path, r->status, *said ? ": " : "", said,
                   r->status == 404 ? "; is that the address of a collector?" : "");
}

/* Before another attempt; fails where that is too late. `since`: the last one began. */
static sonde_status wait_to_retry(sending *s, uint64_t since_ns)
{
    const int64_t asked_s = s->reply.retry_after_s;
    const uint64_t now = sn_now_ns();
    s->waited_ms += (now - since_ns) / 1000000;
    uint64_t ms = (uint64_t)s->pause_ms * 3 / 4 + sn_mix64(now) % ((uint64_t)s->pause_ms / 2);
    if (asked_s >= 0)
        ms = asked_s == 0      ? SHORTEST_PAUSE_MS
             : asked_s < 86400 ? (uint64_t)asked_s * 1000
                               : UINT64_C(86400000);
    if (s->waited_ms + ms > (uint64_t)s->how.max_wait_ms)
        return sn_fail(
            s->err, SONDE_IO,
            "http://%s%s is busy (status %d), and the time to wait for it, %d ms, is over",
            s->to.authority, s->to.path, s->reply.status, s->how.max_wait_ms);
    s->waited_ms += ms;
    s->pause_ms = s->pause_ms * 2 < LONGEST_PAUSE_MS ? s->pause_ms * 2 : LONGEST_PAUSE_MS;
    s->result->retries++;
    return pause_for(s, ms);
}

/* ------------------------------------------------------------------ one request */
static void note_success(sending *s, size_t spans)
{
    char message[sizeof s->result->message];
    uint64_t rejected = 0;
    sn_partial_read(s->reply.body, s->reply.body_bytes, s->p->alloc, &rejected, message,
                    sizeof message);
    s->result->requests++;
    s->result->spans += spans;
    s->result->rejected += rejected < spans ? rejected : spans;
    if (*message)
        memcpy(s->result->message, message, sizeof message);
}

static sonde_status send_request(sending *s, size_t spans)
{
    s->pause_ms = FIRST_PAUSE_MS;
    for (;;) {
        const uint64_t since_ns = sn_now_ns();
        const sn_http_post post = {.to = &s->to,
                                   .type = "application/json",
                                   .headers = s->headers,
                                   .body = s->body.data,
                                   .bytes = s->body.n,
                                   .deadline_ns =
                                       sn_now_ns() + (uint64_t)s->how.timeout_ms * 1000000,
                                   .stop = s->stop};
        SN_TRY(sn_http_send(&post, &s->reply, s->err));
        if (s->reply.status >= 200 && s->reply.status < 300) {
            note_success(s, spans);
            return SONDE_OK;
        }
        if (!may_try_again(s->reply.status))
            return refused(s);
        SN_TRY(wait_to_retry(s, since_ns));
    }
}

static sonde_status send_all(sending *s)
{
    const sn_otlp_resource resource = {s->how.service_name, s->how.attributes};
    sn_otlp *otlp = NULL;
    size_t spans = 1;
    SN_TRY(sn_otlp_open(&otlp, s->p, &resource, s->how.categories, s->err));
    sonde_status st = SONDE_OK;
    while (st == SONDE_OK && spans) {
        s->body.n = 0;
        st = sn_otlp_next(otlp, s->how.max_bytes, &s->sink, &spans, s->err);
        if (s->sink.failed)
            st = sn_fail_memory(s->err, s->body.n);
        if (st == SONDE_OK && spans)
            st = send_request(s, spans);
    }
    sn_otlp_close(otlp);
    return st;
}

sonde_status sn_send_profile(const sn_profile *p, const sn_send_options *options,
                             const sn_stop *stop, sn_send_result *result, sonde_error *err)
{
    *result = (sn_send_result){.spans = 0};
    sending *s = sn_alloc_zero(p->alloc, sizeof *s);
    if (!s)
        return sn_fail_memory(err, sizeof *s);
    s->p = p;
    s->stop = stop;
    s->result = result;
    s->err = err;
    s->sink = (sn_sink){.write = write_body, .user = s};
    sonde_status st = sn_send_settings(options, &s->how, &s->to, err);
    if (st == SONDE_OK)
        st = sn_headers_parse(s->how.headers, s->headers, err);
    if (st == SONDE_OK)
        st = send_all(s);
    sn_vec_free(&s->body, p->alloc);
    sn_free(p->alloc, s, sizeof *s);
    return st;
}
