/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for zeros. A few places of a weight say whether it is worth reading as a whole, so dense
 * weights cost next to nothing. */
#include "ops/shared/sparse_weights.h"

#include <math.h>

#include "compute/gemm_sparse.h"
#include "ops/shared/converted.h"

/* What every format and driver refuses is not looked at. */
enum { LEAST_K = 32, LEAST_N = 32 };
/* Filters of so few outputs may go this way with no zero among them: vectors run over pixels, where
 * the dense way would leave most lanes of its vectors empty. */
enum { FEW_OUTPUTS = 8 };

/* Zeros stay zeros under these factors. */
static bool scale_is_finite(const sn_tensor *t)
{
    for (int64_t i = 0; t->scale && i < t->dims[t->scale_axis]; i++)
        if (!isfinite(t->scale[i]))
            return false;
    return true;
}

/* False: it is no matrix that may be packed so. */
static bool source_of(const sn_tensor *t, sn_sparse_order order, sn_sparse_source *s)
{
    *s = (sn_sparse_source){.data = t->data, .dtype = t->dtype, .turned = order != SN_SPARSE_PLAIN};
    return t->rank >= 2 && sn_sparse_matrix(t->dims, t->rank, order, &s->k, &s->n);
}

/* The axis of the outputs. */
static int output_axis(const sn_tensor *t, sn_sparse_order order)
{
    switch (order) {
    case SN_SPARSE_PLAIN:
        return t->rank - 1;
    case SN_SPARSE_TURNED:
        return t->rank - 2;
    default:
        return 0;
    }
}

/* Blocks of a weight, or -1: it has too few zeros to be sparse. Parts of one have to end where a
 * block does. */
static int64_t blocks_of(const sn_tensor *t, sn_sparse_order order, int outputs, int ks)
{
    const double dense = 0.5; /* share of blocks beyond which nothing pays */
    if (!scale_is_finite(t))
        return -1;
    if (t->parts) {
        const bool along_outputs = t->parts->axis == output_axis(t, order);
        const int64_t each = along_outputs ? outputs : ks;
        int64_t all = 0;
        for (size_t i = 0; i < t->parts->n && all >= 0; i++) {
            const sn_tensor *part = t->parts->part[i];
            const int64_t some = part->dims[t->parts->axis] % each || part->rank != t->rank
                                     ? -1
                                     : blocks_of(part, order, outputs, ks);
            all = some < 0 ? -1 : all + some;
        }
        return all;
    }
    sn_sparse_source s;
    if (!source_of(t, order, &s))
        return -1;
    return sn_sparse_sample(&s, outputs, ks) > dense ? -1 : sn_sparse_blocks(&s, outputs, ks);
}

int64_t sn_weights_rows(const sn_fact *a)
{
    int64_t rows = 1;
    for (int i = 0; a && i < a->type.rank - 1; i++)
        rows = rows < 0 || !sn_dim_known(a->type.dims[i]) ? -1 : rows * a->type.dims[i];
    return a && a->type.rank > 1 ? rows : -1;
}

/* The same of few outputs, however many there are. */
static int64_t all_blocks_of(const sn_tensor *t, int outputs)
{
    sn_sparse_source s;
    return t->parts || !scale_is_finite(t) || !source_of(t, SN_SPARSE_FILTERS, &s)
               ? -1
               : sn_sparse_blocks(&s, outputs, 1);
}

static bool is_large(const sn_tensor *t, sn_sparse_order order, sn_sparse_source *s)
{
    return source_of(t, order, s) && s->k >= LEAST_K && s->n >= LEAST_N;
}

static void answer(sn_pack_request *r, uint32_t i, unsigned format, sn_sparse_order order,
                   int64_t blocks)
{
    r->pack[i] = (uint8_t)format;
    r->pack_arg[i] = sn_sparse_arg(order, blocks);
}

static bool is_float(const sn_tensor *t)
{
    return t && (t->dtype == SONDE_DTYPE_F32 || sn_is_half(t->dtype));
}

/* Blocks of four or single weights, whichever take less time: a single one takes somewhat more than
 * half the time of a block, if there are many rows to meet. */
static bool choose(sn_pack_request *r, uint32_t i, sn_sparse_order order, const int64_t *entries,
                   bool many_rows)
{
    const double worth = many_rows ? 1.6 : 0.6;
    const bool single =
        entries[1] >= 0 && (entries[0] < 0 || (double)entries[1] < worth * (double)entries[0]);
    if (!single && entries[0] < 0)
        return false;
    answer(r, i, single ? SN_PACK_F32_SPARSE1 : SN_PACK_F32_SPARSE4, order, entries[single]);
    return true;
}

