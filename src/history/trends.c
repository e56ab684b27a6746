/* SPDX-License-Identifier: Apache-2.0 */
/* Trends: entries that are alike, in the order of time, and the levels between their changes. */
#include "history/trends.h"

#include <stdlib.h>

#include "base/map.h"
#include "sonde/experimental/changes.h"

typedef struct gathering {
    sonde_history *history;
    sonde_history_filter filter;
    sonde_trend_options options;
    sonde_trends *trends;
    sn_map origins; /* by the number of the series in the database */
    sn_map by_key;
    sn_sql_statement find_op; /* with an operator only */
} gathering;

/* ------------------------------------------------------------------ which series */

/* What entries of one joined series have in common. Parts have no line feed unless somebody put it
 * there, and then two series may become one. */
static const char *key_of(const gathering *g, const sonde_history_entry *e)
{
    const unsigned across = g->options.across;
    const bool models = across & SONDE_ACROSS_MODELS, machines = across & SONDE_ACROSS_MACHINES;
    const bool hosts = machines || across & SONDE_ACROSS_HOSTS;
    const bool options = across & SONDE_ACROSS_OPTIONS;
    return sn_arena_printf(&g->trends->arena, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%d\n%s", e->kind,
                           e->runtime, models ? "" : e->model, models ? "" : e->model_form,
                           hosts ? "" : e->host, machines ? "" : e->cpu,
                           machines ? "" : e->cpu_level, machines ? 0 : e->cores,
                           options ? "" : e->options);
}

/* What all have in common that are joined: what was asked for. */
static const char *asked_or(const char *pattern, const char *all, sn_arena *arena)
{
    return pattern && *pattern ? sn_arena_strdup(arena, pattern) : all;
}

static bool set_title(const gathering *g, sn_series *s, const sonde_history_entry *e)
{
    char options[300] = "";
    sn_arena *arena = &g->trends->arena;
    const unsigned across = g->options.across;
    const bool own = strcmp(e->runtime, "sonde") == 0, machines = across & SONDE_ACROSS_MACHINES;
    const char *model =
        across & SONDE_ACROSS_MODELS ? asked_or(g->filter.model, "all models", arena) : e->model;
    if (!(across & SONDE_ACROSS_OPTIONS))
        sn_history_options_title(e->options, arena->alloc, options, sizeof options);
    else if (g->filter.options)
        snprintf(options, sizeof options, "%s", g->filter.options);
    const char *op = g->options.op && *g->options.op ? g->options.op : NULL;
    s->title = sn_arena_printf(
        arena, "%s%s%s%s%s%s%s%s%s", model ? model : "", op ? ", " : "", op ? op : "",
        *options ? ", " : "", options, strcmp(e->kind, "profile") ? ", " : "",
        strcmp(e->kind, "profile") ? e->kind : "", own ? "" : ", ", own ? "" : e->runtime);
    const bool host = !machines && !(across & SONDE_ACROSS_HOSTS);
    s->machine = machines ? asked_or(g->filter.machine, "all machines", arena)
                          : sn_arena_printf(arena, "%s%s%s", host ? e->host : "",
                                            host && *e->host && *e->cpu ? ", " : "", e->cpu);
    return model && s->title && s->machine;
}

/* NULL: no memory, here and below. */
static sn_series *series_of(gathering *g, const sonde_history_entry *e)
{
    sonde_trends *t = g->trends;
    const char *key = g->options.across ? key_of(g, e) : "";
    sn_series *s = key && *key ? sn_map_get(&g->by_key, key) : NULL;
    if (s || !key)
        return s;
    s = SN_NEW(&t->arena, sn_series);
    if (!s || !set_title(g, s, e) || (*key && !sn_map_put(&g->by_key, key, s, NULL)) ||
        !sn_vec_push(&t->list, &t->context->alloc, s))
        return NULL;
    return s;
}

static sn_trend_origin *origin_of(gathering *g, const sonde_history_entry *e)
{
    sn_arena *arena = &g->trends->arena;
    sn_trend_origin *o = sn_map_get_n(&g->origins, &e->series, sizeof e->series);
    if (o)
        return o;
    o = SN_NEW(arena, sn_trend_origin);
    sn_series *s = o ? series_of(g, e) : NULL;
    if (!s)
        return NULL;
    *o = (sn_trend_origin){.number = e->series,
                           .model = sn_arena_strdup(arena, e->model),
                           .form = sn_arena_strdup(arena, e->model_form),
                           .host = sn_arena_strdup(arena, e->host),
                           .cpu = sn_arena_strdup(arena, e->cpu),
                           .cpu_level = sn_arena_strdup(arena, e->cpu_level),
                           .options = sn_arena_strdup(arena, e->options),
                           .cores = e->cores,
                           .series = s,
                           .next = s->origins};
    if (!o->model || !o->form || !o->host || !o->cpu || !o->cpu_level || !o->options ||
        !sn_map_put_n(&g->origins, &o->number, sizeof o->number, o, NULL))
        return NULL;
    s->origins = o;
    return o;
}

