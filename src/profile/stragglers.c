/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are slower than their peers. Medians throughout: one slow worker of many changes
 * neither what is usual nor how much workers differ, so that it cannot hide itself. Where only a
 * few are compared they may happen to lie close together, and the deviation says little: that is
 * what the 10 % are for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/fleet.h"

/* Of normally distributed values, the deviation is so many times the median absolute one. */
#define MAD_SCALE 1.4826

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static int by_version(const void *a, const void *b)
{
    const sn_fleet_member *x = *(const sn_fleet_member *const *)a;
    const sn_fleet_member *y = *(const sn_fleet_member *const *)b;
    const int model = sn_fleet_compare_names(x->model, y->model);
    return model ? model : sn_fleet_compare_names(x->version, y->version);
}

/* And then by worker. */
static int by_all(const void *a, const void *b)
{
    const sn_fleet_member *x = *(const sn_fleet_member *const *)a;
    const sn_fleet_member *y = *(const sn_fleet_member *const *)b;
    const int version = by_version(a, b);
    const int host = version ? version : sn_fleet_compare_names(x->host, y->host);
    return host ? host : sn_fleet_compare_names(x->worker, y->worker);
}

static double op_ns(const sn_fleet_member *m, const char *op)
{
    for (size_t i = 0; i < m->ops.n; i++)
        if (strcmp(m->ops.data[i].name, op) == 0)
            return m->ops.data[i].usual_ns;
    return 0;
}

/* ------------------------------------------------------------------ workers with several traces */
/* What operators of several traces take together, per run of all of them. */
static bool pool_operators(const sn_fleet_member *const *traces, size_t n, sn_allocator *alloc,
                           sn_fleet_member *whole)
{
    for (size_t t = 0; t < n; t++) {
        const double share = (double)traces[t]->runs / (double)whole->runs;
        for (size_t i = 0; i < traces[t]->ops.n; i++) {
            const sn_fleet_op *op = &traces[t]->ops.data[i];
            size_t k = 0;
            while (k < whole->ops.n && strcmp(whole->ops.data[k].name, op->name) != 0)
                k++;
            if (k == whole->ops.n && !sn_vec_push(&whole->ops, alloc, ((sn_fleet_op){op->name, 0})))
                return false;
            whole->ops.data[k].usual_ns += share * op->usual_ns;
        }
    }
    return true;
}

/* Traces of one worker as one: a member of its own, whose operators are to be freed. */
static bool pool(const sn_fleet_member *const *traces, size_t n, sn_allocator *alloc,
                 sn_fleet_member *whole)
{
    *whole = *traces[0];
    memset(&whole->ops, 0, sizeof whole->ops);
    for (size_t t = 1; t < n; t++)
        whole->runs += traces[t]->runs;
    if (whole->runs == 0)
        return true;
    if (n > 1) {
        double *all = sn_alloc(alloc, whole->runs * sizeof *all);
        if (!all)
            return false;
        for (size_t t = 0, at = 0; t < n; at += traces[t++]->runs)
            memcpy(all + at, traces[t]->wall_ns, traces[t]->runs * sizeof *all);
        whole->p50_ns = median(all, whole->runs);
        sn_free(alloc, all, whole->runs * sizeof *all);
    }
    return pool_operators(traces, n, alloc, whole);
}

/* One member for each worker that runs a version of a model; *n of them into `out`. */
static bool pool_workers(const sn_fleet *f, const sn_fleet_member **list, sn_fleet_member *out,
                         size_t *n)
{
    const size_t traces = f->members.n;
    bool fine = true;
    *n = 0;
    for (size_t i = 0; i < traces; i++)
        list[i] = &f->members.data[i];
    if (traces > 1)
        qsort(list, traces, sizeof *list, by_all);
    for (size_t i = 0, next; i < traces && fine; i = next) {
        next = i + 1;
        while (next < traces && by_all(&list[i], &list[next]) == 0)
            next++;
        fine = pool(&list[i], next - i, f->alloc, &out[(*n)++]);
    }
    return fine;
}

