/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of many profiles: rows that add up to the nanosecond, and stragglers. */
#include "profile/fleet.h"

#include "failing_alloc.h"
#include "profile/workers.h"
#include "test.h"

#define T0 UINT64_C(1700000000000000000)

static sonde_status add(sn_fleet *f, const worker_of *w, sonde_error *err)
{
    sn_profile *p = make_worker(f->alloc, w);
    const sonde_status st = sn_fleet_add(f, p, err);
    sn_profile_free(p);
    return st;
}

/* Worker k of a host: so many runs of so many ns. */
static worker_of plain(const char *host, const char *worker, unsigned runs, uint64_t conv_ns)
{
    return (worker_of){.host = host,
                       .worker = worker,
                       .version = "1",
                       .pid = 100,
                       .wall_ns = T0,
                       .runs = runs,
                       .conv_ns = conv_ns,
                       .matmul_ns = 1000,
                       .record_ns = 33.5};
}

TEST(rows_add_up_to_the_nanosecond)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_fleet f;
    sn_fleet_rows rows;
    sn_fleet_init(&f, failing_init(&m));
    const struct {
        const char *host, *worker;
        unsigned runs;
        uint64_t conv_ns, dropped;
    } all[] = {{"b", "10", 7, 12345, 3}, {"a", "2", 5, 777, 0}, {"b", "9", 11, 31337, 4}};
    uint64_t runs = 0, ns = 0, dropped = 0;
    for (size_t i = 0; i < 3; i++) {
        worker_of w = plain(all[i].host, all[i].worker, all[i].runs, all[i].conv_ns);
        w.dropped = all[i].dropped;
        CHECK_OK(add(&f, &w, &err));
        runs += all[i].runs;
        ns += all[i].runs * (all[i].conv_ns + 1000);
        dropped += all[i].dropped;
    }
    for (int by = 0; by < 3; by++) {
        uint64_t got_runs = 0, got_ns = 0, got_dropped = 0, operators = 0;
        double share = 0;
        CHECK_OK(sn_fleet_rows_of(&f, (sn_fleet_by)by, &rows, &err));
        CHECK_EQ(rows.list.n, by == 0 ? 2 : by == 1 ? 3 : 1);
        for (size_t i = 0; i < rows.list.n; i++) {
            got_runs += rows.list.data[i].runs;
            got_ns += rows.list.data[i].operator_ns;
            got_dropped += rows.list.data[i].dropped;
            operators += rows.list.data[i].operators;
            share += rows.list.data[i].share;
        }
        CHECK_EQ(got_runs, runs);
        CHECK_EQ(got_ns, ns);
        CHECK_EQ(got_dropped, dropped);
        CHECK_EQ(operators, 2 * runs);
        CHECK(fabs(share - 1) < 1e-12);
        sn_fleet_rows_free(&rows);
    }
    CHECK_OK(sn_fleet_rows_of(&f, SN_FLEET_WORKER, &rows, &err));
    CHECK_STR(rows.list.data[1].worker, "9"); /* before 10 */
    CHECK_STR(rows.list.data[2].worker, "10");
    CHECK(rows.list.data[0].wall_ns.p50 < 777 + 1000 + 100); /* without the recorder's cost */
    sn_fleet_rows_free(&rows);
    sn_fleet_free(&f);
    CHECK_EQ(m.live, 0);
}

TEST(throughput_counts_from_the_first_start_to_the_last_end_of_all)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_fleet f;
    sn_fleet_rows rows;
    sn_fleet_init(&f, failing_init(&m));
    worker_of a = plain("a", "1", 10, 998900), b = plain("a", "2", 10, 998900); /* 1 ms each */
    b.wall_ns += 10 * MS;
    CHECK_OK(add(&f, &a, &err));
    CHECK_OK(add(&f, &b, &err));
    CHECK_OK(sn_fleet_rows_of(&f, SN_FLEET_HOST, &rows, &err));
    CHECK_EQ(rows.list.n, 1);
    CHECK_EQ(rows.list.data[0].profiles, 2);
    CHECK_STR(rows.list.data[0].worker, ""); /* they differ */
    CHECK_EQ(llround(rows.list.data[0].runs_per_s), 1000);
    sn_fleet_rows_free(&rows);
    CHECK_OK(sn_fleet_rows_of(&f, SN_FLEET_WORKER, &rows, &err));
    CHECK_EQ(llround(rows.list.data[0].runs_per_s), 1000);
    sn_fleet_rows_free(&rows);
    sn_fleet_free(&f);
    CHECK_EQ(m.live, 0);
}

