/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP request, taken apart, and the rules by which one is answered. No function
 * here reads or writes anything but its arguments, so that any bytes can be tried. */
#ifndef SONDE_VIEW_REQUEST_H
#define SONDE_VIEW_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct request {                       /* texts lie in the head that was parsed */
    const char *method;                        /* "GET" */
    const char *path;                          /* "/data" */
    const char *query;                         /* behind the '?'; "" where there is none */
    const char *host, *origin, *if_none_match; /* NULL: no such header */
} request;

/* `head` goes up to and with its empty line, and is cut into texts where it lies. Returns 0, or the
 * HTTP status to answer with. */
int request_parse(char *head, size_t bytes, request *r);

/* Who may be answered: who knows the token, asks for this machine by a name of its own (a name that
 * somebody else's DNS gives it is none), and does not come from a page of another address. Returns
 * 0, or the HTTP status with the reason in *why. */
int request_check(const request *r, const char *token, int port, const char **why);

/* Whether whoever asks has this version already; the tag has its quotes. */
bool request_has(const request *r, const char *tag);

#endif
