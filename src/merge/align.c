/* SPDX-License-Identifier: Apache-2.0 */
/* One line of time. Traces of one boot have one monotonic clock, so that they lie exactly as they
 * were, whatever was done to the wall clock in between; where on the line they lie together is said
 * by the one of them that knows the wall clock best. Different boots meet by their wall clocks. */
#include "merge/merge.h"

/* Wall clock less monotonic clock; wraps around, and back when it is added. */
static uint64_t difference(const sn_merge_source *s)
{
    return s->start_wall_ns - s->start_mono_ns;
}

static bool has_clock(const sn_merge_source *s)
{
    return *s->boot && s->start_wall_ns && s->start_mono_ns;
}

/* The smallest bound counts, and where nobody has one the newest. */
static bool knows_better(const sn_merge_source *a, const sn_merge_source *b)
{
    if ((a->wall_error_ns != 0) != (b->wall_error_ns != 0))
        return a->wall_error_ns != 0;
    if (a->wall_error_ns != b->wall_error_ns)
        return a->wall_error_ns < b->wall_error_ns;
    return a->start_mono_ns > b->start_mono_ns;
}

/* How far the wall clock was from where the best one sees it. */
static void note_move(sn_merge_clocks *c, const sn_merge_source *s, const sn_merge_source *best)
{
    const int64_t apart = (int64_t)(difference(s) - difference(best));
    const uint64_t moved = apart < 0 ? 0 - (uint64_t)apart : (uint64_t)apart;
    if (moved > c->moved_ns) {
        c->moved_ns = moved;
        c->moved_host = s->host;
    }
}

/* The bounds of two clocks add up: the two largest are what the worst pair has. */
typedef struct bounds {
    uint64_t first, second;
    bool unknown;
} bounds;

static void add_bound(bounds *b, uint64_t error_ns)
{
    b->unknown |= error_ns == 0;
    if (error_ns > b->first) {
        b->second = b->first;
        b->first = error_ns;
    } else if (error_ns > b->second) {
        b->second = error_ns;
    }
}

/* Source i is the first of its boot. */
static void align_boot(sn_merge *m, size_t i, bounds *b)
{
    sn_merge_source *all = m->sources.data;
    const sn_merge_source *best = &all[i];
    for (size_t k = i; k < m->sources.n; k++)
        if (has_clock(&all[k]) && strcmp(all[k].boot, all[i].boot) == 0 &&
            knows_better(&all[k], best))
            best = &all[k];
    for (size_t k = i; k < m->sources.n; k++)
        if (has_clock(&all[k]) && strcmp(all[k].boot, all[i].boot) == 0) {
            const uint64_t at = all[k].start_mono_ns + difference(best);
            all[k].aligned_ns = at && at <= SN_PROF_MAX_COUNT ? at : all[k].start_wall_ns;
            note_move(&m->clocks, &all[k], best);
        }
    add_bound(b, best->wall_error_ns);
    m->clocks.boots++;
}

void sn_merge_align(sn_merge *m)
{
    bounds b = {0};
    sn_merge_source *all = m->sources.data;
    m->clocks = (sn_merge_clocks){.moved_host = ""};
    for (size_t i = 0; i < m->sources.n; i++)
        all[i].aligned_ns = 0;
    for (size_t i = 0; i < m->sources.n; i++) {
        if (!has_clock(&all[i])) {
            all[i].aligned_ns = all[i].start_wall_ns;
            m->clocks.loose++;
        } else if (!all[i].aligned_ns) {
            align_boot(m, i, &b);
        }
    }
    if (m->clocks.boots > 1 && !m->clocks.loose && !b.unknown)
        m->clocks.error_ns = b.first + b.second;
}
