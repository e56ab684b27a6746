/* SPDX-License-Identifier: Apache-2.0 */
/* SONDE_TRACE in programs that a signal ends, or that leave by _exit. The variables are read once
 * in a process, so every case is a child, which says through a pipe that it ran the model. */
#include "forks.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "temp_folder.h"
#include "tiny_session.h"

static void write_byte(int to)
{
    if (write(to, "r", 1) != 1)
        _exit(9);
}

static _Noreturn void run_and_wait(int ran, void (*handler)(int), bool finish)
{
    tiny_session t;
    alarm(600);
    setenv("SONDE_TRACE", in_dir("%p.json"), 1);
    signal(SIGTERM, handler);
    tiny_open(&t, 2, "endings");
    tiny_run(&t, 3);
    if (finish) {
        sonde_environment_finish();
        tiny_run(&t, 2); /* no longer part of it */
        _exit(5);
    }
    write_byte(ran);
    for (;;)
        pause();
}

static void on_term(int number)
{
    _exit(number == SIGTERM ? 7 : 8);
}

typedef struct ending {
    pid_t pid;
    int status;
} ending;

static ending child(int number, void (*handler)(int), bool finish)
{
    int pipes[2];
    char byte;
    ending e = {.status = -1};
    (void)the_dir();
    if (pipe(pipes) != 0 || (e.pid = fork()) < 0)
        return e;
    if (e.pid == 0)
        run_and_wait(pipes[1], handler, finish);
    close(pipes[1]);
    if (!finish && read(pipes[0], &byte, 1) == 1)
        (void)kill(e.pid, number);
    if (waitpid(e.pid, &e.status, 0) != e.pid)
        e.status = -1;
    close(pipes[0]);
    return e;
}

static const char *trace_of(pid_t pid)
{
    char name[32];
    snprintf(name, sizeof name, "%ld.json", (long)pid);
    return in_dir(name);
}

/* 0: there is no trace. The file is read as text: the library would read the environment here, and
 * children would not. */
static unsigned runs_of(pid_t pid)
{
    char line[16384];
    unsigned n = 0;
    FILE *f = fopen(trace_of(pid), "r");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "\"cat\":\"iteration\"") != NULL;
    if (f)
        fclose(f);
    return n;
}

TEST(a_signal_that_nobody_handles_ends_the_program_after_the_trace_is_written)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3 && can_fork(); i++) {
        const ending e = child(numbers[i], SIG_DFL, false);
        CHECK(WIFSIGNALED(e.status) && WTERMSIG(e.status) == numbers[i]);
        CHECK(runs_of(e.pid) == 3);
    }
}

TEST(a_handler_of_the_program_is_left_alone)
{
    if (!can_fork())
        return;
    const ending e = child(SIGTERM, on_term, false);
    CHECK(WIFEXITED(e.status) && WEXITSTATUS(e.status) == 7);
    CHECK(runs_of(e.pid) == 0); /* it calls _exit */
}

TEST(the_environment_can_be_finished_before_exit_is_skipped)
{
    if (!can_fork())
        return;
    const ending e = child(0, SIG_DFL, true);
    CHECK(WIFEXITED(e.status) && WEXITSTATUS(e.status) == 5);
    CHECK(runs_of(e.pid) == 3);
}

/* The child of a process that watches: the thread that writes is not in it, and it gets another. */
static _Noreturn void fork_again(int from, int to)
{
    tiny_session t;
    int status = -1;
    pid_t own;
    alarm(600);
    setenv("SONDE_TRACE", in_dir("%p.json"), 1);
    tiny_open(&t, 2, "family");
    tiny_run(&t, 3);
    if ((own = fork()) == 0) {
        tiny_run(&t, 2);
        write_byte(to);
        for (;;)
            pause();
    }
    char byte;
    const bool killed = own > 0 && read(from, &byte, 1) == 1 && kill(own, SIGTERM) == 0 &&
                        waitpid(own, &status, 0) == own && WIFSIGNALED(status) &&
                        WTERMSIG(status) == SIGTERM;
    _exit(killed && write(to, &own, sizeof own) == sizeof own ? 0 : 1);
}

TEST(a_forked_child_writes_its_own_trace_before_a_signal_ends_it)
{
    int pipes[2], status = -1;
    pid_t grandchild = 0;
    if (!can_fork())
        return;
    CHECK(pipe(pipes) == 0);
    (void)the_dir();
    const pid_t pid = fork();
    if (pid == 0)
        fork_again(pipes[0], pipes[1]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(read(pipes[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    CHECK(runs_of(grandchild) == 2);
    CHECK(runs_of(pid) == 0);
    close(pipes[0]);
    close(pipes[1]);
}

TEST_MAIN()
