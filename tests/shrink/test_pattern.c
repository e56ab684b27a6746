/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns as text, and lists of names. */
#include "shrink/pattern.h"

#include "failing_alloc.h"
#include "shrink/selection.h"
#include "test.h"

TEST(patterns_are_read_as_outputs_by_k)
{
    sonde_error err;
    sn_pattern p;
    static const struct {
        const char *text;
        int64_t outputs, ks, zeros;
    } good[] = {{"4x1", 4, 1, 0}, {"1x16", 1, 16, 0}, {"16x4", 16, 4, 0},
                {"1x1", 1, 1, 0}, {"2:4", 1, 4, 2},   {"4096x4096", 4096, 4096, 0},
                {"03x7", 3, 7, 0}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(sn_pattern_parse(good[i].text, &p, &err));
        CHECK_EQ(p.outputs, good[i].outputs);
        CHECK_EQ(p.ks, good[i].ks);
        CHECK_EQ(p.zeros, good[i].zeros);
    }
    static const char *const bad[] = {
        "",    "4",   "x",   "4x",     "x1",  "4x1x1", "-4x1", "4 x1",
        "4X1", "0x1", "4x0", "4097x1", "1:4", "2:4 ",  "4x1 ", "4x18446744073709551617"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_MSG(sn_pattern_parse(bad[i], &p, &err) == SONDE_INVALID_ARGUMENT, "'%s'", bad[i]);
        CHECK_HAS(err.message, "4x1, 1x16");
    }
}

typedef struct named_graph {
    failing_alloc memory;
    sn_arena arena;
    sn_graph *g;
} named_graph;

static void named(named_graph *n, const char *const *names, size_t count)
{
    sonde_error err;
    sn_allocator *alloc = failing_init(&n->memory);
    sn_arena_init(&n->arena, alloc);
    CHECK_OK(sn_graph_new(&n->g, &n->arena, alloc, "g", NULL, &err));
    for (size_t i = 0; i < count; i++) {
        sn_node *node = NULL;
        CHECK_OK(sn_graph_add_node(n->g, NULL, "", "Neg", names[i], 1, 1, &node, &err));
    }
}

static void done(named_graph *n)
{
    sn_graph_free(n->g);
    sn_arena_free(&n->arena);
    CHECK_EQ(n->memory.live, 0);
}

static sonde_status only(named_graph *n, sn_selection *s, const char *entry, sonde_error *err)
{
    return sn_selection_make(s, n->g, &entry, 1, NULL, 0, &n->arena, err);
}

static bool has(const named_graph *n, const sn_selection *s, const char *name)
{
    const sn_node *node = n->g->first;
    while (node && strcmp(node->name, name) != 0)
        node = node->next;
    return node && sn_selection_has(s, node, NULL);
}

TEST(entries_are_names_before_they_are_patterns_and_lists)
{
    static const char *const names[] = {"a", "b", "a,b", "layer.1/x", "layer.2/x", "st*r", "star"};
    named_graph n;
    sn_selection s;
    sonde_error err;
    named(&n, names, sizeof names / sizeof names[0]);
    CHECK_OK(only(&n, &s, "a,b", &err));
    CHECK(has(&n, &s, "a,b") && !has(&n, &s, "a"));
    CHECK_OK(only(&n, &s, "a,star", &err));
    CHECK(has(&n, &s, "a") && has(&n, &s, "star"));
    CHECK(!has(&n, &s, "b"));
    CHECK_OK(only(&n, &s, ",layer.?/*,", &err));
    CHECK(has(&n, &s, "layer.2/x") && !has(&n, &s, "star"));
    CHECK_EQ(only(&n, &s, "a,stat", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'stat'; similar names: 'star'");
    CHECK_EQ(only(&n, &s, "z*", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'z*'; its first names: 'a', 'b', 'a,b'");
    CHECK_EQ(only(&n, &s, "", &err), SONDE_INVALID_ARGUMENT);
    done(&n);
}

TEST(wildcards_that_go_back_often_end)
{
    char name[4001], pattern[401];
    memset(name, 'a', 4000);
    name[4000] = 0;
    for (size_t i = 0; i < 400; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[399] = 'b';
    pattern[400] = 0;
    named_graph n;
    sn_selection s;
    sonde_error err;
    named(&n, (const char *const[]){name}, 1);
    CHECK_EQ(only(&n, &s, pattern, &err), SONDE_INVALID_ARGUMENT);
    pattern[399] = 'a';
    CHECK_OK(only(&n, &s, pattern, &err));
    done(&n);
}

TEST_MAIN()
