/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks: the process, below it the model, the iterations, every thread and every counter; below a
 * thread its user scopes. Slices of a track must nest, so a span that would cut through another one
 * moves to a further lane of the same name, and iterations that run at once never share one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/pftrace_writer.h"

enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDER = 11,
    TRACK_RANK = 12
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6, PROCESS_LABELS = 8 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, UNIT_BYTES = 3 };
enum { ORDER_EXPLICIT = 3 };
enum { RANK_MODEL, RANK_ITERATIONS, RANK_THREADS = 1000, RANK_COUNTERS = 1000000 };
enum { MAX_LANES = 64, MAX_COUNTERS = 65536 };

static uint64_t new_uuid(sn_pftrace *t)
{
    return t->base_uuid + ++t->n_uuids;
}

typedef struct marks {
    size_t packet, track;
} marks;

static marks begin_track(sn_pftrace *t, uint64_t uuid, uint64_t parent, uint64_t rank)
{
    marks m;
    m.packet = sn_pf_packet(t);
    m.track = sn_proto_begin(&t->out, SN_PF_PACKET_TRACK_DESCRIPTOR);
    sn_proto_varint(&t->out, TRACK_UUID, uuid);
    if (parent)
        sn_proto_varint(&t->out, TRACK_PARENT, parent);
    sn_proto_varint(&t->out, TRACK_RANK, rank);
    return m;
}

static bool end_track(sn_pftrace *t, marks m)
{
    sn_proto_end(&t->out, m.track);
    return sn_pf_packet_end(t, m.packet);
}

static uint64_t plain_track(sn_pftrace *t, uint64_t parent, uint64_t rank, const char *name)
{
    uint64_t uuid = new_uuid(t);
    marks m = begin_track(t, uuid, parent, rank);
    sn_proto_text(&t->out, TRACK_NAME, name);
    end_track(t, m);
    return uuid;
}

