/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of bytes, signed whatever they were: unsigned ones lose 128, and so do their zero
 * points (q8.h). In front of the weights are the sums of every output channel's, which the zero
 * point of the activations is multiplied by; then
 *
 *   conv_last  [group][out block][tap][channels / kr][block][kr]
 *   panels     [matrix][panel of columns][k / kr][block][kr]      one tap, a matrix is a group
 *   depthwise  [block of channels][taps / kr][block][kr]
 *
 * and for kernels that read x in steps of 64 bytes (lines.h), numbers being channels, or channels
 * of all taps of a kernel's row
 *
 *   conv_tiles   [group][out block][run][numbers / 64][16][block][kr]
 *   panel_tiles  [matrix][panel of columns][k / 64][16][block][kr]
 *
 *   depthwise_quads  [block of channels][first tap even, odd][row of taps][taps / 4][256]
 *                    a quad is as in SN_QUAD_AT; where the first tap is odd, taps are one later
 *
 * What fills up a block, a last kr or a last step is zero. Narrow groups of a convolution are
 * merged until they fill a block, or a step, with zeros between channels of different groups. `arg`
 * is the number of groups, negative if taps of a kernel's row are no neighbours; or 1 for matrices
 * that are stored as [n, k]. */
#include <string.h>

#include "compute/packs.h"
#include "compute/q8.h"
#include "compute/split.h"

static bool has_steps(const sn_pack_format *f)
{
    return f->arrangement == SN_WEIGHTS_CONV_TILES || f->arrangement == SN_WEIGHTS_PANEL_TILES;
}

int64_t sn_q8_conv_pack_arg(int64_t groups, int64_t kernel_x, int64_t dilation_x)
{
    return dilation_x > 1 && kernel_x > 1 ? -groups : groups;
}

static bool matrix_weights(const sn_packing *p, sn_q8_weights *w)
{
    const int64_t *d = p->dims;
    if (p->rank < 2)
        return false;
    w->groups = 1;
    for (int i = 0; i < p->rank - 2; i++)
        w->groups = sn_count(w->groups, d[i], 1, 1);
    w->group_in = w->in = d[p->rank - (p->arg ? 1 : 2)];
    w->group_out = w->out = d[p->rank - (p->arg ? 2 : 1)];
    w->runs = 1;
    w->run = w->in;
    return true;
}

static bool conv_weights(const sn_packing *p, sn_q8_weights *w)
{
    const int64_t *d = p->dims, groups = p->arg < 0 ? -p->arg : p->arg;
    const bool steps = has_steps(p->format);
    if (p->rank < 3 || groups <= 0 || d[0] <= 0 || d[0] % groups != 0 || d[1] <= 0)
        return false;
    for (int i = 2; i < p->rank; i++)
        w->taps = sn_count(w->taps, d[i], 1, 1);
    w->group_in = d[1];
    w->group_out = d[0] / groups;
    w->runs = w->taps;
    if (p->format->arrangement == SN_WEIGHTS_DEPTHWISE_QUADS) {
        const int64_t across = d[p->rank - 1];
        if (across <= 0 || p->arg < 0)
            return false;
        w->groups = 1;
        w->in = w->out = groups;
        w->quads = (across + 1) / SN_QUAD_TAPS + ((across + 1) % SN_QUAD_TAPS != 0);
        w->runs = w->taps / across;
        w->run = sn_count(2 * SN_QUAD_TAPS, w->quads, 1, 1);
        return w->group_in == 1 && w->group_out == 1;
    }
    if (p->format->arrangement == SN_WEIGHTS_DEPTHWISE) {
        w->groups = w->runs = 1;
        w->in = w->out = groups;
        w->run = w->taps;
        return w->group_in == 1 && w->group_out == 1;
    }
    const int64_t fill = steps ? SN_ROWS_STEP / w->group_in : 0;
    w->merge = sn_min(sn_max(sn_max(p->format->block / w->group_out, fill), 1), groups);
    while (groups % w->merge != 0)
        w->merge--;
    w->groups = groups / w->merge;
    w->in = w->run = w->merge * w->group_in;
    w->out = w->merge * w->group_out;
    const int64_t across = d[p->rank - 1];
    w->merged = p->arg == 1 && (steps || (w->in < SN_Q8_FIRST_CHANNELS && across > 1));
    if (w->merged && across > 0) {
        w->runs = w->taps / across;
        w->run = sn_count(w->in, across, 1, 1);
    }
    return true;
}

