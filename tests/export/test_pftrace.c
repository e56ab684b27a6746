/* SPDX-License-Identifier: Apache-2.0 */
/* The Perfetto trace as bytes: whole packets, slices that nest on every track, events streamed one
 * by one with flat memory. That Perfetto agrees is shown by tests/python/test_perfetto.py. */
#include "base/wire.h"
#include "export/memory_sink.h"
#include "export/pftrace_stream.h"
#include "profile/pftrace_fields.h"
#include "test.h"

typedef struct event {
    uint64_t at, type, track;
} event;

typedef struct events {
    event *all;
    size_t n, packets, records;
} events;

/* Every packet of the trace; false when one is broken. */
static bool read_events(const char *data, size_t bytes, events *out)
{
    sn_wire trace = sn_wire_of(data, bytes);
    sn_field packet, f, part;
    sn_wire_status st;
    *out = (events){.all = malloc((bytes + 1) * sizeof(event))};
    while ((st = sn_wire_next(&trace, &packet)) == SN_WIRE_FIELD) {
        event e = {0};
        if (packet.tag != SN_LEN(SN_PF_TRACE_PACKET))
            return false;
        out->packets++;
        while ((st = sn_wire_next(&packet.body, &f)) == SN_WIRE_FIELD) {
            if (f.tag == SN_INT(SN_PF_PACKET_TIMESTAMP))
                e.at = f.num;
            out->records += f.tag == SN_LEN(SN_PF_PACKET_RECORD);
            if (f.tag != SN_LEN(SN_PF_PACKET_TRACK_EVENT))
                continue;
            while ((st = sn_wire_next(&f.body, &part)) == SN_WIRE_FIELD) {
                if (part.tag == SN_INT(9))
                    e.type = part.num;
                if (part.tag == SN_INT(11))
                    e.track = part.num;
            }
            if (st == SN_WIRE_BROKEN)
                return false;
        }
        if (st == SN_WIRE_BROKEN)
            return false;
        if (e.type)
            out->all[out->n++] = e;
    }
    return st == SN_WIRE_END;
}

/* As a viewer does it: in order of time, on each track an end closes what began last. True when
 * every begin found its own end, which stands right behind it in the file. */
