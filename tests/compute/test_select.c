/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, not zero or different: every type, axes in the middle, nothing at all. */
#include "compute/select.h"

#include "levels.h"

TEST(entries_with_a_flag_are_kept_in_order)
{
    const sn_entries e = {2, 4, 3};
    const uint8_t flags[5] = {0, 1, 0, 7, 1};
    uint16_t x[24], y[12];
    for (int i = 0; i < 24; i++)
        x[i] = (uint16_t)i;
    CHECK_EQ(sn_flags_count(flags, 4), 2);
    CHECK_EQ(sn_flags_count(NULL, 0), 0);
    sn_compress_run(&e, 2, y, x, flags, 4, 2);
    const uint16_t want[12] = {3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23};
    CHECK(memcmp(y, want, sizeof y) == 0);
    /* Counted 2, but now no flag is set: the first entry stands in. */
    sn_compress_run(&e, 2, y, x, (const uint8_t[4]){0}, 4, 2);
    CHECK(y[0] == 0 && y[3] == 0 && y[6] == 12);
}

TEST(coordinates_of_what_is_not_zero)
{
    const int64_t dims[3] = {2, 1, 3};
    const float x[6] = {0, 1, -0.0f, NAN, 0, 2};
    const sn_elems e = {SONDE_DTYPE_F32, (void *)(uintptr_t)x};
    int64_t y[12];
    CHECK_EQ(sn_nonzero_count(e, 6), 3);
    sn_nonzero_run(e, dims, 3, y, 3);
    const int64_t want[9] = {0, 1, 1, 0, 0, 0, 1, 0, 2};
    CHECK(memcmp(y, want, sizeof want) == 0);
    sn_nonzero_run(e, dims, 3, y, 4); /* as if there had been one more */
    CHECK(y[3] == 0 && y[7] == 0 && y[11] == 0);
    CHECK_EQ(sn_nonzero_count(e, 0), 0);
}

TEST(random_integers_are_grouped_by_value_or_by_appearance)
{
    enum { N = 40 };
    for (int trial = 0; trial < 100; trial++) {
        const sn_unique u = sn_unique_plan((sn_entries){1, test_between(0, N), 1}, trial % 2);
        const int64_t n = u.entries.n;
        int32_t x[N];
        void *scratch = malloc(u.workspace.bytes + 1);
        CHECK(scratch != NULL);
        int64_t first[N], inverse[N], counts[N];
        int32_t y[N];
        for (int64_t i = 0; i < n; i++)
            x[i] = (int32_t)test_between(-4, 4);
        const sn_elems e = {SONDE_DTYPE_I32, x};
        const int64_t groups = sn_unique_find(&u, e, scratch);
        sn_unique_write(&u, e, scratch, groups, y, first, inverse, counts);
        int64_t total = 0;
        for (int64_t g = 0; g < groups; g++) {
            int64_t n_equal = 0, at = -1;
            for (int64_t i = 0; i < n; i++)
                if (x[i] == y[g]) {
                    n_equal++;
                    at = at < 0 ? i : at;
                    CHECK_EQ(inverse[i], g);
                }
            CHECK_EQ(counts[g], n_equal);
            CHECK_EQ(first[g], at);
            if (g > 0)
                CHECK_MSG(u.sorted ? y[g] > y[g - 1] : first[g] > first[g - 1], "trial %d", trial);
            total += n_equal;
        }
        CHECK_EQ(total, n);
        free(scratch);
    }
}

TEST(entries_along_an_axis_strings_and_complex_numbers_are_compared_whole)
{
    const sn_unique columns = sn_unique_plan((sn_entries){2, 3, 1}, true);
    const double x[6] = {5, 1, 5, 6, 2, 6}; /* columns 5 6, 1 2, 5 6 */
    int64_t first[3];
    void *scratch = malloc(columns.workspace.bytes); /* enough for all: the entries are three */
    CHECK(scratch != NULL);
    double y[4];
    const sn_elems e = {SONDE_DTYPE_F64, (void *)(uintptr_t)x};
    CHECK_EQ(sn_unique_find(&columns, e, scratch), 2);
    sn_unique_write(&columns, e, scratch, 2, y, NULL, NULL, NULL);
    CHECK(y[0] == 1 && y[1] == 5 && y[2] == 2 && y[3] == 6);

    const sn_unique each = sn_unique_plan((sn_entries){1, 3, 1}, true);
    const sonde_string text[3] = {{"b", 1}, {"", 0}, {"ab", 2}};
    const sn_elems strings = {SONDE_DTYPE_STRING, (void *)(uintptr_t)text};
    CHECK_EQ(sn_unique_find(&each, strings, scratch), 3);
    sn_unique_write(&each, strings, scratch, 3, NULL, first, NULL, NULL);
    CHECK(first[0] == 1 && first[1] == 2 && first[2] == 0);

    const float pairs[6] = {1, 2, 1, -2, 1, 2};
    const sn_elems numbers = {SONDE_DTYPE_C64, (void *)(uintptr_t)pairs};
    CHECK_EQ(sn_unique_find(&each, numbers, scratch), 2);
    sn_unique_write(&each, numbers, scratch, 2, NULL, first, NULL, NULL);
    CHECK(first[0] == 1 && first[1] == 0);
    free(scratch);
}

TEST_MAIN()
