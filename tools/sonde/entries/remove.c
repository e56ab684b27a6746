/* SPDX-License-Identifier: Apache-2.0 */
/* Removing entries. All references are looked up before the first entry goes: they count from the
 * newest one. */
#include <stdlib.h>
#include <string.h>

#include "entries/parts.h"

static bool is_quiet(const history_options *o)
{
    return o->common.quiet || (o->table.json && strcmp(o->table.json, "-") == 0);
}

int history_remove(history_options *o, sonde_history *h, const char *const *references, size_t n)
{
    int64_t *ids = need(calloc(n + 1, sizeof *ids));
    sonde_error err;
    sonde_status st = SONDE_OK;
    size_t found = 0;
    for (size_t i = 0; i < n && !st; i++) {
        st = sonde_history_find(h, references[i], &o->filter, &ids[found], &err);
        size_t k = 0;
        while (k < found && ids[k] != ids[found])
            k++;
        found += !st && k == found; /* "1" and "@0" may be the same */
    }
    n = found;
    for (size_t i = 0; i < n && !st; i++) {
        st = sonde_history_remove(h, ids[i], &err);
        if (!st && !is_quiet(o))
            printf("removed #%lld\n", (long long)ids[i]);
    }
    text t = {.n = 0};
    text_add(&t, "{\"schema\": \"sonde.history.removed/1\", \"removed\": [");
    for (size_t i = 0; i < n; i++)
        text_add(&t, "%s%lld", i ? ", " : "", (long long)ids[i]);
    text_add(&t, "]}\n");
    free(ids);
    int code = st ? fail("%s", err.message) : EXIT_OK;
    if (!code && o->table.json)
        code = write_text(o->table.json, t.data, t.n);
    text_free(&t);
    return code;
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
    if (!is_quiet(o))
        printf("%s %llu %s\n", o->only_profiles ? "removed the profiles of" : "removed",
               (unsigned long long)removed, removed == 1 ? "entry" : "entries");
    if (!o->table.json)
        return EXIT_OK;
    char *json = text_of("{\"schema\": \"sonde.history.pruned/1\", \"removed\": %llu}\n",
                         (unsigned long long)removed);
    const int code = write_text(o->table.json, json, strlen(json));
    free(json);
    return code;
}
