/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training BERT as one graph: transformers' BertForMaskedLM (its decoder is the word
 * embeddings' table), cross-entropy over the labelled tokens, the backward pass of grad.c, and
 * AdamW as torch.optim writes it. No dropout, so that a step is a function of its inputs.
 *
 * Weights, learning rate and number of the step are inputs with defaults (initializers); the
 * optimiser's states are inputs without, zeros before the first step. What a step makes of weights
 * and states goes out as "<name>.new", to be the next one's input. */
#include "zoo/bert.h"
#include "zoo/blocks.h"
#include "zoo/grad.h"

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

#define IGNORED (-100) /* label of tokens that do not count */

/* ------------------------------------------------------------------ forward */
/* Hidden states ► scores of every word of the vocabulary. */
static sn_value *predict(sn_builder *b, const sn_bert *size, sn_value *x, sn_value *table)
{
    const int64_t w = size->width;
    x = sn_b_project(b, x, "cls.predictions.transform.dense", w, w);
    x = sn_blk_gelu(b, "cls.predictions.transform.transform_act_fn", x);
    x = sn_blk_layer_norm(b, "cls.predictions.transform.LayerNorm", x, w, 1e-12f);
    const char *path = "cls.predictions.decoder";
    sn_value *decoder = sn_blk_transpose(b, path, table, (const int64_t[]){1, 0}, 2);
    sn_value *bias = sn_b_uniform(b, "cls.predictions.bias", &size->vocabulary, 1, 0.0f, 0.1f);
    return sn_blk_binary(b, path, "Add", bias, sn_blk_binary(b, path, "MatMul", x, decoder));
}

static sn_value *cross_entropy(sn_builder *b, sn_value *scores, sn_value *labels, int64_t classes)
{
    const int64_t flat = -1, shape[2] = {-1, classes};
    sn_value *out[2]; /* the mean, and the logarithms of all probabilities */
    scores = sn_blk_binary(b, "", "Reshape", scores, sn_blk_ints(b, "", shape, 2));
    labels = sn_blk_binary(b, "", "Reshape", labels, sn_blk_ints(b, "", &flat, 1));
    sn_b_multi(b, "", "SoftmaxCrossEntropyLoss", SN_IN(scores, labels),
               SN_ATTRS(sn_a_int("ignore_index", IGNORED), sn_a_text("reduction", "mean")), out, 2);
    return out[0];
}

/* ------------------------------------------------------------------ optimiser */
/* A value given by default: an initializer that is an input as well. */
static sn_value *as_input(sn_builder *b, sn_value *v)
{
    if (v && sn_b_ok(b))
        *b->status = sn_graph_add_input(b->graph, v, b->err);
    return v;
}

static sn_value *scalar_input(sn_builder *b, const char *name, float value)
{
    return as_input(b, sn_b_uniform(b, name, NULL, 0, value, 0.0f));
}

static sn_value *state_input(sn_builder *b, const sn_value *parameter, const char *leaf)
{
    const sn_tensor *t = parameter->fact.data;
    return sn_b_input(b, sn_b_name(b, parameter->name, leaf), F32, t->dims, t->rank);
}

/* What all parameters share. */
typedef struct adamw {
    sn_value *beta[2], *rest[2]; /* decay of the means of g and g², and 1 - it */
    sn_value *rate;              /* learning rate / (1 - β₁ᵗ) */
    sn_value *root;              /* √(1 - β₂ᵗ) */
    sn_value *keep;              /* 1 - learning rate · weight decay */
    sn_value *epsilon;
} adamw;

