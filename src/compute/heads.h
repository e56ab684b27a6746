/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors seen as [batch][head][position][size] wherever the heads lie in memory: moving them
 * between element types and places, and adding to them. */
#ifndef SN_COMPUTE_HEADS_H
#define SN_COMPUTE_HEADS_H

#include "base/pool.h"
#include "compute/small_floats.h"

typedef struct sn_heads {
    sonde_dtype dtype;
    void *data;
    int64_t batch, heads, len, size;
    ptrdiff_t stride[3]; /* elements, over batch, head, position; a row of `size` is contiguous */
} sn_heads;

/* [batch, heads, len, size] */
sn_heads sn_heads_bhsd(sonde_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
                       int64_t size);
/* [batch, len, heads * size], rows of `row` elements of which the heads begin at `first` */
sn_heads sn_heads_bshd(sonde_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
                       int64_t size, int64_t row, int64_t first);
/* Where a row begins. */
static inline void *sn_heads_row(const sn_heads *h, int64_t b, int64_t head, int64_t position)
{
    return (uint8_t *)h->data + (b * h->stride[0] + head * h->stride[1] + position * h->stride[2]) *
                                    (ptrdiff_t)sn_dtype_bytes(h->dtype);
}

/* Positions [0, src->len) of src to positions at[b] + … of dst (at NULL: 0), converting f16, bf16
 * and f32 into each other; equal types are copied. Positions beyond dst are left out. */
void sn_heads_copy(const sn_heads *dst, const sn_heads *src, const int64_t *at, sn_pool *pool);
/* Positions from at[b] + skip on become 0; dst is f32, and its positions lie one behind the other.
 */
void sn_heads_clear(const sn_heads *dst, const int64_t *at, int64_t skip);
/* dst += bias[head * size + …]; both f32. */
void sn_heads_add(const sn_heads *dst, const float *bias, sn_pool *pool);

#endif
