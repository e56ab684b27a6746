/* SPDX-License-Identifier: Apache-2.0 */
/* The timing table: one line for the run, one row per operator (or node), one line of statistics.
 * Plain it has the columns every user of such tables knows (name, time, share); given a terminal's
 * width it shortens names that would leave no room for figures, and adds as many columns as fit.
 * Rows are means per iteration and add up to the first line.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "export/units.h"

enum {
    MIN_TIME_WIDTH = 7,    /* "99.99ms": tables of successive runs line up */
    MAX_SHAPE_WIDTH = 100, /* longer shape lists push their own row only */
    LEAST_NAME = 16,       /* columns a name keeps on a narrow terminal */
    ENOUGH_NAME = 52,      /* for type and node, before there are further columns */
    CELL = SN_ARITH_TEXT
};

typedef struct table {
    const sn_profile *p;
    const sn_table_options *opt;
    sn_prof_summary ops, nodes, shapes; /* the latter two only when asked for */
    const sn_prof_row **shapes_by_op;   /* sorted by operator, then time */
    sn_time_unit unit;                  /* of all times but those of single calls */
    sn_writer w;
} table;

/* ------------------------------------------------------------------ cells */
/* Extra columns in the order they are added while they fit; all but the last are numbers. */
static void ns_as_us(char *cell, double ns) /* three digits at least */
{
    sn_fixed_text(cell, ns / 1e3, ns < 999.5 ? 3 : ns < 9995 ? 2 : 1);
}
static void rate(char *cell, double amount, double ns) /* per nanosecond = giga per second */
{
    if (amount > 0 && ns > 0)
        sn_fixed_text(cell, amount / ns, 1);
    else
        strcpy(cell, "-");
}
static void cell_calls(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    sn_fixed_text(c, r->calls, r->calls == (double)(int64_t)r->calls ? 0 : 1);
}
static void cell_mean(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    ns_as_us(c, r->per_call_mean_ns);
}
static void cell_p50(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    ns_as_us(c, r->per_call_p50_ns);
}
static void cell_p99(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    ns_as_us(c, r->per_call_p99_ns);
}
static void cell_flops(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    rate(c, r->flops, r->mean_ns);
}
static void cell_bytes(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    rate(c, r->bytes, r->mean_ns);
}

static void cell_roofline(char *c, const sn_profile *p, const sn_prof_row *r)
{
    const double share = sn_prof_roofline(p, r);
    if (share >= 0)
        sn_fixed_text(c, share * 100, 1);
    else
        strcpy(c, "-");
}
static void count(char *c, double n) /* thousands */
{
    if (n > 0)
        sn_fixed_text(c, n / 1e3, 1);
    else
        strcpy(c, "-");
}
static void cell_instructions(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    count(c, r->hw.instructions);
}
static void cell_cycles(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    count(c, r->hw.cycles);
}
static void cell_ipc(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    if (r->hw.cycles > 0)
        sn_fixed_text(c, r->hw.instructions / r->hw.cycles, 2);
    else
        strcpy(c, "-");
}
static void cell_arithmetic(char *c, const sn_profile *p, const sn_prof_row *r)
{
    (void)p;
    if (r->arithmetic)
        sn_arithmetic_text(r->arithmetic, c);
    else
        strcpy(c, "-");
}

/* What a column needs to be shown at all. */
enum { ALWAYS, PEAKS, COUNTERS, NOT_ALL_F32 };

