/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring one step's variants. What a step finds in a real run is imitated: its activations lie
 * in the caches, as the step before has just written them, its weights do not, as the whole model
 * has passed since they were read. Variants take turns, the least time of each counts, slow ones
 * drop out early. The one that looks best then meets the cost model's in pairs of runs and has to
 * win most of them by some percent: on a busy machine nothing is chosen rather than noise. */
#include <string.h>
#include <time.h>

#include "plan/tuning.h"

enum {
    MAX_CANDIDATES = 64,
    ROUNDS = 5,
    MIN_ROUNDS = 2,                 /* whatever they take */
    BUDGET_NS = 1000 * 1000 * 1000, /* of one step's rounds, about */
    PAIRS = 16,
    PAIRS_TO_WIN = 13,
};
static const double keep_within = 1.2; /* of the best time so far: stays for the next round */
static const double must_win_by = 1.03;

typedef struct candidate {
    unsigned variant;
    uint64_t cut;
    sn_bind k;
    double best; /* ns */
} candidate;

typedef struct trial {
    sn_arena arena; /* the candidates' plans */
    sn_allocator *alloc;
    sn_step step; /* on slots of its own */
    sn_frame frame;
    sn_slot *slots;
    uint32_t *numbers; /* of the slots */
    size_t n_slots, n_in;
    sn_workspace carved; /* activations, workspace, and what pushes weights out of the caches */
    sn_piece *pieces;    /* of the slots that have memory here */
    sn_buffer *memory;
    size_t workspace_bytes;
    uint8_t *junk;
    size_t junk_bytes; /* of one thread */
    int threads;
    candidate all[MAX_CANDIDATES];
    size_t n;
    sonde_error *err;
} trial;

/* ------------------------------------------------------------------ setting up */

/* What `k` asked, for another variant, with nothing answered yet. */
static sn_bind ask(const sn_step *s, const sn_bind *k, unsigned variant)
{
    return (sn_bind){.node = k->node,
                     .params = k->params,
                     .in = k->in,
                     .out = k->out,
                     .n_in = k->n_in,
                     .n_out = k->n_out,
                     .ctx = k->ctx,
                     .cpu_flags = k->cpu_flags,
                     .threads = k->threads,
                     .variant = variant,
                     .arena = k->arena,
                     .err = k->err,
                     .run = s->op->run,
                     .kernel = ""};
}

static sonde_status add_candidate(trial *t, const sn_step *s, const sn_bind *k, unsigned variant)
{
    sn_choices choices = {0};
    candidate *c = &t->all[t->n];
    *c = (candidate){.variant = variant, .k = ask(s, k, variant)};
    c->k.arena = &t->arena;
    c->k.choices = &choices;
    SN_TRY(sn_op_bind_step(s, &c->k));
    c->cut = choices.cut;
    for (size_t i = 0; i < t->n; i++)
        if (t->all[i].cut == c->cut)
            return SONDE_OK;
    t->n++;
    return SONDE_OK;
}

/* A tensor of what the fact says, without memory yet; *bytes: how much it takes. */
static bool describe(const sn_fact *f, sn_slot *slot, size_t *bytes)
{
    sn_tensor *t = &slot->t;
    if (!sn_tensor_bytes(f->type.dtype, f->type.dims, f->type.rank, f->block, bytes))
        return false;
    *t = (sn_tensor){
        .dtype = f->type.dtype, .block = f->block, .rank = f->type.rank, .bytes = *bytes};
    if (t->rank)
        memcpy(t->dims, f->type.dims, (size_t)t->rank * sizeof *t->dims);
    slot->kind = SN_KIND_TENSOR;
    return true;
}

/* Numbers of both signs near 1, from which no products become subnormal. */
static void fill(sn_tensor *t)
{
    float *x = t->data;
    if (t->dtype != SONDE_DTYPE_F32) {
        memset(t->data, 0, t->bytes);
        return;
    }
    for (size_t i = 0; i < t->bytes / sizeof *x; i++)
        x[i] = (float)((i * 2654435761u >> 16 & 255) + 1) / 128 - 1;
}

