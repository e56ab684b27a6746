/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the runs: whether they are alike, what the first one takes, and what is between the
 * operators. */
#include <inttypes.h>
#include <string.h>

#include "findings/check.h"
#include "profile/compare.h"

void sn_check_what_varies(sn_case *c)
{
    const sn_prof_stats *wall = &c->ops.wall_ns;
    if (!c->p->workers.n && wall->p99 > 1.5 * wall->p50) /* workers differ: stragglers are told */
        sn_found(
            c, SONDE_NOTE, 1 - wall->p50 / wall->mean, "spread",
            SN_SAY(c, "the slowest 1 %% of runs take at least %.1f times the median",
                   wall->p99 / wall->p50),
            SN_SAY(c, "median %s, p99 %s", sn_say_time(c, wall->p50), sn_say_time(c, wall->p99)),
            "other work on the machine is the usual cause; 'sonde doctor' measures it as "
            "'noise'");
}

/* The sum of the operators against the latency: what is left is between them. */
void sn_check_between_steps(sn_case *c)
{
    for (size_t i = 0; i < c->ops.rows.n; i++) {
        const sn_prof_row *r = &c->ops.rows.data[i];
        if (strcmp(r->name, "[Other]") == 0 && r->share >= 0.05)
            sn_found(c, SONDE_NOTE, r->share, "overhead",
                     SN_SAY(c, "%.1f %% of the time is spent between operators", r->share * 100),
                     SN_SAY(c, "[Other] is %s per run for %.0f steps", sn_say_time(c, r->mean_ns),
                            c->ops.ops),
                     "use larger batches, or fewer and larger operators; on a busy machine this is "
                     "waiting time");
        if (strcmp(r->name, "[Mem alloc/free]") == 0 && r->share >= 0.05)
            sn_found(c, SONDE_NOTE, r->share, "allocation",
                     SN_SAY(c, "%.1f %% of the time is spent allocating memory", r->share * 100),
                     SN_SAY(c, "%s a run", sn_say_time(c, r->mean_ns)),
                     "pass output tensors to the run, and avoid data-dependent shapes");
    }
}

/* ------------------------------------------------------------------ runs beside each other */
typedef struct window { /* of time */
    uint64_t from, to;
} window;

static window window_of(const sn_case *c, const sn_prof_runs *runs, size_t first, size_t end)
{
    window w = {UINT64_MAX, 0};
    for (size_t k = first; k < end; k++) {
        const sn_prof_span *s = &c->p->spans.data[runs->all.data[k].span];
        w.from = s->start_ns < w.from ? s->start_ns : w.from;
        w.to = s->start_ns + s->dur_ns > w.to ? s->start_ns + s->dur_ns : w.to;
    }
    return w;
}

/* Whether the same steps ran in both: other shapes, another model or another branch take other
 * times, and that is no finding. */
static bool same_steps(sn_case *c, window a, window b)
{
    const sn_profile *p = c->p;
    unsigned char *seen = sn_alloc_zero(p->alloc, p->steps.n + 1);
    c->failed |= !seen;
    if (!seen)
        return false;
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (s->cat != SN_CAT_OPERATOR || s->step >= p->steps.n)
            continue;
        const uint64_t end = s->start_ns + s->dur_ns;
        if (s->start_ns >= a.from && end <= a.to)
            seen[s->step] |= 1;
        if (s->start_ns >= b.from && end <= b.to)
            seen[s->step] |= 2;
    }
    bool same = true;
    for (size_t i = 0; i < p->steps.n && same; i++)
        same = seen[i] == 0 || seen[i] == 3;
    sn_free(p->alloc, seen, p->steps.n + 1);
    return same;
}

static bool get_runs(sn_case *c, sn_prof_runs *runs)
{
    const bool fine = sn_profile_runs(c->p, runs, NULL) == SONDE_OK;
    c->failed |= !fine;
    return fine;
}

