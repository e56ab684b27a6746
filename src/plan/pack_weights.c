/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: asks every operator which constant inputs it wants in which format, gives each distinct
 * (weight, format) a slot, and fills one store in parallel. File pages are let go as it proceeds,
 * so that raw and packed weights are never both resident as a whole. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compute/packs.h"
#include "plan/memory_nodes.h"
#include "plan/program.h"
#include "plan/weights_cache.h"

typedef struct pack_key {
    uint64_t program; /* bodies number their slots themselves */
    uint64_t slot, pack;
    int64_t arg;
} pack_key;

typedef struct pack_job {
    pack_key key;
    const sn_tensor *src;
    const sn_tensor *whole; /* what the slot holds: src, or what it is the first part of; or NULL */
    const sn_pack_format *format;
    uint32_t cpu_flags;
    size_t bytes, offset; /* of the whole; where src goes */
    size_t first_unit;    /* units of all jobs are numbered through */
    sn_program *owner;
    uint32_t slot; /* the new one */
} pack_job;

typedef struct packer {
    sn_program *root;
    sn_map seen;   /* pack_key ► its job */
    sn_map looked; /* fits_key ► one of `answers` */
    SN_VEC(pack_job *) jobs;
    size_t store_bytes, n_units;
    uint8_t *scratch; /* for each worker: room for what a unit reads */
    size_t scratch_bytes;
    sn_cache cache; /* open when `cached` */
    bool cached;
    bool locked; /* the cache: others wait for what is packed here */
    sn_weights_key key;
    size_t head_bytes; /* before the store: the head of the cache's file */
    sonde_error *err;
} packer;

static sn_packing packing_of(const pack_job *job, const sn_tensor *t)
{
    return (sn_packing){job->format, t->dims, t->rank, job->key.arg, job->cpu_flags};
}

/* May the parts of a weight be packed one behind the other? */
static bool packs_in_parts(const sn_tensor *t, const sn_pack_format *f, int64_t arg,
                           uint32_t cpu_flags)
{
    if (!t->parts || t->scale)
        return false;
    for (size_t i = 0; i < t->parts->n; i++) {
        const sn_tensor *part = t->parts->part[i];
        const sn_packing packing = {f, part->dims, part->rank, arg, cpu_flags};
        if (!f->joins || !f->joins(&packing, t->parts->axis))
            return false;
    }
    return true;
}