TEST(a_worker_that_is_slower_than_its_peers_is_named_with_its_operator)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_fleet f;
    sn_fleet_stragglers s;
    sn_fleet_init(&f, failing_init(&m));
    for (uint64_t k = 0; k < 6; k++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", (int)k);
        worker_of w = plain("host", name, 20, 100000 + 500 * k);
        if (k == 3)
            w.matmul_ns = 31000; /* it, not Conv, takes 30 % longer */
        CHECK_OK(add(&f, &w, &err));
    }
    CHECK_OK(sn_fleet_find_stragglers(&f, &s, &err));
    CHECK_EQ(s.list.n, 1);
    CHECK_STR(s.list.data[0].worker, "w3");
    CHECK_STR(s.list.data[0].op, "MatMul");
    CHECK(s.list.data[0].op_ns > 29000 && s.list.data[0].op_usual_ns < 1100);
    CHECK_EQ(s.list.data[0].peers, 6);
    CHECK_EQ(s.compared, 6);
    CHECK_EQ(s.uncompared, 0);
    sn_fleet_stragglers_free(&s);
    sn_fleet_free(&f);
    CHECK_EQ(m.live, 0);
}

/* A worker that wrote three traces of four runs has twelve runs, and is no peer of itself. */
TEST(traces_of_one_worker_are_compared_as_one)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_fleet f;
    sn_fleet_stragglers s;
    sn_fleet_init(&f, failing_init(&m));
    for (unsigned k = 0; k < 12; k++) {
        char name[8];
        snprintf(name, sizeof name, "w%u", k % 4);
        const worker_of w = plain("host", name, 4, k % 4 == 2 ? 570000 : 100000 + 500 * k);
        CHECK_OK(add(&f, &w, &err));
    }
    CHECK_OK(sn_fleet_find_stragglers(&f, &s, &err));
    CHECK_EQ(s.list.n, 1);
    CHECK_STR(s.list.data[0].worker, "w2");
    CHECK_STR(s.list.data[0].op, "Conv");
    CHECK_EQ(s.list.data[0].peers, 4);
    CHECK_EQ(s.compared, 4);
    CHECK_EQ(s.uncompared, 0);
    sn_fleet_stragglers_free(&s);
    sn_fleet_free(&f);
    CHECK_EQ(m.live, 0);
    sn_fleet_init(&f, failing_init(&m));
    for (unsigned k = 0; k < 6; k++) {
        const worker_of w = plain("host", "alone", 20, k == 5 ? 900000 : 100000);
        CHECK_OK(add(&f, &w, &err));
    }
    CHECK_OK(sn_fleet_find_stragglers(&f, &s, &err));
    CHECK_EQ(s.list.n, 0);
    CHECK_EQ(s.compared, 0);
    CHECK_EQ(s.uncompared, 1);
    sn_fleet_stragglers_free(&s);
    sn_fleet_free(&f);
    CHECK_EQ(m.live, 0);
}

/* Medians of so many workers, in percent; the names of stragglers. */
static size_t stragglers_of(const unsigned *percent, size_t n, unsigned runs, const char *version,
                            char *names)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_fleet f;
    sn_fleet_stragglers s;
    sn_fleet_init(&f, failing_init(&m));
    *names = 0;
    for (size_t k = 0; k < n; k++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", k);
        worker_of w = plain("host", name, runs, 1000 * percent[k]);
        w.version = version && k ? version : "1";
        if (add(&f, &w, &err) != SONDE_OK)
            abort();
    }
    if (sn_fleet_find_stragglers(&f, &s, &err) != SONDE_OK)
        abort();
    for (size_t i = 0; i < s.list.n; i++)
        strcat(names, s.list.data[i].worker);
    const size_t uncompared = s.uncompared;
    sn_fleet_stragglers_free(&s);
    sn_fleet_free(&f);
    return uncompared;
}

