/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample. An f32 image whose channels stay as they are may be blocked. */
#include <math.h>
#include <string.h>

#include "compute/resize.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/layouts.h"

typedef enum keep_ratio { KEEP_STRETCH, KEEP_NOT_LARGER, KEEP_NOT_SMALLER, KEEP_COUNT } keep_ratio;

typedef struct resize_params {
    sn_resize_how how;
    keep_ratio keep;
    float extrapolation;
    const int64_t *axes;
    size_t n_axes;
    const float *scales; /* Upsample 7 */
    size_t n_scales;
    int32_t roi_input, scales_input, sizes_input; /* -1: this version has none */
    _Atomic bool *said_empty;
} resize_params;

/* ------------------------------------------------------------------ prepare */
static sonde_status pick(sn_prep *p, const char *name, const char *def, const char *const *words,
                         int n, int *out)
{
    const char *text;
    SN_TRY(sn_prep_string(p, name, def, &text));
    for (*out = 0; *out < n; ++*out)
        if (strcmp(text, words[*out]) == 0)
            return SONDE_OK;
    return sn_prep_fail(p, "attribute '%s' is '%s', which is unknown", name, text);
}

static sonde_status prepare_mode(sn_prep *p)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    resize_params *r = p->params;
    int k;
    SN_TRY(pick(p, "mode", "nearest", modes, 4, &k));
    r->how.mode = k == 3 ? SN_RESIZE_LINEAR : (sn_resize_mode)k;
    r->how.cubic_a = -0.75;
    r->how.coords = SN_COORDS_ASYMMETRIC;
    r->how.round = SN_ROUND_FLOOR;
    r->roi_input = r->sizes_input = -1;
    r->scales_input = 1;
    return sn_prep_empty_flag(p, &r->said_empty);
}

static sonde_status prepare_upsample_7(sn_prep *p)
{
    resize_params *r = p->params;
    SN_TRY(prepare_mode(p));
    r->scales_input = -1;
    return sn_prep_floats(p, "scales", &r->scales, &r->n_scales);
}

