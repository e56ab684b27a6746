/* SPDX-License-Identifier: Apache-2.0 */
/* Finding traces: files by name, folders with all *.pftrace in them. A first look reads the facts
 * of each; a file that two paths lead to is looked at once. Other formats are read whole for it,
 * which is why a folder's are not: it often holds the same runs in several formats. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "merge/merge.h"
#include "profile_readers/profile_readers.h"

enum { MOST_DEEP = 64 }; /* folders in folders */

void sn_merge_init(sn_merge *m, sn_allocator *alloc, bool map)
{
    *m = (sn_merge){.alloc = alloc, .map = map, .clocks = {.moved_host = ""}};
    sn_arena_init(&m->arena, alloc);
    sn_map_init(&m->files, alloc);
}

void sn_merge_free(sn_merge *m)
{
    if (m->last)
        sn_file_close(&m->open);
    sn_vec_free(&m->sources, m->alloc);
    sn_vec_free(&m->skipped, m->alloc);
    sn_map_free(&m->files);
    sn_arena_free(&m->arena);
}

static sonde_status skip(sn_merge *m, const char *path, const char *why, bool duplicate,
                         sonde_error *err)
{
    const sn_merge_skipped s = {.path = sn_arena_strdup(&m->arena, path),
                                .why = sn_arena_strdup(&m->arena, why),
                                .duplicate = duplicate};
    if (!s.path || !s.why || !sn_vec_push(&m->skipped, m->alloc, s))
        return sn_fail_memory(err, sizeof s);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ a file */
static sonde_status add_source(sn_merge *m, const char *path, const sn_profile *p,
                               const sn_profile_part *part, sonde_error *err)
{
    sn_arena *a = &m->arena;
    const sn_merge_source s = {
        .path = path,
        .part = *part,
        .host = sn_arena_strdup(a, sn_labels_get(&p->labels, SN_LABEL_HOST)),
        .worker = sn_arena_strdup(a, sn_labels_get(&p->labels, SN_LABEL_WORKER)),
        .version = sn_arena_strdup(a, sn_labels_get(&p->labels, SN_LABEL_VERSION)),
        .model = sn_arena_strdup(a, p->model_name),
        .boot = sn_arena_strdup(a, p->boot),
        .note = sn_arena_strdup(a, p->note),
        .pid = p->pid,
        .instance = p->instance,
        .start_wall_ns = p->start_wall_ns,
        .start_mono_ns = p->start_mono_ns,
        .wall_error_ns = p->wall_error_ns};
    if (m->sources.n == SN_MERGE_MOST)
        return sn_fail(err, SONDE_LIMIT, "there are more than %d traces", SN_MERGE_MOST);
    if (!s.host || !s.worker || !s.version || !s.model || !s.boot || !s.note ||
        !sn_vec_push(&m->sources, m->alloc, s))
        return sn_fail_memory(err, sizeof s);
    return SONDE_OK;
}

/* What is wrong with a file is its own: the others are merged. Memory is everybody's. */
static sonde_status refuse(sn_merge *m, const char *path, sonde_status st, const sonde_error *why,
                           sonde_error *err)
{
    if (st == SONDE_OUT_OF_MEMORY)
        return sn_fail(err, st, "%s", why->message);
    return skip(m, path, why->message, false, err);
}

/* A joined file lacks some of its traces: the last one there is says so. */
static sonde_status note_cut(sn_merge *m, sonde_error *err)
{
    sn_merge_source *last = &m->sources.data[m->sources.n - 1]; /* there is one */
    last->note = sn_arena_printf(&m->arena, "%s%sthe file ends before its last trace", last->note,
                                 *last->note ? "; " : "");
    return last->note ? SONDE_OK : sn_fail_memory(err, 1);
}

/* Several parts of a broken file may be good: a joined file with one bad trace in it counts as bad.
 */
static sonde_status look_at(sn_merge *m, const char *path, const sn_file *file, sonde_error *err)
{
    sonde_error why = {.status = SONDE_OK};
    sn_profile_parts parts = {
        .data = file->data, .bytes = file->bytes, .alloc = m->alloc, .facts_only = true};
    const size_t before = m->sources.n;
    parts.row = sn_profile_reader_of(file->data, file->bytes, path, &why);
    if (!parts.row)
        return skip(m, path, file->bytes ? why.message : "it is empty", false, err);
    sn_profile *p = NULL;
    sonde_status st = sn_profile_parts_next(&parts, &p, &why);
    while (st == SONDE_OK && p) {
        const sonde_status added = add_source(m, path, p, &parts.last, err);
        sn_profile_free(p);
        SN_TRY(added);
        st = sn_profile_parts_next(&parts, &p, &why);
    }
    if (st != SONDE_OK) {
        m->sources.n = before;
        return refuse(m, path, st, &why, err);
    }
    return parts.cut ? note_cut(m, err) : SONDE_OK;
}

/* Whether another path led to this very file; remembers it. */
static sonde_status seen_before(sn_merge *m, const struct stat *st, bool *seen, sonde_error *err)
{
    const uint64_t id[2] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    *seen = sn_map_get_n(&m->files, id, sizeof id) != NULL;
    if (*seen)
        return SONDE_OK;
    uint64_t *key = SN_NEW_N(&m->arena, uint64_t, 2);
    if (!key)
        return sn_fail_memory(err, sizeof id);
    memcpy(key, id, sizeof id);
    if (!sn_map_put_n(&m->files, key, sizeof id, key, NULL))
        return sn_fail_memory(err, sizeof id);
    return SONDE_OK;
}

static sonde_status add_file(sn_merge *m, const char *path, sonde_error *err)
{
    sonde_error why = {.status = SONDE_OK};
    struct stat st;
    bool seen = false;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        SN_TRY(seen_before(m, &st, &seen, err));
    if (seen)
        return skip(m, path, "it is the same file as another one", true, err);
    const char *own = sn_arena_strdup(&m->arena, path);
    if (!own)
        return sn_fail_memory(err, 1);
    sn_file file;
    const sonde_status opened = sn_file_open(&file, path, m->map, m->alloc, &why);
    if (opened != SONDE_OK)
        return refuse(m, path, opened, &why, err);
    const sonde_status looked = look_at(m, own, &file, err);
    sn_file_close(&file);
    return looked;
}

/* ------------------------------------------------------------------ a folder */
static bool is_trace(const char *name)
{
    const size_t n = strlen(name);
    return *name != '.' && n > 8 && strcmp(name + n - 8, ".pftrace") == 0;
}

static int by_name(const void *a, const void *b)
{
    return sn_fleet_compare_names(*(const char *const *)a, *(const char *const *)b);
}

typedef struct names {
    SN_VEC(const char *) list;
} names;

/* Names in a folder that may be of interest, in the merge's arena. */
static sonde_status list_folder(sn_merge *m, DIR *dir, names *all, sonde_error *err)
{
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        const char *name = *e->d_name == '.' ? NULL : sn_arena_strdup(&m->arena, e->d_name);
        if (*e->d_name != '.' && (!name || !sn_vec_push(&all->list, m->alloc, name)))
            return sn_fail_memory(err, 1);
    }
    if (all->list.n > 1)
        qsort(all->list.data, all->list.n, sizeof *all->list.data, by_name);
    return SONDE_OK;
}

