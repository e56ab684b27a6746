/* SPDX-License-Identifier: Apache-2.0 */
/* No lock of the list is held while another is waited for, except here: so any order will do. */
#include "base/fork_lock.h"

#include <stddef.h>

static struct {
    pthread_mutex_t lock; /* of the list; the last that anybody takes */
    sn_fork_lock *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sn_fork_lock_init(sn_fork_lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
    l->prev = NULL;
    pthread_mutex_lock(&all.lock);
    l->next = all.first;
    if (l->next)
        l->next->prev = l;
    all.first = l;
    pthread_mutex_unlock(&all.lock);
}

void sn_fork_lock_destroy(sn_fork_lock *l)
{
    pthread_mutex_lock(&all.lock);
    if (l->next)
        l->next->prev = l->prev;
    if (l->prev)
        l->prev->next = l->next;
    else
        all.first = l->next;
    pthread_mutex_unlock(&all.lock);
    pthread_mutex_destroy(&l->mutex);
}

void sn_fork_locks_before(void)
{
    pthread_mutex_lock(&all.lock);
    for (sn_fork_lock *l = all.first; l; l = l->next)
        pthread_mutex_lock(&l->mutex);
}

void sn_fork_locks_after(void)
{
    for (sn_fork_lock *l = all.first; l; l = l->next)
        pthread_mutex_unlock(&l->mutex);
    pthread_mutex_unlock(&all.lock);
}
