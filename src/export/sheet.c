/* SPDX-License-Identifier: Apache-2.0 */
/* Rows come from the summary by step, so the latencies and their sum are those of every other
 * format. Texts of cells are put together when asked for: nothing is kept per row but numbers. */
#include "export/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "export/writer.h"

const char *const sn_sheet_titles[SN_COLUMN_COUNT] = {"operator type",
                                                      "post op",
                                                      "operator name",
                                                      "input tensor name",
                                                      "input shape",
                                                      "input dtype",
                                                      "output tensor name",
                                                      "output shape",
                                                      "output dtype",
                                                      "weight shape",
                                                      "weight sparse ratio",
                                                      "sparse support",
                                                      "operator latency (ms)",
                                                      "aim to weight sparse ratio",
                                                      "sparse kernel pref ratio",
                                                      "aim to sparse latency(ms)"};
const char *const sn_sheet_weight_titles[SN_WEIGHT_COLUMNS] = {
    "weight shape", "90% 4x1 perf ratio", "80% 4x1 perf ratio", "70% 4x1 perf ratio", "others"};

/* ------------------------------------------------------------------ texts */
const char *sn_sheet_text(sn_sheet *s, const sn_sheet_row *row, sn_sheet_column column)
{
    static const sn_prof_step none = {0};
    const sn_prof_step *step = row->step ? row->step : &none;
    sn_text *t = &s->cell;
    sn_text_clear(t);
    switch (column) {
    case SN_COLUMN_TYPE:
        sn_text_add(t, row->type);
        break;
    case SN_COLUMN_POST_OP:
        sn_text_add(t, step->post_op);
        break;
    case SN_COLUMN_NAME:
        sn_text_nodes(t, step);
        break;
    case SN_COLUMN_IN_NAMES:
        sn_text_names(t, step->inputs, step->n_inputs);
        break;
    case SN_COLUMN_IN_SHAPES:
        sn_text_shapes(t, step->inputs, step->n_inputs);
        break;
    case SN_COLUMN_IN_TYPES:
        sn_text_types(t, step->inputs, step->n_inputs);
        break;
    case SN_COLUMN_OUT_NAMES:
        sn_text_names(t, step->outputs, step->n_outputs);
        break;
    case SN_COLUMN_OUT_SHAPES:
        sn_text_shapes(t, step->outputs, step->n_outputs);
        break;
    case SN_COLUMN_OUT_TYPES:
        sn_text_types(t, step->outputs, step->n_outputs);
        break;
    case SN_COLUMN_WEIGHT_SHAPE:
        sn_text_add(t, row->weight);
        break;
    default: /* the others are numbers */
        break;
    }
    return sn_text_get(t);
}

const char *sn_sheet_number(char *buf, double v)
{
    sn_fixed_text(buf, v, 9);
    size_t n = strlen(buf);
    if (!strchr(buf, '.'))
        return buf;
    while (buf[n - 1] == '0')
        n--;
    buf[buf[n - 1] == '.' ? n - 1 : n] = 0;
    return buf;
}

/* ------------------------------------------------------------------ weights */
static bool is(const sn_prof_step *step, const char *type)
{
    return step->op_type && strcmp(step->op_type, type) == 0;
}

/* The constant matrix or filter of a product; NULL: the step has none. Integers come with a scale
 * and a zero point each. */
static const sn_prof_tensor *weight_of(const sn_prof_step *step)
{
    if (!step || !step->n_inputs || !(is(step, "MatMul") || is(step, "Gemm") || is(step, "Conv")))
        return NULL;
    const char *x = step->inputs[0].dtype;
    const bool integers = x && (strcmp(x, "i8") == 0 || strcmp(x, "u8") == 0);
    const uint32_t at = integers ? 3 : 1;
    const sn_prof_tensor *w = step->n_inputs > at ? &step->inputs[at] : NULL;
    return w && w->constant && w->rank >= 2 ? w : NULL;
}

/* A convolution over one pixel and all channels is a matrix product. */
static bool is_1x1(const sn_prof_step *step, const sn_prof_tensor *w)
{
    const sn_prof_tensor *x = &step->inputs[0];
    for (int32_t d = 2; d < w->rank; d++)
        if (w->dims[d] != 1)
            return false;
    return w->rank > 2 && x->rank == w->rank && x->dims[1] == w->dims[1];
}

