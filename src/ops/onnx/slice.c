/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: a window with steps, possibly negative, of any axes. Starts and ends are clamped to the
 * axis; inference and running share that arithmetic. Images in blocks are cut along channels alone,
 * or along other axes alone. */
#include <string.h>

#include "ops/shared/data_movement.h"
#include "ops/shared/layouts.h"

typedef struct slice_params {
    bool from_attr; /* until opset 9 */
    const int64_t *starts, *ends, *axes;
    size_t n, n_axes;
} slice_params;

/* The elements first, first + step, … of an axis: how many, and where they begin. A start before
 * the axis means its first element for either direction, as the operator's text says (Python
 * differs for negative steps). */
static int64_t window(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    *first = 0;
    if (dim == 0)
        return 0;
    if (start < 0)
        start = start < -dim ? 0 : start + dim;
    if (end < 0)
        end = end < -dim ? low : end + dim;
    start = start > high ? high : start;
    end = end > high ? high : end;
    *first = start;
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    /* -(step + 1) cannot overflow, and a step beyond the axis takes one element. */
    uint64_t back = (uint64_t)(-(step + 1)) + 1;
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / back) + 1 : 0;
}

static sonde_status prepare_slice_1(sn_prep *p)
{
    slice_params *r = p->params;
    size_t n_ends;
    r->from_attr = true;
    SN_TRY(sn_prep_ints(p, "starts", &r->starts, &r->n));
    SN_TRY(sn_prep_ints(p, "ends", &r->ends, &n_ends));
    SN_TRY(sn_prep_ints(p, "axes", &r->axes, &r->n_axes));
    if (n_ends != r->n || (r->axes && r->n_axes != r->n))
        return sn_prep_fail(p, "attributes 'starts', 'ends' and 'axes' differ in length");
    return SONDE_OK;
}

/* What is said of each axis; entries may be unknown. */
typedef struct slice_lists {
    const sn_dim *starts, *ends, *axes, *steps;
    int64_t n; /* -1: not even the number is known */
} slice_lists;

static sonde_status get_lists(sn_infer *c, slice_lists *l, bool *axes_known)
{
    const slice_params *r = c->params;
    *axes_known = true;
    if (r->from_attr) {
        *l = (slice_lists){r->starts, r->ends, r->axes, NULL, (int64_t)r->n};
        return SONDE_OK;
    }
    const sn_dim **lists[4] = {&l->starts, &l->ends, &l->axes, &l->steps};
    l->n = -1;
    for (uint32_t i = 0; i < 4; i++) {
        int64_t n;
        SN_TRY(sn_infer_list(c, i + 1, lists[i], &n));
        bool absent = i >= 2 && !sn_infer_has(c, i + 1);
        if (absent || n < 0)
            continue;
        if (l->n >= 0 && n != l->n)
            return sn_infer_fail(c, "input %u has %lld entries, expected %lld", i + 1, (long long)n,
                                 (long long)l->n);
        l->n = n;
    }
    if (sn_infer_has(c, 3) && (!l->axes || !sn_dims_known(l->axes, l->n)))
        *axes_known = false;
    return SONDE_OK;
}

static sn_dim entry(const sn_dim *list, int64_t i)
{
    return list ? list[i] : SN_DIM_UNKNOWN;
}

static sonde_status slice_dim(sn_infer *c, sn_dim dim, sn_dim start, sn_dim end, sn_dim step,
                              sn_dim *out)
{
    int64_t first;
    *out = SN_DIM_UNKNOWN;
    if (step == 0)
        return sn_infer_fail(c, "a step is zero");
    if (sn_dim_known(dim) && sn_dim_known(start) && sn_dim_known(end) && sn_dim_known(step))
        *out = window(dim, start, end, step, &first);
    else if (start == 0 && step == 1 && (sn_dim_same(end, dim) || end >= INT32_MAX))
        *out = dim; /* exporters write "to the end" as a huge number */
    return SONDE_OK;
}