static sonde_status prepare_resize(sn_prep *p)
{
    static const char *const coords[SN_COORDS_COUNT] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
        "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
    static const char *const rounds[SN_ROUND_COUNT] = {"round_prefer_floor", "round_prefer_ceil",
                                                       "floor", "ceil"};
    static const char *const keeps[KEEP_COUNT] = {"stretch", "not_larger", "not_smaller"};
    resize_params *r = p->params;
    int coord, round, keep;
    int64_t antialias, exclude;
    float a;
    SN_TRY(prepare_mode(p));
    SN_TRY(
        pick(p, "coordinate_transformation_mode", "half_pixel", coords, SN_COORDS_COUNT, &coord));
    SN_TRY(pick(p, "nearest_mode", "round_prefer_floor", rounds, SN_ROUND_COUNT, &round));
    SN_TRY(pick(p, "keep_aspect_ratio_policy", "stretch", keeps, KEEP_COUNT, &keep));
    SN_TRY(sn_prep_int(p, "antialias", 0, &antialias));
    SN_TRY(sn_prep_int(p, "exclude_outside", 0, &exclude));
    SN_TRY(sn_prep_float(p, "cubic_coeff_a", -0.75f, &a));
    SN_TRY(sn_prep_float(p, "extrapolation_value", 0, &r->extrapolation));
    SN_TRY(sn_prep_ints(p, "axes", &r->axes, &r->n_axes));
    if (r->n_axes > SN_MAX_RANK)
        return sn_prep_fail(p, "attribute 'axes' is too long");
    r->how.coords = (sn_resize_coords)coord;
    r->how.round = (sn_resize_round)round;
    r->how.antialias = antialias != 0;
    r->how.exclude_outside = exclude != 0;
    r->how.cubic_a = (double)a;
    r->keep = (keep_ratio)keep;
    r->roi_input = 1;
    r->scales_input = 2;
    r->sizes_input = 3;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ sizes */
/* floor(dim * scale); false when that is no size. */
static bool scaled_dim(int64_t dim, double scale, int64_t *out)
{
    double v = floor((double)dim * scale);
    if (!(scale > 0) || !(v < 0x1p62))
        return false;
    *out = (int64_t)v;
    return true;
}

/* Output size and scale of every axis, from the lists given. Returns NULL or what is wrong. */
static const char *plan_axes(const resize_params *r, int rank, const int64_t *dims,
                             const int64_t *sizes, const double *scales, int64_t n,
                             sn_resize_axis *axes)
{
    bool seen[SN_MAX_RANK] = {false};
    int kept = -1; /* the axis whose scale all have */
    for (int i = 0; i < rank; i++)
        axes[i] = (sn_resize_axis){
            .in = dims[i], .out = dims[i], .num = 1, .den = 1, .scale = 1, .roi_end = 1};
    if (n != (r->n_axes ? (int64_t)r->n_axes : rank))
        return "sizes or scales do not match the axes";
    for (int64_t i = 0; i < n; i++) {
        int a;
        if (!sn_axis_index(r->n_axes ? r->axes[i] : i, rank, &a) || seen[a])
            return "an axis is out of range or given twice";
        seen[a] = true;
        if (sizes) {
            if (sizes[i] < 0 || (sizes[i] > 0 && dims[a] == 0))
                return "a size is invalid";
            axes[a].out = sizes[i];
            if (sizes[i] > 0)
                sn_resize_by_ratio(&axes[a], sizes[i], dims[a]);
            else if (dims[a] > 0)
                axes[a].scale = 0; /* nothing comes out */
            if (kept < 0 || (r->keep == KEEP_NOT_LARGER) == (axes[a].scale < axes[kept].scale))
                kept = a;
        } else {
            if (!scaled_dim(dims[a], scales[i], &axes[a].out))
                return "a scale is invalid";
            sn_resize_by_scale(&axes[a], scales[i]);
        }
    }
    if (kept < 0 || r->keep == KEEP_STRETCH)
        return NULL;
    const sn_resize_axis like = axes[kept];
    for (int a = 0; a < rank; a++) {
        if (!seen[a])
            continue;
        axes[a].num = like.num;
        axes[a].den = like.den;
        axes[a].scale = like.scale;
        if (like.scale == 0)
            axes[a].out = 0;
        else if (!sn_resize_rounded(&axes[a], &axes[a].out))
            return "a size is invalid";
    }
    return NULL;
}

static const sn_tensor *known_tensor(const sn_infer *c, int32_t i)
{
    return i >= 0 && sn_infer_has(c, (uint32_t)i) ? c->in[i]->data : NULL;
}

/* 0: no such input or it is empty, 1: there is one. */
static bool given(const sn_infer *c, int32_t i)
{
    if (i < 0 || !sn_infer_has(c, (uint32_t)i))
        return false;
    const sn_type *t = &c->in[i]->type;
    return !(t->kind == SN_KIND_TENSOR && t->rank == 1 && t->dims[0] == 0);
}

static int64_t read_scales(const sn_tensor *t, double *out)
{
    int64_t n = sn_tensor_count(t);
    for (int64_t i = 0; i < n && i < SN_MAX_RANK; i++)
        out[i] = sn_elem_f64(t->dtype, t->data, i);
    return n;
}

static sonde_status infer_resize(sn_infer *c)
{
    const resize_params *r = c->params;
    sn_input_type x;
    sn_resize_axis axes[SN_MAX_RANK];
    double scales[SN_MAX_RANK];
    sn_dim dims[SN_MAX_RANK];
    int64_t n = 0;
    SN_TRY(sn_infer_input_type(c, 0, &x));
    if (x.dtype == SONDE_DTYPE_STRING && r->how.mode != SN_RESIZE_NEAREST)
        return sn_infer_fail(c, "strings cannot be interpolated");
    if (x.rank < 0)
        return sn_infer_rank(c, 0, x.dtype, -1);
    const sn_dim *sizes = NULL;
    bool have_scales = r->scales != NULL;
    if (given(c, r->sizes_input)) {
        SN_TRY(sn_infer_ints(c, (uint32_t)r->sizes_input, &sizes, &n));
        if (!sizes)
            return sn_infer_rank(c, 0, x.dtype, x.rank);
    } else if (have_scales) {
        n = (int64_t)r->n_scales;
        for (int64_t i = 0; i < n && i < SN_MAX_RANK; i++)
            scales[i] = (double)r->scales[i];
    } else {
        const sn_tensor *t = known_tensor(c, r->scales_input);
        if (!given(c, r->scales_input))
            return sn_infer_fail(c, "neither scales nor sizes are given");
        if (!t)
            return sn_infer_rank(c, 0, x.dtype, x.rank);
        n = read_scales(t, scales);
    }
    if (n > SN_MAX_RANK)
        return sn_infer_fail(c, "sizes or scales do not match the axes");
    bool concrete = sn_dims_known(x.dims, x.rank) && (!sizes || sn_dims_known(sizes, n));
    if (concrete) {
        const char *wrong = plan_axes(r, x.rank, x.dims, sizes, scales, n, axes);
        if (wrong)
            return sn_infer_fail(c, "%s", wrong);
        for (int i = 0; i < x.rank; i++)
            dims[i] = axes[i].out;
        return sn_infer_bounded(c, 0, x.dtype, dims, x.rank);
    }
    if (n != (r->n_axes ? (int64_t)r->n_axes : x.rank))
        return sn_infer_fail(c, "sizes or scales do not match the axes");
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    for (int64_t i = 0; i < n; i++) {
        int a;
        SN_TRY(sn_infer_axis(c, r->n_axes ? r->axes[i] : i, x.rank, false, &a));
        if (sizes)
            dims[a] = r->keep == KEEP_STRETCH ? sizes[i] : SN_DIM_UNKNOWN;
        else if (scales[i] != 1 && !sn_dim_known(dims[a]))
            dims[a] = SN_DIM_UNKNOWN;
        else if (scales[i] != 1 && !scaled_dim(dims[a], scales[i], &dims[a]))
            return sn_infer_fail(c, "a scale is invalid");
    }
    return sn_infer_bounded(c, 0, x.dtype, dims, x.rank);
}

/* ------------------------------------------------------------------ layout */
/* Are images and channels left as they are, whatever the shapes turn out to be? */
static bool only_pixels(const sn_node *node, const resize_params *r)
{
    if (r->n_axes) {
        for (size_t i = 0; i < r->n_axes; i++)
            if (r->axes[i] != 2 && r->axes[i] != 3 && r->axes[i] != -1 && r->axes[i] != -2)
                return false;
        return true;
    }
    if (r->scales)
        return r->n_scales == 4 && r->scales[0] == 1 && r->scales[1] == 1;
    double scales[SN_MAX_RANK];
    const sn_value *list = r->scales_input >= 0 && (uint32_t)r->scales_input < node->n_in
                               ? node->in[r->scales_input].value
                               : NULL;
    if (list && list->fact.data && sn_tensor_count(list->fact.data) > 0)
        return read_scales(list->fact.data, scales) == 4 && scales[0] == 1 && scales[1] == 1;
    /* By sizes, which are stretched to: the same size is scale 1. */
    return (!list || list->fact.data) && r->keep == KEEP_STRETCH;
}

static bool resizes_images(const sn_node *node, const resize_params *r)
{
    const sn_value *x = node->in[0].value, *y = node->out[0];
    return x && y && x->fact.type.rank == 4 && y->fact.type.rank == 4 &&
           r->how.coords != SN_COORDS_TF_CROP_AND_RESIZE &&
           sn_dim_same(x->fact.type.dims[0], y->fact.type.dims[0]) &&
           sn_dim_same(x->fact.type.dims[1], y->fact.type.dims[1]) && only_pixels(node, r);
}

static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    (void)block;
    return resizes_images(node, params) && sn_value_is_image(node->in[0].value) ? &sn_layout_follows
                                                                                : NULL;
}

