/* SPDX-License-Identifier: Apache-2.0 */
/* A trace with several profiles in it: read as one, one by one, cut and damaged. */
#include "export/no_page.h"
#include "profile/join.h"
#include "profile_readers/parts.h"
#include "profile_readers/round_trip.h"
#include "test.h"

/* Three workers: one with something in every table, and two small ones. */
static sn_profile *joined(sn_allocator *alloc)
{
    sonde_error err = {0};
    sn_profile *all = NULL;
    sonde_status st = sn_profile_new(&all, alloc, &err);
    for (int k = 0; k < 3 && st == SONDE_OK; k++) {
        sn_profile *p = k == 1 ? rich_profile(alloc) : syn_tiny(alloc);
        p->start_wall_ns += (uint64_t)k * 12345;
        if (k == 2)
            p->note = "it was cut";
        st = sn_profile_join(all, p, &err);
    }
    if (st != SONDE_OK || sn_profile_join_end(all, &err) || sn_profile_check(all, &err))
        abort();
    return all;
}

static void write_joined(sn_allocator *alloc, memory_sink *out)
{
    sonde_error err = {0};
    sn_profile *all = joined(alloc);
    if (sn_exporter_for_path("x.pftrace")->write(all, memory_sink_init(out), &err) != SONDE_OK)
        abort();
    sn_profile_free(all);
}

TEST(a_joined_trace_comes_back_as_it_was)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = joined(failing_init(&m)), *q = NULL;
    CHECK_OK(sn_exporter_for_path("x.pftrace")->write(p, memory_sink_init(&out), &err));
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    CHECK_EQ(q->workers.n, 3);
    CHECK_STR(q->workers.data[2].part->note, "it was cut");
    CHECK(same_origin(q->workers.data[1].part, p->workers.data[1].part));
    /* What is made of it is the same, letter by letter. */
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        memory_sink first, second;
        if (is_missing(row))
            continue;
        CHECK_OK(row->write(p, memory_sink_init(&first), &err));
        CHECK_OK(row->write(q, memory_sink_init(&second), &err));
        CHECK_MSG(first.n == second.n && memcmp(first.text, second.text, first.n) == 0, "%s",
                  row->suffix);
        free(first.text);
        free(second.text);
    }
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(the_profiles_of_a_trace_are_read_one_by_one)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = NULL;
    write_joined(failing_init(&m), &out);
    for (int facts_only = 0; facts_only < 2; facts_only++) {
        sn_profile_parts parts = {.data = out.text,
                                  .bytes = out.n,
                                  .row = sn_profile_reader_of(out.text, out.n, "x", &err),
                                  .alloc = &m.a,
                                  .facts_only = facts_only};
        size_t end = 0;
        for (int k = 0; k < 3; k++) {
            CHECK_OK(sn_profile_parts_next(&parts, &p, &err));
            CHECK_MSG(p, "profile %d is missing", k);
            CHECK_EQ(parts.last.from, end);
            CHECK_EQ(p->spans.n != 0, !facts_only);
            CHECK_EQ(p->labels.list.n, k == 1 ? 3 : 0);
            end = parts.last.to;
            sn_profile_free(p);
        }
        CHECK_EQ(end, out.n);
        CHECK_OK(sn_profile_parts_next(&parts, &p, &err));
        CHECK(!p && !parts.cut);
    }
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(a_joined_trace_that_was_cut_is_read_up_to_there)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    size_t before = 0, most = 0;
    write_joined(failing_init(&m), &out);
    for (size_t n = 0; n < out.n; n += 7) {
        sn_profile *p = NULL;
        if (sn_profile_read_bytes(out.text, n, "x", &m.a, &p, &err) != SONDE_OK) {
            CHECK(before == 0);
            continue;
        }
        CHECK_MSG(*p->note, "nothing is missing at %zu of %zu bytes", n, out.n);
        CHECK(p->spans.n >= before);
        before = p->spans.n;
        most = p->workers.n > most ? p->workers.n : most;
        sn_profile_free(p);
    }
    CHECK_EQ(most, 3);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(changed_bytes_do_no_harm)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out, text;
    uint64_t random = 42;
    write_joined(failing_init(&m), &out);
    for (int round = 0; round < 600; round++) {
        sn_profile *p = NULL;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        char *at = &out.text[(random >> 33) % out.n];
        const char was = *at;
        *at = (char)(*at ^ (char)(1 << (random >> 60 & 7)));
        if (sn_profile_read_bytes(out.text, out.n, "x", &m.a, &p, &err) == SONDE_OK) {
            (void)sn_exporter_for_path("x.md")->write(p, memory_sink_init(&text), &err);
            free(text.text);
            sn_profile_free(p);
        }
        *at = was;
    }
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(traces_put_together_by_hand_are_read_too)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m)), *q = NULL;
    memory_sink_init(&out);
    for (int k = 0; k < 2; k++)
        CHECK_OK(sn_exporter_for_path("x.pftrace")->write(p, &out.sink, &err));
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    CHECK_EQ(q->workers.n, 2);
    CHECK_EQ(q->spans.n, 2 * p->spans.n);
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(too_many_traces_in_a_file_are_refused)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out, all;
    failing_init(&m);
    sn_profile *p = syn_profile(&m.a), *q = NULL;
    CHECK_OK(sn_exporter_for_path("x.pftrace")->write(p, memory_sink_init(&out), &err));
    memory_sink_init(&all);
    for (int k = 0; k <= SN_PROFILE_PARTS_MOST; k++)
        CHECK(memory_sink_write(&all.sink, out.text, out.n));
    CHECK_EQ(sn_profile_read_bytes(all.text, all.n, "x", &m.a, &q, &err), SONDE_LIMIT);
    CHECK_HAS(err.message, "more than 16384 traces");
    sn_profile_free(p);
    free(out.text);
    free(all.text);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