static sonde_status infer_slice(sn_infer *c)
{
    sn_input_type x;
    slice_lists l = {0};
    bool axes_known, done[SN_MAX_RANK] = {false};
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(get_lists(c, &l, &axes_known));
    if (x.rank < 0 || l.n < 0 || !axes_known)
        return sn_infer_rank(c, 0, x.dtype, x.rank);
    if (l.n > x.rank)
        return sn_infer_fail(c, "%lld slices of an input of rank %d", (long long)l.n, x.rank);
    sn_dim dims[SN_MAX_RANK];
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    bool has_steps = !((const slice_params *)c->params)->from_attr && sn_infer_has(c, 4);
    for (int64_t i = 0; i < l.n; i++) {
        int a;
        SN_TRY(sn_infer_axis(c, l.axes ? l.axes[i] : i, x.rank, false, &a));
        if (done[a])
            return sn_infer_fail(c, "axis %d is given twice", a);
        done[a] = true;
        SN_TRY(slice_dim(c, x.dims[a], entry(l.starts, i), entry(l.ends, i),
                         has_steps ? entry(l.steps, i) : 1, &dims[a]));
    }
    SN_TRY(sn_infer_bounded(c, 0, x.dtype, dims, x.rank));
    const sn_dim *ints;
    int64_t n_ints, first = 0, step = 1;
    SN_TRY(sn_infer_ints(c, 0, &ints, &n_ints));
    if (!ints || x.rank != 1 || !sn_dim_known(dims[0]) || dims[0] > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    if (l.n == 1) {
        step = has_steps ? entry(l.steps, 0) : 1;
        if (dims[0] == n_ints && step == 1)
            first = 0;
        else if (!sn_dim_known(entry(l.starts, 0)) || !sn_dim_known(entry(l.ends, 0)))
            return SONDE_OK;
        else
            window(n_ints, l.starts[0], l.ends[0], step, &first);
    }
    sn_dim part[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < dims[0]; i++)
        part[i] = ints[first + i * step];
    return sn_infer_set_ints(c, 0, part, dims[0]);
}

static int64_t read_list(const sn_step *s, const sn_frame *f, uint32_t i, int64_t *out)
{
    return sn_has(s, i) ? sn_tensor_ints(sn_in(s, f, i), out, SN_MAX_RANK) : -1;
}

static int physical_dims(const sn_tensor *t, int64_t *dims)
{
    const int64_t block = sn_layout_block(t->layout);
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i];
    if (!block)
        return t->rank;
    dims[1] = (t->dims[1] + block - 1) / block;
    dims[t->rank] = block;
    return t->rank + 1;
}

static sonde_status run_slice(const sn_step *s, sn_frame *f)
{
    const slice_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    int64_t starts[SN_MAX_RANK], ends[SN_MAX_RANK], axes[SN_MAX_RANK], steps[SN_MAX_RANK];
    int64_t n = r->from_attr ? (int64_t)r->n : read_list(s, f, 1, starts);
    int64_t n_axes = -1, n_steps = -1;
    if (n > x->rank || y->rank != x->rank)
        return sn_run_fail(s, f, "%lld slices of an input of rank %d", (long long)n, x->rank);
    if (r->from_attr) {
        for (int64_t i = 0; i < n; i++) {
            starts[i] = r->starts[i];
            ends[i] = r->ends[i];
            axes[i] = r->axes ? r->axes[i] : i;
        }
        n_axes = n;
    } else {
        n_axes = read_list(s, f, 3, axes);
        n_steps = read_list(s, f, 4, steps);
        if (read_list(s, f, 2, ends) != n || (n_axes >= 0 && n_axes != n) ||
            (n_steps >= 0 && n_steps != n))
            return sn_run_fail(s, f, "starts, ends, axes and steps differ in length");
    }
    /* Of an image in blocks: channels are blocks, and there is one dim more. */
    const int64_t block = sn_layout_block(x->layout);
    int64_t x_dims[SN_MAX_RANK + 1], y_dims[SN_MAX_RANK + 1], channel = 0;
    ptrdiff_t src[SN_MAX_RANK + 1], dst[SN_MAX_RANK + 1], offset = 0;
    const int rank = physical_dims(x, x_dims);
    physical_dims(y, y_dims);
    sn_dense_strides(x_dims, rank, src);
    sn_dense_strides(y_dims, rank, dst);
    int64_t counts[SN_MAX_RANK];
    ptrdiff_t dense[SN_MAX_RANK + 1];
    memcpy(dense, src, sizeof dense);
    for (int a = 0; a < x->rank; a++)
        counts[a] = x->dims[a];
    for (int64_t i = 0; i < n; i++) {
        int a;
        int64_t first, step = n_steps >= 0 ? steps[i] : 1;
        if (!sn_axis_index(n_axes >= 0 ? axes[i] : i, x->rank, &a) || step == 0)
            return sn_run_fail(s, f, "slice %lld has an axis or step that is not allowed",
                               (long long)i);
        counts[a] = window(x->dims[a], starts[i], ends[i], step, &first);
        if (counts[a] == 0)
            continue;
        if (block && a == 1)
            channel = first;
        else
            offset += (ptrdiff_t)first * dense[a];
        src[a] = counts[a] > 1 ? dense[a] * (ptrdiff_t)step : 0;
    }
    if (!sn_same_dims(counts, x->rank, y->dims, y->rank))
        return sn_run_fail(
            s, f, "the values of starts, ends and steps do not match the planned output shape");
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    if (block && counts[1] != x->dims[1]) {
        sn_copy_channels(y, 0, x, channel, y->dims[1], f->pool);
        return SONDE_OK;
    }
    sn_copy c;
    size_t elem = sn_dtype_bytes(x->dtype);
    sn_copy_plan(&c, elem, rank, y_dims, dst, src);
    sn_copy_run(&c, y->data, (const char *)x->data + offset * (ptrdiff_t)elem, f->pool);
    return sn_run_own_strings(s, f, 0);
}

