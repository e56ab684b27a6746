/* SPDX-License-Identifier: Apache-2.0 */
/* Workspace: the scratch memory of a step while it runs. In `bind` an operator carves it into
 * pieces and keeps them with its kernel parameters; in `run` it asks the frame where a piece lies:
 *
 *     bind:   k->columns = sn_carve(&b->workspace, n, sizeof(float));
 *     run:    float *columns = sn_piece_ptr(f, k->columns);
 *
 *     frame's workspace  | piece |gap| piece |gap| piece | tail, for steps that need more |
 *                        0           64·k        64·m    workspace.bytes
 *
 * Every piece begins at a multiple of SN_ALIGN and its contents are undefined when a step starts. A
 * size that overflows is remembered, and sn_op_bind_step then refuses the step: an operator need
 * not ask, unless it goes on to calculate with the same sizes.
 *
 * Under AddressSanitizer there is a gap in front of every piece, and everything but the pieces of
 * the step that is running is poisoned: writing past a piece is reported as an error. In other
 * builds nothing of this exists, and a gap is only what the alignment takes. */
#ifndef SN_OPS_FRAMEWORK_WORKSPACE_H
#define SN_OPS_FRAMEWORK_WORKSPACE_H

#include "base/arena.h"

/* Objects of an arena are guarded in the same builds. */
#define SN_WORKSPACE_GUARDED (SN_ARENA_GAP_BYTES > 0)

/* Where a piece begins. A zeroed one was never carved, or has no bytes and takes no room: it must
 * not be used, and under AddressSanitizer it points into a gap. */
typedef struct sn_piece {
    size_t at;
} sn_piece;

#if SN_WORKSPACE_GUARDED
/* What a step may touch: its pieces. One that carves more than this has the rest in one. */
enum { SN_WORKSPACE_EXTENTS = 64 };
typedef struct sn_workspace_extent {
    size_t at, bytes;
} sn_workspace_extent;
#endif

/* Zeroed: nothing carved yet. */
typedef struct sn_workspace {
    size_t bytes;  /* up to the end of the last piece */
    bool overflow; /* some size was too large, or negative */
#if SN_WORKSPACE_GUARDED
    sn_workspace_extent extents[SN_WORKSPACE_EXTENTS];
    uint32_t n_extents;
#endif
} sn_workspace;

/* A piece of n elements of `elem_bytes` each. */
sn_piece sn_carve(sn_workspace *w, int64_t n, size_t elem_bytes);
/* The same for a size in bytes, as drivers tell what they need. */
sn_piece sn_carve_bytes(sn_workspace *w, size_t bytes);

/* Puts the guard in front of a bound step's run function, where there is one. For sn_op_bind_step.
 */
struct sn_bind;
sonde_status sn_workspace_guard(struct sn_bind *b);

#if SN_WORKSPACE_GUARDED
/* For whoever owns the memory of a frame's workspace: before the first step runs, and before the
 * memory is used for something else or freed. */
void sn_workspace_close(void *memory, size_t bytes);
void sn_workspace_open(void *memory, size_t bytes);
#else
static inline void sn_workspace_close(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}
static inline void sn_workspace_open(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}
#endif

#endif
