/* SPDX-License-Identifier: Apache-2.0 */
/* Views, places and plans of the attention operators; see attention.h. */
#include "ops/shared/attention.h"

#include <math.h>
#include <string.h>

#include "compute/split.h"
#include "ops/shared/converted.h"

/* ------------------------------------------------------------------ views */
sn_heads sn_heads_of(const sn_tensor *t, int64_t heads)
{
    const int64_t *d = t->dims;
    if (t->rank == 4)
        return sn_heads_bhsd(t->dtype, t->data, d[0], d[1], d[2], d[3]);
    return sn_heads_bshd(t->dtype, t->data, d[0], heads, d[1], heads > 0 ? d[2] / heads : 0, d[2],
                         0);
}

sn_heads sn_heads_of_type(const sn_type *t, int64_t heads)
{
    sn_tensor x = {.dtype = t->dtype, .rank = t->rank};
    memcpy(x.dims, t->dims, sizeof(int64_t) * (size_t)t->rank);
    return sn_heads_of(&x, heads);
}

sn_heads sn_heads_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) ? sn_heads_of(sn_in(s, f, i), 0) : (sn_heads){.data = NULL};
}

sn_heads sn_heads_out(const sn_step *s, const sn_frame *f, uint32_t o)
{
    return sn_wants(s, o) ? sn_heads_of(sn_out(s, f, o), 0) : (sn_heads){.data = NULL};
}

/* A dense copy of it in the workspace. */
static sn_piece carve_heads(sn_workspace *w, const sn_heads *h)
{
    return sn_carve(w, sn_count(h->batch, h->heads, h->len, h->size), sn_dtype_bytes(h->dtype));
}

/* ------------------------------------------------------------------ queries */
void sn_attn_query_bind(sn_attn_query *c, sn_heads *q, sn_dtype compute, bool changed,
                        sn_workspace *w)
{
    c->copied = changed || q->dtype != compute;
    if (!c->copied)
        return;
    *q = sn_heads_bhsd(compute, NULL, q->batch, q->heads, q->len, q->size);
    c->piece = carve_heads(w, q);
}

sn_heads sn_attn_query_run(const sn_attn_query *c, const sn_frame *f, const sn_heads *q,
                           sn_dtype compute)
{
    if (!c->copied)
        return *q;
    const sn_heads copy =
        sn_heads_bhsd(compute, sn_piece_ptr(f, c->piece), q->batch, q->heads, q->len, q->size);
    sn_heads_copy(&copy, q, NULL, f->pool);
    return copy;
}

/* ------------------------------------------------------------------ keys and values */
void sn_attn_cache_bind(sn_attn_cache *c, sn_heads *now, sn_dtype compute, bool past, bool changed,
                        bool keep, int64_t total, sn_workspace *w)
{
    const bool same = now->dtype == compute;
    c->direct = same && !past && !changed;
    c->present = !c->direct && same && !changed && keep;
    if (c->direct)
        return;
    *now = sn_heads_bhsd(compute, NULL, now->batch, now->heads, total, now->size);
    if (!c->present)
        c->piece = carve_heads(w, now);
}

sn_heads sn_attn_cache_place(const sn_attn_cache *c, const sn_frame *f, const sn_heads *now,
                             const sn_heads *present, sn_dtype compute, int64_t total)
{
    if (c->direct)
        return *now;
    if (c->present)
        return *present;
    return sn_heads_bhsd(compute, sn_piece_ptr(f, c->piece), now->batch, now->heads, total,
                         now->size);
}

static void join(const sn_heads *to, const sn_heads *past, const sn_heads *now,
                 const int64_t *start, sn_pool *pool)
{
    if (past->data)
        sn_heads_copy(to, past, NULL, pool);
    sn_heads_copy(to, now, start, pool);
}

sn_heads sn_attn_cache_run(const sn_attn_cache *c, const sn_frame *f, const sn_heads *past,
                           const sn_heads *now, const sn_heads *present, sn_dtype compute,
                           int64_t total, const int64_t *start, const float *bias)
{
    const sn_heads all = sn_attn_cache_place(c, f, now, present, compute, total);
    if (!c->direct)
        join(&all, past, now, start, f->pool);
    if (bias) {
        sn_heads fresh = all;
        fresh.data = (float *)all.data + start[0] * all.stride[2];
        fresh.len = now->len;
        sn_heads_add(&fresh, bias, f->pool);
    }
    if (!present->data || c->present)
        return all;
    if (bias)
        sn_heads_copy(present, &all, NULL, f->pool);
    else
        join(present, past, now, start, f->pool);
    return all;
}

/* ------------------------------------------------------------------ masks, plan */
bool sn_attn_mask_strides(const sn_dim *dims, int rank, int64_t batch, int64_t heads, int64_t q_len,
                          int64_t total, bool shorter, sn_attention_mask *m)
{
    const int64_t full[4] = {batch, heads, q_len, total};
    ptrdiff_t step = 1;
    if (rank < 1 || rank > 4)
        return false;
    m->len = total;
    for (int i = 3; i >= 0; i--) {
        const int at = i - (4 - rank);
        const int64_t n = at >= 0 ? dims[at] : 1;
        const bool cut = i == 3 && shorter && n < total && n != 1;
        if (n != 1 && n != full[i] && !cut)
            return false;
        if (cut)
            m->len = n;
        m->stride[i] = n == 1 ? 0 : step;
        step *= n;
    }
    return true;
}

double sn_attn_scale(int64_t size)
{
    return 1.0 / sqrt((double)(size > 0 ? size : 1));
}

sonde_status sn_attn_plan(sn_bind *b, sn_attention_desc *d, const sn_heads *q, const sn_heads *k,
                          const sn_heads *v, const sn_heads *y, sn_attention_plan *p)
{
    d->dtype = q->dtype;
    d->batch = q->batch;
    d->heads = q->heads;
    d->kv_heads = k->heads;
    d->q_len = q->len;
    d->kv_len = k->len;
    d->head = q->size;
    d->v_head = v->size;
    for (int i = 0; i < 3; i++) {
        d->q[i] = q->stride[i];
        d->k[i] = k->stride[i];
        d->v[i] = v->stride[i];
        d->y[i] = y->stride[i];
    }
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the attention is too large");
    d->in_bf16 = sn_bind_in_bf16(b);
    SN_TRY(sn_attention_plan_make(p, d, b->cpu_flags, b->threads, b->err));
    b->kernel = p->name;
    b->flops = p->flops;
    b->arithmetic = p->arithmetic;
    return SONDE_OK;
}