static sonde_status add_job(packer *k, sn_program *p, uint32_t slot, const sn_value *v,
                            uint8_t pack, int64_t arg, uint32_t *packed_slot)
{
    pack_key key = {(uint64_t)(uintptr_t)p, slot, pack, arg};
    pack_job *job = sn_map_get_n(&k->seen, &key, sizeof key);
    if (job) {
        *packed_slot = job->slot;
        return SONDE_OK;
    }
    const sn_pack_format *f = sn_pack_get(pack);
    size_t bytes = 0;
    const sn_tensor *src = v->fact.data;
    const uint32_t cpu_flags = p->ctx->cpu.flags;
    const sn_packing packing = {f, src->dims, src->rank, arg, cpu_flags};
    if (!f || !f->bytes(&packing, &bytes)) {
        *packed_slot = slot; /* not packable: the operator takes it as it is */
        return SONDE_OK;
    }
    const bool parts = packs_in_parts(src, f, arg, cpu_flags);
    const size_t n = parts ? src->parts->n : 1;
    size_t offset = k->store_bytes;
    for (size_t i = 0; i < n; i++) {
        const sn_tensor *part = parts ? src->parts->part[i] : src;
        size_t part_bytes = bytes;
        job = SN_NEW(&k->root->arena, pack_job);
        if (!job)
            return sn_fail_memory(k->err, sizeof *job);
        *job = (pack_job){key, part, i ? NULL : src, f, cpu_flags, bytes, offset, 0, p, p->n_slots};
        if ((i == 0 && !sn_map_put_n(&k->seen, &job->key, sizeof job->key, job, NULL)) ||
            !sn_vec_push(&k->jobs, k->root->ctx->alloc, job))
            return sn_fail_memory(k->err, sizeof *job);
        const sn_packing part_packing = packing_of(job, part);
        if (parts)
            (void)f->bytes(&part_packing, &part_bytes);
        offset += part_bytes;
    }
    if (!sn_size_add(k->store_bytes, sn_round_up(bytes, SN_ALIGN), &k->store_bytes))
        return sn_fail(k->err, SONDE_LIMIT, "packed weights exceed the address space");
    *packed_slot = p->n_slots++;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ asking */

typedef struct fits_key {
    uint64_t tensor, dtype;
} fits_key;

/* Are the elements of t all finite as floats of type `to`? */
static bool look(const packer *k, const sn_tensor *t, sn_dtype to)
{
    enum { PIECE = 1024 };
    const uint32_t cpu_flags = k->root->ctx->cpu.flags;
    const int64_t n = sn_tensor_count(t);
    float room[PIECE]; /* of elements of at most its size */
    bool good = true;
    for (int64_t at = 0; at < n && good; at += PIECE) {
        const int64_t count = n - at < PIECE ? n - at : PIECE;
        sn_tensor_read(t, at, count, room);
        good = sn_pack_holds(to, t->dtype, room, count, cpu_flags);
    }
    sn_model_release(k->root->model, t);
    return good;
}

/* The same, looked at once. */
static sonde_status fits(packer *k, const sn_tensor *t, sn_dtype to, bool *yes)
{
    static const bool answers[] = {false, true};
    const fits_key key = {(uint64_t)(uintptr_t)t, (uint64_t)to};
    *yes = true;
    if (to == t->dtype || to == SONDE_DTYPE_F32)
        return SONDE_OK;
    const bool *known = sn_map_get_n(&k->looked, &key, sizeof key);
    *yes = known ? *known : look(k, t, to);
    if (known)
        return SONDE_OK;
    fits_key *kept = SN_NEW(&k->root->arena, fits_key); /* the map holds a pointer to it */
    if (!kept)
        return sn_fail_memory(k->err, sizeof *kept);
    *kept = key;
    return sn_map_put_n(&k->looked, kept, sizeof *kept, (void *)(uintptr_t)&answers[*yes], NULL)
               ? SONDE_OK
               : sn_fail_memory(k->err, sizeof(sn_map_entry));
}

/* Asks a step, and once more if a weight does not fit the type of the precision. */
static sonde_status ask_op(packer *k, const sn_step *s, sn_pack_request *r)
{
    bool again = false;
    SN_TRY(s->op->pack(r));
    for (uint32_t i = 0; i < r->n_in; i++) {
        const sn_pack_format *f = sn_pack_get(r->pack[i]);
        bool good = true;
        if (f && r->in[i] && r->in[i]->data)
            SN_TRY(fits(k, r->in[i]->data, f->dtype, &good));
        r->as_in_file[i] = !good;
        again |= !good;
    }
    if (!again)
        return SONDE_OK;
    memset(r->pack, 0, sizeof r->pack);
    return s->op->pack(r);
}

/* Is one of them f32 in halves, which AMX multiplies? */
static bool has_halves(const sn_pack_request *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->n_in; i++) {
        const sn_pack_format *f = sn_pack_get(r->pack[i]);
        any |=
            f && f->dtype == SONDE_DTYPE_F32 &&
            (f->arrangement == SN_WEIGHTS_PANEL_TILES || f->arrangement == SN_WEIGHTS_CONV_TILES);
    }
    return any;
}

