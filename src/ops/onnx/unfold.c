/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that put elements back where they came from: Col2Im adds overlapping blocks into an
 * image, MaxUnpool writes maxima to the positions a MaxPool found them at. */
#include <string.h>

#include "compute/fold.h"
#include "compute/unpool.h"
#include "ops/shared/checks.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/window.h"

typedef struct unfold_params {
    sn_window window;
} unfold_params;

static sonde_status prepare(sn_prep *p)
{
    unfold_params *r = p->params;
    return sn_window_prepare(p, &r->window);
}

/* ------------------------------------------------------------------ Col2Im */
enum { COLUMNS, IMAGE, BLOCK };

static sonde_status infer_col2im(sn_infer *c)
{
    const unfold_params *r = c->params;
    const sn_type *x = &c->in[COLUMNS]->type;
    const sn_dim *image, *block;
    int64_t n_image, n_block;
    SN_TRY(sn_infer_list(c, IMAGE, &image, &n_image));
    SN_TRY(sn_infer_list(c, BLOCK, &block, &n_block));
    sn_dim in[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    SN_TRY(sn_check_dims(c, COLUMNS, in, 3));
    if (x->dtype != SONDE_DTYPE_UNDEFINED && !sn_fold_takes(x->dtype))
        return sn_infer_fail(c, "elements of type %s cannot be added", sn_dtype_name(x->dtype));
    if (n_image < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    if (n_image < 1 || n_image > SN_MAX_RANK - 2 || (n_block >= 0 && n_block != n_image))
        return sn_infer_fail(c, "image_shape has %lld entries and block_shape %lld",
                             (long long)n_image, (long long)n_block);
    SN_TRY(sn_window_check(c, &r->window, (int)n_image));
    sn_dim dims[SN_MAX_RANK] = {in[0], SN_DIM_UNKNOWN}, blocks = 1, size = 1;
    for (int i = 0; i < n_image; i++) {
        dims[i + 2] = image ? image[i] : SN_DIM_UNKNOWN;
        size = block ? sn_dim_mul(size, block[i]) : SN_DIM_UNKNOWN;
        sn_dim grid = SN_DIM_UNKNOWN;
        if (block)
            SN_TRY(sn_window_dim(c, &r->window, i, dims[i + 2], block[i], &grid));
        blocks = sn_dim_mul(blocks, grid);
    }
    if (sn_dim_known(size) && sn_dim_known(in[1])) {
        if (size < 1 || in[1] % size != 0)
            return sn_infer_fail(c, "%lld rows are not divisible by blocks of %lld",
                                 (long long)in[1], (long long)size);
        dims[1] = in[1] / size;
    }
    if (sn_dim_known(blocks) && sn_dim_known(in[2]) && blocks != in[2])
        return sn_infer_fail(c, "there are %lld blocks, but the image needs %lld", (long long)in[2],
                             (long long)blocks);
    return sn_infer_bounded(c, 0, x->dtype, dims, (int)n_image + 2);
}

static bool known_list(const sn_fact *f, int64_t *out, int n)
{
    if (f->ints && f->n_ints == n) {
        memcpy(out, f->ints, (size_t)n * sizeof *out);
        return sn_dims_known(f->ints, n);
    }
    return f->data && sn_tensor_ints(f->data, out, n) == n;
}

static sonde_status bind_col2im(sn_bind *b)
{
    const unfold_params *r = b->params;
    const sn_type *x = &b->in[COLUMNS]->type, *y = &b->out[0].type;
    sn_fold *k = SN_NEW(b->arena, sn_fold);
    int64_t block[SN_MAX_RANK], taps = 1, pixels, columns;
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    k->dtype = x->dtype;
    k->rank = y->rank - 2;
    if (!sn_fold_takes(x->dtype) || !known_list(b->in[BLOCK], block, k->rank))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "block_shape is not known, or the type is not supported");
    for (int i = 0; i < k->rank; i++) {
        sn_axis_window a;
        if (!sn_window_axis(&r->window, i, y->dims[i + 2], block[i], &a))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the blocks do not match the image");
        k->image[i] = a.in;
        k->grid[i] = a.out;
        k->kernel[i] = a.kernel;
        k->stride[i] = a.stride;
        k->dilation[i] = a.dilation;
        k->pad[i] = a.pad;
    }
    if (!sn_dims_count(k->image, k->rank, &pixels) || !sn_dims_count(k->kernel, k->rank, &taps) ||
        !sn_i64_mul(taps, x->dims[2], &columns))
        return sn_bind_fail(b, SONDE_LIMIT, "the image is too large");
    b->bound = k;
    b->kernel = "col2im";
    return SONDE_OK;
}

static sonde_status run_col2im(const sn_step *s, sn_frame *f)
{
    sn_tensor *y = sn_out(s, f, 0);
    if (sn_tensor_count(y) > 0)
        sn_fold_run(s->bound, y->dims[0] * y->dims[1], sn_in(s, f, COLUMNS)->data, y->data,
                    f->pool);
    return SONDE_OK;
}

const sn_op sn_op_col2im[] = {
    {SN_OP_HEAD("Col2Im", 18, 0, 3, 3, 1, 1), .params_size = sizeof(unfold_params),
     .prepare = prepare, .infer = infer_col2im, .bind = bind_col2im, .run = run_col2im,
     .types = "bf16 f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128"},
    {.name = NULL}};

/* ------------------------------------------------------------------ MaxUnpool */
enum { MAXIMA, INDICES, SHAPE };

static sonde_status prepare_unpool(sn_prep *p)
{
    unfold_params *r = p->params;
    SN_TRY(prepare(p));
    return r->window.kernel ? SONDE_OK : sn_prep_fail(p, "attribute 'kernel_shape' is required");
}

/* The size a MaxPool of these attributes would have had; -1: not possible. */
static int64_t unpooled(const sn_window *w, int i, int64_t in)
{
    const int64_t stride = w->strides ? w->strides[i] : 1;
    if (in < 0 || in > INT32_MAX)
        return -1;
    int64_t out = (in - 1) * stride + w->kernel[i];
    if (w->pads)
        out -= w->pads[i] + w->pads[(size_t)i + w->n];
    return out;
}

static sonde_status infer_unpool(sn_infer *c)
{
    static const sn_dtype int64[] = {SONDE_DTYPE_I64};
    const unfold_params *r = c->params;
    const sn_type *x = &c->in[MAXIMA]->type;
    const sn_dim *shape;
    int64_t n;
    SN_TRY(sn_check_dtype(c, INDICES, int64, 1));
    SN_TRY(sn_infer_list(c, SHAPE, &shape, &n));
    const int rank = (int)r->window.n + 2;
    if (r->window.n > SN_MAX_RANK - 2 || (x->rank >= 0 && x->rank != rank))
        return sn_infer_fail(c, "the attributes have %zu spatial dims, but the input has rank %d",
                             r->window.n, (int)x->rank);
    if (x->rank < 0)
        return sn_infer_rank(c, 0, x->dtype, rank);
    sn_dim want[SN_MAX_RANK], dims[SN_MAX_RANK];
    memcpy(want, x->dims, (size_t)rank * sizeof *want);
    SN_TRY(sn_check_dims(c, INDICES, want, rank));
    memcpy(dims, x->dims, 2 * sizeof *dims);
    for (int i = 0; i < rank - 2; i++)
        dims[i + 2] =
            sn_dim_known(x->dims[i + 2]) ? unpooled(&r->window, i, x->dims[i + 2]) : SN_DIM_UNKNOWN;
    if (sn_infer_has(c, SHAPE)) {
        if (n >= 0 && n != rank)
            return sn_infer_fail(c, "output_shape has %lld entries, expected %d", (long long)n,
                                 rank);
        for (int i = 0; i < rank; i++) {
            const sn_dim given = shape ? shape[i] : SN_DIM_UNKNOWN;
            if (sn_dim_known(given) && sn_dim_known(dims[i]) &&
                (given < dims[i] || (i < 2 && given != dims[i])))
                return sn_infer_fail(
                    c, "output_shape has %lld in dimension %d, at least %lld is needed",
                    (long long)given, i, (long long)dims[i]);
            dims[i] = given;
        }
    }
    return sn_infer_bounded(c, 0, x->dtype, dims, rank);
}

static sonde_status run_unpool(const sn_step *s, sn_frame *f)
{
    const unfold_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, MAXIMA);
    sn_tensor *y = sn_out(s, f, 0);
    /* Indices count in the pooled tensor's own shape, which output_shape may only extend. */
    sn_unpool u = {.elem_bytes = sn_dtype_bytes(x->dtype), .rank = x->rank};
    memcpy(u.pooled, x->dims, (size_t)x->rank * sizeof *u.pooled);
    memcpy(u.out, y->dims, (size_t)x->rank * sizeof *u.out);
    for (int i = 2; i < x->rank; i++) {
        u.pooled[i] = unpooled(&r->window, i - 2, x->dims[i]);
        if (u.pooled[i] > y->dims[i])
            return sn_run_fail(s, f, "output_shape is too small in dimension %d", i);
    }
    if (y->dtype == SONDE_DTYPE_STRING || !sn_dims_count(u.pooled, x->rank, &u.total))
        return sn_run_fail(s, f, "unpooling is not supported for this dtype or size");
    int64_t bad;
    if (!sn_unpool_run(&u, y->data, y->bytes, x->data, sn_in(s, f, INDICES)->data,
                       sn_tensor_count(x), &bad))
        return sn_run_fail(s, f, "index %lld is outside of %lld elements", (long long)bad,
                           (long long)u.total);
    return SONDE_OK;
}

const sn_op sn_op_max_unpool[] = {{SN_OP_HEAD("MaxUnpool", 9, 0, 2, 3, 1, 1),
                                   .params_size = sizeof(unfold_params), .prepare = prepare_unpool,
                                   .infer = infer_unpool, .run = run_unpool,
                                   .types = SN_COMMON_FLOATS},
                                  {.name = NULL}};
