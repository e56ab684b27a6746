/* SPDX-License-Identifier: Apache-2.0 */
/* sonde profile: run a model under the profiler. The table goes to the terminal, everything else to
 * files whose suffix says how. */
#include <string.h>

#include "runner.h"
#include "sonde/experimental/memory.h"

static const char details[] =
    "\n"
    "MODEL is a path or zoo:NAME. Three warm-up runs, then as many as fit into two seconds, at "
    "least\n"
    "10, unless -w, --duration or -n say otherwise. Times in the table are means per run.\n"
    "\n"
    "  sonde profile zoo:regnet_x_400mf\n"
    "  sonde profile model.onnx -o trace.json -o model.summary.json\n"
    "  sonde profile model.onnx -n 100 --by-shape --filter-op Conv\n"
    "  sonde profile model.onnx --instances 2 -o trace.json\n";

static int measure(runner *r, const options *o)
{
    sonde_error err;
    if (o->memory && sonde_memory_start(r->model.context, &err))
        return fail("%s", err.message);
    r->stop_when_full = true;
    const int code = runner_run(r, o, o->warmup >= 0 ? o->warmup : 3, o->iterations, SIZE_MAX);
    if (o->memory && sonde_memory_stop(r->model.context, &err))
        return fail("%s", err.message);
    return code;
}

static int report(const runner *r, const options *o)
{
    sonde_profile *profile = NULL;
    sonde_error err;
    if (sonde_profiler_stop(r->model.context, &profile, &err))
        return fail("%s", err.message);
    const int code = show_profile(profile, o);
    if (!code && !o->quiet && !(o->json && strcmp(o->json, "-") == 0))
        runner_print_instances(r);
    sonde_profile_release(profile);
    return code;
}

int cmd_profile(int argc, char **argv)
{
    options o;
    int code = options_parse(&o, "profile", OPT_RUN | OPT_MODEL | OPT_INPUT | OPT_TABLE | OPT_LEVEL,
                             details, argc, argv);
    if (code < 0 && o.rest.n != 1)
        code = o.rest.n ? fail_usage("profile takes one MODEL, not %zu", o.rest.n)
                        : fail_usage("profile needs a MODEL; see 'sonde profile --help'");
    if (code < 0 && o.iterations == 0)
        code = fail_usage("--iterations 0: nothing would be measured");
    if (code < 0)
        code = show_check(&o);
    if (code < 0) {
        o.record_level = (int)o.level;
        runner r;
        code = runner_open(&r, &o, o.rest.items[0]);
        if (!code)
            code = measure(&r, &o);
        if (!code)
            code = report(&r, &o);
        runner_close(&r);
    }
    options_free(&o);
    return code;
}
