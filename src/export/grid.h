/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of right-aligned text: cells are added row by row, widths are known at the end. */
#ifndef SN_EXPORT_GRID_H
#define SN_EXPORT_GRID_H

#include "export/writer.h"

typedef struct sn_grid {
    sn_allocator *alloc;
    sn_arena arena;
    SN_VEC(const char *) cells; /* row-major */
    size_t columns;
    bool index;             /* the first column names the lines, as a data frame's: left-aligned */
    const char *index_name; /* on a line of its own below the header; NULL: none */
    bool failed;            /* out of memory: told by sn_grid_write */
} sn_grid;

void sn_grid_init(sn_grid *g, sn_allocator *alloc, size_t columns);
void sn_grid_add(sn_grid *g, const char *text); /* copied */
void sn_grid_add_u64(sn_grid *g, uint64_t v);
/* Writes all rows and frees the grid. */
sonde_status sn_grid_write(sn_grid *g, sn_writer *w, sonde_error *err);

#endif
