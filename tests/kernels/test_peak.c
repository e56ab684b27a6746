/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that measure what a core can reach. */
#include "rows.h"

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

TEST(every_peak_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_peak", check_peak}, {NULL, NULL}};
    check_family("peak", checkers);
}

TEST_MAIN()