static const struct column {
    const char *title;
    void (*cell)(char *cell, const sn_profile *p, const sn_prof_row *row); /* NULL: the kernel */
    int needs;
} columns[] = {
    {"calls", cell_calls, ALWAYS},
    {"mean \xC2\xB5s", cell_mean, ALWAYS},
    {"p50 \xC2\xB5s", cell_p50, ALWAYS},
    {"p99 \xC2\xB5s", cell_p99, ALWAYS},
    {"k-instr", cell_instructions, COUNTERS},
    {"k-cycles", cell_cycles, COUNTERS},
    {"IPC", cell_ipc, COUNTERS},
    {"GFLOP/s", cell_flops, ALWAYS},
    {"GB/s", cell_bytes, ALWAYS},
    {"% roofline", cell_roofline, PEAKS},
    {"arithmetic", cell_arithmetic, NOT_ALL_F32},
    {"kernel", NULL, ALWAYS},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t time_text(const table *t, char *cell, const sn_prof_row *r)
{
    sn_fixed_text(cell, r->mean_ns / t->unit.ns, t->unit.decimals);
    strcat(cell, t->unit.name);
    return sn_terminal_width(cell);
}

static size_t share_text(char *cell, const sn_prof_row *r)
{
    cell[0] = '(';
    sn_fixed_text(cell + 1, r->share * 100, 2);
    strcat(cell, "%)");
    return strlen(cell);
}

/* ------------------------------------------------------------------ which rows, in which order */
/* The next operator of a filter, without spaces around it; false at the end. */
static bool next_word(const char **list, const char **word, size_t *n)
{
    const char *s = *list ? *list : "";
    s += strspn(s, ", ");
    *word = s;
    *n = strcspn(s, ",");
    *list = s + *n;
    while (*n && s[*n - 1] == ' ')
        --*n;
    return *n > 0;
}

static bool names(const char *word, size_t n, const sn_prof_row *row)
{
    return strlen(row->op_type) == n && strncasecmp(word, row->op_type, n) == 0;
}

static bool shown(const table *t, const sn_prof_row *row)
{
    const char *list = t->opt->filter_op, *word;
    size_t n;
    if (!list || !*list)
        return true;
    while (next_word(&list, &word, &n))
        if (names(word, n, row))
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    const sn_prof_row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->example, y->example);
}

static int by_op_then_time(const void *a, const void *b)
{
    const sn_prof_row *x = *(const sn_prof_row *const *)a, *y = *(const sn_prof_row *const *)b;
    int order = strcmp(x->op_type, y->op_type);
    return order ? order : (x > y) - (x < y); /* rows lie sorted by time */
}

/* ------------------------------------------------------------------ colours */
static void style(table *t, const char *code)
{
    if (t->opt->color) {
        sn_put(&t->w, "\x1b[");
        sn_put(&t->w, code);
        sn_put(&t->w, "m");
    }
}

/* ------------------------------------------------------------------ shapes under an operator */
static void put_right(sn_writer *w, double v, int decimals, size_t width)
{
    char cell[CELL];
    size_t n = strlen(sn_fixed_text(cell, v, decimals));
    sn_put_spaces(w, width > n ? width - n : 0);
    sn_put(w, cell);
}

static void put_left(sn_writer *w, const char *text, size_t width)
{
    size_t n = sn_terminal_width(text);
    sn_put_terminal(w, text);
    sn_put_spaces(w, width > n ? width - n : 0);
}

static void put_name(sn_writer *w, const char *name, size_t width)
{
    const size_t n = sn_put_short(w, name, width);
    sn_put_spaces(w, width > n ? width - n : 0);
}

/* What names of these widths get of a terminal that has so much room for both. */
static void share_room(size_t *first, size_t *second, size_t room)
{
    if (*first + *second <= room)
        return;
    const size_t half = max_size(room * 2 / 5, LEAST_NAME);
    if (*first > half)
        *first = *second + half < room ? room - *second : half;
    const size_t left = room > *first ? room - *first : 0;
    if (*second > left)
        *second = max_size(left, LEAST_NAME);
}

