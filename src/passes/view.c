/* SPDX-License-Identifier: Apache-2.0 */
/* Following views; see view.h. */
#include "passes/view.h"

#include <math.h>

sn_value *sn_node_scaled_input(const sn_node *n, double *factor)
{
    float k;
    uint32_t constant;
    const bool div = sn_node_is(n, "Div");
    if ((!div && !sn_node_is(n, "Mul")) || n->n_in != 2)
        return NULL;
    if (sn_value_scalar_f32(n->in[1].value, &k))
        constant = 1;
    else if (!div && sn_value_scalar_f32(n->in[0].value, &k))
        constant = 0;
    else
        return NULL;
    sn_value *x = n->in[1 - constant].value;
    /* A constant of higher rank would give the result more axes. */
    if (!x || !sn_value_is_dtype(x, SONDE_DTYPE_F32) ||
        x->fact.type.rank < n->in[constant].value->fact.data->rank)
        return NULL;
    *factor = div ? 1.0 / (double)k : (double)k;
    return isfinite(*factor) && *factor != 0 ? x : NULL;
}

/* The integers of a small constant or of a value whose elements were inferred; NULL: unknown. */
static const sn_dim *known_ints(const sn_value *v, int64_t room[SN_MAX_RANK], int64_t *n)
{
    if (!v)
        return NULL;
    if (v->fact.ints) {
        *n = v->fact.n_ints;
        return v->fact.ints;
    }
    const sn_tensor *t = sn_value_is_const(v) ? v->fact.data : NULL;
    if (!t || t->dtype != SONDE_DTYPE_I64 || sn_tensor_count(t) > SN_MAX_RANK)
        return NULL;
    *n = sn_tensor_count(t);
    sn_tensor_read(t, 0, *n, room);
    return room;
}

static const sn_value *input(const sn_node *n, uint32_t i)
{
    return i < n->n_in ? n->in[i].value : NULL;
}

/* ------------------------------------------------------------------ regrouping */
typedef struct digits {
    int n;
    sn_digit list[SN_VIEW_RANK * SN_VIEW_DIGITS];
} digits;

static bool push(sn_view *v, int axis, sn_digit d)
{
    if (d.size == 1)
        return true;
    if (v->axis[axis].n == SN_VIEW_DIGITS)
        return false;
    v->axis[axis].digit[v->axis[axis].n++] = d;
    return true;
}

static bool push_front(sn_view *v, int axis, sn_digit d)
{
    if (d.size == 1)
        return true;
    if (v->axis[axis].n == SN_VIEW_DIGITS)
        return false;
    memmove(v->axis[axis].digit + 1, v->axis[axis].digit,
            (size_t)v->axis[axis].n * sizeof(sn_digit));
    v->axis[axis].digit[0] = d;
    v->axis[axis].n++;
    return true;
}

/* Takes digits worth `dim` from the front of `d` into an axis; false: not possible with certainty.
 */
static bool take_front(digits *d, sn_view *to, int axis, sn_dim dim)
{
    while (dim != 1) {
        if (d->n == 0)
            return false;
        sn_digit *first = &d->list[0];
        if (sn_dim_known(dim) && sn_dim_known(first->size) && first->size > dim && dim > 0 &&
            first->size % dim == 0) { /* the outer part of a digit */
            const int64_t inner = first->size / dim;
            if (!push(to, axis, (sn_digit){first->axis, first->inner * inner, dim, false}))
                return false;
            first->size = inner;
            return true;
        }
        const bool same = sn_dim_same(first->size, dim);
        const bool part = sn_dim_known(dim) && sn_dim_known(first->size) && first->size > 1 &&
                          dim % first->size == 0;
        if (!same && !part)
            return false;
        if (!push(to, axis, *first))
            return false;
        dim = same ? 1 : dim / first->size;
        memmove(d->list, d->list + 1, (size_t)--d->n * sizeof *d->list);
    }
    return true;
}

