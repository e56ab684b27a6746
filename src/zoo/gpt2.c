/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-2 (Radford et al., 2019) as transformers' GPT2LMHeadModel with a cache of keys and values,
 * the way optimum exports decoders: the past comes in, the present goes out, and one graph serves
 * both the prompt (past_sequence 0) and every step after it. The head reads the word embeddings'
 * table transposed, so its weight exists once. */
#include <float.h>
#include <stdio.h>

#include "zoo/blocks.h"

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

#define EPSILON 1e-5f

typedef struct gpt2 {
    int64_t layers, width, heads, vocabulary, positions;
    int64_t past; /* size of past_sequence by default: one step behind a text of that length */
} gpt2;

/* transformers' Conv1D: a matrix [in, out] on all tokens as rows. */
static sn_value *conv1d(sn_builder *b, const char *path, sn_value *x, int64_t in, int64_t out)
{
    sn_value *batch = sn_blk_size(b, path, x, 0), *sequence = sn_blk_size(b, path, x, 1);
    sn_value *width = sn_blk_size_from_end(b, path, x, -1);
    const int64_t dims[2] = {in, out};
    sn_value *w = sn_b_weight(b, sn_b_name(b, path, "weight"), dims, 2, in);
    sn_value *bias = sn_b_uniform(b, sn_b_name(b, path, "bias"), &out, 1, 0.0f, 0.1f);
    x = sn_blk_reshape(b, path, x, SN_DIMS({NULL, -1}, {width, 0}));
    x = sn_b_op(b, path, "Gemm", SN_IN(x, w, bias),
                SN_ATTRS(sn_a_float("alpha", 1.0f), sn_a_float("beta", 1.0f)));
    return sn_blk_reshape(b, path, x, SN_DIMS({batch, 0}, {sequence, 0}, {NULL, out}));
}

/* Rows of a [1, 1, positions, positions] triangle: true where a token may look. One for all
 * layers. */
static sn_value *triangle(sn_builder *b, int64_t positions)
{
    const int64_t dims[4] = {1, 1, positions, positions};
    void *data = NULL;
    sn_value *v = sn_b_constant(b, "transformer.h.0.attn.bias", SONDE_DTYPE_BOOL, dims, 4, &data);
    for (int64_t i = 0; v && i < positions; i++)
        for (int64_t k = 0; k < positions; k++)
            ((uint8_t *)data)[i * positions + k] = k <= i;
    return v;
}

static sn_value *slice(sn_builder *b, const char *path, sn_value *x, sn_value *from, sn_value *to,
                       int64_t axis)
{
    const int64_t one = 1;
    return sn_b_op(
        b, path, "Slice",
        SN_IN(x, from, to, sn_blk_ints(b, path, &axis, 1), sn_blk_ints(b, path, &one, 1)),
        SN_NO_ATTRS);
}

/* Scores of tokens that come later become the lowest float. */
static sn_value *causal(sn_builder *b, const char *path, sn_value *scores, sn_value *q,
                        sn_value *key, sn_value *may_look)
{
    const int64_t zero = 0;
    sn_value *queries = sn_blk_size_from_end(b, path, q, -2);
    sn_value *keys = sn_blk_size_from_end(b, path, key, -2);
    sn_value *first = sn_blk_binary(b, path, "Sub", keys, queries);
    first = sn_blk_axis(b, path, "Unsqueeze", first, 0);
    sn_value *end = sn_blk_axis(b, path, "Unsqueeze", keys, 0);
    sn_value *rows = slice(b, path, may_look, first, end, 2);
    end = sn_blk_axis(b, path, "Unsqueeze", keys, 0);
    rows = slice(b, path, rows, sn_blk_ints(b, path, &zero, 1), end, 3);
    scores = sn_blk_cast(b, path, scores, F32);
    return sn_b_op(b, path, "Where", SN_IN(rows, scores, sn_b_scalar(b, path, -FLT_MAX)),
                   SN_NO_ATTRS);
}