static void put_shapes(table *t, const char *op_type)
{
    const sn_prof_row **rows = t->shapes_by_op;
    size_t lo = 0, hi = t->shapes.rows.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(rows[mid]->op_type, op_type) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t end = lo, width = strlen("Shape"), node = strlen("Example node");
    for (; end < t->shapes.rows.n && strcmp(rows[end]->op_type, op_type) == 0; end++) {
        size_t n = sn_terminal_width(rows[end]->name);
        if (n <= MAX_SHAPE_WIDTH || t->opt->width > 0)
            width = max_size(width, n);
        node = max_size(node, sn_terminal_width(rows[end]->example));
    }
    if (t->opt->width > 0) {
        const size_t figures =
            strlen("    ") + strlen(" | Count | Mean (ms) | Total (ms) | ns/input elem | ");
        const size_t all = (size_t)t->opt->width;
        share_room(&width, &node, all > figures ? all - figures : 0);
    }
    sn_writer *w = &t->w;
    sn_put(w, "\n    ");
    put_left(w, "Shape", width);
    const char *unit = t->unit.name;
    const int decimals = t->unit.ns == 1 ? 2 : t->unit.ns == 1e3 ? 3 : 4;
    sn_put(w, " | Count | Mean (");
    sn_put(w, unit);
    sn_put(w, ") | Total (");
    sn_put(w, unit);
    sn_put(w, ") | ns/input elem | Example node\n");
    const size_t narrower = sn_terminal_width("ms") - sn_terminal_width(unit);
    for (size_t i = lo; i < end; i++) {
        const sn_prof_row *r = rows[i];
        sn_put(w, "    ");
        if (t->opt->width > 0)
            put_name(w, r->name, width);
        else
            put_left(w, r->name, width);
        sn_put(w, " | ");
        put_right(w, r->calls, r->calls == (double)(int64_t)r->calls ? 0 : 1, 5);
        sn_put(w, " | ");
        put_right(w, r->per_call_mean_ns / t->unit.ns, decimals, 9 - narrower);
        sn_put(w, " | ");
        put_right(w, r->mean_ns / t->unit.ns, decimals, 10 - narrower);
        sn_put(w, " | ");
        if (r->input_elems > 0)
            put_right(w, r->mean_ns / r->input_elems, 3, 13);
        else
            sn_put(w, "            -");
        sn_put(w, " | ");
        (void)sn_put_short(w, r->example, node);
        sn_put(w, "\n");
    }
    sn_put(w, "\n");
}

/* ------------------------------------------------------------------ one block of rows */
typedef struct layout {
    size_t type, label, time, share; /* widths; label = type and node name */
    size_t nodes;                    /* columns left for the nodes of a fused step */
    size_t column[COLUMNS];
    int shown[COLUMNS]; /* which, in order */
    int columns;        /* how many fit */
} layout;

static bool known(const table *t, const sn_prof_summary *s, const struct column *c)
{
    if (c->needs == PEAKS)
        return t->p->peak_gops[SN_ARITH_F32] > 0;
    if (c->needs == ALWAYS)
        return true;
    for (size_t i = 0; i < s->rows.n; i++) {
        const sn_prof_row *r = &s->rows.data[i];
        if (c->needs == COUNTERS ? r->hw.calls > 0 : (r->arithmetic & ~(1u << SN_ARITH_F32)) != 0)
            return true;
    }
    return false;
}

static size_t label_width(const layout *l, const sn_prof_row *r, bool by_node)
{
    if (!by_node || r->bracket || !*r->example)
        return sn_terminal_width(r->name);
    return max_size(l->type, sn_terminal_width(r->name)) + 2 + sn_terminal_width(r->example);
}

/* Names leave room for the figures; the few columns that follow come before the last letters of
 * long names. */
static void fit_names(layout *l, bool by_node, size_t width)
{
    const size_t figures = 1 + l->time + 1 + max_size(l->share, strlen("share"));
    const size_t most = max_size(width > figures ? width - figures : 0, LEAST_NAME);
    const size_t wanted = max_size(width / 2, ENOUGH_NAME), room = most < wanted ? most : wanted;
    size_t node = by_node && l->label > l->type + 2 ? l->label - l->type - 2 : 0, type = l->label;
    if (node) {
        type = l->type;
        share_room(&type, &node, room > 2 ? room - 2 : 0);
        l->type = type;
        l->label = type + 2 + node;
    } else if (l->label > room) {
        l->label = room;
        l->type = l->type < room ? l->type : room;
    }
}

