/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.inc as a list, and the builders of its rows: nodes as exporters write them. */
#include "graphs.h"

#include <stdio.h>

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

enum { MAX_RANK = 5 };

static int64_t or_one(int64_t x)
{
    return x ? x : 1;
}

static void finish(sn_builder *b, sn_value *v, int rank)
{
    sn_dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = SN_DIM_UNKNOWN;
    sn_b_output(b, v, "output", F32, dims, rank);
}

static sn_value *input(sn_builder *b, const char *name, int rank, const int64_t *dims)
{
    return sn_b_input(b, name, F32, dims, rank);
}
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static sn_value *weight(sn_builder *b, const char *name, int rank, const int64_t *dims)
{
    return sn_b_uniform(b, name, dims, rank, 0.0f, 0.1f);
}

static sn_value *reshape(sn_builder *b, const char *path, sn_value *x, int rank,
                         const int64_t *dims)
{
    return sn_b_op(b, path, "Reshape",
                   SN_IN(x, sn_b_ints(b, sn_b_name(b, path, "to"), dims, rank, 1)), SN_NO_ATTRS);
}

static sn_value *binary(sn_builder *b, const char *op, sn_value *x, sn_value *y)
{
    return sn_b_op(b, "", op, SN_IN(x, y), SN_NO_ATTRS);
}

/* ------------------------------------------------------------------ images of any rank */
typedef struct window {
    int64_t kernel[3], stride[3], dilation[3], pads[6];
    size_t n;
} window;

static window window_of(const bench_graph *g)
{
    window w = {.n = (size_t)g->rank};
    for (size_t i = 0; i < w.n; i++) {
        w.kernel[i] = g->kernel[i];
        w.stride[i] = or_one(g->stride[i]);
        w.dilation[i] = or_one(g->dilation);
        w.pads[i] = w.pads[w.n + i] = g->pad[i];
    }
    return w;
}

static sn_value *image(sn_builder *b, const bench_graph *g)
{
    int64_t dims[MAX_RANK] = {or_one(g->images), g->in, g->size[0], g->size[1], g->size[2]};
    return input(b, "x", 2 + g->rank, dims);
}

static sn_value *convolve(sn_builder *b, const bench_graph *g, const char *op, sn_value *x)
{
    const window w = window_of(g);
    const int64_t groups = or_one(g->groups);
    const bool back = strcmp(op, "ConvTranspose") == 0;
    const int64_t dims[MAX_RANK] = {back ? g->in : g->out, (back ? g->out : g->in) / groups,
                                    g->kernel[0], g->kernel[1], g->kernel[2]};
    return sn_b_op(
        b, "", op, SN_IN(x, weight(b, "w", 2 + g->rank, dims), weight(b, "bias", 1, &g->out)),
        SN_ATTRS(sn_a_int("group", groups), sn_a_ints("kernel_shape", w.kernel, w.n),
                 sn_a_ints("strides", w.stride, w.n), sn_a_ints("dilations", w.dilation, w.n),
                 sn_a_ints("pads", w.pads, 2 * w.n)));
}

static void build_conv(sn_builder *b, const bench_graph *g)
{
    sn_value *y = convolve(b, g, "Conv", image(b, g));
    finish(b, sn_b_op(b, "", "Relu", SN_IN(y), SN_NO_ATTRS), 2 + g->rank);
}

static void build_transposed(sn_builder *b, const bench_graph *g)
{
    finish(b, convolve(b, g, "ConvTranspose", image(b, g)), 2 + g->rank);
}

static void build_pool(sn_builder *b, const bench_graph *g)
{
    const window w = window_of(g);
    sn_value *y =
        sn_b_op(b, "", g->op, SN_IN(image(b, g)),
                SN_ATTRS(sn_a_ints("kernel_shape", w.kernel, w.n),
                         sn_a_ints("strides", w.stride, w.n), sn_a_ints("pads", w.pads, 2 * w.n)));
    finish(b, y, 2 + g->rank);
}

