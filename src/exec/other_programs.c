/* SPDX-License-Identifier: Apache-2.0 */
/* A short list, looked through from the front. Two runs that want the same new program both find it
 * missing here; one of them makes it and the other waits in sn_program_get, where programs of one
 * model are shared. */
#include "exec/other_programs.h"

#include <string.h>

/* ------------------------------------------------------------------ key */

static size_t names_bytes(const char *const *names, size_t n)
{
    size_t bytes = 1;
    for (size_t i = 0; names && i < n; i++)
        bytes += strlen(names[i]) + 1;
    return bytes;
}

static char *put_names(char *at, char tag, const char *const *names, size_t n)
{
    *at++ = tag;
    for (size_t i = 0; names && i < n; i++) {
        size_t len = strlen(names[i]) + 1;
        memcpy(at, names[i], len);
        at += len;
    }
    return at;
}

static size_t key_bytes(const sn_program_config *cfg)
{
    return sizeof cfg->n_feeds + 1 + names_bytes(cfg->feeds, cfg->n_feeds) +
           names_bytes(cfg->outputs, cfg->n_outputs);
}

/* How many feeds, whether names are told apart, then both lists, each name with its terminator. */
static void make_key(const sn_program_config *cfg, char *key)
{
    memcpy(key, &cfg->n_feeds, sizeof cfg->n_feeds);
    char *at = key + sizeof cfg->n_feeds;
    *at++ = cfg->apart ? 'A' : 'a';
    at = put_names(at, cfg->feeds ? 'I' : 'i', cfg->feeds, cfg->n_feeds);
    put_names(at, cfg->outputs ? 'O' : 'o', cfg->outputs, cfg->n_outputs);
}

/* ------------------------------------------------------------------ the list */

void sn_other_programs_init(sn_other_programs *o, sn_allocator *alloc)
{
    *o = (sn_other_programs){.alloc = alloc};
    sn_fork_lock_init(&o->lock);
}

static void let_go(const sn_other_programs *o, const sn_other_program *e)
{
    sn_program_unref(e->program);
    sn_free(o->alloc, e->key, e->key_bytes);
}

void sn_other_programs_free(sn_other_programs *o)
{
    if (!o->alloc)
        return;
    for (size_t i = 0; i < o->n; i++)
        let_go(o, &o->list[i]);
    sn_fork_lock_destroy(&o->lock);
    o->alloc = NULL;
}

/* With the lock held: a new reference, or NULL. The program is the most recently used one now. */
static sn_program *find(sn_other_programs *o, const char *key, size_t bytes)
{
    for (size_t i = 0; i < o->n; i++) {
        const sn_other_program e = o->list[i];
        if (e.key_bytes != bytes || memcmp(e.key, key, bytes) != 0)
            continue;
        memmove(&o->list[1], &o->list[0], i * sizeof e);
        o->list[0] = e;
        return sn_program_ref(e.program);
    }
    return NULL;
}

/* Puts a program into the list, unless another thread was faster. */
static sonde_status keep(sn_other_programs *o, sn_program *program, const char *key, size_t bytes,
                         sonde_error *err)
{
    sn_other_program gone = {.key = sn_alloc(o->alloc, bytes), .key_bytes = bytes};
    if (!gone.key)
        return sn_fail_memory(err, bytes);
    memcpy(gone.key, key, bytes);
    gone.program = sn_program_ref(program);
    sn_fork_lock_take(&o->lock);
    sn_program *there = find(o, key, bytes);
    if (!there) {
        const sn_other_program mine = gone;
        gone = o->n == SN_MAX_OTHER_PROGRAMS ? o->list[--o->n] : (sn_other_program){0};
        memmove(&o->list[1], &o->list[0], o->n * sizeof mine);
        o->list[0] = mine;
        o->n++;
    }
    sn_fork_lock_give(&o->lock);
    sn_program_unref(there);
    let_go(o, &gone);
    return SONDE_OK;
}

sonde_status sn_other_programs_get(sn_other_programs *o, sn_context *ctx, sn_model *model,
                                   const sn_program_config *cfg, sn_pool *pool, const sn_stop *stop,
                                   sn_program **program, sonde_error *err)
{
    char small[512], *key = small;
    const size_t bytes = key_bytes(cfg);
    if (bytes > sizeof small && !(key = sn_alloc(o->alloc, bytes)))
        return sn_fail_memory(err, bytes);
    make_key(cfg, key);
    sonde_status st = SONDE_OK;
    sn_fork_lock_take(&o->lock);
    sn_program *p = find(o, key, bytes);
    sn_fork_lock_give(&o->lock);
    if (!p) {
        st = sn_program_get(ctx, model, cfg, pool, stop, &p, err);
        if (!st)
            st = keep(o, p, key, bytes, err);
        if (st) {
            sn_program_unref(p);
            p = NULL;
        }
    }
    if (key != small)
        sn_free(o->alloc, key, bytes);
    *program = p;
    return st;
}