static sonde_status bind_slice(sn_bind *b)
{
    size_t bytes;
    const sn_type *y = &b->out[0].type;
    b->kernel = "copy_slice";
    if (sn_tensor_bytes(y->dtype, y->dims, y->rank, &bytes))
        b->bytes = 2 * (uint64_t)bytes; /* only the window is read */
    return SONDE_OK;
}

/* Constant entries of input i; -1: they are not, or not as many as an image has axes. */
static int64_t const_list(const sn_node *n, uint32_t i, int64_t *out)
{
    const sn_value *v = n->n_in > i ? n->in[i].value : NULL;
    return v && v->fact.data ? sn_tensor_ints(v->fact.data, out, SN_MAX_RANK) : -1;
}

/* Channels alone and one by one, or none of them. */
static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    const slice_params *r = params;
    const sn_type *x = node->in[0].value ? &node->in[0].value->fact.type : NULL;
    const sn_type *y = node->out[0] ? &node->out[0]->fact.type : NULL;
    int64_t axes[SN_MAX_RANK], steps[SN_MAX_RANK];
    (void)block;
    if (!x || !y || r->from_attr || x->dtype != SONDE_DTYPE_F32 || x->rank < 3 || x->rank > 5 ||
        y->rank != x->rank || !sn_dim_known(x->dims[1]) || !sn_dim_known(y->dims[1]) ||
        x->dims[1] <= 0 || y->dims[1] <= 0 || node->in[0].value->fact.data)
        return NULL;
    const int64_t n = const_list(node, 3, axes), n_steps = const_list(node, 4, steps);
    const bool has_steps = node->n_in > 4 && node->in[4].value;
    if (n <= 0 || (has_steps && n_steps != n))
        return NULL;
    bool channels = false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        channels |= a == 1;
        if (has_steps && steps[i] != 1 && a == 1)
            return NULL;
    }
    return channels && n > 1 ? NULL : &sn_layout_follows;
}

#define SLICE(SINCE, UNTIL, MIN_IN, MAX_IN, PREPARE)                                               \
    {                                                                                              \
        SN_OP_HEAD("Slice", SINCE, UNTIL, MIN_IN, MAX_IN, 1, 1),                                   \
            .params_size = sizeof(slice_params), .prepare = PREPARE, .infer = infer_slice,         \
            .bind = bind_slice, .run = run_slice, .half = SN_HALF_MOVED, .in_blocks = in_blocks,   \
            .types = SN_ALL_TYPES                                                                  \
    }
const sn_op sn_op_slice[] = {
    SLICE(1, 9, 1, 1, prepare_slice_1), SLICE(10, 0, 3, 5, NULL), {.name = NULL}};
