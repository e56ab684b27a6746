/* SPDX-License-Identifier: Apache-2.0 */
/* Typed access to a node's attributes while its params are made. A missing attribute gives the
 * default; one of the wrong kind is the model's fault and says so. */
#include "ops/framework/op.h"

#include <string.h>

static const char *kind_name(sn_attr_kind k)
{
    switch (k) {
    case SN_ATTR_FLOAT:
        return "a float";
    case SN_ATTR_INT:
        return "an int";
    case SN_ATTR_STRING:
        return "a string";
    case SN_ATTR_FLOATS:
        return "floats";
    case SN_ATTR_INTS:
        return "ints";
    case SN_ATTR_TENSOR:
        return "a tensor";
    case SN_ATTR_GRAPH:
        return "a graph";
    case SN_ATTR_STRINGS:
        return "strings";
    case SN_ATTR_TENSORS:
    case SN_ATTR_GRAPHS:
    case SN_ATTR_SPARSE_TENSOR:
    case SN_ATTR_TYPE_PROTO:
        break;
    }
    return "of a different kind";
}

sonde_status sn_prep_fail(sn_prep *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sonde_status st = sn_node_fail_va(p->err, SONDE_INVALID_MODEL, p->node, fmt, args);
    va_end(args);
    return st;
}

/* *attr = NULL when absent. An empty list read as another list kind counts as absent: the file
 * format cannot tell them apart. */
static sonde_status get(sn_prep *p, const char *name, sn_attr_kind kind, const sn_attr **attr)
{
    *attr = sn_node_attr(p->node, name);
    if (!*attr || (*attr)->kind == kind)
        return SONDE_OK;
    bool list = (*attr)->kind == SN_ATTR_INTS || (*attr)->kind == SN_ATTR_FLOATS ||
                (*attr)->kind == SN_ATTR_STRINGS;
    if (list && (*attr)->n == 0) {
        *attr = NULL;
        return SONDE_OK;
    }
    return sn_prep_fail(p, "attribute '%s' is %s, expected %s", name, kind_name((*attr)->kind),
                        kind_name(kind));
}

sonde_status sn_prep_int(sn_prep *p, const char *name, int64_t def, int64_t *out)
{
    const sn_attr *a;
    SN_TRY(get(p, name, SN_ATTR_INT, &a));
    *out = a ? a->i : def;
    return SONDE_OK;
}

sonde_status sn_prep_float(sn_prep *p, const char *name, float def, float *out)
{
    const sn_attr *a;
    SN_TRY(get(p, name, SN_ATTR_FLOAT, &a));
    *out = a ? a->f : def;
    return SONDE_OK;
}

sonde_status sn_prep_string(sn_prep *p, const char *name, const char *def, const char **out)
{
    const sn_attr *a;
    SN_TRY(get(p, name, SN_ATTR_STRING, &a));
    *out = def;
    if (!a)
        return SONDE_OK;
    if (a->s.size && memchr(a->s.data, 0, a->s.size))
        return sn_prep_fail(p, "attribute '%s' contains a zero byte", name);
    *out = sn_arena_strndup(p->arena, a->s.data ? a->s.data : "", a->s.size);
    return *out ? SONDE_OK : sn_fail_memory(p->err, a->s.size);
}

sonde_status sn_prep_ints(sn_prep *p, const char *name, const int64_t **out, size_t *n)
{
    const sn_attr *a;
    SN_TRY(get(p, name, SN_ATTR_INTS, &a));
    *out = a ? a->ints : NULL;
    *n = a ? a->n : 0;
    return SONDE_OK;
}

sonde_status sn_prep_floats(sn_prep *p, const char *name, const float **out, size_t *n)
{
    const sn_attr *a;
    SN_TRY(get(p, name, SN_ATTR_FLOATS, &a));
    *out = a ? a->floats : NULL;
    *n = a ? a->n : 0;
    return SONDE_OK;
}

sonde_status sn_prep_strings(sn_prep *p, const char *name, const sonde_string **out, size_t *n)
{
    const sn_attr *a = sn_node_attr(p->node, name);
    *out = NULL;
    *n = 0;
    if (!a || a->n == 0)
        return SONDE_OK;
    if (a->kind != SN_ATTR_STRINGS)
        return sn_prep_fail(p, "attribute '%s' is not a list of strings", name);
    *out = a->strings;
    *n = a->n;
    return SONDE_OK;
}
