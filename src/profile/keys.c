/* SPDX-License-Identifier: Apache-2.0 */
/* Row keys and row texts. A node's key is its original nodes, not its position: the same node bound
 * to two shapes is one row. Nodes without any name are told apart by their place in the binding. */
#include "profile/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_bytes(sn_prof_text *t, const void *data, size_t n)
{
    t->failed = t->failed || !sn_vec_append(&t->b, t->alloc, data, n);
}

static void put(sn_prof_text *t, const char *s)
{
    if (s && *s)
        put_bytes(t, s, strlen(s));
}

static void put_shapes(sn_prof_text *t, const sn_prof_step *s)
{
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        const sn_prof_tensor *in = &s->inputs[i];
        put(t, i ? ", " : "");
        if (in->rank < 0) {
            put(t, in->text ? in->text : "_");
            continue;
        }
        put(t, "[");
        for (int32_t d = 0; d < in->rank; d++) {
            char dim[32];
            if (in->dims[d] < 0)
                snprintf(dim, sizeof dim, "%s?", d ? ", " : "");
            else
                snprintf(dim, sizeof dim, "%s%" PRId64, d ? ", " : "", in->dims[d]);
            put(t, dim);
        }
        put(t, "]");
    }
}

static void put_nodes(sn_prof_text *t, const sn_prof_step *s)
{
    for (uint32_t i = 0; i < s->n_origins; i++) {
        const sn_prof_origin *o = &s->origins[i];
        put(t, i ? ", " : "");
        put(t, o->name && *o->name ? o->name : o->op_type);
    }
}

const char *sn_prof_node_name(const sn_prof_step *s, uint32_t k)
{
    if (k >= s->n_origins)
        return s->name ? s->name : "";
    const sn_prof_origin *o = &s->origins[k];
    const char *name = (o->name && *o->name) || s->n_origins == 1 ? o->name : o->op_type;
    return name ? name : "";
}

static bool named(const sn_prof_step *s)
{
    if (s->name && *s->name)
        return true;
    for (uint32_t i = 0; i < s->n_origins; i++)
        if (s->origins[i].name && *s->origins[i].name)
            return true;
    return false;
}

void sn_prof_key_of(sn_prof_text *t, const sn_prof_step *s, sn_prof_key key)
{
    t->b.n = 0;
    if (key == SN_BY_KERNEL && s->kernel && *s->kernel) {
        put(t, s->kernel);
        return;
    }
    if (key == SN_BY_STEP && !s->folded) { /* where it stands in the tables: each is its own */
        put_bytes(t, "", 1);
        put_bytes(t, &s, sizeof s);
        return;
    }
    put(t, s->op_type);
    put_bytes(t, "", 1);
    if (key == SN_BY_SHAPE) {
        put_shapes(t, s);
    } else if (key == SN_BY_NODE || key == SN_BY_STEP) {
        put(t, s->post_op);
        put_bytes(t, "", 1);
        put(t, s->name);
        put_bytes(t, "", 1);
        put_nodes(t, s);
        if (!named(s)) {
            put_bytes(t, &s->table, sizeof s->table);
            put_bytes(t, &s->index, sizeof s->index);
        }
    }
}

static const char *keep(const sn_prof_text *t, sn_arena *arena)
{
    return t->failed ? NULL : sn_arena_strndup(arena, t->b.n ? t->b.data : "", t->b.n);
}

bool sn_prof_row_name(sn_prof_row *row, const sn_prof_step *s, sn_prof_key key, sn_prof_text *t,
                      sn_arena *arena)
{
    t->b.n = 0;
    switch (key) {
    case SN_BY_OP:
        put(t, s->op_type);
        break;
    case SN_BY_NODE:
    case SN_BY_STEP:
        put(t, s->op_type);
        put(t, s->post_op && *s->post_op ? "+" : "");
        put(t, s->post_op);
        break;
    case SN_BY_SHAPE:
        put_shapes(t, s);
        break;
    case SN_BY_KERNEL:
        put(t, s->kernel && *s->kernel ? s->kernel : s->op_type);
        break;
    }
    row->name = keep(t, arena);
    t->b.n = 0;
    if (key == SN_BY_NODE || key == SN_BY_STEP)
        put_nodes(t, s);
    row->nodes = keep(t, arena);
    row->op_type = sn_arena_strdup(arena, s->op_type ? s->op_type : "");
    row->example = sn_arena_strdup(arena, s->name ? s->name : "");
    row->kernel = "";
    return row->name && row->nodes && row->op_type && row->example;
}

static double elems_of(const sn_prof_tensor *x)
{
    double elems = x->rank >= 0 ? 1 : 0;
    for (int32_t d = 0; d < x->rank; d++) {
        if (x->dims[d] <= 0)
            return 0;
        elems *= (double)x->dims[d];
        if (elems > (double)SN_PROF_MAX_COUNT) /* dims of a file can be anything */
            elems = (double)SN_PROF_MAX_COUNT;
    }
    return elems;
}

double sn_prof_step_input_elems(const sn_prof_step *s)
{
    double total = 0;
    for (uint32_t i = 0; i < s->n_inputs; i++)
        total += elems_of(&s->inputs[i]);
    return total;
}
