/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.GatedConv: a 1×1 convolution of an image whose channels are multiplied by a gate first
 * (squeeze-and-excite). The gate goes into the weights, image by image, which are far fewer than
 * the pixels; or, by tiles of bf16, into x while it becomes bf16. A residual and an activation
 * follow as in sonde.FusedConv. f32, made by a pass. */
#include "compute/cast.h"
#include "compute/conv_gate.h"
#include "compute/conv_tiles.h"
#include "compute/split.h"
#include "ops/shared/activation.h"
#include "ops/shared/conv_weights.h"
#include "ops/shared/converted.h"
#include "ops/shared/tuned_plan.h"
#include "ops/shared/window.h"

#include <string.h>

typedef struct gated_params {
    sn_window window;
    sn_act act;
} gated_params;

enum { X, W, GATE, B, Z };

static sonde_status prepare(sn_prep *p)
{
    gated_params *c = p->params;
    SN_TRY(sn_window_prepare(p, &c->window));
    return sn_prep_act(p, "activation", "activation_params", &c->act);
}

/* ------------------------------------------------------------------ infer */
/* Is input i absent, unknown, or of these dims (-1: any)? */
static bool fits(const sn_infer *c, uint32_t i, int rank, const sn_dim *dims)
{
    if (!sn_infer_has(c, i) || c->in[i]->type.rank < 0)
        return true;
    const sn_type *t = &c->in[i]->type;
    bool same = t->rank == rank;
    for (int k = 0; same && k < rank; k++)
        same = !sn_dim_known(dims[k]) || dims[k] < 0 || !sn_dim_known(t->dims[k]) ||
               t->dims[k] == dims[k];
    return same;
}

static sonde_status infer(sn_infer *c)
{
    const gated_params *p = c->params;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->type.dtype && c->in[i]->type.dtype != SONDE_DTYPE_F32 &&
            !(i == W && sn_weights_fit(c->node, c->in[i]->type.dtype, SONDE_DTYPE_F32)))
            return sn_infer_fail(c, "input %u is %s, expected f32", i,
                                 sn_dtype_name(c->in[i]->type.dtype));
    if (!sn_infer_has(c, X) || !sn_infer_has(c, W) || !sn_infer_has(c, GATE))
        return sn_infer_fail(c, "input, weight and gate are required");
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    SN_TRY(sn_window_check(c, &p->window, 2));
    if (x->rank < 0 || w->rank < 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
    if (x->rank != 4 || w->rank != 4)
        return sn_infer_fail(c, "images and weights of rank 4 are needed");
    const sn_dim weight[4] = {w->dims[0], x->dims[1], 1, 1};
    const sn_dim gate[4] = {x->dims[0], x->dims[1], 1, 1};
    sn_dim dims[4] = {x->dims[0], w->dims[0]};
    for (int i = 0; i < 2; i++)
        SN_TRY(sn_window_dim(c, &p->window, i, x->dims[i + 2], 1, &dims[i + 2]));
    if (!fits(c, W, 4, weight) || !fits(c, GATE, 4, gate) || !fits(c, B, 1, &dims[1]) ||
        !fits(c, Z, 4, dims))
        return sn_infer_fail(c, "the shapes of the inputs do not match");
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, dims, 4);
}

/* ------------------------------------------------------------------ pack, layout */
static sonde_status pack(sn_pack_request *r)
{
    sn_conv_weights_pack(r, W, 1, 1);
    return SONDE_OK;
}

/* The gate is one pixel, which is read as it lies. */
static const sn_op_signature blocked = {
    .in = {[X] = SN_PORT_SAME, [GATE] = SN_PORT_ANY, [Z] = SN_PORT_SAME},
    .out = SN_PORT_SAME,
    .native_cost = SN_COST_NEVER};
static const sn_op_signature plain = {.in = {[GATE] = SN_PORT_ANY}};

static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    const sn_value *w = node->in[W].value;
    (void)params;
    return w && w->fact.data && w->fact.type.rank == 4 && sn_type_is_concrete(&w->fact.type) &&
                   sn_conv_can_block(w->fact.type.dims, 4, 1, (unsigned)block, false)
               ? &blocked
               : &plain;
}

