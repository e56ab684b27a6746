/* SPDX-License-Identifier: Apache-2.0 */
/* The workbook: an archive whose directory agrees with its entries, parts that are well-formed XML,
 * formulas with the values they have. */
#include "base/crc32.h"
#include "export/sparse_profile.h"
#include "export/zip.h"
#include "test.h"

static const sn_exporter *xlsx(void)
{
    return sn_exporter_for_path("x.xlsx");
}

/* The content of an entry, found through the directory and checked against it; NULL: absent or
 * damaged. To be freed. */
static char *entry(const memory_sink *zip, const char *name)
{
    const char *end = zip->text + zip->n - 22, *at;
    if (zip->n < 22 || memcmp(end, "PK\5\6", 4) != 0)
        return NULL;
    at = zip->text + little(end + 16, 4);
    for (uint64_t left = little(end + 10, 2); left; left--) {
        const size_t name_bytes = little(at + 28, 2), used_bytes = little(at + 20, 4);
        if (memcmp(at, "PK\1\2", 4) != 0)
            return NULL;
        if (name_bytes != strlen(name) || memcmp(at + 46, name, name_bytes) != 0) {
            at += 46 + name_bytes;
            continue;
        }
        const char *local = zip->text + little(at + 42, 4), *data = local + 30 + name_bytes;
        size_t used = 0, n = 0;
        if (memcmp(local, "PK\3\4", 4) != 0 || memcmp(local + 30, name, name_bytes) != 0 ||
            little(local + 8, 2) != 8)
            return NULL;
        char *text = stored_content(data, (size_t)(zip->text + zip->n - data), &used, &n);
        const char *behind = data + used;
        if (text && used == used_bytes && n == little(at + 24, 4) &&
            sn_crc32(0, text, n) == little(at + 16, 4) && memcmp(behind, "PK\7\10", 4) == 0 &&
            memcmp(behind + 4, at + 16, 12) == 0)
            return text;
        free(text);
        return NULL;
    }
    return NULL;
}

/* Tags are closed in the order they were opened; no bare "&" or control character. */
static bool well_formed(const char *s)
{
    const char *open[64];
    int depth = 0;
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' && *s != '\n' && *s != '\t')
            return false;
        if (*s == '&' && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) && strncmp(s, "&amp;", 5) &&
            strncmp(s, "&quot;", 6) && strncmp(s, "&#13;", 5))
            return false;
        if (*s != '<' || s[1] == '?')
            continue;
        const char *end = strchr(s, '>');
        if (!end)
            return false;
        if (s[1] == '/') {
            const size_t n = (size_t)(end - s - 2);
            if (!depth || strncmp(open[--depth], s + 2, n) != 0 ||
                (open[depth][n] != ' ' && open[depth][n] != '>'))
                return false;
        } else if (end[-1] != '/') {
            if (depth == 64)
                return false;
            open[depth++] = s + 1;
        }
        s = end;
    }
    return depth == 0;
}

static char *sheet_of(const sn_profile *p, const sn_export_options *options, const char *part,
                      sonde_error *err)
{
    memory_sink out;
    sonde_status st = xlsx()->write_with(p, options, memory_sink_init(&out), err);
    char *text = st == SONDE_OK ? entry(&out, part) : NULL;
    free(out.text);
    return text;
}

TEST(every_part_is_there_and_well_formed)
{
    static const char *const parts[] = {"[Content_Types].xml",
                                        "_rels/.rels",
                                        "xl/workbook.xml",
                                        "xl/_rels/workbook.xml.rels",
                                        "xl/styles.xml",
                                        "xl/worksheets/sheet1.xml",
                                        "xl/worksheets/_rels/sheet1.xml.rels",
                                        "xl/worksheets/sheet2.xml",
                                        "xl/worksheets/sheet3.xml",
                                        "xl/worksheets/sheet4.xml",
                                        "xl/drawings/drawing1.xml",
                                        "xl/drawings/_rels/drawing1.xml.rels",
                                        "xl/charts/chart1.xml"};
    enum { PARTS = sizeof parts / sizeof *parts };
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = sparse_profile(failing_init(&m));
    p->model_name = "a<b>&\"c\"\x01\xff";
    CHECK_OK(xlsx()->write(p, memory_sink_init(&out), &err));
    CHECK_EQ(little(out.text + out.n - 12, 2), PARTS);
    for (int i = 0; i < PARTS; i++) {
        char *text = entry(&out, parts[i]);
        CHECK_MSG(text && well_formed(text), "%s: %s", parts[i], text ? text : "absent");
        free(text);
    }
    free(out.text);
    char *summary = sheet_of(p, NULL, "xl/worksheets/sheet1.xml", &err);
    CHECK(summary != NULL);
    CHECK_HAS(summary, ">a&lt;b&gt;&amp;&quot;c&quot;\xEF\xBF\xBD<");
    free(summary);
    sn_profile_free(p);
}

