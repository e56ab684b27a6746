/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles through the public API: start, stop, the table, files, the environment. */
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "test.h"

typedef struct captured {
    char text[65536];
    size_t n;
} captured;

static void capture(void *user, const char *text, size_t size)
{
    captured *c = user;
    if (c->n + size < sizeof c->text) {
        memcpy(c->text + c->n, text, size);
        c->n += size;
    }
}

static sonde_status run_model(const char *name, int warmups, int runs,
                              const sonde_run_options *options, sonde_error *err)
{
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_value *in[2] = {NULL, NULL};
    size_t n = 1;
    sonde_status st = sonde_zoo_build(NULL, name, 1, &model, err);
    if (!st)
        st = sonde_session_create(model, NULL, &session, err);
    if (!st && strcmp(name, "tiny_loop") == 0) {
        const int64_t steps = 3, dims[1] = {4};
        n = 2;
        st = sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 1, NULL, 16, &in[0], err);
        if (!st)
            st = sonde_tensor_create(NULL, SONDE_DTYPE_I64, NULL, 0, &steps, 8, &in[1], err);
    } else if (!st) {
        const int64_t dims[2] = {1, 16};
        st = sonde_tensor_create(NULL, SONDE_DTYPE_F32, dims, 2, NULL, 64, &in[0], err);
    }
    for (int i = 0; i < warmups + runs && !st; i++) {
        sonde_value *out[2] = {NULL, NULL};
        sonde_run_options o = SONDE_INIT(sonde_run_options);
        if (options)
            o = *options;
        o.warmup = i < warmups;
        st = sonde_session_run(session, &o, NULL, in, n, NULL, out,
                               sonde_session_output_count(session), err);
        sonde_value_release(out[0]);
        sonde_value_release(out[1]);
    }
    sonde_value_release(in[0]);
    sonde_value_release(in[1]);
    sonde_session_release(session);
    sonde_model_release(model);
    return st;
}

TEST(a_profile_counts_measured_runs_and_not_warm_ups)
{
    sonde_error err;
    sonde_profile *profile = NULL;
    captured *c = calloc(1, sizeof *c);
    CHECK_OK(sonde_profiler_start(NULL, 2, &err));
    CHECK_OK(run_model("tiny_mlp", 2, 5, NULL, &err));
    CHECK_OK(sonde_profiler_stop(NULL, &profile, &err));
    CHECK_OK(sonde_profile_table(profile, NULL, capture, c, &err));
    CHECK_HAS(c->text, "Graph run of ");
    CHECK_HAS(c->text, "Gemm");
    CHECK_HAS(c->text, "[Other]");
    CHECK_HAS(c->text, "mean of 5 runs");
    CHECK_HAS(c->text, "warm-up 2");
    sonde_profile_release(profile);
    free(c);
}

TEST(bodies_are_counted_in_their_own_operators)
{
    sonde_error err;
    sonde_profile *profile = NULL;
    captured *c = calloc(1, sizeof *c);
    CHECK_OK(sonde_profiler_start(NULL, 2, &err));
    CHECK_OK(run_model("tiny_loop", 0, 2, NULL, &err));
    CHECK_OK(sonde_profiler_stop(NULL, &profile, &err));
    CHECK_OK(sonde_profile_table(profile, NULL, capture, c, &err));
    CHECK_HAS(c->text, "Loop");
    CHECK_HAS(c->text, "Mul");
    CHECK_HAS(c->text, "mean of 2 runs");
    sonde_profile_release(profile);
    free(c);
}

TEST(a_second_profile_starts_empty)
{
    sonde_error err;
    sonde_profile *profile = NULL;
    captured *c = calloc(1, sizeof *c);
    CHECK_OK(sonde_profiler_start(NULL, 1, &err));
    CHECK_OK(run_model("tiny_mlp", 0, 3, NULL, &err));
    CHECK_OK(sonde_profiler_stop(NULL, &profile, &err));
    sonde_profile_release(profile);
    CHECK_OK(run_model("tiny_mlp", 0, 3, NULL, &err));
    CHECK_OK(sonde_profiler_start(NULL, 1, &err));
    CHECK_OK(run_model("tiny_mlp", 0, 1, NULL, &err));
    CHECK_OK(sonde_profiler_stop(NULL, &profile, &err));
    CHECK_OK(sonde_profile_table(profile, NULL, capture, c, &err));
    CHECK(strstr(c->text, "mean of 3 runs") == NULL && strstr(c->text, "mean of 4 runs") == NULL);
    sonde_profile_release(profile);
    free(c);
}

