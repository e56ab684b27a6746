/* SPDX-License-Identifier: Apache-2.0 */
/* Where every value lies while a binding runs. Values with static shapes get offsets in one arena:
 * steps are walked in order, a block is free after the last reader of its value, the smallest free
 * block that fits is taken. Views share their input's block; an elementwise operator may overwrite
 * an input nobody reads afterwards, and a convolution or product the residual it adds. Values sized
 * while running are listed for release instead. */
#include <string.h>

#include "plan/binding.h"

typedef struct free_block {
    size_t offset, bytes;
} free_block;

typedef struct placer {
    sn_binding *b;
    sonde_error *err;
    sn_allocator *alloc;
    uint32_t *last; /* slot ► last step that reads it; n_steps = kept to the end */
    size_t *bytes;  /* slot ► physical bytes */
    size_t *within; /* slot ► where it begins in its root */
    bool *placed;   /* slot ► its offset is known */
    uint32_t *dead; /* slots sorted by last step */
    uint32_t *dead_start;
    SN_VEC(free_block) free; /* by offset, never adjacent */
    size_t end;              /* high-water mark */
} placer;

/* ------------------------------------------------------------------ the free list */

static bool block_alloc(placer *k, size_t bytes, size_t *offset)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < k->free.n; i++)
        if (k->free.data[i].bytes >= bytes &&
            (best == SIZE_MAX || k->free.data[i].bytes < k->free.data[best].bytes))
            best = i;
    if (best != SIZE_MAX) {
        free_block *f = &k->free.data[best];
        *offset = f->offset;
        f->offset += bytes;
        f->bytes -= bytes;
        if (!f->bytes) {
            memmove(f, f + 1, (k->free.n - best - 1) * sizeof *f);
            k->free.n--;
        }
        return true;
    }
    /* A free block at the very end is extended instead of wasted. */
    if (k->free.n &&
        k->free.data[k->free.n - 1].offset + k->free.data[k->free.n - 1].bytes == k->end) {
        *offset = k->free.data[--k->free.n].offset;
        return sn_size_add(*offset, bytes, &k->end);
    }
    *offset = k->end;
    return sn_size_add(k->end, bytes, &k->end);
}

