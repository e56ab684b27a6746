/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: the same result however they are cut into pieces, and everything that is none. */
#include "telemetry/http_reply.h"
#include "test.h"

/* In pieces of `step` bytes; closed at the end. */
static sn_reply_state read_all(sn_reply *r, const char *text, size_t n, size_t step)
{
    sn_reply_state state = SN_REPLY_MORE;
    sn_reply_init(r);
    for (size_t i = 0; i < n && state == SN_REPLY_MORE; i += step) {
        const size_t part = n - i < step ? n - i : step;
        char *copy = malloc(part); /* of exactly this size */
        memcpy(copy, text + i, part);
        state = sn_reply_feed(r, copy, part);
        free(copy);
    }
    return state == SN_REPLY_MORE ? sn_reply_close(r) : state;
}

typedef struct good {
    const char *text;
    int status;
    const char *body;
    int64_t retry_after_s;
} good;

static const good goods[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", -1},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more", 200, "hello", -1},
    {"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end", -1},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", -1},
    {"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", 200, "", -1},
    {"HTTP/1.1 503 x\nRetry-After: 7\nContent-Length: 0\n\n", 503, "", 7},
    {"HTTP/1.1 503 x\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
     503, "", -1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n"
     "Trailer: t\r\n\r\n",
     200, "abc0123456789", -1},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Made\r\n"
     "Content-Length: 2\r\n\r\nok",
     201, "ok", -1},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok", -1},
};

TEST(a_reply_reads_the_same_in_pieces_of_any_size)
{
    sn_reply *r = malloc(sizeof *r);
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        const good *g = &goods[i];
        for (size_t step = 1; step < 100; step++) {
            CHECK_MSG(read_all(r, g->text, strlen(g->text), step) == SN_REPLY_DONE,
                      "reply %zu in pieces of %zu: %s", i, step, r->problem);
            CHECK_EQ(r->status, g->status);
            CHECK_EQ(r->retry_after_s, g->retry_after_s);
            CHECK_EQ(r->body_bytes, strlen(g->body));
            CHECK(memcmp(r->body, g->body, r->body_bytes) == 0);
        }
    }
    free(r);
}

TEST(what_is_no_reply_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *problem;
    } bads[] = {
        {"", "without a reply"},
        {"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"},
        {"HTTP/2 200\r\n\r\n", "does not speak HTTP"},
        {"HTTP/1.1 2x0 OK\r\n\r\n", "does not speak HTTP"},
        {"HTTP/1.1 200OK\r\n\r\n", "does not speak HTTP"},
        {"HTTP/1.1 000 OK\r\n\r\n", "no number of HTTP"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "before its reply ended"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "is no number"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "is no number"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "two lengths"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         "a length and comes in chunks"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "encoded in a way"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "is no number"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "is missing"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
         "is no number"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "longer than it says"},
        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "no header"},
        {"HTTP/1.1 200 OK\r\n: x\r\n\r\n", "no header"},
        {"HTTP/1.1 200 OK\r\na\rb: c\r\n\r\n", "character"},
        {"HTTP/1.1 101 Switching\r\n\r\n", "another protocol"},
        {"HTTP/1.1 100 Continue\r\n\r\n", "without a reply"},
    };
    sn_reply *r = malloc(sizeof *r);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++)
        for (size_t step = 1; step < 50; step += 7) {
            CHECK_MSG(read_all(r, bads[i].text, strlen(bads[i].text), step) == SN_REPLY_BAD,
                      "reply %zu", i);
            CHECK_HAS(r->problem, bads[i].problem);
        }
    free(r);
}

TEST(heads_and_bodies_are_bounded)
{
    enum { N = 6 << 20 };
    char *text = malloc(N);
    sn_reply *r = malloc(sizeof *r);
    static const char begin[] = "HTTP/1.1 200 OK\r\n";
    memset(text, 'a', N);
    memcpy(text, begin, sizeof begin - 1);
    CHECK_EQ(read_all(r, text, N, 4096), SN_REPLY_BAD); /* a line without end */
    for (size_t i = sizeof begin - 1; i + 6 <= N; i += 6)
        memcpy(text + i, "a: b\r\n", 6);
    CHECK_EQ(read_all(r, text, N, 4096), SN_REPLY_BAD); /* a head without end */
    CHECK_HAS(r->problem, "too long");
    memcpy(text + sizeof begin - 1, "\r\n", 2);
    CHECK_EQ(read_all(r, text, N, 4096), SN_REPLY_BAD); /* a body without end */
    CHECK_HAS(r->problem, "too long");
    CHECK_EQ(read_all(r, text, 1 << 20, 4096), SN_REPLY_DONE);
    CHECK_EQ(r->body_bytes, SN_REPLY_BODY_BYTES);
    for (size_t i = 0; i + 25 <= N; i += 25) /* interim replies without end */
        memcpy(text + i, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    CHECK_EQ(read_all(r, text, N, 4096), SN_REPLY_BAD);
    free(r);
    free(text);
}

TEST(where_a_redirection_leads_is_printable)
{
    static const char text[] =
        "HTTP/1.1 301 Moved\r\nLocation: http://x/\x1b[31m\xff y\r\nContent-Length: 0\r\n\r\n";
    sn_reply *r = malloc(sizeof *r);
    CHECK_EQ(read_all(r, text, sizeof text - 1, 5), SN_REPLY_DONE);
    CHECK_STR(r->location, "http://x/?[31m??y");
    free(r);
}

TEST(random_bytes_end_in_one_of_the_three_states)
{
    static const char *const words[] = {"HTTP/1.1 ", "200 OK",
                                        "\r\n",      "Content-Length: ",
                                        "5",         "Transfer-Encoding: chunked",
                                        "\n",        "ff",
                                        "0",         ":",
                                        "\r",        "Retry-After: 1",
                                        "100",       "x"};
    sn_reply *r = malloc(sizeof *r);
    for (int k = 0; k < 20000; k++) {
        char text[512];
        size_t n = 0;
        while (n < 400 && test_rand() % 30) {
            const char *word = words[test_rand() % (sizeof words / sizeof words[0])];
            memcpy(text + n, word, strlen(word));
            n += strlen(word);
            if (test_rand() % 8 == 0)
                text[n++] = (char)test_rand();
        }
        const sn_reply_state state = read_all(r, text, n, 1 + test_rand() % 40);
        CHECK(state == SN_REPLY_DONE || state == SN_REPLY_BAD);
        CHECK(state == SN_REPLY_DONE || r->problem);
        CHECK(r->body_bytes <= SN_REPLY_BODY_BYTES);
    }
    free(r);
}

TEST_MAIN()
