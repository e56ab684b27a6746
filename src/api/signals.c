/* SPDX-License-Identifier: Apache-2.0 */
/* A program that SIGINT, SIGTERM or SIGHUP ends would lose what is written when it ends. So where
 * the environment asks for such files and a signal would simply kill the process, it is handled
 * here: the files are written, then the signal does what it would have done. Signals that the
 * program handles or ignores are left alone, and a handler that it installs later takes the place
 * of this one. Writing is nothing for a signal handler, so a thread that sleeps until then does it.
 * A second signal ends the process at once. */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/thread.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct {
    void (*finish)(void);
    sem_t arrived;
    _Atomic int number;
    _Atomic pid_t pid; /* of the process that has the thread; a forked child differs at first */
} watch;

/* Nothing here but what a signal handler may do. Without the thread the default is taken when this
 * returns. */
static void on_signal(int number)
{
    const int before = errno;
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == on_signal)
            signal(signals[i], SIG_DFL);
    }
    if (watch.pid == getpid()) {
        watch.number = number;
        sem_post(&watch.arrived);
    } else {
        raise(number);
    }
    errno = before;
}

static void *wait_for_signal(void *unused)
{
    while (sem_wait(&watch.arrived) != 0)
        if (errno != EINTR)
            return unused;
    watch.finish();
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, watch.number);
    raise(watch.number); /* blocked on this thread, as all are, until the next line */
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    return unused; /* the first process of a container cannot be killed so */
}

static bool start_thread(void)
{
    pthread_t thread;
    if (sem_init(&watch.arrived, 0, 0) != 0 || !sn_thread_start(&thread, wait_for_signal, NULL))
        return false;
    pthread_detach(thread);
    watch.pid = getpid();
    return true;
}

void sn_api_watch_signals(void (*finish)(void))
{
    watch.finish = finish;
    if (!start_thread())
        return;
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction own = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, was;
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            sigaction(signals[i], &own, NULL);
    }
}

void sn_api_watch_signals_in_child(void)
{
    if (watch.pid)
        (void)start_thread();
}
