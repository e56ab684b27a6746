/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.FusedAttention: y = softmax(mask(scale * q · kᵀ)) · v in f32, made by the passes. Q, K and
 * V are read where projections wrote them, as views: an attribute of five numbers each names the
 * axes of batch, head and position (-1: there is none), how far heads are apart inside the last
 * axis when they have no axis of their own, and the first column. Sizes of a head are contiguous in
 * the last axis. `y_axes` has for each axis of the output which of batch (1), heads (2), positions
 * (3) and numbers of a head (4) it runs over, outermost first: 24 is heads times numbers. Batches,
 * and positions where a mask says so, broadcast as they do in the nodes this stands for.
 *
 * Two tensors can be added to the scores, `bias` and `more`. Masks broadcast against scores of rank
 * `scores_rank`: [batch * heads, positions, keys], [batch, heads, positions, keys] or, where images
 * are cut into windows, [batch / windows, windows, heads, positions, keys]. `scales` has a factor
 * of each head's scores.
 *
 * `q_rows`, `kv_rows` and `y_rows`, [batch, positions] of i32, say which rows of a matrix positions
 * are, as those of windows of an image are anywhere in it; views name the columns then. A result
 * with a list has attribute `y_count` rows; where the list says -1 a position is left out. With
 * attribute `unit` of 1, queries and keys are divided by their lengths, or by attribute `least`
 * where that is more. */
#include "ops/fused/attention.h"

#include <math.h>
#include <string.h>

#include "ops/shared/attention.h"
#include "ops/shared/converted.h"
#include "ops/shared/head_view.h"

_Static_assert((int)SN_FUSED_ATTENTION_FILL_BEFORE_BIAS == (int)SN_ATTENTION_FILL_FIRST &&
                   (int)SN_FUSED_ATTENTION_FILL_AFTER_BIAS == (int)SN_ATTENTION_FILL_LAST,
               "the attribute goes to the driver as it is");

enum { Q, K, V, BIAS, KEEP, MORE, SCALES, Q_ROWS, KV_ROWS, Y_ROWS, INPUTS };
enum { BATCH = 1, HEADS, LEN, SIZE };
_Static_assert((int)Q_ROWS == (int)SN_FUSED_ATTENTION_Q_ROWS &&
                   (int)Y_ROWS == (int)SN_FUSED_ATTENTION_Y_ROWS,
               "the pass knows where lists go");

typedef struct fused_params {
    int64_t heads, kv_heads, size, v_size, scores_rank, windows;
    const int64_t *view[3];
    const int64_t *y_axes;
    size_t y_rank;
    float scale, filter, least;
    int64_t y_count;
    sn_attention_hide hide;
    uint8_t hidden;
    bool nan_is_zero, unit;
} fused_params;

typedef struct fused_bound {
    sn_attention_plan plan;
    ptrdiff_t first[3];
    sn_attention_mask bias, keep, more;
    sn_piece core;
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
    int64_t hide, hidden, zero, unit;
    SN_TRY(sn_prep_int(p, "heads", 1, &a->heads));
    SN_TRY(sn_prep_int(p, "kv_heads", 1, &a->kv_heads));
    SN_TRY(sn_prep_int(p, "head_size", 0, &a->size));
    SN_TRY(sn_prep_int(p, "v_head_size", 0, &a->v_size));
    SN_TRY(sn_prep_int(p, "scores_rank", 4, &a->scores_rank));
    SN_TRY(sn_prep_int(p, "windows", 1, &a->windows));
    SN_TRY(sn_prep_int(p, "hide", SN_ATTENTION_FILL_FIRST, &hide));
    SN_TRY(sn_prep_int(p, "hidden", 0, &hidden));
    SN_TRY(sn_prep_int(p, "nan_is_zero", 0, &zero));
    SN_TRY(sn_prep_int(p, "unit", 0, &unit));
    SN_TRY(sn_prep_int(p, "y_count", 0, &a->y_count));
    SN_TRY(sn_prep_float(p, "least", 0.0f, &a->least));
    SN_TRY(sn_prep_float(p, "scale", 1.0f, &a->scale));
    SN_TRY(sn_prep_float(p, "filter", -INFINITY, &a->filter));
    SN_TRY(sn_prep_ints(p, "y_axes", &a->y_axes, &a->y_rank));
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0 || a->size < 1 ||
        a->v_size < 1 || a->heads > INT32_MAX || a->size > INT32_MAX || a->v_size > INT32_MAX)
        return sn_prep_fail(p, "heads and their sizes do not fit each other");
    if (hide < SN_ATTENTION_ADD_FILTER || hide > SN_ATTENTION_FILL_LAST || hidden < 0 ||
        hidden > 1 || a->scores_rank < 3 || a->scores_rank > 5 || a->windows < 1 ||
        a->windows > INT32_MAX || a->y_count < 0 || a->y_count > INT32_MAX ||
        (a->windows > 1 && a->scores_rank != 5))
        return sn_prep_fail(p, "the masks' attributes are out of range");
    a->hide = (sn_attention_hide)hide;
    a->hidden = (uint8_t)hidden;
    a->nan_is_zero = zero != 0;
    a->unit = unit != 0;
    for (int i = 0; i < 3; i++)
        SN_TRY(sn_view_prepare(p, views[i], &a->view[i]));
    return check_y_axes(p, a);
}

