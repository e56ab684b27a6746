/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes on a map of the arena: time to the right, offsets downwards, every value a rectangle of
 * one letter. Both axes are cut into as many cells as there is room for, and a cell shows whatever
 * covers most of it; so a model of ten values and one of ten thousand fit the same screen. Figures
 * may come from a file: nothing here counts steps or bytes, all is measured in cells, and lives
 * that end before they begin are left out. */
#include "export/arena_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/grid.h"

enum {
    MOST_ROWS = 20,
    MOST_COLUMNS = 1000,
    STEP_COLUMNS = 8,  /* of one step, at most */
    LETTERS = 26,      /* values with a letter and a line in the legend */
    MOST_DRAWN = 65536 /* the rest is smaller, and would lie underneath */
};
enum { FREE = '.', SOME = ':', SMALLER = '+', WORKSPACE = '#' };

typedef struct cell {
    float best, covered; /* share of the largest value in it, and of all */
    char shown;
} cell;

typedef struct map {
    const sn_profile *p;
    const sn_prof_life **lives; /* those drawn, largest first */
    char *letters;              /* of each */
    size_t n, in_arena;
    uint64_t bytes, row_bytes, steps; /* steps: how many the table has, as far as known */
    unsigned rows, columns;
    cell *cells;
    sn_arena arena;
} map;

