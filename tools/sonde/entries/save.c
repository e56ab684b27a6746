/* SPDX-License-Identifier: Apache-2.0 */
/* Into the history. That it cannot be written costs nothing else: the results were shown before. */
#include <stdlib.h>
#include <string.h>

#include "entries/parts.h"

static const char *name_of(const char *model)
{
    const char *slash = is_zoo(model) ? NULL : strrchr(model, '/');
    return slash && slash[1] ? slash + 1 : model;
}

int history_save(const keep_options *k, const common_options *o, const char *model,
                 sonde_history_new *what)
{
    sonde_context *c = reading_context(0);
    sonde_history *h = NULL;
    sonde_error err;
    int64_t id;
    if (!c)
        return EXIT_ERROR;
    what->model = name_of(model);
    what->note = k->note;
    what->commit = k->commit;
    sonde_status st = sonde_history_open(c, k->save, NULL, &h, &err);
    if (!st)
        st = sonde_history_add(h, what, &id, &err);
    if (!st && !o->quiet) {
        char *path = printable(sonde_history_path(h));
        fprintf(stderr, "sonde: saved as #%lld in '%s'\n", (long long)id, path);
        free(path);
    }
    sonde_history_close(h);
    sonde_context_release(c);
    return st ? fail("the result is not in the history: %s", err.message) : EXIT_OK;
}