/* The same from the back. */
static bool take_back(digits *d, sn_view *to, int axis, sn_dim dim)
{
    while (dim != 1) {
        if (d->n == 0)
            return false;
        sn_digit *last = &d->list[d->n - 1];
        if (sn_dim_known(dim) && sn_dim_known(last->size) && last->size > dim && dim > 0 &&
            last->size % dim == 0) { /* the inner part of a digit */
            if (!push_front(to, axis, (sn_digit){last->axis, last->inner, dim, false}))
                return false;
            last->inner *= dim;
            last->size /= dim;
            return true;
        }
        const bool same = sn_dim_same(last->size, dim);
        const bool part = sn_dim_known(dim) && sn_dim_known(last->size) && last->size > 1 &&
                          dim % last->size == 0;
        if (!same && !part)
            return false;
        if (!push_front(to, axis, *last))
            return false;
        dim = same ? 1 : dim / last->size;
        d->n--;
    }
    return true;
}

/* The digits of all axes in order, cut anew for the dims of `out`: from the front and from the back
 * as far as sizes agree; one dim may be left for what remains between. */
static bool regroup(const sn_type *out, sn_view *v)
{
    digits d = {0};
    for (int i = 0; i < v->rank; i++)
        for (int k = 0; k < v->axis[i].n; k++)
            d.list[d.n++] = v->axis[i].digit[k];
    if (out->rank > SN_VIEW_RANK)
        return false;
    sn_view made = {.rank = out->rank, .first = v->first, .scale = v->scale};
    int lo = 0, hi = out->rank;
    for (; lo < hi; lo++) {
        const digits before = d;
        if (!take_front(&d, &made, lo, out->dims[lo])) {
            d = before;
            made.axis[lo].n = 0;
            break;
        }
    }
    for (; hi > lo; hi--) {
        const digits before = d;
        if (!take_back(&d, &made, hi - 1, out->dims[hi - 1])) {
            d = before;
            made.axis[hi - 1].n = 0;
            break;
        }
    }
    if (hi - lo > 1)
        return false;
    for (int i = 0; i < d.n; i++)
        if (hi == lo || !push(&made, lo, d.list[i]))
            return false;
    *v = made;
    return true;
}

/* Squeeze and Unsqueeze only move dims of 1: the others keep their order. */
static bool keep_order(const sn_type *in, const sn_type *out, sn_view *v)
{
    sn_view made = {.rank = out->rank, .first = v->first, .scale = v->scale};
    int at = 0;
    if (out->rank > SN_VIEW_RANK)
        return false;
    for (int i = 0; i < out->rank; i++) {
        if (out->dims[i] == 1)
            continue;
        while (at < in->rank && in->dims[at] == 1)
            at++;
        if (at == in->rank)
            return false;
        made.axis[i] = v->axis[at++];
    }
    for (; at < in->rank; at++)
        if (in->dims[at] != 1)
            return false;
    *v = made;
    return true;
}

/* A Reshape whose shape says 0 hands those leading dims through, whatever they are. */
static bool reshape(const sn_node *n, const sn_type *in, const sn_type *out, sn_view *v)
{
    int64_t room[SN_MAX_RANK], count = 0;
    const sn_dim *shape = known_ints(input(n, 1), room, &count);
    int kept = 0;
    if (shape && count == out->rank && !sn_node_attr_int(n, "allowzero", 0))
        while (kept < count && kept < in->rank && shape[kept] == 0)
            kept++;
    if (kept == 0)
        return regroup(out, v);
    sn_view rest = {.rank = v->rank - kept, .first = v->first, .scale = v->scale};
    for (int i = kept; i < v->rank; i++)
        rest.axis[i - kept] = v->axis[i];
    const sn_type tail = {.rank = out->rank - kept, .dims = out->dims + kept};
    if (out->rank > SN_VIEW_RANK || !regroup(&tail, &rest))
        return false;
    for (int i = 0; i < rest.rank; i++)
        v->axis[kept + i] = rest.axis[i];
    v->rank = out->rank;
    v->first = rest.first;
    return true;
}

/* ------------------------------------------------------------------ other steps */
static bool transpose(const sn_node *n, sn_view *v)
{
    const sn_attr *a = sn_node_attr(n, "perm");
    const sn_view old = *v;
    unsigned seen = 0;
    if (a && (a->kind != SN_ATTR_INTS || a->n != (size_t)v->rank))
        return false;
    for (int i = 0; i < v->rank; i++) {
        const int64_t from = a ? a->ints[i] : v->rank - 1 - i;
        if (from < 0 || from >= v->rank || (seen >> from & 1u))
            return false;
        seen |= 1u << from;
        v->axis[i] = old.axis[from];
    }
    return true;
}

