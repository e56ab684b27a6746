/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: which counters the recorder reads, and what the system counted meanwhile. Counters are
 * opened once and stay open until the context goes, because a run on another thread may be reading
 * them. */
#include <stdio.h>

#include "records/machine.h"

sonde_status sn_machine_counters_start(sn_machine *m, sonde_error *err)
{
    pthread_mutex_lock(&m->lock);
    sonde_error why = {.status = SONDE_OK, .message = ""};
    sonde_status st = SONDE_OK;
    if (!m->hw)
        st = sn_counters_open(&m->hw, m->ctx->alloc, &why);
    if (st == SONDE_OUT_OF_MEMORY) {
        st = sn_fail(err, st, "%s", why.message);
    } else {
        snprintf(m->note, sizeof m->note, "%.*s", (int)sizeof m->note - 1, why.message);
        m->counting = m->counted = true;
        m->began = sn_usage_now();
        atomic_store_explicit(&m->ctx->trace->counters, m->hw, memory_order_release);
        if (st != SONDE_OK)
            st = sn_fail(err, st, "%s", why.message);
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

sonde_status sn_machine_counters_stop(sn_machine *m, sonde_error *err)
{
    pthread_mutex_lock(&m->lock);
    sonde_status st = SONDE_OK;
    if (m->counting) {
        m->counting = false;
        m->used = sn_usage_since(&m->began);
        atomic_store_explicit(&m->ctx->trace->counters, NULL, memory_order_release);
    } else {
        st = sn_fail(err, SONDE_INVALID_ARGUMENT, "no counters are active in this context");
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

void sn_machine_describe_counters(sn_machine *m, sn_profile *p)
{
    pthread_mutex_lock(&m->lock);
    if (m->counted) {
        const sn_usage u = m->counting ? sn_usage_since(&m->began) : m->used;
        p->usage = (sn_prof_usage){.known = true,
                                   .cpu_ns = u.cpu_ns,
                                   .minor_faults = u.minor_faults,
                                   .major_faults = u.major_faults,
                                   .voluntary = u.voluntary,
                                   .involuntary = u.involuntary};
        const char *note = sn_arena_strdup(&p->arena, m->note);
        p->counters_note = note ? note : "";
    }
    pthread_mutex_unlock(&m->lock);
}

double sn_machine_counters_cost_ns(sn_machine *m)
{
    pthread_mutex_lock(&m->lock);
    const double cost = m->hw ? 2 * sn_counters_read_ns(m->hw) : 0;
    pthread_mutex_unlock(&m->lock);
    return cost;
}
