/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says of memory: where the values of a binding lie and how long they live, how many
 * zeros the weights have, and what the context and the process hold. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/session.h"
#include "records/steps.h"

/* ------------------------------------------------------------------ lives */
static bool add_life(sn_profile *p, const sn_prof_life *life)
{
    return sn_vec_push(&p->lives, p->alloc, *life);
}

static sn_prof_place place_of(const sn_binding *b, uint32_t slot)
{
    return b->place[slot] == SN_PLACE_ARENA    ? SN_LIFE_ARENA
           : b->place[slot] == SN_PLACE_OUTPUT ? SN_LIFE_OUTPUT
                                               : SN_LIFE_DYNAMIC;
}

/* By slot: the last step that needs it, and 1 + its place in p->lives. */
typedef struct slot_life {
    uint32_t last, at;
} slot_life;

/* Step i overwrites an input with its output, or the input is a part of it: the input's life ends
 * before. */
static void end_overwritten(sn_profile *p, const sn_binding *b, uint32_t i, uint32_t out,
                            const slot_life *slots)
{
    const sn_step *s = &b->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++) {
        const uint32_t in = s->in[j];
        if (in == SN_NO_SLOT || b->place[in] != SN_PLACE_ARENA || !slots[in].at)
            continue;
        const bool part = b->info[i].joins && b->root[in] == b->root[out];
        sn_prof_life *old = &p->lives.data[slots[in].at - 1];
        if ((part || (b->offset[in] == b->offset[out] && old->last == i)) && old->first < i)
            old->last = i - 1;
    }
}

/* Output o of step i, unless it only renames memory that is listed already. */
static bool add_output(sn_profile *p, const sn_binding *b, uint32_t i, uint32_t o, slot_life *slots)
{
    const sn_step *s = &b->steps[i];
    const uint32_t slot = s->out[o];
    if (slot == SN_NO_SLOT || !s->node->out[o])
        return true;
    if (b->place[slot] == SN_PLACE_CONST || b->place[slot] == SN_PLACE_VIEW)
        return true;
    sn_prof_life life = {.table = b->id,
                         .first = i,
                         .last = slots[slot].last,
                         .name = sn_arena_strdup(&p->arena, sn_value_shown(s->node->out[o])),
                         .place = place_of(b, slot)};
    if (life.place == SN_LIFE_ARENA) {
        life.offset = b->offset[slot];
        end_overwritten(p, b, i, slot, slots);
    }
    if (life.place != SN_LIFE_DYNAMIC)
        life.bytes = b->slots[slot].t.bytes;
    if (life.place == SN_LIFE_OUTPUT)
        p->memory.outputs += life.bytes;
    slots[slot].at = (uint32_t)p->lives.n + 1;
    return life.name && add_life(p, &life);
}

static uint64_t weight_bytes(const sn_program *p)
{
    while (p->parent)
        p = p->parent;
    uint64_t bytes = p->packed_bytes;
    for (size_t i = 0; i < p->buffers.list.n; i++)
        bytes += p->buffers.list.data[i]->bytes;
    for (size_t i = 0; i < p->model->buffers.list.n; i++)
        bytes += p->model->buffers.list.data[i]->bytes;
    return bytes;
}

/* Sums of what lives at each step; lives of this binding are those from `first` on. Workspace
 * belongs to what is allocated, not to what is used. */
static sonde_status sum_bytes(sn_profile *p, const sn_binding *b, size_t first,
                              const sn_step_bytes **bytes, sonde_error *err)
{
    sn_step_bytes *at = SN_NEW_N(&p->arena, sn_step_bytes, (size_t)b->n_steps + 2);
    if (!at)
        return sn_fail_memory(err, ((size_t)b->n_steps + 2) * sizeof *at);
    for (size_t i = first; i < p->lives.n; i++) { /* differences first; they may wrap */
        const sn_prof_life *l = &p->lives.data[i];
        if (l->place == SN_LIFE_WORKSPACE)
            continue;
        at[l->first].live += l->bytes;
        at[l->last + 1].live -= l->bytes;
    }
    const uint64_t weights = weight_bytes(b->program);
    uint64_t live = 0;
    for (uint32_t i = 0; i < b->n_steps; i++) {
        live += at[i].live;
        at[i] = (sn_step_bytes){.used = weights + live, .live = live + b->info[i].workspace_bytes};
    }
    *bytes = at;
    return SONDE_OK;
}

