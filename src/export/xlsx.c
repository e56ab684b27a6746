/* SPDX-License-Identifier: Apache-2.0 */
/* The three parts of the CSV as a workbook with live formulas, and a first sheet with latencies,
 * the machine and a chart. Sheets are streamed: memory does not grow with the rows. */
#include "export/xlsx.h"

static sonde_status check_size(const sn_xlsx *x, sonde_error *err)
{
    const size_t rows = x->sheet.rows.n + 1;
    if (rows <= SN_XLSX_MAX_ROWS)
        return SONDE_OK;
    return sn_fail(err, SONDE_LIMIT,
                   "a sheet can have at most %d rows, but this profile has %zu; use .csv instead",
                   SN_XLSX_MAX_ROWS, rows);
}

static sonde_status put_workbook(sn_xlsx *x, sn_sink *sink, sonde_error *err)
{
    SN_TRY(check_size(x, err));
    sn_zip_init(&x->zip, sink, x->p->alloc);
    sn_xlsx_put_package(x);
    sn_xlsx_put_summary(x);
    sn_xlsx_put_operators(x);
    sn_xlsx_put_weights(x);
    sn_xlsx_put_totals(x);
    sn_xlsx_put_chart(x);
    return sn_zip_finish(&x->zip, err);
}

static sonde_status write_xlsx_with(const sn_profile *p, const sn_export_options *opt,
                                    sn_sink *sink, sonde_error *err)
{
    static const char *const names[] = {"Summary", "Operators", "Weights", "Totals", NULL};
    sn_xlsx x = {.p = p, .names = names, .chart = true};
    SN_TRY(sn_sheet_build(&x.sheet, p, opt, err));
    sonde_status st = sn_profile_summarise(p, SN_BY_OP, &x.ops, err);
    if (st == SONDE_OK) {
        st = put_workbook(&x, sink, err);
        sn_prof_summary_free(&x.ops);
    }
    const sonde_status cells = sn_sheet_finish(&x.sheet, st == SONDE_OK ? err : NULL);
    return st == SONDE_OK ? cells : st;
}

static sonde_status write_xlsx(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return write_xlsx_with(p, NULL, sink, err);
}

const sn_exporter sn_exporter_xlsx = {
    .suffix = ".xlsx",
    .name = "xlsx",
    .summary = "Workbook: operators, estimated gain from sparse weights, totals, a chart",
    .write = write_xlsx,
    .write_with = write_xlsx_with};
