/* SPDX-License-Identifier: Apache-2.0 */
/* A result as a workbook: a sheet of scenarios and a sheet of operators, whose totals are live
 * formulas over the rows above them. */
#include <math.h>
#include <string.h>

#include "export/xlsx.h"
#include "whatif/save.h"

static void put_titles(sn_xlsx *x, const char *const *titles, size_t n)
{
    sn_xlsx_row(x);
    for (size_t i = 0; i < n; i++)
        sn_xlsx_text(x, SN_STYLE_TITLE, titles[i]);
}

static void put_known(sn_xlsx *x, sn_xlsx_style style, double v)
{
    if (isfinite(v))
        sn_xlsx_number(x, style, v);
    else
        sn_xlsx_skip(x);
}

static void put_scenarios(sn_xlsx *x, const sonde_whatif *r)
{
    enum { COLUMNS = 1 + SN_SCENARIO_TITLES };
    const char *titles[COLUMNS] = {"scenario"};
    memcpy(titles + 1, sn_scenario_titles, sizeof sn_scenario_titles);
    static const double widths[COLUMNS] = {26, 14, 12, 12, 12, 18, 20, 10,
                                           10, 10, 12, 10, 22, 40, 60};
    sn_xlsx_open(x, "xl/worksheets/sheet1.xml");
    sn_xlsx_begin_rows(x, 1, widths, COLUMNS);
    put_titles(x, titles, COLUMNS);
    for (size_t i = 0; i < r->answers.n; i++) {
        const sonde_whatif_scenario *s = &r->answers.data[i].shown;
        sn_xlsx_row(x);
        sn_xlsx_text(x, SN_STYLE_PLAIN, s->name);
        put_known(x, SN_STYLE_MS, s->total_ns / 1e6);
        if (isfinite(s->speedup))
            sn_xlsx_formula(x, SN_STYLE_PLAIN, s->speedup, "B2/B%u", x->row);
        else
            sn_xlsx_skip(x);
        put_known(x, SN_STYLE_PLAIN, s->low);
        put_known(x, SN_STYLE_PLAIN, s->high);
        sn_xlsx_number(x, SN_STYLE_PLAIN, (double)s->weight_bytes);
        sn_xlsx_number(x, SN_STYLE_PLAIN, (double)s->peak_bytes);
        sn_xlsx_number(x, SN_STYLE_PLAIN, (double)s->changed);
        sn_xlsx_number(x, SN_STYLE_PLAIN, s->threads);
        sn_xlsx_number(x, SN_STYLE_PLAIN, (double)s->batch);
        sn_xlsx_text(x, SN_STYLE_PLAIN, s->precision);
        sn_xlsx_number(x, SN_STYLE_PLAIN, (double)s->runs);
        sn_xlsx_text(x, SN_STYLE_PLAIN, s->measured);
        sn_xlsx_text(x, SN_STYLE_PLAIN, s->machine);
        sn_xlsx_text(x, SN_STYLE_NOTE, s->reason);
    }
    const uint32_t last = x->row;
    sn_xlsx_end_rows(x);
    sn_xlsx_filter(x, 'A', 'O', 1, last);
    sn_xlsx_bars(x, 'B', 2, last);
    sn_put(&x->w, "</worksheet>");
    sn_xlsx_close(x);
}

static void put_totals(sn_xlsx *x, const sonde_whatif *r, uint32_t texts)
{
    const uint32_t last = x->row;
    char column[4];
    sn_xlsx_row(x);
    sn_xlsx_text(x, SN_STYLE_TITLE, "total");
    for (uint32_t i = 1; i < texts; i++)
        sn_xlsx_skip(x);
    for (size_t i = 0; i < r->answers.n; i++) {
        sn_xlsx_column(column, x->column);
        if (r->answers.data[i].measured)
            sn_xlsx_formula(x, SN_STYLE_MS, r->answers.data[i].shown.total_ns / 1e6,
                            "SUM(%s2:%s%u)", column, column, last);
        else
            sn_xlsx_skip(x);
    }
}

static void put_operators(sn_xlsx *x, const sonde_whatif *r)
{
    static const char *const titles[] = {"operator",    "operator type", "node",
                                         "input shape", "weight shape",  "fastest"};
    enum { TEXTS = sizeof titles / sizeof *titles };
    static const double widths[TEXTS] = {24, 16, 40, 30, 16, 16};
    const sn_whatif_rows *rows = &r->rows[SONDE_BY_NODE];
    sn_xlsx_open(x, "xl/worksheets/sheet2.xml");
    sn_xlsx_begin_rows(x, 1, widths, TEXTS);
    put_titles(x, titles, TEXTS);
    for (size_t i = 0; i < r->answers.n; i++)
        sn_xlsx_text(x, SN_STYLE_TITLE, r->answers.data[i].shown.name);
    for (size_t i = 0; i < rows->n && !x->zip.to->failed; i++) {
        const sonde_whatif_row *row = &rows->data[i];
        const char *const texts[TEXTS] = {
            row->name,   row->op_type, row->node,
            row->shapes, row->weight,  row->bracket ? "" : r->answers.data[row->best].shown.name};
        sn_xlsx_row(x);
        for (int k = 0; k < TEXTS; k++)
            sn_xlsx_text(x, SN_STYLE_PLAIN, texts[k]);
        for (size_t k = 0; k < r->answers.n; k++)
            put_known(x, SN_STYLE_MS, row->times_ns[k] / 1e6);
    }
    const uint32_t last = x->row;
    put_totals(x, r, TEXTS);
    sn_xlsx_end_rows(x);
    sn_xlsx_filter(x, 'A', 'F', 1, last);
    sn_put(&x->w, "</worksheet>");
    sn_xlsx_close(x);
}

sonde_status sn_whatif_write_xlsx(const sonde_whatif *r, sn_sink *sink, sonde_error *err)
{
    static const char *const names[] = {"Scenarios", "Operators", NULL};
    sn_xlsx *x = sn_alloc_zero(&r->context->alloc, sizeof *x);
    if (!x)
        return sn_fail_memory(err, sizeof *x);
    if (r->rows[SONDE_BY_NODE].n + 2 > SN_XLSX_MAX_ROWS) {
        sn_free(&r->context->alloc, x, sizeof *x);
        return sn_fail(err, SONDE_LIMIT, "a sheet can have at most %d rows; use .csv instead",
                       SN_XLSX_MAX_ROWS);
    }
    x->names = names;
    sn_zip_init(&x->zip, sink, &r->context->alloc);
    sn_xlsx_put_package(x);
    put_scenarios(x, r);
    put_operators(x, r);
    const sonde_status st = sn_zip_finish(&x->zip, err);
    sn_free(&r->context->alloc, x, sizeof *x);
    return st;
}
