/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter, ScatterElements, ScatterND: the input with elements or rows replaced, or combined by
 * add, mul, min, max. Indices are checked before they are used. */
#include <string.h>

#include "ops/shared/data_movement.h"

typedef enum scatter_how { HOW_NONE, HOW_ADD, HOW_MUL, HOW_MIN, HOW_MAX, HOW_COUNT } scatter_how;

typedef struct scatter_params {
    int64_t axis;
    scatter_how how;
} scatter_params;

/* Combines n elements of src into dst. */
typedef void (*scatter_fn)(void *dst, const void *src, int64_t n);

/* X(NAME, C type, type the arithmetic is done in: unsigned so that overflow wraps) */
#define NUMBER_LIST(X)                                                                             \
    X(F32, float, float)                                                                           \
    X(F64, double, double)                                                                         \
    X(I8, int8_t, uint64_t)                                                                        \
    X(I16, int16_t, uint64_t)                                                                      \
    X(I32, int32_t, uint64_t)                                                                      \
    X(I64, int64_t, uint64_t)                                                                      \
    X(U8, uint8_t, uint64_t)                                                                       \
    X(U16, uint16_t, uint64_t) X(U32, uint32_t, uint64_t) X(U64, uint64_t, uint64_t)

#define DEFINE_HOW(NAME, SUFFIX, T, EXPR)                                                          \
    static void NAME##_##SUFFIX(void *dst, const void *src, int64_t n)                             \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *s = src;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = d[i], b = s[i];                                                                  \
            d[i] = (T)(EXPR);                                                                      \
        }                                                                                          \
    }
/* min and max keep a NaN of either side. */
#define DEFINE_ALL(NAME, T, U)                                                                     \
    DEFINE_HOW(NAME, add, T, (U)a + (U)b)                                                          \
    DEFINE_HOW(NAME, mul, T, (U)a *(U)b)                                                           \
    DEFINE_HOW(NAME, min, T, a < b || a != a ? a : b)                                              \
    DEFINE_HOW(NAME, max, T, a > b || a != a ? a : b)
NUMBER_LIST(DEFINE_ALL)

/* Half floats: through float, one by one. */
#define DEFINE_HALF_HOW(NAME, SUFFIX, LOAD, STORE, EXPR)                                           \
    static void NAME##_##SUFFIX(void *dst, const void *src, int64_t n)                             \
    {                                                                                              \
        uint16_t *d = dst;                                                                         \
        const uint16_t *s = src;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = LOAD(d[i]), b = LOAD(s[i]);                                                  \
            d[i] = STORE(EXPR);                                                                    \
        }                                                                                          \
    }
#define DEFINE_HALF(NAME, LOAD, STORE)                                                             \
    DEFINE_HALF_HOW(NAME, add, LOAD, STORE, a + b)                                                 \
    DEFINE_HALF_HOW(NAME, mul, LOAD, STORE, a *b)                                                  \
    DEFINE_HALF_HOW(NAME, min, LOAD, STORE, a < b || a != a ? a : b)                               \
    DEFINE_HALF_HOW(NAME, max, LOAD, STORE, a > b || a != a ? a : b)
DEFINE_HALF(F16, sn_f16_to_f32, sn_f32_to_f16)
DEFINE_HALF(BF16, sn_bf16_to_f32, sn_f32_to_bf16)

/* NULL: not defined for this type. */
static scatter_fn find_how(sn_dtype t, scatter_how how)
{
    switch (t) {
#define PICK(NAME, ...)                                                                            \
    case SONDE_DTYPE_##NAME: {                                                                     \
        static const scatter_fn all[HOW_COUNT] = {NULL, NAME##_add, NAME##_mul, NAME##_min,        \
                                                  NAME##_max};                                     \
        return all[how];                                                                           \
    }
        NUMBER_LIST(PICK)
        PICK(F16, )
        PICK(BF16, )
#undef PICK
    case SONDE_DTYPE_BOOL: {
        static const scatter_fn all[HOW_COUNT] = {NULL, U8_max, U8_mul, U8_min, U8_max};
        return all[how];
    }
    default:
        return NULL;
    }
}

static sonde_status prepare_how(sn_prep *p)
{
    static const char *const names[HOW_COUNT] = {"none", "add", "mul", "min", "max"};
    scatter_params *r = p->params;
    const char *text;
    SN_TRY(sn_prep_int(p, "axis", 0, &r->axis));
    SN_TRY(sn_prep_string(p, "reduction", "none", &text));
    for (int i = 0; i < HOW_COUNT; i++) {
        r->how = (scatter_how)i;
        if (strcmp(text, names[i]) == 0)
            return SONDE_OK;
    }
    return sn_prep_fail(p, "reduction '%s' is unknown", text);
}

