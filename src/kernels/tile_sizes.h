/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles that exist for blocks of 8 and of 16 channels, X(P, Q): P pixels × Q blocks; with one
 * block in steps, with more blocks all that fit the registers. An instruction set with other
 * registers adds its lists here and a geometry with them. */
#ifndef SN_KERNELS_TILE_SIZES_H
#define SN_KERNELS_TILE_SIZES_H

/* clang-format off */
#define SN_TILES16_1(X)                                                                            \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(7, 1) X(8, 1) X(10, 1) X(14, 1) X(20, 1) X(28, 1)
#define SN_TILES16_2(X)                                                                            \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2)                                        \
    X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)
#define SN_TILES16_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) X(9, 3)
#define SN_TILES16_4(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 4)
#define SN_TILES8_1(X)                                                                             \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(10, 1) X(12, 1)
#define SN_TILES8_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)
#define SN_TILES8_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3)
#define SN_TILES8_4(X) X(1, 4) X(2, 4)
/* Of bytes, in registers of 16 sums; with shorter ones tiles have one block. */
#define SN_BYTE_TILES16_1(X) X(1, 1) X(2, 1) X(4, 1) X(6, 1) X(8, 1) X(12, 1)
#define SN_BYTE_TILES16_2(X) X(1, 2) X(2, 2) X(4, 2) X(6, 2) X(8, 2) X(12, 2)
#define SN_BYTE_TILES16_3(X) X(1, 3) X(2, 3) X(4, 3) X(6, 3) X(8, 3)
#define SN_BYTE_TILES16_4(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#define SN_BYTE_TILES8_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(6, 1)
/* The same where a register has the sums of 8 channels, and there are 16 of them. */
#define SN_DOT_TILES8_1(X) X(1, 1) X(2, 1) X(4, 1) X(6, 1) X(8, 1) X(12, 1)
#define SN_DOT_TILES8_2(X) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)
/* Sparse weights: vectors of rows that a panel meets at once. */
#define SN_SPARSE_MOST16 6
#define SN_SPARSE_MOST8  3
#define SN_SPARSE_MOST_C 3
#define SN_SPARSE_SINGLE 4 /* … that a single output meets */
/* Sanitizer builds have only these, as every instance takes the compiler long; drivers still plan
 * with the others, so that they do the same in every build. */
#define SN_FEW_TILES_1(X) X(1, 1) X(4, 1)
#define SN_FEW_TILES_2(X) X(1, 2) X(3, 2)
#define SN_FEW_TILES_3(X) X(1, 3)
#define SN_FEW_TILES_4(X) X(1, 4) X(2, 4)
/* clang-format on */

#define SN_TILE_BIT(P, Q) | (1u << (P))
/* Pixels of the largest tile in a list. */
#define SN_TILE_MOST(list) (31 - __builtin_clz(0u list(SN_TILE_BIT)))

#endif
