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
static inline void scatter(float *restrict to, const float *restrict from, int64_t n, int64_t taps,
                           int64_t tap_stride, unsigned block)
{
    if (taps == 1) {
        for (int64_t c = 0; c < n; c++)
            to[c * block] = from[c];
        return;
    }
    for (int64_t c = 0; c < n; c++)
        for (int64_t k = 0; k < taps; k++)
            to[k * tap_stride + c * block] = from[c * taps + k];
}

/* One output block of one merged group. Reads the source in its own order; the part of the
 * destination that this scatters into stays in the cache. */
static void conv_pack(float *dst, const float *src, const int64_t *dims, int64_t groups,
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
    const int64_t lanes = dims[0] - o0 < b.out - ob * block ? dims[0] - o0 : b.out - ob * block;
    for (unsigned l = 0; l < block && l < lanes; l++) {
        const int64_t o = o0 + l;
        /* Where this channel's own group starts inside the merged one. */
        const int64_t first = o / b.group_out * b.group_in - group * b.in;
        const float *from = src + o * b.group_in * taps;
        float *to = dst + first / b.channels * in_block + l; /* its input block */
        int64_t channel = first % b.channels;
        for (int64_t left = b.group_in; left > 0; channel = 0, to += in_block) {
            const int64_t n = left < b.channels - channel ? left : b.channels - channel;
            scatter(to + channel * block, from, n, taps, b.channels * block, block);
            from += n * taps;
            left -= n;
        }
    }
}

static bool depthwise_bytes(const int64_t *dims, int rank, int64_t groups, unsigned block,
                            size_t *bytes)
{
    if (rank != 4 || dims[0] <= 0 || dims[0] != groups || dims[1] != 1)
        return false;
    return bytes_of(dims, rank, (dims[0] + block - 1) / block, block, bytes);
}

static void depthwise_pack(float *dst, const float *src, const int64_t *dims, unsigned block,
                           size_t unit)
{
    const int64_t taps = dims[2] * dims[3], c0 = (int64_t)unit * block;
    dst += (int64_t)unit * taps * block;
    for (int64_t k = 0; k < taps; k++)
        for (unsigned l = 0; l < block; l++)
            dst[k * block + l] = c0 + l < dims[0] ? src[(c0 + l) * taps + k] : 0.0f;
}

/* The three functions of a format for one block size. */
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
    const sn_pack_format sn_pack_f32_##family##block = {                                           \
        "f32_" #family #block, family##block##_bytes, family##block##_units,                       \
        family##block##_pack};

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
    const sn_pack_format sn_pack_f32_depthwise##block = {                                          \
        "f32_depthwise" #block, depthwise##block##_bytes, depthwise##block##_units,                \
        depthwise##block##_pack};

CONV_FORMAT(conv, 8, false)
CONV_FORMAT(conv, 16, false)
CONV_FORMAT(conv_plain, 8, true)
CONV_FORMAT(conv_plain, 16, true)
DEPTHWISE_FORMAT(8)
DEPTHWISE_FORMAT(16)