/* A learned factor for each channel behind a convolution, then the residual. */
static void build_conv_scale(sn_builder *b, const bench_graph *g)
{
    sn_value *x = image(b, g);
    sn_value *y = convolve(b, g, "Conv", x);
    y = binary(b, "Mul", y, weight(b, "gamma", DIMS(g->out, 1, 1)));
    finish(b, binary(b, "Add", y, x), 2 + g->rank);
}

/* ------------------------------------------------------------------ attention and tokens */
/* Shifted windows: a table of biases for each head, a mask for each window (g->out of them). */
static void build_windows(sn_builder *b, const bench_graph *g)
{
    const int64_t n = g->out, heads = g->groups, len = g->rows, head = g->in;
    const int64_t swap[4] = {0, 1, 3, 2};
    sn_value *q = input(b, "q", DIMS(n, heads, len, head));
    sn_value *k = input(b, "k", DIMS(n, heads, len, head));
    sn_value *v = input(b, "v", DIMS(n, heads, len, head));
    q = binary(b, "Mul", q, sn_b_scalar(b, "scale", 0.17677669f));
    k = sn_b_op(b, "", "Transpose", SN_IN(k), SN_ATTRS(sn_a_ints("perm", swap, 4)));
    sn_value *s = binary(b, "MatMul", q, k);
    s = binary(b, "Add", s, weight(b, "table", DIMS(1, heads, len, len)));
    s = reshape(b, "split", s, DIMS(1, n, heads, len, len));
    s = binary(b, "Add", s, weight(b, "mask", DIMS(1, n, 1, len, len)));
    s = reshape(b, "join", s, DIMS(n, heads, len, len));
    s = sn_b_op(b, "", "Softmax", SN_IN(s), SN_ATTRS(sn_a_int("axis", -1)));
    finish(b, binary(b, "MatMul", s, v), 4);
}

/* [1, positions, channels] ► a product, an image, a depthwise convolution, positions again, a
 * product. */
static void build_tokens(sn_builder *b, const bench_graph *g)
{
    const int64_t c = g->in, positions = g->size[0] * g->size[1], swap[3] = {0, 2, 1};
    bench_graph depthwise = *g;
    depthwise.out = depthwise.groups = c;
    sn_value *x = input(b, "x", DIMS(1, positions, c));
    x = sn_b_project(b, x, "before", c, c);
    x = sn_b_op(b, "to_image", "Transpose", SN_IN(x), SN_ATTRS(sn_a_ints("perm", swap, 3)));
    x = reshape(b, "to_image", x, DIMS(1, c, g->size[0], g->size[1]));
    x = convolve(b, &depthwise, "Conv", x);
    x = reshape(b, "to_tokens", x, DIMS(1, c, positions));
    x = sn_b_op(b, "to_tokens", "Transpose", SN_IN(x), SN_ATTRS(sn_a_ints("perm", swap, 3)));
    finish(b, sn_b_project(b, x, "behind", c, c), 3);
}

/* ------------------------------------------------------------------ products and what follows */
static sn_value *product(sn_builder *b, const bench_graph *g, sn_value *x)
{
    return binary(b, "MatMul", x, weight(b, "w", DIMS(g->in, g->out)));
}

static void build_normed(sn_builder *b, const bench_graph *g)
{
    sn_value *x = input(b, "x", DIMS(g->rows, g->in));
    x = strcmp(g->op, "Gemm") == 0 ? sn_b_linear(b, x, "linear", g->in, g->out) : product(b, g, x);
    finish(b, sn_b_batch_norm(b, x, "norm", g->out, 1.0f), 2);
}

/* scale · relu(x)² + shift. */
static void build_star(sn_builder *b, const bench_graph *g)
{
    sn_value *x = product(b, g, input(b, "x", DIMS(g->rows, g->in)));
    x = sn_b_op(b, "", "Relu", SN_IN(x), SN_NO_ATTRS);
    x = binary(b, "Mul", x, x);
    x = binary(b, "Mul", x, weight(b, "scale", DIMS(1)));
    finish(b, binary(b, "Add", x, weight(b, "shift", DIMS(1))), 2);
}