static uint32_t in_half(const sn_node *n, const void *params, sn_dtype half, uint32_t cpu_flags)
{
    (void)params;
    return sn_conv_in_half(n, X, W, Z, 1, half, cpu_flags);
}

/* ------------------------------------------------------------------ bind, run */
typedef struct gated_bound {
    sn_conv_plan plan;       /* of one image */
    int64_t images, in, out; /* floats of an image, of a result */
    int64_t gate_stride;     /* floats from one image's gate to the next */
    sn_conv_gate gate;
    size_t floats;                /* of the weights */
    sn_dtype dtype;               /* of the weights, as they come */
    sn_piece wide, weights, core; /* f32 copy of 16-bit weights; by a gate; of the plan */
    sn_piece gates;               /* by tiles: of whole blocks */
    sn_piece x, z, y;             /* f32 copies of images that are bf16 */
} gated_bound;

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const gated_bound *b = s->bound;
    const sn_tensor *weights = sn_in(s, f, W);
    const float *x = sn_converted_in(s, f, X, SONDE_DTYPE_F32, b->x);
    const float *gate = sn_in(s, f, GATE)->data, *bias = sn_has(s, B) ? sn_in(s, f, B)->data : NULL;
    const float *z = sn_converted_in(s, f, Z, SONDE_DTYPE_F32, b->z);
    float *y = sn_converted_out(s, f, 0, SONDE_DTYPE_F32, b->y);
    float *scaled = sn_piece_ptr(f, b->weights);
    for (int64_t i = 0; i < b->images; i++) {
        const float *w = weights->data;
        if (b->dtype != SONDE_DTYPE_F32) {
            float *wide = sn_piece_ptr(f, b->wide);
            sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F32, wide, b->dtype, weights->data,
                        b->floats, (sn_rounding){0}, f->pool);
            w = wide;
        }
        sn_conv_gate_run(&b->gate, scaled, w, gate + i * b->gate_stride);
        sn_conv_run(&b->plan, x + i * b->in, scaled, bias, z ? z + i * b->out : NULL,
                    y + i * b->out, sn_piece_ptr(f, b->core), f->pool);
    }
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, b->y);
    return SONDE_OK;
}

/* Gates of a block's lanes, zeros behind the last channel. */
static const float *fill_blocks(const gated_bound *b, const float *gate, float *to)
{
    const int64_t lanes = b->gate.inputs, channels = b->gate.channels;
    if (b->gate_stride >= lanes)
        return gate;
    for (int64_t i = 0; i < b->images; i++) {
        memcpy(to + i * lanes, gate + i * b->gate_stride, (size_t)channels * sizeof *to);
        memset(to + i * lanes + channels, 0, (size_t)(lanes - channels) * sizeof *to);
    }
    return to;
}

static sonde_status run_tiles(const sn_step *s, sn_frame *f)
{
    const gated_bound *b = s->bound;
    const float *gate = fill_blocks(b, sn_in(s, f, GATE)->data, sn_piece_ptr(f, b->gates));
    const sn_conv_gates gates = {gate, sn_max(b->gate_stride, b->gate.inputs)};
    const sn_conv_call c = {.p = &b->plan,
                            .w = sn_in(s, f, W)->data,
                            .x = sn_in(s, f, X)->data,
                            .bias = sn_has(s, B) ? sn_in(s, f, B)->data : NULL,
                            .z = sn_has(s, Z) ? sn_in(s, f, Z)->data : NULL,
                            .y = sn_out(s, f, 0)->data,
                            .workspace = sn_piece_ptr(f, b->core)};
    sn_conv_tiles_run(&c, &gates, sn_pool_threads(f->pool) > b->plan.threads ? NULL : f->pool);
    return SONDE_OK;
}

static int64_t round_to(int64_t n, int64_t block)
{
    return block ? (n + block - 1) / block * block : n;
}

