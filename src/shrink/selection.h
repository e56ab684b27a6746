/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a model a tool works on: lists of names as people type them. An entry is the name
 * of a node, of what it makes or of a weight, a pattern in which * stands for any text and ? for
 * one character, "@FILE" for the names in a file, or several of these with commas between them. A
 * node without a name is called as its first output. */
#ifndef SN_SHRINK_SELECTION_H
#define SN_SHRINK_SELECTION_H

#include "graph/graph.h"

/* Entries that begin with this are names and nothing else, whatever they contain. */
enum { SN_NAME_EXACT = '\1' };

typedef struct sn_names {
    const char **list;
    size_t n, cap;
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
/* `weight`: the name of its weight; NULL: it has none. */
bool sn_selection_has(const sn_selection *s, const sn_node *n, const char *weight);
bool sn_selection_excepts(const sn_selection *s, const sn_node *n, const char *weight);

/* What a node is called in a selection and in tables; "" only for one without outputs. */
const char *sn_node_called(const sn_node *n);

/* ---- names.c ---- */
/* `entry` must live as long as the list. */
sonde_status sn_names_add(sn_names *names, const char *entry, sn_arena *arena, sonde_error *err);
/* Adds the names in a file: those that a comparison, JSON of the schema
 * "sonde.compare/1", would leave in float, or one in each line of any other text. */
sonde_status sn_names_read(sn_names *names, const char *path, sn_arena *arena, sn_allocator *alloc,
                           sonde_error *err);

#endif
