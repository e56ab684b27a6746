/* SPDX-License-Identifier: Apache-2.0 */
/* Reorders: convolutions keep tensors in blocks of channels, other operators want them plain, and
 * where the two meet data is moved. The profile says what each such border costs, the plan which
 * operator is behind it, and a run without the blocked layout whether it is worth its borders. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "sonde/experimental/profile.h"

#define PASS "blocked-layout"

typedef struct step {
    char *node, *kernel;  /* copies */
    double *ms;           /* of every execution */
    size_t runs, next;    /* next: another one of the same number, as bodies have; 0: none */
    double median_ms;     /* of an execution, times how many a run has */
    double cause_ms;      /* of a reorder: of all with the same cause */
    char *culprit, *type; /* of a reorder: who wants it plain; NULL: the model's ends */
    bool reorder;         /* a change of layout */
    bool placed;          /* found in the plan */
} step;

typedef struct steps {
    step *list;
    size_t n, reorders;
    size_t *first; /* by number: 1 + place in the list; 0: none */
    int64_t numbers;
    double run_ms;     /* the median of the runs of the profile */
    double reorder_ms; /* of medians of the same runs */
} steps;

static bool is_reorder(const char *op_type)
{
    return strcmp(op_type, "[Reorder]") == 0;
}

static void free_steps(steps *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->list[i].node);
        free(all->list[i].kernel);
        free(all->list[i].ms);
        free(all->list[i].culprit);
        free(all->list[i].type);
    }
    free(all->list);
    free(all->first);
}

/* ------------------------------------------------------------------ what they cost */
static step *step_of(steps *all, const sonde_profile_span *s)
{
    for (; all->numbers <= s->operator_index; all->numbers++) {
        all->first = grow(all->first, (size_t)all->numbers, sizeof *all->first);
        all->first[all->numbers] = 0;
    }
    size_t *link = &all->first[s->operator_index];
    for (; *link; link = &all->list[*link - 1].next)
        if (strcmp(all->list[*link - 1].node, s->node) == 0)
            return &all->list[*link - 1];
    *link = all->n + 1; /* before the list moves */
    all->list = grow(all->list, all->n, sizeof *all->list);
    all->list[all->n] = (step){.node = text_of("%s", s->node),
                               .kernel = text_of("%s", s->kernel),
                               .reorder = is_reorder(s->op_type)};
    return &all->list[all->n++];
}

/* Medians, also of the whole: what other work interrupted would count for many. */
static int add_up(steps *all, const sonde_profile *profile)
{
    sonde_profile_spans *spans = NULL;
    sonde_profile_summary facts = SONDE_INIT(sonde_profile_summary);
    sonde_error err;
    if (sonde_profile_summary_get(profile, &facts, &err) ||
        sonde_profile_spans_get(profile, &spans, &err))
        return fail("%s", err.message);
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        if (sonde_profile_spans_span(spans, i, &s, &err) || s.warmup || s.operator_index < 0 ||
            strcmp(s.category, "operator") != 0)
            continue;
        step *at = step_of(all, &s);
        at->ms = grow(at->ms, at->runs, sizeof *at->ms);
        at->ms[at->runs++] = (double)(s.end_ns - s.start_ns) / 1e6;
    }
    sonde_profile_spans_release(spans);
    for (size_t i = 0; i < all->n; i++) {
        step *at = &all->list[i];
        latency l;
        latency_of(at->ms, at->runs, &l);
        at->median_ms = facts.iterations ? l.p50 * (double)at->runs / (double)facts.iterations : 0;
        all->reorder_ms += at->reorder ? at->median_ms : 0;
        all->reorders += at->reorder;
    }
    all->run_ms = facts.p50_ns / 1e6;
    return EXIT_OK;
}

/* ------------------------------------------------------------------ who is behind them */
static bool has_port(const sonde_port_info *ports, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ports[i].name, name) == 0)
            return true;
    return false;
}

/* Who reads what a reorder makes plain, or made the plain tensor it takes. */
static bool find_culprit(const sonde_inspection *look, const sonde_node_info *reorder,
                         sonde_node_info *culprit)
{
    const bool to_plain = reorder->outputs[0].block == 0;
    const char *value = to_plain ? reorder->outputs[0].name : reorder->inputs[0].name;
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        *culprit = (sonde_node_info)SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, culprit, NULL))
            continue;
        if (to_plain ? has_port(culprit->inputs, culprit->input_count, value)
                     : has_port(culprit->outputs, culprit->output_count, value))
            return true;
    }
    return false;
}

/* Whether the nodes a span names ("a;b") are those of the plan ("a, b"): a reorder has no name of
 * its own, it serves others. */
static bool same_nodes(const char *span, const char *plan)
{
    for (; *span && *plan; span++, plan++) {
        if (*span == ';' && *plan == ',')
            plan += plan[1] == ' ';
        else if (*span != *plan)
            return false;
    }
    return *span == *plan;
}

