/* SPDX-License-Identifier: Apache-2.0 */
/* Seats. Cores of the chosen nodes are put in one order (socket, node, last cache, second cache),
 * each pool gets a part of that order, and its threads get parts of that part:
 *
 *     as many threads as cores    a core each, with all its hardware threads
 *     fewer                       several cores each, so that all caches are used, and another
 *                                 process with the same idea does not meet every thread
 *     more                        a hardware thread each: the first ones of all cores, then the
 *                                 second ones; threads on one core have neighbouring numbers
 *     more than there are         all of them */
#include "base/seats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/affinity.h"

/* ------------------------------------------------------------------ what is asked */
sonde_status sn_numa_parse(const char *text, const char *name, sn_numa *numa, sonde_error *err)
{
    bool beyond = false;
    *numa = (sn_numa){.mode = SN_NUMA_NODES};
    if (strcmp(text, "off") == 0)
        numa->mode = SN_NUMA_OFF;
    else if (strcmp(text, "auto") == 0)
        numa->mode = SN_NUMA_AUTO;
    else if (!sn_id_set_parse(text, &numa->nodes, &beyond) || beyond ||
             sn_id_set_is_empty(&numa->nodes))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "%s is '%s', expected auto, off, or memory nodes such as 0 or 0,2-3", name,
                       text);
    return SONDE_OK;
}

bool sn_numa_same(const sn_numa *a, const sn_numa *b)
{
    return a->mode == b->mode && memcmp(&a->nodes, &b->nodes, sizeof a->nodes) == 0;
}

/* ------------------------------------------------------------------ nodes */
/* Indices of the chosen nodes. */
typedef struct chosen {
    int n, node[1024];
} chosen;

static sonde_status no_such_node(const sn_topology *t, int id, sonde_error *err)
{
    char text[128];
    sn_id_set known = {{0}};
    for (int k = 0; k < t->n_nodes; k++)
        sn_id_set_add(&known, t->nodes[k].id);
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "there is no memory node %d on this machine; the nodes are %s", id,
                   sn_id_set_text(&known, text, sizeof text));
}

static sonde_status no_cpu_on(const sn_topology *t, int node, sonde_error *err)
{
    char text[128];
    sn_id_set usable = {{0}};
    if (t->nodes[node].cpus == 0)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "memory node %d has no CPUs, so nothing can run there", t->nodes[node].id);
    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpus[i].usable)
            sn_id_set_add(&usable, t->cpus[i].id);
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "this process may use no CPU of memory node %d: its affinity mask or cpuset "
                   "allows only CPUs %s",
                   t->nodes[node].id, sn_id_set_text(&usable, text, sizeof text));
}

/* The node with most cores; of equal ones that of the CPU where the caller runs. */
static int best_node(const sn_topology *t, int here)
{
    const sn_topo_cpu *c = sn_topology_cpu(t, here);
    int best = c && c->usable ? c->node : -1;
    for (int k = 0; k < t->n_nodes; k++)
        if (best < 0 || t->nodes[k].usable_cores > t->nodes[best].usable_cores)
            best = k;
    return best;
}