TEST(formulas_are_live_and_carry_their_values)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = sparse_profile(failing_init(&m));
    char *operators = sheet_of(p, NULL, "xl/worksheets/sheet2.xml", &err);
    CHECK(operators != NULL);
    CHECK_HAS(operators, "<pane ySplit=\"1\" topLeftCell=\"A2\"");
    CHECK_HAS(operators, "<c r=\"K2\" s=\"3\"><v>0</v></c><c r=\"L2\" s=\"0\" t=\"b\"><v>1</v></c>"
                         "<c r=\"M2\" s=\"2\"><v>4</v></c><c r=\"N2\" s=\"5\"><v>0.9</v></c>"
                         "<c r=\"O2\" s=\"0\"><f>IF(N2=0.9,Weights!B2,IF(N2=0.8,Weights!C2,"
                         "IF(N2=0.7,Weights!D2,Weights!E2)))</f><v>4</v></c>"
                         "<c r=\"P2\" s=\"2\"><f>M2/O2</f><v>1</v></c></row>");
    CHECK_HAS(operators, "<c r=\"M3\" s=\"2\"><v>2</v></c><c r=\"P3\" s=\"2\"><v>2</v></c></row>");
    CHECK_HAS(operators, "<f>IF(N5=0.9,Weights!B4,");
    CHECK_HAS(operators, "<c r=\"P5\" s=\"2\"><f>M5/O5</f><v>0.75</v></c>");
    CHECK_HAS(operators, "<t xml:space=\"preserve\">=a,&quot;b&quot;\n</t>");
    CHECK_HAS(operators, "<autoFilter ref=\"A1:P8\"/><conditionalFormatting sqref=\"M2:M8\">");
    free(operators);
    char *weights = sheet_of(p, NULL, "xl/worksheets/sheet3.xml", &err);
    CHECK(weights != NULL);
    CHECK_HAS(weights, "<c r=\"B2\" s=\"4\"><v>4</v></c><c r=\"C2\" s=\"4\"><v>2.5</v></c>");
    CHECK_HAS(weights, "<autoFilter ref=\"A1:E4\"/>");
    CHECK_HAS(weights, "assumed, not measured");
    free(weights);
    char *totals = sheet_of(p, NULL, "xl/worksheets/sheet4.xml", &err);
    CHECK(totals != NULL);
    CHECK_HAS(totals, "<f>SUM(Operators!M2:M8)</f><v>12</v>");
    CHECK_HAS(totals, "<f>SUM(Operators!P2:P8)</f><v>6.75</v>");
    CHECK_HAS(totals, "<f>B2/B3</f><v>1.777777778</v>");
    CHECK_HAS(totals, "<f>SUMIF(Operators!L2:L8,TRUE,Operators!M2:M8)</f><v>9</v>");
    CHECK_HAS(totals, "<f>SUMIF(Operators!L2:L8,TRUE,Operators!P2:P8)</f><v>3.75</v>");
    CHECK_HAS(totals, "<f>B5/B2</f><v>0.75</v>");
    CHECK_HAS(totals, "<f>B6/B3</f><v>0.555555556</v>");
    free(totals);
    sn_profile_free(p);
}

TEST(folded_nodes_have_rows_where_they_are_asked_for)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = sparse_profile(failing_init(&m));
    const sn_export_options options = {.folded_nodes = true};
    char *without = sheet_of(p, NULL, "xl/worksheets/sheet2.xml", &err);
    char *with = sheet_of(p, &options, "xl/worksheets/sheet2.xml", &err);
    CHECK(without && with);
    CHECK(strstr(without, ">gone<") == NULL);
    CHECK_HAS(with, ">gone<");
    CHECK_HAS(with, "<autoFilter ref=\"A1:P9\"/>");
    free(without);
    free(with);
    sn_profile_free(p);
}

TEST(ratios_and_aim_reach_the_cached_values)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = sparse_profile(failing_init(&m));
    const struct {
        sn_export_options options;
        const char *aim, *latency;
    } cases[] = {{{.aim = 80}, "<v>0.8</v>", "<f>M2/O2</f><v>1.6</v>"},
                 {{.aim = 70, .ratio_70 = 8}, "<v>0.7</v>", "<f>M2/O2</f><v>0.5</v>"},
                 {{.aim = 50}, "<v>0.5</v>", "<f>M2/O2</f><v>4</v>"},
                 {{.aim = 50, .ratio_others = 2}, "<v>0.5</v>", "<f>M2/O2</f><v>2</v>"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *operators = sheet_of(p, &cases[i].options, "xl/worksheets/sheet2.xml", &err);
        CHECK(operators != NULL);
        CHECK_HAS(operators, cases[i].aim);
        CHECK_HAS(operators, cases[i].latency);
        free(operators);
    }
    sn_profile_free(p);
}

