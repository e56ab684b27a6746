/* SPDX-License-Identifier: Apache-2.0 */
/* The vision transformer (Dosovitskiy et al., 2020) as torchvision builds it: patches by a strided
 * convolution, a class token in front, learned positions, layers that normalise first, and the
 * class token's last state into a linear head. Attention is torch's nn.MultiheadAttention, whose
 * one projection for queries, keys and values is taken apart with the sequence in front. */
#include <stdio.h>

#include "zoo/blocks.h"

#define F32 SONDE_DTYPE_F32

#define EPSILON 1e-6f

typedef struct vit {
    int64_t image, patch, layers, width, heads, ffn, classes;
} vit;

/* Integer division of a size, with the casts tracing leaves behind. */
static sn_value *divide(sn_builder *b, const char *path, sn_value *size, int64_t by)
{
    sn_value *n = sn_blk_binary(b, path, "Div", size, sn_blk_int(b, path, by));
    return sn_blk_cast(b, path, sn_blk_cast(b, path, n, SONDE_DTYPE_I64), SONDE_DTYPE_I64);
}

/* The image ► [batch, patches, width]. */
static sn_value *patches(sn_builder *b, const vit *v, sn_value *image)
{
    sn_value *batch = sn_blk_size(b, "", image, 0), *height = sn_blk_size(b, "", image, 2);
    sn_value *width = sn_blk_size(b, "", image, 3);
    height = divide(b, "", height, v->patch);
    width = divide(b, "", width, v->patch);
    const int64_t dims[4] = {v->width, 3, v->patch, v->patch}, *p = &dims[2];
    sn_value *w = sn_b_weight(b, "conv_proj.weight", dims, 4, 3 * v->patch * v->patch);
    sn_value *bias = sn_b_uniform(b, "conv_proj.bias", dims, 1, 0.0f, 0.1f);
    sn_value *x = sn_b_op(b, "conv_proj", "Conv", SN_IN(image, w, bias),
                          SN_ATTRS(sn_a_ints("dilations", (const int64_t[]){1, 1}, 2),
                                   sn_a_int("group", 1), sn_a_ints("kernel_shape", p, 2),
                                   sn_a_ints("pads", (const int64_t[]){0, 0, 0, 0}, 4),
                                   sn_a_ints("strides", p, 2)));
    sn_value *count = sn_blk_binary(b, "", "Mul", height, width);
    x = sn_blk_reshape(b, "", x, SN_DIMS({batch, 0}, {NULL, v->width}, {count, 0}));
    return sn_blk_transpose(b, "", x, (const int64_t[]){0, 2, 1}, 3);
}

/* The class token, once per image: torch's expand(n, -1, -1), where -1 stands for "as it is". */
static sn_value *class_tokens(sn_builder *b, const vit *v, sn_value *x)
{
    const int64_t dims[3] = {1, 1, v->width}, minus = -1;
    sn_value *token = sn_b_uniform(b, "class_token", dims, 3, 0.0f, 0.05f);
    sn_value *batch = sn_blk_size(b, "", x, 0);
    sn_value *shape = sn_blk_shape(b, "", SN_DIMS({batch, 0}, {NULL, -1}, {NULL, -1}));
    sn_value *flat = sn_blk_ints(b, "", &minus, 1);
    shape = sn_b_op(b, "", "Reshape", SN_IN(shape, flat), SN_ATTRS(sn_a_int("allowzero", 0)));
    sn_value *length = sn_blk_unary(b, "", "Shape", shape);
    sn_value *ones = sn_blk_fill(b, "", length, SONDE_DTYPE_I64, 1);
    sn_value *kept = sn_blk_binary(b, "", "Mul", ones, sn_blk_int(b, "", -1));
    sn_value *keep = sn_blk_binary(b, "", "Equal", shape, kept);
    shape = sn_b_op(b, "", "Where", SN_IN(keep, ones, shape), SN_NO_ATTRS);
    return sn_blk_binary(b, "", "Expand", token, shape);
}

/* Sizes of one call of attention, as the graph's values. */
typedef struct sizes {
    sn_value *sequence, *batch, *width, *head;
} sizes;

/* [sequence, batch, 3 · width] ► [3, sequence, batch, width]: torch's unflatten(-1, (3, width)),
 * which looks up where -1 is, unsqueeze, transpose and squeeze. */
