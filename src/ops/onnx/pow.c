/* SPDX-License-Identifier: Apache-2.0 */
/* Pow, whose exponent may have another element type than its base. The pair is brought to one type
 * in the workspace: the base's when it is a float, i64 for two integers, f64 for an integer to a
 * float. */
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

typedef struct pow_bound {
    sn_elt elt;
    sn_bcast bcast;
    sn_dtype dtype;             /* computed in */
    sn_piece base, exponent, y; /* in that type */
} pow_bound;

static sonde_status prepare_pow_1(sn_prep *p)
{
    return sn_prep_legacy(p, p->params);
}

static sonde_status infer_pow(sn_infer *c)
{
    sn_dim dims[SN_MAX_RANK], aligned[SN_MAX_RANK];
    int rank;
    sn_fact exponent;
    sn_legacy_align(c->params, c->in[0], c->in[1], &exponent, aligned);
    SN_TRY(sn_infer_broadcast(c, &c->in[0]->type, &exponent.type, dims, &rank));
    return sn_infer_tensor(c, 0, c->in[0]->type.dtype, dims, rank);
}

static sonde_status bind_pow(sn_bind *b)
{
    pow_bound *k = SN_NEW(b->arena, pow_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    sn_dim aligned[SN_MAX_RANK];
    sn_fact exponent;
    sn_legacy_align(b->params, b->in[0], b->in[1], &exponent, aligned);
    const sn_type *t[2] = {&b->in[0]->type, &exponent.type}, *y = &b->out[0].type;
    const int64_t *dims[2] = {t[0]->dims, t[1]->dims};
    const int ranks[2] = {t[0]->rank, t[1]->rank};
    if (t[0]->dtype == t[1]->dtype || sn_dtype_is_float(t[0]->dtype))
        k->dtype = t[0]->dtype;
    else
        k->dtype = sn_dtype_is_float(t[1]->dtype) ? SONDE_DTYPE_F64 : SONDE_DTYPE_I64;
    if (!sn_cast_supported(t[0]->dtype) || !sn_cast_supported(t[1]->dtype) ||
        !sn_binary_get(&k->elt, SN_BINARY_POW, k->dtype, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element types %s and %s are not supported",
                            sn_dtype_onnx_name(t[0]->dtype), sn_dtype_onnx_name(t[1]->dtype));
    sn_bcast_plan(&k->bcast, y->dims, y->rank, 2, dims, ranks);
    k->base = sn_converted_carve(&b->workspace, b->in[0], k->dtype);
    k->exponent = sn_converted_carve(&b->workspace, b->in[1], k->dtype);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], k->dtype);
    b->bound = k;
    b->kernel = k->elt.name;
    b->flops = (uint64_t)k->bcast.total * k->elt.cost;
    return SONDE_OK;
}

static sonde_status run_pow(const sn_step *s, sn_frame *f)
{
    const pow_bound *k = s->bound;
    const void *base = sn_converted_in(s, f, 0, k->dtype, k->base),
               *exponent = sn_converted_in(s, f, 1, k->dtype, k->exponent);
    sn_binary_run(&k->elt, &k->bcast, sn_converted_out(s, f, 0, k->dtype, k->y), base, exponent,
                  NULL, f->pool);
    sn_converted_done(s, f, 0, k->dtype, k->y);
    return SONDE_OK;
}

#define POW(SINCE, UNTIL, PREPARE, TYPES)                                                          \
    {                                                                                              \
        SN_ELT_HEAD("Pow", SINCE, UNTIL, 2, 2),                                                    \
            .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE, .params_size = sizeof(sn_legacy),         \
            .prepare = PREPARE, .infer = infer_pow, .bind = bind_pow, .run = run_pow,              \
            .half = SN_HALF_IN_F32, .types = TYPES                                                 \
    }
const sn_op sn_op_pow[] = {
    POW(1, 6, prepare_pow_1, SN_FLOATS), POW(7, 0, NULL, SN_FLOATS " i32 i64"), {.name = NULL}};