static layout measure(const table *t, const sn_prof_summary *s, bool by_node)
{
    layout l = {.time = MIN_TIME_WIDTH};
    char cell[CELL + 8];
    for (int c = 0; c < COLUMNS; c++)
        l.column[c] = sn_terminal_width(columns[c].title);
    for (size_t i = 0; i < s->rows.n; i++)
        if (shown(t, &s->rows.data[i]) && !s->rows.data[i].bracket)
            l.type = max_size(l.type, sn_terminal_width(s->rows.data[i].name));
    for (size_t i = 0; i < s->rows.n; i++) {
        const sn_prof_row *r = &s->rows.data[i];
        if (!shown(t, r))
            continue;
        l.label = max_size(l.label, label_width(&l, r, by_node));
        l.time = max_size(l.time, time_text(t, cell, r));
        l.share = max_size(l.share, share_text(cell, r));
        for (int c = 0; c < COLUMNS; c++) {
            if (columns[c].cell)
                columns[c].cell(cell, t->p, r);
            size_t n = columns[c].cell ? strlen(cell) : sn_terminal_width(r->kernel);
            l.column[c] = max_size(l.column[c], n);
        }
    }
    l.nodes = SIZE_MAX;
    if (t->opt->width <= 0)
        return l;
    fit_names(&l, by_node, (size_t)t->opt->width);
    size_t label = max_size(l.label, strlen("operator"));
    size_t used = label + 1 + l.time + 1 + max_size(l.share, strlen("share"));
    for (int c = 0; c < COLUMNS; c++) {
        if (!known(t, s, &columns[c]))
            continue;
        if (used + 2 + l.column[c] > (size_t)t->opt->width)
            break;
        used += 2 + l.column[c];
        l.shown[l.columns++] = c;
    }
    if (l.columns) {
        l.label = label;
        l.share = max_size(l.share, strlen("share"));
    }
    l.nodes = (size_t)t->opt->width > used + 2 ? (size_t)t->opt->width - used - 2 : 0;
    return l;
}

static void put_titles(table *t, const layout *l)
{
    sn_writer *w = &t->w;
    style(t, "2");
    put_left(w, "operator", l->label + 1);
    put_left(w, "time", l->time + 1);
    put_left(w, "share", l->share);
    for (int k = 0; k < l->columns; k++) {
        const int c = l->shown[k];
        size_t n = sn_terminal_width(columns[c].title);
        sn_put_spaces(w, 2 + (columns[c].cell ? l->column[c] - n : 0));
        sn_put(w, columns[c].title);
    }
    style(t, "0");
    sn_put(w, "\n");
}

static void put_row(table *t, const layout *l, const sn_prof_row *r, bool by_node)
{
    sn_writer *w = &t->w;
    char cell[CELL + 8];
    if (r->bracket)
        style(t, "2");
    if (by_node && !r->bracket && *r->example) {
        put_name(w, r->name, l->type);
        sn_put(w, "  ");
        put_name(w, r->example, l->label - l->type - 2);
    } else {
        put_name(w, r->name, l->label);
    }
    sn_put(w, " ");
    time_text(t, cell, r);
    put_left(w, cell, l->time);
    sn_put(w, " ");
    share_text(cell, r);
    bool nodes = by_node && *r->nodes && strcmp(r->nodes, r->example) != 0 &&
                 sn_terminal_width(r->nodes) <= l->nodes;
    put_left(w, cell, l->columns || nodes ? l->share : 0);
    for (int k = 0; k < l->columns; k++) {
        const int c = l->shown[k];
        if (columns[c].cell) {
            columns[c].cell(cell, t->p, r);
            sn_put_spaces(w, 2 + l->column[c] - strlen(cell));
            sn_put(w, cell);
        } else if (*r->kernel || nodes) {
            sn_put(w, "  ");
            put_left(w, r->kernel, nodes ? l->column[c] : 0);
        }
    }
    if (nodes) {
        sn_put(w, "  ");
        sn_put_terminal(w, r->nodes);
    }
    if (r->bracket)
        style(t, "0");
    sn_put(w, "\n");
}

/* A row at 200 GFLOP/s where the machine has 100 is no mistake: Winograd multiplies less. */
static void put_winograd(table *t, const layout *l, const sn_prof_summary *s)
{
    bool rates = false, any = false;
    for (int c = 0; c < l->columns; c++)
        rates |=
            columns[l->shown[c]].cell == cell_flops || columns[l->shown[c]].cell == cell_roofline;
    for (size_t i = 0; i < s->rows.n && rates; i++)
        any |= shown(t, &s->rows.data[i]) && sn_prof_counts_direct(&s->rows.data[i]);
    if (any)
        sn_put(&t->w, SN_PROF_DIRECT_NOTE "\n");
}