static sn_value *unflatten(sn_builder *b, const char *path, sn_value *x, sn_value *width)
{
    const int64_t one = 1, two = 2, three = 3, zero = 0, end = INT64_MAX;
    sn_value *inner = sn_blk_shape(b, path, SN_DIMS({NULL, 3}, {width, 0}));
    sn_value *axis = sn_blk_ints(b, path, &two, 1);
    axis = sn_blk_binary(b, path, "Mod", axis, sn_blk_ints(b, path, &three, 1));
    sn_value *shape = sn_blk_unary(b, path, "Shape", x), *unit = sn_blk_ints(b, path, &one, 1);
    sn_value *at = sn_blk_binary(b, path, "Reshape", axis, unit);
    sn_value *before =
        sn_b_op(b, path, "Slice", SN_IN(shape, sn_blk_ints(b, path, &zero, 1), at), SN_NO_ATTRS);
    at = sn_blk_binary(b, path, "Add", axis, unit);
    at = sn_blk_binary(b, path, "Reshape", at, unit);
    sn_value *after =
        sn_b_op(b, path, "Slice", SN_IN(shape, at, sn_blk_ints(b, path, &end, 1)), SN_NO_ATTRS);
    shape = sn_blk_concat(b, path, 0, SN_IN(before, inner, after));
    x = sn_b_op(b, path, "Reshape", SN_IN(x, shape), SN_ATTRS(sn_a_int("allowzero", 0)));
    x = sn_blk_axis(b, path, "Unsqueeze", x, 0);
    x = sn_blk_transpose(b, path, x, (const int64_t[]){3, 1, 2, 0, 4}, 5);
    return sn_blk_axis(b, path, "Squeeze", x, 3);
}

/* [sequence, batch, width] ► [batch · heads, sequence, head]. `sequence` is a number for keys and
 * values, whose length tracing took for fixed. */
static sn_value *by_head(sn_builder *b, const char *path, sn_value *x, sn_blk_dim sequence,
                         sn_value *rows, sn_value *head)
{
    x = sn_blk_reshape(b, path, x, SN_DIMS(sequence, {rows, 0}, {head, 0}));
    return sn_blk_transpose(b, path, x, (const int64_t[]){1, 0, 2}, 3);
}

/* softmax(q · kᵀ / √head) · v as scaled_dot_product_attention is written: the scale's root goes to
 * either side. */
static sn_value *dot_product(sn_builder *b, const char *path, sn_value *q, sn_value *k, sn_value *v)
{
    const int64_t last = -1, end = INT64_MAX, one = 1;
    void *data = NULL;
    sn_value *shape = sn_blk_unary(b, path, "Shape", q);
    sn_value *scale = sn_b_op(
        b, path, "Slice",
        SN_IN(shape, sn_blk_ints(b, path, &last, 1), sn_blk_ints(b, path, &end, 1)), SN_NO_ATTRS);
    scale = sn_blk_unary(b, path, "Sqrt", sn_blk_cast(b, path, scale, F32));
    sn_value *unit = sn_blk_table(b, path, F32, &one, 1, &data);
    if (data)
        *(float *)data = 1.0f;
    scale = sn_blk_cast(b, path, sn_blk_binary(b, path, "Div", unit, scale), F32);
    k = sn_blk_transpose(b, path, k, (const int64_t[]){0, 1, 3, 2}, 4);
    q = sn_blk_binary(b, path, "Mul", q, sn_blk_unary(b, path, "Sqrt", scale));
    k = sn_blk_binary(b, path, "Mul", k, sn_blk_unary(b, path, "Sqrt", scale));
    sn_value *s = sn_blk_binary(b, path, "MatMul", q, k);
    s = sn_b_op(b, path, "Softmax", SN_IN(s), SN_ATTRS(sn_a_int("axis", -1)));
    return sn_blk_binary(b, path, "MatMul", s, v);
}