static bool slices_nest(const events *in)
{
    size_t *order = malloc((in->n + 1) * sizeof *order), *open = malloc((in->n + 1) * sizeof *open);
    for (size_t i = 0; i < in->n; i++) { /* stable */
        size_t k = i;
        for (; k > 0 && in->all[order[k - 1]].at > in->all[i].at; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    size_t depth = 0;
    bool good = true;
    for (size_t i = 0; i < in->n && good; i++) {
        const event *e = &in->all[order[i]];
        if (e->type == 1)
            open[depth++] = order[i];
        if (e->type != 2)
            continue;
        size_t k = depth;
        while (k > 0 && in->all[open[k - 1]].track != e->track)
            k--;
        good = k > 0 && in->all[open[k - 1] + 1].at == e->at;
        if (good)
            memmove(&open[k - 1], &open[k], (--depth - (k - 1)) * sizeof *open);
    }
    free(order);
    free(open);
    return good && depth == 0;
}

TEST(a_trace_is_whole_packets_with_nested_slices)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    events e;
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK_OK(sn_exporter_for_path("x.pftrace")->write(p, memory_sink_init(&out), &err));
    CHECK(read_events(out.text, out.n, &e));
    CHECK_EQ(e.n, 2 * p->spans.n + 1); /* and the facts */
    CHECK_EQ(e.records, p->spans.n + p->steps.n + p->threads_seen.n + 2);
    CHECK(slices_nest(&e));
    free(e.all);
    free(out.text);
    sn_profile_free(p);
}

/* Any spans: overlapping, nested, empty, at the same time, on threads that do not exist. */
TEST(spans_that_overlap_get_lanes_of_their_own)
{
    for (int round = 0; round < 200; round++) {
        failing_alloc m;
        sonde_error err = {0};
        memory_sink out;
        events e;
        sn_profile *p = syn_profile(failing_init(&m));
        uint64_t at = 0;
        size_t n = test_rand() % 40;
        for (size_t i = 0; i < n; i++) {
            at += test_rand() % 3;
            sn_prof_span *s =
                syn_span(p, (sn_prof_cat)(test_rand() % SN_CAT_COUNT), 0, at, test_rand() % 6, "x");
            s->thread = (uint32_t)(test_rand() % 3);
        }
        CHECK_OK(sn_exporter_for_path("x.pftrace")->write(p, memory_sink_init(&out), &err));
        CHECK(read_events(out.text, out.n, &e));
        CHECK_EQ(e.n, 2 * n + 1);
        CHECK(slices_nest(&e));
        free(e.all);
        free(out.text);
        sn_profile_free(p);
    }
}

TEST(a_stream_is_readable_after_every_flush)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    events e;
    sn_pftrace *t = NULL;
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK_OK(sn_pftrace_open(&t, memory_sink_init(&out), p, &m.a, &err));
    CHECK(sn_pftrace_flush(t));
    for (size_t i = 0; i < p->threads_seen.n; i++)
        CHECK(sn_pftrace_thread(t, &p->threads_seen.data[i]));
    for (size_t i = 0; i < p->steps.n; i++)
        CHECK(sn_pftrace_step(t, &p->steps.data[i]));
    for (size_t i = 0; i < p->spans.n; i++) {
        CHECK(sn_pftrace_slice(t, &p->spans.data[i], 0) && sn_pftrace_flush(t));
        CHECK(read_events(out.text, out.n, &e));
        CHECK_EQ(e.n, 2 * (i + 1) + 1);
        free(e.all);
    }
    CHECK_OK(sn_pftrace_close(t, p, &err));
    CHECK(read_events(out.text, out.n, &e));
    CHECK(slices_nest(&e));
    free(e.all);
    free(out.text);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

static bool count_bytes(sn_sink *sink, const void *data, size_t bytes)
{
    (void)data;
    *(size_t *)sink->user += bytes;
    return true;
}

/* Events leave as they come: a million of them takes no more memory than a thousand. */
TEST(memory_stays_flat)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_pftrace *t = NULL;
    size_t bytes = 0, held = 0;
    sn_sink sink = {.write = count_bytes, .user = &bytes};
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK_OK(sn_pftrace_open(&t, &sink, p, &m.a, &err));
    for (size_t i = 0; i < p->threads_seen.n; i++)
        CHECK(sn_pftrace_thread(t, &p->threads_seen.data[i]));
    for (size_t i = 0; i < p->steps.n; i++)
        CHECK(sn_pftrace_step(t, &p->steps.data[i]));
    for (size_t k = 0; k < 100000; k++) {
        sn_prof_span s = p->spans.data[k % p->spans.n];
        s.id = (uint32_t)k + 1;
        s.start_ns += k / p->spans.n * 60 * MS;
        CHECK(sn_pftrace_slice(t, &s, 0));
        if (k == 1000)
            held = atomic_load(&m.a.live_bytes);
    }
    CHECK_MSG(atomic_load(&m.a.live_bytes) <= held + 4096, "%zu bytes, then %zu", held,
              atomic_load(&m.a.live_bytes));
    CHECK_OK(sn_pftrace_close(t, NULL, &err));
    CHECK(bytes > 100000 * 100u);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST(every_failing_allocation_of_an_export_is_told)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    long live = m.live;
    for (long fail = 0; fail < 100000; fail++) {
        sonde_error err = {0};
        memory_sink out;
        m.calls = 0;
        m.fail_at = fail;
        sonde_status st = sn_exporter_for_path("x.pftrace")->write(p, memory_sink_init(&out), &err);
        free(out.text);
        CHECK_EQ(m.live, live);
        if (st == SONDE_OK)
            break;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
    sn_profile_free(p);
}

TEST_MAIN()
