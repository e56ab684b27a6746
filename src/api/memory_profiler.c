/* SPDX-License-Identifier: Apache-2.0 */
/* The memory profiler: another reader of the recorder, which then also notes what is held after
 * every step. Maxima and trace are computed from the profile when they are asked for. */
#include "api/internal.h"
#include "sonde/experimental/memory.h"

/* Into another state, and what that asks of the recorder. With the lock held. */
static sonde_status enter(sonde_context *c, int state, sonde_error *err)
{
    c->memory.state = state;
    c->memory.observer.level = c->memory.observer.memory = state == 1;
    c->memory.observer.since = state ? c->memory.start : SN_NO_RECORDS;
    return sn_records_set_level(&c->records, err);
}

/* Forgets what was recorded for it; what comes counts from now. */
static void forget(sonde_context *c)
{
    c->memory.observer.since = SN_NO_RECORDS;
    sn_records_forget(&c->records);
    c->memory.start = sn_ticks();
}

static sonde_status begin_life(sonde_context *c, sonde_error *err)
{
    (void)err;
    c->memory.observer.since = SN_NO_RECORDS;
    sn_records_add(&c->records, &c->memory.observer);
    return SONDE_OK;
}

const sn_context_observer sn_memory_observer = {.made = begin_life};

/* State 1 running, 2 stopped with its records kept, 0 off. */
static sonde_status change(sonde_context *context, int from, int to, const char *why,
                           sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    sonde_status st = SONDE_OK;
    const int before = c->memory.state;
    if (from >= 0 ? before != from : before == 1) {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "%s", why);
    } else {
        if (to == 1)
            forget(c);
        st = enter(c, to, err);
        if (st != SONDE_OK)
            (void)enter(c, before, NULL);
    }
    pthread_mutex_unlock(&c->records.lock);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_memory_start(sonde_context *context, sonde_error *err)
{
    return change(context, -1, 1, "the memory profiler of this context is already running", err);
}

sonde_status sonde_memory_stop(sonde_context *context, sonde_error *err)
{
    return change(context, 1, 2, "the memory profiler of this context is not running", err);
}

sonde_status sonde_memory_reset(sonde_context *context, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    pthread_mutex_lock(&c->records.lock);
    forget(c);
    const sonde_status st = enter(c, c->memory.state == 1, err);
    pthread_mutex_unlock(&c->records.lock);
    sonde_context_release(c);
    return st;
}

static sonde_status read_records(sonde_context *context, sonde_context **c, sn_profile **p,
                                 sonde_error *err)
{
    SN_TRY(sn_api_context(context, c, err));
    sn_observer reader;
    pthread_mutex_lock(&(*c)->records.lock);
    const bool started = (*c)->memory.state != 0;
    if (started)
        sn_records_read_begin(&(*c)->records, &reader, (*c)->memory.start);
    pthread_mutex_unlock(&(*c)->records.lock);
    sonde_status st;
    if (started) {
        st = sn_records_profile(&(*c)->records, reader.since, 0, 1, p, err);
        sn_records_read_end(&(*c)->records, &reader);
    } else {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT,
                     "the memory profiler of this context was not started");
    }
    if (st != SONDE_OK)
        sonde_context_release(*c);
    return st;
}

/* Pairs come first: used, then allocated. */
static bool pair_at(const sn_profile *p, size_t i, uint64_t *used, uint64_t *allocated)
{
    const sn_prof_counter *a = p->counters.n ? &p->counters.data[i] : NULL;
    if (!a || i + 1 >= p->counters.n || strcmp(a[0].name, SN_COUNTER_USED) != 0 ||
        strcmp(a[1].name, SN_COUNTER_ALLOCATED) != 0)
        return false;
    *used = (uint64_t)a[0].value;
    *allocated = (uint64_t)a[1].value;
    return true;
}

