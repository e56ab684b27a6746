/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and headers: what is taken, and what is refused in which words. */
#include "telemetry/endpoint.h"
#include "test.h"

TEST(a_base_address_gets_the_path_of_traces)
{
    static const struct {
        const char *url, *host, *port, *path, *authority;
    } cases[] = {
        {"http://127.0.0.1:4318", "127.0.0.1", "4318", "/v1/traces", "127.0.0.1:4318"},
        {"http://localhost", "localhost", "80", "/v1/traces", "localhost"},
        {"HTTP://a.example:1/", "a.example", "1", "/v1/traces", "a.example:1"},
        {"http://[::1]:4318/in//", "::1", "4318", "/in/v1/traces", "[::1]:4318"},
        {"http://h:9/x/v1/traces", "h", "9", "/x/v1/traces", "h:9"},
        {"http://h:9/v1/traces/", "h", "9", "/v1/traces", "h:9"},
        {"http://h/#part", "h", "80", "/v1/traces", "h"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sonde_error err = {0};
        sn_endpoint e;
        CHECK_OK(sn_endpoint_parse(cases[i].url, false, &e, &err));
        CHECK_STR(e.host, cases[i].host);
        CHECK_STR(e.port, cases[i].port);
        CHECK_STR(e.path, cases[i].path);
        CHECK_STR(e.authority, cases[i].authority);
    }
}

TEST(a_whole_address_is_used_as_it_is)
{
    sonde_error err = {0};
    sn_endpoint e;
    CHECK_OK(sn_endpoint_parse("http://h:1/a/b?c=d", true, &e, &err));
    CHECK_STR(e.path, "/a/b?c=d");
    CHECK_OK(sn_endpoint_parse("http://h:1", true, &e, &err));
    CHECK_STR(e.path, "/");
    CHECK_OK(sn_endpoint_parse("http://h:1?key=1", true, &e, &err));
    CHECK_STR(e.path, "/?key=1");
}

TEST(what_is_no_address_is_refused_with_the_reason)
{
    static const struct {
        const char *url, *why;
    } cases[] = {
        {"", "does not begin with http://"},
        {"127.0.0.1:4318", "does not begin with http://"},
        {"grpc://h:4317", "does not begin with http://"},
        {"http://", "has no host"},
        {"http://:4318", "has no host"},
        {"http://h:", "port is not a number"},
        {"http://h:x", "port is not a number"},
        {"http://h:0", "between 1 and 65535"},
        {"http://h:65536", "between 1 and 65535"},
        {"http://h:123456", "port is not a number"},
        {"http://[::1", "']' of an IPv6 address"},
        {"http://[::1]x", "behind the ']'"},
        {"http://user:secret@h:1", "names and passwords"},
        {"http://h/a b", "spaces"},
        {"http://h/\r\nX: y", "spaces"},
        {"http://h\xc3\xa4", "ASCII"},
        {"http://h/a?b", "no '?'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sonde_error err = {0};
        sn_endpoint e;
        CHECK_EQ(sn_endpoint_parse(cases[i].url, false, &e, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, cases[i].why);
    }
    sonde_error err = {0};
    sn_endpoint e;
    CHECK_EQ(sn_endpoint_parse("https://h:4318", false, &e, &err), SONDE_UNSUPPORTED);
    CHECK_HAS(err.message, "collector on this machine");
}

TEST(addresses_of_any_length_are_bounded)
{
    enum { N = 5000 };
    char *url = malloc(N + 1);
    for (size_t n = 7; n < N; n += 97) {
        sn_endpoint e;
        sonde_error err = {0};
        memset(url, 'a', n);
        memcpy(url, "http://", 7);
        url[n] = 0;
        (void)sn_endpoint_parse(url, false, &e, &err);
        if (n > 8) {
            url[8] = '/';
            (void)sn_endpoint_parse(url, n % 2, &e, &err);
            CHECK(strlen(e.path) < sizeof e.path);
        }
    }
    free(url);
}

TEST(headers_are_decoded_and_cannot_end_a_line)
{
    char to[SN_HEADER_BYTES];
    sonde_error err = {0};
    CHECK_OK(sn_headers_parse("api-key=a%20b, x = y ,,", to, &err));
    CHECK_STR(to, "api-key: a b\r\nx: y\r\n");
    CHECK_OK(sn_headers_parse(NULL, to, &err));
    CHECK_STR(to, "");
    CHECK_OK(sn_headers_parse("a=b=c%3D", to, &err));
    CHECK_STR(to, "a: b=c=\r\n");
    static const char *const bad[] = {
        "a=b%0d%0aX: y",    "a=b\r\nX: y", "a=%00", "a", "a b=c", "=v",
        "Content-Length=5", "host=x",      "a=\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(sn_headers_parse(bad[i], to, &err) == SONDE_INVALID_ARGUMENT, "%s", bad[i]);
}

TEST(too_many_headers_are_refused_and_nothing_is_written_behind_the_end)
{
    enum { N = 20000 };
    char *list = malloc(N + 1), *to = malloc(SN_HEADER_BYTES);
    sonde_error err = {0};
    memset(list, 'v', N);
    list[0] = 'a';
    list[1] = '=';
    list[N] = 0;
    CHECK(sn_headers_parse(list, to, &err) != SONDE_OK);
    for (size_t i = 0; i + 4 < N; i += 4)
        memcpy(list + i, "a=b,", 4);
    CHECK(sn_headers_parse(list, to, &err) != SONDE_OK);
    memset(list, 'n', N);
    CHECK(sn_headers_parse(list, to, &err) != SONDE_OK);
    free(list);
    free(to);
}

TEST_MAIN()
