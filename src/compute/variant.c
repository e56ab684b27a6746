/* SPDX-License-Identifier: Apache-2.0 */
/* A variant's number is read as digits, one per thing that varies. */
#include "compute/variant.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"

sn_variant sn_variant_of(unsigned number)
{
    if (number >= SN_VARIANTS)
        number = 0;
    sn_variant v = {.blocks = number % (SN_TILE_MAX_BLOCKS + 1)};
    number /= SN_TILE_MAX_BLOCKS + 1;
    v.length = (int)(number % SN_VARIANT_LENGTHS);
    number /= SN_VARIANT_LENGTHS;
    v.other = number % 2 != 0;
    v.coarse = number / 2 != 0;
    return v;
}

uint64_t sn_gemm_cut(const sn_gemm_plan *p)
{
    const int64_t cut[] = {p->chunks, p->seg, p->part, (int64_t)p->tasks};
    return sn_hash(cut, sizeof cut, 0);
}

uint64_t sn_conv_cut(const sn_conv_plan *p)
{
    const int64_t cut[] = {(int64_t)p->kind, p->chunks, p->seg,
                           p->segs > 1 && p->chunks > 1 && p->chunk_outer, (int64_t)p->tasks};
    return sn_hash(cut, sizeof cut, 0);
}

unsigned sn_conv_variants(const sn_conv_plan *p)
{
    const bool one = p->kind == SN_CONV_COLUMNS || p->kind == SN_CONV_TILES ||
                     p->kind == SN_CONV_ROWS || p->kind == SN_CONV_SPARSE ||
                     p->kind == SN_CONV_IMAGES;
    return one ? 1 : SN_VARIANTS;
}

/* Of weights that are widened first, or of products in bf16; nothing of f32 ones. */
static const char *weights_text(bool packed, bool tiles, sn_dtype dtype)
{
    if (!packed)
        return tiles ? " bf16" : "";
    return dtype == SONDE_DTYPE_F16 ? " f16" : dtype == SONDE_DTYPE_BF16 ? " bf16" : "";
}

void sn_gemm_text(const sn_gemm_desc *d, char *text, size_t bytes)
{
    int64_t batches = 1;
    for (int i = 0; i < d->batch_rank; i++)
        batches *= d->batch[i];
    snprintf(text, bytes, "gemm %lld %lld %lld batch %lld %lld trans %d%d packed %d c %d %d%d%d",
             (long long)d->m, (long long)d->n, (long long)d->k, (long long)batches,
             (long long)d->b_count, d->trans_a, d->trans_b, d->packed, d->has_c, d->c_m != 0,
             d->c_n != 0, d->residual);
    const size_t n = strlen(text);
    snprintf(text + n, bytes - n, " scaled %d act %d%s%s", d->alpha != 1.0f || d->beta != 1.0f,
             (int)d->act.kind, weights_text(d->packed, d->tiles, d->b_dtype),
             d->sparse ? " sparse" : "");
}

static void add_axes(char *text, size_t bytes, const char *name, const int64_t *axes)
{
    const size_t n = strlen(text);
    snprintf(text + n, bytes - n, " %s %lld %lld %lld", name, (long long)axes[0],
             (long long)axes[1], (long long)axes[2]);
}

void sn_conv_text(const sn_conv_desc *d, char *text, size_t bytes)
{
    snprintf(text, bytes, "conv %lld %lld %lld groups %lld blocks %u %u packed %d%d z %d act %d",
             (long long)d->n, (long long)d->c, (long long)d->oc, (long long)d->groups, d->in_block,
             d->out_block, d->packed, d->winograd, d->residual, (int)d->act.kind);
    add_axes(text, bytes, "in", d->in);
    add_axes(text, bytes, "out", d->out);
    add_axes(text, bytes, "kernel", d->kernel);
    add_axes(text, bytes, "stride", d->stride);
    add_axes(text, bytes, "dilation", d->dilation);
    add_axes(text, bytes, "pad", d->pad);
    const size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s%s", weights_text(d->packed, d->tiles, d->w_dtype),
             d->sparse ? " sparse" : "");
}
