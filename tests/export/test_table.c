/* SPDX-License-Identifier: Apache-2.0 */
/* The timing table, letter by letter. */
#include <locale.h>

#include "export/memory_sink.h"
#include "export/writer.h"
#include "test.h"

#define CHECK_TABLE(p, options, expected)                                                          \
    do {                                                                                           \
        memory_sink table_out;                                                                     \
        CHECK_OK(sn_export_table((p), (options), memory_sink_init(&table_out), &err));             \
        CHECK_STR(table_out.text, (expected));                                                     \
        free(table_out.text);                                                                      \
    } while (0)

TEST(the_plain_table_has_the_layout_people_know)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    const char *expected =
        "Graph run of 2 ops finished in 11.000ms\n"
        "\n"
        "Conv             7.00ms  (63.64%)\n"
        "MatMul           2.00ms  (18.18%)\n"
        "[Other]          1.50ms  (13.64%)\n"
        "[Mem alloc/free] 0.50ms  (4.55%)\n"
        "mean of 2 runs; median 11.00, p95 11.90, p99 11.98 ms; warm-up 1; profiler cost 0.00 ms "
        "(0.0 %), not included\n";
    CHECK_TABLE(p, NULL, expected);
    if (setlocale(LC_ALL, "de_DE.UTF-8")) { /* where installed: a decimal comma must not appear */
        CHECK_TABLE(p, NULL, expected);
        setlocale(LC_ALL, "C");
    }
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(long_times_widen_the_time_column)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    uint32_t op = syn_step(p, "Conv", "c", "", "");
    p->record_ns = 10000;
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, 1300u * MS, "Iteration0")->id;
    syn_op(p, it, 0, 1234u * MS, op);
    CHECK_TABLE(p, NULL,
                "Graph run of 1 ops finished in 1299.990ms\n"
                "\n"
                "Conv             1234.00ms (94.92%)\n"
                "[Other]          65.99ms   (5.08%)\n"
                "[Mem alloc/free] 0.00ms    (0.00%)\n"
                "mean of 1 run; median 1299.99, p95 1299.99, p99 1299.99 ms; warm-up 0; profiler "
                "cost 0.01 ms (0.0 %), not included\n");
    sn_profile_free(p);
}

/* A run of `total_ns` of which one operator takes two thirds. */
static sn_profile *one_operator(failing_alloc *m, uint64_t total_ns)
{
    sn_profile *p = syn_profile(failing_init(m));
    uint32_t op = syn_step(p, "Conv", "c", "", "");
    uint32_t it = syn_span(p, SN_CAT_ITERATION, 0, 0, total_ns, "Iteration0")->id;
    syn_op(p, it, 0, total_ns / 3 * 2, op);
    return p;
}

TEST(small_times_choose_their_unit)
{
    static const struct {
        uint64_t ns;
        const char *total, *row, *last;
    } cases[] = {
        {312, " in 312.00ns\n", "Conv             208.0ns (66.67%)\n", "p99 312.0 ns;"},
        {9130, " in 9.130µs\n", "Conv             6.09µs  (66.66%)\n", "p99 9.13 µs;"},
        {999999, " in 999.999µs\n", "Conv             666.67µs (66.67%)\n", " 1000.00 µs;"},
        {MS, " in 1.000ms\n", "Conv             0.67ms  (66.67%)\n", "p99 1.00 ms;"},
        {UINT64_C(12345000000), " in 12.345s\n", "Conv             8.23s   (66.67%)\n",
         "p99 12.35 s;"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_profile *p = one_operator(&m, cases[i].ns);
        memory_sink out;
        CHECK_OK(sn_export_table(p, NULL, memory_sink_init(&out), &err));
        CHECK_HAS(out.text, cases[i].total);
        CHECK_HAS(out.text, cases[i].row);
        CHECK_HAS(out.text, cases[i].last);
        free(out.text);
        sn_profile_free(p);
    }
}

TEST(shapes_and_single_calls_of_short_runs_have_digits)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = one_operator(&m, 9130);
    memory_sink out;
    sn_table_options o = {.by_shape = true, .width = 100};
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, " mean µs  p50 µs ");
    CHECK_HAS(out.text, "  6.09 ");
    CHECK_HAS(out.text, " | Mean (µs) | Total (µs) | ");
    CHECK_HAS(out.text, " |     6.086 |      6.086 | ");
    free(out.text);
    sn_profile_free(p);
}

