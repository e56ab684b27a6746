/* SPDX-License-Identifier: Apache-2.0 */
/* Other ways to cut a matrix product or a convolution than the one the cost model takes. They are
 * numbered; a driver given a number (`variant` of its descriptor) follows it as far as the shape
 * allows, so that several numbers may come to the same cut. Packed weights serve all of them. Who
 * measures them is plan/tuning.h. */
#ifndef SN_COMPUTE_VARIANT_H
#define SN_COMPUTE_VARIANT_H

#include "compute/conv.h"
#include "compute/gemm.h"
#include "compute/tile_cost.h"

enum { SN_VARIANT_LENGTHS = 3 };
enum { SN_VARIANTS = (SN_TILE_MAX_BLOCKS + 1) * SN_VARIANT_LENGTHS * 2 * 2 };

typedef struct sn_variant {
    int64_t blocks; /* a kernel call takes; 0: as many as the model says */
    int length;     /* of segments: 0 the model's, 1 half of it, 2 twice as long */
    /* gemm: half as much of k at a time; conv: items in the other order, direct if it was free to
     * go Winograd's way */
    bool other;
    bool coarse; /* a fourth of the tasks */
} sn_variant;

/* Number 0, or one that is none of SN_VARIANTS: all as the model says. */
sn_variant sn_variant_of(unsigned number);

static inline int64_t sn_variant_blocks(const sn_variant *v, int64_t model, int64_t all)
{
    return v->blocks ? sn_max(sn_min(v->blocks, all), 1) : model;
}
static inline int64_t sn_variant_length(const sn_variant *v, int64_t model, int64_t all)
{
    return v->length == 1   ? sn_max(model / 2, 1)
           : v->length == 2 ? sn_max(sn_min(model * 2, all), 1)
                            : model;
}

/* Tells plans of one descriptor apart that cut the work in different ways. */
uint64_t sn_gemm_cut(const sn_gemm_plan *p);
uint64_t sn_conv_cut(const sn_conv_plan *p);
/* How many numbers are worth trying; 1: only 0. */
unsigned sn_conv_variants(const sn_conv_plan *p);
/* Everything of a descriptor that the choice depends on, as one line of text: "gemm 128 768 …". */
void sn_gemm_text(const sn_gemm_desc *d, char *text, size_t bytes);
void sn_conv_text(const sn_conv_desc *d, char *text, size_t bytes);

#endif
