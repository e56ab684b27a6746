/* SPDX-License-Identifier: Apache-2.0 */
/* Values as rows, which are their last axis, and chains of nodes that do the same to every row or
 * move rows as a whole: any chain of Reshape, Transpose, Slice, Concat of Slices, Gather and the
 * like. What such a chain does to the order of rows is found by carrying it out on their numbers.
 */
#ifndef SN_PASSES_ROW_CHAIN_H
#define SN_PASSES_ROW_CHAIN_H

#include "passes/rewrite.h"

enum { SN_ROW_MOVES = 16, SN_ROW_WISE = 6 };

/* Row numbers. */
typedef struct sn_rows {
    int32_t *at;
    int64_t n;
    size_t bytes;
} sn_rows;

/* Row-wise nodes and the nodes that move rows, both in the order in which they run. */
typedef struct sn_row_chain {
    sn_node *wise[SN_ROW_WISE];
    int n_wise;
    sn_node *move[SN_ROW_MOVES];
    int n_move;
    sn_value *from, *to; /* ends of what moves */
} sn_row_chain;

/* An f32 tensor of known dims with rows. */
bool sn_has_rows(const sn_value *v);
sn_dim sn_row_width(const sn_value *v);
/* Number of rows; -1: more than is looked at. */
int64_t sn_row_count(const sn_value *v);
/* The input to every row of which n does the same, and nothing else; NULL: there is none. */
sn_value *sn_row_wise_input(const sn_node *n);

/* From v up: row-wise nodes, at least one, then at least one that moves rows. Nobody but the chain
 * reads what is between, v apart. */
bool sn_row_chain_before(sn_value *v, sn_row_chain *c);
/* From v down: row-wise nodes, if any, then at least one that moves rows. */
bool sn_row_chain_behind(sn_value *v, sn_row_chain *c);

/* Row i of c->to is row map->at[i] of c->from. *usable = false: it cannot be said. */
sonde_status sn_row_chain_follow(sn_graph *g, sn_pass_env *env, const sn_row_chain *c, sn_rows *map,
                                 bool *usable);
/* Where each of n rows goes, -1: nowhere. *usable becomes false where one goes to several places.
 */
sonde_status sn_rows_invert(sn_graph *g, sn_pass_env *env, const sn_rows *map, int64_t n,
                            sn_rows *to, bool *usable);
bool sn_rows_still(const sn_rows *r); /* each row is where it was */
void sn_rows_free(sn_graph *g, sn_rows *r);

#endif
