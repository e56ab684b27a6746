/* SPDX-License-Identifier: Apache-2.0 */
/* Where: picks from one of two tensors by a condition, with broadcasting; any element type. */
#include "ops/shared/elementwise.h"

typedef struct where_bound {
    sn_bcast bcast;
    size_t elem_bytes;
    const int64_t *dims; /* of the result */
    int rank;
} where_bound;

static sonde_status infer_values(sn_infer *c)
{
    const sn_type *y = &c->out[0].type;
    const sn_dim *v[3];
    int64_t n[3], want, count;
    if (!sn_type_count(y, &count) || count > SN_MAX_KNOWN_INTS || y->dtype == SONDE_DTYPE_UNDEFINED)
        return SONDE_OK;
    for (uint32_t i = 0; i < 3; i++) {
        SN_TRY(sn_infer_ints(c, i, &v[i], &n[i]));
        if (!v[i] || !sn_type_count(&c->in[i]->type, &want) || want != n[i])
            return SONDE_OK;
    }
    sn_dim out[SN_MAX_KNOWN_INTS];
    for (int64_t k = 0; k < count; k++) {
        sn_dim cond = v[0][sn_bcast_index(y, &c->in[0]->type, k)];
        sn_dim a = v[1][sn_bcast_index(y, &c->in[1]->type, k)];
        sn_dim b = v[2][sn_bcast_index(y, &c->in[2]->type, k)];
        out[k] = sn_dim_known(cond) ? (cond ? a : b) : sn_dim_same(a, b) ? a : SN_DIM_UNKNOWN;
    }
    return sn_infer_set_ints(c, 0, out, count);
}

static sonde_status infer_where(sn_infer *c)
{
    sn_dim dims[SN_MAX_RANK];
    int rank;
    sn_dtype cond = c->in[0]->type.dtype;
    if (cond != SONDE_DTYPE_BOOL && cond != SONDE_DTYPE_UNDEFINED)
        return sn_infer_fail(c, "the condition is %s, expected bool", sn_dtype_onnx_name(cond));
    SN_TRY(sn_infer_elementwise(c, 1, SONDE_DTYPE_UNDEFINED));
    if (c->n_out == 0)
        return SONDE_OK;
    const sn_type values = c->out[0].type;
    SN_TRY(sn_infer_broadcast(c, &c->in[0]->type, &values, dims, &rank));
    SN_TRY(sn_infer_tensor(c, 0, values.dtype, dims, rank));
    return infer_values(c);
}

static sonde_status bind_where(sn_bind *b)
{
    where_bound *k = SN_NEW(b->arena, where_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    const sn_type *y = &b->out[0].type;
    const int64_t *dims[3];
    int ranks[3];
    for (int i = 0; i < 3; i++) {
        dims[i] = b->in[i]->type.dims;
        ranks[i] = b->in[i]->type.rank;
    }
    if (b->in[0]->type.dtype != SONDE_DTYPE_BOOL || b->in[1]->type.dtype != b->in[2]->type.dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "expects a bool condition and two inputs of the same type");
    sn_bcast_plan(&k->bcast, y->dims, y->rank, 3, dims, ranks);
    k->elem_bytes = sn_dtype_bytes(y->dtype);
    k->dims = y->dims;
    k->rank = y->rank;
    b->bound = k;
    b->kernel = "where";
    return SONDE_OK;
}

/* Elements borrow their bytes from the inputs until sn_run_strings copies them. */
static sonde_status run_strings(const sn_step *s, sn_frame *f, const where_bound *k)
{
    size_t bytes = k->bcast.total * sizeof(sonde_string);
    sonde_string *elems = sn_alloc(f->alloc, bytes);
    if (!elems)
        return sn_fail_memory(f->err, bytes);
    sn_where_run(&k->bcast, sizeof(sonde_string), elems, sn_in(s, f, 0)->data, sn_in(s, f, 1)->data,
                 sn_in(s, f, 2)->data, NULL);
    sonde_status st = sn_run_strings(s, f, 0, k->dims, k->rank, elems);
    sn_free(f->alloc, elems, bytes);
    return st;
}

static sonde_status run_where(const sn_step *s, sn_frame *f)
{
    const where_bound *k = s->bound;
    if (sn_in(s, f, 1)->dtype == SONDE_DTYPE_STRING)
        return run_strings(s, f, k);
    sn_where_run(&k->bcast, k->elem_bytes, sn_out(s, f, 0)->data, sn_in(s, f, 0)->data,
                 sn_in(s, f, 1)->data, sn_in(s, f, 2)->data, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_where[] = {{SN_ELT_HEAD("Where", 9, 0, 3, 3),
                              .flags = SN_OP_INPLACE1 | SN_OP_ELEMENTWISE, .infer = infer_where,
                              .bind = bind_where, .run = run_where, .half = SN_HALF_MOVED,
                              .types = "bool"},
                             {.name = NULL}};
