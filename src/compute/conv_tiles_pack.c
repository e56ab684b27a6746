/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of convolutions by tiles of bf16 or f16 (conv_tiles.h), in the order of steps:
 *
 *   [group][out block][slab of 32 input channels][tap][32 / 2][16 output channels][2]
 *   [group][out block][run][numbers of the run / 32][32 / 2][16 output channels][2]     narrow
 *
 * where the numbers of a run are the channels of its pixels, which are filled up with zeros as they
 * are in the copy of x. Narrow groups are merged as in conv_pack.c, and two that fill half a step.
 * `arg` is the number of groups, times four; 1 more if taps of a row are no neighbours, 2 more if
 * the input is plain. */
#include <math.h>
#include <string.h>

#include "compute/conv_tiles.h"
#include "compute/packs.h"
#include "compute/tiles.h"

enum { APART = 1, PLAIN = 2, FLAGS = 4, NUMBERS = SN_ROWS_STEP / 2, BLOCK = SN_ROWS_TILE, KR = 2 };

int64_t sn_conv_tiles_pack_arg(int64_t groups, bool plain_input, int64_t kernel_x,
                               int64_t dilation_x)
{
    return groups * FLAGS + (plain_input ? PLAIN : 0) +
           (kernel_x > 1 && dilation_x > 1 ? APART : 0);
}

bool sn_conv_tiles_of(const int64_t *w, int rank, int64_t arg, sn_conv_tiles *t)
{
    const bool plain = arg & PLAIN, apart = arg & APART;
    const int64_t line[4] = {w[0], rank > 1 ? w[1] : 0, 1, rank > 2 ? w[2] : 0};
    memset(t, 0, sizeof *t);
    if (rank == 3) { /* an image of one line */
        w = line;
        rank = 4;
    }
    if (rank != 4 || !sn_conv_blocks_of(w, arg / FLAGS, BLOCK, plain, &t->b) || w[2] <= 0 ||
        w[3] <= 0 || (plain && t->b.in >= BLOCK))
        return false;
    if (t->b.in == BLOCK && t->b.groups > 1) { /* two groups fill a step */
        t->b.groups = sn_ceil_div(t->b.groups, 2);
        t->b.in *= 2;
        t->b.out *= 2;
        t->b.in_blocks = sn_ceil_div(t->b.in, BLOCK);
        t->b.out_blocks = sn_ceil_div(t->b.out, BLOCK);
    }
    t->taps = sn_count(w[2], w[3], 1, 1);
    t->narrow = plain;
    t->merged = t->narrow && !apart;
    t->pixel = t->narrow ? 1 : NUMBERS;
    while (t->pixel < t->b.in && t->narrow)
        t->pixel *= 2;
    t->slabs = t->narrow ? 1 : sn_ceil_div(t->b.in, NUMBERS);
    t->runs = t->merged ? w[2] : t->taps;
    t->run_steps = t->merged ? sn_ceil_div(sn_count(w[3], t->pixel, 1, 1), NUMBERS) : 1;
    t->steps = sn_count(t->slabs, t->runs, t->run_steps, 1);
    t->block_bytes = sn_count(t->steps, SN_ROWS_WEIGHTS, 1, 1);
    const int64_t all = sn_count(t->block_bytes, t->b.groups, t->b.out_blocks, 1);
    return t->taps > 0 && t->steps > 0 && all > 0 && all < PTRDIFF_MAX / 2;
}

static bool tiles_of(const sn_packing *p, sn_conv_tiles *t)
{
    return sn_conv_tiles_of(p->dims, p->rank, p->arg, t);
}

static bool tiles_bytes(const sn_packing *p, size_t *bytes)
{
    sn_conv_tiles t;
    if (!tiles_of(p, &t))
        return false;
    *bytes = (size_t)(t.block_bytes * t.b.groups * t.b.out_blocks);
    return true;
}

