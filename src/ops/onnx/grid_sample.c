/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample and AffineGrid. */
#include <string.h>

#include "compute/grid_sample.h"
#include "ops/shared/checks.h"
#include "ops/shared/data_movement.h"

enum { MAX_SPATIAL = SN_SAMPLE_SPATIAL };

typedef struct sample_params {
    sn_sample_mode mode;
    sn_sample_padding padding;
    bool align;
} sample_params;

static sonde_status prepare_sample(sn_prep *p)
{
    static const struct {
        const char *text;
        sn_sample_mode mode;
    } modes[] = {{"linear", SN_SAMPLE_LINEAR},
                 {"bilinear", SN_SAMPLE_LINEAR},
                 {"nearest", SN_SAMPLE_NEAREST},
                 {"cubic", SN_SAMPLE_CUBIC},
                 {"bicubic", SN_SAMPLE_CUBIC}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    sample_params *r = p->params;
    const char *mode, *padding;
    int64_t align;
    size_t i;
    SN_TRY(sn_prep_string(p, "mode", "linear", &mode));
    SN_TRY(sn_prep_string(p, "padding_mode", "zeros", &padding));
    SN_TRY(sn_prep_int(p, "align_corners", 0, &align));
    r->align = align != 0;
    for (i = 0; i < 5 && strcmp(mode, modes[i].text) != 0; i++)
        ;
    if (i == 5)
        return sn_prep_fail(p, "mode '%s' is unknown", mode);
    r->mode = modes[i].mode;
    for (i = 0; i < 3 && strcmp(padding, paddings[i]) != 0; i++)
        ;
    if (i == 3)
        return sn_prep_fail(p, "padding_mode '%s' is unknown", padding);
    r->padding = (sn_sample_padding)i;
    return SONDE_OK;
}

static sonde_status infer_sample(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type, *grid = &c->in[1]->type;
    SN_TRY(sn_check_float(c, 1));
    if (x->rank < 0 && grid->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    const int rank = x->rank >= 0 ? x->rank : grid->rank;
    if (rank < 3 || rank > MAX_SPATIAL + 2)
        return sn_infer_fail(c, "an input of rank %d is not supported: 1 to 3 spatial dims", rank);
    sn_dim dims[MAX_SPATIAL + 2], want[MAX_SPATIAL + 2];
    for (int i = 0; i < rank; i++)
        want[i] = SN_DIM_UNKNOWN;
    want[0] = x->rank >= 0 ? x->dims[0] : SN_DIM_UNKNOWN;
    want[rank - 1] = rank - 2;
    SN_TRY(sn_check_dims(c, 1, want, rank));
    dims[0] = want[0];
    dims[1] = x->rank >= 0 ? x->dims[1] : SN_DIM_UNKNOWN;
    for (int i = 0; i < rank - 2; i++) {
        dims[i + 2] = want[i + 1];
        if (x->rank >= 0 && x->dims[i + 2] == 0)
            return sn_infer_fail(c, "spatial dim %d of the input is empty", i);
    }
    return sn_infer_bounded(c, 0, x->dtype, dims, rank);
}

static sonde_status bind_sample(sn_bind *b)
{
    static const char *const names[] = {"grid_sample_nearest", "grid_sample_linear",
                                        "grid_sample_cubic"};
    const sample_params *r = b->params;
    const sn_dtype t = b->in[0]->type.dtype;
    if (r->mode != SN_SAMPLE_NEAREST &&
        (t == SONDE_DTYPE_STRING || t == SONDE_DTYPE_C64 || t == SONDE_DTYPE_C128))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "interpolation of dtype %s is not supported",
                            sn_dtype_name(t));
    if (!sn_is_common_float(b->in[1]->type.dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "a grid of %s is not supported",
                            sn_dtype_name(b->in[1]->type.dtype));
    b->kernel = names[r->mode];
    return SONDE_OK;
}

static sonde_status run_sample(const sn_step *s, sn_frame *f)
{
    const sample_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *y = sn_out(s, f, 0);
    sn_grid_sample g = {.mode = r->mode,
                        .padding = r->padding,
                        .align_corners = r->align,
                        .spatial = x->rank - 2,
                        .images = y->dims[0],
                        .channels = x->dims[1]};
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    for (int i = 0; i < g.spatial; i++) {
        g.in[i] = x->dims[i + 2];
        g.out[i] = y->dims[i + 2];
    }
    sn_grid_sample_run(&g, sn_tensor_elems(y), sn_tensor_elems(x), sn_tensor_elems(sn_in(s, f, 1)),
                       f->pool);
    return sn_run_own_strings(s, f, 0);
}

#define SAMPLE(SINCE, UNTIL)                                                                       \
    {                                                                                              \
        SN_OP_HEAD("GridSample", SINCE, UNTIL, 2, 2, 1, 1),                                        \
            .params_size = sizeof(sample_params), .prepare = prepare_sample,                       \
            .infer = infer_sample, .bind = bind_sample, .run = run_sample, .types = SN_ALL_TYPES   \
    }
const sn_op sn_op_grid_sample[] = {SAMPLE(16, 0), {.name = NULL}};

/* ------------------------------------------------------------------ AffineGrid */
static sonde_status prepare_affine(sn_prep *p)
{
    sample_params *r = p->params;
    int64_t align;
    SN_TRY(sn_prep_int(p, "align_corners", 0, &align));
    r->align = align != 0;
    return SONDE_OK;
}

static sonde_status infer_affine(sn_infer *c)
{
    const sn_type *theta = &c->in[0]->type;
    const sn_dim *size;
    int64_t n;
    SN_TRY(sn_check_float(c, 0));
    SN_TRY(sn_infer_list(c, 1, &size, &n));
    if (n >= 0 && n != 4 && n != 5)
        return sn_infer_fail(c, "size has %lld entries, expected 4 or 5", (long long)n);
    if (n < 0)
        return sn_infer_tensor(c, 0, theta->dtype, NULL, -1);
    const int spatial = (int)n - 2;
    sn_dim want[3] = {size ? size[0] : SN_DIM_UNKNOWN, spatial, spatial + 1}, dims[5];
    SN_TRY(sn_check_dims(c, 0, want, 3));
    dims[0] = want[0];
    for (int i = 0; i < spatial; i++)
        dims[i + 1] = size ? size[i + 2] : SN_DIM_UNKNOWN;
    dims[spatial + 1] = spatial;
    return sn_infer_bounded(c, 0, theta->dtype, dims, spatial + 2);
}

static sonde_status run_affine(const sn_step *s, sn_frame *f)
{
    const sample_params *r = s->params;
    const sn_tensor *y = sn_out(s, f, 0);
    sn_affine_grid g = {.align_corners = r->align, .spatial = y->rank - 2, .images = y->dims[0]};
    for (int i = 0; i < g.spatial; i++)
        g.out[i] = y->dims[i + 1];
    sn_affine_grid_run(&g, sn_tensor_elems(y), sn_tensor_elems(sn_in(s, f, 0)));
    return SONDE_OK;
}

const sn_op sn_op_affine_grid[] = {{SN_OP_HEAD("AffineGrid", 20, 0, 2, 2, 1, 1),
                                    .params_size = sizeof(sample_params), .prepare = prepare_affine,
                                    .infer = infer_affine, .run = run_affine,
                                    .types = SN_COMMON_FLOATS},
                                   {.name = NULL}};