/* Columns of the result: whichever way round the matrix lies in the file. */
static int64_t columns_of(const sn_prof_step *step, const sn_prof_tensor *w)
{
    const sn_prof_tensor *y = step->n_outputs ? &step->outputs[0] : NULL;
    const int64_t n = y && y->rank > 0 ? y->dims[y->rank - 1] : -1;
    return n == w->dims[0] || n == w->dims[1] ? n : -1;
}

static bool is_sparse_capable(const sn_prof_step *step, const sn_prof_tensor *w)
{
    const bool conv = is(step, "Conv");
    if (conv ? !is_1x1(step, w) : w->rank != 2)
        return false;
    const int64_t out = conv ? w->dims[0] : columns_of(step, w);
    return out > 0 && out % 4 == 0;
}

const sn_prof_tensor *sn_sheet_weight(const sn_prof_step *step, bool *capable)
{
    const sn_prof_tensor *w = weight_of(step);
    *capable = w && is_sparse_capable(step, w);
    return w;
}

/* The row of the weight part for this shape, made if new. */
static bool weight_row(sn_sheet *s, const char *shape, uint32_t *row)
{
    void *found = sn_map_get(&s->weight_rows, shape);
    if (!found) {
        found = (void *)(uintptr_t)(s->weights.n + 1);
        if (!sn_vec_push(&s->weights, s->alloc, shape) ||
            !sn_map_put(&s->weight_rows, shape, found, NULL))
            return false;
    }
    *row = (uint32_t)((uintptr_t)found - 1);
    return true;
}

/* ------------------------------------------------------------------ rows */
static double measured_ratio(const sn_sheet *s, uint32_t row, int k)
{
    for (size_t i = 0; i < s->options.n_measured; i++) {
        const sonde_sparse_ratio *m = &s->options.measured[i];
        const double ratios[] = {m->ratio_90, m->ratio_80, m->ratio_70, 0};
        if (strcmp(m->weight, s->weights.data[row]) == 0)
            return ratios[k];
    }
    return 0;
}

double sn_sheet_ratio(const sn_sheet *s, uint32_t row, int k)
{
    const sn_export_options *o = &s->options;
    const double ratios[] = {o->ratio_90, o->ratio_80, o->ratio_70, o->ratio_others};
    const double measured = measured_ratio(s, row, k);
    return measured > 0 ? measured : ratios[k];
}

static size_t count_measured(const sn_sheet *s)
{
    size_t measured = 0;
    for (size_t i = 0; i < s->weights.n; i++)
        for (int k = 0; k < 3; k++)
            measured += measured_ratio(s, (uint32_t)i, k) > 0;
    return measured;
}

const char *sn_sheet_about(const sn_sheet *s)
{
    return count_measured(s) ? s->options.measured_about : NULL;
}

const char *sn_sheet_note(const sn_sheet *s)
{
    const size_t measured = count_measured(s);
    if (!measured)
        return "note: the perf ratios are assumed, not measured";
    return measured == 3 * s->weights.n
               ? "note: the perf ratios were measured on this machine; others is assumed"
               : "note: some of the perf ratios were measured on this machine, the rest is assumed";
}

/* What the formula of column O gives. */
static double ratio_aimed_at(const sn_sheet *s, uint32_t row)
{
    static const double shares[] = {90, 80, 70};
    for (int k = 0; k < 3; k++)
        if (s->options.aim == shares[k])
            return sn_sheet_ratio(s, row, k);
    return s->options.ratio_others;
}

