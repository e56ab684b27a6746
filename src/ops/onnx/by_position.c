/* SPDX-License-Identifier: Apache-2.0 */
/* Small operators that keep, reverse or mark elements by position: Trilu, ReverseSequence, OneHot.
 */
#include "compute/by_position.h"
#include "ops/shared/data_movement.h"

/* ------------------------------------------------------------------ Trilu */
typedef struct trilu_params {
    int64_t upper;
} trilu_params;

static sonde_status prepare_trilu(sn_prep *p)
{
    return sn_prep_int(p, "upper", 1, &((trilu_params *)p->params)->upper);
}

static sonde_status infer_trilu(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank >= 0 && x.rank < 2)
        return sn_infer_fail(c, "the input has rank %d, expected 2 or more", x.rank);
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_trilu(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    const int64_t total = sn_tensor_count(x);
    if (total == 0)
        return SONDE_OK;
    sn_triangle t = {.rows = x->dims[x->rank - 2],
                     .columns = x->dims[x->rank - 1],
                     .upper = ((const trilu_params *)s->params)->upper != 0,
                     .elem_bytes = sn_dtype_bytes(x->dtype)};
    t.matrices = total / (t.rows * t.columns);
    if (sn_has(s, 1) && sn_tensor_count(sn_in(s, f, 1)) > 0)
        t.diagonal = sn_tensor_int(sn_in(s, f, 1), 0);
    sn_triangle_run(&t, sn_out(s, f, 0)->data, x->data, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_trilu[] = {{SN_OP_HEAD("Trilu", 14, 0, 1, 2, 1, 1), .flags = SN_OP_INPLACE0,
                              .params_size = sizeof(trilu_params), .prepare = prepare_trilu,
                              .infer = infer_trilu, .run = run_trilu, .types = SN_ALL_TYPES},
                             {.name = NULL}};

/* ------------------------------------------------------------------ ReverseSequence */
typedef struct reverse_params {
    int64_t batch_axis, time_axis;
} reverse_params;

static sonde_status prepare_reverse(sn_prep *p)
{
    reverse_params *r = p->params;
    SN_TRY(sn_prep_int(p, "batch_axis", 1, &r->batch_axis));
    SN_TRY(sn_prep_int(p, "time_axis", 0, &r->time_axis));
    if (!(r->batch_axis == 0 && r->time_axis == 1) && !(r->batch_axis == 1 && r->time_axis == 0))
        return sn_prep_fail(p, "attributes 'batch_axis' and 'time_axis' must be 0 and 1");
    return SONDE_OK;
}

static sonde_status infer_reverse(sn_infer *c)
{
    const reverse_params *r = c->params;
    sn_input_type x, lengths;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_input_type(c, 1, &lengths));
    if (x.rank >= 0 && x.rank < 2)
        return sn_infer_fail(c, "the input has rank %d, expected 2 or more", x.rank);
    if (lengths.rank >= 0 && lengths.rank != 1)
        return sn_infer_fail(c, "sequence lengths have rank %d, expected 1", lengths.rank);
    if (x.rank >= 0 && lengths.rank == 1) {
        sn_dim a = x.dims[r->batch_axis], b = lengths.dims[0];
        if (sn_dim_known(a) && sn_dim_known(b) && a != b)
            return sn_infer_fail(c, "%lld sequence lengths for a batch of %lld", (long long)b,
                                 (long long)a);
    }
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_reverse(const sn_step *s, sn_frame *f)
{
    const reverse_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    const int64_t total = sn_tensor_count(x);
    int64_t bad;
    if (total == 0)
        return SONDE_OK;
    sn_reverse r = {.batches = x->dims[p->batch_axis],
                    .times = x->dims[p->time_axis],
                    .time_first = p->time_axis == 0};
    r.row_bytes = (size_t)(total / (r.batches * r.times)) * sn_dtype_bytes(x->dtype);
    if (!sn_reverse_run(&r, sn_out(s, f, 0)->data, x->data, sn_tensor_elems(sn_in(s, f, 1)), &bad))
        return sn_run_fail(s, f, "sequence length %lld is outside 0 to %lld", (long long)bad,
                           (long long)r.times);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_reverse_sequence[] = {
    {SN_OP_HEAD("ReverseSequence", 10, 0, 2, 2, 1, 1), .params_size = sizeof(reverse_params),
     .prepare = prepare_reverse, .infer = infer_reverse, .run = run_reverse, .types = SN_ALL_TYPES},
    {.name = NULL}};

/* ------------------------------------------------------------------ OneHot */
typedef struct onehot_params {
    int64_t axis;
} onehot_params;

static sonde_status prepare_onehot(sn_prep *p)
{
    return sn_prep_int(p, "axis", -1, &((onehot_params *)p->params)->axis);
}

static sonde_status infer_onehot(sn_infer *c)
{
    sn_input_type index, values;
    const sn_dim *ints;
    int64_t n;
    int axis;
    SN_TRY(sn_infer_input_type(c, 0, &index));
    SN_TRY(sn_infer_input_type(c, 2, &values));
    if (values.rank >= 0 &&
        (values.rank != 1 || (sn_dim_known(values.dims[0]) && values.dims[0] != 2)))
        return sn_infer_fail(c, "values must have two elements, off and on");
    if (index.rank < 0)
        return sn_infer_rank(c, 0, values.dtype, -1);
    if (index.rank >= SN_MAX_RANK)
        return sn_infer_fail(c, "the rank would exceed %d", SN_MAX_RANK);
    SN_TRY(
        sn_infer_axis(c, ((const onehot_params *)c->params)->axis, index.rank + 1, false, &axis));
    SN_TRY(sn_infer_ints(c, 1, &ints, &n));
    sn_dim depth = ints && n == 1 ? ints[0] : SN_DIM_UNKNOWN;
    const sn_tensor *d = c->in[1]->data;
    if (!ints && d && sn_dtype_is_float(d->dtype) && sn_tensor_count(d) == 1)
        depth = sn_elem_i64(d->dtype, d->data, 0);
    if (sn_dim_known(depth) && depth < 0)
        return sn_infer_fail(c, "the depth is %lld, which is invalid", (long long)depth);
    sn_dim dims[SN_MAX_RANK];
    for (int i = 0, k = 0; i <= index.rank; i++)
        dims[i] = i == axis ? depth : index.dims[k++];
    return sn_infer_bounded(c, 0, values.dtype, dims, index.rank + 1);
}

static sonde_status run_onehot(const sn_step *s, sn_frame *f)
{
    const sn_tensor *index = sn_in(s, f, 0), *values = sn_in(s, f, 2);
    sn_tensor *y = sn_out(s, f, 0);
    int axis;
    if (!sn_axis_index(((const onehot_params *)s->params)->axis, y->rank, &axis) ||
        sn_tensor_count(values) != 2)
        return sn_run_fail(s, f, "axis or values do not match the input");
    sn_one_hot h = {.count = sn_tensor_count(index),
                    .depth = y->dims[axis],
                    .inner = 1,
                    .elem_bytes = sn_dtype_bytes(y->dtype)};
    for (int i = axis + 1; i < y->rank; i++)
        h.inner *= y->dims[i];
    sn_one_hot_run(&h, y->data, sn_tensor_elems(index), values->data,
                   (const char *)values->data + h.elem_bytes, f->pool);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_one_hot[] = {{SN_OP_HEAD("OneHot", 9, 0, 3, 3, 1, 1),
                                .params_size = sizeof(onehot_params), .prepare = prepare_onehot,
                                .infer = infer_onehot, .run = run_onehot,
                                .types = "u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64"},
                               {.name = NULL}};
