/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 reply, read as it arrives in pieces of any size. Bodies have a length, come in
 * chunks, or end with the connection. Everything is bounded; what is not a reply is an error and
 * never more than that. */
#ifndef SN_TELEMETRY_HTTP_REPLY_H
#define SN_TELEMETRY_HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SN_REPLY_HEAD_BYTES = 16384,  /* of all lines of a head together */
    SN_REPLY_BODY_BYTES = 65536,  /* are kept */
    SN_REPLY_MOST_BYTES = 1 << 22 /* are read of a body at all */
};

typedef enum sn_reply_state {
    SN_REPLY_MORE, /* bytes are missing */
    SN_REPLY_DONE,
    SN_REPLY_BAD
} sn_reply_state;

typedef struct sn_reply {
    int status;            /* 200; 0 before the first line */
    int64_t retry_after_s; /* -1: the header is not there, or a date */
    char location[256];    /* printable; "" */
    size_t body_bytes;     /* kept */
    char body[SN_REPLY_BODY_BYTES];
    const char *problem; /* of a bad one: a sentence */
    /* How far it is read: */
    int step;
    char line[4096];
    size_t line_bytes, head_bytes;
    uint64_t left, body_read; /* of the body, or of a chunk */
    bool has_length, chunked, cr;
} sn_reply;

void sn_reply_init(sn_reply *r);
/* The next bytes; those behind the end of the reply are not looked at. */
sn_reply_state sn_reply_feed(sn_reply *r, const void *data, size_t bytes);
/* The connection has been closed. */
sn_reply_state sn_reply_close(sn_reply *r);

#endif
