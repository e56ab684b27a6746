/* SPDX-License-Identifier: Apache-2.0 */
/* Options of formats: --sparse-ratio and --sparse-aim say what .csv and .xlsx assume about sparse
 * weights, --categories which spans traces show. */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static double *ratio_at(sonde_export_options *to, const char *key, size_t n)
{
    static const char *const keys[] = {"90", "80", "70", "others"};
    double *const fields[] = {&to->sparse_ratio_90, &to->sparse_ratio_80, &to->sparse_ratio_70,
                              &to->sparse_ratio_others};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (strlen(keys[k]) == n && memcmp(key, keys[k], n) == 0)
            return fields[k];
    return NULL;
}

static int sparse_options(options *o)
{
    sonde_export_options *to = &o->export_options;
    if (!(o->sparse_aim >= 0 && o->sparse_aim < 100))
        return fail_usage("--sparse-aim %g: a share of zeros is below 100 %%", o->sparse_aim);
    to->sparse_aim = o->sparse_aim;
    for (const char *at = o->sparse_ratio; at && *at;) {
        const char *equals = strchr(at, '=');
        double *ratio = equals ? ratio_at(to, at, (size_t)(equals - at)) : NULL;
        char *end = NULL;
        if (ratio)
            *ratio = strtod(equals + 1, &end);
        if (!ratio || end == equals + 1 || (*end && *end != ',') || !(*ratio > 0 && *ratio <= 1e6))
            return fail_usage("--sparse-ratio takes numbers for 90, 80, 70 or others, such as "
                              "90=4,80=2.5,70=2, not '%s'",
                              o->sparse_ratio);
        at = *end ? end + 1 : end;
    }
    return -1;
}

static bool is_category(const char *name, size_t n)
{
    const char *known;
    for (size_t k = 0; (known = sonde_category_name(k)) != NULL; k++)
        if (strlen(known) == n && memcmp(known, name, n) == 0)
            return true;
    return false;
}

/* The library would say so too, but only after the model has run. */
static int category_options(options *o)
{
    for (const char *at = o->categories; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t n = strcspn(at, ",");
        if (is_category(at, n))
            continue;
        text known = {NULL, 0, 0};
        for (size_t k = 0; sonde_category_name(k); k++)
            text_add(&known, "%s%s", k ? ", " : "", sonde_category_name(k));
        const int code = fail_usage("--categories: there is no category '%.*s'; there are %s",
                                    (int)n, at, known.data);
        text_free(&known);
        return code;
    }
    o->export_options.categories = o->categories;
    return -1;
}

int export_options(options *o)
{
    o->export_options = (sonde_export_options)SONDE_INIT(sonde_export_options);
    o->export_options.folded_nodes = o->folded_nodes;
    const int code = sparse_options(o);
    return code >= 0 ? code : category_options(o);
}
