/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that lead out of their tables become "none": the record they mean may not have been
 * written any more. Numbers too large to be true are cut, those that are no numbers count as not
 * known. */
#include "profile_readers/bounds.h"

#include <math.h>

#include "profile/chrome_keys.h"

static uint64_t at_most(uint64_t v, uint64_t limit)
{
    return v < limit ? v : limit;
}

static double count(double v)
{
    if (!(v > 0) || !isfinite(v))
        return 0;
    return v < (double)SN_PROF_MAX_COUNT ? v : (double)SN_PROF_MAX_COUNT;
}

static void bound_facts(sn_profile *p)
{
#define X(name) p->memory.name = at_most(p->memory.name, SN_PROF_MAX_COUNT);
    SN_CHROME_MEMORY(X)
#undef X
#define X(name) p->usage.name = at_most(p->usage.name, SN_PROF_MAX_COUNT);
    SN_CHROME_USAGE(X)
#undef X
    p->dropped = at_most(p->dropped, SN_PROF_MAX_COUNT);
    p->start_wall_ns = at_most(p->start_wall_ns, SN_PROF_MAX_COUNT);
    p->start_mono_ns = at_most(p->start_mono_ns, SN_PROF_MAX_COUNT);
    p->wall_error_ns = at_most(p->wall_error_ns, SN_PROF_MAX_COUNT);
    p->pid = p->pid > 0 ? p->pid : 0;
    p->record_ns = isnan(p->record_ns) ? p->record_ns : count(p->record_ns);
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        p->peak_gops[a] = count(p->peak_gops[a]);
    p->peak_gbps = count(p->peak_gbps);
    for (int k = 0; k < 2; k++) {
        p->caches[k].bytes = count(p->caches[k].bytes);
        p->caches[k].gbps = count(p->caches[k].gbps);
    }
}

static void bound_steps(sn_profile *p)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        sn_prof_step *s = &p->steps.data[i];
        s->flops = at_most(s->flops, SN_PROF_MAX_COUNT);
        s->bytes = at_most(s->bytes, SN_PROF_MAX_COUNT);
        s->bind_ns = at_most(s->bind_ns, SN_PROF_MAX_NS);
#define X(name) s->hw.name = count(s->hw.name);
        SN_CHROME_COUNTS(X)
#undef X
        if (s->hw.calls < 1) /* none was counted */
            s->hw = (sn_prof_hw){0};
    }
}

static void bound_spans(sn_profile *p, bool zero)
{
    uint64_t first = zero && p->spans.n ? UINT64_MAX : 0;
    for (size_t i = 0; i < p->spans.n && zero; i++)
        first = at_most(first, p->spans.data[i].start_ns);
    for (size_t i = 0; i < p->spans.n; i++) {
        sn_prof_span *s = &p->spans.data[i];
        s->start_ns = at_most(s->start_ns - first, SN_PROF_MAX_NS);
        s->dur_ns = at_most(s->dur_ns, SN_PROF_MAX_NS);
        if (s->thread >= p->threads_seen.n)
            s->thread = 0;
        if (s->step >= p->steps.n || (s->cat != SN_CAT_OPERATOR && s->cat != SN_CAT_THREAD))
            s->step = UINT32_MAX;
    }
}

static void bound_counters(sn_profile *p)
{
    for (size_t i = 0; i < p->counters.n; i++) {
        sn_prof_counter *c = &p->counters.data[i];
        c->at_ns = at_most(c->at_ns, SN_PROF_MAX_NS);
        c->value = isfinite(c->value) ? c->value : 0;
        if (c->step >= p->steps.n)
            c->step = UINT32_MAX;
    }
}

void sn_bounds_apply(sn_profile *p, bool zero)
{
    bound_facts(p);
    bound_steps(p);
    bound_spans(p, zero);
    bound_counters(p);
}