TEST(starting_twice_and_stopping_what_is_stopped_are_errors)
{
    sonde_error err;
    sonde_profile *profile = NULL;
    CHECK_EQ(sonde_profiler_stop(NULL, &profile, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profiler_start(NULL, 0, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profiler_start(NULL, 4, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_start(NULL, 1, &err));
    CHECK_EQ(sonde_profiler_start(NULL, 1, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_stop(NULL, &profile, &err));
    CHECK_EQ(sonde_profile_save(profile, "-", &err), SONDE_INVALID_ARGUMENT);
    CHECK(sonde_profile_save(profile, "/tmp/profile.no-such-format", &err) != SONDE_OK);
    CHECK_EQ(sonde_profile_save(NULL, "x.json", &err), SONDE_INVALID_ARGUMENT);
    sonde_export_options options = SONDE_INIT(sonde_export_options);
    options.sparse_aim = 100;
    CHECK_EQ(sonde_profile_save_with(profile, "x.csv", &options, &err), SONDE_INVALID_ARGUMENT);
    options.sparse_aim = 0;
    options.sparse_ratio_80 = -1;
    CHECK_EQ(sonde_profile_save_with(profile, "x.csv", &options, &err), SONDE_INVALID_ARGUMENT);
    options.struct_size = 0;
    CHECK_EQ(sonde_profile_save_with(profile, "x.csv", &options, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_profile_table(profile, NULL, NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    sonde_profile_release(profile);
    sonde_profile_release(NULL);
}

/* Runs this program again as a child with an environment, and returns what it says on stderr. An
 * emulator cannot: the kernel does not know the program's format. */
static char self[4096];
#define NEEDS_CHILD()                                                                              \
    do {                                                                                           \
        if (getenv("SONDE_EMULATED"))                                                              \
            SKIP_TEST("an emulated program cannot start itself");                                  \
    } while (0)

static bool run_child(const char *variable, const char *value, captured *out)
{
    int pipes[2];
    if (pipe(pipes))
        return false;
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 2);
        close(pipes[0]);
        close(pipes[1]);
        if (!freopen("/dev/null", "w", stdout))
            _exit(99);
        setenv(variable, value, 1);
        execl(self, self, "--child", (char *)NULL);
        _exit(99);
    }
    close(pipes[1]);
    for (ssize_t n; (n = read(pipes[0], out->text + out->n, sizeof out->text - out->n - 1)) > 0;)
        out->n += (size_t)n;
    close(pipes[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Does the counter move in steps of a microsecond, as an emulator's does? Then what recording took
 * may lie between two of its steps, and nothing can be taken off a run in which no step lies
 * outside of its operators. */
static bool ticks_are_coarse(void)
{
    sn_clock clock = {0};
    sn_clock_calibrate(&clock);
    double least = INFINITY;
    for (int i = 0; i < 1000; i++) {
        const uint64_t before = sn_ticks();
        uint64_t after = before;
        while (after == before)
            after = sn_ticks();
        least = fmin(least, sn_ticks_to_ns(&clock, after - before));
    }
    return least > 100;
}

/* Whether the last line of a table names what recording cost: however little that is, it is more
 * than nothing. */
static bool says_a_cost(const char *table)
{
    static const char before[] = "profiler cost ";
    const char *cost = strstr(table, before);
    return cost && (strtod(cost + strlen(before), NULL) > 0 || ticks_are_coarse());
}

TEST(sonde_timing_prints_a_table_after_every_measured_run)
{
    NEEDS_CHILD();
    captured *c = calloc(1, sizeof *c);
    CHECK_MSG(run_child("SONDE_TIMING", "", c), "%s", c->text);
    const char *first = strstr(c->text, "Graph run of ");
    const char *second = first ? strstr(first + 1, "Graph run of ") : NULL;
    CHECK_MSG(second && !strstr(second + 1, "Graph run of "), "%s", c->text);
    CHECK_MSG(!strstr(c->text, "No measured run"), "a warm-up run prints: %s", c->text);
    CHECK_HAS(c->text, "Gemm");
    CHECK_MSG(says_a_cost(first), "%s", c->text);
    free(c);
}

TEST(a_bad_key_of_sonde_timing_warns_once_and_never_fails)
{
    NEEDS_CHILD();
    captured *c = calloc(1, sizeof *c);
    CHECK_MSG(run_child("SONDE_TIMING", "colour=blue", c), "%s", c->text);
    const char *warning = strstr(c->text, "colour");
    CHECK_MSG(warning && !strstr(warning + 1, "colour"), "%s", c->text);
    CHECK_HAS(c->text, "Graph run of ");
    free(c);
}

TEST(sonde_trace_writes_a_file_when_the_process_ends)
{
    NEEDS_CHILD();
    captured *c = calloc(1, sizeof *c);
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/tmp/sonde-test-%ld.json", (long)getpid());
    CHECK_MSG(run_child("SONDE_TRACE", path, c), "%s", c->text);
    FILE *f = fopen(path, "rb");
    CHECK_MSG(f != NULL, "no trace at %s: %s", path, c->text);
    CHECK(fread(text, 1, sizeof text - 1, f) > 20);
    fclose(f);
    remove(path);
    CHECK_HAS(text, "traceEvents");
    free(c);
}

TEST(run_options_ask_for_a_table_too)
{
    sonde_error err;
    fflush(stderr);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    const int saved = dup(2);
    dup2(fileno(file), 2);
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.timing = 1;
    const sonde_status st = run_model("tiny_mlp", 0, 1, &o, &err);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    char text[4096] = "";
    rewind(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    fclose(file);
    CHECK_OK(st);
    CHECK_HAS(text, "Graph run of ");
    CHECK_MSG(says_a_cost(text), "%s", text);
}

int main(int argc, char **argv)
{
    sonde_error err;
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return run_model("tiny_mlp", 1, 2, NULL, &err) ? 1 : 0;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    return test_run(argc, argv);
}
