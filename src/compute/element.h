/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of any type, one at a time: for drivers that are not worth a loop per type, and for
 * single numbers. Sub-byte types take a byte per element. Complex numbers and strings read as 0. */
#ifndef SN_COMPUTE_ELEMENT_H
#define SN_COMPUTE_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sonde/types.h"

/* Where elements of one type lie; data NULL: there are none. */
typedef struct sn_elems {
    sonde_dtype dtype;
    void *data;
} sn_elems;

/* One element of `bytes` bytes, without a call for the usual sizes. */
static inline void sn_elem_copy(void *dst, const void *src, size_t bytes)
{
    switch (bytes) {
    case 1:
        memcpy(dst, src, 1);
        return;
    case 2:
        memcpy(dst, src, 2);
        return;
    case 4:
        memcpy(dst, src, 4);
        return;
    case 8:
        memcpy(dst, src, 8);
        return;
    default:
        memcpy(dst, src, bytes);
        return;
    }
}
double sn_elem_f64(sonde_dtype t, const void *data, int64_t i);
int64_t sn_elem_i64(sonde_dtype t, const void *data, int64_t i);
void sn_elem_set_f64(sonde_dtype t, void *data, int64_t i,
                     double v); /* integers: truncated, saturated */
bool sn_elem_is_zero(sonde_dtype t, const void *data, int64_t i);
/* Orders as the elements do: smaller element, smaller key. NaN is above everything. Not for strings
 * and complex numbers. */
uint64_t sn_elem_key(sonde_dtype t, const void *data, int64_t i);
bool sn_elem_ordered(sonde_dtype t); /* has a key */

#endif
