/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets never block: every wait is a poll that ends at the deadline, and a tenth of a second
 * later at most when the caller wants to stop. A receiver that answers before it has read
 * everything is heard: it may be refusing. */
#include "telemetry/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { LOOK_MS = 100 }; /* between two looks at `stop` */

typedef struct connection {
    const sn_http_post *post;
    int fd;
    sonde_error *err;
} connection;

static sonde_status no_answer(const connection *c, const char *why)
{
    return sn_fail(c->err, SONDE_IO, "cannot send to http://%s%s: %s", c->post->to->authority,
                   c->post->to->path, why);
}

static sonde_status no_answer_errno(const connection *c, const char *what, int number)
{
    char text[200];
    snprintf(text, sizeof text, "%s: %s", what, strerror(number));
    return no_answer(c, text);
}

/* Until one of `events` is there, or an error of the socket is. */
static sonde_status wait_for(const connection *c, short events, short *got, const char *meanwhile)
{
    for (;;) {
        if (sn_stop_wanted(c->post->stop))
            return sn_stop_error(c->err);
        const uint64_t now = sn_now_ns();
        if (now >= c->post->deadline_ns)
            return no_answer(c, meanwhile);
        const uint64_t left_ms = (c->post->deadline_ns - now) / 1000000 + 1;
        struct pollfd p = {.fd = c->fd, .events = events};
        const int n = poll(&p, 1, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        if (n < 0 && errno != EINTR)
            return no_answer_errno(c, "poll", errno);
        if (n > 0) {
            *got = p.revents;
            return SONDE_OK;
        }
    }
}

/* ------------------------------------------------------------------ connecting */
static sonde_status connect_to(connection *c, const struct addrinfo *at)
{
    short got;
    int error = 0;
    socklen_t bytes = sizeof error;
    const int yes = 1;
    c->fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return no_answer_errno(c, "no socket", errno);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(c->fd, at->ai_addr, at->ai_addrlen) == 0)
        return SONDE_OK;
    if (errno != EINPROGRESS)
        return errno == ECONNREFUSED
                   ? no_answer(c, "nobody listens there; is the collector running?")
                   : no_answer_errno(c, "no connection", errno);
    SN_TRY(wait_for(c, POLLOUT, &got, "it does not accept the connection in time"));
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        error = errno;
    if (error == ECONNREFUSED)
        return no_answer(c, "nobody listens there; is the collector running?");
    return error ? no_answer_errno(c, "no connection", error) : SONDE_OK;
}

static sonde_status open_connection(connection *c)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int status = getaddrinfo(c->post->to->host, c->post->to->port, &wanted, &found);
    if (status != 0)
        return no_answer(c, status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
    sonde_status st = SONDE_IO;
    for (const struct addrinfo *at = found; at && st == SONDE_IO; at = at->ai_next) {
        if (c->fd >= 0)
            close(c->fd);
        c->fd = -1;
        st = connect_to(c, at);
    }
    freeaddrinfo(found);
    return st;
}

/* ------------------------------------------------------------------ talking */
typedef struct piece { /* of the request */
    const char *data;
    size_t n;
} piece;

/* What can be read now. *over: the reply is complete, or the connection has ended. */
static sonde_status read_some(const connection *c, sn_reply *reply, bool *over)
{
    char buffer[16384];
    const ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return SONDE_OK;
    if (n < 0 && !reply->status)
        return no_answer_errno(c, "no reply", errno);
    const sn_reply_state state =
        n > 0 ? sn_reply_feed(reply, buffer, (size_t)n) : sn_reply_close(reply);
    if (state == SN_REPLY_BAD)
        return no_answer(c, reply->problem);
    *over = state == SN_REPLY_DONE;
    return SONDE_OK;
}

/* As much of the request as goes out now; *hears: the receiver reads on. */
static sonde_status write_some(const connection *c, piece *parts, bool *hears)
{
    piece *part = parts[0].n ? &parts[0] : &parts[1];
    const ssize_t n = send(c->fd, part->data, part->n, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return SONDE_OK;
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) { /* perhaps it has said why */
        *hears = false;
        return SONDE_OK;
    }
    if (n < 0)
        return no_answer_errno(c, "it could not be sent", errno);
    part->data += n;
    part->n -= (size_t)n;
    return SONDE_OK;
}

static sonde_status exchange(const connection *c, const char *head, size_t head_bytes,
                             sn_reply *reply)
{
    piece parts[2] = {{head, head_bytes}, {c->post->body, c->post->bytes}};
    bool over = false, hears = true;
    while (!over) {
        const bool writes = hears && (parts[0].n || parts[1].n);
        short got;
        SN_TRY(wait_for(c, (short)(POLLIN | (writes ? POLLOUT : 0)), &got,
                        writes ? "it does not read the request in time"
                               : "it does not reply in time"));
        if (got & (POLLIN | POLLHUP | POLLERR))
            SN_TRY(read_some(c, reply, &over));
        if (!over && writes && (got & POLLOUT))
            SN_TRY(write_some(c, parts, &hears));
    }
    return SONDE_OK;
}

sonde_status sn_http_send(const sn_http_post *post, sn_reply *reply, sonde_error *err)
{
    char head[SN_HEADER_BYTES + 2048];
    connection c = {.post = post, .fd = -1, .err = err};
    sn_reply_init(reply);
    const int n = snprintf(head, sizeof head,
                           "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: sonde/%s\r\n"
                           "Content-Type: %s\r\nContent-Length: %zu\r\nAccept: application/json\r\n"
                           "Connection: close\r\n%s\r\n",
                           post->to->path, post->to->authority, SONDE_VERSION_TEXT, post->type,
                           post->bytes, post->headers);
    if (n < 0 || (size_t)n >= sizeof head)
        return sn_fail(err, SONDE_LIMIT, "the headers are too long");
    sonde_status st = open_connection(&c);
    if (st == SONDE_OK)
        st = exchange(&c, head, (size_t)n, reply);
    if (c.fd >= 0)
        close(c.fd);
    return st;
}
