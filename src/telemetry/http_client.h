/* SPDX-License-Identifier: Apache-2.0 */
/* One POST over a connection of its own, and the reply to it. */
#ifndef SN_TELEMETRY_HTTP_CLIENT_H
#define SN_TELEMETRY_HTTP_CLIENT_H

#include "base/stop.h"
#include "telemetry/endpoint.h"
#include "telemetry/http_reply.h"

typedef struct sn_http_post {
    const sn_endpoint *to;
    const char *type;    /* of the body: "application/json" */
    const char *headers; /* "name: value\r\n…"; "" */
    const void *body;
    size_t bytes;
    uint64_t deadline_ns; /* by sn_now_ns */
    const sn_stop *stop;  /* asked ten times a second; NULL */
} sn_http_post;

/* SONDE_OK: there is a reply, whatever its status. SONDE_IO: there is none, and the error says who
 * did not give one and why. SONDE_CANCELLED. */
sonde_status sn_http_send(const sn_http_post *post, sn_reply *reply, sonde_error *err);

#endif
