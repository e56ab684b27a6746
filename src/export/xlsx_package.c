/* SPDX-License-Identifier: Apache-2.0 */
/* An .xlsx file is a zip archive of XML parts, with a list of what each part is and lists of which
 * part refers to which. These are the parts that are the same for every profile. */
#include "export/xlsx.h"

#define OFFICE   "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#define PACKAGE  "http://schemas.openxmlformats.org/package/2006/"
#define SHEET_ML "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
#define TYPE     "application/vnd.openxmlformats-officedocument."

/* By sheet. */
static const char *const parts[SN_XLSX_MAX_SHEETS] = {
    "worksheets/sheet1.xml", "worksheets/sheet2.xml", "worksheets/sheet3.xml",
    "worksheets/sheet4.xml"};
static const char *const ids[SN_XLSX_MAX_SHEETS + 1] = {"rId1", "rId2", "rId3", "rId4", "rId5"};

static int count_sheets(const sn_xlsx *x)
{
    int n = 0;
    while (n < SN_XLSX_MAX_SHEETS && x->names[n])
        n++;
    return n;
}

/* Attributes; a NULL name ends the list. */
static void put_element(sn_xlsx *x, const char *element, const char *const (*attributes)[2])
{
    sn_put(&x->w, "<");
    sn_put(&x->w, element);
    for (; (*attributes)[0]; attributes++) {
        sn_put(&x->w, " ");
        sn_put(&x->w, (*attributes)[0]);
        sn_put(&x->w, "=\"");
        sn_xlsx_escape(x, (*attributes)[1]);
        sn_put(&x->w, "\"");
    }
    sn_put(&x->w, "/>");
}

static void put_override(sn_xlsx *x, const char *part, const char *type)
{
    put_element(x, "Override",
                (const char *const[][2]){{"PartName", part}, {"ContentType", type}, {NULL, NULL}});
}

static void put_default(sn_xlsx *x, const char *extension, const char *type)
{
    put_element(
        x, "Default",
        (const char *const[][2]){{"Extension", extension}, {"ContentType", type}, {NULL, NULL}});
}

static void put_content_types(sn_xlsx *x)
{
    static const char *const sheet_parts[SN_XLSX_MAX_SHEETS] = {
        "/xl/worksheets/sheet1.xml", "/xl/worksheets/sheet2.xml", "/xl/worksheets/sheet3.xml",
        "/xl/worksheets/sheet4.xml"};
    sn_xlsx_open(x, "[Content_Types].xml");
    sn_put(&x->w, "<Types xmlns=\"" PACKAGE "content-types\">");
    put_default(x, "rels", "application/vnd.openxmlformats-package.relationships+xml");
    put_default(x, "xml", "application/xml");
    put_override(x, "/xl/workbook.xml", TYPE "spreadsheetml.sheet.main+xml");
    put_override(x, "/xl/styles.xml", TYPE "spreadsheetml.styles+xml");
    for (int i = 0; i < count_sheets(x); i++)
        put_override(x, sheet_parts[i], TYPE "spreadsheetml.worksheet+xml");
    if (x->chart) {
        put_override(x, "/xl/drawings/drawing1.xml", TYPE "drawing+xml");
        put_override(x, "/xl/charts/chart1.xml", TYPE "drawingml.chart+xml");
    }
    sn_put(&x->w, "</Types>");
    sn_xlsx_close(x);
}

typedef struct relation {
    const char *type, *target; /* their ids are rId1, rId2, … */
} relation;

static void put_relations(sn_xlsx *x, const char *part, const relation *rows, int n)
{
    sn_xlsx_open(x, part);
    sn_put(&x->w, "<Relationships xmlns=\"" PACKAGE "relationships\">");
    for (int i = 0; i < n; i++)
        put_element(
            x, "Relationship",
            (const char *const[][2]){
                {"Id", ids[i]}, {"Type", rows[i].type}, {"Target", rows[i].target}, {NULL, NULL}});
    sn_put(&x->w, "</Relationships>");
    sn_xlsx_close(x);
}

