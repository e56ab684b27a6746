/* SPDX-License-Identifier: Apache-2.0 */
/* The four sheets. Formulas say how a figure comes about and are live: change a ratio on "Weights"
 * or an aim on "Operators" and everything that follows from it changes. The values beside them are
 * what they give now, for readers that do not calculate. */
#include <inttypes.h>
#include <math.h>

#include "export/xlsx.h"

static void put_titles(sn_xlsx *x, const char *const *titles, size_t n)
{
    sn_xlsx_row(x);
    for (size_t i = 0; i < n; i++)
        sn_xlsx_text(x, SN_STYLE_TITLE, titles[i]);
}

static void put_note(sn_xlsx *x, const char *note)
{
    sn_xlsx_row(x);
    sn_xlsx_row(x);
    sn_xlsx_text(x, SN_STYLE_NOTE, note);
}

static void put_ratio_notes(sn_xlsx *x)
{
    const char *about = sn_sheet_about(&x->sheet);
    put_note(x, sn_sheet_note(&x->sheet));
    if (about) {
        sn_xlsx_row(x);
        sn_xlsx_text(x, SN_STYLE_NOTE, about);
    }
}

/* ------------------------------------------------------------------ Summary */
static void pair_text(sn_xlsx *x, const char *name, const char *value)
{
    sn_xlsx_row(x);
    sn_xlsx_text(x, SN_STYLE_PLAIN, name);
    sn_xlsx_text(x, SN_STYLE_PLAIN, value);
}

static void pair_number(sn_xlsx *x, const char *name, double value)
{
    sn_xlsx_row(x);
    sn_xlsx_text(x, SN_STYLE_PLAIN, name);
    sn_xlsx_number(x, SN_STYLE_PLAIN, value);
}

static void pair_ms(sn_xlsx *x, const char *name, double ns)
{
    sn_xlsx_row(x);
    sn_xlsx_text(x, SN_STYLE_PLAIN, name);
    sn_xlsx_number(x, SN_STYLE_MS, ns / 1e6);
}

static void put_facts(sn_xlsx *x)
{
    const sn_profile *p = x->p;
    const sn_prof_stats *wall = &x->ops.wall_ns;
    pair_text(x, "model", p->model_name);
    pair_text(x, "sonde", p->version);
    pair_text(x, "CPU", p->cpu_model);
    pair_text(x, "instructions", p->cpu_level);
    pair_number(x, "cores", p->cores);
    pair_number(x, "threads", p->threads);
    if (*p->precision)
        pair_text(x, "precision", p->precision);
    pair_number(x, "measured runs", (double)x->ops.iterations);
    pair_number(x, "warm-up runs (left out)", (double)x->ops.warmups);
    pair_number(x, "operators per run", x->ops.ops);
    pair_ms(x, "latency mean (ms)", wall->mean);
    pair_ms(x, "latency min (ms)", wall->min);
    pair_ms(x, "latency median (ms)", wall->p50);
    pair_ms(x, "latency p90 (ms)", wall->p90);
    pair_ms(x, "latency p95 (ms)", wall->p95);
    pair_ms(x, "latency p97 (ms)", wall->p97);
    pair_ms(x, "latency p99 (ms)", wall->p99);
    pair_ms(x, "latency p99.9 (ms)", wall->p999);
    pair_ms(x, "latency max (ms)", wall->max);
    pair_ms(x, "latency standard deviation (ms)", wall->stddev);
    if (isnan(x->ops.cost_ns))
        pair_text(x, "profiler cost (ms)", "unknown");
    else
        pair_ms(x, "profiler cost, not included (ms)", x->ops.cost_ns);
    pair_number(x, "dropped records", (double)p->dropped);
}

