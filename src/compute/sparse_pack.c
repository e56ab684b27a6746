/* SPDX-License-Identifier: Apache-2.0 */
/* The packed formats of sparse matrices, in panels of four columns:
 *
 *   of bytes, the sum of each column, [4 · panels], which zero points are multiplied by (q8.h)
 *   where the groups of each panel begin, [panels + 1]
 *   the k of each entry, [groups][each]
 *   weights, [groups][4][each]
 *
 * An entry is four columns at one k, a group one of them, or four of bytes, filled up with zeros.
 * The argument of a format says how many entries there are. A unit is the matrix, as where a panel
 * goes depends on those before it. The matrix is the last two dims, or the first two of a 1×1
 * convolution; the others are 1. */
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
    int64_t k, n, panels, groups;
    int64_t each; /* entries of a group */
    size_t elem;
    bool turned;
    uint8_t flip; /* of bytes */
    size_t first_at, index_at, w_at, bytes;
} layout;

static layout layout_of(sn_dtype dtype, int64_t k, int64_t n, int64_t entries, bool turned)
{
    const bool floats = dtype == SONDE_DTYPE_F32;
    layout l = {.k = k, .n = n, .panels = sn_ceil_div(n, PANEL), .each = floats ? 1 : 4};
    l.elem = sn_dtype_bytes(dtype);
    l.turned = turned;
    l.flip = dtype == SONDE_DTYPE_U8 ? 0x80 : 0;
    l.groups = floats ? entries : (entries + 3 * l.panels) / 4; /* at most */
    const size_t sums = floats ? 0 : (size_t)l.panels * PANEL * sizeof(int32_t);
    l.first_at = sn_round_up(sums, SN_ALIGN);
    l.index_at = l.first_at + sn_round_up(((size_t)l.panels + 1) * sizeof(uint32_t), SN_ALIGN);
    const size_t slots = (size_t)(l.groups * l.each);
    l.w_at = l.index_at + sn_round_up(slots * sizeof(uint16_t), SN_ALIGN);
    l.bytes = l.w_at + slots * PANEL * l.elem;
    return l;
}

bool sn_sparse_matrix(const int64_t *dims, int rank, bool turned, int64_t *k, int64_t *n)
{
    while (rank > 2 && dims[0] == 1) {
        dims++;
        rank--;
    }
    while (rank > 2 && dims[rank - 1] == 1)
        rank--;
    if (rank != 2)
        return false;
    *k = dims[turned ? 1 : 0];
    *n = dims[turned ? 0 : 1];
    return *k > 0 && *n > 0 && *k <= SN_SPARSE_MOST_K;
}

static bool layout_in(const sn_packing *p, layout *l)
{
    const bool turned = p->arg % 2;
    int64_t k, n;
    const int64_t entries = sn_sparse_arg_blocks(p->arg);
    if (p->arg < 2 || !sn_sparse_matrix(p->dims, p->rank, turned, &k, &n))
        return false;
    const int64_t all = sn_count(sn_ceil_div(n, PANEL), k, 1, 1);
    if (all < 0 || entries > all || sn_count(all, 8 * PANEL, sizeof(float), 1) < 0 ||
        all > UINT32_MAX)
        return false;
    *l = layout_of(p->format->dtype, k, n, entries, turned);
    return true;
}

sn_sparse_view sn_sparse_view_of(sn_dtype dtype, const void *packed, int64_t n, int64_t blocks)
{
    const layout l = layout_of(dtype, 0, n, blocks, false);
    const uint8_t *p = packed;
    return (sn_sparse_view){(const void *)(p + l.first_at), (const void *)(p + l.index_at),
                            p + l.w_at};
}

static bool sparse_bytes(const sn_packing *p, size_t *bytes)
{
    layout l;
    if (!layout_in(p, &l))
        return false;
    *bytes = l.bytes;
    return true;
}

static size_t sparse_units(const sn_packing *p)
{
    (void)p;
    return 1;
}

/* Are these weights not all zero? */
static bool counts(const layout *l, const uint8_t *w)
{
    bool any = false;
    for (int i = 0; i < PANEL; i++) {
        if (l->elem == 1) {
            any |= w[i] != 0;
            continue;
        }
        float number;
        memcpy(&number, w + (size_t)i * sizeof number, sizeof number);
        any |= number != 0.0f; /* NaN is not */
    }
    return any;
}

/* Weights of panel `panel` at k, with zeros behind the last column. */
static bool block_at(const layout *l, const uint8_t *src, int64_t k, int64_t panel, uint8_t *w)
{
    const int64_t col = panel * PANEL, lanes = sn_min(PANEL, l->n - col);
    memset(w, l->flip, PANEL * l->elem);
    if (l->turned)
        for (int64_t i = 0; i < lanes; i++)
            memcpy(w + (size_t)i * l->elem, src + (size_t)((col + i) * l->k + k) * l->elem,
                   l->elem);
    else
        memcpy(w, src + (size_t)(k * l->n + col) * l->elem, (size_t)lanes * l->elem);
    for (int i = 0; i < PANEL && l->flip; i++)
        w[i] ^= l->flip;
    return counts(l, w);
}

/* One panel; returns the group behind its last one. What is more than was promised cannot be: it
 * would be another weight. */
static int64_t pack_one(const layout *l, uint8_t *dst, const uint8_t *src, int64_t panel,
                        int64_t group)
{
    uint16_t *index = (uint16_t *)(void *)(dst + l->index_at);
    int32_t *sums = (int32_t *)(void *)dst + panel * PANEL;
    int64_t at = group * l->each;
    uint8_t w[PANEL * sizeof(float)];
    for (int64_t k = 0; k < l->k && at < l->groups * l->each; k++) {
        if (!block_at(l, src, k, panel, w))
            continue;
        uint8_t *to = dst + l->w_at + (size_t)(at / l->each * l->each * PANEL) * l->elem;
        for (int64_t o = 0; o < PANEL; o++) {
            memcpy(to + (size_t)(o * l->each + at % l->each) * l->elem, w + (size_t)o * l->elem,
                   l->elem);
            if (l->elem == 1)
                sums[o] += (int8_t)w[o];
        }
        index[at++] = (uint16_t)k;
    }
    for (; at % l->each; at++)
        index[at] = index[at - 1];
    return at / l->each;
}

static void pack_sparse(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    layout l;
    (void)unit;
    if (!layout_in(p, &l))
        return;
    memset(dst, 0, l.bytes);
    uint32_t *first = (uint32_t *)(void *)((uint8_t *)dst + l.first_at);
    int64_t group = 0;
    for (int64_t q = 0; q < l.panels; q++) {
        group = pack_one(&l, dst, src, q, group);
        first[q + 1] = (uint32_t)group;
    }
}

static bool sparse_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    (void)p, (void)unit, (void)first, (void)count;
    return false;
}

#define FORMAT(TYPE, type, KR)                                                                     \
    const sn_pack_format sn_pack_##type##_sparse4 = {.name = #type "_sparse4",                     \
                                                     .arrangement = SN_WEIGHTS_SPARSE,             \
                                                     .dtype = SONDE_DTYPE_##TYPE,                  \
                                                     .block = PANEL,                               \
                                                     .kr = KR,                                     \
                                                     .bytes = sparse_bytes,                        \
                                                     .units = sparse_units,                        \
                                                     .pack = pack_sparse,                          \
                                                     .source = sparse_source};
FORMAT(F32, f32, 1)
FORMAT(I8, i8, 4)
FORMAT(U8, u8, 4)