static void put_all_relations(sn_xlsx *x)
{
    static const relation root[] = {{OFFICE "/officeDocument", "xl/workbook.xml"}};
    static const relation summary[] = {{OFFICE "/drawing", "../drawings/drawing1.xml"}};
    static const relation drawing[] = {{OFFICE "/chart", "../charts/chart1.xml"}};
    relation workbook[SN_XLSX_MAX_SHEETS + 1];
    const int n = count_sheets(x);
    for (int i = 0; i < n; i++)
        workbook[i] = (relation){OFFICE "/worksheet", parts[i]};
    workbook[n] = (relation){OFFICE "/styles", "styles.xml"};
    put_relations(x, "_rels/.rels", root, 1);
    put_relations(x, "xl/_rels/workbook.xml.rels", workbook, n + 1);
    if (!x->chart)
        return;
    put_relations(x, "xl/worksheets/_rels/sheet1.xml.rels", summary, 1);
    put_relations(x, "xl/drawings/_rels/drawing1.xml.rels", drawing, 1);
}

static void put_sheet_list(sn_xlsx *x)
{
    static const char *const numbers[SN_XLSX_MAX_SHEETS] = {"1", "2", "3", "4"};
    sn_xlsx_open(x, "xl/workbook.xml");
    sn_put(&x->w, "<workbook xmlns=\"" SHEET_ML "\" xmlns:r=\"" OFFICE "\"><sheets>");
    for (int i = 0; i < count_sheets(x); i++)
        put_element(
            x, "sheet",
            (const char *const[][2]){
                {"name", x->names[i]}, {"sheetId", numbers[i]}, {"r:id", ids[i]}, {NULL, NULL}});
    sn_put(&x->w, "</sheets><calcPr fullCalcOnLoad=\"1\"/></workbook>");
    sn_xlsx_close(x);
}

/* In the order of sn_xlsx_style. */
static const struct style {
    const char *format, *font, *fill;
} styles[] = {{"0", "0", "0"}, {"0", "1", "2"}, {"164", "0", "0"}, {"10", "0", "0"},
              {"0", "2", "0"}, {"9", "2", "0"}, {"0", "3", "0"}};

static void put_styles(sn_xlsx *x)
{
    sn_xlsx_open(x, "xl/styles.xml");
    sn_put(&x->w,
           "<styleSheet xmlns=\"" SHEET_ML "\">"
           "<numFmts count=\"1\"><numFmt numFmtId=\"164\" formatCode=\"0.000000\"/></numFmts>"
           "<fonts count=\"4\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font>"
           "<font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font>"
           "<font><sz val=\"11\"/><color rgb=\"FF0000FF\"/><name val=\"Calibri\"/></font>"
           "<font><i/><sz val=\"11\"/><color rgb=\"FF666666\"/><name val=\"Calibri\"/></font>"
           "</fonts><fills count=\"3\"><fill><patternFill patternType=\"none\"/></fill>"
           "<fill><patternFill patternType=\"gray125\"/></fill><fill><patternFill "
           "patternType=\"solid\"><fgColor rgb=\"FFD9E6F2\"/></patternFill></fill></fills>"
           "<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border>"
           "</borders><cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" "
           "borderId=\"0\"/></cellStyleXfs><cellXfs count=\"7\">");
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        put_element(x, "xf",
                    (const char *const[][2]){{"numFmtId", styles[i].format},
                                             {"fontId", styles[i].font},
                                             {"fillId", styles[i].fill},
                                             {"borderId", "0"},
                                             {"xfId", "0"},
                                             {"applyNumberFormat", "1"},
                                             {"applyFont", "1"},
                                             {"applyFill", "1"},
                                             {NULL, NULL}});
    sn_put(&x->w, "</cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" "
                  "builtinId=\"0\"/></cellStyles></styleSheet>");
    sn_xlsx_close(x);
}

void sn_xlsx_put_package(sn_xlsx *x)
{
    put_content_types(x);
    put_all_relations(x);
    put_sheet_list(x);
    put_styles(x);
}
