/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.Reorder: the same tensor in another layout. Attribute `block`: 0 = plain, else blocks of
 * that many channels; `last`: 1 = channels last, of bytes; `dtype`: of the result, 0 = that of the
 * input. The layout pass puts it where a blocked region begins or ends, and there it may change
 * 16-bit floats to f32 or back as well. */
#include "compute/reorder.h"
#include "compute/channels_last.h"
#include "compute/small_floats.h"
#include "ops/framework/op.h"

typedef struct reorder_params {
    int64_t block, last, dtype;
} reorder_params;

typedef struct reorder_bound {
    sn_reorder r;
    sn_channels_last last;
    bool to_last;
    uint32_t cpu_flags;
} reorder_bound;

static sonde_status prepare(sn_prep *p)
{
    reorder_params *r = p->params;
    SN_TRY(sn_prep_int(p, "block", 0, &r->block));
    if (r->block != 0 && r->block != 8 && r->block != 16)
        return sn_prep_fail(p, "attribute 'block' is %lld", (long long)r->block);
    SN_TRY(sn_prep_int(p, "last", 0, &r->last));
    SN_TRY(sn_prep_int(p, "dtype", 0, &r->dtype));
    if (r->dtype != 0 && r->dtype != SONDE_DTYPE_F32 && r->dtype != SONDE_DTYPE_F16 &&
        r->dtype != SONDE_DTYPE_BF16)
        return sn_prep_fail(p, "attribute 'dtype' is %lld", (long long)r->dtype);
    return SONDE_OK;
}

static sonde_status infer(sn_infer *c)
{
    if (!sn_infer_has(c, 0))
        return sn_infer_fail(c, "an input is required");
    const reorder_params *p = c->params;
    SN_TRY(sn_infer_same(c, 0, 0));
    if (p->dtype)
        c->out[0].type.dtype = (sn_dtype)p->dtype;
    return SONDE_OK;
}

/* f32 on both sides, or 16-bit floats on one that is plain beside blocks of f32. */
static bool is_possible(const sn_fact *x, const sn_fact *y)
{
    const sn_fact *const plain = sn_fact_block(x) ? y : x, *const other = plain == x ? y : x;
    if (other->type.dtype != SONDE_DTYPE_F32)
        return false;
    return plain->type.dtype == SONDE_DTYPE_F32 ||
           (sn_is_half(plain->type.dtype) && !sn_fact_block(plain) && sn_fact_block(other));
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const reorder_bound *b = s->bound;
    sn_reorder_run(&b->r, b->cpu_flags, sn_in(s, f, 0)->data, sn_out(s, f, 0)->data, f->pool);
    return SONDE_OK;
}

static sonde_status run_last(const sn_step *s, sn_frame *f)
{
    const reorder_bound *b = s->bound;
    (b->to_last ? sn_channels_to_last : sn_channels_from_last)(
        &b->last, b->cpu_flags, sn_in(s, f, 0)->data, sn_out(s, f, 0)->data, f->pool);
    return SONDE_OK;
}

/* Channels last on one side, plain on the other. */
static sonde_status bind_last(sn_bind *b, reorder_bound *r)
{
    const sn_type *x = &b->in[0]->type;
    const reorder_params *p = b->params;
    const sn_layout from = b->in[0]->form.layout, to = b->out[0].form.layout;
    const bool to_last = sn_layout_is_last(to);
    if (sn_dtype_bytes(x->dtype) != 1 || x->rank < 2 || p->dtype || p->block ||
        (p->last != 0) != to_last || !sn_layout_is_plain(to_last ? from : to))
        return sn_bind_fail(b, SONDE_UNSUPPORTED,
                            "channels come last in plain images of bytes, and go back to them");
    r->last = (sn_channels_last){x->dims[0], x->dims[1], 1, x->dims[1], 1};
    for (int i = 2; i < x->rank; i++)
        r->last.pixels *= x->dims[i];
    r->to_last = to_last;
    b->bound = r;
    b->run = run_last;
    b->kernel = to_last ? "u8_channels_last" : "u8_channels_first";
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const sn_type *x = &b->in[0]->type;
    const reorder_params *p = b->params;
    reorder_bound *r = SN_NEW(b->arena, reorder_bound);
    if (!r)
        return sn_fail_memory(b->err, sizeof *r);
    r->cpu_flags = b->cpu_flags;
    if (sn_layout_is_last(b->in[0]->form.layout) || sn_layout_is_last(b->out[0].form.layout))
        return bind_last(b, r);
    if (!is_possible(b->in[0], &b->out[0]) || x->rank < 2)
        return sn_bind_fail(b, SONDE_UNSUPPORTED,
                            "only f32 tensors of rank 2 and above are blocked");
    /* Layouts are not written to files: a node read from one cannot say that its output has one. */
    if (sn_fact_block(&b->out[0]) != p->block || p->last)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "only the layout pass may create blocks of %lld",
                            (long long)p->block);
    r->r = (sn_reorder){.n = x->dims[0],
                        .c = x->dims[1],
                        .pixels = 1,
                        .from = sn_fact_block(b->in[0]),
                        .to = (unsigned)p->block};
    if (x->dtype != b->out[0].type.dtype)
        r->r.plain = sn_is_half(x->dtype) ? x->dtype : b->out[0].type.dtype;
    for (int i = 2; i < x->rank; i++)
        r->r.pixels *= x->dims[i];
    b->bound = r;
    b->kernel = sn_reorder_name(&r->r, b->cpu_flags);
    return SONDE_OK;
}

const sn_op sn_op_reorder[] = {{.name = "Reorder",
                                .domain = "sonde",
                                .since = 1,
                                .min_in = 1,
                                .max_in = 1,
                                .min_out = 1,
                                .max_out = 1,
                                .flags = SN_OP_NO_FOLD,
                                .params_size = sizeof(reorder_params),
                                .prepare = prepare,
                                .infer = infer,
                                .bind = bind,
                                .run = run,
                                .types = "f32 f16 bf16 u8 i8"},
                               {.name = NULL}};