/* ------------------------------------------------------------------ infer */
enum { OUTER, WINDOW, HEAD, QUERY, KEY, MASK_RANK };

/* Dims of a mask against [batch / windows, windows, heads, positions, keys]; windows are 1 unless
 * scores have rank 5. Against scores of rank 3 its first axis is batch times heads. */
static bool mask_dims(const fused_params *a, const sn_type *t, sn_dim out[MASK_RANK])
{
    if (t->rank < 0 || t->rank > a->scores_rank)
        return false;
    for (int i = 0; i < MASK_RANK; i++)
        out[i] = 1;
    for (int i = 0; i < t->rank; i++) {
        const int at = MASK_RANK - t->rank + i;
        if (a->scores_rank == 3 && at == HEAD && t->dims[i] != 1) {
            if (sn_dim_known(t->dims[i]) && t->dims[i] % a->heads != 0)
                return false;
            out[OUTER] = sn_dim_known(t->dims[i]) ? t->dims[i] / a->heads : SN_DIM_UNKNOWN;
            out[HEAD] = a->heads;
        } else {
            out[a->scores_rank == 4 && at == WINDOW ? OUTER : at] = t->dims[i];
        }
    }
    return true;
}

/* The batch that a mask stands for is, or may be while running, the whole one. */
static bool mask_batch(const fused_params *a, const sn_dim m[MASK_RANK], sn_dim *batch)
{
    if (a->windows == 1)
        return (m[WINDOW] == 1 || !sn_dim_known(m[WINDOW])) && sn_dim_broadcast(batch, m[OUTER]);
    if ((sn_dim_known(m[WINDOW]) && m[WINDOW] != 1 && m[WINDOW] != a->windows) ||
        (sn_dim_known(*batch) && *batch % a->windows != 0))
        return false;
    return m[OUTER] == 1 || !sn_dim_known(m[OUTER]) || !sn_dim_known(*batch) ||
           m[OUTER] == *batch / a->windows;
}

static bool mask_fits(const fused_params *a, const sn_type *t, sn_dim *batch, sn_dim *len,
                      sn_dim *keys)
{
    sn_dim m[MASK_RANK];
    return mask_dims(a, t, m) && mask_batch(a, m, batch) && sn_dim_broadcast(len, m[QUERY]) &&
           sn_dim_broadcast(keys, m[KEY]) &&
           (m[HEAD] == 1 || !sn_dim_known(m[HEAD]) || m[HEAD] == a->heads);
}

/* What batch and positions are in all, and the keys. The first input whose dims do not broadcast
 * against those before it, or -1. */
static int sizes(const fused_params *a, const sn_type *const in[INPUTS], sn_dim *batch, sn_dim *len,
                 sn_dim *keys)
{
    for (int i = Q_ROWS; i <= Y_ROWS; i++)
        if (in[i] && in[i]->rank != 2)
            return i;
    *batch = *keys = 1;
    for (int i = Q; i <= V; i++) {
        const sn_type *list = in[i == Q ? Q_ROWS : KV_ROWS];
        const sn_dim b = list ? list->dims[0] : sn_view_dim(in[i], a->view[i][SN_VIEW_BATCH]);
        const sn_dim n = list ? list->dims[1] : sn_view_dim(in[i], a->view[i][SN_VIEW_LEN]);
        if (i == Q)
            *len = n;
        if (!sn_dim_broadcast(batch, b) || (i != Q && !sn_dim_broadcast(keys, n)))
            return i;
    }
    for (int i = BIAS; i <= MORE; i++)
        if (in[i] && !mask_fits(a, in[i], batch, len, keys))
            return i;
    for (int i = Q_ROWS; i <= Y_ROWS; i++) /* nothing that has a list is repeated */
        if (in[i] && (!sn_dim_same(in[i]->dims[0], *batch) ||
                      !sn_dim_same(in[i]->dims[1], i == KV_ROWS ? *keys : *len)))
            return i;
    const sn_type *s = in[SCALES];
    return s && !(s->rank == 1 && s->dims[0] == a->heads) ? SCALES : -1;
}

