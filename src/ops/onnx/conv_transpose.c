/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose: a matrix product gives, per output channel, one column of values per kernel tap,
 * and folding adds them where they belong. Small images take one product per group, weights read
 * where they lie. For larger ones output channels are done a few at a time, so that columns stay in
 * the cache and memory does not grow with the kernel; the weights are turned once a run for that.
 * f64 makes its columns by plain loops. */
#include <string.h>

#include "compute/codec.h"
#include "compute/copy.h"
#include "compute/fold.h"
#include "compute/gemm.h"
#include "compute/packs.h"
#include "compute/split.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/window.h"

enum { X, W, B };
enum {
    CHUNK_BYTES = 1 << 20, /* columns of the channels one task works on */
    SMALL_PIXELS = 256,    /* images up to this are done in one product */
};

typedef struct transpose_params {
    sn_window window;
    int64_t groups;
    const int64_t *output_padding, *output_shape; /* NULL: absent */
} transpose_params;

static sonde_status prepare_list(sn_prep *p, sn_window *w, const char *name, const int64_t **out)
{
    size_t n;
    SN_TRY(sn_prep_ints(p, name, out, &n));
    if (n == 0) {
        *out = NULL;
        return SONDE_OK;
    }
    if (w->n != 0 && n != w->n)
        return sn_prep_fail(p, "attribute '%s' has %zu entries, expected %zu", name, n, w->n);
    w->n = n;
    for (size_t i = 0; i < n; i++)
        if ((*out)[i] < 0 || (*out)[i] > INT32_MAX)
            return sn_prep_fail(p, "attribute '%s' holds %lld", name, (long long)(*out)[i]);
    return SONDE_OK;
}

static sonde_status prepare(sn_prep *p)
{
    transpose_params *r = p->params;
    SN_TRY(sn_window_prepare(p, &r->window));
    SN_TRY(prepare_list(p, &r->window, "output_padding", &r->output_padding));
    SN_TRY(prepare_list(p, &r->window, "output_shape", &r->output_shape));
    SN_TRY(sn_prep_int(p, "group", 1, &r->groups));
    if (r->groups < 1 || r->groups > INT32_MAX)
        return sn_prep_fail(p, "attribute 'group' is %lld", (long long)r->groups);
    return SONDE_OK;
}

/* False: no output is left, or sizes overflow. */
static bool axis_of(const transpose_params *r, int i, int64_t in, int64_t kernel, sn_axis *a)
{
    const sn_window *w = &r->window;
    const bool same = w->auto_pad == SN_PAD_SAME_UPPER || w->auto_pad == SN_PAD_SAME_LOWER;
    *a = (sn_axis){.in = in,
                   .kernel = kernel,
                   .stride = w->strides ? w->strides[i] : 1,
                   .dilation = w->dilations ? w->dilations[i] : 1};
    if (in < 0 || in > INT32_MAX || kernel < 1 || kernel > INT32_MAX)
        return false;
    const int64_t extra = r->output_padding ? r->output_padding[i] : 0;
    const int64_t full = a->stride * (in - 1) + extra + (kernel - 1) * a->dilation + 1;
    if (r->output_shape || same) {
        a->out = r->output_shape ? r->output_shape[i] : in * a->stride;
        const int64_t total = sn_max(full - a->out, 0);
        a->pad = w->auto_pad == SN_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        a->pad_end = total - a->pad;
        return true;
    }
    if (w->auto_pad == SN_PAD_NOTSET && w->pads) {
        a->pad = w->pads[i];
        a->pad_end = w->pads[(size_t)i + w->n];
    }
    a->out = full - a->pad - a->pad_end;
    return a->out >= 0;
}