static sonde_status ask_step(packer *k, sn_program *p, sn_step *s)
{
    const sn_node *n = s->node;
    if (!s->op->pack)
        return SONDE_OK;
    const sn_fact *in[8] = {0};
    uint32_t n_in = s->n_in < 8 ? s->n_in : 8;
    bool any = false, f16 = false;
    for (uint32_t i = 0; i < n_in; i++)
        if (n->in[i].value) {
            in[i] = &n->in[i].value->fact;
            any |= in[i]->data && !n->in[i].value->is_input;
            f16 |= in[i]->data && in[i]->type.dtype == SONDE_DTYPE_F16;
        }
    if (!any)
        return SONDE_OK;
    if (f16) /* AMX may multiply it; if that is refused, there is no such flag afterwards */
        (void)sn_cpu_request(&p->ctx->cpu);
    sn_pack_request req = {
        .node = n, .params = s->params, .cpu_flags = p->ctx->cpu.flags, .in = in, .n_in = n_in};
    req.precision = k->root->precision;
    req.in_block = in[0] ? (uint8_t)sn_fact_block(in[0]) : 0;
    req.out_block = s->n_out && n->out[0] ? (uint8_t)sn_fact_block(&n->out[0]->fact) : 0;
    SN_TRY(ask_op(k, s, &req));
    if (has_halves(&req) && !sn_cpu_request(&p->ctx->cpu)) {
        req.cpu_flags = p->ctx->cpu.flags;
        memset(req.pack, 0, sizeof req.pack);
        SN_TRY(ask_op(k, s, &req));
    }
    for (uint32_t i = 0; i < n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!req.pack[i] || !v || !v->fact.data || v->is_input)
            continue;
        uint32_t slot = s->in[i];
        SN_TRY(add_job(k, p, s->in[i], v, req.pack[i], req.pack_arg[i], &slot));
        ((uint32_t *)(uintptr_t)s->in)[i] = slot; /* the program's own array, not yet shared */
    }
    return SONDE_OK;
}

static sonde_status ask_program(packer *k, sn_program *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        SN_TRY(ask_step(k, p, &p->steps[i]));
    for (uint32_t b = 0; b < p->n_bodies; b++)
        SN_TRY(ask_program(k, p->bodies[b]));
    return SONDE_OK;
}

/* New slots behind the graph's values: room for them in `consts`. */
static sonde_status grow_consts(packer *k, sn_program *p)
{
    size_t n_values = p->graph->values.n;
    if (p->n_slots > n_values) {
        sn_slot *consts = SN_NEW_N(&k->root->arena, sn_slot, p->n_slots);
        if (!consts)
            return sn_fail_memory(k->err, p->n_slots * sizeof *consts);
        memcpy(consts, p->consts, n_values * sizeof *consts);
        p->consts = consts;
    }
    for (uint32_t b = 0; b < p->n_bodies; b++)
        SN_TRY(grow_consts(k, p->bodies[b]));
    return SONDE_OK;
}

static uint8_t *packed_at(const packer *k, const pack_job *job)
{
    return (uint8_t *)k->root->packed->data + k->head_bytes + job->offset;
}

static void set_slot(const packer *k, const pack_job *job)
{
    if (!job->whole)
        return;
    sn_slot *slot = &job->owner->consts[job->slot];
    slot->kind = SN_KIND_TENSOR;
    slot->t = *job->whole;
    slot->t.owner = NULL;
    slot->t.scale = NULL;
    slot->t.parts = NULL;
    slot->t.pack = (uint8_t)job->key.pack;
    slot->t.pack_arg = job->key.arg;
    slot->t.bytes = job->bytes;
    slot->t.data = k->root->plan_only ? NULL : packed_at(k, job);
}

/* ------------------------------------------------------------------ filling the store */

/* May the weight be packed from where it lies? */
static bool is_ready(const pack_job *job)
{
    return sn_tensor_is_readable(job->src) && job->src->dtype == job->format->dtype;
}

/* Elements [first, first + count) of the weight, in the type of the format. `room` has space for
 * them in the larger of the two types. */
