/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a node as people read and type them: "kernel_shape=3,3;strides=1,1". */
#include <stdarg.h>
#include <stdio.h>

#include "graph/graph.h"

/* A growing line of text; cut, never overrun. */
typedef struct line {
    char text[512];
    size_t n;
} line;

SONDE_PRINTF(2, 3) static void line_add(line *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int w = vsnprintf(l->text + l->n, sizeof l->text - l->n, fmt, args);
    va_end(args);
    if (w > 0)
        l->n = l->n + (size_t)w < sizeof l->text ? l->n + (size_t)w : sizeof l->text - 1;
}

static void add_attr(line *l, const sn_attr *a)
{
    switch (a->kind) {
    case SN_ATTR_INT:
        line_add(l, "%s=%lld", a->name, (long long)a->i);
        break;
    case SN_ATTR_FLOAT:
        line_add(l, "%s=%g", a->name, (double)a->f);
        break;
    case SN_ATTR_STRING:
        line_add(l, "%s=%.*s", a->name, (int)(a->s.size < 80 ? a->s.size : 80), a->s.data);
        break;
    case SN_ATTR_INTS:
        line_add(l, "%s=", a->name);
        for (size_t i = 0; i < a->n; i++)
            line_add(l, i ? ",%lld" : "%lld", (long long)a->ints[i]);
        break;
    default:
        line_add(l, "%s=…", a->name);
    }
}

const char *sn_node_attributes_text(const sn_node *node, sn_arena *arena)
{
    line l = {.n = 0};
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        if (i)
            line_add(&l, ";");
        add_attr(&l, &node->attrs[i]);
    }
    return sn_arena_strndup(arena, l.text, l.n);
}
