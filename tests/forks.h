/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a test may fork while other threads run. */
#ifndef SONDE_TEST_FORKS_H
#define SONDE_TEST_FORKS_H

#include <stdbool.h>
#include <stdlib.h>

/* Not where the child's own malloc may wait for ever: sanitizers do not free all their locks in a
 * child of several threads. */
static inline bool can_fork(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
    return !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) &&
           !getenv("SONDE_EMULATED");
#else
    return !getenv("SONDE_EMULATED");
#endif
}

#endif
