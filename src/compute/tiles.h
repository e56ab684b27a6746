/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers that call kernels with tiles of bf16 or bytes share: the state of their threads
 * (tiles_enter, tiles_leave), for sn_pool_run_hooked, and rows of f32 as steps of bf16. */
#ifndef SN_COMPUTE_TILES_H
#define SN_COMPUTE_TILES_H

#include <string.h>

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

enum { SN_STEP_HALVES = SN_ROWS_STEP / 2 }; /* numbers of 16 bits in a step */

/* n numbers in bf16, and zeros up to a whole step. */
static inline void sn_tiles_round(const sn_kernels *k, void *to, const float *from, size_t n)
{
    uint16_t *y = (uint16_t *)to;
    const size_t steps = n / SN_STEP_HALVES, rest = n % SN_STEP_HALVES;
    if (steps > 0)
        k->bf16_pairs(y, from, from + SN_PAIR_BLOCK, steps, SN_STEP_HALVES, NULL);
    if (rest > 0) {
        k->bf16_store(y + n - rest, from + n - rest, rest);
        memset(y + n, 0, (SN_STEP_HALVES - rest) * sizeof *y);
    }
}

#endif
