/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, hardware threads, huge pages, and memory that lies far from its threads. */
#include "findings/machine.h"

#include <string.h>

#include "findings/check.h"

/* Less memory than this is libraries and the interpreter, whoever runs where. */
#define MUCH_BYTES ((uint64_t)64 << 20)

/* A set of CPUs or nodes as text in the arena. */
static const char *say_set(sn_case *c, const sn_id_set *s)
{
    char text[256];
    return SN_SAY(c, "%s", sn_id_set_text(s, text, sizeof text));
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* ------------------------------------------------------------------ the machine */
static void huge_pages(sn_case *c, const sn_machine_state *s)
{
    if (!*s->huge_pages)
        return;
    const char *evidence = SN_SAY(c, "transparent_hugepage/enabled is %s", s->huge_pages);
    if (strstr(s->huge_pages, "[never]"))
        sn_found(c, SONDE_NOTE, 0, "pages",
                 "huge pages are off, so weights and activations lie in pages of 4 KiB and more "
                 "reads have to look up where these are",
                 evidence,
                 "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; only programs that "
                 "ask for huge pages get them then. What that gains is in docs/many-cores.md");
    else
        sn_found(c, SONDE_GOOD, 0, "pages", "huge pages are available", evidence, "");
}

static void sockets(sn_case *c, const sn_machine_state *s)
{
    const sn_topology *t = s->topology;
    const char *nodes = "the system shows no memory nodes";
    for (int k = 0; k < t->n_nodes && t->shows_nodes && k < 16; k++) {
        const sn_topo_node *n = &t->nodes[k];
        nodes = SN_SAY(c, "%snode %d: %d of %d cores usable", k ? SN_SAY(c, "%s; ", nodes) : "",
                       n->id, n->usable_cores, n->cores);
        if (n->memory_bytes)
            nodes = SN_SAY(c, "%s, %s", nodes, sn_say_bytes(c, (double)n->memory_bytes));
        else if (!n->has_memory)
            nodes = SN_SAY(c, "%s, no memory", nodes);
    }
    if (t->n_nodes > 16)
        nodes = SN_SAY(c, "%s; and more", nodes);
    sn_found(c, SONDE_GOOD, 0, "sockets",
             SN_SAY(c, "%d socket%s, %d core%s with %d hardware thread%s each, %d memory node%s",
                    t->packages, plural(t->packages), t->cores, plural(t->cores),
                    t->threads_per_core, plural(t->threads_per_core), t->n_nodes,
                    plural(t->n_nodes)),
             nodes, "");
}

/* Nodes whose CPUs the threads may use. */
static void nodes_in_use(const sn_machine_state *s, sn_id_set *nodes)
{
    const sn_topology *t = s->topology;
    memset(nodes, 0, sizeof *nodes);
    if (s->seats)
        *nodes = s->seats->nodes;
    for (int k = 0; k < t->n_nodes && !s->seats; k++)
        if (t->nodes[k].usable_cpus)
            sn_id_set_add(nodes, t->nodes[k].id);
}

static void bound(sn_case *c, const sn_machine_state *s)
{
    if (!s->seats)
        return;
    const sn_id_set *memory = &s->seats->memory;
    const char *cpus = say_set(c, &s->seats->all), *nodes = say_set(c, &s->seats->nodes);
    const char *evidence = sn_id_set_is_empty(memory)
                               ? "the system chooses where memory lies"
                               : SN_SAY(c, "memory is asked from node%s %s",
                                        plural(sn_id_set_count(memory)), say_set(c, memory));
    sn_found(c, SONDE_GOOD, 0, "binding",
             SN_SAY(c, "%d thread%s bound to CPUs %s of node%s %s", s->threads,
                    s->threads == 1 ? " is" : "s are", cpus,
                    plural(sn_id_set_count(&s->seats->nodes)), nodes),
             evidence, "");
    if (s->allowed && !sn_id_set_within(&s->seats->all, s->allowed))
        sn_found(c, SONDE_NOTE, 0, "binding",
                 "some of these CPUs are not here, so threads cannot be bound to them",
                 SN_SAY(c, "this process may use CPUs %s", say_set(c, s->allowed)),
                 "SONDE_SYSTEM_ROOT shows another machine: remove it, or read this as what would "
                 "be done there");
}

static void spanning(sn_case *c, const sn_machine_state *s)
{
    sn_id_set nodes;
    nodes_in_use(s, &nodes);
    if (sn_id_set_count(&nodes) < 2 || s->threads < 2)
        return;
    if (s->seats)
        sn_found(c, SONDE_NOTE, 0, "placement",
                 SN_SAY(c, "threads are bound to the cores of nodes %s", say_set(c, &nodes)),
                 "they read weights from each other's memory, and meet after every operator",
                 "compare with one node, or with one instance for each (--numa auto --instances)");
    else
        sn_found(c, SONDE_SLOW, 0, "placement",
                 SN_SAY(c, "%d threads may run on nodes %s, wherever their memory lies", s->threads,
                        say_set(c, &nodes)),
                 SN_SAY(c, "%d usable cores on %d nodes; threads are not bound",
                        s->topology->usable_cores, sn_id_set_count(&nodes)),
                 "bind them to one node with --numa auto (SONDE_NUMA=auto), and use all nodes with "
                 "--instances, one for each");
}

static void hardware_threads(sn_case *c, const sn_machine_state *s)
{
    const sn_topology *t = s->topology;
    const int cores = s->seats ? s->seats->cores : t->usable_cores;
    const int cpus = s->seats ? s->seats->n_cpus : t->usable_cpus;
    if (s->threads <= cores || s->threads > cpus)
        return;
    sn_found(c, SONDE_NOTE, 0, "siblings",
             SN_SAY(c, "%d threads run on %d cores, so some share the arithmetic of one core",
                    s->threads, cores),
             SN_SAY(c, "%d hardware threads on %d cores", cpus, cores),
             SN_SAY(c, "compare with one thread for each core (-t %d)", cores));
}

static void no_memory(sn_case *c, const sn_machine_state *s)
{
    const sn_topology *t = s->topology;
    for (int k = 0; s->seats && k < t->n_nodes; k++) {
        const sn_topo_node *n = &t->nodes[k];
        const int from = sn_topology_memory_of(t, k);
        if (!sn_id_set_has(&s->seats->nodes, n->id) || n->has_memory || from < 0)
            continue;
        sn_found(c, SONDE_SLOW, 0, "placement",
                 SN_SAY(c, "node %d has no memory that this process may use", n->id),
                 SN_SAY(c, "its threads use that of node %d, at distance %d", t->nodes[from].id,
                        sn_topology_distance(t, k, from)),
                 SN_SAY(c, "run on node %d (--numa %d), or allow the memory in the cpuset",
                        t->nodes[from].id, t->nodes[from].id));
    }
}

/* ------------------------------------------------------------------ a session */
static void refusals(sn_case *c, const sn_machine_state *s)
{
    if (s->threads_refused)
        sn_found(c, SONDE_SLOW, 0, "placement", "the system refuses to bind threads to CPUs",
                 SN_SAY(c, "sched_setaffinity: %s", strerror(s->threads_refused)),
                 "allow the call in the container's seccomp profile, or limit the container to the "
                 "CPUs of one node (cpuset)");
    if (s->memory_refused)
        sn_found(c, SONDE_NOTE, 0, "placement", "the system refuses to bind memory to nodes",
                 SN_SAY(c, "mbind: %s; memory lies where the threads run that write it first",
                        strerror(s->memory_refused)),
                 "start the container with the capability SYS_NICE");
}

/* The index of a node of `nodes` that is nearest to node k. */
static int distance_to(const sn_topology *t, int k, const sn_id_set *nodes)
{
    int least = 255;
    for (int i = 0; i < t->n_nodes; i++)
        if (sn_id_set_has(nodes, t->nodes[i].id) && sn_topology_distance(t, i, k) < least)
            least = sn_topology_distance(t, i, k);
    return least;
}

static void memory_elsewhere(sn_case *c, const sn_machine_state *s)
{
    const sn_topology *t = s->topology;
    sn_id_set nodes, near;
    nodes_in_use(s, &nodes);
    if (!s->node_bytes || t->n_nodes < 2)
        return;
    near = nodes;
    for (int k = 0; k < t->n_nodes; k++) /* the memory that a node without has to use */
        if (sn_id_set_has(&nodes, t->nodes[k].id) && sn_topology_memory_of(t, k) >= 0)
            sn_id_set_add(&near, t->nodes[sn_topology_memory_of(t, k)].id);
    double all = 0, away = 0, most = 0;
    int worst = -1;
    for (int k = 0; k < t->n_nodes; k++) {
        const double bytes = (double)s->node_bytes[k];
        all += bytes;
        if (sn_id_set_has(&near, t->nodes[k].id))
            continue;
        away += bytes;
        if (bytes > most) {
            most = bytes;
            worst = k;
        }
    }
    if (all < (double)MUCH_BYTES)
        return;
    if (away <= 0.1 * all || worst < 0) {
        sn_found(c, SONDE_GOOD, 0, "placement",
                 SN_SAY(c, "memory lies on the nodes of the threads, %s", say_set(c, &nodes)),
                 SN_SAY(c, "%s of %s", sn_say_bytes(c, all - away), sn_say_bytes(c, all)), "");
        return;
    }
    sn_found(c, SONDE_SLOW, 0, "placement",
             SN_SAY(c, "%.0f %% of this process's memory lies on other nodes than its threads, %s",
                    away / all * 100, say_set(c, &nodes)),
             SN_SAY(c, "%s on node %d, at distance %d (10 is near)", sn_say_bytes(c, most),
                    t->nodes[worst].id, distance_to(t, worst, &nodes)),
             "start with --numa (SONDE_NUMA), so that memory is asked from the nodes where the "
             "threads run");
}

/* ------------------------------------------------------------------ all */
typedef void check_fn(sn_case *c, const sn_machine_state *s);

static sonde_status look(const sn_machine_state *s, check_fn *const *checks, size_t n,
                         sn_allocator *alloc, sn_findings *out, sonde_error *err)
{
    *out = (sn_findings){.alloc = alloc};
    sn_arena_init(&out->arena, alloc);
    sn_case c = {.out = out};
    for (size_t i = 0; i < n && !c.failed; i++)
        checks[i](&c, s);
    if (!c.failed)
        return SONDE_OK;
    sn_findings_free(out);
    *out = (sn_findings){.alloc = alloc};
    sn_arena_init(&out->arena, alloc);
    return sn_fail_memory(err, sizeof(sonde_finding));
}

sonde_status sn_findings_of_machine(const sn_machine_state *s, sn_allocator *alloc,
                                    sn_findings *out, sonde_error *err)
{
    static check_fn *const checks[] = {huge_pages, sockets,          bound,
                                       spanning,   hardware_threads, no_memory};
    return look(s, checks, sizeof checks / sizeof *checks, alloc, out, err);
}

sonde_status sn_findings_of_placement(const sn_machine_state *s, sn_allocator *alloc,
                                      sn_findings *out, sonde_error *err)
{
    static check_fn *const checks[] = {refusals, memory_elsewhere};
    return look(s, checks, sizeof checks / sizeof *checks, alloc, out, err);
}