bool sn_q8_weights_of(const sn_packing *p, sn_q8_weights *out)
{
    const int64_t block = p->format->block;
    const bool matrix = p->format->arrangement == SN_WEIGHTS_PANELS ||
                        p->format->arrangement == SN_WEIGHTS_PANEL_TILES;
    sn_q8_weights w = {.block = p->format->block, .kr = p->format->kr, .taps = 1, .merge = 1};
    if (!(matrix ? matrix_weights(p, &w) : conv_weights(p, &w)))
        return false;
    if (w.groups <= 0 || w.in <= 0 || w.out <= 0 || w.taps <= 0 || w.run <= 0)
        return false;
    w.blocks = sn_ceil_div(w.out, block);
    const int64_t multiple = has_steps(p->format) ? SN_ROWS_STEP : w.kr;
    w.run = sn_count(sn_ceil_div(w.run, multiple), multiple, 1, 1);
    const int64_t columns = sn_count(w.groups, w.blocks, block, 1);
    w.block_bytes = sn_count(w.runs, w.run, block, 1);
    const int64_t sums = sn_count(columns, sizeof(int32_t), 1, 1);
    if (sums < 0 || sums > INT64_MAX - SN_ALIGN)
        return false;
    w.sums_bytes = (int64_t)sn_round_up((size_t)sums, SN_ALIGN);
    const int64_t bytes = sn_count(w.block_bytes, w.groups, w.blocks, 1);
    if (bytes < 0 || bytes > PTRDIFF_MAX - w.sums_bytes)
        return false;
    w.bytes = w.sums_bytes + bytes;
    *out = w;
    return true;
}

static bool packed_bytes(const sn_packing *p, size_t *bytes)
{
    sn_q8_weights w;
    if (!sn_q8_weights_of(p, &w))
        return false;
    *bytes = (size_t)w.bytes;
    return true;
}

/* A unit is a block of output channels. */
static size_t packed_units(const sn_packing *p)
{
    sn_q8_weights w;
    return sn_q8_weights_of(p, &w) ? (size_t)(w.groups * w.blocks) : 0;
}

/* Where the weights of unit `u` go, all zero, and its sums. */
typedef struct unit_room {
    int8_t *w;
    int32_t *sums;
    int64_t group, first; /* its group; its first output channel in that */
    unsigned lanes;
} unit_room;

static unit_room room_of(const sn_q8_weights *w, void *dst, size_t u)
{
    const int64_t block = w->block, q = (int64_t)u % w->blocks;
    unit_room r = {.w = (int8_t *)dst + w->sums_bytes + (int64_t)u * w->block_bytes,
                   .sums = (int32_t *)dst + (int64_t)u * block,
                   .group = (int64_t)u / w->blocks,
                   .first = q * block,
                   .lanes = (unsigned)sn_min(block, w->out - q * block)};
    memset(r.w, 0, (size_t)w->block_bytes);
    memset(r.sums, 0, (size_t)block * sizeof *r.sums);
    return r;
}

/* n numbers, `from` apart by from_step, to lane `lane` of vectors of kr: returns their sum. */
static int64_t pack_lane(const sn_q8_weights *w, int8_t *to, unsigned lane, const uint8_t *from,
                         int64_t n, int64_t from_step, uint8_t flip)
{
    int64_t sum = 0;
    const int64_t kr = w->kr, vector = (int64_t)w->block * kr;
    to += (int64_t)lane * kr;
    for (int64_t i = 0; i < n; i += kr, to += vector) {
        const int64_t m = sn_min(kr, n - i);
        for (int64_t k = 0; k < m; k++) {
            to[k] = (int8_t)(from[(i + k) * from_step] ^ flip);
            sum += to[k];
        }
    }
    return sum;
}

static uint8_t flip_of(const sn_packing *p)
{
    return p->format->dtype == SONDE_DTYPE_U8 ? 0x80 : 0;
}

static void pack_conv(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    sn_q8_weights w;
    if (!sn_q8_weights_of(p, &w))
        return;
    const unit_room r = room_of(&w, dst, unit);
    const int64_t each = w.group_in * w.taps, per_run = w.taps / w.runs;
    for (unsigned l = 0; l < r.lanes; l++) {
        const int64_t o = r.group * w.out + r.first + l; /* of all */
        /* Its group is one of those merged: where that one's channels begin. */
        const int64_t first = (r.first + l) / w.group_out * w.group_in;
        const uint8_t *from = (const uint8_t *)src + o * each;
        int64_t sum = 0;
        for (int64_t t = 0; t < w.taps; t++) {
            int8_t *to = r.w + t / per_run * w.run * w.block;
            const int64_t at = t % per_run * w.in + first;
            if (at % w.kr == 0) {
                to += at * w.block;
                sum += pack_lane(&w, to, l, from + t, w.group_in, w.taps, flip_of(p));
                continue;
            }
            for (int64_t c = 0; c < w.group_in; c++) {
                const int64_t k = at + c;
                const int8_t v = (int8_t)(from[c * w.taps + t] ^ flip_of(p));
                to[(k / w.kr * w.block + l) * w.kr + k % w.kr] = v;
                sum += v;
            }
        }
        r.sums[l] = (int32_t)(uint32_t)sum;
    }
}

static bool conv_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    sn_q8_weights w;
    if (!sn_q8_weights_of(p, &w))
        return false;
    const int64_t each = w.group_in * w.taps;
    const int64_t o = (int64_t)unit / w.blocks * w.out + (int64_t)unit % w.blocks * w.block;
    *first = o * each;
    *count = sn_min(w.out - (int64_t)unit % w.blocks * w.block, w.block) * each;
    return true;
}

