/* SPDX-License-Identifier: Apache-2.0 */
/* A token is a plain flag that wakes nobody, and Ctrl-C is asked for: who waits looks now and then.
 */
#include "base/stop.h"

#include <time.h>

/* Short enough for a person who presses Ctrl-C, rare enough to cost nothing. */
enum { LOOK_EVERY_NS = 20000000 };

sonde_status sn_stop_error(sonde_error *err)
{
    return sn_fail(err, SONDE_CANCELLED, "the run was cancelled");
}

void sn_stop_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

sonde_status sn_stop_wait(const sn_stop *s, pthread_cond_t *cond, pthread_mutex_t *lock,
                          sonde_error *err)
{
    if (!s) {
        pthread_cond_wait(cond, lock);
        return SONDE_OK;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_EVERY_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(cond, lock, &until);
    pthread_mutex_unlock(lock);
    const bool stop = sn_stop_wanted(s);
    pthread_mutex_lock(lock);
    return stop ? sn_stop_error(err) : SONDE_OK;
}