/* Elements start … start + size - 1 of an axis; the source's last one, or all of it from 0 on. */
static bool cut(sn_view *v, int axis, int source_rank, int64_t start, sn_dim size)
{
    if (v->axis[axis].n != 1)
        return v->axis[axis].n == 0 && start == 0 && size == 1;
    sn_digit *d = &v->axis[axis].digit[0];
    if (d->axis != source_rank - 1 || d->maybe_more || start < 0 || !sn_dim_known(size) ||
        !sn_dim_known(d->size) || size < 1 || size > d->size || start > d->size - size)
        return false;
    v->first += start * d->inner;
    d->size = size;
    if (size == 1)
        v->axis[axis].n = 0;
    return true;
}

static bool split(const sn_node *n, const sn_value *out, int source_rank, sn_view *v)
{
    int64_t axis = sn_node_attr_int(n, "axis", 0), start = 0;
    axis += axis < 0 ? v->rank : 0;
    if (axis < 0 || axis >= v->rank)
        return false;
    for (uint32_t o = 0; o < n->n_out && n->out[o] != out; o++) {
        const sn_type *t = n->out[o] ? &n->out[o]->fact.type : NULL;
        if (!t || t->rank != v->rank || !sn_dim_known(t->dims[axis]))
            return false;
        start += t->dims[axis];
    }
    return cut(v, (int)axis, source_rank, start, out->fact.type.dims[axis]);
}

static bool slice(const sn_node *n, const sn_type *in, const sn_type *out, int source_rank,
                  sn_view *v)
{
    int64_t r0[SN_MAX_RANK], r1[SN_MAX_RANK], r2[SN_MAX_RANK];
    int64_t n_starts = 0, n_axes = 0, n_steps = 0;
    const sn_dim *starts = known_ints(input(n, 1), r0, &n_starts);
    const sn_dim *axes = known_ints(input(n, 3), r1, &n_axes);
    const sn_dim *steps = known_ints(input(n, 4), r2, &n_steps);
    if (n->opset < 10 || !starts || (input(n, 3) && !axes) || (input(n, 4) && !steps))
        return false;
    for (int64_t i = 0; i < n_starts; i++) {
        int64_t axis = axes && i < n_axes ? axes[i] : i;
        axis += axis < 0 ? v->rank : 0;
        if (axis < 0 || axis >= v->rank || (steps && (i >= n_steps || steps[i] != 1)) ||
            (axes && i >= n_axes) || !sn_dim_known(starts[i]) || !sn_dim_known(in->dims[axis]))
            return false;
        int64_t start = starts[i] < 0 ? starts[i] + in->dims[axis] : starts[i];
        start = start < 0 ? 0 : start;
        if (!cut(v, (int)axis, source_rank, start, out->dims[axis]))
            return false;
    }
    return true;
}

static bool gather(const sn_node *n, const sn_type *in, int source_rank, sn_view *v)
{
    int64_t axis = sn_node_attr_int(n, "axis", 0), room[SN_MAX_RANK], count = 0;
    const sn_value *at = input(n, 1);
    const sn_dim *index = known_ints(at, room, &count);
    axis += axis < 0 ? v->rank : 0;
    if (!index || count != 1 || at->fact.type.rank != 0 || axis < 0 || axis >= v->rank ||
        !sn_dim_known(index[0]) || !sn_dim_known(in->dims[axis]))
        return false;
    const int64_t i = index[0] < 0 ? index[0] + in->dims[axis] : index[0];
    if (!cut(v, (int)axis, source_rank, i, 1))
        return false;
    for (int k = (int)axis; k + 1 < v->rank; k++)
        v->axis[k] = v->axis[k + 1];
    v->rank--;
    return true;
}

/* Dims of 1 become n: the same elements n times. */
static bool expand(const sn_type *in, const sn_type *out, sn_view *v)
{
    const int more = out->rank - in->rank;
    const sn_view old = *v;
    if (more < 0 || out->rank > SN_VIEW_RANK)
        return false;
    v->rank = out->rank;
    for (int i = 0; i < out->rank; i++) {
        const sn_dim from = i < more ? 1 : in->dims[i - more], to = out->dims[i];
        v->axis[i].n = 0;
        if (from == 1) {
            if (!sn_dim_known(to) || !push(v, i, (sn_digit){-1, 0, to, false}))
                return false;
            continue;
        }
        v->axis[i] = old.axis[i - more];
        if (sn_dim_known(from) || sn_dim_same(from, to))
            continue;
        if (v->axis[i].n != 1) /* it may be 1 while running, and become more */
            return false;
        v->axis[i].digit[0].maybe_more = true;
    }
    return true;
}

