/* SPDX-License-Identifier: Apache-2.0 */
/* Spans ► samples ► rows. Each side becomes a list of (row, iteration, time), sorted and added up,
 * so that memory follows the number of spans whatever rows and iterations there are. [Other] is
 * what is left of each iteration's wall time, which makes the rows add up to the total. */
#include "profile/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "profile/keys.h"
#include "profile/median.h"
#include "profile/nesting.h"
#include "profile/node_sets.h"
#include "profile/turns.h"

typedef struct sample {
    uint32_t row, iteration;
    double ns;
} sample;

typedef struct side {
    const sn_profile *p;
    sn_prof_nest nest;
    SN_VEC(sample) samples; /* of operators and allocations, then one per row and iteration */
    SN_VEC(double) wall;    /* per measured iteration */
    uint32_t *measured;     /* per iteration of the nest: its number among measured ones */
    uint32_t *row_of_step;
    size_t n_steps;
} side;

enum { MEMORY_ROW, OTHER_ROW };

typedef struct work {
    sn_comparison *out;
    sn_prof_key key;
    sn_map rows; /* key ► 1 + row */
    sn_prof_text text;
    sn_node_sets sets; /* SN_BY_NODE: what both sides have in common */
    const char **set_names;
    side sides[2];
} work;

static const sn_prof_step unknown_step = {.op_type = "[Unknown]", .index = UINT32_MAX};

/* ------------------------------------------------------------------ rows */
static bool add_row(work *w, const char *name, const char *op_type, const char *example)
{
    sn_compare_row row = {.name = name, .op_type = op_type, .example = example};
    return sn_vec_push(&w->out->rows, w->out->alloc, row);
}

/* The row of a set of nodes: called as the step that does most of it, with all of their names. */
static uint32_t row_of_set(work *w, uint32_t set)
{
    struct sn_node_set_entry *e = &w->sets.nodes.data[set];
    if (e->row != SN_NODE_SET_NONE)
        return e->row;
    const size_t number = w->out->rows.n;
    sn_prof_row text = {0};
    if (!sn_prof_row_name(&text, e->widest, w->key, &w->text, &w->out->arena) ||
        !add_row(w, text.name, text.op_type, w->set_names[set]))
        return SN_PROF_NONE;
    return e->row = (uint32_t)number;
}

static bool find_sets(work *w, const sn_profile *old, const sn_profile *now)
{
    if (w->key != SN_BY_NODE)
        return true;
    if (!sn_node_sets_add(&w->sets, old) || !sn_node_sets_add(&w->sets, now))
        return false;
    sn_node_sets_link(&w->sets);
    w->set_names = sn_node_sets_names(&w->sets, &w->out->arena);
    return w->set_names != NULL;
}

static uint32_t row_for(work *w, const sn_prof_step *s)
{
    const uint32_t set = w->key == SN_BY_NODE ? sn_node_sets_of(&w->sets, s) : SN_NODE_SET_NONE;
    if (set != SN_NODE_SET_NONE)
        return row_of_set(w, set);
    sn_prof_key_of(&w->text, s, w->key);
    if (w->text.failed)
        return SN_PROF_NONE;
    size_t n = w->text.b.n;
    void *found = sn_map_get_n(&w->rows, w->text.b.data, n);
    if (found)
        return (uint32_t)((uintptr_t)found - 1);
    char *key = sn_arena_alloc(&w->out->arena, n + 1, 1);
    if (!key)
        return SN_PROF_NONE;
    memcpy(key, w->text.b.data, n);
    size_t number = w->out->rows.n;
    sn_prof_row text = {0};
    if (!sn_prof_row_name(&text, s, w->key, &w->text, &w->out->arena) ||
        !add_row(w, text.name, text.op_type, text.example) ||
        !sn_map_put_n(&w->rows, key, n, (void *)(uintptr_t)(number + 1), NULL))
        return SN_PROF_NONE;
    return (uint32_t)number;
}