/* √(size of a head), looked up in the graph as a tensor on the right device. */
static sn_value *scale_of(sn_builder *b, const char *path, sn_value *value)
{
    sn_value *root = sn_blk_cast(b, path, sn_blk_size_from_end(b, path, value, -1), F32);
    root = sn_blk_binary(b, path, "Pow", root, sn_b_scalar(b, path, 0.5f));
    sn_value *zero = sn_blk_fill(b, path, sn_blk_ints(b, path, NULL, 0), F32, 0);
    return sn_blk_binary(b, path, "Add", zero, root);
}

typedef struct cache {
    sn_value *key, *value; /* past in, present out */
} cache;

static sn_value *attend(sn_builder *b, const gpt2 *g, const char *path, sn_value *x, sn_value *mask,
                        sn_value *may_look, cache *c)
{
    const int64_t w = g->width, head = w / g->heads, thirds[3] = {w, w, w}, perm[4] = {0, 2, 1, 3};
    sn_value *part[3];
    x = conv1d(b, sn_b_name(b, path, "c_attn"), x, w, 3 * w);
    sn_b_multi(b, path, "Split", SN_IN(x, sn_blk_ints(b, path, thirds, 3)),
               SN_ATTRS(sn_a_int("axis", 2)), part, 3);
    for (int i = 0; i < 3; i++)
        part[i] = sn_blk_split_heads(b, path, part[i], g->heads, head, perm);
    c->key = sn_blk_concat(b, path, -2, SN_IN(c->key, part[1]));
    c->value = sn_blk_concat(b, path, -2, SN_IN(c->value, part[2]));
    sn_value *columns = sn_blk_transpose(b, path, c->key, (const int64_t[]){0, 1, 3, 2}, 4);
    sn_value *s = sn_blk_binary(b, path, "MatMul", part[0], columns);
    s = sn_blk_binary(b, path, "Div", s, scale_of(b, path, c->value));
    s = causal(b, path, s, part[0], c->key, may_look);
    s = sn_blk_binary(b, path, "Add", s, mask);
    s = sn_b_op(b, path, "Softmax", SN_IN(s), SN_ATTRS(sn_a_int("axis", -1)));
    s = sn_blk_cast(b, path, s, F32);
    s = sn_blk_binary(b, path, "MatMul", s, c->value);
    s = sn_blk_merge_heads(b, path, s, w);
    return conv1d(b, sn_b_name(b, path, "c_proj"), s, w, w);
}

static sn_value *layer(sn_builder *b, const gpt2 *g, const char *path, sn_value *x, sn_value *mask,
                       sn_value *may_look, cache *c)
{
    const int64_t w = g->width;
    sn_value *y = sn_blk_layer_norm(b, sn_b_name(b, path, "ln_1"), x, w, EPSILON);
    y = attend(b, g, sn_b_name(b, path, "attn"), y, mask, may_look, c);
    x = sn_blk_binary(b, path, "Add", y, x);
    y = sn_blk_layer_norm(b, sn_b_name(b, path, "ln_2"), x, w, EPSILON);
    y = conv1d(b, sn_b_name(b, path, "mlp.c_fc"), y, w, 4 * w);
    y = sn_blk_gelu_tanh(b, sn_b_name(b, path, "mlp.act"), y);
    y = conv1d(b, sn_b_name(b, path, "mlp.c_proj"), y, 4 * w, w);
    return sn_blk_binary(b, path, "Add", x, y);
}

typedef struct inputs {
    sn_dim batch, sequence, past, total;
    sn_value *ids, *mask, *positions;
} inputs;

static inputs make_inputs(sn_builder *b, const gpt2 *g)
{
    inputs in = {.batch = sn_b_symbol(b, "batch", 1)};
    in.sequence = sn_b_symbol(b, "sequence", 1);
    in.past = sn_b_symbol(b, "past_sequence", g->past);
    in.total = sn_b_symbol(b, "past_sequence + sequence", g->past + 1);
    in.ids = sn_b_input(b, "input_ids", I64, (const sn_dim[]){in.batch, in.sequence}, 2);
    in.mask = sn_b_input(b, "attention_mask", I64, (const sn_dim[]){in.batch, in.total}, 2);
    in.positions = sn_b_input(b, "position_ids", I64, (const sn_dim[]){in.batch, in.sequence}, 2);
    return in;
}

