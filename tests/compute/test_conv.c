/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution drivers on blocks of channels against a naive sum in double precision, over many
 * shapes and every CPU level. */
#include "conv_naive.h"

TEST(direct_convolution_of_random_shapes_matches_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 250 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.c = test_between(1, 40);
            d.oc = test_between(1, 75);
            random_window(&d, 1, 12, 4, pad_end);
            random_window(&d, 2, i % 5 ? 17 : 60, 5, pad_end);
            if (i % 6 == 1) { /* a line */
                d.in[1] = d.kernel[1] = d.stride[1] = d.dilation[1] = 1;
                d.pad[1] = pad_end[1] = 0;
            }
            if (i % 6 == 3) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            if (i % 4 == 0) { /* 1×1 at stride 1 */
                for (int a = 1; a < 3; a++) {
                    d.kernel[a] = d.stride[a] = d.dilation[a] = 1;
                    d.pad[a] = pad_end[a] = 0;
                }
            }
            if (i % 3 == 0) { /* groups of whole blocks, or narrow ones that are merged */
                static const int64_t widths[] = {16, 32, 8, 4, 24, 2};
                const int64_t width = widths[test_rand() % 6];
                d.groups = test_between(2, width < 16 ? 32 / width + 1 : 5);
                d.c = d.oc = width * d.groups;
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.out_block = block;
            d.in_block = i % 7 == 0 && d.groups == 1 ? 0 : block;
            const int64_t wd[4] = {d.oc, d.c / d.groups, d.kernel[1], d.kernel[2]};
            if (!set_out(&d, pad_end) || !sn_conv_can_block(wd, 4, d.groups, block, !d.in_block))
                continue;
            check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* Separable convolutions of volumes: their taps of depth are one sum. */
TEST(kernels_of_one_row_and_several_slices_match_the_naive_sum)
{
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 60 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.c = test_between(1, 40);
            d.oc = test_between(1, 75);
            for (int a = 0; a < 3; a++)
                random_window(&d, a, 9, a == 0 ? 7 : 3, pad_end);
            d.kernel[1] = 1;
            d.kernel[2] = i % 2 ? 1 : d.kernel[2];
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 2;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.out_block = block;
            d.in_block = i % 5 == 0 ? 0 : block;
            const int64_t wd[5] = {d.oc, d.c, d.kernel[0], 1, d.kernel[2]};
            if (set_out(&d, pad_end) && sn_conv_can_block(wd, 5, 1, block, !d.in_block))
                check(&d, lv, test_rand() % 2, 2, NULL);
        }
    }
}

/* Channels, taps of a row and rows: any of the three may be the longest. */
TEST(few_channels_under_short_and_long_kernels_match_the_naive_sum)
{
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 120 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.c = test_between(1, 9);
            d.oc = test_between(1, 40);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            random_window(&d, 1, 14, i % 3 == 1 ? 11 : 3, pad_end);
            random_window(&d, 2, i % 4 ? 20 : 50, i % 3 == 2 ? 11 : 5, pad_end);
            if (i % 6 == 5)
                random_window(&d, 0, 6, 5, pad_end);
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 2;
            d.out_block = block;
            d.in_block = i % 2 ? 0 : block;
            const int64_t wd[5] = {d.oc, d.c, d.kernel[0], d.kernel[1], d.kernel[2]};
            if (set_out(&d, pad_end) && sn_conv_can_block(wd, 5, 1, block, !d.in_block))
                check(&d, lv, test_rand() % 2, 2, NULL);
        }
    }
}

enum { TILES_BLOCK = 16 };

