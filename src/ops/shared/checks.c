/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of inference; see checks.h. */
#include "ops/shared/checks.h"

sonde_status sn_check_dtype(sn_infer *c, uint32_t i, const sn_dtype *allowed, int n)
{
    if (!sn_infer_has(c, i) || c->in[i]->type.dtype == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    for (int k = 0; k < n; k++)
        if (c->in[i]->type.dtype == allowed[k])
            return SONDE_OK;
    return sn_infer_fail(c, "input %u has type %s, which this operator does not support", i,
                         sn_dtype_name(c->in[i]->type.dtype));
}

sonde_status sn_check_float(sn_infer *c, uint32_t i)
{
    static const sn_dtype floats[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64, SONDE_DTYPE_F16,
                                      SONDE_DTYPE_BF16};
    return sn_check_dtype(c, i, floats, 4);
}

sonde_status sn_check_same_dtype(sn_infer *c, uint32_t i, uint32_t j)
{
    if (!sn_infer_has(c, i) || !sn_infer_has(c, j))
        return SONDE_OK;
    sn_dtype a = c->in[i]->type.dtype, b = c->in[j]->type.dtype;
    if (a == b || a == SONDE_DTYPE_UNDEFINED || b == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    return sn_infer_fail(c, "input %u has type %s and input %u has type %s; they must be the same",
                         i, sn_dtype_name(a), j, sn_dtype_name(b));
}

sonde_status sn_check_dims(sn_infer *c, uint32_t i, sn_dim *dims, int rank)
{
    if (!sn_infer_has(c, i) || c->in[i]->type.rank < 0)
        return SONDE_OK;
    const sn_type *t = &c->in[i]->type;
    if (t->rank != rank)
        return sn_infer_fail(c, "input %u has rank %d, expected %d", i, t->rank, rank);
    for (int k = 0; k < rank; k++) {
        if (sn_dim_known(dims[k]) && sn_dim_known(t->dims[k]) && dims[k] != t->dims[k])
            return sn_infer_fail(c, "dimension %d of input %u is %lld, expected %lld", k, i,
                                 (long long)t->dims[k], (long long)dims[k]);
        if (!sn_dim_known(dims[k]) && (sn_dim_known(t->dims[k]) || dims[k] == SN_DIM_UNKNOWN))
            dims[k] = t->dims[k];
    }
    return SONDE_OK;
}

sonde_status sn_check_integer(sn_infer *c, uint32_t i, sn_dim *v)
{
    static const sn_dtype ints[] = {SONDE_DTYPE_I32, SONDE_DTYPE_I64};
    const sn_dim *list;
    int64_t n;
    *v = SN_DIM_UNKNOWN;
    SN_TRY(sn_check_dtype(c, i, ints, 2));
    SN_TRY(sn_infer_ints(c, i, &list, &n));
    if (!list)
        return SONDE_OK;
    if (n != 1)
        return sn_infer_fail(c, "input %u must be one number, it has %lld", i, (long long)n);
    *v = list[0];
    return SONDE_OK;
}

sonde_status sn_infer_bounded(sn_infer *c, uint32_t o, sn_dtype dtype, const sn_dim *dims, int rank)
{
    bool known = rank >= 0 && rank <= SN_MAX_RANK;
    size_t bytes;
    for (int i = 0; known && i < rank; i++)
        known = sn_dim_known(dims[i]) && dims[i] >= 0;
    if (known && dtype != SONDE_DTYPE_UNDEFINED &&
        (!sn_tensor_bytes(dtype, dims, rank, &bytes) || bytes > PTRDIFF_MAX))
        return sn_infer_fail(c, "output %u would be too large", o);
    return sn_infer_tensor(c, o, dtype, dims, rank);
}

/* ------------------------------------------------------------------ results that are empty */
sonde_status sn_prep_empty_flag(sn_prep *p, _Atomic bool **said)
{
    *said = SN_NEW(p->arena, _Atomic bool);
    if (!*said)
        return sn_fail_memory(p->err, sizeof **said);
    atomic_init(*said, false);
    return SONDE_OK;
}

static void say(sonde_error *text, const sn_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)sn_node_fail_va(text, SONDE_INVALID_MODEL, n, fmt, args);
    va_end(args);
}

void sn_bind_warn_empty(const sn_bind *b, _Atomic bool *said)
{
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    int64_t in, out;
    if (!b->ctx || !sn_type_count(x, &in) || !sn_type_count(y, &out) || in == 0 || out != 0 ||
        atomic_exchange(said, true))
        return;
    sonde_error text = {.status = SONDE_OK};
    for (int i = 0; i < x->rank && i < y->rank; i++)
        if (y->dims[i] == 0) {
            say(&text, b->node,
                "the result is empty: dim %d of the input, which is %lld, is too small for it", i,
                (long long)x->dims[i]);
            break;
        }
    sn_log_write(&b->ctx->log, SN_LOG_WARN, "%s", text.message);
}
