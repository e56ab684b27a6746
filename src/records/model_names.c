/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile is called: a process may run several models under one recorder, and all of them
 * are in its tables and traces. */
#include <string.h>

#include "records/builder.h"

/* In the profile's arena; "": none, or out of memory. */
static const char *name_of(const sn_profile_builder *b, const sn_model *model)
{
    const char *name = model->graph_name ? model->graph_name : "";
    pthread_mutex_lock(&b->r->lock);
    for (const sn_known_model *m = b->r->models; m; m = m->next)
        if (m->model == model)
            name = m->name;
    name = sn_arena_strdup(&b->p->arena, name);
    pthread_mutex_unlock(&b->r->lock);
    return name ? name : "";
}

void sn_builder_name_model(sn_profile_builder *b)
{
    enum { MOST = 4 };
    const sn_model *last = NULL;
    const char *names[MOST + 1], *all = "";
    size_t n = 0;
    for (size_t i = 0; i < b->tables.n && n <= MOST; i++) {
        const sn_binding *binding = b->tables.data[i].binding;
        if (!binding || binding->program->model == last)
            continue;
        last = binding->program->model;
        names[n] = name_of(b, last);
        size_t k = 0;
        while (strcmp(names[k], names[n]) != 0)
            k++;
        if (k < n || !*names[n])
            continue;
        const char *more = n == MOST ? "…" : names[n];
        all = n ? sn_arena_printf(&b->p->arena, "%s, %s", all, more) : more;
        if (!all)
            all = names[0];
        n++;
    }
    b->p->model_name = all;
}