/* Keys or values of layer i; `what` is "past_key_values" or "present". */
static const char *cache_name(char buf[48], const char *what, int64_t i, bool value)
{
    snprintf(buf, 48, "%s.%d.%s", what, (int)i, value ? "value" : "key");
    return buf;
}

/* Sizes and the word embeddings' weight, which the model's last lines need again. */
typedef struct parts {
    sn_value *sequence, *rows, *width, *table;
} parts;

/* The tokens as one batch of rows of the sequence's length, as the model's first lines do. */
static sn_value *embed(sn_builder *b, const gpt2 *g, const inputs *in, parts *p)
{
    const char *path = "transformer";
    const int64_t w = g->width;
    p->sequence = sn_blk_size(b, path, in->ids, 1);
    sn_value *ids = sn_blk_reshape(b, path, in->ids, SN_DIMS({NULL, -1}, {p->sequence, 0}));
    p->rows = sn_blk_size(b, path, ids, 0);
    sn_value *words = sn_blk_embedding(b, "transformer.wte", ids, g->vocabulary, w, &p->table);
    sn_value *places = sn_blk_embedding(b, "transformer.wpe", in->positions, g->positions, w, NULL);
    return sn_blk_binary(b, path, "Add", words, places);
}

static sonde_status build(sn_model *m, uint64_t seed, const gpt2 *g, sonde_error *err)
{
    enum { MAX_LAYERS = 12 };
    const char *path = "transformer";
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    b.list = "h";
    const inputs in = make_inputs(&b, g);
    const sn_dim past[4] = {in.batch, g->heads, in.past, g->width / g->heads};
    const sn_dim present[4] = {in.batch, g->heads, in.total, g->width / g->heads};
    char name[48];
    cache caches[MAX_LAYERS];
    for (int64_t i = 0; i < g->layers; i++) {
        caches[i].key = sn_b_input(&b, cache_name(name, "past_key_values", i, false), F32, past, 4);
        caches[i].value =
            sn_b_input(&b, cache_name(name, "past_key_values", i, true), F32, past, 4);
    }

    parts p;
    sn_value *x = embed(&b, g, &in, &p);
    sn_value *mask = sn_blk_reshape(&b, path, in.mask, SN_DIMS({p.rows, 0}, {NULL, -1}));
    mask = sn_blk_padding_mask(&b, path, mask);
    p.width = sn_blk_size_from_end(&b, path, x, -1);
    sn_value *may_look = triangle(&b, g->positions);
    for (int64_t i = 0; i < g->layers; i++)
        x = layer(&b, g, sn_blk_nth(&b, path, "h", i), x, mask, may_look, &caches[i]);
    x = sn_blk_layer_norm(&b, "transformer.ln_f", x, g->width, EPSILON);
    x = sn_blk_reshape(&b, path, x, SN_DIMS({NULL, -1}, {p.sequence, 0}, {p.width, 0}));
    sn_value *head = sn_blk_transpose(&b, "lm_head", p.table, (const int64_t[]){1, 0}, 2);
    x = sn_blk_binary(&b, "lm_head", "MatMul", x, head);

    sn_b_output(&b, x, "logits", F32, (const sn_dim[]){in.batch, in.sequence, g->vocabulary}, 3);
    for (int64_t i = 0; i < g->layers; i++) {
        sn_b_output(&b, caches[i].key, cache_name(name, "present", i, false), F32, present, 4);
        sn_b_output(&b, caches[i].value, cache_name(name, "present", i, true), F32, present, 4);
    }
    return *b.status;
}

/* Layers, width, heads, vocabulary, positions, default past. */
#define GPT2(id, ...)                                                                              \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(const gpt2){__VA_ARGS__}, err);                                    \
    }
GPT2(gpt2, 12, 768, 12, 50257, 1024, 128)
GPT2(tiny_gpt2, 2, 32, 2, 128, 64, 16)
