/* SPDX-License-Identifier: Apache-2.0 */
/* A machine that goes from step to step: lines of the head, then a body of one of three kinds.
 * Interim replies (1xx) are passed over. Where a length and chunks are both stated, or a length
 * twice, somebody may mean another end of the reply than we do: that is refused. */
#include "telemetry/http_reply.h"

#include <string.h>
#include <strings.h>

#include "base/hex.h"

enum { FIRST_LINE, HEADERS, BODY, UNTIL_CLOSE, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILERS, DONE, BAD };

void sn_reply_init(sn_reply *r)
{
    r->status = 0;
    r->retry_after_s = -1;
    r->location[0] = 0;
    r->body_bytes = 0;
    r->problem = NULL;
    r->step = FIRST_LINE;
    r->line_bytes = r->head_bytes = 0;
    r->left = r->body_read = 0;
    r->has_length = r->chunked = r->cr = false;
}

static bool bad(sn_reply *r, const char *problem)
{
    r->problem = problem;
    r->step = BAD;
    return false;
}

/* ------------------------------------------------------------------ lines */
static bool is_digits(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return n > 0;
}

/* "HTTP/1.1 200 OK" */
static bool first_line(sn_reply *r)
{
    const char *s = r->line;
    if (r->line_bytes < 12 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1') ||
        s[8] != ' ' || !is_digits(s + 9, 3) || (r->line_bytes > 12 && s[12] != ' '))
        return bad(r, "it does not speak HTTP/1.1");
    r->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
    if (r->status < 100)
        return bad(r, "its status is no number of HTTP");
    r->step = HEADERS;
    return true;
}

/* A number of at most 18 digits; -1: it is none. */
static int64_t number(const char *s, size_t n)
{
    int64_t value = 0;
    if (!is_digits(s, n) || n > 18)
        return -1;
    for (size_t i = 0; i < n; i++)
        value = value * 10 + (s[i] - '0');
    return value;
}

static bool take_length(sn_reply *r, const char *value, size_t n)
{
    const int64_t length = number(value, n);
    if (length < 0)
        return bad(r, "the length of its reply is no number");
    if (r->has_length && r->left != (uint64_t)length)
        return bad(r, "its reply has two lengths");
    r->has_length = true;
    r->left = (uint64_t)length;
    return true;
}

static void take_location(sn_reply *r, const char *value, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k + 1 < sizeof r->location; i++)
        r->location[k++] = value[i] > ' ' && value[i] < 0x7f ? value[i] : '?';
    r->location[k] = 0;
}

static bool header(sn_reply *r)
{
    const char *colon = memchr(r->line, ':', r->line_bytes);
    if (!colon || colon == r->line)
        return bad(r, "a line of its reply's head is no header");
    const size_t name = (size_t)(colon - r->line);
    const char *value = colon + 1, *end = r->line + r->line_bytes;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    const size_t n = (size_t)(end - value);
    if (name == 14 && strncasecmp(r->line, "content-length", name) == 0)
        return take_length(r, value, n);
    if (name == 17 && strncasecmp(r->line, "transfer-encoding", name) == 0) {
        if (n != 7 || strncasecmp(value, "chunked", n) != 0)
            return bad(r, "its reply is encoded in a way that was not asked for");
        r->chunked = true;
    } else if (name == 11 && strncasecmp(r->line, "retry-after", name) == 0) {
        r->retry_after_s = number(value, n);
    } else if (name == 8 && strncasecmp(r->line, "location", name) == 0) {
        take_location(r, value, n);
    }
    return true;
}

/* The head is over. */
static bool begin_body(sn_reply *r)
{
    if (r->status < 200 && r->status != 101) { /* what counts is still to come */
        const size_t head = r->head_bytes;
        sn_reply_init(r);
        r->head_bytes = head;
        return true;
    }
    if (r->status == 101)
        return bad(r, "it wants to speak another protocol");
    if (r->chunked && r->has_length)
        return bad(r, "its reply has a length and comes in chunks");
    if (r->status == 204 || r->status == 304 || (r->has_length && !r->left))
        r->step = DONE;
    else
        r->step = r->chunked ? CHUNK_SIZE : r->has_length ? BODY : UNTIL_CLOSE;
    return true;
}