static void put_types(sn_xlsx *x)
{
    static const char *const titles[] = {"operator", "calls",  "mean (ms)", "share",
                                         "GFLOP/s",  "kernel", "arithmetic"};
    char arithmetic[SN_ARITH_TEXT];
    sn_xlsx_row(x);
    put_titles(x, titles, sizeof titles / sizeof *titles);
    x->first_op_row = x->row + 1;
    for (size_t i = 0; i < x->ops.rows.n; i++) {
        const sn_prof_row *r = &x->ops.rows.data[i];
        sn_xlsx_row(x);
        sn_xlsx_text(x, SN_STYLE_PLAIN, r->name);
        sn_xlsx_number(x, SN_STYLE_PLAIN, r->calls);
        sn_xlsx_number(x, SN_STYLE_MS, r->mean_ns / 1e6);
        sn_xlsx_number(x, SN_STYLE_PERCENT, r->share);
        if (r->flops > 0 && r->mean_ns > 0)
            sn_xlsx_number(x, SN_STYLE_PLAIN, r->flops / r->mean_ns);
        else
            sn_xlsx_skip(x);
        sn_xlsx_text(x, SN_STYLE_PLAIN, r->kernel);
        sn_xlsx_text(x, SN_STYLE_PLAIN, sn_arithmetic_text(r->arithmetic, arithmetic));
    }
}

void sn_xlsx_put_summary(sn_xlsx *x)
{
    static const double widths[] = {34, 22, 14, 10, 12, 34, 16};
    static const char *const titles[] = {"profile", "value"};
    sn_xlsx_open(x, "xl/worksheets/sheet1.xml");
    sn_xlsx_begin_rows(x, 1, widths, sizeof widths / sizeof *widths);
    put_titles(x, titles, 2);
    put_facts(x);
    put_types(x);
    sn_xlsx_end_rows(x);
    sn_xlsx_filter(x, 'A', 'G', x->first_op_row - 1, x->row);
    sn_xlsx_bars(x, 'C', x->first_op_row, x->row);
    sn_put(&x->w, "<drawing r:id=\"rId1\"/></worksheet>");
    sn_xlsx_close(x);
}

/* ------------------------------------------------------------------ Operators */
/* Columns N, O and P. */
static void put_aim(sn_xlsx *x, const sn_sheet_row *row)
{
    if (!row->aimed) {
        sn_xlsx_skip(x);
        sn_xlsx_skip(x);
        sn_xlsx_number(x, SN_STYLE_MS, row->aim_ms);
        return;
    }
    const uint32_t r = x->row, p = row->ratios + 2; /* below the titles of "Weights" */
    sn_xlsx_number(x, SN_STYLE_SET_PERCENT, x->sheet.options.aim / 100);
    sn_xlsx_formula(x, SN_STYLE_PLAIN, row->ratio,
                    "IF(N%" PRIu32 "=0.9,Weights!B%" PRIu32 ",IF(N%" PRIu32 "=0.8,Weights!C%" PRIu32
                    ",IF(N%" PRIu32 "=0.7,Weights!D%" PRIu32 ",Weights!E%" PRIu32 ")))",
                    r, p, r, p, r, p, p);
    sn_xlsx_formula(x, SN_STYLE_MS, row->aim_ms, "M%" PRIu32 "/O%" PRIu32, r, r);
}

void sn_xlsx_put_operators(sn_xlsx *x)
{
    static const double widths[SN_COLUMN_COUNT] = {16, 12, 28, 32, 26, 14, 24, 16,
                                                   14, 14, 12, 10, 16, 12, 12, 16};
    sn_xlsx_open(x, "xl/worksheets/sheet2.xml");
    sn_xlsx_begin_rows(x, 1, widths, SN_COLUMN_COUNT);
    put_titles(x, sn_sheet_titles, SN_COLUMN_COUNT);
    for (size_t i = 0; i < x->sheet.rows.n && !x->zip.to->failed; i++) {
        const sn_sheet_row *row = &x->sheet.rows.data[i];
        sn_xlsx_row(x);
        for (int column = 0; column <= SN_COLUMN_WEIGHT_SHAPE; column++)
            sn_xlsx_text(x, SN_STYLE_PLAIN, sn_sheet_text(&x->sheet, row, (sn_sheet_column)column));
        if (row->zeros >= 0)
            sn_xlsx_number(x, SN_STYLE_PERCENT, row->zeros);
        else
            sn_xlsx_skip(x);
        sn_xlsx_bool(x, row->ratios != UINT32_MAX);
        sn_xlsx_number(x, SN_STYLE_MS, row->latency_ms);
        put_aim(x, row);
    }
    sn_xlsx_end_rows(x);
    sn_xlsx_filter(x, 'A', 'P', 1, x->row);
    sn_xlsx_bars(x, 'M', 2, x->row);
    sn_put(&x->w, "</worksheet>");
    sn_xlsx_close(x);
}

