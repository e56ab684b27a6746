/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the user's code as a tree. A record is written when it ends, after everything in it;
 * what it holds is found by time, among the spans of its own thread. */
#include "profile/profile.h"

#define NONE UINT32_MAX
/* Looking outwards from a span that nothing contains ends here, so that no input makes the walk
 * quadratic. */
enum { MAX_LEVELS = 64 };

/* What others can lie in: records, the executor's work outside of any inference, and, for such work
 * alone, an inference: the body of a loop is bound in one. */
static bool holds(const sn_prof_span *s)
{
    return s->cat == SN_CAT_USER || s->cat == SN_CAT_ITERATION ||
           (s->cat == SN_CAT_EXECUTOR && !s->run);
}

static uint64_t end_of(const sn_prof_span *s)
{
    uint64_t end;
    return __builtin_add_overflow(s->start_ns, s->dur_ns, &end) ? UINT64_MAX : end;
}

/* An iteration belongs to its model where no record is around it. */
static bool is_free(const sn_profile *p, const sn_prof_index *index, const sn_prof_span *s)
{
    if (!holds(s))
        return false;
    const uint32_t parent = sn_prof_index_find(index, s->parent);
    return parent == NONE ||
           (s->cat == SN_CAT_ITERATION && p->spans.data[parent].cat == SN_CAT_MODEL);
}

/* The innermost of those open on the span's thread that contains it; records alone, unless it is
 * the executor's. */
static uint32_t around(const sn_profile *p, const uint32_t *below, uint32_t at,
                       const sn_prof_span *s)
{
    for (int level = 0; at != NONE && level < MAX_LEVELS; at = below[at], level++) {
        const sn_prof_span *up = &p->spans.data[at];
        if (end_of(up) >= end_of(s) && (up->cat == SN_CAT_USER || s->cat == SN_CAT_EXECUTOR))
            return at;
    }
    return NONE;
}

sonde_status sn_profile_link_records(sn_profile *p, sonde_error *err)
{
    const size_t n = p->spans.n, threads = p->threads_seen.n;
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    uint32_t *top = sn_alloc(p->alloc, threads * sizeof *top);     /* innermost open, by thread */
    uint32_t *below = sn_alloc(p->alloc, (n + 1) * sizeof *below); /* by span: the one around it */
    const bool fine = top && below;
    for (size_t t = 0; t < threads && fine; t++)
        top[t] = NONE;
    for (uint32_t i = 0; i < n && fine; i++) {
        sn_prof_span *s = &p->spans.data[i];
        if (s->thread >= threads)
            continue;
        uint32_t *open = &top[s->thread];
        while (*open != NONE && end_of(&p->spans.data[*open]) <= s->start_ns)
            *open = below[*open];
        const uint32_t up = is_free(p, &index, s) ? around(p, below, *open, s) : NONE;
        if (up != NONE)
            s->parent = p->spans.data[up].id;
        if (holds(s)) {
            below[i] = *open;
            *open = i;
        }
    }
    sn_free(p->alloc, top, threads * sizeof *top);
    sn_free(p->alloc, below, (n + 1) * sizeof *below);
    sn_prof_index_free(&index);
    return fine ? SONDE_OK : sn_fail_memory(err, (n + 1) * sizeof *below);
}
