/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and CenterCropPad. Negative pads crop. */
#include <string.h>

#include "compute/pad.h"
#include "ops/shared/data_movement.h"

typedef struct pad_params {
    sn_pad_mode mode;
    bool from_attr;      /* until opset 10 */
    const int64_t *pads; /* from_attr */
    size_t n;
    float value;         /* from_attr */
    const int64_t *axes; /* CenterCropPad */
    size_t n_axes;
} pad_params;

static sonde_status prepare_pad(sn_prep *p)
{
    static const char *const names[SN_PAD_MODES] = {"constant", "reflect", "edge", "wrap"};
    pad_params *r = p->params;
    const char *text;
    SN_TRY(sn_prep_string(p, "mode", "constant", &text));
    for (int i = 0; i < SN_PAD_MODES; i++) {
        r->mode = (sn_pad_mode)i;
        if (strcmp(text, names[i]) == 0)
            return SONDE_OK;
    }
    return sn_prep_fail(p, "mode '%s' is unknown", text);
}

static sonde_status prepare_pad_attr(sn_prep *p, const char *name)
{
    pad_params *r = p->params;
    SN_TRY(prepare_pad(p));
    r->from_attr = true;
    SN_TRY(sn_prep_float(p, "value", 0, &r->value));
    return sn_prep_ints(p, name, &r->pads, &r->n);
}

static sonde_status prepare_pad_1(sn_prep *p)
{
    return prepare_pad_attr(p, "paddings");
}

static sonde_status prepare_pad_2(sn_prep *p)
{
    return prepare_pad_attr(p, "pads");
}

/* ------------------------------------------------------------------ infer */
static sonde_status infer_pad(sn_infer *c)
{
    const pad_params *r = c->params;
    sn_input_type x;
    const sn_dim *pads = r->pads, *axes = NULL;
    int64_t n = (int64_t)r->n, n_axes = 0;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (!r->from_attr) {
        SN_TRY(sn_infer_list(c, 1, &pads, &n));
        SN_TRY(sn_infer_list(c, 3, &axes, &n_axes));
    }
    bool some = !r->from_attr && sn_infer_has(c, 3); /* only some axes */
    if (x.rank < 0 || !pads || (some && (!axes || !sn_dims_known(axes, n_axes))))
        return sn_infer_rank(c, 0, x.dtype, x.rank);
    int64_t per_side = some ? n_axes : x.rank;
    if (n != 2 * per_side)
        return sn_infer_fail(c, "%lld pads for %lld axes", (long long)n, (long long)per_side);
    sn_dim dims[SN_MAX_RANK];
    bool done[SN_MAX_RANK] = {false};
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    for (int64_t i = 0; i < per_side; i++) {
        int a;
        SN_TRY(sn_infer_axis(c, some ? axes[i] : i, x.rank, false, &a));
        if (done[a])
            return sn_infer_fail(c, "axis %d is given twice", a);
        done[a] = true;
        bool known =
            sn_dim_known(pads[i]) && sn_dim_known(pads[per_side + i]) && sn_dim_known(dims[a]);
        dims[a] = sn_dim_add(sn_dim_add(dims[a], pads[i]), pads[per_side + i]);
        if (known && (!sn_dim_known(dims[a]) || dims[a] < 0))
            return sn_infer_fail(c, "the pads of axis %d leave no valid size", a);
        if (known && r->mode != SN_PAD_CONSTANT && x.dims[a] == 0 && dims[a] > 0)
            return sn_infer_fail(c, "axis %d is empty, so there are no values to pad with", a);
    }
    return sn_infer_bounded(c, 0, x.dtype, dims, x.rank);
}

