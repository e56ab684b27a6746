/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-layer equalisation: between two layers with nothing but Relu, pools and the like in
 * between, a channel may be divided by any positive factor in the first and multiplied by it in the
 * second. Factors that give both the same largest weight make one scale fit all channels better
 * (Nagel et al., 2019). A Clip at 6 does not let factors pass, so such pairs stay as they are. */
#include <math.h>
#include <string.h>

#include "shrink/quantizer.h"

enum { SWEEPS = 8 };

typedef struct side {
    sn_node *n;
    float *w;
    sn_q_layout l; /* of the channels between the layers */
    int64_t groups;
} side;

typedef struct pair {
    side first, second;
    float *bias; /* of the first; NULL: none */
    int64_t channels;
    struct pair *next;
} pair;

/* ------------------------------------------------------------------ finding */
/* A layer whose weights nobody else reads. */
static bool is_layer(const sn_node *n, sn_q_product *p)
{
    return (sn_q_is(n, "Conv") || sn_q_is(n, "Gemm")) && !sn_q_product_of(n, p) && !p->half &&
           p->w->n_uses == 1 && (!p->bias || p->bias->n_uses == 1);
}

static sn_node *only_reader(const sn_value *v)
{
    return v->n_uses == 1 && !v->n_outputs ? v->uses->node : NULL;
}

/* The layer behind n, where only what lets factors pass lies between. */
static sn_node *next_layer(const sn_node *n)
{
    static const char *const pass[] = {"Relu", "LeakyRelu", "MaxPool", "AveragePool",
                                       "GlobalAveragePool"};
    sn_node *to = only_reader(n->out[0]);
    for (bool passes = true; to && passes;) {
        passes = false;
        for (size_t i = 0; i < sizeof pass / sizeof *pass; i++)
            passes = passes || sn_q_is(to, pass[i]);
        if (passes)
            to = to->n_out == 1 && to->out[0] ? only_reader(to->out[0]) : NULL;
    }
    return to;
}

static sonde_status own_weights(sn_quantizer *q, sn_node *n, uint32_t k, float **data)
{
    const sn_value *old = n->in[k].value;
    const sn_tensor *t = old->fact.data;
    sn_value *v;
    void *numbers;
    SN_TRY(sn_q_constant(q->prepared->core, q->g, old->name, "", SONDE_DTYPE_F32, t->dims, t->rank,
                         &v, &numbers, q->err));
    memcpy(numbers, t->data, t->bytes);
    *data = numbers;
    sn_node_set_input(n, k, v);
    return SONDE_OK;
}

/* A Gemm's axis of inputs is the one that is not its axis of outputs; a Conv's is 1. */
static sonde_status open_pair(sn_quantizer *q, sn_node *a, const sn_q_product *pa, sn_node *b,
                              const sn_q_product *pb, pair *out)
{
    const sn_tensor *wb = pb->w->fact.data;
    const bool gemm = sn_q_is(b, "Gemm");
    out->channels = pa->channels;
    out->first = (side){a, NULL, sn_q_layout_of(pa->w->fact.data, pa->axis), 1};
    out->second = (side){b, NULL, sn_q_layout_of(wb, gemm ? !pb->axis : 1), pb->groups};
    SN_TRY(own_weights(q, a, 1, &out->first.w));
    SN_TRY(own_weights(q, b, 1, &out->second.w));
    return pa->bias ? own_weights(q, a, 2, &out->bias) : SONDE_OK;
}

/* ------------------------------------------------------------------ factors */
/* Weights of the second layer that read channel c: those of its group, at its place in the group.
 */
static float second_extreme(const side *s, int64_t c, float times)
{
    const int64_t place = c % s->l.channels, group = c / s->l.channels;
    const int64_t each = s->l.outer / s->groups;
    float most = 0;
    for (int64_t o = group * each; o < (group + 1) * each; o++)
        for (int64_t i = 0; i < s->l.inner; i++) {
            float *x = &s->w[(o * s->l.channels + place) * s->l.inner + i];
            *x *= times;
            most = fmaxf(most, fabsf(*x));
        }
    return most;
}

static float first_extreme(const side *s, int64_t c, float by)
{
    float most = 0;
    for (int64_t o = 0; o < s->l.outer; o++)
        for (int64_t i = 0; i < s->l.inner; i++) {
            float *x = &s->w[(o * s->l.channels + c) * s->l.inner + i];
            *x /= by;
            most = fmaxf(most, fabsf(*x));
        }
    return most;
}

static void balance(pair *p)
{
    for (int64_t c = 0; c < p->channels; c++) {
        const double a = (double)first_extreme(&p->first, c, 1.0f);
        const double b = (double)second_extreme(&p->second, c, 1.0f);
        const double s = a > 0 && b > 0 ? sqrt(a / b) : 1.0;
        const float factor = (float)fmin(fmax(s, 1e-3), 1e3);
        (void)first_extreme(&p->first, c, factor);
        (void)second_extreme(&p->second, c, factor);
        if (p->bias)
            p->bias[c] /= factor;
    }
}

/* Do the outputs of the one lie where the other reads them? */
static bool fits(const sn_node *b, const sn_q_product *pa, const sn_q_product *pb)
{
    const sn_tensor *w = pb->w->fact.data;
    const bool gemm = sn_q_is(b, "Gemm");
    const int64_t inputs = gemm ? w->dims[!pb->axis] : w->dims[1] * pb->groups;
    return inputs == pa->channels && (gemm || w->dims[0] % pb->groups == 0);
}

sonde_status sn_q_equalize(sn_quantizer *q)
{
    pair *first = NULL, **last = &first;
    sn_graph_each (n, q->g) {
        sn_q_product pa, pb;
        sn_node *to;
        if (!is_layer(n, &pa) || !(to = next_layer(n)) || !is_layer(to, &pb) ||
            to->in[0].value == to->in[1].value || !fits(to, &pa, &pb))
            continue;
        pair *p = SN_NEW(&q->arena, pair);
        if (!p)
            return sn_fail_memory(q->err, sizeof *p);
        SN_TRY(open_pair(q, n, &pa, to, &pb, p));
        *last = p;
        last = &p->next;
        q->equalized++;
    }
    /* A layer in two pairs was copied twice: the last copy is the one it has. */
    for (pair *p = first; p; p = p->next) {
        p->first.w = p->first.n->in[1].value->fact.data->data;
        p->second.w = p->second.n->in[1].value->fact.data->data;
        if (p->bias)
            p->bias = p->first.n->in[2].value->fact.data->data;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (pair *p = first; p; p = p->next)
            balance(p);
    sn_graph_drop_values(q->g);
    return SONDE_OK;
}
