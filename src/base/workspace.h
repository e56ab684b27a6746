/* SPDX-License-Identifier: Apache-2.0 */
/* Workspace: scratch memory that is divided once, when sizes are known, and used many times. Who
 * needs it carves pieces and keeps them with its other parameters; the memory comes later:
 *
 *     when sizes are known:   p->columns = sn_carve(&w, n, sizeof(float));
 *     at every run:           float *columns = sn_piece_at(memory, p->columns);
 *
 *     memory  | piece |gap| piece |gap| piece | tail, for others that need more |
 *             0           64·k        64·m    workspace.bytes
 *
 * Every piece begins at a multiple of SN_ALIGN, as the memory must, and its contents are undefined
 * when a run starts. A size that overflows is remembered in `overflow`: it is enough to look once,
 * at the end, unless the same sizes are used to calculate others.
 *
 * A driver of src/compute keeps a workspace of its own in its plan. The operator that calls it puts
 * that one into the workspace of its step (sn_carve_inner), which then has its gaps, too.
 *
 * Under AddressSanitizer there is a gap in front of every piece, and everything but the pieces of
 * the step that is running is poisoned (ops/framework/workspace_guard.h): writing past a piece is
 * reported as an error. In other builds nothing of this exists, and a gap is only what the
 * alignment takes. */
#ifndef SN_BASE_WORKSPACE_H
#define SN_BASE_WORKSPACE_H

#include "base/arena.h"

/* Objects of an arena are guarded in the same builds. */
#define SN_WORKSPACE_GUARDED (SN_ARENA_GAP_BYTES > 0)

/* Where a piece begins. A zeroed one was never carved, or has no bytes and takes no room: it must
 * not be used, and under AddressSanitizer it points into a gap. */
typedef struct sn_piece {
    size_t at;
} sn_piece;

/* Equal pieces in a row, one per thread for example. */
typedef struct sn_pieces {
    size_t at, step_bytes;
} sn_pieces;

#if SN_WORKSPACE_GUARDED
/* What may be touched: the pieces. One that carves more than this has the rest in one. */
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
/* The same for a size in bytes. */
sn_piece sn_carve_bytes(sn_workspace *w, size_t bytes);
/* `count` pieces of so many bytes. */
sn_pieces sn_carve_each(sn_workspace *w, size_t count, size_t bytes);
/* A piece that is itself divided like `inner`; what was carved from that one lies in it. */
sn_piece sn_carve_inner(sn_workspace *w, const sn_workspace *inner);
/* The same for two that are used one after the other, in the same memory. */
sn_piece sn_carve_either(sn_workspace *w, const sn_workspace *a, const sn_workspace *b);

/* Where pieces lie in memory of workspace.bytes. */
static inline void *sn_piece_at(void *memory, sn_piece p)
{
    return (uint8_t *)memory + p.at;
}
static inline void *sn_pieces_at(void *memory, sn_pieces p, size_t index)
{
    return (uint8_t *)memory + p.at + index * p.step_bytes;
}

#if SN_WORKSPACE_GUARDED
/* For whoever owns the memory: nothing of it may be touched; all of it may, which it must before it
 * is used for something else or freed. */
void sn_workspace_close(void *memory, size_t bytes);
void sn_workspace_open(void *memory, size_t bytes);
/* Of closed memory, the pieces may be touched. */
void sn_workspace_open_pieces(void *memory, const sn_workspace *w);
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
static inline void sn_workspace_open_pieces(void *memory, const sn_workspace *w)
{
    (void)memory;
    (void)w;
}
#endif

#endif
