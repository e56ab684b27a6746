/* SPDX-License-Identifier: Apache-2.0 */
/* What packed formats share. */
#include <string.h>

#include "compute/packs.h"

bool sn_pack_vector_bytes(const sn_pack_format *f, int64_t n, size_t *bytes)
{
    return n >= 0 && sn_size_mul((size_t)n, f->block * sn_dtype_bytes(f->dtype), bytes) &&
           *bytes <= PTRDIFF_MAX;
}

static inline void lanes_plain(uint8_t *y, const uint8_t *x, size_t n, unsigned lanes,
                               unsigned block, size_t x_channel, const size_t elem)
{
    for (size_t p = 0; p < n; p++) {
        uint8_t *to = y + p * block * elem;
        for (unsigned l = 0; l < lanes; l++)
            memcpy(to + l * elem, x + (l * x_channel + p) * elem, elem);
        memset(to + lanes * elem, 0, (block - lanes) * elem);
    }
}

void sn_pack_lanes(const sn_packing *p, void *y, const void *x, size_t n, unsigned lanes,
                   size_t x_channel)
{
    const sn_pack_format *f = p->format;
    const size_t elem = sn_dtype_bytes(f->dtype);
    const sn_kernels *k = sn_kernels_get(p->cpu_flags);
    if (elem == sizeof(float) && (uintptr_t)x % sizeof(float) == 0 &&
        k->f32_block_geometry.block == f->block) { /* the bits move, whatever they mean */
        k->f32_block(y, x, n, lanes, f->block, x_channel);
        return;
    }
    if (elem == 2)
        lanes_plain(y, x, n, lanes, f->block, x_channel, 2);
    else
        lanes_plain(y, x, n, lanes, f->block, x_channel, elem);
}