/* ------------------------------------------------------------------ comparing */
/* The operator that takes longest beyond what is usual; `v` has room for n numbers. */
static void name_operator(sn_fleet_straggler *s, const sn_fleet_member *m,
                          const sn_fleet_member *const *peers, size_t n, double *v)
{
    s->op = "";
    for (size_t i = 0; i < m->ops.n; i++) {
        for (size_t k = 0; k < n; k++)
            v[k] = op_ns(peers[k], m->ops.data[i].name);
        const double usual = median(v, n), own = m->ops.data[i].usual_ns;
        if (own - usual > (*s->op ? s->op_ns - s->op_usual_ns : 0)) {
            s->op = m->ops.data[i].name;
            s->op_ns = own;
            s->op_usual_ns = usual;
        }
    }
}

/* Members that run the same; `v` has room for n numbers. */
static bool compare_peers(const sn_fleet_member *const *peers, size_t n, double *v,
                          sn_fleet_stragglers *out)
{
    for (size_t i = 0; i < n; i++)
        v[i] = peers[i]->p50_ns;
    const double usual = median(v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(peers[i]->p50_ns - usual);
    const double spread = MAD_SCALE * median(v, n);
    for (size_t i = 0; i < n; i++) {
        const sn_fleet_member *m = peers[i];
        if (m->p50_ns < SN_FLEET_SLOWER * usual ||
            m->p50_ns <= usual + SN_FLEET_DEVIATIONS * spread)
            continue;
        sn_fleet_straggler s = {.host = m->host,
                                .worker = m->worker,
                                .version = m->version,
                                .model = m->model,
                                .p50_ns = m->p50_ns,
                                .usual_ns = usual,
                                .peers = n};
        name_operator(&s, m, peers, n, v);
        if (!sn_vec_push(&out->list, out->alloc, s))
            return false;
    }
    return true;
}

static int slowest_first(const void *a, const void *b)
{
    const sn_fleet_straggler *x = a, *y = b;
    const double p = x->p50_ns * y->usual_ns, q = y->p50_ns * x->usual_ns;
    if (p != q)
        return p > q ? -1 : 1;
    const int host = sn_fleet_compare_names(x->host, y->host);
    return host ? host : sn_fleet_compare_names(x->worker, y->worker);
}

static bool compare_all(const sn_fleet_member *workers, size_t n, const sn_fleet_member **list,
                        double *v, sn_fleet_stragglers *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (workers[i].runs >= SN_FLEET_RUNS)
            list[kept++] = &workers[i]; /* still by version */
    out->uncompared = n - kept;
    for (size_t i = 0, next; i < kept; i = next) {
        next = i + 1;
        while (next < kept && by_version(&list[i], &list[next]) == 0)
            next++;
        *(next - i < SN_FLEET_PEERS ? &out->uncompared : &out->compared) += next - i;
        if (next - i >= SN_FLEET_PEERS && !compare_peers(&list[i], next - i, v, out))
            return false;
    }
    if (out->list.n > 1)
        qsort(out->list.data, out->list.n, sizeof *out->list.data, slowest_first);
    return true;
}

sonde_status sn_fleet_find_stragglers(const sn_fleet *f, sn_fleet_stragglers *out, sonde_error *err)
{
    const size_t n = f->members.n;
    size_t workers = 0;
    *out = (sn_fleet_stragglers){.alloc = f->alloc};
    const sn_fleet_member **list = sn_alloc(f->alloc, n * sizeof *list);
    sn_fleet_member *whole = sn_alloc(f->alloc, n * sizeof *whole);
    double *v = sn_alloc(f->alloc, n * sizeof *v);
    const bool fine = list && whole && v && pool_workers(f, list, whole, &workers) &&
                      compare_all(whole, workers, list, v, out);
    for (size_t i = 0; i < workers; i++)
        sn_vec_free(&whole[i].ops, f->alloc);
    sn_free(f->alloc, list, n * sizeof *list);
    sn_free(f->alloc, whole, n * sizeof *whole);
    sn_free(f->alloc, v, n * sizeof *v);
    if (fine)
        return SONDE_OK;
    sn_fleet_stragglers_free(out);
    return sn_fail_memory(err, n * sizeof *whole);
}

void sn_fleet_stragglers_free(sn_fleet_stragglers *s)
{
    sn_vec_free(&s->list, s->alloc);
}
