/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs stay, and what is told of the others: the wall time of each, and for each step the
 * number of calls, their time, and a few quantiles of a call. Means and percentiles of whole runs
 * are therefore exact; percentiles of single calls are interpolated between these quantiles. */
#include "profile/left.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/nesting.h"

enum { MOST_WARMUPS = 16 };

const double sn_left_quantiles[SN_LEFT_POINTS] = {0,   0.01, 0.05, 0.1, 0.2,  0.3,  0.4,   0.5,
                                                  0.6, 0.7,  0.8,  0.9, 0.95, 0.99, 0.999, 1};

/* ------------------------------------------------------------------ quantiles */
static double quantile(const double *sorted, size_t n, double q)
{
    const double rank = q * (double)(n - 1);
    const size_t below = (size_t)rank;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (rank - (double)below);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

size_t sn_left_samples(const sn_prof_left_step *s, double *to)
{
    const size_t n = sn_left_count(s);
    size_t k = 1;
    for (size_t i = 0; i < n; i++) {
        const double q = n > 1 ? (double)i / (double)(n - 1) : 0.5;
        while (k + 1 < SN_LEFT_POINTS && sn_left_quantiles[k] < q)
            k++;
        const double from = sn_left_quantiles[k - 1], width = sn_left_quantiles[k] - from;
        to[i] = s->points[k - 1] + (s->points[k] - s->points[k - 1]) * (q - from) / width;
    }
    return n;
}

const sn_prof_left_step *sn_left_of(const sn_profile *p, uint32_t step)
{
    size_t low = 0, high = p->left.steps.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (p->left.steps.data[mid].step < step)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == p->left.steps.n || p->left.steps.data[low].step != step)
        return NULL;
    return &p->left.steps.data[low];
}

