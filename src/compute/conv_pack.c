/* SPDX-License-Identifier: Apache-2.0 */
/* Packed convolution weights. Every format is a sequence of vectors of `block` output channels in
 * the order in which the tile kernel reads them:
 *
 *   conv        [group][out block][in block][kh][kw][block channels][block]   blocked input
 *   conv_plain  [out block][kh][kw][channels][block]                          plain input
 *   depthwise   [block of channels][kh][kw][block]
 *
 * Groups narrower than a block are merged until whole blocks result; the weights between channels
 * of different groups are zero, and so are those of groups that the last merged one lacks. `arg` is
 * the number of groups. */
#include <string.h>

#include "compute/conv.h"
#include "compute/packs.h"
#include "compute/split.h"

bool sn_conv_blocks_of(const int64_t *w, int64_t groups, unsigned block, bool plain_input,
                       sn_conv_blocks *out)
{
    const int64_t b = block, oc = w[0], icg = w[1];
    if (oc <= 0 || icg <= 0 || groups <= 0 || oc % groups != 0)
        return false;
    const int64_t ocg = oc / groups;
    int64_t merge = 1;
    if (groups > 1) {
        if (plain_input)
            return false;
        while (merge <= SN_CONV_MAX_MERGE && (merge * icg % b != 0 || merge * ocg % b != 0))
            merge++;
        if (merge > SN_CONV_MAX_MERGE)
            return false;
    }
    *out = (sn_conv_blocks){.block = block,
                            .groups = (groups + merge - 1) / merge,
                            .group_in = icg,
                            .group_out = ocg,
                            .in = merge * icg,
                            .out = merge * ocg};
    out->in_blocks = plain_input ? 1 : (out->in + b - 1) / b;
    out->out_blocks = (out->out + b - 1) / b;
    out->channels = plain_input ? out->in : b;
    out->channels_last = plain_input ? out->in : out->in - (out->in_blocks - 1) * b;
    return true;
}

static bool bytes_of(const int64_t *dims, int rank, int64_t vectors, unsigned block, size_t *bytes)
{
    for (int i = 2; i < rank; i++)
        if (dims[i] <= 0 || !sn_i64_mul(vectors, dims[i], &vectors))
            return false;
    size_t n;
    if (!sn_size_mul((size_t)vectors, block, &n) || n > PTRDIFF_MAX / sizeof(float))
        return false;
    *bytes = n * sizeof(float);
    return true;
}

static bool conv_bytes(const int64_t *dims, int rank, int64_t groups, unsigned block, bool plain,
                       size_t *bytes)
{
    sn_conv_blocks b;
    int64_t vectors;
    if (rank != 4 || !sn_conv_blocks_of(dims, groups, block, plain, &b) ||
        !sn_i64_mul(b.groups * b.out_blocks, b.in_blocks * b.channels, &vectors))
        return false;
    return bytes_of(dims, rank, vectors, block, bytes);
}

static size_t conv_units(const int64_t *dims, int64_t groups, unsigned block, bool plain)
{
    sn_conv_blocks b;
    return sn_conv_blocks_of(dims, groups, block, plain, &b) ? (size_t)(b.groups * b.out_blocks)
                                                             : 0;
}

/* n channels of `taps` weights each, to where one output channel's lie: tap k at k·tap_stride. */
static inline void scatter(float *restrict to, const uint8_t *restrict from, int64_t n,
                           int64_t taps, int64_t tap_stride, unsigned block)
{
    if (taps == 1) {
        for (int64_t c = 0; c < n; c++)
            to[c * block] = sn_pack_f32(from, c);
        return;
    }
    for (int64_t c = 0; c < n; c++)
        for (int64_t k = 0; k < taps; k++)
            to[k * tap_stride + c * block] = sn_pack_f32(from, c * taps + k);
}

/* Output channels that a block has: fewer at the end of a group, and at the end of all. */
static int64_t block_lanes(const int64_t *dims, const sn_conv_blocks *b, int64_t o0, int64_t ob)
{
    const int64_t lanes = sn_min(sn_min(b->out - ob * b->block, b->block), dims[0] - o0);
    return sn_max(lanes, 0);
}