static sonde_status infer(sn_infer *c)
{
    const transpose_params *r = c->params;
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    for (uint32_t i = X; i <= B; i++) {
        SN_TRY(sn_wide_float(c, i));
        SN_TRY(sn_wide_same_dtype(c, i, X));
    }
    if (x->rank < 0 && w->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    const int rank = x->rank >= 0 ? x->rank : w->rank;
    if (rank < 3 || rank > SN_MAX_RANK || (w->rank >= 0 && w->rank != rank))
        return sn_infer_fail(
            c, "input and weight have ranks %d and %d: equal ones of at least 3 are needed",
            (int)x->rank, (int)w->rank);
    SN_TRY(sn_window_check(c, &r->window, rank - 2));
    sn_dim dims[SN_MAX_RANK];
    dims[0] = x->rank >= 0 ? x->dims[0] : SN_DIM_UNKNOWN;
    dims[1] = w->rank >= 0 ? sn_dim_mul(w->dims[1], r->groups) : SN_DIM_UNKNOWN;
    if (x->rank >= 0 && w->rank >= 0 && sn_dim_known(x->dims[1]) && sn_dim_known(w->dims[0]) &&
        (x->dims[1] != w->dims[0] || x->dims[1] % r->groups != 0))
        return sn_infer_fail(c, "%lld input channels do not fit a weight of %lld and %lld groups",
                             (long long)x->dims[1], (long long)w->dims[0], (long long)r->groups);
    for (int i = 0; i < rank - 2; i++) {
        const sn_dim in = x->rank >= 0 ? x->dims[i + 2] : SN_DIM_UNKNOWN;
        const sn_dim kernel = w->rank >= 0       ? w->dims[i + 2]
                              : r->window.kernel ? r->window.kernel[i]
                                                 : SN_DIM_UNKNOWN;
        sn_axis a;
        if (r->window.kernel && sn_dim_known(kernel) && kernel != r->window.kernel[i])
            return sn_infer_fail(c, "kernel_shape says %lld, the weight %lld in spatial dim %d",
                                 (long long)r->window.kernel[i], (long long)kernel, i);
        dims[i + 2] = r->output_shape ? r->output_shape[i] : SN_DIM_UNKNOWN;
        if (!sn_dim_known(in) || !sn_dim_known(kernel))
            continue;
        if (!axis_of(r, i, in, kernel, &a))
            return sn_infer_fail(c, "the pads leave nothing of spatial dim %d", i);
        dims[i + 2] = a.out;
    }
    sn_dim bias[1] = {dims[1]};
    SN_TRY(sn_wide_dims(c, B, bias, 1));
    return sn_wide_out(c, 0, x->dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind */
typedef struct transpose_bound {
    sn_fold fold;
    int64_t n, groups, in_channels, out_channels; /* channels of one group */
    int64_t in_pixels, out_pixels, taps;
    bool small; /* f32: one product for all channels of a group */
    int64_t chunk, chunks;
    sn_gemm_plan plan, last; /* of a full chunk, of the last one */
    const sn_pack_format *format;
    size_t x_at, w_at, b_at, y_at;                           /* f32 copies */
    size_t weights_at, panels_at, columns_at, columns_bytes; /* the last one per worker */
} transpose_bound;

static sonde_status plan_f32(sn_bind *b, transpose_bound *k, sn_room *room)
{
    const int64_t per_channel = sn_max(k->taps * k->in_pixels, 1);
    const int64_t fit = CHUNK_BYTES / (int64_t)sizeof(float) / per_channel;
    k->small = k->in_pixels <= SMALL_PIXELS;
    k->chunk = sn_max(k->small ? k->out_channels : sn_min(fit, k->out_channels), 1);
    k->chunks = sn_ceil_div(k->out_channels, k->chunk);
    sn_gemm_desc d = {.m = k->chunk * k->taps,
                      .n = k->in_pixels,
                      .k = k->in_channels,
                      .b_count = 1,
                      .trans_a = k->small,
                      .packed = true,
                      .alpha = 1.0f,
                      .beta = 1.0f};
    SN_TRY(sn_gemm_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes,
                             k->small ? b->threads : 1, b->err));
    d.m = (k->out_channels - (k->chunks - 1) * k->chunk) * k->taps;
    SN_TRY(sn_gemm_plan_make(&k->last, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, 1, b->err));
    const int64_t dims[2] = {k->in_channels, k->in_pixels};
    size_t bytes = 0;
    k->format = sn_pack_get(sn_gemm_pack_id(k->plan.block));
    if (k->in_channels > 0 && k->in_pixels > 0 && !k->format->bytes(dims, 2, 0, &bytes))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->weights_at = sn_room_take(room, k->small ? 0 : sn_wide_count(b->in[W]), sizeof(float));
    k->panels_at = sn_room_take(room, (int64_t)bytes, 1);
    b->kernel = k->plan.name;
    return SONDE_OK;
}

static sonde_status run_narrow(const sn_step *s, sn_frame *f);
static sonde_status run_f64(const sn_step *s, sn_frame *f);

static sonde_status bind(sn_bind *b)
{
    const transpose_params *r = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    transpose_bound *k = SN_NEW(b->arena, transpose_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_wide_takes(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(x->dtype));
    const bool narrow = x->dtype != SONDE_DTYPE_F64;
    k->n = x->dims[0];
    k->groups = r->groups;
    k->in_channels = x->dims[1] / r->groups;
    k->out_channels = w->dims[1];
    k->fold.dtype = narrow ? SONDE_DTYPE_F32 : SONDE_DTYPE_F64;
    k->fold.rank = x->rank - 2;
    for (int i = 0; i < x->rank - 2; i++) {
        sn_axis a;
        if (!axis_of(r, i, x->dims[i + 2], w->dims[i + 2], &a))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the pads leave nothing of spatial dim %d",
                                i);
        k->fold.image[i] = a.out;
        k->fold.grid[i] = a.in;
        k->fold.kernel[i] = a.kernel;
        k->fold.stride[i] = a.stride;
        k->fold.dilation[i] = a.dilation;
        k->fold.pad[i] = a.pad;
    }
    int64_t columns, rows;
    if (!sn_dims_count(k->fold.grid, k->fold.rank, &k->in_pixels) ||
        !sn_dims_count(k->fold.image, k->fold.rank, &k->out_pixels) ||
        !sn_dims_count(k->fold.kernel, k->fold.rank, &k->taps) ||
        !sn_i64_mul(k->in_pixels, k->taps, &columns) ||
        !sn_i64_mul(k->out_channels, k->taps, &rows))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    sn_room room = {0};
    k->chunk = 1;
    k->chunks = k->out_channels;
    b->kernel = "f64_conv_transpose";
    b->run = run_f64;
    if (narrow) {
        SN_TRY(plan_f32(b, k, &room));
        k->x_at = sn_room_wide(&room, b->in[X]);
        k->w_at = sn_room_wide(&room, b->in[W]);
        k->b_at = sn_room_wide(&room, b->n_in > B ? b->in[B] : NULL);
        k->y_at = sn_room_wide(&room, &b->out[0]);
        b->run = run_narrow;
    }
    const int64_t workers = k->small || b->threads < 1 ? 1 : b->threads;
    if (!sn_i64_mul(columns, k->chunk, &columns) || columns > PTRDIFF_MAX / 16)
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    const size_t elem = narrow ? sizeof(float) : sizeof(double);
    k->columns_bytes = sn_round_up((size_t)columns * elem, SN_ALIGN);
    k->columns_at = sn_room_take(&room, workers, k->columns_bytes);
    b->bound = k;
    b->flops = 2 * (uint64_t)x->dims[1] * (uint64_t)k->n * (uint64_t)k->out_channels *
               (uint64_t)k->taps * (uint64_t)k->in_pixels;
    return sn_room_done(b, &room);
}

/* ------------------------------------------------------------------ run */
typedef struct transpose_call {
    const transpose_bound *k;
    const void *x, *w, *bias; /* of this image and group; w transposed for f32 */
    void *y;
    uint8_t *columns;
} transpose_call;

static void fold_channel(const transpose_call *c, const float *columns, int64_t channel)
{
    const transpose_bound *k = c->k;
    const float value = c->bias ? ((const float *)c->bias)[channel] : 0.0f;
    float *plane = (float *)c->y + channel * k->out_pixels;
    for (int64_t p = 0; p < k->out_pixels; p++)
        plane[p] = value;
    sn_fold_add(&k->fold, columns, plane);
}

static void chunk_f32(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const transpose_bound *k = c->k;
    const int64_t first = (int64_t)task * k->chunk, n = sn_min(k->chunk, k->out_channels - first);
    float *columns = (float *)(void *)(c->columns + (size_t)worker * k->columns_bytes);
    sn_gemm_run(n == k->chunk ? &k->plan : &k->last,
                (const float *)c->w + first * k->taps * k->in_channels, c->x, NULL, NULL, columns,
                NULL, NULL);
    for (int64_t i = 0; i < n; i++)
        fold_channel(c, columns + i * k->taps * k->in_pixels, first + i);
}

static void fold_task(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const float *columns = (const float *)(const void *)c->columns;
    (void)worker;
    fold_channel(c, columns + (int64_t)task * c->k->taps * c->k->in_pixels, (int64_t)task);
}

static void chunk_f64(void *arg, size_t task, int worker)
{
    const transpose_call *c = arg;
    const transpose_bound *k = c->k;
    const int64_t oc = (int64_t)task, cells = k->taps * k->in_pixels;
    double *columns = (double *)(void *)(c->columns + (size_t)worker * k->columns_bytes), *y = c->y;
    const double *bias = c->bias, *w = c->w, *x = c->x;
    memset(columns, 0, (size_t)cells * sizeof *columns);
    for (int64_t ic = 0; ic < k->in_channels; ic++)
        for (int64_t t = 0; t < k->taps; t++) {
            const double tap = w[(ic * k->out_channels + oc) * k->taps + t];
            for (int64_t p = 0; p < k->in_pixels; p++)
                columns[t * k->in_pixels + p] += tap * x[ic * k->in_pixels + p];
        }
    double *plane = y + oc * k->out_pixels;
    for (int64_t p = 0; p < k->out_pixels; p++)
        plane[p] = bias ? bias[oc] : 0.0;
    sn_fold_add(&k->fold, columns, plane);
}

typedef struct pack_job {
    const transpose_bound *k;
    const float *x;
    float *panels;
} pack_job;

static void pack_unit(void *arg, size_t task, int worker)
{
    const pack_job *j = arg;
    const int64_t dims[2] = {j->k->in_channels, j->k->in_pixels};
    (void)worker;
    j->k->format->pack(j->panels, j->x, dims, 2, 0, task);
}

static sonde_status run_narrow(const sn_step *s, sn_frame *f)
{
    const transpose_bound *k = s->bound;
    if (k->out_channels == 0 || k->out_pixels == 0) /* nothing to give; the plan is for some */
        return SONDE_OK;
    const float *x = sn_wide_in(s, f, X, k->x_at), *w = sn_wide_in(s, f, W, k->w_at);
    const float *bias = sn_wide_in(s, f, B, k->b_at);
    float *y = sn_wide_out_room(s, f, 0, k->y_at);
    const int64_t rows = k->out_channels * k->taps, in = k->in_channels * k->in_pixels;
    const int64_t panel_dims[2] = {k->in_channels, k->in_pixels};
    if (!k->small) {
        const int64_t dims[3] = {k->groups, rows, k->in_channels};
        const ptrdiff_t dst[3] = {rows * k->in_channels, k->in_channels, 1},
                        src[3] = {k->in_channels * rows, 1, rows};
        sn_copy turn;
        sn_copy_plan(&turn, sizeof(float), 3, dims, dst, src);
        sn_copy_run(&turn, sn_space_f32(f, k->weights_at), w, f->pool);
        w = sn_space_f32(f, k->weights_at);
    }
    transpose_call c = {
        .k = k, .x = sn_space_f32(f, k->panels_at), .columns = f->workspace + k->columns_at};
    for (int64_t i = 0; i < k->n * k->groups; i++) {
        const int64_t g = i % k->groups;
        pack_job j = {k, x + i * in, sn_space_f32(f, k->panels_at)};
        if (in > 0)
            sn_pool_run(f->pool, k->format->units(panel_dims, 2, 0), pack_unit, &j);
        c.w = w + g * rows * k->in_channels;
        c.bias = bias ? bias + g * k->out_channels : NULL;
        c.y = y + i * k->out_channels * k->out_pixels;
        if (k->small) {
            sn_gemm_run(&k->plan, c.w, c.x, NULL, NULL, (float *)(void *)c.columns, NULL, f->pool);
            sn_pool_run(f->pool, (size_t)k->out_channels, fold_task, &c);
        } else {
            sn_pool_run(f->pool, (size_t)k->chunks, chunk_f32, &c);
        }
        if (f->cancel && atomic_load_explicit(f->cancel, memory_order_relaxed))
            return sn_run_cancelled(s, f);
    }
    sn_wide_put(s, f, 0, k->y_at);
    return SONDE_OK;
}

static sonde_status run_f64(const sn_step *s, sn_frame *f)
{
    const transpose_bound *k = s->bound;
    const double *x = sn_in(s, f, X)->data, *w = sn_in(s, f, W)->data;
    const double *bias = sn_has(s, B) ? sn_in(s, f, B)->data : NULL;
    double *y = sn_out(s, f, 0)->data;
    transpose_call c = {.k = k, .columns = f->workspace + k->columns_at};
    for (int64_t i = 0; i < k->n * k->groups && k->out_pixels > 0; i++) {
        const int64_t g = i % k->groups;
        c.x = x + i * k->in_channels * k->in_pixels;
        c.w = w + g * k->in_channels * k->out_channels * k->taps;
        c.bias = bias ? bias + g * k->out_channels : NULL;
        c.y = y + i * k->out_channels * k->out_pixels;
        sn_pool_run(f->pool, (size_t)k->chunks, chunk_f64, &c);
    }
    return SONDE_OK;
}

const sn_op sn_op_conv_transpose[] = {{.name = "ConvTranspose",
                                       .domain = "",
                                       .since = 1,
                                       .min_in = 2,
                                       .max_in = 3,
                                       .min_out = 1,
                                       .max_out = 1,
                                       .params_size = sizeof(transpose_params),
                                       .prepare = prepare,
                                       .infer = infer,
                                       .bind = bind,
                                       .run = run_narrow,
                                       .types = SN_WIDE_TYPES},
                                      {.name = NULL}};
