/* SPDX-License-Identifier: Apache-2.0 */
/* Carving workspace, and the guard of its pieces. The guard stands in front of the operator's own
 * run function, so that neither the run loop nor the operators know of it: a bound step with pieces
 * gets a run function that opens them, calls the operator and closes them again. */
#include "ops/framework/workspace.h"

#include <string.h>

#include "ops/framework/op.h"

#if SN_WORKSPACE_GUARDED
#include <sanitizer/asan_interface.h>
#endif

/* So far below PTRDIFF_MAX that a sum of two sizes needs no check. */
static const size_t max_bytes = PTRDIFF_MAX / 2;
static const size_t gap_bytes = SN_WORKSPACE_GUARDED ? SN_ALIGN : 0;

static void note_extent(sn_workspace *w, size_t at, size_t bytes)
{
#if SN_WORKSPACE_GUARDED
    if (w->n_extents < SN_WORKSPACE_EXTENTS) {
        w->extents[w->n_extents++] = (sn_workspace_extent){at, bytes};
        return;
    }
    sn_workspace_extent *last = &w->extents[SN_WORKSPACE_EXTENTS - 1];
    last->bytes = at + bytes - last->at;
#else
    (void)w;
    (void)at;
    (void)bytes;
#endif
}

sn_piece sn_carve_bytes(sn_workspace *w, size_t bytes)
{
    if (!bytes)
        return (sn_piece){0}; /* takes no room; under AddressSanitizer the first gap is there */
    const size_t at = sn_round_up(w->bytes + gap_bytes, SN_ALIGN);
    if (w->overflow || bytes > max_bytes || at > max_bytes) {
        w->overflow = true;
        return (sn_piece){0};
    }
    note_extent(w, at, bytes);
    w->bytes = at + bytes;
    return (sn_piece){at};
}

sn_piece sn_carve(sn_workspace *w, int64_t n, size_t elem_bytes)
{
    size_t bytes;
    if (n < 0 || !sn_size_mul((size_t)n, elem_bytes, &bytes))
        bytes = SIZE_MAX;
    return sn_carve_bytes(w, bytes);
}

#if SN_WORKSPACE_GUARDED

void sn_workspace_close(void *memory, size_t bytes)
{
    ASAN_POISON_MEMORY_REGION(memory, bytes);
}

void sn_workspace_open(void *memory, size_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
}

/* What the operator answered, kept behind the guard. */
typedef struct guarded_step {
    sonde_status (*run)(const sn_step *, sn_frame *);
    const void *bound;
    size_t workspace_bytes;
    uint32_t n_extents;
    sn_workspace_extent extents[];
} guarded_step;

static sonde_status run_guarded(const sn_step *s, sn_frame *f)
{
    const guarded_step *g = s->bound;
    sn_step inner = *s;
    inner.run = g->run;
    inner.bound = g->bound;
    for (uint32_t i = 0; i < g->n_extents; i++)
        sn_workspace_open(f->workspace + g->extents[i].at, g->extents[i].bytes);
    const sonde_status st = inner.run(&inner, f);
    sn_workspace_close(f->workspace, g->workspace_bytes);
    return st;
}

sonde_status sn_workspace_guard(sn_bind *b)
{
    const sn_workspace *w = &b->workspace;
    const size_t bytes = w->n_extents * sizeof *w->extents;
    if (w->n_extents == 0)
        return SONDE_OK;
    guarded_step *g = sn_arena_alloc(b->arena, sizeof *g + bytes, _Alignof(guarded_step));
    if (!g)
        return sn_fail_memory(b->err, sizeof *g + bytes);
    *g = (guarded_step){
        .run = b->run, .bound = b->bound, .workspace_bytes = w->bytes, .n_extents = w->n_extents};
    memcpy(g->extents, w->extents, bytes);
    b->run = run_guarded;
    b->bound = g;
    return SONDE_OK;
}

#else

sonde_status sn_workspace_guard(sn_bind *b)
{
    (void)b;
    return SONDE_OK;
}

#endif
