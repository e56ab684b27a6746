/* SPDX-License-Identifier: Apache-2.0 */
/* Axes as lists of atoms. */
#include "passes/axes.h"

#include <string.h>

bool sn_transpose_perm(const sn_node *n, int rank, int64_t *perm)
{
    const sn_attr *a = sn_node_attr(n, "perm");
    if (rank < 0 || rank > SN_MAX_RANK || (a && (a->kind != SN_ATTR_INTS || a->n != (size_t)rank)))
        return false;
    for (int i = 0; i < rank; i++) {
        perm[i] = a ? a->ints[i] : rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= rank)
            return false;
    }
    return true;
}

bool sn_moves_axes(const sn_node *n)
{
    return n->n_in >= 1 && n->n_out == 1 && n->in[0].value && n->out[0] &&
           (sn_node_is(n, "Reshape") || sn_node_is(n, "Transpose") || sn_node_is(n, "Squeeze") ||
            sn_node_is(n, "Unsqueeze") || sn_node_is(n, "Flatten"));
}

bool sn_atoms_begin(sn_atoms *a, const sn_type *t)
{
    memset(a, 0, sizeof *a);
    if (t->kind != SN_KIND_TENSOR || t->rank < 0 || t->rank > SN_MAX_RANK)
        return false;
    a->from.rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] == 0)
            return false;
        if (t->dims[i] == 1)
            continue;
        a->from.axis[i].n = 1;
        a->from.axis[i].atom[0] = (uint8_t)a->n;
        a->size[a->n++] = t->dims[i];
    }
    a->to = a->from;
    return true;
}

/* ------------------------------------------------------------------ splitting */

static void insert_after(sn_axes *s, uint8_t atom, uint8_t added)
{
    for (int i = 0; i < s->rank; i++) {
        sn_axis *x = &s->axis[i];
        for (int k = 0; k < x->n; k++)
            if (x->atom[k] == atom) {
                memmove(x->atom + k + 2, x->atom + k + 1, (size_t)(x->n - k - 1));
                x->atom[k + 1] = added;
                x->n++;
                return;
            }
    }
}

/* Atom `atom` becomes two, the first of `first` elements; the second one, or -1. */
static int split(sn_atoms *a, uint8_t atom, int64_t first)
{
    if (a->n == SN_MAX_ATOMS)
        return -1;
    const uint8_t added = (uint8_t)a->n++;
    a->size[added] = a->size[atom] / first;
    a->size[atom] = first;
    insert_after(&a->from, atom, added);
    insert_after(&a->to, atom, added);
    return added;
}

/* ------------------------------------------------------------------ Reshape */

typedef struct sequence { /* all atoms of a tensor in order, taken from both ends */
    uint8_t atom[SN_MAX_ATOMS];
    int first, end;
} sequence;

static sequence flatten(const sn_axes *s)
{
    sequence q = {.first = 0};
    for (int i = 0; i < s->rank; i++)
        for (int k = 0; k < s->axis[i].n; k++)
            q.atom[q.end++] = s->axis[i].atom[k];
    return q;
}

/* An axis of `size` elements from the left or the right end of what is left. */
static bool take(sn_atoms *a, sequence *q, sn_dim size, bool left, sn_axis *x)
{
    sn_dim need = size;
    uint8_t taken[SN_MAX_ATOMS];
    int n = 0;
    while (need != 1) {
        if (q->first == q->end)
            return false;
        const uint8_t atom = q->atom[left ? q->first : q->end - 1];
        const sn_dim have = a->size[atom];
        uint8_t piece = atom;
        if (sn_dim_same(have, need)) {
            need = 1;
        } else if (!sn_dim_known(have) || !sn_dim_known(need)) {
            return false;
        } else if (need % have == 0) {
            need /= have;
        } else if (have % need == 0) {
            /* The part that is not taken stays where it is in the sequence. */
            const int added = split(a, atom, left ? need : have / need);
            if (added < 0)
                return false;
            piece = left ? atom : (uint8_t)added;
            q->atom[left ? q->first : q->end - 1] = left ? (uint8_t)added : atom;
            taken[n++] = piece;
            break;
        } else {
            return false;
        }
        taken[n++] = piece;
        q->first += left;
        q->end -= !left;
    }
    x->n = n;
    for (int k = 0; k < n; k++)
        x->atom[k] = taken[left ? k : n - 1 - k];
    return true;
}

/* The size of an axis if it is one number or one symbol. */
static sn_dim axis_size(const sn_atoms *a, const sn_axis *x)
{
    sn_dim size = 1;
    for (int k = 0; k < x->n; k++)
        size = sn_dim_mul(size, a->size[x->atom[k]]);
    return size;
}

static bool reshape_dims(const sn_atoms *a, const sn_node *n, sn_dim *dims, int *rank)
{
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    if (!t || t->dtype != SONDE_DTYPE_I64 || t->rank != 1 || t->dims[0] > SN_MAX_RANK ||
        sn_node_attr_int(n, "allowzero", 0))
        return false;
    *rank = (int)t->dims[0];
    sn_tensor_read(t, 0, *rank, dims);
    for (int i = 0; i < *rank; i++) {
        if (dims[i] == 0 && i < a->to.rank)
            dims[i] = axis_size(a, &a->to.axis[i]);
        else if (dims[i] == -1)
            dims[i] = SN_DIM_UNKNOWN;
        else if (dims[i] <= 0)
            return false;
    }
    return true;
}

