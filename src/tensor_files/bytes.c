/* SPDX-License-Identifier: Apache-2.0 */
/* A file being put together in memory. */
#include "tensor_files/formats.h"

void sn_bytes_put(sn_bytes *b, const void *data, size_t bytes)
{
    b->failed = b->failed || !sn_vec_append(&b->v, b->alloc, data, bytes);
}

void sn_bytes_le(sn_bytes *b, uint64_t v, size_t bytes)
{
    sn_bytes_put(b, &v, bytes); /* little-endian, as every machine sonde runs on */
}

void sn_bytes_free(sn_bytes *b)
{
    sn_vec_free(&b->v, b->alloc);
}
