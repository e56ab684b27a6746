/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign and MaxRoiPool: regions of an image on a fixed grid. */
#include <string.h>

#include "compute/roi.h"
#include "ops/shared/checks.h"
#include "ops/shared/converted.h"
#include "ops/shared/data_movement.h"

enum { X, ROIS, BATCH };
enum { MAX_RATIO = 1024 }; /* samples per bin and axis */

typedef struct roi_params {
    int64_t height, width; /* of the output */
    int64_t ratio;         /* samples per bin and axis; 0: by the region's size */
    double scale;
    bool half_pixel;
    sn_roi_kind kind;
} roi_params;

static sonde_status prepare_common(sn_prep *p)
{
    roi_params *r = p->params;
    float scale;
    SN_TRY(sn_prep_float(p, "spatial_scale", 1.0f, &scale));
    r->scale = (double)scale;
    if (r->height < 1 || r->width < 1 || r->height > INT32_MAX || r->width > INT32_MAX)
        return sn_prep_fail(p, "an output of %lld by %lld is invalid", (long long)r->height,
                            (long long)r->width);
    return SONDE_OK;
}

static sonde_status prepare_align(sn_prep *p, const char *def)
{
    roi_params *r = p->params;
    const char *mode, *coords;
    SN_TRY(sn_prep_string(p, "mode", "avg", &mode));
    SN_TRY(sn_prep_string(p, "coordinate_transformation_mode", def, &coords));
    SN_TRY(sn_prep_int(p, "output_height", 1, &r->height));
    SN_TRY(sn_prep_int(p, "output_width", 1, &r->width));
    SN_TRY(sn_prep_int(p, "sampling_ratio", 0, &r->ratio));
    r->kind = strcmp(mode, "max") == 0 ? SN_ROI_ALIGN_MAX : SN_ROI_ALIGN_AVG;
    r->half_pixel = strcmp(coords, "half_pixel") == 0;
    if (r->kind == SN_ROI_ALIGN_AVG && strcmp(mode, "avg") != 0)
        return sn_prep_fail(p, "mode '%s' is unknown", mode);
    if (!r->half_pixel && strcmp(coords, "output_half_pixel") != 0)
        return sn_prep_fail(p, "coordinate_transformation_mode '%s' is unknown", coords);
    if (r->ratio < 0 || r->ratio > MAX_RATIO)
        return sn_prep_fail(p, "sampling_ratio %lld is outside 0 … %d", (long long)r->ratio,
                            (int)MAX_RATIO);
    return prepare_common(p);
}

static sonde_status prepare_align_10(sn_prep *p)
{
    return prepare_align(p, "output_half_pixel");
}
static sonde_status prepare_align_16(sn_prep *p)
{
    return prepare_align(p, "half_pixel");
}

static sonde_status prepare_pool(sn_prep *p)
{
    roi_params *r = p->params;
    const int64_t *shape;
    size_t n;
    SN_TRY(sn_prep_ints(p, "pooled_shape", &shape, &n));
    if (n != 2)
        return sn_prep_fail(p, "attribute 'pooled_shape' must have 2 entries");
    r->height = shape[0];
    r->width = shape[1];
    r->kind = SN_ROI_POOL;
    return prepare_common(p);
}

static sonde_status infer(sn_infer *c)
{
    static const sn_dtype int64[] = {SONDE_DTYPE_I64};
    const roi_params *r = c->params;
    sn_dim x[4] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    sn_dim rois[2] = {SN_DIM_UNKNOWN, r->kind == SN_ROI_POOL ? 5 : 4};
    SN_TRY(sn_check_float(c, X));
    SN_TRY(sn_check_same_dtype(c, ROIS, X));
    SN_TRY(sn_check_dtype(c, BATCH, int64, 1));
    SN_TRY(sn_check_dims(c, X, x, 4));
    SN_TRY(sn_check_dims(c, ROIS, rois, 2));
    SN_TRY(sn_check_dims(c, BATCH, rois, 1));
    const sn_dim dims[4] = {rois[0], x[1], r->height, r->width};
    return sn_infer_bounded(c, 0, c->in[X]->type.dtype, dims, 4);
}

typedef struct roi_bound {
    sn_dtype compute;
    sn_piece x, y; /* in that type */
} roi_bound;

static sonde_status bind(sn_bind *b)
{
    static const char *const names[] = {"roi_align_avg", "roi_align_max", "max_roi_pool"};
    const roi_params *r = b->params;
    const sn_dtype t = b->in[X]->type.dtype;
    roi_bound *k = SN_NEW(b->arena, roi_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_is_common_float(t))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported", sn_dtype_name(t));
    k->compute = t == SONDE_DTYPE_F64 ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32;
    k->x = sn_converted_carve(&b->workspace, b->in[X], k->compute);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], k->compute);
    b->bound = k;
    b->kernel = names[r->kind];
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const roi_params *r = s->params;
    const roi_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, X), *rois = sn_in(s, f, ROIS);
    const int64_t *batch = r->kind == SN_ROI_POOL ? NULL : sn_in(s, f, BATCH)->data;
    sn_tensor *y = sn_out(s, f, 0);
    const sn_roi c = {.kind = r->kind,
                      .dtype = k->compute,
                      .images = x->dims[0],
                      .channels = x->dims[1],
                      .height = x->dims[2],
                      .width = x->dims[3],
                      .regions = y->dims[0],
                      .bins_y = r->height,
                      .bins_x = r->width,
                      .ratio = r->ratio,
                      .scale = r->scale,
                      .half_pixel = r->half_pixel};
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    const int64_t bad = sn_roi_without_image(&c, sn_tensor_elems(rois), batch);
    if (bad >= 0)
        return sn_run_fail(s, f, "region %lld refers to an image outside the batch of %lld",
                           (long long)bad, (long long)c.images);
    if (c.height == 0 || c.width == 0)
        return sn_run_fail(s, f, "the image is empty");
    const void *in = sn_converted_in(s, f, X, k->compute, k->x);
    sn_roi_run(&c, sn_converted_out(s, f, 0, k->compute, k->y), in, sn_tensor_elems(rois), batch,
               f->pool);
    sn_converted_done(s, f, 0, k->compute, k->y);
    return SONDE_OK;
}

#define ROI(NAME, SINCE, UNTIL, N_IN, PREPARE)                                                     \
    {                                                                                              \
        .name = NAME, .domain = "", .since = SINCE, .until = UNTIL, .min_in = N_IN,                \
        .max_in = N_IN, .min_out = 1, .max_out = 1, .params_size = sizeof(roi_params),             \
        .prepare = PREPARE, .infer = infer, .bind = bind, .run = run, .types = SN_COMMON_FLOATS    \
    }
const sn_op sn_op_roi_align[] = {ROI("RoiAlign", 10, 15, 3, prepare_align_10),
                                 ROI("RoiAlign", 16, 0, 3, prepare_align_16),
                                 {.name = NULL}};
const sn_op sn_op_max_roi_pool[] = {ROI("MaxRoiPool", 1, 0, 2, prepare_pool), {.name = NULL}};
