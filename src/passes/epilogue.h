/* SPDX-License-Identifier: Apache-2.0 */
/* What may be fused behind a convolution or a matrix product: a residual addition, then an
 * activation. Found once, here, for all of them. */
#ifndef SN_PASSES_EPILOGUE_H
#define SN_PASSES_EPILOGUE_H

#include "passes/rewrite.h"

enum { SN_EPILOGUE_NODES = 5 }; /* Add, and at most four nodes of an activation */

typedef struct sn_epilogue {
    sn_node *nodes[SN_EPILOGUE_NODES]; /* in order; the last one makes the result */
    uint32_t n_nodes;
    sn_value *residual;
    const char *activation; /* "" or as FusedConv names it */
    float params[2];
    uint32_t n_params;
    const char *shown; /* activation as post_op: "Relu", "Silu" */
} sn_epilogue;

/* Bounds of a Clip, from inputs (opset 11) or attributes; absent ones are the largest numbers.
 * False: a bound is not constant. */
bool sn_clip_bounds(const sn_node *n, float p[2]);

/* Looks behind node n's output 0. `order` (by node id) tells positions: a residual is taken only by
 * the later of two candidates, so that it is there when the fused node runs. `spreads`: the fused
 * operator also takes a residual that turns out to broadcast. */
void sn_epilogue_match(const sn_node *n, const uint32_t *order,
                       bool (*is_candidate)(const sn_node *), bool spreads, sn_epilogue *e);
/* Makes n the fused operator `op_type` of domain "sonde": inputs up to `residual_index`,
 * attributes, position, origins. n must not have an epilogue yet. */
sonde_status sn_epilogue_apply(sn_graph *g, sn_pass_env *env, sn_node *n, const char *op_type,
                               uint32_t residual_index, const sn_epilogue *e, uint32_t *order);
/* Calls `fuse` on every candidate, in order. */
typedef sonde_status (*sn_fuse_fn)(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *order,
                                   uint32_t *changes);
sonde_status sn_epilogue_walk(sn_graph *g, sn_pass_env *env, bool (*is_candidate)(const sn_node *),
                              sn_fuse_fn fuse, uint32_t *changes);

#endif
