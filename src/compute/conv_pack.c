/* SPDX-License-Identifier: Apache-2.0 */
/* Packed convolution weights. Every format is a sequence of vectors of `block` output channels in
 * the order in which the tile kernel reads them:
 *
 *   conv        [group][out block][in block][kh][kw][block channels][block]   blocked input
 *   conv_plain  [out block][kh][kw][channels][block]                          plain input
 *   depthwise   [out block][kd][plane][kh][kw][block]                         by planes
 *
 * Groups narrower than a block go by planes (conv_groups.c), or they are merged until whole blocks
 * result; the weights between channels of different groups are zero then, and so are those of
 * groups that the last merged one lacks. `arg` is the number of groups. */
#include <string.h>

#include "compute/conv.h"
#include "compute/packs.h"
#include "compute/split.h"

/* Taps of the kernel, one to three spatial dims. */
static int64_t taps_of(const sn_packing *p)
{
    int64_t taps = 1;
    for (int i = 2; i < p->rank; i++)
        taps *= p->dims[i];
    return taps;
}

/* How a weight divides into blocks; `plain`: its input is. */
static bool blocks_of(const sn_packing *p, sn_conv_blocks *b)
{
    return p->rank >= 3 && p->rank <= 5 &&
           sn_conv_blocks_of(p->dims, p->arg, p->format->block,
                             p->format->arrangement == SN_WEIGHTS_CONV_PLAIN, b);
}

/* Bytes of so many vectors at every tap. */
static bool bytes_of(const sn_packing *p, int64_t vectors, size_t *bytes)
{
    for (int i = 2; i < p->rank; i++)
        if (p->dims[i] <= 0 || !sn_i64_mul(vectors, p->dims[i], &vectors))
            return false;
    return sn_pack_vector_bytes(p->format, vectors, bytes);
}

static bool conv_bytes(const sn_packing *p, size_t *bytes)
{
    sn_conv_blocks b;
    int64_t vectors;
    return blocks_of(p, &b) &&
           sn_i64_mul(b.groups * b.out_blocks, b.in_blocks * b.channels, &vectors) &&
           bytes_of(p, vectors, bytes);
}

static size_t conv_units(const sn_packing *p)
{
    sn_conv_blocks b;
    return blocks_of(p, &b) ? (size_t)(b.groups * b.out_blocks) : 0;
}

/* n channels of `taps` weights each, to where one output channel's lie: tap k at k·tap_stride. */
static inline void scatter(uint8_t *restrict to, const uint8_t *restrict from, int64_t n,
                           int64_t taps, int64_t tap_stride, int64_t block, const size_t elem)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t k = 0; k < taps; k++)
            memcpy(to + (size_t)(k * tap_stride + c * block) * elem,
                   from + (size_t)(c * taps + k) * elem, elem);
}

/* Output channels that a block has: fewer at the end of a group, and at the end of all. */
static int64_t block_lanes(const int64_t *dims, const sn_conv_blocks *b, int64_t o0, int64_t ob)
{
    const int64_t lanes = sn_min(sn_min(b->out - ob * b->block, b->block), dims[0] - o0);
    return sn_max(lanes, 0);
}

enum { TURN_BYTES = 16384 }; /* turned at once, on the stack */

/* The first `lanes` output channels of a block whose group is not merged: rows of taps of channels
 * are turned into lanes, then channels and taps change places. */
