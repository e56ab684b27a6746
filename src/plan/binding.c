/* SPDX-License-Identifier: Apache-2.0 */
/* Program ► binding: concrete facts for one signature of input shapes, then kernel parameters for
 * every step, then places in memory. Nothing of the program changes and no lock is held: several
 * threads may make bindings of one program at once.
 *
 * Facts are inferred anew from the real input shapes and never taken from what a file declares
 * about inner values: a file that lies about a shape can then at worst make a step dynamic. */
#include "plan/binding.h"

#include <string.h>

#include "compute/packs.h"
#include "ops/framework/eval.h"
#include "plan/tuning.h"

/* ------------------------------------------------------------------ inputs */

static sonde_status input_mismatch(const sn_program *p, const sn_value *v, const sn_slot *got,
                                   sonde_error *err)
{
    char want[256], have[256];
    sn_type type = {
        .kind = got->kind, .dtype = got->t.dtype, .rank = got->t.rank, .dims = got->t.dims};
    if (got->kind != SN_KIND_TENSOR)
        type = (sn_type){.kind = got->kind};
    sn_type_text(&v->fact.type, p->graph->symbols.data, want, sizeof want);
    sn_type_text(&type, NULL, have, sizeof have);
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "input '%s' should be %s but is %s", v->name, want,
                   have);
}

/* A symbol is one number wherever it stands: passes may have relied on it. */
static sonde_status bind_symbol(const sn_program *p, int64_t *symbols, sn_dim dim, int64_t actual,
                                const sn_value *v, sonde_error *err)
{
    uint32_t id = sn_dim_symbol_id(dim);
    if (!id || id > p->graph->symbols.n)
        return SONDE_OK;
    if (symbols[id - 1] < 0)
        symbols[id - 1] = actual;
    if (symbols[id - 1] == actual)
        return SONDE_OK;
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "input '%s' has dimension '%s' = %lld, but another input has %lld", v->name,
                   p->graph->symbols.data[id - 1], (long long)actual, (long long)symbols[id - 1]);
}

static sonde_status bind_input(const sn_program *p, sn_binding *b, const sn_value *v,
                               const sn_slot *in, int64_t *symbols, sonde_error *err)
{
    const sn_type *want = &v->fact.type;
    sn_fact *f = &b->facts[v->id];
    if (want->kind != SN_KIND_NONE && in->kind != want->kind)
        return input_mismatch(p, v, in, err);
    if (in->kind != SN_KIND_TENSOR) {
        f->type = want->kind ? *want : (sn_type){.kind = in->kind};
        return SONDE_OK;
    }
    const sn_tensor *t = &in->t;
    if (want->kind == SN_KIND_TENSOR) {
        bool typed = want->dtype != SONDE_DTYPE_UNDEFINED;
        if ((typed && want->dtype != t->dtype) || (want->rank >= 0 && want->rank != t->rank))
            return input_mismatch(p, v, in, err);
        for (int d = 0; d < want->rank; d++) {
            if (!sn_dim_known(want->dims[d]))
                SN_TRY(bind_symbol(p, symbols, want->dims[d], t->dims[d], v, err));
            else if (want->dims[d] != t->dims[d])
                return input_mismatch(p, v, in, err);
        }
    }
    sn_dim *dims = SN_NEW_N(&b->arena, sn_dim, t->rank);
    if (!dims)
        return sn_fail_memory(err, sizeof *dims * SN_MAX_RANK);
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    f->type = (sn_type){.kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = dims};
    return SONDE_OK;
}

/* ------------------------------------------------------------------ steps */

/* A step whose shapes are known only now: infer, allocate, bind and run in one go. */
static sonde_status run_dynamic(const sn_step *s, sn_frame *f)
{
    sn_arena scratch;
    sn_arena_init(&scratch, f->alloc);
    sonde_status st = sn_eval_step(s, f, &scratch);
    sn_arena_free(&scratch);
    return st;
}

