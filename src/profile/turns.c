/* SPDX-License-Identifier: Apache-2.0 */
/* A turn is a few runs of the one profile and those of the other one next to them. All runs by time
 * are walked along: once both have some, a turn ends where both have as many, or where the one
 * whose runs came last is followed by the other. So two times OLD NEW NEW OLD is a turn, and twenty
 * of each in a row are one. Some are four where there are enough: their medians are less noisy than
 * single runs, and it does not matter who ran behind whom, which is who finds whose data in the
 * caches. */
#include "profile/turns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/median.h"

enum {
    FEWEST = 20, /* turns; with fewer their ratios say less than all runs do */
    RUNS = 4     /* of each side in a turn */
};

typedef struct run {
    uint64_t start;
    uint32_t index;
    int side;
} run;

static int by_start(const void *a, const void *b)
{
    const run *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->side != y->side)
        return x->side - y->side;
    return (x->index > y->index) - (x->index < y->index);
}

static bool one_clock(const sn_profile *a, const sn_profile *b)
{
    return *a->boot && strcmp(a->boot, b->boot) == 0 && a->start_mono_ns && b->start_mono_ns &&
           !a->workers.n && !b->workers.n;
}

/* Sums of times stay far below an overflow (profile.h). */
static void add_runs(run *all, const sn_profile *p, const sn_prof_runs *runs, int side)
{
    for (uint32_t i = 0; i < runs->all.n; i++)
        all[i] = (run){p->start_mono_ns + p->spans.data[runs->all.data[i].span].start_ns, i, side};
}

/* Half of the time between the first and the last run of each. */
static bool shared_time(const run *all, const size_t *n)
{
    const uint64_t a0 = all[0].start, a1 = all[n[0] - 1].start;
    const uint64_t b0 = all[n[0]].start, b1 = all[n[0] + n[1] - 1].start;
    const uint64_t from = a0 > b0 ? a0 : b0, to = a1 < b1 ? a1 : b1;
    const uint64_t longer = a1 - a0 > b1 - b0 ? a1 - a0 : b1 - b0;
    return to > from && to - from >= longer / 2;
}

static uint32_t cut(sn_turns *t, const run *all, size_t n)
{
    uint32_t turns = 0;
    size_t count[2] = {0, 0}, first = 0;
    const size_t fewer = t->runs[0] < t->runs[1] ? t->runs[0] : t->runs[1];
    const size_t most = fewer / (FEWEST + FEWEST / 4), some = most < 1      ? 1
                                                              : most < RUNS ? most
                                                                            : RUNS;
    for (size_t i = 0; i < n; i++) {
        const bool both = count[0] >= some && count[1] >= some;
        if (both && (count[0] == count[1] || all[i].side != all[i - 1].side)) {
            turns++;
            count[0] = count[1] = 0;
            first = i;
        }
        count[all[i].side]++;
        t->of_run[all[i].side][all[i].index] = turns;
    }
    if (count[0] && count[1])
        return turns + 1;
    for (size_t i = first; i < n; i++) /* those left over have nobody to be compared with */
        t->of_run[all[i].side][all[i].index] = SN_TURN_NONE;
    return turns;
}

sonde_status sn_turns_make(sn_turns *t, const sn_profile *old, const sn_profile *now,
                           sn_allocator *alloc, sonde_error *err)
{
    const sn_profile *const sides[2] = {old, now};
    sn_prof_runs runs[2];
    *t = (sn_turns){.alloc = alloc};
    SN_TRY(sn_profile_runs(old, &runs[0], err));
    sonde_status st = sn_profile_runs(now, &runs[1], err);
    if (st) {
        sn_prof_runs_free(&runs[0]);
        return st;
    }
    size_t total = 0;
    for (int k = 0; k < 2; k++)
        total += t->runs[k] = runs[k].all.n;
    if (old == now || !one_clock(old, now) || !t->runs[0] || !t->runs[1])
        goto done;
    run *all = sn_alloc(alloc, total * sizeof *all);
    for (int k = 0; k < 2; k++)
        t->of_run[k] = sn_alloc(alloc, t->runs[k] * sizeof **t->of_run);
    if (!all || !t->of_run[0] || !t->of_run[1]) {
        st = sn_fail_memory(err, total * sizeof *all);
    } else {
        for (int k = 0; k < 2; k++)
            add_runs(all + (k ? t->runs[0] : 0), sides[k], &runs[k], k);
        const bool shared = shared_time(all, t->runs);
        qsort(all, total, sizeof *all, by_start);
        const uint32_t n = shared ? cut(t, all, total) : 0;
        t->n = n >= FEWEST ? n : 0;
    }
    sn_free(alloc, all, total * sizeof *all);
done:
    for (int k = 0; k < 2; k++)
        sn_prof_runs_free(&runs[k]);
    if (st)
        sn_turns_free(t);
    return st;
}

void sn_turns_free(sn_turns *t)
{
    for (int k = 0; k < 2; k++)
        if (t->of_run[k])
            sn_free(t->alloc, t->of_run[k], t->runs[k] * sizeof **t->of_run);
    *t = (sn_turns){.alloc = t->alloc};
}

/* Takes the values of the turn that comes next, which is *turn; false: there is none. Runs are in
 * the order of their start, so turns are, too. */
static bool next_turn(const uint32_t *of_run, const sn_run_values *v, size_t *at, uint32_t *turn,
                      double *median, double *room)
{
    size_t n = 0;
    while (*at < v->n && of_run[v->run[*at]] == SN_TURN_NONE)
        ++*at;
    if (*at == v->n)
        return false;
    *turn = of_run[v->run[*at]];
    for (; *at < v->n && of_run[v->run[*at]] == *turn; ++*at)
        room[n++] = v->values[*at];
    *median = sn_median_of(room, n);
    return true;
}

size_t sn_turns_ratios(const sn_turns *t, const sn_run_values *old, const sn_run_values *now,
                       double *room, double *out)
{
    size_t i = 0, j = 0, n = 0;
    uint32_t x = 0, y = 0;
    double a = 0, b = 0;
    bool more = next_turn(t->of_run[0], old, &i, &x, &a, room) &&
                next_turn(t->of_run[1], now, &j, &y, &b, room);
    while (more) {
        /* What was too short to be measured has no logarithm; its place among others is known. */
        if (x == y)
            out[n++] = a > 0 ? b > 0 ? log(b / a) : -INFINITY : b > 0 ? INFINITY : 0;
        const bool step_old = x <= y, step_now = y <= x;
        more = (!step_old || next_turn(t->of_run[0], old, &i, &x, &a, room)) &&
               (!step_now || next_turn(t->of_run[1], now, &j, &y, &b, room));
    }
    return n;
}