TEST(the_chart_shows_the_longest_operators)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = sparse_profile(failing_init(&m));
    char *chart = sheet_of(p, NULL, "xl/charts/chart1.xml", &err);
    char *summary = sheet_of(p, NULL, "xl/worksheets/sheet1.xml", &err);
    CHECK(chart && summary);
    const char *range = strstr(chart, "<c:f>Summary!$A$");
    CHECK(range != NULL);
    char cell[96];
    snprintf(cell, sizeof cell,
             "<c r=\"A%d\" s=\"0\" t=\"inlineStr\"><is><t xml:space=\"preserve\">",
             atoi(range + 16));
    const char *first = strstr(summary, cell);
    CHECK(first != NULL);
    CHECK_MSG(strncmp(first + strlen(cell), "Conv<", 5) == 0, "%.40s", first + strlen(cell));
    CHECK_HAS(chart, "<c:pt idx=\"0\"><c:v>Conv</c:v></c:pt><c:pt idx=\"1\"><c:v>Gemm</c:v>");
    CHECK_HAS(chart, "<c:pt idx=\"0\"><c:v>4</c:v></c:pt>");
    free(chart);
    free(summary);
    sn_profile_free(p);
}

TEST(long_texts_are_cut_at_what_a_cell_holds)
{
    enum { LONG = 40000 };
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = sparse_profile(failing_init(&m));
    char *name = malloc(4 * LONG + 1);
    for (size_t i = 0; i < LONG; i++)
        memcpy(name + 4 * i, "\xF0\x9F\x98\x80", 4); /* two UTF-16 units each */
    name[4 * LONG] = 0;
    p->steps.data[0].n_origins = 0;
    p->steps.data[0].name = name;
    char *operators = sheet_of(p, NULL, "xl/worksheets/sheet2.xml", &err);
    CHECK(operators != NULL);
    const char *at = strstr(operators, "\xF0\x9F\x98\x80"), *end = strstr(at, "</t>");
    CHECK_EQ(end - at, 4 * ((32767 - 1) / 2) + 3); /* and an ellipsis */
    free(operators);
    free(name);
    sn_profile_free(p);
}

TEST(a_profile_of_nothing_divides_by_zero_openly)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = syn_profile(failing_init(&m));
    char *totals = sheet_of(p, NULL, "xl/worksheets/sheet4.xml", &err);
    CHECK(totals != NULL);
    CHECK_HAS(totals, "<c r=\"B4\" s=\"0\" t=\"e\"><f>B2/B3</f><v>#DIV/0!</v></c>");
    free(totals);
    sn_profile_free(p);
}

TEST(every_refused_write_is_reported)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink whole;
    sn_profile *p = sparse_profile(failing_init(&m));
    CHECK_OK(xlsx()->write(p, memory_sink_init(&whole), &err));
    const long live = m.live;
    for (size_t limit = 0; limit < whole.n; limit += 997) {
        memory_sink out;
        memory_sink_init(&out);
        out.limit = limit;
        CHECK_EQ(xlsx()->write(p, &out.sink, &err), SONDE_IO);
        CHECK_EQ(m.live, live);
        free(out.text);
    }
    sn_profile_free(p);
    free(whole.text);
}

static bool swallow(sn_sink *sink, const void *data, size_t bytes)
{
    (void)data;
    *(uint64_t *)sink->user += bytes;
    return true;
}

TEST(an_archive_past_4_gib_is_refused)
{
    failing_alloc m;
    sonde_error err = {0};
    uint64_t bytes = 0;
    sn_sink sink = {.write = swallow, .user = &bytes};
    sn_zip *zip = malloc(sizeof *zip);
    CHECK(zip != NULL);
    sn_zip_init(zip, &sink, failing_init(&m));
    sn_sink_text(sn_zip_begin(zip, "a"), "small");
    sn_zip_end(zip);
    zip->at = 0xFFFFFFFFu; /* as if that much had been written */
    sn_sink_text(sn_zip_begin(zip, "b"), "more");
    sn_zip_end(zip);
    CHECK_EQ(sn_zip_finish(zip, &err), SONDE_LIMIT);
    CHECK_HAS(err.message, "4 GiB");
    CHECK_EQ(m.live, 0);
    free(zip);
}

TEST(the_check_sum_is_the_one_everybody_uses)
{
    CHECK_EQ(sn_crc32(0, "123456789", 9), 0xCBF43926);
    CHECK_EQ(sn_crc32(sn_crc32(0, "1234", 4), "56789", 5), 0xCBF43926);
}

TEST_MAIN()
