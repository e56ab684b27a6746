/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told when a context is made, forked and released. The order is that of `ending`: a
 * profiler's trace is closed before the environment's. */
#include "api/internal.h"

const sn_context_observer *const sn_context_observers[] = {
    &sn_profiler_observer, &sn_memory_observer, &sn_env_observer, &sn_metrics_observer, NULL,
};
