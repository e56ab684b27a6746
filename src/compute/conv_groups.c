/* SPDX-License-Identifier: Apache-2.0 */
/* How the channels of groups fall into blocks. Groups narrower than a block go one of two ways:
 * they are merged until whole blocks result, with zeros between channels of different groups, or
 * they go by planes. Then the kernel of depthwise convolutions takes a vector of output channels
 * and, for each channel of their groups, a vector of input channels, picked from at most two
 * blocks. A plane is one such vector of every pixel; where the lanes of one channel come from more
 * than two blocks, several planes share them. */
#include "compute/conv.h"
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

static int64_t divisor_of(int64_t a, int64_t b) /* the greatest common one */
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The most groups that a block of output channels has a part of. */
static int64_t groups_of_block(int64_t group_out, int64_t block)
{
    return (block - 1 + group_out - divisor_of(group_out, block)) / group_out + 1;
}

int64_t sn_conv_plane_room(const int64_t *w, int64_t groups, unsigned block)
{
    const int64_t b = block, most = groups_of_block(w[0] / groups, b);
    const int64_t span = (b - 1 + (most - 1) * w[1]) / b + 1; /* blocks that hold them all */
    return w[1] * sn_ceil_div(sn_min(most, span), 2);
}

int64_t sn_conv_plane_blocks(const int64_t *w, int64_t groups, unsigned block)
{
    const int64_t b = block;
    if (sn_conv_is_depthwise(w, groups))
        return 1;
    return (b - 1 + groups_of_block(w[0] / groups, b) * w[1] - 1) / b + 1;
}

/* Takes lanes of input channel j of their groups from two blocks; true: some are left. */
static bool plane_at(sn_f32_plane *p, bool *left, const int64_t *channel, int64_t n, int64_t j,
                     int64_t block)
{
    int64_t at[2] = {-1, -1};
    bool some = false;
    for (int64_t l = 0; l < block; l++)
        p->lane[l] = -1;
    for (int64_t l = 0; l < n; l++) {
        const int64_t from = (channel[l] + j) / block;
        if (!left[l])
            continue;
        const int i = at[0] < 0 || at[0] == from ? 0 : 1;
        if (i == 1 && at[1] >= 0 && at[1] != from) {
            some = true;
            continue;
        }
        at[i] = from;
        p->lane[l] = (int32_t)(i * block + (channel[l] + j) % block);
        left[l] = false;
    }
    p->at[0] = at[0];
    p->at[1] = at[1] < 0 ? at[0] : at[1];
    return some;
}

int64_t sn_conv_planes(const int64_t *w, int64_t groups, unsigned block, int64_t index,
                       sn_f32_plane *out)
{
    const int64_t b = block, each = w[0] / groups, first = index * b, n = sn_min(w[0] - first, b);
    int64_t channel[16], planes = 0; /* the first of a lane's group */
    for (int64_t l = 0, at = first % each, from = first / each * w[1]; l < n; l++) {
        channel[l] = from;
        if (++at == each) {
            at = 0;
            from += w[1];
        }
    }
    for (int64_t j = 0; j < w[1]; j++) {
        bool left[16], some = n > 0;
        for (int64_t l = 0; l < n; l++)
            left[l] = true;
        while (some)
            some = plane_at(&out[planes++], left, channel, n, j, b);
    }
    return planes;
}

/* Multiply-adds of vectors at every tap of a block of outputs, on average of the first blocks. */
static double planes_each(const int64_t *w, int64_t groups, unsigned block)
{
    enum { ENOUGH = 12 };
    sn_f32_plane planes[SN_CONV_MAX_PLANES];
    const int64_t blocks = sn_min(sn_ceil_div(w[0], block), ENOUGH);
    int64_t sum = 0;
    for (int64_t i = 0; i < blocks; i++)
        sum += sn_conv_planes(w, groups, block, i, planes);
    return (double)sum / (double)blocks;
}

/* What a multiply-add takes here, in those of tiles: measured beside merged groups. Lanes are
 * picked once for the taps and the rows that a pixel is of, if the window is one that slides. */
static double plane_cost(const int64_t *w, int rank)
{
    enum { ROWS = 4, LARGEST = 7 };
    const double kh = rank > 3 ? (double)w[rank - 2] : 1, kw = (double)w[rank - 1];
    const double picked = (kh + (double)ROWS - 1) / (kh * kw * (double)ROWS);
    const bool slides = kh == kw && w[rank - 1] % 2 == 1 && w[rank - 1] <= LARGEST;
    return slides ? 1.3 * (1 + 2.5 * picked * picked) : 4;
}

bool sn_conv_by_planes(const int64_t *w, int rank, int64_t groups, unsigned block)
{
    const int64_t deep = rank == 5 ? w[2] : 1;
    if (rank < 3 || rank > 5 || groups < 2 || w[0] <= 0 || w[1] <= 0 || w[0] % groups != 0 ||
        w[1] > SN_CONV_MAX_PLANES || deep <= 0 || deep > SN_CONV_MAX_PLANES ||
        sn_conv_plane_room(w, groups, block) * deep > SN_CONV_MAX_PLANES)
        return false;
    sn_conv_blocks merged;
    if (sn_conv_is_depthwise(w, groups) || !sn_conv_blocks_of(w, groups, block, false, &merged))
        return true;
    if (merged.group_in == merged.in)
        return false;
    return planes_each(w, groups, block) * plane_cost(w, rank) < (double)merged.in;
}

bool sn_conv_stores_planes(const int64_t *w, int rank, int64_t groups, unsigned block)
{
    enum { MOST_BLOCKS = 4 }; /* that are converted for one of outputs */
    return rank < 5 && sn_conv_by_planes(w, rank, groups, block) &&
           sn_conv_plane_blocks(w, groups, block) <= MOST_BLOCKS;
}