static void pack_panel(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    sn_q8_weights w;
    if (!sn_q8_weights_of(p, &w))
        return;
    const unit_room r = room_of(&w, dst, unit);
    const uint8_t *from = (const uint8_t *)src + r.group * w.in * w.out;
    if (p->arg) { /* rows of k elements */
        for (unsigned l = 0; l < r.lanes; l++)
            r.sums[l] = (int32_t)(uint32_t)pack_lane(&w, r.w, l, from + (r.first + l) * w.in, w.in,
                                                     1, flip_of(p));
        return;
    }
    for (int64_t k = 0; k < w.in; k++) { /* rows of n */
        const uint8_t *row = from + k * w.out + r.first, flip = flip_of(p);
        int8_t *to = r.w + k / w.kr * w.block * w.kr + k % w.kr;
        for (unsigned l = 0; l < r.lanes; l++) {
            const int8_t v = (int8_t)(row[l] ^ flip);
            to[l * w.kr] = v;
            r.sums[l] = (int32_t)((uint32_t)r.sums[l] + (uint32_t)(int32_t)v);
        }
    }
}

static bool panel_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    sn_q8_weights w;
    if (!p->arg || !sn_q8_weights_of(p, &w))
        return false;
    const int64_t o = (int64_t)unit % w.blocks * w.block;
    *first = ((int64_t)unit / w.blocks * w.out + o) * w.in;
    *count = sn_min(w.out - o, w.block) * w.in;
    return true;
}

static void pack_depthwise(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    sn_q8_weights w;
    if (!sn_q8_weights_of(p, &w))
        return;
    const unit_room r = room_of(&w, dst, unit);
    for (unsigned l = 0; l < r.lanes; l++)
        r.sums[l] = (int32_t)(uint32_t)pack_lane(
            &w, r.w, l, (const uint8_t *)src + (r.first + l) * w.taps, w.taps, 1, flip_of(p));
}

static void pack_quads(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    sn_q8_weights w;
    if (!sn_q8_weights_of(p, &w))
        return;
    const unit_room r = room_of(&w, dst, unit);
    const int64_t across = p->dims[p->rank - 1];
    for (unsigned l = 0; l < r.lanes; l++) {
        const uint8_t *from = (const uint8_t *)src + (r.first + l) * w.taps;
        int64_t sum = 0;
        for (int64_t t = 0; t < w.taps; t++) {
            const int8_t v = (int8_t)(from[t] ^ flip_of(p));
            sum += v;
            for (int64_t odd = 0; odd < 2; odd++) {
                const int64_t k = t % across + odd;
                const int64_t quad = (odd * w.runs + t / across) * w.quads + k / SN_QUAD_TAPS;
                r.w[quad * SN_QUAD_BYTES + SN_QUAD_AT(l) + k % SN_QUAD_TAPS] = v;
            }
        }
        r.sums[l] = (int32_t)(uint32_t)sum;
    }
}

#define FORMAT(TYPE, type, name_, BLOCK, KR, ARRANGEMENT, fn, source_fn)                           \
    const sn_pack_format sn_pack_##type##_##name_ = {.name = #type "_" #name_,                     \
                                                     .arrangement = SN_WEIGHTS_##ARRANGEMENT,      \
                                                     .dtype = SONDE_DTYPE_##TYPE,                  \
                                                     .block = BLOCK,                               \
                                                     .kr = KR,                                     \
                                                     .bytes = packed_bytes,                        \
                                                     .units = packed_units,                        \
                                                     .pack = fn,                                   \
                                                     .source = source_fn};
#define FORMATS(TYPE, type)                                                                        \
    FORMAT(TYPE, type, conv_last8, 8, 4, CONV_LAST, pack_conv, conv_source)                        \
    FORMAT(TYPE, type, conv_last8x8, 8, 8, CONV_LAST, pack_conv, conv_source)                      \
    FORMAT(TYPE, type, conv_last16, 16, 4, CONV_LAST, pack_conv, conv_source)                      \
    FORMAT(TYPE, type, panels8, 8, 4, PANELS, pack_panel, panel_source)                            \
    FORMAT(TYPE, type, panels8x8, 8, 8, PANELS, pack_panel, panel_source)                          \
    FORMAT(TYPE, type, panels16, 16, 4, PANELS, pack_panel, panel_source)                          \
    FORMAT(TYPE, type, conv_tiles16, 16, 4, CONV_TILES, pack_conv, conv_source)                    \
    FORMAT(TYPE, type, panel_tiles16, 16, 4, PANEL_TILES, pack_panel, panel_source)                \
    FORMAT(TYPE, type, depthwise16, 16, 4, DEPTHWISE, pack_depthwise, conv_source)                 \
    FORMAT(TYPE, type, depthwise_quads64, 64, 4, DEPTHWISE_QUADS, pack_quads, conv_source)
FORMATS(I8, i8)
FORMATS(U8, u8)
