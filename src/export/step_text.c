/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of unknown length are written twice: once to count, once into memory of that size. */
#include "export/step_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/writer.h"

typedef struct text {
    char *to; /* NULL while counting */
    size_t n;
} text;

static void put(text *t, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (t->to && n)
        memcpy(t->to + t->n, s, n);
    t->n += n;
}

static void put_dims(text *t, const sn_prof_tensor *x, const char *between)
{
    for (int32_t d = 0; d < x->rank; d++) {
        char dim[24] = "?";
        if (x->dims[d] >= 0)
            snprintf(dim, sizeof dim, "%" PRId64, x->dims[d]);
        put(t, d ? between : "");
        put(t, dim);
    }
}

static void put_name(text *t, const sn_prof_tensor *x)
{
    put(t, x->name);
}

/* The floats are called fp32 here and f32 in args_string, as in the tools these forms come from. */
static void put_type(text *t, const sn_prof_tensor *x)
{
    bool plain_float = sn_is_plain_float(x->dtype);
    put(t, plain_float ? "fp" : "");
    put(t, plain_float ? x->dtype + 1 : x->dtype);
}

static void put_shape(text *t, const sn_prof_tensor *x)
{
    if (x->rank >= 0)
        put_dims(t, x, "*");
    else
        put(t, x->text);
}

/* T<1x768xf32>; a scalar is T<f32>, an absent input nothing. */
static void put_raf(text *t, const sn_prof_tensor *x)
{
    if (x->rank < 0) {
        put(t, x->text);
        return;
    }
    put(t, "T<");
    put_dims(t, x, "x");
    put(t, x->rank ? "x" : "");
    put(t, x->dtype);
    put(t, ">");
}

typedef void put_tensor(text *t, const sn_prof_tensor *x);

static void put_list(text *t, const sn_prof_tensor *list, uint32_t n, put_tensor *one)
{
    for (uint32_t i = 0; i < n; i++) {
        put(t, i ? "," : "");
        one(t, &list[i]);
    }
}

static const char *list_text(const sn_prof_tensor *list, uint32_t n, put_tensor *one,
                             sn_arena *arena)
{
    text t = {NULL, 0};
    put_list(&t, list, n, one);
    t.to = sn_arena_alloc(arena, t.n + 1, 1);
    t.n = 0;
    if (t.to)
        put_list(&t, list, n, one);
    return t.to;
}

/* Inputs end with a comma each, outputs have them between. */
static void put_signature(text *t, const sn_prof_step *s)
{
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        put_raf(t, &s->inputs[i]);
        put(t, ",");
    }
    put(t, "|");
    put_list(t, s->outputs, s->n_outputs, put_raf);
}

static void put_nodes(text *t, const sn_prof_step *s)
{
    for (uint32_t i = 0; i < sn_prof_node_count(s); i++) {
        put(t, i ? ";" : "");
        put(t, sn_prof_node_name(s, i));
    }
}

static const char *step_text(const sn_prof_step *s, void (*one)(text *, const sn_prof_step *),
                             sn_arena *arena)
{
    text t = {NULL, 0};
    one(&t, s);
    t.to = sn_arena_alloc(arena, t.n + 1, 1);
    t.n = 0;
    if (t.to)
        one(&t, s);
    return t.to;
}

const sn_step_text *sn_step_text_of(const sn_prof_step *s, sn_arena *arena)
{
    sn_step_text *t = SN_NEW(arena, sn_step_text);
    if (!t)
        return NULL;
    t->input_names = list_text(s->inputs, s->n_inputs, put_name, arena);
    t->input_types = list_text(s->inputs, s->n_inputs, put_type, arena);
    t->input_shapes = list_text(s->inputs, s->n_inputs, put_shape, arena);
    t->output_names = list_text(s->outputs, s->n_outputs, put_name, arena);
    t->output_types = list_text(s->outputs, s->n_outputs, put_type, arena);
    t->output_shapes = list_text(s->outputs, s->n_outputs, put_shape, arena);
    t->args_string = step_text(s, put_signature, arena);
    t->nodes = step_text(s, put_nodes, arena);
    bool whole = t->input_names && t->input_types && t->input_shapes && t->output_names &&
                 t->output_types && t->output_shapes && t->args_string && t->nodes;
    return whole ? t : NULL;
}

const char *sn_step_title(const sn_prof_step *step)
{
    if (step->name && *step->name)
        return step->name;
    return step->op_type && *step->op_type ? step->op_type : "";
}
