/* SPDX-License-Identifier: Apache-2.0 */
/* Workspace: pieces lie apart and aligned, sizes that overflow are remembered, and under
 * AddressSanitizer only pieces can be touched, those of an inner workspace included. */
#include "base/workspace.h"

#include "test.h"

#if SN_WORKSPACE_GUARDED
#include <sanitizer/asan_interface.h>
#endif

TEST(pieces_are_aligned_and_do_not_overlap)
{
    static const size_t sizes[] = {1, 64, 0, 65, 1000, 3};
    sn_workspace w = {0};
    size_t end = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const sn_piece p = sn_carve_bytes(&w, sizes[i]);
        if (!sizes[i]) { /* takes no room */
            CHECK_EQ(w.bytes, end);
            continue;
        }
        CHECK_EQ(p.at % SN_ALIGN, 0);
        CHECK(p.at >= end);
        end = p.at + sizes[i];
        CHECK_EQ(w.bytes, end);
    }
    CHECK(!w.overflow);
}

TEST(elements_count_with_their_size)
{
    sn_workspace w = {0};
    const sn_piece p = sn_carve(&w, 10, sizeof(double));
    CHECK_EQ(w.bytes - p.at, 80);
}

TEST(sizes_that_cannot_be_are_remembered)
{
    static const struct {
        int64_t n;
        size_t elem_bytes;
    } cases[] = {{-1, 4}, {INT64_MAX, 8}, {INT64_MAX / 2, 4}, {INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_workspace w = {0};
        sn_carve(&w, cases[i].n, cases[i].elem_bytes);
        CHECK_MSG(w.overflow, "case %zu", i);
        sn_carve(&w, 1, 1);
        CHECK_MSG(w.overflow, "case %zu", i);
    }
}

TEST(a_sum_of_sizes_that_overflows_is_remembered)
{
    sn_workspace w = {0};
    for (int i = 0; i < 4; i++)
        sn_carve_bytes(&w, PTRDIFF_MAX / 2);
    CHECK(w.overflow);
}

TEST(equal_pieces_are_aligned_and_do_not_overlap)
{
    sn_workspace w = {0};
    const sn_piece before = sn_carve_bytes(&w, 10);
    const sn_pieces each = sn_carve_each(&w, 3, 100);
    const sn_piece behind = sn_carve_bytes(&w, 1);
    uint8_t *memory = aligned_alloc(SN_ALIGN, sn_round_up(w.bytes, SN_ALIGN));
    CHECK(memory && !w.overflow);
    const uint8_t *end = (uint8_t *)sn_piece_at(memory, before) + 10;
    for (size_t i = 0; i < 3; i++) {
        const uint8_t *p = sn_pieces_at(memory, each, i);
        CHECK_EQ((uintptr_t)p % SN_ALIGN, 0);
        CHECK(p >= end);
        end = p + 100;
    }
    CHECK((uint8_t *)sn_piece_at(memory, behind) >= end);
    free(memory);
}

TEST(equal_pieces_that_are_too_many_or_too_large_are_remembered)
{
    static const size_t cases[][2] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 64, 64}, {4, PTRDIFF_MAX / 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_workspace w = {0};
        sn_carve_each(&w, cases[i][0], cases[i][1]);
        CHECK_MSG(w.overflow, "case %zu", i);
    }
    sn_workspace none = {0};
    sn_carve_each(&none, 0, 100);
    sn_carve_each(&none, 100, 0);
    CHECK(!none.overflow && none.bytes == 0);
}

TEST(an_inner_workspace_takes_its_bytes_and_passes_its_overflow_on)
{
    sn_workspace inner = {0}, w = {0};
    sn_carve_bytes(&inner, 100);
    sn_carve_bytes(&inner, 7);
    const sn_piece p = sn_carve_inner(&w, &inner);
    CHECK_EQ(p.at % SN_ALIGN, 0);
    CHECK_EQ(w.bytes, p.at + inner.bytes);
    CHECK(!w.overflow);
    sn_carve(&inner, -1, 1);
    sn_carve_inner(&w, &inner);
    CHECK(w.overflow);
}

