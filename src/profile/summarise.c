/* SPDX-License-Identifier: Apache-2.0 */
/* Spans ► rows. Every executed step belongs to one group; a group's samples are laid out side by
 * side in one array (count, then fill), so percentiles cost one sort each and the whole stays O(n
 * log n). [Other] is the remainder of the wall time, which makes the rows add up by construction.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "profile/keys.h"
#include "profile/left.h"
#include "profile/median.h"
#include "profile/nesting.h"
#include "profile/profile.h"

typedef struct group {
    size_t samples, first;    /* how many, and where in the sample array */
    size_t spans, first_span; /* the same of its measured spans */
    double calls;
    bool left; /* some of its calls have no spans: samples are made of quantiles */
    double total_ns, flops, bytes, input_elems;
    double peak_ns; /* what the flops take at their peaks; -1: not known */
    uint32_t arithmetic;
    sn_prof_hw hw;
} group;

enum { MEMORY_GROUP, OTHER_GROUP }; /* the steps' groups follow */

typedef struct work {
    const sn_profile *p;
    sn_prof_key key;
    sn_prof_summary *out;
    sn_prof_nest nest;
    sn_map groups_by_key; /* key bytes ► group number */
    SN_VEC(group) groups; /* in step with out->rows until those are sorted */
    sn_prof_text text;
    uint32_t *group_of_step;
    double *step_ns, *step_calls;
    double *samples;
    size_t n_samples;
    /* Of the measured spans, group by group: iteration and time. Unlike the samples they leave out
     * what a limited file has as quantiles, of which nobody knows in which run it was. */
    uint32_t *runs;
    double *span_ns;
    size_t n_spans;
    double *by_run; /* per iteration: the time of one group; then as many for those it ran in */
} work;

/* Stands in for a span whose step the tables do not explain. */
static const sn_prof_step unknown_step = {.op_type = "[Unknown]", .index = UINT32_MAX};

static bool add_group(work *w, const sn_prof_row *row)
{
    group g = {0};
    return sn_vec_push(&w->groups, w->p->alloc, g) &&
           sn_vec_push(&w->out->rows, w->out->alloc, *row);
}

static bool add_bracket(work *w, const char *name)
{
    sn_prof_row row = {.name = name,
                       .op_type = name,
                       .kernel = "",
                       .example = "",
                       .nodes = "",
                       .step = UINT32_MAX,
                       .bracket = true};
    return add_group(w, &row);
}

/* The number of the group step i belongs to, made if new; SN_PROF_NONE when out of memory. */
static uint32_t group_for(work *w, size_t i)
{
    const bool known = i < w->p->steps.n;
    const sn_prof_step *s = known ? &w->p->steps.data[i] : &unknown_step;
    sn_prof_key_of(&w->text, s, w->key);
    if (w->text.failed)
        return SN_PROF_NONE;
    size_t n = w->text.b.n; /* never 0: a kernel's name, or an operator type with its NUL */
    void *found = sn_map_get_n(&w->groups_by_key, w->text.b.data, n);
    if (found)
        return (uint32_t)(uintptr_t)found;
    char *key = sn_arena_alloc(&w->out->arena, n, 1);
    if (!key)
        return SN_PROF_NONE;
    memcpy(key, w->text.b.data, n);
    sn_prof_row row = {.step = known ? (uint32_t)i : UINT32_MAX};
    uint32_t number = (uint32_t)w->groups.n;
    if (!sn_prof_row_name(&row, s, w->key, &w->text, &w->out->arena) || !add_group(w, &row) ||
        !sn_map_put_n(&w->groups_by_key, key, n, (void *)(uintptr_t)number, NULL))
        return SN_PROF_NONE;
    return number;
}

