/* SPDX-License-Identifier: Apache-2.0 */
/* The choices in memory and on disk. Lines are "KEY<tab>VARIANT/VARIANTS"; a key begins with the
 * number of threads; the last one is a checksum. Saving reads the file again and adds what it does
 * not have, then replaces it in one rename: of two processes that save at the same moment one may
 * lose its choices, which are then measured again, but neither leaves half a file. */
#include "plan/tuning.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cache.h"
#include "base/map.h"
#include "base/vec.h"

/* Goes up when variants change their meaning. */
#define FORMAT "sonde tuning 2"

enum {
    MAX_FILE_BYTES = 4 << 20,
    MAX_CHOICES = 20000,
    MAX_KEY = sizeof((sn_choices *)0)->key + 16,
};

typedef struct choice {
    const char *key;
    unsigned variant, n;
} choice;

struct sn_tuning {
    const sn_context *ctx;
    const char *dir, *name;
    const char *head;     /* first line of the file, without its end */
    bool refused;         /* the folder: that has been said */
    pthread_mutex_t lock; /* of what follows; never held while a file is read or written */
    pid_t saver;          /* the process of which a thread saves; 0: none */
    sn_arena arena;       /* keys and choices */
    sn_map by_key;
    SN_VEC(choice *) all;
    bool changed;
};

/* The first choice for a key stays: what this process measured is newer than any file. */
static sonde_status add(sn_tuning *t, const char *key, size_t key_bytes, unsigned variant,
                        unsigned n, sonde_error *err)
{
    if (t->all.n >= MAX_CHOICES || sn_map_get_n(&t->by_key, key, key_bytes))
        return SONDE_OK;
    choice *c = SN_NEW(&t->arena, choice);
    char *text = sn_arena_alloc(&t->arena, key_bytes + 1, 1);
    if (!c || !text)
        return sn_fail_memory(err, sizeof *c + key_bytes);
    memcpy(text, key, key_bytes);
    text[key_bytes] = 0;
    *c = (choice){text, variant, n};
    if (!sn_map_put_n(&t->by_key, text, key_bytes, c, NULL) ||
        !sn_vec_push(&t->all, t->ctx->alloc, c))
        return sn_fail_memory(err, sizeof *c);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the file */

/* A number of at most four digits, up to `end`; false: something else. */
static bool parse_number(const char *at, const char *end, unsigned *number)
{
    *number = 0;
    if (at == end || end - at > 4)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        *number = *number * 10 + (unsigned)(*at - '0');
    }
    return true;
}

static sonde_status parse_line(sn_tuning *t, const char *line, const char *end, sonde_error *err)
{
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    const char *slash = tab ? memchr(tab, '/', (size_t)(end - tab)) : NULL;
    unsigned variant, n;
    if (!slash || tab == line || tab - line > MAX_KEY || memchr(line, 0, (size_t)(tab - line)) ||
        !parse_number(tab + 1, slash, &variant) || !parse_number(slash + 1, end, &n) ||
        variant >= n)
        return SONDE_OK;
    return add(t, line, (size_t)(tab - line), variant, n, err);
}

static sonde_status parse(sn_tuning *t, const char *text, size_t bytes, sonde_error *err)
{
    const char *end = text + bytes;
    for (const char *line = text + strlen(t->head) + 1, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            return SONDE_OK; /* cut short */
        next = stop + 1;
        SN_TRY(parse_line(t, line, stop, err));
    }
    return SONDE_OK;
}

/* What is refused costs a warning, said once, and is measured again. */
static sonde_status read_file(sn_tuning *t, const sn_cache *cache, bool first, sonde_error *err)
{
    sonde_error inner = {.status = SONDE_OK};
    sn_file f;
    sonde_status st =
        sn_cache_read_text(cache, t->name, t->head, MAX_FILE_BYTES, t->ctx->alloc, &f, &inner);
    if (st == SONDE_OK) {
        pthread_mutex_lock(&t->lock);
        st = parse(t, (const char *)f.data, f.bytes, err);
        pthread_mutex_unlock(&t->lock);
        sn_file_close(&f);
        return st;
    }
    if (st == SONDE_OUT_OF_MEMORY)
        return sn_fail(err, st, "%s", inner.message);
    if (st != SONDE_NOT_FOUND && first)
        sn_log_write(&t->ctx->log, SN_LOG_WARN,
                     "stored tuning results are not used, steps are tuned again: %s",
                     inner.message);
    return SONDE_OK;
}

/* The file's text, of `capacity` bytes, of which *bytes are used; NULL: out of memory. */
static char *make_text(sn_tuning *t, size_t *capacity, size_t *bytes)
{
    pthread_mutex_lock(&t->lock);
    *capacity = strlen(t->head) + 2;
    for (size_t i = 0; i < t->all.n; i++)
        *capacity += strlen(t->all.data[i]->key) + 16;
    char *text = sn_alloc(t->ctx->alloc, *capacity);
    size_t at = text ? (size_t)snprintf(text, *capacity, "%s\n", t->head) : 0;
    for (size_t i = 0; text && i < t->all.n; i++) {
        const choice *c = t->all.data[i];
        at += (size_t)snprintf(text + at, *capacity - at, "%s\t%u/%u\n", c->key, c->variant, c->n);
    }
    pthread_mutex_unlock(&t->lock);
    *bytes = at;
    return text;
}

static sonde_status write_file(sn_tuning *t, const sn_cache *cache, sonde_error *err)
{
    size_t capacity, bytes;
    char *text = make_text(t, &capacity, &bytes);
    if (!text)
        return sn_fail_memory(err, capacity);
    const sonde_status st = sn_cache_write_text(cache, t->name, text, bytes, t->ctx->alloc, err);
    sn_free(t->ctx->alloc, text, capacity);
    return st;
}