/* ------------------------------------------------------------------ what there is */
static int larger_first(const void *a, const void *b)
{
    const sn_prof_life *x = *(const sn_prof_life *const *)a, *y = *(const sn_prof_life *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x < y ? -1 : x > y;
}

static int earlier_first(const void *a, const void *b)
{
    const sn_prof_life *x = *(const sn_prof_life *const *)a, *y = *(const sn_prof_life *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : x < y ? -1 : x > y;
}

static bool drawn(const sn_prof_life *l, uint32_t table)
{
    return l->table == table && l->bytes && l->first <= l->last &&
           (l->place == SN_LIFE_ARENA || l->place == SN_LIFE_WORKSPACE);
}

static bool collect(map *m, uint32_t table)
{
    const sn_profile *p = m->p;
    for (size_t i = 0; i < p->lives.n; i++)
        m->n += drawn(&p->lives.data[i], table);
    m->lives = SN_NEW_N(&m->arena, const sn_prof_life *, m->n + 1);
    m->letters = SN_NEW_N(&m->arena, char, m->n + 1);
    if (!m->lives || !m->letters)
        return false;
    for (size_t i = 0, n = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        if (!drawn(l, table))
            continue;
        m->lives[n++] = l;
        m->in_arena += l->place == SN_LIFE_ARENA;
        const uint64_t end = l->place == SN_LIFE_ARENA ? sn_life_block_end(l) : sn_life_end(l);
        m->bytes = end > m->bytes ? end : m->bytes;
        m->steps = l->last >= m->steps ? (uint64_t)l->last + 1 : m->steps;
    }
    for (size_t i = 0; i < p->steps.n; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        if (s->table == table && !s->folded && s->index != UINT32_MAX && s->index >= m->steps)
            m->steps = (uint64_t)s->index + 1;
    }
    return true;
}

/* The largest get letters, in the order in which they appear. */
static void give_letters(map *m)
{
    if (m->n > 1)
        qsort(m->lives, m->n, sizeof *m->lives, larger_first);
    size_t named = 0; /* of those in front: workspace has its own sign */
    for (size_t i = 0; i < m->n && named < LETTERS; i++) {
        const sn_prof_life *l = m->lives[i];
        if (l->place != SN_LIFE_ARENA)
            continue;
        memmove(&m->lives[named + 1], &m->lives[named], (i - named) * sizeof *m->lives);
        m->lives[named++] = l;
    }
    if (named > 1)
        qsort(m->lives, named, sizeof *m->lives, earlier_first);
    for (size_t i = 0; i < m->n; i++)
        m->letters[i] = (char)(i < named                             ? 'A' + (int)i
                               : m->lives[i]->place == SN_LIFE_ARENA ? SMALLER
                                                                     : WORKSPACE);
}

/* ------------------------------------------------------------------ drawing */
static void scale(map *m, unsigned room)
{
    m->row_bytes = SN_ALIGN; /* values begin at multiples of it */
    while (m->bytes / m->row_bytes >= MOST_ROWS)
        m->row_bytes *= 2;
    m->rows = (unsigned)(m->bytes / m->row_bytes + (m->bytes % m->row_bytes != 0));
    if (m->steps <= room) {
        const uint64_t each = room / m->steps;
        m->columns = (unsigned)(m->steps * (each < STEP_COLUMNS ? each : STEP_COLUMNS));
    } else {
        m->columns = room;
    }
}

typedef struct stretch { /* of one axis, in cells */
    double from, to;
} stretch;

static double overlap(stretch s, unsigned at)
{
    const double from = s.from > at ? s.from : at, to = s.to < at + 1.0 ? s.to : at + 1.0;
    return to > from ? to - from : 0;
}

/* The cells it touches are [first, end), within the axis. */
static unsigned first_cell(stretch s, unsigned n)
{
    return s.from < n ? (unsigned)s.from : n;
}

static stretch across(const map *m, uint64_t first, uint64_t end)
{
    const double unit = (double)m->columns / (double)m->steps;
    return (stretch){(double)first * unit, (double)end * unit};
}

static void draw_one(map *m, const sn_prof_life *l, char letter)
{
    const stretch x = across(m, l->first, (uint64_t)l->last + 1);
    const stretch y = {(double)l->offset / (double)m->row_bytes,
                       (double)sn_life_end(l) / (double)m->row_bytes};
    for (unsigned r = first_cell(y, m->rows); r < m->rows && r < y.to; r++)
        for (unsigned c = first_cell(x, m->columns); c < m->columns && c < x.to; c++) {
            cell *at = &m->cells[(size_t)r * m->columns + c];
            const float part = (float)(overlap(x, c) * overlap(y, r));
            at->covered += part;
            if (part > at->best) {
                at->best = part;
                at->shown = letter;
            }
        }
}

static bool draw(map *m, unsigned room)
{
    scale(m, room);
    m->cells = SN_NEW_N(&m->arena, cell, (size_t)m->rows * m->columns + 1);
    if (!m->cells)
        return false;
    for (size_t i = 0; i < m->n && i < MOST_DRAWN; i++)
        draw_one(m, m->lives[i], m->letters[i]);
    return true;
}

/* ------------------------------------------------------------------ writing */
static void put_row(const map *m, unsigned row, size_t label_width, sn_writer *w)
{
    char label[SN_BYTES_TEXT];
    sn_bytes_text(label, row * m->row_bytes);
    sn_put_spaces(w, strlen(label) < label_width ? label_width - strlen(label) : 0);
    sn_put(w, label);
    sn_put(w, " |");
    for (unsigned c = 0; c < m->columns; c++) {
        const cell *at = &m->cells[(size_t)row * m->columns + c];
        const char shown = at->covered >= 0.5f   ? at->shown
                           : at->covered > 1e-6f ? (char)SOME
                                                 : (char)FREE;
        sn_put_bytes(w, &shown, 1);
    }
    sn_put(w, "|\n");
}

/* The step of the peak above its first column; under the map the first step and the last. */
static void put_peak_mark(const map *m, uint32_t step, size_t label_width, sn_writer *w)
{
    const unsigned at = first_cell(across(m, step, step), m->columns - 1);
    char text[48];
    const int n = snprintf(text, sizeof text, "peak, step %" PRIu32, step);
    const bool left = at > (unsigned)n; /* the text where it does not make the map wider */
    sn_put_spaces(w, label_width + 2 + at - (left ? (unsigned)n + 1 : 0));
    sn_put(w, left ? text : "v ");
    sn_put(w, left ? " v\n" : text);
    sn_put(w, left ? "" : "\n");
}

static void put_axis(const map *m, size_t label_width, sn_writer *w)
{
    char last[32];
    const int n = snprintf(last, sizeof last, "%" PRIu64, m->steps - 1);
    sn_put_spaces(w, label_width - 4);
    sn_put(w, "step  0");
    if (m->columns > (unsigned)n + 1) {
        sn_put_spaces(w, m->columns - 1 - (unsigned)n);
        sn_put(w, last);
    }
    sn_put(w, "\n");
}

static void put_sizes(const map *m, sn_writer *w)
{
    char text[SN_BYTES_TEXT];
    const bool workspace = m->in_arena < m->n;
    sn_put(w, "\nlifetimes on the arena");
    sn_put(w, workspace ? " and the workspace behind it, " : ", ");
    sn_put(w, sn_bytes_text(text, m->bytes));
    sn_put(w, ": a row is ");
    sn_put(w, sn_bytes_text(text, m->row_bytes));
    if (m->steps <= m->columns) {
        sn_put(w, ", a step ");
        sn_put_u64(w, m->columns / m->steps);
        sn_put(w, m->columns == m->steps ? " column" : " columns");
    } else {
        sn_put(w, ", a column ");
        sn_put_fixed(w, (double)m->steps / m->columns, 1);
        sn_put(w, " steps");
    }
    sn_put(w, "\n. free  : less than half used");
    sn_put(w, workspace ? "  # workspace" : "");
    sn_put(w, m->in_arena > LETTERS ? "  + smaller values\n" : "\n");
}

static sonde_status put_legend(const map *m, sn_writer *w, sonde_error *err)
{
    static const char *const names[] = {"", "bytes", "offset", "steps", "made by", "value"};
    sn_grid g;
    sn_grid_init(&g, m->p->alloc, 6);
    for (size_t i = 0; i < 6; i++)
        sn_grid_add(&g, names[i]);
    for (size_t i = 0; i < m->n && i < LETTERS && m->lives[i]->place == SN_LIFE_ARENA; i++) {
        const sn_prof_life *l = m->lives[i];
        const sn_prof_step *maker = sn_prof_find_step(m->p, l->table, l->first);
        char text[SN_BYTES_TEXT] = {m->letters[i], 0};
        sn_grid_add(&g, text);
        sn_grid_add(&g, sn_bytes_text(text, l->bytes));
        sn_grid_add(&g, sn_bytes_text(text, l->offset));
        snprintf(text, sizeof text, "%" PRIu32 "-%" PRIu32, l->first, l->last);
        sn_grid_add(&g, text);
        sn_grid_add(&g, maker ? maker->op_type : "");
        sn_grid_add(&g, sn_life_label(l, maker));
    }
    return sn_grid_write(&g, w, err);
}

/* What has memory of its own. */
static void put_others(const map *m, uint32_t table, sn_writer *w)
{
    uint64_t outputs = 0, dynamic = 0;
    for (size_t i = 0; i < m->p->lives.n; i++) {
        const sn_prof_life *l = &m->p->lives.data[i];
        outputs += l->table == table && l->place == SN_LIFE_OUTPUT;
        dynamic += l->table == table && l->place == SN_LIFE_DYNAMIC;
    }
    if (!outputs && !dynamic)
        return;
    sn_put(w, "not on the map: ");
    if (outputs) {
        sn_put_u64(w, outputs);
        sn_put(w, outputs == 1 ? " output" : " outputs");
    }
    if (dynamic) {
        sn_put(w, outputs ? ", " : "");
        sn_put_u64(w, dynamic);
        sn_put(w, dynamic == 1 ? " value whose size depends on data"
                               : " values whose sizes depend on data");
    }
    sn_put(w, "\n");
}

static sonde_status put_map(const map *m, uint32_t peak_step, size_t label_width, sn_writer *w,
                            sonde_error *err)
{
    put_sizes(m, w);
    put_peak_mark(m, peak_step, label_width, w);
    for (unsigned r = 0; r < m->rows; r++)
        put_row(m, r, label_width, w);
    put_axis(m, label_width, w);
    sn_put(w, "\n");
    return put_legend(m, w, err);
}

sonde_status sn_report_arena(const sn_profile *p, uint32_t table, uint32_t peak_step, int width,
                             sn_writer *w, sonde_error *err)
{
    enum { LABEL = 12, FRAME = 3, NARROWEST = 20 }; /* "1023.99 KiB", " |" and "|" */
    const int all = width <= 0 ? 80 : width < MOST_COLUMNS ? width : MOST_COLUMNS;
    const int room = all - LABEL - FRAME;
    map m = {.p = p};
    sonde_status st = SONDE_OK;
    sn_arena_init(&m.arena, p->alloc);
    bool fine = collect(&m, table);
    if (fine && m.in_arena) {
        give_letters(&m);
        fine = draw(&m, (unsigned)(room > NARROWEST ? room : NARROWEST));
        if (fine)
            st = put_map(&m, peak_step, LABEL, w, err);
        put_others(&m, table, w);
    }
    sn_arena_free(&m.arena);
    return fine ? st : sn_fail_memory(err, sizeof(cell));
}
