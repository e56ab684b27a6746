/* SPDX-License-Identifier: Apache-2.0 */
/* Options of verbs that write models: what goes to a second file. */
#include "tool.h"

#define AT(field) offsetof(saving_options, field)

const option_row saving_option_rows[] = {
    {0, "external-data", OPT_MAYBE, AT(external_data), "FILE",
     "save weights as external data in FILE beside the model (default: its name and '.data')"},
    {0, "inline-limit", OPT_SIZE, AT(inline_limit), "BYTES",
     "do so for models above this size, for example 500M (default: 2G, the limit of ONNX)"},
    {0}};

sonde_save_options save_options(const saving_options *o)
{
    sonde_save_options s = SONDE_INIT(sonde_save_options);
    s.external_data = o->external_data != NULL;
    s.external_name = o->external_data && *o->external_data ? o->external_data : NULL;
    s.inline_bytes = (uint64_t)o->inline_limit;
    return s;
}

int saving_check(const saving_options *o, bool saves, const char *how)
{
    if (saves || (!o->external_data && !o->inline_limit))
        return -1;
    return fail_usage("%s says how a model is saved and needs %s",
                      o->external_data ? "--external-data" : "--inline-limit", how);
}