/* Whether this thread is to write. Whoever is at it already sees what is new before it ends; a
 * process that this one was forked from is not here. */
static bool begin_saving(sn_tuning *t)
{
    pthread_mutex_lock(&t->lock);
    const bool mine = t->changed && !t->refused && t->saver != getpid();
    if (mine) {
        t->saver = getpid();
        t->changed = false;
    }
    pthread_mutex_unlock(&t->lock);
    return mine;
}

static bool has_more_to_save(sn_tuning *t)
{
    pthread_mutex_lock(&t->lock);
    const bool more = t->changed;
    t->changed = false;
    t->saver = more ? t->saver : 0;
    pthread_mutex_unlock(&t->lock);
    return more;
}

static void save_all(sn_tuning *t)
{
    sonde_error err = {.status = SONDE_OK};
    sn_cache cache;
    sonde_status st = sn_cache_open(&cache, t->dir, true, &err);
    if (!st) {
        st = read_file(t, &cache, false, &err); /* others may have added to it */
        if (!st)
            st = write_file(t, &cache, &err);
        sn_cache_close(&cache);
    }
    if (st)
        sn_log_write(&t->ctx->log, SN_LOG_WARN, "tuning results are not stored: %s", err.message);
}

void sn_tuning_save(sn_tuning *t)
{
    if (!begin_saving(t))
        return;
    do
        save_all(t);
    while (has_more_to_save(t));
}

/* ------------------------------------------------------------------ life */

/* What the folder knows, if it is there and is not refused. */
static sonde_status look(sn_tuning *t, sonde_error *err)
{
    sonde_error inner = {.status = SONDE_OK};
    sn_cache cache;
    sonde_status st = sn_cache_open(&cache, t->dir, false, &inner);
    if (st == SONDE_OK) {
        st = read_file(t, &cache, true, err);
        sn_cache_close(&cache);
        return st;
    }
    t->refused = st != SONDE_NOT_FOUND;
    if (t->refused)
        sn_log_write(&t->ctx->log, SN_LOG_WARN, "tuning results are neither read nor stored: %s",
                     inner.message);
    return SONDE_OK;
}

sonde_status sn_tuning_open(const sn_context *ctx, const char *dir, sn_tuning **tuning,
                            sonde_error *err)
{
    sn_tuning *t = sn_alloc_zero(ctx->alloc, sizeof *t);
    if (!t)
        return sn_fail_memory(err, sizeof *t);
    const sn_cpu *cpu = &ctx->cpu;
    t->ctx = ctx;
    pthread_mutex_init(&t->lock, NULL);
    sn_arena_init(&t->arena, ctx->alloc);
    sn_map_init(&t->by_key, ctx->alloc);
    char *head = sn_arena_printf(&t->arena, FORMAT ", %s, %s, %s %x, caches %zu %zu %zu",
                                 SONDE_VERSION_TEXT, cpu->model, sn_cpu_level_name(cpu->flags),
                                 cpu->flags, cpu->l1_bytes, cpu->l2_bytes, cpu->l3_bytes);
    for (char *c = head; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    t->head = head;
    t->dir = sn_arena_strdup(&t->arena, dir);
    t->name = !head ? NULL
                    : sn_arena_printf(&t->arena, "%016llx.tuning",
                                      (unsigned long long)sn_hash(head, strlen(head), 0));
    const sonde_status st = t->dir && t->name ? look(t, err) : sn_fail_memory(err, strlen(dir));
    if (st) {
        sn_tuning_free(t);
        return st;
    }
    *tuning = t;
    return SONDE_OK;
}

void sn_tuning_free(sn_tuning *t)
{
    if (!t)
        return;
    sn_vec_free(&t->all, t->ctx->alloc);
    sn_map_free(&t->by_key);
    sn_arena_free(&t->arena);
    pthread_mutex_destroy(&t->lock);
    sn_free(t->ctx->alloc, t, sizeof *t);
}

/* ------------------------------------------------------------------ choices */

static size_t key_of(const sn_choices *c, int threads, char *key)
{
    const int n = snprintf(key, MAX_KEY, "t%d %s", threads, c->key);
    return n < 0 ? 0 : n < MAX_KEY ? (size_t)n : MAX_KEY - 1;
}

bool sn_tuning_find(sn_tuning *t, const sn_choices *c, int threads, unsigned *variant)
{
    char key[MAX_KEY];
    const size_t bytes = key_of(c, threads, key);
    pthread_mutex_lock(&t->lock);
    const choice *found = sn_map_get_n(&t->by_key, key, bytes);
    const bool fits = found && found->n == c->n && found->variant < c->n;
    if (fits)
        *variant = found->variant;
    pthread_mutex_unlock(&t->lock);
    return fits;
}

bool sn_tuning_has_room(sn_tuning *t)
{
    pthread_mutex_lock(&t->lock);
    const bool room = t->all.n < MAX_CHOICES;
    pthread_mutex_unlock(&t->lock);
    return room;
}

sonde_status sn_tuning_put(sn_tuning *t, const sn_choices *c, int threads, unsigned variant,
                           sonde_error *err)
{
    char key[MAX_KEY];
    const size_t bytes = key_of(c, threads, key);
    pthread_mutex_lock(&t->lock);
    sonde_status st = SONDE_OK;
    choice *old = sn_map_get_n(&t->by_key, key, bytes);
    if (old) { /* of a file, for other variants */
        old->variant = variant;
        old->n = c->n;
    } else {
        st = add(t, key, bytes, variant, c->n, err);
    }
    t->changed = true;
    pthread_mutex_unlock(&t->lock);
    return st;
}
