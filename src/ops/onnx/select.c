/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose output size only the data tells: Compress, NonZero, Unique. They count first,
 * allocate exactly, then write. A caller's memory may change in between: what is read the second
 * time never writes past what was counted, and what it lacks is the first entry. */
#include <string.h>

#include "ops/shared/data_movement.h"

typedef struct select_params {
    bool has_axis;
    int64_t axis, sorted;
} select_params;

static sonde_status prepare_select(sn_prep *p)
{
    select_params *r = p->params;
    r->has_axis = sn_node_attr(p->node, "axis") != NULL;
    SN_TRY(sn_prep_int(p, "sorted", 1, &r->sorted));
    return sn_prep_int(p, "axis", 0, &r->axis);
}

/* The input seen as [outer, n, inner] around the axis, or as n single elements without one. */
typedef struct lanes {
    int64_t outer, n, inner;
} lanes;

static bool split_lanes(const select_params *p, const int64_t *dims, int rank, lanes *l)
{
    int axis;
    *l = (lanes){1, 1, 1};
    if (p->has_axis && !sn_move_axis(p->axis, rank, &axis))
        return false;
    for (int i = 0; i < rank; i++)
        *(!p->has_axis || i == axis ? &l->n : i < axis ? &l->outer : &l->inner) *= dims[i];
    return true;
}

/* Output dims with `count` on the axis (or alone). */
static int picked_dims(const select_params *p, const sn_tensor *x, int64_t count, int64_t *dims)
{
    int axis = 0;
    if (!p->has_axis || !sn_move_axis(p->axis, x->rank, &axis)) {
        dims[0] = count;
        return 1;
    }
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[axis] = count;
    return x->rank;
}

/* Infers an output that is the input with an unknown number of entries on the axis. */
static sonde_status infer_picked(sn_infer *c, uint32_t o)
{
    const select_params *p = c->params;
    sn_move_type x;
    sn_dim dims[SN_MAX_RANK] = {SN_DIM_UNKNOWN};
    int axis;
    SN_TRY(sn_move_in(c, 0, &x));
    if (!p->has_axis)
        return sn_move_out(c, o, x.dtype, dims, 1);
    if (x.rank < 0)
        return sn_move_out_rank(c, o, x.dtype, -1);
    SN_TRY(sn_infer_axis(c, p->axis, x.rank, false, &axis));
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    dims[axis] = SN_DIM_UNKNOWN;
    return sn_move_out(c, o, x.dtype, dims, x.rank);
}

/* Row r of y (of `count`) on the axis = entry `from` of x. */
static void copy_entry(const lanes *l, const sn_tensor *x, sn_tensor *y, int64_t count, int64_t r,
                       int64_t from)
{
    size_t elem = sn_dtype_bytes(x->dtype), row = (size_t)l->inner * elem;
    for (int64_t o = 0; o < l->outer; o++)
        memcpy((char *)y->data + (size_t)(o * count + r) * row,
               (const char *)x->data + (size_t)(o * l->n + from) * row, row);
}

/* ------------------------------------------------------------------ Compress */
static sonde_status infer_compress(sn_infer *c)
{
    return infer_picked(c, 0);
}

static sonde_status run_compress(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0), *condition = sn_in(s, f, 1);
    const uint8_t *keep = condition->data;
    lanes l;
    int64_t count = 0, dims[SN_MAX_RANK], n = sn_tensor_count(condition);
    if (condition->dtype != SONDE_DTYPE_BOOL)
        return sn_run_fail(s, f, "the condition is %s, expected bool",
                           sn_dtype_name(condition->dtype));
    if (!split_lanes(s->params, x->dims, x->rank, &l))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    if (n > l.n)
        n = l.n;
    for (int64_t i = 0; i < n; i++)
        count += keep[i] != 0;
    int rank = picked_dims(s->params, x, count, dims);
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, x->dtype, dims, rank, &y));
    if (!y || sn_tensor_count(y) == 0)
        return SONDE_OK;
    int64_t r = 0;
    for (int64_t i = 0; i < n && r < count; i++)
        if (keep[i])
            copy_entry(&l, x, y, count, r++, i);
    for (; r < count; r++) /* never, unless the condition has changed */
        copy_entry(&l, x, y, count, r, 0);
    return sn_move_own(s, f, 0);
}

const sn_op sn_op_compress[] = {
    {SN_MOVE_HEAD("Compress", 9, 0, 2, 2, 1, 1), .flags = SN_OP_DATA_DEPENDENT,
     .params_size = sizeof(select_params), .prepare = prepare_select, .infer = infer_compress,
     .run = run_compress, .types = SN_MOVE_ALL_TYPES},
    {.name = NULL}};

