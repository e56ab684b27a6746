/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of blocks.h. Where a chain looks roundabout (two Shape nodes for two sizes of one
 * tensor), that is how tracing writes it: seeing through it is the engine's work. */
#include "zoo/blocks.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ names */
const char *sn_blk_under(sn_builder *b, const char *prefix, const char *leaf)
{
    return prefix && *prefix ? sn_b_name(b, prefix, leaf) : leaf;
}

const char *sn_blk_nth(sn_builder *b, const char *prefix, const char *leaf, int64_t k)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)k);
    return sn_b_name(b, sn_blk_under(b, prefix, leaf), number);
}

/* ------------------------------------------------------------------ numbers */
/* For an attribute: memory of the model, which the caller fills; NULL after a failure. */
static sn_tensor *tensor(sn_builder *b, sn_dtype dtype, const int64_t *dims, int rank)
{
    size_t bytes = 0;
    sn_tensor *t = sn_b_ok(b) ? SN_NEW(&b->model->arena, sn_tensor) : NULL;
    if (!t || !sn_tensor_bytes(dtype, dims, rank, &bytes) ||
        !(t->data = sn_arena_alloc(&b->model->arena, bytes, 64))) {
        if (sn_b_ok(b))
            *b->status = sn_fail_memory(b->err, bytes);
        return NULL;
    }
    t->dtype = dtype;
    t->rank = rank;
    t->bytes = bytes;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    return t;
}

sn_value *sn_blk_table(sn_builder *b, const char *path, sn_dtype dtype, const int64_t *dims,
                       int rank, void **data)
{
    sn_tensor *t = tensor(b, dtype, dims, rank);
    *data = t ? t->data : NULL;
    return t ? sn_b_op(b, path, "Constant", NULL, 0, SN_ATTRS(sn_a_tensor("value", t))) : NULL;
}

sn_value *sn_blk_fill(sn_builder *b, const char *path, sn_value *shape, sn_dtype dtype, int value)
{
    const int64_t one = 1;
    sn_tensor *t = tensor(b, dtype, &one, 1);
    if (!t)
        return NULL;
    if (dtype == SONDE_DTYPE_F32)
        *(float *)t->data = (float)value;
    else
        *(int64_t *)t->data = value;
    return sn_b_op(b, path, "ConstantOfShape", SN_IN(shape), SN_ATTRS(sn_a_tensor("value", t)));
}

static sn_value *ints(sn_builder *b, const char *path, const int64_t *values, int64_t n, int rank)
{
    void *data = NULL;
    sn_value *v = sn_blk_table(b, path, SONDE_DTYPE_I64, &n, rank, &data);
    if (v && n > 0)
        memcpy(data, values, (size_t)n * sizeof *values);
    return v;
}

sn_value *sn_blk_int(sn_builder *b, const char *path, int64_t value)
{
    return ints(b, path, &value, 1, 0);
}

sn_value *sn_blk_ints(sn_builder *b, const char *path, const int64_t *values, int64_t n)
{
    return ints(b, path, values, n, 1);
}

/* ------------------------------------------------------------------ nodes */
sn_value *sn_blk_unary(sn_builder *b, const char *path, const char *op_type, sn_value *x)
{
    return sn_b_op(b, path, op_type, SN_IN(x), SN_NO_ATTRS);
}

sn_value *sn_blk_binary(sn_builder *b, const char *path, const char *op_type, sn_value *x,
                        sn_value *y)
{
    return sn_b_op(b, path, op_type, SN_IN(x, y), SN_NO_ATTRS);
}

sn_value *sn_blk_axis(sn_builder *b, const char *path, const char *op_type, sn_value *x,
                      int64_t axis)
{
    return sn_blk_binary(b, path, op_type, x, sn_blk_ints(b, path, &axis, 1));
}

sn_value *sn_blk_cast(sn_builder *b, const char *path, sn_value *x, sn_dtype to)
{
    return sn_b_op(b, path, "Cast", SN_IN(x), SN_ATTRS(sn_a_int("to", (int64_t)to)));
}

sn_value *sn_blk_transpose(sn_builder *b, const char *path, sn_value *x, const int64_t *perm,
                           size_t rank)
{
    return sn_b_op(b, path, "Transpose", SN_IN(x), SN_ATTRS(sn_a_ints("perm", perm, rank)));
}

sn_value *sn_blk_pick(sn_builder *b, const char *path, sn_value *x, int64_t axis, int64_t index)
{
    sn_value *at = sn_blk_int(b, path, index);
    return sn_b_op(b, path, "Gather", SN_IN(x, at), SN_ATTRS(sn_a_int("axis", axis)));
}

sn_value *sn_blk_concat(sn_builder *b, const char *path, int64_t axis, sn_value *const *parts,
                        uint32_t n)
{
    return sn_b_op(b, path, "Concat", parts, n, SN_ATTRS(sn_a_int("axis", axis)));
}

/* ------------------------------------------------------------------ sizes */
sn_value *sn_blk_size(sn_builder *b, const char *path, sn_value *x, int64_t axis)
{
    return sn_blk_pick(b, path, sn_blk_unary(b, path, "Shape", x), 0, axis);
}

