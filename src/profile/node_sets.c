/* SPDX-License-Identifier: Apache-2.0 */
/* A forest of nodes by name: steps unite the nodes they stand for. Names are what survives in every
 * format; nodes without one are nobody's here. */
#include "profile/node_sets.h"

#include <math.h>
#include <string.h>

void sn_node_sets_init(sn_node_sets *s, sn_allocator *alloc)
{
    *s = (sn_node_sets){.alloc = alloc};
    sn_map_init(&s->ids, alloc);
    sn_map_init(&s->makers, alloc);
}

void sn_node_sets_free(sn_node_sets *s)
{
    sn_map_free(&s->ids);
    sn_map_free(&s->makers);
    sn_vec_free(&s->nodes, s->alloc);
}

/* "": it has none. A step of a file that tells no nodes is its own. */
static const char *name_of(const sn_prof_step *step, uint32_t k)
{
    const char *name = k < step->n_origins ? step->origins[k].name : step->name;
    return name ? name : "";
}

static uint32_t root_of(sn_node_sets *s, uint32_t at)
{
    while (s->nodes.data[at].parent != at) {
        s->nodes.data[at].parent = s->nodes.data[s->nodes.data[at].parent].parent;
        at = s->nodes.data[at].parent;
    }
    return at;
}

/* The entry of a name, made if new. */
static bool entry_of(sn_node_sets *s, const char *name, uint32_t *at)
{
    void *found = sn_map_get(&s->ids, name);
    if (!found) {
        const struct sn_node_set_entry one = {
            .name = name, .parent = (uint32_t)s->nodes.n, .row = SN_NODE_SET_NONE};
        found = (void *)(uintptr_t)(s->nodes.n + 1);
        if (s->nodes.n >= SN_NODE_SET_NONE || !sn_vec_push(&s->nodes, s->alloc, one) ||
            !sn_map_put(&s->ids, name, found, NULL))
            return false;
    }
    *at = (uint32_t)((uintptr_t)found - 1);
    return true;
}

/* Nodes first, and of steps that do as much, one that is a node rather than work around it. */
static bool is_wider(const sn_prof_step *a, const sn_prof_step *b)
{
    if (!b || a->n_origins != b->n_origins)
        return !b || a->n_origins > b->n_origins;
    return b->op_type && b->op_type[0] == '[' && a->op_type && a->op_type[0] != '[';
}

/* The set that has the smaller entry stands for both, so that sets keep the order of the nodes. */
static uint32_t unite(sn_node_sets *s, uint32_t a, uint32_t b)
{
    const uint32_t keep = a < b ? a : b, gone = a < b ? b : a;
    struct sn_node_set_entry *n = s->nodes.data;
    if (a == b)
        return a;
    n[gone].parent = keep;
    if (n[gone].widest && is_wider(n[gone].widest, n[keep].widest))
        n[keep].widest = n[gone].widest;
    return keep;
}

static bool add_outputs(sn_node_sets *s, const sn_prof_step *step, uint32_t entry)
{
    for (uint32_t k = 0; k < step->n_outputs; k++) {
        const char *name = step->outputs[k].name;
        if (name && *name && !sn_map_get(&s->makers, name) &&
            !sn_map_put(&s->makers, name, (void *)(uintptr_t)(entry + 1), NULL))
            return false;
    }
    return true;
}

static bool add_step(sn_node_sets *s, const sn_prof_step *step, bool foreign)
{
    uint32_t first = SN_NODE_SET_NONE;
    for (uint32_t k = 0; k < sn_prof_node_count(step); k++) {
        uint32_t at;
        if (!*name_of(step, k))
            continue;
        if (!entry_of(s, name_of(step, k), &at))
            return false;
        s->nodes.data[at].foreign |= foreign;
        at = root_of(s, at);
        first = first == SN_NODE_SET_NONE ? at : unite(s, at, root_of(s, first));
    }
    if (first != SN_NODE_SET_NONE && is_wider(step, s->nodes.data[first].widest))
        s->nodes.data[first].widest = step;
    return first == SN_NODE_SET_NONE || add_outputs(s, step, first);
}

bool sn_node_sets_add(sn_node_sets *s, const sn_profile *p)
{
    const bool foreign = isnan(p->record_ns);
    for (size_t i = 0; i < p->steps.n; i++)
        if (!p->steps.data[i].folded && !add_step(s, &p->steps.data[i], foreign))
            return false;
    return true;
}

/* "/relu/Relu_output_0" ► "/relu/Relu", as exporters call values where nobody else did. */
static void *node_of_value(const sn_node_sets *s, const char *value)
{
    static const char word[] = "_output_";
    const size_t bytes = sizeof word - 1;
    size_t n = strlen(value);
    while (n && value[n - 1] >= '0' && value[n - 1] <= '9')
        n--;
    if (!value[n] || n <= bytes || memcmp(value + n - bytes, word, bytes) != 0)
        return NULL;
    return sn_map_get_n(&s->ids, value, n - bytes);
}

void sn_node_sets_link(sn_node_sets *s)
{
    for (uint32_t i = 0; i < s->nodes.n; i++) {
        struct sn_node_set_entry *e = &s->nodes.data[i];
        void *found = e->foreign ? sn_map_get(&s->makers, e->name) : NULL;
        if (!found && e->foreign)
            found = node_of_value(s, e->name);
        const uint32_t node = found ? (uint32_t)((uintptr_t)found - 1) : i;
        if (root_of(s, node) == root_of(s, i))
            continue;
        e->alias = true;
        (void)unite(s, root_of(s, i), root_of(s, node));
    }
}

uint32_t sn_node_sets_of(sn_node_sets *s, const sn_prof_step *step)
{
    for (uint32_t k = 0; k < sn_prof_node_count(step); k++) {
        const char *name = name_of(step, k);
        void *found = *name ? sn_map_get(&s->ids, name) : NULL;
        if (found)
            return root_of(s, (uint32_t)((uintptr_t)found - 1));
    }
    return SN_NODE_SET_NONE;
}

const char **sn_node_sets_names(sn_node_sets *s, sn_arena *arena)
{
    const size_t n = s->nodes.n;
    const char **names = SN_NEW_N(arena, const char *, n + 1);
    size_t *bytes = SN_NEW_N(arena, size_t, n + 1);
    char **to = SN_NEW_N(arena, char *, n + 1);
    if (!names || !bytes || !to)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!s->nodes.data[i].alias)
            bytes[root_of(s, i)] += strlen(s->nodes.data[i].name) + 2;
    for (uint32_t i = 0; i < n; i++) {
        if (bytes[i] && !(names[i] = to[i] = sn_arena_alloc(arena, bytes[i] + 1, 1)))
            return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t root = root_of(s, i);
        const char *name = s->nodes.data[i].name;
        if (s->nodes.data[i].alias)
            continue;
        if (to[root] != names[root]) {
            memcpy(to[root], ", ", 2);
            to[root] += 2;
        }
        memcpy(to[root], name, strlen(name) + 1);
        to[root] += strlen(name);
    }
    return names;
}
