/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made from little: Shape, Size, Constant, ConstantOfShape, Range, EyeLike. Their integers
 * are what shape arithmetic is made of, so inference says as many of them as it can. */
#include <math.h>
#include <string.h>

#include "compute/generate.h"
#include "ops/shared/data_movement.h"

/* ------------------------------------------------------------------ Shape, Size */
typedef struct shape_params {
    int64_t start, end;
} shape_params;

static sonde_status prepare_shape(sn_prep *p)
{
    shape_params *r = p->params;
    SN_TRY(sn_prep_int(p, "start", 0, &r->start));
    return sn_prep_int(p, "end", INT64_MAX, &r->end);
}

static int64_t clamp_position(int64_t v, int rank)
{
    if (v < 0)
        v = v < -rank ? 0 : v + rank;
    return v > rank ? rank : v;
}

static void shape_range(const shape_params *p, int rank, int *first, int *count)
{
    int64_t a = clamp_position(p->start, rank), b = clamp_position(p->end, rank);
    *first = (int)a;
    *count = b > a ? (int)(b - a) : 0;
}

static sonde_status infer_shape(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.rank < 0)
        return sn_infer_rank(c, 0, SONDE_DTYPE_I64, 1);
    int first, count;
    shape_range(c->params, x.rank, &first, &count);
    sn_dim n = count;
    SN_TRY(sn_infer_bounded(c, 0, SONDE_DTYPE_I64, &n, 1));
    return sn_infer_set_ints(c, 0, count ? x.dims + first : x.dims, count);
}

static sonde_status run_shape(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    int first, count;
    shape_range(s->params, x->rank, &first, &count);
    if (sn_tensor_count(sn_out(s, f, 0)) != count)
        return sn_run_fail(s, f, "the input has an unexpected rank of %d", x->rank);
    if (count)
        memcpy(sn_out(s, f, 0)->data, x->dims + first, (size_t)count * sizeof(int64_t));
    return SONDE_OK;
}

const sn_op sn_op_shape[] = {{SN_OP_HEAD("Shape", 1, 0, 1, 1, 1, 1),
                              .params_size = sizeof(shape_params), .prepare = prepare_shape,
                              .infer = infer_shape, .run = run_shape, .types = SN_ALL_TYPES},
                             {.name = NULL}};

static sonde_status infer_size(sn_infer *c)
{
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_bounded(c, 0, SONDE_DTYPE_I64, NULL, 0));
    if (x.rank < 0)
        return SONDE_OK;
    sn_dim n = 1;
    for (int i = 0; i < x.rank; i++)
        n = sn_dim_mul(n, x.dims[i]);
    return sn_infer_set_ints(c, 0, &n, 1);
}

static sonde_status run_size(const sn_step *s, sn_frame *f)
{
    *(int64_t *)sn_out(s, f, 0)->data = sn_tensor_count(sn_in(s, f, 0));
    return SONDE_OK;
}

const sn_op sn_op_size[] = {{SN_OP_HEAD("Size", 1, 0, 1, 1, 1, 1), .infer = infer_size,
                             .run = run_size, .types = SN_ALL_TYPES},
                            {.name = NULL}};

/* ------------------------------------------------------------------ Constant */
typedef struct constant_params {
    const sn_tensor *value;
} constant_params;

/* X(attribute, its kind, rank, element type, where its elements are) */
#define VALUE_LIST(X)                                                                              \
    X("value_int", SN_ATTR_INT, 0, SONDE_DTYPE_I64, &a->i)                                         \
    X("value_ints", SN_ATTR_INTS, 1, SONDE_DTYPE_I64, a->ints)                                     \
    X("value_float", SN_ATTR_FLOAT, 0, SONDE_DTYPE_F32, &a->f)                                     \
    X("value_floats", SN_ATTR_FLOATS, 1, SONDE_DTYPE_F32, a->floats)                               \
    X("value_string", SN_ATTR_STRING, 0, SONDE_DTYPE_STRING, &a->s)                                \
    X("value_strings", SN_ATTR_STRINGS, 1, SONDE_DTYPE_STRING, a->strings)

