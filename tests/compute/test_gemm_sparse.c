/* SPDX-License-Identifier: Apache-2.0 */
/* Products with sparse weights against the dense driver, and how zeros are counted and packed. */
#include <math.h>

#include "base/codec.h"
#include "compute/gemm_sparse.h"
#include "compute/sparse.h"
#include "levels.h"
#include "packed.h"

/* [k, n] or [n, k] of which so many percent of the blocks of outputs × ks are zero. */
static float *sparse_floats(int64_t k, int64_t n, bool turned, int zeros, int outputs, int ks)
{
    float *w = random_floats((size_t)(n * k));
    for (int64_t i = 0; i < k; i += ks)
        for (int64_t j = 0; j < n; j += outputs) {
            if (test_between(0, 99) >= zeros)
                continue;
            for (int64_t a = i; a < i + ks && a < k; a++)
                for (int64_t b = j; b < j + outputs && b < n; b++)
                    w[turned ? b * k + a : a * n + b] = test_rand() % 2 ? 0.0f : -0.0f;
        }
    return w;
}

static int64_t count_slowly(const float *w, int64_t k, int64_t n, bool turned, int outputs, int ks)
{
    int64_t found = 0;
    for (int64_t i = 0; i < k; i += ks)
        for (int64_t j = 0; j < n; j += outputs) {
            bool any = false;
            for (int64_t a = i; a < i + ks && a < k; a++)
                for (int64_t b = j; b < j + outputs && b < n; b++)
                    any |= w[turned ? b * k + a : a * n + b] != 0.0f;
            found += any;
        }
    return found;
}

TEST(blocks_that_are_not_zero_are_counted)
{
    static const int patterns[][2] = {{4, 1}, {16, 1}, {16, 2}, {16, 4}, {1, 16}, {1, 1}};
    for (int i = 0; i < 200 && !test_errors; i++) {
        const int64_t k = test_between(1, i % 20 ? 70 : 3000), n = test_between(1, 70);
        const int *p = patterns[test_rand() % 6];
        const bool turned = test_rand() % 2;
        float *w = sparse_floats(k, n, turned, (int)test_between(0, 100), p[0], p[1]);
        const sn_sparse_source s = {w, SONDE_DTYPE_F32, k, n, turned};
        const int64_t got = sn_sparse_blocks(&s, p[0], p[1]);
        const int64_t want = count_slowly(w, k, n, turned, p[0], p[1]);
        CHECK_MSG(got == want, "%dx%d of %d x %d, turned %d: %d, expected %d", p[0], p[1], (int)k,
                  (int)n, turned, (int)got, (int)want);
        const double share = sn_sparse_sample(&s, p[0], p[1]);
        CHECK(share >= 0 && share <= 1);
        if (want == 0)
            CHECK(share == 0);
        free(w);
    }
}

TEST(bytes_and_narrow_floats_count_as_what_they_mean)
{
    const uint8_t u8[8] = {128, 128, 128, 128, 0, 128, 128, 128}, i8[8] = {0, 0, 0, 0, 128, 0, 0};
    const uint16_t half[8] = {0, 0x8000, 0, 0, 0, 0, 1, 0};
    CHECK(sn_sparse_blocks(&(sn_sparse_source){u8, SONDE_DTYPE_U8, 1, 8, false}, 4, 1) == 1);
    CHECK(sn_sparse_blocks(&(sn_sparse_source){i8, SONDE_DTYPE_I8, 1, 8, false}, 4, 1) == 1);
    CHECK(sn_sparse_blocks(&(sn_sparse_source){half, SONDE_DTYPE_BF16, 1, 8, false}, 4, 1) == 1);
    CHECK(sn_sparse_blocks(&(sn_sparse_source){half, SONDE_DTYPE_F16, 8, 1, true}, 4, 1) == 1);
}

/* One problem, and what the dense driver makes of it. */
typedef struct problem {
    sn_gemm_desc d;
    int64_t batches;
    float *a, *b, *c, *z, *want;
    void *packed;
    bool tiles; /* of bf16 */
} problem;

static void round_to_bf16(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = sn_bf16_to_f32(sn_f32_to_bf16(x[i]));
}