/* ------------------------------------------------------------------ samples */
static bool number_iterations(side *s)
{
    const sn_profile *p = s->p;
    s->measured = sn_alloc(p->alloc, s->nest.n_iterations * sizeof *s->measured);
    if (!s->measured)
        return false;
    for (size_t k = 0; k < s->nest.n_iterations; k++) {
        const sn_prof_span *it = &p->spans.data[s->nest.iteration_span[k]];
        s->measured[k] = it->warmup ? SN_PROF_NONE : (uint32_t)s->wall.n;
        if (!it->warmup &&
            !sn_vec_push(&s->wall, p->alloc, (double)it->dur_ns - s->nest.cost_ns[k]))
            return false;
    }
    return true;
}

static bool take_spans(work *w, side *s)
{
    const sn_profile *p = s->p;
    s->n_steps = p->steps.n + 1;
    s->row_of_step = sn_alloc(p->alloc, s->n_steps * sizeof *s->row_of_step);
    if (!s->row_of_step)
        return false;
    for (size_t i = 0; i < s->n_steps; i++)
        s->row_of_step[i] = SN_PROF_NONE;
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *span = &p->spans.data[i];
        uint32_t it = s->nest.iteration[i];
        if (it == SN_PROF_NONE || s->measured[it] == SN_PROF_NONE ||
            (span->cat != SN_CAT_OPERATOR && span->cat != SN_CAT_MEMORY))
            continue;
        sample one = {.row = MEMORY_ROW, .iteration = s->measured[it], .ns = s->nest.net_ns[i]};
        if (span->cat == SN_CAT_OPERATOR) {
            bool known = span->step < p->steps.n;
            uint32_t *row = &s->row_of_step[known ? span->step : p->steps.n];
            if (*row == SN_PROF_NONE)
                *row = row_for(w, known ? &p->steps.data[span->step] : &unknown_step);
            if (*row == SN_PROF_NONE)
                return false;
            one.row = *row;
        }
        if (!sn_vec_push(&s->samples, p->alloc, one))
            return false;
    }
    return true;
}

static bool take_rest(side *s)
{
    size_t n = s->samples.n, bytes = s->wall.n * sizeof(double);
    double *rest = sn_alloc(s->p->alloc, bytes);
    bool good = rest && sn_vec_reserve(&s->samples, s->p->alloc, s->wall.n);
    if (good) {
        memcpy(rest, s->wall.data, bytes);
        for (size_t i = 0; i < n; i++)
            rest[s->samples.data[i].iteration] -= s->samples.data[i].ns;
        for (size_t k = 0; k < s->wall.n; k++)
            s->samples.data[s->samples.n++] = (sample){OTHER_ROW, (uint32_t)k, rest[k]};
    }
    sn_free(s->p->alloc, rest, bytes);
    return good;
}

static int by_row(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->iteration < y->iteration ? -1 : x->iteration > y->iteration;
}

static sonde_status make_side(work *w, side *s, const sn_profile *p, sonde_error *err)
{
    s->p = p;
    SN_TRY(sn_prof_nest_build(p, &s->nest, err));
    if (!number_iterations(s))
        return sn_fail_memory(err, s->nest.n_iterations * sizeof(double));
    if (!s->wall.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "the profile of '%s' has no measured run to compare", p->model_name);
    if (!take_spans(w, s) || !take_rest(s))
        return sn_fail_memory(err, p->spans.n * sizeof(sample));
    qsort(s->samples.data, s->samples.n, sizeof(sample), by_row);
    return SONDE_OK;
}

static void free_side(side *s)
{
    if (!s->p)
        return;
    sn_allocator *alloc = s->p->alloc;
    sn_free(alloc, s->measured, s->nest.n_iterations * sizeof *s->measured);
    sn_free(alloc, s->row_of_step, s->n_steps * sizeof *s->row_of_step);
    sn_vec_free(&s->samples, alloc);
    sn_vec_free(&s->wall, alloc);
    s->nest.alloc = alloc;
    sn_prof_nest_free(&s->nest);
}

/* ------------------------------------------------------------------ comparing */
/* The runs of both sides, one row at a time. */
typedef struct table {
    const side *sides[2];
    sn_turns turns;
    size_t at[2];         /* where the row's samples begin */
    sn_run_values row[2]; /* time in each run that it ran in */
    double *ratios;       /* by turn */
    double *room;         /* for as many as there are runs on both sides */
    sn_arena memory;
} table;

