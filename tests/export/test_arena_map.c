/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the arena in the memory report: exact on a small plan, of bounded size on large ones,
 * and harmless whatever a file says. */
#include "export/reports.h"

#include "export/memory_sink.h"
#include "test.h"

static void add_life(sn_profile *p, sn_prof_life life)
{
    if (!sn_vec_push(&p->lives, p->alloc, life))
        abort();
}

static char *report(const sn_profile *p, int width)
{
    memory_sink out;
    if (sn_report_memory(p, width, memory_sink_init(&out), NULL) != SONDE_OK)
        abort();
    return out.text;
}

static size_t widest_line_of_map(const char *text)
{
    size_t widest = 0;
    for (const char *line = strstr(text, "lifetimes on"); line && *line;) {
        const char *end = strchr(line, '\n');
        const size_t n = (size_t)(end - line);
        if (memchr(line, '|', n))
            widest = n > widest ? n : widest;
        line = end + 1;
    }
    return widest;
}

TEST(values_are_rectangles_at_their_offsets_and_steps)
{
    failing_alloc m;
    sn_profile *p = syn_profile(failing_init(&m));
    for (uint32_t i = 0; i < 4; i++)
        syn_step(p, i ? "Relu" : "Conv", "node", "", "");
    add_life(p, (sn_prof_life){1, 0, 1, "a", 0, 128, SN_LIFE_ARENA});
    add_life(p, (sn_prof_life){1, 1, 2, "b", 128, 192, SN_LIFE_ARENA});
    add_life(p, (sn_prof_life){1, 1, 1, "workspace", 384, 64, SN_LIFE_WORKSPACE});
    add_life(p, (sn_prof_life){1, 2, 3, "c", 0, 16, SN_LIFE_ARENA});
    add_life(p, (sn_prof_life){1, 3, 4, "out", 0, 8, SN_LIFE_OUTPUT});
    add_life(p, (sn_prof_life){1, 3, 3, "found", 0, 0, SN_LIFE_DYNAMIC});
    char *text = report(p, 0);
    CHECK_HAS(text, "activations peak at step 1, Relu node, with 384 B; the arena is 100.0 % used");
    CHECK_HAS(text, "\nlifetimes on the arena and the workspace behind it, 448 B: a row is 64 B, a "
                    "step 8 columns\n"
                    ". free  : less than half used  # workspace\n"
                    "                      v peak, step 1\n"
                    "         0 B |AAAAAAAAAAAAAAAA::::::::::::::::|\n"
                    "        64 B |AAAAAAAAAAAAAAAA................|\n"
                    "       128 B |........BBBBBBBBBBBBBBBB........|\n"
                    "       192 B |........BBBBBBBBBBBBBBBB........|\n"
                    "       256 B |........BBBBBBBBBBBBBBBB........|\n"
                    "       320 B |................................|\n"
                    "       384 B |........########................|\n"
                    "        step  0                              3\n"
                    "\n"
                    "   bytes  offset  steps  made by  value\n"
                    "A  128 B     0 B    0-1     Conv      a\n"
                    "B  192 B   128 B    1-2     Relu      b\n"
                    "C   16 B     0 B    2-3     Relu      c\n"
                    "not on the map: 1 output, 1 value whose size depends on data\n");
    free(text);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(a_peak_in_a_step_without_a_name_is_its_operators)
{
    failing_alloc m;
    sn_profile *p = syn_profile(failing_init(&m));
    syn_step(p, "MaxPool", "", "", "");
    add_life(p, (sn_prof_life){1, 0, 0, "a", 0, 64, SN_LIFE_ARENA});
    char *text = report(p, 80);
    CHECK_HAS(text, "activations peak at step 0, MaxPool, with 64 B; ");
    CHECK_HAS(text, "\nlifetimes on the arena, 64 B: ");
    free(text);
    sn_profile_free(p);
}

/* 128 + 40 bytes of the 192 that the run allocates. */
TEST(the_arena_ends_with_the_block_of_its_last_value)
{
    failing_alloc m;
    sn_profile *p = syn_profile(failing_init(&m));
    syn_step(p, "Gemm", "fc1", "", "");
    syn_step(p, "Gemm", "fc2", "", "");
    add_life(p, (sn_prof_life){1, 0, 1, "a", 0, 128, SN_LIFE_ARENA});
    add_life(p, (sn_prof_life){1, 1, 1, "b", 128, 40, SN_LIFE_ARENA});
    p->memory.arenas = 192;
    char *text = report(p, 80);
    CHECK_HAS(text, "activations  192 B\n");
    CHECK_HAS(text, "with 168 B; the arena is 87.5 % used there\n");
    CHECK_HAS(text, "\nlifetimes on the arena, 192 B: ");
    free(text);
    const sn_prof_life last = {1, 0, 1, "end", UINT64_MAX - 8, 8, SN_LIFE_ARENA};
    CHECK_EQ(sn_life_block_end(&last), UINT64_MAX);
    sn_profile_free(p);
}

TEST(a_thousand_values_take_no_more_room_than_the_terminal_has)
{
    failing_alloc m;
    sn_profile *p = syn_profile(failing_init(&m));
    for (uint32_t i = 0; i < 1000; i++) {
        char *name = sn_arena_printf(&p->arena, "value %u", i);
        syn_step(p, "Relu", name, "", "");
        add_life(p, (sn_prof_life){1, i, i + 3, name, i % 4 * 65536, 65536 - i, SN_LIFE_ARENA});
    }
    for (int width = 1; width < 200; width += 33) {
        char *text = report(p, width);
        size_t lines = 0;
        for (const char *at = text; *at; at++)
            lines += *at == '\n';
        CHECK_HAS(text, "+ smaller values");
        CHECK_MSG(lines < 80, "%zu lines", lines);
        const size_t widest = widest_line_of_map(text);
        CHECK_MSG(widest <= (size_t)(width > 35 ? width : 35), "%zu for %d", widest, width);
        free(text);
    }
    sn_profile_free(p);
}

TEST(names_cannot_write_to_the_terminal)
{
    failing_alloc m;
    sn_profile *p = syn_profile(failing_init(&m));
    syn_step(p, "Re\x1b[2Jlu", "n\node", "", "");
    add_life(p, (sn_prof_life){1, 0, 0, "a\x1b[31m\r\n", 0, 64, SN_LIFE_ARENA});
    char *text = report(p, 80);
    CHECK(!strchr(text, 0x1b) && !strchr(text, '\r'));
    CHECK_HAS(text, "a\\x1b[31m\\x0d\\x0a\n");
    free(text);
    sn_profile_free(p);
}

TEST(any_numbers_from_a_file_do_no_harm)
{
    static const uint64_t sizes[] = {
        0, 1, 64, 4096, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX, UINT64_C(1) << 62};
    static const uint32_t steps[] = {0, 1, 2, 1000, UINT32_MAX - 1, UINT32_MAX};
    for (int round = 0; round < 400; round++) {
        failing_alloc m;
        sn_profile *p = syn_profile(failing_init(&m));
        syn_step(p, "Conv", "", "", "");
        for (uint64_t n = test_rand() % 40; n > 0; n--)
            add_life(p, (sn_prof_life){.table = (uint32_t)(test_rand() % 2),
                                       .first = steps[test_rand() % 6],
                                       .last = steps[test_rand() % 6],
                                       .name = "x",
                                       .offset = sizes[test_rand() % 8],
                                       .bytes = sizes[test_rand() % 8],
                                       .place = (sn_prof_place)(test_rand() % 4)});
        char *text = report(p, (int)(test_rand() % 3000));
        CHECK(strlen(text) < 65536);
        free(text);
        sn_profile_free(p);
        CHECK_EQ(m.live, 0);
    }
}

TEST_MAIN()