static void read_as_packed(const pack_job *job, int64_t first, int64_t count, void *room)
{
    const sn_tensor *t = job->src;
    sn_tensor_read(t, first, count, room);
    if (t->dtype != job->format->dtype)
        sn_pack_convert(job->format->dtype, t->dtype, room, count, job->cpu_flags);
}

static size_t larger_element(const pack_job *job)
{
    const size_t a = sn_dtype_bytes(job->src->dtype), b = sn_dtype_bytes(job->format->dtype);
    return a > b ? a : b;
}

/* All of weight t, in the type of the format. */
static sonde_status copy_as_packed(packer *k, const pack_job *job, const sn_tensor *t,
                                   sn_tensor *copy)
{
    const int64_t n = sn_tensor_count(t);
    size_t bytes;
    if (!sn_size_mul((size_t)n, larger_element(job), &bytes))
        return sn_fail(k->err, SONDE_LIMIT, "packed weights exceed the address space");
    sn_buffer *b = sn_buffer_new(k->root->ctx->alloc, bytes);
    if (!b || !sn_vec_push(&k->root->buffers.list, k->root->ctx->alloc, b)) {
        sn_buffer_unref(b);
        return sn_fail_memory(k->err, bytes);
    }
    read_as_packed(&(pack_job){.src = t, .format = job->format, .cpu_flags = job->cpu_flags}, 0, n,
                   b->data);
    copy->dtype = job->format->dtype;
    copy->data = b->data;
    copy->bytes = (size_t)n * sn_dtype_bytes(copy->dtype);
    copy->owner = b;
    copy->scale = NULL;
    copy->scale_axis = 0;
    copy->parts = NULL;
    return SONDE_OK;
}

/* Weights that a pass has scaled, that lie misaligned in their file or are packed in another type
 * are read a unit at a time into a worker's scratch. Formats whose units read all over the weight
 * take misaligned ones as they are, and get a copy of others, which is dropped afterwards. */
static sonde_status plan_reading(packer *k, pack_job *job)
{
    int64_t first, count;
    const sn_tensor *t = job->src;
    const sn_packing packing = packing_of(job, t);
    if (is_ready(job))
        return SONDE_OK;
    if (job->format->source(&packing, 0, &first, &count)) {
        const size_t bytes = sn_round_up((size_t)count * larger_element(job), SN_ALIGN);
        k->scratch_bytes = bytes > k->scratch_bytes ? bytes : k->scratch_bytes;
        return SONDE_OK;
    }
    if (!t->scale && !t->parts && t->dtype == job->format->dtype)
        return SONDE_OK;
    sn_tensor *copy = SN_NEW(&k->root->arena, sn_tensor);
    if (!copy)
        return sn_fail_memory(k->err, sizeof *copy);
    *copy = *t;
    job->src = copy;
    SN_TRY(copy_as_packed(k, job, t, copy));
    sn_model_release(k->root->model, t);
    return SONDE_OK;
}

/* The packed store, and the scratch. */
static sonde_status make_room(packer *k, int threads)
{
    sn_allocator *alloc = k->root->ctx->alloc;
    size_t bytes = k->store_bytes;
    if (k->cached && !sn_weights_file_bytes(k->store_bytes, &bytes))
        return sn_fail(k->err, SONDE_LIMIT, "packed weights exceed the address space");
    k->root->packed = sn_buffer_new_kept(alloc, bytes);
    if (!k->root->packed)
        return sn_fail_memory(k->err, bytes);
    sn_program_bind_buffer(k->root, k->root->packed);
    for (size_t i = 0; i < k->jobs.n; i++)
        SN_TRY(plan_reading(k, k->jobs.data[i]));
    if (!k->scratch_bytes)
        return SONDE_OK;
    k->scratch = sn_alloc(alloc, k->scratch_bytes * (size_t)threads);
    return k->scratch ? SONDE_OK : sn_fail_memory(k->err, k->scratch_bytes * (size_t)threads);
}

