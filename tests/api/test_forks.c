/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a process whose other threads are busy in the C library: what it holds a lock for
 * there stays locked in the child, so nothing that writes profiles may need one. */
#include "forks.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "tiny_session.h"

static _Atomic bool enough;

static void *ask_for_dates(void *unused)
{
    struct tm at;
    for (time_t t = 0; !enough; t += 86399)
        (void)(t % 2 ? gmtime_r(&t, &at) : localtime_r(&t, &at));
    return unused;
}

static int in_child(const tiny_session *t)
{
    static const char *const suffixes[] = {".json", ".pftrace", ".csv",  ".xlsx",
                                           ".html", ".page.gz", ".prom", ".otlp.json"};
    bool fine = true;
    alarm(60); /* it waits for ever */
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s-%ld%s", t->path, (long)getpid(), suffixes[i]);
        const sonde_status st = sonde_profiler_dump(t->context, path, NULL);
        const bool no_page = st == SONDE_UNSUPPORTED && strcmp(suffixes[i], ".html") == 0;
        fine = (st == SONDE_OK || no_page) && fine; /* a build without Node.js */
        (void)remove(path);
    }
    return fine ? 0 : 1;
}

TEST(children_write_profiles_while_their_parent_asks_for_dates)
{
    enum { THREADS = 2, CHILDREN = 25 };
    sonde_error err;
    tiny_session t;
    pthread_t threads[THREADS];
    if (!can_fork())
        return;
    tiny_open(&t, 1, "forks");
    CHECK_OK(sonde_profiler_start(t.context, 1, &err));
    tiny_run(&t, 3);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, ask_for_dates, NULL) == 0);
    for (int i = 0; i < CHILDREN && !test_errors; i++) {
        const pid_t child = fork();
        int status = 0;
        if (child == 0)
            _exit(in_child(&t));
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: status %d%s", i, status,
                  WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ", it waited for ever" : "");
    }
    enough = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(sonde_profiler_stop(t.context, NULL, &err));
    tiny_close(&t);
}

TEST_MAIN()
