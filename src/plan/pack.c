/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: asks every operator which constant inputs it wants in which format, gives each distinct
 * (weight, format) a slot, and fills one store in parallel. File pages are let go as it proceeds,
 * so that raw and packed weights are never both resident as a whole. */
#include <string.h>

#include "base/map.h"
#include "compute/packs.h"
#include "plan/program.h"

typedef struct pack_key {
    uint64_t program; /* bodies number their slots themselves */
    uint64_t slot, pack;
    int64_t arg;
} pack_key;

typedef struct pack_job {
    pack_key key;
    const sn_tensor *src;
    const sn_pack_format *format;
    size_t bytes, offset;
    sn_program *owner;
    uint32_t slot; /* the new one */
} pack_job;

typedef struct packer {
    sn_program *root;
    sn_map seen; /* pack_key ► its job */
    SN_VEC(pack_job *) jobs;
    size_t store_bytes;
    void *settled; /* room for the largest weight that cannot be packed as it lies */
    size_t settled_bytes;
    size_t first_held, held_bytes; /* jobs done whose file pages are not yet let go */
    sonde_error *err;
} packer;

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
    if (!f || !f->bytes(src->dims, src->rank, arg, &bytes)) {
        *packed_slot = slot; /* not packable: the operator takes it as it is */
        return SONDE_OK;
    }
    job = SN_NEW(&k->root->arena, pack_job);
    if (!job)
        return sn_fail_memory(k->err, sizeof *job);
    *job = (pack_job){key, src, f, bytes, k->store_bytes, p, p->n_slots++};
    if (!sn_tensor_is_settled(src) && src->bytes > k->settled_bytes)
        k->settled_bytes = src->bytes;
    if (!sn_size_add(k->store_bytes, sn_round_up(bytes, SN_ALIGN), &k->store_bytes))
        return sn_fail(k->err, SONDE_LIMIT, "packed weights exceed the address space");
    if (!sn_map_put_n(&k->seen, &job->key, sizeof job->key, job, NULL) ||
        !sn_vec_push(&k->jobs, k->root->ctx->alloc, job))
        return sn_fail_memory(k->err, sizeof *job);
    *packed_slot = job->slot;
    return SONDE_OK;
}

