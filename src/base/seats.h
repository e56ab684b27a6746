/* SPDX-License-Identifier: Apache-2.0 */
/* Where the threads of a pool sit. A seat is the CPUs that one thread may use: a core, some cores
 * side by side, or one thread of a core. All seats of a pool are on the memory nodes that were
 * asked for, in the order of the machine, so that threads with neighbouring numbers share caches.
 *
 * Which seats there are is a pure function of the topology and of what is asked; sitting down is
 * base/affinity.h. A thread that is not ours sits down for the length of a call and gets up again:
 *
 *     sn_sitting s;
 *     sn_sit(&s, seats, 0);
 *     …
 *     sn_stand_up(&s); */
#ifndef SN_BASE_SEATS_H
#define SN_BASE_SEATS_H

#include "base/topology.h"

/* What --numa, SONDE_NUMA and options say. */
typedef enum sn_numa_mode { SN_NUMA_OFF, SN_NUMA_AUTO, SN_NUMA_NODES } sn_numa_mode;
typedef struct sn_numa {
    sn_numa_mode mode;
    sn_id_set nodes; /* SN_NUMA_NODES: their numbers */
} sn_numa;
/* "auto", "off", or nodes: "0", "0,2-3". `name` is who says it, for the error. */
sonde_status sn_numa_parse(const char *text, const char *name, sn_numa *numa, sonde_error *err);
bool sn_numa_same(const sn_numa *a, const sn_numa *b);

enum { SN_POOL_MOST = 4096 }; /* threads of a pool */

typedef struct sn_seat {
    int first, end; /* of the list of CPUs */
} sn_seat;

typedef struct sn_seats {
    sn_allocator *alloc;
    int n; /* one for each thread */
    sn_seat *seat;
    int *cpus, n_cpus; /* numbers, in the order of seats */
    int cores;         /* that these are part of */
    sn_id_set all;     /* CPUs of all seats, without order */
    sn_id_set nodes;   /* whose CPUs these are, by number */
    sn_id_set memory;  /* nodes where their memory should lie; empty: as the system likes */
} sn_seats;

typedef struct sn_seats_ask {
    sn_numa numa;
    int threads; /* 0: one for each core */
    int instance,
        instances;      /* which of how many pools that share the nodes; 0 of 0: the only one */
    int here;           /* CPU that the caller runs on, -1: not known; SN_NUMA_AUTO breaks ties */
    double quota_cores; /* of the cgroup; 0 = none. Limits what `threads` 0 gives */
} sn_seats_ask;

/* NULL in *seats: nothing is bound, because it is off, or automatic on a machine of one node. */
sonde_status sn_seats_make(const sn_topology *t, const sn_seats_ask *ask, sn_allocator *alloc,
                           sn_seats **seats, sonde_error *err);
void sn_seats_free(sn_seats *s); /* NULL accepted */
void sn_seats_cpus(const sn_seats *s, int seat, sn_id_set *cpus);

/* The calling thread takes a seat, unless it may only use CPUs of these seats anyway: whoever
 * placed it knows better. Does nothing for NULL. False: it was refused, errno says why. */
typedef struct sn_sitting {
    bool moved;
    sn_id_set before; /* what it may use otherwise */
    const struct sn_sitting *outer;
} sn_sitting;
bool sn_sit(sn_sitting *s, const sn_seats *seats, int seat);
void sn_stand_up(sn_sitting *s);
/* What the calling thread could use before it sat down; NULL: it sits nowhere. Threads that it
 * starts inherit its seat, which those that are not of the same pool do not want. */
const sn_id_set *sn_sitting_before(void);

#endif