static adamw prepare(sn_builder *b)
{
    static const float beta[2] = {0.9f, 0.999f}, decay = 0.01f, epsilon = 1e-6f;
    const char *path = "optimizer";
    adamw o = {.epsilon = sn_b_scalar(b, path, epsilon)};
    sn_value *rate = scalar_input(b, "learning_rate", 5e-5f), *step = scalar_input(b, "step", 1.0f);
    sn_value *unit = sn_b_scalar(b, path, 1.0f), *grown[2]; /* 1 - βᵗ */
    for (int i = 0; i < 2; i++) {
        o.beta[i] = sn_b_scalar(b, path, beta[i]);
        o.rest[i] = sn_b_scalar(b, path, 1.0f - beta[i]);
        grown[i] = sn_blk_binary(b, path, "Pow", o.beta[i], step);
        grown[i] = sn_blk_binary(b, path, "Sub", unit, grown[i]);
    }
    o.rate = sn_blk_binary(b, path, "Div", rate, grown[0]);
    o.root = sn_blk_unary(b, path, "Sqrt", grown[1]);
    o.keep = sn_blk_binary(b, path, "Mul", rate, sn_b_scalar(b, path, decay));
    o.keep = sn_blk_binary(b, path, "Sub", unit, o.keep);
    return o;
}

/* β · mean + (1 - β) · x. */
static sn_value *blend(sn_builder *b, const adamw *o, int which, const char *path, sn_value *mean,
                       sn_value *x)
{
    mean = sn_blk_binary(b, path, "Mul", mean, o->beta[which]);
    return sn_blk_binary(b, path, "Add", mean, sn_blk_binary(b, path, "Mul", x, o->rest[which]));
}

static void publish(sn_builder *b, sn_value *v, const char *name, const sn_tensor *t)
{
    sn_b_output(b, v, sn_b_name(b, name, "new"), F32, t->dims, t->rank);
}

static void update(sn_builder *b, const adamw *o, sn_value *p, sn_value *g)
{
    const sn_tensor *t = p->fact.data;
    const char *path = sn_b_name(b, "optimizer", p->name);
    sn_value *m = state_input(b, p, "exp_avg"), *v = state_input(b, p, "exp_avg_sq");
    if (!sn_b_ok(b))
        return;
    sn_value *m_new = blend(b, o, 0, path, m, g);
    sn_value *v_new = blend(b, o, 1, path, v, sn_blk_binary(b, path, "Mul", g, g));
    sn_value *size = sn_blk_binary(b, path, "Div", sn_blk_unary(b, path, "Sqrt", v_new), o->root);
    size = sn_blk_binary(b, path, "Add", size, o->epsilon);
    sn_value *change = sn_blk_binary(b, path, "Div", m_new, size);
    change = sn_blk_binary(b, path, "Mul", change, o->rate);
    /* Biases and normalisations are not drawn to zero. */
    sn_value *from = t->rank > 1 ? sn_blk_binary(b, path, "Mul", p, o->keep) : p;
    publish(b, sn_blk_binary(b, path, "Sub", from, change), p->name, t);
    publish(b, m_new, m->name, t);
    publish(b, v_new, v->name, t);
}

/* ------------------------------------------------------------------ the step */
static sonde_status build(sn_model *m, uint64_t seed, const sn_bert *size, sonde_error *err)
{
    sn_builder b;
    sn_dim tokens[2];
    sn_value *table;
    sn_b_init(&b, m, 17, seed, err);
    sn_value *x = sn_bert_encode(&b, size, "bert", tokens, &table);
    sn_value *labels = sn_b_input(&b, "labels", I64, tokens, 2);
    x = predict(&b, size, x, table);
    sn_value *loss = cross_entropy(&b, x, labels, size->vocabulary);
    const size_t forward = b.graph ? b.graph->values.n : 0;
    sn_value *const *grads = sn_grad_backward(&b, loss);
    sn_b_output(&b, loss, "loss", F32, NULL, 0);

    const adamw o = prepare(&b);
    for (size_t i = 0; i < forward && grads && sn_b_ok(&b); i++) {
        sn_value *v = b.graph->values.data[i];
        if (sn_grad_is_parameter(v))
            update(&b, &o, as_input(&b, v), grads[i]);
    }
    return *b.status;
}

#define TRAIN(id, size)                                                                            \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(size), err);                                                       \
    }
TRAIN(bert_mini_train, sn_bert_mini)
TRAIN(tiny_bert_train, sn_bert_tiny)
