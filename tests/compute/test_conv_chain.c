/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of convolutions in chunks against the same two run one after the other. */
#include <math.h>

#include "compute/conv_chain.h"
#include "compute/conv_tiles.h"
#include "levels.h"
#include "packed.h"

static void *packed(sn_dtype dtype, float *w, const int64_t *dims, int64_t groups, const level *lv,
                    bool tiles)
{
    const unsigned block = sn_conv_block(lv->flags);
    const size_t n = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    if (tiles)
        return packed_rounded(
            sn_conv_tiles_pack_id(dtype, dims, 4, groups, block, block, lv->flags), w, n, dims, 4,
            sn_conv_tiles_pack_arg(groups, false, 1, 1), lv->flags);
    return packed_rounded(sn_conv_pack_id(dtype, dims, 4, groups, block, block, lv->flags), w, n,
                          dims, 4, groups, lv->flags);
}

static void check(const level *lv, size_t l2_bytes, int threads, sn_pool *pool)
{
    const int64_t block = sn_conv_block(lv->flags), k = 1 + 2 * test_between(0, 2);
    const int64_t c = test_between(1, 40), wide = test_between(2, 90), size = test_between(k, 20);
    sn_conv_desc a = {.n = test_between(1, 2),
                      .c = c,
                      .oc = wide,
                      .groups = 1,
                      .in = {1, size, size + 1},
                      .out = {1, size, size + 1},
                      .kernel = {1, 1, 1},
                      .stride = {1, 1, 1},
                      .dilation = {1, 1, 1},
                      .in_block = (unsigned)block,
                      .out_block = (unsigned)block,
                      .packed = true,
                      .w_dtype = weight_dtype(test_rand())};
    sn_conv_desc b = a;
    a.tiles = a.w_dtype != SONDE_DTYPE_F32 && block == 16;
    a.act.kind = SN_ACT_SIGMOID; /* what does not keep padding lanes zero by itself */
    b.act.kind = SN_ACT_RELU;
    b.c = b.groups = wide;
    for (int i = 1; i < 3; i++) {
        b.kernel[i] = k;
        b.stride[i] = test_between(1, 2);
        b.pad[i] = k / 2;
        b.out[i] = (b.in[i] + 2 * b.pad[i] - k) / b.stride[i] + 1;
    }
    const int64_t dims1[4] = {wide, c, 1, 1}, dims2[4] = {wide, 1, k, k};
    const int64_t in = a.in[1] * a.in[2], out = b.out[1] * b.out[2];
    const int64_t lanes = (wide + block - 1) / block * block;
    float *x = random_floats((size_t)(a.n * c * in)),
          *xb = to_blocked(x, a.n, c, in, (unsigned)block);
    float *w1 = random_floats((size_t)(wide * c)), *w2 = random_floats((size_t)(wide * k * k));
    b.w_dtype = weight_dtype(test_rand());
    void *p1 = packed(a.w_dtype, w1, dims1, 1, lv, a.tiles);
    void *p2 = packed(b.w_dtype, w2, dims2, wide, lv, false);
    float *bias = random_floats((size_t)wide), *between = random_floats((size_t)(a.n * lanes * in));
    float *want = random_floats((size_t)(a.n * lanes * out));
    float *got = random_floats((size_t)(a.n * lanes * out));
    /* Where the first goes by tiles, its input and the result may lie in memory as their type. */
    const sonde_dtype half = a.w_dtype == SONDE_DTYPE_F16 ? SONDE_DTYPE_F16 : SONDE_DTYPE_BF16;
    const int64_t n_in = a.n * ((c + block - 1) / block * block) * in, n_out = a.n * lanes * out;
    uint16_t *xh = malloc((size_t)n_in * sizeof *xh), *yh = malloc((size_t)n_out * sizeof *yh);
    sn_store_f32(0, half, xh, xb, (size_t)n_in, (sn_rounding){0});
    if (a.tiles) /* as the driver rounds it, or would find it */
        sn_load_f32(0, half, xb, xh, (size_t)n_in);
    const sonde_dtype x_half = a.tiles && test_rand() % 2 ? half : 0;
    const sonde_dtype y_half = a.tiles && test_rand() % 2 ? half : 0;
    sn_conv_plan plan;
    sonde_error err;
    uint8_t *space = malloc(1 << 20);
    CHECK(sn_conv_plan_make(&plan, &a, lv->flags, 1 << 20, 1, &err) == SONDE_OK);
    sn_conv_run(&plan, xb, p1, bias, NULL, between, space, NULL);
    CHECK(sn_conv_plan_make(&plan, &b, lv->flags, 1 << 20, 1, &err) == SONDE_OK);
    sn_conv_run(&plan, between, p2, NULL, NULL, want, space, NULL);

    a.x_half = x_half;
    b.y_half = y_half;
    sn_conv_chain chain;
    CHECK(sn_conv_chain_make(&chain, &a, &b, lv->flags, l2_bytes, threads, &err) == SONDE_OK);
    uint8_t *own = malloc(chain.workspace.bytes + 64);
    const sn_conv_chain_call call = {.x = a.x_half ? (const void *)xh : xb,
                                     .w = {p1, p2},
                                     .bias = {bias, NULL},
                                     .y = b.y_half ? (void *)yh : got};
    sn_conv_chain_run(&chain, &call, own, pool);
    if (b.y_half)
        sn_load_f32(0, half, got, yh, (size_t)n_out);
    for (int64_t i = 0; i < a.n * lanes * out && !test_errors; i++)
        CHECK_MSG(fabsf(got[i] - want[i]) <= 1e-5f + (b.y_half ? fabsf(want[i]) / 256 : 0),
                  "%s: %lld → %lld channels, chunks of %lld, bands of %lld: element %lld is %g, "
                  "expected %g",
                  lv->name, (long long)c, (long long)wide, (long long)chain.chunk,
                  (long long)chain.band, (long long)i, (double)got[i], (double)want[i]);
    free(x), free(xb), free(w1), free(w2), free(p1), free(p2), free(bias), free(between);
    free(want), free(got), free(space), free(own), free(xh), free(yh);
}

TEST(a_chain_computes_what_its_two_convolutions_do)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 60 && !test_errors; i++)
            check(lv,
                  i % 3 == 0   ? 1 << 24
                  : i % 3 == 1 ? 1 << 12
                               : 1 << 15,
                  1 + i % 2, i % 2 ? pool : NULL);
    sn_pool_free(pool);
}

TEST_MAIN()
