/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a model a tool works on: lists of names as people type them. An entry is the name
 * of a node or of a weight, a pattern in which * stands for any text and ? for one character, or
 * several of these with commas between them. A node without a name is called as its first output.
 */
#ifndef SN_SHRINK_SELECTION_H
#define SN_SHRINK_SELECTION_H

#include "graph/graph.h"

typedef struct sn_names {
    const char **list;
    size_t n;
} sn_names;

typedef struct sn_selection {
    sn_names only; /* none: all */
    sn_names except;
} sn_selection;

/* An entry that nothing in the graph or its bodies is called is an error that lists names like it.
 * The texts must live as long; what is made lives in the arena. */
sonde_status sn_selection_make(sn_selection *s, const sn_graph *g, const char *const *only,
                               size_t n_only, const char *const *except, size_t n_except,
                               sn_arena *arena, sonde_error *err);
/* `weight` may be NULL: nodes alone are asked for. */
bool sn_selection_has(const sn_selection *s, const char *node, const char *weight);

/* What a node is called in a selection and in tables; "" only for one without outputs. */
const char *sn_node_called(const sn_node *n);

#endif