static void place(steps *all, const sonde_inspection *look)
{
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info node = SONDE_INIT(sonde_node_info), culprit;
        if (sonde_inspection_node(look, i, &node, NULL) || !is_reorder(node.op_type) ||
            !node.input_count || !node.output_count)
            continue;
        step *at = NULL;
        for (size_t k = 0; k < all->n && !at; k++)
            if (!all->list[k].placed && same_nodes(all->list[k].node, node.origins) &&
                strcmp(all->list[k].kernel, node.kernel) == 0)
                at = &all->list[k];
        if (!at)
            continue;
        at->placed = true;
        if (find_culprit(look, &node, &culprit)) {
            at->culprit = text_of("%s", *culprit.name ? culprit.name : culprit.op_type);
            at->type = text_of("%s", culprit.op_type);
        }
    }
}

static int find_culprits(steps *all, const run_setup *s, const char *model)
{
    runner r;
    sonde_inspection *look = NULL;
    int code = open_to_inspect(&r, s, model, &look);
    if (!code)
        place(all, look);
    sonde_inspection_release(look);
    runner_close(&r);
    return code;
}

/* ------------------------------------------------------------------ the verdict */
static bool same_culprit(const step *a, const step *b)
{
    return a->reorder && b->reorder &&
           (a->culprit && b->culprit ? strcmp(a->culprit, b->culprit) == 0
                                     : !a->culprit && !b->culprit);
}

/* The most expensive first, and together what has the same cause. */
static int by_cost(const void *a, const void *b)
{
    const step *x = a, *y = b;
    if (x->cause_ms != y->cause_ms)
        return x->cause_ms > y->cause_ms ? -1 : 1;
    return strcmp(x->culprit ? x->culprit : "", y->culprit ? y->culprit : "");
}

static void sort_by_cause(steps *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->n && all->list[i].reorder; k++)
            if (same_culprit(&all->list[i], &all->list[k]))
                all->list[i].cause_ms += all->list[k].median_ms;
    qsort(all->list, all->n, sizeof *all->list, by_cost);
}

static bool has_type(const steps *all, size_t before, const char *type)
{
    for (size_t k = 0; k < before; k++)
        if (all->list[k].type && strcmp(all->list[k].type, type) == 0)
            return true;
    return false;
}

static void judge(findings *f, steps *all, const turns *t)
{
    few w = {.n = 0};
    text types = {.n = 0};
    sort_by_cause(all);
    for (size_t i = 0; i < all->n; i++) {
        const step *at = &all->list[i];
        if (!at->reorder || (i && same_culprit(at, at - 1)))
            continue;
        char *name = at->culprit ? text_of("%s (%s)", at->culprit, at->type)
                                 : text_of("the model's inputs and outputs");
        few_add(&w, name, at->cause_ms / all->run_ms);
        free(name);
        if (at->type && !has_type(all, i, at->type))
            text_add(&types, "%s%s", types.n ? ", " : "", at->type);
    }
    /* Those runs are others than the profile's: of them only the ratio is told. */
    const double change = (t->second_ms / t->first_ms - 1) * 100;
    text evidence = {.n = 0};
    text_add(&evidence,
             "for %s; with --disable-pass " PASS " a run takes %.1f %% %s "
             "(in turns on one thread, medians of %zu pairs)",
             w.t.data, fabs(change), change < 0 ? "less" : "more", t->pairs);
    char *remedy =
        second_is_faster(t)
            ? text_of("use --disable-pass " PASS ": it avoids the conversions, and a "
                      "run takes %.1f %% less",
                      -change)
        : types.data
            ? text_of("the blocked layout is still faster, but %s between convolutions need%s the "
                      "plain layout: move them before the first or after the last convolution, or "
                      "use operators that keep the blocked layout (elementwise, pooling, Concat)",
                      types.data, strchr(types.data, ',') ? "" : "s")
            : text_of("nothing to do: the conversions are at the inputs and outputs of the model, "
                      "and the blocked layout is still faster");
    text_free(&types);
    text_free(&w.t);
    char *reorders = text_of("%s", time_text(all->reorder_ms));
    found_with(
        f, SONDE_SLOW, "reorders",
        text_of("%zu conversions between blocked and plain layout take %s of the %s of a run, "
                "%.1f %%",
                all->reorders, reorders, time_text(all->run_ms),
                all->reorder_ms / all->run_ms * 100),
        evidence.data, remedy);
    free(reorders);
}

int look_at_reorders(findings *f, const run_setup *s, const char *model,
                     const sonde_profile *profile)
{
    steps all = {.n = 0};
    int code = add_up(&all, profile);
    if (!code && all.run_ms > 0 && all.reorders && all.reorder_ms >= 0.05 * all.run_ms) {
        run_setup without = *s;
        list *disabled = &without.model.disabled_passes;
        turns t;
        *disabled = (list){.n = 0};
        for (size_t i = 0; i < s->model.disabled_passes.n; i++)
            list_add(disabled, s->model.disabled_passes.items[i]);
        list_add(disabled, PASS);
        code = find_culprits(&all, s, model);
        if (!code)
            code = take_turns(s, &without, model, &t);
        if (!code)
            judge(f, &all, &t);
        list_free(disabled);
    }
    free_steps(&all);
    return code;
}
