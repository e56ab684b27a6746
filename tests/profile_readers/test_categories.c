/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of some categories: what is not asked for is not there, and who reads it is told. */
#include "profile_readers/round_trip.h"
#include "test.h"

static const char *const formats[] = {"x.json", "x.pftrace"};

static size_t count(const sn_profile *p, sn_prof_cat c)
{
    size_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        n += p->spans.data[i].cat == c;
    return n;
}

/* What is left of `p` after a trip through the format. */
static sn_profile *saved(const sn_profile *p, const char *format)
{
    sonde_error err = {0};
    memory_sink out;
    sn_profile *q = NULL;
    if (sn_exporter_for_path(format)->write(p, memory_sink_init(&out), &err) != SONDE_OK ||
        sn_profile_read_bytes(out.text, out.n, format, p->alloc, &q, &err) != SONDE_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    free(out.text);
    return q;
}

TEST(every_category_can_be_had_alone)
{
    for (size_t f = 0; f < 2; f++) {
        for (int c = 0; c < SN_CAT_COUNT; c++) {
            failing_alloc m;
            sn_profile *p = rich_profile(failing_init(&m));
            p->categories = 1u << c;
            sn_profile *q = saved(p, formats[f]);
            CHECK_MSG(q->spans.n == count(p, (sn_prof_cat)c), "%s %s: %zu spans", formats[f],
                      sn_prof_cat_name((sn_prof_cat)c), q->spans.n);
            CHECK_EQ(count(q, (sn_prof_cat)c), q->spans.n);
            CHECK_EQ(q->counters.n, c == SN_CAT_MEMORY ? p->counters.n : 0);
            CHECK_EQ(q->categories, 1u << c);
            CHECK_HAS(q->note, "the file contains only spans of these categories: ");
            CHECK_HAS(q->note, sn_prof_cat_name((sn_prof_cat)c));
            CHECK(same_machine(p, q));
            sn_profile_free(p);
            sn_profile_free(q);
            CHECK_EQ(m.live, 0);
        }
    }
}

/* Whatever a program calls its own category, it is one of the user's, and comes back. */
TEST(a_scope_keeps_its_own_category)
{
    static const char *const own[] = {"io", "a,b", "say \"hi\" \\", "operator", "iteration", "\n"};
    enum { OWN = sizeof own / sizeof own[0] };
    for (size_t f = 0; f < 2; f++) {
        failing_alloc m;
        sn_profile *p = syn_tiny(failing_init(&m));
        for (size_t k = 0; k < OWN; k++) {
            sn_prof_span *s =
                syn_span(p, SN_CAT_USER, 0, (100 + k) * UINT64_C(1000000), 1000, "scope");
            s->category = own[k];
        }
        p->categories = 1u << SN_CAT_USER;
        sn_profile *q = saved(p, formats[f]);
        CHECK_EQ(count(q, SN_CAT_USER), OWN);
        CHECK_EQ(q->spans.n, OWN);
        for (size_t k = 0; k < OWN && k < q->spans.n; k++)
            CHECK_STR(sn_prof_span_category(&q->spans.data[k]), own[k]);
        sn_profile_free(p);
        sn_profile_free(q);
        CHECK_EQ(m.live, 0);
    }
}

TEST(iterations_and_operators_are_enough_for_the_table)
{
    for (size_t f = 0; f < 2; f++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_profile *p = rich_profile(failing_init(&m));
        p->categories = 1u << SN_CAT_ITERATION | 1u << SN_CAT_OPERATOR | 1u << SN_CAT_MEMORY;
        sn_profile *q = saved(p, formats[f]);
        memory_sink first, second;
        const sn_table_options plain = {0};
        CHECK(q->spans.n < p->spans.n);
        /* A recorder's cost depends on what it wrote; here it is none. */
        p->record_ns = q->record_ns = 0;
        CHECK_OK(sn_export_table(p, &plain, memory_sink_init(&first), &err));
        CHECK_OK(sn_export_table(q, &plain, memory_sink_init(&second), &err));
        CHECK_STR(second.text, first.text);
        free(first.text);
        free(second.text);
        sn_profile_free(p);
        sn_profile_free(q);
    }
}

TEST(tables_are_made_of_all_spans)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = rich_profile(failing_init(&m));
    static const char *const others[] = {"x.txt",   "x.md",     "x.csv",         "x.xlsx",
                                         "x.pb.gz", "x.folded", "x.summary.json"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        memory_sink all, some;
        p->categories = 0;
        CHECK_OK(sn_exporter_for_path(others[k])->write(p, memory_sink_init(&all), &err));
        p->categories = 1u << SN_CAT_USER;
        CHECK_OK(sn_exporter_for_path(others[k])->write(p, memory_sink_init(&some), &err));
        CHECK_MSG(all.n == some.n && memcmp(all.text, some.text, all.n) == 0, "%s", others[k]);
        free(all.text);
        free(some.text);
    }
    sn_profile_free(p);
}

TEST_MAIN()