bool sn_weights_pack_sparse(sn_pack_request *r, uint32_t i, bool turned)
{
    const sn_tensor *t = r->in[i]->data;
    const sn_sparse_order order = turned ? SN_SPARSE_TURNED : SN_SPARSE_PLAIN;
    sn_sparse_source s;
    if (!is_float(t) || !is_large(t, order, &s))
        return false;
    sn_gemm_sparse_case c = {.rows = sn_weights_rows(r->in[0]), .n = s.n, .k = s.k};
    c.dense_tiles = sn_pack_by_tiles(r, i, sn_pack_rows(r, 0, -1));
    c.tiles = c.dense_tiles && sn_pack_dtype(r, i) == SONDE_DTYPE_BF16 &&
              sn_pack_has_fast_tiles(r->cpu_flags);
    if (c.tiles) {
        c.entries = blocks_of(t, order, SN_ROWS_TILE, 2);
        if (c.entries >= 0 && sn_gemm_sparse_pays(&c)) {
            answer(r, i, SN_PACK_BF16_SPARSE16, order, c.entries);
            return true;
        }
        c.tiles = false;
    }
    int64_t entries[2]; /* of blocks, and single ones; -1: they do not pay */
    for (int single = 0; single < 2; single++) {
        c.single = single;
        entries[single] = c.entries = blocks_of(t, order, single ? 1 : SN_SPARSE_PANEL, 1);
        if (c.entries >= 0 && !sn_gemm_sparse_pays(&c))
            entries[single] = -1;
    }
    return choose(r, i, order, entries, c.rows > SN_SPARSE_ROWS);
}

bool sn_weights_pack_sparse_filters(sn_pack_request *r, uint32_t i, sn_conv_sparse_case c)
{
    const sn_tensor *t = r->in[i]->data;
    sn_sparse_source s;
    if (!is_float(t) || t->rank < 3 || t->rank > 5 || !source_of(t, SN_SPARSE_FILTERS, &s) ||
        s.k < LEAST_K)
        return false;
    const bool few = s.n <= FEW_OUTPUTS && !t->parts;
    if (!few && s.n < LEAST_N)
        return false;
    c.oc = t->dims[0];
    c.ic = t->dims[1];
    for (int k = 0; k < 3; k++)
        c.kernel[k] = k < 5 - t->rank ? 1 : t->dims[t->rank - 3 + k];
    c.tiles = sn_pack_by_tiles(r, i, sn_pack_rows(r, 0, 1));
    if (!sn_conv_sparse_pays(&c)) /* not even without a single block */
        return false;
    int64_t entries[2]; /* of blocks, and single ones; -1: they do not pay */
    for (int single = 0; single < 2; single++) {
        c.single = single;
        const int outputs = single ? 1 : SN_SPARSE_PANEL;
        entries[single] = c.entries =
            few ? all_blocks_of(t, outputs) : blocks_of(t, SN_SPARSE_FILTERS, outputs, 1);
        if (c.entries >= 0 && !sn_conv_sparse_pays(&c))
            entries[single] = -1;
    }
    return choose(r, i, SN_SPARSE_FILTERS, entries, true);
}

bool sn_weights_pack_sparse_bytes(sn_pack_request *r, uint32_t i, sn_sparse_order order,
                                  int64_t rows)
{
    const sn_tensor *t = r->in[i]->data;
    sn_sparse_source s;
    if (!t || !sn_is_byte(t->dtype) || !is_large(t, order, &s))
        return false;
    const bool u8 = t->dtype == SONDE_DTYPE_U8;
    for (int tiles = 1; tiles >= 0; tiles--) {
        sn_q8_sparse_case c = {rows, s.n, s.k, 0, tiles};
        if (!sn_q8_sparse_pays(&c, r->cpu_flags)) /* not even without a single block */
            continue;
        c.entries = blocks_of(t, order, tiles ? SN_ROWS_TILE : SN_SPARSE_PANEL, tiles ? 4 : 1);
        if (c.entries < 0 || !sn_q8_sparse_pays(&c, r->cpu_flags))
            continue;
        answer(r, i,
               tiles ? (u8 ? SN_PACK_U8_SPARSE16 : SN_PACK_I8_SPARSE16)
                     : (u8 ? SN_PACK_U8_SPARSE4 : SN_PACK_I8_SPARSE4),
               order, c.entries);
        return true;
    }
    return false;
}

unsigned sn_weights_sparse(const sn_fact *fact, int64_t *blocks)
{
    const sn_pack_format *f = fact->pack ? sn_pack_get(fact->pack) : NULL;
    if (!f || (f->arrangement != SN_WEIGHTS_SPARSE && f->arrangement != SN_WEIGHTS_SPARSE_TILES))
        return 0;
    *blocks = sn_sparse_arg_blocks(fact->pack_arg);
    return f->block;
}

void sn_weights_describe(const sn_fact *fact, sn_q8_desc *d)
{
    d->packed = fact->pack != 0;
    d->sparse = sn_weights_sparse(fact, &d->entries) != 0;
    d->sparse_tiles = d->sparse && sn_pack_get(fact->pack)->arrangement == SN_WEIGHTS_SPARSE_TILES;
}

size_t sn_sparse_stored(const sn_fact *fact)
{
    const sn_packing p = {sn_pack_get(fact->pack), fact->type.dims, fact->type.rank, fact->pack_arg,
                          0};
    size_t bytes = 0;
    return p.format->bytes(&p, &bytes) ? bytes : 0;
}
