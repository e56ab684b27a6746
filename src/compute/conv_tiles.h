/* SPDX-License-Identifier: Apache-2.0 */
/* The way of convolutions (conv.h) whose weights are packed in tiles of bf16, f16, or f32 in
 * halves: x becomes bf16, or the sum of two (tiles.h), while its lines are copied (lines.h); sums
 * are f32. */
#ifndef SN_COMPUTE_CONV_TILES_H
#define SN_COMPUTE_CONV_TILES_H

#include "compute/conv.h"

/* The format for these weights, F32, F16 or BF16, and its argument; SN_PACK_NONE: they go another
 * way.
 */
unsigned sn_conv_tiles_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                               unsigned in_block, unsigned out_block, uint32_t cpu_flags);
int64_t sn_conv_tiles_pack_arg(int64_t groups, bool plain_input, int64_t kernel_x,
                               int64_t dilation_x);
/* How weights of these dims are packed; false: they are not. */
bool sn_conv_tiles_of(const int64_t *w, int rank, int64_t arg, sn_conv_tiles *t);

/* The same of f32 in two halves (tiles.h): a step is two, high parts before low ones, and behind
 * the steps of a block stands what undoes its scale, for each channel. false: they are not. */
bool sn_conv_tiles_in_halves(sn_conv_tiles *t);
/* Is f32 faster that way? pixels -1: nobody knows how many there will be. winograd: it may go that
 * way otherwise. */
bool sn_conv_halves_pay(int64_t pixels, const int64_t *w, int rank, bool winograd);

/* The rest of a plan; false: sizes overflow. */
bool sn_conv_tiles_plan(sn_conv_plan *p, size_t l2_bytes);
/* `gate`, not NULL: of image i, factors of x's channels at gate + i·gate_image; as many as the
 * blocks have lanes. */
typedef struct sn_conv_gates {
    const float *of;
    int64_t image;
} sn_conv_gates;
void sn_conv_tiles_run(const sn_conv_call *c, const sn_conv_gates *gates, sn_pool *pool);
/* As sn_conv_direct_band, on a thread whose tiles are set up (compute/tiles.h). */
void sn_conv_tiles_band(const sn_conv_call *c, int64_t pixels);

#endif
