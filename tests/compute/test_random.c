/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors: a seed decides, and many numbers have the moments they should. */
#include "compute/random.h"

#include "test.h"

enum { N = 20000 };
static double a[N], b[N];

static sn_elems f64(double *p)
{
    return (sn_elems){SONDE_DTYPE_F64, p};
}

static double mean_of(const double *x)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += x[i];
    return sum / (double)N;
}

TEST(a_seed_gives_the_same_numbers_and_another_seed_others)
{
    sn_random_uniform(7, 0, 1, f64(a), N);
    sn_random_uniform(7, 0, 1, f64(b), N);
    CHECK(memcmp(a, b, sizeof a) == 0);
    sn_random_uniform(8, 0, 1, f64(b), N);
    CHECK(memcmp(a, b, sizeof a) != 0);
}

TEST(uniform_and_normal_numbers_have_their_moments)
{
    double squares = 0;
    sn_random_uniform(1, -2, 6, f64(a), N);
    for (int i = 0; i < N; i++)
        CHECK(a[i] >= -2 && a[i] < 6);
    CHECK_MSG(fabs(mean_of(a) - 2) < 0.1, "mean %g", mean_of(a));
    sn_random_normal(2, 3, 0.5, f64(a), N);
    for (int i = 0; i < N; i++)
        squares += (a[i] - 3) * (a[i] - 3);
    CHECK_MSG(fabs(mean_of(a) - 3) < 0.02, "mean %g", mean_of(a));
    CHECK_MSG(fabs(squares / (double)N - 0.25) < 0.02, "variance %g", squares / (double)N);
}

TEST(choices_follow_their_probabilities)
{
    for (int i = 0; i < N; i++)
        b[i] = 0.25;
    sn_random_bernoulli(3, f64(a), f64(b), N);
    CHECK_MSG(fabs(mean_of(a) - 0.25) < 0.02, "mean %g", mean_of(a));
    static int32_t picked[N];
    const float logs[4] = {logf(1), -INFINITY, logf(3), 100}, one[1] = {-5};
    const sn_elems y = {SONDE_DTYPE_I32, picked};
    sn_random_multinomial(4, y, (sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)logs}, 1, 3, N);
    int times[3] = {0};
    for (int i = 0; i < N; i++)
        times[picked[i]]++;
    CHECK_MSG(times[1] == 0 && abs(times[2] - 3 * N / 4) < N / 50, "%d, %d, %d", times[0], times[1],
              times[2]);
    sn_random_multinomial(4, y, (sn_elems){SONDE_DTYPE_F32, (void *)(uintptr_t)one}, 1, 1, 3);
    CHECK(picked[0] == 0 && picked[1] == 0 && picked[2] == 0);
}

/* The first reals of the Mersenne Twister with seed 42 are 0.3745, 0.9507, 0.7320, 0.5987, 0.1560.
 */
TEST(dropout_keeps_what_the_documented_generator_keeps)
{
    static const uint8_t want[5] = {0, 1, 1, 1, 0};
    float x[5] = {1, 2, 3, 4, 5}, y[5];
    uint8_t mask[5];
    sn_dropout_run(42, 0.5, (sn_elems){SONDE_DTYPE_F32, y}, (sn_elems){SONDE_DTYPE_F32, x}, mask,
                   5);
    CHECK(memcmp(mask, want, 5) == 0);
    for (int i = 0; i < 5; i++)
        CHECK(y[i] == (want[i] ? 2 * x[i] : 0));
    sn_dropout_run(42, 0.8, (sn_elems){SONDE_DTYPE_UNDEFINED, NULL}, (sn_elems){SONDE_DTYPE_F32, x},
                   mask, 5);
    CHECK(mask[1] == 1 && mask[0] + mask[2] + mask[3] + mask[4] == 0);
    sn_dropout_run(42, 0.5, (sn_elems){SONDE_DTYPE_F32, x}, (sn_elems){SONDE_DTYPE_F32, x}, NULL,
                   5);
    CHECK(memcmp(x, y, sizeof x) == 0);
}

TEST_MAIN()
