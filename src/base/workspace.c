/* SPDX-License-Identifier: Apache-2.0 */
/* Carving workspace; see workspace.h. */
#include "base/workspace.h"

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
    const size_t end = last->at + last->bytes > at + bytes ? last->at + last->bytes : at + bytes;
    last->at = at < last->at ? at : last->at;
    last->bytes = end - last->at;
#else
    (void)w;
    (void)at;
    (void)bytes;
#endif
}

/* Room for a piece, of which the caller says what may be touched. False: it has no bytes, or they
 * are too many. */
static bool make_room(sn_workspace *w, size_t bytes, size_t *at)
{
    if (!bytes)
        return false; /* takes no room; under AddressSanitizer the first gap is there */
    *at = sn_round_up(w->bytes + gap_bytes, SN_ALIGN);
    if (w->overflow || bytes > max_bytes || *at > max_bytes) {
        w->overflow = true;
        return false;
    }
    w->bytes = *at + bytes;
    return true;
}

sn_piece sn_carve_bytes(sn_workspace *w, size_t bytes)
{
    size_t at;
    if (!make_room(w, bytes, &at))
        return (sn_piece){0};
    note_extent(w, at, bytes);
    return (sn_piece){at};
}

sn_piece sn_carve(sn_workspace *w, int64_t n, size_t elem_bytes)
{
    size_t bytes;
    if (n < 0 || !sn_size_mul((size_t)n, elem_bytes, &bytes))
        bytes = SIZE_MAX;
    return sn_carve_bytes(w, bytes);
}

sn_pieces sn_carve_each(sn_workspace *w, size_t count, size_t bytes)
{
    const size_t step =
        bytes > max_bytes ? SIZE_MAX : sn_round_up(bytes, SN_ALIGN) + (bytes ? gap_bytes : 0);
    size_t all, at;
    if (!sn_size_mul(count, step, &all))
        all = SIZE_MAX;
    if (!make_room(w, all, &at))
        return (sn_pieces){0};
    for (size_t i = 0; i < count && SN_WORKSPACE_GUARDED; i++)
        note_extent(w, at + i * step, bytes);
    return (sn_pieces){at, step};
}

static void note_inner(sn_workspace *w, size_t at, const sn_workspace *inner)
{
#if SN_WORKSPACE_GUARDED
    for (uint32_t i = 0; i < inner->n_extents; i++)
        note_extent(w, at + inner->extents[i].at, inner->extents[i].bytes);
#else
    (void)w;
    (void)at;
    (void)inner;
#endif
}

sn_piece sn_carve_either(sn_workspace *w, const sn_workspace *a, const sn_workspace *b)
{
    const size_t larger = a->bytes > b->bytes ? a->bytes : b->bytes;
    size_t at;
    if (!make_room(w, a->overflow || b->overflow ? SIZE_MAX : larger, &at))
        return (sn_piece){0};
    note_inner(w, at, a);
    note_inner(w, at, b);
    return (sn_piece){at};
}

sn_piece sn_carve_inner(sn_workspace *w, const sn_workspace *inner)
{
    return sn_carve_either(w, inner, &(sn_workspace){0});
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

void sn_workspace_open_pieces(void *memory, const sn_workspace *w)
{
    for (uint32_t i = 0; i < w->n_extents; i++)
        sn_workspace_open((uint8_t *)memory + w->extents[i].at, w->extents[i].bytes);
}

#endif