typedef struct pack_batch {
    const packer *k;
    size_t first, end; /* jobs */
} pack_batch;

static const pack_job *job_of(const pack_batch *b, size_t unit)
{
    size_t low = b->first, high = b->end; /* the job is in [low, high) */
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        if (b->k->jobs.data[mid]->first_unit <= unit)
            low = mid;
        else
            high = mid;
    }
    return b->k->jobs.data[low];
}

static void pack_unit(void *arg, size_t task, int worker)
{
    const pack_batch *b = arg;
    const packer *k = b->k;
    const size_t number = k->jobs.data[b->first]->first_unit + task;
    const pack_job *job = job_of(b, number);
    const size_t unit = number - job->first_unit;
    const sn_tensor *t = job->src;
    const sn_packing packing = packing_of(job, t);
    const void *src = t->data;
    int64_t first, count;
    if (!is_ready(job) && job->format->source(&packing, unit, &first, &count)) {
        void *own = k->scratch + (size_t)worker * k->scratch_bytes;
        read_as_packed(job, first, count, own);
        /* Where the weight would begin if the unit's part of it lay in its place. */
        src = (const void *)((uintptr_t)own - (size_t)first * sn_dtype_bytes(job->format->dtype));
    }
    job->format->pack(&packing, packed_at(k, job), src, unit);
}

/* Lets go of file pages in few steps, as every call interrupts the other cores, and yet so often
 * that what is mapped and packed at once adds little to the peak: a sixteenth, or a few MiB. */
#define RELEASE_PARTS 16
#define RELEASE_BYTES ((size_t)2 << 20)

/* Large weights are packed first: what is held beside the store is then small when that is nearly
 * full. */
