/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: a saved profile again, as a table or in any other format. */
#include "tool.h"

static const char details[] =
    "\n"
    "PROFILE is a .pftrace or .json that sonde wrote, a profile of ONNX Runtime\n"
    "(SessionOptions.enable_profiling) or a trace of PyTorch (export_chrome_trace): the content\n"
    "decides. A .pftrace that was cut off is used up to the cut.\n"
    "\n"
    "  sonde report trace.pftrace --by-shape\n"
    "  sonde report trace.pftrace -q -o trace.json -o report.md\n"
    "  sonde report onnxruntime_profile.json\n";

static int report(const options *o)
{
    sonde_profile *profile = NULL;
    int code = load_profile(o, o->rest.items[0], &profile);
    if (!code)
        code = show_profile(profile, o);
    sonde_profile_release(profile);
    return code;
}

int cmd_report(int argc, char **argv)
{
    options o;
    int code = options_parse(&o, "report", OPT_TABLE, details, argc, argv);
    if (code < 0 && o.rest.n != 1)
        code = o.rest.n ? fail_usage("report takes one PROFILE, not %zu", o.rest.n)
                        : fail_usage("report needs a PROFILE; see 'sonde report --help'");
    if (code < 0)
        code = show_check(&o);
    if (code < 0)
        code = report(&o);
    options_free(&o);
    return code;
}