static int by_step(const void *a, const void *b)
{
    const sn_prof_left_step *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

void sn_left_sort(sn_profile *p)
{
    sn_prof_left_step *all = p->left.steps.data;
    size_t n = 0;
    if (p->left.steps.n > 1)
        qsort(all, p->left.steps.n, sizeof *all, by_step);
    for (size_t i = 0; i < p->left.steps.n; i++)
        if (n && all[n - 1].step == all[i].step) {
            all[n - 1].calls += all[i].calls;
            all[n - 1].total_ns += all[i].total_ns;
        } else {
            all[n++] = all[i];
        }
    p->left.steps.n = n;
}

size_t sn_left_kept(const sn_profile *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        n += p->spans.data[i].cat == SN_CAT_ITERATION && !p->spans.data[i].warmup;
    return n;
}

const char *sn_left_note(const sn_profile *p, size_t kept, char text[160])
{
    text[0] = 0;
    if (p->left.wall_ns.n || p->left.warmups)
        snprintf(
            text, 160,
            "it has the spans of %zu of %zu runs, as its size is limited; figures are those of "
            "all runs",
            kept, kept + p->left.wall_ns.n);
    return text;
}

sonde_status sn_left_tell(sn_profile *p, sonde_error *err)
{
    char text[160];
    if (!*sn_left_note(p, sn_left_kept(p), text) || *p->note)
        return SONDE_OK;
    const char *note = sn_arena_strdup(&p->arena, text);
    if (!note)
        return sn_fail_memory(err, sizeof text);
    p->note = note;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ which runs */
typedef struct choice {
    const sn_profile *p;
    sn_prof_nest nest;
    sn_prof_index index;
    bool *keep;      /* by iteration */
    uint32_t *order; /* measured iterations, later those that are not chosen yet */
    size_t measured, chosen;
    bool *dropped; /* by span */
} choice;

static const sn_prof_span *run_of(const choice *c, size_t iteration)
{
    return &c->p->spans.data[c->nest.iteration_span[iteration]];
}

static void choose(choice *c, uint32_t iteration)
{
    c->chosen += !c->keep[iteration];
    c->keep[iteration] = true;
}

/* The first run with each step: a file tells steps by their spans. */
static sonde_status choose_for_steps(choice *c, sonde_error *err)
{
    const sn_profile *p = c->p;
    bool *seen = sn_alloc_zero(p->alloc, p->steps.n + 1);
    if (!seen)
        return sn_fail_memory(err, p->steps.n + 1);
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        const uint32_t it = c->nest.iteration[i];
        if (s->cat != SN_CAT_OPERATOR || it == SN_PROF_NONE || s->step >= p->steps.n ||
            run_of(c, it)->warmup || seen[s->step])
            continue;
        seen[s->step] = true;
        choose(c, it);
    }
    sn_free(p->alloc, seen, p->steps.n + 1);
    return SONDE_OK;
}

typedef struct slow_run {
    double ns;
    uint32_t iteration;
} slow_run;

static int slowest_first(const void *a, const void *b)
{
    const slow_run *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->iteration < y->iteration ? -1 : 1;
}

static sonde_status choose_slowest(choice *c, size_t n, sonde_error *err)
{
    const size_t bytes = c->measured * sizeof(slow_run);
    slow_run *all = sn_alloc(c->p->alloc, bytes);
    if (!all)
        return sn_fail_memory(err, bytes);
    for (size_t i = 0; i < c->measured; i++)
        all[i] = (slow_run){(double)run_of(c, c->order[i])->dur_ns, c->order[i]};
    if (c->measured > 1)
        qsort(all, c->measured, sizeof *all, slowest_first);
    for (size_t i = 0; i < n && i < c->measured; i++)
        choose(c, all[i].iteration);
    sn_free(c->p->alloc, all, bytes);
    return SONDE_OK;
}

/* Every k-th of those that nothing has chosen. */
static void choose_evenly(choice *c, size_t most)
{
    size_t open = 0;
    for (size_t i = 0; i < c->measured; i++)
        if (!c->keep[c->order[i]])
            c->order[open++] = c->order[i];
    const size_t wanted = most > c->chosen ? most - c->chosen : 0,
                 n = wanted < open ? wanted : open;
    for (size_t i = 0; i < n; i++)
        choose(c, c->order[(size_t)(((double)i + 0.5) * (double)open / (double)n)]);
}

static sonde_status choose_runs(choice *c, size_t most, sonde_error *err)
{
    const size_t n = c->nest.n_iterations;
    size_t warmups = 0;
    c->keep = sn_alloc_zero(c->p->alloc, n + 1);
    c->order = sn_alloc(c->p->alloc, (n + 1) * sizeof *c->order);
    if (!c->keep || !c->order)
        return sn_fail_memory(err, (n + 1) * sizeof *c->order);
    for (size_t k = 0; k < n; k++)
        if (!run_of(c, k)->warmup)
            c->order[c->measured++] = (uint32_t)k;
        else
            c->keep[k] = warmups++ < MOST_WARMUPS;
    SN_TRY(choose_for_steps(c, err));
    const size_t share = most / 8 ? most / 8 : 1;
    for (size_t i = 0; i < share && i < c->measured; i++)
        choose(c, c->order[i]);
    if (most > 1)
        SN_TRY(choose_slowest(c, share, err));
    choose_evenly(c, most);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ spans and counters */
static sonde_status keep_spans(choice *c, sn_profile *shown, sonde_error *err)
{
    const sn_profile *p = c->p;
    c->dropped = sn_alloc_zero(p->alloc, p->spans.n + 1);
    if (!c->dropped)
        return sn_fail_memory(err, p->spans.n);
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        const uint32_t it = c->nest.iteration[i];
        const uint32_t parent = s->parent ? sn_prof_index_find(&c->index, s->parent) : UINT32_MAX;
        c->dropped[i] = (it != SN_PROF_NONE && !c->keep[it]) ||
                        (parent != UINT32_MAX && parent < i && c->dropped[parent]);
        if (!c->dropped[i] && !sn_vec_push(&shown->spans, p->alloc, *s))
            return sn_fail_memory(err, sizeof *s);
    }
    return SONDE_OK;
}

/* Stretches of time, by their start, that do not overlap. */
typedef struct stretch {
    uint64_t start, end;
} stretch;

static size_t join_stretches(const choice *c, bool kept, stretch *to)
{
    size_t n = 0;
    for (size_t k = 0; k < c->nest.n_iterations; k++) { /* runs stand by their start */
        const sn_prof_span *s = run_of(c, k);
        const uint64_t end = s->start_ns + s->dur_ns;
        if (c->keep[k] != kept)
            continue;
        if (n && s->start_ns <= to[n - 1].end)
            to[n - 1].end = end > to[n - 1].end ? end : to[n - 1].end;
        else
            to[n++] = (stretch){s->start_ns, end};
    }
    return n;
}

static bool lies_in(const stretch *all, size_t n, uint64_t at)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (all[mid].start <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && at <= all[low - 1].end;
}

static sonde_status keep_counters(const choice *c, sn_profile *shown, sonde_error *err)
{
    const sn_profile *p = c->p;
    const size_t bytes = 2 * (c->nest.n_iterations + 1) * sizeof(stretch);
    stretch *kept = sn_alloc(p->alloc, bytes), *gone = kept + c->nest.n_iterations + 1;
    if (!kept)
        return sn_fail_memory(err, bytes);
    const size_t n_kept = join_stretches(c, true, kept), n_gone = join_stretches(c, false, gone);
    bool fine = true;
    for (size_t i = 0; i < p->counters.n && fine; i++) {
        const sn_prof_counter *x = &p->counters.data[i];
        if (lies_in(kept, n_kept, x->at_ns) || !lies_in(gone, n_gone, x->at_ns))
            fine = sn_vec_push(&shown->counters, p->alloc, *x);
    }
    sn_free(p->alloc, kept, bytes);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(sn_prof_counter));
}

