/* SPDX-License-Identifier: Apache-2.0 */
/* A small language for writing models down: each call adds one node and returns the value it makes.
 *
 * Errors are sticky: after the first failure every call returns NULL and does nothing, so a builder
 * reads straight through and asks for `status` once, at the end. Names follow what torch.onnx
 * writes: from the module path "stem.0" come the weight "stem.0.weight", the node
 * "/stem/stem.0/Conv" and the value "/stem/stem.0/Conv_output_0"; a second one under the same path
 * is called "Conv_1". Weights are a pure function of (seed, order of creation). */
#ifndef SN_ZOO_BUILDER_H
#define SN_ZOO_BUILDER_H

#include <string.h>

#include "graph/model.h"

typedef struct sn_builder {
    sn_model *model;
    sn_graph *graph;
    uint64_t *stream; /* state of the weight generator, shared with the builders of bodies */
    uint64_t stream_own;
    sonde_error *err;
    sonde_status *status; /* likewise */
    sonde_status status_own;
    const char *list; /* torch's ModuleList of the model ("layer"): in weights' names, no scope */
} sn_builder;

/* Makes m->graph. Nodes are written for ai.onnx version `opset`. The builder must not move. */
void sn_b_init(sn_builder *b, sn_model *m, int64_t opset, uint64_t seed, sonde_error *err);
/* A builder for the body of a control-flow node of `outer`. */
void sn_b_init_body(sn_builder *b, sn_builder *outer, const char *name);
static inline bool sn_b_ok(const sn_builder *b)
{
    return *b->status == SONDE_OK;
}

/* ---- values ---- */
/* A named dimension with the size it takes when nobody says otherwise. */
sn_dim sn_b_symbol(sn_builder *b, const char *name, int64_t default_size);
sn_value *sn_b_input(sn_builder *b, const char *name, sn_dtype dtype, const sn_dim *dims, int rank);
/* Renames `v`, declares its type and makes it a graph output. */
void sn_b_output(sn_builder *b, sn_value *v, const char *name, sn_dtype dtype, const sn_dim *dims,
                 int rank);
/* In a body: a value of a graph around it, by name; sn_model_finish makes it an explicit input. */
sn_value *sn_b_outer(sn_builder *body, const sn_value *outer);
void sn_b_output_sequence(sn_builder *b, sn_value *v, const char *name, sn_dtype dtype);

/* A constant of any type; the caller fills *data. */
sn_value *sn_b_constant(sn_builder *b, const char *name, sn_dtype dtype, const int64_t *dims,
                        int rank, void **data);
/* f32 constants: uniform in center ± half_width. */
sn_value *sn_b_uniform(sn_builder *b, const char *name, const int64_t *dims, int rank, float center,
                       float half_width);
/* Kaiming: keeps the variance of activations through a layer of `fan_in` inputs and a ReLU. */
sn_value *sn_b_weight(sn_builder *b, const char *name, const int64_t *dims, int rank,
                      int64_t fan_in);
/* i64 constants. rank 0: n is 1. */
sn_value *sn_b_ints(sn_builder *b, const char *name, const int64_t *values, int64_t n, int rank);
sn_value *sn_b_bool(sn_builder *b, const char *name, bool value);
sn_value *sn_b_strings(sn_builder *b, const char *name, const char *const *texts, int64_t n);

/* ---- nodes ---- */
#define SN_COUNT_OF(T, ...) ((uint32_t)(sizeof((T[]){__VA_ARGS__}) / sizeof(T)))
/* SN_IN(x, w) and SN_ATTRS(sn_a_int("axis", 1), …) each stand for two arguments: array and length.
 */
#define SN_IN(...)    (sn_value *const[]){__VA_ARGS__}, SN_COUNT_OF(sn_value *const, __VA_ARGS__)
#define SN_ATTRS(...) (const sn_attr[]){__VA_ARGS__}, SN_COUNT_OF(sn_attr, __VA_ARGS__)
#define SN_NO_ATTRS   NULL, 0

static inline sn_attr sn_a_int(const char *name, int64_t i)
{
    return (sn_attr){.name = name, .kind = SN_ATTR_INT, .n = 1, .i = i};
}
static inline sn_attr sn_a_float(const char *name, float f)
{
    return (sn_attr){.name = name, .kind = SN_ATTR_FLOAT, .n = 1, .f = f};
}
/* `text` must outlive the model: a literal. */
static inline sn_attr sn_a_text(const char *name, const char *text)
{
    return (sn_attr){
        .name = name, .kind = SN_ATTR_STRING, .n = 1, .s = {.data = text, .size = strlen(text)}};
}
static inline sn_attr sn_a_tensor(const char *name, const sn_tensor *t)
{
    return (sn_attr){.name = name, .kind = SN_ATTR_TENSOR, .n = 1, .tensor = t};
}
static inline sn_attr sn_a_graph(const char *name, sn_graph *g)
{
    return (sn_attr){.name = name, .kind = SN_ATTR_GRAPH, .n = 1, .graph = g};
}
/* `ints` is copied when the node is made. */
static inline sn_attr sn_a_ints(const char *name, const int64_t *ints, size_t n)
{
    return (sn_attr){.name = name, .kind = SN_ATTR_INTS, .n = n, .ints = ints};
}

/* One node with one output. A NULL input is an optional one left out. */
sn_value *sn_b_op(sn_builder *b, const char *path, const char *op_type, sn_value *const *in,
                  uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs);
/* The same with `n_out` outputs; returns false (and zeroed outs) after a failure. */
bool sn_b_multi(sn_builder *b, const char *path, const char *op_type, sn_value *const *in,
                uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs, sn_value **out,
                uint32_t n_out);
/* One node with one output, both under names of their own (copied). */
sn_value *sn_b_node(sn_builder *b, const char *name, const char *op_type, sn_value *const *in,
                    uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs, const char *out_name);
/* A Constant node, which is how torch.onnx writes numbers. */
sn_value *sn_b_scalar(sn_builder *b, const char *path, float value);

typedef struct sn_conv_spec {
    int64_t in, out;        /* channels */
    int64_t kernel, stride; /* square; padding keeps ceil(size / stride) */
    int64_t groups;         /* 0 means 1 */
    bool bias;
} sn_conv_spec;
sn_value *sn_b_conv(sn_builder *b, sn_value *x, const char *path, const sn_conv_spec *spec);
/* `gamma` is the centre of the scale: below 1 on the last layer of a residual branch, or the sum
 * would double its variance in every block. */
sn_value *sn_b_batch_norm(sn_builder *b, sn_value *x, const char *path, int64_t channels,
                          float gamma);
/* Gemm with the weight [out, in] of torch's Linear, and a bias. */
sn_value *sn_b_linear(sn_builder *b, sn_value *x, const char *path, int64_t in, int64_t out);
/* MatMul with a constant [in, out] and an Add: torch's Linear on inputs of rank 3. */
sn_value *sn_b_project(sn_builder *b, sn_value *x, const char *path, int64_t in, int64_t out);

/* "path.leaf" in the model's arena; NULL after a failure. */
const char *sn_b_name(sn_builder *b, const char *path, const char *leaf);

/* ---- one builder per row of models.inc ---- */
#define SN_ZOO(id, text, params, ops)                                                              \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err);
#include "zoo/models.inc"
#undef SN_ZOO

#endif
