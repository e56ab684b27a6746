/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of convolutions of one value is one convolution: its weights are the sum of theirs, the
 * smaller windows laid into the largest one. A batch normalisation of the same value is a window of
 * one pixel. Networks that are trained with several branches and exported with them have these. */
#include "passes/batchnorm.h"
#include "passes/rewrite.h"

enum { MAX_SPATIAL = SN_MAX_RANK - 2 };

/* A convolution as far as others can be added to it. */
typedef struct window {
    sn_node *node;
    int rank;                        /* spatial axes */
    int64_t outputs, inputs, groups; /* channels; inputs are of one group */
    int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pad[MAX_SPATIAL];
    bool pixel; /* a batch normalisation */
} window;

static bool is_padded_by_number(const sn_node *n)
{
    const sn_attr *how = sn_node_attr(n, "auto_pad");
    return !how ||
           (how->kind == SN_ATTR_STRING && how->s.size == 6 && !memcmp(how->s.data, "NOTSET", 6));
}

static bool read_list(const sn_node *n, const char *name, int count, int64_t def, int64_t *out)
{
    const sn_attr *a = sn_node_attr(n, name);
    for (int i = 0; i < count; i++)
        out[i] = a && a->kind == SN_ATTR_INTS && (size_t)i < a->n ? a->ints[i] : def;
    return !a || (a->kind == SN_ATTR_INTS && a->n >= (size_t)count);
}

static bool is_const_f32(const sn_value *v)
{
    return v && sn_value_is_const(v) && sn_value_is_dtype(v, SONDE_DTYPE_F32) &&
           !v->fact.data->pack;
}

static bool read_conv(sn_node *n, window *w)
{
    const int64_t channels = n->n_in <= 3 ? sn_conv_channels(n) : 0;
    if (!channels || !sn_node_is(n, "Conv") || !is_const_f32(n->in[1].value) ||
        !is_padded_by_number(n) || (n->n_in > 2 && n->in[2].value && !is_const_f32(n->in[2].value)))
        return false;
    const sn_tensor *t = n->in[1].value->fact.data;
    *w = (window){.node = n,
                  .rank = t->rank - 2,
                  .outputs = channels,
                  .inputs = t->dims[1],
                  .groups = sn_node_attr_int(n, "group", 1)};
    for (int i = 0; i < w->rank; i++)
        w->kernel[i] = t->dims[i + 2];
    return w->groups > 0 && read_list(n, "strides", w->rank, 1, w->stride) &&
           read_list(n, "dilations", w->rank, 1, w->dilation) &&
           read_list(n, "pads", w->rank, 0, w->pad);
}

/* A batch normalisation, as a window that fits to `host`. */
static bool read_norm(sn_node *n, const window *host, window *w)
{
    if (host->outputs != host->inputs * host->groups || !sn_batchnorm_is_constant(n, host->outputs))
        return false;
    *w = *host;
    w->node = n;
    w->pixel = true;
    for (int i = 0; i < w->rank; i++) {
        if (host->stride[i] != 1)
            return false;
        w->kernel[i] = 1;
        w->pad[i] = 0;
    }
    return true;
}

/* Where the first tap of `guest` lies among those of `host`; false: not all of its taps do. */
static bool lies_in(const window *guest, const window *host, int64_t *at)
{
    if (guest->rank != host->rank || guest->groups != host->groups ||
        guest->outputs != host->outputs || guest->inputs != host->inputs)
        return false;
    for (int i = 0; i < host->rank; i++) {
        const int64_t before = host->pad[i] - guest->pad[i], step = host->dilation[i];
        if (guest->stride[i] != host->stride[i] || before < 0 || before % step != 0 ||
            (guest->kernel[i] > 1 && guest->dilation[i] != step) ||
            before / step + guest->kernel[i] > host->kernel[i])
            return false;
        at[i] = before / step;
    }
    return true;
}

static int64_t taps_of(const window *w)
{
    int64_t taps = 1;
    for (int i = 0; i < w->rank; i++)
        taps *= w->kernel[i];
    return taps;
}

/* Tap `k` of the guest, counted in the host's window. */
static int64_t tap_in(const window *guest, const window *host, const int64_t *at, int64_t k)
{
    int64_t tap = 0, place[MAX_SPATIAL];
    for (int i = guest->rank - 1; i >= 0; i--) {
        place[i] = at[i] + k % guest->kernel[i];
        k /= guest->kernel[i];
    }
    for (int i = 0; i < host->rank; i++)
        tap = tap * host->kernel[i] + place[i];
    return tap;
}