static sonde_status check_types(sn_infer *c, const sn_move_type *x, const sn_move_type *index,
                                const sn_move_type *updates)
{
    const scatter_params *r = c->params;
    if (index->dtype != SONDE_DTYPE_I64 && index->dtype != SONDE_DTYPE_I32 &&
        index->dtype != SONDE_DTYPE_UNDEFINED)
        return sn_infer_fail(c, "indices are %s, expected i32 or i64", sn_dtype_name(index->dtype));
    if (x->dtype != SONDE_DTYPE_UNDEFINED && updates->dtype != SONDE_DTYPE_UNDEFINED &&
        x->dtype != updates->dtype)
        return sn_infer_fail(c, "updates are %s, the input is %s", sn_dtype_name(updates->dtype),
                             sn_dtype_name(x->dtype));
    if (r->how != HOW_NONE && x->dtype != SONDE_DTYPE_UNDEFINED && !find_how(x->dtype, r->how))
        return sn_infer_fail(c, "this reduction is not defined for %s", sn_dtype_name(x->dtype));
    return SONDE_OK;
}

static sonde_status bad_index(const sn_step *s, sn_frame *f, int64_t index, int64_t dim)
{
    return sn_run_fail(s, f, "index %lld is outside a dim of %lld", (long long)index,
                       (long long)dim);
}

/* Output 0 becomes input 0 unless it already is that memory. */
static void begin_with_input(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    if (y->data != x->data)
        sn_copy_bytes(y->data, x->data, (size_t)sn_tensor_count(x) * sn_dtype_bytes(x->dtype),
                      f->pool);
}

/* ------------------------------------------------------------------ ScatterElements */
static sonde_status infer_scatter_elements(sn_infer *c)
{
    sn_move_type x, index, updates;
    int axis;
    SN_TRY(sn_move_in(c, 0, &x));
    SN_TRY(sn_move_in(c, 1, &index));
    SN_TRY(sn_move_in(c, 2, &updates));
    SN_TRY(check_types(c, &x, &index, &updates));
    if (x.rank >= 0) {
        SN_TRY(sn_infer_axis(c, ((const scatter_params *)c->params)->axis, x.rank, false, &axis));
        if ((index.rank >= 0 && index.rank != x.rank) ||
            (updates.rank >= 0 && updates.rank != x.rank))
            return sn_infer_fail(c, "input, indices and updates differ in rank");
        for (int i = 0; index.rank >= 0 && i < x.rank; i++) {
            sn_dim d = index.dims[i], u = updates.rank >= 0 ? updates.dims[i] : SN_DIM_UNKNOWN;
            if (sn_dim_known(d) && sn_dim_known(u) && d != u)
                return sn_infer_fail(c, "dim %d of indices and updates differs", i);
            if (i != axis && sn_dim_known(d) && sn_dim_known(x.dims[i]) && d > x.dims[i])
                return sn_infer_fail(c, "dim %d of the indices is larger than the input's", i);
        }
    }
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_scatter_elements(const sn_step *s, sn_frame *f)
{
    const scatter_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *index = sn_in(s, f, 1), *updates = sn_in(s, f, 2);
    sn_tensor *y = sn_out(s, f, 0);
    int axis;
    int64_t at[SN_MAX_RANK] = {0}, n = sn_tensor_count(index);
    ptrdiff_t strides[SN_MAX_RANK], offset = 0;
    if (!sn_move_axis(p->axis, x->rank, &axis))
        return sn_run_fail(s, f, "the axis is outside an input of rank %d", x->rank);
    int64_t dim = x->dims[axis];
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = sn_move_int(index, i);
        if (v < -dim || v >= dim)
            return bad_index(s, f, v, dim);
    }
    begin_with_input(s, f);
    sn_move_strides(x->dims, x->rank, strides);
    ptrdiff_t step = strides[axis];
    strides[axis] = 0;
    size_t elem = sn_dtype_bytes(x->dtype);
    scatter_fn how = find_how(x->dtype, p->how);
    for (int64_t i = 0; i < n; i++) {
        int64_t v = sn_move_int(index, i);
        v += v < 0 ? dim : 0;
        if (v < 0 || v >= dim)
            v = 0; /* a caller's index that has changed since it was looked at */
        char *d = (char *)y->data + (size_t)(offset + (ptrdiff_t)v * step) * elem;
        const char *u = (const char *)updates->data + (size_t)i * elem;
        if (how)
            how(d, u, 1);
        else
            sn_move_elem(d, u, elem);
        offset = sn_move_next(at, index->dims, strides, index->rank, offset);
    }
    return sn_move_own(s, f, 0);
}

