/* SPDX-License-Identifier: Apache-2.0 */
/* Events ► spans and counters, linked: a step to its run, a body's run to the control step that
 * called it, a worker's slice to the step it worked for. */
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/traceparent.h"
#include "records/builder.h"

static int by_step(const void *a, const void *b)
{
    const sn_step_key *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* One span over everything a model did: the parent of its iterations, but for those in a record. */
bool sn_builder_model_span(const sn_profile_builder *b, sn_prof_span *span)
{
    if (!b->first_ticks)
        return false;
    const uint64_t start = sn_builder_ns(b, b->first_ticks);
    *span = (sn_prof_span){.id = 1,
                           .cat = SN_CAT_MODEL,
                           .thread = b->model_thread,
                           .start_ns = start,
                           .dur_ns = sn_builder_ns(b, b->last_ticks) - start,
                           .step = UINT32_MAX,
                           .name = b->p->model_name,
                           .args = ""};
    return true;
}

/* The operator a slice is a share of: the latest on the calling thread that began before it and
 * ended after it. NULL: none, as while weights are packed. */
static const sn_prof_span *operator_of(const sn_profile_builder *b, const sn_event *slice)
{
    const uint64_t start_ns = sn_builder_ns(b, slice->rec.t0);
    const size_t most = 64 * b->p->threads_seen.n; /* every thread may have begun others since */
    for (size_t i = b->operators.n, look = most; i > 0 && look > 0; i--, look--) {
        const sn_prof_span *s = &b->p->spans.data[b->operators.data[i - 1]];
        if (b->p->threads_seen.data[s->thread].id == slice->rec.parent && s->start_ns <= start_ns &&
            s->start_ns + s->dur_ns >= start_ns)
            return s;
    }
    return NULL;
}

static const char *span_name(sn_profile_builder *b, const sn_event *e, const sn_prof_span *s,
                             const sn_run_row *run)
{
    switch (e->rec.kind) {
    case SN_TRACE_RUN:
        if (e->rec.parent)
            return "body";
        return sn_arena_printf(b->texts, "%s%u", s->warmup ? "Warmup" : "Iteration",
                               run ? run->iteration : 0);
    case SN_TRACE_STEP:
        return s->step != UINT32_MAX ? b->p->steps.data[s->step].op_type : "step";
    case SN_TRACE_SLICE:
        return "slice";
    case SN_TRACE_ALLOC:
        return "memory";
    default:
        return sn_arena_strdup(b->texts, sn_trace_name_text(b->r->ctx->trace, e->rec.index));
    }
}

/* "name<1f>category<1f>text" ► its parts. The text is missing where there were too many of them. */
static void split_scope(sn_prof_span *s)
{
    char *at = strchr((char *)(uintptr_t)s->name, SN_TRACE_SEPARATOR); /* the profile's own copy */
    if (!at)
        return;
    *at++ = 0;
    s->category = at;
    at = strchr(at, SN_TRACE_SEPARATOR);
    if (!at)
        return;
    *at++ = 0;
    s->args = at;
}

static sn_prof_cat category(const sn_trace_rec *r)
{
    switch (r->kind) {
    case SN_TRACE_RUN:
        return r->parent ? SN_CAT_EXECUTOR : SN_CAT_ITERATION;
    case SN_TRACE_STEP:
        return SN_CAT_OPERATOR;
    case SN_TRACE_SLICE:
        return SN_CAT_THREAD;
    case SN_TRACE_ALLOC:
        return SN_CAT_MEMORY;
    case SN_TRACE_USER:
        return SN_CAT_USER;
    default:
        return SN_CAT_EXECUTOR;
    }
}

static uint32_t parent_of(const sn_profile_builder *b, const sn_event *e)
{
    const sn_trace_rec *r = &e->rec;
    if (r->kind == SN_TRACE_RUN) {
        if (!r->parent)
            return 1; /* the model's */
        const sn_step_key key = {.run = r->parent, .index = r->parent_index};
        const sn_step_key *control =
            b->controls.n ? bsearch(&key, b->controls.data, b->controls.n, sizeof key, by_step)
                          : NULL;
        return control ? b->p->spans.data[control->span].id : 0;
    }
    const sn_run_row *run = sn_builder_run(b, r->run);
    return run ? b->events.data[run->event].span : 0;
}

static uint64_t beyond(uint64_t more, uint64_t less)
{
    return more > less ? more - less : 0;
}

/* What the steps around a body hold while it runs: their values as planned, and what was taken
 * between the begin of their run and that of the body, beyond the memory that the body itself has
 * got by then. */
static uint64_t used_around(const sn_profile_builder *b, const sn_run_row *run)
{
    enum { DEEPEST = 64 };
    uint64_t sum = 0;
    for (int depth = 0; run->parent && depth < DEEPEST; depth++) {
        const sn_trace_rec *own = &b->events.data[run->event].rec;
        const sn_run_row *outer = sn_builder_run(b, run->parent);
        const sn_table_row *body = sn_builder_table(b, own->table);
        const sn_table_row *table =
            outer ? sn_builder_table(b, b->events.data[outer->event].rec.table) : NULL;
        if (!table || !table->bytes || !body || own->parent_index >= table->n_steps)
            break;
        const sn_binding *made = body->binding;
        const bool first = own->flags & SN_TRACE_BOUND; /* then its frame is new */
        const uint64_t got =
            made->output_bytes + (first ? made->arena_bytes + made->workspace_bytes : 0);
        const bool known = run->held != UINT64_MAX && outer->held != UINT64_MAX;
        sum += beyond(table->bytes[own->parent_index].live,
                      table->binding->info[own->parent_index].workspace_bytes);
        sum += known ? beyond(beyond(run->held, outer->held), got) : 0;
        run = outer;
    }
    return sum;
}

/* A MEMORY record is two counters: what is used is what the plan says and what the run has taken
 * beyond that, and in a body also what the steps around it hold. */
static sonde_status add_counters(sn_profile_builder *b, const sn_event *e, sonde_error *err)
{
    const sn_trace_rec *r = &e->rec;
    const sn_table_row *table = sn_builder_table(b, r->table);
    const sn_run_row *run = sn_builder_run(b, r->run);
    if (!table || !table->bytes || r->index >= table->n_steps || !run || run->held == UINT64_MAX)
        return SONDE_OK;
    const uint64_t held = sn_trace_number(r), taken = beyond(held, run->held);
    const sn_prof_counter used = {
        .at_ns = sn_builder_ns(b, r->t0),
        .name = SN_COUNTER_USED,
        .value = (double)(table->bytes[r->index].used + taken + used_around(b, run)),
        .step = table->first_step + r->index};
    sn_prof_counter allocated = used;
    allocated.name = SN_COUNTER_ALLOCATED;
    allocated.value = (double)held;
    return sn_vec_push(&b->p->counters, b->p->alloc, used) &&
                   sn_vec_push(&b->p->counters, b->p->alloc, allocated)
               ? SONDE_OK
               : sn_fail_memory(err, sizeof used);
}

/* A COUNT record adds to its step. */
static void add_count(sn_profile_builder *b, const sn_trace_rec *r)
{
    const sn_table_row *table = sn_builder_table(b, r->table);
    if (!table || r->index >= table->n_steps || (r->flags & SN_TRACE_WARMUP))
        return;
    if (!b->counted)
        b->p->record_ns += sn_machine_counters_cost_ns(b->r->machine);
    b->counted = true;
    sn_prof_hw *hw = &b->p->steps.data[table->first_step + r->index].hw;
    const double n = (double)sn_trace_number(r);
    switch ((sn_hw)(r->flags >> SN_TRACE_HW_SHIFT)) {
    case SN_HW_CYCLES:
        hw->cycles += n;
        hw->calls++;
        break;
    case SN_HW_INSTRUCTIONS:
        hw->instructions += n;
        break;
    case SN_HW_CACHE_MISSES:
        hw->cache_misses += n;
        break;
    case SN_HW_BRANCH_MISSES:
        hw->branch_misses += n;
        break;
    case SN_HW_COUNT:
        break;
    }
}

static sonde_status add_span(sn_profile_builder *b, sn_event *e, sonde_error *err)
{
    const sn_trace_rec *r = &e->rec;
    sn_prof_span s = {.cat = category(r),
                      .thread = e->thread,
                      .start_ns = sn_builder_ns(b, r->t0),
                      .step = UINT32_MAX,
                      .args = ""};
    s.dur_ns = sn_builder_ns(b, r->t1) - s.start_ns;
    const sn_run_row *root = sn_builder_root(b, r->run);
    if (root) {
        s.run = root->number;
        s.iteration = root->iteration;
        s.instance = b->events.data[root->event].rec.index;
        s.warmup = (b->events.data[root->event].rec.flags & SN_TRACE_WARMUP) != 0;
    }
    if (r->kind == SN_TRACE_STEP) {
        const sn_table_row *table = sn_builder_table(b, r->table);
        if (table && r->index < table->n_steps)
            s.step = table->first_step + r->index;
        s.bound = (r->flags & SN_TRACE_BOUND) != 0;
    }
    s.id = ++b->ids;
    s.parent = parent_of(b, e);
    const sn_prof_span *op = r->kind == SN_TRACE_SLICE ? operator_of(b, e) : NULL;
    if (op) {
        s.parent = op->id;
        s.step = op->step;
        s.run = op->run;
        s.iteration = op->iteration;
        s.instance = op->instance;
        s.warmup = op->warmup;
    }
    if (r->kind == SN_TRACE_RUN && !r->parent && root && root->caller_parts == 7) {
        char text[SN_TRACEPARENT_TEXT];
        s.args = sn_arena_strdup(b->texts, sn_traceparent_text(&root->caller, text));
    }
    s.name = span_name(b, e, &s, root);
    const uint32_t at = (uint32_t)b->p->spans.n;
    if (r->kind == SN_TRACE_USER)
        s.warmup = (r->flags & SN_TRACE_WARMUP) != 0;
    if (s.name && r->kind == SN_TRACE_USER && (r->flags & SN_TRACE_PARTED))
        split_scope(&s);
    if (!s.name || !s.args || !sn_vec_push(&b->p->spans, b->p->alloc, s))
        return sn_fail_memory(err, sizeof s);
    e->span = s.id;
    if (r->kind == SN_TRACE_STEP && !sn_vec_push(&b->operators, b->p->alloc, at))
        return sn_fail_memory(err, sizeof at);
    if (s.cat == SN_CAT_OPERATOR && s.step != UINT32_MAX && b->p->steps.data[s.step].control) {
        /* Runs are numbered as they begin, so keys arrive in order but for concurrent runs. */
        const sn_step_key key = {.run = r->run, .index = r->index, .span = at};
        if (!sn_vec_push(&b->controls, b->p->alloc, key))
            return sn_fail_memory(err, sizeof key);
        for (size_t k = b->controls.n - 1; k > 0 && by_step(&b->controls.data[k - 1], &key) > 0;
             k--) {
            b->controls.data[k] = b->controls.data[k - 1];
            b->controls.data[k - 1] = key;
        }
    }
    return SONDE_OK;
}

/* Executor spans may begin before the model's first run: it goes where its start says. */
sonde_status sn_builder_add_spans(sn_profile_builder *b, uint64_t until, sonde_error *err)
{
    if (!sn_vec_reserve(&b->p->spans, b->p->alloc, b->events.n + 1))
        return sn_fail_memory(err, b->events.n * sizeof(sn_prof_span));
    sn_prof_span model;
    bool pending = !b->streaming && sn_builder_model_span(b, &model);
    if (!b->ids)
        b->ids = 1; /* the model's, whether it shows or not */
    for (size_t i = 0; i < b->events.n; i++) {
        sn_event *e = &b->events.data[i];
        if (pending && sn_builder_ns(b, e->rec.t0) >= model.start_ns) {
            b->p->spans.data[b->p->spans.n++] = model; /* room was made above */
            pending = false;
        }
        if (e->rec.kind == SN_TRACE_COUNT)
            add_count(b, &e->rec);
        else if (e->rec.kind != SN_TRACE_CALLER) /* its run has it */
            SN_TRY(e->rec.kind == SN_TRACE_MEMORY ? add_counters(b, e, err) : add_span(b, e, err));
    }
    return sn_builder_live(b, until, err);
}
