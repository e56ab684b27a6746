/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix driver against a naive product in double precision, over many shapes and CPU levels.
 */
#include <math.h>

#include "base/codec.h"
#include "compute/packs.h"
#include "compute/tiles.h"
#include "compute/variant.h"
#include "levels.h"
#include "packed.h"

static void round_to_bf16(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t narrow;
        sn_store_f32(0, SONDE_DTYPE_BF16, &narrow, x + i, 1, (sn_rounding){0});
        sn_load_f32(0, SONDE_DTYPE_BF16, x + i, &narrow, 1);
    }
}

static void check(const sn_gemm_desc *d, const level *lv, sn_pool *pool)
{
    sonde_error err = {0};
    int64_t batches = 1, a_count = 1;
    for (int i = 0; i < d->batch_rank; i++) {
        batches *= d->batch[i];
        a_count += (d->batch[i] - 1) * d->a_batch[i];
    }
    const int64_t m = d->m, n = d->n, k = d->k;
    float *a = random_floats((size_t)(a_count * m * k));
    float *b = random_floats((size_t)(d->b_count * n * k));
    const size_t c_size = d->has_c ? (size_t)((m - 1) * d->c_m + (n - 1) * d->c_n + 1) : 0;
    float *c = d->has_c ? random_floats(c_size) : NULL;
    float *z = d->residual ? random_floats((size_t)(batches * m * n)) : NULL;
    float *y = random_floats((size_t)(batches * m * n));
    const bool in_bf16 = d->tiles && (!d->packed || d->b_dtype == SONDE_DTYPE_BF16);
    const bool in_f16 = d->tiles && d->f16 && sn_pack_has_f16_tiles(lv->flags);
    if (in_bf16) /* as the driver rounds it */
        round_to_bf16(a, a_count * m * k);
    for (int64_t i = 0; i < a_count * m * k && in_f16; i++)
        a[i] = sn_f16_to_f32(sn_f32_to_f16(a[i]));
    float *b_given = b;
    if (in_bf16 && !d->packed) {
        b_given = malloc((size_t)(d->b_count * n * k) * sizeof *b + 1);
        memcpy(b_given, b, (size_t)(d->b_count * n * k) * sizeof *b);
        round_to_bf16(b, d->b_count * n * k);
    }
    const int64_t row = sn_tiles_row_bytes(k);
    uint8_t *rows = d->a_rows ? calloc((size_t)(a_count * m + SN_ROWS_TILE), (size_t)row) : NULL;
    for (int64_t i = 0; i < a_count * m && rows; i++)
        sn_store_f32(0, SONDE_DTYPE_BF16, rows + i * row, a + i * k, (size_t)k, (sn_rounding){0});
    const void *left = rows ? (const void *)rows : a;
    float *bp = b_given;
    const int64_t dims[3] = {d->b_count, d->trans_b ? n : k, d->trans_b ? k : n};
    if (d->packed) {
        const unsigned id =
            d->tiles ? sn_gemm_tiles_pack_id(d->b_dtype, lv->flags)
                     : sn_gemm_pack_id(d->b_dtype ? d->b_dtype : SONDE_DTYPE_F32, lv->flags);
        bp = packed_rounded(id, b, (size_t)(d->b_count * n * k), dims, 3, d->trans_b, lv->flags);
        CHECK(bp != NULL);
    }
    sn_gemm_plan p;
    CHECK_OK(sn_gemm_plan_make(&p, d, lv->flags, 1 << 14, 2, &err));
    void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
    sn_gemm_run(&p, left, bp, c, z, y, space, pool);
    if (z && sn_gemm_overwrites_z(&p)) {
        const size_t bytes = (size_t)(batches * m * n) * sizeof(float);
        float *both = malloc(bytes + 1);
        memcpy(both, z, bytes);
        sn_gemm_run(&p, left, bp, c, both, both, space, pool);
        CHECK_MSG(memcmp(both, y, bytes) == 0, "in place: %s", p.name);
        free(both);
    }
    int bad = 0;
    for (int64_t i = 0; i < batches && !bad; i++) {
        int64_t ia = 0, ib = 0, rest = i;
        for (int r = d->batch_rank - 1; r >= 0; r--) {
            ia += rest % d->batch[r] * d->a_batch[r];
            ib += rest % d->batch[r] * d->b_batch[r];
            rest /= d->batch[r];
        }
        for (int64_t r = 0; r < m && !bad; r++) {
            for (int64_t s = 0; s < n && !bad; s++) {
                double sum = 0, scale = 0;
                for (int64_t t = 0; t < k; t++) {
                    double u = (double)a[ia * m * k + (d->trans_a ? t * m + r : r * k + t)];
                    double v = (double)b[ib * n * k + (d->trans_b ? s * k + t : t * n + s)];
                    sum += u * v;
                    scale += fabs(u * v);
                }
                sum *= (double)d->alpha;
                scale *= fabs((double)d->alpha);
                if (c)
                    sum += (double)d->beta * (double)c[r * d->c_m + s * d->c_n];
                if (z)
                    sum += (double)z[(i * m + r) * n + s];
                if (d->act.kind == SN_ACT_RELU && sum < 0)
                    sum = 0;
                if (d->act.kind == SN_ACT_TANH)
                    sum = tanh(sum);
                float got = y[(i * m + r) * n + s];
                /* 16 bits of each number where f16 is split, but for the product of the last eight
                 */
                const bool split = d->tiles && d->b_dtype == SONDE_DTYPE_F16 && !in_f16;
                const double bound = split ? 2.0 / 65536 : 4e-6;
                if (!(fabs((double)got - sum) <= bound * (scale + 2))) {
                    bad++;
                    test_errors++;
                    fprintf(stderr,
                            "%s %s: m %d n %d k %d ta %d tb %d alpha %g beta %g c %d,%d,%d z %d: "
                            "[%d, %d, %d] = %g, expected %g\n",
                            lv->name, p.name, (int)m, (int)n, (int)k, d->trans_a, d->trans_b,
                            (double)d->alpha, (double)d->beta, d->has_c, (int)d->c_m, (int)d->c_n,
                            d->residual, (int)i, (int)r, (int)s, (double)got, sum);
                }
            }
        }
    }
    if (bp != b)
        free(bp);
    free(rows);
    free(a), free(b), free(c), free(z), free(y), free(space);
}