/* Adds the guest's weights, or those of a window of one pixel: a factor per channel. */
static void add_taps(float *to, const window *host, const window *guest, const int64_t *at,
                     const float *weights, const double *factors)
{
    const int64_t taps = taps_of(host), own = taps_of(guest),
                  filters = host->outputs * host->inputs;
    for (int64_t k = 0; k < own; k++) {
        const int64_t tap = tap_in(guest, host, at, k);
        for (int64_t i = 0; weights && i < filters; i++)
            to[i * taps + tap] += weights[i * own + k];
        for (int64_t o = 0; !weights && o < host->outputs; o++) {
            float *w = &to[(o * host->inputs + o % host->inputs) * taps + tap];
            *w = (float)((double)*w + factors[o]);
        }
    }
}

static sonde_status add_weights(sn_graph *g, sn_pass_env *env, const window *host,
                                const window *guest, const int64_t *at, const double *factors)
{
    sn_value *old = host->node->in[1].value, *v;
    const sn_value *other = guest->node->in[1].value;
    const sn_tensor *t = old->fact.data, *o = other->fact.data;
    void *data;
    SN_TRY(sn_pass_constant(g, env, old->name, SONDE_DTYPE_F32, t->dims, t->rank, &v, &data));
    sn_tensor_read(t, 0, sn_tensor_count(t), data);
    float *weights = guest->pixel ? NULL : sn_alloc(g->alloc, o->bytes);
    if (!guest->pixel) {
        if (!weights)
            return sn_fail_memory(env->err, o->bytes);
        sn_tensor_read(o, 0, sn_tensor_count(o), weights);
    }
    add_taps(data, host, guest, at, weights, factors);
    if (weights)
        sn_free(g->alloc, weights, o->bytes);
    SN_TRY(sn_value_show_all(g, v, (const sn_value *[]){old, other}, 2, env->err));
    sn_node_set_input(host->node, 1, v);
    return SONDE_OK;
}

static double bias_of(const window *w, int64_t c)
{
    const sn_value *v = w->node->n_in > 2 ? w->node->in[2].value : NULL;
    return v ? (double)sn_read_f32(v->fact.data, c) : 0.0;
}

static sonde_status merge(sn_graph *g, sn_pass_env *env, const window *host, const window *guest,
                          const int64_t *at, double *scale, double *shift, bool *done)
{
    *done = false;
    if (guest->pixel) {
        if (!sn_batchnorm_factors(guest->node, host->outputs, scale, shift))
            return SONDE_OK;
    } else {
        for (int64_t c = 0; c < host->outputs; c++)
            shift[c] = bias_of(guest, c);
    }
    const sn_value *from = guest->node->n_in > 2 ? guest->node->in[2].value : NULL;
    SN_TRY(sn_conv_scale_shift(g, env, host->node, NULL, shift, from, done));
    return *done ? add_weights(g, env, host, guest, at, scale) : SONDE_OK;
}

/* The branch of `sum` whose result is `v`: its node, if nothing else reads it. */
static sn_node *branch(const sn_node *sum, uint32_t i)
{
    const sn_value *v = sum->in[i].value;
    sn_node *n = v ? v->producer : NULL;
    return n && sn_value_only_reader(v) == sum && n->n_in > 1 && n->in[0].value ? n : NULL;
}

/* Which of the two takes the other in. */
static bool match(const sn_node *sum, window *host, window *guest, int64_t *at)
{
    sn_node *a = branch(sum, 0), *b = branch(sum, 1);
    if (!a || !b || a == b || a->in[0].value != b->in[0].value)
        return false;
    for (int swap = 0; swap < 2; swap++) {
        sn_node *large = swap ? b : a, *small = swap ? a : b;
        if (read_conv(large, host) && (read_conv(small, guest) || read_norm(small, host, guest)) &&
            lies_in(guest, host, at))
            return true;
    }
    return false;
}

static sonde_status take(sn_graph *g, sn_pass_env *env, sn_node *sum, const window *host,
                         const window *guest, const int64_t *at, bool *done)
{
    const size_t bytes = (size_t)host->outputs * 2 * sizeof(double);
    double *scale = sn_alloc(g->alloc, bytes);
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    sonde_status st = merge(g, env, host, guest, at, scale, scale + host->outputs, done);
    sn_free(g->alloc, scale, bytes);
    if (st != SONDE_OK || !*done)
        return st;
    sn_node *const gone[] = {guest->node, sum};
    sn_node_set_output(host->node, 0, sum->out[0]);
    SN_TRY(sn_graph_replace(g, gone, 2, host->node, host->node, env->err));
    return sn_node_refresh(g, host->node, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (sum, g) {
        window host, guest;
        int64_t at[MAX_SPATIAL];
        bool done;
        if (!sn_node_is(sum, "Add") || sum->n_in != 2 || !sum->out[0] ||
            !match(sum, &host, &guest, at))
            continue;
        SN_TRY(take(g, env, sum, &host, &guest, at, &done));
        *changes += done;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_parallel_convs = {
    .name = "parallel-convs",
    .summary = "adds up the weights of convolutions of one value whose results are added",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
