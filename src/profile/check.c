/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of profile.h, looked at one by one. Readers make profiles that keep them; this is
 * the net below every reader, so that what writes a profile out need not look again. Places are
 * named by number, never by a text of the profile: those may come from a stranger's file. */
#include <inttypes.h>
#include <math.h>

#include "profile/profile.h"

static sonde_status bad_text(const char *what, size_t i, sonde_error *err)
{
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "a string of %s %zu is missing", what, i);
}

static bool is_count(double v)
{
    return v >= 0 && v <= (double)SN_PROF_MAX_COUNT;
}

/* ------------------------------------------------------------------ facts */
static sonde_status check_facts(const sn_profile *p, sonde_error *err)
{
    const sn_prof_memory *m = &p->memory;
    const sn_prof_usage *u = &p->usage;
    const uint64_t counts[] = {m->mapped,       m->constants,    m->packed,        m->arenas,
                               m->workspaces,   m->outputs,      m->held,          m->held_peak,
                               m->rss,          m->rss_peak,     m->rss_anon,      m->rss_file,
                               u->cpu_ns,       u->minor_faults, u->major_faults,  u->voluntary,
                               u->involuntary,  p->dropped,      p->start_wall_ns, p->start_mono_ns,
                               p->wall_error_ns};
    const double rates[] = {p->peak_gbps,      p->caches[0].bytes,
                            p->caches[0].gbps, p->caches[1].bytes,
                            p->caches[1].gbps, isnan(p->record_ns) ? 0 : p->record_ns};
    if (!p->model_name || !p->version || !p->cpu_model || !p->cpu_level || !p->precision ||
        !p->counters_note || !p->note || !p->boot)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a string in the header data is missing");
    if (p->cores < 0 || p->threads < 0 || p->level < 0 || p->instance < 0 || p->pid < 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a number in the header data is negative");
    if (p->categories & ~(uint32_t)SN_CATS_ALL)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the set of categories is 0x%" PRIx32,
                       p->categories);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
        if (counts[k] > SN_PROF_MAX_COUNT)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "a number in the header data is %" PRIu64 ", the maximum is 2^62",
                           counts[k]);
    for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++)
        if (!is_count(rates[k]))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "a rate in the header data is %g, which is invalid", rates[k]);
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        if (!is_count(p->peak_gops[a]))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "a peak in the header data is %g, which is invalid", p->peak_gops[a]);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ runs left out */
static bool is_time(double ns)
{
    return ns >= -(double)SN_PROF_MAX_NS && ns <= (double)SN_PROF_MAX_NS;
}

static sonde_status check_left(const sn_profile *p, sonde_error *err)
{
    const sn_prof_left *l = &p->left;
    bool fine = l->warmups <= SN_PROF_MAX_COUNT && is_count(l->cost_ns) &&
                l->first_ns <= SN_PROF_MAX_NS && l->last_ns <= SN_PROF_MAX_NS;
    for (size_t i = 0; i < l->wall_ns.n; i++)
        fine = fine && is_time(l->wall_ns.data[i]);
    for (size_t i = 0; i < l->steps.n; i++) {
        const sn_prof_left_step *s = &l->steps.data[i];
        fine =
            fine && (s->step < p->steps.n || s->step == SN_LEFT_MEMORY || s->step == SN_LEFT_OTHER);
        fine = fine && (i == 0 || l->steps.data[i - 1].step < s->step) && is_count(s->calls) &&
               s->total_ns >= -(double)SN_PROF_MAX_COUNT &&
               s->total_ns <= (double)SN_PROF_MAX_COUNT;
        for (size_t k = 0; k < SN_LEFT_POINTS; k++)
            fine = fine && is_time(s->points[k]);
    }
    return fine ? SONDE_OK
                : sn_fail(err, SONDE_INVALID_ARGUMENT,
                          "what is said of runs without spans is invalid");
}

/* ------------------------------------------------------------------ steps */
static bool good_tensors(const sn_prof_tensor *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const sn_prof_tensor *x = &list[i];
        if (!x->name || !x->dtype || x->rank < -1 || (x->rank > 0 && !x->dims) ||
            x->port_rank < 0 || !(x->zeros == -1 || (x->zeros >= 0 && x->zeros <= 1)))
            return false;
    }
    return true;
}

static bool good_counts(const sn_prof_hw *hw)
{
    return (hw->calls == 0 || hw->calls >= 1) && is_count(hw->calls) && is_count(hw->cycles) &&
           is_count(hw->instructions) && is_count(hw->cache_misses) && is_count(hw->branch_misses);
}

