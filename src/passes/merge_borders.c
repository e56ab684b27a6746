/* SPDX-License-Identifier: Apache-2.0 */
/* Borders that meet: where the change of a type (a Cast that compute-types made) stands next to a
 * change of layout (a Reorder), the Reorder does both in one walk over memory. */
#include "passes/rewrite.h"

static bool is_half(const sn_value *v)
{
    return sn_value_is_dtype(v, SONDE_DTYPE_F16) || sn_value_is_dtype(v, SONDE_DTYPE_BF16);
}

static bool is_convert(const sn_node *n)
{
    return n && n->border && sn_node_is(n, "Cast");
}

/* The Cast before or behind a Reorder that it can do as well: 16-bit floats are plain, f32 is in
 * blocks. */
static sn_node *neighbour(const sn_node *reorder)
{
    const sn_value *x = reorder->in[0].value, *y = reorder->out[0];
    if (!x || !y)
        return NULL;
    sn_node *before = x->producer, *behind = sn_value_only_reader(y);
    if (sn_layout_is_plain(x->fact.form.layout) && is_convert(before) &&
        sn_value_only_reader(x) == reorder && is_half(before->in[0].value))
        return before;
    if (sn_layout_is_plain(y->fact.form.layout) && is_convert(behind) && is_half(behind->out[0]))
        return behind;
    return NULL;
}

static sonde_status merge(sn_graph *g, sn_pass_env *env, sn_node *reorder, sn_node *convert)
{
    const bool before = reorder->in[0].value == convert->out[0];
    sn_value *const far = before ? convert->in[0].value : convert->out[0];
    const sn_attr dtype = {.name = "dtype",
                           .kind = SN_ATTR_INT,
                           .n = 1,
                           .i = before ? SONDE_DTYPE_F32 : (int64_t)far->fact.type.dtype};
    SN_TRY(sn_node_set_attr(g, reorder, &dtype, env->err));
    if (before)
        sn_node_set_input(reorder, 0, far);
    else
        sn_node_set_output(reorder, 0, far);
    SN_TRY(sn_graph_replace(g, (sn_node *[]){convert, reorder}, 2, reorder, reorder, env->err));
    return sn_node_refresh(g, reorder, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        sn_node *convert = sn_node_is_internal(n, "Reorder") ? neighbour(n) : NULL;
        if (!convert)
            continue;
        SN_TRY(merge(g, env, n, convert));
        n_next = n->next; /* it may have been the one that is gone */
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_merge_borders = {
    .name = "merge-borders",
    .summary = "changes type and layout in one step where both change",
    .run = run,
    .bodies = true,
};
