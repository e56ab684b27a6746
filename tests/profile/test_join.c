/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of several workers as one. */
#include "profile/join.h"

#include "failing_alloc.h"
#include "profile/workers.h"
#include "test.h"

#define T0 UINT64_C(1700000000000000000)

static const worker_of first = {.host = "a",
                                .worker = "1",
                                .version = "3",
                                .pid = 7,
                                .wall_ns = T0 + 500,
                                .runs = 4,
                                .conv_ns = 1000,
                                .matmul_ns = 501,
                                .record_ns = 10,
                                .dropped = 2};
static const worker_of second = {.host = "b",
                                 .worker = "1",
                                 .version = "3",
                                 .pid = 7,
                                 .wall_ns = T0,
                                 .runs = 3,
                                 .conv_ns = 2000,
                                 .matmul_ns = 700,
                                 .record_ns = 40,
                                 .dropped = 5};

static sn_profile *joined(sn_allocator *alloc, const worker_of *const *list, size_t n,
                          sonde_error *err)
{
    sn_profile *all = NULL;
    sonde_status st = sn_profile_new(&all, alloc, err);
    for (size_t i = 0; i < n && st == SONDE_OK; i++)
        st = sn_profile_join(all, make_worker(alloc, list[i]), err);
    if (st == SONDE_OK)
        st = sn_profile_join_end(all, err);
    if (st == SONDE_OK)
        st = sn_profile_check(all, err);
    if (st != SONDE_OK) {
        sn_profile_free(all);
        return NULL;
    }
    return all;
}

