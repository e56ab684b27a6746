/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel divides its work. Drivers, weight formats and the layout of activations read these
 * numbers from the row of the kernel they use; nothing else depends on the instruction set. */
#ifndef SN_KERNELS_GEOMETRY_H
#define SN_KERNELS_GEOMETRY_H

#include <stdint.h>

#include "kernels/tile_sizes.h"

enum { SN_TILE_MAX_BLOCKS = 4 };

typedef struct sn_geometry {
    uint8_t block; /* channels of a block, of activations and of weights; 0: it has no blocks */
    uint8_t kr;    /* input channels side by side in packed weights; 0: it reads none */
    uint8_t pixels[SN_TILE_MAX_BLOCKS]; /* of the largest tile with 1 … 4 blocks; 0: no tiles */
    float speed; /* of its arithmetic outside of tiles, relative to AVX-512 in f32 */
} sn_geometry;

/* How weights are arranged (compute/packs.h has the formats). Which format a kernel reads follows
 * from this, its element type of weights, and its geometry. */
typedef enum sn_arrangement {
    SN_WEIGHTS_NONE,            /* it reads none, or as they are */
    SN_WEIGHTS_CONV,            /* blocks of input × blocks of output channels */
    SN_WEIGHTS_CONV_PLAIN,      /* all input channels × blocks of output channels */
    SN_WEIGHTS_CONV_LAST,       /* blocks of output channels, in them taps × all input channels */
    SN_WEIGHTS_DEPTHWISE,       /* blocks of channels */
    SN_WEIGHTS_PANELS,          /* panels of a matrix's columns */
    SN_WEIGHTS_CONV_TILES,      /* blocks of output channels, in them runs of 64 bytes of x */
    SN_WEIGHTS_PANEL_TILES,     /* the same of a matrix */
    SN_WEIGHTS_CONV_ROWS,       /* output channels × what they read, the left side of a product */
    SN_WEIGHTS_CONV_TURNED,     /* as CONV, of a transposed convolution: its last tap is first */
    SN_WEIGHTS_FOLD_ROWS,       /* the same of a transposed convolution, × input channels */
    SN_WEIGHTS_DEPTHWISE_QUADS, /* blocks of channels, in them rows of taps, four at a time */
    SN_WEIGHTS_SPARSE,          /* only blocks of 4 outputs × 1 k that are not zero, and their k */
    SN_WEIGHTS_SPARSE_TILES,    /* the same of 16 outputs × 4 bytes, 16 of them at a time */
} sn_arrangement;

/* The geometries that rows of kernels.inc name, as initialisers. */
#define SN_GEOMETRY_flat      .block = 0
#define SN_GEOMETRY_block8    .block = 8, .speed = 0.55f
#define SN_GEOMETRY_block16   .block = 16, .speed = 1
#define SN_GEOMETRY_filters8  .block = 8, .kr = 1
#define SN_GEOMETRY_filters16 .block = 16, .kr = 1
#define SN_GEOMETRY_tile8     .block = 8, .kr = 1, .pixels = SN_TILE_PIXELS(SN_TILES8)
#define SN_GEOMETRY_tile16    .block = 16, .kr = 1, .pixels = SN_TILE_PIXELS(SN_TILES16)
#define SN_GEOMETRY_sparse_c                                                                       \
    .block = 8, .kr = 1, .pixels = {SN_SPARSE_MOST_C, SN_SPARSE_SINGLE}, .speed = 0.05f
#define SN_GEOMETRY_sparse8                                                                        \
    .block = 8, .kr = 1, .pixels = {SN_SPARSE_MOST8, SN_SPARSE_SINGLE}, .speed = 0.55f
#define SN_GEOMETRY_sparse16                                                                       \
    .block = 16, .kr = 1, .pixels = {SN_SPARSE_MOST16, SN_SPARSE_SINGLE}, .speed = 1
#define SN_GEOMETRY_byte_sparse_c .block = 8, .kr = 4, .pixels = {2}, .speed = 0.05f
#define SN_GEOMETRY_byte_sparse8  .block = 8, .kr = 4, .pixels = {2}, .speed = 0.55f
#define SN_GEOMETRY_dot_sparse8   .block = 8, .kr = 4, .pixels = {4}, .speed = 2
#define SN_GEOMETRY_arm_sparse8   .block = 8, .kr = 4, .pixels = {2}, .speed = 1
#define SN_GEOMETRY_byte_sparse16 .block = 16, .kr = 4, .pixels = {4}, .speed = 4
#define SN_GEOMETRY_bytes_c       .block = 8, .kr = 4, .pixels = {1}, .speed = 0.05f
#define SN_GEOMETRY_bytes8                                                                         \
    .block = 8, .kr = 4, .pixels = {SN_TILE_MOST(SN_BYTE_TILES8_1)}, .speed = 0.55f
#define SN_GEOMETRY_dots8                                                                          \
    .block = 8, .kr = 4, .pixels = {SN_TILE_MOST(SN_DOT_TILES8_1), SN_TILE_MOST(SN_DOT_TILES8_2)}, \
    .speed = 2
#define SN_GEOMETRY_pairs8 .block = 8, .kr = 8, .pixels = {10}, .speed = 2
#define SN_GEOMETRY_bytes16                                                                        \
    .block = 16, .kr = 4, .pixels = SN_TILE_PIXELS(SN_BYTE_TILES16), .speed = 4
#define SN_GEOMETRY_rows_c     .block = 16, .kr = 4, .speed = 0.01f
#define SN_GEOMETRY_rows_amx   .block = 16, .kr = 4, .speed = 30
#define SN_GEOMETRY_rows16_c   .block = 16, .kr = 2, .speed = 0.01f
#define SN_GEOMETRY_rows16_amx .block = 16, .kr = 2, .speed = 15
#define SN_GEOMETRY_rows16_dot .block = 16, .kr = 2, .speed = 2
#define SN_GEOMETRY_quads_c    .block = 64, .kr = 4, .speed = 0.01f
#define SN_GEOMETRY_quads_vnni .block = 64, .kr = 4, .speed = 4
#define SN_GEOMETRY_quads_dots .block = 64, .kr = 4, .speed = 2
#define SN_GEOMETRY_taps_c     .block = 16, .kr = 4, .speed = 0.05f
#define SN_GEOMETRY_taps8      .block = 16, .kr = 4, .speed = 0.55f
#define SN_GEOMETRY_taps16     .block = 16, .kr = 4, .speed = 1
#define SN_TILE_PIXELS(lists)                                                                      \
    {                                                                                              \
        SN_TILE_MOST(lists##_1), SN_TILE_MOST(lists##_2), SN_TILE_MOST(lists##_3),                 \
            SN_TILE_MOST(lists##_4)                                                                \
    }

#endif
