/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.FusedAttention: y = softmax(mask(scale * q · kᵀ)) · v in f32, made by the passes. Q, K and
 * V are read where projections wrote them, as views: an attribute of five numbers each names the
 * axes of batch, head and position (-1: there is none), how far heads are apart inside the last
 * axis when they have no axis of their own, and the first column. Sizes of a head are contiguous in
 * the last axis. `y_axes` has for each axis of the output which of batch (1), heads (2), positions
 * (3) and numbers of a head (4) it runs over, outermost first: 24 is heads times numbers. Batches,
 * and positions where a mask says so, broadcast as they do in the nodes this stands for. */
#include <math.h>
#include <string.h>

#include "ops/heads.h"

enum { Q, K, V, BIAS, KEEP };
enum { BATCH = 1, HEADS, LEN, SIZE };
enum { VIEW_BATCH, VIEW_HEAD, VIEW_LEN, VIEW_STEP, VIEW_FIRST, VIEW_INTS };

typedef struct fused_params {
    int64_t heads, kv_heads, size, v_size, scores_rank;
    const int64_t *view[3];
    const int64_t *y_axes;
    size_t y_rank;
    float scale, filter;
    sn_attention_hide hide;
    uint8_t hidden;
    bool nan_is_zero;
} fused_params;

typedef struct fused_bound {
    sn_attention_plan plan;
    ptrdiff_t first[3];
    sn_attention_mask bias, keep;
} fused_bound;

/* The digits of an axis of the output, outermost first; each part may stand once. */
static sonde_status check_y_axes(sn_prep *p, const fused_params *a)
{
    unsigned seen = 0;
    for (size_t i = 0; i < a->y_rank; i++) {
        if (a->y_axes[i] < 0 || a->y_axes[i] > 4444)
            return sn_prep_fail(p, "attribute 'y_axes' has no axis %lld", (long long)a->y_axes[i]);
        for (int64_t code = a->y_axes[i]; code > 0; code /= 10) {
            const int64_t part = code % 10;
            if (part < BATCH || part > SIZE || (seen >> part & 1u))
                return sn_prep_fail(p, "attribute 'y_axes' has part %lld too often",
                                    (long long)part);
            seen |= 1u << part;
        }
    }
    if (!(seen >> SIZE & 1u) || a->y_axes[a->y_rank - 1] % 10 != SIZE)
        return sn_prep_fail(p, "attribute 'y_axes' must end with the numbers of a head");
    return SONDE_OK;
}

static sonde_status prepare_fused(sn_prep *p)
{
    static const char *const views[3] = {"q_view", "k_view", "v_view"};
    fused_params *a = p->params;
    int64_t hide, hidden, zero;
    SN_TRY(sn_prep_int(p, "heads", 1, &a->heads));
    SN_TRY(sn_prep_int(p, "kv_heads", 1, &a->kv_heads));
    SN_TRY(sn_prep_int(p, "head_size", 0, &a->size));
    SN_TRY(sn_prep_int(p, "v_head_size", 0, &a->v_size));
    SN_TRY(sn_prep_int(p, "scores_rank", 4, &a->scores_rank));
    SN_TRY(sn_prep_int(p, "hide", SN_ATTENTION_FILL_FIRST, &hide));
    SN_TRY(sn_prep_int(p, "hidden", 0, &hidden));
    SN_TRY(sn_prep_int(p, "nan_is_zero", 0, &zero));
    SN_TRY(sn_prep_float(p, "scale", 1.0f, &a->scale));
    SN_TRY(sn_prep_float(p, "filter", -INFINITY, &a->filter));
    SN_TRY(sn_prep_ints(p, "y_axes", &a->y_axes, &a->y_rank));
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0 || a->size < 1 ||
        a->v_size < 1 || a->heads > INT32_MAX || a->size > INT32_MAX || a->v_size > INT32_MAX)
        return sn_prep_fail(p, "heads and their sizes do not fit each other");
    if (hide < SN_ATTENTION_ADD_FILTER || hide > SN_ATTENTION_FILL_LAST || hidden < 0 ||
        hidden > 1 || (a->scores_rank != 4 && (a->scores_rank != 3 || a->heads != 1)))
        return sn_prep_fail(p, "the masks' attributes are out of range");
    a->hide = (sn_attention_hide)hide;
    a->hidden = (uint8_t)hidden;
    a->nan_is_zero = zero != 0;
    for (int i = 0; i < 3; i++) {
        size_t n;
        SN_TRY(sn_prep_ints(p, views[i], &a->view[i], &n));
        if (n != VIEW_INTS || a->view[i][VIEW_STEP] < 0 || a->view[i][VIEW_FIRST] < 0 ||
            a->view[i][VIEW_STEP] > INT32_MAX || a->view[i][VIEW_FIRST] > INT32_MAX)
            return sn_prep_fail(p, "attribute '%s' is no view", views[i]);
    }
    return check_y_axes(p, a);
}

/* ------------------------------------------------------------------ infer */
static sn_dim dim_at(const sn_type *t, int64_t axis)
{
    return axis < 0 ? 1 : t->dims[axis];
}

