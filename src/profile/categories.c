/* SPDX-License-Identifier: Apache-2.0 */
/* Categories by name, and sets of them as bits: which spans a trace shows. */
#include <stdio.h>
#include <string.h>

#include "profile/profile.h"

const char *sn_prof_cat_name(sn_prof_cat c)
{
    static const char *const names[SN_CAT_COUNT] = {
        [SN_CAT_MODEL] = "model",       [SN_CAT_ITERATION] = "iteration",
        [SN_CAT_OPERATOR] = "operator", [SN_CAT_EXECUTOR] = "executor",
        [SN_CAT_MEMORY] = "memory",     [SN_CAT_THREAD] = "thread",
        [SN_CAT_USER] = "user",         [SN_CAT_DEVICE] = "device",
    };
    return (unsigned)c < SN_CAT_COUNT ? names[c] : "unknown";
}

sn_prof_cat sn_prof_cat_named(const char *name, size_t n)
{
    int c = 0;
    while (c < SN_CAT_COUNT && (strlen(sn_prof_cat_name((sn_prof_cat)c)) != n ||
                                memcmp(sn_prof_cat_name((sn_prof_cat)c), name, n) != 0))
        c++;
    return (sn_prof_cat)c;
}

const char *sn_prof_cats_text(uint32_t set, char text[SN_CATS_TEXT])
{
    size_t n = 0;
    text[0] = 0;
    for (int c = 0; c < SN_CAT_COUNT; c++)
        if (set >> c & 1)
            n += (size_t)snprintf(text + n, SN_CATS_TEXT - n, "%s%s", n ? ", " : "",
                                  sn_prof_cat_name((sn_prof_cat)c));
    return text;
}

sonde_status sn_prof_cats_parse(const char *list, uint32_t *set, sonde_error *err)
{
    char known[SN_CATS_TEXT];
    *set = 0;
    if (!list)
        return SONDE_OK;
    for (const char *at = list;; at++) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ", ");
        const sn_prof_cat c = sn_prof_cat_named(at, n);
        if (c == SN_CAT_COUNT)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "unknown category '%.*s'; the categories are %s", n < 64 ? (int)n : 64,
                           at, sn_prof_cats_text(SN_CATS_ALL, known));
        *set |= 1u << c;
        at += n;
        at += strspn(at, " ");
        if (!*at)
            return SONDE_OK;
        if (*at != ',')
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "categories must be separated by commas, not '%.16s'", at);
    }
}
