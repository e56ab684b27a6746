/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that are held while the process forks, so that a child finds what they guard whole and can
 * use it: a mutex that another thread of the parent held would stay locked in the child for ever.
 *
 * Only for short sections: whoever holds one takes no other lock, calls nobody and neither makes
 * nor destroys one of these. */
#ifndef SN_BASE_FORK_LOCK_H
#define SN_BASE_FORK_LOCK_H

#include <pthread.h>

typedef struct sn_fork_lock {
    pthread_mutex_t mutex;
    struct sn_fork_lock *prev, *next; /* list of all */
} sn_fork_lock;

void sn_fork_lock_init(sn_fork_lock *l);
void sn_fork_lock_destroy(sn_fork_lock *l);

static inline void sn_fork_lock_take(sn_fork_lock *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void sn_fork_lock_give(sn_fork_lock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* Around a fork: before it, and after it in parent and child. Other locks that a fork takes are
 * taken before these. */
void sn_fork_locks_before(void);
void sn_fork_locks_after(void);

#endif
