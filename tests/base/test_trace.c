/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: rings per thread, overflow that drops and counts, names, spans, its own cost. */
#include "base/trace.h"

#include <pthread.h>

#include "test.h"

static sn_allocator allocator;

static sn_trace *make_trace(size_t ring_cap)
{
    sn_trace *t;
    sn_allocator_init_system(&allocator);
    return sn_trace_create(&t, &allocator, ring_cap, NULL) == SONDE_OK ? t : NULL;
}

TEST(a_record_keeps_a_number_of_64_bits)
{
    static const uint64_t numbers[] = {0, 1, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX - 1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sn_trace_rec rec = {.t0 = 1, .t1 = 2, .table = 3, .index = 4, .run = 5, .kind = 6};
        sn_trace_set_number(&rec, numbers[i]);
        CHECK(sn_trace_number(&rec) == numbers[i]);
        CHECK(rec.t0 == 1 && rec.t1 == 2 && rec.table == 3 && rec.index == 4 && rec.run == 5);
        CHECK(rec.kind == 6 && rec.flags == 0);
    }
}

TEST(records_come_back_in_order)
{
    sn_trace *t = make_trace(0);
    sn_trace_ring *r = sn_trace_ring_get(t);
    CHECK(r != NULL && r == sn_trace_ring_get(t));
    for (uint32_t i = 0; i < 10000; i++)
        sn_trace_push(r, &(sn_trace_rec){.t0 = i, .t1 = i + 1, .index = i, .kind = SN_TRACE_STEP});
    CHECK_EQ(r->n, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        CHECK_EQ(r->recs[i].index, i);
    CHECK_EQ(r->dropped, 0);
    CHECK_EQ(r->thread_id, 1);
    CHECK(r->os_tid > 0 && r->thread_name[0]);
    sn_trace_free(t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(a_full_ring_drops_the_newest_and_counts_and_clearing_makes_room)
{
    sn_trace *t = make_trace(10); /* 16: the next power of two */
    sn_trace_ring *r = sn_trace_ring_get(t);
    for (uint32_t i = 0; i < 25; i++)
        sn_trace_push(r, &(sn_trace_rec){.index = i});
    CHECK_EQ(r->n, 16);
    CHECK_EQ(r->dropped, 9);
    CHECK_EQ(r->recs[15].index, 15);
    sn_trace_clear(t);
    CHECK_EQ(r->n, 0);
    CHECK_EQ(r->dropped, 0);
    sn_trace_push(r, &(sn_trace_rec){.index = 77});
    CHECK_EQ(r->recs[0].index, 77);
    sn_trace_free(t);
}

TEST(a_drained_ring_goes_on_in_the_freed_places)
{
    sn_trace *t = make_trace(64);
    sn_trace_ring *r = sn_trace_ring_get(t);
    sn_trace_set_cap(t, 8);
    for (uint32_t i = 0; i < 1000; i++) {
        sn_trace_push(r, &(sn_trace_rec){.index = i});
        if (i % 3 == 2) { /* a reader that takes all there is */
            for (size_t k = r->tail; k < r->n; k++)
                CHECK_EQ(r->recs[k & (r->cap - 1)].index, k);
            atomic_store(&r->tail, r->n);
        }
    }
    CHECK_EQ(r->n, 1000);
    CHECK_EQ(r->dropped, 0);
    for (uint32_t i = 0; i < 20; i++)
        sn_trace_push(r, &(sn_trace_rec){.index = i});
    CHECK_EQ(r->n - r->tail, 8);
    CHECK(r->dropped > 0);
    sn_trace_free(t);
}

TEST(forgetting_frees_the_places_of_what_is_older)
{
    sn_trace *t = make_trace(8);
    sn_trace_ring *r = sn_trace_ring_get(t);
    for (uint32_t i = 1; i <= 8; i++)
        sn_trace_push(r, &(sn_trace_rec){.t0 = i, .t1 = i, .index = i});
    sn_trace_forget(t, 0);
    CHECK_EQ(r->tail, 0);
    sn_trace_forget(t, 6); /* the last that is older stays: who reads backwards stops there */
    CHECK_EQ(r->tail, 4);
    CHECK_EQ(r->recs[r->tail].t1, 5);
    for (uint32_t i = 9; i <= 12; i++)
        sn_trace_push(r, &(sn_trace_rec){.t0 = i, .t1 = i, .index = i});
    CHECK_EQ(r->dropped, 0);
    CHECK_EQ(r->recs[5].t1, 6);
    sn_trace_forget(t, UINT64_MAX);
    CHECK_EQ(r->n - r->tail, 1);
    sn_trace_free(t);
}

static void *record_some(void *arg)
{
    sn_trace *t = arg;
    for (uint32_t i = 0; i < 1000; i++) {
        sn_trace_ring *r = sn_trace_ring_get(t);
        if (r)
            sn_trace_push(r, &(sn_trace_rec){.index = i, .kind = SN_TRACE_USER});
        char name[16];
        snprintf(name, sizeof name, "span %u", i % 50);
        if (sn_trace_name(t, name) == 0)
            return arg;
    }
    return NULL;
}

typedef struct drainer {
    sn_trace *t;
    _Atomic bool stop;
    size_t seen;
    bool in_order;
} drainer;

static void *drain_main(void *arg)
{
    drainer *d = arg;
    unsigned hurries = 0;
    bool last = false;
    while (!last) {
        last = atomic_load(&d->stop);
        for (sn_trace_ring *r = atomic_load(&d->t->rings); r; r = r->next) {
            const size_t n = atomic_load(&r->n);
            for (size_t k = atomic_load(&r->tail); k < n; k++)
                d->in_order &= r->recs[k & (r->cap - 1)].index == d->seen++;
            atomic_store(&r->tail, n);
        }
        sn_trace_drained(d->t);
        if (!last) /* so long that a thread which does not ask would wait a minute */
            sn_trace_drain_wait(d->t, 60000000000u, &d->stop, &hurries);
    }
    return NULL;
}

TEST(a_drainer_that_is_behind_is_waited_for)
{
    enum { RUNS = 2000, STEPS = 30 };
    drainer d = {.t = make_trace(64), .in_order = true};
    sn_trace_ring *r = sn_trace_ring_get(d.t);
    pthread_t thread;
    sn_trace_drain_begin(d.t);
    CHECK_EQ(pthread_create(&thread, NULL, drain_main, &d), 0);
    for (uint32_t i = 0; i < RUNS * STEPS; i++) {
        sn_trace_push(r, &(sn_trace_rec){.index = i});
        if (i % STEPS == STEPS - 1)
            sn_trace_make_room(d.t);
    }
    atomic_store(&d.stop, true);
    sn_trace_drain_hurry(d.t);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    sn_trace_drain_end(d.t);
    CHECK_EQ(d.seen + r->dropped, RUNS * STEPS);
    if (r->gave_up == SIZE_MAX) { /* else the system kept the drainer from running for a second */
        CHECK_EQ(r->dropped, 0);
        CHECK(d.in_order);
    }
    sn_trace_free(d.t);
}

TEST(a_drainer_that_frees_nothing_is_waited_for_once)
{
    sn_trace *t = make_trace(64);
    sn_trace_ring *r = sn_trace_ring_get(t);
    for (uint32_t i = 0; i < 40; i++)
        sn_trace_push(r, &(sn_trace_rec){.index = i});
    sn_trace_make_room(t); /* nobody drains: nothing to wait for */
    CHECK(r->gave_up != 0);
    sn_trace_drain_begin(t);
    sn_trace_make_room(t);
    CHECK_EQ(r->gave_up, 0);
    const unsigned asked = t->drain.hurries;
    sn_trace_make_room(t); /* would ask again */
    CHECK_EQ(t->drain.hurries, asked);
    atomic_store(&r->tail, 3);
    sn_trace_make_room(t); /* something was freed: worth another wait */
    CHECK_EQ(r->gave_up, 3);
    sn_trace_after_fork(t);
    sn_trace_make_room(t);
    CHECK_EQ(t->drain.readers, 0);
    sn_trace_free(t);
}

TEST(every_thread_has_its_own_ring_which_outlives_it)
{
    enum { THREADS = 6 };
    sn_trace *t = make_trace(5000);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, record_some, t) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL);
    }
    int rings = 0;
    unsigned ids = 0;
    for (sn_trace_ring *r = atomic_load(&t->rings); r; r = r->next) {
        CHECK_EQ(r->n, 1000);
        for (uint32_t i = 0; i < 1000; i++)
            CHECK_EQ(r->recs[i].index, i);
        ids |= 1u << r->thread_id;
        rings++;
    }
    CHECK_EQ(rings, THREADS);
    CHECK_EQ(ids, (2u << THREADS) - 2);
    CHECK_EQ(sn_trace_name(t, "new"), 51);
    sn_trace_free(t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(one_thread_may_use_more_recorders_than_it_caches)
{
    sn_trace *t[9];
    for (int i = 0; i < 9; i++)
        t[i] = make_trace(100);
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 9; i++)
            sn_trace_push(sn_trace_ring_get(t[i]), &(sn_trace_rec){.index = (uint32_t)i});
    for (int i = 0; i < 9; i++) {
        sn_trace_ring *r = atomic_load(&t[i]->rings);
        CHECK_EQ(r->n, 10);
        CHECK_EQ(r->recs[9].index, i);
        CHECK(r->next == NULL);
        sn_trace_free(t[i]);
    }
    sn_trace *fresh = make_trace(100); /* may lie where an old one lay; must not find its ring */
    CHECK_EQ(sn_trace_ring_get(fresh)->n, 0);
    sn_trace_free(fresh);
}

TEST(names_are_interned)
{
    sn_trace *t = make_trace(10);
    char name[] = "parse";
    uint32_t id = sn_trace_name(t, name);
    name[0] = 'x';
    CHECK_EQ(id, 1);
    CHECK_EQ(sn_trace_name(t, "parse"), 1);
    CHECK_EQ(sn_trace_name(t, ""), 2);
    CHECK_STR(sn_trace_name_text(t, 1), "parse");
    CHECK_STR(sn_trace_name_text(t, 0), "");
    CHECK_STR(sn_trace_name_text(t, 99), "");
    sn_trace_free(t);
}

TEST(names_without_end_become_shorter)
{
    sn_trace *t = make_trace(64);
    char name[64];
    uint32_t id = 0;
    for (int i = 0; i < 70000; i++) {
        snprintf(name, sizeof name,
                 "decode\x1fio\x1f"
                 "frame %d",
                 i);
        id = sn_trace_name(t, name);
        CHECK(id != 0);
    }
    CHECK(strcmp(sn_trace_name_text(t, id), "decode\x1fio\x1f") == 0);
    CHECK(strcmp(sn_trace_name_text(t, sn_trace_name(t, "decode\x1fio\x1f"
                                                        "frame 7")),
                 "decode\x1fio\x1f"
                 "frame 7") == 0);
    const uint64_t held = allocator.live_bytes;
    for (int i = 0; i < 70000; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK(sn_trace_name(t, name) != 0);
    }
    CHECK(allocator.live_bytes < held + (1 << 20));
    sn_trace_free(t);
}

TEST(spans_are_recorded_from_level_two)
{
    sn_trace *t = make_trace(10);
    for (int level = 0; level <= 3; level++) {
        atomic_store(&t->level, level);
        uint64_t begin = sn_span_begin(t);
        CHECK_EQ(begin != 0, level >= 2);
        sn_span_end(t, begin, "load", level == 3 ? "model.onnx" : NULL);
    }
    sn_trace_ring *r = sn_trace_ring_get(t);
    CHECK_EQ(r->n, 2);
    CHECK_EQ(r->recs[0].kind, SN_TRACE_EXEC);
    CHECK_EQ(r->recs[0].run, 0);
    CHECK(r->recs[0].t1 >= r->recs[0].t0);
    CHECK_STR(sn_trace_name_text(t, r->recs[0].index), "load");
    CHECK_STR(sn_trace_name_text(t, r->recs[1].index), "load: model.onnx");
    sn_trace_free(t);
}

TEST(the_recorder_knows_its_own_cost)
{
    sn_trace *t = make_trace(10);
    sn_trace_measure_cost(t);
    CHECK_MSG(t->record_ns > 0 && t->record_ns < 1e9, "%g ns", t->record_ns);
    CHECK(atomic_load(&t->rings) == NULL);
    sn_trace_free(t);
    CHECK_EQ(allocator.live_bytes, 0);
}

TEST(every_failing_allocation_is_survived)
{
    for (size_t limit = 1; limit < 20000; limit += 64) {
        sn_allocator_init_system(&allocator);
        allocator.limit_bytes = limit;
        sn_trace *t = NULL;
        sonde_error err = {0};
        if (sn_trace_create(&t, &allocator, 10, &err) == SONDE_OK) {
            atomic_store(&t->level, 3);
            sn_span_end(t, sn_span_begin(t), "a", "b");
            sn_trace_measure_cost(t);
        } else {
            CHECK_EQ(err.status, SONDE_OUT_OF_MEMORY);
        }
        sn_trace_free(t);
        CHECK_EQ(allocator.live_bytes, 0);
    }
    sn_trace *huge = make_trace(SIZE_MAX / 8);
    CHECK(sn_trace_ring_get(huge) == NULL);
    sn_trace_free(huge);
}

TEST_MAIN()
