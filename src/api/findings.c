/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of a profile. Names in them are copies, so they outlive it. */
#include "sonde/experimental/findings.h"

#include "api/internal.h"
#include "findings/findings.h"

struct sonde_findings {
    sonde_context *context;
    sn_findings core;
};

const char *sonde_severity_text(sonde_severity severity)
{
    static const char *const words[] = {
        [SONDE_GOOD] = "good", [SONDE_NOTE] = "note", [SONDE_SLOW] = "slow"};
    return (size_t)severity < sizeof words / sizeof words[0] ? words[severity] : "unknown severity";
}

sonde_status sn_api_findings(sonde_context *c, sn_findings *core, sonde_findings **findings,
                             sonde_error *err)
{
    sonde_findings *made = sn_alloc_zero(&c->alloc, sizeof *made);
    if (!made) {
        sn_findings_free(core);
        return sn_fail_memory(err, sizeof *made);
    }
    made->core = *core;
    made->context = sn_api_context_ref(c);
    *findings = made;
    return SONDE_OK;
}

sonde_status sonde_profile_findings(const sonde_profile *profile, sonde_findings **findings,
                                    sonde_error *err)
{
    SN_REQUIRE(findings, err);
    *findings = NULL;
    SN_REQUIRE(profile, err);
    sn_findings core;
    SN_TRY(sn_findings_of(profile->core, &core, err));
    return sn_api_findings(profile->context, &core, findings, err);
}

size_t sonde_findings_count(const sonde_findings *findings)
{
    return findings ? findings->core.list.n : 0;
}

sonde_status sonde_findings_get(const sonde_findings *findings, size_t index,
                                sonde_finding *finding, sonde_error *err)
{
    SN_REQUIRE(findings, err);
    SN_REQUIRE(finding, err);
    if (index >= findings->core.list.n)
        return sn_fail(err, SONDE_NOT_FOUND,
                       "there are %zu findings, so finding %zu does not exist",
                       findings->core.list.n, index);
    *finding = findings->core.list.data[index];
    return SONDE_OK;
}

void sonde_findings_release(sonde_findings *findings)
{
    if (!findings)
        return;
    sonde_context *c = findings->context;
    sn_findings_free(&findings->core);
    sn_free(&c->alloc, findings, sizeof *findings);
    sonde_context_release(c);
}
