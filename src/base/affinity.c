/* SPDX-License-Identifier: Apache-2.0 */
/* The calls take bit masks of any length. The policy of memory belongs to ranges of addresses, and
 * the kernel keeps a record for each: so it is only set for blocks that are worth it, and cleared
 * before they are freed. One node is preferred rather than required, because a required one that is
 * full ends the process. */
#include "base/affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in linux/mempolicy.h, which not every system that compiles this has. */
enum { POLICY_DEFAULT = 0, POLICY_PREFERRED = 1, POLICY_INTERLEAVE = 3, MOVE_OWN_PAGES = 1 << 1 };
enum { NODE_LIMIT = 1024, SAMPLE = 512 };

_Static_assert(sizeof(sn_id_set) % sizeof(unsigned long) == 0, "masks are arrays of long");

bool sn_affinity_get(sn_id_set *cpus)
{
    memset(cpus, 0, sizeof *cpus);
    return sched_getaffinity(0, sizeof *cpus, (cpu_set_t *)(void *)cpus) == 0 &&
           !sn_id_set_is_empty(cpus);
}

bool sn_affinity_set(const sn_id_set *cpus)
{
    return sched_setaffinity(0, sizeof *cpus, (const cpu_set_t *)(const void *)cpus) == 0;
}

int sn_affinity_cpu(void)
{
    return sched_getcpu();
}

/* The pages that the range touches: a block of its own begins with the page of its header, and a
 * range that left it out would cut a huge page in two. */
static void pages_of(const void *at, size_t bytes, uintptr_t *first, size_t *length)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = ((uintptr_t)at + bytes + page - 1) & ~(page - 1);
    *first = (uintptr_t)at & ~(page - 1);
    *length = end - *first;
}

#ifdef SYS_mbind
static bool set_policy(const void *at, size_t bytes, int mode, const sn_id_set *nodes, unsigned how)
{
    uintptr_t first;
    size_t length;
    pages_of(at, bytes, &first, &length);
    return syscall(SYS_mbind, first, length, mode, nodes ? nodes->words : NULL,
                   nodes ? NODE_LIMIT : 0, how) == 0;
}
#else
static bool set_policy(const void *at, size_t bytes, int mode, const sn_id_set *nodes, unsigned how)
{
    (void)at, (void)bytes, (void)mode, (void)nodes, (void)how;
    errno = ENOSYS;
    return false;
}
#endif

bool sn_memory_bind(void *at, size_t bytes, const sn_id_set *nodes)
{
    const int mode = sn_id_set_count(nodes) > 1 ? POLICY_INTERLEAVE : POLICY_PREFERRED;
    return set_policy(at, bytes, mode, nodes, MOVE_OWN_PAGES);
}

void sn_memory_unbind(void *at, size_t bytes)
{
    const int kept = errno;
    (void)set_policy(at, bytes, POLICY_DEFAULT, NULL, 0);
    errno = kept;
}

size_t sn_memory_where(const void *at, size_t bytes, size_t *counts, size_t nodes)
{
    memset(counts, 0, nodes * sizeof *counts);
#ifdef SYS_move_pages
    void *pages[SAMPLE];
    int status[SAMPLE];
    uintptr_t first;
    size_t length, n = 0, seen = 0;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pages_of(at, bytes, &first, &length);
    const size_t all = length / page, step = all / SAMPLE + 1;
    for (size_t i = 0; i < all; i += step)
        pages[n++] = (void *)(first + i * page);
    if (!n || syscall(SYS_move_pages, 0, n, pages, NULL, status, 0) != 0)
        return 0;
    for (size_t i = 0; i < n; i++) /* negative: it is not there yet */
        if (status[i] >= 0) {
            seen++;
            if ((size_t)status[i] < nodes)
                counts[status[i]]++;
        }
    return seen;
#else
    (void)at, (void)bytes;
    return 0;
#endif
}