/* The group of a measured OPERATOR or MEMORY span; SN_PROF_NONE: the span counts nowhere. */
static uint32_t group_of_span(const work *w, size_t i, bool *step_known)
{
    const sn_prof_span *s = &w->p->spans.data[i];
    uint32_t it = w->nest.iteration[i];
    *step_known = s->step < w->p->steps.n;
    if (it == SN_PROF_NONE || w->p->spans.data[w->nest.iteration_span[it]].warmup)
        return SN_PROF_NONE;
    if (s->cat == SN_CAT_MEMORY)
        return MEMORY_GROUP;
    if (s->cat != SN_CAT_OPERATOR)
        return SN_PROF_NONE;
    return w->group_of_step[*step_known ? s->step : w->p->steps.n];
}

static bool wanted_step(const work *w, size_t i)
{
    return (w->key == SN_BY_NODE || w->key == SN_BY_STEP) && w->p->steps.data[i].folded;
}

/* Which steps ran, then a group for each of them; the entry past the last step is the unknown one.
 */
static sonde_status make_groups(work *w, sonde_error *err)
{
    const sn_profile *p = w->p;
    size_t n = p->steps.n;
    w->group_of_step = sn_alloc_zero(p->alloc, (n + 1) * sizeof *w->group_of_step);
    w->step_ns = sn_alloc_zero(p->alloc, (n + 1) * sizeof *w->step_ns);
    w->step_calls = sn_alloc_zero(p->alloc, (n + 1) * sizeof *w->step_calls);
    if (!w->group_of_step || !w->step_ns || !w->step_calls || !add_bracket(w, "[Mem alloc/free]") ||
        !add_bracket(w, "[Other]"))
        return sn_fail_memory(err, (n + 1) * sizeof *w->step_ns);
    for (size_t i = 0; i < p->spans.n; i++) {
        bool known;
        const sn_prof_span *s = &p->spans.data[i];
        if (s->cat == SN_CAT_OPERATOR && group_of_span(w, i, &known) != SN_PROF_NONE)
            w->group_of_step[known ? s->step : n] = 1; /* ran; numbered below */
    }
    for (size_t i = 0; i < p->left.steps.n; i++)
        if (p->left.steps.data[i].step < n)
            w->group_of_step[p->left.steps.data[i].step] = 1;
    for (size_t i = 0; i <= n; i++) {
        bool ran = w->group_of_step[i] != 0;
        w->group_of_step[i] = SN_PROF_NONE;
        if (!ran && (i == n || !wanted_step(w, i)))
            continue;
        w->group_of_step[i] = group_for(w, i);
        if (w->group_of_step[i] == SN_PROF_NONE)
            return sn_fail_memory(err, w->text.b.n);
    }
    return SONDE_OK;
}

/* Calls that were not counted are taken to be like those that were. */
static void add_counts(sn_prof_hw *to, const sn_prof_hw *hw, double calls)
{
    if (!(hw->calls > 0))
        return;
    const double scale = calls / hw->calls;
    to->calls += calls;
    to->cycles += hw->cycles * scale;
    to->instructions += hw->instructions * scale;
    to->cache_misses += hw->cache_misses * scale;
    to->branch_misses += hw->branch_misses * scale;
}

static void add_peak(group *to, const sn_profile *p, const sn_prof_step *s, double calls)
{
    const double ns = sn_prof_peak_ns(p, s->arithmetic, (double)s->flops);
    to->peak_ns = ns < 0 || to->peak_ns < 0 ? -1 : to->peak_ns + calls * ns;
    if (s->arithmetic != SN_ARITH_NONE)
        to->arithmetic |= 1u << s->arithmetic;
}

/* The group of a step of runs without spans; SN_PROF_NONE: [Other], which is what remains. */
static uint32_t group_of_left(const work *w, const sn_prof_left_step *s)
{
    if (s->step == SN_LEFT_MEMORY)
        return MEMORY_GROUP;
    return s->step < w->p->steps.n ? w->group_of_step[s->step] : SN_PROF_NONE;
}

