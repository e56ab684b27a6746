/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a plan needs beyond what is alive at once. Values of different sizes leave gaps in
 * the arena, which then is larger than the most that lies in it at one step. */
#include <inttypes.h>
#include <stdlib.h>

#include "findings/check.h"

/* Smaller arenas are nothing to speak of, whatever is lost in them. */
#define LEAST_BYTES ((double)(1 << 20))

/* A value's block begins to be needed, or is no longer. */
typedef struct change {
    uint32_t table;
    uint64_t step;
    double bytes; /* below 0: no longer */
    double end;   /* of the block, in the arena */
} change;

typedef struct arena_use {
    double arena, peak; /* bytes: the whole, and the most that is alive at once */
    uint64_t step;      /* of the peak */
} arena_use;

static int by_place(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Both changes of every value in an arena, sorted; returns how many there are. */
static size_t list_changes(const sn_profile *p, change *all)
{
    size_t n = 0;
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (l->place != SN_LIFE_ARENA || !l->bytes)
            continue;
        const double end = (double)sn_life_block_end(l), bytes = end - (double)l->offset;
        all[n++] = (change){l->table, l->first, bytes, end};
        all[n++] = (change){l->table, (uint64_t)l->last + 1, -bytes, end};
    }
    if (n)
        qsort(all, n, sizeof *all, by_place);
    return n;
}

/* The arena in which most is lost. */
static arena_use worst_arena(const change *all, size_t n)
{
    arena_use worst = {0}, now = {0};
    double live = 0;
    for (size_t i = 0; i < n; i++) {
        live += all[i].bytes;
        now.arena = all[i].end > now.arena ? all[i].end : now.arena;
        const bool settled = i + 1 == n || by_place(&all[i], &all[i + 1]) != 0;
        if (settled && live > now.peak) {
            now.peak = live;
            now.step = all[i].step;
        }
        if (i + 1 < n && all[i + 1].table == all[i].table)
            continue;
        if (now.arena - now.peak > worst.arena - worst.peak)
            worst = now;
        now = (arena_use){0};
        live = 0;
    }
    return worst;
}

void sn_check_lost_memory(sn_case *c)
{
    const sn_profile *p = c->p;
    const size_t bytes = 2 * p->lives.n * sizeof(change);
    change *all = p->lives.n ? sn_alloc(p->alloc, bytes) : NULL;
    c->failed |= p->lives.n && !all;
    if (!all)
        return;
    const arena_use a = worst_arena(all, list_changes(p, all));
    sn_free(p->alloc, all, bytes);
    if (a.arena < LEAST_BYTES || !(a.peak > 0) || a.arena <= 1.3 * a.peak)
        return;
    sn_found(c, SONDE_NOTE, 0, "memory",
             SN_SAY(c, "the arena of activations is %.0f %% larger than what lies in it at once",
                    (a.arena / a.peak - 1) * 100),
             SN_SAY(c, "%s, of which at most %s are in use (step %" PRIu64 ")",
                    sn_say_bytes(c, a.arena), sn_say_bytes(c, a.peak), a.step),
             "values of different sizes leave gaps between them, which shrink with the batch; "
             "--report memory shows the map of the arena");
}
