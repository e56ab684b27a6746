/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of text for the reports. */
#include "export/grid.h"

#include <stdio.h>

void sn_grid_init(sn_grid *g, sn_allocator *alloc, size_t columns)
{
    *g = (sn_grid){.alloc = alloc, .columns = columns};
    sn_arena_init(&g->arena, alloc);
}

void sn_grid_add(sn_grid *g, const char *text)
{
    const char *copy = sn_arena_strdup(&g->arena, text ? text : "");
    if (!copy || !sn_vec_push(&g->cells, g->alloc, copy))
        g->failed = true;
}

void sn_grid_add_u64(sn_grid *g, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    sn_grid_add(g, text);
}

sonde_status sn_grid_write(sn_grid *g, sn_writer *w, sonde_error *err)
{
    enum { MOST = 32 };
    size_t width[MOST] = {0};
    const size_t columns = g->columns < MOST ? g->columns : MOST;
    const size_t rows = g->failed || !columns ? 0 : g->cells.n / columns;
    for (size_t i = 0; i < rows * columns; i++) {
        const size_t n = sn_terminal_width(g->cells.data[i]);
        width[i % columns] = n > width[i % columns] ? n : width[i % columns];
    }
    for (size_t i = 0; i < rows * columns; i++) {
        const size_t c = i % columns;
        const size_t room = width[c] - sn_terminal_width(g->cells.data[i]);
        const bool left = g->index && c == 0;
        sn_put_spaces(w, left ? 0 : room);
        sn_put_terminal(w, g->cells.data[i]);
        sn_put_spaces(w, left ? room : 0);
        sn_put(w, c + 1 == columns ? "\n" : "  ");
        if (i + 1 == columns && g->index_name) {
            sn_put_terminal(w, g->index_name);
            sn_put(w, "\n");
        }
    }
    const bool failed = g->failed;
    sn_vec_free(&g->cells, g->alloc);
    sn_arena_free(&g->arena);
    return failed ? sn_fail_memory(err, sizeof(char *)) : SONDE_OK;
}