/* A unit is a block of output channels. */
static size_t tiles_units(const sn_packing *p)
{
    sn_conv_tiles t;
    return tiles_of(p, &t) ? (size_t)(t.b.groups * t.b.out_blocks) : 0;
}

/* Its first output channel, and how many it has: fewer at the end of a group, and of all. */
static int64_t unit_lanes(const sn_packing *p, const sn_conv_tiles *t, size_t unit, int64_t *first)
{
    const int64_t ob = (int64_t)unit % t->b.out_blocks;
    *first = (int64_t)unit / t->b.out_blocks * t->b.out + ob * BLOCK;
    return sn_max(sn_min(sn_min(t->b.out - ob * BLOCK, BLOCK), p->dims[0] - *first), 0);
}

/* Where number `k` of step `s` lies, of lane 0. */
static int64_t place(int64_t s, int64_t k)
{
    return s * (SN_ROWS_WEIGHTS / (int64_t)sizeof(uint16_t)) + k / KR * BLOCK * KR + k % KR;
}

/* The weights of one output channel, to its lane. */
static void pack_lane(const sn_conv_tiles *t, int64_t kernel_x, uint16_t *to, int64_t channel,
                      const uint8_t *from)
{
    for (int64_t c = 0; c < t->b.group_in; c++, channel++)
        for (int64_t k = 0; k < t->taps; k++, from += sizeof *to) {
            int64_t step = channel / NUMBERS * t->taps + k, number = channel % NUMBERS;
            if (t->merged) {
                number = k % kernel_x * t->pixel + channel;
                step = k / kernel_x * t->run_steps + number / NUMBERS;
                number %= NUMBERS;
            }
            memcpy(to + place(step, number), from, sizeof *to);
        }
}

static void tiles_pack(const sn_packing *p, void *packed, const void *weight, size_t unit)
{
    sn_conv_tiles t;
    if (!tiles_of(p, &t))
        return;
    int64_t first;
    const int64_t lanes = unit_lanes(p, &t, unit, &first), each = t.b.group_in * t.taps;
    uint8_t *dst = (uint8_t *)packed + (int64_t)unit * t.block_bytes;
    memset(dst, 0, (size_t)t.block_bytes);
    for (int64_t l = 0; l < lanes; l++) {
        const int64_t o = first + l, group = (int64_t)unit / t.b.out_blocks;
        /* Where this channel's own group begins inside the merged one. */
        const int64_t channel = o / t.b.group_out * t.b.group_in - group * t.b.in;
        pack_lane(&t, p->dims[p->rank - 1], (uint16_t *)(void *)dst + l * KR, channel,
                  (const uint8_t *)weight + (size_t)(o * each) * sizeof(uint16_t));
    }
}

static bool tiles_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    sn_conv_tiles t;
    if (!tiles_of(p, &t))
        return false;
    const int64_t each = t.b.group_in * t.taps;
    *count = unit_lanes(p, &t, unit, first) * each;
    *first = *count ? *first * each : 0;
    return true;
}

#define FORMAT(TYPE, type)                                                                         \
    const sn_pack_format sn_pack_##type##_conv_tiles16 = {.name = #type "_conv_tiles16",           \
                                                          .arrangement = SN_WEIGHTS_CONV_TILES,    \
                                                          .dtype = SONDE_DTYPE_##TYPE,             \
                                                          .block = BLOCK,                          \
                                                          .kr = KR,                                \
                                                          .bytes = tiles_bytes,                    \
                                                          .units = tiles_units,                    \
                                                          .pack = tiles_pack,                      \
                                                          .source = tiles_source};
FORMAT(BF16, bf16)
FORMAT(F16, f16)

/* ------------------------------------------------------------------ f32 in two halves */
enum { MOST_TAPS = 25, HALVES_STEP = 2 * SN_ROWS_WEIGHTS, TAIL_BYTES = BLOCK * sizeof(float) };

