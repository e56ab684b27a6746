/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP/1.1 server for the browser of the same machine: one thread, one answer for each
 * connection. */
#ifndef SONDE_VIEW_HTTP_H
#define SONDE_VIEW_HTTP_H

#include <stdatomic.h>

#include "view/request.h"

/* Bytes that several threads and answers share; the last who lets go frees them. */
typedef struct http_body {
    _Atomic size_t refs;
    size_t bytes;
    char *data;
} http_body;
http_body *http_body_of(char *data, size_t bytes); /* takes `data`, which came from malloc */
http_body *http_body_ref(http_body *b);
void http_body_drop(http_body *b); /* NULL accepted */

typedef struct http_answer {
    int status;
    const char *text; /* a sentence, where there is no body; NULL: nothing */
    const char *type; /* of the body */
    http_body *body;  /* a reference, which the server takes */
    char *policy;     /* Content-Security-Policy; from malloc, taken; NULL: nothing is allowed */
    char *more;       /* further headers, each with its end of line; from malloc, taken; or NULL */
    int mark;         /* not 0: told to `sent` */
} http_answer;

typedef struct http_site {
    /* Fills in *a, which is zero. Must not wait: everybody else does meanwhile. */
    void (*answer)(void *user, const request *r, http_answer *a);
    /* The answer with this mark has gone out as a whole, and whoever asked has hung up. */
    void (*sent)(void *user, int mark);
    bool (*over)(void *user); /* asked ten times a second and more */
    void *user;
} http_site;

typedef struct http_server http_server;
/* Listens on a loopback address, "127.0.0.1" or "::1"; port 0: one that is free. Returns an exit
 * code: the error was said. */
int http_open(http_server **server, const char *host, int port);
int http_port(const http_server *server);
void http_serve(http_server *server, const http_site *site); /* until it is over */
void http_close(http_server *server);                        /* NULL accepted */

#endif