/* Medians of the first and of the last third; false: out of memory. */
static bool compare_thirds(sn_case *c, const sn_prof_runs *runs, sn_change *change)
{
    const size_t n = runs->all.n, third = n / 3, bytes = 4 * third * sizeof(double);
    double *samples = sn_alloc(c->p->alloc, bytes);
    c->failed |= !samples;
    if (!samples)
        return false;
    for (size_t k = 0; k < third; k++) {
        samples[k] = runs->all.data[k].wall_ns;
        samples[third + k] = runs->all.data[n - third + k].wall_ns;
    }
    sn_compare_samples(samples, third, samples + third, third, SN_COMPARE_ERROR,
                       samples + 2 * third, change);
    sn_free(c->p->alloc, samples, bytes);
    return true;
}

/* Runs of a machine that gets hot, or gets other work, take longer and longer. */
void sn_check_drift(sn_case *c)
{
    enum { FEWEST = 3 * SN_COMPARE_FEWEST };
    sn_prof_runs runs;
    sn_change change;
    if (c->p->workers.n || c->ops.iterations < FEWEST || !get_runs(c, &runs))
        return;
    const size_t n = runs.all.n, third = n / 3;
    if (compare_thirds(c, &runs, &change) && change.verdict == SN_VERDICT_SLOWER &&
        change.ratio > 1.1 &&
        same_steps(c, window_of(c, &runs, 0, third), window_of(c, &runs, n - third, n)))
        sn_found(c, SONDE_NOTE, 1 - 1 / change.ratio, "drift",
                 SN_SAY(c, "the last third of the runs takes %.0f %% longer than the first third",
                        (change.ratio - 1) * 100),
                 SN_SAY(c, "medians of %zu runs each: %s, then %s", third,
                        sn_say_time(c, change.old_median), sn_say_time(c, change.new_median)),
                 "the processor may lower its clock while it gets hot, or other work began: "
                 "measure longer (--duration), and compare only runs that alternate");
    sn_prof_runs_free(&runs);
}

/* Warm-up runs are in no figure; a first run that is measured is in all of them. */
static const char *first_run_remedy(const sn_profile *p, bool warmup)
{
    if (warmup)
        return "run the model once before time counts; where processes start often, a weights "
               "cache (--weights-cache) keeps packed weights for the next one";
    return sn_is_foreign(p) ? "leave it out of the figures: run the model a few times before "
                              "recording starts"
                            : "leave it out of the figures with warm-up runs (-w), and run the "
                              "model once before time counts";
}

/* The first one finds caches cold, memory untouched and shapes unbound. */
void sn_check_first_run(sn_case *c)
{
    const sn_profile *p = c->p;
    const double median = c->ops.wall_ns.p50;
    const sn_prof_span *first = NULL; /* none can be inside of another one that begins later */
    for (size_t i = 0; i < p->spans.n && !first; i++)
        if (p->spans.data[i].cat == SN_CAT_ITERATION)
            first = &p->spans.data[i];
    const double ns = first ? (double)first->dur_ns : 0;
    sn_prof_runs runs;
    if (p->workers.n || c->ops.iterations < 3 || !(ns > 5 * median) || ns - median < 1e6 ||
        !get_runs(c, &runs))
        return;
    const window own = {first->start_ns, first->start_ns + first->dur_ns};
    if (same_steps(c, own, window_of(c, &runs, runs.all.n - 1, runs.all.n)))
        sn_found(c, SONDE_NOTE, 0, "first run",
                 SN_SAY(c, "the first run takes %.1f times the median", ns / median),
                 SN_SAY(c, "%s, later runs %s%s", sn_say_time(c, ns), sn_say_time(c, median),
                        first->warmup ? "" : "; it is among the measured runs"),
                 first_run_remedy(p, first->warmup));
    sn_prof_runs_free(&runs);
}

void sn_check_lost_records(sn_case *c)
{
    if (c->p->dropped)
        sn_found(c, SONDE_NOTE, 0, "dropped",
                 SN_SAY(c, "%" PRIu64 " records were dropped because the recorder was full",
                        c->p->dropped),
                 "their time is missing from the rows or counted in [Other]",
                 "record less: fewer runs (-n) or a lower --level; or write the trace while the "
                 "program runs (SONDE_TRACE=trace.pftrace)");
}