/* Modes other than a constant need a table of positions. */
static sonde_status bind_pad(sn_bind *b)
{
    static const char *const names[SN_PAD_MODES] = {"pad_constant", "pad_reflect", "pad_edge",
                                                    "pad_wrap"};
    const pad_params *r = b->params;
    const sn_type *y = &b->out[0].type;
    sn_piece *table = SN_NEW(b->arena, sn_piece);
    int64_t entries = 0;
    if (!table)
        return sn_fail_memory(b->err, sizeof *table);
    b->bound = table;
    b->kernel = names[r->mode];
    if (r->mode == SN_PAD_CONSTANT)
        return SONDE_OK;
    for (int i = 0; i < y->rank; i++)
        if (!sn_i64_add(entries, y->dims[i], &entries))
            return sn_fail_memory(b->err, SIZE_MAX);
    *table = sn_carve(&b->workspace, entries, sizeof(int64_t));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
static sn_pad geometry(sn_pad_mode mode, const sn_tensor *x, const sn_tensor *y,
                       const int64_t *before)
{
    sn_pad p = {.mode = mode, .elem_bytes = sn_dtype_bytes(x->dtype), .rank = x->rank};
    memcpy(p.in, x->dims, (size_t)x->rank * sizeof *p.in);
    memcpy(p.out, y->dims, (size_t)x->rank * sizeof *p.out);
    memcpy(p.before, before, (size_t)x->rank * sizeof *p.before);
    return p;
}

/* before[] per axis from the pads list; false when the list and the planned shape disagree. */
static bool read_before(const sn_step *s, const sn_frame *f, int64_t *before)
{
    const pad_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *y = sn_out(s, f, 0);
    int64_t pads[2 * SN_MAX_RANK], axes[SN_MAX_RANK], n = (int64_t)r->n, n_axes = x->rank;
    bool some = !r->from_attr && sn_has(s, 3);
    if (!r->from_attr)
        n = sn_tensor_ints(sn_in(s, f, 1), pads, 2 * SN_MAX_RANK);
    if (some)
        n_axes = sn_tensor_ints(sn_in(s, f, 3), axes, SN_MAX_RANK);
    if (n != 2 * n_axes || y->rank != x->rank)
        return false;
    const int64_t *list = r->from_attr ? r->pads : pads;
    int64_t after[SN_MAX_RANK] = {0};
    memset(before, 0, SN_MAX_RANK * sizeof *before);
    for (int64_t i = 0; i < n_axes; i++) {
        int a;
        if (!sn_axis_index(some ? axes[i] : i, x->rank, &a))
            return false;
        before[a] = list[i];
        after[a] = list[n_axes + i];
    }
    for (int i = 0; i < x->rank; i++)
        if (y->dims[i] != x->dims[i] + before[i] + after[i])
            return false;
    return true;
}

static sonde_status run_pad(const sn_step *s, sn_frame *f)
{
    const pad_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    int64_t before[SN_MAX_RANK];
    _Alignas(16) uint8_t value[16] = {0};
    if (!read_before(s, f, before))
        return sn_run_fail(s, f, "the values of the pads do not match the planned output shape");
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    const sn_tensor *v = !r->from_attr && sn_has(s, 2) ? sn_in(s, f, 2) : NULL;
    if (v && sn_tensor_count(v) == 1 && v->dtype == x->dtype)
        memcpy(value, v->data, sn_dtype_bytes(x->dtype));
    else if (r->from_attr)
        sn_elem_set_f64(x->dtype, value, 0, (double)r->value);
    const sn_pad p = geometry(r->mode, x, y, before);
    int64_t *table =
        r->mode == SN_PAD_CONSTANT ? NULL : sn_piece_ptr(f, *(const sn_piece *)s->bound);
    sn_pad_run(&p, y->data, x->data, value, table, f->pool);
    return sn_run_own_strings(s, f, 0);
}

#define PAD(SINCE, UNTIL, MIN_IN, MAX_IN, PREPARE)                                                 \
    {                                                                                              \
        SN_OP_HEAD("Pad", SINCE, UNTIL, MIN_IN, MAX_IN, 1, 1),                                     \
            .params_size = sizeof(pad_params), .prepare = PREPARE, .infer = infer_pad,             \
            .bind = bind_pad, .run = run_pad, .half = SN_HALF_MOVED, .types = SN_ALL_TYPES         \
    }
const sn_op sn_op_pad[] = {PAD(1, 1, 1, 1, prepare_pad_1),
                           PAD(2, 10, 1, 1, prepare_pad_2),
                           PAD(11, 17, 2, 3, prepare_pad),
                           PAD(18, 0, 2, 4, prepare_pad),
                           {.name = NULL}};

/* ------------------------------------------------------------------ CenterCropPad */
static sonde_status prepare_center(sn_prep *p)
{
    pad_params *r = p->params;
    return sn_prep_ints(p, "axes", &r->axes, &r->n_axes);
}

static sonde_status infer_center(sn_infer *c)
{
    const pad_params *r = c->params;
    sn_input_type x;
    const sn_dim *shape;
    int64_t n;
    bool done[SN_MAX_RANK] = {false};
    SN_TRY(sn_infer_input_type(c, 0, &x));
    SN_TRY(sn_infer_list(c, 1, &shape, &n));
    if (x.rank < 0 || !shape)
        return sn_infer_rank(c, 0, x.dtype, x.rank);
    if (n != (r->n_axes ? (int64_t)r->n_axes : x.rank))
        return sn_infer_fail(c, "the shape has %lld entries for the axes given", (long long)n);
    sn_dim dims[SN_MAX_RANK];
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    for (int64_t i = 0; i < n; i++) {
        int a;
        SN_TRY(sn_infer_axis(c, r->n_axes ? r->axes[i] : i, x.rank, false, &a));
        if (done[a])
            return sn_infer_fail(c, "axis %d is given twice", a);
        done[a] = true;
        dims[a] = shape[i];
    }
    return sn_infer_bounded(c, 0, x.dtype, dims, x.rank);
}

static sonde_status run_center(const sn_step *s, sn_frame *f)
{
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    int64_t before[SN_MAX_RANK] = {0};
    static const uint8_t zero[16];
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    for (int i = 0; i < x->rank; i++) /* the smaller half goes first, cropping and padding alike */
        before[i] = y->dims[i] >= x->dims[i] ? (y->dims[i] - x->dims[i]) / 2
                                             : -((x->dims[i] - y->dims[i]) / 2);
    const sn_pad p = geometry(SN_PAD_CONSTANT, x, y, before);
    sn_pad_run(&p, y->data, x->data, zero, NULL, f->pool);
    return sn_run_own_strings(s, f, 0);
}

const sn_op sn_op_center_crop_pad[] = {
    {SN_OP_HEAD("CenterCropPad", 18, 0, 2, 2, 1, 1), .params_size = sizeof(pad_params),
     .prepare = prepare_center, .infer = infer_center, .run = run_center, .types = SN_ALL_TYPES},
    {.name = NULL}};