/* The quantiles of the step tell of this span, too. */
static bool has_quantiles(const work *w, size_t i)
{
    const sn_prof_span *s = &w->p->spans.data[i];
    return w->p->left.steps.n &&
           sn_left_of(w->p, s->cat == SN_CAT_MEMORY ? SN_LEFT_MEMORY : s->step);
}

static void add_left(work *w, double *ops)
{
    for (size_t i = 0; i < w->p->left.steps.n; i++) {
        const sn_prof_left_step *s = &w->p->left.steps.data[i];
        const uint32_t g = group_of_left(w, s);
        if (g == SN_PROF_NONE)
            continue;
        w->groups.data[g].samples += sn_left_count(s);
        w->groups.data[g].calls += s->calls;
        w->groups.data[g].total_ns += s->total_ns;
        w->groups.data[g].left = true;
        if (g == MEMORY_GROUP)
            continue;
        *ops += s->calls;
        w->step_ns[s->step] += s->total_ns;
        w->step_calls[s->step] += s->calls;
    }
}

/* Adds up every measured span, then lays its sample into its group's stretch of the array. */
static sonde_status add_spans(work *w, sonde_error *err)
{
    const sn_profile *p = w->p;
    double ops = 0;
    bool known;
    for (size_t i = 0; i < p->spans.n; i++) {
        uint32_t g = group_of_span(w, i, &known);
        if (g == SN_PROF_NONE)
            continue;
        group *to = &w->groups.data[g];
        to->samples += !has_quantiles(w, i);
        to->spans++;
        to->calls++;
        to->total_ns += w->nest.net_ns[i];
        if (g == MEMORY_GROUP)
            continue;
        ops++;
        size_t step = known ? p->spans.data[i].step : p->steps.n;
        w->step_ns[step] += w->nest.net_ns[i];
        w->step_calls[step]++;
    }
    add_left(w, &ops);
    for (size_t i = 0; i < p->steps.n; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        if (w->step_calls[i] == 0)
            continue;
        group *to = &w->groups.data[w->group_of_step[i]];
        to->flops += w->step_calls[i] * (double)s->flops;
        to->bytes += w->step_calls[i] * (double)s->bytes;
        add_peak(to, p, s, w->step_calls[i]);
        to->input_elems += w->step_calls[i] * sn_prof_step_input_elems(s);
        add_counts(&to->hw, &s->hw, w->step_calls[i]);
    }
    w->out->ops = w->out->iterations ? ops / (double)w->out->iterations : 0;
    size_t total = 0, spans = 0;
    for (size_t g = 0; g < w->groups.n; g++) {
        group *of = &w->groups.data[g];
        of->first = total;
        of->first_span = spans;
        total += of->samples;
        spans += of->spans;
        of->samples = of->spans = 0;
    }
    w->n_samples = total;
    w->n_spans = spans;
    w->samples = sn_alloc(p->alloc, total * sizeof *w->samples);
    w->runs = sn_alloc(p->alloc, spans * sizeof *w->runs);
    w->span_ns = sn_alloc(p->alloc, spans * sizeof *w->span_ns);
    w->by_run = sn_alloc_zero(p->alloc, 2 * w->nest.n_iterations * sizeof *w->by_run);
    if (!w->samples || !w->runs || !w->span_ns || !w->by_run)
        return sn_fail_memory(err, (total + spans) * sizeof *w->samples);
    for (size_t i = 0; i < p->spans.n; i++) {
        uint32_t g = group_of_span(w, i, &known);
        if (g == SN_PROF_NONE)
            continue;
        group *to = &w->groups.data[g];
        w->runs[to->first_span + to->spans] = w->nest.iteration[i];
        w->span_ns[to->first_span + to->spans++] = w->nest.net_ns[i];
        if (!has_quantiles(w, i))
            w->samples[to->first + to->samples++] = w->nest.net_ns[i];
    }
    for (size_t i = 0; i < p->left.steps.n; i++) {
        const uint32_t g = group_of_left(w, &p->left.steps.data[i]);
        group *to = g == SN_PROF_NONE ? NULL : &w->groups.data[g];
        if (to)
            to->samples +=
                sn_left_samples(&p->left.steps.data[i], w->samples + to->first + to->samples);
    }
    return SONDE_OK;
}

