/* SPDX-License-Identifier: Apache-2.0 */
/* Looking bytes up in a table of 256, with an instruction that looks up in 16 and gives 0 where the
 * index is negative (pshufb, which takes the low four bits of the others). The file that includes
 * this has vectors `vb` of VB_BYTES: vb_load, vb_store, vb_xor, vb_set1, vb_repeat (16 bytes, again
 * and again), vb_less (signed difference, -128 at least), vb_shuffle.
 *
 * Take a table of 128 first, eight parts of 16, and an index x. Of x, x - 16, x - 32, … those are
 * not negative that belong to the part of x and to the ones before it. So if part k holds its
 * bytes xor those of part k-1, the xor of all eight lookups is the byte of x's own part. A negative
 * x gives 0. The other half of the table does the same with x ^ 0x80, and one of the two is 0. */
#include "kernels/kernels.h"

enum { PART = 16, PARTS = 8 };

typedef struct half_table {
    vb part[PARTS];
} half_table;

SN_INLINE half_table half_of(const uint8_t *table)
{
    half_table h;
    h.part[0] = vb_repeat(table);
    for (size_t k = 1; k < PARTS; k++)
        h.part[k] = vb_xor(vb_repeat(table + k * PART), vb_repeat(table + (k - 1) * PART));
    return h;
}

SN_INLINE vb look_up(const half_table *h, vb x)
{
    const vb step = vb_set1(PART);
    vb y = vb_shuffle(h->part[0], x);
    for (size_t k = 1; k < PARTS; k++) {
        x = vb_less(x, step);
        y = vb_xor(y, vb_shuffle(h->part[k], x));
    }
    return y;
}

void SN_ISA(sn_u8_table)(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table)
{
    size_t i = 0;
    if (n >= VB_BYTES) {
        const half_table low = half_of(table), high = half_of(table + SN_BYTE_VALUES / 2);
        const vb flip = vb_set1((char)0x80);
        for (; i + VB_BYTES <= n; i += VB_BYTES) {
            const vb v = vb_load(x + i);
            vb_store(y + i, vb_xor(look_up(&low, v), look_up(&high, vb_xor(v, flip))));
        }
    }
    sn_u8_table_ref(y + i, x + i, n - i, table);
}
