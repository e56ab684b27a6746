/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling at known places of small images: pixels, between them, outside; one to three dims. */
#include "compute/grid_sample.h"

#include "levels.h"

static sn_elems f32(const float *p)
{
    return (sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)p};
}

/* One row of four pixels at one place. */
static float sample(sn_sample_mode mode, sn_sample_padding padding, bool align, float at)
{
    const float x[4] = {1, 2, 4, 8};
    float y = NAN;
    const sn_grid_sample g = {.mode = mode,
                              .padding = padding,
                              .align_corners = align,
                              .spatial = 1,
                              .images = 1,
                              .channels = 1,
                              .in = {4},
                              .out = {1}};
    sn_grid_sample_run(&g, f32(&y), f32(x), f32(&at), NULL);
    return y;
}

TEST(places_of_a_row_are_what_the_formula_says)
{
    static const struct {
        sn_sample_mode mode;
        sn_sample_padding padding;
        bool align;
        float at, want;
    } rows[] = {
        {SN_SAMPLE_NEAREST, SN_SAMPLE_ZEROS, true, -1, 1},
        {SN_SAMPLE_NEAREST, SN_SAMPLE_ZEROS, true, 1, 8},
        {SN_SAMPLE_NEAREST, SN_SAMPLE_ZEROS, false, -0.75f, 1},
        {SN_SAMPLE_NEAREST, SN_SAMPLE_ZEROS, true, 3, 0},
        {SN_SAMPLE_NEAREST, SN_SAMPLE_BORDER, true, 3, 8},
        {SN_SAMPLE_NEAREST, SN_SAMPLE_REFLECTION, true, 5.0f / 3, 4},
        {SN_SAMPLE_LINEAR, SN_SAMPLE_ZEROS, true, 0, 3},
        {SN_SAMPLE_LINEAR, SN_SAMPLE_ZEROS, false, 1, 4}, /* half of the last pixel */
        {SN_SAMPLE_LINEAR, SN_SAMPLE_BORDER, false, 1, 8},
        {SN_SAMPLE_LINEAR, SN_SAMPLE_BORDER, false, INFINITY, 1},
        {SN_SAMPLE_LINEAR, SN_SAMPLE_ZEROS, false, NAN, 0},
        {SN_SAMPLE_CUBIC, SN_SAMPLE_BORDER, true, 1, 8},
        {SN_SAMPLE_CUBIC, SN_SAMPLE_ZEROS, true, -1.0f / 3, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const float got = sample(rows[i].mode, rows[i].padding, rows[i].align, rows[i].at);
        CHECK_MSG(fabsf(got - rows[i].want) < 1e-5f, "row %zu: %g, expected %g", i, (double)got,
                  (double)rows[i].want);
    }
}

TEST(the_identity_map_gives_the_image_back_in_every_rank_and_in_threads)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    const int64_t size[3] = {5, 4, 7};
    for (int spatial = 2; spatial <= 3; spatial++)
        for (int align = 0; align < 2; align++) {
            float theta[2 * 12] = {0}, *x = random_floats(2 * 3 * 140), grid[2 * 140 * 3],
                            y[2 * 3 * 140] = {0};
            sn_affine_grid a = {.align_corners = align, .spatial = spatial, .images = 2};
            sn_grid_sample g = {.mode = SN_SAMPLE_LINEAR,
                                .align_corners = align,
                                .spatial = spatial,
                                .images = 2,
                                .channels = 3};
            int64_t pixels = 1;
            for (int i = 0; i < spatial; i++) {
                a.out[i] = g.in[i] = g.out[i] = size[i];
                pixels *= size[i];
                theta[i * (spatial + 1) + i] = theta[(spatial + i) * (spatial + 1) + i] = 1;
            }
            sn_affine_grid_run(&a, f32(grid), f32(theta));
            sn_grid_sample_run(&g, f32(y), f32(x), f32(grid), pool);
            float worst = 0;
            for (int64_t i = 0; i < 6 * pixels; i++)
                worst = fmaxf(worst, fabsf(y[i] - x[i]));
            free(x);
            CHECK_MSG(worst < 1e-5f, "%d dims, align %d: off by %g", spatial, align, (double)worst);
        }
    sn_pool_free(pool);
}

