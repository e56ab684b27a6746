/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of built-in models share: a model of a context without threads, and a look at its
 * nodes. */
#ifndef SONDE_TESTS_ZOO_BUILT_H
#define SONDE_TESTS_ZOO_BUILT_H

#include "test.h"
#include "zoo/zoo.h"

static sn_allocator system_alloc;
static sn_context ctx;

/* NULL after an error, which has been said. */
static inline sn_model *built(const char *name)
{
    if (!ctx.alloc) {
        sn_allocator_init_system(&system_alloc);
        ctx.alloc = &system_alloc;
        if (sn_trace_create(&ctx.trace, &system_alloc, 0, NULL) != SONDE_OK)
            return NULL;
    }
    sonde_error err = {0};
    sn_model *m = NULL;
    if (sn_zoo_build(name, 1, &ctx, &m, &err) != SONDE_OK)
        fprintf(stderr, "%s: %s\n", name, err.message);
    return m;
}

static inline int count(const sn_model *m, const char *op_type)
{
    int n = 0;
    for (const sn_node *node = m->graph->first; node; node = node->next)
        n += strcmp(node->op_type, op_type) == 0;
    return n;
}

#endif
