/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.ChannelNorm: each pixel of an image [n, channels, …] is normalised over its channels, as
 * LayerNormalization (or, with attribute `rms` of 1, RMSNormalization) does where they are the last
 * axis. f32, made by a pass; the image may lie in blocks. */
#include "compute/channel_norm.h"
#include "ops/framework/op.h"
#include "ops/shared/layouts.h"

enum { X, SCALE, BIAS };

typedef struct norm_params {
    float epsilon;
    bool rms;
} norm_params;

typedef struct norm_bound {
    sn_channel_norm plan;
    sn_piece rows;
} norm_bound;

static sonde_status prepare(sn_prep *p)
{
    norm_params *n = p->params;
    int64_t rms;
    SN_TRY(sn_prep_int(p, "rms", 0, &rms));
    n->rms = rms != 0;
    return sn_prep_float(p, "epsilon", 1e-5f, &n->epsilon);
}

static sonde_status infer(sn_infer *c)
{
    const sn_type *x = &c->in[X]->type;
    if (x->rank >= 0 && x->rank < 2)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is expected", x->rank);
    return sn_infer_same(c, 0, X);
}

static const sn_op_signature *in_blocks(const sn_node *n, const void *params, int block)
{
    (void)params;
    (void)block;
    return sn_value_is_image(n->in[X].value) ? &sn_layout_follows : NULL;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const norm_bound *k = s->bound;
    sn_channel_norm_run(&k->plan, sn_out(s, f, 0)->data, sn_in(s, f, X)->data,
                        sn_in(s, f, SCALE)->data, sn_has(s, BIAS) ? sn_in(s, f, BIAS)->data : NULL,
                        sn_piece_ptr(f, k->rows), f->pool);
    return SONDE_OK;
}

static bool is_row(const sn_fact *fact, int64_t channels)
{
    return fact->type.dtype == SONDE_DTYPE_F32 && fact->type.rank == 1 &&
           fact->type.dims[0] == channels;
}

static sonde_status bind(sn_bind *b)
{
    const norm_params *p = b->params;
    const sn_type *x = &b->in[X]->type;
    norm_bound *k = SN_NEW(b->arena, norm_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (x->dtype != SONDE_DTYPE_F32 || !is_row(b->in[SCALE], x->dims[1]) ||
        (b->n_in > BIAS && b->in[BIAS] && !is_row(b->in[BIAS], x->dims[1])))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "scale and bias need an f32 per channel");
    k->plan = (sn_channel_norm){.images = x->dims[0],
                                .channels = x->dims[1],
                                .pixels = 1,
                                .block = sn_fact_block(b->in[X]),
                                .rms = p->rms,
                                .epsilon = p->epsilon,
                                .threads = b->threads > 0 ? b->threads : 1};
    for (int i = 2; i < x->rank; i++)
        k->plan.pixels *= x->dims[i];
    sn_channel_norm_plan(&k->plan, b->cpu_flags);
    k->rows = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = (uint64_t)(k->plan.images * k->plan.pixels) * (uint64_t)k->plan.channels * 8;
    return SONDE_OK;
}

const sn_op sn_op_channel_norm[] = {{.name = "ChannelNorm",
                                     .domain = "sonde",
                                     .since = 1,
                                     .min_in = 2,
                                     .max_in = 3,
                                     .min_out = 1,
                                     .max_out = 1,
                                     .flags = SN_OP_INPLACE0,
                                     .params_size = sizeof(norm_params),
                                     .prepare = prepare,
                                     .infer = infer,
                                     .bind = bind,
                                     .run = run,
                                     .in_blocks = in_blocks,
                                     .types = "f32"},
                                    {.name = NULL}};
