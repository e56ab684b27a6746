/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its logarithm and the one-hot of the maximum along any axis, against plain C. */
#include "compute/softmax.h"

#include "levels.h"

/* One column in double; how far off y is. */
static double error_of(sn_softmax_kind kind, const float *y, const float *x, int64_t n,
                       int64_t step)
{
    double sum = 0, worst = 0;
    int64_t best = 0;
    for (int64_t r = 1; r < n; r++)
        if (x[r * step] > x[best * step])
            best = r;
    const double most = (double)x[best * step];
    for (int64_t r = 0; r < n; r++)
        sum += exp((double)x[r * step] - most);
    for (int64_t r = 0; r < n; r++) {
        const double v = (double)x[r * step] - most;
        const double want = kind == SN_SOFTMAX       ? exp(v) / sum
                            : kind == SN_LOG_SOFTMAX ? v - log(sum)
                                                     : (double)(r == best);
        worst = fmax(worst, fabs((double)y[r * step] - want));
    }
    return worst;
}

static void check_case(const level *l, sn_softmax_plan p, bool in_place, sn_pool *pool)
{
    const int64_t count = p.outer * p.n * p.inner;
    float *x = random_floats((size_t)count), *y = random_floats((size_t)count);
    double worst = 0;
    sn_softmax_choose_kernels(&p, l->flags);
    if (in_place)
        memcpy(y, x, (size_t)count * sizeof *y);
    sn_softmax_run(&p, y, in_place ? y : x, pool);
    for (int64_t i = 0; i < p.outer * p.inner; i++) {
        const int64_t at = i / p.inner * p.n * p.inner + i % p.inner;
        worst = fmax(worst, error_of(p.kind, y + at, x + at, p.n, p.inner));
    }
    CHECK_MSG(worst < 1e-5, "%s, kind %d, [%lld, %lld, %lld]: off by %g", l->name, (int)p.kind,
              (long long)p.outer, (long long)p.n, (long long)p.inner, worst);
    free(x);
    free(y);
}

TEST(every_axis_matches_the_formula_on_every_cpu_level)
{
    static const int64_t inner[] = {1, 2, 7, 8, 16, 49, 64, 100, 255, 256, 300};
    static const int64_t lengths[] = {1, 2, 5, 33, 130, 517};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    for (const level *l = levels(); l->name; l++)
        for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++)
            for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++)
                for (int kind = SN_SOFTMAX; kind <= SN_HARDMAX; kind++)
                    check_case(l,
                               (sn_softmax_plan){.kind = (sn_softmax_kind)kind,
                                                 .dtype = SONDE_DTYPE_F32,
                                                 .outer = 2,
                                                 .n = lengths[n],
                                                 .inner = inner[i]},
                               n % 2 && kind != SN_HARDMAX, pool);
    sn_pool_free(pool);
}

TEST(a_nan_spoils_its_own_column_only)
{
    enum { N = 70, INNER = 6 };
    for (const level *l = levels(); l->name; l++)
        for (int at = 0; at < N; at += 23) {
            float x[N * INNER], y[N * INNER];
            sn_softmax_plan p = {.dtype = SONDE_DTYPE_F32, .outer = 1, .n = N, .inner = INNER};
            sn_softmax_choose_kernels(&p, l->flags);
            for (int i = 0; i < N * INNER; i++)
                x[i] = test_randf();
            x[at * INNER + 2] = NAN;
            sn_softmax_run(&p, y, x, NULL);
            for (int i = 0; i < N * INNER; i++)
                CHECK_EQ(isnan(y[i]) != 0, i % INNER == 2);
        }
}

TEST_MAIN()
