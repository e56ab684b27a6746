/* SPDX-License-Identifier: Apache-2.0 */
/* BERT (Devlin et al., 2018) as transformers' BertModel with eager attention: embeddings of words,
 * positions and token types, then layers of attention and feed-forward, each followed by its
 * residual and a layer normalisation, and the pooler. */
#include "zoo/bert.h"

#include <math.h>

#include "zoo/blocks.h"

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

#define EPSILON 1e-12f
enum { TOKEN_TYPES = 2 };

/* Layers, width, heads, feed-forward, vocabulary, positions, default sequence. */
const sn_bert sn_bert_mini = {4, 256, 4, 1024, 30522, 512, 128};
const sn_bert sn_bert_tiny = {2, 32, 2, 64, 128, 128, 16};
static const sn_bert bert_base = {12, 768, 12, 3072, 30522, 512, 128};

/* The first `sequence` of the positions 0, 1, 2 …: [1, sequence]. */
static sn_value *position_ids(sn_builder *b, const char *path, sn_value *ids, int64_t positions)
{
    const int64_t dims[2] = {1, positions}, zero = 0, one = 1;
    void *data = NULL;
    sn_value *sequence = sn_blk_size(b, path, ids, 1);
    sn_value *all = sn_blk_table(b, path, I64, dims, 2, &data);
    for (int64_t i = 0; data && i < positions; i++)
        ((int64_t *)data)[i] = i;
    sn_value *end = sn_blk_axis(b, path, "Unsqueeze", sequence, 0);
    return sn_b_op(b, path, "Slice",
                   SN_IN(all, sn_blk_ints(b, path, &zero, 1), end, sn_blk_ints(b, path, &one, 1),
                         sn_blk_ints(b, path, &one, 1)),
                   SN_NO_ATTRS);
}

static sn_value *embed(sn_builder *b, const sn_bert *size, const char *path, sn_value *ids,
                       sn_value *types, sn_value **table)
{
    const int64_t w = size->width;
    sn_value *at = position_ids(b, path, ids, size->positions);
    sn_value *words =
        sn_blk_embedding(b, sn_b_name(b, path, "word_embeddings"), ids, size->vocabulary, w, table);
    sn_value *kinds = sn_blk_embedding(b, sn_b_name(b, path, "token_type_embeddings"), types,
                                       TOKEN_TYPES, w, NULL);
    sn_value *x = sn_blk_binary(b, path, "Add", words, kinds);
    sn_value *places = sn_blk_embedding(b, sn_b_name(b, path, "position_embeddings"), at,
                                        size->positions, w, NULL);
    x = sn_blk_binary(b, path, "Add", x, places);
    return sn_blk_layer_norm(b, sn_b_name(b, path, "LayerNorm"), x, w, EPSILON);
}

static sn_value *attend(sn_builder *b, const sn_bert *size, const char *path, sn_value *x,
                        sn_value *mask)
{
    const int64_t w = size->width, heads = size->heads, head = w / heads;
    const int64_t rows[4] = {0, 2, 1, 3}, columns[4] = {0, 2, 3, 1};
    sn_value *q = sn_b_project(b, x, sn_b_name(b, path, "query"), w, w);
    sn_value *k = sn_b_project(b, x, sn_b_name(b, path, "key"), w, w);
    sn_value *v = sn_b_project(b, x, sn_b_name(b, path, "value"), w, w);
    k = sn_blk_split_heads(b, path, k, heads, head, columns);
    v = sn_blk_split_heads(b, path, v, heads, head, rows);
    q = sn_blk_split_heads(b, path, q, heads, head, rows);
    sn_value *s = sn_blk_binary(b, path, "MatMul", q, k);
    s = sn_blk_binary(b, path, "Div", s, sn_b_scalar(b, path, sqrtf((float)head)));
    s = sn_blk_binary(b, path, "Add", s, mask);
    s = sn_b_op(b, path, "Softmax", SN_IN(s), SN_ATTRS(sn_a_int("axis", -1)));
    s = sn_blk_binary(b, path, "MatMul", s, v);
    return sn_blk_merge_heads(b, path, s, w);
}

/* A dense layer behind a block, the block's input added, normalised. */
static sn_value *close_block(sn_builder *b, const char *path, sn_value *y, sn_value *x, int64_t in,
                             int64_t out)
{
    y = sn_b_project(b, y, sn_b_name(b, path, "dense"), in, out);
    y = sn_blk_binary(b, path, "Add", y, x);
    return sn_blk_layer_norm(b, sn_b_name(b, path, "LayerNorm"), y, out, EPSILON);
}

static sn_value *layer(sn_builder *b, const sn_bert *size, const char *path, sn_value *x,
                       sn_value *mask)
{
    const int64_t w = size->width;
    sn_value *y = attend(b, size, sn_b_name(b, path, "attention.self"), x, mask);
    x = close_block(b, sn_b_name(b, path, "attention.output"), y, x, w, w);
    y = sn_b_project(b, x, sn_b_name(b, path, "intermediate.dense"), w, size->ffn);
    y = sn_blk_gelu(b, sn_b_name(b, path, "intermediate.intermediate_act_fn"), y);
    return close_block(b, sn_b_name(b, path, "output"), y, x, size->ffn, w);
}

sn_value *sn_bert_encode(sn_builder *b, const sn_bert *size, const char *prefix, sn_dim tokens[2],
                         sn_value **table)
{
    b->list = "layer";
    tokens[0] = sn_b_symbol(b, "batch", 1);
    tokens[1] = sn_b_symbol(b, "sequence", size->sequence);
    sn_value *ids = sn_b_input(b, "input_ids", I64, tokens, 2);
    sn_value *mask = sn_b_input(b, "attention_mask", I64, tokens, 2);
    sn_value *types = sn_b_input(b, "token_type_ids", I64, tokens, 2);
    sn_value *x = embed(b, size, sn_blk_under(b, prefix, "embeddings"), ids, types, table);
    mask = sn_blk_padding_mask(b, prefix, mask);
    for (int64_t i = 0; i < size->layers; i++)
        x = layer(b, size, sn_blk_nth(b, prefix, "encoder.layer", i), x, mask);
    return x;
}

static sonde_status build(sn_model *m, uint64_t seed, const sn_bert *size, sonde_error *err)
{
    const int64_t w = size->width;
    sn_builder b;
    sn_dim tokens[2];
    sn_value *table;
    sn_b_init(&b, m, 17, seed, err);
    sn_value *x = sn_bert_encode(&b, size, "", tokens, &table);
    sn_value *pooled = sn_blk_pick(&b, "pooler", x, 1, 0);
    pooled = sn_b_linear(&b, pooled, "pooler.dense", w, w);
    pooled = sn_blk_unary(&b, "pooler.activation", "Tanh", pooled);
    sn_b_output(&b, x, "last_hidden_state", F32, (const sn_dim[]){tokens[0], tokens[1], w}, 3);
    sn_b_output(&b, pooled, "pooler_output", F32, (const sn_dim[]){tokens[0], w}, 2);
    return *b.status;
}

#define BERT(id, size)                                                                             \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(size), err);                                                       \
    }
BERT(bert_mini, sn_bert_mini)
BERT(bert_base, bert_base)
BERT(tiny_bert, sn_bert_tiny)
