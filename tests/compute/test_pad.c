/* SPDX-License-Identifier: Apache-2.0 */
/* Padding and cropping of random shapes against finding the source of each element. */
#include "compute/pad.h"

#include "levels.h"

/* Position in an axis of `dim`; -1: the constant. */
static int64_t source(sn_pad_mode mode, int64_t at, int64_t dim)
{
    if (at >= 0 && at < dim)
        return at;
    if (mode == SN_PAD_CONSTANT)
        return -1;
    if (mode == SN_PAD_EDGE || dim == 1)
        return at < 0 ? 0 : dim - 1;
    while (at < 0 || at >= dim) {
        if (mode == SN_PAD_WRAP)
            at += at < 0 ? dim : -dim;
        else
            at = at < 0 ? -at : 2 * (dim - 1) - at;
    }
    return at;
}

TEST(random_shapes_of_every_mode_and_element_size)
{
    enum { RANK = 3, MOST = 4096 };
    for (int trial = 0; trial < 400; trial++) {
        const int rank = (int)test_between(1, RANK);
        sn_pad p = {.mode = (sn_pad_mode)(trial % SN_PAD_MODES),
                    .elem_bytes = (size_t)1 << test_between(0, 4),
                    .rank = rank};
        int64_t n_in = 1, n_out = 1, table[64];
        for (int i = 0; i < rank; i++) {
            p.in[i] = test_between(1, 5);
            p.before[i] = test_between(-4, 6);
            p.out[i] = test_between(1, 12);
            n_in *= p.in[i];
            n_out *= p.out[i];
        }
        uint8_t *x = malloc((size_t)n_in * p.elem_bytes), *y = malloc((size_t)n_out * p.elem_bytes);
        uint8_t value[16];
        for (size_t i = 0; i < (size_t)n_in * p.elem_bytes; i++)
            x[i] = (uint8_t)test_rand();
        memset(value, 0xab, sizeof value);
        sn_pad_run(&p, y, x, value, table, NULL);
        bool same = true;
        for (int64_t o = 0; o < n_out; o++) {
            int64_t rest = o, from = 0, stride = 1;
            for (int i = rank - 1; i >= 0; i--) {
                const int64_t at = source(p.mode, rest % p.out[i] - p.before[i], p.in[i]);
                rest /= p.out[i];
                from = at < 0 || from < 0 ? -1 : from + at * stride;
                stride *= p.in[i];
            }
            same &= memcmp(y + (size_t)o * p.elem_bytes,
                           from < 0 ? value : x + (size_t)from * p.elem_bytes, p.elem_bytes) == 0;
        }
        free(x);
        free(y);
        CHECK_MSG(same, "trial %d, mode %d, rank %d", trial, (int)p.mode, rank);
    }
}

TEST(a_scalar_is_copied_and_an_empty_input_leaves_the_constant)
{
    const float x = 3, value = 7;
    float y[2] = {0};
    const sn_pad scalar = {.mode = SN_PAD_REFLECT, .elem_bytes = 4};
    sn_pad_run(&scalar, y, &x, &value, NULL, NULL);
    CHECK(y[0] == 3);
    const sn_pad empty = {.elem_bytes = 4, .rank = 1, .in = {0}, .out = {2}, .before = {1}};
    sn_pad_run(&empty, y, NULL, &value, NULL, NULL);
    CHECK(y[0] == 7 && y[1] == 7);
}

TEST_MAIN()
