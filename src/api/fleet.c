/* SPDX-License-Identifier: Apache-2.0 */
/* Many traces side by side: sources of files, or the workers of a profile in memory. Figures are
 * made of all of them at once, when the first is asked for, and kept. */
#include "sonde/experimental/fleet.h"

#include "api/internal.h"
#include "merge/merge.h"

struct sonde_fleet {
    sonde_context *context;
    pthread_mutex_t lock; /* of what follows: reading sources moves through files */
    sn_merge merge;       /* of a profile in memory its sources have no files */
    bool of_files;
    sn_fleet figures;
    bool counted; /* the figures are there, and the stragglers */
    sn_fleet_stragglers stragglers;
};

struct sonde_fleet_rows {
    sonde_fleet *fleet;
    sn_fleet_rows core;
};

static sonde_status new_fleet(sonde_context *context, bool map, sonde_fleet **out, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_fleet *f = sn_alloc_zero(&c->alloc, sizeof *f);
    if (!f) {
        sonde_context_release(c);
        return sn_fail_memory(err, sizeof *f);
    }
    f->context = c; /* the reference goes along */
    pthread_mutex_init(&f->lock, NULL);
    sn_merge_init(&f->merge, &c->alloc, map);
    sn_fleet_init(&f->figures, &c->alloc);
    *out = f;
    return SONDE_OK;
}

void sonde_fleet_release(sonde_fleet *f)
{
    if (!f)
        return;
    sonde_context *c = f->context;
    if (f->counted)
        sn_fleet_stragglers_free(&f->stragglers);
    sn_fleet_free(&f->figures);
    sn_merge_free(&f->merge);
    pthread_mutex_destroy(&f->lock);
    sn_free(&c->alloc, f, sizeof *f);
    sonde_context_release(c);
}

sonde_status sonde_fleet_open(sonde_context *context, const char *const *paths, size_t path_count,
                              const sonde_fleet_options *options, sonde_fleet **fleet,
                              sonde_error *err)
{
    SN_REQUIRE(fleet, err);
    *fleet = NULL;
    SN_REQUIRE(paths || !path_count, err);
    sonde_fleet_options o;
    SN_OPTIONS(o, options, err);
    sonde_fleet *f = NULL;
    SN_TRY(new_fleet(context, !o.no_mmap, &f, err));
    f->of_files = true;
    f->merge.not_this = o.output;
    sonde_status st = SONDE_OK;
    for (size_t i = 0; i < path_count && st == SONDE_OK; i++)
        st = paths[i] ? sn_merge_add(&f->merge, paths[i], err)
                      : sn_fail(err, SONDE_INVALID_ARGUMENT, "path %zu is NULL", i);
    f->merge.not_this = NULL; /* the caller's */
    if (st == SONDE_OK)
        st = sn_merge_ready(&f->merge, err);
    if (st != SONDE_OK) {
        sonde_fleet_release(f);
        return st;
    }
    *fleet = f;
    return SONDE_OK;
}

