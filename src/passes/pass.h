/* SPDX-License-Identifier: Apache-2.0 */
/* A pass rewrites a graph through sn_graph_replace and friends. One file each, one row in
 * passes.inc, run in that order; each can be switched off by name and is timed as a span. */
#ifndef SN_PASSES_PASS_H
#define SN_PASSES_PASS_H

#include "ops/framework/op.h"

typedef struct sn_pass_env {
    sn_context *ctx;
    uint32_t cpu_flags;
    sonde_precision
        precision;       /* of packed weights; SONDE_PRECISION_FILE where they are not packed */
    sn_buffers *buffers; /* constants a pass makes: push the buffer, it lives with the program */
    sonde_error *err;
} sn_pass_env;

typedef struct sn_pass {
    const char *name;    /* "fold-constants" */
    const char *summary; /* one line for people */
    sonde_status (*run)(sn_graph *g, sn_pass_env *env, uint32_t *changes);
    bool bodies; /* also runs on the bodies of control flow */
    /* Reads the contents of weights, more than single numbers of them. A plan that is made only to
     * know a model's inputs and outputs leaves such passes out. */
    bool reads_weights;
    /* Not NULL: the pass says what a model means and not how to compute it faster, if the graph has
     * what this asks for. */
    bool (*means)(const sn_graph *g);
} sn_pass;

const sn_pass *sn_pass_row(size_t k); /* NULL past the end */

/* Runs the passes not named in `disabled`, in order. `meaning_only`: only up to the last one that
 * says what this model means; no pass at all if none does. Those before it run because what it
 * finds depends on them, and the results of a model do not depend on `meaning_only`. */
sonde_status sn_passes_run(sn_graph *g, sn_pass_env *env, const char *const *disabled,
                           size_t n_disabled, bool meaning_only);

#endif
