/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are written while a program runs: whole ones, ones cut off by a killed process, and
 * places that cannot be written to. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "test.h"

static char text[1 << 16];
static size_t n_text;

static void capture(void *user, const char *part, size_t size)
{
    (void)user;
    if (n_text + size < sizeof text) {
        memcpy(text + n_text, part, size);
        n_text += size;
        text[n_text] = 0;
    }
}

typedef struct fixture {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
    sonde_value *in;
    char path[64];
} fixture;

static void open_fixture(fixture *f, const char *what)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    const int64_t dims[2] = {1, 16};
    o.threads = 2;
    snprintf(f->path, sizeof f->path, "/tmp/sonde-test-%s-%ld.pftrace", what, (long)getpid());
    CHECK_OK(sonde_context_create(&o, &f->context, &err));
    CHECK_OK(sonde_zoo_build(f->context, "tiny_mlp", 1, &f->model, &err));
    CHECK_OK(sonde_session_create(f->model, NULL, &f->session, &err));
    CHECK_OK(sonde_tensor_create(f->context, SONDE_DTYPE_F32, dims, 2, NULL, 64, &f->in, &err));
}

static void run(const fixture *f, int times)
{
    sonde_error err;
    for (int i = 0; i < times; i++) {
        sonde_value *out = NULL;
        CHECK_OK(sonde_session_run(f->session, NULL, NULL, &f->in, 1, NULL, &out, 1, &err));
        sonde_value_release(out);
    }
}

static void close_fixture(fixture *f)
{
    sonde_value_release(f->in);
    sonde_session_release(f->session);
    sonde_model_release(f->model);
    sonde_context_release(f->context);
    remove(f->path);
}

static const char *summary_of(const char *path)
{
    sonde_error err;
    sonde_profile *p = NULL;
    n_text = 0;
    text[0] = 0;
    if (sonde_profile_load(NULL, path, &p, &err) ||
        sonde_profile_report(p, SONDE_REPORT_SUMMARY, capture, NULL, &err))
        capture(NULL, err.message, strlen(err.message));
    sonde_profile_release(p);
    return text;
}

TEST(a_streamed_trace_holds_every_run)
{
    fixture f;
    sonde_error err;
    sonde_profile *p = NULL;
    open_fixture(&f, "whole");
    CHECK_OK(sonde_profiler_stream(f.context, 3, f.path, &err));
    CHECK_EQ(sonde_profiler_start(f.context, 1, &err), SONDE_INVALID_ARGUMENT);
    run(&f, 500);
    CHECK_OK(sonde_profiler_pause(f.context, &err));
    run(&f, 100);
    CHECK_OK(sonde_profiler_resume(f.context, &err));
    run(&f, 500);
    CHECK_EQ(sonde_profiler_stop(f.context, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    CHECK_HAS(summary_of(f.path), "Inference counts                : 1000\n");
    /* An ordinary profile afterwards. */
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    run(&f, 3);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    sonde_profile_release(p);
    close_fixture(&f);
}

TEST(a_killed_process_leaves_a_trace_that_opens)
{
    if (getenv("SONDE_EMULATED"))
        return;
    char path[64];
    int pipes[2];
    snprintf(path, sizeof path, "/tmp/sonde-test-killed-%ld.pftrace", (long)getpid());
    CHECK(pipe(pipes) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        fixture f;
        sonde_error err;
        open_fixture(&f, "child");
        if (sonde_profiler_stream(f.context, 1, path, &err))
            _exit(1);
        struct stat st;
        off_t before = 0;
        do { /* until a batch has been written */
            run(&f, 100);
            before = before ? before : (stat(path, &st) ? 0 : st.st_size);
        } while (stat(path, &st) || st.st_size <= before + 1000);
        if (write(pipes[1], "x", 1) == 1)
            for (;;)
                run(&f, 100);
        _exit(1);
    }
    char byte;
    CHECK_EQ(read(pipes[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(pipes[0]);
    close(pipes[1]);
    CHECK_HAS(summary_of(path), "Mean latency (ns)");
    remove(path);
}

TEST(places_that_cannot_be_written_are_said)
{
    fixture f;
    sonde_error err;
    open_fixture(&f, "bad");
    CHECK_EQ(sonde_profiler_stream(f.context, 1, "/nonexistent/x.pftrace", &err), SONDE_IO);
    CHECK_HAS(err.message, "/nonexistent/x.pftrace");
    CHECK_EQ(sonde_profiler_stream(f.context, 1, "x.json", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, ".pftrace");
    CHECK_EQ(sonde_profiler_stream(f.context, 9, f.path, &err), SONDE_INVALID_ARGUMENT);
    if (symlink("/dev/full", f.path) == 0 &&
        sonde_profiler_stream(f.context, 1, f.path, &err) == SONDE_OK) {
        run(&f, 10); /* the model's own result is never lost */
        CHECK_EQ(sonde_profiler_stop(f.context, NULL, &err), SONDE_IO);
    }
    run(&f, 1);
    close_fixture(&f);
}

TEST(a_context_may_go_away_while_it_streams)
{
    fixture f;
    sonde_error err;
    open_fixture(&f, "gone");
    CHECK_OK(sonde_profiler_stream(f.context, 2, f.path, &err));
    run(&f, 10);
    sonde_value_release(f.in);
    sonde_session_release(f.session);
    sonde_model_release(f.model);
    sonde_context_release(f.context);
    CHECK_HAS(summary_of(f.path), "Inference counts                : 10\n");
    remove(f.path);
}

TEST_MAIN()
