/* SPDX-License-Identifier: Apache-2.0 */
/* The profile object itself: its life, finding spans by id, and what places are called. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

sonde_status sn_profile_new(sn_profile **out, sn_allocator *alloc, sonde_error *err)
{
    *out = NULL;
    sn_profile *p = sn_alloc_zero(alloc, sizeof *p);
    if (!p)
        return sn_fail_memory(err, sizeof *p);
    p->alloc = alloc;
    sn_arena_init(&p->arena, alloc);
    p->model_name = p->file_name = p->version = p->cpu_model = p->cpu_level = p->precision = "";
    p->note = p->counters_note = p->boot = "";
    sn_labels_init(&p->labels, alloc);
    *out = p;
    return SONDE_OK;
}

void sn_profile_free(sn_profile *p)
{
    if (!p)
        return;
    sn_allocator *alloc = p->alloc;
    sn_vec_free(&p->steps, alloc);
    sn_vec_free(&p->spans, alloc);
    sn_vec_free(&p->threads_seen, alloc);
    sn_vec_free(&p->counters, alloc);
    sn_vec_free(&p->lives, alloc);
    sn_vec_free(&p->left.wall_ns, alloc);
    sn_vec_free(&p->left.steps, alloc);
    for (size_t i = 0; i < p->workers.n; i++)
        sn_profile_free(p->workers.data[i].part);
    sn_vec_free(&p->workers, alloc);
    sn_labels_free(&p->labels);
    sn_arena_free(&p->arena);
    sn_free(alloc, p, sizeof *p);
}

static int by_id(const void *a, const void *b)
{
    const struct sn_prof_index_entry *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

sonde_status sn_prof_index_build(const sn_profile *p, sn_prof_index *index, sonde_error *err)
{
    *index = (sn_prof_index){.alloc = p->alloc};
    size_t n = p->spans.n, bytes;
    if (n >= UINT32_MAX || !sn_size_mul(n, sizeof *index->entries, &bytes))
        return sn_fail(err, SONDE_LIMIT, "a profile can have at most %u spans", UINT32_MAX - 1);
    index->entries = sn_alloc(p->alloc, bytes);
    if (!index->entries)
        return sn_fail_memory(err, bytes);
    index->n = n;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        index->entries[i].id = p->spans.data[i].id;
        index->entries[i].at = (uint32_t)i;
        sorted &= i == 0 || p->spans.data[i - 1].id < p->spans.data[i].id;
    }
    if (!sorted)
        qsort(index->entries, n, sizeof *index->entries, by_id);
    return SONDE_OK;
}

void sn_prof_index_free(sn_prof_index *index)
{
    sn_free(index->alloc, index->entries, index->n * sizeof *index->entries);
    index->entries = NULL;
    index->n = 0;
}

uint32_t sn_prof_index_find(const sn_prof_index *index, uint32_t id)
{
    if (id == 0)
        return UINT32_MAX;
    if (id <= index->n && index->entries[id - 1].id == id) /* dense ids: no search */
        return index->entries[id - 1].at;
    size_t lo = 0, hi = index->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (index->entries[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < index->n && index->entries[lo].id == id ? index->entries[lo].at : UINT32_MAX;
}

const sn_prof_step *sn_prof_find_step(const sn_profile *p, uint32_t table, uint32_t index)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        if (s->table == table && s->index == index && !s->folded)
            return s;
    }
    return NULL;
}

static const char *const places[] = {[SN_LIFE_ARENA] = "arena",
                                     [SN_LIFE_OUTPUT] = "output",
                                     [SN_LIFE_WORKSPACE] = "workspace",
                                     [SN_LIFE_DYNAMIC] = "dynamic"};

const char *sn_prof_place_name(sn_prof_place p)
{
    return places[p];
}

sn_prof_place sn_prof_place_named(const char *s, size_t n)
{
    for (int k = 0; k <= SN_LIFE_DYNAMIC; k++)
        if (strlen(places[k]) == n && memcmp(places[k], s, n) == 0)
            return (sn_prof_place)k;
    return SN_LIFE_DYNAMIC;
}
