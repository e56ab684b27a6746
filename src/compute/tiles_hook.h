/* SPDX-License-Identifier: Apache-2.0 */
/* The state of threads that call kernels with tiles (tiles_enter, tiles_leave), for
 * sn_pool_run_hooked. */
#ifndef SN_COMPUTE_TILES_HOOK_H
#define SN_COMPUTE_TILES_HOOK_H

#include "base/pool.h"
#include "kernels/kernels.h"

static inline void sn_tiles_hook_enter(void *k)
{
    ((const sn_kernels *)k)->tiles_enter();
}

static inline void sn_tiles_hook_leave(void *k)
{
    ((const sn_kernels *)k)->tiles_leave();
}

static inline sn_thread_hook sn_tiles_hook(const sn_kernels *k)
{
    return (sn_thread_hook){sn_tiles_hook_enter, sn_tiles_hook_leave, (void *)(uintptr_t)k};
}

#endif
