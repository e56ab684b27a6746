/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements that were made, as text by key: in the context, and in a folder, one file each. A
 * key says everything that may change the figures, and is the first line of its file, so that two
 * keys with one hash are never taken for one another. */
#include <stdio.h>

#include "base/cache.h"
#include "export/text.h"
#include "whatif/whatif.h"

enum { KEPT = 512, MAX_BYTES = 64 << 20 };

typedef struct kept_text {
    char *text; /* the key, a line feed, the measurement */
    size_t bytes, key_bytes;
} kept_text;

typedef struct kept_list {
    sn_attachment attachment; /* first: the context knows only this */
    SN_VEC(kept_text) list;   /* oldest first */
} kept_list;

/* ------------------------------------------------------------------ in the context */
static const char list_key; /* its address tells the list from other attachments */

/* With the machine's lock held, here and below. */
static kept_list *list_of(const sonde_context *c)
{
    return (kept_list *)sn_api_attached(c, &list_key);
}

static void forget(sonde_context *c, kept_list *l, size_t k)
{
    sn_free(&c->alloc, l->list.data[k].text, l->list.data[k].bytes);
    memmove(&l->list.data[k], &l->list.data[k + 1], (l->list.n - k - 1) * sizeof *l->list.data);
    l->list.n--;
}

static void empty(sonde_context *c, kept_list *l)
{
    while (l->list.n)
        forget(c, l, l->list.n - 1);
    sn_vec_free(&l->list, &c->alloc);
}

static void free_list(sonde_context *c, sn_attachment *a)
{
    empty(c, (kept_list *)a);
    sn_free(&c->alloc, a, sizeof(kept_list));
}

static kept_text *find(const kept_list *l, const char *key)
{
    const size_t n = strlen(key);
    for (size_t i = 0; l && i < l->list.n; i++)
        if (l->list.data[i].key_bytes == n && memcmp(l->list.data[i].text, key, n) == 0)
            return &l->list.data[i];
    return NULL;
}

/* Where there is no room for it, nothing is kept. */
static void keep(sonde_context *c, const char *key, const char *text, size_t bytes)
{
    kept_list *l = list_of(c);
    if (!l) {
        l = sn_alloc_zero(&c->alloc, sizeof *l);
        if (!l)
            return;
        l->attachment = (sn_attachment){.key = &list_key, .free = free_list};
        sn_api_attach(c, &l->attachment);
    }
    const kept_text *old = find(l, key);
    if (old)
        forget(c, l, (size_t)(old - l->list.data));
    if (l->list.n >= KEPT)
        forget(c, l, 0);
    kept_text made = {.text = sn_alloc(&c->alloc, bytes), .bytes = bytes, .key_bytes = strlen(key)};
    if (!made.text)
        return;
    memcpy(made.text, text, bytes);
    if (!sn_vec_push(&l->list, &c->alloc, made))
        sn_free(&c->alloc, made.text, bytes);
}

void sonde_whatif_cache_reset(sonde_context *context)
{
    sonde_context *c = sn_api_context_if_made(context);
    if (!c)
        return;
    pthread_mutex_lock(&c->machine.lock);
    if (list_of(c))
        empty(c, list_of(c));
    pthread_mutex_unlock(&c->machine.lock);
}

size_t sonde_whatif_cache_size(sonde_context *context)
{
    sonde_context *c = sn_api_context_if_made(context);
    if (!c)
        return 0;
    pthread_mutex_lock(&c->machine.lock);
    const size_t n = list_of(c) ? list_of(c)->list.n : 0;
    pthread_mutex_unlock(&c->machine.lock);
    return n;
}

/* ------------------------------------------------------------------ in a folder */
static void file_name(const char *key, char name[32])
{
    snprintf(name, 32, "whatif-%016llx", (unsigned long long)sn_hash(key, strlen(key), 0));
}

static void warn(const sn_kept *k, const char *what, const sonde_error *e)
{
    sn_log_write(&k->context->core.log, SN_LOG_WARN, "%s: %s", what, e->message);
}

/* What the folder has becomes what the context has. */
static void read_file(const sn_kept *k, const char *key)
{
    sonde_error e = {.status = SONDE_OK};
    sn_cache cache;
    sn_file f;
    char name[32];
    sonde_status st = sn_cache_open(&cache, k->folder, false, &e);
    if (st == SONDE_OK) {
        file_name(key, name);
        st = sn_cache_read_text(&cache, name, key, MAX_BYTES, &k->context->alloc, &f, &e);
        if (st == SONDE_OK) {
            pthread_mutex_lock(&k->context->machine.lock);
            keep(k->context, key, (const char *)f.data, f.bytes);
            pthread_mutex_unlock(&k->context->machine.lock);
            sn_file_close(&f);
        }
        sn_cache_close(&cache);
    }
    if (st != SONDE_OK && st != SONDE_NOT_FOUND)
        warn(k, "a what-if result is not read", &e);
}

static void write_file(const sn_kept *k, const char *key, const char *text, size_t bytes)
{
    sonde_error e = {.status = SONDE_OK};
    sn_cache cache;
    char name[32];
    sonde_status st = sn_cache_open(&cache, k->folder, true, &e);
    if (st == SONDE_OK) {
        file_name(key, name);
        st = sn_cache_write_text(&cache, name, text, bytes, &k->context->alloc, &e);
        sn_cache_close(&cache);
    }
    if (st != SONDE_OK)
        warn(k, "a what-if result is not stored", &e);
}

/* ------------------------------------------------------------------ both */
static bool read_kept(const sn_kept *k, const char *key, sn_measured *m, bool *no_memory)
{
    pthread_mutex_lock(&k->context->machine.lock);
    const kept_text *t = find(list_of(k->context), key);
    const bool fine =
        t && t->bytes > t->key_bytes &&
        sn_measured_read(m, t->text + t->key_bytes + 1, t->bytes - t->key_bytes - 1, no_memory);
    pthread_mutex_unlock(&k->context->machine.lock);
    return fine;
}

sonde_status sn_kept_find(const sn_kept *k, const char *key, sn_measured *m, sonde_error *err)
{
    bool no_memory = false;
    pthread_mutex_lock(&k->context->machine.lock);
    const bool here = find(list_of(k->context), key) != NULL;
    pthread_mutex_unlock(&k->context->machine.lock);
    if (!here && k->folder)
        read_file(k, key);
    if (read_kept(k, key, m, &no_memory))
        return SONDE_OK;
    sn_allocator *alloc = m->alloc;
    sn_measured_free(m);
    sn_measured_init(m, alloc);
    return no_memory ? sn_fail_memory(err, sizeof *m) : SONDE_NOT_FOUND;
}

sonde_status sn_kept_add(const sn_kept *k, const char *key, const sn_measured *m, sonde_error *err)
{
    sn_text t;
    sn_text_init(&t, &k->context->alloc);
    sn_text_add(&t, key);
    sn_text_add(&t, "\n");
    const sonde_status st = sn_measured_write(m, &t, err);
    if (st == SONDE_OK) {
        const char *text = sn_text_get(&t);
        const size_t bytes = strlen(text);
        pthread_mutex_lock(&k->context->machine.lock);
        keep(k->context, key, text, bytes);
        pthread_mutex_unlock(&k->context->machine.lock);
        if (k->folder)
            write_file(k, key, text, bytes);
    }
    sn_text_free(&t);
    return st;
}
