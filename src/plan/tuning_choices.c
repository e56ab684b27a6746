/* SPDX-License-Identifier: Apache-2.0 */
/* The choices in memory and on disk. Lines are "KEY<tab>VARIANT/VARIANTS"; a key begins with the
 * number of threads; the last one is a checksum. Saving reads the file again and adds what it does
 * not have, then replaces it in one rename: of two processes that save at the same moment one may
 * lose its choices, which are then measured again, but neither leaves half a file.
 *
 * The lock is one that forks hold, so whoever holds it calls nobody: memory is allocated before,
 * and freed after. That is why choices are linked instead of being in vectors and maps, which grow.
 */
#include "plan/tuning.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cache.h"
#include "base/fork_lock.h"
#include "base/map.h"

/* Goes up when variants change their meaning. */
#define FORMAT "sonde tuning 2"

enum {
    MAX_FILE_BYTES = 4 << 20,
    MAX_CHOICES = 20000,
    MAX_KEY = sizeof((sn_choices *)0)->key + 16,
    BUCKETS = 1024,
};

typedef struct choice {
    struct choice *beside; /* next one of the bucket */
    struct choice *after;  /* next one of all, as they came */
    unsigned variant, n;
    uint64_t hash; /* of the key */
    size_t key_bytes;
    char key[]; /* with a NUL */
} choice;

struct sn_tuning {
    const sn_context *ctx;
    sn_arena arena; /* of the next three */
    const char *dir, *name;
    const char *head;  /* first line of the file, without its end */
    bool refused;      /* the folder: that has been said */
    sn_fork_lock lock; /* of what follows; never held while a file is read or written */
    pid_t saver;       /* the process of which a thread saves; 0: none */
    choice *buckets[BUCKETS];
    choice *first, **last; /* last: where the next one's address goes */
    size_t count;
    bool changed;
};

static choice *new_choice(const sn_tuning *t, const char *key, size_t key_bytes, unsigned variant,
                          unsigned n)
{
    choice *c = sn_alloc(t->ctx->alloc, sizeof *c + key_bytes + 1);
    if (!c)
        return NULL;
    *c = (choice){.variant = variant, .n = n, .key_bytes = key_bytes};
    c->hash = sn_hash(key, key_bytes, 0);
    memcpy(c->key, key, key_bytes);
    c->key[key_bytes] = 0;
    return c;
}

static void free_choice(const sn_tuning *t, choice *c)
{
    if (c)
        sn_free(t->ctx->alloc, c, sizeof *c + c->key_bytes + 1);
}

/* With the lock held. NULL: there is none. */
static choice *find(const sn_tuning *t, const char *key, size_t key_bytes, uint64_t hash)
{
    choice *c = t->buckets[hash % BUCKETS];
    while (c && (c->hash != hash || c->key_bytes != key_bytes || memcmp(c->key, key, key_bytes)))
        c = c->beside;
    return c;
}

/* With the lock held; the key is new. False: there is no room. */
static bool link_choice(sn_tuning *t, choice *c)
{
    if (t->count >= MAX_CHOICES)
        return false;
    c->beside = t->buckets[c->hash % BUCKETS];
    t->buckets[c->hash % BUCKETS] = c;
    *t->last = c;
    t->last = &c->after;
    t->count++;
    return true;
}

/* The first choice for a key stays: what this process measured is newer than any file. */
static sonde_status add(sn_tuning *t, const char *key, size_t key_bytes, unsigned variant,
                        unsigned n, sonde_error *err)
{
    choice *c = new_choice(t, key, key_bytes, variant, n);
    if (!c)
        return sn_fail_memory(err, sizeof *c + key_bytes);
    sn_fork_lock_take(&t->lock);
    const bool linked = !find(t, key, key_bytes, c->hash) && link_choice(t, c);
    sn_fork_lock_give(&t->lock);
    if (!linked)
        free_choice(t, c);
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
        st = parse(t, (const char *)f.data, f.bytes, err);
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
    *capacity = strlen(t->head) + 2;
    sn_fork_lock_take(&t->lock);
    const size_t count = t->count; /* more may come meanwhile, but none goes */
    for (const choice *c = t->first; c; c = c->after)
        *capacity += c->key_bytes + 16;
    sn_fork_lock_give(&t->lock);
    char *text = sn_alloc(t->ctx->alloc, *capacity);
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, *capacity, "%s\n", t->head);
    sn_fork_lock_take(&t->lock);
    const choice *c = t->first;
    for (size_t i = 0; i < count; i++, c = c->after)
        at += (size_t)snprintf(text + at, *capacity - at, "%s\t%u/%u\n", c->key, c->variant, c->n);
    sn_fork_lock_give(&t->lock);
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
    sn_fork_lock_take(&t->lock);
    const bool mine = t->changed && !t->refused && t->saver != getpid();
    if (mine) {
        t->saver = getpid();
        t->changed = false;
    }
    sn_fork_lock_give(&t->lock);
    return mine;
}

static bool has_more_to_save(sn_tuning *t)
{
    sn_fork_lock_take(&t->lock);
    const bool more = t->changed;
    t->changed = false;
    t->saver = more ? t->saver : 0;
    sn_fork_lock_give(&t->lock);
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
    t->last = &t->first;
    sn_fork_lock_init(&t->lock);
    sn_arena_init(&t->arena, ctx->alloc);
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
    for (choice *c = t->first, *next; c; c = next) {
        next = c->after;
        free_choice(t, c);
    }
    sn_arena_free(&t->arena);
    sn_fork_lock_destroy(&t->lock);
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
    const uint64_t hash = sn_hash(key, bytes, 0);
    sn_fork_lock_take(&t->lock);
    const choice *found = find(t, key, bytes, hash);
    const bool fits = found && found->n == c->n && found->variant < c->n;
    if (fits)
        *variant = found->variant;
    sn_fork_lock_give(&t->lock);
    return fits;
}

bool sn_tuning_has_room(sn_tuning *t)
{
    sn_fork_lock_take(&t->lock);
    const bool room = t->count < MAX_CHOICES;
    sn_fork_lock_give(&t->lock);
    return room;
}

sonde_status sn_tuning_put(sn_tuning *t, const sn_choices *c, int threads, unsigned variant,
                           sonde_error *err)
{
    char key[MAX_KEY];
    const size_t bytes = key_of(c, threads, key);
    choice *made = new_choice(t, key, bytes, variant, c->n);
    if (!made)
        return sn_fail_memory(err, sizeof *made + bytes);
    sn_fork_lock_take(&t->lock);
    choice *old = find(t, key, bytes, made->hash);
    if (old) { /* of a file, for other variants */
        old->variant = variant;
        old->n = c->n;
    }
    const bool linked = !old && link_choice(t, made);
    t->changed = true;
    sn_fork_lock_give(&t->lock);
    if (!linked)
        free_choice(t, made);
    return SONDE_OK;
}