TEST(a_joined_profile_has_the_tables_of_all_on_one_line_of_time)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *all = joined(failing_init(&m), (const worker_of *[]){&first, &second}, 2, &err);
    CHECK_MSG(all, "%s", err.message);
    CHECK_EQ(all->workers.n, 2);
    CHECK_EQ(all->steps.n, 4);
    CHECK_EQ(all->threads_seen.n, 4);
    CHECK_STR(all->threads_seen.data[2].name, "b / 1: main");
    CHECK_EQ(all->threads_seen.data[2].worker, 1);
    CHECK(all->start_wall_ns == T0);
    CHECK_EQ(all->workers.data[0].offset_ns, 500);
    CHECK_EQ(all->workers.data[1].offset_ns, 0);
    CHECK_EQ(all->spans.n, 3 * (5 + 4));
    CHECK_EQ(all->spans.data[0].thread, 2); /* the second began earlier */
    CHECK_EQ(all->spans.data[0].start_ns, 0);
    CHECK_EQ(all->dropped, 7);
    CHECK_STR(all->model_name, "tiny");
    CHECK_EQ(all->cores, 4);
    CHECK(all->record_ns == 25);
    CHECK_STR(sn_labels_get(&all->labels, "version"), "3"); /* of both */
    CHECK_STR(sn_labels_get(&all->labels, "worker"), "1");
    CHECK_STR(sn_labels_get(&all->labels, "host"), "");
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST(figures_of_a_joined_profile_are_the_sums_of_its_parts)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_prof_summary whole, part;
    sn_profile *all = joined(failing_init(&m), (const worker_of *[]){&first, &second}, 2, &err);
    CHECK_MSG(all, "%s", err.message);
    CHECK_OK(sn_profile_summarise(all, SN_BY_OP, &whole, &err));
    CHECK_EQ(whole.iterations, 7);
    CHECK_EQ(whole.warmups, 2);
    CHECK_EQ(whole.instances, 2);
    double total = 0, conv = 0;
    for (size_t k = 0; k < 2; k++) {
        CHECK_OK(sn_profile_summarise(all->workers.data[k].part, SN_BY_OP, &part, &err));
        total += part.wall_ns.mean * (double)part.iterations;
        for (size_t i = 0; i < part.rows.n; i++)
            if (strcmp(part.rows.data[i].name, "Conv") == 0)
                conv += part.rows.data[i].mean_ns * (double)part.iterations;
        sn_prof_summary_free(&part);
    }
    CHECK_EQ(llround(whole.wall_ns.mean * 7), llround(total));
    for (size_t i = 0; i < whole.rows.n; i++)
        if (strcmp(whole.rows.data[i].name, "Conv") == 0)
            CHECK_EQ(llround(whole.rows.data[i].mean_ns * 7), llround(conv));
    sn_prof_summary_free(&whole);
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST(counters_of_a_joined_profile_are_sums_over_its_workers)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_allocator *alloc = failing_init(&m);
    sn_profile *all = NULL;
    const struct {
        uint64_t at;
        double value;
    } live[2][3] = {{{0, 10}, {2000, 30}, {4000, 0}}, {{1000, 5}, {3000, 0}, {5000, 7}}};
    CHECK_OK(sn_profile_new(&all, alloc, &err));
    for (int k = 0; k < 2; k++) {
        worker_of w = k ? second : first;
        w.wall_ns = T0;
        sn_profile *p = make_worker(alloc, &w);
        for (int i = 0; i < 3; i++) {
            const sn_prof_counter c = {live[k][i].at, SN_COUNTER_LIVE, live[k][i].value,
                                       i ? UINT32_MAX : 1};
            CHECK(sn_vec_push(&p->counters, alloc, c));
        }
        CHECK_OK(sn_profile_join(all, p, &err));
    }
    CHECK_OK(sn_profile_join_end(all, &err));
    CHECK_OK(sn_profile_check(all, &err));
    const double sums[] = {10, 15, 35, 30, 0, 7};
    CHECK_EQ(all->counters.n, 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_EQ(all->counters.data[i].at_ns, i * 1000);
        CHECK_EQ(all->counters.data[i].value, sums[i]);
    }
    CHECK_EQ(all->counters.data[1].step, 3); /* step 1 of the second worker */
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST(what_workers_do_not_have_in_common_is_not_said_of_all)
{
    failing_alloc m;
    sonde_error err = {0};
    worker_of other = second;
    other.model = "big";
    sn_allocator *alloc = failing_init(&m);
    sn_profile *all = NULL, *p = make_worker(alloc, &other);
    p->cpu_model = "Another CPU";
    p->peak_gops[SN_ARITH_F32] = 100;
    p->note = "cut";
    p->start_wall_ns = 0; /* not known */
    CHECK_OK(sn_profile_new(&all, alloc, &err));
    CHECK_OK(sn_profile_join(all, make_worker(alloc, &first), &err));
    CHECK_OK(sn_profile_join(all, p, &err));
    CHECK_OK(sn_profile_join_end(all, &err));
    CHECK_STR(all->model_name, "tiny, big");
    CHECK_STR(all->cpu_model, "several");
    CHECK(all->peak_gops[SN_ARITH_F32] == 0);
    CHECK_HAS(all->note, "1 of 2 joined profiles are incomplete; the first: cut");
    CHECK(all->start_wall_ns == T0 + 500);
    CHECK_EQ(all->workers.data[1].offset_ns, 0);
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST(numbers_that_would_overflow_are_refused)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_allocator *alloc = failing_init(&m);
    sn_profile *all = NULL;
    CHECK_OK(sn_profile_new(&all, alloc, &err));
    sn_profile *p = make_worker(alloc, &first), *q = make_worker(alloc, &second);
    p->spans.data[0].run = q->spans.data[0].run = UINT32_MAX - 2;
    CHECK_OK(sn_profile_join(all, p, &err));
    CHECK_EQ(sn_profile_join(all, q, &err), SONDE_LIMIT);
    CHECK_HAS(err.message, "too many runs");
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST(times_far_apart_stay_within_their_bounds)
{
    failing_alloc m;
    sonde_error err = {0};
    worker_of old = first;
    old.wall_ns = 1; /* 1970 */
    sn_profile *all = joined(failing_init(&m), (const worker_of *[]){&old, &second}, 2, &err);
    CHECK_MSG(all, "%s", err.message);
    CHECK(all->spans.data[all->spans.n - 1].start_ns == SN_PROF_MAX_NS);
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST(every_failing_allocation_is_told)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *all = NULL;
    failing_init(&m);
    for (long at = 0; !all; at++) {
        sn_profile *a, *b;
        failing_init(&m);
        a = make_worker(&m.a, &first);
        b = make_worker(&m.a, &second);
        const sn_prof_counter c = {5, SN_COUNTER_LIVE, 1, UINT32_MAX};
        CHECK(sn_vec_push(&a->counters, &m.a, c));
        m.calls = 0;
        m.fail_at = at;
        sonde_status st = sn_profile_new(&all, &m.a, &err);
        if (st == SONDE_OK)
            st = sn_profile_join(all, a, &err);
        else
            sn_profile_free(a);
        if (st == SONDE_OK)
            st = sn_profile_join(all, b, &err);
        else
            sn_profile_free(b);
        if (st == SONDE_OK)
            st = sn_profile_join_end(all, &err);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        if (st != SONDE_OK) {
            sn_profile_free(all);
            all = NULL;
            CHECK_EQ(m.live, 0);
        }
    }
    sn_profile_free(all);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
