/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: MaxPool (with indices), AveragePool, LpPool and their global forms. 16-bit floats go
 * through f32 in the workspace. f32 images may be blocked, bytes may have
 * their channels last. */
#include <string.h>

#include "compute/copy.h"
#include "compute/packs.h"
#include "compute/pooling.h"
#include "ops/shared/checks.h"
#include "ops/shared/converted.h"
#include "ops/shared/layouts.h"
#include "ops/shared/window.h"

typedef struct pool_params {
    sn_window window; /* global forms: empty */
    _Atomic bool *said_empty;
    sn_pooling_kind kind;
    bool global;
    int64_t include_pad, column_major, p;
} pool_params;

/* ------------------------------------------------------------------ prepare */
static sonde_status prepare_window(sn_prep *p, sn_pooling_kind kind)
{
    pool_params *w = p->params;
    w->kind = kind;
    w->window.cuts = true;
    SN_TRY(sn_prep_empty_flag(p, &w->said_empty));
    SN_TRY(sn_window_prepare(p, &w->window));
    if (!w->window.kernel)
        return sn_prep_fail(p, "attribute 'kernel_shape' is missing");
    SN_TRY(sn_prep_int(p, "count_include_pad", 0, &w->include_pad));
    return sn_prep_int(p, "storage_order", 0, &w->column_major);
}

static sonde_status prepare_max(sn_prep *p)
{
    return prepare_window(p, SN_POOL_MAX);
}

static sonde_status prepare_average(sn_prep *p)
{
    return prepare_window(p, SN_POOL_AVERAGE);
}

/* Before opset 19 ONNX Runtime counts the whole of a window that is larger than the input. */
static sonde_status prepare_average_1(sn_prep *p)
{
    pool_params *w = p->params;
    w->window.pads_cut = true;
    return prepare_average(p);
}

static sonde_status read_p(sn_prep *p)
{
    pool_params *w = p->params;
    SN_TRY(sn_prep_int(p, "p", 2, &w->p));
    return w->p >= 1 ? SONDE_OK : sn_prep_fail(p, "attribute 'p' is %lld", (long long)w->p);
}

static sonde_status prepare_lp(sn_prep *p)
{
    SN_TRY(prepare_window(p, SN_POOL_LP));
    return read_p(p);
}

static sonde_status prepare_global(sn_prep *p)
{
    pool_params *w = p->params;
    w->global = true;
    w->kind = strcmp(p->node->op_type, "GlobalMaxPool") == 0       ? SN_POOL_MAX
              : strcmp(p->node->op_type, "GlobalAveragePool") == 0 ? SN_POOL_AVERAGE
                                                                   : SN_POOL_LP;
    return w->kind == SN_POOL_LP ? read_p(p) : SONDE_OK;
}

/* ------------------------------------------------------------------ infer */
static sonde_status infer(sn_infer *c)
{
    const pool_params *p = c->params;
    if (!sn_infer_has(c, 0))
        return sn_infer_fail(c, "an input is required");
    const sn_type *x = &c->in[0]->type;
    const int rank = x->rank >= 0 ? x->rank : p->global ? -1 : (int)p->window.n + 2;
    sn_dim dims[SN_MAX_RANK];
    if (rank > SN_MAX_RANK || (rank >= 0 && rank < 2) || (!p->global && rank < 3))
        return sn_infer_fail(c, "an input of rank %d cannot be pooled", rank);
    if (!p->global)
        SN_TRY(sn_window_check(c, &p->window, rank - 2));
    for (int i = 0; i < rank; i++) {
        dims[i] = x->rank >= 0 ? x->dims[i] : SN_DIM_UNKNOWN;
        if (i >= 2 && p->global)
            dims[i] = 1;
        else if (i >= 2)
            SN_TRY(sn_window_dim(c, &p->window, i - 2, dims[i], p->window.kernel[i - 2], &dims[i]));
    }
    SN_TRY(sn_infer_tensor(c, 0, x->dtype, dims, rank));
    if (c->n_out > 1)
        SN_TRY(sn_infer_tensor(c, 1, SONDE_DTYPE_I64, dims, rank));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ layout */
/* A global pool reads its input in any layout and makes one pixel per channel, plain. */
static const sn_op_signature global_pool = {.in = {SN_PORT_ANY}};

static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    const pool_params *p = params;
    const sn_value *x = node->in[0].value;
    (void)block;
    if (!x || !sn_value_is_image(x) || p->kind == SN_POOL_LP || (node->n_out > 1 && node->out[1]))
        return NULL;
    return p->global ? &global_pool : &sn_layout_follows;
}