static void turn(const sn_packing *p, uint8_t *dst, const uint8_t *src, const sn_conv_blocks *b,
                 int64_t taps, unsigned lanes)
{
    const size_t elem = sn_dtype_bytes(p->format->dtype), vector = b->block * elem;
    const size_t each = (size_t)(b->in * taps);
    if (taps == 1) {
        sn_pack_lanes(p, dst, src, each, lanes, each);
        return;
    }
    _Alignas(SN_ALIGN) uint8_t turned[TURN_BYTES];
    const int64_t most = (int64_t)(TURN_BYTES / vector) / taps;
    for (int64_t c = 0; c < b->in;) {
        const int64_t at = c % b->channels, left = sn_min(b->channels - at, b->in - c);
        const int64_t n = sn_min(left, most);
        uint8_t *to = dst + (size_t)((c - at) * taps + at) * vector;
        sn_pack_lanes(p, turned, src + (size_t)(c * taps) * elem, (size_t)(n * taps), lanes, each);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < taps; k++)
                memcpy(to + (size_t)(k * b->channels + i) * vector,
                       turned + (size_t)(i * taps + k) * vector, vector);
        c += n;
    }
}

/* One output block of one merged group. Reads the source in its own order; the part of the
 * destination that this scatters into stays in the cache. */
static void conv_pack(const sn_packing *p, void *packed, const void *weight, size_t unit)
{
    sn_conv_blocks b;
    if (!blocks_of(p, &b))
        return;
    const size_t elem = sn_dtype_bytes(p->format->dtype);
    const int64_t taps = taps_of(p), block = b.block;
    const int64_t in_block = taps * b.channels * block; /* elements of one input block */
    const int64_t group = (int64_t)unit / b.out_blocks, ob = (int64_t)unit % b.out_blocks;
    const uint8_t *src = weight;
    uint8_t *dst = (uint8_t *)packed + unit * (size_t)(b.in_blocks * in_block) * elem;
    const bool whole = b.group_in == b.in && b.in == b.in_blocks * b.channels &&
                       (ob + 1) * block <= b.out; /* every element is written */
    if (!whole)
        memset(dst, 0, (size_t)(b.in_blocks * in_block) * elem);
    const int64_t o0 = group * b.out + ob * block; /* output channel of lane 0 */
    const int64_t lanes = block_lanes(p->dims, &b, o0, ob);
    if (b.group_in == b.in && (size_t)(taps * block) * elem <= TURN_BYTES) {
        turn(p, dst, src + (size_t)(o0 * b.in * taps) * elem, &b, taps, (unsigned)lanes);
        return;
    }
    for (int64_t l = 0; l < lanes; l++) {
        const int64_t o = o0 + l;
        /* Where this channel's own group starts inside the merged one. */
        const int64_t first = o / b.group_out * b.group_in - group * b.in;
        const uint8_t *from = src + (size_t)(o * b.group_in * taps) * elem;
        int64_t at = first / b.channels * in_block + l; /* in its input block */
        int64_t channel = first % b.channels;
        for (int64_t left = b.group_in; left > 0; channel = 0, at += in_block) {
            const int64_t n = sn_min(left, b.channels - channel);
            uint8_t *to = dst + (size_t)(at + channel * block) * elem;
            if (elem == sizeof(float))
                scatter(to, from, n, taps, b.channels * block, block, sizeof(float));
            else
                scatter(to, from, n, taps, b.channels * block, block, elem);
            from += (size_t)(n * taps) * elem;
            left -= n;
        }
    }
}

/* Output channels lie one after the other. */
static bool conv_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    sn_conv_blocks b;
    if (!blocks_of(p, &b))
        return false;
    const int64_t each = b.group_in * taps_of(p), ob = (int64_t)unit % b.out_blocks;
    const int64_t o0 = (int64_t)unit / b.out_blocks * b.out + ob * b.block;
    *count = block_lanes(p->dims, &b, o0, ob) * each;
    *first = *count ? o0 * each : 0;
    return true;
}

static bool depthwise_bytes(const sn_packing *p, size_t *bytes)
{
    const unsigned block = p->format->block;
    int64_t vectors;
    return sn_conv_by_planes(p->dims, p->rank, p->arg, block) &&
           sn_i64_mul((p->dims[0] - 1) / block + 1, sn_conv_plane_room(p->dims, p->arg, block),
                      &vectors) &&
           bytes_of(p, vectors, bytes);
}

static size_t depthwise_units(const sn_packing *p)
{
    return (size_t)sn_ceil_div(p->dims[0], p->format->block);
}