/* "1a3;what=ever" */
static bool chunk_size(sn_reply *r)
{
    uint64_t size = 0;
    size_t i = 0;
    for (; i < r->line_bytes && r->line[i] != ';' && r->line[i] != ' ' && r->line[i] != '\t'; i++) {
        const int digit = sn_hex_digit(r->line[i]);
        if (digit < 0 || i >= 15)
            return bad(r, "the size of a chunk of its reply is no number");
        size = size * 16 + (uint64_t)digit;
    }
    if (!i)
        return bad(r, "the size of a chunk of its reply is missing");
    r->left = size;
    r->step = size ? CHUNK : TRAILERS;
    return true;
}

static bool take_line(sn_reply *r)
{
    switch (r->step) {
    case FIRST_LINE:
        return first_line(r);
    case HEADERS:
        return r->line_bytes ? header(r) : begin_body(r);
    case CHUNK_SIZE:
        return chunk_size(r);
    case CHUNK_END:
        if (r->line_bytes)
            return bad(r, "a chunk of its reply is longer than it says");
        r->step = CHUNK_SIZE;
        return true;
    default: /* TRAILERS */
        if (!r->line_bytes)
            r->step = DONE;
        return true;
    }
}

/* A line ends with CR LF, or LF alone. */
static bool line_byte(sn_reply *r, char c)
{
    if (++r->head_bytes > SN_REPLY_HEAD_BYTES && r->step != CHUNK_SIZE && r->step != CHUNK_END)
        return bad(r, "the head of its reply is too long");
    if (c == '\n') {
        r->cr = false;
        const bool fine = take_line(r);
        r->line_bytes = 0;
        return fine;
    }
    if (r->cr || c == 0)
        return bad(r, "its reply has a character that no head may have");
    if (c == '\r') {
        r->cr = true;
        return true;
    }
    if (r->line_bytes == sizeof r->line)
        return bad(r, "a line of its reply is too long");
    r->line[r->line_bytes++] = c;
    return true;
}

/* ------------------------------------------------------------------ bodies */
/* As much of these bytes as belongs to the body; 0 after an error. */
static size_t body_bytes(sn_reply *r, const char *data, size_t n)
{
    if (r->step != UNTIL_CLOSE && n > r->left)
        n = (size_t)r->left;
    const size_t room = sizeof r->body - r->body_bytes, kept = n < room ? n : room;
    memcpy(r->body + r->body_bytes, data, kept);
    r->body_bytes += kept;
    r->body_read += n;
    if (r->body_read > SN_REPLY_MOST_BYTES) {
        (void)bad(r, "its reply is too long");
        return 0;
    }
    if (r->step == UNTIL_CLOSE)
        return n;
    r->left -= n;
    if (!r->left)
        r->step = r->step == CHUNK ? CHUNK_END : DONE;
    return n;
}

static sn_reply_state state_of(const sn_reply *r)
{
    return r->step == DONE ? SN_REPLY_DONE : r->step == BAD ? SN_REPLY_BAD : SN_REPLY_MORE;
}

sn_reply_state sn_reply_feed(sn_reply *r, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes && r->step != DONE && r->step != BAD) {
        const bool body = r->step == BODY || r->step == UNTIL_CLOSE || r->step == CHUNK;
        const size_t n = body ? body_bytes(r, at, bytes) : 1;
        if (!body)
            (void)line_byte(r, *at);
        at += n;
        bytes -= n;
    }
    return state_of(r);
}

sn_reply_state sn_reply_close(sn_reply *r)
{
    if (r->step == UNTIL_CLOSE)
        r->step = DONE;
    else if (r->step != DONE && r->step != BAD)
        (void)bad(r, r->status || r->line_bytes ? "it closed the connection before its reply ended"
                                                : "it closed the connection without a reply");
    return state_of(r);
}
