/* SPDX-License-Identifier: Apache-2.0 */
/* Process numbers repeat across hosts and containers, and on one host in time, but viewers take
 * equal ones for one process. The first trace keeps its number; one that meets it taken gets one
 * above all that Linux gives. Names that repeat, of a worker that was started again, are numbered.
 */
#include "export/pftrace_sections.h"

#include "profile/join.h"

enum { PIDS_END = 1 << 22 };

void sn_pftrace_sections_init(sn_pftrace_sections *s, size_t of, sn_allocator *alloc)
{
    *s = (sn_pftrace_sections){.alloc = alloc, .of = (uint32_t)of, .next_pid = PIDS_END};
    sn_arena_init(&s->arena, alloc);
    sn_map_init(&s->names, alloc);
    sn_map_init(&s->pids, alloc);
}

void sn_pftrace_sections_free(sn_pftrace_sections *s)
{
    sn_map_free(&s->names);
    sn_map_free(&s->pids);
    sn_arena_free(&s->arena);
}

/* How often a key was given, this time included; 0: no memory. */
static uintptr_t count(sn_pftrace_sections *s, sn_map *map, const void *key, size_t bytes)
{
    const uintptr_t n = (uintptr_t)sn_map_get_n(map, key, bytes) + 1;
    char *copy = sn_arena_alloc(&s->arena, bytes + 1, 1);
    if (!copy)
        return 0;
    memcpy(copy, key, bytes);
    return sn_map_put_n(map, copy, bytes, (void *)n, NULL) ? n : 0;
}

sonde_status sn_pftrace_sections_next(sn_pftrace_sections *s, const sn_profile *p,
                                      sn_pftrace_section *section, sonde_error *err)
{
    const char *name = sn_profile_worker_name(p, &s->arena);
    const uintptr_t names = name ? count(s, &s->names, name, strlen(name)) : 0;
    if (names > 1)
        name = sn_arena_printf(&s->arena, "%s (%zu)", name, (size_t)names);
    int64_t pid = p->pid;
    const bool usable = pid > 0 && pid < PIDS_END;
    const uintptr_t pids = usable ? count(s, &s->pids, &pid, sizeof pid) : 2;
    if (pids != 1)
        pid = s->next_pid++;
    if (!name || !names || !pids)
        return sn_fail_memory(err, 1);
    *section = (sn_pftrace_section){.number = ++s->n, .of = s->of, .name = name, .pid = pid};
    return SONDE_OK;
}