/* Wall time of every measured iteration, without the recorder's cost. */
static sonde_status add_iterations(work *w, sonde_error *err)
{
    const sn_profile *p = w->p;
    const sn_prof_left *left = &p->left;
    size_t n = w->nest.n_iterations, measured = 0, room = n + left->wall_ns.n;
    double *wall = sn_alloc(p->alloc, room * sizeof *wall);
    if (!wall)
        return sn_fail_memory(err, room * sizeof *wall);
    double cost = left->cost_ns;
    uint64_t first = left->wall_ns.n ? left->first_ns : UINT64_MAX;
    uint64_t last = left->wall_ns.n ? left->last_ns : 0, instances = 1;
    for (size_t k = 0; k < n; k++) {
        const sn_prof_span *s = &p->spans.data[w->nest.iteration_span[k]];
        if (s->warmup)
            continue;
        cost += w->nest.cost_ns[k];
        first = s->start_ns < first ? s->start_ns : first;
        last = s->start_ns + s->dur_ns > last ? s->start_ns + s->dur_ns : last;
        instances = s->instance >= instances ? (uint64_t)s->instance + 1 : instances;
        wall[measured++] = (double)s->dur_ns - w->nest.cost_ns[k];
    }
    w->out->warmups = n - measured + left->warmups;
    for (size_t i = 0; i < left->wall_ns.n; i++)
        wall[measured++] = left->wall_ns.data[i];
    sn_prof_stats_of(wall, measured, &w->out->wall_ns);
    sn_free(p->alloc, wall, room * sizeof *wall);
    w->out->iterations = measured;
    w->out->instances = instances;
    w->out->runs_per_s = last > first ? (double)measured / ((double)(last - first) / 1e9) : 0;
    w->out->cost_ns = isnan(p->record_ns) ? p->record_ns : measured ? cost / (double)measured : 0;
    return SONDE_OK;
}

static sonde_status sample_other(work *w, sonde_error *err)
{
    const sn_profile *p = w->p;
    const sn_prof_left_step *left = sn_left_of(p, SN_LEFT_OTHER);
    size_t n = w->nest.n_iterations, room = left ? n + sn_left_count(left) : n;
    double *rest = sn_alloc_zero(p->alloc, room * sizeof *rest), total = 0;
    if (!rest)
        return sn_fail_memory(err, room * sizeof *rest);
    bool known;
    for (size_t i = 0; i < p->spans.n; i++)
        if (group_of_span(w, i, &known) != SN_PROF_NONE)
            rest[w->nest.iteration[i]] -= w->nest.net_ns[i];
    size_t measured = 0;
    for (size_t k = 0; k < n; k++) {
        const sn_prof_span *s = &p->spans.data[w->nest.iteration_span[k]];
        if (!s->warmup)
            rest[measured++] = rest[k] + ((double)s->dur_ns - w->nest.cost_ns[k]);
    }
    for (size_t k = 0; k < measured; k++)
        total += rest[k];
    sn_prof_stats stats;
    sn_prof_row *row = &w->out->rows.data[OTHER_GROUP];
    row->calls = measured || left ? 1 : 0;
    const double calls = (double)measured + (left ? left->calls : 0);
    measured = left ? sn_left_samples(left, rest) : measured;
    sn_prof_stats_of(rest, measured, &stats);
    sn_free(p->alloc, rest, room * sizeof *rest);
    row->per_call_mean_ns = left ? (total + left->total_ns) / calls : stats.mean;
    row->per_call_p50_ns = stats.p50;
    row->per_call_p99_ns = stats.p99;
    row->usual_ns = stats.p50 > 0 ? stats.p50 : 0;
    return SONDE_OK;
}

