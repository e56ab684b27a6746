/* SPDX-License-Identifier: Apache-2.0 */
/* A file being put together in memory. */
#include <string.h>

#include "tensor_files/formats.h"

void sn_bytes_put(sn_bytes *b, const void *data, size_t bytes)
{
    if (b->failed || !bytes)
        return;
    if (!sn_vec_reserve(&b->v, b->alloc, bytes)) {
        b->failed = true;
        return;
    }
    memcpy(b->v.data + b->v.n, data, bytes);
    b->v.n += bytes;
}

void sn_bytes_le(sn_bytes *b, uint64_t v, size_t bytes)
{
    sn_bytes_put(b, &v, bytes); /* little-endian, as every machine sonde runs on */
}

void sn_bytes_free(sn_bytes *b)
{
    sn_vec_free(&b->v, b->alloc);
}
