/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library's own. Signals are for the threads of the program: these block all. */
#ifndef SN_BASE_THREAD_H
#define SN_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* False: there is no such thread. */
bool sn_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);

#endif
