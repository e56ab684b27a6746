/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are written while a program runs: whole ones, ones cut off by a killed process, and
 * places that cannot be written to. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sonde/experimental/profile.h"
#include "sonde/sonde.h"

#include "tiny_session.h"

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
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    tiny_open(&f, 2, "whole");
    CHECK_OK(sonde_profiler_stream(f.context, 3, f.path, &err));
    CHECK_EQ(sonde_profiler_start(f.context, 1, &err), SONDE_INVALID_ARGUMENT);
    tiny_run(&f, 500);
    CHECK_OK(sonde_profiler_pause(f.context, &err));
    tiny_run(&f, 100);
    CHECK_OK(sonde_profiler_resume(f.context, &err));
    tiny_run(&f, 500);
    CHECK_EQ(sonde_profiler_stop(f.context, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    CHECK_HAS(summary_of(f.path), "Inference counts                : 1000\n");
    /* An ordinary profile afterwards. */
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 3);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    sonde_profile_release(p);
    tiny_close(&f);
}

TEST(a_profile_after_a_stream_has_room_for_as_much_as_before)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    tiny_open(&f, 1, "room");
    CHECK_OK(sonde_profiler_stream(f.context, 1, f.path, &err));
    tiny_run(&f, 1);
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 60000); /* more than a stream's rings hold */
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_OK(sonde_profile_summary_get(p, &s, &err));
    sonde_profile_release(p);
    CHECK_EQ(s.iterations, 60000);
    CHECK_EQ(s.dropped, 0);
    tiny_close(&f);
}

TEST(a_killed_process_leaves_a_trace_that_opens)
{
    if (getenv("SONDE_EMULATED"))
        SKIP_TEST("an emulator cannot fork a process with threads");
    char path[64];
    int pipes[2];
    snprintf(path, sizeof path, "/tmp/sonde-test-killed-%ld.pftrace", (long)getpid());
    CHECK(pipe(pipes) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        tiny_session f;
        sonde_error err;
        tiny_open(&f, 2, "child");
        if (sonde_profiler_stream(f.context, 1, path, &err))
            _exit(1);
        struct stat st;
        off_t before = 0;
        do { /* until a batch has been written */
            tiny_run(&f, 100);
            before = before ? before : (stat(path, &st) ? 0 : st.st_size);
        } while (stat(path, &st) || st.st_size <= before + 1000);
        if (write(pipes[1], "x", 1) == 1)
            for (;;)
                tiny_run(&f, 100);
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
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 2, "bad");
    CHECK_EQ(sonde_profiler_stream(f.context, 1, "/nonexistent/x.pftrace", &err), SONDE_IO);
    CHECK_HAS(err.message, "/nonexistent/x.pftrace");
    CHECK_EQ(sonde_profiler_stream(f.context, 1, "x.json", &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, ".pftrace");
    CHECK_EQ(sonde_profiler_stream(f.context, 9, f.path, &err), SONDE_INVALID_ARGUMENT);
    if (symlink("/dev/full", f.path) == 0 &&
        sonde_profiler_stream(f.context, 1, f.path, &err) == SONDE_OK) {
        tiny_run(&f, 10); /* the model's own result is never lost */
        CHECK_EQ(sonde_profiler_stop(f.context, NULL, &err), SONDE_IO);
    }
    tiny_run(&f, 1);
    tiny_close(&f);
}

TEST(a_context_may_go_away_while_it_streams)
{
    tiny_session f;
    sonde_error err;
    tiny_open(&f, 2, "gone");
    CHECK_OK(sonde_profiler_stream(f.context, 2, f.path, &err));
    tiny_run(&f, 10);
    sonde_value_release(f.in);
    sonde_session_release(f.session);
    sonde_model_release(f.model);
    sonde_context_release(f.context);
    CHECK_HAS(summary_of(f.path), "Inference counts                : 10\n");
    remove(f.path);
}

TEST_MAIN()