TEST(a_straggler_is_beyond_both_the_deviation_and_the_ten_percent)
{
    char names[64];
    CHECK_EQ(stragglers_of((unsigned[]){100, 100, 100, 100, 109}, 5, 9, NULL, names), 0);
    CHECK_STR(names, ""); /* 9 %, though all others are equal */
    stragglers_of((unsigned[]){100, 100, 100, 100, 112}, 5, 9, NULL, names);
    CHECK_STR(names, "4");
    stragglers_of((unsigned[]){80, 90, 100, 110, 120, 130}, 6, 9, NULL, names);
    CHECK_STR(names, ""); /* workers differ that much */
    stragglers_of((unsigned[]){130, 101, 99, 100, 150}, 5, 9, NULL, names);
    CHECK_STR(names, "40"); /* the slowest first */
    stragglers_of((unsigned[]){100, 101, 70, 100, 99}, 5, 9, NULL, names);
    CHECK_STR(names, ""); /* faster is none */
}

TEST(few_workers_few_runs_and_other_versions_are_not_compared)
{
    char names[64];
    CHECK_EQ(stragglers_of((unsigned[]){100, 200}, 2, 9, NULL, names), 2);
    CHECK_STR(names, "");
    CHECK_EQ(stragglers_of((unsigned[]){100, 101, 200}, 3, 9, NULL, names), 0);
    CHECK_STR(names, "2");
    CHECK_EQ(stragglers_of((unsigned[]){100, 101, 200}, 3, 4, NULL, names), 3);
    CHECK_STR(names, "");
    CHECK_EQ(stragglers_of((unsigned[]){200, 100, 101, 102}, 4, 9, "2", names), 1);
    CHECK_STR(names, ""); /* the slow one runs version 1, alone */
}

TEST(an_empty_profile_is_a_row_of_zeros)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_fleet f;
    sn_fleet_rows rows;
    sn_fleet_stragglers s;
    sn_fleet_init(&f, failing_init(&m));
    sn_profile *p = syn_profile(&m.a);
    CHECK_OK(sn_fleet_add(&f, p, &err));
    sn_profile_free(p);
    CHECK_OK(sn_fleet_rows_of(&f, SN_FLEET_WORKER, &rows, &err));
    CHECK_EQ(rows.list.n, 1);
    CHECK_STR(rows.list.data[0].worker, "77"); /* its process */
    CHECK_EQ(rows.list.data[0].runs, 0);
    CHECK(rows.list.data[0].share == 0 && rows.list.data[0].runs_per_s == 0);
    sn_fleet_rows_free(&rows);
    CHECK_OK(sn_fleet_find_stragglers(&f, &s, &err));
    CHECK_EQ(s.uncompared, 1);
    sn_fleet_stragglers_free(&s);
    sn_fleet_free(&f);
    CHECK_EQ(m.live, 0);
}

TEST(every_failing_allocation_is_told)
{
    failing_alloc m;
    sonde_error err = {0};
    sonde_status st = SONDE_OUT_OF_MEMORY;
    for (long at = 0; st != SONDE_OK; at++) {
        const worker_of w = plain("host", "1", 6, 1000);
        sn_fleet f;
        sn_fleet_rows rows = {0};
        sn_fleet_stragglers s = {0};
        failing_init(&m);
        sn_profile *p = make_worker(&m.a, &w);
        m.calls = 0;
        m.fail_at = at;
        sn_fleet_init(&f, &m.a);
        st = SONDE_OK;
        for (int k = 0; k < 3 && st == SONDE_OK; k++)
            st = sn_fleet_add(&f, p, &err);
        if (st == SONDE_OK && (st = sn_fleet_rows_of(&f, SN_FLEET_HOST, &rows, &err)) == SONDE_OK)
            sn_fleet_rows_free(&rows);
        if (st == SONDE_OK && (st = sn_fleet_find_stragglers(&f, &s, &err)) == SONDE_OK)
            sn_fleet_stragglers_free(&s);
        CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
        sn_fleet_free(&f);
        sn_profile_free(p);
        CHECK_EQ(m.live, 0);
    }
}

TEST_MAIN()
