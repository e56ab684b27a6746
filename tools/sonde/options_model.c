/* SPDX-License-Identifier: Apache-2.0 */
/* How the model runs. */
#include <string.h>

#include "tool.h"

#define AT(field) offsetof(model_options, field)

const option_row model_option_rows[] = {
    {'t', "threads", OPT_INT, AT(threads), "N",
     "number of threads; 0 = all cores that the CPU quota allows (default: 0)"},
    {0, "max-memory", OPT_SIZE, AT(max_memory), "BYTES",
     "fail instead of using more memory than this, for example 500M or 2G (no limit)"},
    {0, "cpu", OPT_TEXT, AT(cpu), "NAME",
     "newest instruction set to use: baseline, avx2, avx512, neon, …"},
    {0, "device", OPT_TEXT, AT(device), "cpu", "device to run on; this build has only cpu"},
    {0, "precision", OPT_TEXT, AT(precision), "fp32",
     "precision of the arithmetic; this build has only fp32"},
    {0, "no-optimize", OPT_FLAG, AT(no_optimize), NULL,
     "skip all passes; run the graph as it is in the file"},
    {0, "disable-pass", OPT_LIST, AT(disabled_passes), "NAME", "skip one pass; may be repeated"},
    {0, "no-mmap", OPT_FLAG, AT(no_mmap), NULL,
     "read the model files into memory instead of mapping them"},
    {0, "no-prepack", OPT_FLAG, AT(no_prepack), NULL,
     "do not pack weights beforehand; use them as they are in the file"},
    {0, "flush-denormals", OPT_FLAG, AT(flush_denormals), NULL,
     "treat denormal numbers as 0, because arithmetic on them is slow"},
    {0, "weights-cache", OPT_MAYBE, AT(weights_cache), "DIR",
     "store packed weights in DIR (default: the user's cache folder) and map them the next time"},
    {0, "tune", OPT_MAYBE, AT(tune), "DIR",
     "time several block sizes per step and store the fastest in DIR (default: the user's cache "
     "folder)"},
    {0}};

int model_options_check(void *values)
{
    const model_options *m = values;
    if (m->device && strcmp(m->device, "cpu") != 0)
        return fail_usage("--device %s is not supported: this build runs only on 'cpu'", m->device);
    if (m->precision && strcmp(m->precision, "fp32") != 0)
        return fail_usage("--precision %s is not supported: this build computes only in 'fp32'",
                          m->precision);
    if (m->threads > 4096)
        return fail_usage("--threads %lld is too many; the maximum is 4096", (long long)m->threads);
    return -1;
}
