/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing as a driver: elements of every size, blocked images, ramps that linear weights keep. */
#include "compute/conv.h"
#include "compute/resize.h"

#include "levels.h"

enum { MOST = 4096 };

/* Room for every table a test here may need. */
static sn_resize_scratch scratch(void)
{
    static int64_t index[4][MOST];
    static float weight[4][MOST], buffers[2][16 * MOST];
    sn_resize_scratch s = {.buffers = {buffers[0], buffers[1]}};
    for (int i = 0; i < 4; i++) {
        s.index[i] = index[i];
        s.weight[i] = weight[i];
    }
    return s;
}

static sn_resize plan(sn_resize_mode mode, sonde_dtype t, int rank, const int64_t *in,
                      const int64_t *out)
{
    sn_resize r = {.how = {.mode = mode, .coords = SN_COORDS_ASYMMETRIC, .cubic_a = -0.75},
                   .dtype = t,
                   .rank = rank};
    r.how.round = SN_ROUND_FLOOR;
    for (int i = 0; i < rank; i++) {
        r.axes[i] = (sn_resize_axis){.in = in[i], .out = out[i], .roi_end = 1};
        sn_resize_by_ratio(&r.axes[i], out[i], in[i]);
    }
    return r;
}

TEST(nearest_picks_elements_of_every_size)
{
    static const sonde_dtype types[] = {SONDE_DTYPE_U8, SONDE_DTYPE_U16, SONDE_DTYPE_U32,
                                        SONDE_DTYPE_U64, SONDE_DTYPE_C128};
    const sn_resize_scratch s = scratch();
    for (int trial = 0; trial < 100; trial++) {
        const size_t bytes = (size_t)1 << (trial % 5);
        const int64_t in[2] = {test_between(1, 6), test_between(1, 6)},
                      out[2] = {test_between(1, 9), test_between(1, 9)};
        const sn_resize r = plan(SN_RESIZE_NEAREST, types[trial % 5], 2, in, out);
        uint8_t x[36 * 16], y[81 * 16];
        for (size_t i = 0; i < sizeof x; i++)
            x[i] = (uint8_t)test_rand();
        sn_resize_run(&r, y, x, &s, NULL);
        for (int64_t o = 0; o < out[0] * out[1]; o++) {
            const int64_t row = o / out[1] * in[0] / out[0], column = o % out[1] * in[1] / out[1];
            CHECK_MSG(memcmp(y + (size_t)o * bytes, x + (size_t)(row * in[1] + column) * bytes,
                             bytes) == 0,
                      "trial %d, element %lld", trial, (long long)o);
        }
    }
}

TEST(blocked_images_are_resized_like_plain_ones_on_every_cpu_level)
{
    const int64_t in[4] = {2, 19, 5, 4}, out[4] = {2, 19, 7, 9};
    const sn_resize_scratch s = scratch();
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (const level *l = levels(); l->name; l++)
        for (int mode = SN_RESIZE_NEAREST; mode < SN_RESIZE_MODES; mode++) {
            sn_resize r = plan((sn_resize_mode)mode, SONDE_DTYPE_F32, 4, in, out);
            const int64_t block = sn_conv_block(l->flags);
            float *x = random_floats(2 * 19 * 20), *xb = to_blocked(x, 2, 19, 20, block),
                  *y = random_floats(2 * 19 * 63), *yb = random_floats(2 * 32 * 63);
            r.cpu_flags = l->flags;
            sn_resize_run(&r, y, x, &s, pool);
            r.block = (int)block;
            sn_resize_run(&r, yb, xb, &s, pool);
            float worst = 0;
            for (int64_t i = 0; i < 2 * 19 * 63; i++)
                worst = fmaxf(worst, fabsf(y[i] - blocked_at(yb, 19, 63, block, i / 63 / 19,
                                                             i / 63 % 19, i % 63)));
            free(x);
            free(xb);
            free(y);
            free(yb);
            CHECK_MSG(worst < 1e-5f, "%s, mode %d: off by %g", l->name, mode, (double)worst);
        }
    sn_pool_free(pool);
}

TEST(linear_weights_keep_a_ramp_in_every_type)
{
    const int64_t in[1] = {5}, out[1] = {9};
    const sn_resize_scratch s = scratch();
    sn_resize r = plan(SN_RESIZE_LINEAR, SONDE_DTYPE_F64, 1, in, out);
    r.how.coords = SN_COORDS_ALIGN_CORNERS;
    const double x[5] = {0, 2, 4, 6, 8};
    double y[9];
    sn_resize_run(&r, y, x, &s, NULL);
    for (int i = 0; i < 9; i++)
        CHECK_MSG(fabs(y[i] - i) < 1e-6, "element %d: %g", i, y[i]);
    r.dtype = SONDE_DTYPE_U8;
    const uint8_t bytes[5] = {0, 2, 4, 6, 8};
    uint8_t z[9];
    sn_resize_run(&r, z, bytes, &s, NULL);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(z[i], i);
}

TEST(what_keeps_its_size_is_copied)
{
    const int64_t dims[2] = {3, 4};
    const sn_resize_scratch s = scratch();
    const sn_resize r = plan(SN_RESIZE_CUBIC, SONDE_DTYPE_F32, 2, dims, dims),
                    scalar = {.how = {.mode = SN_RESIZE_NEAREST}, .dtype = SONDE_DTYPE_U64};
    float x[12], y[12];
    for (int i = 0; i < 12; i++)
        x[i] = test_randf();
    CHECK(!sn_resize_changes(&r, 0) && !sn_resize_changes(&r, 1));
    sn_resize_run(&r, y, x, &s, NULL);
    CHECK(memcmp(x, y, sizeof x) == 0);
    uint64_t one = 77, copy = 0;
    sn_resize_run(&scalar, &copy, &one, &s, NULL);
    CHECK(copy == 77);
}

TEST(outside_of_the_region_stands_what_was_asked_for)
{
    const int64_t in[1] = {4}, out[1] = {4};
    const sn_resize_scratch s = scratch();
    for (int mode = SN_RESIZE_NEAREST; mode <= SN_RESIZE_LINEAR; mode++) {
        sn_resize r = plan((sn_resize_mode)mode, SONDE_DTYPE_F32, 1, in, out);
        r.how.coords = SN_COORDS_TF_CROP_AND_RESIZE;
        r.outside = -5;
        r.axes[0].roi_begin = 0;
        r.axes[0].roi_end = 2; /* positions 0, 2, 4, 6 */
        const float x[4] = {1, 2, 3, 4};
        float y[4];
        sn_resize_run(&r, y, x, &s, NULL);
        CHECK_MSG(y[0] == 1 && y[1] == 3 && y[2] == -5 && y[3] == -5, "mode %d: %g %g %g %g", mode,
                  (double)y[0], (double)y[1], (double)y[2], (double)y[3]);
    }
}

TEST_MAIN()
