/* SPDX-License-Identifier: Apache-2.0 */
/* Sending a profile: options of the public API as those of `telemetry`. */
#include "sonde/experimental/otlp.h"
#include "api/internal.h"
#include "telemetry/send.h"

static bool is_cancelled(void *user)
{
    const sonde_cancel_token *token = user;
    return sn_api_cancelled(token);
}

sonde_status sonde_otlp_send(const sonde_profile *profile, const sonde_otlp_options *options,
                             sonde_otlp_result *result, sonde_error *err)
{
    sonde_otlp_options o;
    uint32_t categories;
    SN_REQUIRE(profile, err);
    SN_OPTIONS(o, options, err);
    SN_TRY(sn_prof_cats_parse(o.categories, &categories, err));
    const sn_send_options how = {.endpoint = o.endpoint,
                                 .headers = o.headers,
                                 .service_name = o.service_name,
                                 .attributes = o.attributes,
                                 .timeout_ms = o.timeout_ms,
                                 .max_wait_ms = o.max_wait_ms,
                                 .max_bytes = o.max_bytes,
                                 .categories = categories};
    const sn_stop stop = {is_cancelled, o.cancel};
    sn_send_result sent;
    const sonde_status st =
        sn_send_profile(profile->core, &how, o.cancel ? &stop : NULL, &sent, err);
    if (!result)
        return st;
    sonde_otlp_result own = {.spans = sent.spans,
                             .rejected = sent.rejected,
                             .requests = sent.requests,
                             .retries = sent.retries};
    memcpy(own.message, sent.message, sizeof own.message);
    const sonde_status copied = sn_api_copy_out(result, &own, sizeof own, st ? NULL : err);
    return st ? st : copied;
}