static sonde_status open_table(table *t, const work *w, sonde_error *err)
{
    size_t runs = 0;
    *t = (table){.sides = {&w->sides[0], &w->sides[1]}};
    sn_arena_init(&t->memory, w->out->alloc);
    for (int k = 0; k < 2; k++) {
        const size_t n = t->sides[k]->wall.n;
        t->row[k].values = SN_NEW_N(&t->memory, double, n);
        t->row[k].run = SN_NEW_N(&t->memory, uint32_t, n);
        runs += n;
    }
    t->ratios = SN_NEW_N(&t->memory, double, runs);
    t->room = SN_NEW_N(&t->memory, double, runs);
    if (!t->row[0].values || !t->row[0].run || !t->row[1].values || !t->row[1].run || !t->ratios ||
        !t->room)
        return sn_fail_memory(err, runs * sizeof(double));
    return sn_turns_make(&t->turns, w->sides[0].p, w->sides[1].p, w->out->alloc, err);
}

static void close_table(table *t)
{
    sn_turns_free(&t->turns);
    sn_arena_free(&t->memory);
}

/* Takes the samples of the next row, added up per run; *calls and *mean are per run. */
static void take_row(table *t, int k, uint32_t row, double *calls, double *mean)
{
    const side *s = t->sides[k];
    sn_run_values *to = &t->row[k];
    size_t *at = &t->at[k];
    const size_t first = *at;
    double total = 0;
    to->n = 0;
    for (; *at < s->samples.n && s->samples.data[*at].row == row; ++*at) {
        const sample *x = &s->samples.data[*at];
        if (!to->n || to->run[to->n - 1] != x->iteration) {
            to->run[to->n] = x->iteration;
            to->values[to->n++] = 0;
        }
        to->values[to->n - 1] += x->ns;
        total += x->ns;
    }
    *calls = (double)(*at - first) / (double)s->wall.n;
    *mean = total / (double)s->wall.n;
}

static void take_wall(table *t, int k)
{
    const side *s = t->sides[k];
    sn_run_values *to = &t->row[k];
    for (to->n = 0; to->n < s->wall.n; to->n++) {
        to->run[to->n] = (uint32_t)to->n;
        to->values[to->n] = s->wall.data[to->n];
    }
}

static double median_of_taken(table *t, int k)
{
    const sn_run_values *v = &t->row[k];
    if (!v->n)
        return 0;
    memcpy(t->room, v->values, v->n * sizeof *t->room);
    return sn_median_of(t->room, v->n);
}

static void compare_taken(table *t, double error, sn_change *out)
{
    const sn_run_values *a = &t->row[0], *b = &t->row[1];
    const size_t turns = t->turns.n ? sn_turns_ratios(&t->turns, a, b, t->room, t->ratios) : 0;
    if (turns >= SN_COMPARE_FEWEST)
        sn_compare_turns(a->values, a->n, b->values, b->n, t->ratios, turns, error, t->room, out);
    else
        sn_compare_samples(a->values, a->n, b->values, b->n, error, t->room, out);
}

static double mean_of(const side *s)
{
    double total = 0;
    for (size_t i = 0; i < s->wall.n; i++)
        total += s->wall.data[i];
    return total / (double)s->wall.n;
}

/* The part of the error that a row may have is as large as this is of the sum over rows and total.
 * What takes next to nothing still has some. */
static double weight_of(const sn_compare_row *row)
{
    const double share = fmax(row->old_share, row->new_share);
    return fmin(fmax(share, 0.001), 1);
}