TEST(products_of_random_shapes_match_the_naive_sum)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++) {
        const bool turns = sn_kernels_get(lv->flags)->f32_gemm_geometry.block == SN_ROWS_TILE;
        for (int i = 0; i < 400 && !test_errors; i++) {
            sn_gemm_desc d = {.alpha = 1, .beta = 1, .b_count = 1};
            d.m = i % 3 ? test_between(1, 40) : test_between(1, 9);
            d.n = test_between(1, 150);
            d.k = test_between(i % 10 ? 1 : 0, 60);
            if (i % 40 == 11) /* none of them */
                d.m = 0;
            if (i % 40 == 9) /* more than one part of the rows */
                d.m = test_between(40, 200);
            if (i % 40 == 7) /* more than one part of the sum */
                d.k = test_between(300, 1700);
            if (i % 40 == 27) { /* of both */
                d.m = test_between(40, 200);
                d.k = test_between(1030, 1700);
            }
            if (i % 40 == 17) { /* rows that lie in the same set of the cache */
                d.m = test_between(5, 60);
                d.n = test_between(90, 300);
                d.k = 1024 * test_between(1, 2);
            }
            d.trans_a = test_rand() % 3 == 0;
            d.trans_b = test_rand() % 2;
            d.packed = d.k > 0 && test_rand() % 2;
            d.b_dtype = d.packed ? weight_dtype(test_rand()) : 0;
            d.f16 = d.b_dtype == SONDE_DTYPE_F16 && test_rand() % 3;
            d.tiles = d.packed ? test_rand() % 4 != 0
                               : d.k > 0 && test_rand() % 2 && (!d.trans_b || turns);
            d.a_rows = d.tiles && (!d.packed || d.b_dtype == SONDE_DTYPE_BF16) && !d.trans_a &&
                       test_rand() % 4 == 0;
            d.variant = (unsigned)test_between(0, SN_VARIANTS); /* the last one is none */
            d.has_c = test_rand() % 2;
            switch (test_rand() % 4) {
            case 0:
                d.c_n = 1;
                break;
            case 1:
                d.c_m = d.n, d.c_n = 1;
                break;
            case 2:
                d.c_m = 1;
                break;
            }
            d.residual = test_rand() % 2;
            if (test_rand() % 4 == 0)
                d.alpha = 0.5f;
            if (test_rand() % 4 == 0)
                d.beta = -2.0f;
            d.act.kind = i % 3 == 0 ? SN_ACT_RELU : i % 3 == 1 ? SN_ACT_TANH : SN_ACT_NONE;
            if (!d.has_c && test_rand() % 2) {
                d.batch_rank = 2;
                d.batch[0] = test_between(1, 3);
                d.batch[1] = test_between(1, 3);
                d.a_batch[0] = test_rand() % 2 ? d.batch[1] : 0;
                d.a_batch[1] = 1;
                d.b_batch[1] = test_rand() % 2;
                d.b_count = d.b_batch[1] ? d.batch[1] : 1;
            }
            check(&d, lv, i % 2 ? pool : NULL);
        }
    }
    sn_pool_free(pool);
}

