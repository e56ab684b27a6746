/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of weights. Scales and zero points are few, so they are made doubles and integers once.
 */
#include "shrink/elements.h"

#include "base/codec.h"

static double float_at(const void *data, sn_dtype dtype, int64_t i)
{
    switch (dtype) {
    case SONDE_DTYPE_F32:
        return (double)((const float *)data)[i];
    case SONDE_DTYPE_F64:
        return ((const double *)data)[i];
    case SONDE_DTYPE_F16:
        return (double)sn_f16_to_f32(((const uint16_t *)data)[i]);
    case SONDE_DTYPE_BF16:
        return (double)sn_bf16_to_f32(((const uint16_t *)data)[i]);
    default:
        return 0;
    }
}

/* Types of 4 bits take a byte each in memory, signed ones extended. */
static int64_t int_at(const void *data, sn_dtype dtype, int64_t i)
{
    switch (dtype) {
    case SONDE_DTYPE_I8:
    case SONDE_DTYPE_I4:
        return ((const int8_t *)data)[i];
    case SONDE_DTYPE_U8:
    case SONDE_DTYPE_U4:
        return ((const uint8_t *)data)[i];
    case SONDE_DTYPE_I16:
        return ((const int16_t *)data)[i];
    case SONDE_DTYPE_U16:
        return ((const uint16_t *)data)[i];
    default:
        return 0;
    }
}

static bool is_float(sn_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F16 || t == SONDE_DTYPE_BF16 ||
           t == SONDE_DTYPE_F64;
}

/* An aligned copy of a small constant, in the arena. */
static sonde_status read_all(const sn_tensor *t, sn_arena *arena, void **out, sonde_error *err)
{
    *out = sn_arena_alloc(arena, t->bytes + 8, 8);
    if (!*out)
        return sn_fail_memory(err, t->bytes);
    sn_tensor_read(t, 0, sn_tensor_count(t), *out);
    return SONDE_OK;
}

static sonde_status read_scales(sn_elements *e, const sn_tensor *t, sn_arena *arena,
                                sonde_error *err)
{
    void *data = NULL;
    e->n_scales = sn_tensor_count(t);
    double *to = SN_NEW_N(arena, double, e->n_scales + 1);
    if (!to)
        return sn_fail_memory(err, (size_t)e->n_scales * sizeof *to);
    if (!is_float(t->dtype))
        return sn_fail(err, SONDE_UNSUPPORTED, "a scale of type %s is not supported",
                       sn_dtype_name(t->dtype));
    SN_TRY(read_all(t, arena, &data, err));
    for (int64_t i = 0; i < e->n_scales; i++)
        to[i] = float_at(data, t->dtype, i);
    e->scales = to;
    return SONDE_OK;
}

static sonde_status read_zeros(sn_elements *e, const sn_tensor *t, sn_arena *arena,
                               sonde_error *err)
{
    void *data = NULL;
    e->n_zeros = sn_tensor_count(t);
    int64_t *to = SN_NEW_N(arena, int64_t, e->n_zeros + 1);
    if (!to)
        return sn_fail_memory(err, (size_t)e->n_zeros * sizeof *to);
    if (t->dtype != e->t->dtype)
        return sn_fail(err, SONDE_INVALID_MODEL, "its zero point has type %s, the weight type %s",
                       sn_dtype_name(t->dtype), sn_dtype_name(e->t->dtype));
    SN_TRY(read_all(t, arena, &data, err));
    for (int64_t i = 0; i < e->n_zeros; i++)
        to[i] = int_at(data, t->dtype, i);
    e->zeros = to;
    return SONDE_OK;
}

sonde_status sn_elements_open(sn_elements *e, const sn_weight *w, const sn_tensor *t,
                              sn_arena *arena, sonde_error *err)
{
    *e = (sn_elements){.t = t, .quant = &w->quant};
    int64_t stride = 1;
    for (int i = t->rank - 1; i >= 0; stride *= t->dims[i--])
        e->strides[i] = stride;
    sonde_status st = SONDE_OK;
    if (w->quant.scale)
        st = read_scales(e, w->quant.scale, arena, err);
    if (st == SONDE_OK && w->quant.zero)
        st = read_zeros(e, w->quant.zero, arena, err);
    if (st != SONDE_OK && st != SONDE_OUT_OF_MEMORY)
        sn_error_prefix(err, "weight '%.200s'", w->name);
    return st;
}

static int64_t index_on(const sn_elements *e, int64_t at, int axis)
{
    return at / e->strides[axis] % e->t->dims[axis];
}

/* Which of n scales or zero points belongs to the element. */
static int64_t quant_index(const sn_elements *e, int64_t at, int64_t n)
{
    const sn_weight_quant *q = e->quant;
    if (n == 1)
        return 0;
    if (!q->block)
        return index_on(e, at, q->axis);
    int64_t index = 0;
    for (int i = 0; i < e->t->rank; i++) {
        const int axis = q->perm[i];
        const int64_t dim = e->t->dims[axis], k = index_on(e, at, axis);
        if (axis == q->axis)
            index = index * ((dim + q->block - 1) / q->block) + k / q->block;
        else
            index = index * dim + k;
    }
    return index;
}

static int64_t zero_of(const sn_elements *e, int64_t at)
{
    return e->zeros ? e->zeros[quant_index(e, at, e->n_zeros)] : 0;
}

double sn_element(const sn_elements *e, int64_t at)
{
    if (!e->quant->there)
        return float_at(e->t->data, e->t->dtype, at);
    const double x = (double)(int_at(e->t->data, e->t->dtype, at) - zero_of(e, at));
    return e->scales ? x * e->scales[quant_index(e, at, e->n_scales)] : x;
}

void sn_element_clear(const sn_elements *e, int64_t at)
{
    const int64_t zero = e->quant->there ? zero_of(e, at) : 0;
    switch (sn_dtype_bytes(e->t->dtype)) {
    case 1:
        ((uint8_t *)e->t->data)[at] = (uint8_t)zero;
        break;
    case 2:
        ((uint16_t *)e->t->data)[at] = (uint16_t)zero;
        break;
    case 4:
        ((uint32_t *)e->t->data)[at] = 0;
        break;
    default:
        ((uint64_t *)e->t->data)[at] = 0;
        break;
    }
}
