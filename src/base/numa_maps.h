/* SPDX-License-Identifier: Apache-2.0 */
/* On which nodes the memory of this process lies, as /proc/self/numa_maps says. */
#ifndef SN_BASE_NUMA_MAPS_H
#define SN_BASE_NUMA_MAPS_H

#include "base/topology.h"

/* Bytes on each node of `t`, of memory that is the process's own: pages of files belong to all.
 * False: the system does not show it, and all are 0. */
bool sn_memory_by_node(const char *root, const sn_topology *t, uint64_t *bytes);

#endif
