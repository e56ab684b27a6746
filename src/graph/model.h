/* SPDX-License-Identifier: Apache-2.0 */
/* A model: the parsed original graph and what surrounds it. Never rewritten after loading: programs
 * clone the graph. Refcounted, shared by sessions on any thread. */
#ifndef SN_GRAPH_MODEL_H
#define SN_GRAPH_MODEL_H

#include "base/context.h"
#include "base/file.h"
#include "base/fork_lock.h"
#include "graph/graph.h"

typedef struct sn_opset {
    const char *domain; /* "" = ai.onnx */
    int64_t version;
} sn_opset;

/* A model-local function as read; inlined before anything else looks at the graph. */
typedef struct sn_function {
    const char *name, *domain, *overload;
    const char *const *inputs, *const *outputs;
    uint32_t n_inputs, n_outputs;
    const char *const *attr_names;
    uint32_t n_attr_names; /* required attributes */
    const sn_attr *attr_defaults;
    uint32_t n_attr_defaults; /* attributes with defaults */
    const sn_opset *opsets;
    uint32_t n_opsets;
    sn_graph *body; /* inputs and outputs as graph inputs and outputs */
} sn_function;

typedef struct sn_meta {
    const char *key, *value;
} sn_meta;

typedef struct sn_model {
    _Atomic int refs;
    sn_context *ctx;
    sn_arena arena;
    sn_graph *graph;
    sn_origins origins;
    int64_t ir_version;
    const char *producer_name, *producer_version, *domain, *doc, *graph_name, *graph_doc;
    int64_t model_version;
    SN_VEC(sn_opset) opsets;
    SN_VEC(sn_meta) metadata;
    SN_VEC(sn_function) functions; /* as in the file, for inspect; already inlined in graph */
    SN_VEC(sn_file *) files; /* the model and its external data, mapped; structs in the arena */
    sn_buffers buffers; /* owned initializer memory (typed data converted, misaligned copies) */
    uint64_t file_bytes;
    sn_fork_lock lock; /* of `programs` */
    void *programs;    /* plan's: the live programs of this model; empty when the model dies */
} sn_model;

/* With an empty graph that shares the model's arena and origins; a reader fills it. */
sonde_status sn_model_new(sn_model **m, sn_context *ctx, sonde_error *err);
sn_model *sn_model_ref(sn_model *m);
void sn_model_unref(sn_model *m); /* the last one frees everything */
/* What was read of a constant will not be read soon: pages of a mapped file go back to the system.
 */
void sn_model_release(const sn_model *m, const sn_tensor *t);
int64_t sn_model_opset(const sn_model *m, const char *domain); /* -1 when not imported */

/* After reading: replaces calls of model-local functions by their bodies (recursion is an error;
 * growth is bounded), then turns outer-scope reads of bodies into explicit inputs, sorts, and gives
 * every node its origin and opset. */
sonde_status sn_model_finish(sn_model *m, sonde_error *err);

#endif