/* Weights of one plane at tap `deep` of depth, lane by lane. */
static void plane_pack(const sn_packing *p, const sn_f32_plane *plane, int64_t first, int64_t deep,
                       uint8_t *dst, const uint8_t *src)
{
    const size_t elem = sn_dtype_bytes(p->format->dtype);
    const int64_t block = p->format->block, in = p->dims[1], each = p->dims[0] / p->arg;
    const int64_t taps = taps_of(p), depth = p->rank == 5 ? p->dims[2] : 1, flat = taps / depth;
    for (int64_t l = 0; l < block; l++) {
        const int64_t lane = plane->lane[l], o = first + l;
        if (lane < 0)
            continue;
        const int64_t channel = plane->at[lane / block] * block + lane % block;
        const int64_t from = (o * in + channel - o / each * in) * taps + deep * flat;
        for (int64_t k = 0; k < flat; k++)
            memcpy(dst + (size_t)(k * block + l) * elem, src + (size_t)(from + k) * elem, elem);
    }
}

static void depthwise_pack(const sn_packing *p, void *dst, const void *src, size_t unit)
{
    const size_t elem = sn_dtype_bytes(p->format->dtype);
    const int64_t taps = taps_of(p), block = p->format->block, first = (int64_t)unit * block;
    const int64_t depth = p->rank == 5 ? p->dims[2] : 1, flat = taps / depth * block;
    const int64_t room = sn_conv_plane_room(p->dims, p->arg, p->format->block);
    uint8_t *to = (uint8_t *)dst + (size_t)(first * taps * room) * elem;
    if (sn_conv_is_depthwise(p->dims, p->arg)) {
        const int64_t lanes = sn_min(p->dims[0] - first, block);
        sn_pack_lanes(p, to, (const uint8_t *)src + (size_t)(first * taps) * elem, (size_t)taps,
                      (unsigned)lanes, (size_t)taps);
        return;
    }
    sn_f32_plane planes[SN_CONV_MAX_PLANES];
    const int64_t n = sn_conv_planes(p->dims, p->arg, p->format->block, (int64_t)unit, planes);
    memset(to, 0, (size_t)(block * taps * room) * elem);
    for (int64_t i = 0; i < depth * n; i++)
        plane_pack(p, &planes[i % n], first, i / n, to + (size_t)(i * flat) * elem, src);
}

static bool depthwise_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    const int64_t each = p->dims[1] * taps_of(p), block = p->format->block;
    const int64_t at = (int64_t)unit * block;
    *first = at * each;
    *count = sn_min(p->dims[0] - at, block) * each;
    return true;
}

#define FORMAT(TYPE, type, ARRANGEMENT, family, functions, BLOCK)                                  \
    const sn_pack_format sn_pack_##type##_##family##BLOCK = {.name = #type "_" #family #BLOCK,     \
                                                             .arrangement =                        \
                                                                 SN_WEIGHTS_##ARRANGEMENT,         \
                                                             .dtype = SONDE_DTYPE_##TYPE,          \
                                                             .block = BLOCK,                       \
                                                             .kr = 1,                              \
                                                             .bytes = functions##_bytes,           \
                                                             .units = functions##_units,           \
                                                             .pack = functions##_pack,             \
                                                             .source = functions##_source};
#define FORMATS(TYPE, type, BLOCK)                                                                 \
    FORMAT(TYPE, type, CONV, conv, conv, BLOCK)                                                    \
    FORMAT(TYPE, type, CONV_PLAIN, conv_plain, conv, BLOCK)                                        \
    FORMAT(TYPE, type, DEPTHWISE, depthwise, depthwise, BLOCK)

FORMATS(F32, f32, 8)
FORMATS(F32, f32, 16)
FORMATS(F16, f16, 8)
FORMATS(F16, f16, 16)
FORMATS(BF16, bf16, 8)
FORMATS(BF16, bf16, 16)