/* See sn_prof_row.usual_ns; of a limited file, over the runs that have spans in it. */
static double usual_of(work *w, const group *g)
{
    const double *times = w->span_ns + g->first_span;
    const uint32_t *runs = w->runs + g->first_span;
    double *sums = w->by_run + w->nest.n_iterations;
    const size_t all = w->out->iterations - w->p->left.wall_ns.n;
    size_t n = 0;
    for (size_t i = 0; i < g->spans; i++)
        w->by_run[runs[i]] += times[i];
    for (size_t i = 0; i < g->spans; i++) {
        double *sum = &w->by_run[runs[i]];
        if (*sum >= 0) { /* no time is below 0, which marks those that were taken */
            sums[n++] = *sum;
            *sum = -1;
        }
    }
    for (size_t i = 0; i < g->spans; i++)
        w->by_run[runs[i]] = 0;
    return n ? sn_median_of(sums, n) * (double)n / (double)all : 0;
}

static void fill_usual_shares(sn_prof_summary *out)
{
    double total = 0;
    for (size_t g = 0; g < out->rows.n; g++)
        total += out->rows.data[g].usual_ns;
    for (size_t g = 0; g < out->rows.n && total > 0; g++)
        out->rows.data[g].usual_share = out->rows.data[g].usual_ns / total;
}

static void fill_rows(work *w)
{
    sn_prof_summary *out = w->out;
    double iterations = out->iterations ? (double)out->iterations : 1, covered = 0;
    for (size_t g = 0; g < w->groups.n; g++) {
        const group *from = &w->groups.data[g];
        sn_prof_row *row = &out->rows.data[g];
        if (g == OTHER_GROUP)
            continue;
        sn_prof_stats stats;
        row->usual_ns = usual_of(w, from);
        sn_prof_stats_of(w->samples + from->first, from->samples, &stats);
        row->calls = from->calls / iterations;
        row->mean_ns = from->total_ns / iterations;
        row->per_call_mean_ns = from->left ? from->total_ns / from->calls : stats.mean;
        row->per_call_p50_ns = stats.p50;
        row->per_call_p99_ns = stats.p99;
        row->flops = from->flops / iterations;
        row->bytes = from->bytes / iterations;
        row->peak_ns = from->peak_ns < 0 ? -1 : from->peak_ns / iterations;
        row->arithmetic = from->arithmetic;
        row->input_elems = from->input_elems / iterations;
        row->hw = (sn_prof_hw){.calls = from->hw.calls / iterations,
                               .cycles = from->hw.cycles / iterations,
                               .instructions = from->hw.instructions / iterations,
                               .cache_misses = from->hw.cache_misses / iterations,
                               .branch_misses = from->hw.branch_misses / iterations};
        covered += row->mean_ns;
    }
    out->rows.data[OTHER_GROUP].mean_ns = out->wall_ns.mean - covered;
    for (size_t g = 0; g < w->groups.n; g++)
        if (out->wall_ns.mean > 0)
            out->rows.data[g].share = out->rows.data[g].mean_ns / out->wall_ns.mean;
}

typedef struct kernel_use {
    uint32_t group;
    const char *kernel;
    double ns;
} kernel_use;

static int by_group_and_kernel(const void *a, const void *b)
{
    const kernel_use *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return strcmp(x->kernel, y->kernel);
}