sonde_status sonde_memory_max(sonde_context *context, sonde_memory_info *info, sonde_error *err)
{
    SN_REQUIRE(info, err);
    if (info->struct_size < sizeof *info)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size is not set; initialise the struct with SONDE_INIT");
    sonde_context *c = NULL;
    sn_profile *p = NULL;
    SN_TRY(read_records(context, &c, &p, err));
    uint64_t used, allocated, allocated_then = 0;
    *info = (sonde_memory_info){.struct_size = sizeof *info};
    for (size_t i = 0; pair_at(p, i, &used, &allocated); i += 2) {
        info->samples++;
        if (used > info->max_used) {
            info->max_used = used;
            allocated_then = allocated;
        }
        if (allocated > info->max_allocated)
            info->max_allocated = allocated;
    }
    info->max_used_mb = (double)info->max_used / 1048576.0;
    info->max_allocated_mb = (double)info->max_allocated / 1048576.0;
    if (allocated_then > info->max_used)
        info->fragmentation = 1.0 - (double)info->max_used / (double)allocated_then;
    sn_profile_free(p);
    sonde_context_release(c);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the trace */
struct sonde_memory_trace {
    sonde_context *context;
    sn_profile *profile; /* its counters; tags lie in its arena */
    size_t count;
    const char **tags;
};

static const char *tag_of(sn_profile *p, uint32_t step)
{
    const sn_prof_step *s = step < p->steps.n ? &p->steps.data[step] : NULL;
    if (!s)
        return "";
    return *s->name ? sn_arena_printf(&p->arena, "%s %s", s->op_type, s->name) : s->op_type;
}

sonde_status sonde_memory_trace_get(sonde_context *context, sonde_memory_trace **trace,
                                    sonde_error *err)
{
    SN_REQUIRE(trace, err);
    *trace = NULL;
    sonde_context *c = NULL;
    sn_profile *p = NULL;
    SN_TRY(read_records(context, &c, &p, err));
    uint64_t used, allocated;
    size_t n = 0;
    while (pair_at(p, 2 * n, &used, &allocated))
        n++;
    sonde_memory_trace *t = sn_alloc_zero(&c->alloc, sizeof *t);
    const char **by_step = SN_NEW_N(&p->arena, const char *, p->steps.n + 1);
    const char **tags = SN_NEW_N(&p->arena, const char *, n + 1);
    bool fine = t && by_step && tags;
    for (size_t i = 0; i < p->steps.n && fine; i++)
        fine = (by_step[i] = tag_of(p, (uint32_t)i)) != NULL;
    if (!fine) {
        sn_free(&c->alloc, t, sizeof *t);
        sn_profile_free(p);
        sonde_context_release(c);
        return sn_fail_memory(err, n * sizeof *tags);
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t step = p->counters.data[2 * i].step;
        tags[i] = step < p->steps.n ? by_step[step] : "";
    }
    *t = (sonde_memory_trace){.context = c, .profile = p, .count = n, .tags = tags};
    *trace = t;
    return SONDE_OK;
}

size_t sonde_memory_trace_count(const sonde_memory_trace *trace)
{
    return trace ? trace->count : 0;
}

sonde_status sonde_memory_trace_sample(const sonde_memory_trace *trace, size_t index,
                                       sonde_memory_sample *sample, sonde_error *err)
{
    SN_REQUIRE(trace, err);
    SN_REQUIRE(sample, err);
    if (sample->struct_size < sizeof *sample)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size is not set; initialise the struct with SONDE_INIT");
    if (index >= trace->count)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "sample %zu of %zu", index, trace->count);
    *sample = (sonde_memory_sample){.struct_size = sizeof *sample,
                                    .tag = trace->tags[index],
                                    .at_ns = trace->profile->counters.data[2 * index].at_ns};
    (void)pair_at(trace->profile, 2 * index, &sample->used, &sample->allocated);
    return SONDE_OK;
}

void sonde_memory_trace_release(sonde_memory_trace *trace)
{
    if (!trace)
        return;
    sonde_context *c = trace->context;
    sn_profile_free(trace->profile);
    sn_free(&c->alloc, trace, sizeof *trace);
    sonde_context_release(c);
}
