/* SPDX-License-Identifier: Apache-2.0 */
/* Small feed-forward models for tests, examples and measuring overhead: dense layers, convolutions,
 * attention, and a long chain of nothing much. */
#include <stdio.h>

#include "zoo/blocks.h"

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

sonde_status sn_zoo_build_tiny_mlp(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim batch = sn_b_symbol(&b, "batch", 1);
    sn_value *x = sn_b_input(&b, "input", F32, (const sn_dim[]){batch, 16}, 2);
    x = sn_b_linear(&b, x, "fc1", 16, 32);
    x = sn_b_op(&b, "act", "Relu", SN_IN(x), SN_NO_ATTRS);
    x = sn_b_linear(&b, x, "fc2", 32, 10);
    x = sn_b_op(&b, "", "Softmax", SN_IN(x), SN_ATTRS(sn_a_int("axis", 1)));
    sn_b_output(&b, x, "output", F32, (const sn_dim[]){batch, 10}, 2);
    return *b.status;
}

static sn_value *conv_bn(sn_builder *b, sn_value *x, const char *path, const sn_conv_spec *spec)
{
    char part[64];
    snprintf(part, sizeof part, "%s.conv", path);
    x = sn_b_conv(b, x, part, spec);
    snprintf(part, sizeof part, "%s.bn", path);
    return sn_b_batch_norm(b, x, part, spec->out, 1.0f);
}

sonde_status sn_zoo_build_tiny_cnn(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim batch = sn_b_symbol(&b, "batch", 1);
    const int64_t two[2] = {2, 2};
    sn_value *x = sn_b_input(&b, "input", F32, (const sn_dim[]){batch, 3, 32, 32}, 4);
    x = conv_bn(&b, x, "stem", &(sn_conv_spec){.in = 3, .out = 16, .kernel = 3, .stride = 2});
    x = sn_b_op(&b, "stem.act", "Relu", SN_IN(x), SN_NO_ATTRS);
    sn_value *y =
        conv_bn(&b, x, "depthwise",
                &(sn_conv_spec){.in = 16, .out = 16, .kernel = 3, .stride = 1, .groups = 16});
    y = sn_b_op(&b, "depthwise.act", "Relu", SN_IN(y), SN_NO_ATTRS);
    y = conv_bn(&b, y, "pointwise", &(sn_conv_spec){.in = 16, .out = 16, .kernel = 1, .stride = 1});
    x = sn_b_op(&b, "", "Add", SN_IN(x, y), SN_NO_ATTRS);
    x = sn_b_op(&b, "act", "Relu", SN_IN(x), SN_NO_ATTRS);
    x = sn_b_op(&b, "pool", "MaxPool", SN_IN(x),
                SN_ATTRS(sn_a_ints("kernel_shape", two, 2), sn_a_ints("strides", two, 2)));
    x = sn_b_conv(&b, x, "expand",
                  &(sn_conv_spec){.in = 16, .out = 32, .kernel = 1, .stride = 1, .bias = true});
    x = sn_b_op(&b, "avgpool", "GlobalAveragePool", SN_IN(x), SN_NO_ATTRS);
    x = sn_b_op(&b, "", "Flatten", SN_IN(x), SN_ATTRS(sn_a_int("axis", 1)));
    x = sn_b_linear(&b, x, "fc", 32, 10);
    sn_b_output(&b, x, "output", F32, (const sn_dim[]){batch, 10}, 2);
    return *b.status;
}

enum { VOCAB = 128, WIDTH = 32, HEADS = 2, FFN = 64 };

/* [batch, seq, WIDTH] ► [batch, HEADS, seq, WIDTH / HEADS], or with the last two swapped for keys.
 */
static sn_value *split_heads(sn_builder *b, sn_value *x, const char *path, sn_value *shape,
                             bool key)
{
    const int64_t perm[2][4] = {{0, 2, 1, 3}, {0, 2, 3, 1}};
    x = sn_b_op(b, path, "Reshape", SN_IN(x, shape), SN_NO_ATTRS);
    return sn_b_op(b, path, "Transpose", SN_IN(x), SN_ATTRS(sn_a_ints("perm", perm[key], 4)));
}

