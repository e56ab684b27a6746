/* SPDX-License-Identifier: Apache-2.0 */
/* The server: a poll loop over at most MOST connections. A connection is read up to the end of the
 * request's head, is answered, and is then read until the other side hangs up: closing before that
 * would take back what is still under way. Nobody can keep it busy: a head has a limit in bytes and
 * in time, and when all places are taken the one that has said nothing for longest is let go. */
#include "view/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

enum {
    MOST = 64,
    HEAD_BYTES = 16 << 10,
    TURN_MS = 100,
    SLOW_MS = 10000,
    LINGER_MS = 2000,
    SILENT_MS = 500
};

typedef enum turn { READING, WRITING, LINGERING } turn;

typedef struct connection {
    int fd;
    turn turn;
    double since_ms; /* reading: from its beginning; else from the last progress */
    size_t n;        /* of `in` */
    char *head;      /* of the answer */
    size_t head_bytes, sent;
    http_body *body;
    int mark;
    char in[HEAD_BYTES];
} connection;

struct http_server {
    int fd, port;
    connection *all[MOST];
    size_t n;
};

/* ------------------------------------------------------------------ bodies */
http_body *http_body_of(char *data, size_t bytes)
{
    http_body *b = need(calloc(1, sizeof *b));
    b->refs = 1;
    b->data = data;
    b->bytes = bytes;
    return b;
}

http_body *http_body_ref(http_body *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void http_body_drop(http_body *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    free(b->data);
    free(b);
}

/* ------------------------------------------------------------------ answers */
static const char *reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 304:
        return "Not Modified";
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Answer";
    }
}

/* Takes what is in the answer. A body is left out for HEAD; its length is said all the same. */
static void begin_answer(connection *c, http_answer *a, bool head_only)
{
    if (!a->body && a->status != 304) {
        char *said = text_of("%s\n", a->text ? a->text : reason(a->status));
        a->body = http_body_of(said, strlen(said));
        a->type = "text/plain; charset=utf-8";
    }
    char *size =
        a->body ? text_of("Content-Type: %s\r\nContent-Length: %zu\r\n", a->type, a->body->bytes)
                : text_of("%s", "");
    c->head = text_of("HTTP/1.1 %d %s\r\n"
                      "%s"
                      "Connection: close\r\n"
                      "Cache-Control: no-store\r\n"
                      "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
                      "Cross-Origin-Resource-Policy: same-origin\r\n"
                      "Referrer-Policy: no-referrer\r\n"
                      "X-Content-Type-Options: nosniff\r\n"
                      "X-Frame-Options: DENY\r\n"
                      "%s\r\n",
                      a->status, reason(a->status), size,
                      a->policy ? a->policy : "default-src 'none'", a->more ? a->more : "");
    c->head_bytes = strlen(c->head);
    c->mark = head_only ? 0 : a->mark;
    if (head_only)
        http_body_drop(a->body);
    else
        c->body = a->body;
    free(size);
    free(a->policy);
    free(a->more);
    c->turn = WRITING;
    c->since_ms = now_ms();
}

/* ------------------------------------------------------------------ connections */
static void drop(http_server *s, size_t i)
{
    connection *c = s->all[i];
    close(c->fd);
    free(c->head);
    http_body_drop(c->body);
    free(c);
    s->all[i] = s->all[--s->n];
}

static void finish(http_server *s, size_t i, const http_site *site)
{
    const connection *c = s->all[i];
    const int mark = c->turn == LINGERING ? c->mark : 0;
    drop(s, i);
    if (mark)
        site->sent(site->user, mark);
}