static sonde_status infer_fused(sn_infer *c)
{
    static const char *const names[INPUTS] = {
        "queries",  "keys",   "values",          "the mask",     "the filter",
        "the bias", "scales", "rows of queries", "rows of keys", "rows of results"};
    const fused_params *a = c->params;
    const sn_type *in[INPUTS] = {NULL};
    for (uint32_t i = 0; i < INPUTS; i++)
        if (sn_infer_has(c, i)) {
            in[i] = &c->in[i]->type;
            if (in[i]->rank < 0)
                return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, NULL, -1);
            if (i <= V && !sn_view_fits(in[i], a->view[i]))
                return sn_infer_fail(c, "input %u does not have the axes of its view", i);
        }
    sn_dim part[5] = {1, 1, a->heads, 1, a->v_size}, keys, out[SN_MAX_RANK];
    if (a->y_rank > SN_MAX_RANK)
        return sn_infer_fail(c, "the result has too many axes");
    const int odd = sizes(a, in, &part[BATCH], &part[LEN], &keys);
    if (odd >= 0)
        return sn_infer_fail(c, "shapes do not broadcast: %s against queries and keys", names[odd]);
    if (in[Y_ROWS]) {
        out[0] = a->y_count;
        out[1] = a->heads * a->v_size;
        return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, out, 2);
    }
    for (size_t i = 0; i < a->y_rank; i++) {
        out[i] = 1;
        for (int64_t code = a->y_axes[i]; code > 0; code /= 10)
            out[i] = out[i] == 1 ? part[code % 10] : sn_dim_mul(out[i], part[code % 10]);
    }
    return sn_infer_tensor(c, 0, SONDE_DTYPE_F32, out, (int)a->y_rank);
}

