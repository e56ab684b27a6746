/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that measure what a core can reach. */
#include "rows.h"

#include "base/codec.h"

static void check_peak(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    for (int i = 0; i < 300 && !test_errors; i++) {
        const size_t n = i < 200 ? (size_t)i : rnd(0, 1000), rounds = rnd(0, 3);
        guarded x = guard_floats(n, i % 2);
        float scale = 0;
        fill(x.data, n, NONE);
        const float want = ((sn_f32_peak_fn *)ref->fn)(x.data, n, rounds);
        const float got = ((sn_f32_peak_fn *)row->fn)(x.data, n, rounds);
        for (size_t k = 0; k < n; k++)
            scale += (float)rounds * fabsf(x.data[k]);
        same("peak", row, "", &got, &want, &scale, 1);
        guard_free(&x);
    }
}

/* Floats and sums are compared as bits: everything here is exact. */
static void check_product_peak(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const sn_kernels *k = sn_kernels_get(row->flags);
    enum { N = SN_ROWS_WEIGHTS };
    for (size_t rounds = 0; rounds < 100 && !test_errors; rounds++) {
        guarded x = guard_floats(N / sizeof(float), 0), w = guard_floats(N / sizeof(float), 0);
        uint8_t *a = (uint8_t *)x.data;
        int8_t *b = (int8_t *)w.data;
        for (size_t i = 0; i < N; i++) {
            a[i] = (uint8_t)rnd(0, 127);
            b[i] = (int8_t)((int)rnd(0, 255) - 128);
        }
        for (size_t i = 0; row->slot->read == SONDE_DTYPE_BF16 && i < N / 2; i++) {
            ((uint16_t *)x.data)[i] = sn_f32_to_bf16((float)rnd(0, 31));
            ((uint16_t *)w.data)[i] = sn_f32_to_bf16((float)rnd(0, 31) - 16);
        }
        uint32_t want[256] = {0}, got[256] = {0};
        ((sn_product_peak_fn *)ref->fn)(want, x.data, w.data, rounds);
        k->tiles_enter();
        ((sn_product_peak_fn *)row->fn)(got, x.data, w.data, rounds);
        k->tiles_leave();
        for (size_t i = 0; i < 256; i++)
            CHECK_MSG(got[i] == want[i], "%s: %zu rounds, sum %zu: %08x, expected %08x", row->name,
                      rounds, i, (unsigned)got[i], (unsigned)want[i]);
        guard_free(&x);
        guard_free(&w);
    }
}

TEST(every_peak_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {
        {"sn_f32_peak", check_peak}, {"sn_product_peak", check_product_peak}, {NULL, NULL}};
    check_family("peak", checkers);
}

TEST_MAIN()
