/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of zeros: "4x1" is blocks of 4 neighbouring outputs at one k, "1x16" 16 neighbouring k
 * of one output, "2:4" two zeros among every four neighbours along k. Neighbours along k of a
 * convolution are input channels at the same tap of the kernel. Where a weight does not divide, the
 * last blocks are smaller. Blocks end where groups of a convolution do. */
#ifndef SN_SHRINK_PATTERN_H
#define SN_SHRINK_PATTERN_H

#include "shrink/elements.h"

typedef struct sn_pattern {
    int64_t outputs, ks; /* of a block; of 2:4 the four */
    int64_t zeros;       /* of each block that many are zero; 0: all or none */
} sn_pattern;

/* Refuses what is no pattern with a sentence that lists those there are. */
sonde_status sn_pattern_parse(const char *text, sn_pattern *p, sonde_error *err);

/* The blocks of a weight. */
typedef struct sn_blocks {
    const sn_elements *e;
    sn_pattern pattern;
    int64_t outputs, ks;          /* of one matrix */
    int64_t out_stride, k_stride; /* in elements */
    int64_t matrices, n;          /* blocks of all of them */
    int n_axes;                   /* the others, outermost first; groups are the last */
    int64_t dims[SN_MAX_RANK + 1], strides[SN_MAX_RANK + 1];
} sn_blocks;
void sn_blocks_open(sn_blocks *b, const sn_elements *e, const sn_weight_view *view,
                    const sn_pattern *p);

/* Clears the `count` blocks with the smallest norm per element of all n weights; of equal ones the
 * first. A block with a NaN counts as the largest. */
sonde_status sn_blocks_clear_smallest(const sn_blocks *const *list, size_t n, int64_t count,
                                      sn_allocator *alloc, sonde_error *err);
/* 2:4 and the like: the smallest in each block, of equal ones the first. Of a block that is smaller
 * the same share, rounded down. */
void sn_blocks_clear_within(const sn_blocks *b);

typedef struct sn_norm {
    double norm; /* the root of the sum of squares */
    int64_t zeros;
} sn_norm;
sn_norm sn_elements_norm(const sn_elements *e);

#endif