TEST(a_cost_that_is_small_beside_the_run_is_not_shown_as_nothing)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = one_operator(&m, 20 * MS);
    p->record_ns = 400;
    memory_sink out;
    CHECK_OK(sn_export_table(p, NULL, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "profiler cost 0.0004 ms (0.0 %)");
    free(out.text);
    sn_profile_free(p);
}

TEST(a_filter_that_nothing_passes_says_what_there_is)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    memory_sink out;
    sn_table_options o = {.filter_op = "Foo, matmul ,Bar\x1b"};
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\nMatMul 2.00ms");
    CHECK_HAS(out.text, "no operator is called 'Foo', 'Bar\\x1b'; there are Conv, MatMul\n");
    free(out.text);
    o.filter_op = "MatMul,Conv";
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK(!strstr(out.text, "no operator"));
    free(out.text);
    sn_profile_free(p);
}

TEST(sorting_by_name_puts_bracket_rows_among_the_rest)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->steps.data[1].op_type = "softmax";
    memory_sink out;
    sn_table_options o = {.sort_by_name = true};
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\nConv             7.00ms  (63.64%)\n[Mem alloc/free] 0.50ms  (4.55%)\n"
                        "[Other]          1.50ms  (13.64%)\nsoftmax          2.00ms  (18.18%)\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(a_filter_hides_rows_and_says_so)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    sn_table_options o = {.filter_op = "Relu,conv"};
    CHECK_TABLE(p, &o,
                "Graph run of 2 ops finished in 11.000ms\n"
                "\n"
                "Conv 7.00ms  (63.64%)\n"
                "1 operator and the time outside of operators hidden: 4.00ms (36.36%)\n"
                "no operator is called 'Relu'; there are Conv, MatMul\n"
                "mean of 2 runs; median 11.00, p95 11.90, p99 11.98 ms; warm-up 1; profiler cost "
                "0.00 ms (0.0 %), not included\n");
    sn_profile_free(p);
}

TEST(shapes_are_a_table_under_each_operator)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    sn_table_options o = {.by_shape = true};
    memory_sink out;
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(
        out.text,
        "Conv             7.00ms  (63.64%)\n"
        "\n"
        "    Shape                         | Count | Mean (ms) | Total (ms) | ns/input elem | "
        "Example node\n"
        "    [1, 3, 4, 4], [2, 3, 1, 1], _ |     1 |    7.0000 |     7.0000 |    129629.630 | "
        "conv1\n"
        "\n"
        "MatMul           2.00ms  (18.18%)\n"
        "\n");
    CHECK_HAS(out.text, "[Other]          1.50ms  (13.64%)\n[Mem alloc/free] 0.50ms  (4.55%)\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(nodes_show_what_was_fused_into_them)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    sn_table_options o = {.by_node = true};
    memory_sink out;
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\nConv+Add+Relu  conv1 7.00ms  (63.64%)  conv1, add1, relu1\n"
                        "MatMul         fc    2.00ms  (18.18%)\n"
                        "[Other]              1.50ms  (13.64%)\n"
                        "[Mem alloc/free]     0.50ms  (4.55%)\n"
                        "mean of");
    free(out.text);
    o.by_shape = true; /* both: operators with their shapes, then the nodes */
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "Example node\n");
    CHECK_HAS(out.text, "\n\nConv+Add+Relu  conv1");
    free(out.text);
    sn_profile_free(p);
}