static bool block_free(placer *k, size_t offset, size_t bytes)
{
    if (!bytes)
        return true;
    if (!sn_vec_reserve(&k->free, k->alloc, 1))
        return false;
    size_t lo = 0, hi = k->free.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (k->free.data[mid].offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    free_block *f = k->free.data;
    bool left = lo > 0 && f[lo - 1].offset + f[lo - 1].bytes == offset;
    bool right = lo < k->free.n && offset + bytes == f[lo].offset;
    if (left && right) {
        f[lo - 1].bytes += bytes + f[lo].bytes;
        memmove(&f[lo], &f[lo + 1], (k->free.n - lo - 1) * sizeof *f);
        k->free.n--;
    } else if (left) {
        f[lo - 1].bytes += bytes;
    } else if (right) {
        f[lo].offset = offset;
        f[lo].bytes += bytes;
    } else {
        memmove(&f[lo + 1], &f[lo], (k->free.n - lo) * sizeof *f);
        f[lo] = (free_block){offset, bytes};
        k->free.n++;
    }
    return true;
}

/* ------------------------------------------------------------------ lifetimes */

/* String elements point at bytes that another value may own: where there are strings, nothing is
 * let go before the run ends. */
static bool has_strings(const sn_binding *b)
{
    for (uint32_t s = 0; s < b->n_slots; s++)
        if (b->facts[s].type.dtype == SONDE_DTYPE_STRING)
            return true;
    return false;
}

static void find_lifetimes(placer *k)
{
    sn_binding *b = k->b;
    bool keep = has_strings(b);
    for (uint32_t s = 0; s < b->n_slots; s++)
        k->last[s] = 0;
    for (uint32_t i = 0; i < b->n_steps; i++) {
        const sn_step *s = &b->steps[i];
        for (uint32_t o = 0; o < s->n_out; o++)
            if (sn_wants(s, o))
                k->last[s->out[o]] = i; /* an unread result lives through its own step */
        for (uint32_t j = 0; j < s->n_in; j++)
            if (s->in[j] != SN_NO_SLOT)
                k->last[s->in[j]] = i;
    }
    for (uint32_t o = 0; o < b->program->n_outputs; o++)
        k->last[b->outputs[o]] = b->n_steps;
    for (uint32_t s = 0; keep && s < b->n_slots; s++)
        k->last[s] = b->n_steps;
    for (uint32_t s = 0; s < b->n_slots; s++)
        if (b->root[s] != s && k->last[b->root[s]] < k->last[s])
            k->last[b->root[s]] = k->last[s];
}

static sonde_status choose_places(placer *k)
{
    sn_binding *b = k->b;
    const sn_program *p = b->program;
    for (uint32_t s = 0; s < b->n_slots; s++) {
        b->root[s] = s;
        if (p->consts[s].kind == SN_KIND_TENSOR || b->facts[s].data)
            b->place[s] = SN_PLACE_CONST;
    }
    for (uint32_t i = 0; i < p->n_inputs; i++)
        b->place[b->inputs[i]] = SN_PLACE_INPUT;
    for (uint32_t i = 0; i < b->n_steps; i++) {
        const sn_step *s = &b->steps[i];
        for (uint32_t o = 0; o < s->n_out; o++) {
            if (!sn_wants(s, o) || b->info[i].dynamic)
                continue;
            const sn_fact *f = &b->facts[s->out[o]];
            if (!sn_fact_bytes(f, &k->bytes[s->out[o]]))
                return sn_fail(k->err, SONDE_LIMIT, "value '%s' is too large",
                               s->node->out[o]->name);
            b->place[s->out[o]] = SN_PLACE_ARENA;
        }
    }
    for (uint32_t o = 0; o < p->n_outputs; o++)
        if (b->place[b->outputs[o]] == SN_PLACE_ARENA)
            b->place[b->outputs[o]] = SN_PLACE_OUTPUT;
    return SONDE_OK;
}

/* Results that need no memory of their own, because a view operator only renames its input. */
static sonde_status find_views(placer *k)
{
    sn_binding *b = k->b;
    SN_VEC(sn_input_view) views = {0};
    for (uint32_t i = 0; i < b->n_steps; i++) {
        const sn_step *s = &b->steps[i];
        bool view = (s->op->flags & SN_OP_VIEW) ||
                    (b->info[i].view && !b->program->unoptimized && s->n_out == 1);
        if (!view || b->info[i].dynamic || !sn_has(s, 0) || !sn_wants(s, 0))
            continue;
        uint32_t in = s->in[0], out = s->out[0];
        const sn_fact *fi = &b->facts[in], *fo = &b->facts[out];
        int64_t from = 0, to = 0; /* what does not fit is left for its step to refuse */
        if (b->place[out] != SN_PLACE_ARENA || fi->pack ||
            sn_fact_stored(fi) != sn_fact_stored(fo) || fi->form.space != fo->form.space ||
            !sn_layout_same(fi->form.layout, fo->form.layout) ||
            !sn_dims_count(fi->type.dims, fi->type.rank, &from) ||
            !sn_dims_count(fo->type.dims, fo->type.rank, &to) || from != to)
            continue;
        if (b->place[in] == SN_PLACE_ARENA) {
            b->root[out] = b->root[in];
        } else if (b->place[in] == SN_PLACE_CONST) {
            b->place[out] = SN_PLACE_CONST;
            b->root[out] = b->root[in];
        } else if (b->place[in] == SN_PLACE_INPUT || b->place[in] == SN_PLACE_VIEW) {
            b->place[out] = SN_PLACE_VIEW;
            b->root[out] = b->root[in];
            sn_input_view v = {out, b->root[in]};
            if (!sn_vec_push(&views, k->alloc, v)) {
                sn_vec_free(&views, k->alloc);
                return sn_fail_memory(k->err, sizeof v);
            }
        }
    }
    b->views = SN_NEW_N(&b->arena, sn_input_view, views.n);
    bool ok = b->views != NULL;
    if (ok && views.n)
        memcpy(b->views, views.data, views.n * sizeof *b->views);
    b->n_views = (uint32_t)views.n;
    sn_vec_free(&views, k->alloc);
    return ok ? SONDE_OK : sn_fail_memory(k->err, sizeof *b->views);
}

/* Is the slot a value of its own, which no other shares memory with? */
static bool stands_alone(const sn_binding *b, uint32_t slot)
{
    for (uint32_t s = 0; s < b->n_slots; s++)
        if (s != slot && b->root[s] == slot)
            return false;
    return b->root[slot] == slot && b->place[slot] == SN_PLACE_ARENA;
}

static bool reads_once(const sn_step *s, uint32_t j)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        if (i != j && s->in[i] == s->in[j])
            return false;
    return true;
}

