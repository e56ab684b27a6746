/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of ramps, whose samples are known, and regions that lie nowhere. */
#include "compute/roi.h"

#include "levels.h"

enum { H = 12, W = 16, CHANNELS = 2 };

/* Channel 0 is its column, channel 1 its row. */
static void ramps(float *x, double *wide)
{
    for (int i = 0; i < H * W; i++) {
        wide[i] = x[i] = (float)(i % W);
        wide[H * W + i] = x[H * W + i] = (float)(i / W);
    }
}

TEST(averages_of_a_ramp_are_the_middles_of_the_bins)
{
    float x[CHANNELS * H * W], y[CHANNELS * 6];
    double wide[CHANNELS * H * W], z[CHANNELS * 6];
    const float rois[4] = {2, 1, 8, 9}; /* 6 wide, 8 high */
    const int64_t batch[1] = {0};
    sn_roi r = {.kind = SN_ROI_ALIGN_AVG,
                .dtype = SONDE_DTYPE_F32,
                .images = 1,
                .channels = CHANNELS,
                .height = H,
                .width = W,
                .regions = 1,
                .bins_y = 2,
                .bins_x = 3,
                .scale = 1.0};
    const sn_elems regions = {SONDE_DTYPE_F32, (void *)(uintptr_t)rois};
    ramps(x, wide);
    for (r.ratio = 0; r.ratio < 3; r.ratio++) {
        r.dtype = SONDE_DTYPE_F32;
        sn_roi_run(&r, y, x, regions, batch, NULL);
        r.dtype = SONDE_DTYPE_F64;
        sn_roi_run(&r, z, wide, regions, batch, NULL);
        for (int i = 0; i < 6; i++) {
            const double column = 2 + 2 * (i % 3) + 1, row = 1 + 4 * (i / 3) + 2;
            CHECK_MSG(fabs((double)y[i] - column) < 1e-5 && fabs((double)y[6 + i] - row) < 1e-5,
                      "ratio %lld, bin %d: %g, %g", (long long)r.ratio, i, (double)y[i],
                      (double)y[6 + i]);
            CHECK(fabs(z[i] - column) < 1e-12 && fabs(z[6 + i] - row) < 1e-12);
        }
    }
}

TEST(pooled_bins_have_the_largest_pixel_of_their_box)
{
    float x[CHANNELS * H * W], y[2 * CHANNELS * 4];
    double wide[CHANNELS * H * W];
    /* image, corners; the second region lies outside and has no pixels. */
    const float rois[10] = {0, 4, 2, 7, 9, 0, 100, 100, 110, 110};
    const sn_roi r = {.kind = SN_ROI_POOL,
                      .dtype = SONDE_DTYPE_F32,
                      .images = 1,
                      .channels = CHANNELS,
                      .height = H,
                      .width = W,
                      .regions = 2,
                      .bins_y = 2,
                      .bins_x = 2,
                      .scale = 1.0};
    ramps(x, wide);
    sn_roi_run(&r, y, x, (sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)rois}, NULL, NULL);
    const float want[16] = {5, 7, 5, 7, 5, 5, 9, 9};
    CHECK(memcmp(y, want, sizeof want) == 0);
}

TEST(regions_in_threads_are_those_of_one_thread)
{
    enum { REGIONS = 40 };
    static float x[3 * CHANNELS * H * W], rois[REGIONS * 4], y[2][REGIONS * CHANNELS * 9];
    int64_t batch[REGIONS];
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = test_randf();
    for (int i = 0; i < REGIONS * 4; i++)
        rois[i] = 40 * test_randf();
    rois[5] = NAN;
    rois[10] = 1e30f;
    for (int i = 0; i < REGIONS; i++)
        batch[i] = test_between(0, 2);
    for (int kind = SN_ROI_ALIGN_AVG; kind <= SN_ROI_ALIGN_MAX; kind++) {
        const sn_roi r = {.kind = (sn_roi_kind)kind,
                          .dtype = SONDE_DTYPE_F32,
                          .images = 3,
                          .channels = CHANNELS,
                          .height = H,
                          .width = W,
                          .regions = REGIONS,
                          .bins_y = 3,
                          .bins_x = 3,
                          .scale = 0.5,
                          .half_pixel = true};
        const sn_elems regions = {SONDE_DTYPE_F32, rois};
        CHECK_EQ(sn_roi_without_image(&r, regions, batch), -1);
        sn_roi_run(&r, y[0], x, regions, batch, pool);
        sn_roi_run(&r, y[1], x, regions, batch, NULL);
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
    }
    sn_pool_free(pool);
}

TEST(a_region_without_an_image_is_found)
{
    const double rois[10] = {1, 0, 0, 1, 1, -1, 0, 0, 1, 1};
    const int64_t batch[2] = {0, 2};
    const sn_roi r = {.images = 2, .regions = 2};
    const sn_elems regions = {SONDE_DTYPE_F64, (void *)(uintptr_t)rois};
    CHECK_EQ(sn_roi_without_image(&r, regions, batch), 1);
    CHECK_EQ(sn_roi_without_image(&r, regions, NULL), 1);
    const sn_roi none = {.images = 2};
    CHECK_EQ(sn_roi_without_image(&none, regions, batch), -1);
}

TEST_MAIN()