static int larger_first(const void *a, const void *b)
{
    const pack_job *x = *(pack_job *const *)a, *y = *(pack_job *const *)b;
    if (x->src->bytes != y->src->bytes)
        return x->src->bytes < y->src->bytes ? 1 : -1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void order_jobs(packer *k)
{
    qsort(k->jobs.data, k->jobs.n, sizeof *k->jobs.data, larger_first);
    k->n_units = 0;
    for (size_t i = 0; i < k->jobs.n; i++) {
        pack_job *job = k->jobs.data[i];
        job->first_unit = k->n_units;
        const sn_packing packing = packing_of(job, job->src);
        k->n_units += job->format->units(&packing);
    }
}

/* Packs in batches; the units of a batch are shared out as one region. */
static void fill_store(packer *k, sn_pool *pool)
{
    const size_t part = k->store_bytes / RELEASE_PARTS;
    const size_t most = part < RELEASE_BYTES ? part : RELEASE_BYTES;
    for (size_t first = 0; first < k->jobs.n;) {
        pack_batch b = {k, first, first};
        for (size_t held = 0; b.end < k->jobs.n; b.end++) {
            held += k->jobs.data[b.end]->src->bytes;
            if (held > most && b.end > first)
                break;
        }
        const size_t begin = k->jobs.data[first]->first_unit;
        const size_t end = b.end < k->jobs.n ? k->jobs.data[b.end]->first_unit : k->n_units;
        sn_pool_run(pool, end - begin, pack_unit, &b);
        for (; first < b.end; first++)
            sn_model_release(k->root->model, k->jobs.data[first]->src);
    }
}

/* ------------------------------------------------------------------ the cache on disk */

/* A weight's content: where it lies in which state of which file, and a sample at its ends and in
 * its middle; what is in no file is read. */
static void add_content(packer *k, const sn_tensor *t)
{
    enum { SAMPLE = 64 };
    const sn_model *m = k->root->model;
    const uint8_t *p = t->data;
    if (t->scale) {
        sn_weights_key_add(&k->key, &t->scale_axis, sizeof t->scale_axis);
        sn_weights_key_add(&k->key, t->scale, (size_t)t->dims[t->scale_axis] * sizeof *t->scale);
    }
    if (t->parts) {
        sn_weights_key_add(&k->key, &t->parts->axis, sizeof t->parts->axis);
        for (size_t i = 0; i < t->parts->n; i++)
            add_content(k, t->parts->part[i]);
        return;
    }
    const uint64_t dtype = t->dtype; /* before it is packed */
    sn_weights_key_add(&k->key, &dtype, sizeof dtype);
    sn_weights_key_add(&k->key, t->dims, (size_t)t->rank * sizeof *t->dims);
    for (size_t i = 0; i < m->files.n; i++) {
        const sn_file *f = m->files.data[i];
        if (!f->identity || p < f->data || p >= f->data + f->bytes || t->bytes < 4 * SAMPLE)
            continue;
        const uint64_t place[] = {f->identity, (uint64_t)(p - f->data), t->bytes};
        sn_weights_key_add(&k->key, place, sizeof place);
        sn_weights_key_add(&k->key, p, SAMPLE);
        sn_weights_key_add(&k->key, p + t->bytes / 2, SAMPLE);
        sn_weights_key_add(&k->key, p + t->bytes - SAMPLE, SAMPLE);
        sn_model_release(m, t);
        return;
    }
    sn_weights_key_add(&k->key, p, t->bytes);
}

static void make_cache_key(packer *k)
{
    const uint64_t flags = k->root->ctx->cpu.flags;
    sn_weights_key_begin(&k->key);
    sn_weights_key_add(&k->key, &flags, sizeof flags);
    for (size_t i = 0; i < k->jobs.n; i++) {
        const pack_job *job = k->jobs.data[i];
        const sn_tensor *t = job->src;
        sn_weights_key_add(&k->key, job->format->name, strlen(job->format->name) + 1);
        sn_weights_key_add(&k->key, &job->key.arg, sizeof job->key.arg);
        sn_weights_key_add(&k->key, t->dims, (size_t)t->rank * sizeof *t->dims); /* as joined */
        add_content(k, t);
    }
}

static bool look_on_disk(packer *k, sn_pool *pool, bool say)
{
    sonde_error err = {.status = SONDE_OK};
    const sonde_status st = sn_weights_cache_find(&k->cache, &k->key, k->store_bytes, pool,
                                                  k->root->ctx->alloc, &k->root->packed, &err);
    if (say && st && st != SONDE_NOT_FOUND)
        sn_log_write(&k->root->ctx->log, SN_LOG_WARN,
                     "the cache of packed weights is not used, weights are packed again: %s",
                     err.message);
    return st == SONDE_OK;
}

/* The store from disk; false: it has to be packed. A folder or a file that is refused costs a
 * warning; what is wrong with a file only is replaced by what is packed now. Of several processes
 * that miss a file at the same time one packs and the others wait for it: otherwise each would have
 * a store of its own in memory. */
static bool find_packed(packer *k, const char *cache_dir, sn_pool *pool)
{
    enum { MOST_WAIT_MS = 60000 };
    const sn_log *log = &k->root->ctx->log;
    sonde_error err = {.status = SONDE_OK};
    if (!cache_dir)
        return false;
    if (sn_cache_open(&k->cache, cache_dir, true, &err)) {
        sn_log_write(log, SN_LOG_WARN, "packed weights are not cached: %s", err.message);
        return false;
    }
    k->cached = true;
    make_cache_key(k);
    k->head_bytes = SN_WEIGHTS_HEAD_BYTES;
    if (look_on_disk(k, pool, true))
        return true;
    k->locked = sn_cache_lock(&k->cache, MOST_WAIT_MS);
    return k->locked && look_on_disk(k, pool, false);
}

/* Writes the store and takes the file in its place, which other processes share. A cache that
 * cannot be written, or not be read back, is no reason not to run. */
static void keep_packed(packer *k, sn_pool *pool)
{
    sonde_error err;
    sn_buffer *own = k->root->packed;
    if (!k->cached)
        return;
    if (sn_weights_cache_save(&k->cache, &k->key, own, k->store_bytes, pool, &err)) {
        sn_log_write(&k->root->ctx->log, SN_LOG_WARN, "packed weights are not cached: %s",
                     err.message);
        return;
    }
    if (!look_on_disk(k, pool, true)) {
        k->root->packed = own;
        return;
    }
    sn_buffer_unref(own);
    for (size_t i = 0; i < k->jobs.n; i++)
        set_slot(k, k->jobs.data[i]);
}

/* ------------------------------------------------------------------ what is not needed any more */

static sonde_status mark_used(packer *k, const sn_program *p, sn_map *used)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t j = 0; j < p->steps[i].n_in; j++) {
            uint32_t slot = p->steps[i].in[j];
            if (slot == SN_NO_SLOT || p->consts[slot].kind != SN_KIND_TENSOR)
                continue;
            const sn_tensor *t = &p->consts[slot].t;
            if (t->data && !sn_map_put_address(used, t->data, used, NULL))
                return sn_fail_memory(k->err, sizeof(sn_map_entry));
        }
    for (uint32_t o = 0; o < p->n_outputs; o++) {
        const sn_tensor *t = &p->consts[p->outputs[o]].t;
        if (p->consts[p->outputs[o]].kind == SN_KIND_TENSOR && t->data &&
            !sn_map_put_address(used, t->data, used, NULL))
            return sn_fail_memory(k->err, sizeof(sn_map_entry));
    }
    for (uint32_t b = 0; b < p->n_bodies; b++)
        SN_TRY(mark_used(k, p->bodies[b], used));
    return SONDE_OK;
}