/* Nothing is known of a value that an operator allocates while it runs, but its kind and types. */
static void forget_shape(sn_fact *f)
{
    f->type.rank = -1;
    f->type.dims = NULL;
    f->ints = NULL;
    f->data = NULL;
}

static bool concrete(const sn_fact *f)
{
    return f->type.kind == SN_KIND_TENSOR && sn_type_is_concrete(&f->type);
}

static uint64_t fact_bytes(const sn_fact *f)
{
    int64_t n = 0;
    if (!f || !concrete(f) || !sn_type_count(&f->type, &n))
        return 0;
    const sn_pack_format *packed = sn_pack_get(f->pack);
    return (uint64_t)n * sn_dtype_bytes(packed ? packed->dtype : sn_fact_stored(f));
}

/* What an earlier input holds already is read once: queries, keys and values of one projection. */
static bool is_repeated(const sn_step *s, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (s->in[k] == s->in[i])
            return true;
    return false;
}

/* Loops over numbers that no driver speaks for: bytes and 16-bit floats become f32 on the way. */
static sn_arithmetic arithmetic_of(const sn_bind *k)
{
    if (k->flops == 0 || k->arithmetic != SN_ARITH_NONE)
        return k->flops ? k->arithmetic : SN_ARITH_NONE;
    const sn_fact *f = k->n_in > 0 && k->in[0] ? k->in[0] : &k->out[0];
    const sn_dtype t = f->type.dtype;
    const bool own = t == SONDE_DTYPE_F64 || (sn_dtype_is_int(t) && sn_dtype_bytes(t) > 1);
    return own ? sn_arithmetic_of(t, false) : SN_ARITH_F32;
}

/* Kernel parameters, in the variant that was tuned if there is one. */
static sonde_status choose_kernel(sn_binding *b, const sn_step *s, sn_bind *k, bool *unmeasured)
{
    const sn_program *p = b->program;
    const sn_bind question = *k;
    sn_choices choices = {0};
    unsigned variant = 0;
    k->choices = p->tuning ? &choices : NULL;
    SN_TRY(sn_op_bind_step(s, k));
    k->choices = NULL;
    if (choices.n < 2)
        return SONDE_OK;
    *unmeasured =
        !sn_tuning_find(p->tuning, &choices, b->threads, &variant) && sn_tuning_has_room(p->tuning);
    b->n_unmeasured += *unmeasured;
    b->n_tuned += variant != 0;
    if (variant == 0)
        return SONDE_OK;
    *k = question;
    k->variant = variant;
    return sn_op_bind_step(s, k);
}

