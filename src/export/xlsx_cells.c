/* SPDX-License-Identifier: Apache-2.0 */
/* Cells as SpreadsheetML. Texts stand in their cells ("inlineStr") rather than in a shared table,
 * which would have to be known before the first row is written. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/xlsx.h"

void sn_xlsx_open(sn_xlsx *x, const char *part)
{
    sn_writer_init(&x->w, sn_zip_begin(&x->zip, part));
    sn_put(&x->w, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n");
}

void sn_xlsx_close(sn_xlsx *x)
{
    sn_writer_finish(&x->w, NULL); /* the archive reports what failed */
    sn_zip_end(&x->zip);
}

/* ------------------------------------------------------------------ text */
/* XML 1.0 has no way to write most control characters. */
static bool allowed(uint32_t code)
{
    return code >= 0x20 ? code != 0x7F && code != 0xFFFE && code != 0xFFFF
                        : code == '\t' || code == '\n' || code == '\r';
}

static size_t units_of(uint32_t code)
{
    return code > 0xFFFF ? 2 : 1;
}

/* The next character that may stand in a document; false at the end. Bytes that are not UTF-8 are
 * U+FFFD. */
static bool next_char(const unsigned char **s, uint32_t *code)
{
    while (**s) {
        size_t len = sn_utf8_char(*s, strnlen((const char *)*s, 4), code);
        if (!len)
            *code = 0xFFFD;
        *s += len ? len : 1;
        if (allowed(*code))
            return true;
    }
    return false;
}

static void put_char(sn_writer *w, uint32_t code)
{
    char utf8[8];
    switch (code) {
    case '<':
        sn_put(w, "&lt;");
        break;
    case '>':
        sn_put(w, "&gt;");
        break;
    case '&':
        sn_put(w, "&amp;");
        break;
    case '"':
        sn_put(w, "&quot;");
        break;
    case '\r': /* bare, it would be read as a line feed */
        sn_put(w, "&#13;");
        break;
    default:
        sn_put_bytes(w, utf8, (size_t)(sn_utf8_put(utf8, code) - utf8));
    }
}

void sn_xlsx_escape(sn_xlsx *x, const char *text)
{
    const unsigned char *s = (const unsigned char *)(text ? text : "");
    size_t units = 0, room;
    uint32_t code;
    for (const unsigned char *t = s; next_char(&t, &code);)
        units += units_of(code);
    const bool cut = units > SN_XLSX_MAX_TEXT;
    room = cut ? SN_XLSX_MAX_TEXT - 1 : units;
    while (next_char(&s, &code) && units_of(code) <= room) {
        put_char(&x->w, code);
        room -= units_of(code);
    }
    sn_put(&x->w, cut ? "…" : "");
}

/* ------------------------------------------------------------------ sheets */
void sn_xlsx_begin_rows(sn_xlsx *x, uint32_t frozen, const double *widths, size_t n)
{
    char text[160], width[32];
    sn_put(&x->w, "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" "
                  "xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/"
                  "relationships\"><sheetViews><sheetView workbookViewId=\"0\">");
    snprintf(text, sizeof text,
             "<pane ySplit=\"%" PRIu32 "\" topLeftCell=\"A%" PRIu32
             "\" activePane=\"bottomLeft\" state=\"frozen\"/>",
             frozen, frozen + 1);
    sn_put(&x->w, text);
    sn_put(&x->w, "</sheetView></sheetViews><sheetFormatPr defaultRowHeight=\"15\"/><cols>");
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "<col min=\"%zu\" max=\"%zu\" width=\"%s\" customWidth=\"1\"/>",
                 i + 1, i + 1, sn_sheet_number(width, widths[i]));
        sn_put(&x->w, text);
    }
    sn_put(&x->w, "</cols><sheetData>");
    x->row = x->column = 0;
}

void sn_xlsx_row(sn_xlsx *x)
{
    char text[48];
    snprintf(text, sizeof text, "%s<row r=\"%" PRIu32 "\">", x->row ? "</row>" : "", x->row + 1);
    sn_put(&x->w, text);
    x->row++;
    x->column = 0;
}

void sn_xlsx_end_rows(sn_xlsx *x)
{
    sn_put(&x->w, x->row ? "</row></sheetData>" : "</sheetData>");
}

const char *sn_xlsx_column(char name[4], uint32_t column)
{
    char *c = name;
    if (column >= 26)
        *c++ = (char)('A' + (column / 26 - 1) % 26);
    *c++ = (char)('A' + column % 26);
    *c = 0;
    return name;
}

static void begin_cell(sn_xlsx *x, sn_xlsx_style style, const char *type)
{
    char text[64], column[4];
    snprintf(text, sizeof text, "<c r=\"%s%" PRIu32 "\" s=\"%d\"%s>",
             sn_xlsx_column(column, x->column), x->row, (int)style, type);
    sn_put(&x->w, text);
    x->column++;
}

void sn_xlsx_skip(sn_xlsx *x)
{
    x->column++;
}

void sn_xlsx_text(sn_xlsx *x, sn_xlsx_style style, const char *text)
{
    if (!text || !*text) {
        sn_xlsx_skip(x);
        return;
    }
    begin_cell(x, style, " t=\"inlineStr\"");
    sn_put(&x->w, "<is><t xml:space=\"preserve\">");
    sn_xlsx_escape(x, text);
    sn_put(&x->w, "</t></is></c>");
}

static void put_value(sn_xlsx *x, double v)
{
    char text[32];
    sn_put(&x->w, "<v>");
    sn_put(&x->w, isfinite(v) ? sn_sheet_number(text, v) : "#DIV/0!");
    sn_put(&x->w, "</v></c>");
}

void sn_xlsx_number(sn_xlsx *x, sn_xlsx_style style, double v)
{
    begin_cell(x, style, isfinite(v) ? "" : " t=\"e\"");
    put_value(x, v);
}

void sn_xlsx_bool(sn_xlsx *x, bool v)
{
    begin_cell(x, SN_STYLE_PLAIN, " t=\"b\"");
    sn_put(&x->w, v ? "<v>1</v></c>" : "<v>0</v></c>");
}

void sn_xlsx_formula(sn_xlsx *x, sn_xlsx_style style, double value, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    begin_cell(x, style, isfinite(value) ? "" : " t=\"e\"");
    sn_put(&x->w, "<f>");
    sn_xlsx_escape(x, text);
    sn_put(&x->w, "</f>");
    put_value(x, value);
}

void sn_xlsx_filter(sn_xlsx *x, char first, char last, uint32_t from, uint32_t to)
{
    char text[96];
    snprintf(text, sizeof text, "<autoFilter ref=\"%c%" PRIu32 ":%c%" PRIu32 "\"/>", first, from,
             last, to);
    sn_put(&x->w, text);
}

void sn_xlsx_bars(sn_xlsx *x, char column, uint32_t from, uint32_t to)
{
    char text[320];
    snprintf(text, sizeof text,
             "<conditionalFormatting sqref=\"%c%" PRIu32 ":%c%" PRIu32 "\">"
             "<cfRule type=\"dataBar\" priority=\"1\"><dataBar><cfvo type=\"num\" val=\"0\"/>"
             "<cfvo type=\"max\"/><color rgb=\"FF6FA8DC\"/></dataBar></cfRule>"
             "</conditionalFormatting>",
             column, from, column, to);
    sn_put(&x->w, text);
}
