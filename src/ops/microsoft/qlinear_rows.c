/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit operators of com.microsoft that look at more than one element: QLinearAveragePool,
 * QLinearGlobalAveragePool and QLinearSoftmax. Averages are taken of images with channels last;
 * others are turned on the way. */
#include <string.h>

#include "compute/average_bytes.h"
#include "compute/channels_last.h"
#include "compute/softmax_bytes.h"
#include "ops/microsoft/qlinear.h"
#include "ops/shared/checks.h"
#include "ops/shared/layouts.h"
#include "ops/shared/window.h"

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

typedef struct rows_params {
    sn_window window;
    _Atomic bool *said_empty;
    bool global, channels_last;
    int64_t include_pad;
    int64_t axis, opset, as_nodes; /* softmax */
} rows_params;

typedef struct rows_bound {
    sn_average_bytes pool;
    sn_softmax_bytes softmax;
    sn_channels_last in, out;
    bool turn_in, turn_out; /* their channels are not last */
    int64_t in_count, out_count;
    sn_piece turned[2]; /* the bytes of either with channels last */
    sn_piece sums;
} rows_bound;

static sonde_status prepare_pool(sn_prep *p)
{
    rows_params *r = p->params;
    int64_t last;
    SN_TRY(sn_prep_int(p, "channels_last", 0, &last));
    SN_TRY(sn_prep_int(p, "count_include_pad", 0, &r->include_pad));
    r->channels_last = last != 0;
    r->global = strcmp(p->node->op_type, "QLinearGlobalAveragePool") == 0;
    if (r->global)
        return SONDE_OK;
    r->window.cuts = true;
    SN_TRY(sn_prep_empty_flag(p, &r->said_empty));
    SN_TRY(sn_window_prepare(p, &r->window));
    return r->window.kernel ? SONDE_OK : sn_prep_fail(p, "attribute 'kernel_shape' is missing");
}

static sonde_status infer_pool(sn_infer *c)
{
    const rows_params *r = c->params;
    const sn_type *x = &c->in[X]->type;
    sn_dim dims[SN_MAX_RANK];
    if (!sn_infer_has(c, Y_SCALE))
        return sn_infer_fail(c, "the scale of Y is required");
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (x->rank < 3)
        return sn_infer_fail(c, "an input of rank %d cannot be pooled", x->rank);
    const int first = r->channels_last ? 1 : 2;
    if (!r->global)
        SN_TRY(sn_window_check(c, &r->window, x->rank - 2));
    memcpy(dims, x->dims, sizeof(sn_dim) * (size_t)x->rank);
    for (int i = 0; i < x->rank - 2; i++) {
        if (r->global)
            dims[first + i] = 1;
        else
            SN_TRY(sn_window_dim(c, &r->window, i, x->dims[first + i], r->window.kernel[i],
                                 &dims[first + i]));
    }
    return sn_infer_tensor(c, 0, x->dtype, dims, x->rank);
}

/* A global pool reads its input in any layout and makes one pixel per channel, plain. */
static const sn_op_signature *in_last_pool(const sn_node *node, const void *params)
{
    static const sn_op_signature global = {.in = {SN_PORT_ANY}};
    const rows_params *r = params;
    if (r->channels_last || !sn_value_is_byte_image(node->in[X].value))
        return NULL;
    return r->global ? &global : &sn_layout_follows;
}

static sonde_status bind_pool(sn_bind *b)
{
    const rows_params *r = b->params;
    rows_bound *k = SN_NEW(b->arena, rows_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[X]->type;
    const int spatial = x->rank - 2;
    const int64_t *size = x->dims + (r->channels_last ? 1 : 2);
    SN_TRY(sn_qparam_check(b, X_SCALE, x->dtype));
    SN_TRY(sn_qparam_check(b, Y_SCALE, x->dtype));
    sn_pooling_desc d = {.kind = SN_POOL_AVERAGE,
                         .dtype = x->dtype,
                         .n = x->dims[0],
                         .c = x->dims[r->channels_last ? x->rank - 1 : 1],
                         .include_pad = r->include_pad != 0};
    if (!sn_window_pooling(r->global ? NULL : &r->window, size, spatial, &d))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "this window over %d dims is not supported",
                            spatial);
    if (!r->global)
        sn_bind_warn_empty(b, r->said_empty);
    k->in = k->out = (sn_channels_last){d.n, d.c, 1, d.c, 1};
    for (int i = 0; i < 3; i++) {
        k->in.pixels *= d.in[i];
        k->out.pixels *= d.out[i];
    }
    /* A pixel per channel, or one channel, lies the same either way. */
    k->turn_in = !r->channels_last && !sn_layout_is_last(b->in[X]->form.layout) && d.c > 1 &&
                 k->in.pixels > 1;
    k->turn_out = !r->channels_last && !sn_layout_is_last(b->out[0].form.layout) && d.c > 1 &&
                  k->out.pixels > 1;
    if (!sn_type_count(x, &k->in_count) || !sn_type_count(&b->out[0].type, &k->out_count))
        return sn_bind_fail(b, SONDE_LIMIT, "the image is too large");
    sn_average_bytes_plan(&k->pool, &d, b->cpu_flags);
    if (k->turn_in)
        k->turned[0] = sn_carve(&b->workspace, k->in_count, 1);
    if (k->turn_out)
        k->turned[1] = sn_carve(&b->workspace, k->out_count, 1);
    k->sums = sn_carve(&b->workspace, k->pool.sums, sizeof(int32_t));
    b->bound = k;
    b->kernel = "q8_average_pool";
    b->flops = (uint64_t)k->out_count * (uint64_t)(d.kernel[0] * d.kernel[1] * d.kernel[2]);
    return SONDE_OK;
}