static float *run(const problem *p, const sn_gemm_desc *d, const void *b, uint32_t flags,
                  int threads, sn_pool *pool, bool in_place)
{
    sonde_error err = {0};
    sn_gemm_plan plan;
    const size_t n = (size_t)(p->batches * d->m * d->n);
    if (sn_gemm_plan_make(&plan, d, flags, 1 << 14, threads, &err)) {
        test_errors++;
        return NULL;
    }
    void *space = aligned_alloc(64, sn_round_up(plan.workspace.bytes + 64, 64));
    float *y = malloc((n + 1) * sizeof *y);
    in_place = in_place && p->z && sn_gemm_overwrites_z(&plan);
    if (in_place)
        memcpy(y, p->z, n * sizeof *y);
    sn_gemm_run(&plan, p->a, b, p->c, in_place ? y : p->z, y, space, pool);
    free(space);
    return y;
}

static problem random_problem(int i, uint32_t flags)
{
    problem p = {.d = {.alpha = 1, .beta = 1, .b_count = 1}, .batches = 1};
    sn_gemm_desc *d = &p.d;
    d->m = i % 3 ? test_between(1, 40) : test_between(1, 6);
    if (i % 20 == 9)
        d->m = test_between(40, 250);
    d->n = test_between(1, 150);
    d->k = test_between(1, i % 20 == 7 ? 900 : 90);
    d->trans_a = test_rand() % 3 == 0;
    d->trans_b = test_rand() % 2;
    if (d->trans_a && test_rand() % 2) {
        d->batch_rank = 1;
        d->batch[0] = p.batches = 3;
        d->a_batch[0] = 1;
    }
    d->has_c = test_rand() % 3 != 0;
    d->c_n = test_rand() % 4 != 0;
    d->c_m = test_rand() % 2 ? 0 : d->c_n ? d->n : 1;
    d->residual = test_rand() % 3 == 0;
    if (test_rand() % 4 == 0) {
        d->alpha = 0.5f;
        d->beta = 2;
    }
    const sn_act_kind acts[] = {SN_ACT_NONE, SN_ACT_RELU, SN_ACT_TANH};
    d->act.kind = acts[test_rand() % 3];
    p.tiles = test_rand() % 2 && sn_kernels_get(flags)->f32_block_geometry.block == SN_ROWS_TILE;
    p.a = random_floats((size_t)(p.batches * d->m * d->k));
    d->sparse = p.tiles ? SN_ROWS_TILE : test_rand() % 3 ? SN_SPARSE_PANEL : 1;
    p.b = sparse_floats(d->k, d->n, d->trans_b, (int)test_between(0, 10) * 10, (int)d->sparse,
                        p.tiles ? 4 : 1);
    if (p.tiles) {
        round_to_bf16(p.a, p.batches * d->m * d->k);
        round_to_bf16(p.b, d->n * d->k);
    }
    p.c = d->has_c ? random_floats((size_t)((d->m - 1) * d->c_m + (d->n - 1) * d->c_n + 1)) : NULL;
    p.z = d->residual ? random_floats((size_t)(p.batches * d->m * d->n)) : NULL;
    sn_gemm_desc dense = *d;
    dense.sparse = 0;
    p.want = run(&p, &dense, p.b, flags, 1, NULL, false);
    const sn_sparse_source s = {p.b, SONDE_DTYPE_F32, d->k, d->n, d->trans_b};
    const int64_t dims[2] = {d->trans_b ? d->n : d->k, d->trans_b ? d->k : d->n};
    d->packed = true;
    d->entries = sn_sparse_blocks(&s, (int)d->sparse, p.tiles ? 2 : 1);
    d->b_dtype = p.tiles ? SONDE_DTYPE_BF16 : 0;
    const unsigned format = p.tiles          ? SN_PACK_BF16_SPARSE16
                            : d->sparse == 1 ? SN_PACK_F32_SPARSE1
                                             : SN_PACK_F32_SPARSE4;
    p.packed = packed_rounded(
        format, p.b, (size_t)(d->n * d->k), dims, 2,
        sn_sparse_arg(d->trans_b ? SN_SPARSE_TURNED : SN_SPARSE_PLAIN, d->entries), flags);
    return p;
}

static void free_problem(problem *p)
{
    free(p->a), free(p->b), free(p->c), free(p->z), free(p->want), free(p->packed);
}

static bool same_nan(float a, float b)
{
    return isnan(a) == isnan(b);
}

