/* SPDX-License-Identifier: Apache-2.0 */
/* How full the recorder is, for programs that stop before records are lost. */
#include "api/internal.h"
#include "sonde/experimental/recording.h"

static void add_ring(sonde_recorder_info *info, const sn_trace_ring *r)
{
    /* The tail first: it only grows, and never beyond what was pushed. */
    const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    const uint64_t held = atomic_load_explicit(&r->n, memory_order_acquire) - tail;
    const uint64_t room = held < r->cap ? r->cap - held : 0;
    info->held += held;
    info->room = room < info->room ? room : info->room;
    info->dropped += atomic_load_explicit(&r->dropped, memory_order_relaxed);
}

sonde_status sonde_recorder_info_get(sonde_context *context, sonde_recorder_info *info,
                                     sonde_error *err)
{
    SN_REQUIRE(info, err);
    const size_t theirs = info->struct_size;
    if (theirs < sizeof(size_t))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size is not set; initialise the struct with SONDE_INIT");
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_recorder_info own = {.struct_size = theirs};
    pthread_mutex_lock(&c->records.lock); /* against a change of the capacity */
    own.capacity = own.room = c->core.trace->ring_cap;
    for (const sn_trace_ring *r = atomic_load(&c->core.trace->rings); r; r = r->next)
        add_ring(&own, r);
    pthread_mutex_unlock(&c->records.lock);
    own.sampled = atomic_load(&c->records.sampler.sampled);
    own.skipped = atomic_load(&c->records.sampler.skipped);
    own.overhead = sn_sampler_overhead(&c->records.sampler);
    sonde_context_release(c);
    memcpy(info, &own, theirs < sizeof own ? theirs : sizeof own);
    return SONDE_OK;
}
