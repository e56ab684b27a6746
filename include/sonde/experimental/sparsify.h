/* SPDX-License-Identifier: Apache-2.0 */
/* Magnitude pruning: makes the smallest weights of a model zero, in blocks that sparse kernels can
 * skip, and saves the result as standard ONNX.
 *
 *     sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
 *     o.ratio = 0.9;
 *     sonde_sparsified *sparse;
 *     sonde_sparsify(model, &o, &sparse, &err);
 *     sonde_sparsified_save(sparse, "out.onnx", NULL, &err);
 *     sonde_sparsified_release(sparse);
 *
 * Weights are constant inputs of MatMul, Gemm, Conv, ConvTranspose and their quantised forms
 * (QLinearConv, MatMulInteger, a DequantizeLinear before MatMul, …), in bodies of control flow,
 * too. A constant that several nodes read is pruned once. Zero of a quantised weight is its zero
 * point. Equal models and options give equal files. Experimental: may change between versions. */
#ifndef SONDE_EXPERIMENTAL_SPARSIFY_H
#define SONDE_EXPERIMENTAL_SPARSIFY_H

#include "sonde/experimental/save.h"
#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sonde_sparsify_options {
    size_t struct_size;
    double ratio; /* share of the blocks that become zero, 0 to 1; of 2:4 it is 0.5 or not set */
    /* "4x1" (the default): blocks of 4 neighbouring outputs at one k. Any other OUTPUTSxK: 1x16,
     * 16x1, 16x4, 1x1. "2:4": two of four neighbours along k. Of a convolution k is an input
     * channel at one tap of the kernel. The last blocks may be smaller. */
    const char *pattern;
    /* Names of nodes, of what they produce or of weights, patterns with * and ?, lists of these
     * with commas, or "@FILE" as in sonde/experimental/quantize.h. A weight is pruned if all nodes
     * that read it are selected. */
    const char *const *only; /* none: all weights except those of depthwise convolutions */
    size_t only_count;
    const char *const *except;
    size_t except_count;
    int global;              /* the smallest blocks of all weights, not of each */
    int sparse_initializers; /* save pruned weights as ONNX's sparse_initializer where that takes
                                less room */
    /* Called now and then with what is done, 0 to 1; not 0: end with SONDE_CANCELLED. */
    int (*progress)(void *user, double done);
    void *user;
} sonde_sparsify_options;

typedef struct sonde_sparsified sonde_sparsified;
/* The model stays as it is; `options` may be NULL, which prunes nothing. An error if there is no
 * weight to prune. */
SONDE_API sonde_status sonde_sparsify(sonde_model *model, const sonde_sparsify_options *options,
                                      sonde_sparsified **result, sonde_error *err);
SONDE_API void sonde_sparsified_release(sonde_sparsified *result);
/* As sonde_model_save_with; the model's own file may be replaced. `options` may be NULL. */
SONDE_API sonde_status sonde_sparsified_save(const sonde_sparsified *result, const char *path,
                                             const sonde_save_options *options, sonde_error *err);

typedef struct sonde_sparse_weight {
    size_t struct_size;
    const char *node;    /* the nodes that read it, comma-separated; "" in the total */
    const char *op_type; /* of the first */
    const char *weight;  /* its name, "" when it has none */
    const char *shape;   /* "768x3072"; "" in the total */
    const char *pattern; /* "4x1" */
    const char *dtype;   /* "f32"; "" in the total */
    uint64_t elements, zeros_before, zeros_after;
    double norm_kept; /* the weight's L2 norm, divided by that before; NaN with infinite numbers */
    const char *skipped; /* why it was left as it is; "" for those that were pruned */
    int selected;        /* 0: the options leave it out */
} sonde_sparse_weight;
/* In the order in which the model uses them. */
SONDE_API size_t sonde_sparsified_count(const sonde_sparsified *result);
SONDE_API sonde_status sonde_sparsified_weight(const sonde_sparsified *result, size_t index,
                                               sonde_sparse_weight *weight, sonde_error *err);
/* All that were pruned, together. */
SONDE_API sonde_status sonde_sparsified_total(const sonde_sparsified *result,
                                              sonde_sparse_weight *weight, sonde_error *err);

#ifdef __cplusplus
}
#endif
#endif
