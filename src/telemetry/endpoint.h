/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a request goes to, and what stands in its head. */
#ifndef SN_TELEMETRY_ENDPOINT_H
#define SN_TELEMETRY_ENDPOINT_H

#include "base/status.h"

enum { SN_HEADER_BYTES = 8192 };

typedef struct sn_endpoint {
    char host[256]; /* a name or an address, without brackets */
    char port[8];
    char path[1024];     /* with what follows a '?' */
    char authority[272]; /* as the header Host has it */
} sn_endpoint;

/* "http://host:port/path". `whole`: the path is used as it is ("/" where there is none); else it is
 * a base, and /v1/traces goes behind it unless it ends so. */
sonde_status sn_endpoint_parse(const char *url, bool whole, sn_endpoint *e, sonde_error *err);

/* "key=value,key=value", values percent-encoded ► "key: value\r\n…". */
sonde_status sn_headers_parse(const char *list, char to[SN_HEADER_BYTES], sonde_error *err);

#endif