/* Each row names the kernel that took most of its time. */
static sonde_status name_kernels(work *w, sonde_error *err)
{
    const sn_profile *p = w->p;
    size_t n = p->steps.n, used = 0;
    kernel_use *uses = sn_alloc(p->alloc, n * sizeof *uses);
    if (!uses)
        return sn_fail_memory(err, n * sizeof *uses);
    for (size_t i = 0; i < n; i++) {
        const char *kernel = p->steps.data[i].kernel;
        if (w->group_of_step[i] != SN_PROF_NONE && kernel && *kernel)
            uses[used++] = (kernel_use){w->group_of_step[i], kernel, w->step_ns[i]};
    }
    if (used)
        qsort(uses, used, sizeof *uses, by_group_and_kernel);
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < used && st == SONDE_OK;) {
        uint32_t g = uses[i].group;
        const char *best = "";
        double best_ns = -1;
        while (i < used && uses[i].group == g) {
            const char *kernel = uses[i].kernel;
            double ns = 0;
            for (; i < used && uses[i].group == g && strcmp(uses[i].kernel, kernel) == 0; i++)
                ns += uses[i].ns;
            if (ns > best_ns) {
                best = kernel;
                best_ns = ns;
            }
        }
        const char *copy = sn_arena_strdup(&w->out->arena, best);
        if (!copy)
            st = sn_fail_memory(err, strlen(best));
        else
            w->out->rows.data[g].kernel = copy;
    }
    sn_free(p->alloc, uses, n * sizeof *uses);
    return st;
}

static int by_time_then_name(const void *a, const void *b)
{
    const sn_prof_row *x = a, *y = b;
    if (x->mean_ns != y->mean_ns)
        return x->mean_ns > y->mean_ns ? -1 : 1;
    int order = strcmp(x->name, y->name);
    if (order == 0)
        order = strcmp(x->op_type, y->op_type);
    return order ? order : strcmp(x->example, y->example);
}

sonde_status sn_profile_summarise(const sn_profile *p, sn_prof_key key, sn_prof_summary *out,
                                  sonde_error *err)
{
    *out = (sn_prof_summary){.alloc = p->alloc};
    sn_arena_init(&out->arena, p->alloc);
    work w = {.p = p, .key = key, .out = out, .text.alloc = p->alloc};
    sn_map_init(&w.groups_by_key, p->alloc);
    sonde_status st;
    SN_TRY_GOTO(st, sn_prof_nest_build(p, &w.nest, err));
    SN_TRY_GOTO(st, add_iterations(&w, err));
    SN_TRY_GOTO(st, make_groups(&w, err));
    SN_TRY_GOTO(st, add_spans(&w, err));
    fill_rows(&w);
    SN_TRY_GOTO(st, sample_other(&w, err));
    fill_usual_shares(out);
    SN_TRY_GOTO(st, name_kernels(&w, err));
    qsort(out->rows.data, out->rows.n, sizeof *out->rows.data, by_time_then_name);
fail:
    sn_free(p->alloc, w.samples, w.n_samples * sizeof *w.samples);
    sn_free(p->alloc, w.runs, w.n_spans * sizeof *w.runs);
    sn_free(p->alloc, w.span_ns, w.n_spans * sizeof *w.span_ns);
    if (w.by_run)
        sn_free(p->alloc, w.by_run, 2 * w.nest.n_iterations * sizeof *w.by_run);
    sn_free(p->alloc, w.group_of_step, (p->steps.n + 1) * sizeof *w.group_of_step);
    sn_free(p->alloc, w.step_ns, (p->steps.n + 1) * sizeof *w.step_ns);
    sn_free(p->alloc, w.step_calls, (p->steps.n + 1) * sizeof *w.step_calls);
    sn_vec_free(&w.groups, p->alloc);
    sn_vec_free(&w.text.b, p->alloc);
    sn_map_free(&w.groups_by_key);
    w.nest.alloc = p->alloc;
    sn_prof_nest_free(&w.nest);
    if (st != SONDE_OK)
        sn_prof_summary_free(out);
    return st;
}

void sn_prof_summary_free(sn_prof_summary *s)
{
    sn_vec_free(&s->rows, s->alloc);
    sn_arena_free(&s->arena);
}
