/* SPDX-License-Identifier: Apache-2.0 */
/* A workbook while it is written: parts of the archive one after the other, cells of a sheet from
 * left to right, row by row. Internal to the .xlsx exporter. */
#ifndef SN_EXPORT_XLSX_H
#define SN_EXPORT_XLSX_H

#include "export/sheet.h"
#include "export/writer.h"
#include "export/zip.h"

typedef enum sn_xlsx_style { /* rows of cellXfs in styles.xml */
                             SN_STYLE_PLAIN,
                             SN_STYLE_TITLE,
                             SN_STYLE_MS,      /* 0.000000 */
                             SN_STYLE_PERCENT, /* 0.00% */
                             SN_STYLE_SET,     /* a number people may change */
                             SN_STYLE_SET_PERCENT,
                             SN_STYLE_NOTE
} sn_xlsx_style;

enum { SN_XLSX_MAX_SHEETS = 4 };
enum { SN_XLSX_MAX_ROWS = 1048576, SN_XLSX_MAX_TEXT = 32767 /* UTF-16 units of a cell */ };

typedef struct sn_xlsx {
    const sn_profile *p;
    sn_sheet sheet;
    sn_prof_summary ops;   /* by operator type: the table and the chart of the first sheet */
    uint32_t first_op_row; /* of that table */
    sn_zip zip;
    sn_writer w;              /* of the open part */
    uint32_t row;             /* the open one, from 1; 0 = none */
    uint32_t column;          /* of the next cell, from 0 */
    const char *const *names; /* of the sheets, at most SN_XLSX_MAX_SHEETS; a NULL ends them */
    bool chart;               /* the first has a drawing */
} sn_xlsx;

/* ---- xlsx_cells.c ---- */
void sn_xlsx_open(sn_xlsx *x, const char *part); /* begins an XML document */
void sn_xlsx_close(sn_xlsx *x);
void sn_xlsx_escape(sn_xlsx *x, const char *text); /* text or attribute value */

/* A worksheet up to its rows: the first `frozen` rows stay in sight; widths of n columns. */
void sn_xlsx_begin_rows(sn_xlsx *x, uint32_t frozen, const double *widths, size_t n);
void sn_xlsx_row(sn_xlsx *x);  /* closes the row before */
void sn_xlsx_skip(sn_xlsx *x); /* an empty cell */
void sn_xlsx_text(sn_xlsx *x, sn_xlsx_style style, const char *text);
void sn_xlsx_number(sn_xlsx *x, sn_xlsx_style style, double v);
void sn_xlsx_bool(sn_xlsx *x, bool v);
/* A formula (without "=") and the value it has now; not finite: a division by zero. */
void sn_xlsx_formula(sn_xlsx *x, sn_xlsx_style style, double value, const char *fmt, ...)
    SONDE_PRINTF(4, 5);
void sn_xlsx_end_rows(sn_xlsx *x);
/* "A", "Z", "AA" of the column, from 0. */
const char *sn_xlsx_column(char name[4], uint32_t column);
/* Buttons over the columns first…last of the rows from…to. Columns are letters. */
void sn_xlsx_filter(sn_xlsx *x, char first, char last, uint32_t from, uint32_t to);
void sn_xlsx_bars(sn_xlsx *x, char column, uint32_t from, uint32_t to); /* data bars from 0 */

/* ---- xlsx_package.c ---- */
void sn_xlsx_put_package(sn_xlsx *x); /* what is the same in every workbook */

/* ---- xlsx_sheets.c: one part each ---- */
void sn_xlsx_put_summary(sn_xlsx *x);
void sn_xlsx_put_operators(sn_xlsx *x);
void sn_xlsx_put_weights(sn_xlsx *x);
void sn_xlsx_put_totals(sn_xlsx *x);

/* ---- xlsx_chart.c ---- */
void sn_xlsx_put_chart(sn_xlsx *x); /* the longest operators: the drawing and the chart in it */

#endif
