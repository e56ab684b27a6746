/* SPDX-License-Identifier: Apache-2.0 */
/* Members, and the tables that are made of them. */
#include "profile/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/left.h"
#include "profile/nesting.h"

void sn_fleet_init(sn_fleet *f, sn_allocator *alloc)
{
    *f = (sn_fleet){.alloc = alloc};
    sn_arena_init(&f->arena, alloc);
}

void sn_fleet_free(sn_fleet *f)
{
    for (size_t i = 0; i < f->members.n; i++)
        sn_vec_free(&f->members.data[i].ops, f->alloc);
    sn_vec_free(&f->members, f->alloc);
    sn_arena_free(&f->arena);
}

/* Sums of what a stranger's file says stay what can be added. */
static uint64_t add(uint64_t a, uint64_t b)
{
    return a + b < SN_PROF_MAX_COUNT ? a + b : SN_PROF_MAX_COUNT;
}

/* ------------------------------------------------------------------ members */
/* The worker's label, or the process's number of a trace that has none. */
static const char *worker_of(sn_fleet *f, const sn_profile *p)
{
    const char *label = sn_labels_get(&p->labels, SN_LABEL_WORKER);
    if (*label || p->pid <= 0)
        return sn_arena_strdup(&f->arena, label);
    return sn_arena_printf(&f->arena, "%" PRId64, p->pid);
}

static bool take_names(sn_fleet *f, const sn_profile *p, sn_fleet_member *m)
{
    m->host = sn_arena_strdup(&f->arena, sn_labels_get(&p->labels, SN_LABEL_HOST));
    m->worker = worker_of(f, p);
    m->version = sn_arena_strdup(&f->arena, sn_labels_get(&p->labels, SN_LABEL_VERSION));
    m->model = sn_arena_strdup(&f->arena, p->model_name);
    return m->host && m->worker && m->version && m->model;
}

static uint64_t whole(double x)
{
    return x >= 0 && x < (double)SN_PROF_MAX_COUNT ? (uint64_t)x : SN_PROF_MAX_COUNT;
}

/* Times of operators as they were recorded: whole nanoseconds, which add up exactly. */
static sonde_status add_operators(const sn_profile *p, sn_fleet_member *m, sonde_error *err)
{
    sn_profile raw = *p; /* borrows everything */
    sn_prof_nest nest;
    raw.record_ns = 0;
    raw.workers.n = 0;
    SN_TRY(sn_prof_nest_build(&raw, &nest, err));
    for (size_t i = 0; i < p->spans.n; i++) {
        const uint32_t it = nest.iteration[i];
        if (p->spans.data[i].cat != SN_CAT_OPERATOR || it == SN_PROF_NONE ||
            p->spans.data[nest.iteration_span[it]].warmup)
            continue;
        m->operators++;
        m->operator_ns = add(m->operator_ns, (uint64_t)nest.net_ns[i]);
    }
    sn_prof_nest_free(&nest);
    for (size_t i = 0; i < p->left.steps.n; i++) { /* these without the recorder's cost */
        const sn_prof_left_step *s = &p->left.steps.data[i];
        if (s->step == SN_LEFT_MEMORY || s->step == SN_LEFT_OTHER)
            continue;
        m->operators = add(m->operators, whole(s->calls));
        m->operator_ns = add(m->operator_ns, whole(s->total_ns));
    }
    return SONDE_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sonde_status add_runs(sn_fleet *f, const sn_profile *p, sn_fleet_member *m, sonde_error *err)
{
    const sn_prof_left *left = &p->left;
    sn_prof_runs runs;
    SN_TRY(sn_profile_runs(p, &runs, err));
    m->wall_ns = SN_NEW_N(&f->arena, double, runs.all.n + left->wall_ns.n + 1);
    for (size_t i = 0; i < runs.all.n && m->wall_ns; i++) {
        const sn_prof_span *s = &p->spans.data[runs.all.data[i].span];
        const uint64_t start = p->start_wall_ns + s->start_ns, end = start + s->dur_ns;
        m->wall_ns[i] = runs.all.data[i].wall_ns;
        m->first_ns = i == 0 || start < m->first_ns ? start : m->first_ns;
        m->last_ns = end > m->last_ns ? end : m->last_ns;
    }
    m->runs = runs.all.n;
    sn_prof_runs_free(&runs);
    if (m->wall_ns && left->wall_ns.n) {
        const uint64_t start = p->start_wall_ns + left->first_ns;
        const uint64_t end = p->start_wall_ns + left->last_ns;
        m->first_ns = !m->runs || start < m->first_ns ? start : m->first_ns;
        m->last_ns = end > m->last_ns ? end : m->last_ns;
        memcpy(m->wall_ns + m->runs, left->wall_ns.data, left->wall_ns.n * sizeof *m->wall_ns);
        m->runs += left->wall_ns.n;
    }
    if (!m->wall_ns)
        return sn_fail_memory(err, m->runs * sizeof *m->wall_ns);
    if (m->runs > 1)
        qsort(m->wall_ns, m->runs, sizeof *m->wall_ns, ascending);
    return SONDE_OK;
}

static sonde_status add_summary(sn_fleet *f, const sn_profile *p, sn_fleet_member *m,
                                sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    m->warmups = s.warmups;
    m->p50_ns = s.wall_ns.p50;
    bool fine = true;
    for (size_t i = 0; i < s.rows.n && fine; i++) {
        const sn_fleet_op op = {.name = sn_arena_strdup(&f->arena, s.rows.data[i].name),
                                .usual_ns = s.rows.data[i].usual_ns};
        fine = op.name && sn_vec_push(&m->ops, f->alloc, op);
    }
    sn_prof_summary_free(&s);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(sn_fleet_op));
}