TEST(two_workspaces_used_in_turn_take_the_larger_ones_bytes)
{
    sn_workspace small = {0}, large = {0};
    sn_carve_bytes(&small, 100);
    sn_carve_bytes(&large, 1000);
    for (int turned = 0; turned < 2; turned++) {
        sn_workspace w = {0};
        const sn_piece p = sn_carve_either(&w, turned ? &large : &small, turned ? &small : &large);
        CHECK_EQ(w.bytes, p.at + large.bytes);
        CHECK(!w.overflow);
    }
    sn_carve(&small, -1, 1);
    sn_workspace w = {0};
    sn_carve_either(&w, &large, &small);
    CHECK(w.overflow);
}

/* One piece of 300 bytes, or many of 8: the second ones lie in gaps of the first and before pieces
 * that were joined. */
TEST(pieces_of_both_workspaces_can_be_touched)
{
#if SN_WORKSPACE_GUARDED
    sn_workspace few = {0}, many = {0};
    const sn_piece one = sn_carve_bytes(&few, 300);
    const sn_pieces each = sn_carve_each(&many, SN_WORKSPACE_EXTENTS + 6, 8);
    for (int turned = 0; turned < 2; turned++) {
        sn_workspace w = {0};
        const sn_piece in = sn_carve_either(&w, turned ? &many : &few, turned ? &few : &many);
        uint8_t *memory = aligned_alloc(SN_ALIGN, sn_round_up(w.bytes, SN_ALIGN));
        CHECK(memory != NULL);
        sn_workspace_close(memory, w.bytes);
        sn_workspace_open_pieces(memory, &w);
        uint8_t *core = sn_piece_at(memory, in);
        CHECK(!__asan_region_is_poisoned(sn_piece_at(core, one), 300));
        for (size_t i = 0; i < SN_WORKSPACE_EXTENTS + 6; i++)
            CHECK(!__asan_region_is_poisoned(sn_pieces_at(core, each, i), 8));
        sn_workspace_open(memory, w.bytes);
        free(memory);
    }
#else
    SKIP_TEST("only AddressSanitizer can tell");
#endif
}

TEST(only_pieces_can_be_touched)
{
#if SN_WORKSPACE_GUARDED
    sn_workspace inner = {0}, w = {0};
    const sn_piece a = sn_carve_bytes(&inner, 100), b = sn_carve_bytes(&inner, 64);
    const sn_pieces each = sn_carve_each(&w, 2, 64);
    const sn_piece in = sn_carve_inner(&w, &inner);
    uint8_t *memory = aligned_alloc(SN_ALIGN, sn_round_up(w.bytes, SN_ALIGN));
    CHECK(memory != NULL);
    sn_workspace_close(memory, w.bytes);
    sn_workspace_open_pieces(memory, &w);
    uint8_t *core = sn_piece_at(memory, in);
    const struct {
        uint8_t *p;
        size_t bytes;
    } pieces[] = {{sn_pieces_at(memory, each, 0), 64},
                  {sn_pieces_at(memory, each, 1), 64},
                  {sn_piece_at(core, a), 100},
                  {sn_piece_at(core, b), 64}};
    for (size_t i = 0; i < 4; i++) {
        CHECK_MSG(!__asan_region_is_poisoned(pieces[i].p, pieces[i].bytes), "piece %zu", i);
        CHECK_MSG(__asan_address_is_poisoned(pieces[i].p - 1), "piece %zu", i);
        CHECK_MSG(i == 3 || __asan_address_is_poisoned(pieces[i].p + pieces[i].bytes), "piece %zu",
                  i);
    }
    sn_workspace_open(memory, w.bytes);
    free(memory);
#else
    SKIP_TEST("only AddressSanitizer can tell");
#endif
}

TEST_MAIN()
