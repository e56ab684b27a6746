/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup tables: which key an element is, and what is made of its number. */
#include "compute/lookup.h"

#include <math.h>

#include "levels.h"

static sn_allocator alloc;
static sn_arena arena;

static void begin(void)
{
    sn_allocator_init_system(&alloc);
    sn_arena_init(&arena, &alloc);
}

TEST(strings_are_found_by_their_bytes_and_the_last_of_equal_keys_counts)
{
    const sonde_string keys[] = {{"b", 1}, {"", 0}, {"a\0c", 3}, {"b", 1}, {"a", 1}};
    sonde_string asked[] = {{"a", 1}, {"b", 1}, {"a\0c", 3}, {"", 0}, {"a\0", 2}, {"c", 1}};
    const int64_t want[] = {4, 3, 2, 1, -1, -1};
    sn_lookup m;
    begin();
    CHECK(sn_lookup_make(&m, keys, SONDE_DTYPE_STRING, NULL, 5, &arena));
    for (int64_t i = 0; i < 6; i++)
        CHECK_EQ(sn_lookup_find(&m, (sn_elems){SONDE_DTYPE_STRING, asked}, i), want[i]);
    sn_arena_free(&arena);
}

TEST(floats_are_found_by_their_value_in_any_type)
{
    const float keys[] = {NAN, 1.5f, 0.0f, -2};
    double asked[] = {-2, -0.0, 1.5, -NAN, 1.25};
    const int64_t want[] = {3, 2, 1, 0, -1};
    sn_lookup m;
    begin();
    CHECK(sn_lookup_make(&m, NULL, SONDE_DTYPE_F32, keys, 4, &arena));
    for (int64_t i = 0; i < 5; i++)
        CHECK_EQ(sn_lookup_find(&m, (sn_elems){SONDE_DTYPE_F64, asked}, i), want[i]);
    sn_arena_free(&arena);
}

TEST(random_integers_are_found_as_a_search_from_the_end_finds_them)
{
    for (int trial = 0; trial < 50; trial++) {
        int64_t keys[20], asked[30];
        const int64_t n = test_between(0, 20);
        for (int64_t i = 0; i < n; i++)
            keys[i] = test_between(-8, 8);
        for (int i = 0; i < 30; i++)
            asked[i] = test_between(-10, 10);
        sn_lookup m;
        begin();
        CHECK(sn_lookup_make(&m, NULL, SONDE_DTYPE_I64, keys, (size_t)n, &arena));
        for (int64_t i = 0; i < 30; i++) {
            int64_t want = n - 1;
            while (want >= 0 && keys[want] != asked[i])
                want--;
            CHECK_EQ(sn_lookup_find(&m, (sn_elems){SONDE_DTYPE_I64, asked}, i), want);
        }
        sn_arena_free(&arena);
    }
}

TEST(values_places_and_ones_follow_from_the_numbers)
{
    const int64_t keys[] = {7, 3, 5};
    int32_t asked[] = {5, 9, 7};
    const sn_elems e = {SONDE_DTYPE_I32, asked};
    sn_lookup m;
    begin();
    CHECK(sn_lookup_make(&m, NULL, SONDE_DTYPE_I64, keys, 3, &arena));

    const int16_t values[] = {70, 30, 50}, missing = -1;
    int16_t y[3];
    sn_lookup_values_run(&m, e, 3, &(sn_lookup_values){sizeof *y, values, &missing}, y);
    CHECK(y[0] == 50 && y[1] == -1 && y[2] == 70);

    const double x[] = {1, 2, 3};
    double placed[3];
    sn_lookup_place_run(&m, e, 3, sizeof *x, placed, x);
    CHECK(placed[0] == 3 && placed[1] == 0 && placed[2] == 1);

    float ones[9];
    CHECK_EQ(sn_lookup_one_hot_run(&m, e, 3, true, ones), -1);
    for (int i = 0; i < 9; i++)
        CHECK_EQ((int)ones[i], i == 2 || i == 6);
    CHECK_EQ(sn_lookup_one_hot_run(&m, e, 3, false, ones), 1);
    sn_arena_free(&arena);
}

TEST_MAIN()
