/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a context: what runs count, what stays when sessions go, and a child of a fork. */
#include <pthread.h>
#include <sys/wait.h>

#include "api/internal.h"
#include "sonde/experimental/metrics.h"

#include "tiny_session.h"

typedef struct text {
    char *data;
    size_t n;
} text;

static void append(void *user, const char *data, size_t n)
{
    text *t = user;
    t->data = realloc(t->data, t->n + n + 1);
    if (!t->data)
        abort();
    memcpy(t->data + t->n, data, n);
    t->n += n;
    t->data[t->n] = 0;
}

static char *scrape(sonde_context *c, int openmetrics)
{
    sonde_metrics_options o = SONDE_INIT(sonde_metrics_options);
    text t = {NULL, 0};
    o.openmetrics = openmetrics;
    if (sonde_metrics_write(c, &o, append, &t, NULL))
        abort();
    return t.data;
}

/* The number behind a line's name and labels; -1: there is no such line. */
static double value_of(const char *all, const char *line)
{
    const size_t n = strlen(line);
    for (const char *at = all; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, line, n) == 0 && at[n] == ' ')
            return strtod(at + n, NULL);
    return -1;
}

#define OF_TINY "{model=\"tiny_mlp\",session=\"0\"}"

TEST(runs_are_counted_from_the_start_on)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "metrics");
    tiny_run(&f, 3);
    CHECK_OK(sonde_metrics_start(f.context, &err));
    CHECK_OK(sonde_metrics_start(f.context, &err));
    tiny_run(&f, 5);
    char *all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 5);
    CHECK(value_of(all, "sonde_run_duration_seconds_sum" OF_TINY) > 0);
    CHECK_EQ(value_of(all, "sonde_runs_in_flight" OF_TINY), 0);
    CHECK(value_of(all, "sonde_memory_live_bytes") > 0);
    CHECK(value_of(all, "sonde_memory_peak_bytes") >= value_of(all, "sonde_memory_live_bytes"));
    CHECK(value_of(all, "sonde_memory_arena_bytes") > 0);
    CHECK_EQ(value_of(all, "sonde_pool_threads"), 1);
    CHECK_EQ(value_of(all, "sonde_sampling_every"), 0);
    CHECK_HAS(all, "sonde_build_info{version=\"");
    free(all);
    tiny_close(&f);
}

TEST(a_scrape_starts_counting_where_nobody_has)
{
    tiny_session f;
    tiny_open(&f, 1, "metrics");
    free(scrape(f.context, 0));
    tiny_run(&f, 2);
    char *all = scrape(f.context, 1);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 2);
    CHECK_STR(all + strlen(all) - 6, "# EOF\n");
    free(all);
    tiny_close(&f);
}

TEST(counters_stay_when_a_session_goes_and_go_on_with_the_next)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "metrics");
    CHECK_OK(sonde_metrics_start(f.context, &err));
    tiny_run(&f, 2);
    sonde_session_release(f.session);
    f.session = NULL;
    char *all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 2);
    CHECK_EQ(value_of(all, "sonde_memory_arena_bytes"), 0);
    CHECK_EQ(value_of(all, "sonde_memory_packed_weights_bytes"), 0);
    free(all);
    CHECK_OK(sonde_session_create(f.model, NULL, &f.session, &err));
    tiny_run(&f, 3);
    all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 5);
    CHECK(value_of(all, "sonde_memory_packed_weights_bytes") > 0);
    free(all);
    tiny_close(&f);
}

TEST(sessions_of_other_numbers_are_other_series)
{
    tiny_session f;
    sonde_error err;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    tiny_open(&f, 1, "metrics");
    CHECK_OK(sonde_metrics_start(f.context, &err));
    tiny_run(&f, 1);
    sonde_session_release(f.session);
    o.instance = 7;
    CHECK_OK(sonde_session_create(f.model, &o, &f.session, &err));
    tiny_run(&f, 4);
    char *all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 1);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count{model=\"tiny_mlp\",session=\"7\"}"),
             4);
    free(all);
    tiny_close(&f);
}

TEST(runs_that_fail_are_counted_by_their_status)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "metrics");
    CHECK_OK(sonde_metrics_start(f.context, &err));
    sonde_cancel_token *stop = NULL;
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    sonde_value *out = NULL;
    CHECK_OK(sonde_cancel_token_create(&stop, &err));
    sonde_cancel(stop);
    o.cancel = stop;
    CHECK_EQ(sonde_session_run(f.session, &o, NULL, &f.in, 1, NULL, &out, 1, &err),
             SONDE_CANCELLED);
    sonde_cancel_token_release(stop);
    char *all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_errors_total{model=\"tiny_mlp\",session=\"0\",status="
                           "\"cancelled\"}"),
             1);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 0);
    CHECK_EQ(value_of(all, "sonde_runs_in_flight" OF_TINY), 0);
    free(all);
    tiny_close(&f);
}

enum { THREADS = 6, RUNS = 200 };

static void *run_many(void *arg)
{
    tiny_run(arg, RUNS);
    return NULL;
}

static void *scrape_many(void *arg)
{
    tiny_session *f = arg;
    for (int i = 0; i < 50; i++)
        free(scrape(f->context, i % 2));
    return NULL;
}

TEST(threads_run_and_scrape_at_the_same_time)
{
    tiny_session f;
    pthread_t threads[THREADS + 1];
    sonde_error err;
    tiny_open(&f, 2, "metrics");
    CHECK_OK(sonde_metrics_start(f.context, &err));
    for (int i = 0; i <= THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i < THREADS ? run_many : scrape_many, &f), 0);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    char *all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), THREADS * RUNS);
    free(all);
    tiny_close(&f);
}

TEST(a_forked_child_goes_on_counting)
{
    if (getenv("SONDE_EMULATED"))
        SKIP_TEST("an emulator cannot fork a process with threads");
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 1, "metrics");
    CHECK_OK(sonde_metrics_start(f.context, &err));
    tiny_run(&f, 2);
    const pid_t pid = fork();
    if (pid == 0) {
        tiny_run(&f, 3);
        char *all = scrape(f.context, 0);
        _exit(value_of(all, "sonde_run_duration_seconds_count" OF_TINY) == 5 &&
                      value_of(all, "sonde_runs_in_flight" OF_TINY) == 0
                  ? 0
                  : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    char *all = scrape(f.context, 0);
    CHECK_EQ(value_of(all, "sonde_run_duration_seconds_count" OF_TINY), 2);
    free(all);
    tiny_close(&f);
}

TEST(null_arguments_are_refused)
{
    tiny_session f;
    tiny_open(&f, 1, "metrics");
    CHECK_EQ(sonde_metrics_write(f.context, NULL, NULL, NULL, NULL), SONDE_INVALID_ARGUMENT);
    tiny_close(&f);
}

TEST_MAIN()
