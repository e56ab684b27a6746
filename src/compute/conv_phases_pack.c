/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of transposed convolutions on blocked tensors, in the order in which the tile
 * kernel reads them, taps from the last to the first:
 *
 *   [group][out block][in block][kd][kh][kw][block channels][block]
 *
 * from [in][out per group][kd][kh][kw]. `arg` is the number of groups. */
#include <string.h>

#include "compute/conv_phases.h"
#include "compute/packs.h"
#include "compute/split.h"

bool sn_conv_phases_fit(const int64_t *w, int rank, int64_t groups, const int64_t *strides,
                        const int64_t *dilations, unsigned block)
{
    const int64_t b = block;
    int64_t phases = 1;
    if (rank < 3 || rank > 5 || groups < 1 || w[0] % groups != 0)
        return false;
    if (groups > 1 && (w[0] / groups % b != 0 || w[1] % b != 0))
        return false;
    for (int i = 0; i < rank - 2; i++) {
        const int64_t stride = strides ? strides[i] : 1, dilation = dilations ? dilations[i] : 1;
        if (w[i + 2] < 1 || stride > SN_CONV_MAX_PHASES || (stride > 1 && dilation > 1))
            return false;
        phases *= stride;
    }
    return phases <= SN_CONV_MAX_PHASES;
}

typedef struct turned {
    int64_t in, out, in_blocks, out_blocks, taps; /* of one group */
} turned;

static bool turned_of(const sn_packing *p, turned *t)
{
    const int64_t b = p->format->block;
    if (!sn_conv_phases_fit(p->dims, p->rank, p->arg, NULL, NULL, (unsigned)b) || p->dims[0] <= 0 ||
        p->dims[1] <= 0)
        return false;
    *t = (turned){.in = p->dims[0] / p->arg, .out = p->dims[1], .taps = 1};
    for (int i = 2; i < p->rank; i++)
        t->taps = sn_count(t->taps, p->dims[i], 1, 1);
    t->in_blocks = sn_ceil_div(t->in, b);
    t->out_blocks = sn_ceil_div(t->out, b);
    return t->taps > 0;
}

static bool turned_bytes(const sn_packing *p, size_t *bytes)
{
    turned t;
    if (!turned_of(p, &t))
        return false;
    const int64_t vectors =
        sn_count(sn_count(p->arg, t.out_blocks, 1, 1), t.in_blocks, t.taps, p->format->block);
    return vectors >= 0 && sn_pack_vector_bytes(p->format, vectors, bytes);
}

static size_t turned_units(const sn_packing *p)
{
    turned t;
    return turned_of(p, &t) ? (size_t)(p->arg * t.out_blocks) : 0;
}

/* One output block of one group. */
static void turned_pack(const sn_packing *p, void *packed, const void *weight, size_t unit)
{
    turned t;
    if (!turned_of(p, &t))
        return;
    const int64_t b = p->format->block;
    const int64_t group = (int64_t)unit / t.out_blocks, ob = (int64_t)unit % t.out_blocks;
    const int64_t all = t.in_blocks * t.taps * b * b, lanes = sn_min(b, t.out - ob * b);
    float *dst = (float *)packed + (int64_t)unit * all;
    const uint8_t *src = weight;
    memset(dst, 0, (size_t)all * sizeof *dst);
    for (int64_t c = 0; c < t.in; c++) {
        const int64_t from = ((group * t.in + c) * t.out + ob * b) * t.taps;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = 0; k < t.taps; k++)
                memcpy(dst + ((c / b * t.taps + t.taps - 1 - k) * b + c % b) * b + l,
                       src + (size_t)(from + l * t.taps + k) * sizeof *dst, sizeof *dst);
    }
}

static bool turned_source(const sn_packing *p, size_t unit, int64_t *first, int64_t *count)
{
    (void)p, (void)unit, (void)first, (void)count;
    return false; /* an output block has a few elements of each input channel */
}

#define TURNED(BLOCK)                                                                              \
    const sn_pack_format sn_pack_f32_turned##BLOCK = {.name = "f32_turned" #BLOCK,                 \
                                                      .arrangement = SN_WEIGHTS_CONV_TURNED,       \
                                                      .dtype = SONDE_DTYPE_F32,                    \
                                                      .block = BLOCK,                              \
                                                      .kr = 1,                                     \
                                                      .bytes = turned_bytes,                       \
                                                      .units = turned_units,                       \
                                                      .pack = turned_pack,                         \
                                                      .source = turned_source};
TURNED(8)
TURNED(16)