/* ------------------------------------------------------------------ Weights */
void sn_xlsx_put_weights(sn_xlsx *x)
{
    static const double widths[SN_WEIGHT_COLUMNS] = {24, 20, 20, 20, 12};
    sn_xlsx_open(x, "xl/worksheets/sheet3.xml");
    sn_xlsx_begin_rows(x, 1, widths, SN_WEIGHT_COLUMNS);
    put_titles(x, sn_sheet_weight_titles, SN_WEIGHT_COLUMNS);
    for (size_t i = 0; i < x->sheet.weights.n && !x->zip.to->failed; i++) {
        sn_xlsx_row(x);
        sn_xlsx_text(x, SN_STYLE_PLAIN, x->sheet.weights.data[i]);
        for (int k = 0; k < SN_WEIGHT_COLUMNS - 1; k++)
            sn_xlsx_number(x, SN_STYLE_SET, sn_sheet_ratio(&x->sheet, (uint32_t)i, k));
    }
    const uint32_t last = x->row;
    put_ratio_notes(x);
    sn_xlsx_end_rows(x);
    sn_xlsx_filter(x, 'A', 'E', 1, last);
    sn_put(&x->w, "</worksheet>");
    sn_xlsx_close(x);
}

/* ------------------------------------------------------------------ Totals */
static void total_begin(sn_xlsx *x, const char *name)
{
    sn_xlsx_row(x);
    sn_xlsx_text(x, SN_STYLE_PLAIN, name);
}

void sn_xlsx_put_totals(sn_xlsx *x)
{
    static const double widths[] = {36, 16, 70};
    static const char *const titles[] = {"arguments", "value", "description"};
    const sn_sheet_totals *t = &x->sheet.totals;
    const uint32_t last = (uint32_t)x->sheet.rows.n + 1; /* of "Operators" */
    sn_xlsx_open(x, "xl/worksheets/sheet4.xml");
    sn_xlsx_begin_rows(x, 1, widths, 3);
    put_titles(x, titles, 3);
    total_begin(x, "total latency(ms)");
    sn_xlsx_formula(x, SN_STYLE_MS, t->latency_ms, "SUM(Operators!M2:M%" PRIu32 ")", last);
    sn_xlsx_text(x, SN_STYLE_PLAIN, "mean wall time of one run");
    total_begin(x, "total aim to sparse latency(ms)");
    sn_xlsx_formula(x, SN_STYLE_MS, t->aim_ms, "SUM(Operators!P2:P%" PRIu32 ")", last);
    sn_xlsx_text(x, SN_STYLE_PLAIN, "the same with the target sparsity");
    total_begin(x, "sparse improve");
    sn_xlsx_formula(x, SN_STYLE_PLAIN, t->improve, "B2/B3");
    sn_xlsx_text(x, SN_STYLE_PLAIN, "speedup with the target sparsity");
    total_begin(x, "sparse support latency(ms)");
    sn_xlsx_formula(x, SN_STYLE_MS, t->support_ms,
                    "SUMIF(Operators!L2:L%" PRIu32 ",TRUE,Operators!M2:M%" PRIu32 ")", last, last);
    sn_xlsx_text(x, SN_STYLE_PLAIN, "time in operators whose weights can be sparse");
    total_begin(x, "aim to sparse support latency(ms)");
    sn_xlsx_formula(x, SN_STYLE_MS, t->support_aim_ms,
                    "SUMIF(Operators!L2:L%" PRIu32 ",TRUE,Operators!P2:P%" PRIu32 ")", last, last);
    sn_xlsx_text(x, SN_STYLE_PLAIN, "the same with the target sparsity");
    total_begin(x, "sparse support latency ratio");
    sn_xlsx_formula(x, SN_STYLE_PLAIN, t->support_ratio, "B5/B2");
    sn_xlsx_text(x, SN_STYLE_PLAIN, "their share of the total latency");
    total_begin(x, "aim to sparse support latency ratio");
    sn_xlsx_formula(x, SN_STYLE_PLAIN, t->support_aim_ratio, "B6/B3");
    sn_xlsx_text(x, SN_STYLE_PLAIN, "the same with the target sparsity");
    const uint32_t end = x->row;
    put_ratio_notes(x);
    sn_xlsx_end_rows(x);
    sn_xlsx_filter(x, 'A', 'C', 1, end);
    sn_put(&x->w, "</worksheet>");
    sn_xlsx_close(x);
}
