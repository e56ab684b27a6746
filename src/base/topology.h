/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine is made of, as the system shows it: CPUs, which of them are threads of one core,
 * which share caches, sockets, memory nodes and how far these are from each other, and which of
 * them this process may use.
 *
 * Everything is read from files under `root`/sys and `root`/proc: "" is this machine, a folder is
 * somebody else's, for tests and to look at. Files may be missing or wrong: what is not known is
 * guessed so that every CPU has one core, cache and node, and reading fails only for want of
 * memory. */
#ifndef SN_BASE_TOPOLOGY_H
#define SN_BASE_TOPOLOGY_H

#include "base/alloc.h"
#include "base/id_set.h"

typedef struct sn_topo_cpu {
    int id; /* the system's number */
    /* Numbers from 0, in the order of the CPUs that have them first. `cache`: CPUs that share the
     * last level. `node` is an index into nodes. */
    int package, core, l2, cache, node;
    int thread;  /* which thread of its core, from 0 */
    bool usable; /* by this process: affinity, which a cpuset limits too */
} sn_topo_cpu;

typedef struct sn_topo_node {
    int id;      /* the system's number */
    int package; /* of its CPUs; -1: it has none, or they are of several */
    int cpus, cores, usable_cpus, usable_cores;
    bool has_memory;       /* and the process may have some of it */
    uint64_t memory_bytes; /* 0: none, or not known */
    uint64_t free_bytes;
} sn_topo_node;

typedef struct sn_topology {
    sn_allocator *alloc;
    sn_topo_cpu *cpus; /* online, by number */
    int n_cpus;
    sn_topo_node *nodes; /* at least one, by number */
    int n_nodes;
    uint8_t *distances; /* n_nodes × n_nodes, 10 = the same node */
    int packages, cores, caches;
    int threads_per_core; /* the most that any core has */
    int usable_cpus, usable_cores;
    bool shows_nodes; /* false: the system says nothing of nodes, and all is taken for one */
} sn_topology;

/* Free it also after an error, which is that there was no memory. */
sonde_status sn_topology_read(sn_topology *t, const char *root, sn_allocator *alloc,
                              sonde_error *err);
void sn_topology_free(sn_topology *t);

/* The one kept at *where, read at the first call, from any thread. It belongs to who keeps it. */
sonde_status sn_topology_get(_Atomic(sn_topology *) *where, const char *root, sn_allocator *alloc,
                             const sn_topology **t, sonde_error *err);
void sn_topology_drop(_Atomic(sn_topology *) *where);

const sn_topo_cpu *sn_topology_cpu(const sn_topology *t, int id); /* NULL: not online */
int sn_topology_node(const sn_topology *t, int id);               /* its index; -1: there is none */
int sn_topology_distance(const sn_topology *t, int from, int to); /* of indices */
/* The node itself, or the nearest that has memory, as an index; -1: none has. */
int sn_topology_memory_of(const sn_topology *t, int node);

/* A whole file below `root`, cut at bytes - 1 and terminated; its length, or -1. Only plain files
 * are read: whatever lies in a folder that somebody named, nothing blocks. */
long sn_topology_file(const char *root, const char *path, char *text, size_t bytes);

#endif