TEST(convolution_by_tiles_matches_the_naive_sum_of_rounded_numbers)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const int cases = sn_pack_has_image_tiles(lv->flags) ? 250 : 25; /* plain C is slow */
        for (int i = 0; i < cases && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.c = test_between(1, i % 3 ? 40 : 90);
            d.oc = test_between(1, 90);
            random_window(&d, 1, 12, 4, pad_end);
            random_window(&d, 2, i % 5 ? 17 : 60, i % 11 ? 5 : 40, pad_end);
            if (i % 11 == 0) { /* a long kernel, which takes the naive sum long */
                d.c = test_between(1, 9);
                d.oc = test_between(1, 20);
            }
            if (i % 4 == 0) /* 1×1 at stride 1 */
                for (int a = 1; a < 3; a++) {
                    d.kernel[a] = d.stride[a] = d.dilation[a] = 1;
                    d.pad[a] = pad_end[a] = 0;
                }
            if (i % 3 == 0 && i % 11 != 0) { /* groups of whole blocks, or narrow ones */
                static const int64_t widths[] = {16, 32, 8, 4, 24, 2, 112};
                const int64_t width = widths[test_rand() % 7];
                d.groups = test_between(2, width < 16 ? 32 / width + 1 : 5);
                d.c = d.oc = width * d.groups;
            }
            if (i % 3 == 1 && i % 2)
                d.c = test_between(1, TILES_BLOCK - 1);
            if (i % 50 == 13) /* no images */
                d.n = 0;
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = d.tiles = true;
            d.w_dtype = i % 5 == 4        ? SONDE_DTYPE_F32
                        : test_rand() % 2 ? SONDE_DTYPE_BF16
                                          : SONDE_DTYPE_F16;
            d.out_block = TILES_BLOCK;
            d.in_block = d.groups == 1 && d.c < TILES_BLOCK && i % 8 ? 0 : TILES_BLOCK;
            d.f16 = d.w_dtype == SONDE_DTYPE_F16 && test_rand() % 3;
            if (d.w_dtype == SONDE_DTYPE_BF16 || d.f16) { /* any of them so in memory */
                d.x_half = test_rand() % 2 ? 0 : d.in_block ? d.w_dtype : SONDE_DTYPE_F16;
                d.z_half = d.residual && test_rand() % 2 ? d.w_dtype : 0;
                d.y_half = test_rand() % 2 ? d.w_dtype : 0;
            }
            const int64_t wd[4] = {d.oc, d.c / d.groups, d.kernel[1], d.kernel[2]};
            if (set_out(&d, pad_end) && sn_conv_tiles_pack_id(d.w_dtype, wd, 4, d.groups,
                                                              d.in_block, d.out_block, lv->flags))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

TEST(small_images_together_match_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        if (sn_conv_block(lv->flags) != TILES_BLOCK)
            continue;
        const int cases = sn_pack_has_f16_tiles(lv->flags) ? 18 : 1; /* plain C is slow */
        for (int i = 0; i < cases && !test_errors; i++) {
            static const int64_t none[3];
            sn_conv_desc d = unit;
            d.n = test_between(2, 5);
            d.c = test_between(150, 230);
            d.oc = test_between(150, 230);
            for (int a = i % 3; a < 3; a++) /* a volume, an image, a line */
                d.in[a] = a == 2 ? test_between(9, 20) : 2;
            d.in[2] += sn_max(130 - d.n * d.in[0] * d.in[1] * d.in[2], 0) / 2;
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.w_dtype = SONDE_DTYPE_F32;
            d.in_block = d.out_block = TILES_BLOCK;
            CHECK(set_out(&d, none));
            CHECK(sn_conv_images_pay(&d));
            d.images = true;
            check(&d, lv, test_rand() % 2, i % 4 ? 2 : 1, i % 4 > 1 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* A step of narrow pixels reads more pixels than its own, with weights of zero: what is not finite
 * there must not get into the sum. */
TEST(infinities_do_not_leave_their_windows)
{
    enum { SIZE = 9, PIXELS = SIZE * SIZE };
    sonde_error err = {0};
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 5; i++) {
            sn_conv_desc d = unit;
            const bool plain = i % 2;
            const int64_t pad_end[3] = {0, 1, 1}, c = plain ? 3 : TILES_BLOCK;
            const int64_t wd[4] = {TILES_BLOCK, c, 3, 3};
            d.c = c;
            d.oc = d.out_block = TILES_BLOCK;
            d.in_block = plain ? 0 : TILES_BLOCK;
            d.packed = d.tiles = true;
            d.w_dtype = i == 4 ? SONDE_DTYPE_F32 : i / 2 ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F16;
            for (int a = 1; a < 3; a++) {
                d.in[a] = SIZE;
                d.kernel[a] = 3;
                d.pad[a] = 1;
            }
            CHECK(set_out(&d, pad_end));
            float *x = random_floats((size_t)(c * PIXELS)),
                  *w = random_floats((size_t)(16 * c * 9));
            float y[PIXELS * TILES_BLOCK];
            const int64_t at = 4 * SIZE + 4; /* in the middle */
            x[plain ? PIXELS + at : at * TILES_BLOCK + 5] = INFINITY;
            void *packed = packed_rounded(
                sn_conv_tiles_pack_id(d.w_dtype, wd, 4, 1, d.in_block, d.out_block, lv->flags), w,
                (size_t)(16 * c * 9), wd, 4, sn_conv_tiles_pack_arg(1, plain, 3, 1), lv->flags);
            sn_conv_plan p;
            CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 20, 1, &err));
            void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
            sn_conv_run(&p, x, packed, NULL, NULL, y, space, NULL);
            for (int j = 0; j < PIXELS; j++) {
                const bool near = abs(j / SIZE - 4) <= 1 && abs(j % SIZE - 4) <= 1;
                CHECK_MSG(isfinite(y[j * TILES_BLOCK]) != near, "%s: pixel %d is %g", lv->name, j,
                          (double)y[j * TILES_BLOCK]);
            }
            free(x), free(w), free(packed), free(space);
        }
}

TEST(gates_are_factors_of_the_input_before_it_is_rounded)
{
    enum { IMAGES = 2, C = 40, LANES = 48, OC = 20, OUT_LANES = 32, PIXELS = 50 };
    sonde_error err = {0};
    for (const level *lv = levels(); lv->name; lv++) {
        sn_conv_desc d = unit;
        const int64_t wd[4] = {OC, C, 1, 1};
        d.n = IMAGES;
        d.c = C;
        d.oc = OC;
        d.in_block = d.out_block = TILES_BLOCK;
        d.packed = d.tiles = true;
        d.w_dtype = lv->flags % 3 == 2   ? SONDE_DTYPE_F32
                    : lv->flags % 3 == 1 ? SONDE_DTYPE_BF16
                                         : SONDE_DTYPE_F16;
        d.in[1] = 5;
        d.in[2] = 10;
        CHECK(set_out(&d, (const int64_t[3]){0}));
        float *x = random_floats(IMAGES * C * PIXELS), *w = random_floats(OC * C);
        float *gates = calloc(IMAGES * LANES, sizeof *gates), want[IMAGES * OUT_LANES * PIXELS];
        for (int i = 0; i < IMAGES * LANES; i++)
            gates[i] = i % LANES < C ? test_randf() : 0;
        float *xb = to_blocked(x, IMAGES, C, PIXELS, TILES_BLOCK), y[IMAGES * OUT_LANES * PIXELS];
        void *packed = packed_rounded(
            sn_conv_tiles_pack_id(d.w_dtype, wd, 4, 1, TILES_BLOCK, TILES_BLOCK, lv->flags), w,
            OC * C, wd, 4, sn_conv_tiles_pack_arg(1, false, 1, 1), lv->flags);
        sn_conv_plan p;
        CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 20, 1, &err));
        void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
        const sn_conv_call c = {.p = &p, .w = packed, .x = xb, .y = y, .workspace = space};
        sn_conv_tiles_run(&c, &(sn_conv_gates){gates, LANES}, NULL);
        for (int i = 0; i < IMAGES * C * PIXELS; i++)
            x[i] *= gates[i / PIXELS / C * LANES + i / PIXELS % C];
        float *scaled = to_blocked(x, IMAGES, C, PIXELS, TILES_BLOCK);
        sn_conv_run(&p, scaled, packed, NULL, NULL, want, space, NULL);
        for (int i = 0; i < IMAGES * OUT_LANES * PIXELS; i++)
            CHECK_MSG(y[i] == want[i], "%s: element %d is %g, expected %g", lv->name, i,
                      (double)y[i], (double)want[i]);
        free(x), free(w), free(gates), free(xb), free(packed), free(space), free(scaled);
    }
}

