/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.ConvDepthwise: a 1×1 convolution and the depthwise one behind it (compute/conv_chain.h).
 * Window and `activation` are those of the second, `first_activation` is what stands between the
 * two. f32, made by a pass. */
#include "compute/conv_chain.h"
#include "ops/shared/activation.h"
#include "ops/shared/conv_weights.h"
#include "ops/shared/converted.h"
#include "ops/shared/window.h"

typedef struct chain_params {
    sn_window window;
    sn_act act[2]; /* of the first, of the second */
} chain_params;

enum { X, W2, W1, B2, B1 };

static sonde_status prepare(sn_prep *p)
{
    chain_params *c = p->params;
    SN_TRY(sn_window_prepare(p, &c->window));
    SN_TRY(sn_prep_act(p, "first_activation", "first_activation_params", &c->act[0]));
    return sn_prep_act(p, "activation", "activation_params", &c->act[1]);
}

/* ------------------------------------------------------------------ infer */
static bool has_dim(const sn_infer *c, uint32_t i, int rank, int axis, sn_dim size)
{
    if (!sn_infer_has(c, i) || c->in[i]->type.rank < 0)
        return true;
    const sn_type *t = &c->in[i]->type;
    return t->rank == rank &&
           (!sn_dim_known(t->dims[axis]) || !sn_dim_known(size) || t->dims[axis] == size);
}

static sonde_status infer(sn_infer *c)
{
    const chain_params *p = c->params;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->type.dtype && c->in[i]->type.dtype != SONDE_DTYPE_F32 &&
            !((i == W1 || i == W2) &&
              sn_weights_fit(c->node, c->in[i]->type.dtype, SONDE_DTYPE_F32)))
            return sn_infer_fail(c, "input %u is %s, expected f32", i,
                                 sn_dtype_name(c->in[i]->type.dtype));
    if (!sn_infer_has(c, X) || !sn_infer_has(c, W1) || !sn_infer_has(c, W2))
        return sn_infer_fail(c, "an input and two weights are required");
    const sn_type *x = &c->in[X]->type, *w = &c->in[W2]->type;
    SN_TRY(sn_window_check(c, &p->window, 2));
    if (w->rank < 0 || c->in[W1]->type.rank < 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
    const sn_dim channels = w->rank == 4 ? w->dims[0] : SN_DIM_UNKNOWN;
    if (w->rank != 4 || !has_dim(c, W2, 4, 1, 1) || !has_dim(c, W1, 4, 0, channels) ||
        !has_dim(c, W1, 4, 2, 1) || !has_dim(c, W1, 4, 3, 1) || !has_dim(c, B1, 1, 0, channels) ||
        !has_dim(c, B2, 1, 0, channels) || !has_dim(c, X, 4, 1, c->in[W1]->type.dims[1]))
        return sn_infer_fail(c, "the weights do not match each other or the input");
    if (channels == 0) /* a filter per channel: as many groups */
        return sn_infer_fail(c, "the weights have no output channels");
    sn_dim dims[4] = {x->rank > 0 ? x->dims[0] : SN_DIM_UNKNOWN, channels};
    for (int i = 0; i < 2; i++) {
        if (p->window.kernel && sn_dim_known(w->dims[i + 2]) &&
            w->dims[i + 2] != p->window.kernel[i])
            return sn_infer_fail(c, "kernel_shape does not match the weight");
        SN_TRY(sn_window_dim(c, &p->window, i, x->rank > 0 ? x->dims[i + 2] : SN_DIM_UNKNOWN,
                             w->dims[i + 2], &dims[i + 2]));
    }
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 4);
}

/* ------------------------------------------------------------------ pack, layout */
static sonde_status pack(sn_pack_request *r)
{
    sn_conv_weights_pack(r, W1, 1, 1);
    if (r->n_in > W2 && r->in[W2] && r->in[W2]->type.rank > 0)
        sn_conv_weights_pack(r, W2, r->in[W2]->type.dims[0], 1);
    return SONDE_OK;
}

static const sn_op_signature blocked = {
    .in = {[X] = SN_PORT_SAME}, .out = SN_PORT_SAME, .native_cost = SN_COST_NEVER};

static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    (void)params;
    for (uint32_t i = W2; i <= W1; i++) {
        const sn_value *w = node->n_in > i ? node->in[i].value : NULL;
        if (!w || !w->fact.data || w->fact.type.rank != 4 || !sn_type_is_concrete(&w->fact.type) ||
            !sn_conv_can_block(w->fact.type.dims, 4, i == W1 ? 1 : w->fact.type.dims[0],
                               (unsigned)block, false))
            return NULL;
    }
    return &blocked;
}

