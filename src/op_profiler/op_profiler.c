/* SPDX-License-Identifier: Apache-2.0 */
/* The operator profiler: which ways of running a case there are, results, and the cache of a
 * context. A key is everything that may change the figures as text; of the data of inputs, which
 * may decide what is computed (indices, shapes, weights), it has a hash. */
#include "op_profiler/op_case.h"

enum { CACHED = 1024, MAX_SAMPLES = 1000000 };

/* One measured case; shared by the cache and by results handed out. Lives in its context's memory.
 */
typedef struct sn_op_entry {
    _Atomic int refs;
    sn_allocator *alloc;
    sn_arena arena;
    const char *key, *op_type, *domain, *node, *inputs, *attributes;
    SN_VEC(sonde_op_variant) rows;
} sn_op_entry;

struct sonde_op_result {
    sonde_context *context;
    sn_op_entry *entry;
    bool cached;
};

typedef struct sn_op_cache {
    sn_attachment attachment;   /* first: the context knows only this */
    SN_VEC(sn_op_entry *) list; /* oldest first */
} sn_op_cache;

static void entry_unref(sn_op_entry *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    sn_vec_free(&e->rows, e->alloc);
    sn_arena_free(&e->arena);
    sn_free(e->alloc, e, sizeof *e);
}

