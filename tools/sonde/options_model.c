/* SPDX-License-Identifier: Apache-2.0 */
/* How the model runs. */
#include <string.h>

#include "tool.h"

#define AT(field) offsetof(model_options, field)

const option_row model_option_rows[] = {
    {'t', "threads", OPT_INT, AT(threads), "N",
     "number of threads; 0 = all cores that the CPU quota allows (default: 0)"},
    {0, "numa", OPT_TEXT, AT(numa), "auto|off|NODES",
     "bind threads and memory to memory nodes (sockets): auto is one node, or with --instances one "
     "for each in turn; 0 or 0,2-3 are these; threads are then one per core (default: off)"},
    {0, "max-memory", OPT_SIZE, AT(max_memory), "BYTES",
     "fail instead of using more memory than this, for example 500M or 2G (no limit)"},
    {0, "cpu", OPT_TEXT, AT(cpu), "NAME",
     "newest instruction set to use: baseline, avx2, avxvnni, avx512, neon, …"},
    {0, "device", OPT_TEXT, AT(device), "cpu", "device to run on; this build has only cpu"},
    {0, "precision", OPT_TEXT, AT(precision), "file|f32|bf16|f16|auto",
     "type in which weights of matrix products and convolutions are stored (default: file, the "
     "file's own); arithmetic is f32; with bf16, CPUs that are fast in bf16 compute in it; "
     "auto: what is fastest here, bf16 with AMX, else f32"},
    {0, "no-optimize", OPT_FLAG, AT(no_optimize), NULL,
     "skip all passes; run the graph as it is in the file (QuantizeLinear and DequantizeLinear "
     "around "
     "an operator still mean an operator on integers)"},
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

bool precision_of(const char *said, sonde_precision *precision)
{
    const char *name;
    *precision = SONDE_PRECISION_FILE;
    if (!said)
        return true;
    if (strcmp(said, "fp32") == 0 || strcmp(said, "fp16") == 0)
        said = said[2] == '3' ? "f32" : "f16";
    for (int p = 0; (name = sonde_precision_text((sonde_precision)p)) != NULL; p++)
        if (strcmp(said, name) == 0) {
            *precision = (sonde_precision)p;
            return true;
        }
    return false;
}

const char *precision_name(const model_options *m)
{
    sonde_precision precision;
    (void)precision_of(m->precision, &precision);
    return sonde_precision_text(precision);
}

int model_options_check(void *values)
{
    const model_options *m = values;
    if (m->device && strcmp(m->device, "cpu") != 0)
        return fail_usage("--device %s is not supported: this build runs only on 'cpu'", m->device);
    sonde_precision precision;
    if (m->precision && !precision_of(m->precision, &precision))
        return fail_usage(
            "--precision %s is not supported; possible values: file, f32, bf16, f16, auto",
            m->precision);
    if (m->numa && strcmp(m->numa, "auto") != 0 && strcmp(m->numa, "off") != 0 &&
        (!*m->numa || strspn(m->numa, "0123456789,-") != strlen(m->numa)))
        return fail_usage("--numa '%s' is not supported; possible values: auto, off, or memory "
                          "nodes such as 0 or 0,2-3",
                          m->numa);
    if (m->threads > 4096)
        return fail_usage("--threads %lld is too many; the maximum is 4096", (long long)m->threads);
    return -1;
}