static void put_block(table *t, sn_prof_summary *s, bool by_node)
{
    if (t->opt->sort_by_name)
        qsort(s->rows.data, s->rows.n, sizeof *s->rows.data, by_name);
    layout l = measure(t, s, by_node);
    if (l.columns)
        put_titles(t, &l);
    size_t hidden = 0, brackets = 0;
    sn_prof_row rest = {0};
    for (size_t i = 0; i < s->rows.n; i++) {
        const sn_prof_row *r = &s->rows.data[i];
        if (!shown(t, r)) {
            hidden += !r->bracket;
            brackets += r->bracket;
            rest.mean_ns += r->mean_ns;
            rest.share += r->share;
            continue;
        }
        put_row(t, &l, r, by_node);
        if (t->opt->by_shape && !by_node && !r->bracket)
            put_shapes(t, r->op_type);
    }
    put_winograd(t, &l, s);
    if (hidden || brackets) {
        char time[CELL + 8], share[CELL + 8];
        time_text(t, time, &rest);
        share_text(share, &rest);
        sn_writer *w = &t->w;
        if (hidden) {
            sn_put_u64(w, hidden);
            sn_put(w, by_node ? " step" : " operator");
            sn_put(w, hidden == 1 ? "" : "s");
        }
        sn_put(w, hidden && brackets ? " and " : "");
        sn_put(w, brackets ? "the time outside of operators" : "");
        sn_put(w, " hidden: ");
        sn_put(w, time);
        sn_put(w, " ");
        sn_put(w, share);
        sn_put(w, "\n");
    }
}

/* A filter that nothing passes would leave a table without rows, and no reason. */
static void put_unmatched(table *t)
{
    sn_writer *w = &t->w;
    const char *list = t->opt->filter_op, *word;
    const sn_prof_row *rows = t->ops.rows.data;
    size_t n, missing = 0;
    while (next_word(&list, &word, &n)) {
        bool found = false;
        for (size_t i = 0; i < t->ops.rows.n && !found; i++)
            found = names(word, n, &rows[i]);
        if (found)
            continue;
        char name[64];
        n = n < sizeof name ? n : sizeof name - 1;
        memcpy(name, word, n);
        name[n] = 0;
        sn_put(w, missing++ ? ", '" : "no operator is called '");
        sn_put_terminal(w, name);
        sn_put(w, "'");
    }
    if (!missing)
        return;
    bool any = false;
    for (size_t i = 0; i < t->ops.rows.n; i++) {
        if (rows[i].bracket)
            continue;
        sn_put(w, any ? ", " : "; there are ");
        sn_put_terminal(w, rows[i].op_type);
        any = true;
    }
    sn_put(w, "\n");
}

/* ------------------------------------------------------------------ first and last line */
static void put_heading(table *t)
{
    sn_writer *w = &t->w;
    style(t, "1");
    sn_put(w, "Graph run of ");
    sn_put_fixed(w, t->ops.ops, 0);
    sn_put(w, " ops finished in ");
    sn_put_fixed(w, t->ops.wall_ns.mean / t->unit.ns, t->unit.decimals + 1);
    sn_put(w, t->unit.name);
    style(t, "0");
    sn_put(w, "\n\n");
}

static void put_closing(table *t)
{
    sn_writer *w = &t->w;
    const sn_prof_summary *s = &t->ops;
    style(t, "2");
    sn_put(w, "mean of ");
    sn_put_u64(w, s->iterations);
    sn_put(w, s->iterations == 1 ? " run" : " runs");
    if (s->instances > 1) {
        sn_put(w, " in ");
        sn_put_u64(w, s->instances);
        sn_put(w, " instances");
    }
    sn_put(w, "; median ");
    sn_put_fixed(w, s->wall_ns.p50 / t->unit.ns, t->unit.decimals);
    sn_put(w, ", p95 ");
    sn_put_fixed(w, s->wall_ns.p95 / t->unit.ns, t->unit.decimals);
    sn_put(w, ", p99 ");
    sn_put_fixed(w, s->wall_ns.p99 / t->unit.ns, t->unit.decimals);
    sn_put(w, " ");
    sn_put(w, t->unit.name);
    sn_put(w, "; warm-up ");
    sn_put_u64(w, s->warmups);
    if (isnan(s->cost_ns)) {
        sn_put(w, "; profiler cost unknown");
    } else {
        sn_put(w, "; profiler cost ");
        sn_put_in_unit(w, s->cost_ns, &t->unit, t->unit.decimals);
        sn_put(w, " ");
        sn_put(w, t->unit.name);
        sn_put(w, " (");
        sn_put_fixed(w, s->wall_ns.mean > 0 ? s->cost_ns / s->wall_ns.mean * 100 : 0, 1);
        sn_put(w, " %), not included");
    }
    style(t, "0");
    sn_put(w, "\n");
    if (t->p->dropped) {
        sn_put_u64(w, t->p->dropped);
        sn_put(w, " records were dropped because the recorder was full; their time is missing from "
                  "the rows or counted in [Other]\n");
    }
}

