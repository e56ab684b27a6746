/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation, plain and blocked, against the formula in double. */
#include "compute/batchnorm.h"
#include "compute/conv.h"

#include "levels.h"

enum { CHANNELS = 19 };

typedef struct parameters {
    float scale[CHANNELS], bias[CHANNELS], mean[CHANNELS], variance[CHANNELS];
} parameters;

static sn_elems f32(const float *p)
{
    return (sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)p};
}

static parameters random_parameters(void)
{
    parameters p;
    for (int c = 0; c < CHANNELS; c++) {
        p.scale[c] = test_randf();
        p.bias[c] = test_randf();
        p.mean[c] = test_randf();
        p.variance[c] = 0.5f + fabsf(test_randf());
    }
    return p;
}

static sn_batchnorm_data data_of(const parameters *p, const float *x, float *y)
{
    return (sn_batchnorm_data){.x = f32(x),
                               .y = f32(y),
                               .scale = f32(p->scale),
                               .bias = f32(p->bias),
                               .mean = f32(p->mean),
                               .variance = f32(p->variance)};
}

static double expected(const parameters *p, float x, int64_t c, double epsilon)
{
    return ((double)x - (double)p->mean[c]) / sqrt((double)p->variance[c] + epsilon) *
               (double)p->scale[c] +
           (double)p->bias[c];
}

TEST(plain_and_blocked_images_match_the_formula_on_every_cpu_level)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    const parameters p = random_parameters();
    for (const level *l = levels(); l->name; l++)
        for (int64_t pixels = 1; pixels <= 37; pixels += 6)
            for (int blocked = 0; blocked < 2; blocked++) {
                const int64_t block = blocked ? sn_conv_block(l->flags) : 0;
                const int64_t n = 2 * CHANNELS * pixels;
                float *x = random_floats((size_t)n),
                      *in = block ? to_blocked(x, 2, CHANNELS, pixels, block) : x,
                      *y = calloc((size_t)(2 * 32 * pixels), sizeof *y);
                const sn_batchnorm b = {.images = 2,
                                        .channels = CHANNELS,
                                        .pixels = pixels,
                                        .block = block,
                                        .epsilon = 1e-3f,
                                        .cpu_flags = l->flags};
                const sn_batchnorm_data d = data_of(&p, in, y);
                sn_batchnorm_run(&b, &d, pool);
                double worst = 0;
                for (int64_t i = 0; i < n; i++) {
                    const int64_t image = i / pixels / CHANNELS, c = i / pixels % CHANNELS;
                    const float got =
                        block ? blocked_at(y, CHANNELS, pixels, block, image, c, i % pixels) : y[i];
                    const double want = expected(&p, x[i], c, (double)b.epsilon);
                    worst = fmax(worst, fabs((double)got - want));
                }
                if (block)
                    free(in);
                free(x);
                free(y);
                CHECK_MSG(worst < 1e-5, "%s, %lld pixels, block %lld: off by %g", l->name,
                          (long long)pixels, (long long)block, worst);
            }
    sn_pool_free(pool);
}

TEST(training_takes_the_batch_and_mixes_it_into_the_running_numbers)
{
    enum { PIXELS = 5, N = 3 * CHANNELS * PIXELS };
    const parameters p = random_parameters();
    float x[N], y[N], running_mean[CHANNELS], batch_variance[CHANNELS];
    for (int i = 0; i < N; i++)
        x[i] = test_randf();
    const sn_batchnorm b = {.images = 3,
                            .channels = CHANNELS,
                            .pixels = PIXELS,
                            .epsilon = 1e-5f,
                            .momentum = 0.75f,
                            .training = true};
    sn_batchnorm_data d = data_of(&p, x, y);
    d.running_mean = f32(running_mean);
    d.batch_variance = f32(batch_variance); /* the others are left out */
    sn_batchnorm_run(&b, &d, NULL);
    for (int c = 0; c < CHANNELS; c++) {
        parameters of_batch = p;
        double sum = 0, squares = 0;
        for (int i = 0; i < N; i++)
            if (i / PIXELS % CHANNELS == c)
                sum += (double)x[i];
        const double mean = sum / (3 * PIXELS);
        for (int i = 0; i < N; i++)
            if (i / PIXELS % CHANNELS == c)
                squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        of_batch.mean[c] = (float)mean;
        of_batch.variance[c] = (float)(squares / (3 * PIXELS));
        CHECK(fabs((double)running_mean[c] - (0.75 * (double)p.mean[c] + 0.25 * mean)) < 1e-6);
        CHECK(fabs((double)batch_variance[c] - squares / (3 * PIXELS)) < 1e-6);
        for (int i = 0; i < N; i++)
            if (i / PIXELS % CHANNELS == c)
                CHECK_MSG(fabs((double)y[i] - expected(&of_batch, x[i], c, 1e-5)) < 1e-4,
                          "element %d", i);
    }
}

TEST(other_float_types_may_be_mixed_and_nothing_is_written_for_no_images)
{
    double x[2] = {3.0, -1.0}, y[2] = {7.0, 7.0};
    const float scale[1] = {2.0f}, zero[1] = {0.0f};
    const uint16_t one[1] = {0x3c00}; /* f16 */
    sn_batchnorm b = {.images = 0, .channels = 1, .pixels = 2};
    const sn_batchnorm_data d = {.x = {SONDE_DTYPE_F64, x},
                                 .y = {SONDE_DTYPE_F64, y},
                                 .scale = f32(scale),
                                 .bias = f32(zero),
                                 .mean = {SONDE_DTYPE_F16, (void *)(uintptr_t)one},
                                 .variance = {SONDE_DTYPE_F16, (void *)(uintptr_t)one}};
    sn_batchnorm_run(&b, &d, NULL);
    CHECK(y[0] == 7.0 && y[1] == 7.0);
    b.images = 1;
    sn_batchnorm_run(&b, &d, NULL);
    CHECK(y[0] == 4.0 && y[1] == -4.0);
}

TEST_MAIN()
