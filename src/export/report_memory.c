/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as text: totals by kind, then for the shapes that need most the step at which activations
 * peak, who holds that peak, how much of the arena is lost between them, and the arena as a map. */
#include <stdlib.h>
#include <string.h>

#include "export/arena_map.h"
#include "export/grid.h"
#include "export/reports.h"

static void put_bytes(sn_grid *g, uint64_t bytes)
{
    char text[SN_BYTES_TEXT];
    sn_grid_add(g, sn_bytes_text(text, bytes));
}

static void put_total(sn_grid *g, const char *name, uint64_t bytes)
{
    if (!bytes)
        return;
    sn_grid_add(g, name);
    put_bytes(g, bytes);
}

/* The table whose values need most at once, and the step of its peak. */
typedef struct peak {
    uint32_t table, step;
    uint64_t bytes; /* live at that step, workspace included */
    uint64_t arena; /* bytes of the arena, as in the totals */
} peak;

/* A value's bytes begin to be needed, or are no longer. */
typedef struct change {
    uint32_t table, step;
    uint64_t bytes; /* to be added, modulo 2^64 */
} change;

static int by_place(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Changes in order of tables and steps; bytes live at a step are the sum up to it. Memory follows
 * the number of values, whatever steps they name. */
static sonde_status find_peak(const sn_profile *p, peak *best, sonde_error *err)
{
    const size_t n = 2 * p->lives.n, bytes = n * sizeof(change);
    change *all = sn_alloc(p->alloc, bytes);
    if (!all)
        return sn_fail_memory(err, bytes);
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        all[2 * i] = (change){l->table, l->first, l->bytes};
        all[2 * i + 1] = (change){l->table, l->last + 1, 0 - l->bytes};
    }
    if (n)
        qsort(all, n, sizeof *all, by_place);
    uint64_t live = 0; /* 0 again at the end of a table */
    for (size_t i = 0; i < n; i++) {
        live += all[i].bytes;
        const bool settled = i + 1 == n || by_place(&all[i], &all[i + 1]) != 0;
        if (settled && live <= INT64_MAX && live > best->bytes)
            *best = (peak){all[i].table, all[i].step, live, 0};
    }
    sn_free(p->alloc, all, bytes);
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (l->table == best->table && l->place == SN_LIFE_ARENA &&
            sn_life_block_end(l) > best->arena)
            best->arena = sn_life_block_end(l);
    }
    return SONDE_OK;
}

static int larger_first(const void *a, const void *b)
{
    const sn_prof_life *x = *(const sn_prof_life *const *)a, *y = *(const sn_prof_life *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static sonde_status put_holders(const sn_profile *p, const peak *at, sn_grid *g, sonde_error *err)
{
    enum { SHOWN = 10 };
    const size_t bytes = (p->lives.n + 1) * sizeof(sn_prof_life *);
    const sn_prof_life **held = sn_alloc(p->alloc, bytes);
    if (!held)
        return sn_fail_memory(err, bytes);
    size_t n = 0;
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (l->table == at->table && l->bytes && l->first <= at->step && at->step <= l->last)
            held[n++] = l;
    }
    if (n > 1)
        qsort(held, n, sizeof *held, larger_first);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const sn_prof_step *maker = sn_prof_find_step(p, held[i]->table, held[i]->first);
        put_bytes(g, held[i]->bytes);
        sn_grid_add(g, sn_prof_place_name(held[i]->place));
        sn_grid_add(g, maker ? maker->op_type : "");
        sn_grid_add(g, sn_life_label(held[i], maker));
    }
    sn_free(p->alloc, held, bytes);
    return SONDE_OK;
}

static sonde_status put_peak(const sn_profile *p, const peak *at, sn_writer *w, sonde_error *err)
{
    const sn_prof_step *step = sn_prof_find_step(p, at->table, at->step);
    char text[SN_BYTES_TEXT];
    sn_put(w, "\nactivations peak at step ");
    sn_put_u64(w, at->step);
    if (step) {
        sn_put(w, ", ");
        sn_put_terminal(w, step->op_type);
        sn_put(w, step->name && *step->name ? " " : "");
        sn_put_terminal(w, step->name);
    }
    sn_put(w, ", with ");
    sn_put(w, sn_bytes_text(text, at->bytes));
    sn_put(w, "; the arena is ");
    /* What lies between live values when the arena is fullest is lost to fragmentation and
     * alignment. */
    uint64_t in_arena = 0;
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (l->table == at->table && l->place == SN_LIFE_ARENA && l->first <= at->step &&
            at->step <= l->last)
            in_arena += l->bytes;
    }
    const double used = at->arena ? (double)in_arena / (double)at->arena : 1.0;
    sn_put(w, sn_fixed_text(text, 100.0 * (used < 1 ? used : 1), 1));
    sn_put(w, " % used there\n");
    sn_grid g;
    sn_grid_init(&g, p->alloc, 4);
    static const char *const names[] = {"bytes", "where", "made by", "value"};
    for (size_t i = 0; i < 4; i++)
        sn_grid_add(&g, names[i]);
    const sonde_status st = put_holders(p, at, &g, err), written = sn_grid_write(&g, w, err);
    return st ? st : written;
}

sonde_status sn_report_memory(const sn_profile *p, int width, sn_sink *sink, sonde_error *err)
{
    const sn_prof_memory *m = &p->memory;
    sn_writer w;
    sn_grid g;
    sn_writer_init(&w, sink);
    sn_grid_init(&g, p->alloc, 2);
    put_total(&g, "model files, mapped", m->mapped);
    put_total(&g, "weights, packed", m->packed);
    put_total(&g, "weights, other", m->constants);
    put_total(&g, "activations", m->arenas);
    put_total(&g, "workspace", m->workspaces);
    put_total(&g, "outputs", m->outputs);
    put_total(&g, "held by the context", m->held);
    put_total(&g, "  at most", m->held_peak);
    put_total(&g, "process, resident", m->rss);
    put_total(&g, "  of that anonymous", m->rss_anon);
    put_total(&g, "  of that files", m->rss_file);
    put_total(&g, "  at most", m->rss_peak);
    sonde_status st = sn_grid_write(&g, &w, err);
    peak best = {0};
    if (!st)
        st = find_peak(p, &best, err);
    if (!st && best.bytes)
        st = put_peak(p, &best, &w, err);
    if (!st && best.bytes)
        st = sn_report_arena(p, best.table, best.step, width, &w, err);
    const sonde_status written = sn_writer_finish(&w, err);
    return st ? st : written;
}