/* Everything but the changes; the sum of the weights. */
static double fill_figures(table *t, sn_comparison *out)
{
    sn_compare_row *total = &out->total;
    *total = (sn_compare_row){.name = "total", .op_type = "", .example = ""};
    total->old_ns = mean_of(t->sides[0]);
    total->new_ns = mean_of(t->sides[1]);
    total->old_calls = total->new_calls = total->old_share = total->new_share = 1;
    take_wall(t, 0);
    take_wall(t, 1);
    const double old = median_of_taken(t, 0), now = median_of_taken(t, 1);
    double weights = weight_of(total);
    for (uint32_t r = 0; r < out->rows.n; r++) {
        sn_compare_row *row = &out->rows.data[r];
        take_row(t, 0, r, &row->old_calls, &row->old_ns);
        take_row(t, 1, r, &row->new_calls, &row->new_ns);
        row->old_share = old > 0 ? median_of_taken(t, 0) / old : 0;
        row->new_share = now > 0 ? median_of_taken(t, 1) / now : 0;
        weights += t->row[0].n && t->row[1].n ? weight_of(row) : 0;
    }
    return weights;
}

static sonde_status fill_rows(work *w, sonde_error *err)
{
    table t;
    sn_comparison *out = w->out;
    sonde_status st = open_table(&t, w, err);
    if (st == SONDE_OK) {
        const double weights = fill_figures(&t, out);
        take_wall(&t, 0);
        take_wall(&t, 1);
        compare_taken(&t, SN_COMPARE_ERROR * weight_of(&out->total) / weights, &out->total.change);
        t.at[0] = t.at[1] = 0;
        for (uint32_t r = 0; r < out->rows.n; r++) {
            sn_compare_row *row = &out->rows.data[r];
            take_row(&t, 0, r, &row->old_calls, &row->old_ns);
            take_row(&t, 1, r, &row->new_calls, &row->new_ns);
            compare_taken(&t, SN_COMPARE_ERROR * weight_of(row) / weights, &row->change);
        }
    }
    close_table(&t);
    return st;
}

static int by_change(const void *a, const void *b)
{
    const sn_compare_row *x = a, *y = b;
    double dx = fabs(x->change.new_median - x->change.old_median);
    double dy = fabs(y->change.new_median - y->change.old_median);
    if (dx != dy)
        return dx > dy ? -1 : 1;
    int order = strcmp(x->op_type, y->op_type);
    if (order == 0)
        order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->example, y->example);
}

/* Nothing was allocated and released: no row for it. */
static void drop_empty(sn_comparison *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->rows.n; i++)
        if (out->rows.data[i].old_calls > 0 || out->rows.data[i].new_calls > 0)
            out->rows.data[kept++] = out->rows.data[i];
    out->rows.n = kept;
}

sonde_status sn_profile_compare(const sn_profile *old, const sn_profile *now, sn_prof_key key,
                                sn_allocator *alloc, sn_comparison *out, sonde_error *err)
{
    *out = (sn_comparison){.alloc = alloc};
    sn_arena_init(&out->arena, alloc);
    work w = {.out = out, .key = key, .text.alloc = alloc};
    sn_map_init(&w.rows, alloc);
    sn_node_sets_init(&w.sets, alloc);
    sonde_status st = SONDE_OK;
    if (!add_row(&w, "[Mem alloc/free]", "[Mem alloc/free]", "") ||
        !add_row(&w, "[Other]", "[Other]", "") || !find_sets(&w, old, now))
        st = sn_fail_memory(err, sizeof(sn_compare_row));
    if (st == SONDE_OK)
        st = make_side(&w, &w.sides[0], old, err);
    if (st == SONDE_OK)
        st = make_side(&w, &w.sides[1], now, err);
    if (st == SONDE_OK)
        st = fill_rows(&w, err);
    if (st == SONDE_OK) {
        out->old_iterations = w.sides[0].wall.n;
        out->new_iterations = w.sides[1].wall.n;
        drop_empty(out);
        qsort(out->rows.data, out->rows.n, sizeof *out->rows.data, by_change);
    }
    free_side(&w.sides[0]);
    free_side(&w.sides[1]);
    sn_vec_free(&w.text.b, alloc);
    sn_node_sets_free(&w.sets);
    sn_map_free(&w.rows);
    if (st != SONDE_OK)
        sn_comparison_free(out);
    return st;
}

void sn_comparison_free(sn_comparison *c)
{
    if (!c->alloc)
        return;
    sn_vec_free(&c->rows, c->alloc);
    sn_arena_free(&c->arena);
}
