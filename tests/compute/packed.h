/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in a packed format, as the plan would make them. */
#ifndef SN_TEST_PACKED_H
#define SN_TEST_PACKED_H

#include <stdlib.h>

#include "compute/packs.h"
#include "compute/small_floats.h"

/* Freed by the caller; NULL: not packable in this format. */
static inline void *packed_weights(unsigned pack, const void *src, const int64_t *dims, int rank,
                                   int64_t arg, uint32_t cpu_flags)
{
    const sn_packing p = {sn_pack_get(pack), dims, rank, arg, cpu_flags};
    size_t bytes;
    if (!p.format || !p.format->bytes(&p, &bytes))
        return NULL;
    void *dst = malloc(bytes + 64);
    for (size_t u = 0; dst && u < p.format->units(&p); u++)
        p.format->pack(&p, dst, src, u);
    return dst;
}

/* The same of n floats, which are rounded to the format's type first: w is what was packed. */
static inline void *packed_rounded(unsigned pack, float *w, size_t n, const int64_t *dims, int rank,
                                   int64_t arg, uint32_t cpu_flags)
{
    const sn_pack_format *f = sn_pack_get(pack);
    if (!f || f->dtype == SONDE_DTYPE_F32)
        return packed_weights(pack, w, dims, rank, arg, cpu_flags);
    uint16_t *narrow = malloc(n * sizeof *narrow + 1);
    sn_store_f32(0, f->dtype, narrow, w, n, (sn_rounding){0});
    sn_load_f32(0, f->dtype, w, narrow, n);
    void *packed = packed_weights(pack, narrow, dims, rank, arg, cpu_flags);
    free(narrow);
    return packed;
}

/* A type that packed weights may have. */
static inline sn_dtype weight_dtype(uint64_t random)
{
    static const sn_dtype types[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F32, SONDE_DTYPE_F16,
                                     SONDE_DTYPE_BF16};
    return types[random % 4];
}

#endif
