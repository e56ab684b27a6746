/* SPDX-License-Identifier: Apache-2.0 */
/* How work that may take long learns that nobody wants it any more: a run's cancel token, Ctrl-C.
 * It is asked on the thread that works or waits, with no lock held, as it may call the user. */
#ifndef SN_BASE_STOP_H
#define SN_BASE_STOP_H

#include <pthread.h>

#include "base/status.h"

typedef struct sn_stop {
    bool (*wanted)(void *user);
    void *user;
} sn_stop;

/* `s` NULL: nothing stops it. */
static inline bool sn_stop_wanted(const sn_stop *s)
{
    return s && s->wanted(s->user);
}
/* SONDE_CANCELLED, in the words of every cancelled run. */
sonde_status sn_stop_error(sonde_error *err);

/* A condition to be waited for with sn_stop_wait. */
void sn_stop_cond_init(pthread_cond_t *cond);
/* With the lock held: returns when `cond` was signalled, or a little later, or SONDE_CANCELLED. The
 * lock is given away meanwhile. Callers look at what they wait for, and wait again. */
sonde_status sn_stop_wait(const sn_stop *s, pthread_cond_t *cond, pthread_mutex_t *lock,
                          sonde_error *err);

#endif
