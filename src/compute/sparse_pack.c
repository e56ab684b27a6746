/* SPDX-License-Identifier: Apache-2.0 */
/* The packed format of sparse matrices of f32, in panels of four columns: where the entries of each
 * panel begin, [panels + 1]; the k of each entry; its four weights. The argument of the format says
 * how many entries there are. A unit is the matrix: where a panel goes depends on those before it.
 */
#include <string.h>

#include "compute/sparse.h"
#include "compute/split.h"

enum { PANEL = SN_SPARSE_PANEL };

int64_t sn_sparse_arg(bool turned, int64_t blocks)
{
    return (blocks + 1) * 2 + turned;
}

int64_t sn_sparse_arg_blocks(int64_t arg)
{
    return arg / 2 - 1;
}

typedef struct layout {
    int64_t k, n, panels, entries;
    bool turned;
    size_t index_at, w_at, bytes;
} layout;

static layout layout_of(int64_t k, int64_t n, int64_t entries, bool turned)
{
    layout l = {.k = k, .n = n, .panels = sn_ceil_div(n, PANEL), .entries = entries};
    l.turned = turned;
    l.index_at = sn_round_up(((size_t)l.panels + 1) * sizeof(uint32_t), SN_ALIGN);
    l.w_at = l.index_at + sn_round_up((size_t)entries * sizeof(uint16_t), SN_ALIGN);
    l.bytes = l.w_at + (size_t)entries * PANEL * sizeof(float);
    return l;
}

static layout layout_in(const sn_packing *p)
{
    const bool turned = p->arg % 2;
    const int64_t *last = p->dims + p->rank - 2;
    return layout_of(last[turned ? 1 : 0], last[turned ? 0 : 1], sn_sparse_arg_blocks(p->arg),
                     turned);
}

sn_sparse_view sn_sparse_view_of(const void *packed, int64_t n, int64_t blocks)
{
    const layout l = layout_of(0, n, blocks, false);
    const uint8_t *p = packed;
    return (sn_sparse_view){(const void *)p, (const void *)(p + l.index_at),
                            (const void *)(p + l.w_at)};
}

static bool sparse_bytes(const sn_packing *p, size_t *bytes)
{
    const int64_t entries = sn_sparse_arg_blocks(p->arg);
    if (p->rank < 2 || entries < 0)
        return false;
    for (int i = 0; i < p->rank - 2; i++)
        if (p->dims[i] != 1)
            return false;
    const layout l = layout_in(p);
    const int64_t most = sn_count(l.panels, l.k, PANEL * sizeof(float), 2);
    if (l.n <= 0 || l.k <= 0 || l.k > SN_SPARSE_MOST_K || most < 0 || entries > l.panels * l.k ||
        entries > UINT32_MAX)
        return false;
    *bytes = l.bytes;
    return true;
}

static size_t sparse_units(const sn_packing *p)
{
    (void)p;
    return 1;
}

/* Weights of panel `panel` at k; false: all are zero. */
static bool block_at(const layout *l, const uint8_t *src, int64_t k, int64_t panel, float w[PANEL])
{
    const int64_t col = panel * PANEL, lanes = sn_min(PANEL, l->n - col);
    bool any = false;
    memset(w, 0, PANEL * sizeof *w);
    if (l->turned)
        for (int64_t i = 0; i < lanes; i++)
            memcpy(w + i, src + (size_t)((col + i) * l->k + k) * sizeof *w, sizeof *w);
    else
        memcpy(w, src + (size_t)(k * l->n + col) * sizeof *w, (size_t)lanes * sizeof *w);
    for (int i = 0; i < PANEL; i++)
        any |= w[i] != 0.0f; /* NaN is not */
    return any;
}

/* Entries are counted, then `first` says where the next one of each panel goes, and ends up where
 * the panel ends. Entries beyond those promised cannot be: they would be of another weight. */
static void pack_sparse(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    const layout l = layout_in(p);
    uint32_t *first = dst, sum = 0;
    uint16_t *index = (uint16_t *)(void *)((uint8_t *)dst + l.index_at);
    float *w = (float *)(void *)((uint8_t *)dst + l.w_at), block[PANEL];
    (void)unit;
    memset(dst, 0, l.bytes);
    for (int64_t k = 0; k < l.k; k++)
        for (int64_t q = 0; q < l.panels; q++)
            first[q] += block_at(&l, src, k, q, block);
    for (int64_t q = 0; q < l.panels; q++) {
        const uint32_t count = first[q];
        first[q] = sum < l.entries ? sum : (uint32_t)l.entries;
        sum += count;
    }
    for (int64_t k = 0; k < l.k; k++)
        for (int64_t q = 0; q < l.panels; q++)
            if (block_at(&l, src, k, q, block) && first[q] < (uint64_t)l.entries) {
                memcpy(w + (size_t)first[q] * PANEL, block, sizeof block);
                index[first[q]++] = (uint16_t)k;
            }
    memmove(first + 1, first, (size_t)l.panels * sizeof *first);
    first[0] = 0;
}

static bool sparse_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    (void)p, (void)unit, (void)first, (void)count;
    return false;
}

const sn_pack_format sn_pack_f32_sparse4 = {.name = "f32_sparse4",
                                            .arrangement = SN_WEIGHTS_SPARSE,
                                            .dtype = SONDE_DTYPE_F32,
                                            .block = PANEL,
                                            .kr = 1,
                                            .bytes = sparse_bytes,
                                            .units = sparse_units,
                                            .pack = pack_sparse,
                                            .source = sparse_source};
