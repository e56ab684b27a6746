/* SPDX-License-Identifier: Apache-2.0 */
/* A Reshape whose shape is computed (Shape ► Gather ► Unsqueeze ► Concat) mostly says what a
 * constant can say too: this dim is a number, that one is the input's, one is what remains. Then
 * nothing reads the chain that computed it.
 *
 * The attribute allowzero says that a 0 of the shape is a dim of no elements. Some exporters set it
 * on every Reshape. Where no 0 is in the shape it says nothing and goes, so that other passes need
 * not know of it. */
#include "passes/rewrite.h"

/* The same shape as a constant list: numbers stay, a dim of the input at its own place is 0, and
 * one dim may be -1 if all others are numbers above 0 (with a dim of the input among them, an empty
 * tensor would leave open which dim is meant). False: not possible. */
static bool as_constant(const sn_node *n, int64_t *shape)
{
    const sn_type *x = &n->in[0].value->fact.type;
    const sn_fact *f = &n->in[1].value->fact;
    const bool empty = sn_node_attr_int(n, "allowzero", 0) != 0; /* what a given 0 means */
    bool copies = false, free_dim = false, given = false;
    if (!f->ints || f->n_ints > SN_MAX_RANK || x->kind != SN_KIND_TENSOR)
        return false;
    for (int64_t i = 0; i < f->n_ints; i++) {
        shape[i] = f->ints[i];
        if (sn_dim_known(shape[i])) {
            if (shape[i] == 0 && empty)
                return false;
            given |= shape[i] == -1;
            copies |= shape[i] == 0;
        } else if (i < x->rank && sn_dim_same(shape[i], x->dims[i])) {
            shape[i] = 0;
            copies = true;
        } else if (!free_dim) {
            shape[i] = -1;
            free_dim = true;
        } else {
            return false;
        }
    }
    return !free_dim || (!given && !copies);
}

static sonde_status set_shape(sn_graph *g, sn_pass_env *env, sn_node *n, const int64_t *shape)
{
    sn_value *v;
    void *data;
    const int64_t count = n->in[1].value->fact.n_ints;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &count, 1, &v, &data));
    memcpy(data, shape, (size_t)count * sizeof *shape);
    sn_node_set_input(n, 1, v);
    return SONDE_OK;
}

static bool has_zero(const sn_value *shape)
{
    const sn_tensor *t = shape->fact.data;
    int64_t dims[SN_MAX_RANK];
    if (!sn_value_is_const(shape) || t->dtype != SONDE_DTYPE_I64 || t->rank != 1 ||
        t->dims[0] > SN_MAX_RANK)
        return true;
    sn_tensor_read(t, 0, t->dims[0], dims);
    for (int64_t i = 0; i < t->dims[0]; i++)
        if (dims[i] == 0)
            return true;
    return false;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        int64_t shape[SN_MAX_RANK];
        if (!sn_node_is(n, "Reshape") || n->n_in != 2 || !n->in[0].value || !n->in[1].value)
            continue;
        const sn_value *given = n->in[1].value;
        if (!given->fact.data && as_constant(n, shape))
            SN_TRY(set_shape(g, env, n, shape));
        else if (!given->fact.data || !sn_node_attr_int(n, "allowzero", 0) || has_zero(given))
            continue;
        sn_node_remove_attr(n, "allowzero");
        SN_TRY(sn_node_refresh(g, n, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_constant_shapes = {
    .name = "constant-shapes",
    .summary = "writes target shapes of reshapes as constants that other passes understand",
    .run = run,
    .bodies = true,
};