bool sn_conv_tiles_in_halves(sn_conv_tiles *t)
{
    const int64_t bytes = sn_count(t->steps, HALVES_STEP, 1, 1);
    const int64_t all =
        bytes < 0 ? -1 : sn_count(bytes + TAIL_BYTES, t->b.groups, t->b.out_blocks, 1);
    if (t->narrow || t->b.group_in != t->b.in || t->taps > MOST_TAPS || all < 0 ||
        all >= PTRDIFF_MAX / 2)
        return false;
    t->block_bytes = bytes + TAIL_BYTES;
    return true;
}

static bool halves_of(const sn_packing *p, sn_conv_tiles *t)
{
    return tiles_of(p, t) && sn_conv_tiles_in_halves(t);
}

static bool halves_bytes(const sn_packing *p, size_t *bytes)
{
    sn_conv_tiles t;
    if (!halves_of(p, &t))
        return false;
    *bytes = (size_t)(t.block_bytes * t.b.groups * t.b.out_blocks);
    return true;
}

/* All taps of a slab's channels, from its first one on, as [channel][tap][output channel]; zeros
 * where there is none. */
static void turn_slab(const sn_packing *p, const sn_conv_tiles *t, const uint8_t *from,
                      int64_t channel, int64_t lanes, float *to)
{
    const int64_t n = sn_min(NUMBERS, t->b.in - channel) * t->taps;
    sn_pack_lanes(p, to, from + (size_t)(channel * t->taps) * sizeof *to, (size_t)n,
                  (unsigned)lanes, (size_t)(t->b.in * t->taps));
    memset(to + n * BLOCK, 0, (size_t)((NUMBERS * t->taps - n) * BLOCK) * sizeof *to);
}

static void halves_pack(const sn_packing *p, void *packed, const void *weight, size_t unit)
{
    enum { N = NUMBERS * BLOCK };
    sn_conv_tiles t;
    if (!halves_of(p, &t))
        return;
    const sn_kernels *k = sn_kernels_get(p->cpu_flags);
    int64_t first;
    const int64_t lanes = unit_lanes(p, &t, unit, &first), each = t.b.in * t.taps;
    const uint8_t *from = (const uint8_t *)weight + (size_t)(first * each) * sizeof(float);
    uint8_t *to = (uint8_t *)packed + (int64_t)unit * t.block_bytes;
    float turned[MOST_TAPS * N], top = 0, back;
    for (int64_t i = 0; i < lanes * each; i += N) {
        const int64_t n = sn_min(N, lanes * each - i);
        memcpy(turned, from + (size_t)i * sizeof *turned, (size_t)n * sizeof *turned);
        top = fmaxf(top, k->f32_rowabs(turned, (size_t)n));
    }
    const float scale = sn_halves_scale(top, &back);
    for (int64_t s = 0; s < t.slabs; s++) {
        turn_slab(p, &t, from, s * NUMBERS, lanes, turned);
        for (int64_t tap = 0; tap < t.taps; tap++, to += HALVES_STEP) {
            float some[N];
            for (int64_t c = 0; c < NUMBERS && t.taps > 1; c++)
                memcpy(some + c * BLOCK, turned + (c * t.taps + tap) * BLOCK, BLOCK * sizeof *some);
            sn_halves_tile(k, to, t.taps > 1 ? some : turned, scale);
        }
    }
    for (int l = 0; l < BLOCK; l++)
        memcpy(to + (size_t)l * sizeof back, &back, sizeof back);
}

const sn_pack_format sn_pack_f32_conv_tiles16 = {.name = "f32_conv_tiles16",
                                                 .arrangement = SN_WEIGHTS_CONV_TILES,
                                                 .dtype = SONDE_DTYPE_F32,
                                                 .block = BLOCK,
                                                 .kr = KR,
                                                 .bytes = halves_bytes,
                                                 .units = tiles_units,
                                                 .pack = halves_pack,
                                                 .source = tiles_source};