/* ------------------------------------------------------------------ bind */
/* Strides of the result; false: a part that is larger than 1 has no place in it. */
static bool y_strides(const fused_params *a, int64_t batch, int64_t len, ptrdiff_t out[3])
{
    const int64_t part[5] = {1, batch, a->heads, len, a->v_size};
    ptrdiff_t step[5] = {0}, stride = 1;
    for (size_t i = a->y_rank; i-- > 0;)
        for (int64_t code = a->y_axes[i]; code > 0; code /= 10) {
            step[code % 10] = stride;
            stride *= part[code % 10] ? part[code % 10] : 1; /* a place, also of nothing */
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
    sn_dim dims[MASK_RANK];
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    bool fits = t->dtype == dtype && mask_dims(b->params, t, dims);
    if (fits && d->windows == 1 && dims[WINDOW] == 1)
        dims[WINDOW] = dims[OUTER]; /* batches are all there is before the heads */
    fits = fits && sn_attn_mask_strides(dims + 1, 4, d->windows == 1 ? d->batch : d->windows,
                                        d->heads, d->q_len, d->kv_len, false, m);
    if (!fits)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the scores", i);
    if (d->windows == 1)
        return SONDE_OK;
    m->window = m->stride[0];
    m->stride[0] =
        dims[OUTER] == 1 ? 0 : (ptrdiff_t)(dims[WINDOW] * dims[HEAD] * dims[QUERY] * dims[KEY]);
    return SONDE_OK;
}

/* Rows of which a list tells some. */
static bool is_matrix(const sn_type *t, const int64_t *view)
{
    return t->rank == 2 && view[SN_VIEW_BATCH] < 0 && view[SN_VIEW_HEAD] < 0 &&
           view[SN_VIEW_LEN] == 0;
}

static sonde_status bind_fused(sn_bind *b)
{
    const fused_params *a = b->params;
    fused_bound *k = SN_NEW(b->arena, fused_bound);
    const sn_type *in[INPUTS] = {NULL};
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    for (uint32_t i = 0; i < INPUTS; i++)
        in[i] = i < b->n_in && b->in[i] ? &b->in[i]->type : NULL;
    sn_attention_desc d = {.dtype = SONDE_DTYPE_F32,
                           .heads = a->heads,
                           .kv_heads = a->kv_heads,
                           .windows = a->windows,
                           .head = a->size,
                           .v_head = a->v_size,
                           .scale = (double)a->scale,
                           .left = -1,
                           .right = -1,
                           .hide = a->hide,
                           .nan_is_zero = a->nan_is_zero};
    d.q_listed = in[Q_ROWS] != NULL;
    d.kv_listed = in[KV_ROWS] != NULL;
    d.y_listed = in[Y_ROWS] != NULL;
    d.unit = a->unit;
    d.least = a->least;
    bool fit = sizes(a, in, &d.batch, &d.q_len, &d.kv_len) < 0 && (!in[MORE] || in[BIAS]) &&
               (!in[SCALES] || in[SCALES]->dtype == SONDE_DTYPE_F32);
    ptrdiff_t *const strides[3] = {d.q, d.k, d.v};
    for (int i = Q; i <= V; i++) {
        fit = fit && in[i]->dtype == SONDE_DTYPE_F32 && sn_view_fits(in[i], a->view[i]) &&
              sn_view_strides(in[i], a->view[i], i == Q ? a->heads : a->kv_heads,
                              i == V ? a->v_size : a->size, strides[i]);
        k->first[i] = a->view[i][SN_VIEW_FIRST];
    }
    if (d.y_listed) {
        d.y[1] = a->v_size;
        d.y[2] = a->heads * a->v_size;
    }
    for (int i = Q_ROWS; i <= Y_ROWS; i++)
        fit = fit && (!in[i] || in[i]->dtype == SONDE_DTYPE_I32);
    for (int i = Q; i <= V; i++)
        fit = fit && (!in[i == Q ? Q_ROWS : KV_ROWS] || is_matrix(in[i], a->view[i]));
    if (!fit || (!d.y_listed && !y_strides(a, d.batch, d.q_len, d.y)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the shapes of Q, K, V and the masks do not match");
    SN_TRY(bind_mask(b, BIAS, SONDE_DTYPE_F32, &d, &k->bias));
    SN_TRY(bind_mask(b, KEEP, SONDE_DTYPE_BOOL, &d, &k->keep));
    SN_TRY(bind_mask(b, MORE, SONDE_DTYPE_F32, &d, &k->more));
    d.in_bf16 = sn_bind_in_bf16(b);
    SN_TRY(sn_attention_plan_make(&k->plan, &d, b->cpu_flags, b->threads, b->err));
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = k->plan.name;
    /* The softmax as the operator counts it. */
    b->arithmetic = k->plan.arithmetic;
    b->flops =
        k->plan.flops + 10 * (uint64_t)(d.batch * d.heads) * (uint64_t)d.q_len * (uint64_t)d.kv_len;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
/* The list, all of whose rows are below `rows`; `none`: some may be -1. */
static const int32_t *rows_of(const sn_step *s, const sn_frame *f, uint32_t i, int64_t rows,
                              bool none, bool *bad)
{
    if (!sn_has(s, i))
        return NULL;
    const sn_tensor *t = sn_in(s, f, i);
    const int32_t *list = t->data;
    for (int64_t k = 0, n = sn_tensor_count(t); k < n; k++)
        *bad = *bad || list[k] >= rows || list[k] < (none ? -1 : 0);
    return list;
}

static sonde_status find_rows(const sn_step *s, sn_frame *f, sn_attention_args *a)
{
    const int64_t keys = sn_min(sn_in(s, f, K)->dims[0], sn_in(s, f, V)->dims[0]);
    bool bad = false;
    a->q_rows = rows_of(s, f, Q_ROWS, sn_in(s, f, Q)->dims[0], false, &bad);
    a->kv_rows = rows_of(s, f, KV_ROWS, keys, false, &bad);
    a->y_rows = rows_of(s, f, Y_ROWS, sn_out(s, f, 0)->dims[0], true, &bad);
    return bad ? sn_run_fail(s, f, "a list has rows that are not there") : SONDE_OK;
}

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
    if (sn_has(s, MORE)) {
        a.more = k->more;
        a.more.data = sn_in(s, f, MORE)->data;
    }
    if (sn_has(s, SCALES))
        a.scales = sn_in(s, f, SCALES)->data;
    SN_TRY(find_rows(s, f, &a));
    sn_attention_run(&k->plan, &a, sn_piece_ptr(f, k->core), f->pool);
    return SONDE_OK;
}

const sn_op sn_op_fused_attention[] = {{.name = "FusedAttention",
                                        .domain = "sonde",
                                        .since = 1,
                                        .min_in = 3,
                                        .max_in = INPUTS,
                                        .min_out = 1,
                                        .max_out = 1,
                                        .params_size = sizeof(fused_params),
                                        .prepare = prepare_fused,
                                        .infer = infer_fused,
                                        .bind = bind_fused,
                                        .run = run_fused,
                                        .types = "f32"},
                                       {.name = NULL}};
