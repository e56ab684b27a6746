/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait while an operator runs. Profiles of level 3 have a slice for every thread that
 * worked on an operator; the thread that called it counts as busy all the time, so what is found is
 * rather too little than too much. */
#include "findings/check.h"

typedef struct use {
    double *ns, *helped; /* by row: time of its operators, and what other threads worked in it */
    unsigned char *seen; /* by thread */
    size_t threads;      /* how many worked at all */
} use;

static void see(use *u, uint32_t thread)
{
    u->threads += !u->seen[thread];
    u->seen[thread] = 1;
}

/* Operators that run bodies contain the operators of those, which count themselves. */
static bool counts(const sn_profile *p, const sn_prof_span *s)
{
    return !s->warmup && s->run && s->step < p->steps.n && !p->steps.data[s->step].control;
}

static void add_spans(use *u, const sn_profile *p, const sn_prof_index *index, const uint32_t *rows)
{
    for (size_t i = 0; i < p->spans.n; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        if (!counts(p, s) || rows[s->step] == UINT32_MAX)
            continue;
        if (s->cat == SN_CAT_OPERATOR) {
            u->ns[rows[s->step]] += (double)s->dur_ns;
            see(u, s->thread);
        }
        if (s->cat != SN_CAT_THREAD)
            continue;
        const uint32_t at = sn_prof_index_find(index, s->parent);
        if (at == UINT32_MAX || p->spans.data[at].cat != SN_CAT_OPERATOR ||
            p->spans.data[at].thread == s->thread)
            continue;
        u->helped[rows[s->step]] += (double)s->dur_ns;
        see(u, s->thread);
    }
}

/* The operators that leave most of the threads' time unused, worst first. */
static void name_worst(const sn_case *c, const use *u, double all, sn_few *w)
{
    double last = 2;
    for (int k = 0; k < SN_FEW; k++) {
        size_t best = SIZE_MAX;
        double most = 0.01;
        for (size_t i = 0; i < c->ops.rows.n; i++) {
            const double idle = ((double)(u->threads - 1) * u->ns[i] - u->helped[i]) / all;
            if (idle > most && idle < last) {
                most = idle;
                best = i;
            }
        }
        if (best == SIZE_MAX)
            return;
        sn_few_add(w, c->ops.rows.data[best].name, most);
        last = most;
    }
}

static void judge(sn_case *c, const use *u)
{
    double ns = 0, helped = 0;
    for (size_t i = 0; i < c->ops.rows.n; i++) {
        ns += u->ns[i];
        helped += u->helped[i];
    }
    const double all = ns * (double)u->threads;
    const double idle = all > 0 ? (all - ns - helped) / all : 0;
    if (u->threads < 2 || idle <= 0.15)
        return;
    sn_few w = {.n = 0};
    name_worst(c, u, all, &w);
    sn_found(c, SONDE_NOTE, idle, "threads",
             SN_SAY(c, "%zu threads are idle for %.1f %% of the time of the operators", u->threads,
                    idle * 100),
             SN_SAY(c, "of all threads' time: %s", sn_say_few(c, &w)),
             "use fewer threads (-t) to leave cores for other work, larger batches, which split "
             "better, or several instances (--instances); on a busy machine threads wait for a "
             "core");
}

void sn_check_idle_threads(sn_case *c)
{
    const sn_profile *p = c->p;
    if (p->level < 3 || c->ops.instances > 1)
        return;
    sn_arena arena;
    sn_arena_init(&arena, p->alloc);
    use u = {.ns = SN_NEW_N(&arena, double, c->ops.rows.n + 1),
             .helped = SN_NEW_N(&arena, double, c->ops.rows.n + 1),
             .seen = SN_NEW_N(&arena, unsigned char, p->threads_seen.n + 1)};
    uint32_t *rows = SN_NEW_N(&arena, uint32_t, p->steps.n + 1);
    sn_prof_index index = {0};
    if (u.ns && u.helped && u.seen && rows &&
        sn_profile_step_rows(p, SN_BY_OP, &c->ops, rows, NULL) == SONDE_OK &&
        sn_prof_index_build(p, &index, NULL) == SONDE_OK) {
        add_spans(&u, p, &index, rows);
        sn_prof_index_free(&index);
        judge(c, &u);
    } else {
        c->failed = true;
    }
    sn_arena_free(&arena);
}
