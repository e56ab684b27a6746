/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation over the channels of an image, plain and in blocks, against the formula in double.
 */
#include "compute/channel_norm.h"
#include "compute/conv.h"

#include "levels.h"

static double expected(const float *x, int64_t channels, int64_t pixels, int64_t c, bool rms)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < channels && !rms; i++)
        mean += (double)x[i * pixels] / (double)channels;
    for (int64_t i = 0; i < channels; i++)
        squares += ((double)x[i * pixels] - mean) * ((double)x[i * pixels] - mean);
    return ((double)x[c * pixels] - mean) / sqrt(squares / (double)channels + 1e-3);
}

static void check_case(const level *l, int64_t channels, int64_t pixels, int form, sn_pool *pool)
{
    const bool rms = form & 1, blocked = form & 2, shifted = form & 4;
    const int64_t block = blocked ? sn_conv_block(l->flags) : 0, count = 2 * channels * pixels;
    float *x = random_floats((size_t)count), *scale = random_floats((size_t)channels);
    float *bias = random_floats((size_t)channels);
    float *image = block ? to_blocked(x, 2, channels, pixels, block) : x;
    float *y = calloc((size_t)(2 * (channels + 16) * pixels), sizeof *y);
    sn_channel_norm p = {.images = 2,
                         .channels = channels,
                         .pixels = pixels,
                         .block = block,
                         .rms = rms,
                         .epsilon = 1e-3f,
                         .threads = 3};
    sn_channel_norm_plan(&p, l->flags);
    void *workspace = malloc(p.workspace.bytes + 64);
    sn_channel_norm_run(&p, y, image, scale, shifted ? bias : NULL, workspace, pool);
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = i / pixels / channels, c = i / pixels % channels, at = i % pixels;
        const float got = block ? blocked_at(y, channels, pixels, block, n, c, at) : y[i];
        const double want =
            expected(x + n * channels * pixels + at, channels, pixels, c, rms) * (double)scale[c] +
            (shifted ? (double)bias[c] : 0.0);
        worst = fmax(worst, fabs((double)got - want));
    }
    if (block) {
        const int64_t rest = (block - channels % block) % block, blocks = (channels + rest) / block;
        for (int64_t i = 0; i < 2 * pixels * rest; i++)
            CHECK(y[((i / rest / pixels + 1) * blocks - 1) * pixels * block +
                    i / rest % pixels * block + block - 1 - i % rest] == 0.0f);
        free(image);
    }
    CHECK_MSG(worst < 2e-5, "%s, %lld channels, %lld pixels, form %d: off by %g", l->name,
              (long long)channels, (long long)pixels, form, worst);
    free(x);
    free(y);
    free(scale);
    free(bias);
    free(workspace);
}

TEST(pixels_are_normalised_over_their_channels_on_every_cpu_level)
{
    static const int64_t channels[] = {1, 7, 16, 40, 65}, pixels[] = {1, 8, 21};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (const level *l = levels(); l->name; l++)
        for (size_t c = 0; c < sizeof channels / sizeof channels[0]; c++)
            for (size_t i = 0; i < sizeof pixels / sizeof pixels[0]; i++)
                for (int form = 0; form < 8; form++)
                    check_case(l, channels[c], pixels[i], form, pool);
    sn_pool_free(pool);
}

TEST_MAIN()
