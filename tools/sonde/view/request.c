/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, as RFC 9112 writes them. What is not written exactly so is refused: nobody but browsers
 * and scripts asks, and they write it so. */
#include "request.h" /* beside this file: a fuzzer takes it without the program */

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------ the head */
static bool is_token(const char *s)
{
    static const char known[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *s && s[strspn(s, known)] == 0;
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
            return true;
    return false;
}

/* The line at *at, which goes behind it; NULL: there is none that ends as it must. */
static char *next_line(char **at, const char *end)
{
    char *line = *at, *feed = memchr(line, '\n', (size_t)(end - line));
    if (!feed || feed == line || feed[-1] != '\r')
        return NULL;
    feed[-1] = 0;
    *at = feed + 1;
    return has_control(line) ? NULL : line;
}

/* "GET /data?token=1 HTTP/1.1" */
static int parse_first(char *line, request *r)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return 400;
    *target++ = 0;
    *version++ = 0;
    if (!is_token(line) || *target != '/')
        return 400;
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return strncmp(version, "HTTP/", 5) == 0 ? 505 : 400;
    char *mark = strchr(target, '?');
    if (mark) {
        *mark = 0;
        r->query = mark + 1;
    }
    r->method = line;
    r->path = target;
    return 0;
}

static char *trimmed(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    s[n] = 0;
    return s;
}

/* One that decides something must not be there twice: somebody else may have read the other. */
static bool parse_header(char *line, request *r)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return false;
    *colon = 0;
    const struct {
        const char *name;
        const char **value;
    } known[] = {{"host", &r->host}, {"origin", &r->origin}, {"if-none-match", &r->if_none_match}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (strcasecmp(line, known[k].name) == 0) {
            if (*known[k].value)
                return false;
            *known[k].value = trimmed(colon + 1);
        }
    return is_token(line);
}

int request_parse(char *head, size_t bytes, request *r)
{
    *r = (request){.query = ""};
    if (memchr(head, 0, bytes))
        return 400;
    const char *end = head + bytes;
    char *line = next_line(&head, end);
    const int status = line ? parse_first(line, r) : 400;
    if (status)
        return status;
    while ((line = next_line(&head, end)) && *line)
        if (!parse_header(line, r))
            return 400;
    return line ? 0 : 400;
}

/* ------------------------------------------------------------------ the rules */
static bool is_own_address(const char *host, int port)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    char own[32];
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        snprintf(own, sizeof own, "%s:%d", names[k], port);
        if (strcmp(host, own) == 0 || (port == 80 && strcmp(host, names[k]) == 0))
            return true;
    }
    return false;
}

static bool is_own_origin(const request *r)
{
    static const char scheme[] = "http://";
    const size_t n = sizeof scheme - 1;
    return !r->origin ||
           (strncmp(r->origin, scheme, n) == 0 && strcmp(r->origin + n, r->host) == 0);
}

/* Takes as long wherever the first difference is: time tells nothing of the token. */
static bool same_secret(const char *said, size_t n, const char *secret)
{
    const size_t m = strlen(secret);
    volatile unsigned char differs = n != m;
    for (size_t i = 0; i < m; i++)
        differs |= (unsigned char)((i < n ? said[i] : 0) ^ secret[i]);
    return !differs;
}

static bool has_token(const char *query, const char *token)
{
    static const char key[] = "token=";
    for (const char *at = query; *at;) {
        const size_t n = strcspn(at, "&"), m = sizeof key - 1;
        if (n >= m && memcmp(at, key, m) == 0)
            return same_secret(at + m, n - m, token);
        at += n + (at[n] == '&');
    }
    return false;
}

int request_check(const request *r, const char *token, int port, const char **why)
{
    *why = NULL;
    if (!r->host || !is_own_address(r->host, port))
        *why = "This server answers only at 127.0.0.1, localhost and [::1].";
    else if (!is_own_origin(r))
        *why = "This server does not answer pages of other addresses.";
    else if (!has_token(r->query, token))
        *why = "The address lacks the token: use the whole address that 'sonde view' printed.";
    if (*why)
        return 403;
    if (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0)
        return 0;
    *why = "Only GET and HEAD are answered.";
    return 405;
}

bool request_has(const request *r, const char *tag)
{
    return r->if_none_match &&
           (strstr(r->if_none_match, tag) || strcmp(r->if_none_match, "*") == 0);
}
