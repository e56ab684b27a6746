/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a profile to an OpenTelemetry collector: OTLP over HTTP/1.1 in JSON. Each run is a span,
 * its operators are spans inside of it; a run that was given a `traceparent` belongs to that trace,
 * and is left out where the caller did not sample it. Host and labels are attributes of the
 * resource; each worker of a joined profile is a resource of its own.
 *
 *     sonde_otlp_options how = SONDE_INIT(sonde_otlp_options);
 *     sonde_otlp_result sent = SONDE_INIT(sonde_otlp_result);
 *     how.endpoint = "http://127.0.0.1:4318";
 *     if (sonde_otlp_send(profile, &how, &sent, &err))
 *         warn(err.message);
 *
 * The same bytes go to a file with the suffix ".otlp.json".
 * Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_OTLP_H
#define SONDE_EXPERIMENTAL_OTLP_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is NULL or 0 is taken from OpenTelemetry's environment variables, in brackets, and else has
 * the default behind them. */
typedef struct sonde_otlp_options {
    size_t struct_size;
    /* Base address; /v1/traces is put behind it. http only. [OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, as
     * it is; OTEL_EXPORTER_OTLP_ENDPOINT] http://127.0.0.1:4318 */
    const char *endpoint;
    const char *headers;      /* "key=value,key=value" [OTEL_EXPORTER_OTLP_HEADERS] none */
    const char *service_name; /* [OTEL_SERVICE_NAME] "sonde" */
    const char *attributes;   /* of the resource, "key=value,…" [OTEL_RESOURCE_ATTRIBUTES] none */
    int timeout_ms;           /* of one attempt [OTEL_EXPORTER_OTLP_TIMEOUT] 10000 */
    int max_wait_ms;          /* of all pauses before further attempts together; 30000 */
    size_t max_bytes;         /* of one request; 3 MiB, and at most 4 */
    const char *categories;   /* of spans, as in sonde_export_options */
    sonde_cancel_token *cancel;
} sonde_otlp_options;

typedef struct sonde_otlp_result {
    size_t struct_size;
    uint64_t spans;    /* sent */
    uint64_t rejected; /* of those, the collector did not take so many */
    uint64_t requests, retries;
    char message[512]; /* what the collector said of spans it did not take, or warned of; "" */
} sonde_otlp_result;

/* Takes as long as the network does: not for the thread that serves requests. A receiver that is
 * busy (status 429, 502, 503, 504) is asked again, after the pause it names. `result` may be NULL;
 * it says what was sent also when the end could not be. */
SONDE_API sonde_status sonde_otlp_send(const sonde_profile *profile,
                                       const sonde_otlp_options *options, sonde_otlp_result *result,
                                       sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
