/* SPDX-License-Identifier: Apache-2.0 */
/* Views of heads; see heads_view.h. */
#include "passes/heads_view.h"

/* An axis of one digit as an axis of the source: its number, or -1 where its size is 1. */
static bool plain_axis(const sn_view *v, int axis, const sn_type *source, int64_t *out)
{
    *out = -1;
    if (v->axis[axis].n == 0)
        return true;
    const sn_digit *d = &v->axis[axis].digit[0];
    if (v->axis[axis].n != 1 || d->axis < 0 || d->axis == source->rank - 1 || d->inner != 1 ||
        !(sn_dim_same(d->size, source->dims[d->axis]) || d->size == source->dims[d->axis]))
        return false;
    *out = d->axis;
    return true;
}

/* Heads: an axis of the source, or steps inside its last one; then maybe repeats of each, which is
 * how a head shared by several queries is written. */
static bool head_axis(const sn_digit *d, int n, const sn_type *source, sn_heads_view *o)
{
    o->heads = 1;
    o->view[1] = -1;
    o->view[3] = 0;
    if (n > 0 && d[n - 1].axis < 0)
        n--;
    if (n == 0)
        return true;
    if (n != 1 || d->axis < 0 || !sn_dim_known(d->size) || d->maybe_more)
        return false;
    o->heads = d->size;
    if (d->axis == source->rank - 1) {
        o->view[3] = d->inner;
        return true;
    }
    o->view[1] = d->axis;
    return d->inner == 1 && d->size == source->dims[d->axis];
}

/* Two axes that together are one of the source, one of them its inner part. */
static bool cut_axes(const sn_view *v, int batch_axis, int len_axis, const sn_type *source,
                     sn_heads_view *o)
{
    if (v->axis[batch_axis].n != 1 || v->axis[len_axis].n != 1)
        return false;
    const sn_digit *batch = v->axis[batch_axis].digit, *len = v->axis[len_axis].digit;
    const sn_digit *inner = batch->inner == 1 ? batch : len, *outer = inner == batch ? len : batch;
    if (batch->axis < 0 || batch->axis != len->axis || batch->axis == source->rank - 1 ||
        !sn_type_is_concrete(source) || source->rank == SN_MAX_RANK || !sn_dim_known(inner->size) ||
        inner->inner != 1 || outer->inner != inner->size || inner->maybe_more ||
        outer->maybe_more || outer->size * inner->size != source->dims[batch->axis])
        return false;
    o->cut = inner->size;
    o->cut_axis = batch->axis;
    o->view[0] = batch->axis + (inner == batch);
    o->view[2] = batch->axis + (inner == len);
    if (o->view[1] > batch->axis)
        o->view[1]++;
    return true;
}

/* The axis of the batches; -1: more than one axis would be. */
static int batch_axis_of(const sn_view *v, sn_heads_axes axes)
{
    if (axes == SN_HEADS_FIRST)
        return v->rank == 5 && !v->axis[0].n ? 2 : -1;
    if (v->rank == 5) /* of two axes of batches, one has size 1 */
        return v->axis[0].n && v->axis[1].n ? -1 : v->axis[0].n ? 0 : 1;
    return 0;
}

/* The view as heads; the options are those of sn_heads_view_find. */
static bool describe(const sn_view *v, sn_value *source, bool columns, sn_heads_axes axes,
                     bool cuts, sn_heads_view *o)
{
    const sn_type *t = &source->fact.type;
    const int size_axis = v->rank - (columns ? 2 : 1), len_axis = v->rank - (columns ? 1 : 2);
    if (v->rank < 3 || v->rank > 5)
        return false;
    const sn_digit *size = v->axis[size_axis].digit;
    const int batch_axis = batch_axis_of(v, axes);
    if (batch_axis < 0 || v->axis[size_axis].n != 1 || size->axis != t->rank - 1 ||
        size->inner != 1 || !sn_dim_known(size->size) || size->maybe_more)
        return false;
    *o = (sn_heads_view){.source = source, .size = size->size, .scale = v->scale};
    sn_view b = *v;
    bool heads;
    if (v->rank == 3 && axes == SN_HEADS_FLAT) {
        heads = head_axis(NULL, 0, t, o);
    } else if (v->rank == 3) {
        heads = v->axis[0].n >= 2 && head_axis(v->axis[0].digit + 1, v->axis[0].n - 1, t, o);
        b.axis[0].n = 1;
    } else {
        const int at = axes == SN_HEADS_FIRST ? 1 : v->rank - 3;
        heads = head_axis(v->axis[at].digit, v->axis[at].n, t, o);
    }
    const bool whole = plain_axis(v, len_axis, t, &o->view[2]) &&
                       plain_axis(&b, batch_axis, t, &o->view[0]) &&
                       !(b.axis[batch_axis].n && b.axis[batch_axis].digit[0].maybe_more);
    if (!heads || (!whole && !(cuts && cut_axes(&b, batch_axis, len_axis, t, o))))
        return false;
    o->view[4] = v->first;
    return o->heads >= 1 && o->size >= 1 && o->heads <= INT32_MAX && o->size <= INT32_MAX &&
           o->view[3] <= INT32_MAX && o->view[4] <= INT32_MAX;
}