static bool apply_reshape(sn_atoms *a, const sn_node *n)
{
    sn_dim dims[SN_MAX_RANK];
    sn_axes made = {.rank = 0};
    if (!reshape_dims(a, n, dims, &made.rank))
        return false;
    sequence q = flatten(&a->to);
    int i = 0, k = made.rank - 1;
    while (i < made.rank && dims[i] != SN_DIM_UNKNOWN && take(a, &q, dims[i], true, &made.axis[i]))
        i++;
    while (k > i && dims[k] != SN_DIM_UNKNOWN && take(a, &q, dims[k], false, &made.axis[k]))
        k--;
    if (k > i || (i == made.rank && q.first != q.end))
        return false;
    for (; i < made.rank && q.first < q.end; q.first++)
        made.axis[i].atom[made.axis[i].n++] = q.atom[q.first];
    a->to = made;
    return true;
}

/* ------------------------------------------------------------------ the others */

/* The axes of Squeeze or Unsqueeze as flags over `rank`. */
static bool read_axes(const sn_node *n, int rank, bool *is_axis)
{
    const sn_attr *attr = sn_node_attr(n, "axes");
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    int64_t axes[SN_MAX_RANK], count = 0;
    if (attr && attr->kind == SN_ATTR_INTS && attr->n <= SN_MAX_RANK) {
        count = (int64_t)attr->n;
        memcpy(axes, attr->ints, attr->n * sizeof *axes);
    } else if (t && t->dtype == SONDE_DTYPE_I64 && sn_tensor_count(t) <= SN_MAX_RANK) {
        count = sn_tensor_count(t);
        sn_tensor_read(t, 0, count, axes);
    }
    memset(is_axis, 0, SN_MAX_RANK * sizeof *is_axis);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (x < 0 || x >= rank || is_axis[x])
            return false;
        is_axis[x] = true;
    }
    return count > 0;
}

static bool apply_squeeze(sn_atoms *a, const sn_node *n)
{
    bool gone[SN_MAX_RANK];
    sn_axes made = {.rank = 0};
    if (!read_axes(n, a->to.rank, gone))
        return false;
    for (int i = 0; i < a->to.rank; i++) {
        if (!gone[i])
            made.axis[made.rank++] = a->to.axis[i];
        else if (a->to.axis[i].n)
            return false;
    }
    a->to = made;
    return true;
}

static bool apply_unsqueeze(sn_atoms *a, const sn_node *n)
{
    bool added[SN_MAX_RANK];
    const int rank = n->out[0]->fact.type.rank;
    sn_axes made = {.rank = rank};
    if (rank < 0 || rank > SN_MAX_RANK || !read_axes(n, rank, added))
        return false;
    int k = 0;
    for (int i = 0; i < rank; i++)
        if (!added[i] && k < a->to.rank)
            made.axis[i] = a->to.axis[k++];
    a->to = made;
    return k == n->in[0].value->fact.type.rank;
}

/* The axes before `axis` become one, those behind it another. */
static bool apply_flatten(sn_atoms *a, const sn_node *n)
{
    int64_t axis = sn_node_attr_int(n, "axis", 1);
    sn_axes made = {.rank = 2};
    axis += axis < 0 ? a->to.rank : 0;
    if (axis < 0 || axis > a->to.rank)
        return false;
    for (int i = 0; i < a->to.rank; i++) {
        sn_axis *x = &made.axis[i >= axis];
        for (int k = 0; k < a->to.axis[i].n; k++)
            x->atom[x->n++] = a->to.axis[i].atom[k];
    }
    a->to = made;
    return true;
}

bool sn_atoms_apply(sn_atoms *a, const sn_node *n)
{
    int64_t perm[SN_MAX_RANK];
    if (!sn_moves_axes(n))
        return false;
    if (sn_node_is(n, "Reshape"))
        return apply_reshape(a, n);
    if (sn_node_is(n, "Squeeze"))
        return apply_squeeze(a, n);
    if (sn_node_is(n, "Unsqueeze"))
        return apply_unsqueeze(a, n);
    if (sn_node_is(n, "Flatten"))
        return apply_flatten(a, n);
    if (!sn_transpose_perm(n, a->to.rank, perm))
        return false;
    const sn_axes old = a->to;
    for (int i = 0; i < old.rank; i++)
        a->to.axis[i] = old.axis[perm[i]];
    return true;
}

/* ------------------------------------------------------------------ joining */

static int place_of(const sn_axis *x, uint8_t atom)
{
    for (int k = 0; k < x->n; k++)
        if (x->atom[k] == atom)
            return k;
    return -1;
}

/* Does `second` follow `first` in one axis of s? */
static bool follows(const sn_axes *s, uint8_t first, uint8_t second)
{
    for (int i = 0; i < s->rank; i++) {
        const int k = place_of(&s->axis[i], first);
        if (k >= 0)
            return k + 1 < s->axis[i].n && s->axis[i].atom[k + 1] == second;
    }
    return false;
}

static void drop(sn_axes *s, uint8_t atom)
{
    for (int i = 0; i < s->rank; i++) {
        sn_axis *x = &s->axis[i];
        const int k = place_of(x, atom);
        if (k < 0)
            continue;
        memmove(x->atom + k, x->atom + k + 1, (size_t)(x->n - k - 1));
        x->n--;
        return;
    }
}

void sn_atoms_join(sn_atoms *a)
{
    for (int i = 0; i < a->from.rank; i++) {
        sn_axis *x = &a->from.axis[i];
        for (int k = 0; k + 1 < x->n;) {
            const uint8_t first = x->atom[k], second = x->atom[k + 1];
            if (!sn_dim_known(a->size[first]) || !sn_dim_known(a->size[second]) ||
                !follows(&a->to, first, second)) {
                k++;
                continue;
            }
            a->size[first] *= a->size[second];
            drop(&a->to, second);
            drop(&a->from, second);
        }
    }
}