static sonde_status bind(sn_bind *b)
{
    const gated_params *p = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    gated_bound *c = SN_NEW(b->arena, gated_bound);
    if (!c)
        return sn_fail_memory(b->err, sizeof *c);
    b->overwrites = 1 << Z;
    const int64_t block = sn_fact_block(b->in[X]);
    const bool tiles = sn_conv_weights_in_tiles(b->in[W]);
    sn_conv_desc d = {.n = tiles ? x->dims[0] : 1,
                      .c = x->dims[1],
                      .oc = w->dims[0],
                      .groups = 1,
                      .in_block = sn_fact_block(b->in[X]),
                      .out_block = sn_fact_block(&b->out[0]),
                      .residual = b->n_in > Z && b->in[Z],
                      .packed = b->in[W]->pack != 0,
                      .w_dtype = tiles ? sn_packed_dtype(b->in[W]) : SONDE_DTYPE_F32,
                      .tiles = tiles,
                      .act = p->act};
    if (!sn_window_conv(&p->window, x->dims + 2, 2, w->dims + 2, &d))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    if (!sn_conv_stored(b, X, W, Z, &d)) { /* weights that do not fit bf16 */
        d.x_half = d.z_half = d.y_half = 0;
        c->x = sn_converted_carve(&b->workspace, b->in[X], SONDE_DTYPE_F32);
        if (b->n_in > Z)
            c->z = sn_converted_carve(&b->workspace, b->in[Z], SONDE_DTYPE_F32);
        c->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    }
    SN_TRY(sn_conv_plan_tuned(b, &d, &c->plan));
    c->images = x->dims[0];
    c->in = round_to(d.c, block) * d.in[1] * d.in[2];
    c->out = round_to(d.oc, sn_fact_block(&b->out[0])) * d.out[1] * d.out[2];
    c->gate_stride = round_to(d.c, sn_fact_block(b->in[GATE]));
    /* Packed: [out block][input channel][block], as conv_pack.c lays out one tap; else as given. */
    c->gate = (sn_conv_gate){.rows = d.packed ? round_to(d.oc, block) / block : d.oc,
                             .inputs = d.packed ? round_to(d.c, block) : d.c,
                             .lanes = d.packed ? block : 1,
                             .channels = d.c};
    const int64_t floats = sn_count(c->gate.rows, c->gate.lanes, c->gate.inputs, 1);
    c->floats = (size_t)floats;
    c->dtype = sn_packed_dtype(b->in[W]);
    if (tiles) {
        c->gates = sn_carve(
            &b->workspace,
            c->gate_stride < c->gate.inputs ? sn_count(c->images, c->gate.inputs, 1, 1) : 0,
            sizeof(float));
        c->core = sn_carve_inner(&b->workspace, &c->plan.workspace);
        b->run = run_tiles;
        b->kernel = c->plan.name;
        b->flops = c->plan.flops;
        b->arithmetic = c->plan.arithmetic;
        b->bound = c;
        return SONDE_OK;
    }
    c->wide = sn_carve(&b->workspace, c->dtype == SONDE_DTYPE_F32 ? 0 : floats, sizeof(float));
    c->weights = sn_carve(&b->workspace, floats, sizeof(float));
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the weights are too large");
    c->core = sn_carve_inner(&b->workspace, &c->plan.workspace);
    b->kernel = c->plan.name;
    b->arithmetic = c->plan.arithmetic;
    b->flops = c->plan.flops * (uint64_t)(c->images > 0 ? c->images : 0) + (uint64_t)floats;
    b->bound = c;
    return SONDE_OK;
}

const sn_op sn_op_gated_conv[] = {{.name = "GatedConv",
                                   .domain = "sonde",
                                   .since = 1,
                                   .min_in = 3,
                                   .max_in = 5,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .params_size = sizeof(gated_params),
                                   .prepare = prepare,
                                   .infer = infer,
                                   .pack = pack,
                                   .bind = bind,
                                   .run = run,
                                   .in_blocks = in_blocks,
                                   .in_half = in_half,
                                   .types = "f32"},
                                  {.name = NULL}};