enum { TURN_VECTORS = 256 }; /* turned at once: 16 KiB on the stack */

/* The first `lanes` output channels of a block whose group is not merged, `each` floats of taps of
 * channels apart: rows are turned into lanes, then channels and taps change places. */
static void turn(float *dst, const float *src, const sn_conv_blocks *b, int64_t taps,
                 unsigned lanes)
{
    const unsigned block = b->block;
    const size_t each = (size_t)(b->in * taps);
    sn_f32_block_fn *lanes_of = sn_pack_lanes(block);
    if (taps == 1) {
        lanes_of(dst, src, each, lanes, block, each);
        return;
    }
    float turned[TURN_VECTORS * 16];
    const int64_t most = TURN_VECTORS / taps;
    for (int64_t c = 0; c < b->in;) {
        const int64_t at = c % b->channels, left = sn_min(b->channels - at, b->in - c);
        const int64_t n = sn_min(left, most);
        float *to = dst + (c - at) * taps * block + at * block;
        lanes_of(turned, src + c * taps, (size_t)(n * taps), lanes, block, each);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < taps; k++)
                memcpy(to + (k * b->channels + i) * block, turned + (i * taps + k) * block,
                       block * sizeof(float));
        c += n;
    }
}

/* One output block of one merged group. Reads the source in its own order; the part of the
 * destination that this scatters into stays in the cache. */
static void conv_pack(float *dst, const uint8_t *src, const int64_t *dims, int64_t groups,
                      unsigned block, bool plain, size_t unit)
{
    sn_conv_blocks b;
    if (!sn_conv_blocks_of(dims, groups, block, plain, &b))
        return;
    const int64_t taps = dims[2] * dims[3];
    const int64_t in_block = taps * b.channels * block; /* floats of one input block */
    const int64_t group = (int64_t)unit / b.out_blocks, ob = (int64_t)unit % b.out_blocks;
    dst += (int64_t)unit * b.in_blocks * in_block;
    const bool whole = b.group_in == b.in && b.in == b.in_blocks * b.channels &&
                       (ob + 1) * (int64_t)block <= b.out; /* every float is written */
    if (!whole)
        memset(dst, 0, (size_t)(b.in_blocks * in_block) * sizeof(float));
    const int64_t o0 = group * b.out + ob * block; /* output channel of lane 0 */
    const int64_t lanes = block_lanes(dims, &b, o0, ob);
    if (b.group_in == b.in && taps <= TURN_VECTORS && (uintptr_t)src % sizeof(float) == 0) {
        const float *rows = (const float *)(const void *)src;
        turn(dst, rows + o0 * b.in * taps, &b, taps, (unsigned)lanes);
        return;
    }
    for (int64_t l = 0; l < lanes; l++) {
        const int64_t o = o0 + l;
        /* Where this channel's own group starts inside the merged one. */
        const int64_t first = o / b.group_out * b.group_in - group * b.in;
        const uint8_t *from = src + (size_t)(o * b.group_in * taps) * sizeof(float);
        float *to = dst + first / b.channels * in_block + l; /* its input block */
        int64_t channel = first % b.channels;
        for (int64_t left = b.group_in; left > 0; channel = 0, to += in_block) {
            const int64_t n = left < b.channels - channel ? left : b.channels - channel;
            scatter(to + channel * block, from, n, taps, b.channels * block, block);
            from += (size_t)(n * taps) * sizeof(float);
            left -= n;
        }
    }
}

/* Output channels lie one after the other. */
static bool conv_source(const int64_t *dims, int64_t groups, unsigned block, bool plain,
                        size_t unit, int64_t *first, int64_t *count)
{
    sn_conv_blocks b;
    if (!sn_conv_blocks_of(dims, groups, block, plain, &b))
        return false;
    const int64_t each = b.group_in * dims[2] * dims[3], ob = (int64_t)unit % b.out_blocks;
    const int64_t o0 = (int64_t)unit / b.out_blocks * b.out + ob * block;
    *count = block_lanes(dims, &b, o0, ob) * each;
    *first = *count ? o0 * each : 0;
    return true;
}