static sonde_status check_steps(const sn_profile *p, sonde_error *err)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        if (!s->op_type || !s->name || !s->post_op || !s->kernel || !s->attributes)
            return bad_text("step", i, err);
        for (uint32_t k = 0; k < s->n_origins; k++)
            if (!s->origins[k].name || !s->origins[k].op_type)
                return bad_text("an original node of step", i, err);
        if (!good_tensors(s->inputs, s->n_inputs) || !good_tensors(s->outputs, s->n_outputs))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "a tensor of step %zu is invalid", i);
        if (s->flops > SN_PROF_MAX_COUNT || s->bytes > SN_PROF_MAX_COUNT ||
            s->bind_ns > SN_PROF_MAX_NS || (unsigned)s->arithmetic >= SN_ARITH_COUNT ||
            !good_counts(&s->hw))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "a number of step %zu is out of bounds", i);
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ spans */
static sonde_status check_span(const sn_profile *p, size_t i, sonde_error *err)
{
    const sn_prof_span *s = &p->spans.data[i];
    const bool runs_step = s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_THREAD;
    if (!s->name || !s->args)
        return bad_text("span", i, err);
    if ((unsigned)s->cat >= SN_CAT_COUNT)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "span %zu has no known category", i);
    if (s->thread >= p->threads_seen.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "span %zu refers to thread %" PRIu32 ", but there are %zu threads", i,
                       s->thread, p->threads_seen.n);
    if (s->step != UINT32_MAX && (s->step >= p->steps.n || !runs_step))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "span %zu refers to step %" PRIu32 ", but there are %zu steps", i, s->step,
                       p->steps.n);
    if (s->start_ns > SN_PROF_MAX_NS || s->dur_ns > SN_PROF_MAX_NS)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the times of span %zu are out of bounds", i);
    if (i && s->start_ns < p->spans.data[i - 1].start_ns)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "span %zu starts before the one before it", i);
    return SONDE_OK;
}

static sonde_status check_links(const sn_profile *p, const sn_prof_index *index, sonde_error *err)
{
    for (size_t i = 0; i < index->n; i++)
        if (index->entries[i].id == 0 || (i && index->entries[i].id == index->entries[i - 1].id))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "two spans have the id %" PRIu32,
                           index->entries[i].id);
    for (size_t i = 0; i < p->spans.n; i++) {
        const uint32_t parent = p->spans.data[i].parent;
        if (parent && sn_prof_index_find(index, parent) >= i)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the parent of span %zu does not come before it", i);
    }
    return SONDE_OK;
}

static sonde_status check_spans(const sn_profile *p, sonde_error *err)
{
    for (size_t i = 0; i < p->spans.n; i++)
        SN_TRY(check_span(p, i, err));
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    const sonde_status st = check_links(p, &index, err);
    sn_prof_index_free(&index);
    return st;
}

/* ------------------------------------------------------------------ the other tables */
static sonde_status check_threads(const sn_profile *p, sonde_error *err)
{
    if (!p->threads_seen.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "there are no threads");
    for (size_t i = 0; i < p->threads_seen.n; i++)
        if (!p->threads_seen.data[i].name)
            return bad_text("thread", i, err);
        else if (p->threads_seen.data[i].worker >= (p->workers.n ? p->workers.n : 1))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "thread %zu belongs to no worker", i);
    return SONDE_OK;
}

static sonde_status check_counters(const sn_profile *p, sonde_error *err)
{
    for (size_t i = 0; i < p->counters.n; i++) {
        const sn_prof_counter *c = &p->counters.data[i];
        if (!c->name)
            return bad_text("counter", i, err);
        if (c->at_ns > SN_PROF_MAX_NS || !isfinite(c->value) ||
            (c->step != UINT32_MAX && c->step >= p->steps.n))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "a number of counter %zu is out of bounds",
                           i);
    }
    return SONDE_OK;
}

static sonde_status check_lives(const sn_profile *p, sonde_error *err)
{
    int64_t total = 0;
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (!l->name)
            return bad_text("value", i, err);
        if ((unsigned)l->place > SN_LIFE_DYNAMIC)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "value %zu has an unknown location", i);
        if (l->first > l->last || l->last == UINT32_MAX)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "value %zu of the memory table is produced by step %" PRIu32
                           " but last used by step %" PRIu32,
                           i, l->first, l->last);
        if (l->bytes > SN_PROF_MAX_COUNT || l->offset > SN_PROF_MAX_COUNT ||
            !sn_i64_add(total, (int64_t)l->bytes, &total))
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "value %zu of the memory table has %" PRIu64 " bytes at offset %" PRIu64
                           ", which is too large",
                           i, l->bytes, l->offset);
    }
    return SONDE_OK;
}

sonde_status sn_profile_check(const sn_profile *p, sonde_error *err)
{
    SN_TRY(check_facts(p, err));
    SN_TRY(check_left(p, err));
    SN_TRY(check_threads(p, err));
    SN_TRY(check_steps(p, err));
    SN_TRY(check_spans(p, err));
    SN_TRY(check_counters(p, err));
    return check_lives(p, err);
}