/* *folded: the step need not run. */
static sonde_status bind_step(sn_binding *b, sn_step *s, sn_step_info *info, const sn_fact **in,
                              sn_fact *out, bool *folded, sonde_error *err)
{
    const sn_program *p = b->program;
    uint64_t t0 = sn_ticks();
    bool known = true;
    for (uint32_t i = 0; i < s->n_in; i++) {
        in[i] = s->in[i] == SN_NO_SLOT ? NULL : &b->facts[s->in[i]];
        known &= !in[i] || concrete(in[i]);
    }
    memset(out, 0, s->n_out * sizeof *out);
    /* Operators on whole slots allocate what they return, except views (Identity) of known tensors.
     */
    bool whole = (s->op->flags & (SN_OP_CONTROL | SN_OP_NONTENSOR)) != 0 &&
                 !((s->op->flags & SN_OP_VIEW) && known);
    bool allocates = whole || (s->op->flags & SN_OP_DATA_DEPENDENT);
    if (!(s->op->flags & SN_OP_CONTROL)) {
        sn_infer c = {.node = s->node,
                      .params = s->params,
                      .in = in,
                      .out = out,
                      .n_in = s->n_in,
                      .n_out = s->n_out,
                      .arena = &b->arena,
                      .err = err};
        SN_TRY(s->op->infer(&c));
    }
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!sn_wants(s, o))
            continue;
        if (s->op->flags & SN_OP_CONTROL)
            out[o].type = s->node->out[o]->fact.type; /* kind and types; the shape goes below */
        if (allocates)
            forget_shape(&out[o]);
        out[o].form = s->node->out[o]->fact.form;
        /* What is bound can exist: operators multiply dims without looking. */
        int64_t count;
        if (concrete(&out[o]) && !sn_type_count(&out[o].type, &count))
            return sn_fail(err, SONDE_LIMIT, "value '%s' is too large", s->node->out[o]->name);
        /* Strings are always made while running: their size is in their text. */
        known &= allocates || (concrete(&out[o]) && out[o].type.dtype != SONDE_DTYPE_STRING);
        b->facts[s->out[o]] = out[o];
    }
    SN_TRY(sn_binding_fold_step(b, s, out, folded, err));
    if (*folded)
        return SONDE_OK;
    info->kernel = "";
    if (whole) {
        s->run = s->op->run;
        info->dynamic = true;
    } else if (!known) {
        for (uint32_t o = 0; o < s->n_out; o++)
            if (sn_wants(s, o))
                forget_shape(&b->facts[s->out[o]]);
        s->run = run_dynamic;
        info->dynamic = true;
    } else {
        sn_bind k = {.node = s->node,
                     .params = s->params,
                     .in = in,
                     .out = out,
                     .n_in = s->n_in,
                     .n_out = s->n_out,
                     .ctx = p->ctx,
                     .cpu_flags = p->ctx->cpu.flags,
                     .precision = p->precision,
                     .threads = b->threads,
                     .arena = &b->arena,
                     .err = err,
                     .run = s->op->run,
                     .kernel = ""};
        SN_TRY(choose_kernel(b, s, &k, &info->unmeasured));
        s->run = k.run;
        s->bound = k.bound;
        info->kernel = k.kernel;
        info->flops = k.flops;
        info->bytes = k.bytes;
        info->arithmetic = arithmetic_of(&k);
        info->workspace_bytes = k.workspace.bytes;
        info->dynamic = allocates;
        info->view = k.view;
        info->joins = k.joins;
        info->overwrites = k.overwrites;
        if (k.workspace.bytes > b->workspace_bytes)
            b->workspace_bytes = k.workspace.bytes;
    }
    if (!info->bytes) {
        for (uint32_t i = 0; i < s->n_in; i++)
            info->bytes += is_repeated(s, i) ? 0 : fact_bytes(in[i]);
        for (uint32_t o = 0; o < s->n_out; o++)
            info->bytes += fact_bytes(&out[o]);
    }
    info->bind_ticks = sn_ticks() - t0;
    return SONDE_OK;
}

static sonde_status bind_steps(sn_binding *b, sonde_error *err)
{
    const sn_program *p = b->program;
    uint32_t max_in = 0, max_out = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        max_in = p->steps[i].n_in > max_in ? p->steps[i].n_in : max_in;
        max_out = p->steps[i].n_out > max_out ? p->steps[i].n_out : max_out;
    }
    const sn_fact **in = SN_NEW_N(&b->arena, const sn_fact *, max_in);
    b->steps = SN_NEW_N(&b->arena, sn_step, p->n_steps);
    b->info = SN_NEW_N(&b->arena, sn_step_info, p->n_steps);
    b->skipped = SN_NEW_N(&b->arena, const sn_node *, p->n_steps);
    if (!in || !b->steps || !b->info || !b->skipped)
        return sn_fail_memory(err, p->n_steps * sizeof *b->steps);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        /* Operators may keep a pointer to their output facts: each step has its own. */
        sn_fact *out = SN_NEW_N(&b->arena, sn_fact, p->steps[i].n_out);
        if (!out)
            return sn_fail_memory(err, max_out * sizeof *out);
        bool folded = false;
        sn_step *s = &b->steps[b->n_steps];
        *s = p->steps[i];
        s->index = b->n_steps;
        SN_TRY(bind_step(b, s, &b->info[b->n_steps], in, out, &folded, err));
        b->n_steps += !folded;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ making */

