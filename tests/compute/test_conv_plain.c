/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of plain tensors of one to three dims against a naive sum, on every CPU level. */
#include "conv_naive.h"

TEST(plain_convolution_of_one_to_three_dims_matches_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        for (int i = 0; i < 150 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.groups = i % 3 ? 1 : test_between(2, 4);
            d.c = d.groups * test_between(1, 9);
            d.oc = d.groups * test_between(1, 20);
            for (int a = i % 3; a < 3; a++)
                random_window(&d, a, a == 2 ? 40 : 6, 4, pad_end);
            d.act = random_act();
            d.residual = test_rand() % 2;
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

TEST(plain_convolution_in_bf16_matches_the_naive_sum_of_rounded_numbers)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const int cases = sn_pack_has_tiles(lv->flags) ? 200 : 20; /* plain C is slow */
        for (int i = 0; i < cases && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = i % 50 == 13 ? 0 : test_between(1, 3);
            d.groups = i % 3 ? 1 : test_between(2, 4);
            d.c = d.groups * test_between(1, i % 5 ? 9 : 40);
            d.oc = d.groups * test_between(1, i % 4 ? 20 : 70);
            if (i % 8 == 5) /* depthwise */
                d.c = d.oc = d.groups = test_between(2, 20);
            for (int a = i % 3; a < 3; a++)
                random_window(&d, a, a == 2 ? (i % 7 ? 40 : 700) : 7, a == 2 && i % 9 == 0 ? 30 : 3,
                              pad_end);
            if (i % 7 == 0 && i % 3 < 2) /* many pixels of few lines, which the naive sum allows */
                d.in[1] = 1, d.kernel[1] = 1, d.pad[1] = pad_end[1] = 0, d.stride[1] = 1;
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = d.tiles = true;
            d.w_dtype = SONDE_DTYPE_BF16;
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* Rows that fill tiles read those of the next group, and pixels of the next line: both are left
 * out, whatever they are. */
TEST(infinities_in_plain_tensors_stay_in_their_windows_and_groups)
{
    enum { C = 6, OC = 10, IN = 40 };
    for (const level *lv = levels(); lv->name; lv++) {
        sn_conv_desc d = unit;
        const int64_t pad_end[3] = {0, 0, 1};
        d.c = C, d.oc = OC, d.groups = 2, d.in[2] = IN, d.kernel[2] = 3, d.pad[2] = 1;
        d.packed = d.tiles = true;
        d.w_dtype = SONDE_DTYPE_BF16;
        CHECK(set_out(&d, pad_end));
        float *x = random_floats(C * IN), *w = random_floats(OC * C / 2 * 3), y[OC * IN];
        x[IN + 17] = INFINITY; /* channel 1, of the first group */
        const int64_t wd[3] = {OC, C / 2, 3};
        void *packed = packed_rounded(sn_conv_rows_pack_id(SONDE_DTYPE_BF16, wd, 3, 2, lv->flags),
                                      w, OC * C / 2 * 3, wd, 3, 2, lv->flags);
        CHECK(packed != NULL);
        sn_conv_plan p;
        sonde_error err = {0};
        CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 16, 1, &err));
        void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
        sn_conv_run(&p, x, packed, NULL, NULL, y, space, NULL);
        for (int i = 0; i < OC * IN; i++) {
            const bool reads = i / IN < OC / 2 && i % IN >= 16 && i % IN <= 18;
            CHECK_MSG(isfinite(y[i]) != reads, "%s: channel %d pixel %d is %g", lv->name, i / IN,
                      i % IN, (double)y[i]);
        }
        free(x), free(w), free(packed), free(space);
    }
}

TEST_MAIN()
