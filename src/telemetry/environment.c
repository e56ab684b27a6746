/* SPDX-License-Identifier: Apache-2.0 */
/* A variable about traces alone goes before the one about everything, as OpenTelemetry has it, and
 * an empty variable is none. The address of the variable about traces is used as it stands. */
#include "telemetry/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ENDPOINT "http://127.0.0.1:4318"
enum {
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_WAIT_MS = 30000,
    DEFAULT_BYTES = 3 << 20,
    MOST_BYTES = 4 << 20,
    MOST_MS = 24 * 3600 * 1000
};

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static const char *either(const char *said, const char *first, const char *second)
{
    if (said)
        return said;
    const char *text = variable(first);
    return text || !second ? text : variable(second);
}

static sonde_status find_endpoint(const char *said, sn_endpoint *to, sonde_error *err)
{
    if (said && *said)
        return sn_endpoint_parse(said, false, to, err);
    const char *protocol =
        either(NULL, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
    if (protocol && strcmp(protocol, "grpc") == 0)
        return sn_fail(err, SONDE_UNSUPPORTED,
                       "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', which sonde does not speak; set it "
                       "to 'http/json', with the collector's port for HTTP (4318)");
    const char *traces = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    if (traces)
        return sn_endpoint_parse(traces, true, to, err);
    const char *base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    return sn_endpoint_parse(base ? base : DEFAULT_ENDPOINT, false, to, err);
}

static sonde_status find_timeout(int said, int *ms, sonde_error *err)
{
    const char *text =
        either(NULL, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
    *ms = said ? said : DEFAULT_TIMEOUT_MS;
    if (said || !text)
        return SONDE_OK;
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (*end || errno || n < 1 || n > MOST_MS)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "OTEL_EXPORTER_OTLP_TIMEOUT is '%.50s', expected milliseconds", text);
    *ms = (int)n;
    return SONDE_OK;
}

sonde_status sn_send_settings(const sn_send_options *said, sn_send_options *out, sn_endpoint *to,
                              sonde_error *err)
{
    *out = *said;
    if (said->timeout_ms < 0 || said->timeout_ms > MOST_MS || said->max_wait_ms < 0 ||
        said->max_wait_ms > MOST_MS)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a timeout is out of range; it is between 1 ms and a day");
    if (said->max_bytes > MOST_BYTES)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "a request of %zu bytes is too large; collectors take up to %d",
                       said->max_bytes, MOST_BYTES);
    out->headers =
        either(said->headers, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
    out->service_name = either(said->service_name, "OTEL_SERVICE_NAME", NULL);
    out->attributes = either(said->attributes, "OTEL_RESOURCE_ATTRIBUTES", NULL);
    out->max_wait_ms = said->max_wait_ms ? said->max_wait_ms : DEFAULT_WAIT_MS;
    out->max_bytes = said->max_bytes ? said->max_bytes : DEFAULT_BYTES;
    SN_TRY(find_timeout(said->timeout_ms, &out->timeout_ms, err));
    return find_endpoint(said->endpoint, to, err);
}
