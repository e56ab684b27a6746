/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in a packed format, as the plan would make them. */
#ifndef SN_TEST_PACKED_H
#define SN_TEST_PACKED_H

#include <stdlib.h>

#include "compute/packs.h"

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

#endif