/* ------------------------------------------------------------------ points */

/* The mean of an operator; below 0: the entry has none of it. */
static sonde_status find_op(gathering *g, int64_t id, double *ns, sonde_error *err)
{
    bool row;
    sn_sql_bind_int(&g->find_op, id);
    sn_sql_bind_text(&g->find_op, g->options.op);
    const sonde_status st = sn_sql_step(&g->find_op, &row, err);
    *ns = st == SONDE_OK && row ? sn_sql_real(&g->find_op, 0) : -1;
    sn_sql_reset(&g->find_op);
    return st;
}

static sonde_status add_point(gathering *g, const sonde_history_entry *e, sonde_error *err)
{
    sn_arena *arena = &g->trends->arena;
    sonde_trend_point p = {.struct_size = sizeof p,
                           .id = e->id,
                           .at_ms = e->at_ms,
                           .ns = e->median_ns,
                           .low_ns = e->low_ns,
                           .high_ns = e->high_ns};
    if (g->find_op.statement) {
        SN_TRY(sn_history_enter(g->history, err));
        const sonde_status st = find_op(g, e->id, &p.ns, err);
        sn_history_leave(g->history);
        SN_TRY(st);
        p.low_ns = p.high_ns = p.ns;
        if (p.ns < 0)
            return SONDE_OK;
    }
    p.commit = sn_arena_strdup(arena, e->commit);
    p.note = sn_arena_strdup(arena, e->note);
    p.version = sn_arena_strdup(arena, e->version);
    const char *hash = sn_arena_strdup(arena, e->model_hash);
    const sn_trend_origin *o = p.commit && p.note && p.version && hash ? origin_of(g, e) : NULL;
    if (!o)
        return sn_fail_memory(err, sizeof p);
    p.model = o->model;
    const sn_series_point point = {p, hash, o};
    return sn_vec_push(&o->series->points, arena->alloc, point) ? SONDE_OK
                                                                : sn_fail_memory(err, sizeof p);
}

static sonde_status gather(gathering *g, sonde_error *err)
{
    sonde_history_cursor *c;
    sonde_history_entry e = {.struct_size = sizeof e};
    SN_TRY(sonde_history_list(g->history, &g->filter, &c, err));
    sonde_status st;
    while ((st = sonde_history_next(c, &e, err)) == SONDE_OK)
        if ((st = add_point(g, &e, err)) != SONDE_OK)
            break;
    sonde_history_cursor_release(c);
    return st == SONDE_NOT_FOUND ? SONDE_OK : st;
}

/* Entries came with the newest first. */
static void turn_round(sn_series *s)
{
    for (size_t i = 0, k = s->points.n; i + 1 < k; i++) {
        k--;
        const sn_series_point p = s->points.data[i];
        s->points.data[i] = s->points.data[k];
        s->points.data[k] = p;
    }
}

/* What a point says of others. */
static void relate(sn_series *s)
{
    for (size_t i = 0; i < s->points.n; i++) {
        sn_series_point *p = &s->points.data[i];
        const char *before = i ? p[-1].hash : "";
        p->shown.which = p->origin->which;
        p->shown.new_model = *p->hash && *before && strcmp(p->hash, before) != 0;
    }
}

/* ------------------------------------------------------------------ levels */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static bool add_level(sn_series *s, const sonde_change_point *change, size_t to,
                      sn_allocator *alloc)
{
    sonde_trend_level l = {
        .struct_size = sizeof l, .to = to, .ratio = 1, .low = 1, .high = 1, .p = 1};
    if (change) {
        l.from = change->at;
        l.ns = change->after;
        l.ratio = change->before > 0 ? change->after / change->before : 1;
        l.low = change->low;
        l.high = change->high;
        l.p = change->p;
    }
    return sn_vec_push(&s->levels, alloc, l);
}

