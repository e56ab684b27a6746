/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element; what depends on the count of updates is worked out before. */
#include "compute/optimizer.h"

#include <math.h>

#include "compute/parallel.h"

typedef struct update {
    const sn_optimizer *o;
    uint32_t inputs;
    double rate; /* adjusted */
    double beta; /* momentum: adjusted */
    const sn_elems *in, *out;
} update;

static void update_range(void *arg, size_t lo, size_t hi)
{
    const update *u = arg;
    const sn_optimizer *o = u->o;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        double v[4] = {0}, next[3] = {0};
        for (uint32_t k = 0; k < u->inputs; k++)
            v[k] = sn_elem_f64(u->in[k].dtype, u->in[k].data, i);
        const double x = v[0], g = o->norm * x + v[1];
        switch (o->kind) {
        case SN_ADAGRAD:
            next[1] = v[2] + g * g;
            next[0] = x - u->rate * g / (sqrt(next[1]) + o->epsilon);
            break;
        case SN_ADAM:
            next[1] = o->alpha * v[2] + (1 - o->alpha) * g;
            next[2] = o->beta * v[3] + (1 - o->beta) * g * g;
            next[0] = (1 - o->norm_post) * (x - u->rate * next[1] / (sqrt(next[2]) + o->epsilon));
            break;
        case SN_MOMENTUM:
        case SN_NESTEROV:
            next[1] = o->alpha * v[2] + u->beta * g;
            next[0] = x - u->rate * (o->kind == SN_NESTEROV ? g + o->alpha * next[1] : next[1]);
            break;
        }
        for (uint32_t k = 0; k + 1 < u->inputs; k++)
            if (u->out[k].data)
                sn_elem_set_f64(u->out[k].dtype, u->out[k].data, i, next[k]);
    }
}

void sn_optimizer_run(const sn_optimizer *o, double rate, double count, int64_t n,
                      const sn_elems *in, const sn_elems *out, sn_pool *pool)
{
    update u = {.o = o,
                .inputs = sn_optimizer_inputs(o->kind),
                .rate = rate,
                .beta = count > 0 ? o->beta : 1.0,
                .in = in,
                .out = out};
    if (o->kind == SN_ADAGRAD)
        u.rate = rate / (1 + count * o->decay);
    if (o->kind == SN_ADAM && count > 0)
        u.rate = rate * sqrt(1 - pow(o->beta, count)) / (1 - pow(o->alpha, count));
    sn_parallel_range(pool, (size_t)n, 40, update_range, &u);
}
