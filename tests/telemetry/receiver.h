/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver on the loopback interface: one connection after another, each with the next of some
 * answers, and what was asked is kept. It ends when its answers are given or receiver_close is
 * called. */
#ifndef SONDE_TESTS_TELEMETRY_RECEIVER_H
#define SONDE_TESTS_TELEMETRY_RECEIVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVER_MOST = 64 };

/* Answers that are no text. */
#define CLOSE_AT_ONCE "\1close" /* before anything is read */
#define CLOSE_AFTER   "\1after" /* when the request was read */
#define HANG          "\1hang"  /* nothing, until the sender goes */
#define REFUSE_UNREAD "\1early" /* an answer of 413 after the first bytes, then it closes */

typedef struct receiver {
    int fd;
    char url[64];
    pthread_t thread;
    const char *const *answers;
    size_t n_answers, n_requests;
    char *requests[RECEIVER_MOST]; /* head and body, terminated */
} receiver;

static inline size_t receiver_length(const char *request)
{
    const char *at = strcasestr(request, "\r\ncontent-length:");
    return at ? (size_t)strtoul(at + 17, NULL, 10) : 0;
}

/* The whole request; NULL: the sender went before its end. */
static inline char *receiver_read(int fd)
{
    size_t n = 0, cap = 65536;
    char *text = malloc(cap + 1);
    for (;;) {
        text[n] = 0;
        const char *end = strstr(text, "\r\n\r\n");
        if (end && n >= (size_t)(end - text) + 4 + receiver_length(text))
            return text;
        if (n == cap)
            text = realloc(text, (cap *= 2) + 1);
        const ssize_t got = recv(fd, text + n, cap - n, 0);
        if (got <= 0) {
            free(text);
            return NULL;
        }
        n += (size_t)got;
    }
}

static inline void receiver_answer(receiver *r, int fd, const char *answer)
{
    char rest[4096];
    if (strcmp(answer, CLOSE_AT_ONCE) == 0)
        return;
    if (strcmp(answer, REFUSE_UNREAD) == 0) {
        static const char no[] = "HTTP/1.1 413 Too large\r\nContent-Length: 9\r\n\r\ntoo large";
        (void)recv(fd, rest, sizeof rest, 0);
        (void)send(fd, no, sizeof no - 1, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        while (recv(fd, rest, sizeof rest, 0) > 0)
            continue;
        return;
    }
    char *request = receiver_read(fd);
    if (request && r->n_requests < RECEIVER_MOST)
        r->requests[r->n_requests++] = request;
    else
        free(request);
    if (strcmp(answer, HANG) == 0)
        while (recv(fd, rest, sizeof rest, 0) > 0)
            continue;
    else if (strcmp(answer, CLOSE_AFTER) != 0)
        (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
}

static inline void *receiver_main(void *arg)
{
    receiver *r = arg;
    for (size_t i = 0; i < r->n_answers; i++) {
        const int fd = accept(r->fd, NULL, NULL);
        if (fd < 0)
            break;
        receiver_answer(r, fd, r->answers[i]);
        close(fd);
    }
    return NULL;
}

static inline void receiver_open(receiver *r, const char *const *answers, size_t n)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    memset(r, 0, sizeof *r);
    r->answers = answers;
    r->n_answers = n;
    r->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (r->fd < 0 || bind(r->fd, (struct sockaddr *)&at, sizeof at) || listen(r->fd, 8) ||
        getsockname(r->fd, (struct sockaddr *)&at, &bytes) ||
        pthread_create(&r->thread, NULL, receiver_main, r))
        abort();
    snprintf(r->url, sizeof r->url, "http://127.0.0.1:%d", ntohs(at.sin_port));
}

static inline void receiver_close(receiver *r)
{
    shutdown(r->fd, SHUT_RDWR); /* ends an accept that nobody answers */
    pthread_join(r->thread, NULL);
    close(r->fd);
    for (size_t i = 0; i < r->n_requests; i++)
        free(r->requests[i]);
}

#endif