static void const_facts(sn_binding *b)
{
    const sn_program *p = b->program;
    for (size_t i = 0; i < p->graph->values.n; i++) {
        const sn_value *v = p->graph->values.data[i];
        if (p->consts[i].kind == SN_KIND_TENSOR)
            b->facts[i] = v->fact;
    }
    /* Packed slots stand behind the values; they have the dims of the weight, but no readable data.
     */
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t k = 0; k < p->steps[i].n_in; k++) {
            uint32_t slot = p->steps[i].in[k];
            if (slot == SN_NO_SLOT || slot < p->graph->values.n)
                continue;
            b->facts[slot] = p->steps[i].node->in[k].value->fact;
            b->facts[slot].data = NULL;
            b->facts[slot].ints = NULL;
            b->facts[slot].pack = p->consts[slot].t.pack;
            b->facts[slot].pack_arg = p->consts[slot].t.pack_arg;
        }
}

static sonde_status make(sn_binding *b, const sn_slot *const *in, sonde_error *err)
{
    sn_program *p = b->program;
    b->n_slots = p->n_slots;
    b->inputs = p->inputs;
    b->outputs = p->outputs;
    b->facts = SN_NEW_N(&b->arena, sn_fact, p->n_slots);
    int64_t *symbols = SN_NEW_N(&b->arena, int64_t, p->graph->symbols.n);
    if (!b->facts || !symbols)
        return sn_fail_memory(err, p->n_slots * sizeof *b->facts);
    for (size_t i = 0; i < p->graph->symbols.n; i++)
        symbols[i] = -1;
    const_facts(b);
    for (uint32_t i = 0; i < p->n_inputs; i++)
        SN_TRY(bind_input(p, b, p->graph->inputs.data[i], in[i], symbols, err));
    SN_TRY(bind_steps(b, err));
    return sn_binding_plan_memory(b, err);
}

static void binding_free(sn_binding *b)
{
    if (b->frames)
        b->free_frames(b);
    sn_allocator *alloc = b->arena.alloc;
    sn_arena_free(&b->arena);
    sn_fork_lock_destroy(&b->lock);
    sn_free(alloc, b, sizeof *b);
}

sn_binding *sn_binding_ref(sn_binding *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void sn_binding_unref(sn_binding *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        binding_free(b);
}

sonde_status sn_binding_make(sn_program *p, const sn_slot *const *in, int threads,
                             const sn_signature *signature, sn_binding **out, sonde_error *err)
{
    sn_context *ctx = p->ctx;
    sn_binding *b = sn_alloc_zero(ctx->alloc, sizeof *b);
    if (!b)
        return sn_fail_memory(err, sizeof *b);
    atomic_init(&b->refs, 1);
    sn_fork_lock_init(&b->lock);
    sn_arena_init(&b->arena, ctx->alloc);
    b->program = p;
    b->id = atomic_fetch_add(&ctx->trace->next_run, 1) + 1;
    b->threads = threads;
    uint64_t t = sn_span_begin(ctx->trace);
    int64_t *words = SN_NEW_N(&b->arena, int64_t, signature->n);
    b->signature = (sn_signature){words, signature->n, signature->hash};
    sonde_status st = SONDE_OK;
    if (!words) {
        st = sn_fail_memory(err, signature->n * sizeof *words);
    } else {
        memcpy(words, signature->words, signature->n * sizeof *words);
        st = make(b, in, err);
    }
    sn_span_end(ctx->trace, t, "bind", NULL);
    if (st) {
        binding_free(b);
        return st;
    }
    b->tuned = b->n_unmeasured ? SN_TUNE_WANTED : SN_TUNED;
    *out = b;
    return SONDE_OK;
}
