/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights that are the left side of products in bf16, a row of numbers for each row of
 * results, with zeros behind it and a tile of zeros behind all of them:
 *
 *   conv_rows  [group][output channel][tap][pair of input channels][2]    convolutions
 * (conv_rows.h) fold_rows  [group][output channel][tap][input channel]                transposed
 * ones
 *
 * `arg` is the number of groups. A unit is a tile of rows. */
#include <string.h>

#include "compute/conv_rows.h"
#include "compute/conv_transpose.h"
#include "compute/packs.h"
#include "compute/split.h"
#include "compute/tiles.h"

/* Tiles begin with any row, and what they have beyond the last one of a group is left out. */
static bool count_rows(sn_conv_rows *r, int64_t groups)
{
    const int64_t rows = sn_count(groups, r->group_rows, 1, 1);
    if (rows < 0 || rows > INT64_MAX / 2)
        return false;
    r->rows = (sn_ceil_div(rows, SN_ROWS_TILE) + 1) * SN_ROWS_TILE;
    const int64_t all = sn_count(r->rows, r->row_bytes, 1, 1);
    return all > 0 && all < PTRDIFF_MAX / 2;
}

bool sn_conv_rows_of(const int64_t *w, int rank, int64_t groups, sn_conv_rows *r)
{
    memset(r, 0, sizeof *r);
    if (rank < 3 || rank > 5 || w[0] <= 0 || w[1] <= 0 || groups <= 0 || w[0] % groups != 0)
        return false;
    r->taps = 1;
    for (int i = 2; i < rank; i++)
        r->taps = w[i] > 0 ? sn_count(r->taps, w[i], 1, 1) : -1;
    r->pairs = sn_ceil_div(w[1], 2);
    const int64_t pairs = sn_count(r->taps, r->pairs, 1, 1);
    if (pairs < 0 || pairs > INT64_MAX / SN_ROWS_WEIGHTS)
        return false;
    r->steps = sn_ceil_div(2 * pairs, SN_STEP_HALVES);
    r->row_bytes = sn_tiles_row_bytes(2 * pairs);
    r->group_rows = w[0] / groups;
    return count_rows(r, groups);
}

bool sn_conv_transpose_rows_of(const int64_t *w, int rank, int64_t groups, sn_conv_rows *r)
{
    memset(r, 0, sizeof *r);
    if (rank < 3 || w[0] <= 0 || w[1] <= 0 || groups <= 0 || w[0] % groups != 0)
        return false;
    r->taps = 1;
    for (int i = 2; i < rank; i++)
        r->taps = w[i] > 0 ? sn_count(r->taps, w[i], 1, 1) : -1;
    const int64_t rows = sn_count(w[1], r->taps, 1, 1);
    if (rows < 0)
        return false;
    r->row_bytes = sn_tiles_row_bytes(w[0] / groups);
    r->group_rows = rows;
    return count_rows(r, groups);
}

static bool rows_of(const sn_packing *p, sn_conv_rows *r)
{
    return p->format->arrangement == SN_WEIGHTS_CONV_ROWS
               ? sn_conv_rows_of(p->dims, p->rank, p->arg, r)
               : sn_conv_transpose_rows_of(p->dims, p->rank, p->arg, r);
}

static bool rows_bytes(const sn_packing *p, size_t *bytes)
{
    sn_conv_rows r;
    if (!rows_of(p, &r))
        return false;
    *bytes = (size_t)(r.rows * r.row_bytes);
    return true;
}

static size_t rows_units(const sn_packing *p)
{
    sn_conv_rows r;
    return rows_of(p, &r) ? (size_t)(r.rows / SN_ROWS_TILE) : 0;
}

/* The rows of a unit, *n of them from *first on, all set to zero. */
static uint8_t *unit_rows(const sn_packing *p, const sn_conv_rows *r, void *dst, size_t unit,
                          int64_t *first, int64_t *n)
{
    const int64_t bytes = SN_ROWS_TILE * r->row_bytes;
    uint8_t *to = (uint8_t *)dst + (int64_t)unit * bytes;
    *first = (int64_t)unit * SN_ROWS_TILE;
    *n = sn_min(SN_ROWS_TILE, p->arg * r->group_rows - *first);
    memset(to, 0, (size_t)bytes);
    return to;
}

static void pack_conv(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    sn_conv_rows r;
    int64_t first, n;
    if (!rows_of(p, &r))
        return;
    uint8_t *row = unit_rows(p, &r, dst, unit, &first, &n);
    for (int64_t o = 0; o < n; o++, row += r.row_bytes) {
        uint16_t *to = (uint16_t *)(void *)row;
        const int64_t at = (first + o) * p->dims[1] * r.taps;
        const uint8_t *from = (const uint8_t *)src + (size_t)at * sizeof *to;
        for (int64_t c = 0; c < p->dims[1]; c++)
            for (int64_t k = 0; k < r.taps; k++, from += sizeof *to)
                memcpy(to + (k * r.pairs + c / 2) * 2 + c % 2, from, sizeof *to);
    }
}

static void pack_fold(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    sn_conv_rows r;
    int64_t first, n;
    if (!rows_of(p, &r))
        return;
    const int64_t channels = p->dims[0] / p->arg;
    uint8_t *row = unit_rows(p, &r, dst, unit, &first, &n);
    for (int64_t o = first; o < first + n; o++, row += r.row_bytes) {
        uint16_t *to = (uint16_t *)(void *)row;
        const int64_t at = o / r.group_rows * channels * r.group_rows + o % r.group_rows;
        const uint8_t *from = (const uint8_t *)src + (size_t)at * sizeof *to;
        for (int64_t c = 0; c < channels; c++)
            memcpy(to + c, from + (size_t)(c * r.group_rows) * sizeof *to, sizeof *to);
    }
}

static bool conv_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    sn_conv_rows r;
    if (!rows_of(p, &r))
        return false;
    const int64_t each = p->dims[1] * r.taps, row = (int64_t)unit * SN_ROWS_TILE;
    *count = sn_max(sn_min(SN_ROWS_TILE, p->dims[0] - row), 0) * each;
    *first = *count ? row * each : 0;
    return true;
}

static bool fold_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    (void)p, (void)unit, (void)first, (void)count;
    return false; /* a row has one element of each input channel */
}

#define ROWS(NAME, ARRANGEMENT, PACK, SOURCE)                                                      \
    const sn_pack_format sn_pack_bf16_##NAME##16 = {.name = "bf16_" #NAME "16",                    \
                                                    .arrangement = SN_WEIGHTS_##ARRANGEMENT,       \
                                                    .dtype = SONDE_DTYPE_BF16,                     \
                                                    .block = SN_ROWS_TILE,                         \
                                                    .kr = 2,                                       \
                                                    .bytes = rows_bytes,                           \
                                                    .units = rows_units,                           \
                                                    .pack = PACK,                                  \
                                                    .source = SOURCE};
ROWS(conv_rows, CONV_ROWS, pack_conv, conv_source)
ROWS(fold_rows, FOLD_ROWS, pack_fold, fold_source)
