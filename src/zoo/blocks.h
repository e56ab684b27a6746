/* SPDX-License-Identifier: Apache-2.0 */
/* What transformers are made of, node for node as torch.onnx writes it (opset 17, dynamic sizes):
 * sizes read with Shape and Gather, put together again with Concat, heads split and merged, layer
 * normalisation, both GELUs, padding masks. Each function adds nodes under `path` and returns what
 * they make; errors are the builder's. */
#ifndef SN_ZOO_BLOCKS_H
#define SN_ZOO_BLOCKS_H

#include "zoo/builder.h"

/* ---- numbers: Constant nodes, as sn_b_scalar ---- */
sn_value *sn_blk_int(sn_builder *b, const char *path, int64_t value);
sn_value *sn_blk_ints(sn_builder *b, const char *path, const int64_t *values, int64_t n);
/* Any tensor; the caller fills *data. For tables that are computed, not trained. */
sn_value *sn_blk_table(sn_builder *b, const char *path, sn_dtype dtype, const int64_t *dims,
                       int rank, void **data);
/* ConstantOfShape: an f32 or i64 tensor of that shape, `value` everywhere. */
sn_value *sn_blk_fill(sn_builder *b, const char *path, sn_value *shape, sn_dtype dtype, int value);

/* ---- nodes ---- */
sn_value *sn_blk_unary(sn_builder *b, const char *path, const char *op_type, sn_value *x);
sn_value *sn_blk_binary(sn_builder *b, const char *path, const char *op_type, sn_value *x,
                        sn_value *y);
/* Unsqueeze, Squeeze, ReduceSum: an axis (or `axes`) as an input. */
sn_value *sn_blk_axis(sn_builder *b, const char *path, const char *op_type, sn_value *x,
                      int64_t axis);
sn_value *sn_blk_cast(sn_builder *b, const char *path, sn_value *x, sn_dtype to);
sn_value *sn_blk_transpose(sn_builder *b, const char *path, sn_value *x, const int64_t *perm,
                           size_t rank);
/* One row of `x` along `axis`, which goes away. */
sn_value *sn_blk_pick(sn_builder *b, const char *path, sn_value *x, int64_t axis, int64_t index);
sn_value *sn_blk_concat(sn_builder *b, const char *path, int64_t axis, sn_value *const *parts,
                        uint32_t n);

/* ---- sizes ---- */
/* x.size(axis), a scalar. */
sn_value *sn_blk_size(sn_builder *b, const char *path, sn_value *x, int64_t axis);
/* x.size(from) for a negative `from`, which torch.onnx writes as a Slice. */
sn_value *sn_blk_size_from_end(sn_builder *b, const char *path, sn_value *x, int64_t from);
/* One entry of a shape: a size of the graph, or a number when that is NULL. */
typedef struct sn_blk_dim {
    sn_value *size;
    int64_t n;
} sn_blk_dim;
#define SN_DIMS(...) (const sn_blk_dim[]){__VA_ARGS__}, SN_COUNT_OF(sn_blk_dim, __VA_ARGS__)
sn_value *sn_blk_shape(sn_builder *b, const char *path, const sn_blk_dim *dims, uint32_t n);
sn_value *sn_blk_reshape(sn_builder *b, const char *path, sn_value *x, const sn_blk_dim *dims,
                         uint32_t n);

/* ---- blocks ---- */
/* *table receives the weight; it may be NULL. */
sn_value *sn_blk_embedding(sn_builder *b, const char *path, sn_value *ids, int64_t rows,
                           int64_t width, sn_value **table);
sn_value *sn_blk_layer_norm(sn_builder *b, const char *path, sn_value *x, int64_t width,
                            float epsilon);
sn_value *sn_blk_gelu(sn_builder *b, const char *path, sn_value *x);      /* by Erf */
sn_value *sn_blk_gelu_tanh(sn_builder *b, const char *path, sn_value *x); /* "gelu_new" */
/* [batch, sequence] of ones and zeros ► [batch, 1, 1, sequence] of 0 and the lowest float. */
sn_value *sn_blk_padding_mask(sn_builder *b, const char *path, sn_value *mask);
/* [batch, sequence, heads · size] ► [batch, sequence, heads, size], permuted. */
sn_value *sn_blk_split_heads(sn_builder *b, const char *path, sn_value *x, int64_t heads,
                             int64_t size, const int64_t perm[4]);
/* [batch, heads, sequence, size] ► [batch, sequence, width]. */
sn_value *sn_blk_merge_heads(sn_builder *b, const char *path, sn_value *x, int64_t width);

/* "prefix.leaf", or the leaf alone under an empty prefix. */
const char *sn_blk_under(sn_builder *b, const char *prefix, const char *leaf);
/* "prefix.leaf.k". */
const char *sn_blk_nth(sn_builder *b, const char *prefix, const char *leaf, int64_t k);

#endif