static sonde_status entry_new(sonde_context *c, sn_op_entry **out, sonde_error *err)
{
    sn_op_entry *e = sn_alloc_zero(&c->alloc, sizeof *e);
    if (!e)
        return sn_fail_memory(err, sizeof *e);
    atomic_init(&e->refs, 1);
    e->alloc = &c->alloc;
    sn_arena_init(&e->arena, &c->alloc);
    *out = e;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the cache */
static const char cache_key; /* its address is what tells the cache from other attachments */

/* With the machine's lock held, here and below. NULL: nothing was kept yet. */
static sn_op_cache *cache_of(const sonde_context *c)
{
    return (sn_op_cache *)sn_api_attached(c, &cache_key);
}

/* A new reference. */
static sn_op_entry *find(const sonde_context *c, const char *key)
{
    const sn_op_cache *cache = cache_of(c);
    for (size_t i = 0; cache && i < cache->list.n; i++)
        if (strcmp(cache->list.data[i]->key, key) == 0) {
            sn_op_entry *e = cache->list.data[i];
            atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
            return e;
        }
    return NULL;
}

static void forget(sn_op_cache *cache, size_t k)
{
    entry_unref(cache->list.data[k]);
    memmove(&cache->list.data[k], &cache->list.data[k + 1],
            (cache->list.n - k - 1) * sizeof *cache->list.data);
    cache->list.n--;
}

static void empty(sonde_context *c, sn_op_cache *cache)
{
    while (cache->list.n)
        forget(cache, cache->list.n - 1);
    sn_vec_free(&cache->list, &c->alloc);
}

static void free_cache(sonde_context *c, sn_attachment *a)
{
    empty(c, (sn_op_cache *)a);
    sn_free(&c->alloc, a, sizeof(sn_op_cache));
}

/* Takes a reference of its own; a cache without room for it keeps nothing. */
static void keep(sonde_context *c, sn_op_entry *e)
{
    sn_op_cache *cache = cache_of(c);
    if (!cache) {
        cache = sn_alloc_zero(&c->alloc, sizeof *cache);
        if (!cache)
            return;
        cache->attachment = (sn_attachment){.key = &cache_key, .free = free_cache};
        sn_api_attach(c, &cache->attachment);
    }
    for (size_t i = cache->list.n; i > 0; i--)
        if (strcmp(cache->list.data[i - 1]->key, e->key) == 0)
            forget(cache, i - 1);
    if (cache->list.n >= CACHED)
        forget(cache, 0);
    if (sn_vec_push(&cache->list, &c->alloc, e))
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
}

void sonde_op_cache_reset(sonde_context *context)
{
    sonde_context *c = sn_api_context_if_made(context);
    if (!c)
        return;
    pthread_mutex_lock(&c->machine.lock);
    sn_op_cache *cache = cache_of(c);
    if (cache)
        empty(c, cache);
    pthread_mutex_unlock(&c->machine.lock);
}

size_t sonde_op_cache_size(sonde_context *context)
{
    sonde_context *c = sn_api_context_if_made(context);
    if (!c)
        return 0;
    pthread_mutex_lock(&c->machine.lock);
    const sn_op_cache *cache = cache_of(c);
    const size_t n = cache ? cache->list.n : 0;
    pthread_mutex_unlock(&c->machine.lock);
    return n;
}

/* ------------------------------------------------------------------ the key */
static uint64_t hash_inputs(const sn_op_case *c)
{
    uint64_t h = c->n_in;
    for (size_t k = 0; k < c->n_in; k++) {
        const sn_tensor *t = c->in[k].data    ? c->in[k].data
                             : c->in[k].value ? &c->in[k].value->slot.t
                                              : NULL;
        const bool plain = t && t->data && t->dtype != SONDE_DTYPE_STRING;
        h = sn_hash(&k, sizeof k, h);
        if (plain)
            h = sn_hash(t->data, t->bytes < 4096 ? t->bytes : 4096, h);
    }
    return h;
}

static sonde_status describe(sn_op_entry *e, const sn_op_case *c, const sn_op_way *way, bool one,
                             sonde_error *err)
{
    sn_arena *arena = &e->arena;
    sonde_model *model = NULL;
    /* The text of attributes comes from the node, so that order and spelling do not matter. */
    SN_TRY(sn_op_case_model(c, c->context, &model, err));
    e->attributes = sn_node_attributes_text(model->core->graph->first, arena);
    sonde_model_release(model);
    e->op_type = sn_arena_strdup(arena, c->op_type);
    e->domain = sn_arena_strdup(arena, c->domain);
    e->node = sn_arena_strdup(arena, c->from ? c->name : "");
    e->inputs = sn_op_case_text(c, arena);
    if (!e->attributes || !e->op_type || !e->domain || !e->node || !e->inputs)
        return sn_fail_memory(err, strlen(c->op_type));
    e->key = sn_arena_printf(arena, "%s|%s|%lld|%s|%s|%016llx|%s|%d|%d|%d|%d|%d|%d", e->domain,
                             e->op_type, (long long)c->opset, e->attributes, e->inputs,
                             (unsigned long long)hash_inputs(c),
                             sn_cpu_level_name(c->context->core.cpu.flags), way->threads,
                             way->warmup, way->exec, way->repeat, one, (int)way->precision);
    return e->key ? SONDE_OK : sn_fail_memory(err, strlen(e->inputs));
}

/* ------------------------------------------------------------------ the ways */
static sonde_status add_way(sn_op_entry *e, const sn_op_case *c, const sn_op_way *way,
                            bool *reordered, sonde_error *err)
{
    sonde_op_variant row;
    size_t steps = 0;
    SN_TRY(sn_op_measure(c, way, &e->arena, &row, &steps, reordered, err));
    if (!steps)
        return SONDE_OK;
    return sn_vec_push(&e->rows, e->alloc, row) ? SONDE_OK : sn_fail_memory(err, sizeof row);
}

/* As a session runs it; then, where that differs, without packing and without the passes. */
static sonde_status add_forms(sn_op_entry *e, const sn_op_case *c, sn_op_way way, bool one,
                              sonde_error *err)
{
    bool reordered = false, ignored;
    const size_t before = e->rows.n;
    SN_TRY(add_way(e, c, &way, &reordered, err));
    const bool gone = e->rows.n == before; /* passes left nothing of it */
    const bool packed = !gone && e->rows.data[before].packed;
    if (one && !gone)
        return SONDE_OK;
    if (reordered || gone) {
        way.no_optimize = true;
        SN_TRY(add_way(e, c, &way, &ignored, err));
        way.no_optimize = false;
    }
    way.no_prepack = true;
    if (packed)
        SN_TRY(add_way(e, c, &way, &ignored, err));
    return SONDE_OK;
}

static sonde_status add_threads(sn_op_entry *e, const sn_op_case *c, sn_op_way way, bool one,
                                sonde_error *err)
{
    SN_TRY(add_forms(e, c, way, one, err));
    if (one || way.threads == 1)
        return SONDE_OK;
    way.threads = 1;
    return add_forms(e, c, way, one, err);
}

/* Every level of instructions that has kernels of its own, best first. */
static sonde_status add_levels(sn_op_entry *e, const sn_op_case *c, sn_op_way way, bool one,
                               sonde_error *err)
{
    char words[128], *word;
    const uint32_t flags = c->context->core.cpu.flags;
    way.cpu = sn_cpu_level_name(flags);
    SN_TRY(add_threads(e, c, way, one, err));
    sn_cpu_level_list(flags & SN_CPU_WITH_KERNELS, words, sizeof words);
    while (!one && (word = strrchr(words, ','))) {
        *word = 0; /* the best of the rest is now the last word */
        const char *level = strrchr(words, ' ') ? strrchr(words, ' ') + 1 : words;
        way.cpu = level;
        /* A level above whose kernels this operator has was measured already. */
        if (e->rows.n && strcmp(e->rows.data[e->rows.n - 1].cpu, level) == 0)
            continue;
        SN_TRY(add_threads(e, c, way, one, err));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ the front door */
static sonde_status read_options(const sonde_context *c, const sonde_op_options *options,
                                 sonde_op_options *o, sn_op_way *way, sonde_error *err)
{
    SN_OPTIONS(*o, options, err);
    if (o->warmup < -1 || o->exec < 0 || o->repeat < 0 || o->warmup > MAX_SAMPLES)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "warmup is %d, exec %d and repeat %d: at least one of these numbers of runs "
                       "is out of range",
                       o->warmup, o->exec, o->repeat);
    if (!sn_precision_name(o->precision))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "precision %d is not known", (int)o->precision);
    *way = (sn_op_way){.threads = c->core.threads,
                       .warmup = o->warmup == 0  ? 10
                                 : o->warmup < 0 ? 0
                                                 : o->warmup,
                       .exec = o->exec ? o->exec : 10,
                       .repeat = o->repeat ? o->repeat : 1,
                       .cancel = o->cancel,
                       .precision = o->precision};
    if ((int64_t)way->exec * way->repeat > MAX_SAMPLES)
        return sn_fail(err, SONDE_LIMIT,
                       "exec %d times repeat %d is more than the maximum of %d runs", way->exec,
                       way->repeat, MAX_SAMPLES);
    return SONDE_OK;
}

static sonde_status profile(sonde_context *c, const sonde_op_spec *spec,
                            const sonde_op_options *options, sonde_op_result *result,
                            sonde_error *err)
{
    sonde_op_options o;
    sn_op_way way = {.threads = 1};
    SN_TRY(read_options(c, options, &o, &way, err));
    sn_op_case kase;
    sn_op_entry *e = NULL;
    const bool one = o.one_variant != 0;
    sonde_status st = sn_op_case_make(&kase, c, spec, err);
    if (st == SONDE_OK)
        st = entry_new(c, &e, err);
    if (st == SONDE_OK)
        st = describe(e, &kase, &way, one, err);
    if (st == SONDE_OK && !o.no_cache) {
        pthread_mutex_lock(&c->machine.lock);
        result->entry = find(c, e->key);
        pthread_mutex_unlock(&c->machine.lock);
        result->cached = result->entry != NULL;
    }
    if (st == SONDE_OK && !result->entry) {
        st = add_levels(e, &kase, way, one, err);
        if (st == SONDE_OK && e->rows.n == 0)
            st = sn_fail(err, SONDE_UNSUPPORTED,
                         "'%s' cannot be measured: passes removed or folded it", e->op_type);
        if (st == SONDE_OK) {
            pthread_mutex_lock(&c->machine.lock);
            keep(c, e);
            pthread_mutex_unlock(&c->machine.lock);
            result->entry = e;
            e = NULL;
        }
    }
    entry_unref(e);
    sn_op_case_free(&kase);
    return st;
}

sonde_status sonde_op_profile(sonde_context *context, const sonde_op_spec *spec,
                              const sonde_op_options *options, sonde_op_result **result,
                              sonde_error *err)
{
    SN_REQUIRE(result, err);
    *result = NULL;
    SN_REQUIRE(spec, err);
    sonde_op_spec own;
    SN_OPTIONS(own, spec, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_op_result *made = sn_alloc_zero(&c->alloc, sizeof *made);
    sonde_status st =
        made ? profile(c, &own, options, made, err) : sn_fail_memory(err, sizeof *made);
    if (st != SONDE_OK) {
        sn_free(&c->alloc, made, sizeof *made);
        sonde_context_release(c);
        return st;
    }
    made->context = c;
    *result = made;
    return SONDE_OK;
}

void sonde_op_result_release(sonde_op_result *result)
{
    if (!result)
        return;
    sonde_context *c = result->context;
    entry_unref(result->entry);
    sn_free(&c->alloc, result, sizeof *result);
    sonde_context_release(c);
}

sonde_status sonde_op_result_info(const sonde_op_result *result, sonde_op_info *info,
                                  sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(info, err);
    const sn_op_entry *e = result->entry;
    const sonde_op_info own = {.op_type = e->op_type,
                               .domain = e->domain,
                               .node = e->node,
                               .inputs = e->inputs,
                               .attributes = e->attributes,
                               .cached = result->cached};
    return sn_api_copy_out(info, &own, sizeof own, err);
}

size_t sonde_op_result_count(const sonde_op_result *result)
{
    return result ? result->entry->rows.n : 0;
}

sonde_status sonde_op_result_variant(const sonde_op_result *result, size_t index,
                                     sonde_op_variant *variant, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(variant, err);
    if (index >= result->entry->rows.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu variants, no variant %zu",
                       result->entry->rows.n, index);
    return sn_api_copy_out(variant, &result->entry->rows.data[index], sizeof *variant, err);
}
