/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of two broadcast operands: every way the rows are walked gives what the
 * index arithmetic says. */
#include "compute/eltwise.h"
#include "levels.h"

enum { RANK = 4 };

static size_t count(const int64_t *dims)
{
    size_t n = 1;
    for (int i = 0; i < RANK; i++)
        n *= (size_t)dims[i];
    return n;
}

/* Where element `index` of the result finds its operand. */
static size_t place(const int64_t *out, const int64_t *dims, size_t index)
{
    size_t at = 0, stride = 1;
    for (int i = RANK - 1; i >= 0; i--) {
        const size_t o = index % (size_t)out[i];
        index /= (size_t)out[i];
        at += dims[i] == 1 ? 0 : o * stride;
        stride *= (size_t)dims[i];
    }
    return at;
}

static int64_t number(int64_t i)
{
    return (i * 37 + 11) % 1009 - 500;
}

static void check(const level *lv, sonde_dtype type, bool in_place, sn_pool *pool)
{
    int64_t out[RANK], dims[2][RANK];
    const int64_t *const both[2] = {dims[0], dims[1]};
    const int ranks[2] = {RANK, RANK};
    for (int i = 0; i < RANK; i++) {
        out[i] = test_rand() % 4 ? test_between(1, i == RANK - 1 ? 40 : 12) : 1;
        for (int k = 0; k < 2; k++)
            dims[k][i] = test_rand() % 3 ? out[i] : 1;
        if (in_place)
            dims[0][i] = out[i];
        else if (dims[0][i] == 1 && dims[1][i] == 1)
            out[i] = 1;
    }
    const size_t n = count(out), size = type == SONDE_DTYPE_I64 ? 8 : 4;
    uint8_t *operand[2], *y = malloc(n * size);
    for (int k = 0; k < 2; k++) {
        operand[k] = malloc(count(dims[k]) * size);
        for (size_t i = 0; i < count(dims[k]); i++) {
            if (type == SONDE_DTYPE_I64)
                ((int64_t *)(void *)operand[k])[i] = number((int64_t)i + k);
            else
                ((float *)(void *)operand[k])[i] = (float)number((int64_t)i + k);
        }
    }
    sn_elt e;
    sn_bcast b;
    CHECK(sn_binary_get(&e, SN_BINARY_SUB, type, lv->flags));
    sn_bcast_plan(&b, out, RANK, 2, both, ranks);
    uint8_t *to = in_place ? operand[0] : y;
    sn_binary_run(&e, &b, to, operand[0], operand[1], NULL, pool);
    for (size_t i = 0; i < n && !test_errors; i++) {
        const int64_t want =
            number((int64_t)place(out, dims[0], i)) - number((int64_t)place(out, dims[1], i) + 1);
        const double got = type == SONDE_DTYPE_I64 ? (double)((int64_t *)(void *)to)[i]
                                                   : (double)((float *)(void *)to)[i];
        CHECK_MSG(got == (double)want, "element %zu of %lld,%lld,%lld,%lld: %g, not %lld", i,
                  (long long)out[0], (long long)out[1], (long long)out[2], (long long)out[3], got,
                  (long long)want);
    }
    free(operand[0]), free(operand[1]), free(y);
}

TEST(broadcast_of_random_shapes_matches_index_arithmetic)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (const level *lv = levels(); lv->name; lv++)
        for (int i = 0; i < 700 && !test_errors; i++)
            check(lv, i % 3 ? SONDE_DTYPE_F32 : SONDE_DTYPE_I64, i % 4 == 0, i % 2 ? pool : NULL);
    sn_pool_free(pool);
}

/* A gate per channel times an image in blocks: large enough for several threads and pieces. */
TEST(short_rows_repeat_along_long_runs)
{
    enum { IMAGES = 2, BLOCKS = 3, PIXELS = 1500, LANES = 16 };
    static float x[IMAGES * BLOCKS * PIXELS * LANES], y[IMAGES * BLOCKS * PIXELS * LANES];
    static float gate[IMAGES * BLOCKS * LANES];
    const int64_t out[RANK] = {IMAGES, BLOCKS, PIXELS, LANES},
                  small[RANK] = {IMAGES, BLOCKS, 1, LANES};
    const int64_t *const both[2] = {small, out};
    const int ranks[2] = {RANK, RANK};
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    CHECK(sn_pool_create(&pool, 2, &alloc, NULL) == SONDE_OK);
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = (float)number((int64_t)i);
    for (size_t i = 0; i < sizeof gate / sizeof gate[0]; i++)
        gate[i] = (float)i;
    sn_elt e;
    sn_bcast b;
    sn_bcast_plan(&b, out, RANK, 2, both, ranks);
    for (const level *lv = levels(); lv->name; lv++) {
        CHECK(sn_binary_get(&e, SN_BINARY_MUL, SONDE_DTYPE_F32, lv->flags));
        sn_binary_run(&e, &b, y, gate, x, NULL, pool);
        for (size_t i = 0; i < sizeof x / sizeof x[0] && !test_errors; i++)
            CHECK(y[i] == x[i] * gate[i / (PIXELS * LANES) * LANES + i % LANES]);
    }
    sn_pool_free(pool);
}

TEST(shrinking_moves_numbers_beyond_the_limits_towards_zero)
{
    const float x[5] = {-2, -0.5f, 0, 0.75f, 3}, want[5] = {-1, 0, 0, -0.25f, 2};
    const int8_t whole[3] = {-128, 1, 127};
    float y[5];
    int8_t z[3];
    sn_shrink_run(SONDE_DTYPE_F32, y, x, 5, 1.0, 0.5, NULL);
    sn_shrink_run(SONDE_DTYPE_I8, z, whole, 3, 2.5, 1.0, NULL);
    CHECK(memcmp(y, want, sizeof y) == 0);
    CHECK_MSG(z[0] == -125 && z[1] == 0 && z[2] == 124, "%d %d %d", z[0], z[1], z[2]);
    sn_shrink_run(SONDE_DTYPE_F64, NULL, NULL, 0, 1.0, 0.5, NULL);
}

TEST_MAIN()