/* ------------------------------------------------------------------ what is told of the others */
static sonde_status tell_runs(const choice *c, sn_prof_left *left, sonde_error *err)
{
    const sn_profile *p = c->p;
    const sn_prof_left *old = &p->left;
    left->warmups = old->warmups;
    left->cost_ns = old->cost_ns;
    left->first_ns = old->wall_ns.n ? old->first_ns : UINT64_MAX;
    left->last_ns = old->last_ns;
    bool fine = true;
    for (size_t i = 0; i < old->wall_ns.n && fine; i++)
        fine = sn_vec_push(&left->wall_ns, p->alloc, old->wall_ns.data[i]);
    for (size_t k = 0; k < c->nest.n_iterations && fine; k++) {
        const sn_prof_span *s = run_of(c, k);
        if (c->keep[k])
            continue;
        left->warmups += s->warmup;
        if (s->warmup)
            continue;
        left->cost_ns += c->nest.cost_ns[k];
        left->first_ns = s->start_ns < left->first_ns ? s->start_ns : left->first_ns;
        left->last_ns =
            s->start_ns + s->dur_ns > left->last_ns ? s->start_ns + s->dur_ns : left->last_ns;
        fine = sn_vec_push(&left->wall_ns, p->alloc, (double)s->dur_ns - c->nest.cost_ns[k]);
    }
    left->first_ns = left->first_ns == UINT64_MAX ? 0 : left->first_ns;
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(double));
}

/* Samples of all runs by row: one for each step, then the rest of each run, then memory. Of a
 * profile that has left out runs before, the quantiles say more than the spans that stayed. */
typedef struct samples {
    size_t *first, *n;        /* of each row */
    double *calls, *total_ns; /* of each row, in runs that are left out */
    double *all;
    double *rest; /* by iteration: its time without what counts in steps and memory */
    size_t rows, total;
} samples;