static bool would_wait(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* False: it is broken. */
static bool write_on(connection *c)
{
    const size_t body = c->body ? c->body->bytes : 0;
    while (c->sent < c->head_bytes + body) {
        const bool head = c->sent < c->head_bytes;
        const char *from = head ? c->head + c->sent : c->body->data + (c->sent - c->head_bytes);
        const size_t left = head ? c->head_bytes - c->sent : c->head_bytes + body - c->sent;
        const ssize_t n = send(c->fd, from, left, MSG_NOSIGNAL);
        if (would_wait(n))
            return true;
        if (n <= 0)
            return false;
        c->sent += (size_t)n;
        c->since_ms = now_ms();
    }
    shutdown(c->fd, SHUT_WR);
    c->turn = LINGERING;
    return true;
}

static void answer(connection *c, size_t head_bytes, const http_site *site)
{
    request r;
    http_answer a = {.status = request_parse(c->in, head_bytes, &r)};
    const bool good = !a.status;
    if (good)
        site->answer(site->user, &r, &a);
    begin_answer(c, &a, good && strcmp(r.method, "HEAD") == 0);
}

/* False: it is broken, or the other side has hung up. */
static bool read_on(connection *c, const http_site *site)
{
    const ssize_t n = recv(c->fd, c->in + c->n, HEAD_BYTES - c->n, 0);
    if (would_wait(n))
        return true;
    if (n <= 0)
        return false;
    c->n += (size_t)n;
    const char *end = memmem(c->in, c->n, "\r\n\r\n", 4);
    if (!end && c->n < HEAD_BYTES)
        return true;
    if (end)
        answer(c, (size_t)(end - c->in) + 4, site);
    else
        begin_answer(c, &(http_answer){.status = 431}, false);
    return write_on(c);
}

/* What comes after the request is read and forgotten. */
static bool hear_out(connection *c)
{
    const ssize_t n = recv(c->fd, c->in, HEAD_BYTES, 0);
    return n > 0 || would_wait(n);
}

static bool is_late(const connection *c)
{
    return now_ms() - c->since_ms > (c->turn == LINGERING ? LINGER_MS : SLOW_MS);
}

static void go_on(http_server *s, size_t i, bool ready, const http_site *site)
{
    connection *c = s->all[i];
    bool good = true;
    if (ready)
        good = c->turn == READING   ? read_on(c, site)
               : c->turn == WRITING ? write_on(c)
                                    : hear_out(c);
    if (!good || is_late(c))
        finish(s, i, site);
}

/* Who has said nothing for longest, of those whose place is for others; n: nobody. */
static size_t longest_silent(const http_server *s)
{
    size_t oldest = s->n;
    const double now = now_ms(); /* who has just come may still speak */
    for (size_t i = 0; i < s->n; i++)
        if (s->all[i]->turn == READING && now - s->all[i]->since_ms >= (double)SILENT_MS &&
            (oldest == s->n || s->all[i]->since_ms < s->all[oldest]->since_ms))
            oldest = i;
    return oldest;
}

/* False: all that there are have asked, and are being answered. */
static bool has_room(const http_server *s)
{
    return s->n < MOST || longest_silent(s) < s->n;
}

static bool make_room(http_server *s)
{
    if (!has_room(s))
        return false;
    if (s->n == MOST)
        drop(s, longest_silent(s));
    return true;
}

static void take_new(http_server *s)
{
    const int yes = 1;
    while (make_room(s)) {
        const int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                (void)poll(NULL, 0,
                           TURN_MS); /* it stays there to be taken: do not run in circles */
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        connection *c = need(calloc(1, sizeof *c));
        c->fd = fd;
        c->since_ms = now_ms();
        s->all[s->n++] = c;
    }
}

void http_serve(http_server *s, const http_site *site)
{
    while (!site->over(site->user)) {
        /* Who cannot be taken yet must not wake the loop again and again. */
        struct pollfd fds[MOST + 1] = {{.fd = has_room(s) ? s->fd : -1, .events = POLLIN}};
        for (size_t i = 0; i < s->n; i++)
            fds[i + 1] = (struct pollfd){
                .fd = s->all[i]->fd,
                .events = s->all[i]->turn == WRITING ? POLLOUT : POLLIN,
            };
        const bool any = poll(fds, s->n + 1, TURN_MS) > 0;
        for (size_t i = s->n;
             i--;) /* from the end: who goes is replaced by one that had its turn */
            go_on(s, i, any && fds[i + 1].revents, site);
        if (any && fds[0].revents)
            take_new(s);
    }
}

/* ------------------------------------------------------------------ opening, closing */
static int listen_at(http_server *s, const char *host, int port)
{
    const bool six = strchr(host, ':');
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 long_one = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    void *at = six ? (void *)&long_one : (void *)&four;
    socklen_t bytes = six ? sizeof long_one : sizeof four;
    const int yes = 1;
    if (inet_pton(six ? AF_INET6 : AF_INET, host,
                  six ? (void *)&long_one.sin6_addr : (void *)&four.sin_addr) != 1)
        return EINVAL;
    s->fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return errno;
    setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* ports of those that ended */
    if (bind(s->fd, at, bytes) || listen(s->fd, MOST) || getsockname(s->fd, at, &bytes))
        return errno;
    s->port = ntohs(six ? long_one.sin6_port : four.sin_port);
    return 0;
}

int http_open(http_server **server, const char *host, int port)
{
    http_server *s = need(calloc(1, sizeof *s));
    s->fd = -1;
    const int error = listen_at(s, host, port);
    if (!error) {
        *server = s;
        return EXIT_OK;
    }
    http_close(s);
    if (error == EADDRINUSE)
        return fail("port %d of %s is in use; choose another with --port, or leave --port out for "
                    "a free one",
                    port, host);
    return fail("cannot listen on port %d of %s: %s", port, host, strerror(error));
}

int http_port(const http_server *s)
{
    return s->port;
}

void http_close(http_server *s)
{
    if (!s)
        return;
    while (s->n)
        drop(s, s->n - 1);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
