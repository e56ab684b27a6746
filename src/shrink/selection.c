/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names. A name that stands there exactly counts before patterns and commas do: names of
 * nodes may contain anything. */
#include "shrink/selection.h"

#include <stdio.h>
#include <string.h>

const char *sn_node_called(const sn_node *n)
{
    if (n->name && n->name[0])
        return n->name;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->name[0])
            return n->out[i]->name;
    return "";
}

/* Of a text with * and ?. Goes back to the last * only, so it takes at most length × length. */
static bool fits(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text || *pattern == '?') {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool is_called(const char *entry, const char *name)
{
    return strcmp(entry, name) == 0 || (strpbrk(entry, "*?") && fits(entry, name));
}

/* ---- walking all names ---- */

/* `visit` returns true to stop. */
typedef bool (*visit_fn)(void *user, const char *name);

static bool each_name(const sn_graph *g, visit_fn visit, void *user)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->fact.data && !v->producer && v->name[0] && visit(user, v->name))
            return true;
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        if (visit(user, sn_node_called(n)))
            return true;
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            if (each_name(body, visit, user)) /* depth is bounded by sn_graph_new */
                return true;
    }
    return false;
}

static bool visit_called(void *user, const char *name)
{
    return is_called(user, name);
}

static bool is_there(const sn_graph *g, const char *entry)
{
    return each_name(g, visit_called, (void *)(uintptr_t)entry);
}

/* ---- names like the one that is unknown ---- */

enum { NEAR = 3, LONGEST = 96 };

typedef struct near_names {
    const char *word;
    const char *names[NEAR];
    size_t distances[NEAR];
    size_t n;
} near_names;

/* Changes that make one text of the other, of the ends of long ones: there they differ. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    a += n > LONGEST ? n - LONGEST : 0;
    b += m > LONGEST ? m - LONGEST : 0;
    n = n > LONGEST ? LONGEST : n;
    m = m > LONGEST ? LONGEST : m;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t change = corner + (a[i - 1] != b[j - 1]);
            const size_t shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
            corner = row[j];
            row[j] = change < shorter + 1 ? change : shorter + 1;
        }
    }
    return row[m];
}

static bool visit_near(void *user, const char *name)
{
    near_names *s = user;
    const size_t d = strstr(name, s->word) ? 0 : distance(s->word, name);
    if (!*name || d > strlen(s->word) / 2 + 1)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0)
            return false;
    size_t at = s->n < NEAR ? s->n++ : NEAR;
    for (; at > 0 && s->distances[at - 1] > d; at--)
        if (at < NEAR) {
            s->names[at] = s->names[at - 1];
            s->distances[at] = s->distances[at - 1];
        }
    if (at < NEAR) {
        s->names[at] = name;
        s->distances[at] = d;
    }
    return false;
}

static sonde_status fail_unknown(const sn_graph *g, const char *entry, sonde_error *err)
{
    near_names s = {.word = entry};
    char list[400] = "";
    if (!strpbrk(entry, "*?"))
        (void)each_name(g, visit_near, &s);
    for (size_t i = 0; i < s.n; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s'%.100s'", i ? ", " : "", s.names[i]);
    }
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "the model has no node and no weight '%.200s'%s%s",
                   entry, s.n ? "; similar names: " : "", list);
}

/* ---- the lists ---- */

static sonde_status add(sn_names *names, const char *entry, sn_arena *arena, size_t *cap,
                        sonde_error *err)
{
    if (names->n == *cap) {
        const char **more = SN_NEW_N(arena, const char *, *cap * 2 + 8);
        if (!more)
            return sn_fail_memory(err, *cap * sizeof *more);
        if (names->n)
            memcpy(more, names->list, names->n * sizeof *more);
        names->list = more;
        *cap = *cap * 2 + 8;
    }
    names->list[names->n++] = entry;
    return SONDE_OK;
}

static sonde_status add_parts(sn_names *names, const sn_graph *g, const char *entry,
                              sn_arena *arena, size_t *cap, sonde_error *err)
{
    for (const char *at = entry; at;) {
        const char *comma = strchr(at, ',');
        const size_t n = comma ? (size_t)(comma - at) : strlen(at);
        const char *part = sn_arena_strndup(arena, at, n);
        if (!part)
            return sn_fail_memory(err, n);
        if (n && !is_there(g, part))
            return fail_unknown(g, part, err);
        if (n)
            SN_TRY(add(names, part, arena, cap, err));
        at = comma ? comma + 1 : NULL;
    }
    return SONDE_OK;
}

static sonde_status make(sn_names *names, const sn_graph *g, const char *const *list, size_t n,
                         sn_arena *arena, sonde_error *err)
{
    size_t cap = 0;
    for (size_t i = 0; i < n; i++) {
        if (!list[i])
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "entry %zu of a list of nodes is NULL", i);
        if (is_there(g, list[i]))
            SN_TRY(add(names, list[i], arena, &cap, err));
        else
            SN_TRY(add_parts(names, g, list[i], arena, &cap, err));
    }
    if (n && !names->n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "a list of nodes is empty");
    return SONDE_OK;
}

sonde_status sn_selection_make(sn_selection *s, const sn_graph *g, const char *const *only,
                               size_t n_only, const char *const *except, size_t n_except,
                               sn_arena *arena, sonde_error *err)
{
    *s = (sn_selection){.only = {NULL, 0}};
    SN_TRY(make(&s->only, g, only, n_only, arena, err));
    return make(&s->except, g, except, n_except, arena, err);
}

static bool names_have(const sn_names *names, const char *name)
{
    for (size_t i = 0; name && i < names->n; i++)
        if (is_called(names->list[i], name))
            return true;
    return false;
}

bool sn_selection_has(const sn_selection *s, const char *node, const char *weight)
{
    const bool asked = !s->only.n || names_have(&s->only, node) || names_have(&s->only, weight);
    return asked && !names_have(&s->except, node) && !names_have(&s->except, weight);
}