static bool depthwise_bytes(const int64_t *dims, int rank, int64_t groups, unsigned block,
                            size_t *bytes)
{
    if (rank != 4 || dims[0] <= 0 || dims[0] != groups || dims[1] != 1)
        return false;
    return bytes_of(dims, rank, (dims[0] + block - 1) / block, block, bytes);
}

static void depthwise_pack(float *dst, const void *src, const int64_t *dims, unsigned block,
                           size_t unit)
{
    const int64_t taps = dims[2] * dims[3], c0 = (int64_t)unit * block;
    dst += (int64_t)unit * taps * block;
    for (int64_t k = 0; k < taps; k++)
        for (unsigned l = 0; l < block; l++)
            dst[k * block + l] = c0 + l < dims[0] ? sn_pack_f32(src, (c0 + l) * taps + k) : 0.0f;
}

/* The functions of a format for one block size. */
#define CONV_FORMAT(family, block, plain)                                                          \
    static bool family##block##_bytes(const int64_t *dims, int rank, int64_t arg, size_t *bytes)   \
    {                                                                                              \
        return conv_bytes(dims, rank, arg, block, plain, bytes);                                   \
    }                                                                                              \
    static size_t family##block##_units(const int64_t *dims, int rank, int64_t arg)                \
    {                                                                                              \
        return rank == 4 ? conv_units(dims, arg, block, plain) : 0;                                \
    }                                                                                              \
    static void family##block##_pack(void *dst, const void *src, const int64_t *dims, int rank,    \
                                     int64_t arg, size_t unit)                                     \
    {                                                                                              \
        (void)rank;                                                                                \
        conv_pack(dst, src, dims, arg, block, plain, unit);                                        \
    }                                                                                              \
    static bool family##block##_source(const int64_t *dims, int rank, int64_t arg, size_t unit,    \
                                       int64_t *first, int64_t *count)                             \
    {                                                                                              \
        (void)rank;                                                                                \
        return conv_source(dims, arg, block, plain, unit, first, count);                           \
    }                                                                                              \
    const sn_pack_format sn_pack_f32_##family##block = {                                           \
        "f32_" #family #block, family##block##_bytes, family##block##_units, family##block##_pack, \
        family##block##_source};

#define DEPTHWISE_FORMAT(block)                                                                    \
    static bool depthwise##block##_bytes(const int64_t *dims, int rank, int64_t arg,               \
                                         size_t *bytes)                                            \
    {                                                                                              \
        return depthwise_bytes(dims, rank, arg, block, bytes);                                     \
    }                                                                                              \
    static size_t depthwise##block##_units(const int64_t *dims, int rank, int64_t arg)             \
    {                                                                                              \
        (void)rank, (void)arg;                                                                     \
        return (size_t)((dims[0] + block - 1) / block);                                            \
    }                                                                                              \
    static void depthwise##block##_pack(void *dst, const void *src, const int64_t *dims, int rank, \
                                        int64_t arg, size_t unit)                                  \
    {                                                                                              \
        (void)rank, (void)arg;                                                                     \
        depthwise_pack(dst, src, dims, block, unit);                                               \
    }                                                                                              \
    static bool depthwise##block##_source(const int64_t *dims, int rank, int64_t arg, size_t unit, \
                                          int64_t *first, int64_t *count)                          \
    {                                                                                              \
        (void)rank, (void)arg;                                                                     \
        const int64_t each = dims[2] * dims[3], at = (int64_t)unit * block;                        \
        *first = at * each;                                                                        \
        *count = (dims[0] - at < block ? dims[0] - at : block) * each;                             \
        return true;                                                                               \
    }                                                                                              \
    const sn_pack_format sn_pack_f32_depthwise##block = {                                          \
        "f32_depthwise" #block, depthwise##block##_bytes, depthwise##block##_units,                \
        depthwise##block##_pack, depthwise##block##_source};

CONV_FORMAT(conv, 8, false)
CONV_FORMAT(conv, 16, false)
CONV_FORMAT(conv_plain, 8, true)
CONV_FORMAT(conv_plain, 16, true)
DEPTHWISE_FORMAT(8)
DEPTHWISE_FORMAT(16)
