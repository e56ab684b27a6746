/* SPDX-License-Identifier: Apache-2.0 */
/* A model: run for a while under the profiler, then judged by what the profile says, by what is
 * behind its reorders, by its numbers, and by what threads bring. */
#include "doctor.h"
#include "sonde/experimental/profile.h"

static int median_of(const run_setup *s, const char *model, int64_t threads, double *ms)
{
    run_setup own = *s;
    own.model.threads = threads;
    own.record_level = 0;
    own.common.quiet = true;
    own.measuring.duration_s = 0.4;
    runner r;
    int code = runner_open(&r, &own, model);
    if (!code)
        code = runner_run(&r, &own, 2, -1, 10000);
    latency l = {.p50 = 0};
    if (!code)
        latency_of(r.ms, r.runs, &l);
    *ms = l.p50;
    runner_close(&r);
    return code;
}

/* One thread against all. */
static int look_at_scaling(findings *f, const run_setup *s, const char *model, int threads)
{
    double one = 0, all = 0;
    if (threads < 2)
        return EXIT_OK;
    int code = median_of(s, model, 1, &one);
    if (!code)
        code = median_of(s, model, threads, &all);
    if (code)
        return code;
    const double gain = all > 0 ? one / all : 0;
    const bool poor = gain < 1 + 0.4 * (threads - 1);
    found(f,
          gain < 1 ? SONDE_SLOW
          : poor   ? SONDE_NOTE
                   : SONDE_GOOD,
          "threads", text_of("%d threads are %.2f times as fast as one thread", threads, gain),
          text_of("medians %s and %s", time_text(one), time_text(all)),
          gain < 1
              ? "use one thread (-t 1): the model is too small for more, or the cores are shared"
          : poor ? "use fewer threads to leave cores for other work, or several instances to use "
                   "all cores"
                 : "");
    return EXIT_OK;
}

/* Where the memory of the session lies that has just run. */
static int look_at_placement(findings *f, const runner *r)
{
    sonde_findings *all = NULL;
    sonde_error err;
    if (sonde_machine_findings(r->model.context, r->model.session, &all, &err))
        return fail("%s", err.message);
    found_all(f, all);
    return EXIT_OK;
}

static int measure(findings *f, const run_setup *s, const char *model, sonde_profile **profile)
{
    run_setup own = *s;
    own.record_level = 1;
    own.measuring.duration_s = 0.7;
    own.common.quiet = true;
    runner r;
    sonde_error err;
    int code = runner_open(&r, &own, model);
    if (!code)
        code = runner_run(&r, &own, 3, -1, 2000);
    if (!code && sonde_profiler_stop(r.model.context, profile, &err))
        code = fail("%s", err.message);
    if (!code)
        code = look_at_placement(f, &r);
    runner_close(&r);
    return code;
}

int look_at_model(findings *f, const run_setup *s, const char *model)
{
    sonde_profile *profile = NULL;
    sonde_profile_summary whole = SONDE_INIT(sonde_profile_summary);
    sonde_error err;
    int code = measure(f, s, model, &profile);
    if (!code && sonde_profile_summary_get(profile, &whole, &err))
        code = fail("%s", err.message);
    if (!code)
        code = look_at_profile(f, profile);
    if (!code)
        code = look_at_reorders(f, s, model, profile);
    if (!code)
        code = look_for_denormals(f, s, model);
    if (!code)
        code = look_at_scaling(f, s, model, whole.threads);
    sonde_profile_release(profile);
    return code;
}
