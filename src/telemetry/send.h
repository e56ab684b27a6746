/* SPDX-License-Identifier: Apache-2.0 */
/* Sending a profile to an OpenTelemetry collector. */
#ifndef SN_TELEMETRY_SEND_H
#define SN_TELEMETRY_SEND_H

#include "base/stop.h"
#include "profile/profile.h"

/* NULL and 0 mean what the variables OTEL_… say, and the default in brackets where they say
 * nothing. */
typedef struct sn_send_options {
    const char *endpoint; /* base address; "/v1/traces" is put behind it [http://127.0.0.1:4318] */
    const char *headers;  /* "key=value,key=value" */
    const char *service_name; /* ["sonde"] */
    const char *attributes;   /* of the resource: "key=value,…" */
    int timeout_ms;           /* of one attempt to send one request [10000] */
    int max_wait_ms;          /* of all pauses between attempts together [30000] */
    size_t max_bytes;         /* of a request's body [3 MiB]; at most 4 MiB */
    uint32_t categories;      /* a set of spans, as of sn_otlp_open */
} sn_send_options;

typedef struct sn_send_result {
    uint64_t spans;    /* sent; and of those that */
    uint64_t rejected; /* the receiver did not take */
    uint64_t requests, retries;
    char message[512]; /* what the receiver said of the last part it did not take, or warned of; ""
                        */
} sn_send_result;

/* `result` is filled in also after an error, with what was sent before. `stop` NULL: nothing ends
 * it early. */
sonde_status sn_send_profile(const sn_profile *p, const sn_send_options *options,
                             const sn_stop *stop, sn_send_result *result, sonde_error *err);

#endif