static sonde_status choose_nodes(const sn_topology *t, const sn_seats_ask *ask, chosen *c,
                                 sonde_error *err)
{
    c->n = 0;
    if (ask->numa.mode == SN_NUMA_AUTO) {
        for (int k = 0; k < t->n_nodes; k++)
            if (t->nodes[k].usable_cpus)
                c->node[c->n++] = k;
        if (ask->instances <= 1) {
            c->node[0] = best_node(t, ask->here);
            c->n = 1;
        }
        return SONDE_OK;
    }
    const sn_id_set *ids = &ask->numa.nodes;
    for (int id = sn_id_set_next(ids, 0); id >= 0; id = sn_id_set_next(ids, id + 1)) {
        const int k = sn_topology_node(t, id);
        if (k < 0)
            return no_such_node(t, id, err);
        if (!t->nodes[k].usable_cpus)
            return no_cpu_on(t, k, err);
        c->node[c->n++] = k;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ cores */
/* The usable hardware threads of the chosen nodes in the order of seats: those of a core stand
 * together. */
static int before(const void *a, const void *b)
{
    const sn_topo_cpu *x = *(const sn_topo_cpu *const *)a, *y = *(const sn_topo_cpu *const *)b;
    const int keys[][2] = {
        {x->package, y->package}, {x->node, y->node},     {x->cache, y->cache}, {x->l2, y->l2},
        {x->core, y->core},       {x->thread, y->thread}, {x->id, y->id}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static int list_threads(const sn_topology *t, const chosen *c, const sn_topo_cpu **list)
{
    int n = 0;
    for (int i = 0; i < t->n_cpus; i++)
        for (int k = 0; k < c->n; k++)
            if (t->cpus[i].usable && t->cpus[i].node == c->node[k]) {
                list[n++] = &t->cpus[i];
                break;
            }
    qsort(list, (size_t)n, sizeof *list, before);
    return n;
}

/* Where core k of the list begins; starts[cores] is its end. The same core on two nodes, which only
 * wrong files have, counts twice. */
static int find_starts(const sn_topo_cpu *const *list, int n, int *starts)
{
    int cores = 0;
    for (int i = 0; i < n; i++)
        if (i == 0 || list[i]->core != list[i - 1]->core || list[i]->node != list[i - 1]->node)
            starts[cores++] = i;
    starts[cores] = n;
    return cores;
}

/* Part `k` of `parts` of n things. */
static int part_start(int n, int parts, int k)
{
    return (int)((int64_t)n * k / parts);
}

/* ------------------------------------------------------------------ seats */
/* The part of the list that one pool gets. */
typedef struct part {
    const sn_topo_cpu *const *list;
    const int *starts; /* of its cores, and behind them the end of the last one */
    int cores, n;      /* and hardware threads, from list[starts[0]] on */
} part;

void sn_seats_free(sn_seats *s)
{
    if (!s)
        return;
    sn_free(s->alloc, s->seat, (size_t)s->n * sizeof *s->seat);
    sn_free(s->alloc, s->cpus, (size_t)s->n_cpus * sizeof *s->cpus);
    sn_free(s->alloc, s, sizeof *s);
}

static sn_seats *new_seats(sn_allocator *alloc, int threads, int cpus)
{
    sn_seats *s = sn_alloc_zero(alloc, sizeof *s);
    if (!s)
        return NULL;
    s->alloc = alloc;
    s->n = threads;
    s->n_cpus = cpus;
    s->seat = sn_alloc_zero(alloc, (size_t)threads * sizeof *s->seat);
    s->cpus = sn_alloc_zero(alloc, (size_t)cpus * sizeof *s->cpus);
    if (!s->seat || !s->cpus) {
        sn_seats_free(s);
        return NULL;
    }
    return s;
}

/* At most as many threads as cores: each has one or more. */
static void seat_by_cores(sn_seats *s, const part *p)
{
    const int begin = p->starts[0];
    for (int i = 0; i < p->n; i++)
        s->cpus[i] = p->list[begin + i]->id;
    for (int i = 0; i < s->n; i++)
        s->seat[i] = (sn_seat){p->starts[part_start(p->cores, s->n, i)] - begin,
                               p->starts[part_start(p->cores, s->n, i + 1)] - begin};
}

/* More threads than cores. `taken`: how many hardware threads of each core have a seat; room for
 * as many as there are cores. */
static void seat_by_threads(sn_seats *s, const part *p, int *taken)
{
    int left = s->n, at = 0;
    memset(taken, 0, (size_t)p->cores * sizeof *taken);
    for (bool any = true; left > 0 && any;) {
        any = false;
        for (int k = 0; k < p->cores && left > 0; k++)
            if (taken[k] < p->starts[k + 1] - p->starts[k]) {
                taken[k]++;
                left--;
                any = true;
            }
    }
    for (int k = 0; k < p->cores; k++)
        for (int i = 0; i < taken[k]; i++)
            s->cpus[at++] = p->list[p->starts[k] + i]->id;
    for (int i = 0; i < s->n; i++)
        s->seat[i] = left ? (sn_seat){0, p->n} : (sn_seat){i, i + 1};
}

/* Of instances on one node each has cores of its own while there are enough. */
static part part_of(const sn_topo_cpu *const *list, const int *starts, int cores, int slot,
                    int slots)
{
    int first = part_start(cores, slots, slot), end = part_start(cores, slots, slot + 1);
    if (slots > cores) {
        first = slot % cores;
        end = first + 1;
    }
    return (part){.list = list,
                  .starts = starts + first,
                  .cores = end - first,
                  .n = starts[end] - starts[first]};
}

/* What the quota leaves to one of the instances. */
static int usual_threads(const sn_seats_ask *ask, int cores)
{
    const double quota = ask->quota_cores / (ask->instances > 1 ? ask->instances : 1);
    if (quota > 0 && quota < cores)
        return quota < 1 ? 1 : (int)quota;
    return cores < SN_POOL_MOST ? cores : SN_POOL_MOST;
}

static void add_memory(const sn_topology *t, const chosen *c, sn_seats *s)
{
    for (int k = 0; k < c->n; k++) {
        const int from = sn_topology_memory_of(t, c->node[k]);
        sn_id_set_add(&s->nodes, t->nodes[c->node[k]].id);
        if (from >= 0 && t->n_nodes > 1)
            sn_id_set_add(&s->memory, t->nodes[from].id);
    }
}

static sonde_status make(const sn_topology *t, const sn_seats_ask *ask, const chosen *c, int slot,
                         int slots, sn_allocator *alloc, sn_seats **out, sonde_error *err)
{
    const size_t most = (size_t)t->n_cpus;
    const sn_topo_cpu **list = sn_alloc(alloc, most * sizeof *list);
    int *starts = sn_alloc(alloc, (2 * most + 1) * sizeof *starts);
    sn_seats *s = NULL;
    if (list && starts) {
        const int n = list_threads(t, c, list), cores = find_starts(list, n, starts);
        const part p = part_of(list, starts, cores, slot, slots);
        const int threads = ask->threads ? ask->threads : usual_threads(ask, p.cores);
        s = new_seats(alloc, threads, threads <= p.cores || threads > p.n ? p.n : threads);
        if (s && threads <= p.cores)
            seat_by_cores(s, &p);
        else if (s)
            seat_by_threads(s, &p, starts + most + 1);
        if (s) {
            s->cores = p.cores;
            for (int i = 0; i < s->n_cpus; i++)
                sn_id_set_add(&s->all, s->cpus[i]);
            add_memory(t, c, s);
        }
    }
    sn_free(alloc, starts, (2 * most + 1) * sizeof *starts);
    sn_free(alloc, list, most * sizeof *list);
    *out = s;
    return s ? SONDE_OK : sn_fail_memory(err, (2 * most + 1) * sizeof *starts);
}

sonde_status sn_seats_make(const sn_topology *t, const sn_seats_ask *ask, sn_allocator *alloc,
                           sn_seats **seats, sonde_error *err)
{
    chosen c;
    int slot = ask->instance, slots = ask->instances > 1 ? ask->instances : 1;
    *seats = NULL;
    if (ask->numa.mode == SN_NUMA_OFF || (ask->numa.mode == SN_NUMA_AUTO && t->n_nodes == 1))
        return SONDE_OK;
    SN_TRY(choose_nodes(t, ask, &c, err));
    if (slots > 1) { /* each on one node, in turn */
        const int own = slot % c.n;
        c.node[0] = c.node[own];
        slots = (slots - own + c.n - 1) / c.n;
        slot /= c.n;
        c.n = 1;
    } else {
        slot = 0;
    }
    return make(t, ask, &c, slot, slots, alloc, seats, err);
}

void sn_seats_cpus(const sn_seats *s, int seat, sn_id_set *cpus)
{
    memset(cpus, 0, sizeof *cpus);
    for (int i = s->seat[seat].first; i < s->seat[seat].end; i++)
        sn_id_set_add(cpus, s->cpus[i]);
}

/* ------------------------------------------------------------------ sitting down */
static _Thread_local const sn_sitting *sitting;

bool sn_sit(sn_sitting *s, const sn_seats *seats, int seat)
{
    sn_id_set cpus;
    s->moved = false;
    if (!seats)
        return true;
    if (!sn_affinity_get(&s->before))
        return false;
    if (sn_id_set_within(&s->before, &seats->all))
        return true;
    sn_seats_cpus(seats, seat, &cpus);
    if (!sn_affinity_set(&cpus))
        return false;
    s->moved = true;
    s->outer = sitting;
    sitting = s;
    return true;
}

void sn_stand_up(sn_sitting *s)
{
    if (!s->moved)
        return;
    sitting = s->outer;
    s->moved = false;
    (void)sn_affinity_set(&s->before);
}

const sn_id_set *sn_sitting_before(void)
{
    const sn_sitting *s = sitting;
    while (s && s->outer)
        s = s->outer;
    return s ? &s->before : NULL;
}