static sn_value *attention(sn_builder *b, sn_value *x, sn_value *bias)
{
    const int64_t apart[4] = {0, 0, HEADS, WIDTH / HEADS}, together[3] = {0, 0, WIDTH};
    const int64_t perm[4] = {0, 2, 1, 3};
    sn_value *shape = sn_b_ints(b, "attn.heads_shape", apart, 4, 1);
    sn_value *q = sn_b_project(b, x, "attn.q", WIDTH, WIDTH);
    sn_value *k = sn_b_project(b, x, "attn.k", WIDTH, WIDTH);
    sn_value *v = sn_b_project(b, x, "attn.v", WIDTH, WIDTH);
    q = split_heads(b, q, "attn.q", shape, false);
    k = split_heads(b, k, "attn.k", shape, true);
    v = split_heads(b, v, "attn.v", shape, false);
    sn_value *s = sn_b_op(b, "attn", "MatMul", SN_IN(q, k), SN_NO_ATTRS);
    s = sn_b_op(b, "attn", "Div", SN_IN(s, sn_b_scalar(b, "attn", 4.0f)), SN_NO_ATTRS);
    s = sn_b_op(b, "attn", "Add", SN_IN(s, bias), SN_NO_ATTRS);
    s = sn_b_op(b, "attn", "Softmax", SN_IN(s), SN_ATTRS(sn_a_int("axis", -1)));
    s = sn_b_op(b, "attn.context", "MatMul", SN_IN(s, v), SN_NO_ATTRS);
    s = sn_b_op(b, "attn.context", "Transpose", SN_IN(s), SN_ATTRS(sn_a_ints("perm", perm, 4)));
    sn_value *whole = sn_b_ints(b, "attn.whole_shape", together, 3, 1);
    s = sn_b_op(b, "attn.context", "Reshape", SN_IN(s, whole), SN_NO_ATTRS);
    return sn_b_project(b, s, "attn.out", WIDTH, WIDTH);
}

sonde_status sn_zoo_build_tiny_attention(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim tokens[2] = {sn_b_symbol(&b, "batch", 1), sn_b_symbol(&b, "sequence", 16)};
    sn_value *ids = sn_b_input(&b, "input_ids", I64, tokens, 2);
    sn_value *mask = sn_b_input(&b, "attention_mask", I64, tokens, 2);

    /* 0 where a token is, -10,000 where padding is, for every head and query. */
    sn_value *bias = sn_b_op(&b, "mask", "Cast", SN_IN(mask), SN_ATTRS(sn_a_int("to", F32)));
    bias = sn_b_op(&b, "mask", "Sub", SN_IN(sn_b_scalar(&b, "mask", 1.0f), bias), SN_NO_ATTRS);
    bias = sn_b_op(&b, "mask", "Mul", SN_IN(bias, sn_b_scalar(&b, "mask", -10000.0f)), SN_NO_ATTRS);
    sn_value *axes = sn_b_ints(&b, "mask.axes", (const int64_t[]){1, 2}, 2, 1);
    bias = sn_b_op(&b, "mask", "Unsqueeze", SN_IN(bias, axes), SN_NO_ATTRS);

    const int64_t table[2] = {VOCAB, WIDTH};
    sn_value *embedding = sn_b_uniform(&b, "embedding.weight", table, 2, 0.0f, 1.0f);
    sn_value *x = sn_b_op(&b, "embedding", "Gather", SN_IN(embedding, ids), SN_NO_ATTRS);
    x = sn_b_op(&b, "", "Add", SN_IN(x, attention(&b, x, bias)), SN_NO_ATTRS);
    x = sn_blk_layer_norm(&b, "norm1", x, WIDTH, 1e-5f);
    sn_value *y = sn_b_project(&b, x, "mlp.up", WIDTH, FFN);
    y = sn_blk_gelu(&b, "mlp.act", y);
    y = sn_b_project(&b, y, "mlp.down", FFN, WIDTH);
    x = sn_b_op(&b, "residual", "Add", SN_IN(x, y), SN_NO_ATTRS);
    x = sn_blk_layer_norm(&b, "norm2", x, WIDTH, 1e-5f);
    sn_b_output(&b, x, "last_hidden_state", F32, (const sn_dim[]){tokens[0], tokens[1], WIDTH}, 3);
    return *b.status;
}

enum { CHAIN = 2000, CHAIN_WIDTH = 64 };

sonde_status sn_zoo_build_tiny_chain(sn_model *m, uint64_t seed, sonde_error *err)
{
    static const char *const types[4] = {"Add", "Abs", "Sub", "Neg"};
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const int64_t width = CHAIN_WIDTH;
    sn_value *x = sn_b_input(&b, "input", F32, &width, 1);
    sn_value *constants[2] = {sn_b_uniform(&b, "up", &width, 1, 0.0f, 0.01f),
                              sn_b_uniform(&b, "down", &width, 1, 0.0f, 0.01f)};
    for (int i = 0; i < CHAIN; i++) {
        char path[16];
        snprintf(path, sizeof path, "step%d", i);
        sn_value *in[2] = {x, constants[i / 2 % 2]};
        x = sn_b_op(&b, path, types[i % 4], in, i % 2 ? 1 : 2, SN_NO_ATTRS);
    }
    sn_b_output(&b, x, "output", F32, &width, 1);
    return *b.status;
}
