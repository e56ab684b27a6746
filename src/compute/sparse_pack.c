/* SPDX-License-Identifier: Apache-2.0 */
/* The packed formats of sparse matrices, in panels of four columns, of one, or 16 for tiles:
 *
 *   of bytes, the sum of each column, which zero points are multiplied by (q8.h)
 *   where the groups of each panel begin, [panels + 1]
 *   which k each entry has, [groups][entries of a group]; in tiles which pair or four of them
 *   weights, [groups][columns of a panel][entries of a group][k of an entry]
 *
 *                  columns   k of an entry   entries of a group
 *   f32_sparse1          1               1                    1
 *   f32_sparse4          4               1                    1
 *   i8_sparse4           4               1                    4
 *   bf16_sparse16       16               2                   16
 *   i8_sparse16         16               4                   16
 *
 * Groups are filled up with zeros. The argument of a format says how many entries there are. A unit
 * is the matrix, as where a panel goes depends on those before it. */
#include <string.h>

#include "compute/sparse.h"
#include "compute/split.h"

enum { ORDERS = 4 };

int64_t sn_sparse_arg(sn_sparse_order order, int64_t blocks)
{
    return (blocks + 1) * ORDERS + (int64_t)order;
}

int64_t sn_sparse_arg_blocks(int64_t arg)
{
    return arg / ORDERS - 1;
}

typedef struct layout {
    int64_t k, n, panels, groups;
    int64_t columns, each, ks; /* of a panel; entries of a group; k of an entry */
    size_t elem;
    bool turned;
    uint8_t flip; /* of bytes */
    size_t first_at, index_at, w_at, bytes;
} layout;

static layout layout_of(const sn_pack_format *f, int64_t k, int64_t n, int64_t entries, bool turned)
{
    const bool tiles = f->arrangement == SN_WEIGHTS_SPARSE_TILES;
    layout l = {.k = k,
                .n = n,
                .columns = f->block,
                .each = tiles ? SN_ROWS_TILE : f->kr,
                .ks = tiles ? f->kr : 1,
                .elem = sn_dtype_bytes(f->dtype),
                .turned = turned,
                .flip = f->dtype == SONDE_DTYPE_U8 ? 0x80 : 0};
    l.panels = sn_ceil_div(n, l.columns);
    l.groups = (entries + (l.each - 1) * l.panels) / l.each; /* at most */
    const size_t sums = l.elem == 1 ? (size_t)(l.panels * l.columns) * sizeof(int32_t) : 0;
    l.first_at = sn_round_up(sums, SN_ALIGN);
    l.index_at = l.first_at + sn_round_up(((size_t)l.panels + 1) * sizeof(uint32_t), SN_ALIGN);
    const size_t slots = (size_t)(l.groups * l.each);
    l.w_at = l.index_at + sn_round_up(slots * sizeof(uint16_t), SN_ALIGN);
    l.bytes = l.w_at + slots * (size_t)(l.columns * l.ks) * l.elem;
    return l;
}

bool sn_sparse_matrix(const int64_t *dims, int rank, sn_sparse_order order, int64_t *k, int64_t *n)
{
    if (order == SN_SPARSE_FILTERS) {
        *n = rank > 1 ? dims[0] : 0;
        *k = 1;
        for (int i = 1; i < rank; i++)
            *k = sn_count(*k, sn_max(dims[i], 0), 1, 1);
        return *k > 0 && *n > 0 && *k <= SN_SPARSE_MOST_K;
    }
    while (rank > 2 && dims[0] == 1) {
        dims++;
        rank--;
    }
    if (rank != 2)
        return false;
    *k = dims[order == SN_SPARSE_TURNED];
    *n = dims[order != SN_SPARSE_TURNED];
    return *k > 0 && *n > 0 && *k <= SN_SPARSE_MOST_K;
}