static sonde_status ask_step(packer *k, sn_program *p, sn_step *s)
{
    const sn_node *n = s->node;
    if (!s->op->pack)
        return SONDE_OK;
    const sn_fact *in[8] = {0};
    uint32_t n_in = s->n_in < 8 ? s->n_in : 8;
    bool any = false;
    for (uint32_t i = 0; i < n_in; i++)
        if (n->in[i].value) {
            in[i] = &n->in[i].value->fact;
            any |= in[i]->data && !n->in[i].value->is_input;
        }
    if (!any)
        return SONDE_OK;
    sn_pack_request req = {
        .node = n, .params = s->params, .cpu_flags = p->ctx->cpu.flags, .in = in, .n_in = n_in};
    req.in_block = in[0] ? in[0]->block : 0;
    req.out_block = s->n_out && n->out[0] ? n->out[0]->fact.block : 0;
    SN_TRY(s->op->pack(&req));
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

typedef struct pack_run {
    const pack_job *job;
    void *dst;
    const void *src;
    void *settled;
} pack_run;

static void pack_unit(void *arg, size_t task, int worker)
{
    (void)worker;
    const pack_run *r = arg;
    const sn_tensor *t = r->job->src;
    r->job->format->pack(r->dst, r->src, t->dims, t->rank, r->job->key.arg, task);
}

/* How many elements one task settles: small enough to balance, large enough to be worth it. */
#define SETTLE_COUNT 16384

static void settle_part(void *arg, size_t task, int worker)
{
    (void)worker;
    const pack_run *r = arg;
    const sn_tensor *t = r->job->src;
    const int64_t first = (int64_t)task * SETTLE_COUNT, left = sn_tensor_count(t) - first;
    sn_tensor_read(t, first, left < SETTLE_COUNT ? left : SETTLE_COUNT,
                   (uint8_t *)r->settled + (size_t)first * sn_dtype_bytes(t->dtype));
}

static void release_pages(const sn_model *m, const sn_tensor *t)
{
    for (size_t i = 0; i < m->files.n; i++) {
        const sn_file *f = m->files.data[i];
        const uint8_t *p = t->data;
        if (f->mapped && p >= f->data && p < f->data + f->bytes)
            sn_file_release(f, p, t->bytes);
    }
}

static void do_job(packer *k, const pack_job *job, sn_pool *pool)
{
    const sn_tensor *t = job->src;
    sn_slot *slot = &job->owner->consts[job->slot];
    slot->kind = SN_KIND_TENSOR;
    slot->t = *t;
    slot->t.owner = NULL;
    slot->t.scale = NULL;
    slot->t.pack = (uint8_t)job->key.pack;
    slot->t.bytes = job->bytes;
    slot->t.data = NULL;
    if (k->root->plan_only)
        return;
    pack_run run = {job, (uint8_t *)k->root->packed->data + job->offset, t->data, k->settled};
    slot->t.data = run.dst;
    if (!sn_tensor_is_settled(t)) {
        size_t parts = ((size_t)sn_tensor_count(t) + SETTLE_COUNT - 1) / SETTLE_COUNT;
        sn_pool_run(pool, parts, settle_part, &run);
        run.src = k->settled;
    }
    sn_pool_run(pool, job->format->units(t->dims, t->rank, job->key.arg), pack_unit, &run);
}

/* Lets go of file pages in few steps, as every call interrupts the other cores, and yet so often that
 * what is mapped and packed at once adds little to the peak: a sixteenth. */
#define RELEASE_PARTS 16

static void release_done(packer *k, size_t n_done, bool last)
{
    k->held_bytes += n_done > k->first_held ? k->jobs.data[n_done - 1]->src->bytes : 0;
    if (k->root->plan_only || (k->held_bytes < k->store_bytes / RELEASE_PARTS && !last))
        return;
    for (; k->first_held < n_done; k->first_held++)
        release_pages(k->root->model, k->jobs.data[k->first_held]->src);
    k->held_bytes = 0;
}

/* The packed store, and room to settle a weight in. */
static sonde_status make_room(packer *k)
{
    if (k->root->plan_only || !k->store_bytes)
        return SONDE_OK;
    k->root->packed = sn_buffer_new(k->root->ctx->alloc, k->store_bytes);
    if (!k->root->packed)
        return sn_fail_memory(k->err, k->store_bytes);
    k->settled = k->settled_bytes ? sn_alloc(k->root->ctx->alloc, k->settled_bytes) : NULL;
    return k->settled || !k->settled_bytes ? SONDE_OK : sn_fail_memory(k->err, k->settled_bytes);
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
            if (!sn_map_put_n(used, &t->data, sizeof t->data, (void *)(uintptr_t)t, NULL))
                return sn_fail_memory(k->err, sizeof(sn_map_entry));
        }
    for (uint32_t o = 0; o < p->n_outputs; o++) {
        const sn_tensor *t = &p->consts[p->outputs[o]].t;
        if (p->consts[p->outputs[o]].kind == SN_KIND_TENSOR &&
            !sn_map_put_n(used, &t->data, sizeof t->data, (void *)(uintptr_t)t, NULL))
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
        if (sn_map_get_n(&used, &b->data, sizeof b->data))
            root->buffers.list.data[kept++] = b;
        else
            sn_buffer_unref(b);
    }
    if (!st)
        root->buffers.list.n = kept;
    sn_map_free(&used);
    return st;
}

sonde_status sn_program_pack(sn_program *root, sn_program *p, sn_pool *pool, sonde_error *err)
{
    packer k = {.root = root, .err = err};
    sn_map_init(&k.seen, root->ctx->alloc);
    sonde_status st = ask_program(&k, p);
    if (!st)
        st = grow_consts(&k, p);
    if (!st)
        st = make_room(&k);
    for (size_t i = 0; i < k.jobs.n && !st; i++) {
        do_job(&k, k.jobs.data[i], pool);
        release_done(&k, i + 1, i + 1 == k.jobs.n);
    }
    root->packed_bytes = k.store_bytes;
    if (!st && !root->plan_only)
        st = drop_unused(&k, root);
    sn_free(root->ctx->alloc, k.settled, k.settled_bytes);
    sn_vec_free(&k.jobs, root->ctx->alloc);
    sn_map_free(&k.seen);
    return st;
}
