/* SPDX-License-Identifier: Apache-2.0 */
/* One table for spreadsheets in three parts, as Neural Engine's users know it: assumed gains per
 * weight shape, operators, totals. The what-if columns are formulas over cells of the same file, so
 * row numbers matter: there are no empty lines. Formulas compare plain numbers only: what else a
 * cell may hold (90%, TRUE) is a number in one program and a text in the next. Fields follow RFC
 * 4180. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/sheet.h"
#include "export/writer.h"

typedef struct csv {
    sn_writer w;
    sn_sheet sheet;
    uint32_t line;  /* of the sheet, from 1: the one being written */
    uint32_t first; /* line of the first operator */
} csv;

static void put_text(csv *c, const char *text)
{
    sn_put_csv(&c->w, text);
}

static void put_number(csv *c, double v)
{
    char text[32];
    sn_put(&c->w, sn_sheet_number(text, v));
}

static void end_line(csv *c)
{
    sn_put(&c->w, "\r\n");
    c->line++;
}

SONDE_PRINTF(2, 3) static void put_formula(csv *c, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sn_put_csv_field(&c->w, text, false);
}

static void put_titles(csv *c, const char *const *titles, int n)
{
    for (int i = 0; i < n; i++) {
        sn_put(&c->w, i ? "," : "");
        put_text(c, titles[i]);
    }
    end_line(c);
}

/* ------------------------------------------------------------------ the parts */
static void put_weights(csv *c)
{
    put_titles(c, sn_sheet_weight_titles, SN_WEIGHT_COLUMNS);
    for (size_t i = 0; i < c->sheet.weights.n; i++) {
        put_text(c, c->sheet.weights.data[i]);
        for (int k = 0; k < SN_WEIGHT_COLUMNS - 1; k++) {
            sn_put(&c->w, ",");
            put_number(c, sn_sheet_ratio(&c->sheet, (uint32_t)i, k));
        }
        end_line(c);
    }
}

/* Columns N, O and P. */
static void put_aim(csv *c, const sn_sheet_row *row)
{
    if (!row->aimed) {
        sn_put(&c->w, ",,,");
        put_number(c, row->latency_ms);
        return;
    }
    const uint32_t r = c->line, p = row->ratios + 2; /* below the titles of the first part */
    sn_put(&c->w, ",");
    put_number(c, c->sheet.options.aim / 100);
    sn_put(&c->w, ",");
    put_formula(c,
                "=IF(N%" PRIu32 "=0.9,B%" PRIu32 ",IF(N%" PRIu32 "=0.8,C%" PRIu32 ",IF(N%" PRIu32
                "=0.7,D%" PRIu32 ",E%" PRIu32 ")))",
                r, p, r, p, r, p, p);
    sn_put(&c->w, ",");
    put_formula(c, "=M%" PRIu32 "/O%" PRIu32, r, r);
}

static void put_operator(csv *c, const sn_sheet_row *row)
{
    for (int column = 0; column <= SN_COLUMN_WEIGHT_SHAPE; column++) {
        put_text(c, sn_sheet_text(&c->sheet, row, (sn_sheet_column)column));
        sn_put(&c->w, ",");
    }
    if (row->zeros >= 0) {
        sn_put_fixed(&c->w, row->zeros * 100, 2);
        sn_put(&c->w, "%");
    }
    sn_put(&c->w, row->ratios != UINT32_MAX ? ",TRUE," : ",FALSE,");
    put_number(c, row->latency_ms);
    put_aim(c, row);
    end_line(c);
}

/* Up to column M, and N with the label of O. */
static void put_total(csv *c, const char *label, double value, const char *aim_label)
{
    for (int column = 0; column < SN_COLUMN_SUPPORT; column++)
        sn_put(&c->w, ",");
    put_text(c, label);
    sn_put(&c->w, ",");
    put_number(c, isfinite(value) ? value : 0);
    sn_put(&c->w, ",,");
    put_text(c, aim_label);
    sn_put(&c->w, ",");
}

/* What has a ratio is sparse-capable; what is sparse already has none, and keeps its latency. Not
 * by column L: by default Excel reads TRUE as a truth value and LibreOffice as a word. */
static void put_support_aim(csv *c, uint32_t first, uint32_t last)
{
    char rest[40] = "+";
    const double sparse_ms = c->sheet.totals.sparse_ms;
    sn_sheet_number(rest + 1, sparse_ms);
    put_formula(c, "=SUMIF(O%" PRIu32 ":O%" PRIu32 ",\">0\",P%" PRIu32 ":P%" PRIu32 ")%s", first,
                last, first, last, sparse_ms > 0 ? rest : "");
}

static void put_totals(csv *c)
{
    const sn_sheet_totals *t = &c->sheet.totals;
    const uint32_t first = c->first, last = c->line - 1, total = c->line;
    put_total(c, "total latency(ms)", t->latency_ms, "total aim to sparse latency(ms)");
    put_formula(c, "=SUM(P%" PRIu32 ":P%" PRIu32 ")", first, last);
    sn_put(&c->w, ",");
    put_text(c, "sparse improve");
    sn_put(&c->w, ",");
    put_formula(c, "=M%" PRIu32 "/P%" PRIu32, total, total);
    end_line(c);
    put_total(c, "sparse support latency(ms)", t->support_ms, "aim to sparse support latency(ms)");
    put_support_aim(c, first, last);
    end_line(c);
    put_total(c, "sparse support latency ratio", t->support_ratio,
              "aim to sparse support latency ratio");
    put_formula(c, "=P%" PRIu32 "/P%" PRIu32, total + 1, total);
    end_line(c);
    put_text(c, sn_sheet_note(&c->sheet));
    end_line(c);
    const char *about = sn_sheet_about(&c->sheet);
    if (about) {
        put_text(c, about);
        end_line(c);
    }
}

static sonde_status write_csv_with(const sn_profile *p, const sn_export_options *opt, sn_sink *sink,
                                   sonde_error *err)
{
    csv c = {.line = 1};
    SN_TRY(sn_sheet_build(&c.sheet, p, opt, err));
    sn_writer_init(&c.w, sink);
    put_weights(&c);
    put_titles(&c, sn_sheet_titles, SN_COLUMN_COUNT);
    c.first = c.line;
    for (size_t i = 0; i < c.sheet.rows.n && !sink->failed; i++)
        put_operator(&c, &c.sheet.rows.data[i]);
    put_totals(&c);
    SN_TRY(sn_sheet_finish(&c.sheet, err));
    return sn_writer_finish(&c.w, err);
}

static sonde_status write_csv(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return write_csv_with(p, NULL, sink, err);
}

const sn_exporter sn_exporter_csv = {
    .suffix = ".csv",
    .name = "csv",
    .summary = "One row per operator, estimated gain from sparse weights, totals, as CSV",
    .write = write_csv,
    .write_with = write_csv_with};