static uint32_t step_of_row(const sn_profile *p, size_t row)
{
    return row < p->steps.n ? (uint32_t)row : row == p->steps.n ? SN_LEFT_OTHER : SN_LEFT_MEMORY;
}

/* The row of a span of a measured run; SIZE_MAX: none. */
static size_t row_of(const choice *c, size_t i)
{
    const sn_prof_span *s = &c->p->spans.data[i];
    const uint32_t it = c->nest.iteration[i];
    if (it == SN_PROF_NONE || run_of(c, it)->warmup)
        return SIZE_MAX;
    if (s->cat == SN_CAT_MEMORY)
        return c->p->steps.n + 1;
    return s->cat == SN_CAT_OPERATOR && s->step < c->p->steps.n ? s->step : SIZE_MAX;
}

static void lay_out(const choice *c, samples *s)
{
    const sn_profile *p = c->p;
    for (size_t i = 0; i < p->spans.n; i++) {
        const size_t row = row_of(c, i);
        if (row != SIZE_MAX)
            s->n[row]++;
    }
    s->n[p->steps.n] = c->measured;
    for (size_t row = 0; row < s->rows; row++) {
        const sn_prof_left_step *old = sn_left_of(p, step_of_row(p, row));
        s->first[row] = s->total;
        s->total += old ? sn_left_count(old) : s->n[row];
        s->n[row] = 0;
    }
}

static void add_sample(const choice *c, samples *s, size_t row, bool left, double ns)
{
    s->calls[row] += left;
    s->total_ns[row] += left ? ns : 0;
    if (!sn_left_of(c->p, step_of_row(c->p, row)))
        s->all[s->first[row] + s->n[row]++] = ns;
}

static void fill(const choice *c, samples *s)
{
    const sn_profile *p = c->p;
    for (size_t i = 0; i < p->spans.n; i++) {
        const size_t row = row_of(c, i);
        if (row == SIZE_MAX)
            continue;
        add_sample(c, s, row, !c->keep[c->nest.iteration[i]], c->nest.net_ns[i]);
        s->rest[c->nest.iteration[i]] -= c->nest.net_ns[i];
    }
    for (size_t k = 0; k < c->nest.n_iterations; k++) {
        const sn_prof_span *run = run_of(c, k);
        if (!run->warmup)
            add_sample(c, s, p->steps.n, !c->keep[k],
                       s->rest[k] + (double)run->dur_ns - c->nest.cost_ns[k]);
    }
    for (size_t i = 0; i < p->left.steps.n; i++) {
        const sn_prof_left_step *old = &p->left.steps.data[i];
        const size_t row = old->step == SN_LEFT_OTHER    ? p->steps.n
                           : old->step == SN_LEFT_MEMORY ? p->steps.n + 1
                                                         : old->step;
        s->n[row] = sn_left_samples(old, s->all + s->first[row]);
        s->calls[row] += old->calls;
        s->total_ns[row] += old->total_ns;
    }
}

static sonde_status tell_row(const choice *c, const samples *s, size_t row, sn_prof_left *left,
                             sonde_error *err)
{
    double *own = s->all + s->first[row];
    sn_prof_left_step told = {
        .step = step_of_row(c->p, row), .calls = s->calls[row], .total_ns = s->total_ns[row]};
    if (!s->n[row] || told.calls < 1)
        return SONDE_OK;
    if (s->n[row] > 1)
        qsort(own, s->n[row], sizeof *own, ascending);
    for (size_t k = 0; k < SN_LEFT_POINTS; k++)
        told.points[k] = quantile(own, s->n[row], sn_left_quantiles[k]);
    return sn_vec_push(&left->steps, c->p->alloc, told) ? SONDE_OK
                                                        : sn_fail_memory(err, sizeof told);
}