/* `values` as many as there are points, `changes` at least half of that. */
static sonde_status find_levels(sn_series *s, const sonde_change_options *how, double *values,
                                sonde_change_point *changes, size_t room, sn_allocator *alloc,
                                sonde_error *err)
{
    const size_t n = s->points.n;
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        values[i] = s->points.data[i].shown.ns;
    SN_TRY(sonde_changes_find(values, n, how, changes, room, &found, err));
    found = found < room ? found : room;
    for (size_t k = 0; k <= found; k++)
        if (!add_level(s, k ? &changes[k - 1] : NULL, k < found ? changes[k].at : n, alloc))
            return sn_fail_memory(err, sizeof(sonde_trend_level));
    s->levels.data[0].ns = found ? changes[0].before : median_of(values, n);
    return SONDE_OK;
}

static sonde_status find_changes(sn_series *s, const sonde_trend_options *o, sn_allocator *alloc,
                                 sonde_error *err)
{
    const sonde_change_options how = {.struct_size = sizeof how,
                                      .false_alarms = o->false_alarms,
                                      .least = o->least,
                                      .shortest = o->shortest};
    const size_t n = s->points.n, room = n / 2 + 1;
    double *values = sn_alloc(alloc, n * sizeof *values);
    sonde_change_point *changes = sn_alloc(alloc, room * sizeof *changes);
    const sonde_status st = values && changes
                                ? find_levels(s, &how, values, changes, room, alloc, err)
                                : sn_fail_memory(err, n * sizeof *values);
    sn_free(alloc, values, n * sizeof *values);
    sn_free(alloc, changes, room * sizeof *changes);
    return st;
}

/* ------------------------------------------------------------------ all of it */

static sonde_status find_all(gathering *g, sonde_error *err)
{
    sonde_trends *t = g->trends;
    SN_TRY(gather(g, err));
    for (size_t i = 0; i < t->list.n; i++) {
        turn_round(t->list.data[i]);
        SN_TRY(sn_trend_origins_name(t->list.data[i], &t->arena, err));
        relate(t->list.data[i]);
        SN_TRY(find_changes(t->list.data[i], &g->options, &t->context->alloc, err));
    }
    return SONDE_OK;
}

static sonde_status prepare(gathering *g, sonde_error *err)
{
    if (!g->options.op || !*g->options.op)
        return SONDE_OK;
    SN_TRY(sn_history_enter(g->history, err));
    const sonde_status st =
        sn_sql_prepare(&g->find_op, &g->history->sql,
                       "SELECT mean FROM operator WHERE entry = ? AND name = ?", err);
    sn_history_leave(g->history);
    return st;
}

sonde_status sonde_history_trends(sonde_history *history, const sonde_history_filter *filter,
                                  const sonde_trend_options *options, sonde_trends **trends,
                                  sonde_error *err)
{
    SN_REQUIRE(history, err);
    SN_REQUIRE(trends, err);
    *trends = NULL;
    gathering g = {.history = history};
    sn_allocator *alloc = &history->context->alloc;
    SN_OPTIONS(g.options, options, err);
    SN_TRY(sn_filter_take(filter, &g.filter, err));
    g.trends = sn_alloc_zero(alloc, sizeof *g.trends);
    if (!g.trends)
        return sn_fail_memory(err, sizeof *g.trends);
    g.trends->context = sn_api_context_ref(history->context);
    sn_arena_init(&g.trends->arena, alloc);
    g.trends->db = sn_arena_strdup(&g.trends->arena, sn_history_said(history));
    sn_map_init(&g.origins, alloc);
    sn_map_init(&g.by_key, alloc);
    sonde_status st = g.trends->db ? prepare(&g, err) : sn_fail_memory(err, 0);
    if (st == SONDE_OK)
        st = find_all(&g, err);
    sn_sql_end(&g.find_op);
    sn_map_free(&g.origins);
    sn_map_free(&g.by_key);
    if (st)
        sonde_trends_release(g.trends);
    else
        *trends = g.trends;
    return st;
}

void sonde_trends_release(sonde_trends *trends)
{
    if (!trends)
        return;
    sonde_context *c = trends->context;
    for (size_t i = 0; i < trends->list.n; i++) {
        sn_vec_free(&trends->list.data[i]->points, &c->alloc);
        sn_vec_free(&trends->list.data[i]->levels, &c->alloc);
    }
    sn_vec_free(&trends->list, &c->alloc);
    sn_arena_free(&trends->arena);
    sn_free(&c->alloc, trends, sizeof *trends);
    sonde_context_release(c);
}
