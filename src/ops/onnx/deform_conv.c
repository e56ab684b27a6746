/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv: samples are gathered by linear interpolation straight into the panels the matrix
 * product reads, then one product per image and group. Outside of the input lies zero. Computed in
 * f32. */
#include <math.h>
#include <string.h>

#include "compute/gemm.h"
#include "compute/split.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/window.h"

enum { X, W, OFFSET, B, MASK, N_IN };
enum { MAX_SPATIAL = 3, MAX_CORNERS = 8 };

typedef struct deform_params {
    sn_window window;
    int64_t groups, offset_groups;
} deform_params;

static sonde_status prepare(sn_prep *p)
{
    deform_params *r = p->params;
    r->window.may_miss = true;
    SN_TRY(sn_window_prepare(p, &r->window));
    SN_TRY(sn_prep_int(p, "group", 1, &r->groups));
    SN_TRY(sn_prep_int(p, "offset_group", 1, &r->offset_groups));
    if (r->groups < 1 || r->groups > INT32_MAX || r->offset_groups < 1 ||
        r->offset_groups > INT32_MAX)
        return sn_prep_fail(p, "attributes 'group' and 'offset_group' must be positive");
    return SONDE_OK;
}

static sonde_status infer(sn_infer *c)
{
    const deform_params *r = c->params;
    const sn_type *x = &c->in[X]->type, *w = &c->in[W]->type;
    for (uint32_t i = 0; i < N_IN; i++) {
        SN_TRY(sn_wide_float(c, i));
        SN_TRY(sn_wide_same_dtype(c, i, X));
    }
    if (x->rank < 0 || w->rank < 0)
        return sn_infer_tensor(c, 0, x->dtype, NULL, -1);
    const int rank = x->rank, spatial = rank - 2;
    if (rank < 3 || w->rank != rank)
        return sn_infer_fail(
            c, "input and weight have ranks %d and %d: equal ones of at least 3 are needed", rank,
            (int)w->rank);
    if (spatial > MAX_SPATIAL)
        return sn_infer_fail(c, "%d spatial dims are not supported", spatial);
    SN_TRY(sn_window_check(c, &r->window, spatial));
    if (sn_dim_known(x->dims[1]) &&
        (x->dims[1] % r->groups != 0 || x->dims[1] % r->offset_groups != 0))
        return sn_infer_fail(c, "%lld channels do not divide into the groups",
                             (long long)x->dims[1]);
    if (sn_dim_known(w->dims[0]) && w->dims[0] % r->groups != 0)
        return sn_infer_fail(c, "%lld output channels do not divide into the groups",
                             (long long)w->dims[0]);
    sn_dim want[SN_MAX_RANK], dims[SN_MAX_RANK], taps = 1;
    want[0] = w->dims[0];
    want[1] = sn_dim_known(x->dims[1]) ? x->dims[1] / r->groups : SN_DIM_UNKNOWN;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int i = 0; i < spatial; i++) {
        want[i + 2] = r->window.kernel ? r->window.kernel[i] : SN_DIM_UNKNOWN;
        taps = sn_dim_mul(taps, w->dims[i + 2]);
        SN_TRY(sn_window_dim(c, &r->window, i, x->dims[i + 2], w->dims[i + 2], &dims[i + 2]));
    }
    SN_TRY(sn_wide_dims(c, W, want, rank));
    sn_dim bias[1] = {dims[1]};
    SN_TRY(sn_wide_dims(c, B, bias, 1));
    memcpy(want, dims, sizeof want);
    want[1] = sn_dim_mul(taps, r->offset_groups);
    SN_TRY(sn_wide_dims(c, MASK, want, rank));
    want[1] = sn_dim_mul(want[1], spatial);
    SN_TRY(sn_wide_dims(c, OFFSET, want, rank));
    return sn_wide_out(c, 0, x->dtype, dims, rank);
}

typedef struct deform_bound {
    sn_axis axes[MAX_SPATIAL];
    int spatial;
    int64_t n, groups, offset_groups, in_channels, out_channels; /* channels of one group */
    int64_t in_pixels, out_pixels, taps;
    sn_gemm_plan plan;
    size_t in_at[N_IN], y_at, panels_at;
} deform_bound;

