/* SPDX-License-Identifier: Apache-2.0 */
/* What a tile kernel costs, as a model: cycles per input channel for a run of pixels times some
 * channel blocks. Good enough to rank the ways to cut a layer, which is all it is for; the
 * constants were fitted to measurements of the layers in bench/kernels with one thread, that of
 * weights where the first-level cache has 32 KB (Cascade Lake). */
#ifndef SN_COMPUTE_TILE_COST_H
#define SN_COMPUTE_TILE_COST_H

#include <stdbool.h>

#include "compute/split.h"
#include "kernels/geometry.h"

/* A run is cut into even tiles. Two multiply-adds or somewhat less than two loads a cycle, then
 * what weights cost on their way from the second-level cache, then the loop itself. `far`: pixels
 * lie far apart, and more than nine of them crowd each other out of the first-level cache. */
static inline double sn_tile_run_cycles(const sn_geometry *g, int64_t pixels, int64_t blocks,
                                        bool far)
{
    const int64_t tiles = sn_max(sn_ceil_div(pixels, g->pixels[blocks - 1]), 1);
    const double p = (double)pixels / (double)tiles, q = (double)blocks;
    const double fma = p * q / 2, load = 0.6 * (p + q), busy = fma > load ? fma : load;
    return (double)tiles * (busy * (far && p > 9 ? 1.06 : 1) + 0.35 * q + 0.6);
}

/* How many blocks of `out_blocks` a kernel call should take, for `runs` runs of so many pixels. */
static inline int64_t sn_tile_pick_blocks(const sn_geometry *g, int64_t pixels, int64_t runs,
                                          int64_t out_blocks, bool far)
{
    enum { CHUNK_START = 3 }; /* cycles per channel before a chunk runs at full speed */
    int64_t best = 1;
    double least = 0;
    for (int64_t q = 1; q <= sn_min(SN_TILE_MAX_BLOCKS, out_blocks); q++) {
        const int64_t chunks = sn_ceil_div(out_blocks, q), small = out_blocks / chunks;
        const int64_t larger = out_blocks % chunks; /* chunks with one block more */
        double cycles = (double)chunks * (double)CHUNK_START;
        cycles += (double)((chunks - larger) * runs) * sn_tile_run_cycles(g, pixels, small, far);
        if (larger > 0)
            cycles += (double)(larger * runs) * sn_tile_run_cycles(g, pixels, small + 1, far);
        if (q == 1 || cycles < least) {
            best = q;
            least = cycles;
        }
    }
    return best;
}

#endif
