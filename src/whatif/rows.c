/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements side by side. A row is a step of today; a step of another scenario belongs to the
 * rows whose nodes it computes, and where it computes those of several, its time is divided as they
 * take theirs today. Steps that passes put between operators ("[Reorder]") have one row per name,
 * in every column. So whatever was fused with what, every column adds up to its total. */
#include <math.h>
#include <stdlib.h>

#include "whatif/whatif.h"

const char *const sn_scenario_titles[SN_SCENARIO_TITLES] = {"total (ms)",
                                                            "speed-up",
                                                            "low",
                                                            "high",
                                                            "weights (bytes)",
                                                            "peak memory (bytes)",
                                                            "changed",
                                                            "threads",
                                                            "batch",
                                                            "precision",
                                                            "runs",
                                                            "measured",
                                                            "machine",
                                                            "note"};

#define NO_ROW UINT32_MAX

typedef struct table {
    sonde_whatif *w;
    const sn_model *source;
    sn_whatif_rows *rows;
    sonde_error *err;
} table;

static double *times(const sonde_whatif_row *row)
{
    return (double *)row->times_ns;
}

static int *changes(const sonde_whatif_row *row)
{
    return (int *)row->changed;
}

static sonde_status add_row(const table *t, const sn_whatif_step *s, bool bracket, uint32_t *row)
{
    const size_t n = t->w->answers.n;
    double *ns = SN_NEW_N(&t->w->arena, double, n + 1);
    int *changed = SN_NEW_N(&t->w->arena, int, n + 1);
    const sonde_whatif_row made = {.struct_size = sizeof made,
                                   .name = s->name,
                                   .op_type = s->op_type,
                                   .shapes = s->shapes,
                                   .weight = s->weight,
                                   .sparse = s->sparse,
                                   .node = "",
                                   .count = 1,
                                   .times_ns = ns,
                                   .changed = changed,
                                   .bracket = bracket};
    if (!ns || !changed || !sn_vec_push(t->rows, &t->w->context->alloc, made))
        return sn_fail_memory(t->err, sizeof made);
    for (size_t i = 0; i < n; i++)
        ns[i] = t->w->answers.data[i].measured ? 0 : (double)NAN;
    memset(changed, 0, (n + 1) * sizeof *changed);
    *row = (uint32_t)t->rows->n - 1;
    return SONDE_OK;
}

static bool is_equal(const sonde_whatif_row *row, const char *name, const char *shapes)
{
    return strcmp(row->name, name) == 0 && (!shapes || strcmp(row->shapes, shapes) == 0);
}

/* A step between operators also names the nodes beside it, but it is not their work. */
static bool is_between(const sn_whatif_step *s)
{
    return s->op_type[0] == '[';
}

static bool is_bracket(const sn_whatif_step *s)
{
    return !s->n_nodes || is_between(s);
}

/* What is no node's: one row for all of a name. */
static sonde_status bracket_row(const table *t, const sn_whatif_step *s, uint32_t *row)
{
    const char *name = is_between(s) ? s->op_type : s->added ? "[Quantize]" : s->name;
    for (size_t i = 0; i < t->rows->n; i++)
        if (t->rows->data[i].bracket && is_equal(&t->rows->data[i], name, NULL)) {
            *row = (uint32_t)i;
            return SONDE_OK;
        }
    const sn_whatif_step made = {.name = name, .op_type = name, .shapes = "", .weight = ""};
    return add_row(t, &made, true, row);
}

/* Of nodes that take no time today: they were folded, or are part of another form. */
static sonde_status new_row(const table *t, const sn_whatif_step *s, uint32_t *row)
{
    for (size_t i = 0; i < t->rows->n; i++)
        if (!t->rows->data[i].bracket && times(&t->rows->data[i])[0] == 0 &&
            is_equal(&t->rows->data[i], s->name, s->shapes)) {
            *row = (uint32_t)i;
            return SONDE_OK;
        }
    return add_row(t, s, false, row);
}

/* The node that a row is called after: of its type where there is one. */
static const char *example(const table *t, const sn_whatif_step *s)
{
    const sn_origin *list = t->source->origins.list.data;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (strcmp(list[s->nodes[i]].op_type, s->op_type) == 0 && *list[s->nodes[i]].name)
            return list[s->nodes[i]].name;
    return s->n_nodes ? list[s->nodes[0]].name : "";
}

