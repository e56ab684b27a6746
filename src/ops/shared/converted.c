/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in the type a driver computes in; see converted.h. */
#include "ops/shared/converted.h"

#include "compute/packs.h"
#include "compute/split.h"

sn_dtype sn_packed_dtype(const sn_fact *fact)
{
    return fact->pack ? sn_pack_get(fact->pack)->dtype : fact->type.dtype;
}

bool sn_pack_by_tiles(const sn_pack_request *r, uint32_t i, int64_t rows)
{
    enum { ROWS_THAT_PAY = 64 }; /* for splitting the weights, in every run */
    const sn_dtype dtype = sn_pack_dtype(r, i);
    const bool asked =
        dtype == SONDE_DTYPE_BF16 && !r->as_in_file[i] && r->precision == SONDE_PRECISION_BF16;
    if (dtype == SONDE_DTYPE_F16 && r->in[i]->type.dtype == SONDE_DTYPE_F16 &&
        sn_pack_has_f16_tiles(r->cpu_flags))
        return true; /* nothing has to be split */
    if (dtype == SONDE_DTYPE_F16)
        return rows >= ROWS_THAT_PAY && sn_pack_has_fast_tiles(r->cpu_flags);
    return asked && sn_pack_has_tiles(r->cpu_flags);
}

int64_t sn_pack_rows(const sn_pack_request *r, uint32_t x, int but)
{
    const sn_type *t = r->n_in > x && r->in[x] ? &r->in[x]->type : NULL;
    int64_t rows = 1;
    if (!t || t->rank < 0)
        return -1;
    for (int i = 0; i < t->rank; i++)
        if (i != but)
            rows = sn_dim_known(t->dims[i]) && rows >= 0 ? sn_count(rows, t->dims[i], 1, 1) : rows;
    return rows;
}

int64_t sn_pack_known_rows(const sn_pack_request *r, uint32_t x, int but, int first)
{
    const sn_type *t = r->n_in > x && r->in[x] ? &r->in[x]->type : NULL;
    for (int i = first; t && i < t->rank; i++)
        if (i != but && !sn_dim_known(t->dims[i]))
            return -1;
    return t && t->rank > first ? sn_pack_rows(r, x, but) : -1;
}

bool sn_pack_may_halve(const sn_pack_request *r, uint32_t i)
{
    return sn_pack_dtype(r, i) == SONDE_DTYPE_F32 && r->in[i]->type.dtype == SONDE_DTYPE_F32 &&
           r->in[0] && r->in[0]->type.dtype == SONDE_DTYPE_F32 &&
           sn_pack_has_f16_tiles(r->cpu_flags) && sn_pack_has_fast_tiles(r->cpu_flags);
}

bool sn_bind_may_halve(const sn_bind *b)
{
    const uint32_t flags = b->cpu_flags;
    return sn_pack_has_f16_tiles(flags) && sn_pack_has_fast_tiles(flags) &&
           ((flags & b->ctx->cpu.on_request) == 0 || b->ctx->cpu.request());
}

bool sn_bind_in_bf16(const sn_bind *b)
{
    return b->precision == SONDE_PRECISION_BF16 && sn_pack_has_tiles(b->cpu_flags);
}

bool sn_packed_tiles(const sn_fact *fact)
{
    return fact->pack && sn_pack_get(fact->pack)->arrangement == SN_WEIGHTS_PANEL_TILES;
}

sn_piece sn_converted_carve(sn_workspace *w, const sn_fact *fact, sn_dtype compute)
{
    int64_t n;
    if (!fact || fact->pack || sn_fact_stored(fact) == compute)
        return (sn_piece){0};
    if (!sn_layout_count(fact->form.layout, fact->type.dims, fact->type.rank, &n))
        n = -1; /* an overflow, like any other size that cannot be */
    return sn_carve(w, n, sn_dtype_bytes(compute));
}

/* With the padding of its layout. */
static size_t stored_count(const sn_tensor *t)
{
    int64_t n = 0;
    (void)sn_layout_count(t->layout, t->dims, t->rank, &n);
    return (size_t)n;
}

const void *sn_converted_in(const sn_step *s, const sn_frame *f, uint32_t i, sn_dtype compute,
                            sn_piece piece)
{
    if (!sn_has(s, i))
        return NULL;
    const sn_tensor *t = sn_in(s, f, i);
    if (t->dtype == compute || t->pack)
        return t->data;
    void *copy = sn_piece_ptr(f, piece);
    sn_cast_run(f->ctx->cpu.flags, compute, copy, t->dtype, t->data, stored_count(t),
                (sn_rounding){0}, f->pool);
    return copy;
}

void *sn_converted_out(const sn_step *s, const sn_frame *f, uint32_t o, sn_dtype compute,
                       sn_piece piece)
{
    if (!sn_wants(s, o))
        return NULL;
    const sn_tensor *t = sn_out(s, f, o);
    return t->dtype == compute ? t->data : sn_piece_ptr(f, piece);
}

void sn_converted_done(const sn_step *s, const sn_frame *f, uint32_t o, sn_dtype compute,
                       sn_piece piece)
{
    if (!sn_wants(s, o))
        return;
    const sn_tensor *t = sn_out(s, f, o);
    if (t->dtype != compute)
        sn_cast_run(f->ctx->cpu.flags, t->dtype, t->data, compute, sn_piece_ptr(f, piece),
                    stored_count(t), (sn_rounding){0}, f->pool);
}