static bool tile(const sn_node *n, const sn_type *in, const sn_type *out, sn_view *v)
{
    int64_t room[SN_MAX_RANK], count = 0;
    const sn_dim *times = known_ints(input(n, 1), room, &count);
    if (!times || count != in->rank || out->rank != in->rank)
        return false;
    for (int i = 0; i < in->rank; i++) {
        if (times[i] == 1)
            continue;
        if (in->dims[i] != 1 || !sn_dim_known(times[i]))
            return false;
        v->axis[i].n = 0;
        push(v, i, (sn_digit){-1, 0, times[i], false});
    }
    return true;
}

/* ------------------------------------------------------------------ chains */
bool sn_view_begin(const sn_value *v, sn_view *out)
{
    const sn_type *t = &v->fact.type;
    memset(out, 0, sizeof *out);
    if (t->kind != SN_KIND_TENSOR || t->rank < 1 || t->rank > SN_VIEW_RANK)
        return false;
    out->rank = t->rank;
    out->scale = 1;
    for (int i = 0; i < t->rank; i++)
        push(out, i, (sn_digit){i, 1, t->dims[i], false});
    return true;
}

/* `source_rank`: of the value the view is of. */
static bool step(const sn_node *n, const sn_value *in, const sn_value *out, int source_rank,
                 sn_view *v)
{
    const sn_type *a = &in->fact.type, *b = &out->fact.type;
    double factor;
    if (b->kind != SN_KIND_TENSOR || a->rank != v->rank || b->rank < 0)
        return false;
    if (sn_node_is(n, "Reshape"))
        return reshape(n, a, b, v);
    if (sn_node_is(n, "Squeeze") || sn_node_is(n, "Unsqueeze"))
        return keep_order(a, b, v);
    if (sn_node_is(n, "Flatten"))
        return regroup(b, v);
    if (sn_node_is(n, "Transpose"))
        return transpose(n, v);
    if (sn_node_is(n, "Split"))
        return split(n, out, source_rank, v);
    if (sn_node_is(n, "Slice"))
        return slice(n, a, b, source_rank, v);
    if (sn_node_is(n, "Gather"))
        return gather(n, a, source_rank, v);
    if (sn_node_is(n, "Expand"))
        return expand(a, b, v);
    if (sn_node_is(n, "Tile"))
        return tile(n, a, b, v);
    if (sn_node_is(n, "Identity"))
        return true;
    if (sn_node_scaled_input(n, &factor) == in) {
        v->scale *= factor;
        return true;
    }
    return false;
}

bool sn_view_step(const sn_node *n, const sn_value *in, const sn_value *out, sn_view *view)
{
    return step(n, in, out, INT32_MAX, view);
}

/* The value a node of a chain takes apart. */
static sn_value *chain_input(const sn_node *n)
{
    static const char *const ops[] = {"Reshape",   "Squeeze", "Unsqueeze", "Flatten",
                                      "Transpose", "Split",   "Slice",     "Gather",
                                      "Expand",    "Tile",    "Identity"};
    double factor;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (sn_node_is(n, ops[i]))
            return n->n_in ? n->in[0].value : NULL;
    return sn_node_scaled_input(n, &factor);
}

void sn_view_find_chain(sn_value *v, sn_view_chain *c)
{
    c->n = 0;
    c->source[0] = v;
    while (c->n < SN_VIEW_STEPS && v->producer) {
        sn_value *from = chain_input(v->producer);
        if (!from || !sn_value_is_dtype(from, v->fact.type.dtype))
            return;
        c->node[c->n++] = v->producer;
        c->source[c->n] = v = from;
    }
}

bool sn_view_follow(const sn_view_chain *c, int k, sn_view *out)
{
    if (!sn_view_begin(c->source[k], out))
        return false;
    const int source_rank = out->rank;
    for (int i = k; i-- > 0;)
        if (!step(c->node[i], c->source[i + 1], c->source[i], source_rank, out))
            return false;
    return true;
}
