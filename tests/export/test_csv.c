/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV, letter by letter, and what it does to texts that would break it. */
#include "export/sparse_profile.h"
#include "test.h"

static const sn_exporter *csv(void)
{
    return sn_exporter_for_path("x.csv");
}

#define TITLES                                                                                     \
    "operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor " \
    "name,output shape,output dtype,weight shape,weight sparse ratio,sparse support,operator "     \
    "latency (ms),aim to weight sparse ratio,sparse kernel pref ratio,aim to sparse "              \
    "latency(ms)\r\n"

TEST(the_file_has_three_parts_with_exact_columns_and_formulas)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = sparse_profile(failing_init(&m));
    CHECK_OK(csv()->write(p, memory_sink_init(&out), &err));
    CHECK_STR(out.text,
              "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others\r\n"
              "8x16x1x1,4,2.5,2,1\r\n"
              "32x64,4,2.5,2,1\r\n"
              "12x32,4,2.5,2,1\r\n" TITLES
              "Conv,,c,x;w,1x16x4x4;8x16x1x1,fp32;fp32,y,1x2x4x4,fp16,8x16x1x1,0.00%,TRUE,4,0.9,"
              "\"=IF(N6=0.9,B2,IF(N6=0.8,C2,IF(N6=0.7,D2,E2)))\",=M6/O6\r\n"
              "MatMul,,m,x;w,1x32;32x64,fp32;fp32,y,1x64,fp16,32x64,60.00%,TRUE,2,,,2\r\n"
              "Gemm,,g,x;w,1x32;10x32,fp32;fp32,y,1x10,fp16,10x32,25.00%,FALSE,1,,,1\r\n"
              "Gemm,,h,x;w,1x32;12x32,fp32;fp32,y,1x12,fp16,12x32,,TRUE,3,0.9,"
              "\"=IF(N9=0.9,B4,IF(N9=0.8,C4,IF(N9=0.7,D4,E4)))\",=M9/O9\r\n"
              "Add,,\"'=a,\"\"b\"\"\n\",x;s,1x32;,fp32;i64,y,1x2x4x4,fp16,,,FALSE,0.5,,,0.5\r\n"
              "[Mem alloc/free],,,,,,,,,,,FALSE,0.5,,,0.5\r\n"
              "[Other],,,,,,,,,,,FALSE,1,,,1\r\n"
              ",,,,,,,,,,,total latency(ms),12,,total aim to sparse latency(ms),=SUM(P6:P12),"
              "sparse improve,=M13/P13\r\n"
              ",,,,,,,,,,,sparse support latency(ms),9,,aim to sparse support latency(ms),"
              "\"=SUMIF(O6:O12,\"\">0\"\",P6:P12)+2\"\r\n"
              ",,,,,,,,,,,sparse support latency ratio,0.75,,aim to sparse support latency ratio,"
              "=P14/P13\r\n"
              "\"note: the perf ratios are assumed, not measured\"\r\n");
    sn_profile_free(p);
    free(out.text);
}

TEST(folded_nodes_have_rows_at_zero_where_they_are_asked_for)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink with, without;
    sn_profile *p = sparse_profile(failing_init(&m));
    const sn_export_options options = {.folded_nodes = true};
    CHECK_OK(csv()->write(p, memory_sink_init(&without), &err));
    CHECK_OK(csv()->write_with(p, &options, memory_sink_init(&with), &err));
    CHECK(strstr(without.text, "gone") == NULL);
    CHECK_HAS(with.text, "\r\nShape,,gone,,,,,,,,,FALSE,0,,,0\r\n");
    CHECK_HAS(with.text, "total latency(ms),12,,total aim to sparse latency(ms),=SUM(P6:P13),");
    CHECK_HAS(without.text, "total latency(ms),12,,total aim to sparse latency(ms),=SUM(P6:P12),");
    sn_profile_free(p);
    free(with.text);
    free(without.text);
}

