/* SPDX-License-Identifier: Apache-2.0 */
/* Which 3×3 convolutions go Winograd's way: those that gain most for the room their larger weights
 * take. The room is a share of all weights, so that a model's packed weights stay near its raw
 * ones; a layer whose image size is not known stays direct. */
#include <stdlib.h>

#include "compute/conv.h"
#include "passes/rewrite.h"

enum { ROOM_PERCENT = 13 }; /* of the bytes of all f32 weights */

typedef struct candidate {
    sn_node *node;
    int from, to;  /* sizes of Winograd's tiles; 0: direct */
    double gain;   /* cycles, as sn_conv_winograd_gain has them */
    size_t extra;  /* floats more of packed weights */
    uint32_t rank; /* where it was found: equal ones keep their order */
} candidate;

static bool all_ones(const sn_node *n, const char *name)
{
    const sn_attr *a = sn_node_attr(n, name);
    if (!a)
        return true;
    for (size_t i = 0; a->kind == SN_ATTR_INTS && i < a->n; i++)
        if (a->ints[i] != 1)
            return false;
    return a->kind == SN_ATTR_INTS;
}

static bool is_candidate(const sn_node *n)
{
    if (!(sn_node_is(n, "Conv") || sn_node_is_internal(n, "FusedConv")) || n->n_in < 2 ||
        n->n_out != 1 || !n->out[0] || !n->in[0].value || !n->in[1].value)
        return false;
    const sn_value *w = n->in[1].value, *y = n->out[0];
    return sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) && sn_value_is_const(w) &&
           w->fact.data->dtype == SONDE_DTYPE_F32 && w->fact.data->rank == 4 &&
           w->fact.data->dims[2] == 3 && w->fact.data->dims[3] == 3 && y->fact.type.rank == 4 &&
           sn_dim_known(y->fact.type.dims[2]) && sn_dim_known(y->fact.type.dims[3]) &&
           all_ones(n, "strides") && all_ones(n, "dilations");
}

static int by_gain_per_room(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    const double l = x->gain * (double)y->extra, r = y->gain * (double)x->extra;
    return l > r ? -1 : l < r ? 1 : x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The steps that may be taken with node n, behind `list`: to 2 and from there to 4, or to 4 at once
 * where that gains more for its room. */
static size_t weigh(candidate *list, sn_node *n, unsigned block, uint32_t rank)
{
    const sn_tensor *w = n->in[1].value->fact.data;
    const sn_dim *out = n->out[0]->fact.type.dims + 2;
    const int64_t groups = sn_node_attr_int(n, "group", 1);
    const size_t ninth = (size_t)sn_tensor_count(w) / 9;
    const double gain2 = sn_conv_winograd_gain(w->dims, groups, block, 2, out[0], out[1]);
    const double gain4 = sn_conv_winograd_gain(w->dims, groups, block, 4, out[0], out[1]);
    size_t found = 0;
    if (gain4 > 0 && gain4 * 7 >= gain2 * 27) {
        list[found++] = (candidate){n, 0, 4, gain4, 27 * ninth, rank};
    } else if (gain2 > 0) {
        list[found++] = (candidate){n, 0, 2, gain2, 7 * ninth, rank};
        if (gain4 > gain2)
            list[found++] = (candidate){n, 2, 4, gain4 - gain2, 20 * ninth, rank};
    }
    return found;
}

static sonde_status choose(sn_graph *g, sn_pass_env *env, sn_node *n, int m)
{
    const sn_attr a = {.name = "winograd", .kind = SN_ATTR_INT, .n = 1, .i = m};
    n->domain = "sonde";
    n->op_type = "FusedConv";
    n->opset = 1;
    SN_TRY(sn_node_set_attr(g, n, &a, env->err));
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    const unsigned block = (unsigned)sn_cpu_block(env->cpu_flags);
    size_t n_convs = 0, n = 0, room = 0;
    sn_graph_each (node, g)
        n_convs += is_candidate(node);
    if (n_convs == 0 || !sn_op_find("sonde", "FusedConv", 1, NULL))
        return SONDE_OK;
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v && v->n_uses > 0 && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_F32)
            room += (size_t)sn_tensor_count(v->fact.data) / 100 * ROOM_PERCENT;
    }
    const size_t bytes = 2 * n_convs * sizeof(candidate);
    candidate *list = sn_alloc(g->alloc, bytes);
    if (!list)
        return sn_fail_memory(env->err, bytes);
    uint32_t rank = 0;
    sn_graph_each (node, g)
        if (is_candidate(node))
            n += weigh(list + n, node, block, rank++);
    qsort(list, n, sizeof *list, by_gain_per_room);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < n && st == SONDE_OK; i++) {
        if (list[i].extra > room || sn_node_attr_int(list[i].node, "winograd", 0) != list[i].from)
            continue;
        room -= list[i].extra;
        st = choose(g, env, list[i].node, list[i].to);
        (*changes)++;
    }
    sn_free(g->alloc, list, bytes);
    return st;
}

const sn_pass sn_pass_winograd = {
    .name = "winograd",
    .summary = "lets the 3x3 convolutions that gain most go Winograd's way",
    .run = run,
    .bodies = false,
};