/* v as a view of a source from further up than `least`; the number of nodes between, -1: none. */
static int find(const sn_view_chain *c, int least, bool columns, sn_heads_axes axes, bool cuts,
                sn_heads_view *o)
{
    sn_view view;
    sn_heads_view made;
    for (int k = c->n; k > least; k--)
        if (sn_view_follow(c, k, &view) &&
            describe(&view, c->source[k], columns, axes, cuts, &made) &&
            sn_value_is_dtype(made.source, SONDE_DTYPE_F32)) {
            *o = made;
            o->steps = k;
            return k;
        }
    return -1;
}

/* A source is cut only to get rid of a copy: of one as it is, passes behind know more. */
bool sn_heads_view_find(sn_value *v, bool columns, sn_heads_axes axes, bool cuts, sn_heads_view *o)
{
    sn_view_chain c;
    sn_heads_view cut;
    sn_view_find_chain(v, &c);
    const int whole = find(&c, -1, columns, axes, false, o);
    const int further = cuts ? find(&c, whole, columns, axes, true, &cut) : -1;
    bool copied = false;
    for (int i = whole < 0 ? 0 : whole; i < further; i++)
        copied |= sn_node_is(c.node[i], "Transpose");
    if (copied)
        *o = cut;
    return whole >= 0 || copied;
}

/* ------------------------------------------------------------------ rows of length 1 */
/* The input of ReduceL2 over the last axis, which is kept. */
static sn_value *lengths_of(const sn_node *n)
{
    if (!n || !sn_node_is(n, "ReduceL2") || !n->in[0].value || !sn_node_attr_int(n, "keepdims", 1))
        return NULL;
    const sn_attr *attr = sn_node_attr(n, "axes");
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    const int rank = n->in[0].value->fact.type.rank;
    int64_t axis;
    if (attr && attr->kind == SN_ATTR_INTS && attr->n == 1)
        axis = attr->ints[0];
    else if (v && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_I64 &&
             sn_tensor_count(v->fact.data) == 1)
        sn_tensor_read(v->fact.data, 0, 1, &axis);
    else
        return NULL;
    return axis == -1 || axis == rank - 1 ? n->in[0].value : NULL;
}

/* A value that is at least a number: max(v, number). */
static sn_value *with_least(sn_value *v, float *least)
{
    sn_node *n = v->producer;
    *least = 0;
    if (n && sn_node_is(n, "Clip") && n->n_in > 1 && sn_value_scalar_f32(n->in[1].value, least) &&
        (n->n_in < 3 || !n->in[2].value))
        return n->in[0].value;
    for (uint32_t i = 0; n && sn_node_is(n, "Max") && n->n_in == 2 && i < 2; i++)
        if (sn_value_scalar_f32(n->in[i].value, least))
            return n->in[1 - i].value;
    return v;
}

/* Swaps its last two axes and nothing else. */
static bool turns_rows(const sn_node *n)
{
    const sn_attr *perm = n && sn_node_is(n, "Transpose") ? sn_node_attr(n, "perm") : NULL;
    if (!perm || perm->kind != SN_ATTR_INTS || perm->n < 2)
        return false;
    for (size_t i = 0; i + 2 < perm->n; i++)
        if (perm->ints[i] != (int64_t)i)
            return false;
    return perm->ints[perm->n - 1] == (int64_t)perm->n - 2;
}

sn_value *sn_heads_of_unit(sn_value *v, bool columns, float *least)
{
    if (columns) {
        if (!turns_rows(v->producer))
            return NULL;
        v = v->producer->in[0].value;
    }
    const sn_node *div = v->producer;
    if (!div || !sn_node_is(div, "Div") || div->n_in != 2 || !div->in[0].value ||
        !div->in[1].value || !sn_type_same_shape(&div->in[0].value->fact.type, &v->fact.type))
        return NULL;
    sn_value *by = div->in[1].value;
    if (by->producer && sn_node_is(by->producer, "Expand"))
        by = by->producer->in[0].value;
    by = with_least(by, least);
    return by && *least >= 0 && lengths_of(by->producer) == div->in[0].value ? div->in[0].value
                                                                             : NULL;
}

/* ------------------------------------------------------------------ attributes */
sonde_status sn_node_set_ints(sn_graph *g, sn_node *n, const char *name, const int64_t *ints,
                              size_t count, sonde_error *err)
{
    int64_t *copy = SN_NEW_N(g->arena, int64_t, count);
    if (!copy)
        return sn_fail_memory(err, count * sizeof *copy);
    memcpy(copy, ints, count * sizeof *copy);
    sn_attr a = {.name = name, .kind = SN_ATTR_INTS, .n = count, .ints = copy};
    return sn_node_set_attr(g, n, &a, err);
}

sonde_status sn_node_set_int(sn_graph *g, sn_node *n, const char *name, int64_t i, sonde_error *err)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = i};
    return sn_node_set_attr(g, n, &a, err);
}

sonde_status sn_node_set_float(sn_graph *g, sn_node *n, const char *name, double f,
                               sonde_error *err)
{
    sn_attr a = {.name = name, .kind = SN_ATTR_FLOAT, .n = 1, .f = (float)f};
    return sn_node_set_attr(g, n, &a, err);
}
