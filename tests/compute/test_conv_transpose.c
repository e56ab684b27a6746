/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions, with packed weights and with those of the file, against the same in f64,
 * which are plain loops. */
#include "compute/conv_transpose.h"
#include "levels.h"
#include "packed.h"

typedef struct sizes {
    int rank;
    int64_t grid[3], kernel[3], stride[3], dilation[3], pad[3], extra[3];
    int64_t n, groups, in, out;
} sizes;

static sn_conv_transpose_desc describe(const sizes *s, sonde_dtype dtype, bool packed)
{
    sn_conv_transpose_desc d = {.fold = {.dtype = dtype, .rank = s->rank},
                                .n = s->n,
                                .groups = s->groups,
                                .in_channels = s->in,
                                .out_channels = s->out,
                                .packed = packed};
    for (int i = 0; i < s->rank; i++) {
        d.fold.grid[i] = s->grid[i];
        d.fold.kernel[i] = s->kernel[i];
        d.fold.stride[i] = s->stride[i];
        d.fold.dilation[i] = s->dilation[i];
        d.fold.pad[i] = s->pad[i];
        d.fold.image[i] = s->stride[i] * (s->grid[i] - 1) + (s->kernel[i] - 1) * s->dilation[i] +
                          1 - 2 * s->pad[i] + s->extra[i];
    }
    return d;
}

static void *memory(int64_t bytes)
{
    return aligned_alloc(SN_ALIGN, ((size_t)bytes / SN_ALIGN + 1) * SN_ALIGN);
}

static void run(const sn_conv_transpose_desc *d, uint32_t flags, int threads, sn_pool *pool,
                const void *x, const void *w, const void *bias, const void *z, void *y)
{
    sn_conv_transpose_plan p;
    sonde_error err;
    CHECK_EQ(sn_conv_transpose_plan_make(&p, d, flags, 1 << 20, threads, &err), SONDE_OK);
    sn_conv_transpose_args a = {.x = x, .w = w, .bias = bias, .z = z, .y = y};
    a.weights = memory(p.weight_floats * (int64_t)sizeof(float));
    a.panels = memory(p.panel_bytes);
    a.columns = memory(p.columns_bytes * p.workers);
    a.products = memory(p.product_bytes * p.workers);
    CHECK(sn_conv_transpose_run(&p, &a, pool));
    free(a.weights), free(a.panels), free(a.columns), free(a.products);
}

static double *doubles(const float *x, size_t n)
{
    double *y = malloc((n + 1) * sizeof *y);
    for (size_t i = 0; i < n; i++)
        y[i] = (double)x[i];
    return y;
}

/* What is behind the sums: a residual, which may be the result itself, and an activation. */
static double finished(double sum, const float *z, size_t i, sn_act_kind act)
{
    sum += z ? (double)z[i] : 0.0;
    return act == SN_ACT_RELU ? fmax(sum, 0.0) : act == SN_ACT_TANH ? tanh(sum) : sum;
}

static void compare(const sizes *s, bool pack, const level *l, int threads, sn_pool *pool)
{
    static const sn_act_kind acts[] = {SN_ACT_NONE, SN_ACT_RELU, SN_ACT_TANH};
    sn_conv_transpose_desc d = describe(s, SONDE_DTYPE_F32, pack),
                           plain = describe(s, SONDE_DTYPE_F64, false);
    int64_t in = 1, out = 1, dims[5] = {s->groups * s->in, s->out};
    d.act.kind = acts[test_rand() % 3];
    for (int i = 0; i < s->rank; i++) {
        in *= s->grid[i];
        out *= d.fold.image[i];
        dims[2 + i] = s->kernel[i];
    }
    const size_t nx = (size_t)(s->n * s->groups * s->in * in),
                 ny = (size_t)(s->n * s->groups * s->out * out), nb = (size_t)(s->groups * s->out);
    size_t nw = 1;
    for (int i = 0; i < 2 + s->rank; i++)
        nw *= (size_t)dims[i];
    float *x = random_floats(nx), *w = random_floats(nw), *b = random_floats(nb);
    float *y = random_floats(ny), *z = random_floats(ny);
    double *dx = doubles(x, nx), *dw = doubles(w, nw), *db = doubles(b, nb), *dy = doubles(y, ny);
    void *packed = packed_weights(sn_gemm_pack_id(SONDE_DTYPE_F32, l->flags), w, dims, 2 + s->rank,
                                  -s->groups, l->flags);
    CHECK(packed);
    const bool biased = test_rand() % 2, added = test_rand() % 2, same = test_rand() % 2;
    if (same)
        memcpy(y, z, ny * sizeof *y);
    run(&plain, l->flags, 1, NULL, dx, dw, biased ? db : NULL, NULL, dy);
    run(&d, l->flags, threads, pool, x, pack ? packed : w, biased ? b : NULL,
        !added ? NULL
        : same ? y
               : z,
        y);
    for (size_t i = 0; i < ny && !test_errors; i++) {
        const double want = finished(dy[i], added ? z : NULL, i, d.act.kind);
        CHECK_MSG(fabs((double)y[i] - want) < 1e-4, "%s, %d threads: element %zu is %g, not %g",
                  l->name, threads, i, (double)y[i], want);
    }
    free(x), free(w), free(b), free(y), free(z), free(packed);
    free(dx), free(dw), free(db), free(dy);
}

static sizes random_sizes(void)
{
    sizes s = {.rank = (int)test_between(1, 3),
               .n = test_between(1, 2),
               .groups = test_between(1, 3),
               .in = test_between(1, 20),
               .out = test_between(1, 20)};
    for (int i = 0; i < s.rank; i++) {
        s.grid[i] = test_between(1, s.rank == 1 ? 70 : 7);
        s.kernel[i] = test_between(1, 5);
        s.stride[i] = test_between(1, 3);
        s.dilation[i] = test_between(1, 2);
        s.pad[i] = test_between(0, (s.kernel[i] - 1) * s.dilation[i] / 2);
        s.extra[i] = test_between(0, s.stride[i] - 1);
    }
    return s;
}

TEST(results_are_what_plain_loops_give_at_every_level)
{
    sn_allocator alloc;
    sn_pool *pool;
    sn_allocator_init_system(&alloc);
    CHECK_EQ(sn_pool_create(&pool, 3, &alloc, NULL), SONDE_OK);
    for (const level *l = levels(); l->name; l++)
        for (int i = 0; i < 40 && !test_errors; i++) {
            const sizes s = random_sizes();
            compare(&s, i % 4 < 2, l, i % 2 ? 3 : 1, i % 2 ? pool : NULL);
        }
    sn_pool_free(pool);
}

TEST(columns_that_exceed_the_cache_are_made_in_parts)
{
    const sizes s = {.rank = 2,
                     .grid = {23, 29},
                     .kernel = {4, 4},
                     .stride = {2, 2},
                     .dilation = {1, 1},
                     .pad = {1, 1},
                     .n = 1,
                     .groups = 1,
                     .in = 5,
                     .out = 19};
    compare(&s, true, levels(), 1, NULL);
    compare(&s, false, levels(), 1, NULL);
}

TEST(one_pixel_is_spread_over_the_kernel)
{
    const sizes s = {.rank = 2,
                     .grid = {1, 1},
                     .kernel = {4, 4},
                     .stride = {1, 1},
                     .dilation = {1, 1},
                     .n = 2,
                     .groups = 1,
                     .in = 33,
                     .out = 17};
    for (const level *l = levels(); l->name; l++)
        compare(&s, true, l, 1, NULL);
}

TEST_MAIN()
