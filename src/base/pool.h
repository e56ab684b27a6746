/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: workers spin briefly, then sleep on a futex; the caller works too. One region at
 * a time: a second caller finds the pool busy and runs its region inline, so sessions that run at
 * once never oversubscribe the cores. */
#ifndef SN_BASE_POOL_H
#define SN_BASE_POOL_H

#include "base/seats.h"

typedef struct sn_pool sn_pool;
enum { SN_POOL_RANGES = 8 }; /* of tasks, one for each thread; with more threads some share one */
struct sn_trace;

/* Called for every task index in [0, n). `worker` is 0 for the caller, 1… for pool threads. */
typedef void (*sn_task_fn)(void *arg, size_t task, int worker);

/* `threads` counts the caller: 1 makes no thread. Threads start at the first region. */
sonde_status sn_pool_create(sn_pool **pool, int threads, sn_allocator *alloc, sonde_error *err);
/* The same with a seat for each thread; `seats` (NULL: none) outlive the pool. Its own threads take
 * theirs, 1…; callers are worker 0 and sit down themselves (sn_sit), for longer than a region. A
 * seat that is refused is done without. */
sonde_status sn_pool_create_seated(sn_pool **pool, const sn_seats *seats, int threads,
                                   sn_allocator *alloc, sonde_error *err);
void sn_pool_free(sn_pool *pool);         /* waits for the workers; NULL accepted */
int sn_pool_threads(const sn_pool *pool); /* NULL: 1 */

/* Runs fn(arg, 0..n-1), dynamically balanced; returns when all are done. Never fails: when no
 * worker could be started the caller does it all. Nested calls run inline. */
void sn_pool_run(sn_pool *pool, size_t n, sn_task_fn fn, void *arg);

/* State that a thread needs while it works on a region, such as configured tiles of AMX. */
typedef struct sn_thread_hook {
    void (*enter)(void *arg);
    void (*leave)(void *arg);
    void *arg;
} sn_thread_hook;

/* The same, and every thread that takes at least one task (the caller too, and also where there is
 * no pool) calls enter(hook->arg) before its first and leave(hook->arg) after its last. Threads do
 * so at the same time. Tasks cannot fail: one that is cancelled returns early, so leave is always
 * called. A thread has the state of one hook at a time. Regions nested in such a task:
 *   without a hook   leave the state as it is;
 *   with a hook      the calling thread leaves the outer hook, enters and leaves the inner one, and
 *                    enters the outer one again.
 * NULL: no hook. */
void sn_pool_run_hooked(sn_pool *pool, size_t n, sn_task_fn fn, void *arg,
                        const sn_thread_hook *hook);

/* Whether a region is under way: another one would run inline. False for NULL. */
bool sn_pool_is_busy(const sn_pool *pool);

/* How many regions of the calling thread ran inline so far because another thread's was under way;
 * those inside a region of its own do not count. Who measures compares it before and after. */
uint64_t sn_pool_turned_away(void);

/* Where level-3 slices go (one per worker and region); NULL turns them off. Set only between runs.
 */
void sn_pool_set_trace(sn_pool *pool, struct sn_trace *trace);

/* In a forked child every pool starts its workers anew. The hook for that is set by the first pool,
 * or by this call: whoever holds a lock of its own over sn_pool_create and in pthread_atfork
 * handlers calls it before it registers those, so that forks take the locks in the same order. */
void sn_pool_hook_fork(void);

#endif