static void compare(const problem *p, const float *got, const char *name)
{
    const sn_gemm_desc *d = &p->d;
    for (int64_t i = 0; i < p->batches * d->m * d->n; i++) {
        const double want = (double)p->want[i], bound = 4e-6 * (double)(d->k + 2);
        const bool good = same_nan(got[i], p->want[i]) && (isnan(want) || got[i] == p->want[i] ||
                                                           fabs((double)got[i] - want) <= bound);
        if (!good) {
            test_errors++;
            fprintf(stderr, "%s: m %d n %d k %d ta %d tb %d c %d %d %d z %d at %d: %g, not %g\n",
                    name, (int)d->m, (int)d->n, (int)d->k, d->trans_a, d->trans_b, d->has_c,
                    (int)d->c_m, (int)d->c_n, d->residual, (int)i, (double)got[i], want);
            return;
        }
    }
}

TEST(sparse_products_match_dense_ones_with_any_number_of_threads)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 4, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 200 && !test_errors; i++) {
            problem p = random_problem(i, lv->flags);
            const size_t bytes = (size_t)(p.batches * p.d.m * p.d.n) * sizeof(float);
            float *one = run(&p, &p.d, p.packed, lv->flags, 1, NULL, false);
            float *four = run(&p, &p.d, p.packed, lv->flags, 4, pool, true);
            compare(&p, one, lv->name);
            CHECK_MSG(memcmp(one, four, bytes) == 0, "%s: threads change bits", lv->name);
            free(one), free(four);
            free_problem(&p);
        }
    sn_pool_free(pool);
}

TEST(numbers_that_are_not_finite_reach_outputs_that_skip_them)
{
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 60 && !test_errors; i++) {
            problem p = random_problem(i, lv->flags);
            const int64_t n = p.batches * p.d.m * p.d.k;
            for (int bad = 0; bad < 3; bad++)
                p.a[test_between(0, n - 1)] = bad == 1 ? NAN : bad ? INFINITY : -INFINITY;
            sn_gemm_desc dense = p.d;
            dense.sparse = 0;
            dense.packed = false;
            dense.b_dtype = 0;
            free(p.want);
            p.want = run(&p, &dense, p.b, lv->flags, 1, NULL, false);
            float *got = run(&p, &p.d, p.packed, lv->flags, 1, NULL, false);
            compare(&p, got, lv->name);
            free(got);
            free_problem(&p);
        }
}

TEST(a_weight_that_changed_after_it_was_counted_stays_in_its_memory)
{
    enum { K = 40, N = 64 };
    const int64_t dims[2] = {K, N};
    float *w = random_floats(K * N);
    for (int single = 0; single < 2; single++) {
        const sn_pack_format *f = sn_pack_get(single ? SN_PACK_F32_SPARSE1 : SN_PACK_F32_SPARSE4);
        const sn_packing p = {f, dims, 2, sn_sparse_arg(SN_SPARSE_PLAIN, 17), 0};
        size_t bytes;
        CHECK(f->bytes(&p, &bytes));
        uint8_t *dst = malloc(bytes);
        f->pack(&p, dst, w, 0);
        const sn_sparse_view v = sn_sparse_view_of(f, dst, N, 17);
        for (int i = 0; i <= N / (int)f->block; i++)
            CHECK(v.first[i] <= 17 && (i == 0 || v.first[i - 1] <= v.first[i]));
        free(dst);
    }
    free(w);
}

static bool pays(int64_t rows, int64_t n, int64_t k, int64_t entries)
{
    return sn_gemm_sparse_pays(
        &(sn_gemm_sparse_case){.rows = rows, .n = n, .k = k, .entries = entries});
}

TEST(many_zeros_pay_and_few_do_not)
{
    const int64_t all = 768 * 768 / 4;
    CHECK(pays(128, 768, 768, all / 10));
    CHECK(pays(128, 768, 768, all * 3 / 10));
    CHECK(pays(-1, 768, 768, all / 10));
    CHECK(!pays(128, 768, 768, all * 9 / 10));
    CHECK(!pays(-1, 768, 768, all / 2));
    CHECK(!pays(100000, 8, 768, 768)); /* turning A costs more than it saves */
    CHECK(!pays(0, 768, 768, 1));
    /* Single weights: more of them have to be zero. */
    sn_gemm_sparse_case c = {.rows = 128, .n = 768, .k = 768, .entries = 4 * all / 10};
    c.single = true;
    CHECK(sn_gemm_sparse_pays(&c));
    c.entries = 4 * all / 2;
    CHECK(!sn_gemm_sparse_pays(&c));
}

TEST_MAIN()
