/* SPDX-License-Identifier: Apache-2.0 */
/* A product over an axis that is not the last one, as exporters write it: a Transpose brings the
 * axis to the end, each row is multiplied by a matrix of constants, and a second Transpose brings
 * it back. (Attention that mixes its heads does so to its scores, twice.) With the constants on the
 * left the matrix of all positions is multiplied as it lies:
 *
 *   Transpose ► MatMul(·, W) ► Add(row) ► Transpose   as   MatMul(Wᵀ, ·) ► Add(column)
 *
 * This is for a few channels: a product with many on both sides earns more from packed weights than
 * two copies cost. Runs behind the passes that look for attention. */
#include "passes/axes.h"

enum { MOST_CHANNELS = 16 };

typedef struct found {
    sn_node *to_last, *product, *add, *back; /* add: may be NULL */
    sn_value *bias;
    int axis;
    int64_t k, m; /* channels before and after */
} found;

/* The axis that a Transpose brings to the end (`last`), or the place where it puts the last one,
 * and nothing else; -1: it is another one. */
static int moved_axis(const sn_node *t, bool last)
{
    int64_t perm[SN_MAX_RANK];
    const int rank = sn_node_is(t, "Transpose") && t->out[0] ? t->out[0]->fact.type.rank : 0;
    if (rank < 3 || !sn_transpose_perm(t, rank, perm))
        return -1;
    int axis = 0;
    while (axis < rank && perm[axis] == axis)
        axis++;
    if (axis > rank - 2)
        return -1;
    for (int i = axis; i < rank; i++) {
        const int64_t moved =
            last ? (i == rank - 1 ? axis : i + 1) : (i == axis ? rank - 1 : i - 1);
        if (perm[i] != moved)
            return -1;
    }
    return axis;
}

static const sn_tensor *numbers(const sn_value *v)
{
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    return t && t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) ? t : NULL;
}

static bool is_row(const sn_value *v, int64_t columns, int rank)
{
    const sn_tensor *t = numbers(v);
    return t && t->rank >= 1 && t->rank <= rank && t->dims[t->rank - 1] == columns &&
           sn_tensor_count(t) == columns;
}

/* Dims behind the axis are numbers, and all but one of those before it. */
static bool has_places(const sn_type *x, int axis)
{
    int open = 0;
    for (int i = 0; i < x->rank; i++) {
        if (i != axis && (!sn_dim_known(x->dims[i]) || x->dims[i] < 1)) {
            if (i > axis || ++open > 1)
                return false;
        }
    }
    return true;
}

static bool match(sn_node *t, found *f)
{
    *f = (found){.to_last = t, .axis = moved_axis(t, true)};
    sn_node *n = f->axis >= 0 ? sn_value_only_reader(t->out[0]) : NULL;
    if (!n || !sn_node_is(n, "MatMul") || n->in[0].value != t->out[0] ||
        !sn_value_is_dtype(t->out[0], SONDE_DTYPE_F32) ||
        !has_places(&t->in[0].value->fact.type, f->axis))
        return false;
    const sn_tensor *w = numbers(n->in[1].value);
    if (!w || w->rank != 2 || w->dims[0] < 1 || w->dims[1] < 1 || w->dims[0] > MOST_CHANNELS ||
        w->dims[1] > MOST_CHANNELS)
        return false;
    f->product = n;
    f->k = w->dims[0];
    f->m = w->dims[1];
    sn_node *next = sn_value_only_reader(n->out[0]);
    if (next && sn_node_is(next, "Add")) {
        f->bias = sn_node_other_input(next, n->out[0]);
        f->add = next;
        if (!is_row(f->bias, f->m, t->out[0]->fact.type.rank))
            return false;
        next = sn_value_only_reader(next->out[0]);
    }
    f->back = next;
    return next && moved_axis(next, false) == f->axis;
}

/* ------------------------------------------------------------------ rewriting */
/* `to` is x with other dims, by a new Reshape before `at`. */
static sonde_status add_reshape(sn_graph *g, sn_pass_env *env, sn_node *at, sn_value *x,
                                const int64_t *dims, int rank, sn_value *to, sn_node **made)
{
    const int64_t count = rank;
    sn_value *shape;
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &count, 1, &shape, &data));
    memcpy(data, dims, (size_t)rank * sizeof *dims);
    SN_TRY(sn_graph_add_node(g, at, "", "Reshape", at->name, 2, 1, made, env->err));
    (*made)->opset = 14;
    sn_node_set_input(*made, 0, x);
    sn_node_set_input(*made, 1, shape);
    sn_node_set_output(*made, 0, to);
    return SONDE_OK;
}