static sonde_status prepare_constant(sn_prep *p)
{
    constant_params *r = p->params;
    sn_tensor *t = SN_NEW(p->arena, sn_tensor);
    if (!t)
        return sn_fail_memory(p->err, sizeof *t);
    for (uint32_t k = 0; k < p->node->n_attrs; k++) {
        const sn_attr *a = &p->node->attrs[k];
        bool dense = a->kind == SN_ATTR_TENSOR && strcmp(a->name, "value") == 0;
        bool sparse = a->kind == SN_ATTR_SPARSE_TENSOR && strcmp(a->name, "sparse_value") == 0;
        if ((dense || sparse) && a->tensor) {
            r->value = a->tensor;
            return SONDE_OK;
        }
#define FROM_ATTR(NAME, KIND, RANK, DTYPE, DATA)                                                   \
    if (a->kind == (KIND) && strcmp(a->name, NAME) == 0) {                                         \
        t->dtype = DTYPE;                                                                          \
        t->rank = RANK;                                                                            \
        t->data = (void *)(uintptr_t)(const void *)(DATA);                                         \
        t->dims[0] = (int64_t)a->n;                                                                \
        t->bytes = (t->rank ? a->n : 1) * sn_dtype_bytes(t->dtype);                                \
        r->value = t;                                                                              \
        return SONDE_OK;                                                                           \
    }
        VALUE_LIST(FROM_ATTR)
#undef FROM_ATTR
    }
    return sn_prep_fail(p, "the constant has no value");
}

static sonde_status infer_constant(sn_infer *c)
{
    const sn_tensor *t = ((const constant_params *)c->params)->value;
    SN_TRY(sn_infer_bounded(c, 0, t->dtype, t->dims, t->rank));
    c->out[0].data = t;
    return SONDE_OK;
}

static sonde_status run_constant(const sn_step *s, sn_frame *f)
{
    return sn_run_copy(s, f, 0, ((const constant_params *)s->params)->value);
}

const sn_op sn_op_constant[] = {{SN_OP_HEAD("Constant", 1, 0, 0, 0, 1, 1),
                                 .params_size = sizeof(constant_params),
                                 .prepare = prepare_constant, .infer = infer_constant,
                                 .run = run_constant, .types = SN_ALL_TYPES},
                                {.name = NULL}};

/* ------------------------------------------------------------------ ConstantOfShape */
static sonde_status prepare_constant_of_shape(sn_prep *p)
{
    static const float zero;
    static const sn_tensor f32_zero = {
        .dtype = SONDE_DTYPE_F32, .data = (void *)(uintptr_t)&zero, .bytes = 4};
    constant_params *r = p->params;
    const sn_attr *a = sn_node_attr(p->node, "value");
    r->value = &f32_zero;
    if (!a)
        return SONDE_OK;
    if (a->kind != SN_ATTR_TENSOR || !a->tensor || sn_tensor_count(a->tensor) != 1)
        return sn_prep_fail(p, "attribute 'value' must be a tensor of one element");
    r->value = a->tensor;
    return SONDE_OK;
}