/* Slots 0 … n-1: inputs, then outputs. Constants are the step's own, the rest gets pieces. */
static bool set_slots(trial *t, const sn_step *s, const sn_bind *k, const sn_slot *consts)
{
    for (uint32_t i = 0; i < s->n_in + s->n_out; i++) {
        const bool input = i < s->n_in;
        const uint32_t from = input ? s->in[i] : s->out[i - s->n_in];
        const sn_fact *f = input ? k->in[i] : &k->out[i - s->n_in];
        sn_slot *slot = &t->slots[i];
        size_t bytes;
        t->numbers[i] = from == SN_NO_SLOT ? SN_NO_SLOT : i;
        if (from == SN_NO_SLOT)
            continue;
        if (input && consts[from].kind == SN_KIND_TENSOR) {
            *slot = consts[from];
        } else if (input && f->data) {
            *slot = (sn_slot){.kind = SN_KIND_TENSOR, .t = *f->data};
        } else if (describe(f, slot, &bytes)) {
            t->pieces[i] = sn_carve_bytes(&t->carved, bytes);
        } else {
            return false;
        }
    }
    return true;
}

/* One block of memory for everything; beyond what can be carved the step would not run either. */
static sonde_status set_memory(trial *t)
{
    size_t junk_bytes;
    for (size_t i = 0; i < t->n; i++)
        if (t->all[i].k.workspace_bytes > t->workspace_bytes)
            t->workspace_bytes = t->all[i].k.workspace_bytes;
    if (!sn_size_mul(t->junk_bytes, (size_t)t->threads, &junk_bytes))
        junk_bytes = SIZE_MAX;
    const sn_piece workspace = sn_carve_bytes(&t->carved, t->workspace_bytes);
    const sn_piece junk = sn_carve_bytes(&t->carved, junk_bytes);
    if (t->carved.overflow)
        return sn_fail(t->err, SONDE_LIMIT, "a step is too large to be tuned");
    t->memory = sn_buffer_new(t->alloc, t->carved.bytes);
    if (!t->memory)
        return sn_fail_memory(t->err, t->carved.bytes);
    uint8_t *memory = t->memory->data;
    for (size_t i = 0; i < t->n_slots; i++) {
        sn_tensor *x = &t->slots[i].t;
        if (t->numbers[i] == SN_NO_SLOT || x->data)
            continue;
        x->data = memory + t->pieces[i].at;
        fill(x);
    }
    t->frame.workspace = memory + workspace.at;
    sn_workspace_close(t->frame.workspace, t->workspace_bytes);
    t->junk = memory + junk.at;
    memset(t->junk, 1, junk_bytes);
    return SONDE_OK;
}

static sonde_status set_up(trial *t, const sn_step *s, const sn_bind *k, const sn_slot *consts,
                           unsigned n_variants)
{
    t->n_in = s->n_in;
    t->n_slots = (size_t)s->n_in + s->n_out;
    t->slots = SN_NEW_N(&t->arena, sn_slot, t->n_slots);
    t->numbers = SN_NEW_N(&t->arena, uint32_t, t->n_slots);
    t->pieces = SN_NEW_N(&t->arena, sn_piece, t->n_slots);
    if (!t->slots || !t->numbers || !t->pieces)
        return sn_fail_memory(t->err, t->n_slots * sizeof *t->slots);
    for (unsigned v = 0; v < n_variants && t->n < MAX_CANDIDATES; v++)
        SN_TRY(add_candidate(t, s, k, v));
    if (t->n < 2)
        return SONDE_OK;
    if (!set_slots(t, s, k, consts))
        return sn_fail(t->err, SONDE_LIMIT, "a step is too large to be tuned");
    t->step = *s;
    t->step.in = t->numbers;
    t->step.out = t->numbers + s->n_in;
    t->frame.slots = t->slots;
    return set_memory(t);
}

/* ------------------------------------------------------------------ measuring */

/* One thread's part in making the caches look as they do in the middle of a model. */
static void prepare_caches(void *arg, size_t task, int worker)
{
    const trial *t = arg;
    const volatile uint8_t *junk = t->junk + task * t->junk_bytes;
    (void)worker;
    for (size_t i = 0; i < t->junk_bytes; i += 64)
        (void)junk[i];
    for (size_t i = 0; i < t->n_in; i++) {
        const sn_tensor *x = &t->slots[i].t;
        const bool own = t->numbers[i] != SN_NO_SLOT && (uint8_t *)x->data < t->junk &&
                         (uint8_t *)x->data >= (uint8_t *)t->memory->data;
        const size_t share = x->bytes / (size_t)t->threads;
        const volatile uint8_t *at = own ? (const uint8_t *)x->data + task * share : NULL;
        for (size_t k = 0; own && k < share; k += 64)
            (void)at[k];
    }
}

