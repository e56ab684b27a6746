/* SPDX-License-Identifier: Apache-2.0 */
/* Inference and plans shared by the elementwise operators. */
#include "ops/shared/elementwise.h"

#include <string.h>

sonde_status sn_infer_elementwise(sn_infer *c, uint32_t first, sn_dtype dtype)
{
    sn_dim dims[SN_MAX_RANK];
    sn_type acc = {.kind = SN_KIND_TENSOR, .rank = 0, .dims = dims};
    sn_dtype common = SONDE_DTYPE_UNDEFINED;
    for (uint32_t i = first; i < c->n_in; i++) {
        if (!c->in[i])
            continue;
        const sn_type *t = &c->in[i]->type;
        if (t->dtype != SONDE_DTYPE_UNDEFINED && common != SONDE_DTYPE_UNDEFINED &&
            t->dtype != common)
            return sn_infer_fail(c, "inputs have different element types: %s and %s",
                                 sn_dtype_onnx_name(common), sn_dtype_onnx_name(t->dtype));
        if (common == SONDE_DTYPE_UNDEFINED)
            common = t->dtype;
        int rank;
        sn_dim joined[SN_MAX_RANK];
        SN_TRY(sn_infer_broadcast(c, &acc, t, joined, &rank));
        acc.rank = rank;
        if (rank > 0)
            memcpy(dims, joined, sizeof(sn_dim) * (size_t)rank);
        if (rank < 0)
            break;
    }
    return sn_infer_tensor(c, 0, dtype == SONDE_DTYPE_UNDEFINED ? common : dtype, dims, acc.rank);
}

sn_dim sn_int_in_type(sn_dim d, sn_dtype t)
{
    if (!sn_dim_known(d) || t == SONDE_DTYPE_I64)
        return d;
    if (t == SONDE_DTYPE_U64 || t == SONDE_DTYPE_BOOL)
        return d < 0 ? SN_DIM_UNKNOWN : d;
    unsigned bits = sn_dtype_bits(t);
    if (bits == 0 || bits > 32)
        return SN_DIM_UNKNOWN;
    int64_t low = sn_dtype_is_signed(t) ? -((int64_t)1 << (bits - 1)) : 0;
    return d < low || d >= low + ((int64_t)1 << bits) ? SN_DIM_UNKNOWN : d;
}

int64_t sn_bcast_index(const sn_type *out, const sn_type *in, int64_t k)
{
    int64_t index = 0, stride = 1;
    for (int i = out->rank - 1, j = in->rank - 1; j >= 0; i--, j--) {
        int64_t at = k % out->dims[i];
        k /= out->dims[i];
        if (in->dims[j] != 1)
            index += at * stride;
        stride *= in->dims[j];
    }
    return index;
}

/* The values of output 0 may be said: small, integers, concrete. */
static bool wants_ints(const sn_infer *c, int64_t *count)
{
    if (c->n_out == 0)
        return false;
    const sn_type *t = &c->out[0].type;
    return (sn_dtype_is_int(t->dtype) || t->dtype == SONDE_DTYPE_BOOL) && sn_type_count(t, count) &&
           *count <= SN_MAX_KNOWN_INTS;
}

/* What came of `a` and `b`, in the output's type. A symbol can only be one of them: arithmetic on
 * numbers may end where symbols begin. */
static sn_dim said(sn_dim y, sn_dim a, sn_dim b, sn_dtype dtype)
{
    if (!sn_dim_known(y) && y != a && y != b)
        return SN_DIM_UNKNOWN;
    if (dtype == SONDE_DTYPE_U64 && sn_dim_known(y) && y < 0) /* a number of more than 63 bits */
        return SN_DIM_UNKNOWN;
    return sn_int_in_type(y, dtype);
}

sonde_status sn_infer_ints_1(sn_infer *c, sn_ints_fn f, int op)
{
    int64_t n, count;
    const sn_dim *a;
    if (!wants_ints(c, &count))
        return SONDE_OK;
    SN_TRY(sn_infer_ints(c, 0, &a, &n));
    if (!a || n != count)
        return SONDE_OK;
    sn_dim y[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < n; i++) {
        const sn_dim x = sn_dim_to_compute(a[i]);
        y[i] = said(f(op, x, 0), x, x, c->out[0].type.dtype);
    }
    return sn_infer_set_ints(c, 0, y, n);
}

