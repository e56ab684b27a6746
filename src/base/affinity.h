/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads run and where memory lies: the system calls, without libnuma. All of them may be
 * refused (containers forbid those for memory unless they have CAP_SYS_NICE, other kernels do not
 * know them): then they return false with errno set, and everything works as if nobody had asked.
 */
#ifndef SN_BASE_AFFINITY_H
#define SN_BASE_AFFINITY_H

#include "base/id_set.h"

/* Of the calling thread. */
bool sn_affinity_get(sn_id_set *cpus);
bool sn_affinity_set(const sn_id_set *cpus);
int sn_affinity_cpu(void); /* where it runs at the moment; -1: not known */

/* From now on the whole pages in this range come from these nodes, and those that are there already
 * move: from one node if it has room and from others if not, from several in turn. */
bool sn_memory_bind(void *at, size_t bytes, const sn_id_set *nodes);
/* Before the memory is given back, so that whoever has it next gets pages as usual. */
void sn_memory_unbind(void *at, size_t bytes);
/* The nodes of a sample of the pages of this range: counts[k] of node k below `nodes`, and the
 * number of pages looked at that are there at all. 0: the system does not say. */
size_t sn_memory_where(const void *at, size_t bytes, size_t *counts, size_t nodes);

#endif
