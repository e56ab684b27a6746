/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring the variants of a binding's steps. What a step finds in a real run is imitated: its
 * activations lie in the caches, as the step before has just written them, its weights do not, as
 * the whole model has passed since they were read. Variants take turns, the least time of each
 * counts, slow ones drop out early. The one that looks best then meets the cost model's in pairs of
 * runs and has to win most of them by some percent: on a busy machine nothing is chosen rather than
 * noise. Other runs go on meanwhile. While one of them has the pool, a step would run on a single
 * thread, so each measurement begins when the pool is free, and counts if that lasted. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "plan/tuning.h"

enum {
    MAX_CANDIDATES = 64,
    ROUNDS = 5,
    MIN_ROUNDS = 2,                  /* whatever they take */
    BUDGET_NS = 1000 * 1000 * 1000,  /* of one step's rounds, about */
    PATIENCE_NS = 100 * 1000 * 1000, /* for the pool, before each measurement */
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
    const sn_binding *b;
    const sn_step *s;   /* as it stands in the binding */
    sn_choices choices; /* of variant 0 */
    sn_arena arena;     /* the candidates' plans */
    sn_allocator *alloc;
    const sn_fact **in;
    sn_fact *out;
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
    const sn_stop *stop;
    bool disturbed; /* others would not leave the pool: nothing is known */
    sonde_error *err;
} trial;

/* ------------------------------------------------------------------ setting up */

/* What was inferred when the step was bound. */
static sonde_status set_facts(trial *t)
{
    const sn_step *s = t->s;
    t->in = SN_NEW_N(&t->arena, const sn_fact *, s->n_in);
    t->out = SN_NEW_N(&t->arena, sn_fact, s->n_out);
    if (!t->in || !t->out)
        return sn_fail_memory(t->err, s->n_out * sizeof *t->out);
    for (uint32_t i = 0; i < s->n_in; i++)
        t->in[i] = sn_has(s, i) ? &t->b->facts[s->in[i]] : NULL;
    for (uint32_t o = 0; o < s->n_out; o++)
        if (sn_wants(s, o))
            t->out[o] = t->b->facts[s->out[o]];
    return SONDE_OK;
}

static sonde_status bind_variant(trial *t, unsigned variant, sn_bind *k, sn_choices *choices)
{
    const sn_step *s = t->s;
    const sn_context *ctx = t->b->program->ctx;
    *choices = (sn_choices){0};
    *k = (sn_bind){.node = s->node,
                   .params = s->params,
                   .in = t->in,
                   .out = t->out,
                   .n_in = s->n_in,
                   .n_out = s->n_out,
                   .ctx = ctx,
                   .cpu_flags = ctx->cpu.flags,
                   .precision = t->b->program->precision,
                   .threads = t->b->threads,
                   .variant = variant,
                   .choices = choices,
                   .arena = &t->arena,
                   .err = t->err,
                   .run = s->op->run,
                   .kernel = ""};
    return sn_op_bind_step(s, k);
}

