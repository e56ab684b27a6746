/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenTelemetry's environment variables say where the caller says nothing. */
#ifndef SN_TELEMETRY_ENVIRONMENT_H
#define SN_TELEMETRY_ENVIRONMENT_H

#include "telemetry/endpoint.h"
#include "telemetry/send.h"

/* Options with nothing left open; texts are the caller's or the environment's. */
sonde_status sn_send_settings(const sn_send_options *said, sn_send_options *out, sn_endpoint *to,
                              sonde_error *err);

#endif