#define SCATTER(NAME, SINCE, UNTIL, INFER, RUN)                                                    \
    {                                                                                              \
        SN_MOVE_HEAD(NAME, SINCE, UNTIL, 3, 3, 1, 1),                                              \
            .flags = SN_OP_INPLACE0, .params_size = sizeof(scatter_params),                        \
            .prepare = prepare_how, .infer = INFER, .run = RUN, .types = SN_MOVE_ALL_TYPES         \
    }
const sn_op sn_op_scatter[] = {
    SCATTER("Scatter", 9, 0, infer_scatter_elements, run_scatter_elements), {.name = NULL}};
const sn_op sn_op_scatter_elements[] = {
    SCATTER("ScatterElements", 11, 0, infer_scatter_elements, run_scatter_elements),
    {.name = NULL}};

/* ------------------------------------------------------------------ ScatterND */
static sonde_status infer_scatter_nd(sn_infer *c)
{
    sn_move_type x, index, updates;
    SN_TRY(sn_move_in(c, 0, &x));
    SN_TRY(sn_move_in(c, 1, &index));
    SN_TRY(sn_move_in(c, 2, &updates));
    SN_TRY(check_types(c, &x, &index, &updates));
    if (index.rank == 0)
        return sn_infer_fail(c, "indices are a scalar");
    sn_dim depth = index.rank > 0 ? index.dims[index.rank - 1] : SN_DIM_UNKNOWN;
    if (x.rank >= 0 && sn_dim_known(depth)) {
        if (depth < 1 || depth > x.rank)
            return sn_infer_fail(c, "index tuples of %lld do not fit an input of rank %d",
                                 (long long)depth, x.rank);
        int lead = index.rank - 1, rank = lead + x.rank - (int)depth;
        if (updates.rank >= 0 && updates.rank != rank)
            return sn_infer_fail(c, "updates have rank %d, expected %d", updates.rank, rank);
        for (int i = 0; i < updates.rank; i++) {
            sn_dim want = i < lead ? index.dims[i] : x.dims[(int)depth + i - lead];
            if (sn_dim_known(want) && sn_dim_known(updates.dims[i]) && want != updates.dims[i])
                return sn_infer_fail(c, "dim %d of the updates is %lld, expected %lld", i,
                                     (long long)updates.dims[i], (long long)want);
        }
    }
    return sn_infer_same(c, 0, 0);
}

static bool tuple_offset(const sn_tensor *x, const sn_tensor *index, int64_t t, int depth,
                         const ptrdiff_t *strides, int64_t *offset, int *bad)
{
    *offset = 0;
    for (int k = 0; k < depth; k++) {
        int64_t v = sn_move_int(index, t * depth + k), dim = x->dims[k];
        if (v < -dim || v >= dim) {
            *bad = k;
            return false;
        }
        *offset += (v < 0 ? v + dim : v) * strides[k];
    }
    return true;
}

static sonde_status run_scatter_nd(const sn_step *s, sn_frame *f)
{
    const scatter_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *index = sn_in(s, f, 1), *updates = sn_in(s, f, 2);
    sn_tensor *y = sn_out(s, f, 0);
    int depth = (int)index->dims[index->rank - 1], bad;
    ptrdiff_t strides[SN_MAX_RANK];
    int64_t tuples = sn_tensor_count(index) / depth, row = 1, offset;
    sn_move_strides(x->dims, x->rank, strides);
    for (int i = depth; i < x->rank; i++)
        row *= x->dims[i];
    for (int64_t t = 0; t < tuples; t++)
        if (!tuple_offset(x, index, t, depth, strides, &offset, &bad))
            return bad_index(s, f, sn_move_int(index, t * depth + bad), x->dims[bad]);
    begin_with_input(s, f);
    size_t elem = sn_dtype_bytes(x->dtype);
    scatter_fn how = find_how(x->dtype, p->how);
    for (int64_t t = 0; t < tuples; t++) {
        if (!tuple_offset(x, index, t, depth, strides, &offset, &bad))
            offset = 0; /* a caller's index that has changed since it was looked at */
        char *d = (char *)y->data + (size_t)offset * elem;
        const char *u = (const char *)updates->data + (size_t)(t * row) * elem;
        if (how)
            how(d, u, row);
        else
            memcpy(d, u, (size_t)row * elem);
    }
    return sn_move_own(s, f, 0);
}

const sn_op sn_op_scatter_nd[] = {SCATTER("ScatterND", 11, 0, infer_scatter_nd, run_scatter_nd),
                                  {.name = NULL}};