static sonde_status infer_constant_of_shape(sn_infer *c)
{
    const sn_tensor *v = ((const constant_params *)c->params)->value;
    const sn_dim *shape;
    int64_t n, count;
    SN_TRY(sn_infer_list(c, 0, &shape, &n));
    if (n > SN_MAX_RANK)
        return sn_infer_fail(c, "a shape of %lld dims is too long", (long long)n);
    if (!shape)
        return sn_infer_rank(c, 0, v->dtype, (int)n);
    SN_TRY(sn_infer_bounded(c, 0, v->dtype, shape, (int)n));
    bool integer = sn_dtype_is_int(v->dtype) || v->dtype == SONDE_DTYPE_BOOL;
    if (!integer || !sn_dims_known(shape, n) || !sn_dims_count(shape, (int)n, &count) ||
        count > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    sn_dim ints[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < count; i++)
        ints[i] = sn_dim_of_number(sn_elem_i64(v->dtype, v->data, 0));
    return sn_infer_set_ints(c, 0, ints, count);
}

static sonde_status run_constant_of_shape(const sn_step *s, sn_frame *f)
{
    const sn_tensor *v = ((const constant_params *)s->params)->value;
    sn_tensor *y = sn_out(s, f, 0);
    sn_copy_fill(y->data, v->data, sn_dtype_bytes(v->dtype), sn_tensor_count(y), f->pool);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_constant_of_shape[] = {
    {SN_OP_HEAD("ConstantOfShape", 9, 0, 1, 1, 1, 1), .params_size = sizeof(constant_params),
     .prepare = prepare_constant_of_shape, .infer = infer_constant_of_shape,
     .run = run_constant_of_shape, .types = "i64"},
    {.name = NULL}};

/* ------------------------------------------------------------------ Range */
/* Number of elements, or -1 when it is not a number of elements at all. */
static int64_t range_count_f64(double start, double limit, double delta)
{
    double n = ceil((limit - start) / delta);
    if (isnan(n) || n >= 0x1p62)
        return -1;
    return n > 0 ? (int64_t)n : 0;
}

static int64_t range_count_i64(int64_t start, int64_t limit, int64_t delta)
{
    if ((delta > 0 && limit <= start) || (delta < 0 && limit >= start))
        return 0;
    uint64_t span =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : (uint64_t)0 - (uint64_t)delta;
    uint64_t n = (span - 1) / step + 1;
    return n < (uint64_t)1 << 62 ? (int64_t)n : -1;
}

static int64_t range_count(sn_dtype t, const void *start, const void *limit, const void *delta)
{
    if (sn_dtype_is_float(t))
        return range_count_f64(sn_elem_f64(t, start, 0), sn_elem_f64(t, limit, 0),
                               sn_elem_f64(t, delta, 0));
    return range_count_i64(sn_elem_i64(t, start, 0), sn_elem_i64(t, limit, 0),
                           sn_elem_i64(t, delta, 0));
}

static sonde_status infer_range_ints(sn_infer *c, sn_dtype dtype)
{
    sn_dim v[3], dim = SN_DIM_UNKNOWN;
    bool known = true;
    for (uint32_t i = 0; i < 3; i++) {
        const sn_dim *ints;
        const sn_tensor *data = c->in[i]->data;
        int64_t n;
        SN_TRY(sn_infer_ints(c, i, &ints, &n));
        if (!ints || n != 1)
            return sn_infer_bounded(c, 0, dtype, &dim, 1);
        const bool exact = data && sn_tensor_is_plain(data); /* not cut at either end */
        v[i] = exact ? sn_elem_i64(data->dtype, data->data, 0) : sn_dim_to_compute(ints[0]);
        known = known && (exact || sn_dim_known(v[i]));
    }
    const sn_dim start = v[0], limit = v[1], delta = v[2];
    if (delta == 0)
        return sn_infer_fail(c, "the step is zero");
    if (!known) {
        if (start == 0 && delta == 1)
            dim = limit;
        return sn_infer_bounded(c, 0, dtype, &dim, 1);
    }
    dim = range_count_i64(start, limit, delta);
    if (dim < 0)
        return sn_infer_fail(c, "the output has too many elements");
    SN_TRY(sn_infer_bounded(c, 0, dtype, &dim, 1));
    if (dim > SN_MAX_KNOWN_INTS)
        return SONDE_OK;
    sn_dim ints[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < dim; i++)
        ints[i] = sn_dim_of_number((int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta));
    return sn_infer_set_ints(c, 0, ints, dim);
}

static sonde_status infer_range(sn_infer *c)
{
    sn_input_type x, other;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    for (uint32_t i = 1; i < 3; i++) {
        SN_TRY(sn_infer_input_type(c, i, &other));
        if (x.dtype != SONDE_DTYPE_UNDEFINED && other.dtype != SONDE_DTYPE_UNDEFINED &&
            x.dtype != other.dtype)
            return sn_infer_fail(c, "start is %s, but input %u is %s", sn_dtype_onnx_name(x.dtype),
                                 i, sn_dtype_onnx_name(other.dtype));
    }
    if (!sn_dtype_is_float(x.dtype))
        return infer_range_ints(c, x.dtype);
    sn_dim dim = SN_DIM_UNKNOWN;
    const sn_tensor *v[3];
    for (uint32_t i = 0; i < 3; i++) {
        v[i] = sn_infer_has(c, i) ? c->in[i]->data : NULL;
        if (!v[i] || v[i]->dtype != x.dtype || sn_tensor_count(v[i]) != 1)
            return sn_infer_bounded(c, 0, x.dtype, &dim, 1);
    }
    if (sn_elem_is_zero(x.dtype, v[2]->data, 0))
        return sn_infer_fail(c, "the step is zero");
    dim = range_count(x.dtype, v[0]->data, v[1]->data, v[2]->data);
    if (dim < 0)
        return sn_infer_fail(c, "the output has too many elements");
    return sn_infer_bounded(c, 0, x.dtype, &dim, 1);
}

static sonde_status run_range(const sn_step *s, sn_frame *f)
{
    const sn_tensor *y = sn_out(s, f, 0);
    sn_range_run(y->dtype, y->data, sn_tensor_count(y), sn_in(s, f, 0)->data, sn_in(s, f, 2)->data);
    return SONDE_OK;
}

const sn_op sn_op_range[] = {{SN_OP_HEAD("Range", 11, 0, 3, 3, 1, 1), .infer = infer_range,
                              .run = run_range, .types = "f32 f64 i16 i32 i64 f16 bf16"},
                             {.name = NULL}};

/* ------------------------------------------------------------------ EyeLike */
typedef struct eye_params {
    int64_t dtype, k;
} eye_params;

static sonde_status prepare_eye(sn_prep *p)
{
    eye_params *r = p->params;
    SN_TRY(sn_prep_int(p, "dtype", 0, &r->dtype));
    if (r->dtype != 0 && !sn_dtype_valid(r->dtype))
        return sn_prep_fail(p, "attribute 'dtype' is %lld, not an element type",
                            (long long)r->dtype);
    return sn_prep_int(p, "k", 0, &r->k);
}

static sonde_status infer_eye(sn_infer *c)
{
    const eye_params *r = c->params;
    sn_input_type x;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    sn_dtype dtype = r->dtype ? (sn_dtype)r->dtype : x.dtype;
    if (x.rank < 0)
        return sn_infer_rank(c, 0, dtype, 2);
    if (x.rank != 2)
        return sn_infer_fail(c, "the input has rank %d, expected 2", x.rank);
    return sn_infer_bounded(c, 0, dtype, x.dims, 2);
}

static sonde_status run_eye(const sn_step *s, sn_frame *f)
{
    const sn_tensor *y = sn_out(s, f, 0);
    sn_eye_run(y->dtype, y->data, y->dims[0], y->dims[1], ((const eye_params *)s->params)->k);
    return SONDE_OK;
}

const sn_op sn_op_eye_like[] = {{SN_OP_HEAD("EyeLike", 9, 0, 1, 1, 1, 1),
                                 .params_size = sizeof(eye_params), .prepare = prepare_eye,
                                 .infer = infer_eye, .run = run_eye, .types = SN_ALL_TYPES},
                                {.name = NULL}};
