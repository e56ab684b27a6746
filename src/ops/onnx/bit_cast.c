/* SPDX-License-Identifier: Apache-2.0 */
/* BitCast: the same bits under another element type of the same width. */
#include "compute/cast.h"
#include "ops/shared/data_movement.h"

typedef struct bit_cast_params {
    sn_dtype to;
} bit_cast_params;

static sonde_status prepare_bit_cast(sn_prep *p)
{
    bit_cast_params *b = p->params;
    int64_t to;
    SN_TRY(sn_prep_int(p, "to", 0, &to));
    if (!sn_dtype_valid(to) || to == SONDE_DTYPE_STRING)
        return sn_prep_fail(p, "attribute 'to' is %lld, which is not a numeric dtype",
                            (long long)to);
    b->to = (sn_dtype)to;
    return SONDE_OK;
}

static sonde_status infer_bit_cast(sn_infer *c)
{
    const bit_cast_params *b = c->params;
    const sn_type *t = &c->in[0]->type;
    if (t->dtype != SONDE_DTYPE_UNDEFINED &&
        (t->dtype == SONDE_DTYPE_STRING || sn_dtype_bits(t->dtype) != sn_dtype_bits(b->to)))
        return sn_infer_fail(c, "%s and %s differ in width", sn_dtype_onnx_name(t->dtype),
                             sn_dtype_onnx_name(b->to));
    return sn_infer_tensor(c, 0, b->to, t->dims, t->rank);
}

static sonde_status bind_bit_cast(sn_bind *b)
{
    b->kernel = "copy_bytes";
    return SONDE_OK;
}

static sonde_status run_bit_cast(const sn_step *s, sn_frame *f)
{
    sn_tensor *y = sn_out(s, f, 0);
    const sn_tensor *x = sn_in(s, f, 0);
    sn_copy_bytes(y->data, x->data, x->bytes, f->pool);
    if (sn_dtype_bits(y->dtype) < 8)
        sn_narrow_bytes(y->dtype, y->data, sn_tensor_count(y));
    return SONDE_OK;
}

const sn_op sn_op_bit_cast[] = {{SN_OP_HEAD("BitCast", 26, 0, 1, 1, 1, 1),
                                 .params_size = sizeof(bit_cast_params),
                                 .prepare = prepare_bit_cast, .infer = infer_bit_cast,
                                 .bind = bind_bit_cast, .run = run_bit_cast, .types = SN_ALL_TYPES},
                                {.name = NULL}};