static bool same_file(const struct stat *a, const char *path)
{
    struct stat b;
    return path && stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

static sonde_status add_folder(sn_merge *m, const char *path, int depth, sonde_error *err);

/* A link to a folder is not followed, so that there are no circles; a link to a file is. */
static sonde_status add_entry(sn_merge *m, const char *folder, const char *name, int depth,
                              sonde_error *err)
{
    const size_t n = strlen(folder);
    const char *path =
        sn_arena_printf(&m->arena, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    struct stat st;
    if (!path)
        return sn_fail_memory(err, 1);
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_folder(m, path, depth + 1, err);
    if (!is_trace(name) || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return SONDE_OK;
    if (same_file(&st, m->not_this)) {
        m->left_out = path;
        return SONDE_OK;
    }
    return add_file(m, path, err);
}

static sonde_status add_folder(sn_merge *m, const char *path, int depth, sonde_error *err)
{
    char why[300];
    DIR *dir = depth < MOST_DEEP ? opendir(path) : NULL;
    if (!dir) {
        snprintf(why, sizeof why, "the folder cannot be read: %s",
                 depth < MOST_DEEP ? strerror(errno) : "too many folders in folders");
        return skip(m, path, why, false, err);
    }
    names all = {0};
    sonde_status st = list_folder(m, dir, &all, err);
    closedir(dir);
    for (size_t i = 0; i < all.list.n && st == SONDE_OK; i++)
        st = add_entry(m, path, all.list.data[i], depth, err);
    sn_vec_free(&all.list, m->alloc);
    return st;
}

sonde_status sn_merge_add(sn_merge *m, const char *path, sonde_error *err)
{
    struct stat st = {.st_mode = 0};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_folder(m, path, 0, err);
    if (S_ISREG(st.st_mode) && same_file(&st, m->not_this))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "'%s' is read and cannot take the result",
                       path);
    return add_file(m, path, err);
}

/* ------------------------------------------------------------------ one recording twice */
/* Which recording a source is: a process cannot begin two in the same nanosecond. */
static const char *recording_of(sn_merge *m, const sn_merge_source *s)
{
    if (*s->boot && s->start_mono_ns)
        return sn_arena_printf(&m->arena, "%s %lld %llu", s->boot, (long long)s->pid,
                               (unsigned long long)s->start_mono_ns);
    if (s->start_wall_ns && s->pid)
        return sn_arena_printf(&m->arena, "%lld %llu %d %s", (long long)s->pid,
                               (unsigned long long)s->start_wall_ns, s->instance, s->host);
    return "";
}

/* Of two copies the one that has more: whole before cut, then the longer. */
static bool has_more(const sn_merge_source *a, const sn_merge_source *b)
{
    if (!*a->note != !*b->note)
        return !*a->note;
    return a->part.to - a->part.from > b->part.to - b->part.from;
}

static sonde_status drop_copies(sn_merge *m, sonde_error *err)
{
    sn_map seen; /* recording ► 1 + place among those that are kept */
    sn_map_init(&seen, m->alloc);
    sonde_status st = SONDE_OK;
    size_t kept = 0;
    for (size_t i = 0; i < m->sources.n && st == SONDE_OK; i++) {
        const sn_merge_source s = m->sources.data[i];
        const char *key = recording_of(m, &s);
        const size_t at = key && *key ? (size_t)(uintptr_t)sn_map_get(&seen, key) : 0;
        sn_merge_source *other = at ? &m->sources.data[at - 1] : NULL;
        if (other) {
            const bool more = has_more(&s, other);
            st = skip(m, more ? other->path : s.path,
                      "it is a copy of a recording that another file has", true, err);
            *other = more ? s : *other;
            continue;
        }
        if (!key || (*key && !sn_map_put(&seen, key, (void *)(uintptr_t)(kept + 1), NULL)))
            st = sn_fail_memory(err, 1);
        m->sources.data[kept++] = s;
    }
    if (st == SONDE_OK)
        m->sources.n = kept;
    sn_map_free(&seen);
    return st;
}

/* A file in the folder that the result will replace was usually the result of an earlier time: all
 * it has is in the sources. What nothing else has is not thrown away without a word. */
static sonde_status keep_others(sn_merge *m, sonde_error *err)
{
    sn_merge own;
    sn_map known;
    sn_merge_init(&own, m->alloc, m->map);
    sn_map_init(&known, m->alloc);
    sonde_status st = m->left_out ? add_file(&own, m->left_out, err) : SONDE_OK;
    for (size_t i = 0; st == SONDE_OK && own.sources.n && i < m->sources.n; i++) {
        const char *key = recording_of(m, &m->sources.data[i]);
        if (!key || (*key && !sn_map_put(&known, key, m, NULL)))
            st = sn_fail_memory(err, 1);
    }
    for (size_t i = 0; st == SONDE_OK && i < own.sources.n; i++) {
        const char *key = recording_of(&own, &own.sources.data[i]);
        if (!key)
            st = sn_fail_memory(err, 1);
        else if (*key && !sn_map_get(&known, key))
            st = sn_fail(err, SONDE_INVALID_ARGUMENT,
                         "'%s' has a recording that no other file has, and would be replaced: "
                         "write the result to another file",
                         m->left_out);
    }
    sn_map_free(&known);
    sn_merge_free(&own);
    return st;
}

/* ------------------------------------------------------------------ order */
static int by_worker(const void *a, const void *b)
{
    const sn_merge_source *x = a, *y = b;
    int order = sn_fleet_compare_names(x->host, y->host);
    order = order ? order : sn_fleet_compare_names(x->worker, y->worker);
    if (order)
        return order;
    if (x->aligned_ns != y->aligned_ns)
        return x->aligned_ns < y->aligned_ns ? -1 : 1;
    order = strcmp(x->path, y->path);
    return order ? order : (x->part.from > y->part.from) - (x->part.from < y->part.from);
}

sonde_status sn_merge_ready(sn_merge *m, sonde_error *err)
{
    SN_TRY(keep_others(m, err));
    SN_TRY(drop_copies(m, err));
    const sn_merge_skipped *first = m->skipped.data;
    if (!m->sources.n && m->skipped.n && strstr(first->why, first->path)) /* most begin with it */
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "there is no trace to merge: %s", first->why);
    if (!m->sources.n && m->skipped.n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "there is no trace to merge: '%s': %s",
                       first->path, first->why);
    if (!m->sources.n)
        return sn_fail(err, SONDE_NOT_FOUND,
                       "there is no trace to merge: no folder has a file named *.pftrace");
    sn_merge_align(m);
    if (m->sources.n > 1)
        qsort(m->sources.data, m->sources.n, sizeof *m->sources.data, by_worker);
    return SONDE_OK;
}