/* y = a · b, with packed weights, by tiles or not. */
static void product(const level *lv, bool tiles, int64_t m, int64_t n, int64_t k, const float *a,
                    float *b, float *y)
{
    sonde_error err = {0};
    const sn_gemm_desc d = {.alpha = 1,
                            .beta = 1,
                            .b_count = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .packed = true,
                            .b_dtype = SONDE_DTYPE_F32,
                            .tiles = tiles};
    const int64_t dims[2] = {k, n};
    const unsigned id = tiles ? sn_gemm_tiles_pack_id(SONDE_DTYPE_F32, lv->flags)
                              : sn_gemm_pack_id(SONDE_DTYPE_F32, lv->flags);
    void *packed = packed_weights(id, b, dims, 2, 0, lv->flags);
    CHECK(packed != NULL);
    sn_gemm_plan p;
    CHECK_OK(sn_gemm_plan_make(&p, &d, lv->flags, 1 << 20, 1, &err));
    void *space = aligned_alloc(64, sn_round_up(p.workspace.bytes + 64, 64));
    sn_gemm_run(&p, a, packed, NULL, NULL, y, space, NULL);
    free(space), free(packed);
}

/* The largest error of a · b, in shares of the sum of the products without their signs. */
static double error_of(const float *y, const float *a, const float *b, int64_t m, int64_t n,
                       int64_t k)
{
    double most = 0;
    for (int64_t r = 0; r < m; r++)
        for (int64_t s = 0; s < n; s++) {
            double sum = 0, scale = 0;
            for (int64_t t = 0; t < k; t++) {
                sum += (double)a[r * k + t] * (double)b[t * n + s];
                scale += fabs((double)a[r * k + t] * (double)b[t * n + s]);
            }
            most = fmax(most, fabs((double)y[r * n + s] - sum) / scale);
        }
    return most;
}

TEST(long_products_of_f32_in_two_halves_are_as_exact_as_f32)
{
    static const int64_t ks[] = {1, 3, 31, 300, 1500};
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 5; i++) {
            enum { M = 19, N = 21 };
            const int64_t k = ks[i];
            float *a = random_floats((size_t)(M * k)), *b = random_floats((size_t)(k * N));
            float y[2][M * N];
            for (int tiles = 0; tiles < 2; tiles++)
                product(lv, tiles, M, N, k, a, b, y[tiles]);
            const double plain = error_of(y[0], a, b, M, N, k),
                         halves = error_of(y[1], a, b, M, N, k);
            /* A product is exact to 2^-21 of itself: of each number 22 bits and a sign are kept.
             * That is more than rounding one of f32 takes away, and less than a long sum does,
             * where the plain kernel adds one number after the other. */
            const bool longs = sn_pack_has_f16_tiles(lv->flags) && k > 100;
            CHECK_MSG(halves <= (longs ? plain : 0x1p-21), "%s, k %d: %g, and %g in f32", lv->name,
                      (int)k, halves, plain);
            free(a), free(b);
        }
}

/* Numbers of all sizes: every row and every panel has its own power of two. */
TEST(halves_do_not_depend_on_the_size_of_a_row_or_panel)
{
    enum { M = 9, N = 48, K = 70, PANEL = 16 };
    for (const level *lv = levels(); lv->name; lv++) {
        float *a = random_floats(M * K), *b = random_floats(K * N), y[M * N], scaled[M * N];
        int row[M], panel[N / PANEL];
        for (int i = 0; i < M; i++)
            row[i] = (int)test_between(-60, 60);
        for (int i = 0; i < N / PANEL; i++)
            panel[i] = (int)test_between(-50, 50);
        product(lv, true, M, N, K, a, b, y);
        for (int i = 0; i < M * K; i++)
            a[i] = ldexpf(a[i], row[i / K]);
        for (int i = 0; i < K * N; i++)
            b[i] = ldexpf(b[i], panel[i % N / PANEL]);
        product(lv, true, M, N, K, a, b, scaled);
        for (int i = 0; i < M * N; i++)
            CHECK_MSG(scaled[i] == ldexpf(y[i], row[i / N] + panel[i % N / PANEL]), "%s: %g of %g",
                      lv->name, (double)scaled[i], (double)y[i]);
        free(a), free(b);
    }
}

TEST(infinities_and_nan_in_halves_are_those_of_f32)
{
    enum { M = 40, N = 20, K = 50 };
    for (const level *lv = levels(); lv->name; lv++) {
        float *a = random_floats(M * K), *b = random_floats(K * N);
        float y[2][M * N];
        a[3 * K + 7] = INFINITY;
        a[5 * K + 0] = -INFINITY;
        a[5 * K + 9] = -INFINITY;
        a[9 * K + 49] = NAN;
        a[20 * K + 1] = INFINITY;
        a[20 * K + 2] = 3e38f;
        b[7 * N + 4] = 0;
        for (int tiles = 0; tiles < 2; tiles++)
            product(lv, tiles, M, N, K, a, b, y[tiles]);
        for (int i = 0; i < M * N; i++)
            CHECK_MSG(isfinite(y[0][i]) ? fabsf(y[1][i] - y[0][i]) < 1e-4f
                      : isnan(y[0][i])  ? isnan(y[1][i])
                                        : y[1][i] == y[0][i],
                      "%s, row %d: %g, not %g", lv->name, i / N, (double)y[1][i], (double)y[0][i]);
        free(a), free(b);
    }
}

TEST_MAIN()
