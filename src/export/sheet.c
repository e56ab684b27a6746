/* SPDX-License-Identifier: Apache-2.0 */
/* Rows come from the summary by step, so the latencies and their sum are those of every other
 * format. Texts of cells are put together when asked for: nothing is kept per row but numbers. */
#include "export/sheet.h"

#include <inttypes.h>
#include <stdio.h>
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
const char sn_sheet_note[] = "note: the perf ratios are assumed, not measured";

/* ------------------------------------------------------------------ texts */
static void add(sn_sheet *s, const char *text, bool *fine)
{
    const size_t n = text ? strlen(text) : 0;
    if (!*fine || !sn_vec_reserve(&s->cell, s->alloc, n + 1)) {
        *fine = false;
        return;
    }
    if (n)
        memcpy(s->cell.data + s->cell.n, text, n);
    s->cell.n += n;
    s->cell.data[s->cell.n] = 0;
}

static void add_shape(sn_sheet *s, const sn_prof_tensor *t, bool *fine)
{
    if (t->rank < 0)
        add(s, t->text, fine);
    for (int32_t d = 0; d < t->rank; d++) {
        char dim[32];
        snprintf(dim, sizeof dim, t->dims[d] < 0 ? "%s?" : "%s%" PRId64, d ? "x" : "", t->dims[d]);
        add(s, dim, fine);
    }
}

static void add_name(sn_sheet *s, const sn_prof_tensor *t, bool *fine)
{
    add(s, t->name, fine);
}

static void add_type(sn_sheet *s, const sn_prof_tensor *t, bool *fine)
{
    const bool plain = sn_is_plain_float(t->dtype); /* f32 is called fp32 in this format */
    add(s, plain ? "fp" : "", fine);
    add(s, plain ? t->dtype + 1 : t->dtype, fine);
}

/* Separated by ";"; a scalar or an absent input keeps its place with nothing in it. */
static void add_list(sn_sheet *s, const sn_prof_tensor *list, uint32_t n,
                     void (*one)(sn_sheet *, const sn_prof_tensor *, bool *), bool *fine)
{
    for (uint32_t i = 0; i < n; i++) {
        add(s, i ? ";" : "", fine);
        one(s, &list[i], fine);
    }
}

const char *sn_sheet_text(sn_sheet *s, const sn_sheet_row *row, sn_sheet_column column)
{
    static const sn_prof_step none = {0};
    const sn_prof_step *step = row->step ? row->step : &none;
    bool fine = true;
    s->cell.n = 0;
    add(s, "", &fine);
    switch (column) {
    case SN_COLUMN_TYPE:
        add(s, row->type, &fine);
        break;
    case SN_COLUMN_POST_OP:
        add(s, step->post_op, &fine);
        break;
    case SN_COLUMN_NAME:
        add(s, step->name, &fine);
        break;
    case SN_COLUMN_IN_NAMES:
        add_list(s, step->inputs, step->n_inputs, add_name, &fine);
        break;
    case SN_COLUMN_IN_SHAPES:
        add_list(s, step->inputs, step->n_inputs, add_shape, &fine);
        break;
    case SN_COLUMN_IN_TYPES:
        add_list(s, step->inputs, step->n_inputs, add_type, &fine);
        break;
    case SN_COLUMN_OUT_NAMES:
        add_list(s, step->outputs, step->n_outputs, add_name, &fine);
        break;
    case SN_COLUMN_OUT_SHAPES:
        add_list(s, step->outputs, step->n_outputs, add_shape, &fine);
        break;
    case SN_COLUMN_OUT_TYPES:
        add_list(s, step->outputs, step->n_outputs, add_type, &fine);
        break;
    case SN_COLUMN_WEIGHT_SHAPE:
        add(s, row->weight, &fine);
        break;
    default: /* the others are numbers */
        break;
    }
    return fine ? s->cell.data : NULL;
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

/* The constant matrix or filter of a product; NULL: the step has none. */
static const sn_prof_tensor *weight_of(const sn_prof_step *step)
{
    if (!step || !(is(step, "MatMul") || is(step, "Gemm") || is(step, "Conv")))
        return NULL;
    const sn_prof_tensor *w = step->n_inputs > 1 ? &step->inputs[1] : NULL;
    return w && w->constant && w->rank >= 2 ? w : NULL;
}

static bool has_attribute(const sn_prof_step *step, const char *text)
{
    const char *at = step->attributes ? strstr(step->attributes, text) : NULL;
    if (!at || (at > step->attributes && at[-1] != ';'))
        return false;
    return at[strlen(text)] == 0 || at[strlen(text)] == ';';
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

static bool is_sparse_capable(const sn_prof_step *step, const sn_prof_tensor *w)
{
    const bool conv = is(step, "Conv");
    if (conv ? !is_1x1(step, w) : w->rank != 2)
        return false;
    const int out = conv || (is(step, "Gemm") && has_attribute(step, "transB=1")) ? 0 : 1;
    return w->dims[out] > 0 && w->dims[out] % 4 == 0;
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
double sn_sheet_ratio(const sn_sheet *s, int k)
{
    const sn_export_options *o = &s->options;
    const double ratios[] = {o->ratio_90, o->ratio_80, o->ratio_70, o->ratio_others};
    return ratios[k];
}

/* What the formula of column O gives. */
static double ratio_aimed_at(const sn_sheet *s)
{
    static const double shares[] = {90, 80, 70};
    for (int k = 0; k < 3; k++)
        if (s->options.aim == shares[k])
            return sn_sheet_ratio(s, k);
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
        bool fine = true;
        s->cell.n = 0;
        add_shape(s, w, &fine);
        row.weight = fine ? sn_arena_strndup(&s->arena, s->cell.data, s->cell.n) : NULL;
        row.zeros = w->zeros;
        if (!row.weight ||
            (is_sparse_capable(row.step, w) && !weight_row(s, row.weight, &row.ratios)))
            return false;
    }
    row.aimed = row.ratios != UINT32_MAX && row.zeros < 0.5;
    row.ratio = ratio_aimed_at(s);
    row.aim_ms = row.aimed ? row.latency_ms / row.ratio : row.latency_ms;
    s->totals.latency_ms += row.latency_ms;
    s->totals.aim_ms += row.aim_ms;
    if (row.ratios != UINT32_MAX) {
        s->totals.support_ms += row.latency_ms;
        s->totals.support_aim_ms += row.aim_ms;
    }
    return sn_vec_push(&s->rows, s->alloc, row);
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
    sn_arena_init(&s->arena, p->alloc);
    sn_map_init(&s->weight_rows, p->alloc);
    fill_options(&s->options, options);
    sn_prof_row *rows = s->steps.rows.data;
    const size_t n = s->steps.rows.n;
    qsort(rows, n, sizeof *rows, by_execution);
    for (size_t i = 0; i < n; i++)
        if (!add_row(s, p, &rows[i])) {
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
    sn_vec_free(&s->cell, s->alloc);
    sn_vec_free(&s->rows, s->alloc);
    sn_vec_free(&s->weights, s->alloc);
    sn_map_free(&s->weight_rows);
    sn_arena_free(&s->arena);
    sn_prof_summary_free(&s->steps);
}