/* Inputs of a step that puts them one behind the other are made in its output, where they begin as
 * values do. Last steps first: what is joined may be joined again. */
static void find_joins(placer *k)
{
    sn_binding *b = k->b;
    for (uint32_t i = b->n_steps; i-- > 0;) {
        const sn_step *s = &b->steps[i];
        if (!b->info[i].joins || b->info[i].dynamic || !sn_wants(s, 0) ||
            b->place[s->out[0]] != SN_PLACE_ARENA)
            continue;
        const uint32_t out = s->out[0];
        size_t at = 0, bytes = 0;
        bool all = true;
        for (uint32_t j = 0; j < s->n_in; j++, at += bytes) {
            const uint32_t in = s->in[j];
            if (!sn_fact_bytes(&b->facts[in], &bytes))
                break; /* its own step refuses it */
            const bool joined = at % SN_ALIGN == 0 && bytes % SN_ALIGN == 0 && bytes > 0 &&
                                stands_alone(b, in) && reads_once(s, j);
            all &= joined;
            if (!joined)
                continue;
            b->root[in] = b->root[out];
            k->within[in] = k->within[out] + at;
        }
        if (all) {
            b->info[i].kernel = "joined";
            b->info[i].bytes = 0;
        }
    }
}

/* Steps that only rename memory leave the list. */
static void drop_views(sn_binding *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_steps; i++) {
        const sn_step *s = &b->steps[i];
        if (s->n_out == 1 && sn_wants(s, 0) && b->root[s->out[0]] != s->out[0]) { /* a view */
            b->skipped[b->n_skipped++] = s->node;
            continue;
        }
        b->steps[n] = *s;
        b->steps[n].index = n;
        b->info[n++] = b->info[i];
    }
    b->n_steps = n;
}

/* Slots bucketed by the step after which they are dead (kept ones fall in the last bucket). */
static void bucket_dead(placer *k)
{
    sn_binding *b = k->b;
    memset(k->dead_start, 0, (b->n_steps + 2) * sizeof *k->dead_start);
    for (uint32_t s = 0; s < b->n_slots; s++)
        k->dead_start[k->last[s] + 1]++;
    for (uint32_t i = 0; i <= b->n_steps; i++)
        k->dead_start[i + 1] += k->dead_start[i];
    for (uint32_t s = 0; s < b->n_slots; s++)
        k->dead[k->dead_start[k->last[s]]++] = s;
    for (uint32_t i = b->n_steps + 1; i > 0; i--)
        k->dead_start[i] = k->dead_start[i - 1];
    k->dead_start[0] = 0;
}

/* ------------------------------------------------------------------ offsets */

/* Does a step read this block through another input than j? */
static bool read_twice(const placer *k, const sn_step *s, uint32_t j, uint32_t root)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        if (i != j && sn_has(s, i) && k->b->root[s->in[i]] == root)
            return true;
    return false;
}

