/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names. A name that stands there exactly counts before patterns and commas do: names of
 * nodes may contain anything. */
#include "shrink/selection.h"

#include <stdio.h>
#include <string.h>

#include "base/list_text.h"

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
    if (*entry == SN_NAME_EXACT)
        return strcmp(entry + 1, name) == 0;
    return strcmp(entry, name) == 0 || (strpbrk(entry, "*?") && fits(entry, name));
}

/* ---- walking all names ---- */

/* `visit` returns true to stop. */
typedef bool (*visit_fn)(void *user, const char *name);

static bool each_output(const sn_node *n, visit_fn visit, void *user)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->name[0] && visit(user, n->out[i]->name))
            return true;
    return false;
}

/* Names of nodes come first: where similar names are listed, they mean most. */
static bool each_name(const sn_graph *g, visit_fn visit, void *user)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        if (visit(user, sn_node_called(n)))
            return true;
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            if (each_name(body, visit, user)) /* depth is bounded by sn_graph_new */
                return true;
    }
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->fact.data && !v->producer && v->name[0] && visit(user, v->name))
            return true;
    }
    for (const sn_node *n = g->first; n; n = n->next)
        if (each_output(n, visit, user))
            return true;
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

/* The first few nodes, for a word that is like none of them. */
static bool visit_first(void *user, const char *name)
{
    near_names *s = user;
    if (*name)
        s->names[s->n++] = name;
    return s->n == NEAR;
}

static sonde_status fail_unknown(const sn_graph *g, const char *entry, sonde_error *err)
{
    const bool exact = *entry == SN_NAME_EXACT;
    entry += exact;
    near_names s = {.word = entry};
    sn_list_text list = {0};
    if (exact || !strpbrk(entry, "*?"))
        (void)each_name(g, visit_near, &s);
    const bool similar = s.n > 0;
    if (!similar)
        (void)each_name(g, visit_first, &s);
    for (size_t i = 0; i < s.n; i++)
        sn_list_add(&list, "'%s'", s.names[i]);
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "the model has no node and no weight '%.200s'%s%s",
                   entry,
                   similar ? "; similar names: "
                   : s.n   ? "; its first names: "
                           : "",
                   sn_list_end(&list));
}

/* ---- the lists ---- */

/* What the file names must be there, too: a comparison of another model is a mistake. */
static sonde_status add_file(sn_names *names, const sn_graph *g, const char *path, sn_arena *arena,
                             sonde_error *err)
{
    const size_t before = names->n;
    SN_TRY(sn_names_read(names, path, arena, g->alloc, err));
    for (size_t i = before; i < names->n; i++)
        if (!is_there(g, names->list[i])) {
            (void)fail_unknown(g, names->list[i], err);
            sn_error_prefix(err, "'%.300s'", path);
            return SONDE_INVALID_ARGUMENT;
        }
    return SONDE_OK;
}

static sonde_status add_part(sn_names *names, const sn_graph *g, const char *part, sn_arena *arena,
                             sonde_error *err)
{
    if (is_there(g, part))
        return sn_names_add(names, part, arena, err);
    return part[0] == '@' ? add_file(names, g, part + 1, arena, err) : fail_unknown(g, part, err);
}

/* "@FILE" is a whole entry: names of files may have commas, too. */
static sonde_status add_entry(sn_names *names, const sn_graph *g, const char *entry,
                              sn_arena *arena, sonde_error *err)
{
    if (is_there(g, entry) || entry[0] == '@')
        return add_part(names, g, entry, arena, err);
    for (const char *at = entry; at;) {
        const char *comma = strchr(at, ',');
        const size_t n = comma ? (size_t)(comma - at) : strlen(at);
        const char *part = sn_arena_strndup(arena, at, n);
        if (!part)
            return sn_fail_memory(err, n);
        if (n)
            SN_TRY(add_part(names, g, part, arena, err));
        at = comma ? comma + 1 : NULL;
    }
    return SONDE_OK;
}

/* A file may name nothing, which is what a comparison says of a good model; a text may not. */
static sonde_status make(sn_names *names, const sn_graph *g, const char *const *list, size_t n,
                         bool may_be_empty, sn_arena *arena, sonde_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!list[i])
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "entry %zu of a list of nodes is NULL", i);
        const size_t before = names->n;
        SN_TRY(add_entry(names, g, list[i], arena, err));
        if (names->n == before && !(may_be_empty && list[i][0] == '@'))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "the list of nodes '%.200s' is empty",
                           list[i]);
    }
    return SONDE_OK;
}

sonde_status sn_selection_make(sn_selection *s, const sn_graph *g, const char *const *only,
                               size_t n_only, const char *const *except, size_t n_except,
                               sn_arena *arena, sonde_error *err)
{
    *s = (sn_selection){.only = {NULL, 0, 0}};
    SN_TRY(make(&s->only, g, only, n_only, false, arena, err));
    return make(&s->except, g, except, n_except, true, arena, err);
}

static bool list_has(const sn_names *names, const char *name)
{
    for (size_t i = 0; name && i < names->n; i++)
        if (is_called(names->list[i], name))
            return true;
    return false;
}

static bool names_have(const sn_names *names, const sn_node *n, const char *weight)
{
    if (list_has(names, sn_node_called(n)) || list_has(names, weight))
        return true;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && list_has(names, n->out[i]->name))
            return true;
    return false;
}

bool sn_selection_excepts(const sn_selection *s, const sn_node *n, const char *weight)
{
    return names_have(&s->except, n, weight);
}

bool sn_selection_has(const sn_selection *s, const sn_node *n, const char *weight)
{
    return (!s->only.n || names_have(&s->only, n, weight)) && !sn_selection_excepts(s, n, weight);
}