sonde_status sn_records_add_lives(sn_profile *p, const sn_binding *b, const sn_step_bytes **bytes,
                                  sonde_error *err)
{
    const size_t first_life = p->lives.n;
    const size_t slot_bytes = b->n_slots * sizeof(slot_life);
    slot_life *slots = sn_alloc_zero(p->alloc, slot_bytes);
    if (!slots)
        return sn_fail_memory(err, slot_bytes);
    for (uint32_t i = 0; i < b->n_steps; i++)
        for (uint32_t j = 0; j < b->steps[i].n_in; j++)
            if (b->steps[i].in[j] != SN_NO_SLOT)
                slots[b->steps[i].in[j]].last = slots[b->root[b->steps[i].in[j]]].last = i;
    for (uint32_t o = 0; o < b->program->n_outputs; o++)
        slots[b->outputs[o]].last = slots[b->root[b->outputs[o]]].last = b->n_steps;
    bool fine = true;
    for (uint32_t i = 0; fine && i < b->n_steps; i++) {
        for (uint32_t o = 0; fine && o < b->steps[i].n_out; o++) {
            if (b->steps[i].out[o] != SN_NO_SLOT && slots[b->steps[i].out[o]].last < i)
                slots[b->steps[i].out[o]].last = i; /* nobody reads it */
            fine = add_output(p, b, i, o, slots);
        }
        const sn_prof_life scratch = {.table = b->id,
                                      .first = i,
                                      .last = i,
                                      .name = "workspace",
                                      .offset = b->arena_bytes,
                                      .bytes = b->info[i].workspace_bytes,
                                      .place = SN_LIFE_WORKSPACE};
        if (fine && scratch.bytes)
            fine = add_life(p, &scratch);
    }
    sn_free(p->alloc, slots, slot_bytes);
    p->memory.arenas += b->arena_bytes;
    p->memory.workspaces += b->workspace_bytes;
    return fine ? sum_bytes(p, b, first_life, bytes, err)
                : sn_fail_memory(err, sizeof(sn_prof_life));
}

/* ------------------------------------------------------------------ zeros */
/* Still in the model's memory? Constants that passes made have an owner and are let go when they
 * are packed; small ones of the file lie in an arena. */
static bool is_kept(const sn_model *m, const sn_tensor *t)
{
    const uint8_t *data = t->data;
    if (!t->owner)
        return data != NULL;
    for (size_t i = 0; i < m->files.n; i++) {
        const sn_file *f = m->files.data[i];
        if (data >= f->data && data < f->data + f->bytes)
            return true;
    }
    for (size_t i = 0; i < m->buffers.list.n; i++)
        if (m->buffers.list.data[i]->data == data)
            return true;
    return false;
}

/* The weight's numbers, where they can still be read; they may be in parts. */
static const sn_tensor *readable(const sn_binding *b, const sn_step *step, uint32_t input)
{
    const uint32_t slot = step->in[input];
    const sn_program *p = b->program;
    if (slot != SN_NO_SLOT && p->consts[slot].kind == SN_KIND_TENSOR && p->consts[slot].t.data &&
        !p->consts[slot].t.pack)
        return &p->consts[slot].t;
    const sn_tensor *t = step->node->in[input].value->fact.data;
    bool kept = t && (t->parts || is_kept(p->model, t));
    for (size_t i = 0; kept && t->parts && i < t->parts->n; i++)
        kept = is_kept(p->model, t->parts->part[i]);
    return kept ? t : NULL;
}

/* Bytes of an element whose zeros can be told, 0: they cannot (an unsigned weight's zero is its
 * zero point). */
static size_t countable(sonde_dtype type)
{
    switch (type) {
    case SONDE_DTYPE_F64:
        return 8;
    case SONDE_DTYPE_F32:
        return 4;
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16:
        return 2;
    case SONDE_DTYPE_I8:
        return 1;
    default:
        return 0;
    }
}

/* Elements of `size` bytes, which may lie misaligned in their file. -0 is one of them. */
static int64_t zeros_in(const uint8_t *data, int64_t n, size_t size)
{
    const uint64_t sign = size > 1 ? UINT64_C(1) << (size * 8 - 1) : 0; /* integers have no -0 */
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = 0;
        switch (size) {
        case 1:
            x = data[i];
            break;
        case 2: {
            uint16_t v;
            memcpy(&v, data + i * 2, sizeof v);
            x = v;
            break;
        }
        case 4: {
            uint32_t v;
            memcpy(&v, data + i * 4, sizeof v);
            x = v;
            break;
        }
        default:
            memcpy(&x, data + i * 8, sizeof x);
        }
        zeros += (x & ~sign) == 0;
    }
    return zeros;
}

#define HUGE_PAGE ((size_t)2 << 20)

/* Of a mapped file: pages that reading brought in leave again, with those the system maps along
 * with them, which may be as far as a huge page goes. */