static bool add_row(sn_sheet *s, const sn_profile *p, const sn_prof_row *from)
{
    sn_sheet_row row = {.step = from->step < p->steps.n ? &p->steps.data[from->step] : NULL,
                        .type = from->op_type,
                        .weight = "",
                        .zeros = -1,
                        .ratios = UINT32_MAX,
                        .latency_ms = from->mean_ns / 1e6};
    const sn_prof_tensor *w = weight_of(row.step);
    if (w) {
        sn_text_clear(&s->cell);
        sn_text_shapes(&s->cell, w, 1);
        row.weight = s->cell.failed ? NULL : sn_arena_strdup(&s->arena, sn_text_get(&s->cell));
        row.zeros = w->zeros;
        if (!row.weight ||
            (is_sparse_capable(row.step, w) && !weight_row(s, row.weight, &row.ratios)))
            return false;
    }
    row.aimed = row.ratios != UINT32_MAX && row.zeros < 0.5;
    row.ratio = row.aimed ? ratio_aimed_at(s, row.ratios) : 1;
    row.aim_ms = row.aimed ? row.latency_ms / row.ratio : row.latency_ms;
    s->totals.latency_ms += row.latency_ms;
    s->totals.aim_ms += row.aim_ms;
    if (row.ratios != UINT32_MAX) {
        s->totals.support_ms += row.latency_ms;
        s->totals.support_aim_ms += row.aim_ms;
        s->totals.sparse_ms += row.aimed ? 0 : row.latency_ms;
    }
    return sn_vec_push(&s->rows, s->alloc, row);
}

static bool is_folded(const sn_profile *p, const sn_prof_row *row)
{
    return row->step < p->steps.n && p->steps.data[row->step].folded;
}

static int by_execution(const void *a, const void *b)
{
    const sn_prof_row *x = a, *y = b;
    if (x->bracket != y->bracket)
        return x->bracket ? 1 : -1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void fill_options(sn_export_options *o, const sn_export_options *given)
{
    static const sn_export_options defaults = {
        .ratio_90 = 4, .ratio_80 = 2.5, .ratio_70 = 2, .ratio_others = 1, .aim = 90};
    *o = given ? *given : defaults;
    o->ratio_90 = o->ratio_90 > 0 ? o->ratio_90 : defaults.ratio_90;
    o->ratio_80 = o->ratio_80 > 0 ? o->ratio_80 : defaults.ratio_80;
    o->ratio_70 = o->ratio_70 > 0 ? o->ratio_70 : defaults.ratio_70;
    o->ratio_others = o->ratio_others > 0 ? o->ratio_others : defaults.ratio_others;
    o->aim = o->aim > 0 ? o->aim : defaults.aim;
}

sonde_status sn_sheet_build(sn_sheet *s, const sn_profile *p, const sn_export_options *options,
                            sonde_error *err)
{
    *s = (sn_sheet){.alloc = p->alloc};
    SN_TRY(sn_profile_summarise(p, SN_BY_STEP, &s->steps, err));
    sn_text_init(&s->cell, p->alloc);
    sn_arena_init(&s->arena, p->alloc);
    sn_map_init(&s->weight_rows, p->alloc);
    fill_options(&s->options, options);
    sn_prof_row *rows = s->steps.rows.data;
    const size_t n = s->steps.rows.n;
    qsort(rows, n, sizeof *rows, by_execution);
    for (size_t i = 0; i < n; i++)
        if ((s->options.folded_nodes || !is_folded(p, &rows[i])) && !add_row(s, p, &rows[i])) {
            sn_sheet_free(s);
            return sn_fail_memory(err, sizeof(sn_sheet_row));
        }
    sn_sheet_totals *t = &s->totals;
    t->improve = t->latency_ms / t->aim_ms;
    t->support_ratio = t->support_ms / t->latency_ms;
    t->support_aim_ratio = t->support_aim_ms / t->aim_ms;
    return SONDE_OK;
}

void sn_sheet_free(sn_sheet *s)
{
    sn_text_free(&s->cell);
    sn_vec_free(&s->rows, s->alloc);
    sn_vec_free(&s->weights, s->alloc);
    sn_map_free(&s->weight_rows);
    sn_arena_free(&s->arena);
    sn_prof_summary_free(&s->steps);
}

sonde_status sn_sheet_finish(sn_sheet *s, sonde_error *err)
{
    const bool failed = s->cell.failed;
    sn_sheet_free(s);
    if (failed)
        return sn_fail(err, SONDE_OUT_OF_MEMORY, "cannot allocate the text of a cell");
    return SONDE_OK;
}