static const sn_op_signature *in_last(const sn_node *node, const void *params)
{
    const pool_params *p = params;
    const sn_value *x = node->in[0].value;
    const bool indices = node->n_out > 1 && node->out[1];
    return x && sn_value_is_byte_image(x) && p->kind == SN_POOL_MAX && !p->global && !indices
               ? &sn_layout_follows
               : NULL;
}

static uint32_t in_half(const sn_node *node, const void *params, sn_dtype half, uint32_t cpu_flags)
{
    const sn_value *x = node->in[0].value, *y = node->out[0];
    (void)params;
    (void)half;
    if (!x || !y || !sn_pack_has_image_tiles(cpu_flags) || sn_fact_block(&x->fact) == 0 ||
        x->fact.type.dtype != SONDE_DTYPE_F32 || x->fact.type.rank != 4)
        return 0;
    return 1u | (sn_fact_block(&y->fact) ? SN_HALF_OUT : 0);
}

/* ------------------------------------------------------------------ bind, run */
typedef struct pool_bound {
    sn_pooling_plan plan;
    sn_piece x, y; /* in f32; or y: a blocked result that must become plain */
    sn_copy cut;   /* … by this copy */
    sn_piece core;
} pool_bound;

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const pool_bound *b = s->bound;
    int64_t *indices = sn_wants(s, 1) ? sn_out(s, f, 1)->data : NULL;
    sn_pooling_run(&b->plan, sn_in(s, f, 0)->data, sn_out(s, f, 0)->data, indices,
                   sn_piece_ptr(f, b->core), f->pool);
    return SONDE_OK;
}

/* With the padding lanes. */
static int64_t blocked_channels(const sn_pooling_desc *d)
{
    return (d->c + d->block - 1) / d->block * d->block;
}

/* Global pooling of a blocked image whose last block is partial: results are cut out of the blocks.
 */
static sonde_status run_cut(const sn_step *s, sn_frame *f)
{
    const pool_bound *b = s->bound;
    float *part = sn_piece_ptr(f, b->y);
    sn_pooling_run(&b->plan, sn_in(s, f, 0)->data, part, NULL, sn_piece_ptr(f, b->core), f->pool);
    sn_copy_run(&b->cut, sn_out(s, f, 0)->data, part, f->pool);
    return SONDE_OK;
}

static sonde_status run_half(const sn_step *s, sn_frame *f)
{
    const pool_bound *b = s->bound;
    sn_pooling_run(&b->plan, sn_converted_in(s, f, 0, SONDE_DTYPE_F32, b->x), sn_piece_ptr(f, b->y),
                   sn_wants(s, 1) ? sn_out(s, f, 1)->data : NULL, sn_piece_ptr(f, b->core),
                   f->pool);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, b->y);
    return SONDE_OK;
}

static sonde_status describe(sn_bind *b, sn_pooling_desc *d)
{
    const pool_params *p = b->params;
    const sn_type *x = &b->in[0]->type;
    const bool half = sn_is_half(x->dtype);
    if (x->rank > 5)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "pooling of %d spatial dims is not supported",
                            (int)x->rank - 2);
    *d = (sn_pooling_desc){.kind = p->kind,
                           .dtype = half ? SONDE_DTYPE_F32 : x->dtype,
                           .n = x->dims[0],
                           .c = x->dims[1],
                           .block = sn_fact_block(b->in[0]),
                           .last = sn_layout_is_last(b->in[0]->form.layout),
                           .x_half = b->in[0]->form.dtype,
                           .y_half = b->out[0].form.dtype,
                           .include_pad = p->include_pad != 0,
                           .column_major = p->column_major != 0,
                           .p = (double)p->p};
    if (!sn_pooling_takes(d->kind, d->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "pooling of %s is not supported",
                            sn_dtype_name(x->dtype));
    if (!sn_window_pooling(p->global ? NULL : &p->window, x->dims + 2, x->rank - 2, d))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit the input");
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const pool_params *p = b->params;
    pool_bound *q = SN_NEW(b->arena, pool_bound);
    sn_pooling_desc d;
    int64_t n = 0;
    if (!q)
        return sn_fail_memory(b->err, sizeof *q);
    SN_TRY(describe(b, &d));
    if (d.block != sn_fact_block(&b->out[0]) && !(p->global && sn_fact_block(&b->out[0]) == 0))
        return sn_bind_fail(b, SONDE_INTERNAL, "no pooling from blocks of %u to %u", d.block,
                            sn_fact_block(&b->out[0]));
    sn_pooling_plan_make(&q->plan, &d, b->cpu_flags, b->threads);
    q->core = sn_carve_inner(&b->workspace, &q->plan.workspace);
    sn_type_count(&b->out[0].type, &n);
    if (!p->global)
        sn_bind_warn_empty(b, p->said_empty);
    b->bound = q;
    b->kernel = q->plan.name;
    b->flops = (uint64_t)n * (uint64_t)(d.kernel[0] * d.kernel[1] * d.kernel[2]);
    b->run = run;
    if (sn_is_half(b->in[0]->type.dtype)) {
        b->run = run_half;
        q->x = sn_converted_carve(&b->workspace, b->in[0], SONDE_DTYPE_F32);
        q->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    } else if (d.block && sn_fact_block(&b->out[0]) == 0 && d.c % d.block != 0) {
        b->run = run_cut;
        const int64_t dims[2] = {d.n, d.c}, row = blocked_channels(&d);
        q->y = sn_carve(&b->workspace, d.n * row, sizeof(float));
        sn_copy_plan(&q->cut, sizeof(float), 2, dims, (ptrdiff_t[]){d.c, 1}, (ptrdiff_t[]){row, 1});
    }
    return SONDE_OK;
}

