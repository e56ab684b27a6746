/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of joined profiles: at every change in a worker the sum over all of them. Those of the
 * memory profiler come first and in pairs, as in every profile (profile.h). */
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "profile/join_facts.h"

typedef struct change {
    uint64_t at_ns;
    uint32_t worker;
    size_t index; /* in the worker's counters */
    bool other;   /* not of the memory profiler */
} change;

static int by_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->other != y->other)
        return x->other ? 1 : -1;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool of_memory(const char *name)
{
    return strcmp(name, SN_COUNTER_USED) == 0 || strcmp(name, SN_COUNTER_ALLOCATED) == 0;
}

typedef struct sums {
    sn_map all;  /* name ► double: the sum */
    sn_map last; /* worker and name ► double */
    sn_arena arena;
    SN_VEC(char) key;
} sums;

/* The number of a key, 0 at first; NULL: no memory. */
static double *number(sums *s, sn_map *map, const void *key, size_t n)
{
    double *found = sn_map_get_n(map, key, n);
    char *copy = found ? NULL : sn_arena_alloc(&s->arena, n + 1, 1);
    if (found || !copy)
        return found;
    memcpy(copy, key, n);
    found = SN_NEW(&s->arena, double);
    return found && sn_map_put_n(map, copy, n, found, NULL) ? found : NULL;
}

static bool add_change(sn_profile *to, sums *s, const change *c)
{
    const sn_prof_worker *w = &to->workers.data[c->worker];
    sn_prof_counter k = w->part->counters.data[c->index];
    const size_t n = strlen(k.name);
    s->key.n = 0;
    if (!sn_vec_append(&s->key, to->alloc, (const char *)&c->worker, sizeof c->worker) ||
        !sn_vec_append(&s->key, to->alloc, k.name, n))
        return false;
    double *all = number(s, &s->all, k.name, n);
    double *last = number(s, &s->last, s->key.data, s->key.n);
    if (!all || !last)
        return false;
    const double sum = *all + (k.value - *last);
    *all = isfinite(sum) ? sum : *all;
    *last = k.value;
    k.at_ns = c->at_ns;
    k.value = *all;
    k.step = k.step == UINT32_MAX ? UINT32_MAX : k.step + w->first_step;
    return sn_vec_push(&to->counters, to->alloc, k);
}

static change *list_changes(const sn_profile *to, size_t n)
{
    size_t bytes, at = 0;
    change *list = sn_size_mul(n, sizeof *list, &bytes) ? sn_alloc(to->alloc, bytes) : NULL;
    for (size_t w = 0; w < to->workers.n && list; w++) {
        const sn_profile *part = to->workers.data[w].part;
        for (size_t i = 0; i < part->counters.n; i++) {
            const uint64_t ns = part->counters.data[i].at_ns + to->workers.data[w].offset_ns;
            list[at++] = (change){.at_ns = ns < SN_PROF_MAX_NS ? ns : SN_PROF_MAX_NS,
                                  .worker = (uint32_t)w,
                                  .index = i,
                                  .other = !of_memory(part->counters.data[i].name)};
        }
    }
    if (list && n > 1)
        qsort(list, n, sizeof *list, by_time);
    return list;
}

sonde_status sn_prof_join_counters(sn_profile *to, sonde_error *err)
{
    size_t n = 0;
    for (size_t w = 0; w < to->workers.n; w++)
        n += to->workers.data[w].part->counters.n;
    if (!n)
        return SONDE_OK;
    change *list = list_changes(to, n);
    sums s = {.key = {0}};
    sn_map_init(&s.all, to->alloc);
    sn_map_init(&s.last, to->alloc);
    sn_arena_init(&s.arena, to->alloc);
    bool fine = list != NULL;
    for (size_t i = 0; i < n && fine; i++)
        fine = add_change(to, &s, &list[i]);
    sn_vec_free(&s.key, to->alloc);
    sn_map_free(&s.all);
    sn_map_free(&s.last);
    sn_arena_free(&s.arena);
    sn_free(to->alloc, list, n * sizeof *list);
    return fine ? SONDE_OK : sn_fail_memory(err, n * sizeof *list);
}