TEST(a_wide_terminal_gets_as_many_columns_as_fit)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    sn_table_options o = {.width = 120};
    memory_sink out;
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(
        out.text,
        "\n"
        "operator         time    share     calls  mean µs  p50 µs  p99 µs  GFLOP/s  GB/s  kernel\n"
        "Conv             7.00ms  (63.64%)      1   7000.0  7000.0  7980.0      0.1   0.0  "
        "f32_conv1x1_avx2\n"
        "MatMul           2.00ms  (18.18%)      1   2000.0  2000.0  2000.0      0.5   0.0  "
        "f32_gemm_6x16_avx2\n"
        "[Other]          1.50ms  (13.64%)      1   1500.0  1500.0  1500.0        -     -\n"
        "[Mem alloc/free] 0.50ms  (4.55%)       1    500.0   500.0   500.0        -     -\n");
    free(out.text);
    o.width = 50;
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\noperator         time    share     calls  mean µs\n");
    free(out.text);
    o.width = 20; /* nothing fits: the plain table */
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "11.000ms\n\nConv             7.00ms  (63.64%)\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(names_fit_the_terminal_and_keep_their_ends)
{
    static const char *const nodes[] = {
        "/features/features.2/features.2.0/block/block.0/block.0.0/Conv",
        "/features/features.3/features.3.0/block/block.0/block.0.0/Conv",
        "\x1b[31m/\xE2\x80\xAEname/of/an/attacker/that/goes/on/and/on/and/on/and/on", "short"};
    failing_alloc m;
    sonde_error err = {0};
    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
        sn_profile *p = syn_tiny(failing_init(&m));
        for (size_t i = 0; i < p->steps.n; i++) {
            p->steps.data[i].name = nodes[k];
            p->steps.data[i].post_op = "BatchNormalization+Swish+Conv+BatchNormalization+Swish";
        }
        for (size_t width = 100; width <= 400; width += 9) {
            sn_table_options o = {.by_node = true, .by_shape = true, .width = (int)width};
            memory_sink out;
            CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
            for (char *line = strtok(out.text, "\n"); line; line = strtok(NULL, "\n"))
                CHECK(sn_terminal_width(line) <= width || strncmp(line, "mean of", 7) == 0);
            free(out.text);
        }
        sn_table_options o = {.by_node = true};
        memory_sink out;
        CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
        CHECK_HAS(out.text, k == 2 ? "\\x1b[31m/" : nodes[k]); /* a file has whole names */
        CHECK(!strchr(out.text, 0x1b));
        free(out.text);
        sn_profile_free(p);
    }
}