/* A bit per input that output 0 may take the place of. */
static uint32_t overwrites(const sn_op *op, const sn_step_info *info)
{
    return info->overwrites | (op->flags & SN_OP_INPLACE0 ? 1u << 0 : 0) |
           (op->flags & SN_OP_INPLACE1 ? 1u << 1 : 0);
}

/* The input whose block output 0 of step i may take over, or SN_NO_SLOT. An input that the step
 * reads twice is kept, unless the operator works element by element (those take over either input).
 */
static uint32_t inplace_input(const placer *k, uint32_t i)
{
    const sn_binding *b = k->b;
    const sn_step *s = &b->steps[i];
    uint32_t out = s->out[0];
    const sn_fact *fo = &b->facts[out];
    const uint32_t may = overwrites(s->op, &b->info[i]);
    for (uint32_t j = 0; j < s->n_in && j < 32; j++) {
        if (!(may >> j & 1) || !sn_has(s, j))
            continue;
        uint32_t in = s->in[j], r = b->root[in];
        const sn_fact *fi = &b->facts[in];
        if (!(s->op->flags & SN_OP_INPLACE1) && read_twice(k, s, j, r))
            continue;
        if (b->place[in] != SN_PLACE_ARENA || k->within[in] || k->last[r] != i ||
            k->bytes[r] != k->bytes[out] || !sn_form_same(fi->form, fo->form) ||
            fi->type.dtype != fo->type.dtype || fi->type.rank != fo->type.rank ||
            (fo->type.rank &&
             memcmp(fi->type.dims, fo->type.dims, (size_t)fo->type.rank * sizeof(sn_dim)) != 0))
            continue;
        return r;
    }
    return SN_NO_SLOT;
}