static sonde_status add_candidate(trial *t, unsigned variant)
{
    sn_choices choices;
    candidate *c = &t->all[t->n];
    *c = (candidate){.variant = variant};
    SN_TRY(bind_variant(t, variant, &c->k, &choices));
    c->k.choices = NULL;
    c->cut = choices.cut;
    if (variant == 0)
        t->choices = choices;
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
    if (!sn_fact_bytes(f, bytes))
        return false;
    *t = (sn_tensor){.dtype = sn_fact_stored(f),
                     .layout = f->form.layout,
                     .space = f->form.space,
                     .rank = f->type.rank,
                     .bytes = *bytes};
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
static bool set_slots(trial *t)
{
    const sn_step *s = t->s;
    const sn_slot *consts = t->b->program->consts;
    for (uint32_t i = 0; i < s->n_in + s->n_out; i++) {
        const bool input = i < s->n_in;
        const uint32_t from = input ? s->in[i] : s->out[i - s->n_in];
        const sn_fact *f = input ? t->in[i] : &t->out[i - s->n_in];
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
        if (t->all[i].k.workspace.bytes > t->workspace_bytes)
            t->workspace_bytes = t->all[i].k.workspace.bytes;
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

static sonde_status set_up(trial *t)
{
    const sn_step *s = t->s;
    t->n_in = s->n_in;
    t->n_slots = (size_t)s->n_in + s->n_out;
    t->slots = SN_NEW_N(&t->arena, sn_slot, t->n_slots);
    t->numbers = SN_NEW_N(&t->arena, uint32_t, t->n_slots);
    t->pieces = SN_NEW_N(&t->arena, sn_piece, t->n_slots);
    if (!t->slots || !t->numbers || !t->pieces)
        return sn_fail_memory(t->err, t->n_slots * sizeof *t->slots);
    for (unsigned v = 1; v < t->choices.n && t->n < MAX_CANDIDATES; v++)
        SN_TRY(add_candidate(t, v));
    if (t->n < 2)
        return SONDE_OK;
    if (!set_slots(t))
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

/* Until nobody else has the pool; if that takes too long since `start` the trial is disturbed. */
static sonde_status wait_for_pool(trial *t, uint64_t start)
{
    for (;;) {
        if (sn_stop_wanted(t->stop))
            return sn_stop_error(t->err);
        if (t->threads == 1 || !sn_pool_is_busy(t->frame.pool))
            return SONDE_OK;
        if (sn_now_ns() - start > PATIENCE_NS) {
            t->disturbed = true;
            return SONDE_OK;
        }
        sched_yield();
    }
}

static sonde_status time_run(trial *t, const candidate *c, double *ns)
{
    sn_pool_run(t->frame.pool, (size_t)t->threads, prepare_caches, t);
    t->step.run = c->k.run;
    t->step.bound = c->k.bound;
    const double start = clock_ns(t);
    SN_TRY(t->step.run(&t->step, &t->frame));
    *ns = clock_ns(t) - start;
    return SONDE_OK;
}

/* Others may take the pool between two of the step's regions, too: such a run does not count and is
 * made again. Nothing is measured once the trial is disturbed: callers look at that. */
static sonde_status time_once(trial *t, const candidate *c, double *ns)
{
    const uint64_t start = sn_now_ns();
    bool counts = false;
    *ns = 0;
    while (!counts) {
        SN_TRY(wait_for_pool(t, start));
        if (t->disturbed)
            return SONDE_OK;
        const uint64_t before = sn_pool_turned_away();
        SN_TRY(time_run(t, c, ns));
        counts = sn_pool_turned_away() == before || t->threads == 1;
        t->disturbed = !counts && sn_now_ns() - start > PATIENCE_NS;
    }
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
            if (t->disturbed)
                return SONDE_OK;
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
    for (int i = 0; i < PAIRS && !t->disturbed; i++) {
        double ns[2];
        SN_TRY(time_once(t, pair[i % 2], &ns[i % 2]));
        SN_TRY(time_once(t, pair[1 - i % 2], &ns[1 - i % 2]));
        won += ns[1] * must_win_by <= ns[0];
    }
    *wins = won >= PAIRS_TO_WIN;
    return SONDE_OK;
}

static sonde_status measure(trial *t, unsigned *variant)
{
    size_t winner = 0;
    bool wins = false;
    SN_TRY(set_up(t));
    if (t->n > 1)
        SN_TRY(race(t, &winner));
    if (winner > 0 && !t->disturbed)
        SN_TRY(duel(t, winner, &wins));
    *variant = wins && !t->disturbed ? t->all[winner].variant : 0;
    return SONDE_OK;
}

/* The fastest variant of step t->s: another step like it may have been measured meanwhile. */
static sonde_status find_or_measure(trial *t, unsigned *variant)
{
    sn_tuning *tuning = t->b->program->tuning;
    SN_TRY(set_facts(t));
    SN_TRY(add_candidate(t, 0));
    if (sn_tuning_find(tuning, &t->choices, t->b->threads, variant))
        return SONDE_OK;
    SN_TRY(measure(t, variant));
    if (t->disturbed)
        return SONDE_OK;
    return sn_tuning_put(tuning, &t->choices, t->b->threads, *variant, t->err);
}

static sonde_status tune_step(const sn_binding *b, const sn_step *s, sn_pool *pool,
                              const sn_stop *stop, bool *better, sonde_error *err)
{
    const sn_context *ctx = b->program->ctx;
    unsigned variant = 0;
    trial *t = sn_alloc_zero(ctx->alloc, sizeof *t);
    if (!t)
        return sn_fail_memory(err, sizeof *t);
    t->b = b;
    t->s = s;
    t->alloc = ctx->alloc;
    t->threads = b->threads > 0 ? b->threads : 1;
    t->junk_bytes = 2 * ctx->cpu.l2_bytes;
    t->stop = stop;
    t->err = err;
    t->frame = (sn_frame){.ctx = ctx, .pool = pool, .alloc = t->alloc, .err = err};
    sn_arena_init(&t->arena, ctx->alloc);
    const sonde_status st = find_or_measure(t, &variant);
    *better |= !st && variant != 0;
    if (t->memory)
        sn_workspace_open(t->frame.workspace, t->workspace_bytes);
    sn_buffer_unref(t->memory);
    sn_arena_free(&t->arena);
    sn_free(ctx->alloc, t, sizeof *t);
    return st;
}

sonde_status sn_tune_binding(const sn_binding *b, sn_pool *pool, const sn_stop *stop, bool *better,
                             sonde_error *err)
{
    sonde_status st = SONDE_OK;
    *better = false;
    for (uint32_t i = 0; i < b->n_steps && !st; i++) {
        if (!b->info[i].unmeasured)
            continue;
        if (sn_stop_wanted(stop))
            st = sn_stop_error(err);
        else
            st = tune_step(b, &b->steps[i], pool, stop, better, err);
    }
    return st;
}
