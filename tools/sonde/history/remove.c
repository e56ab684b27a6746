/* SPDX-License-Identifier: Apache-2.0 */
/* Removing entries. All references are looked up before the first entry goes: they count from the
 * newest one. */
#include <stdlib.h>

#include "history/parts.h"

int history_remove(history_options *o, sonde_history *h, const char *const *references, size_t n)
{
    int64_t *ids = need(calloc(n + 1, sizeof *ids));
    sonde_error err;
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < n && !st; i++)
        st = sonde_history_find(h, references[i], &o->filter, &ids[i], &err);
    for (size_t i = 0; i < n && !st; i++) {
        st = sonde_history_remove(h, ids[i], &err);
        if (!st && !o->common.quiet)
            printf("removed #%lld\n", (long long)ids[i]);
    }
    free(ids);
    return st ? fail("%s", err.message) : EXIT_OK;
}

int history_prune(const history_options *o, sonde_history *h)
{
    sonde_history_prune_options how = SONDE_INIT(sonde_history_prune_options);
    sonde_error err;
    uint64_t removed;
    if (o->keep < 0)
        return fail_usage("prune needs --keep N: so many entries of each series stay");
    how.keep = (size_t)o->keep;
    how.only_profiles = o->only_profiles;
    if (sonde_history_prune(h, &o->filter, &how, &removed, &err))
        return fail("%s", err.message);
    if (!o->common.quiet)
        printf("%s %llu %s\n", o->only_profiles ? "removed the profiles of" : "removed",
               (unsigned long long)removed, removed == 1 ? "entry" : "entries");
    return EXIT_OK;
}
