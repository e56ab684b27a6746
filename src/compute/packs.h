/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weight formats. A format follows from the weight's shape and element type and from the
 * kernel that reads it, never from activations. Listed in packs.inc; an operator asks for one in
 * its `pack` phase and the plan packs once per initializer and program, in parallel. */
#ifndef SN_COMPUTE_PACKS_H
#define SN_COMPUTE_PACKS_H

#include "base/dtype.h"
#include "kernels/kernels.h"

typedef struct sn_pack_format sn_pack_format;

/* A weight of these dims in a format. */
typedef struct sn_packing {
    const sn_pack_format *format;
    const int64_t *dims;
    int rank;
    int64_t arg;        /* of the format: groups of a convolution, 1 for a transposed matrix, … */
    uint32_t cpu_flags; /* of the machine that packs */
} sn_packing;

struct sn_pack_format {
    const char *name; /* "f32_conv16" */
    sn_arrangement arrangement;
    sn_dtype dtype;    /* of the elements, before and after */
    uint8_t block, kr; /* as in the geometry of the kernels that read it */
    /* Bytes of the packed weight; false: not packable this way. */
    bool (*bytes)(const sn_packing *p, size_t *bytes);
    /* Independent units to pack in parallel, then one unit. src lies as it does in a file: it need
     * not be aligned. */
    size_t (*units)(const sn_packing *p);
    void (*pack)(const sn_packing *p, void *dst, const void *src, size_t unit);
    /* The elements a unit reads: *count from *first. Weights that have to be changed first are so a
     * unit at a time, while they are in the cache. false: a unit reads here and there. */
    bool (*source)(const sn_packing *p, size_t unit, int64_t *first, int64_t *count);
    /* Is a weight in parts along `axis` packed by packing its parts one behind the other? Asked
     * with the dims of each part. NULL: it is not. */
    bool (*joins)(const sn_packing *p, int axis);
};

enum {
    SN_PACK_NONE = 0,
#define SN_PACK(id, symbol) SN_PACK_##id,
#include "compute/packs.inc"
#undef SN_PACK
    SN_PACK_COUNT
};

const sn_pack_format *sn_pack_get(unsigned id); /* NULL for 0 and unknown ids */
/* The format that a kernel of this geometry reads; SN_PACK_NONE: there is none. */
unsigned sn_pack_find(sn_arrangement arrangement, sn_dtype dtype, const sn_geometry *g);

/* Can this CPU multiply bf16 by tiles, faster than f32? Then weights may be packed for that. */
bool sn_pack_has_tiles(uint32_t cpu_flags);
/* The same of images: do they lie in blocks as wide as those of the tiles? */
bool sn_pack_has_image_tiles(uint32_t cpu_flags);
/* Does it multiply f16 as fast as bf16? */
bool sn_pack_has_f16_tiles(uint32_t cpu_flags);
/* Several times as fast: three products of bf16 take less time than one of f32, and a direct
 * convolution less than Winograd's. */
bool sn_pack_has_fast_tiles(uint32_t cpu_flags);

/* Rows become lanes: y[p*block + l] = x[l*x_channel + p] for l < lanes, 0 for the others, p < n; of
 * a format's elements. x need not be aligned. */
void sn_pack_lanes(const sn_packing *p, void *y, const void *x, size_t n, unsigned lanes,
                   size_t x_channel);
/* Are n floats of type `from` all finite when they become floats of type `to`? */
bool sn_pack_holds(sn_dtype to, sn_dtype from, const void *data, int64_t n, uint32_t cpu_flags);
/* n floats of one type become floats of another where they lie, in room for the larger type. */
void sn_pack_convert(sn_dtype to, sn_dtype from, void *data, int64_t n, uint32_t cpu_flags);
/* n vectors of `block` elements, and their bytes; false: too many. */
bool sn_pack_vector_bytes(const sn_pack_format *f, int64_t n, size_t *bytes);

/* Every row of packs.inc. */
#define SN_PACK(id, symbol) extern const sn_pack_format symbol;
#include "compute/packs.inc"
#undef SN_PACK

#endif