/* Pixels far apart, of lines, images and volumes, some of whose last pixels are not read. */
TEST(convolution_1x1_with_strides_matches_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 80 && !test_errors; i++) {
            static const int64_t none[3];
            sn_conv_desc d = unit;
            d.n = test_between(i % 20 ? 1 : 0, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = i % 5 ? 1 : 2;
            d.c = d.groups == 1 ? test_between(1, 40) : 2 * block;
            d.oc = d.groups == 1 ? test_between(1, 130) : 12 * block;
            for (int a = i % 3; a < 3; a++) {
                d.in[a] = test_between(1, a == 0 ? 5 : 30);
                d.stride[a] = test_between(1, 3);
                d.pad[a] = i % 8 == 7;
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = test_rand() % 4 != 0;
            d.w_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.in_block = d.out_block = block;
            if (set_out(&d, none))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* Most pixels miss taps, and few miss the same ones. */
TEST(long_kernels_and_large_dilations_match_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 60 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = i % 3 ? 1 : 2;
            d.c = d.groups == 1 ? test_between(1, 20) : d.groups * block;
            d.oc = d.groups == 1 ? test_between(1, 40) : d.groups * block;
            for (int a = i % 2 ? 1 : 2; a < 3; a++) { /* a line, or an image */
                const bool dilated = i % 4 > 1;
                d.in[a] = test_between(1, i % 2 ? 12 : 40);
                d.kernel[a] = dilated ? 3 : test_between(5, i % 2 ? 7 : 40);
                d.dilation[a] = dilated ? test_between(2, 20) : 1;
                d.stride[a] = i % 5 ? 1 : test_between(1, 3);
                d.pad[a] = test_between(0, d.kernel[a] * d.dilation[a] / 2);
                pad_end[a] = test_between(0, d.kernel[a] * d.dilation[a] / 2);
            }
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.out_block = block;
            d.in_block = i % 7 == 0 && d.groups == 1 ? 0 : block;
            if (set_out(&d, pad_end))
                check(&d, lv, test_rand() % 2, 2, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* Segments begin and end at pixels of all kinds: with all taps, without the first, the last. */
TEST(long_sequences_are_cut_into_segments_and_match_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 3, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        int cut = 0;
        for (int i = 0; i < 16 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = i % 3 ? 1 : 2;
            d.c = d.groups == 1 ? test_between(1, i % 4 ? 40 : 12) : d.groups * block;
            d.oc = d.groups == 1 ? test_between(1, i % 4 ? 40 : 12) : d.groups * block;
            d.in[2] = test_between(150, 300);
            d.kernel[2] = i % 4 ? test_between(2, 4) : test_between(20, 60);
            d.dilation[2] = i % 4 == 1 ? test_between(2, 150) : 1;
            d.stride[2] = i % 5 ? 1 : test_between(1, 3);
            d.pad[2] = test_between(0, d.kernel[2] * d.dilation[2] / 2);
            pad_end[2] = test_between(0, d.kernel[2] * d.dilation[2] / 2);
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.out_block = block;
            d.in_block = i % 7 == 0 && d.groups == 1 ? 0 : block;
            if (!set_out(&d, pad_end))
                continue;
            sn_conv_plan p;
            sonde_error err = {0};
            CHECK_OK(sn_conv_plan_make(&p, &d, lv->flags, 1 << 16, 3, &err));
            cut += p.kind == SN_CONV_DIRECT && p.segs > 1;
            check(&d, lv, test_rand() % 2, 3, pool);
        }
        CHECK_MSG(cut > 3 || test_errors, "%s: %d", lv->name, cut);
    }
    sn_pool_free(pool);
}

TEST(winograd_stays_within_its_bound_on_random_shapes)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const unsigned block = sn_conv_block(lv->flags);
        for (int i = 0; i < 60 && !test_errors; i++) {
            sn_conv_desc d = unit;
            int64_t pad_end[3] = {0};
            d.n = test_between(1, 2);
            d.variant = (unsigned)test_between(0, SN_VARIANTS);
            d.groups = i % 3 ? 1 : 2;
            d.c = d.groups == 1 ? test_between(1, 70) : d.groups * block * test_between(1, 2);
            d.oc = d.groups == 1 ? test_between(1, 75) : d.groups * block * test_between(1, 3);
            for (int a = 1; a < 3; a++) {
                d.kernel[a] = 3;
                d.dilation[a] = i % 4 ? 1 : test_between(1, 5);
                d.in[a] = test_between(1, 19);
                d.pad[a] = test_between(0, 3 * d.dilation[a]);
                pad_end[a] = test_between(0, 3 * d.dilation[a]);
            }
            if (i % 5 == 1) /* a volume */
                random_window(&d, 0, 4, 3, pad_end);
            d.act = random_act();
            d.residual = test_rand() % 2;
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.winograd = i % 2 ? 4 : 2;
            d.in_block = d.out_block = block;
            if (set_out(&d, pad_end) && d.dilation[1] <= d.out[1] && d.dilation[2] <= d.out[2])
                check(&d, lv, test_rand() % 2, i % 2 + 1, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* A convolution that may choose takes Winograd's F(m×m), or for 0 the direct way. */
static void check_way(int m, int64_t channels, int64_t groups, int64_t image, int64_t images,
                      int64_t stride)
{
    sonde_error err = {0};
    sn_conv_desc d = unit;
    sn_conv_plan p;
    sn_cpu cpu;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    d.n = images;
    d.c = d.oc = channels;
    d.groups = groups;
    d.packed = true;
    d.winograd = SN_CONV_FREE;
    d.in_block = d.out_block = sn_conv_block(cpu.flags);
    for (int a = 1; a < 3; a++) {
        d.in[a] = image;
        d.kernel[a] = 3;
        d.pad[a] = 1;
        d.stride[a] = stride;
    }
    CHECK(set_out(&d, (const int64_t[3]){0, 1, 1}));
    CHECK_OK(sn_conv_plan_make(&p, &d, cpu.flags, 1 << 20, 2, &err));
    CHECK_EQ(p.d.winograd, m);
    CHECK_EQ(p.kind, m ? SN_CONV_WINOGRAD : SN_CONV_DIRECT);
}

TEST(winograd_is_chosen_where_it_saves_more_than_its_transforms_cost)
{
    check_way(4, 64, 1, 56, 1, 1);
    check_way(4, 448, 4, 28, 1, 1);
    check_way(4, 256, 1, 14, 1, 1);
    check_way(0, 512, 1, 4, 1, 1);  /* one patch is too little for the weights … */
    check_way(4, 512, 1, 4, 16, 1); /* … sixteen images have enough */
    check_way(0, 64, 1, 1, 1, 1);
    check_way(0, 64, 1, 56, 1, 2);
}

TEST(layers_of_known_networks_match_the_naive_sum)
{
    static const int64_t layers[][7] = {/* c, oc, groups, image, kernel, stride, pad */
                                        {3, 32, 1, 32, 3, 2, 1},   {3, 64, 1, 30, 7, 2, 3},
                                        {32, 32, 2, 28, 3, 2, 1},  {64, 64, 4, 14, 3, 1, 1},
                                        {48, 160, 1, 14, 1, 2, 0}, {400, 400, 25, 7, 3, 1, 1},
                                        {80, 400, 1, 7, 1, 1, 0},  {64, 80, 1, 7, 3, 1, 1}};
    for (const level *lv = levels(); lv->name; lv++) {
        for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
            const int64_t *l = layers[i];
            const int64_t pad_end[3] = {0, l[6], l[6]};
            sn_conv_desc d = unit;
            d.c = l[0];
            d.oc = l[1];
            d.groups = l[2];
            d.packed = true;
            d.w_dtype = weight_dtype(test_rand());
            d.act.kind = SN_ACT_RELU;
            d.out_block = sn_conv_block(lv->flags);
            d.in_block = l[0] == 3 ? 0 : d.out_block;
            for (int a = 1; a < 3; a++) {
                d.in[a] = l[3];
                d.kernel[a] = l[4];
                d.stride[a] = l[5];
                d.pad[a] = l[6];
            }
            CHECK(set_out(&d, pad_end));
            check(&d, lv, true, 2, NULL);
        }
    }
}

TEST_MAIN()
