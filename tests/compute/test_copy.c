/* SPDX-License-Identifier: Apache-2.0 */
/* The strided copy engine against a loop that does one element at a time. */
#include "compute/copy.h"

#include "test.h"

enum { RANK = 5, MAX_BYTES = 1 << 20 };

static uint8_t source[MAX_BYTES], got[MAX_BYTES], want[MAX_BYTES];

static void plain_copy(size_t elem, int rank, const int64_t *dims, const ptrdiff_t *dst,
                       const ptrdiff_t *src, ptrdiff_t to, ptrdiff_t from)
{
    if (rank == 0) {
        memcpy(want + to * (ptrdiff_t)elem, source + from * (ptrdiff_t)elem, elem);
        return;
    }
    for (int64_t i = 0; i < dims[0]; i++)
        plain_copy(elem, rank - 1, dims + 1, dst + 1, src + 1, to + (ptrdiff_t)i * dst[0],
                   from + (ptrdiff_t)i * src[0]);
}

static int64_t between(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(test_rand() % (uint64_t)(hi - lo + 1));
}

static void fill_source(void)
{
    for (size_t i = 0; i < MAX_BYTES; i++)
        source[i] = (uint8_t)test_rand();
    memset(got, 0xAA, MAX_BYTES);
    memset(want, 0xAA, MAX_BYTES);
}

static bool same_as_plain(size_t elem, int rank, const int64_t *dims, const ptrdiff_t *dst,
                          const ptrdiff_t *src, ptrdiff_t from, sn_pool *pool)
{
    sn_copy c;
    sn_copy_plan(&c, elem, rank, dims, dst, src);
    sn_copy_run(&c, got, source + from * (ptrdiff_t)elem, pool);
    plain_copy(elem, rank, dims, dst, src, 0, from);
    return memcmp(got, want, MAX_BYTES) == 0;
}

TEST(random_permutations_of_every_element_size_match_a_plain_loop)
{
    fill_source();
    for (int trial = 0; trial < 400; trial++) {
        size_t elem = (size_t)1 << between(0, 4);
        int64_t in[RANK], dims[RANK];
        ptrdiff_t strides[RANK], dst[RANK], src[RANK];
        int perm[RANK], rank = (int)between(0, RANK);
        for (int i = 0; i < rank; i++) {
            in[i] = between(1, 7);
            perm[i] = i;
        }
        for (int i = rank - 1; i > 0; i--) {
            int j = (int)between(0, i), t = perm[i];
            perm[i] = perm[j];
            perm[j] = t;
        }
        ptrdiff_t a = 1, b = 1;
        for (int i = rank - 1; i >= 0; i--) {
            strides[i] = a;
            a *= (ptrdiff_t)in[i];
        }
        for (int i = rank - 1; i >= 0; i--) {
            dims[i] = in[perm[i]];
            src[i] = strides[perm[i]];
            dst[i] = b;
            b *= (ptrdiff_t)dims[i];
        }
        CHECK_MSG(same_as_plain(elem, rank, dims, dst, src, 0, NULL), "trial %d, elem %zu, rank %d",
                  trial, elem, rank);
    }
}

TEST(windows_repeats_and_reversed_axes_match_a_plain_loop)
{
    fill_source();
    for (int trial = 0; trial < 400; trial++) {
        size_t elem = (size_t)1 << between(0, 4);
        int64_t dims[3] = {between(0, 6), between(1, 20), between(1, 20)};
        ptrdiff_t dst[3] = {20 * 21, 21, 1},
                  src[3] = {between(0, 1) * 900, between(-1, 2) * 30, between(-1, 3)};
        if (between(0, 1)) /* a transpose inside */
            src[1] = 1, src[2] = 30;
        CHECK_MSG(same_as_plain(elem, 3, dims, dst, src, 2000, NULL), "trial %d, elem %zu", trial,
                  elem);
    }
}

TEST(large_copies_split_over_threads_are_the_same)
{
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    sn_pool *pool = NULL;
    sonde_error err;
    CHECK_OK(sn_pool_create(&pool, 3, &alloc, &err));
    fill_source();
    static const struct {
        int64_t dims[3];
        ptrdiff_t src[3];
    } cases[] = {{{1, 1, 200000}, {0, 0, 1}},   {{1, 400, 500}, {0, 1, 400}},
                 {{64, 50, 60}, {3000, 1, 50}}, {{2, 300, 333}, {99900, 333, 1}},
                 {{1, 1, 200000}, {0, 0, 0}},   {{50, 3, 1000}, {0, 1, 3}},
                 {{3, 1, 60000}, {1, 0, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t *d = cases[i].dims;
        ptrdiff_t dst[3] = {(ptrdiff_t)(d[1] * d[2]), (ptrdiff_t)d[2], 1};
        CHECK_MSG(same_as_plain(4, 3, d, dst, cases[i].src, 0, pool), "case %zu", i);
    }
    sn_pool_free(pool);
}

TEST(a_plan_names_what_it_does)
{
    sn_copy c;
    sn_copy_plan(&c, 4, 2, (int64_t[]){8, 9}, (ptrdiff_t[]){9, 1}, (ptrdiff_t[]){1, 8});
    CHECK_STR(sn_copy_name(&c), "copy_transpose_4b");
    sn_copy_plan(&c, 4, 2, (int64_t[]){8, 9}, (ptrdiff_t[]){9, 1}, (ptrdiff_t[]){9, 1});
    CHECK_STR(sn_copy_name(&c), "copy_contiguous");
    sn_copy_plan(&c, 2, 2, (int64_t[]){8, 9}, (ptrdiff_t[]){9, 1}, (ptrdiff_t[]){0, 0});
    CHECK_STR(sn_copy_name(&c), "copy_fill_2b");
    CHECK_EQ(c.outer, 1);
    sn_copy_plan(&c, 4, 3, (int64_t[]){4, 5, 2}, (ptrdiff_t[]){10, 2, 1}, (ptrdiff_t[]){2, 8, 1});
    CHECK_STR(sn_copy_name(&c), "copy_transpose_8b");
}

TEST_MAIN()
