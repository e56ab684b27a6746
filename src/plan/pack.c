/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: asks every operator which constant inputs it wants in which format, gives each distinct
 * (weight, format) a slot, and fills one store in parallel. File pages are let go weight by weight,
 * so the raw and the packed weights are never both resident as a whole. */
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
    sn_map seen; /* pack_key ► index + 1 of its job */
    SN_VEC(pack_job *) jobs;
    size_t store_bytes;
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
} pack_run;

static void pack_unit(void *arg, size_t task, int worker)
{
    (void)worker;
    const pack_run *r = arg;
    const sn_tensor *t = r->job->src;
    r->job->format->pack(r->dst, r->src, t->dims, t->rank, r->job->key.arg, task);
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

static sonde_status do_job(packer *k, const pack_job *job, sn_pool *pool)
{
    const sn_tensor *t = job->src;
    sn_slot *slot = &job->owner->consts[job->slot];
    slot->kind = SN_KIND_TENSOR;
    slot->t = *t;
    slot->t.owner = NULL;
    slot->t.pack = (uint8_t)job->key.pack;
    slot->t.bytes = job->bytes;
    slot->t.data = NULL;
    if (k->root->plan_only)
        return SONDE_OK;
    pack_run run = {job, (uint8_t *)k->root->packed->data + job->offset, t->data};
    slot->t.data = run.dst;
    void *copy = NULL; /* of a view that is misaligned in its file, for as long as it is packed */
    if (!sn_tensor_is_aligned(t)) {
        run.src = copy = sn_alloc(k->root->ctx->alloc, t->bytes);
        if (!copy)
            return sn_fail_memory(k->err, t->bytes);
        memcpy(copy, t->data, t->bytes);
    }
    sn_pool_run(pool, job->format->units(t->dims, t->rank, job->key.arg), pack_unit, &run);
    sn_free(k->root->ctx->alloc, copy, copy ? t->bytes : 0);
    release_pages(k->root->model, t);
    return SONDE_OK;
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
    if (!st && k.store_bytes && !root->plan_only) {
        root->packed = sn_buffer_new(root->ctx->alloc, k.store_bytes);
        if (!root->packed)
            st = sn_fail_memory(err, k.store_bytes);
    }
    for (size_t i = 0; i < k.jobs.n && !st; i++)
        st = do_job(&k, k.jobs.data[i], pool);
    root->packed_bytes = k.store_bytes;
    if (!st && !root->plan_only)
        st = drop_unused(&k, root);
    sn_vec_free(&k.jobs, root->ctx->alloc);
    sn_map_free(&k.seen);
    return st;
}