/* ------------------------------------------------------------------ NonZero */
static sonde_status infer_nonzero(sn_infer *c)
{
    sn_move_type x;
    SN_TRY(sn_move_in(c, 0, &x));
    sn_dim dims[2] = {x.rank < 0 ? SN_DIM_UNKNOWN : x.rank, SN_DIM_UNKNOWN};
    return sn_move_out(c, 0, SONDE_DTYPE_I64, dims, 2);
}

static sonde_status run_nonzero(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    int64_t n = sn_tensor_count(x), count = 0;
    for (int64_t i = 0; i < n; i++)
        count += !sn_elem_is_zero(x->dtype, x->data, i);
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, SONDE_DTYPE_I64, (int64_t[2]){x->rank, count}, 2, &y));
    if (!y || sn_tensor_count(y) == 0)
        return SONDE_OK;
    int64_t *out = y->data, at[SN_MAX_RANK] = {0}, r = 0;
    for (int64_t i = 0; i < n && r < count; i++) {
        if (!sn_elem_is_zero(x->dtype, x->data, i)) {
            for (int k = 0; k < x->rank; k++)
                out[k * count + r] = at[k];
            r++;
        }
        for (int k = x->rank - 1; k >= 0 && ++at[k] == x->dims[k]; k--)
            at[k] = 0;
    }
    for (; r < count; r++) /* never, unless the input has changed */
        for (int k = 0; k < x->rank; k++)
            out[k * count + r] = 0;
    return SONDE_OK;
}

const sn_op sn_op_non_zero[] = {{SN_MOVE_HEAD("NonZero", 9, 0, 1, 1, 1, 1),
                                 .flags = SN_OP_DATA_DEPENDENT, .infer = infer_nonzero,
                                 .run = run_nonzero, .types = SN_MOVE_ALL_TYPES},
                                {.name = NULL}};

/* ------------------------------------------------------------------ Unique */
static sonde_status infer_unique(sn_infer *c)
{
    const select_params *p = c->params;
    sn_move_type x;
    sn_dim n = SN_DIM_UNKNOWN, whole = 1;
    int axis;
    SN_TRY(sn_move_in(c, 0, &x));
    SN_TRY(infer_picked(c, 0));
    if (x.rank < 0) {
        whole = SN_DIM_UNKNOWN;
    } else if (p->has_axis) {
        SN_TRY(sn_infer_axis(c, p->axis, x.rank, false, &axis));
        whole = x.dims[axis];
    } else {
        for (int i = 0; i < x.rank; i++)
            whole = sn_move_mul(whole, x.dims[i]);
    }
    SN_TRY(sn_move_out(c, 1, SONDE_DTYPE_I64, &n, 1));
    SN_TRY(sn_move_out(c, 2, SONDE_DTYPE_I64, &whole, 1));
    return sn_move_out(c, 3, SONDE_DTYPE_I64, &n, 1);
}

/* Four tables of one entry per item: the sorted order, merge space, group of an item, new number of
 * a group. */
static sonde_status bind_unique(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type;
    lanes l;
    if (!split_lanes(b->params, x->dims, x->rank, &l))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the axis is outside an input of rank %d",
                            x->rank);
    if (!sn_size_mul((size_t)l.n, 4 * sizeof(int64_t), &b->workspace_bytes))
        return sn_fail_memory(b->err, SIZE_MAX);
    return SONDE_OK;
}

static int compare_elements(const sn_tensor *x, int64_t a, int64_t b)
{
    if (x->dtype == SONDE_DTYPE_STRING) {
        const sonde_string *s = x->data;
        size_t n = s[a].size < s[b].size ? s[a].size : s[b].size;
        int r = n ? memcmp(s[a].data, s[b].data, n) : 0;
        return r ? r : (s[a].size > s[b].size) - (s[a].size < s[b].size);
    }
    if (x->dtype == SONDE_DTYPE_C64 || x->dtype == SONDE_DTYPE_C128) {
        sn_dtype part = x->dtype == SONDE_DTYPE_C64 ? SONDE_DTYPE_F32 : SONDE_DTYPE_F64;
        for (int k = 0; k < 2; k++) {
            uint64_t ka = sn_elem_key(part, x->data, 2 * a + k),
                     kb = sn_elem_key(part, x->data, 2 * b + k);
            if (ka != kb)
                return ka < kb ? -1 : 1;
        }
        return 0;
    }
    uint64_t ka = sn_elem_key(x->dtype, x->data, a), kb = sn_elem_key(x->dtype, x->data, b);
    return (ka > kb) - (ka < kb);
}

