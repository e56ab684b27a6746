/* SPDX-License-Identifier: Apache-2.0 */
/* A thread inherits the mask of the one that starts it, so that one blocks every signal meanwhile:
 * blocking them in the new thread would leave a moment in which it could be handed one. */
#include "base/thread.h"

#include <signal.h>

bool sn_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    const bool started = pthread_create(thread, NULL, main, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