sonde_status sn_infer_ints_2(sn_infer *c, sn_ints_fn f, int op)
{
    int64_t na, nb, count;
    const sn_dim *a, *b;
    if (!wants_ints(c, &count))
        return SONDE_OK;
    SN_TRY(sn_infer_ints(c, 0, &a, &na));
    SN_TRY(sn_infer_ints(c, 1, &b, &nb));
    const sn_type *ta = &c->in[0]->type, *tb = &c->in[1]->type, *ty = &c->out[0].type;
    int64_t wa, wb;
    if (!a || !b || !sn_type_count(ta, &wa) || !sn_type_count(tb, &wb) || wa != na || wb != nb)
        return SONDE_OK;
    sn_dim y[SN_MAX_KNOWN_INTS];
    for (int64_t i = 0; i < count; i++) {
        const sn_dim x0 = sn_dim_to_compute(a[sn_bcast_index(ty, ta, i)]);
        const sn_dim x1 = sn_dim_to_compute(b[sn_bcast_index(ty, tb, i)]);
        y[i] = said(f(op, x0, x1), x0, x1, ty->dtype);
    }
    return sn_infer_set_ints(c, 0, y, count);
}

/* ------------------------------------------------------------------ before opset 7 */
sonde_status sn_prep_legacy(sn_prep *p, sn_legacy *legacy)
{
    int64_t broadcast;
    legacy->on = true;
    SN_TRY(sn_prep_int(p, "broadcast", 0, &broadcast));
    SN_TRY(sn_prep_int(p, "axis", -1, &legacy->axis));
    if (!broadcast)
        legacy->axis = -1;
    return SONDE_OK;
}

void sn_legacy_align(const sn_legacy *legacy, const sn_fact *a, const sn_fact *b, sn_fact *out,
                     sn_dim *dims)
{
    *out = *b;
    const sn_type *ta = &a->type, *tb = &b->type;
    if (!legacy->on || legacy->axis < 0 || ta->rank < 0 || tb->rank < 0 || ta->rank > SN_MAX_RANK ||
        legacy->axis + tb->rank >= ta->rank)
        return;
    int rank = ta->rank - (int)legacy->axis;
    for (int i = 0; i < rank; i++)
        dims[i] = i < tb->rank ? tb->dims[i] : 1;
    out->type.rank = rank;
    out->type.dims = dims;
}

/* ------------------------------------------------------------------ plans */
size_t sn_fact_elems(const sn_fact *f)
{
    int64_t n = 0;
    return sn_layout_count(f->form.layout, f->type.dims, f->type.rank, &n) ? (size_t)n : 0;
}

/* Dims as memory has them: [d0][d1/block][d2]…[block]. */
static int physical(const sn_fact *f, int64_t *dims)
{
    int rank = f->type.rank;
    if (rank > 0)
        memcpy(dims, f->type.dims, sizeof(int64_t) * (size_t)rank);
    const int64_t block = sn_fact_block(f);
    if (!block || rank < 2)
        return rank;
    dims[1] = (dims[1] + block - 1) / block;
    dims[rank] = block;
    return rank + 1;
}

sonde_status sn_elt_plan_make(sn_bind *b, uint32_t first, uint32_t n, sn_elt_plan *plan)
{
    int64_t out[SN_MAX_RANK + 1] = {0}, in[3][SN_MAX_RANK + 1];
    const int64_t *dims[3] = {0};
    int ranks[3] = {0};
    const sn_fact *y = &b->out[0];
    const unsigned block = sn_fact_block(y);
    plan->block = (int)block;
    if (block && (y->type.rank < 2 || y->type.rank >= SN_BCAST_RANK))
        return sn_bind_fail(b, SONDE_INTERNAL, "a tensor of rank %d cannot be blocked",
                            y->type.rank);
    int rank = physical(y, out);
    for (uint32_t k = 0; k < n; k++) {
        const sn_fact *f = b->in[first + k];
        int64_t count = 0;
        const bool same = sn_form_same(f->form, y->form);
        if (!same &&
            !(sn_type_count(&f->type, &count) && count == 1 && sn_layout_is_plain(f->form.layout)))
            return sn_bind_fail(b, SONDE_INTERNAL,
                                "input %u has a different layout than the output", first + k);
        ranks[k] = physical(f, in[k]);
        if (!same)
            ranks[k] = 0;
        dims[k] = in[k];
    }
    sn_bcast_plan(&plan->bcast, out, rank, (int)n, dims, ranks);
    if (block) {
        plan->outer = out[0];
        plan->channels = y->type.dims[1];
        plan->inner = 1;
        for (int i = 2; i < y->type.rank; i++)
            plan->inner *= y->type.dims[i];
    }
    return SONDE_OK;
}

const char *sn_unary_text(sn_unary op)
{
#define X(id, text, cost) text,
    static const char *const names[] = {SN_UNARY_LIST(X)};
#undef X
    return names[op];
}

const char *sn_binary_text(sn_binary op)
{
#define X(id, text, cost) text,
    static const char *const names[] = {SN_BINARY_LIST(X)};
#undef X
    return names[op];
}
