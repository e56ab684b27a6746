/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text; failures are remembered, so callers look once. */
#include "export/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/writer.h"

void sn_text_init(sn_text *t, sn_allocator *alloc)
{
    *t = (sn_text){.alloc = alloc};
}

void sn_text_free(sn_text *t)
{
    sn_vec_free(&t->b, t->alloc);
}

void sn_text_clear(sn_text *t)
{
    t->b.n = 0;
}

void sn_text_add(sn_text *t, const char *text)
{
    const size_t n = text ? strlen(text) : 0;
    if (!n || t->failed)
        return;
    if (!sn_vec_reserve(&t->b, t->alloc, n + 1)) {
        t->failed = true;
        return;
    }
    memcpy(t->b.data + t->b.n, text, n + 1);
    t->b.n += n;
}

const char *sn_text_get(const sn_text *t)
{
    return t->failed || !t->b.n ? "" : t->b.data;
}

static void add_name(sn_text *t, const sn_prof_tensor *v)
{
    sn_text_add(t, v->name);
}

static void add_shape(sn_text *t, const sn_prof_tensor *v)
{
    if (v->rank < 0)
        sn_text_add(t, v->text);
    for (int32_t d = 0; d < v->rank; d++) {
        char dim[24];
        snprintf(dim, sizeof dim, "%" PRId64, v->dims[d]);
        sn_text_add(t, d ? "x" : "");
        sn_text_add(t, v->dims[d] < 0 ? "?" : dim);
    }
}

static void add_type(sn_text *t, const sn_prof_tensor *v)
{
    const bool plain = sn_is_plain_float(v->dtype);
    sn_text_add(t, plain ? "fp" : "");
    sn_text_add(t, plain ? v->dtype + 1 : v->dtype);
}

static void add_list(sn_text *t, const sn_prof_tensor *list, uint32_t n,
                     void (*one)(sn_text *, const sn_prof_tensor *))
{
    for (uint32_t i = 0; i < n; i++) {
        sn_text_add(t, i ? ";" : "");
        one(t, &list[i]);
    }
}

void sn_text_nodes(sn_text *t, const sn_prof_step *step)
{
    for (uint32_t i = 0; i < sn_prof_node_count(step); i++) {
        sn_text_add(t, i ? ";" : "");
        sn_text_add(t, sn_prof_node_name(step, i));
    }
}

void sn_text_names(sn_text *t, const sn_prof_tensor *list, uint32_t n)
{
    add_list(t, list, n, add_name);
}

void sn_text_shapes(sn_text *t, const sn_prof_tensor *list, uint32_t n)
{
    add_list(t, list, n, add_shape);
}

void sn_text_types(sn_text *t, const sn_prof_tensor *list, uint32_t n)
{
    add_list(t, list, n, add_type);
}