void sn_pf_open_process(sn_pftrace *t, const sn_profile *facts, const char *given)
{
    const char *model = facts->model_name ? facts->model_name : "";
    const char *name =
        given ? given : sn_arena_printf(&t->arena, "sonde%s%s", *model ? ": " : "", model);
    const char *version = sn_labels_get(&facts->labels, SN_LABEL_VERSION);
    t->failed |= !name;
    t->process = new_uuid(t);
    marks m = begin_track(t, t->process, 0, 0);
    sn_proto_varint(&t->out, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
    if (t->pid > 0) {
        size_t process = sn_proto_begin(&t->out, TRACK_PROCESS);
        sn_proto_int64(&t->out, PROCESS_PID, t->pid);
        sn_proto_text(&t->out, PROCESS_NAME, name);
        if (given && *model) /* else the name says it */
            sn_proto_text(&t->out, PROCESS_LABELS, model);
        if (*version)
            sn_proto_text(&t->out, PROCESS_LABELS, version);
        sn_proto_end(&t->out, process);
    } else {
        sn_proto_text(&t->out, TRACK_NAME, name);
    }
    end_track(t, m);
}

static bool seen_tid(const sn_pftrace *t, long tid)
{
    for (size_t i = 0; i < t->tids.n; i++)
        if (t->tids.data[i] == tid)
            return true;
    return false;
}

/* A thread the system knows is described as one; viewers unite what has the same number, so others
 * are tracks with a name. */
bool sn_pf_open_thread(sn_pftrace *t, const sn_prof_thread *thread)
{
    char number[32];
    snprintf(number, sizeof number, "thread %" PRIu32, thread->id);
    sn_pf_thread own = {0};
    own.name = sn_arena_strdup(&t->arena, thread->name && *thread->name ? thread->name : number);
    own.uuid = new_uuid(t);
    long tid = thread->os_tid;
    bool known = t->pid > 0 && tid > 0 && tid <= INT32_MAX && !seen_tid(t, tid);
    if (!own.name || (known && !sn_vec_push(&t->tids, t->alloc, tid)))
        return false;
    sn_pf_lane first = {.uuid = own.uuid};
    if (!sn_vec_push(&own.work.list, t->alloc, first))
        return false;
    if (!sn_vec_push(&t->threads, t->alloc, own)) {
        sn_vec_free(&own.work.list, t->alloc);
        return false;
    }
    marks m = begin_track(t, own.uuid, known ? 0 : t->process, RANK_THREADS + t->threads.n);
    if (known) {
        size_t mark = sn_proto_begin(&t->out, TRACK_THREAD);
        sn_proto_int64(&t->out, THREAD_PID, t->pid);
        sn_proto_int64(&t->out, THREAD_TID, tid);
        sn_proto_text(&t->out, THREAD_NAME, own.name);
        sn_proto_end(&t->out, mark);
    } else {
        sn_proto_text(&t->out, TRACK_NAME, own.name);
    }
    return end_track(t, m);
}

uint64_t sn_pf_open_counter(sn_pftrace *t, const char *name)
{
    void *found = sn_map_get(&t->counters, name);
    if (found)
        return t->base_uuid + (uintptr_t)found;
    char *key = t->counters.n < MAX_COUNTERS ? sn_arena_strdup(&t->arena, name) : NULL;
    uint64_t number = t->n_uuids + 1;
    if (!key || !sn_map_put(&t->counters, key, (void *)(uintptr_t)number, NULL))
        return 0;
    uint64_t uuid = new_uuid(t);
    marks m = begin_track(t, uuid, t->process, RANK_COUNTERS + t->counters.n);
    sn_proto_text(&t->out, TRACK_NAME, name);
    size_t counter = sn_proto_begin(&t->out, TRACK_COUNTER);
    if (strstr(name, "bytes"))
        sn_proto_varint(&t->out, COUNTER_UNIT, UNIT_BYTES);
    sn_proto_end(&t->out, counter);
    end_track(t, m);
    return uuid;
}

/* ------------------------------------------------------------------ lanes */
static uint64_t end_of(const sn_prof_span *s)
{
    uint64_t end;
    return __builtin_add_overflow(s->start_ns, s->dur_ns, &end) ? UINT64_MAX : end;
}

/* Whether the span lies beside or inside what is open on the lane; a lane that is not `shared`
 * takes one at a time. What comes late, after slices that began later, is what those ran inside: a
 * thread's records nest. */
static bool fits(sn_pf_lane *lane, const sn_prof_span *s, bool shared)
{
    if (s->start_ns < lane->last_start)
        return shared;
    while (lane->ends.n && lane->ends.data[lane->ends.n - 1] <= s->start_ns)
        lane->ends.n--;
    return !lane->ends.n || (shared && end_of(s) <= lane->ends.data[lane->ends.n - 1]);
}

static uint64_t take(sn_pftrace *t, sn_pf_lane *lane, const sn_prof_span *s, uint64_t end)
{
    if (s->start_ns >= lane->last_start) {
        lane->last_start = s->start_ns;
        if (!sn_vec_push(&lane->ends, t->alloc, end))
            return 0;
    }
    return lane->uuid;
}

/* Lanes are named after the first: "user", "user (2)" …; those of an instance are its own. */
static uint64_t place(sn_pftrace *t, sn_pf_lanes *lanes, uint64_t parent, uint64_t rank,
                      const char *name, uint32_t instance, bool shared, const sn_prof_span *s,
                      uint64_t *end)
{
    size_t before = 0;
    *end = end_of(s);
    for (size_t k = 0; k < lanes->list.n; k++) {
        if (lanes->list.data[k].instance != instance)
            continue;
        if (fits(&lanes->list.data[k], s, shared))
            return take(t, &lanes->list.data[k], s, *end);
        before++;
    }
    if (lanes->list.n >= MAX_LANES) {
        sn_pf_lane *last = &lanes->list.data[lanes->list.n - 1];
        if (last->ends.n && last->ends.data[last->ends.n - 1] < *end)
            *end = last->ends.data[last->ends.n - 1];
        *end = *end < s->start_ns ? s->start_ns : *end;
        return take(t, last, s, *end);
    }
    char *numbered = sn_arena_printf(&t->arena, before ? "%s (%zu)" : "%s", name, before + 1);
    sn_pf_lane lane = {.instance = instance};
    if (!numbered || !sn_vec_push(&lanes->list, t->alloc, lane))
        return 0;
    sn_pf_lane *own = &lanes->list.data[lanes->list.n - 1];
    own->uuid = plain_track(t, parent, rank, numbered);
    return take(t, own, s, *end);
}

uint64_t sn_pf_track_of(sn_pftrace *t, const sn_prof_span *s, uint64_t *end_ns)
{
    if (s->cat == SN_CAT_MODEL)
        return place(t, &t->model_lanes, t->process, RANK_MODEL, "model", 0, false, s, end_ns);
    if (s->cat == SN_CAT_ITERATION || s->thread >= t->threads.n) {
        char name[64] = "iteration";
        if (s->instance)
            snprintf(name, sizeof name, "iteration of instance %" PRIu32, s->instance);
        return place(t, &t->iteration_lanes, t->process, RANK_ITERATIONS, name, s->instance, false,
                     s, end_ns);
    }
    sn_pf_thread *thread = &t->threads.data[s->thread];
    if (s->cat == SN_CAT_USER)
        return place(t, &thread->user, thread->uuid, RANK_MODEL, "user", 0, true, s, end_ns);
    return place(t, &thread->work, thread->uuid, RANK_ITERATIONS, thread->name, 0, true, s, end_ns);
}

static void free_lanes(sn_pftrace *t, sn_pf_lanes *lanes)
{
    for (size_t k = 0; k < lanes->list.n; k++)
        sn_vec_free(&lanes->list.data[k].ends, t->alloc);
    sn_vec_free(&lanes->list, t->alloc);
}

void sn_pf_tracks_free(sn_pftrace *t)
{
    for (size_t i = 0; i < t->threads.n; i++) {
        free_lanes(t, &t->threads.data[i].work);
        free_lanes(t, &t->threads.data[i].user);
    }
    sn_vec_free(&t->threads, t->alloc);
    sn_vec_free(&t->tids, t->alloc);
    free_lanes(t, &t->model_lanes);
    free_lanes(t, &t->iteration_lanes);
}
