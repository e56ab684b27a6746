/* SPDX-License-Identifier: Apache-2.0 */
/* Findings through the public API: they outlive the profile, and a wrong call is told so. What they
 * say is tested in tests/findings. */
#include "sonde/experimental/findings.h"
#include "tiny_session.h"

static sonde_profile *record(const tiny_session *t, int runs)
{
    sonde_profile *profile = NULL;
    if (sonde_profiler_start(t->context, 1, NULL))
        abort();
    tiny_run(t, runs);
    if (sonde_profiler_stop(t->context, &profile, NULL))
        abort();
    return profile;
}

TEST(findings_outlive_their_profile_and_context)
{
    tiny_session t = {0};
    sonde_error err;
    tiny_open(&t, 1, "findings");
    sonde_profile *profile = record(&t, 5);
    sonde_findings *found = NULL;
    CHECK_OK(sonde_profile_findings(profile, &found, &err));
    sonde_profile_release(profile);
    tiny_close(&t);
    CHECK(sonde_findings_count(found) > 0);
    for (size_t i = 0; i < sonde_findings_count(found); i++) {
        sonde_finding f;
        CHECK_OK(sonde_findings_get(found, i, &f, &err));
        CHECK(*f.topic && *f.finding && f.evidence && f.remedy);
        CHECK(f.severity >= SONDE_GOOD && f.severity <= SONDE_SLOW);
        if (i == 0)
            CHECK_STR(f.topic, "operators");
    }
    sonde_finding none;
    CHECK_EQ(sonde_findings_get(found, 1000, &none, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "finding 1000 does not exist");
    sonde_findings_release(found);
}

TEST(a_profile_without_runs_has_no_findings)
{
    tiny_session t = {0};
    sonde_error err;
    tiny_open(&t, 1, "findings");
    sonde_profile *profile = record(&t, 0);
    sonde_findings *found = NULL;
    CHECK_OK(sonde_profile_findings(profile, &found, &err));
    CHECK_EQ(sonde_findings_count(found), 0);
    sonde_findings_release(found);
    sonde_profile_release(profile);
    tiny_close(&t);
}

TEST(wrong_calls_are_errors)
{
    sonde_findings *found = (sonde_findings *)(uintptr_t)1;
    sonde_finding f;
    sonde_error err;
    CHECK_EQ(sonde_profile_findings(NULL, &found, &err), SONDE_INVALID_ARGUMENT);
    CHECK(!found);
    CHECK_EQ(sonde_profile_findings(NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_findings_get(NULL, 0, &f, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_findings_count(NULL), 0);
    sonde_findings_release(NULL);
    CHECK_STR(sonde_severity_text(SONDE_GOOD), "good");
    CHECK_STR(sonde_severity_text(SONDE_SLOW), "slow");
    CHECK_STR(sonde_severity_text((sonde_severity)7), "unknown severity");
}

TEST_MAIN()