/* The same from an image in f64, which goes tap by tap. */
static void compare_linear(const sn_grid_sample *g, sn_pool *pool)
{
    const int64_t in = g->in[0] * g->in[1], out = g->out[0] * g->out[1],
                  planes = g->images * g->channels;
    float *x = random_floats((size_t)(planes * in)), *y = random_floats((size_t)(planes * out));
    float *grid = random_floats((size_t)(g->images * out * 2));
    double *wide = malloc((size_t)(planes * in + 1) * sizeof *wide);
    double *want = malloc((size_t)(planes * out + 1) * sizeof *want);
    for (int64_t i = 0; i < g->images * out * 2; i++)
        grid[i] *= 1.5f; /* some are outside */
    grid[0] = NAN;
    grid[g->images * out] = -INFINITY;
    grid[g->images * out * 2 - 1] = 1e30f;
    x[0] = INFINITY; /* outside counts as zero, whatever the border is */
    for (int64_t i = 0; i < planes * in; i++)
        wide[i] = (double)x[i];
    sn_grid_sample_run(g, f32(y), f32(x), f32(grid), pool);
    sn_grid_sample_run(g, (sn_elems){SONDE_DTYPE_F64, want}, (sn_elems){SONDE_DTYPE_F64, wide},
                       f32(grid), NULL);
    for (int64_t i = 0; i < planes * out; i++)
        CHECK_MSG((double)y[i] == want[i] || fabs((double)y[i] - want[i]) < 1e-5,
                  "padding %d, align %d, element %lld: %g, expected %g", (int)g->padding,
                  g->align_corners, (long long)i, (double)y[i], want[i]);
    free(x), free(y), free(grid), free(wide), free(want);
}

TEST(four_corners_give_what_a_list_of_taps_gives)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (int i = 0; i < 60 && !test_errors; i++) {
        const sn_grid_sample g = {.mode = SN_SAMPLE_LINEAR,
                                  .padding = (sn_sample_padding)(i % 3),
                                  .align_corners = i & 1,
                                  .spatial = 2,
                                  .images = test_between(1, 4),
                                  .channels = test_between(1, 5),
                                  .in = {test_between(1, 9), test_between(1, 9)},
                                  .out = {test_between(1, 12), test_between(1, 30)}};
        compare_linear(&g, i & 2 ? pool : NULL);
    }
    sn_pool_free(pool);
}

TEST(nearest_moves_elements_of_any_size)
{
    const uint64_t x[6] = {1, 2, 3, 40, 50, 60};
    const double grid[2] = {1.0, -9.0};
    uint64_t y[4] = {9, 9, 9, 9};
    const sn_grid_sample g = {.mode = SN_SAMPLE_NEAREST,
                              .align_corners = true,
                              .spatial = 1,
                              .images = 1,
                              .channels = 2,
                              .in = {3},
                              .out = {2}};
    sn_grid_sample_run(&g, (sn_elems){SONDE_DTYPE_U64, y},
                       (sn_elems){SONDE_DTYPE_U64, (void *)(uintptr_t)x},
                       (sn_elems){SONDE_DTYPE_F64, (void *)(uintptr_t)grid}, NULL);
    CHECK(y[0] == 3 && y[1] == 0 && y[2] == 60 && y[3] == 0);
    sn_grid_sample none = g;
    none.images = 0;
    sn_grid_sample_run(&none, (sn_elems){SONDE_DTYPE_U64, NULL}, (sn_elems){SONDE_DTYPE_U64, NULL},
                       (sn_elems){SONDE_DTYPE_F64, NULL}, NULL);
}

TEST_MAIN()