TEST(ratios_and_aim_can_be_set)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = sparse_profile(failing_init(&m));
    const sn_export_options options = {.ratio_90 = 5, .ratio_others = 1.25, .aim = 72.5};
    CHECK_OK(csv()->write_with(p, &options, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "\r\n32x64,5,2.5,2,1.25\r\n");
    CHECK_HAS(out.text, ",TRUE,4,0.725,\"=IF(N6=0.9,");
    sn_profile_free(p);
    free(out.text);
}

TEST(no_text_can_become_a_formula_or_leave_its_field)
{
    static const struct {
        const char *name, *field;
    } cases[] = {{"plain", ",plain,"},
                 {"+1", ",'+1,"},
                 {"-1", ",'-1,"},
                 {"@a", ",'@a,"},
                 {"\t=1", ",'\t=1,"},
                 {"\r=1", ",\"'\xEF\xBF\xBD=1\","},
                 {"a;=1", ",a;'=1,"},
                 {"a=1", ",a=1,"},
                 {"\"", ",\"\"\"\","},
                 {"a\r\nb", ",\"a\r\nb\","},
                 {"größe", ",größe,"},
                 {"\xff\xc3", ",\xEF\xBF\xBD\xEF\xBF\xBD,"},
                 {"\x1b[2J", ",\xEF\xBF\xBD[2J,"},
                 {"\xC2\x9b\x07", ",\xEF\xBF\xBD\xEF\xBF\xBD,"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        failing_alloc m;
        sonde_error err = {0};
        memory_sink out;
        sn_profile *p = syn_tiny(failing_init(&m));
        p->steps.data[1].n_origins = 0;
        p->steps.data[1].name = cases[i].name;
        CHECK_OK(csv()->write(p, memory_sink_init(&out), &err));
        const char *row = strstr(out.text, "MatMul,");
        CHECK(row != NULL);
        CHECK_MSG(strncmp(row + 7, cases[i].field, strlen(cases[i].field)) == 0, "%s: %s",
                  cases[i].name, row);
        sn_profile_free(p);
        free(out.text);
    }
}

TEST(what_is_no_constant_matrix_is_not_sparse_capable)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = sparse_profile(failing_init(&m));
    sn_prof_tensor *w = (sn_prof_tensor *)p->steps.data[0].inputs + 1;
    int64_t *dims = (int64_t *)w->dims;
    const struct {
        int64_t dims[4];
        bool constant, capable;
    } cases[] = {{{8, 16, 1, 1}, true, true},
                 {{8, 16, 1, 1}, false, false},
                 {{6, 16, 1, 1}, true, false},
                 {{8, 16, 3, 1}, true, false},
                 {{8, 4, 1, 1}, true, false}}; /* the last: in groups */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(dims, cases[i].dims, sizeof cases[i].dims);
        w->constant = cases[i].constant;
        CHECK_OK(csv()->write(p, memory_sink_init(&out), &err));
        const char *row = strstr(out.text, "\r\nConv,");
        CHECK(row != NULL);
        *strchr(row + 2, '\r') = 0;
        CHECK_MSG((strstr(row, ",TRUE,") != NULL) == cases[i].capable, "%zu: %s", i, row);
        free(out.text);
    }
    sn_profile_free(p);
}

TEST(a_profile_of_nothing_is_a_table_of_nothing)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_profile(failing_init(&m));
    CHECK_OK(csv()->write(p, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "others\r\n" TITLES "[Mem alloc/free],,,,,,,,,,,FALSE,0,,,0\r\n");
    CHECK_HAS(out.text, "sparse support latency ratio,0,,");
    sn_profile_free(p);
    free(out.text);
}

TEST(every_refused_write_is_reported)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink whole;
    sn_profile *p = sparse_profile(failing_init(&m));
    CHECK_OK(csv()->write(p, memory_sink_init(&whole), &err));
    for (size_t limit = 0; limit < whole.n; limit += 97) {
        memory_sink out;
        memory_sink_init(&out);
        out.limit = limit;
        CHECK_EQ(csv()->write(p, &out.sink, &err), SONDE_IO);
        free(out.text);
    }
    sn_profile_free(p);
    free(whole.text);
}

TEST_MAIN()
