/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses are read strictly: what would have to be guessed is an error that says what is
 * expected. Nothing of them may end a line of the request. */
#include "telemetry/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

static const char traces_path[] = "/v1/traces";

static sonde_status no_address(const char *url, const char *why, sonde_error *err)
{
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "'%.200s' is not an address of a collector: %s; expected "
                   "http://HOST:PORT, such as http://127.0.0.1:4318",
                   url, why);
}

/* Neither spaces nor control characters, and ASCII alone. */
static bool is_plain(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f)
            return false;
    return true;
}

static bool copy(char *to, size_t room, const char *from, size_t n)
{
    if (n >= room)
        return false;
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

/* "name", "name:1234", "[::1]:1234" */
static const char *parse_authority(const char *at, size_t n, sn_endpoint *e)
{
    const char *end = at + n, *host = at, *colon;
    size_t host_n;
    if (memchr(at, '@', n))
        return "names and passwords in it are not sent; use a header";
    if (n && *at == '[') {
        const char *close = memchr(at, ']', n);
        if (!close)
            return "the ']' of an IPv6 address is missing";
        host = at + 1;
        host_n = (size_t)(close - host);
        colon = close + 1 < end ? close + 1 : NULL;
    } else {
        colon = memchr(at, ':', n);
        host_n = colon ? (size_t)(colon - at) : n;
    }
    if (!host_n || !copy(e->host, sizeof e->host, host, host_n))
        return host_n ? "the host's name is too long" : "it has no host";
    if (colon && *colon != ':')
        return "something stands behind the ']'";
    const size_t port_n = colon ? (size_t)(end - colon) - 1 : 0;
    if (colon && (!port_n || port_n > 5 || strspn(colon + 1, "0123456789") < port_n))
        return "the port is not a number";
    if (colon)
        (void)copy(e->port, sizeof e->port, colon + 1, port_n);
    else
        snprintf(e->port, sizeof e->port, "80");
    const long port = strtol(e->port, NULL, 10);
    if (port < 1 || port > 65535)
        return "the port is not between 1 and 65535";
    if (!copy(e->authority, sizeof e->authority, at, n))
        return "the host's name is too long";
    return NULL;
}

static const char *parse_path(const char *path, bool whole, sn_endpoint *e)
{
    size_t n = strcspn(path, "#");
    if (!whole && memchr(path, '?', n))
        return "a base address has no '?'";
    if (whole) {
        const int made =
            snprintf(e->path, sizeof e->path, "%s%.*s", *path == '/' ? "" : "/", (int)n, path);
        return made < 0 || (size_t)made >= sizeof e->path ? "the path is too long" : NULL;
    }
    while (n && path[n - 1] == '/')
        n--;
    const size_t own = sizeof traces_path - 1;
    const bool there = n >= own && memcmp(path + n - own, traces_path, own) == 0;
    const int made = n < sizeof e->path ? snprintf(e->path, sizeof e->path, "%.*s%s", (int)n, path,
                                                   there ? "" : traces_path)
                                        : -1;
    return made < 0 || (size_t)made >= sizeof e->path ? "the path is too long" : NULL;
}

sonde_status sn_endpoint_parse(const char *url, bool whole, sn_endpoint *e, sonde_error *err)
{
    static const char scheme[] = "http://";
    const size_t skip = sizeof scheme - 1;
    memset(e, 0, sizeof *e);
    if (strncasecmp(url, "https://", 8) == 0)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "'%.200s': sonde speaks http without TLS only; send to an OpenTelemetry "
                       "collector on this machine (http://127.0.0.1:4318), which passes spans on "
                       "by https",
                       url);
    if (strncasecmp(url, scheme, skip) != 0)
        return no_address(url, "it does not begin with http://", err);
    if (!is_plain(url))
        return no_address(url, "it has spaces or characters that are not ASCII", err);
    const char *at = url + skip;
    const size_t n = strcspn(at, "/?#");
    const char *why = parse_authority(at, n, e);
    if (!why)
        why = parse_path(at + n, whole, e);
    return why ? no_address(url, why, err) : SONDE_OK;
}

/* ------------------------------------------------------------------ headers */
static bool is_token(const char *s, size_t n)
{
    static const char known[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return n && strspn(s, known) >= n;
}

/* Those that the request itself has, or that say how long it is. */
static bool is_reserved(const char *s, size_t n)
{
    static const char *const names[] = {"host",       "content-length",    "content-type",
                                        "connection", "transfer-encoding", "expect",
                                        "upgrade"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strlen(names[k]) == n && strncasecmp(s, names[k], n) == 0)
            return true;
    return false;
}

static void trim(const char **s, size_t *n)
{
    while (*n && (**s == ' ' || **s == '\t'))
        ++*s, --*n;
    while (*n && ((*s)[*n - 1] == ' ' || (*s)[*n - 1] == '\t'))
        --*n;
}

/* The value, decoded, behind `to`; false: a character that no header may have, or no room. */
static bool put_value(char *to, size_t *at, const char *value, size_t n)
{
    for (size_t used; n; value += used, n -= used) {
        const int c = sn_percent_byte(value, n, &used);
        if (c < ' ' || c == 0x7f || *at + 4 > SN_HEADER_BYTES)
            return false;
        to[(*at)++] = (char)c;
    }
    return true;
}

sonde_status sn_headers_parse(const char *list, char to[SN_HEADER_BYTES], sonde_error *err)
{
    size_t at = 0;
    to[0] = 0;
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        const char *name = list, *equals = memchr(list, '=', n), *value = equals ? equals + 1 : "";
        size_t name_n = equals ? (size_t)(equals - name) : n, value_n = equals ? n - name_n - 1 : 0;
        list += list[n] ? n + 1 : n;
        trim(&name, &name_n);
        trim(&value, &value_n);
        if (!name_n && !value_n)
            continue;
        if (!equals || !is_token(name, name_n))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "headers are written 'name=value,name=value'; '%.*s' is no such pair",
                           (int)(n < 100 ? n : 100), name);
        if (is_reserved(name, name_n))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the header '%.*s' cannot be set",
                           (int)name_n, name);
        if (at + name_n + 6 > SN_HEADER_BYTES)
            return sn_fail(err, SONDE_LIMIT, "the headers take more than %d bytes",
                           SN_HEADER_BYTES);
        memcpy(to + at, name, name_n);
        at += name_n;
        to[at++] = ':';
        to[at++] = ' ';
        if (!put_value(to, &at, value, value_n))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the value of the header '%.*s' is too long or has a character that "
                           "headers cannot have",
                           (int)(name_n < 100 ? name_n : 100), name);
        to[at++] = '\r';
        to[at++] = '\n';
        to[at] = 0;
    }
    return SONDE_OK;
}