sn_value *sn_blk_size_from_end(sn_builder *b, const char *path, sn_value *x, int64_t from)
{
    const int64_t end = from == -1 ? INT64_MAX : from + 1, first = 0;
    sn_value *shape = sn_blk_unary(b, path, "Shape", x);
    sn_value *in[4] = {shape, sn_blk_ints(b, path, &from, 1), sn_blk_ints(b, path, &end, 1),
                       sn_blk_ints(b, path, &first, 1)};
    return sn_blk_axis(b, path, "Squeeze", sn_b_op(b, path, "Slice", in, 4, SN_NO_ATTRS), 0);
}

enum { MAX_DIMS = 6 };

sn_value *sn_blk_shape(sn_builder *b, const char *path, const sn_blk_dim *dims, uint32_t n)
{
    sn_value *parts[MAX_DIMS];
    for (uint32_t i = 0; i < n && i < MAX_DIMS; i++)
        parts[i] = dims[i].size ? sn_blk_axis(b, path, "Unsqueeze", dims[i].size, 0)
                                : sn_blk_ints(b, path, &dims[i].n, 1);
    return sn_blk_concat(b, path, 0, parts, n);
}

sn_value *sn_blk_reshape(sn_builder *b, const char *path, sn_value *x, const sn_blk_dim *dims,
                         uint32_t n)
{
    return sn_b_op(b, path, "Reshape", SN_IN(x, sn_blk_shape(b, path, dims, n)),
                   SN_ATTRS(sn_a_int("allowzero", 0)));
}

/* ------------------------------------------------------------------ blocks */
sn_value *sn_blk_embedding(sn_builder *b, const char *path, sn_value *ids, int64_t rows,
                           int64_t width, sn_value **table)
{
    /* About the 0.02 of deviation these tables start training with. */
    const int64_t dims[2] = {rows, width};
    sn_value *weight = sn_b_uniform(b, sn_b_name(b, path, "weight"), dims, 2, 0.0f, 0.05f);
    if (table)
        *table = weight;
    return sn_blk_binary(b, path, "Gather", weight, ids);
}

sn_value *sn_blk_layer_norm(sn_builder *b, const char *path, sn_value *x, int64_t width,
                            float epsilon)
{
    sn_value *scale = sn_b_uniform(b, sn_b_name(b, path, "weight"), &width, 1, 1.0f, 0.1f);
    sn_value *shift = sn_b_uniform(b, sn_b_name(b, path, "bias"), &width, 1, 0.0f, 0.1f);
    return sn_b_op(b, path, "LayerNormalization", SN_IN(x, scale, shift),
                   SN_ATTRS(sn_a_int("axis", -1), sn_a_float("epsilon", epsilon)));
}

/* x · (1 + erf(x / √2)) / 2. */
sn_value *sn_blk_gelu(sn_builder *b, const char *path, sn_value *x)
{
    sn_value *t = sn_blk_binary(b, path, "Div", x, sn_b_scalar(b, path, 1.41421354f));
    t = sn_blk_unary(b, path, "Erf", t);
    t = sn_blk_binary(b, path, "Add", t, sn_b_scalar(b, path, 1.0f));
    t = sn_blk_binary(b, path, "Mul", x, t);
    return sn_blk_binary(b, path, "Mul", t, sn_b_scalar(b, path, 0.5f));
}

/* x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))). */
sn_value *sn_blk_gelu_tanh(sn_builder *b, const char *path, sn_value *x)
{
    sn_value *half = sn_blk_binary(b, path, "Mul", x, sn_b_scalar(b, path, 0.5f));
    sn_value *t = sn_blk_binary(b, path, "Pow", x, sn_b_scalar(b, path, 3.0f));
    t = sn_blk_binary(b, path, "Mul", t, sn_b_scalar(b, path, 0.044715f));
    t = sn_blk_binary(b, path, "Add", x, t);
    t = sn_blk_binary(b, path, "Mul", t, sn_b_scalar(b, path, 0.797884583f));
    t = sn_blk_unary(b, path, "Tanh", t);
    t = sn_blk_binary(b, path, "Add", t, sn_b_scalar(b, path, 1.0f));
    return sn_blk_binary(b, path, "Mul", half, t);
}

sn_value *sn_blk_padding_mask(sn_builder *b, const char *path, sn_value *mask)
{
    sn_value *t = sn_blk_axis(b, path, "Unsqueeze", mask, 1);
    t = sn_blk_axis(b, path, "Unsqueeze", t, 2);
    t = sn_blk_cast(b, path, t, SONDE_DTYPE_F32);
    t = sn_blk_binary(b, path, "Sub", sn_b_scalar(b, path, 1.0f), t);
    return sn_blk_binary(b, path, "Mul", t, sn_b_scalar(b, path, -FLT_MAX));
}

sn_value *sn_blk_split_heads(sn_builder *b, const char *path, sn_value *x, int64_t heads,
                             int64_t size, const int64_t perm[4])
{
    sn_value *batch = sn_blk_size(b, path, x, 0), *sequence = sn_blk_size(b, path, x, 1);
    x = sn_blk_reshape(b, path, x, SN_DIMS({batch, 0}, {sequence, 0}, {NULL, heads}, {NULL, size}));
    return sn_blk_transpose(b, path, x, perm, 4);
}

sn_value *sn_blk_merge_heads(sn_builder *b, const char *path, sn_value *x, int64_t width)
{
    x = sn_blk_transpose(b, path, x, (const int64_t[]){0, 2, 1, 3}, 4);
    sn_value *batch = sn_blk_size(b, path, x, 0), *sequence = sn_blk_size(b, path, x, 1);
    return sn_blk_reshape(b, path, x, SN_DIMS({batch, 0}, {sequence, 0}, {NULL, width}));
}