static int compare_entries(const sn_tensor *x, const lanes *l, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < l->outer; o++)
        for (int64_t i = 0; i < l->inner; i++) {
            int r =
                compare_elements(x, (o * l->n + a) * l->inner + i, (o * l->n + b) * l->inner + i);
            if (r)
                return r;
        }
    return 0;
}

/* Stable bottom-up merge sort of entry numbers. */
static int64_t *sort_entries(const sn_tensor *x, const lanes *l, int64_t *order, int64_t *space)
{
    for (int64_t i = 0; i < l->n; i++)
        order[i] = i;
    for (int64_t width = 1; width < l->n; width *= 2) {
        for (int64_t lo = 0; lo < l->n; lo += 2 * width) {
            int64_t mid = lo + width < l->n ? lo + width : l->n,
                    hi = mid + width < l->n ? mid + width : l->n;
            for (int64_t i = lo, j = mid, k = lo; k < hi; k++) {
                bool left = i < mid && (j >= hi || compare_entries(x, l, order[i], order[j]) <= 0);
                space[k] = left ? order[i++] : order[j++];
            }
        }
        int64_t *swap = order;
        order = space;
        space = swap;
    }
    return order;
}

/* Numbers the groups of equal entries: by value when sorted, else by first appearance. */
static int64_t number_groups(const sn_tensor *x, const lanes *l, const int64_t *order,
                             int64_t *group, int64_t *number, bool sorted)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < l->n; i++) {
        if (i > 0 && compare_entries(x, l, order[i - 1], order[i]) != 0)
            groups++;
        group[order[i]] = groups;
    }
    groups += l->n > 0;
    if (sorted)
        return groups;
    memset(number, 0xff, (size_t)groups * sizeof *number);
    for (int64_t i = 0, next = 0; i < l->n; i++) {
        if (number[group[i]] < 0)
            number[group[i]] = next++;
        group[i] = number[group[i]];
    }
    return groups;
}

static sonde_status run_unique(const sn_step *s, sn_frame *f)
{
    const select_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    lanes l;
    int64_t dims[SN_MAX_RANK];
    if (!split_lanes(p, x->dims, x->rank, &l))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    int64_t none; /* an empty input has no tables */
    int64_t *tables = l.n ? (int64_t *)(void *)f->workspace : &none;
    int64_t *group = tables + 2 * l.n, *number = tables + 3 * l.n;
    const int64_t *order = sort_entries(x, &l, tables, tables + l.n);
    int64_t groups = number_groups(x, &l, order, group, number, p->sorted != 0);
    int rank = picked_dims(p, x, groups, dims);
    sn_tensor *y, *first, *inverse, *counts;
    SN_TRY(sn_run_output(s, f, 0, x->dtype, dims, rank, &y));
    SN_TRY(sn_run_output(s, f, 1, SONDE_DTYPE_I64, &groups, 1, &first));
    SN_TRY(sn_run_output(s, f, 2, SONDE_DTYPE_I64, &l.n, 1, &inverse));
    SN_TRY(sn_run_output(s, f, 3, SONDE_DTYPE_I64, &groups, 1, &counts));
    if (inverse && l.n)
        memcpy(inverse->data, group, (size_t)l.n * sizeof(int64_t));
    if (counts && groups)
        memset(counts->data, 0, (size_t)groups * sizeof(int64_t));
    for (int64_t i = 0; i < l.n && counts; i++)
        ((int64_t *)counts->data)[group[i]]++;
    for (int64_t i = l.n - 1; i >= 0; i--) /* backwards: the first appearance is written last */
        number[group[i]] = i;
    for (int64_t g = 0; g < groups; g++) {
        if (first)
            ((int64_t *)first->data)[g] = number[g];
        if (y)
            copy_entry(&l, x, y, groups, g, number[g]);
    }
    return sn_move_own(s, f, 0);
}

const sn_op sn_op_unique[] = {{SN_MOVE_HEAD("Unique", 11, 0, 1, 1, 1, 4),
                               .flags = SN_OP_DATA_DEPENDENT, .params_size = sizeof(select_params),
                               .prepare = prepare_select, .infer = infer_unique,
                               .bind = bind_unique, .run = run_unique, .types = SN_MOVE_ALL_TYPES},
                              {.name = NULL}};