/* ------------------------------------------------------------------ today */
static sonde_status add_today(const table *t)
{
    const sn_measured *m = t->w->answers.data[0].measured;
    for (size_t i = 0; i < m->steps.n; i++) {
        const sn_whatif_step *s = &m->steps.data[i];
        uint32_t row;
        if (is_bracket(s)) {
            SN_TRY(bracket_row(t, s, &row));
            times(&t->rows->data[row])[0] += s->ns;
            continue;
        }
        SN_TRY(add_row(t, s, false, &row));
        times(&t->rows->data[row])[0] = s->ns;
        t->rows->data[row].node = sn_arena_strdup(&t->w->arena, example(t, s));
        if (!t->rows->data[row].node)
            return sn_fail_memory(t->err, 1);
        for (uint32_t k = 0; k < s->n_nodes; k++) {
            uint32_t *of = &t->w->row_of_node[s->nodes[k]];
            if (*of == NO_ROW || times(&t->rows->data[*of])[0] < s->ns) {
                *of = row;
                t->w->how_of_node[s->nodes[k]] = s->how;
            }
        }
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ other scenarios */
static bool is_first(const table *t, const sn_whatif_step *s, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        if (t->w->row_of_node[s->nodes[i]] == t->w->row_of_node[s->nodes[k]])
            return false;
    return t->w->row_of_node[s->nodes[k]] != NO_ROW;
}

static sonde_status add_step(const table *t, size_t scenario, const sn_whatif_step *s, double ns)
{
    double today = 0;
    uint32_t rows = 0, row;
    for (uint32_t k = 0; k < s->n_nodes && !is_between(s); k++)
        if (is_first(t, s, k)) {
            today += times(&t->rows->data[t->w->row_of_node[s->nodes[k]]])[0];
            rows++;
        }
    if (!rows) {
        SN_TRY(is_bracket(s) ? bracket_row(t, s, &row) : new_row(t, s, &row));
        times(&t->rows->data[row])[scenario] += ns;
        return SONDE_OK;
    }
    for (uint32_t k = 0; k < s->n_nodes; k++)
        if (is_first(t, s, k)) {
            const sonde_whatif_row *found = &t->rows->data[t->w->row_of_node[s->nodes[k]]];
            double *of = times(found);
            of[scenario] += today > 0 ? ns * of[0] / today : ns / rows;
            if (strcmp(t->w->how_of_node[s->nodes[k]], s->how) != 0)
                changes(found)[scenario] = 1;
        }
    return SONDE_OK;
}

/* Of the scenarios that operators can have side by side. One that computes the row as now is not
 * what makes it faster. */
static size_t best_of(const sonde_whatif *w, const sonde_whatif_row *row)
{
    size_t best = 0;
    for (size_t i = 1; i < w->answers.n; i++)
        if (row->changed[i] && w->answers.data[i].measured && !w->answers.data[i].mix &&
            sn_scenario_is_mixable(&w->answers.data[i].asked) &&
            row->times_ns[i] < SN_CLEARLY * row->times_ns[best])
            best = i;
    return best;
}

sonde_status sn_whatif_node_rows(sonde_whatif *w, const sn_model *source, sonde_error *err)
{
    const table t = {.w = w, .source = source, .rows = &w->rows[SONDE_BY_NODE], .err = err};
    const size_t n = source->origins.list.n;
    t.rows->n = 0;
    if (!w->row_of_node)
        w->row_of_node = SN_NEW_N(&w->arena, uint32_t, n + 1);
    if (!w->how_of_node)
        w->how_of_node = SN_NEW_N(&w->arena, const char *, n + 1);
    if (!w->row_of_node || !w->how_of_node)
        return sn_fail_memory(err, n * sizeof *w->row_of_node);
    for (size_t i = 0; i < n; i++)
        w->row_of_node[i] = NO_ROW;
    SN_TRY(add_today(&t));
    for (size_t i = 1; i < w->answers.n; i++) {
        const sn_answer *a = &w->answers.data[i];
        for (size_t k = 0; a->measured && k < a->measured->steps.n; k++)
            SN_TRY(add_step(&t, i, &a->measured->steps.data[k],
                            a->measured->steps.data[k].ns * sn_answer_factor(w, a)));
    }
    for (size_t i = 0; i < t.rows->n; i++)
        t.rows->data[i].best = t.rows->data[i].bracket ? 0 : best_of(w, &t.rows->data[i]);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ groups */
static int by_time(const void *a, const void *b)
{
    const sonde_whatif_row *x = a, *y = b;
    if (x->bracket != y->bracket)
        return x->bracket ? 1 : -1;
    if (x->times_ns[0] != y->times_ns[0])
        return x->times_ns[0] > y->times_ns[0] ? -1 : 1;
    const int names = strcmp(x->name, y->name);
    return names ? names : strcmp(x->node, y->node);
}

static void add_scenario(const sonde_whatif_row *to, const sonde_whatif_row *from, size_t k)
{
    times(to)[k] += from->times_ns[k];
    changes(to)[k] |= from->changed[k];
}

static sonde_status group(sonde_whatif *w, sonde_by by, sonde_error *err)
{
    const sn_whatif_rows *from = &w->rows[SONDE_BY_NODE];
    const table t = {.w = w, .rows = &w->rows[by], .err = err};
    sn_map known;
    sn_map_init(&known, &w->context->alloc);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < from->n && st == SONDE_OK; i++) {
        const sonde_whatif_row *r = &from->data[i];
        const bool shapes = by == SONDE_BY_SHAPE;
        const sn_whatif_step s = {.name = shapes ? r->name : r->op_type,
                                  .op_type = r->op_type,
                                  .shapes = shapes ? r->shapes : "",
                                  .weight = shapes ? r->weight : "",
                                  .sparse = shapes && r->sparse};
        const char *key = sn_arena_printf(&w->arena, "%s\t%s", s.name, s.shapes);
        void *found = key ? sn_map_get(&known, key) : NULL;
        uint32_t row = (uint32_t)((uintptr_t)found - 1);
        if (!found) {
            st = add_row(&t, &s, r->bracket, &row);
            if (st == SONDE_OK &&
                (!key || !sn_map_put(&known, key, (void *)(uintptr_t)t.rows->n, NULL)))
                st = sn_fail_memory(err, 64);
            if (st == SONDE_OK) {
                t.rows->data[row].node = r->node;
                t.rows->data[row].count = 0;
            }
        }
        for (size_t k = 0; k < w->answers.n && st == SONDE_OK; k++)
            add_scenario(&t.rows->data[row], r, k);
        if (st == SONDE_OK)
            t.rows->data[row].count += r->count;
    }
    sn_map_free(&known);
    return st;
}

sonde_status sn_whatif_group_rows(sonde_whatif *w, sonde_error *err)
{
    static const sonde_by ways[] = {SONDE_BY_OP, SONDE_BY_SHAPE, SONDE_BY_NODE};
    SN_TRY(group(w, SONDE_BY_OP, err));
    SN_TRY(group(w, SONDE_BY_SHAPE, err));
    for (int k = 0; k < 3; k++) {
        sn_whatif_rows *rows = &w->rows[ways[k]];
        for (size_t i = 0; i < rows->n && ways[k] != SONDE_BY_NODE; i++)
            rows->data[i].best = rows->data[i].bracket ? 0 : best_of(w, &rows->data[i]);
        qsort(rows->data, rows->n, sizeof *rows->data, by_time);
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ by weight shape */
/* The number of the scenario that is so many % zeros and nothing else; 0: it was not measured. */
static size_t plain_sparsity(const sonde_whatif *w, int sparsity)
{
    for (size_t i = 1; i < w->answers.n; i++) {
        const sn_scenario *s = &w->answers.data[i].asked;
        if (w->answers.data[i].measured && s->sparsity == sparsity && !s->form &&
            !s->has_precision && !s->batch && !s->threads)
            return i;
    }
    return 0;
}

static double ratio(const sonde_whatif *w, const char *weight, int sparsity)
{
    const size_t k = plain_sparsity(w, sparsity);
    const sn_whatif_rows *rows = &w->rows[SONDE_BY_NODE];
    double now = 0, then = 0;
    for (size_t i = 0; k && i < rows->n; i++)
        if (rows->data[i].sparse && strcmp(rows->data[i].weight, weight) == 0) {
            now += rows->data[i].times_ns[0];
            then += rows->data[i].times_ns[k];
        }
    return then > 0 ? now / then : 0;
}

/* When and where, and how sure the total of the model is. */
static sonde_status tell_about(sonde_whatif *w, sonde_error *err)
{
    static const int shares[] = {90, 80, 70};
    const char *text = NULL;
    for (int k = 0; k < 3; k++) {
        const size_t i = plain_sparsity(w, shares[k]);
        const sonde_whatif_scenario *s = &w->answers.data[i].shown;
        if (!i)
            continue;
        text = sn_arena_printf(&w->arena,
                               "%s%s%d %% zeros: measured %s on %s: the whole model %.2f times as "
                               "fast (95 %% interval %.2f to %.2f)",
                               text ? text : "", text ? "; " : "", shares[k], s->measured,
                               s->machine, s->speedup, s->low, s->high);
        if (!text)
            return sn_fail_memory(err, 128);
    }
    w->about_ratios = text;
    return SONDE_OK;
}

sonde_status sn_whatif_find_ratios(sonde_whatif *w, sonde_error *err)
{
    const sn_whatif_rows *rows = &w->rows[SONDE_BY_NODE];
    for (size_t i = 0; i < rows->n; i++) {
        const char *weight = rows->data[i].weight;
        bool known = !rows->data[i].sparse || !*weight;
        for (size_t k = 0; k < w->ratios.n && !known; k++)
            known = strcmp(w->ratios.data[k].weight, weight) == 0;
        if (known)
            continue;
        const sonde_sparse_ratio made = {weight, ratio(w, weight, 90), ratio(w, weight, 80),
                                         ratio(w, weight, 70)};
        if (!sn_vec_push(&w->ratios, &w->context->alloc, made))
            return sn_fail_memory(err, sizeof made);
    }
    return tell_about(w, err);
}
