/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that a forked child can take, whatever other threads of its parent were doing. */
#include "base/fork_lock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forks.h"
#include "test.h"

enum { LOCKS = 5, FORKS = 50 };

static sn_fork_lock locks[LOCKS];
static int pairs[LOCKS][2]; /* always equal when the lock is free */
static _Atomic bool over;

static void *change(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !atomic_load(&over); i++) {
        const unsigned k = i % LOCKS;
        sn_fork_lock_take(&locks[k]);
        pairs[k][0]++;
        pairs[k][1]++;
        sn_fork_lock_give(&locks[k]);
        if (i % 64 == 0) { /* others come and go */
            sn_fork_lock l;
            sn_fork_lock_init(&l);
            sn_fork_lock_destroy(&l);
        }
    }
    return NULL;
}

/* 0: every lock could be taken and guarded what was whole. */
static int look(void)
{
    int broken = 0;
    for (int k = 0; k < LOCKS; k++) {
        sn_fork_lock_take(&locks[k]);
        broken += pairs[k][0] != pairs[k][1];
        sn_fork_lock_give(&locks[k]);
    }
    for (int k = 0; k < LOCKS; k++)
        sn_fork_lock_destroy(&locks[k]);
    return broken;
}

TEST(a_child_can_take_every_lock)
{
    if (!can_fork())
        SKIP_TEST("no forks beside other threads in this build");
    pthread_t thread;
    CHECK_EQ(pthread_atfork(sn_fork_locks_before, sn_fork_locks_after, sn_fork_locks_after), 0);
    for (int k = 0; k < LOCKS; k++)
        sn_fork_lock_init(&locks[k]);
    CHECK_EQ(pthread_create(&thread, NULL, change, NULL), 0);
    for (int i = 0; i < FORKS; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            _exit(look());
        }
        int status = -1;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, 0);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    CHECK_EQ(look(), 0);
}

TEST_MAIN()
