/* SPDX-License-Identifier: Apache-2.0 */
/* Counting runs: sums over threads, series that stay, and the text that comes of them. */
#include <pthread.h>

#include "export/memory_sink.h"
#include "metrics/metrics.h"
#include "test.h"

static const sn_metrics_facts facts = {.version = "1", .cpu = "c", .cpu_level = "l"};

static char *text_of(const sn_metrics *m)
{
    memory_sink out;
    if (sn_metrics_write(m, &facts, false, memory_sink_init(&out), NULL) != SONDE_OK)
        abort();
    return out.text;
}

enum { THREADS = 8, RUNS = 20000 };

static void *count_many(void *arg)
{
    sn_series *s = arg;
    for (int i = 0; i < RUNS; i++) {
        sn_series_begin(s);
        sn_series_end(s, 1500, i % 10 ? SONDE_OK : SONDE_CANCELLED, i % 2 == 0);
    }
    return NULL;
}

TEST(runs_of_many_threads_are_all_counted)
{
    failing_alloc alloc;
    sn_metrics *m = NULL;
    sn_series_sums sums;
    pthread_t threads[THREADS];
    CHECK_EQ(sn_metrics_create(&m, failing_init(&alloc), NULL), SONDE_OK);
    sn_series *s = sn_metrics_series(m, "net", 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, count_many, s), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sn_series_sum(s, &sums);
    CHECK_EQ(sums.buckets[1], THREADS * RUNS / 10 * 9);
    CHECK_EQ(sums.errors[SONDE_CANCELLED], THREADS * RUNS / 10);
    CHECK_EQ(sums.alone, THREADS * RUNS / 2);
    CHECK_EQ(sums.sum_ns, (uint64_t)1500 * THREADS * RUNS / 10 * 9);
    CHECK_EQ(sums.in_flight, 0);
    sn_metrics_free(m);
}

static void *look_for(void *arg)
{
    sn_metrics *m = arg;
    char name[32];
    sn_series *last = NULL;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "net %d", i);
        last = sn_metrics_series(m, name, 0);
        if (!last)
            abort();
        sn_series_begin(last);
        sn_series_end(last, 1, SONDE_OK, false);
    }
    return last;
}

TEST(threads_that_look_for_a_series_at_once_find_the_same_one)
{
    sn_metrics *m = NULL;
    pthread_t threads[THREADS];
    void *found[THREADS];
    size_t n = 0;
    sn_allocator system;
    sn_allocator_init_system(&system);
    CHECK_EQ(sn_metrics_create(&m, &system, NULL), SONDE_OK);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, look_for, m), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &found[i]);
    for (int i = 0; i < THREADS; i++)
        CHECK(found[i] == found[0]);
    for (const sn_series *s = sn_series_next(m, NULL); s; s = sn_series_next(m, s)) {
        sn_series_sums sums;
        sn_series_sum(s, &sums);
        CHECK_EQ(sums.buckets[0], THREADS);
        n++;
    }
    CHECK_EQ(n, 200);
    sn_metrics_free(m);
}

TEST(names_and_numbers_tell_series_apart_and_too_many_are_counted_together)
{
    failing_alloc alloc;
    sn_metrics *m = NULL;
    char name[32];
    CHECK_EQ(sn_metrics_create(&m, failing_init(&alloc), NULL), SONDE_OK);
    sn_series *a = sn_metrics_series(m, "net", 0);
    CHECK(a == sn_metrics_series(m, "net", 0));
    CHECK(a != sn_metrics_series(m, "net", 1));
    CHECK(a != sn_metrics_series(m, "Net", 0));
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "net %d", i);
        sn_series *s = sn_metrics_series(m, name, 0);
        sn_series_begin(s);
        sn_series_end(s, 1, SONDE_OK, false);
    }
    CHECK(sn_metrics_series(m, "net 1998", 0) == sn_metrics_series(m, "net 1999", 7));
    char *text = text_of(m);
    CHECK_HAS(text, "sonde_run_duration_seconds_count{model=\"(other)\",session=\"0\"} 1003\n");
    free(text);
    sn_metrics_free(m);
}

TEST(the_text_has_latencies_errors_and_runs_under_way)
{
    failing_alloc alloc;
    sn_metrics *m = NULL;
    CHECK_EQ(sn_metrics_create(&m, failing_init(&alloc), NULL), SONDE_OK);
    sn_series *s = sn_metrics_series(m, "n\"et", 3);
    for (int i = 0; i < 3; i++)
        sn_series_begin(s);
    sn_series_end(s, 2000000, SONDE_OK, true);
    sn_series_end(s, 0, SONDE_OUT_OF_MEMORY, false);
    char *text = text_of(m);
    CHECK_HAS(
        text,
        "sonde_run_duration_seconds_bucket{model=\"n\\\"et\",session=\"3\",le=\"0.0016\"} 0\n");
    CHECK_HAS(
        text,
        "sonde_run_duration_seconds_bucket{model=\"n\\\"et\",session=\"3\",le=\"0.0025\"} 1\n");
    CHECK_HAS(text,
              "sonde_run_duration_seconds_sum{model=\"n\\\"et\",session=\"3\"} 0.002000000\n");
    CHECK_HAS(
        text,
        "sonde_run_errors_total{model=\"n\\\"et\",session=\"3\",status=\"out of memory\"} 1\n");
    CHECK_HAS(text, "sonde_runs_in_flight{model=\"n\\\"et\",session=\"3\"} 1\n");
    CHECK_HAS(text, "sonde_runs_without_pool_total{model=\"n\\\"et\",session=\"3\"} 1\n");
    CHECK_HAS(text, "sonde_sampling_overhead_ratio 0\n");
    free(text);
    /* In a forked child the two that are under way belong to others. */
    sn_metrics_after_fork(m);
    text = text_of(m);
    CHECK_HAS(text, "sonde_runs_in_flight{model=\"n\\\"et\",session=\"3\"} 0\n");
    free(text);
    sn_metrics_free(m);
}

TEST(every_failing_allocation_is_survived)
{
    failing_alloc alloc;
    for (long k = 0; k < 5; k++) {
        sn_metrics *m = NULL;
        sn_allocator *a = failing_init(&alloc);
        alloc.fail_at = k;
        if (sn_metrics_create(&m, a, NULL) != SONDE_OK)
            continue;
        sn_series *s = sn_metrics_series(m, "net", 0);
        CHECK(s == NULL || sn_metrics_series(m, "net", 0) == s);
        sn_metrics_free(m);
        CHECK_EQ(atomic_load(&a->live_bytes), 0);
    }
}

TEST_MAIN()