static bool layout_in(const sn_packing *p, layout *l)
{
    const sn_sparse_order order = (sn_sparse_order)(p->arg % ORDERS);
    int64_t k, n;
    const int64_t entries = sn_sparse_arg_blocks(p->arg);
    if (p->arg < ORDERS || !sn_sparse_matrix(p->dims, p->rank, order, &k, &n))
        return false;
    const int64_t all = sn_count(n + SN_ROWS_TILE, k + SN_ROWS_TILE, 1, 1);
    if (all < 0 || entries > all || sn_count(all, 8 * SN_ROWS_TILE, sizeof(float), 1) < 0 ||
        all > UINT32_MAX)
        return false;
    *l = layout_of(p->format, k, n, entries, order != SN_SPARSE_PLAIN);
    return true;
}

sn_sparse_view sn_sparse_view_of(const sn_pack_format *f, const void *packed, int64_t n,
                                 int64_t blocks)
{
    const layout l = layout_of(f, 0, n, blocks, false);
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

enum { MOST_BYTES = SN_ROWS_TILE * 4 }; /* of an entry: a line of a tile */

/* Are these weights not all zero? */
static bool counts(const layout *l, const uint8_t *w)
{
    const size_t last = l->elem - 1; /* the byte of the sign */
    bool any = false;
    for (size_t i = 0; i < (size_t)(l->columns * l->ks) * l->elem; i++)
        any |= (l->elem > 1 && i % l->elem == last ? w[i] & 0x7f : w[i]) != 0;
    return any;
}

/* Weights of entry `entry` of panel `panel`, [column][k], with zeros where there are none. */
static bool entry_at(const layout *l, const uint8_t *src, int64_t entry, int64_t panel, uint8_t *w)
{
    const int64_t col = panel * l->columns, lanes = sn_min(l->columns, l->n - col);
    const int64_t k0 = entry * l->ks, ks = sn_min(l->ks, l->k - k0);
    memset(w, 0, (size_t)(l->columns * l->ks) * l->elem);
    for (int64_t i = 0; i < ks; i++)
        for (int64_t c = 0; c < lanes; c++) {
            const int64_t at = l->turned ? (col + c) * l->k + k0 + i : (k0 + i) * l->n + col + c;
            uint8_t *to = w + (size_t)(c * l->ks + i) * l->elem;
            memcpy(to, src + (size_t)at * l->elem, l->elem);
            if (l->elem == 1)
                *to ^= l->flip;
        }
    return counts(l, w);
}

/* One panel; returns the group behind its last one. What is more than was promised cannot be: it
 * would be another weight. */
static int64_t pack_one(const layout *l, uint8_t *dst, const uint8_t *src, int64_t panel,
                        int64_t group)
{
    uint16_t *index = (uint16_t *)(void *)(dst + l->index_at);
    int32_t *sums = (int32_t *)(void *)dst + panel * l->columns;
    const size_t part = (size_t)l->ks * l->elem; /* of a column */
    int64_t at = group * l->each;
    uint8_t w[MOST_BYTES];
    for (int64_t e = 0; e * l->ks < l->k && at < l->groups * l->each; e++) {
        if (!entry_at(l, src, e, panel, w))
            continue;
        uint8_t *to = dst + l->w_at + (size_t)(at / l->each * l->each * l->columns) * part;
        for (int64_t c = 0; c < l->columns; c++)
            memcpy(to + (size_t)(c * l->each + at % l->each) * part, w + (size_t)c * part, part);
        for (int64_t i = 0; i < l->columns * l->ks && l->elem == 1; i++)
            sums[i / l->ks] += (int8_t)w[i];
        index[at++] = (uint16_t)e;
    }
    /* What is not finite must not meet a zero that is not there: floats of tiles have a line of
     * zeros behind the last one. */
    for (; at % l->each; at++)
        index[at] = l->elem == 2 ? (uint16_t)sn_ceil_div(l->k, l->ks) : index[at - 1];
    return at / l->each;
}

/* Floats, which need no groups, in the order in which they lie: first how many entries each panel
 * has, then what they are. `first` is where the next entry of a panel goes meanwhile. */
typedef struct floats {
    const layout *l;
    const uint8_t *src;
    uint32_t *first;
    uint16_t *index; /* NULL: they are counted */
    float *w;
} floats;

static void float_entry(const floats *f, int64_t panel, int64_t k)
{
    const layout *l = f->l;
    const int64_t col = panel * l->columns, lanes = sn_min(l->columns, l->n - col);
    float w[SN_SPARSE_PANEL] = {0};
    bool any = false;
    for (int64_t c = 0; c < lanes; c++) {
        const int64_t at = l->turned ? (col + c) * l->k + k : k * l->n + col + c;
        memcpy(&w[c], f->src + (size_t)at * sizeof *w, sizeof *w);
        any |= w[c] != 0;
    }
    if (!any)
        return;
    const uint32_t at = f->first[panel];
    if (f->index && at >= l->groups) /* it is another weight than that which was counted */
        return;
    f->first[panel]++;
    if (!f->index)
        return;
    f->index[at] = (uint16_t)k;
    memcpy(f->w + (size_t)at * (size_t)l->columns, w, (size_t)l->columns * sizeof *w);
}

static void all_floats(const floats *f)
{
    const layout *l = f->l;
    for (int64_t a = 0; a < (l->turned ? l->panels : l->k); a++)
        for (int64_t b = 0; b < (l->turned ? l->k : l->panels); b++)
            float_entry(f, l->turned ? a : b, l->turned ? b : a);
}

static void pack_floats(const layout *l, uint8_t *dst, const uint8_t *src)
{
    uint32_t *first = (uint32_t *)(void *)(dst + l->first_at), all = 0;
    floats f = {.l = l, .src = src, .first = first};
    all_floats(&f);
    for (int64_t q = 0; q <= l->panels; q++) {
        const uint32_t some = q < l->panels ? first[q] : 0;
        first[q] = all;
        all = (uint32_t)sn_min((int64_t)all + some, l->groups);
    }
    f.index = (uint16_t *)(void *)(dst + l->index_at);
    f.w = (float *)(void *)(dst + l->w_at);
    all_floats(&f);
    memmove(first + 1, first, (size_t)l->panels * sizeof *first);
    first[0] = 0;
}

static void pack_sparse(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    layout l;
    (void)unit;
    if (!layout_in(p, &l))
        return;
    memset(dst, 0, l.bytes);
    if (p->format->dtype == SONDE_DTYPE_F32) {
        pack_floats(&l, dst, src);
        return;
    }
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

#define FORMAT(TYPE, type, name_, ARRANGEMENT, BLOCK, KR)                                          \
    const sn_pack_format sn_pack_##type##_##name_ = {.name = #type "_" #name_,                     \
                                                     .arrangement = SN_WEIGHTS_##ARRANGEMENT,      \
                                                     .dtype = SONDE_DTYPE_##TYPE,                  \
                                                     .block = BLOCK,                               \
                                                     .kr = KR,                                     \
                                                     .bytes = sparse_bytes,                        \
                                                     .units = sparse_units,                        \
                                                     .pack = pack_sparse,                          \
                                                     .source = sparse_source};
FORMAT(F32, f32, sparse1, SPARSE, 1, 1)
FORMAT(F32, f32, sparse4, SPARSE, 4, 1)
FORMAT(I8, i8, sparse4, SPARSE, 4, 4)
FORMAT(U8, u8, sparse4, SPARSE, 4, 4)
FORMAT(BF16, bf16, sparse16, SPARSE_TILES, 16, 2)
FORMAT(I8, i8, sparse16, SPARSE_TILES, 16, 4)
FORMAT(U8, u8, sparse16, SPARSE_TILES, 16, 4)