/* The larger of two dims of which one may be 1; false: they differ. An unknown one may be anything.
 */
static bool broadcast(sn_dim *dim, sn_dim other)
{
    if (*dim == 1 || sn_dim_same(*dim, other)) {
        *dim = other;
        return true;
    }
    if (other == 1)
        return true;
    if (sn_dim_known(*dim) && sn_dim_known(other))
        return false;
    *dim = sn_dim_known(other) ? other : sn_dim_known(*dim) ? *dim : SN_DIM_UNKNOWN;
    return true;
}

/* Axes of a view are axes of its source, each taken once, the last one by no position or batch. */
static bool view_fits(const sn_type *t, const int64_t *view)
{
    if (t->rank < 1)
        return false;
    for (int i = VIEW_BATCH; i <= VIEW_LEN; i++)
        if (view[i] < -1 || view[i] >= t->rank - 1)
            return false;
    return (view[VIEW_BATCH] < 0 || view[VIEW_BATCH] != view[VIEW_HEAD]) &&
           (view[VIEW_BATCH] < 0 || view[VIEW_BATCH] != view[VIEW_LEN]) &&
           (view[VIEW_HEAD] < 0 || view[VIEW_HEAD] != view[VIEW_LEN]);
}

/* Dims of a mask against [batch, heads, positions, keys]. */
static bool mask_dims(const fused_params *a, const sn_type *t, sn_dim out[4])
{
    if (t->rank < 0 || t->rank > a->scores_rank)
        return false;
    for (int i = 0; i < 4; i++)
        out[i] = 1;
    for (int i = 0; i < t->rank; i++) {
        int at = 4 - t->rank + i;
        if (a->scores_rank == 3 && at == 1)
            at = 0;
        out[at] = t->dims[i];
    }
    return true;
}

/* What batch and positions are in all, and the keys. The first input whose dims do not broadcast
 * against those before it, or -1. */
static int sizes(const fused_params *a, const sn_type *const in[5], sn_dim *batch, sn_dim *len,
                 sn_dim *keys)
{
    *batch = dim_at(in[Q], a->view[Q][VIEW_BATCH]);
    *len = dim_at(in[Q], a->view[Q][VIEW_LEN]);
    *keys = dim_at(in[K], a->view[K][VIEW_LEN]);
    for (int i = K; i <= V; i++)
        if (!broadcast(batch, dim_at(in[i], a->view[i][VIEW_BATCH])) ||
            !broadcast(keys, dim_at(in[i], a->view[i][VIEW_LEN])))
            return i;
    for (int i = BIAS; i <= KEEP; i++) {
        sn_dim m[4];
        if (in[i] &&
            (!mask_dims(a, in[i], m) || !broadcast(batch, m[0]) || !broadcast(len, m[2]) ||
             !broadcast(keys, m[3]) || (m[1] != 1 && sn_dim_known(m[1]) && m[1] != a->heads)))
            return i;
    }
    return -1;
}

static sonde_status infer_fused(sn_infer *c)
{
    static const char *const names[5] = {"queries", "keys", "values", "the mask", "the filter"};
    const fused_params *a = c->params;
    const sn_type *in[5] = {NULL};
    for (uint32_t i = 0; i <= KEEP; i++)
        if (sn_infer_has(c, i)) {
            in[i] = &c->in[i]->type;
            if (in[i]->rank < 0)
                return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
            if (i <= V && !view_fits(in[i], a->view[i]))
                return sn_infer_fail(c, "input %u does not have the axes of its view", i);
        }
    sn_dim part[5] = {1, 1, a->heads, 1, a->v_size}, keys, out[SN_MAX_RANK];
    if (a->y_rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the result has too many axes");
    const int odd = sizes(a, in, &part[BATCH], &part[LEN], &keys);
    if (odd >= 0)
        return sn_infer_fail(c, "shapes do not broadcast: %s against queries and keys", names[odd]);
    for (size_t i = 0; i < a->y_rank; i++) {
        out[i] = 1;
        for (int64_t code = a->y_axes[i]; code > 0; code /= 10)
            out[i] = out[i] == 1 ? part[code % 10] : sn_dim_mul(out[i], part[code % 10]);
    }
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, out, (int)a->y_rank);
}

/* ------------------------------------------------------------------ bind */
/* Strides over batch, head and position of a view, 0 where there is one for all. */
static bool view_strides(const sn_type *t, const int64_t *view, int64_t heads, int64_t size,
                         ptrdiff_t out[3])
{
    int64_t stride = 1, step[SN_MAX_RANK];
    for (int i = t->rank - 1; i >= 0; i--) {
        step[i] = stride;
        stride *= t->dims[i];
    }
    for (int i = 0; i < t->rank - 1; i++)
        if (i != view[VIEW_BATCH] && i != view[VIEW_HEAD] && i != view[VIEW_LEN] && t->dims[i] != 1)
            return false;
    const bool inside = view[VIEW_HEAD] < 0;
    for (int i = VIEW_BATCH; i <= VIEW_LEN; i++)
        out[i] = view[i] < 0 || t->dims[view[i]] == 1 ? 0 : step[view[i]];
    if (inside)
        out[VIEW_HEAD] = view[VIEW_STEP];
    else if (t->dims[view[VIEW_HEAD]] != heads)
        return false;
    const int64_t end = view[VIEW_FIRST] + size + (inside ? (heads - 1) * view[VIEW_STEP] : 0);
    return end <= t->dims[t->rank - 1];
}

