/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.ByteTable: a function of one byte as a table, which a pass made of the nodes that compute
 * it. Input 0 are bytes, input 1 the 256 results, signed or not as the output is; the byte as it
 * lies in memory, seen as an unsigned one, is the index. Layouts do not matter. */
#include "compute/quantized.h"
#include "ops/shared/layouts.h"

enum { X, TABLE, VALUES = 256 };

static sonde_status infer(sn_infer *c)
{
    const sn_type *x = &c->in[X]->type, *t = &c->in[TABLE]->type;
    int64_t n = VALUES;
    if ((x->dtype && !sn_is_byte(x->dtype)) || (t->dtype && !sn_is_byte(t->dtype)))
        return sn_infer_fail(c, "the input and the table must be bytes");
    if (sn_type_is_concrete(t) && sn_type_count(t, &n) && n != VALUES)
        return sn_infer_fail(c, "the table must have %d elements, not %lld", VALUES, (long long)n);
    return sn_infer_tensor(c, 0, t->dtype, x->dims, x->rank);
}

static sonde_status bind(sn_bind *b)
{
    int64_t n = 0;
    if (!sn_is_byte(b->in[X]->type.dtype) || !sn_is_byte(b->in[TABLE]->type.dtype) ||
        !sn_type_count(&b->in[TABLE]->type, &n) || n != VALUES)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "a table of bytes must have %d of them",
                            VALUES);
    b->kernel = "q8_table";
    if (sn_type_count(&b->in[X]->type, &n))
        b->flops = (uint64_t)n;
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, X);
    sn_q8_table_run(f->ctx->cpu.flags, sn_in(s, f, TABLE)->data, sn_out(s, f, 0)->data, x->data,
                    sn_tensor_count(x), f->pool);
    return SONDE_OK;
}

const sn_op sn_op_byte_table[] = {{.name = "ByteTable",
                                   .domain = "sonde",
                                   .since = 1,
                                   .min_in = 2,
                                   .max_in = 2,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .flags = SN_OP_INPLACE0,
                                   .infer = infer,
                                   .bind = bind,
                                   .run = run,
                                   .in_last = sn_last_follows,
                                   .types = "u8 i8"},
                                  {.name = NULL}};