TEST(a_name_is_shortened_to_what_tells_it_from_others)
{
    static const struct {
        const char *name;
        size_t room;
        const char *shown;
    } cases[] = {
        {"conv1", 5, "conv1"},
        {"/features/features.2/features.2.0/conv", 38, "/features/features.2/features.2.0/conv"},
        {"/features/features.2/features.2.0/conv", 37, "/features.2.0/conv"},
        {"/features/features.2/features.2.0/conv", 18, "/features.2.0/conv"},
        {"/features/features.2/features.2.0/conv", 17,
         "/fe\xE2\x80\xA6"
         "ures.2.0/conv"},
        {"/encoder/layer.3/output/dense/MatMul", 30,
         "/enco\xE2\x80\xA6"
         "er.3/output/dense/MatMul"},
        {"features/features2/x", 19,
         "fea\xE2\x80\xA6"
         "res/features2/x"},
        {"\x1b[2J", 7, "\\x1b[2J"},
        {"ab\x1b"
         "cd",
         7,
         "a\xE2\x80\xA6"
         "cd"},
        {"\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC", 4,
         "\xE2\x80\xA6\xC3\xA4\xC3\xB6\xC3\xBC"},
        {"long", 1, "\xE2\x80\xA6"},
        {"long", 0, ""},
        {"", 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory_sink out;
        sn_writer w;
        sonde_error err = {0};
        sn_writer_init(&w, memory_sink_init(&out));
        const size_t columns = sn_put_short(&w, cases[i].name, cases[i].room);
        CHECK_OK(sn_writer_finish(&w, &err));
        CHECK_STR(out.text ? out.text : "", cases[i].shown);
        CHECK(columns <= cases[i].room);
        free(out.text);
    }
}

TEST(colour_appears_only_when_asked_for)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    sn_table_options o = {.color = true};
    memory_sink out;
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\x1b[1mGraph run");
    CHECK_HAS(out.text, "\x1b[2m[Other]");
    free(out.text);
    o.color = false;
    CHECK_OK(sn_export_table(p, &o, memory_sink_init(&out), &err));
    CHECK(strchr(out.text, 0x1b) == NULL);
    free(out.text);
    sn_profile_free(p);
}

TEST(names_cannot_play_with_the_terminal)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->steps.data[0].op_type = "Conv\x1b[31m\n";
    p->steps.data[1].op_type = "M\xc3\xa4t\xff\xe2\x80\xae";
    memory_sink out;
    CHECK_OK(sn_export_table(p, NULL, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\nConv\\x1b[31m\\x0a    7.00ms  (63.64%)\n");
    CHECK_HAS(out.text, "\nM\xc3\xa4t\\xff\\xe2\\x80\\xae 2.00ms  (18.18%)\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(lost_records_and_missing_runs_are_said)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    p->dropped = 5;
    memory_sink out;
    CHECK_OK(sn_export_table(p, NULL, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "5 records were dropped");
    free(out.text);
    for (size_t i = 0; i < p->spans.n; i++)
        p->spans.data[i].warmup = true;
    CHECK_TABLE(p, NULL, "No measured run in this profile (warm-up 3)\n");
    sn_profile_free(p);
}

/* ------------------------------------------------------------------ options */
typedef struct warnings {
    int n;
    char last[512];
} warnings;

static void warn(void *user, const char *message)
{
    warnings *w = user;
    w->n++;
    snprintf(w->last, sizeof w->last, "%s", message);
}

static sn_table_options parse(const char *text, sn_arena *arena, warnings *w)
{
    sn_table_options o;
    memset(w, 0, sizeof *w);
    sn_table_options_parse(text, &o, arena, warn, w);
    return o;
}

TEST(options_are_read_from_the_environment_variables_form)
{
    failing_alloc m;
    sn_arena arena;
    warnings w;
    sn_arena_init(&arena, failing_init(&m));
    sn_table_options o =
        parse("sort=name  by-shape=Yes\tby-node=t filter-op=Conv,MatMul ", &arena, &w);
    CHECK_EQ(w.n, 0);
    CHECK(o.sort_by_name && o.by_shape && o.by_node && !o.color && o.width == 0);
    CHECK_STR(o.filter_op, "Conv,MatMul");
    o = parse("sort=time by-shape=0 by-node=n filter-op=", &arena, &w);
    CHECK_EQ(w.n, 0);
    CHECK(!o.sort_by_name && !o.by_shape && !o.by_node && !o.filter_op);
    static const char *const harmless[] = {"", "1", "true", "  ", "0", NULL};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        o = parse(harmless[i], &arena, &w);
        CHECK_EQ(w.n, 0);
        CHECK(!o.by_shape && !o.filter_op);
    }
    sn_arena_free(&arena);
}

TEST(bad_options_warn_and_never_fail)
{
    failing_alloc m;
    sn_arena arena;
    warnings w;
    sn_arena_init(&arena, failing_init(&m));
    sn_table_options o = parse("colour=1 by-shape=1", &arena, &w);
    CHECK_EQ(w.n, 1);
    CHECK_HAS(w.last, "unknown key 'colour'");
    CHECK(o.by_shape);
    parse("sort=size", &arena, &w);
    CHECK_HAS(w.last, "bad value 'size'");
    o = parse("by-node=maybe by-shape", &arena, &w);
    CHECK_EQ(w.n, 2);
    CHECK_HAS(w.last, "no value in 'by-shape'");
    CHECK(!o.by_node && !o.by_shape);
    parse("= == a=b=c", &arena, &w);
    CHECK_EQ(w.n, 3);
    m.fail_at = 0;
    m.calls = 0;
    sn_arena_free(&arena);
    o = parse("filter-op=Conv", &arena, &w);
    CHECK_EQ(w.n, 1);
    CHECK(!o.filter_op);
    sn_table_options_parse("nonsense", &o, &arena, NULL, NULL);
    sn_arena_free(&arena);
}

TEST(every_failing_allocation_of_the_table_is_reported)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    long live = m.live;
    sn_table_options o = {.by_shape = true, .by_node = true};
    bool done = false;
    for (long k = 0; !done && k < 1000; k++) {
        sonde_error err = {0};
        memory_sink out;
        m.calls = 0;
        m.fail_at = k;
        sonde_status st = sn_export_table(p, &o, memory_sink_init(&out), &err);
        m.fail_at = -1;
        done = st == SONDE_OK;
        CHECK(done || st == SONDE_OUT_OF_MEMORY);
        CHECK_EQ(m.live, live);
        free(out.text);
    }
    CHECK(done);
    sn_profile_free(p);
}

TEST_MAIN()