/* Pixels are picked whole. */
static const sn_op_signature *in_last(const sn_node *node, const void *params)
{
    const resize_params *r = params;
    return r->how.mode == SN_RESIZE_NEAREST && resizes_images(node, r) &&
                   sn_value_is_byte_image(node->in[0].value)
               ? &sn_layout_follows
               : NULL;
}

/* ------------------------------------------------------------------ bind */
/* Pieces of the workspace; see sn_resize_scratch. */
typedef struct resize_pieces {
    int64_t taps_max[SN_MAX_RANK];
    sn_piece index[SN_MAX_RANK], weight[SN_MAX_RANK], buffers[2];
} resize_pieces;

static sonde_status bind_resize(sn_bind *b)
{
    static const char *const names[SN_RESIZE_MODES] = {"resize_nearest", "resize_linear",
                                                       "resize_cubic"};
    const resize_params *r = b->params;
    const sn_type *x = &b->in[0]->type, *y = &b->out[0].type;
    resize_pieces *l = SN_NEW(b->arena, resize_pieces);
    if (!l)
        return sn_fail_memory(b->err, sizeof *l);
    sn_bind_warn_empty(b, r->said_empty);
    b->bound = l;
    b->kernel = names[r->how.mode];
    if (!sn_layout_same(b->in[0]->form.layout, b->out[0].form.layout))
        return sn_bind_fail(b, SONDE_INTERNAL, "no resize from one layout to another");
    int64_t largest = 0, dims[SN_MAX_RANK], count, taps_all = 0;
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    if (sn_fact_block(b->in[0])) /* with the padding lanes */
        dims[1] = (dims[1] + sn_fact_block(b->in[0]) - 1) / sn_fact_block(b->in[0]) *
                  sn_fact_block(b->in[0]);
    if (sn_dims_count(dims, x->rank, &count))
        largest = count;
    for (int i = x->rank - 1; i >= 0; i--) {
        int64_t entries;
        if (r->how.mode == SN_RESIZE_NEAREST) {
            l->index[i] = sn_carve(&b->workspace, y->dims[i], sizeof(int64_t));
            continue;
        }
        int64_t taps = sn_resize_max_taps(&r->how, x->dims[i], y->dims[i]);
        if (!sn_i64_mul(y->dims[i], taps, &entries) || x->dims[i] > INT32_MAX)
            return sn_bind_fail(b, SONDE_LIMIT, "axis %d is too long to resize", i);
        l->taps_max[i] = taps;
        l->index[i] = sn_carve(&b->workspace, entries, sizeof(int32_t));
        l->weight[i] = sn_carve(&b->workspace, entries, sizeof(float));
        taps_all += taps;
        if (i != 1 || !sn_fact_block(b->in[0]))
            dims[i] = y->dims[i];
        if (!sn_dims_count(dims, x->rank, &count))
            return sn_bind_fail(b, SONDE_LIMIT, "resizing needs too much memory");
        largest = count > largest ? count : largest;
    }
    if (r->how.mode == SN_RESIZE_NEAREST)
        return SONDE_OK;
    b->flops =
        sn_dims_count(y->dims, y->rank, &count) ? 2 * (uint64_t)count * (uint64_t)taps_all : 0;
    for (int i = 0; i < 2; i++)
        l->buffers[i] = sn_carve(&b->workspace, largest, sizeof(float));
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
static sonde_status run_driver(const sn_step *s, sn_frame *f, const sn_resize *d)
{
    const resize_pieces *l = s->bound;
    const bool mixes = d->how.mode != SN_RESIZE_NEAREST;
    sn_resize_scratch scratch = {.index = {NULL}};
    for (int i = d->rank - 1; i >= 0; i--) {
        if (mixes && sn_resize_changes(d, i) &&
            sn_resize_taps(&d->how, d->axes[i].scale) > l->taps_max[i])
            return sn_run_fail(s, f, "the scale of axis %d does not match the planned output shape",
                               i);
        scratch.index[i] = sn_piece_ptr(f, l->index[i]);
        scratch.weight[i] = mixes ? sn_piece_ptr(f, l->weight[i]) : NULL;
    }
    for (int i = 0; i < 2 && mixes; i++)
        scratch.buffers[i] = sn_piece_ptr(f, l->buffers[i]);
    sn_resize_run(d, sn_out(s, f, 0)->data, sn_in(s, f, 0)->data, &scratch, f->pool);
    return sn_run_own_strings(s, f, 0);
}

static sonde_status run_resize(const sn_step *s, sn_frame *f)
{
    const resize_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *y = sn_out(s, f, 0);
    int64_t sizes[SN_MAX_RANK], n;
    double scales[SN_MAX_RANK];
    sn_resize d = {.how = r->how,
                   .dtype = x->dtype,
                   .rank = x->rank,
                   .block = sn_layout_is_last(x->layout) ? x->dims[1]
                                                         : (int64_t)sn_layout_block(x->layout),
                   .outside = r->extrapolation,
                   .cpu_flags = f->ctx->cpu.flags};
    const sn_tensor *t = r->sizes_input >= 0 && sn_has(s, (uint32_t)r->sizes_input)
                             ? sn_in(s, f, (uint32_t)r->sizes_input)
                             : NULL;
    bool by_size = t && !(t->rank == 1 && t->dims[0] == 0); /* as inference decides */
    if (by_size) {
        n = sn_tensor_ints(t, sizes, SN_MAX_RANK);
    } else if (r->scales) {
        n = (int64_t)r->n_scales;
        for (int64_t i = 0; i < n && i < SN_MAX_RANK; i++)
            scales[i] = (double)r->scales[i];
    } else if (r->scales_input >= 0 && sn_has(s, (uint32_t)r->scales_input)) {
        n = read_scales(sn_in(s, f, (uint32_t)r->scales_input), scales);
    } else {
        return sn_run_fail(s, f, "neither scales nor sizes are given");
    }
    const char *wrong = plan_axes(r, x->rank, x->dims, by_size ? sizes : NULL, scales, n, d.axes);
    if (wrong)
        return sn_run_fail(s, f, "%s", wrong);
    for (int i = 0; i < x->rank; i++)
        if (d.axes[i].out != y->dims[i])
            return sn_run_fail(
                s, f, "the value of sizes does not match the planned output size of axis %d", i);
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    if (r->how.coords == SN_COORDS_TF_CROP_AND_RESIZE) {
        const sn_tensor *roi =
            sn_has(s, (uint32_t)r->roi_input) ? sn_in(s, f, (uint32_t)r->roi_input) : NULL;
        if (!roi || sn_tensor_count(roi) != 2 * n)
            return sn_run_fail(s, f, "the region of interest must have %lld entries",
                               (long long)(2 * n));
        for (int64_t i = 0; i < n; i++) {
            int a = 0;
            if (!sn_axis_index(r->n_axes ? r->axes[i] : i, x->rank, &a))
                continue;
            d.axes[a].roi_begin = sn_elem_f64(roi->dtype, roi->data, i);
            d.axes[a].roi_end = sn_elem_f64(roi->dtype, roi->data, n + i);
        }
    }
    return run_driver(s, f, &d);
}

#define RESIZE(NAME, SINCE, UNTIL, MIN_IN, MAX_IN, PREPARE, HALF)                                  \
    {                                                                                              \
        SN_OP_HEAD(NAME, SINCE, UNTIL, MIN_IN, MAX_IN, 1, 1),                                      \
            .params_size = sizeof(resize_params), .prepare = PREPARE, .infer = infer_resize,       \
            .bind = bind_resize, .run = run_resize, .half = HALF, .in_blocks = in_blocks,          \
            .in_last = in_last, .types = "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"          \
    }
const sn_op sn_op_resize[] = {RESIZE("Resize", 10, 10, 2, 2, prepare_mode, SN_HALF_IN_F32),
                              RESIZE("Resize", 11, 0, 1, 4, prepare_resize, SN_HALF_IN_F32),
                              {.name = NULL}};
const sn_op sn_op_upsample[] = {
    RESIZE("Upsample", 7, 8, 1, 1, prepare_upsample_7, SN_HALF_AS_TYPED),
    RESIZE("Upsample", 9, 0, 2, 2, prepare_mode, SN_HALF_AS_TYPED),
    {.name = NULL}};