/* residual + gamma · (x · w + bias). */
static void build_layer_scale(sn_builder *b, const bench_graph *g)
{
    sn_value *residual = input(b, "residual", DIMS(g->rows, g->out));
    sn_value *x = product(b, g, input(b, "x", DIMS(g->rows, g->in)));
    x = binary(b, "Add", x, weight(b, "bias", DIMS(g->out)));
    x = binary(b, "Mul", x, weight(b, "gamma", DIMS(g->out)));
    finish(b, binary(b, "Add", residual, x), 2);
}

/* ------------------------------------------------------------------ very small */
static void build_recurrent(sn_builder *b, const bench_graph *g)
{
    const int64_t gates = strcmp(g->op, "LSTM") == 0 ? 4 : 3, hidden = g->out;
    sn_value *x = input(b, "x", DIMS(g->rows, 1, g->in));
    sn_value *h = input(b, "h", DIMS(1, 1, hidden)), *c = NULL;
    if (gates == 4)
        c = input(b, "c", DIMS(1, 1, hidden));
    sn_value *w = weight(b, "w", DIMS(1, gates * hidden, g->in));
    sn_value *r = weight(b, "r", DIMS(1, gates * hidden, hidden));
    sn_value *bias = weight(b, "bias", DIMS(1, 2 * gates * hidden));
    sn_value *const in[7] = {x, w, r, bias, NULL, h, c};
    sn_value *y =
        sn_b_op(b, "", g->op, in, gates == 4 ? 7 : 6, SN_ATTRS(sn_a_int("hidden_size", hidden)));
    finish(b, y, 4);
}

/* Products of one row that nothing joins: what it takes to start a step. */
static void build_chain(sn_builder *b, const bench_graph *g)
{
    sn_value *x = input(b, "x", DIMS(1, g->in));
    for (int64_t i = 0; i < g->rows; i++) {
        char name[24];
        snprintf(name, sizeof name, "w%lld", (long long)i);
        x = binary(b, "MatMul", x, weight(b, name, DIMS(g->in, g->in)));
    }
    finish(b, x, 2);
}

/* The same product in a body, again and again. */
static void build_loop(sn_builder *b, const bench_graph *g)
{
    sn_builder body;
    const int64_t dims[2] = {1, g->in};
    sn_value *x = input(b, "x", 2, dims);
    sn_value *w = weight(b, "w", DIMS(g->in, g->in));
    sn_b_init_body(&body, b, "body");
    (void)sn_b_input(&body, "i", I64, NULL, 0);
    sn_value *go = sn_b_input(&body, "go_in", SONDE_DTYPE_BOOL, NULL, 0);
    sn_value *acc = sn_b_input(&body, "acc_in", F32, dims, 2);
    go = sn_b_op(&body, "body", "Identity", SN_IN(go), SN_NO_ATTRS);
    acc = sn_b_op(&body, "body", "MatMul", SN_IN(acc, sn_b_outer(&body, w)), SN_NO_ATTRS);
    sn_b_output(&body, go, "go_out", SONDE_DTYPE_BOOL, NULL, 0);
    sn_b_output(&body, acc, "acc_out", F32, dims, 2);
    finish(b,
           sn_b_op(b, "", "Loop",
                   SN_IN(sn_b_ints(b, "steps", &g->rows, 1, 0), sn_b_bool(b, "go", true), x),
                   SN_ATTRS(sn_a_graph("body", body.graph))),
           2);
}

static const bench_graph graphs[] = {
#define BENCH_GRAPH(kind, layer, build, ...) {kind, layer, build, __VA_ARGS__},
#include "graphs.inc"
#undef BENCH_GRAPH
};

const bench_graph *bench_graph_get(size_t k)
{
    return k < sizeof graphs / sizeof graphs[0] ? &graphs[k] : NULL;
}