static sonde_status add_value(sn_graph *g, sn_pass_env *env, const sn_value *like, sn_value **v)
{
    SN_TRY(sn_graph_add_value(g, "", v, env->err));
    sn_value_show_as(*v, like);
    return SONDE_OK;
}

/* The weights turned around. */
static sonde_status turn_weights(sn_graph *g, sn_pass_env *env, const found *f, sn_value **out)
{
    sn_value *w = f->product->in[1].value;
    const int64_t dims[2] = {f->m, f->k};
    void *data;
    SN_TRY(sn_pass_constant(g, env, w->name, SONDE_DTYPE_F32, dims, 2, out, &data));
    sn_value_show_as(*out, w);
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t j = 0; j < f->k; j++)
            ((float *)data)[i * f->k + j] = sn_read_f32(w->fact.data, j * f->m + i);
    return SONDE_OK;
}

/* The bias as a column, added by the same node. */
static sonde_status turn_bias(sn_graph *g, sn_pass_env *env, const found *f, sn_value *sum,
                              sn_value **out)
{
    const int64_t dims[2] = {f->m, 1};
    sn_value *column;
    void *data;
    SN_TRY(sn_pass_constant(g, env, f->bias->name, SONDE_DTYPE_F32, dims, 2, &column, &data));
    sn_value_show_as(column, f->bias);
    sn_tensor_read(f->bias->fact.data, 0, f->m, data);
    SN_TRY(add_value(g, env, f->add->out[0], out));
    sn_node_set_input(f->add, 0, sum);
    sn_node_set_input(f->add, 1, column);
    sn_node_set_output(f->add, 0, *out);
    return sn_node_refresh(g, f->add, env->err);
}

static sonde_status rewrite(sn_graph *g, sn_pass_env *env, const found *f)
{
    sn_value *x = f->to_last->in[0].value, *y = f->back->out[0];
    const sn_type *t = &x->fact.type;
    int64_t flat[3] = {1, f->k, 1}, dims[SN_MAX_RANK];
    const int rank = t->rank;
    for (int i = 0; i < rank; i++) {
        dims[i] = i == f->axis ? f->m : sn_dim_known(t->dims[i]) ? t->dims[i] : -1;
        if (i != f->axis)
            flat[i < f->axis ? 0 : 2] *= dims[i];
    }
    flat[0] = flat[0] < 0 ? -1 : flat[0];
    sn_value *matrix, *w, *sum, *result;
    sn_node *before, *behind;
    SN_TRY(add_value(g, env, x, &matrix));
    SN_TRY(add_value(g, env, f->product->out[0], &sum));
    SN_TRY(turn_weights(g, env, f, &w));
    SN_TRY(add_reshape(g, env, f->product, x, flat, 3, matrix, &before));
    SN_TRY(sn_node_inherit(g, before, f->to_last, env->err));
    SN_TRY(sn_node_refresh(g, before, env->err));
    sn_node_set_input(f->product, 0, w);
    sn_node_set_input(f->product, 1, matrix);
    sn_node_set_output(f->product, 0, sum);
    SN_TRY(sn_node_refresh(g, f->product, env->err));
    result = sum;
    if (f->add)
        SN_TRY(turn_bias(g, env, f, sum, &result));
    SN_TRY(add_reshape(g, env, f->back, result, dims, rank, y, &behind));
    SN_TRY(sn_graph_replace(g, (sn_node *[]){f->to_last, f->product}, 2, f->product, f->product,
                            env->err));
    sn_node *back = f->back;
    SN_TRY(sn_graph_replace(g, &back, 1, behind, back, env->err));
    return sn_node_refresh(g, behind, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        found f;
        if (n->n_in < 1 || !n->in[0].value || n->n_out != 1 || !match(n, &f))
            continue;
        SN_TRY(rewrite(g, env, &f));
        n_next = f.product->next; /* what followed may be gone */
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_channel_products = {
    .name = "channel-products",
    .summary = "multiplies a few channels where they lie instead of bringing them to the end",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