static sonde_status bind(sn_bind *b)
{
    const deform_params *r = b->params;
    const sn_type *x = &b->in[X]->type, *w = &b->in[W]->type;
    deform_bound *k = SN_NEW(b->arena, deform_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!sn_wide_takes(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "type %s is not supported",
                            sn_dtype_name(x->dtype));
    k->spatial = x->rank - 2;
    k->n = x->dims[0];
    k->groups = r->groups;
    k->offset_groups = r->offset_groups;
    k->in_channels = x->dims[1] / r->groups;
    k->out_channels = w->dims[0] / r->groups;
    int64_t in[MAX_SPATIAL], out[MAX_SPATIAL], depth, floats;
    for (int i = 0; i < k->spatial; i++) {
        sn_axis *a = &k->axes[i];
        if (!sn_window_axis(&r->window, i, x->dims[i + 2], w->dims[i + 2], a))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the window does not fit spatial dim %d",
                                i);
        in[i] = a->in;
        out[i] = a->out;
    }
    if (!sn_dims_count(in, k->spatial, &k->in_pixels) ||
        !sn_dims_count(out, k->spatial, &k->out_pixels) ||
        !sn_dims_count(w->dims + 2, k->spatial, &k->taps) ||
        !sn_i64_mul(k->in_channels, k->taps, &depth))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    sn_gemm_desc d = {.m = k->out_channels,
                      .n = k->out_pixels,
                      .k = depth,
                      .b_count = 1,
                      .packed = true,
                      .has_c = b->n_in > B && b->in[B],
                      .c_m = 1,
                      .alpha = 1.0f,
                      .beta = 1.0f};
    SN_TRY(sn_gemm_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    sn_room room = {0};
    if (!sn_i64_mul(d.k, k->plan.panels * k->plan.block, &floats))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->panels_at = sn_room_take(&room, floats, sizeof(float));
    for (uint32_t i = 0; i < b->n_in && i < N_IN; i++)
        k->in_at[i] = sn_room_wide(&room, b->in[i]);
    k->y_at = sn_room_wide(&room, &b->out[0]);
    b->bound = k;
    b->kernel = "f32_deform_conv_gemm";
    b->flops = (uint64_t)(k->n * k->groups) * k->plan.flops;
    return sn_room_done(b, &room);
}

/* ------------------------------------------------------------------ run */
typedef struct deform_call {
    const deform_bound *k;
    const float *x, *offset, *mask; /* of this image; mask may be NULL */
    int64_t group;
    float *panels;
} deform_call;

typedef struct corners {
    int n;
    int64_t at[MAX_CORNERS];
    float weight[MAX_CORNERS];
} corners;

/* Input elements around a position, those outside left out. */
static void corners_of(const deform_bound *k, const float *position, float scale, corners *c)
{
    c->n = 1;
    c->at[0] = 0;
    c->weight[0] = scale;
    for (int d = 0; d < k->spatial; d++) {
        const float p = position[d];
        const int64_t in = k->axes[d].in;
        if (!(p > -1.0f && p < (float)in)) { /* NaN too */
            c->n = 0;
            return;
        }
        const float base = floorf(p), part = p - base;
        const int64_t low = (int64_t)base;
        const int n = c->n;
        c->n = 0;
        corners next = {.n = 0};
        for (int i = 0; i < n; i++)
            for (int side = 0; side < 2; side++) {
                const int64_t at = low + side;
                const float weight = side ? part : 1.0f - part;
                if (at < 0 || at >= in || weight == 0.0f)
                    continue;
                next.at[next.n] = c->at[i] * in + at;
                next.weight[next.n++] = c->weight[i] * weight;
            }
        *c = next;
    }
}

/* One panel: `block` output pixels, all channels of the group and all taps. */
static void gather_task(void *arg, size_t task, int worker)
{
    const deform_call *c = arg;
    const deform_bound *k = c->k;
    const int64_t block = k->plan.block, first = (int64_t)task * block;
    const int64_t lanes = sn_min(block, k->out_pixels - first);
    const int64_t per_offset = k->in_channels * k->groups / k->offset_groups;
    float *panel = c->panels + (int64_t)task * k->in_channels * k->taps * block;
    (void)worker;
    memset(panel, 0, (size_t)(k->in_channels * k->taps * block) * sizeof *panel);
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t pixel = first + lane;
        int64_t o[MAX_SPATIAL], rest = pixel;
        for (int d = k->spatial - 1; d >= 0; d--) {
            o[d] = rest % k->axes[d].out;
            rest /= k->axes[d].out;
        }
        for (int64_t tap = 0; tap < k->taps; tap++) {
            int64_t t[MAX_SPATIAL];
            rest = tap;
            for (int d = k->spatial - 1; d >= 0; d--) {
                t[d] = rest % k->axes[d].kernel;
                rest /= k->axes[d].kernel;
            }
            corners around = {.n = 0};
            int64_t known = -1; /* offset group `around` is for */
            for (int64_t ch = 0; ch < k->in_channels; ch++) {
                const int64_t channel = c->group * k->in_channels + ch, og = channel / per_offset;
                if (og != known) {
                    float position[MAX_SPATIAL];
                    const int64_t cell = og * k->taps + tap;
                    for (int d = 0; d < k->spatial; d++)
                        position[d] = (float)(o[d] * k->axes[d].stride - k->axes[d].pad +
                                              t[d] * k->axes[d].dilation) +
                                      c->offset[(cell * k->spatial + d) * k->out_pixels + pixel];
                    corners_of(k, position, c->mask ? c->mask[cell * k->out_pixels + pixel] : 1.0f,
                               &around);
                    known = og;
                }
                const float *x = c->x + channel * k->in_pixels;
                float sum = 0.0f;
                for (int i = 0; i < around.n; i++)
                    sum += around.weight[i] * x[around.at[i]];
                panel[(ch * k->taps + tap) * block + lane] = sum;
            }
        }
    }
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const deform_bound *k = s->bound;
    const float *in[N_IN];
    for (uint32_t i = 0; i < N_IN; i++)
        in[i] = sn_wide_in(s, f, i, k->in_at[i]);
    float *y = sn_wide_out_room(s, f, 0, k->y_at);
    deform_call c = {.k = k, .panels = sn_space_f32(f, k->panels_at)};
    const int64_t cells = k->offset_groups * k->taps * k->out_pixels;
    for (int64_t i = 0; i < k->n * k->groups && k->out_pixels > 0; i++) {
        const int64_t image = i / k->groups;
        c.group = i % k->groups;
        c.x = in[X] + image * k->groups * k->in_channels * k->in_pixels;
        c.offset = in[OFFSET] + image * cells * k->spatial;
        c.mask = in[MASK] ? in[MASK] + image * cells : NULL;
        sn_pool_run(f->pool, (size_t)k->plan.panels, gather_task, &c);
        sn_gemm_run(&k->plan, in[W] + c.group * k->out_channels * k->in_channels * k->taps,
                    c.panels, in[B] ? in[B] + c.group * k->out_channels : NULL, NULL,
                    y + i * k->out_channels * k->out_pixels, NULL, f->pool);
        if (f->cancel && atomic_load_explicit(f->cancel, memory_order_relaxed))
            return sn_run_cancelled(s, f);
    }
    sn_wide_put(s, f, 0, k->y_at);
    return SONDE_OK;
}

const sn_op sn_op_deform_conv[] = {{.name = "DeformConv",
                                    .domain = "",
                                    .since = 19,
                                    .min_in = 3,
                                    .max_in = 5,
                                    .min_out = 1,
                                    .max_out = 1,
                                    .params_size = sizeof(deform_params),
                                    .prepare = prepare,
                                    .infer = infer,
                                    .bind = bind,
                                    .run = run,
                                    .types = SN_WIDE_TYPES},
                                   {.name = NULL}};