/* What the system counted, in total; and why there is nothing more. */
static void put_usage(table *t)
{
    sn_writer *w = &t->w;
    const sn_prof_usage *u = &t->p->usage;
    if (!u->known)
        return;
    style(t, "2");
    sn_put(w, "in total: task-clock ");
    const sn_time_unit unit = sn_time_unit_for((double)u->cpu_ns);
    sn_put_fixed(w, (double)u->cpu_ns / unit.ns, unit.ns == 1e6 ? 1 : unit.decimals);
    sn_put(w, " ");
    sn_put(w, unit.name);
    sn_put(w, ", page-faults ");
    sn_put_u64(w, u->minor_faults + u->major_faults);
    sn_put(w, " (major ");
    sn_put_u64(w, u->major_faults);
    sn_put(w, "), context-switches ");
    sn_put_u64(w, u->voluntary + u->involuntary);
    sn_put(w, " (involuntary ");
    sn_put_u64(w, u->involuntary);
    sn_put(w, ")\n");
    if (*t->p->counters_note) {
        sn_put_terminal(w, t->p->counters_note);
        sn_put(w, "\n");
    }
    style(t, "0");
}

static void put_table(table *t)
{
    if (t->ops.iterations == 0) {
        sn_put(&t->w, "No measured run in this profile (warm-up ");
        sn_put_u64(&t->w, t->ops.warmups);
        sn_put(&t->w, ")\n");
        return;
    }
    t->unit = sn_time_unit_for(t->ops.wall_ns.mean);
    put_heading(t);
    if (t->opt->by_shape || !t->opt->by_node)
        put_block(t, &t->ops, false);
    if (t->opt->by_shape && t->opt->by_node)
        sn_put(&t->w, "\n");
    if (t->opt->by_node)
        put_block(t, &t->nodes, true);
    put_unmatched(t);
    put_closing(t);
    put_usage(t);
}

static sonde_status index_shapes(table *t, sonde_error *err)
{
    size_t n = t->shapes.rows.n;
    t->shapes_by_op = sn_alloc(t->p->alloc, n * sizeof *t->shapes_by_op);
    if (!t->shapes_by_op)
        return sn_fail_memory(err, n * sizeof *t->shapes_by_op);
    for (size_t i = 0; i < n; i++)
        t->shapes_by_op[i] = &t->shapes.rows.data[i];
    qsort(t->shapes_by_op, n, sizeof *t->shapes_by_op, by_op_then_time);
    return SONDE_OK;
}

sonde_status sn_export_table(const sn_profile *p, const sn_table_options *opt, sn_sink *sink,
                             sonde_error *err)
{
    static const sn_table_options plain = {0};
    table t = {.p = p, .opt = opt ? opt : &plain};
    t.nodes.alloc = t.shapes.alloc = t.nodes.arena.alloc = t.shapes.arena.alloc = p->alloc;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &t.ops, err));
    sonde_status st = SONDE_OK;
    if (t.opt->by_node)
        SN_TRY_GOTO(st, sn_profile_summarise(p, SN_BY_NODE, &t.nodes, err));
    if (t.opt->by_shape) {
        SN_TRY_GOTO(st, sn_profile_summarise(p, SN_BY_SHAPE, &t.shapes, err));
        SN_TRY_GOTO(st, index_shapes(&t, err));
    }
    sn_writer_init(&t.w, sink);
    put_table(&t);
    st = sn_writer_finish(&t.w, err);
fail:
    if (t.shapes_by_op)
        sn_free(p->alloc, t.shapes_by_op, t.shapes.rows.n * sizeof *t.shapes_by_op);
    sn_prof_summary_free(&t.shapes);
    sn_prof_summary_free(&t.nodes);
    sn_prof_summary_free(&t.ops);
    return st;
}

/* The plain table as a file format. */
static sonde_status write_text(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_table_options options = {.by_shape = true};
    return sn_export_table(p, &options, sink, err);
}

const sn_exporter sn_exporter_text = {.suffix = ".txt",
                                      .name = "text",
                                      .summary = "The timing table with shapes, as text",
                                      .write = write_text};