static sonde_status run_pool(const sn_step *s, sn_frame *f)
{
    const rows_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, X);
    sn_tensor *y = sn_out(s, f, 0);
    const uint32_t flags = f->ctx->cpu.flags;
    const void *from = x->data;
    void *to = k->turn_out ? sn_piece_ptr(f, k->turned[1]) : y->data;
    if (k->turn_in) {
        from = sn_piece_ptr(f, k->turned[0]);
        sn_channels_to_last(&k->in, flags, x->data, sn_piece_ptr(f, k->turned[0]), f->pool);
    }
    sn_average_bytes_run(&k->pool, sn_qparam_read(s, f, X_SCALE), sn_qparam_read(s, f, Y_SCALE),
                         from, to, sn_piece_ptr(f, k->sums), f->pool);
    if (k->turn_out)
        sn_channels_from_last(&k->out, flags, to, y->data, f->pool);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ Softmax */
static sonde_status prepare_softmax(sn_prep *p)
{
    rows_params *r = p->params;
    SN_TRY(sn_prep_int(p, "axis", -1, &r->axis));
    SN_TRY(sn_prep_int(p, "as_nodes", 0, &r->as_nodes)); /* fuse-qdq says so */
    return sn_prep_int(p, "opset", 13, &r->opset);
}

static sonde_status infer_softmax(sn_infer *c)
{
    const rows_params *r = c->params;
    const sn_type *x = &c->in[X]->type;
    int axis;
    if (!sn_infer_has(c, Y_SCALE))
        return sn_infer_fail(c, "the scale of Y is required");
    if (x->rank >= 0)
        SN_TRY(sn_infer_axis(c, r->axis, x->rank, false, &axis));
    return sn_infer_same(c, 0, X);
}

static sonde_status bind_softmax(sn_bind *b)
{
    const rows_params *r = b->params;
    rows_bound *k = SN_NEW(b->arena, rows_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[X]->type;
    SN_TRY(sn_qparam_check(b, X_SCALE, x->dtype));
    SN_TRY(sn_qparam_check(b, Y_SCALE, x->dtype));
    const int axis = (int)(r->axis < 0 ? r->axis + x->rank : r->axis);
    const int end =
        r->opset < 13 ? x->rank : axis + 1; /* older ones take all dims from the axis on */
    k->softmax = (sn_softmax_bytes){.dtype = x->dtype,
                                    .outer = sn_dims_product(x->dims, 0, axis),
                                    .n = sn_dims_product(x->dims, axis, end),
                                    .inner = sn_dims_product(x->dims, end, x->rank),
                                    .as_nodes = r->as_nodes != 0};
    if (!sn_type_count(x, &k->in_count))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    b->bound = k;
    b->kernel = "q8_softmax";
    b->flops = 12 * (uint64_t)k->in_count;
    return SONDE_OK;
}

static sonde_status run_softmax(const sn_step *s, sn_frame *f)
{
    const rows_bound *k = s->bound;
    sn_softmax_bytes_run(f->ctx->cpu.flags, &k->softmax, sn_qparam_read(s, f, X_SCALE),
                         sn_qparam_read(s, f, Y_SCALE), sn_in(s, f, X)->data, sn_out(s, f, 0)->data,
                         f->pool);
    return SONDE_OK;
}

#define ROWS(symbol, NAME, PREPARE, INFER, BIND, RUN, LAST)                                        \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = SN_MS_DOMAIN,                                               \
                             .since = 1,                                                           \
                             .min_in = 2,                                                          \
                             .max_in = 5,                                                          \
                             .min_out = 1,                                                         \
                             .max_out = 1,                                                         \
                             .params_size = sizeof(rows_params),                                   \
                             .prepare = PREPARE,                                                   \
                             .infer = INFER,                                                       \
                             .bind = BIND,                                                         \
                             .run = RUN,                                                           \
                             .in_last = LAST,                                                      \
                             .types = "u8 i8"},                                                    \
                            {.name = NULL}};
ROWS(sn_op_ms_qlinear_average_pool, "QLinearAveragePool", prepare_pool, infer_pool, bind_pool,
     run_pool, in_last_pool)
ROWS(sn_op_ms_qlinear_global_average_pool, "QLinearGlobalAveragePool", prepare_pool, infer_pool,
     bind_pool, run_pool, in_last_pool)
ROWS(sn_op_ms_qlinear_softmax, "QLinearSoftmax", prepare_softmax, infer_softmax, bind_softmax,
     run_softmax, NULL)