static sonde_status tell_steps(const choice *c, sn_prof_left *left, sonde_error *err)
{
    sn_allocator *alloc = c->p->alloc;
    const size_t runs = c->nest.n_iterations + 1;
    samples s = {.rows = c->p->steps.n + 2};
    s.first = sn_alloc_zero(alloc, s.rows * sizeof *s.first);
    s.n = sn_alloc_zero(alloc, s.rows * sizeof *s.n);
    s.calls = sn_alloc_zero(alloc, s.rows * sizeof *s.calls);
    s.total_ns = sn_alloc_zero(alloc, s.rows * sizeof *s.total_ns);
    s.rest = sn_alloc_zero(alloc, runs * sizeof *s.rest);
    sonde_status st = SONDE_OK;
    if (s.first && s.n && s.rest && s.calls && s.total_ns) {
        lay_out(c, &s);
        s.all = sn_alloc(alloc, (s.total + 1) * sizeof *s.all);
    }
    if (!s.all)
        st = sn_fail_memory(err, s.rows * sizeof *s.first);
    else
        fill(c, &s);
    for (size_t row = 0; row < s.rows && st == SONDE_OK; row++)
        st = tell_row(c, &s, row, left, err);
    sn_free(alloc, s.all, (s.total + 1) * sizeof *s.all);
    sn_free(alloc, s.first, s.rows * sizeof *s.first);
    sn_free(alloc, s.n, s.rows * sizeof *s.n);
    sn_free(alloc, s.calls, s.rows * sizeof *s.calls);
    sn_free(alloc, s.total_ns, s.rows * sizeof *s.total_ns);
    sn_free(alloc, s.rest, runs * sizeof *s.rest);
    return st;
}

/* ------------------------------------------------------------------ all of it */
sonde_status sn_profile_limit(const sn_profile *p, size_t most, sn_prof_limited *out,
                              sonde_error *err)
{
    choice c = {.p = p};
    sn_profile *shown = &out->shown;
    *shown = *p;
    memset(&shown->spans, 0, sizeof shown->spans);
    memset(&shown->counters, 0, sizeof shown->counters);
    memset(&shown->left, 0, sizeof shown->left);
    sonde_status st = sn_prof_nest_build(p, &c.nest, err);
    const bool nested = st == SONDE_OK;
    if (st == SONDE_OK)
        st = sn_prof_index_build(p, &c.index, err);
    const bool indexed = nested && st == SONDE_OK;
    if (st == SONDE_OK)
        st = choose_runs(&c, most, err);
    if (st == SONDE_OK)
        st = keep_spans(&c, shown, err);
    if (st == SONDE_OK)
        st = keep_counters(&c, shown, err);
    if (st == SONDE_OK)
        st = tell_runs(&c, &shown->left, err);
    if (st == SONDE_OK)
        st = tell_steps(&c, &shown->left, err);
    if (st == SONDE_OK && !*shown->note)
        shown->note = sn_left_note(shown, c.chosen, out->note);
    sn_free(p->alloc, c.dropped, p->spans.n + 1);
    sn_free(p->alloc, c.keep, c.nest.n_iterations + 1);
    sn_free(p->alloc, c.order, (c.nest.n_iterations + 1) * sizeof *c.order);
    if (indexed)
        sn_prof_index_free(&c.index);
    if (nested)
        sn_prof_nest_free(&c.nest);
    if (st != SONDE_OK)
        sn_profile_limited_free(out);
    return st;
}

void sn_profile_limited_free(sn_prof_limited *l)
{
    sn_vec_free(&l->shown.spans, l->shown.alloc);
    sn_vec_free(&l->shown.counters, l->shown.alloc);
    sn_vec_free(&l->shown.left.wall_ns, l->shown.alloc);
    sn_vec_free(&l->shown.left.steps, l->shown.alloc);
}

sonde_status sn_profile_count_runs(const sn_profile *p, size_t *n, sonde_error *err)
{
    sn_prof_runs runs;
    *n = 0;
    SN_TRY(sn_profile_runs(p, &runs, err));
    *n = runs.all.n;
    sn_prof_runs_free(&runs);
    return SONDE_OK;
}
