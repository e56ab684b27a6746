/* SPDX-License-Identifier: Apache-2.0 */
/* What a running service counts, as text for Prometheus: a histogram of the latency of runs, errors
 * and runs under way for each model and session number, memory, and how the recorder is doing.
 *
 *     sonde_metrics_start(NULL, &err);
 *     … sessions run …
 *     sonde_metrics_options how = SONDE_INIT(sonde_metrics_options);
 *     sonde_metrics_write(NULL, &how, append, &reply, &err);
 *
 * The answer to GET /metrics has the content type `text/plain; version=0.0.4; charset=utf-8`, or
 * for OpenMetrics `application/openmetrics-text; version=1.0.0; charset=utf-8`. Experimental: may
 * change between versions. */
#ifndef SONDE_EXPERIMENTAL_METRICS_H
#define SONDE_EXPERIMENTAL_METRICS_H

#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs of the context that begin from now on are counted, which costs some tens of nanoseconds a
 * run. Nothing stops it before the context goes, and counters stay when sessions are released.
 * Calling it again does nothing. A context of NULL is the process default. */
SONDE_API sonde_status sonde_metrics_start(sonde_context *context, sonde_error *err);

typedef struct sonde_metrics_options {
    size_t struct_size;
    int openmetrics; /* OpenMetrics 1.0; else Prometheus' text format 0.0.4 */
} sonde_metrics_options;

/* Everything counted so far, piece by piece; `options` may be NULL. Starts counting where nobody
 * has. */
SONDE_API sonde_status sonde_metrics_write(sonde_context *context,
                                           const sonde_metrics_options *options,
                                           void (*write)(void *user, const char *data, size_t size),
                                           void *user, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