static void let_go(const sn_model *m, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < m->files.n; i++) {
        const sn_file *f = m->files.data[i];
        if (data < f->data || data >= f->data + f->bytes)
            continue;
        const size_t at = (size_t)(data - f->data), end = at + bytes;
        const size_t from = at > HUGE_PAGE ? at - HUGE_PAGE : 0;
        const size_t to = f->bytes - end > HUGE_PAGE ? end + HUGE_PAGE : f->bytes;
        sn_file_release(f, f->data + from, to - from);
    }
}

static int64_t count_zeros(const sn_model *m, const sn_tensor *t)
{
    const int64_t n = sn_tensor_count(t);
    const size_t size = countable(t->dtype);
    int64_t zeros = 0;
    for (int64_t i = 0, count; i < n; i += count) { /* huge page by huge page */
        const uint8_t *piece = (const uint8_t *)t->data + (size_t)i * size;
        const size_t left = HUGE_PAGE - (uintptr_t)piece % HUGE_PAGE;
        count = left < size ? 1 : (int64_t)(left / size);
        count = count < n - i ? count : n - i;
        zeros += zeros_in(piece, count, size);
        let_go(m, piece, (size_t)count * size);
    }
    return zeros;
}

double sn_records_weight_zeros(const sn_binding *b, const sn_step *step, uint32_t input)
{
    enum { MOST = 1 << 28 }; /* elements: counting takes time */
    const sn_tensor *t = readable(b, step, input);
    const int64_t n = t ? sn_tensor_count(t) : 0;
    if (!t || !countable(t->dtype) || !sn_tensor_is_plain(t) || n <= 0 || n > MOST)
        return -1;
    if (!t->parts)
        return (double)count_zeros(b->program->model, t) / (double)n;
    int64_t zeros = 0;
    for (size_t i = 0; i < t->parts->n; i++)
        zeros += count_zeros(b->program->model, t->parts->part[i]);
    return (double)zeros / (double)n;
}

/* ------------------------------------------------------------------ totals */
/* "VmRSS:   1234 kB" of /proc/self/status. */
static void read_status(sn_prof_memory *m)
{
    FILE *f = fopen("/proc/self/status", "r");
    if (!f)
        return;
    static const char *const keys[] = {"VmRSS:", "VmHWM:", "RssAnon:", "RssFile:"};
    uint64_t *const to[] = {&m->rss, &m->rss_peak, &m->rss_anon, &m->rss_file};
    char line[256];
    while (fgets(line, sizeof line, f))
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            unsigned long long kb;
            if (strncmp(line, keys[k], strlen(keys[k])) == 0 &&
                sscanf(line + strlen(keys[k]), "%llu", &kb) == 1)
                *to[k] = kb * 1024;
        }
    fclose(f);
}

static void count_programs(sn_prof_memory *m, const sn_profile *p, const sn_records *r)
{
    /* Bindings of a program share its weights: each program once, by its first table. */
    for (const sn_known_model *known = r->models; known; known = known->next)
        for (size_t i = 0; i < known->model->files.n; i++)
            if (known->model->files.data[i]->mapped)
                m->mapped += known->model->files.data[i]->bytes;
    const sn_program *seen[64];
    size_t n_seen = 0;
    uint32_t table = 0;
    for (size_t i = 0; i < p->steps.n; i++) {
        if (p->steps.data[i].table == table)
            continue;
        table = p->steps.data[i].table;
        const sn_binding *b = sn_exec_pinned(r->ctx, table);
        const sn_program *root = b ? b->program : NULL;
        while (root && root->parent)
            root = root->parent;
        bool again = !root;
        for (size_t k = 0; k < n_seen; k++)
            again |= seen[k] == root;
        if (again || n_seen == sizeof seen / sizeof *seen)
            continue;
        seen[n_seen++] = root;
        m->packed += root->packed_bytes;
        for (size_t k = 0; k < root->buffers.list.n; k++)
            m->constants += root->buffers.list.data[k]->bytes;
        for (size_t k = 0; k < root->model->buffers.list.n; k++)
            m->constants += root->model->buffers.list.data[k]->bytes;
    }
}

void sn_records_describe_memory(sn_profile *p, sn_records *r)
{
    sn_prof_memory *m = &p->memory;
    m->held = atomic_load_explicit(&r->ctx->alloc->live_bytes, memory_order_relaxed);
    m->held_peak = atomic_load_explicit(&r->ctx->alloc->peak_bytes, memory_order_relaxed);
    pthread_mutex_lock(&r->lock);
    count_programs(m, p, r);
    pthread_mutex_unlock(&r->lock);
    read_status(m);
}