sonde_status sn_fleet_add(sn_fleet *f, const sn_profile *p, sonde_error *err)
{
    char limited[160]; /* a file that leaves runs out on purpose is whole */
    const char *note = sn_left_note(p, sn_left_kept(p), limited);
    sn_fleet_member m = {.dropped = p->dropped,
                         .incomplete = *p->note != 0 && strcmp(p->note, note) != 0};
    if (!take_names(f, p, &m))
        return sn_fail_memory(err, 1);
    sonde_status st = add_operators(p, &m, err);
    if (st == SONDE_OK)
        st = add_runs(f, p, &m, err);
    if (st == SONDE_OK)
        st = add_summary(f, p, &m, err);
    if (st == SONDE_OK && !sn_vec_push(&f->members, f->alloc, m))
        st = sn_fail_memory(err, sizeof m);
    if (st != SONDE_OK)
        sn_vec_free(&m.ops, f->alloc);
    return st;
}

sonde_status sn_fleet_add_all(sn_fleet *f, const sn_profile *p, sonde_error *err)
{
    if (!p->workers.n)
        return sn_fleet_add(f, p, err);
    for (size_t i = 0; i < p->workers.n; i++) {
        sn_profile part = *p->workers.data[i].part; /* borrows everything */
        part.start_wall_ns = p->start_wall_ns + p->workers.data[i].offset_ns;
        SN_TRY(sn_fleet_add(f, &part, err));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ rows */
int sn_fleet_compare_names(const char *a, const char *b)
{
    const int order = strverscmp(a, b);
    return order ? order : strcmp(a, b);
}

/* Which of two members comes first, and whether they are one row: 0. */
static int compare(const sn_fleet_member *a, const sn_fleet_member *b, sn_fleet_by by)
{
    const bool version = by == SN_FLEET_VERSION;
    const int first = version ? sn_fleet_compare_names(a->model, b->model)
                              : sn_fleet_compare_names(a->host, b->host);
    if (first || by == SN_FLEET_HOST)
        return first;
    return version ? sn_fleet_compare_names(a->version, b->version)
                   : sn_fleet_compare_names(a->worker, b->worker);
}

static int by_host(const void *a, const void *b)
{
    return compare(*(const sn_fleet_member *const *)a, *(const sn_fleet_member *const *)b,
                   SN_FLEET_HOST);
}

static int by_worker(const void *a, const void *b)
{
    return compare(*(const sn_fleet_member *const *)a, *(const sn_fleet_member *const *)b,
                   SN_FLEET_WORKER);
}

static int by_version(const void *a, const void *b)
{
    return compare(*(const sn_fleet_member *const *)a, *(const sn_fleet_member *const *)b,
                   SN_FLEET_VERSION);
}

static const char *common(const char *a, const char *b)
{
    return strcmp(a, b) == 0 ? a : "";
}

/* Members of one row, one behind the other; `samples` has room for all their runs. */
static sn_fleet_row make_row(const sn_fleet_member *const *members, size_t n, double *samples)
{
    const sn_fleet_member *m = members[0];
    sn_fleet_row row = {
        .host = m->host, .worker = m->worker, .version = m->version, .model = m->model};
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < n; i++) {
        m = members[i];
        row.host = common(row.host, m->host);
        row.worker = common(row.worker, m->worker);
        row.version = common(row.version, m->version);
        row.model = common(row.model, m->model);
        row.profiles++;
        row.incomplete += m->incomplete;
        if (m->runs) {
            memcpy(samples + row.runs, m->wall_ns, m->runs * sizeof *samples);
            first = m->first_ns < first ? m->first_ns : first;
            last = m->last_ns > last ? m->last_ns : last;
        }
        row.runs += m->runs;
        row.warmups += m->warmups;
        row.dropped = add(row.dropped, m->dropped);
        row.operators += m->operators;
        row.operator_ns = add(row.operator_ns, m->operator_ns);
    }
    row.runs_per_s = last > first ? (double)row.runs / ((double)(last - first) / 1e9) : 0;
    sn_prof_stats_of(samples, row.runs, &row.wall_ns);
    return row;
}

static void set_shares(sn_fleet_rows *rows)
{
    double total = 0;
    for (size_t i = 0; i < rows->list.n; i++)
        total += (double)rows->list.data[i].operator_ns;
    for (size_t i = 0; i < rows->list.n && total > 0; i++)
        rows->list.data[i].share = (double)rows->list.data[i].operator_ns / total;
}

sonde_status sn_fleet_rows_of(const sn_fleet *f, sn_fleet_by by, sn_fleet_rows *rows,
                              sonde_error *err)
{
    static int (*const orders[])(const void *, const void *) = {by_host, by_worker, by_version};
    const size_t n = f->members.n;
    size_t runs = 0;
    *rows = (sn_fleet_rows){.alloc = f->alloc};
    for (size_t i = 0; i < n; i++)
        runs += f->members.data[i].runs;
    const sn_fleet_member **list = sn_alloc(f->alloc, n * sizeof *list);
    double *samples = sn_alloc(f->alloc, runs * sizeof *samples);
    bool fine = list && samples;
    for (size_t i = 0; i < n && fine; i++)
        list[i] = &f->members.data[i];
    if (fine && n > 1)
        qsort(list, n, sizeof *list, orders[by]);
    for (size_t i = 0, next; i < n && fine; i = next) {
        next = i + 1;
        while (next < n && compare(list[i], list[next], by) == 0)
            next++;
        const sn_fleet_row row = make_row(&list[i], next - i, samples);
        fine = sn_vec_push(&rows->list, rows->alloc, row);
    }
    sn_free(f->alloc, list, n * sizeof *list);
    sn_free(f->alloc, samples, runs * sizeof *samples);
    set_shares(rows);
    if (fine)
        return SONDE_OK;
    sn_fleet_rows_free(rows);
    return sn_fail_memory(err, runs * sizeof *samples);
}

void sn_fleet_rows_free(sn_fleet_rows *rows)
{
    sn_vec_free(&rows->list, rows->alloc);
}