static sn_value *attend(sn_builder *b, const vit *v, const char *path, sn_value *x)
{
    const int64_t w = v->width, side = v->image / v->patch, length = side * side + 1;
    x = sn_blk_transpose(b, path, x, (const int64_t[]){1, 0, 2}, 3);
    sizes n = {.sequence = sn_blk_size(b, path, x, 0)};
    n.batch = sn_blk_size(b, path, x, 1);
    n.width = sn_blk_size(b, path, x, 2);
    n.head = divide(b, path, n.width, v->heads);
    sn_value *last = sn_blk_size_from_end(b, path, x, -1);

    const int64_t dims[2] = {w, 3 * w};
    sn_value *in = sn_b_weight(b, sn_b_name(b, path, "in_proj_weight"), dims, 2, w);
    sn_value *bias = sn_b_uniform(b, sn_b_name(b, path, "in_proj_bias"), &dims[1], 1, 0.0f, 0.1f);
    x = sn_blk_binary(b, path, "Add", bias, sn_blk_binary(b, path, "MatMul", x, in));
    x = unflatten(b, path, x, last);
    sn_value *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = sn_blk_pick(b, path, x, 0, i);
    sn_value *rows = sn_blk_binary(b, path, "Mul", n.batch, sn_blk_int(b, path, v->heads));
    part[0] = by_head(b, path, part[0], (sn_blk_dim){n.sequence, 0}, rows, n.head);
    for (int i = 1; i < 3; i++)
        part[i] = by_head(b, path, part[i], (sn_blk_dim){NULL, length}, rows, n.head);
    sn_value *keys = sn_blk_size(b, path, part[1], 1);
    for (int i = 0; i < 3; i++)
        part[i] = sn_blk_reshape(
            b, path, part[i],
            SN_DIMS({n.batch, 0}, {NULL, v->heads}, {i ? keys : n.sequence, 0}, {n.head, 0}));
    x = dot_product(b, path, part[0], part[1], part[2]);

    x = sn_blk_transpose(b, path, x, (const int64_t[]){2, 0, 1, 3}, 4);
    rows = sn_blk_binary(b, path, "Mul", n.batch, n.sequence);
    x = sn_blk_reshape(b, path, x, SN_DIMS({rows, 0}, {n.width, 0}));
    sn_value *out =
        sn_b_weight(b, sn_b_name(b, path, "out_proj.weight"), (const int64_t[]){w, w}, 2, w);
    bias = sn_b_uniform(b, sn_b_name(b, path, "out_proj.bias"), &w, 1, 0.0f, 0.1f);
    x = sn_b_op(
        b, path, "Gemm", SN_IN(x, out, bias),
        SN_ATTRS(sn_a_float("alpha", 1.0f), sn_a_float("beta", 1.0f), sn_a_int("transB", 1)));
    sn_value *columns = sn_blk_size(b, path, x, 1);
    x = sn_blk_reshape(b, path, x, SN_DIMS({n.sequence, 0}, {n.batch, 0}, {columns, 0}));
    return sn_blk_transpose(b, path, x, (const int64_t[]){1, 0, 2}, 3);
}

static sn_value *layer(sn_builder *b, const vit *v, const char *path, sn_value *x)
{
    const int64_t w = v->width;
    sn_value *y = sn_blk_layer_norm(b, sn_b_name(b, path, "ln_1"), x, w, EPSILON);
    y = attend(b, v, sn_b_name(b, path, "self_attention"), y);
    x = sn_blk_binary(b, path, "Add", y, x);
    y = sn_blk_layer_norm(b, sn_b_name(b, path, "ln_2"), x, w, EPSILON);
    y = sn_b_project(b, y, sn_b_name(b, path, "mlp.0"), w, v->ffn);
    y = sn_blk_gelu(b, sn_b_name(b, path, "mlp.1"), y);
    y = sn_b_project(b, y, sn_b_name(b, path, "mlp.3"), v->ffn, w);
    return sn_blk_binary(b, path, "Add", x, y);
}

static sonde_status build(sn_model *m, uint64_t seed, const vit *v, sonde_error *err)
{
    const int64_t w = v->width, side = v->image / v->patch;
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim batch = sn_b_symbol(&b, "batch", 1);
    sn_value *x = sn_b_input(&b, "input", F32, (const sn_dim[]){batch, 3, v->image, v->image}, 4);
    x = patches(&b, v, x);
    x = sn_blk_concat(&b, "", 1, SN_IN(class_tokens(&b, v, x), x));
    const int64_t positions[3] = {1, side * side + 1, w};
    sn_value *learned = sn_b_uniform(&b, "encoder.pos_embedding", positions, 3, 0.0f, 0.05f);
    x = sn_blk_binary(&b, "encoder", "Add", x, learned);
    for (int64_t i = 0; i < v->layers; i++) {
        char path[48];
        snprintf(path, sizeof path, "encoder.layers.encoder_layer_%d", (int)i);
        x = layer(&b, v, path, x);
    }
    x = sn_blk_layer_norm(&b, "encoder.ln", x, w, EPSILON);
    x = sn_blk_pick(&b, "", x, 1, 0);
    x = sn_b_linear(&b, x, "heads.head", w, v->classes);
    sn_b_output(&b, x, "output", F32, (const sn_dim[]){batch, v->classes}, 2);
    return *b.status;
}

/* Image, patch, layers, width, heads, feed-forward, classes. */
#define VIT(id, ...)                                                                               \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(const vit){__VA_ARGS__}, err);                                     \
    }
VIT(vit_b_16, 224, 16, 12, 768, 12, 3072, 1000)
VIT(tiny_vit, 32, 8, 2, 32, 2, 64, 10)