/* The figures are all that is made of it: they are taken at once. */
sonde_status sonde_fleet_of_profile(const sonde_profile *profile, sonde_fleet **fleet,
                                    sonde_error *err)
{
    SN_REQUIRE(fleet, err);
    *fleet = NULL;
    SN_REQUIRE(profile, err);
    sonde_fleet *f = NULL;
    SN_TRY(new_fleet(profile->context, false, &f, err));
    sonde_status st = sn_fleet_add_all(&f->figures, profile->core, err);
    if (st == SONDE_OK)
        st = sn_fleet_find_stragglers(&f->figures, &f->stragglers, err);
    f->counted = st == SONDE_OK;
    if (st != SONDE_OK) {
        sonde_fleet_release(f);
        return st;
    }
    *fleet = f;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ what there is */
size_t sonde_fleet_count(const sonde_fleet *f)
{
    return !f ? 0 : f->of_files ? f->merge.sources.n : f->figures.members.n;
}

sonde_status sonde_fleet_trace_get(const sonde_fleet *f, size_t index, sonde_fleet_trace *trace,
                                   sonde_error *err)
{
    SN_REQUIRE(f, err);
    SN_REQUIRE(trace, err);
    if (!f->of_files || index >= f->merge.sources.n)
        return sn_fail(err, SONDE_NOT_FOUND, "the fleet has %zu traces of files, no trace %zu",
                       f->merge.sources.n, index);
    const sn_merge_source *s = &f->merge.sources.data[index];
    const sonde_fleet_trace own = {.struct_size = sizeof own,
                                   .path = s->path,
                                   .host = s->host,
                                   .worker = s->worker,
                                   .version = s->version,
                                   .model = s->model,
                                   .note = s->note,
                                   .pid = s->pid,
                                   .start_wall_ns = s->aligned_ns,
                                   .moved_ns = (int64_t)(s->aligned_ns - s->start_wall_ns)};
    return sn_api_copy_out(trace, &own, sizeof own, err);
}

size_t sonde_fleet_skipped_count(const sonde_fleet *f)
{
    return f ? f->merge.skipped.n : 0;
}

sonde_status sonde_fleet_skipped_get(const sonde_fleet *f, size_t index,
                                     sonde_fleet_skipped *skipped, sonde_error *err)
{
    SN_REQUIRE(f, err);
    SN_REQUIRE(skipped, err);
    if (index >= f->merge.skipped.n)
        return sn_fail(err, SONDE_NOT_FOUND, "%zu files were skipped, no file %zu",
                       f->merge.skipped.n, index);
    const sn_merge_skipped *s = &f->merge.skipped.data[index];
    const sonde_fleet_skipped own = {
        .struct_size = sizeof own, .path = s->path, .why = s->why, .duplicate = s->duplicate};
    return sn_api_copy_out(skipped, &own, sizeof own, err);
}

sonde_status sonde_fleet_clocks_get(const sonde_fleet *f, sonde_fleet_clocks *clocks,
                                    sonde_error *err)
{
    SN_REQUIRE(f, err);
    SN_REQUIRE(clocks, err);
    const sn_merge_clocks *c = &f->merge.clocks;
    const sonde_fleet_clocks own = {.struct_size = sizeof own,
                                    .boots = c->boots,
                                    .loose = c->loose,
                                    .error_ns = c->error_ns,
                                    .moved_ns = c->moved_ns,
                                    .moved_host = c->moved_host};
    return sn_api_copy_out(clocks, &own, sizeof own, err);
}

/* ------------------------------------------------------------------ joined */
static sonde_status require_files(const sonde_fleet *f, sonde_error *err)
{
    return f->of_files ? SONDE_OK
                       : sn_fail(err, SONDE_INVALID_ARGUMENT,
                                 "the fleet was made of a profile, which can itself be saved");
}

sonde_status sonde_fleet_profile(sonde_fleet *f, sonde_profile **profile, sonde_error *err)
{
    SN_REQUIRE(profile, err);
    *profile = NULL;
    SN_REQUIRE(f, err);
    SN_TRY(require_files(f, err));
    sn_profile *core = NULL;
    pthread_mutex_lock(&f->lock);
    const sonde_status st = sn_merge_join(&f->merge, &core, err);
    pthread_mutex_unlock(&f->lock);
    SN_TRY(st);
    return sn_api_profile(f->context, core, profile, err);
}

static bool is_joined_trace(const char *path)
{
    const sn_exporter *format = sn_exporter_for_path(path);
    return format && strcmp(format->suffix, ".pftrace") == 0;
}

sonde_status sonde_fleet_save(sonde_fleet *f, const char *path, const sonde_export_options *options,
                              sonde_error *err)
{
    SN_REQUIRE(f, err);
    SN_REQUIRE(path, err);
    SN_TRY(require_files(f, err));
    if (!options && is_joined_trace(path)) {
        pthread_mutex_lock(&f->lock);
        const sonde_status st = sn_merge_save(&f->merge, path, err);
        pthread_mutex_unlock(&f->lock);
        return st;
    }
    sonde_profile *all = NULL;
    SN_TRY(sonde_fleet_profile(f, &all, err));
    const sonde_status st = sonde_profile_save_with(all, path, options, err);
    sonde_profile_release(all);
    return st;
}

/* ------------------------------------------------------------------ figures */
static sonde_status count(sonde_fleet *f, sonde_error *err)
{
    sonde_status st = SONDE_OK;
    pthread_mutex_lock(&f->lock);
    if (!f->counted) {
        sn_fleet_free(&f->figures); /* of an attempt that failed */
        sn_fleet_init(&f->figures, &f->context->alloc);
        st = sn_merge_figures(&f->merge, &f->figures, err);
        if (st == SONDE_OK)
            st = sn_fleet_find_stragglers(&f->figures, &f->stragglers, err);
        f->counted = st == SONDE_OK;
    }
    pthread_mutex_unlock(&f->lock);
    return st;
}

sonde_status sonde_fleet_rows_get(sonde_fleet *f, sonde_fleet_by by, sonde_fleet_rows **rows,
                                  sonde_error *err)
{
    SN_REQUIRE(rows, err);
    *rows = NULL;
    SN_REQUIRE(f, err);
    if ((unsigned)by > SONDE_FLEET_BY_VERSION)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%d is not a way to group traces", (int)by);
    SN_TRY(count(f, err));
    sonde_fleet_rows *made = sn_alloc_zero(&f->context->alloc, sizeof *made);
    if (!made)
        return sn_fail_memory(err, sizeof *made);
    made->fleet = f;
    const sonde_status st = sn_fleet_rows_of(&f->figures, (sn_fleet_by)by, &made->core, err);
    if (st != SONDE_OK) {
        sn_free(&f->context->alloc, made, sizeof *made);
        return st;
    }
    *rows = made;
    return SONDE_OK;
}

size_t sonde_fleet_rows_count(const sonde_fleet_rows *rows)
{
    return rows ? rows->core.list.n : 0;
}

sonde_status sonde_fleet_rows_row(const sonde_fleet_rows *rows, size_t index, sonde_fleet_row *row,
                                  sonde_error *err)
{
    SN_REQUIRE(rows, err);
    SN_REQUIRE(row, err);
    if (index >= rows->core.list.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu rows, no row %zu", rows->core.list.n,
                       index);
    const sn_fleet_row *r = &rows->core.list.data[index];
    const sonde_fleet_row own = {.struct_size = sizeof own,
                                 .host = r->host,
                                 .worker = r->worker,
                                 .version = r->version,
                                 .model = r->model,
                                 .traces = r->profiles,
                                 .incomplete = r->incomplete,
                                 .runs = r->runs,
                                 .warmups = r->warmups,
                                 .dropped = r->dropped,
                                 .operators = r->operators,
                                 .operator_ns = r->operator_ns,
                                 .runs_per_s = r->runs_per_s,
                                 .share = r->share,
                                 .mean_ns = r->wall_ns.mean,
                                 .min_ns = r->wall_ns.min,
                                 .max_ns = r->wall_ns.max,
                                 .p50_ns = r->wall_ns.p50,
                                 .p95_ns = r->wall_ns.p95,
                                 .p99_ns = r->wall_ns.p99};
    return sn_api_copy_out(row, &own, sizeof own, err);
}

void sonde_fleet_rows_release(sonde_fleet_rows *rows)
{
    if (!rows)
        return;
    sn_allocator *alloc = &rows->fleet->context->alloc;
    sn_fleet_rows_free(&rows->core);
    sn_free(alloc, rows, sizeof *rows);
}

sonde_status sonde_fleet_straggler_count(sonde_fleet *f, size_t *n, size_t *uncompared,
                                         sonde_error *err)
{
    SN_REQUIRE(f, err);
    SN_REQUIRE(n, err);
    SN_TRY(count(f, err));
    *n = f->stragglers.list.n;
    if (uncompared)
        *uncompared = f->stragglers.uncompared;
    return SONDE_OK;
}

sonde_status sonde_fleet_straggler_get(sonde_fleet *f, size_t index, sonde_straggler *straggler,
                                       sonde_error *err)
{
    SN_REQUIRE(f, err);
    SN_REQUIRE(straggler, err);
    SN_TRY(count(f, err));
    if (index >= f->stragglers.list.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu stragglers, no straggler %zu",
                       f->stragglers.list.n, index);
    const sn_fleet_straggler *s = &f->stragglers.list.data[index];
    const sonde_straggler own = {.struct_size = sizeof own,
                                 .host = s->host,
                                 .worker = s->worker,
                                 .version = s->version,
                                 .model = s->model,
                                 .p50_ns = s->p50_ns,
                                 .usual_ns = s->usual_ns,
                                 .peers = s->peers,
                                 .op = s->op,
                                 .op_ns = s->op_ns,
                                 .op_usual_ns = s->op_usual_ns};
    return sn_api_copy_out(straggler, &own, sizeof own, err);
}