/* One thread's work is counted by its own time, which others on its core do not add to. */
static double clock_ns(const trial *t)
{
    struct timespec now;
    if (t->threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return (double)sn_now_ns();
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static sonde_status time_once(trial *t, const candidate *c, double *ns)
{
    sn_pool_run(t->frame.pool, (size_t)t->threads, prepare_caches, t);
    t->step.run = c->k.run;
    t->step.bound = c->k.bound;
    const double start = clock_ns(t);
    SN_TRY(t->step.run(&t->step, &t->frame));
    *ns = clock_ns(t) - start;
    return SONDE_OK;
}

/* The candidate with the least time. All are run, in turns, while they keep up. */
static sonde_status race(trial *t, size_t *winner)
{
    const uint64_t start = sn_now_ns();
    double best = 0;
    *winner = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round >= MIN_ROUNDS && sn_now_ns() - start > BUDGET_NS)
            break;
        for (size_t i = 0; i < t->n; i++) {
            candidate *c = &t->all[i];
            if (round > 0 && c->best > best * keep_within)
                continue;
            double ns;
            SN_TRY(time_once(t, c, &ns));
            if (c->best == 0 || ns < c->best)
                c->best = ns;
        }
        for (size_t i = 0; i < t->n; i++)
            if (best == 0 || t->all[i].best < best) {
                best = t->all[i].best;
                *winner = i;
            }
    }
    return SONDE_OK;
}

/* Whether it beats variant 0 in most of many pairs of runs. */
static sonde_status duel(trial *t, size_t winner, bool *wins)
{
    const candidate *pair[] = {&t->all[0], &t->all[winner]};
    int won = 0;
    for (int i = 0; i < PAIRS; i++) {
        double ns[2];
        SN_TRY(time_once(t, pair[i % 2], &ns[i % 2]));
        SN_TRY(time_once(t, pair[1 - i % 2], &ns[1 - i % 2]));
        won += ns[1] * must_win_by <= ns[0];
    }
    *wins = won >= PAIRS_TO_WIN;
    return SONDE_OK;
}

static sonde_status measure(const sn_step *s, const sn_bind *k, const sn_slot *consts,
                            sn_pool *pool, unsigned n_variants, unsigned *variant)
{
    trial *t = sn_alloc_zero(k->ctx->alloc, sizeof *t);
    if (!t)
        return sn_fail_memory(k->err, sizeof *t);
    sn_arena_init(&t->arena, k->ctx->alloc);
    t->alloc = k->ctx->alloc;
    t->threads = k->threads > 0 ? k->threads : 1;
    t->junk_bytes = 2 * k->ctx->cpu.l2_bytes;
    t->err = k->err;
    t->frame = (sn_frame){.ctx = k->ctx, .pool = pool, .alloc = t->alloc, .err = k->err};
    sonde_status st = set_up(t, s, k, consts, n_variants);
    size_t winner = 0;
    bool wins = false;
    if (!st && t->n > 1)
        st = race(t, &winner);
    if (!st && winner > 0)
        st = duel(t, winner, &wins);
    *variant = wins ? t->all[winner].variant : 0;
    if (t->memory)
        sn_workspace_open(t->frame.workspace, t->workspace_bytes);
    sn_buffer_unref(t->memory);
    sn_arena_free(&t->arena);
    sn_free(k->ctx->alloc, t, sizeof *t);
    return st;
}

sonde_status sn_tune_step(sn_tuning *t, const sn_step *s, sn_bind *k, const sn_slot *consts,
                          sn_pool *pool)
{
    const sn_choices choices = *k->choices;
    unsigned variant = 0;
    if (!sn_tuning_find(t, &choices, k->threads, &variant)) {
        SN_TRY(measure(s, k, consts, pool, choices.n, &variant));
        SN_TRY(sn_tuning_put(t, &choices, k->threads, variant, k->err));
    }
    if (variant == 0)
        return SONDE_OK;
    *k = ask(s, k, variant);
    return sn_op_bind_step(s, k);
}
