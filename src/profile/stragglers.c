/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are slower than their peers. Medians throughout: one slow worker of many changes
 * neither what is usual nor how much workers differ, so that it cannot hide itself. Where only a
 * few are compared they may happen to lie close together, and the deviation says little: that is
 * what the 10 % are for. */
#include <math.h>
#include <stdlib.h>

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

static double op_ns(const sn_fleet_member *m, const char *op)
{
    for (size_t i = 0; i < m->ops.n; i++)
        if (strcmp(m->ops.data[i].name, op) == 0)
            return m->ops.data[i].mean_ns;
    return 0;
}

/* The operator that takes longest beyond what is usual; `v` has room for n numbers. */
static void name_operator(sn_fleet_straggler *s, const sn_fleet_member *m,
                          const sn_fleet_member *const *peers, size_t n, double *v)
{
    s->op = "";
    for (size_t i = 0; i < m->ops.n; i++) {
        for (size_t k = 0; k < n; k++)
            v[k] = op_ns(peers[k], m->ops.data[i].name);
        const double usual = median(v, n), own = m->ops.data[i].mean_ns;
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

sonde_status sn_fleet_find_stragglers(const sn_fleet *f, sn_fleet_stragglers *out, sonde_error *err)
{
    const size_t n = f->members.n;
    *out = (sn_fleet_stragglers){.alloc = f->alloc};
    const sn_fleet_member **list = sn_alloc(f->alloc, n * sizeof *list);
    double *v = sn_alloc(f->alloc, n * sizeof *v);
    bool fine = list && v;
    size_t kept = 0;
    for (size_t i = 0; i < n && fine; i++)
        if (f->members.data[i].runs >= SN_FLEET_RUNS)
            list[kept++] = &f->members.data[i];
    if (kept > 1)
        qsort(list, kept, sizeof *list, by_version);
    out->uncompared = n - kept;
    for (size_t i = 0, next; i < kept && fine; i = next) {
        next = i + 1;
        while (next < kept && by_version(&list[i], &list[next]) == 0)
            next++;
        *(next - i < SN_FLEET_PEERS ? &out->uncompared : &out->compared) += next - i;
        if (next - i >= SN_FLEET_PEERS)
            fine = compare_peers(&list[i], next - i, v, out);
    }
    sn_free(f->alloc, list, n * sizeof *list);
    sn_free(f->alloc, v, n * sizeof *v);
    if (out->list.n > 1)
        qsort(out->list.data, out->list.n, sizeof *out->list.data, slowest_first);
    if (fine)
        return SONDE_OK;
    sn_fleet_stragglers_free(out);
    return sn_fail_memory(err, n * sizeof *list);
}

void sn_fleet_stragglers_free(sn_fleet_stragglers *s)
{
    sn_vec_free(&s->list, s->alloc);
}