static sonde_status place_step(placer *k, uint32_t i)
{
    sn_binding *b = k->b;
    const sn_step *s = &b->steps[i];
    uint32_t taken = SN_NO_SLOT;
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!sn_wants(s, o) || b->place[s->out[o]] != SN_PLACE_ARENA)
            continue;
        const uint32_t out = b->root[s->out[o]]; /* the first that is made of it makes its place */
        if (k->placed[out])
            continue;
        const bool own = out == s->out[o];
        const uint32_t from = o == 0 && own ? inplace_input(k, i) : SN_NO_SLOT;
        k->placed[out] = true;
        if (from != SN_NO_SLOT) {
            b->offset[out] = b->offset[from];
            taken = from;
        } else if (!block_alloc(k, sn_round_up(k->bytes[out], SN_ALIGN), &b->offset[out])) {
            return sn_fail(k->err, SONDE_LIMIT, "the values of the model exceed the address space");
        }
    }
    for (uint32_t d = k->dead_start[i]; d < k->dead_start[i + 1]; d++) {
        uint32_t slot = k->dead[d];
        if (b->place[slot] != SN_PLACE_ARENA || b->root[slot] != slot || slot == taken)
            continue;
        if (!block_free(k, b->offset[slot], sn_round_up(k->bytes[slot], SN_ALIGN)))
            return sn_fail_memory(k->err, sizeof(free_block));
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ results */

static sonde_status list_releases(placer *k)
{
    sn_binding *b = k->b;
    uint32_t n = 0;
    uint8_t *owned = SN_NEW_N(&b->arena, uint8_t, b->n_slots);
    if (!owned)
        return sn_fail_memory(k->err, b->n_slots);
    for (uint32_t i = 0; i < b->n_steps; i++)
        for (uint32_t o = 0; o < b->steps[i].n_out; o++)
            if (sn_wants(&b->steps[i], o) && b->info[i].dynamic) {
                owned[b->steps[i].out[o]] = 1;
                n++;
            }
    b->is_static = n == 0;
    b->release = SN_NEW_N(&b->arena, uint32_t, n);
    b->release_start = SN_NEW_N(&b->arena, uint32_t, b->n_steps + 2);
    if (!b->release || !b->release_start)
        return sn_fail_memory(k->err, n * sizeof *b->release);
    uint32_t at = 0;
    for (uint32_t i = 0; i <= b->n_steps;
         i++) { /* the last bucket: outputs, handed over by the run */
        b->release_start[i] = at;
        for (uint32_t d = k->dead_start[i]; d < k->dead_start[i + 1]; d++)
            if (owned[k->dead[d]])
                b->release[at++] = k->dead[d];
    }
    b->release_start[b->n_steps + 1] = at;
    return SONDE_OK;
}

static void fill_template(placer *k)
{
    sn_binding *b = k->b;
    for (uint32_t s = 0; s < b->n_slots; s++) {
        sn_slot *slot = &b->slots[s];
        if (b->place[s] == SN_PLACE_CONST) {
            const uint32_t root = b->root[s];
            *slot = b->program->consts[root];
            if (slot->kind == SN_KIND_NONE)
                *slot = (sn_slot){.kind = SN_KIND_TENSOR, .t = *b->facts[root].data};
            slot->t.owner = NULL;
            if (root == s)
                continue;
        }
        if (b->place[s] == SN_PLACE_NONE || b->place[s] == SN_PLACE_INPUT)
            continue;
        const sn_fact *f = &b->facts[s];
        slot->kind = SN_KIND_TENSOR;
        slot->t.dtype = sn_fact_stored(f);
        slot->t.layout = f->form.layout;
        slot->t.space = f->form.space;
        slot->t.rank = f->type.rank;
        if (f->type.rank)
            memcpy(slot->t.dims, f->type.dims, (size_t)f->type.rank * sizeof(int64_t));
        slot->t.bytes = k->bytes[s];
        if (b->place[s] == SN_PLACE_ARENA)
            b->offset[s] = b->offset[b->root[s]] + (b->root[s] == s ? 0 : k->within[s]);
    }
}

sonde_status sn_binding_plan_memory(sn_binding *b, sonde_error *err)
{
    uint32_t n = b->n_slots;
    sn_arena scratch;
    sn_arena_init(&scratch, b->arena.alloc);
    placer k = {.b = b, .err = err, .alloc = b->arena.alloc};
    sonde_status st = SONDE_OK;
    b->place = SN_NEW_N(&b->arena, uint8_t, n);
    b->offset = SN_NEW_N(&b->arena, size_t, n);
    b->root = SN_NEW_N(&b->arena, uint32_t, n);
    b->slots = SN_NEW_N(&b->arena, sn_slot, n);
    k.last = SN_NEW_N(&scratch, uint32_t, n);
    k.bytes = SN_NEW_N(&scratch, size_t, n);
    k.dead = SN_NEW_N(&scratch, uint32_t, n);
    k.dead_start = SN_NEW_N(&scratch, uint32_t, b->n_steps + 2);
    k.within = SN_NEW_N(&scratch, size_t, n);
    k.placed = SN_NEW_N(&scratch, bool, n);
    if (!b->place || !b->offset || !b->root || !b->slots || !k.last || !k.bytes || !k.dead ||
        !k.dead_start || !k.within || !k.placed) {
        st = sn_fail_memory(err, n * sizeof *b->slots);
        goto fail;
    }
    SN_TRY_GOTO(st, choose_places(&k));
    SN_TRY_GOTO(st, find_views(&k));
    if (!b->program->unoptimized) {
        drop_views(b);
        find_joins(&k);
    }
    find_lifetimes(&k);
    bucket_dead(&k);
    for (uint32_t i = 0; i < b->n_steps; i++)
        SN_TRY_GOTO(st, place_step(&k, i));
    b->arena_bytes = k.end;
    for (uint32_t s = 0; s < b->n_slots; s++)
        if (b->place[s] == SN_PLACE_OUTPUT &&
            !sn_size_add(b->output_bytes, k.bytes[s], &b->output_bytes))
            b->output_bytes = SIZE_MAX;
    SN_TRY_GOTO(st, list_releases(&k));
    fill_template(&k);
fail:
    sn_vec_free(&k.free, k.alloc);
    sn_arena_free(&scratch);
    return st;
}