/* Strides of the result; false: a part that is larger than 1 has no place in it. */
static bool y_strides(const fused_params *a, int64_t batch, int64_t len, ptrdiff_t out[3])
{
    const int64_t part[5] = {1, batch, a->heads, len, a->v_size};
    ptrdiff_t step[5] = {0}, stride = 1;
    for (size_t i = a->y_rank; i-- > 0;)
        for (int64_t code = a->y_axes[i]; code > 0; code /= 10) {
            step[code % 10] = stride;
            stride *= part[code % 10];
        }
    for (int i = 0; i < 3; i++) {
        out[i] = step[BATCH + i];
        if (!out[i] && part[BATCH + i] != 1)
            return false;
    }
    return true;
}

static sonde_status bind_mask(sn_bind *b, uint32_t i, sn_dtype dtype, const sn_attention_desc *d,
                              sn_attention_mask *m)
{
    sn_dim dims[4];
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    if (t->dtype != dtype || !mask_dims(b->params, t, dims) ||
        !sn_attn_mask_strides(dims, 4, d->batch, d->heads, d->q_len, d->kv_len, false, m))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the scores", i);
    return SONDE_OK;
}

static sonde_status bind_fused(sn_bind *b)
{
    const fused_params *a = b->params;
    fused_bound *k = SN_NEW(b->arena, fused_bound);
    const sn_type *in[5] = {NULL};
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    for (uint32_t i = 0; i <= KEEP; i++)
        in[i] = i < b->n_in && b->in[i] ? &b->in[i]->type : NULL;
    sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                           .heads = a->heads,
                           .kv_heads = a->kv_heads,
                           .head = a->size,
                           .v_head = a->v_size,
                           .scale = (double)a->scale,
                           .window = -1,
                           .hide = a->hide,
                           .nan_is_zero = a->nan_is_zero};
    bool fit = sizes(a, in, &d.batch, &d.q_len, &d.kv_len) < 0;
    ptrdiff_t *const strides[3] = {d.q, d.k, d.v};
    for (int i = Q; i <= V; i++) {
        fit = fit && in[i]->dtype == SONDE_DTYPE_F32 && view_fits(in[i], a->view[i]) &&
              view_strides(in[i], a->view[i], i == Q ? a->heads : a->kv_heads,
                           i == V ? a->v_size : a->size, strides[i]);
        k->first[i] = a->view[i][VIEW_FIRST];
    }
    if (!fit || !y_strides(a, d.batch, d.q_len, d.y))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the shapes of Q, K, V and the masks do not fit each other");
    SN_TRY(bind_mask(b, BIAS, SONDE_DTYPE_F32, &d, &k->bias));
    SN_TRY(bind_mask(b, KEEP, SONDE_DTYPE_BOOL, &d, &k->keep));
    SN_TRY(sn_attention_plan_make(&k->plan, &d, b->cpu_flags, b->threads, b->err));
    b->workspace_bytes = k->plan.workspace_bytes;
    b->bound = k;
    b->kernel = k->plan.name;
    /* The softmax as the operator counts it. */
    b->flops =
        k->plan.flops + 10 * (uint64_t)(d.batch * d.heads) * (uint64_t)d.q_len * (uint64_t)d.kv_len;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
static sonde_status run_fused(const sn_step *s, sn_frame *f)
{
    const fused_params *p = s->params;
    const fused_bound *k = s->bound;
    sn_attention_args a = {.q = (const float *)sn_in(s, f, Q)->data + k->first[Q],
                           .k = (const float *)sn_in(s, f, K)->data + k->first[K],
                           .v = (const float *)sn_in(s, f, V)->data + k->first[V],
                           .y = sn_out(s, f, 0)->data,
                           .hidden = p->hidden,
                           .filter = (double)p->filter};
    if (sn_has(s, BIAS)) {
        a.bias = k->bias;
        a.bias.data = sn_in(s, f, BIAS)->data;
    }
    if (sn_has(s, KEEP)) {
        a.keep = k->keep;
        a.keep.data = sn_in(s, f, KEEP)->data;
    }
    sn_attention_run(&k->plan, &a, f->workspace, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_fused_attention[] = {{.name = "FusedAttention",
                                        .domain = "sonde",
                                        .since = 1,
                                        .min_in = 3,
                                        .max_in = 5,
                                        .min_out = 1,
                                        .max_out = 1,
                                        .params_size = sizeof(fused_params),
                                        .prepare = prepare_fused,
                                        .infer = infer_fused,
                                        .bind = bind_fused,
                                        .run = run_fused,
                                        .types = "f32"},
                                       {.name = NULL}};
