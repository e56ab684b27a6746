/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of two profiles do the same work. One may have run a convolution, a normalisation and
 * an activation where the other ran a single step for all three: nodes that some step of either
 * does together form a set, and sets are what can be compared. Internal to this room. */
#ifndef SN_PROFILE_NODE_SETS_H
#define SN_PROFILE_NODE_SETS_H

#include "base/map.h"
#include "profile/keys.h"

typedef struct sn_node_sets {
    sn_allocator *alloc;
    sn_map ids; /* name ► 1 + its entry */
    SN_VEC(struct sn_node_set_entry {
        const char *name;           /* the profile's */
        uint32_t parent;            /* of the union-find forest; itself: it stands for its set */
        uint32_t row;               /* of a set: for the caller to use; at first SN_NODE_SET_NONE */
        const sn_prof_step *widest; /* of a set: the step that does most of it at once */
        bool foreign;               /* a step of another program's profile is called so */
        bool alias;                 /* it is no node's name, but leads to one */
    })
    nodes;
    sn_map makers; /* name of a value ► 1 + the entry of the node that makes it */
} sn_node_sets;

#define SN_NODE_SET_NONE UINT32_MAX

void sn_node_sets_init(sn_node_sets *s, sn_allocator *alloc);
void sn_node_sets_free(sn_node_sets *s);
/* All steps of a profile, which must live as long. False: out of memory. */
bool sn_node_sets_add(sn_node_sets *s, const sn_profile *p);
/* After all: a node that another program calls after the value it makes is the node that makes it.
 * ONNX Runtime does so where it changed the layout. */
void sn_node_sets_link(sn_node_sets *s);
/* The set of a step that was added; SN_NODE_SET_NONE: none of its nodes has a name. */
uint32_t sn_node_sets_of(sn_node_sets *s, const sn_prof_step *step);
/* The names of every set at once: "conv1, bn1, relu1" by the entry that stands for the set, NULL
 * for the others; in `arena`. NULL: out of memory. */
const char **sn_node_sets_names(sn_node_sets *s, sn_arena *arena);

#endif
