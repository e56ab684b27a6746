/* SPDX-License-Identifier: Apache-2.0 */
/* Copying graphs, for clones and for inlining, which changes what it copies on the way. */
#ifndef SN_GRAPH_GRAPH_CLONE_H
#define SN_GRAPH_GRAPH_CLONE_H

#include "graph/graph.h"

typedef struct sn_cloner sn_cloner;
struct sn_cloner {
    sn_arena *arena;
    sn_allocator *alloc;
    sonde_error *err;
    void *user;
    /* Each may be NULL. Called for every attribute (before bodies in it are copied; *keep = false
     * drops it), and for every copied node of a body once it is wired. */
    sonde_status (*attr)(const sn_cloner *c, const sn_node *from, sn_attr *a, bool *keep);
    sonde_status (*node)(const sn_cloner *c, sn_graph *g, sn_node *made, const sn_node *from);
    bool forget_symbols; /* symbolic dims become unknown: they belong to another root */
};

/* The node's attributes, bodies copied under g. */
sonde_status sn_clone_attrs(const sn_cloner *c, sn_graph *g, sn_node *made, const sn_node *from);
/* A whole graph under `parent` (NULL: a root). Value and node ids are kept. */
sonde_status sn_clone_graph(const sn_cloner *c, const sn_graph *from, sn_graph *parent,
                            sn_graph **out);
/* A type without symbols, when the cloner forgets them; else the type itself. */
sonde_status sn_clone_type(const sn_cloner *c, const sn_type *from, sn_type *out);

#endif