/* Constants that a pass made and that live on only in packed form are freed: weights exist once. */
static sonde_status drop_unused(packer *k, sn_program *root)
{
    sn_map used;
    sn_map_init(&used, root->ctx->alloc);
    sonde_status st = mark_used(k, root, &used);
    size_t kept = 0;
    for (size_t i = 0; i < root->buffers.list.n && !st; i++) {
        sn_buffer *b = root->buffers.list.data[i];
        if (sn_map_get_address(&used, b->data))
            root->buffers.list.data[kept++] = b;
        else
            sn_buffer_unref(b);
    }
    if (!st)
        root->buffers.list.n = kept;
    sn_map_free(&used);
    return st;
}

sonde_status sn_program_pack(sn_program *root, sn_program *p, sn_pool *pool, const char *cache_dir,
                             sonde_error *err)
{
    packer k = {.root = root, .err = err};
    const int threads = sn_pool_threads(pool);
    sn_map_init(&k.seen, root->ctx->alloc);
    sn_map_init(&k.looked, root->ctx->alloc);
    sonde_status st = ask_program(&k, p);
    if (!st)
        st = grow_consts(&k, p);
    const bool fill = k.jobs.n && !st && !root->plan_only && !find_packed(&k, cache_dir, pool);
    if (fill)
        st = make_room(&k, threads);
    for (size_t i = 0; i < k.jobs.n && !st; i++)
        set_slot(&k, k.jobs.data[i]);
    root->packed_bytes = k.store_bytes;
    if (root->packed)
        atomic_fetch_add_explicit(&root->ctx->packed_bytes, k.store_bytes, memory_order_relaxed);
    if (fill && !st) {
        order_jobs(&k);
        fill_store(&k, pool);
        keep_packed(&k, pool);
    }
    if (!st && !root->plan_only)
        st = drop_unused(&k, root);
    sn_free(root->ctx->alloc, k.scratch, k.scratch_bytes * (size_t)threads);
    sn_vec_free(&k.jobs, root->ctx->alloc);
    sn_map_free(&k.seen);
    sn_map_free(&k.looked);
    if (k.locked)
        sn_cache_unlock(&k.cache);
    if (k.cached)
        sn_cache_close(&k.cache);
    return st;
}