static uint32_t in_half(const sn_node *n, const void *params, sn_dtype half, uint32_t cpu_flags)
{
    (void)params;
    return sn_conv_in_half(n, X, W1, X, 1, half, cpu_flags);
}

/* ------------------------------------------------------------------ bind, run */
typedef struct chain_bound {
    sn_conv_chain chain;
    sn_piece w[2]; /* f32 copies of 16-bit weights that do not come packed */
    bool stored;   /* images are taken as they lie in memory, f32 or bf16 */
    sn_piece x, y; /* else: f32 copies of those that are bf16 */
    sn_piece core;
} chain_bound;

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const chain_bound *b = s->bound;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    const sn_conv_chain_call c = {
        .x = b->stored ? sn_in(s, f, X)->data : sn_converted_in(s, f, X, f32, b->x),
        .w = {sn_converted_in(s, f, W1, f32, b->w[0]), sn_converted_in(s, f, W2, f32, b->w[1])},
        .bias = {sn_has(s, B1) ? sn_in(s, f, B1)->data : NULL,
                 sn_has(s, B2) ? sn_in(s, f, B2)->data : NULL},
        .y = b->stored ? sn_out(s, f, 0)->data : sn_converted_out(s, f, 0, f32, b->y)};
    sn_conv_chain_run(&b->chain, &c, sn_piece_ptr(f, b->core), f->pool);
    if (!b->stored)
        sn_converted_done(s, f, 0, f32, b->y);
    return SONDE_OK;
}

/* "bf16_conv1x1_amx+f32_depthwise3x3_avx512": they may differ in precision. NULL: no memory. */
static const char *both_names(sn_arena *arena, const sn_conv_chain *c)
{
    return sn_arena_printf(arena, "%s+%s", c->first[0].name, c->second[0].name);
}

static sonde_status bind(sn_bind *b)
{
    const chain_params *p = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W2]->type;
    chain_bound *k = SN_NEW(b->arena, chain_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    sn_conv_chain *c = &k->chain;
    sn_conv_desc first = {.n = x->dims[0],
                          .c = x->dims[1],
                          .oc = w->dims[0],
                          .groups = 1,
                          .in_block = sn_fact_block(b->in[X]),
                          .out_block = sn_fact_block(&b->out[0]),
                          .packed = b->in[W1]->pack != 0 && b->in[W2]->pack != 0,
                          .w_dtype = sn_packed_dtype(b->in[W1]),
                          .tiles = sn_conv_weights_in_tiles(b->in[W1]),
                          .act = p->act[0]};
    k->stored = sn_conv_stored(b, X, W1, b->n_in, &first);
    sn_conv_desc second = first;
    first.y_half = second.x_half = 0;
    if (!k->stored) { /* weights that do not fit bf16 */
        first.x_half = second.y_half = 0;
        k->x = sn_converted_carve(&b->workspace, b->in[X], SONDE_DTYPE_F32);
        k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    }
    second.c = second.groups = second.oc;
    second.act = p->act[1];
    second.tiles = false;
    second.w_dtype = sn_packed_dtype(b->in[W2]);
    if (!sn_window_conv(&p->window, x->dims + 2, 2, w->dims + 2, &second))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    for (int i = 0; i < 3; i++) {
        first.in[i] = first.out[i] = second.in[i];
        first.kernel[i] = first.stride[i] = first.dilation[i] = 1;
    }
    SN_TRY(sn_conv_chain_make(c, &first, &second, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads,
                              b->err));
    k->w[0] = sn_converted_carve(&b->workspace, b->in[W1], SONDE_DTYPE_F32);
    k->w[1] = sn_converted_carve(&b->workspace, b->in[W2], SONDE_DTYPE_F32);
    k->core = sn_carve_inner(&b->workspace, &c->workspace);
    b->kernel = both_names(b->arena, c);
    if (!b->kernel)
        return sn_fail_memory(b->err, sizeof c->first[0].name + sizeof c->second[0].name);
    b->flops = c->flops;
    b->arithmetic = c->first[0].arithmetic;
    b->bound = k;
    return SONDE_OK;
}

const sn_op sn_op_conv_depthwise[] = {{.name = "ConvDepthwise",
                                       .domain = "sonde",
                                       .since = 1,
                                       .min_in = 3,
                                       .max_in = 5,
                                       .min_out = 1,
                                       .max_out = 1,
                                       .params_size = sizeof(chain_params),
                                       .prepare = prepare,
                                       .infer = infer,
                                       .pack = pack,
                                       .bind = bind,
                                       .run = run,
                                       .in_blocks = in_blocks,
                                       .in_half = in_half,
                                       .types = "f32"},
                                      {.name = NULL}};