#define POOL(op, from, to, outs, prep, sixteen, lay, list)                                         \
    {                                                                                              \
        .name = op, .domain = "", .since = from, .until = to, .min_in = 1, .max_in = 1,            \
        .min_out = 1, .max_out = outs, .params_size = sizeof(pool_params), .prepare = prep,        \
        .infer = infer, .bind = bind, .run = run, .half = sixteen, .in_blocks = lay,               \
        .in_half = in_half, .in_last = in_last, .types = list                                      \
    }
#define FLOATS "f32 f64 f16 bf16"

const sn_op sn_op_max_pool[] = {
    POOL("MaxPool", 1, 7, 1, prepare_max, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("MaxPool", 8, 9, 2, prepare_max, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("MaxPool", 10, 10, 2, prepare_max, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("MaxPool", 11, 11, 2, prepare_max, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("MaxPool", 12, 21, 2, prepare_max, SN_HALF_IN_F32, in_blocks, FLOATS " i8 u8"),
    POOL("MaxPool", 22, 0, 2, prepare_max, SN_HALF_IN_F32, in_blocks, FLOATS " i8 u8"),
    {.name = NULL}};

const sn_op sn_op_average_pool[] = {
    POOL("AveragePool", 1, 6, 1, prepare_average_1, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("AveragePool", 7, 9, 1, prepare_average_1, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("AveragePool", 10, 10, 1, prepare_average_1, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("AveragePool", 11, 18, 1, prepare_average_1, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("AveragePool", 19, 21, 1, prepare_average, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("AveragePool", 22, 0, 1, prepare_average, SN_HALF_IN_F32, in_blocks, FLOATS),
    {.name = NULL}};

const sn_op sn_op_lp_pool[] = {
    POOL("LpPool", 2, 10, 1, prepare_lp, SN_HALF_AS_TYPED, NULL, FLOATS),
    POOL("LpPool", 11, 17, 1, prepare_lp, SN_HALF_AS_TYPED, NULL, FLOATS),
    POOL("LpPool", 18, 21, 1, prepare_lp, SN_HALF_AS_TYPED, NULL, FLOATS),
    POOL("LpPool", 22, 0, 1, prepare_lp, SN_HALF_AS_TYPED, NULL, FLOATS),
    {.name = NULL}};

const sn_op sn_op_global_average_pool[] = {
    POOL("GlobalAveragePool", 1, 21, 1, prepare_global, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("GlobalAveragePool", 22, 0, 1, prepare_global, SN_HALF_IN_F32, in_blocks, FLOATS),
    {.name = NULL}};

const sn_op sn_op_global_max_pool[] = {
    POOL("GlobalMaxPool", 1, 21, 1, prepare_global, SN_HALF_IN_F32, in_blocks, FLOATS),
    POOL("GlobalMaxPool", 22, 0, 1, prepare_global, SN_HALF_IN_F32, in_blocks, FLOATS),
    {.name = NULL}};

const sn_op sn_op_global_lp_pool[] = {
    POOL("GlobalLpPool", 2, 21, 1, prepare_global, SN_HALF_AS_TYPED, NULL, FLOATS),
    POOL("GlobalLpPool", 22, 0, 1, prepare_global, SN_HALF_AS_TYPED, NULL, FLOATS),
    {.name = NULL}};
