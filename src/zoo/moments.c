/* SPDX-License-Identifier: Apache-2.0 */
/* One function per operator type, found in a table. Nothing here calls libm for more than a square
 * root, so that equal seeds give equal models on every machine. */
#include "zoo/moments.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

typedef struct walk {
    sn_arena *arena;
    sn_moments *of; /* by value id */
    bool fit_batchnorm;
    sonde_error *err;
} walk;

/* Elements beyond this many standard deviations are left out of a range. */
#define SPREAD 4.5f

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------ entries */
static const sn_moments *input(const walk *w, const sn_node *n, uint32_t i)
{
    return &w->of[n->in[i].value->id];
}

static const float *floats(const sn_node *n, uint32_t i)
{
    return n->in[i].value->fact.data->data;
}

static sn_moments *output(walk *w, const sn_node *n, int64_t channels)
{
    sn_moments *y = &w->of[n->out[0]->id];
    y->mean = SN_NEW_N(w->arena, float, channels);
    y->var = SN_NEW_N(w->arena, float, channels);
    y->channels = y->mean && y->var ? channels : 0;
    return y->channels ? y : NULL;
}

/* Mean and spread of its channels, within [low, high]. */
static sonde_status set_range(sn_moments *y, float low, float high)
{
    y->low = y->high = 0.0f;
    for (int64_t c = 0; c < y->channels; c++) {
        const float reach = SPREAD * sqrtf(y->var[c]);
        y->low = smaller(y->low, y->mean[c] - reach);
        y->high = larger(y->high, y->mean[c] + reach);
    }
    y->low = larger(y->low, low);
    y->high = smaller(y->high, high);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ weighted sums */
typedef struct sums {
    float mean, var;
} sums;

/* Σ w·mean and Σ w²·var, in eight lanes so that compilers can use vectors. */
static sums weigh(const float *w, const float *mean, const float *var, int64_t n)
{
    float m[8] = {0}, v[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) {
            m[k] += w[i + k] * mean[i + k];
            v[k] += w[i + k] * w[i + k] * var[i + k];
        }
    for (int k = 0; i + k < n; k++) {
        m[k] += w[i + k] * mean[i + k];
        v[k] += w[i + k] * w[i + k] * var[i + k];
    }
    sums s = {0, 0};
    for (int k = 0; k < 8; k++) {
        s.mean += m[k];
        s.var += v[k];
    }
    return s;
}

/* Conv, and Gemm with transB: a weight [out][in / groups][taps]. */
static sonde_status product(walk *w, const sn_node *n)
{
    const sn_moments *x = input(w, n, 0);
    const sn_tensor *weight = n->in[1].value->fact.data;
    const int64_t out = weight->dims[0], in = weight->dims[1], groups = x->channels / in;
    const int64_t taps = sn_tensor_count(weight) / (out * in);
    sn_moments *y = output(w, n, out);
    float *mean = SN_NEW_N(w->arena, float, x->channels *taps);
    float *var = SN_NEW_N(w->arena, float, x->channels *taps);
    if (!y || !mean || !var)
        return sn_fail_memory(w->err, 0);
    for (int64_t i = 0; i < x->channels * taps; i++) {
        mean[i] = x->mean[i / taps];
        var[i] = x->var[i / taps];
    }
    const float *bias = n->n_in > 2 ? floats(n, 2) : NULL;
    for (int64_t o = 0; o < out; o++) {
        const int64_t first = o / (out / groups) * in * taps;
        const sums s = weigh(floats(n, 1) + o * in * taps, mean + first, var + first, in * taps);
        y->mean[o] = s.mean + (bias ? bias[o] : 0.0f);
        y->var[o] = s.var;
    }
    return set_range(y, -INFINITY, INFINITY);
}

/* Statistics drawn for an input of variance 1 become those of x. They are left as they were drawn
 * from channel to channel: a normalisation that took away every channel's exact mean would magnify
 * whatever the estimate missed, and again in the next layer. */
static void rescale(const sn_moments *x, float *mean, float *var)
{
    float squares = 0;
    for (int64_t c = 0; c < x->channels; c++)
        squares += x->mean[c] * x->mean[c] + x->var[c];
    squares /= (float)x->channels;
    for (int64_t c = 0; c < x->channels; c++) {
        mean[c] *= sqrtf(squares);
        var[c] *= squares;
    }
}

static sonde_status batch_norm(walk *w, const sn_node *n)
{
    const sn_moments *x = input(w, n, 0);
    sn_moments *y = output(w, n, x->channels);
    if (!y)
        return sn_fail_memory(w->err, 0);
    float *mean = n->in[3].value->fact.data->data, *var = n->in[4].value->fact.data->data;
    if (w->fit_batchnorm)
        rescale(x, mean, var);
    for (int64_t c = 0; c < x->channels; c++) {
        const float scale = floats(n, 1)[c] / sqrtf(var[c] + sn_node_attr(n, "epsilon")->f);
        y->mean[c] = floats(n, 2)[c] + scale * (x->mean[c] - mean[c]);
        y->var[c] = scale * scale * x->var[c];
    }
    return set_range(y, -INFINITY, INFINITY);
}

/* ------------------------------------------------------------------ functions of one element */
static float relu(float x)
{
    return larger(x, 0.0f);
}

static float relu6(float x)
{
    return smaller(relu(x), 6.0f);
}

/* (1 + tanh(x / 2)) / 2, with a rational tanh that is off by 0.02 at most. */
static float sigmoid(float x)
{
    const float z = larger(smaller(x / 2, 3.0f), -3.0f);
    return 0.5f + 0.5f * z * (27 + z * z) / (27 + 9 * z * z);
}

static float silu(float x)
{
    return x * sigmoid(x);
}

/* A normal distribution as 16 equally likely values: these and their negatives. */
static const float normal[8] = {0.0816f, 0.2468f, 0.4186f, 0.6026f,
                                0.8079f, 1.0509f, 1.3714f, 1.9381f};

static sonde_status apply(walk *w, const sn_node *n, const sn_moments *x, float (*f)(float),
                          float low)
{
    sn_moments *y = output(w, n, x->channels);
    if (!y)
        return sn_fail_memory(w->err, 0);
    for (int64_t c = 0; c < x->channels; c++) {
        const float sigma = sqrtf(x->var[c]);
        float sum = 0, squares = 0;
        for (int k = 0; k < 16; k++) {
            const float v = f(x->mean[c] + (k < 8 ? sigma : -sigma) * normal[k % 8]);
            sum += v;
            squares += v * v;
        }
        y->mean[c] = sum / 16;
        y->var[c] = larger(squares / 16 - y->mean[c] * y->mean[c], 0.0f);
    }
    y->low = low;
    y->high = f(x->high);
    return SONDE_OK;
}

/* The only Clip of these models is ReLU6. */
static sonde_status rectify(walk *w, const sn_node *n)
{
    return apply(w, n, input(w, n, 0), strcmp(n->op_type, "Clip") == 0 ? relu6 : relu, 0.0f);
}

static sonde_status squash(walk *w, const sn_node *n)
{
    const sn_moments *x = input(w, n, 0);
    return apply(w, n, x, sigmoid, sigmoid(x->low));
}

/* ------------------------------------------------------------------ two operands */
static sonde_status add(walk *w, const sn_node *n)
{
    const sn_moments *a = input(w, n, 0), *b = input(w, n, 1);
    sn_moments *y = output(w, n, a->channels);
    if (!y)
        return sn_fail_memory(w->err, 0);
    for (int64_t c = 0; c < a->channels; c++) {
        y->mean[c] = a->mean[c] + b->mean[c];
        y->var[c] = a->var[c] + b->var[c];
    }
    return set_range(y, a->low + b->low, a->high + b->high);
}

static bool is_gate_of(const sn_value *gate, const sn_value *x)
{
    return gate->producer && strcmp(gate->producer->op_type, "Sigmoid") == 0 &&
           gate->producer->in[0].value == x;
}

/* x · sigmoid(x), or factors that have nothing to do with each other, one of them not negative. */
static sonde_status mul(walk *w, const sn_node *n)
{
    const sn_moments *a = input(w, n, 0), *b = input(w, n, 1);
    if (is_gate_of(n->in[1].value, n->in[0].value))
        return apply(w, n, a, silu, -0.2785f); /* the minimum of x · sigmoid(x) */
    sn_moments *y = output(w, n, a->channels);
    if (!y)
        return sn_fail_memory(w->err, 0);
    for (int64_t c = 0; c < a->channels; c++) {
        const float ma = a->mean[c] * a->mean[c], mb = b->mean[c] * b->mean[c];
        y->mean[c] = a->mean[c] * b->mean[c];
        y->var[c] = a->var[c] * b->var[c] + a->var[c] * mb + b->var[c] * ma;
    }
    const float low = smaller(a->low * b->high, a->high * b->low);
    return set_range(y, low, a->high * b->high);
}

/* ------------------------------------------------------------------ pooling */
static sonde_status pool(walk *w, const sn_node *n, float shift, float shrink)
{
    const sn_moments *x = input(w, n, 0);
    sn_moments *y = output(w, n, x->channels);
    if (!y)
        return sn_fail_memory(w->err, 0);
    for (int64_t c = 0; c < x->channels; c++) {
        y->mean[c] = x->mean[c] + shift * sqrtf(x->var[c]);
        y->var[c] = x->var[c] * shrink;
    }
    return set_range(y, x->low, x->high);
}

/* Neighbours are alike: the pixels of a window count as four independent ones, those of an image,
 * where much of the variance is no accident of the pixel, as three. */
static sonde_status max_pool(walk *w, const sn_node *n)
{
    return pool(w, n, 1.03f, 0.49f);
}

static sonde_status average(walk *w, const sn_node *n)
{
    return pool(w, n, 0.0f, 1.0f / 3);
}

static sonde_status keep(walk *w, const sn_node *n)
{
    w->of[n->out[0]->id] = *input(w, n, 0);
    return SONDE_OK;
}

static sonde_status no_activation(walk *w, const sn_node *n)
{
    (void)w;
    (void)n;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the walk */
static sonde_status step(walk *w, const sn_node *n)
{
    static const struct {
        const char *op_type;
        sonde_status (*estimate)(walk *w, const sn_node *n);
    } rules[] = {{"Conv", product},
                 {"Gemm", product},
                 {"BatchNormalization", batch_norm},
                 {"Relu", rectify},
                 {"Clip", rectify},
                 {"Sigmoid", squash},
                 {"Add", add},
                 {"Mul", mul},
                 {"MaxPool", max_pool},
                 {"GlobalAveragePool", average},
                 {"Flatten", keep},
                 {"Constant", no_activation}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(n->op_type, rules[i].op_type) == 0)
            return rules[i].estimate(w, n);
    return sn_fail(w->err, SONDE_INTERNAL, "zoo: nothing is known of what %s makes", n->op_type);
}

static sonde_status follow(walk *w, const sn_graph *g)
{
    w->of = SN_NEW_N(w->arena, sn_moments, g->values.n);
    if (!w->of)
        return sn_fail_memory(w->err, 0);
    for (size_t i = 0; i < g->inputs.n; i++) {
        const sn_value *v = g->inputs.data[i];
        sn_moments *x = &w->of[v->id];
        x->channels = v->fact.type.dims[1];
        x->mean = SN_NEW_N(w->arena, float, x->channels);
        x->var = SN_NEW_N(w->arena, float, x->channels);
        if (!x->mean || !x->var)
            return sn_fail_memory(w->err, 0);
        for (int64_t c = 0; c < x->channels; c++)
            x->var[c] = 1.0f;
        (void)set_range(x, -INFINITY, INFINITY);
    }
    for (const sn_node *n = g->first; n; n = n->next)
        SN_TRY(step(w, n));
    return SONDE_OK;
}

sonde_status sn_moments_estimate(const sn_graph *g, sn_arena *arena, sn_moments **of,
                                 sonde_error *err)
{
    walk w = {.arena = arena, .err = err};
    const sonde_status st = follow(&w, g);
    *of = w.of;
    return st;
}

sonde_status sn_moments_fit_batchnorm(sn_graph *g, sonde_error *err)
{
    sn_arena arena;
    sn_arena_init(&arena, g->alloc);
    walk w = {.arena = &arena, .fit_batchnorm = true, .err = err};
    const sonde_status st = follow(&w, g);
    sn_arena_free(&arena);
    return st;
}
