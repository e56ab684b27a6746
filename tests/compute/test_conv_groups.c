/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions and those of narrow groups against a naive sum, on every CPU level. */
#include "conv_naive.h"

TEST(narrow_groups_go_by_planes_where_merging_them_is_more_work)
{
    static const struct {
        int64_t in, out; /* of a group */
        bool planes[2];  /* 3×3 and 1×1 */
    } cases[] = {{1, 1, {true, true}},     {1, 2, {true, true}},     {1, 3, {true, true}},
                 {2, 2, {true, true}},     {3, 3, {true, true}},     {4, 4, {true, false}},
                 {5, 5, {true, true}},     {6, 6, {true, true}},     {8, 8, {true, false}},
                 {4, 1, {true, true}},     {12, 12, {true, false}},  {24, 24, {true, false}},
                 {16, 16, {false, false}}, {32, 32, {false, false}}, {16, 32, {false, false}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t size = k == 0 ? 3 : 1, groups = 48;
            const int64_t w[4] = {cases[i].out * groups, cases[i].in, size, size};
            CHECK_MSG(sn_conv_by_planes(w, 4, groups, 16) == cases[i].planes[k],
                      "%d to %d channels, %dx%d", (int)cases[i].in, (int)cases[i].out, (int)size,
                      (int)size);
            CHECK(sn_conv_can_block(w, 4, groups, 16, false));
        }
    CHECK(!sn_conv_by_planes((const int64_t[]){64, 64, 3, 3}, 4, 1, 16));     /* one group */
    CHECK(!sn_conv_by_planes((const int64_t[]){96, 1, 65, 3, 3}, 5, 96, 16)); /* too many planes */
}

/* Every lane of every plane is a channel of its own group, and each of them is there once. */
TEST(planes_hold_every_channel_of_a_group_once)
{
    for (int i = 0; i < 2000 && !test_errors; i++) {
        const unsigned block = i % 2 ? 16 : 8;
        const int64_t in = test_between(1, 12), each = test_between(1, 24);
        const int64_t groups = test_between(2, 40), w[2] = {each * groups, in};
        if (sn_conv_plane_room(w, groups, block) > SN_CONV_MAX_PLANES)
            continue;
        for (int64_t b = 0; b * block < w[0]; b++) {
            sn_f32_plane planes[SN_CONV_MAX_PLANES];
            bool seen[16][12] = {{false}};
            const int64_t n = sn_conv_planes(w, groups, block, b, planes);
            int64_t found = 0, low = INT64_MAX, high = 0;
            CHECK(n <= sn_conv_plane_room(w, groups, block));
            for (int64_t q = 0; q < n; q++)
                for (unsigned l = 0; l < block; l++) {
                    const int32_t lane = planes[q].lane[l];
                    if (lane < 0)
                        continue;
                    const int64_t o = b * block + l, from = planes[q].at[lane / (int32_t)block];
                    const int64_t channel = from * block + lane % (int32_t)block;
                    const int64_t j = channel - o / each * in;
                    CHECK(o < w[0] && j >= 0 && j < in && !seen[l][j]);
                    seen[l][j] = true;
                    found++;
                    low = from < low ? from : low;
                    high = from > high ? from : high;
                }
            CHECK_EQ(found, in * sn_min(block, w[0] - b * block));
            CHECK_EQ(low, planes[0].at[0]);
            CHECK(high - low < sn_conv_plane_blocks(w, groups, block));
        }
    }
}

TEST(depthwise_convolution_of_random_shapes_matches_the_naive_sum)
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
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.c = d.oc = d.groups = test_between(2, 50);
            const bool stored = i % 3 == 0; /* in memory as halves, in several bands of rows */
            random_window(&d, 1, stored ? 40 : 12, 5, pad_end);
            random_window(&d, 2, 30, 5, pad_end);
            const sonde_dtype half = i % 2 ? SONDE_DTYPE_F16 : SONDE_DTYPE_BF16;
            d.x_half = stored && test_rand() % 3 ? half : 0;
            d.y_half = stored && test_rand() % 3 ? half : 0;
            if (i % 2) { /* the windows that have a kernel of their own */
                d.kernel[1] = d.kernel[2] = 1 + 2 * test_between(1, 3);
                d.stride[1] = d.stride[2] = test_between(1, 2);
                d.dilation[1] = d.dilation[2] = 1;
            }
            if (i % 11 == 7) /* nothing but padding */
                d.in[test_between(1, 2)] = 0;
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.in_block = d.out_block = sn_conv_block(lv->flags);
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 3 ? NULL : pool);
        }
    }
    sn_pool_free(pool);
}

TEST(convolution_in_narrow_groups_of_random_shapes_matches_the_naive_sum)
{
    static const int64_t widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 24, 1, 1, 4};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 400 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            const int64_t in = widths[test_rand() % 14];
            const int64_t out = i % 3 ? in : widths[test_rand() % 12];
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = test_between(2, 60 / (in > out ? in : out) + 3);
            d.c = d.groups * in;
            d.oc = d.groups * out;
            random_window(&d, 1, i % 5 == 0 ? 30 : 9, 5, pad_end);
            random_window(&d, 2, 20, 5, pad_end);
            if (i % 2) { /* the windows that have a kernel of their own */
                d.kernel[1] = d.kernel[2] = 1 + 2 * test_between(0, 3);
                d.stride[1] = d.stride[2] = test_between(1, 2);
                d.dilation[1] = d.dilation[2] = d.stride[1] == 1 ? test_between(1, 3) : 1;
            }
            if (i % 7 == 3) /* a line */
                d.in[1] = d.kernel[1] = d.stride[1] = 1, d.pad[1] = pad_end[1] = 0;
            if (i % 7 == 5) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            if (i % 11 == 7) /* nothing but padding */
                d.in[test_between(1, 2)] = 0;
            const sonde_dtype half = i % 2 ? SONDE_DTYPE_F16 : SONDE_DTYPE_BF16;
            const bool deep = d.in[0] > 1 || d.kernel[0] > 1;
            const int64_t wd[5] = {d.oc, in, d.kernel[1], d.kernel[2]};
            const int64_t wd5[5] = {d.oc, in, d.kernel[0], d.kernel[1], d.kernel[2]};
            if (i % 4 == 0 && i % 7 != 5 && sn_conv_stores_planes(wd, 4, d.groups, block)) {
                d.x_half = test_rand() % 3 ? half : 0;
                d.y_half = test_rand() % 3 ? half : 0;
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = d.x_half || d.y_half || test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.in_block = d.out_block = block;
            if (set_out(&d, pad_end) &&
                sn_conv_by_planes(deep ? wd5 : wd, deep ? 5 : 4, d.groups, block))
                check(&d, lv, test_rand() % 2, 2, i % 3 ? NULL : pool);
        }
    }
    sn_pool_free(pool);
}

TEST_MAIN()
